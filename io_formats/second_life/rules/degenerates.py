"""The uploader's test for degenerate triangles in physics meshes (formats page, section 5.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray

_LEAST = np.float32(1e-7)
_LEAST_OF_EVEN = np.float32(1e-11)
"""Smallest squared cross product of two edges of similar lengths, for a triangle that is not degenerate. Edges of
different lengths (see ``_UNEVEN``) have the limit ``_LEAST``."""
_UNEVEN = np.float32(100)
"""Largest ratio of two squared edge lengths for which the lengths count as similar."""


def degenerate_triangles(points: FloatArray, corner_point: IntArray) -> npt.NDArray[np.bool_]:
    """Return which triangles have so little area that the uploader rejects the physics mesh, (T,).

    Parameters
    ----------
    points:
        (P, 3) in the unit cube (±0.5); computed in single precision, like the uploader.
    corner_point:
        (3 T,). A triangle with three equal corners is a placeholder and does not count.
    """
    triangles = corner_point.reshape(-1, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b, c = (points[triangles[:, corner]].astype(np.float32) * np.float32(0.5) for corner in range(3))
        ab, ac, cb = a - b, a - c, c - b
        first, second, third = _squared(ab), _squared(ac), _squared(cb)
        even = (first <= _UNEVEN * second) & (first <= _UNEVEN * third)
        even &= (second <= _UNEVEN * first) & (third <= _UNEVEN * first)
        least = np.where(even, _LEAST_OF_EVEN, _LEAST)
        found = (_squared(np.cross(ab, ac)) < least) | (_squared(np.cross(-ab, -cb)) < least)
        found |= first * third - _dot(ab, cb) ** 2 == 0
    placeholder = (triangles[:, 0] == triangles[:, 1]) & (triangles[:, 1] == triangles[:, 2])
    flags: npt.NDArray[np.bool_] = found & ~placeholder
    return flags


def _dot(one: FloatArray, other: FloatArray) -> FloatArray:
    product: FloatArray = one[:, 0] * other[:, 0] + one[:, 1] * other[:, 1] + one[:, 2] * other[:, 2]
    return product


def _squared(vectors: FloatArray) -> FloatArray:
    return _dot(vectors, vectors)
