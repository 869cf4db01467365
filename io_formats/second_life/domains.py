"""Ranges of quantised values: ``{Min, Max}`` of a block <-> arrays (formats page, sections 3 and 5.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .llsd_arrays import as_reals, singles

Reals = npt.NDArray[np.float64]


class NonFiniteRangeError(ValueError):
    """A range with a bound that is not finite in single precision."""


def domain_of(value: Any, axes: int) -> Reals | None:
    """Return a range (2, axes), minimum and maximum, in single precision, or None if there is none.

    Raises
    ------
    NonFiniteRangeError
        A bound, or the length, is not finite in single precision.
    """
    if not isinstance(value, dict):
        return None
    least, most = (as_reals(value.get(key), axes) for key in ("Min", "Max"))
    if least is None or most is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        ends = np.array((least, most)).astype(np.float32)
        finite = np.isfinite(ends).all() and np.isfinite(ends[1] - ends[0]).all()
    if not finite:
        raise NonFiniteRangeError
    return ends.astype(np.float64)


def domain_map(domain: npt.ArrayLike) -> dict[str, list[float]]:
    """Encode a range (2, axes) as ``{Max, Min}``."""
    least, most = singles(domain)
    return {"Max": most, "Min": least}


def bounds(points: npt.ArrayLike) -> Reals:
    """Return the range (2, axes) of points (n, axes) in single precision; zeros without points."""
    values = np.asarray(points, np.float32)
    if not len(values):
        return np.zeros((2, values.shape[1]))
    return np.stack((values.min(axis=0), values.max(axis=0))).astype(np.float64)
