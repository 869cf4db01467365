"""Planar mapping: UVs from positions, in place of those of the face (docs/formats/opensim_archives.md, Faces)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .grid import Array


def planar_uvs(points: npt.NDArray[np.floating], normals: npt.NDArray[np.floating], size: Sequence[float]) -> Array:
    """Return the UVs of planar mapping at vertices, before repeats, offsets and rotation.

    Parameters
    ----------
    points:
        (n, 3) in the unit cube.
    normals:
        (n, 3) of unit length, in the space of ``points``.
    size:
        Size of the part in metres.

    Returns
    -------
    Array
        (n, 2) float64, v upwards. Half a metre is a whole texture.
    """
    x, y, z = (points * np.asarray(size, np.float64)).T
    normal_x, normal_y, normal_z = normals.T.astype(np.float64)
    along_y = np.abs(normal_x) >= 0.5
    sign = np.where(along_y, np.where(normal_x < 0, -1.0, 1.0), np.where(normal_y > 0, -1.0, 1.0))
    u = sign * np.where(along_y, y, x)
    # The tangent is the cross product of this axis and the normal.
    v = sign * np.where(along_y, normal_z * x - normal_x * z, normal_y * z - normal_z * y)
    return np.stack((0.5 + 2 * u, 0.5 - 2 * v), axis=1)
