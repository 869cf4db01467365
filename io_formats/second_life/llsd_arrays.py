"""LLSD numbers <-> arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .llsd_binary import as_real


def singles(values: npt.ArrayLike) -> list[Any]:
    """Round numbers to single precision, as the viewer does, and return them as Python floats."""
    with np.errstate(over="ignore"):
        widened: list[Any] = np.asarray(values, np.float32).astype(np.float64).tolist()
    return widened


def as_reals(value: Any, count: int) -> npt.NDArray[np.float64] | None:
    """Return an array of ``count`` numbers, (count,) float64, or None for any other value. Numbers may be NaN."""
    if not isinstance(value, list) or len(value) != count:
        return None
    numbers = [as_real(number) for number in value]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, np.float64)
