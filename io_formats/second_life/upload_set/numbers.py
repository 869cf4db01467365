"""Fast conversion of arrays to text: a body of 60,000 triangles has half a million numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_AT_ONCE = 1 << 16
"""Numbers for each format string; longer strings need more memory without being faster."""


def reals(values: npt.NDArray[np.floating], digits: int = 9) -> str:
    """Return numbers in the array's order, separated by spaces; 9 digits restore every float32 exactly."""
    flat = (np.asarray(values).reshape(-1) + 0.0).tolist()  # + 0.0 turns -0.0 into 0.0
    form = f"%.{digits}g"
    parts = []
    for start in range(0, len(flat), _AT_ONCE):
        block = tuple(flat[start : start + _AT_ONCE])
        parts.append(" ".join([form] * len(block)) % block)
    return " ".join(parts)


def integers(values: npt.NDArray[np.integer]) -> str:
    """Return numbers from 0 to 2^31 in the array's order, separated by spaces."""
    rest = np.ascontiguousarray(values, np.int32).reshape(-1)
    if not len(rest):
        return ""
    width = len(str(int(rest.max())))
    digits = np.empty((len(rest), width + 1), np.uint8)
    digits[:, width] = ord(" ")
    kept = np.ones((len(rest), width + 1), bool)
    for column in range(width - 1, -1, -1):
        tens = rest // 10
        digits[:, column] = rest - tens * 10 + ord("0")
        if column < width - 1:
            kept[:, column] = rest > 0  # drop leading zeros
        rest = tens
    return digits[kept].tobytes()[:-1].decode("ascii")
