"""Translation, rotation and scale as one matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from . import quaternions

Matrix = npt.NDArray[np.float64]
Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

MIRROR: Matrix = np.diag((-1.0, 1.0, 1.0, 1.0))
"""The mirroring that is applied to the points of mirrored objects, since files store positive scales alone."""


def unmirrored(rotation: Quaternion, scale: Vector3) -> tuple[Quaternion, Vector3, bool]:
    """Return a rotation, positive scales, and whether :data:`MIRROR` has to be applied to the points before them.

    Two negative scales are a rotation by 180°. All mirrorings are therefore the same one with another rotation, and
    all duplicates of a mesh need at most one mirrored mesh.
    """
    is_negative = np.signbit(scale)
    is_mirrored = bool(is_negative.sum() % 2)
    is_negative[0] ^= is_mirrored
    if is_negative.any():
        half_turn = np.array((0.0, *~is_negative), np.float64)
        w, x, y, z = quaternions.rotation_product(np.array(rotation, np.float64), half_turn).tolist()
        rotation = (w, x, y, z)
    x, y, z = np.abs(scale).tolist()
    return rotation, (x, y, z), is_mirrored


def matrix_of_linear(linear: Matrix) -> Matrix:
    """Return the (4, 4) matrix of a rotation, scale and shear (3, 3)."""
    matrix = np.identity(4)
    matrix[:3, :3] = linear
    return matrix


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
