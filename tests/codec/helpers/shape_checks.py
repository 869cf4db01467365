"""Comparison of faces of prims and sculpts with those of the slow transcriptions in the oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import slow_prims

Array = npt.NDArray[np.float64]


def doubled_areas(points: Array, triangles: npt.NDArray[Any]) -> Array:
    a, b, c = points[triangles.T]
    areas: Array = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return areas


def require_same_face(face: Any, wanted: slow_prims.Face, about: object) -> None:
    """Require the same points, UVs, triangles with an area, and normals of the points that these have."""
    points, triangles = np.array(wanted.points), np.array(wanted.triangles).reshape(-1, 3)
    assert face.points.shape == points.shape, about
    assert np.abs(face.points - points).max() < 1e-9, about
    assert np.abs(face.uvs - wanted.uvs).max() < 1e-9, about
    areas = doubled_areas(points, triangles)
    triangles = triangles[areas > 1e-12]
    found_areas = doubled_areas(face.points, face.triangles)
    assert (found_areas > 1e-12).all(), about
    if not np.array_equal(face.triangles, triangles):
        # Where points of a cap are in line, rounding decides between divisions of the same surface.
        assert face.role in ("top", "bottom"), about
        assert abs(found_areas.sum() - areas.sum()) < 1e-9, about
        centres = [points[corners].mean(axis=1) for corners in (face.triangles, triangles)]
        moments = found_areas @ centres[0] - areas[areas > 1e-12] @ centres[1]
        assert np.abs(moments).max() < 1e-9, about
    sums = np.array(wanted.normals)
    length = np.linalg.norm(sums, axis=1)
    used = np.unique(face.triangles)
    used = used[length[used] > 1e-9]
    assert np.abs(face.normals[used] - sums[used] / length[used, None]).max(initial=0) < 1e-6, about
    assert np.abs(np.linalg.norm(face.normals, axis=1) - 1).max() < 1e-9, about
