"""Numbers in texts of XML elements -> arrays."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .document import Matrices

_LARGEST = 3.4e38

Numbers = npt.NDArray[np.float64]


def numbers(text: str | None) -> Numbers | None:
    """Return the numbers of a text, or None if one of them is not finite in single precision."""
    try:
        values = np.array((text or "").split(), np.float64)
    except ValueError:
        return None
    return values if (np.abs(values) < _LARGEST).all() else None


def number(text: str | None, default: float) -> float:
    """Return a number, which may be infinite, or the default if the text is not a number."""
    try:
        value = float(text) if text is not None else default
    except ValueError:
        return default
    return default if math.isnan(value) else value


def matrix(text: str | None) -> Matrices | None:
    """Return a matrix given by its columns, or None if the text is not 16 finite numbers with an affine matrix."""
    values = numbers(text)
    if values is None or len(values) != 16:
        return None
    found = values.reshape(4, 4).T.copy()
    is_affine = np.abs(found[3] - (0, 0, 0, 1)).max() < 1e-3 and np.abs(found).max() < 1e30
    return found if is_affine else None
