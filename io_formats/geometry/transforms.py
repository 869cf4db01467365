"""Translation, rotation and scale as one matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


def matrix_of_transform(
    translation: tuple[float, float, float],
    rotation: tuple[float, float, float, float],
    scale: tuple[float, float, float],
) -> Matrix:
    """Return the (4, 4) matrix of a translation, rotation (w, x, y, z) and scale, for column vectors."""
    w, x, y, z = np.array(rotation, np.float64) / (np.linalg.norm(rotation) or 1.0)
    matrix = np.identity(4)
    matrix[:3, :3] = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    matrix[:3, :3] *= scale
    matrix[:3, 3] = translation
    return matrix
