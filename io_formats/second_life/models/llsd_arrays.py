"""LLSD numbers, binary values and ranges of quantised values <-> arrays (formats page, sections 3 and 5.1)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...geometry import transforms
from .llsd import as_bytes, as_real

Integers = npt.NDArray[np.uint16]
Reals = npt.NDArray[np.float64]


def singles(values: npt.ArrayLike) -> list[Any]:
    """Round numbers to single precision, as the viewer does, and return them as Python floats."""
    with np.errstate(over="ignore"):
        widened: list[Any] = np.asarray(values, np.float32).astype(np.float64).tolist()
    return widened


def as_reals(value: Any, count: int) -> npt.NDArray[np.float64] | None:
    """Return an array of ``count`` numbers, (count,) float64, or None if the value is not a list of that many numbers.

    Numbers may be NaN.
    """
    if not isinstance(value, list) or len(value) != count:
        return None
    numbers = [as_real(number) for number in value]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, np.float64)


def integer_rows(value: Any, width: int) -> Integers | None:
    """Return 16-bit numbers in rows, (n, width), without an incomplete last row, or None if it is not binary data."""
    data = as_bytes(value)
    if data is None:
        return None
    count = len(data) // (2 * width)
    return np.frombuffer(data, "<u2", count * width).reshape(count, width)


def integer_bytes(values: Integers) -> bytes:
    """Return 16-bit numbers as binary data."""
    return np.ascontiguousarray(values, "<u2").tobytes()


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
    return transforms.bounds(values).astype(np.float64) if len(values) else np.zeros((2, values.shape[1]))
