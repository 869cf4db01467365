"""Numbers in texts of XML elements -> arrays."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .document import Matrices

_LARGEST_NUMBER = 3.4e38
_FARTHEST = 1e18
"""Limit for numbers. Squares of larger ones overflow in single precision, and Blender makes infinite scales of them."""

Numbers = npt.NDArray[np.float64]


def parse_numbers(text: str | None) -> Numbers | None:
    """Return the numbers of a text, or None if one of them is not finite in single precision."""
    try:
        values = np.array((text or "").split(), np.float64)
    except ValueError:
        return None
    return values if (np.abs(values) < _LARGEST_NUMBER).all() else None


def parse_number(text: str | None, default: float) -> float:
    """Return a number, which may be infinite, or the default if the text is not a number."""
    try:
        value = float(text) if text is not None else default
    except ValueError:
        return default
    return default if math.isnan(value) else value


def parse_matrix(text: str | None) -> Matrices | None:
    """Return a matrix given by its columns, or None if the text is not 16 finite numbers of an affine matrix."""
    try:  # Plain floats are several times as fast as small arrays.
        values = [float(word) for word in (text or "").split()]
    except ValueError:
        return None
    if len(values) != 16 or not all(-_FARTHEST < value < _FARTHEST for value in values):
        return None
    is_affine = all(abs(value - wanted) < 1e-3 for value, wanted in zip(values[3::4], (0, 0, 0, 1), strict=True))
    return np.array(values).reshape(4, 4).T if is_affine else None
