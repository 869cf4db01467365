"""Normals computed from triangles, to replace invalid ones in files."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..core.scene import Mesh
from .vectors import cross

FloatArray = npt.NDArray[np.float32]

_MOST_CHECKED = 500
"""Maximum number of triangles sampled for detecting inverted normals."""


def face_normals(points: FloatArray, corner_point: npt.NDArray[np.int32]) -> FloatArray:
    """Return the normals of triangles, (T, 3) float32, with twice the area as length."""
    triangles = points[corner_point].reshape(-1, 3, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        normals = cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return normals.astype(np.float32, copy=False)


def vertex_normals(points: FloatArray, corner_point: npt.NDArray[np.int32]) -> FloatArray:
    """Return area-weighted unit normals of points, (P, 3) float32; (0, 0, 1) for points without area."""
    faces = np.nan_to_num(face_normals(points, corner_point))
    total = np.empty((len(points), 3))
    for axis in range(3):
        total[:, axis] = np.bincount(corner_point, weights=np.repeat(faces[:, axis], 3), minlength=len(points))
    length = np.linalg.norm(total, axis=1, keepdims=True)
    flat = length[:, 0] < 1e-30
    total[flat] = (0.0, 0.0, 1.0)
    length[flat] = 1.0
    total /= length
    return total.astype(np.float32)


def unit(vectors: FloatArray) -> FloatArray:
    """Return the vectors (n, 3) normalised; zero vectors stay zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        if np.all(np.abs(length - 1) < 1e-6):
            return vectors
        scaled = vectors / np.where(length > 0, length, 1)[:, None]
    return scaled.astype(np.float32, copy=False)


def without_direction(normals: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which normals are zero, NaN, infinite or extremely long, (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.einsum("ij,ij->i", normals, normals)
        return np.asarray(~((squared > 1e-12) & (squared < 1e30)))


def repair(normals: FloatArray, points: FloatArray, corner_point: npt.NDArray[np.int32]) -> tuple[FloatArray, int]:
    """Return unit normals of points, (P, 3) float32, and the number of those computed from the triangles.

    Normals without direction are replaced.
    """
    broken = without_direction(normals)
    count = int(np.count_nonzero(broken))
    if not count:
        return unit(normals), 0
    mended = normals.copy()
    mended[broken] = vertex_normals(points, corner_point)[broken]
    return unit(mended), count


def repair_vertices(
    normals: FloatArray, corner: npt.NDArray[np.intp], points: FloatArray, corner_point: npt.NDArray[np.int32]
) -> tuple[FloatArray, int]:
    """Return unit normals of vertices, (V, 3) float32, and the number of those replaced by the normal of a triangle.

    The parameters are those of :func:`repair`; ``corner`` (V,) is a corner of each vertex.
    """
    broken = np.flatnonzero(without_direction(normals))
    if len(broken):
        triangles = corner_point.reshape(-1, 3)[corner[broken] // 3].reshape(-1)
        faces = unit(np.nan_to_num(face_normals(points, triangles)))
        faces[~faces.any(axis=1)] = (0, 0, 1)
        normals = normals.copy()
        normals[broken] = faces
    return unit(normals), len(broken)


def share_backwards(mesh: Mesh) -> float:
    """Return the share of a mesh's corner normals that point away from the front of their face."""
    if mesh.normal is None or not mesh.triangle_count:
        return 0.0
    step = max(1, mesh.triangle_count // _MOST_CHECKED)
    corner_point = mesh.corner_point.reshape(-1, 3)[::step]
    triangles = mesh.points[corner_point]
    faces = cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    whole = mesh.normal.per_corner or mesh.normal.index is not None
    if whole:
        corners = mesh.normal.at_corners(mesh.corner_point).reshape(-1, 3, 3)[::step]
    else:
        corners = mesh.normal.values[corner_point]
    return float(np.mean(np.einsum("tcj,tj->tc", corners, faces) < 0))
