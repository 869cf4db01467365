"""Normals computed from triangles, to replace invalid ones in files, and tangents of split vertices.

With Blender, ``Mesh.calc_tangents`` (MikkTSpace) is used instead. This module processes whole meshes at a time: the
tangent of a triangle's corner is the direction of increasing u of the first UV layer, projected into the plane of the
corner's normal. Corners of a vertex are weighted by their angle in that plane. Triangles with mirrored UVs, which
MikkTSpace keeps separate from the others, form a second group at each vertex; the group with the larger sum of angles
is used.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.messages import Report, counted
from ..core.scene import Mesh
from .transforms import cross

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


def report_repaired(count: int, report: Report) -> None:
    """Report the normals that were computed from the triangles, if there are any."""
    if count:
        number = counted(count, "normal has", "normals have")
        report.change("normals-without-direction", "{} no direction; computed from the triangles", number)


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


def vertex_tangents(
    positions: FloatArray, normals: FloatArray, uv: FloatArray, corner_vertex: npt.NDArray[np.int32]
) -> FloatArray:
    """Return (V, 4) float32: unit tangents perpendicular to the normals, and the sign of the bitangent.

    The bitangent is ``sign * cross(normal, tangent)`` in a right-handed space. Vertices whose
    triangles have no area in the UV layer get some tangent perpendicular to the normal.
    """
    count = len(positions)
    normal = normals.astype(np.float32, copy=False).take(corner_vertex, axis=0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        place = positions.take(corner_vertex, axis=0).reshape(-1, 3, 3)
        corner_uv = uv.take(corner_vertex, axis=0)
        winding = uv_sides(corner_uv)[::3].astype(np.float32)
        edge = [place[:, k] - place[:, 0] for k in (1, 2)]
        delta = [corner_uv[k::3] - corner_uv[::3] for k in (1, 2)]
        along_u = (edge[0] * delta[1][:, 1:2] - edge[1] * delta[0][:, 1:2]) * winding[:, None]
        along_v = (edge[1] * delta[0][:, 0:1] - edge[0] * delta[1][:, 0:1]) * winding[:, None]
        angle = _corner_angles(place, normal)
        corner_u = _across(along_u.repeat(3, axis=0), normal)
    angle[winding.repeat(3) == 0] = 0
    # At each vertex, separate triangles with mirrored UVs from the others; use the group whose corner angles have the
    # larger sum.
    half = corner_vertex + np.where(winding < 0, count, 0).repeat(3)
    shares = np.bincount(half, weights=angle, minlength=2 * count).reshape(2, count)
    chosen = np.arange(count) + np.where(shares[1] > shares[0], count, 0)
    tangent = _sum_at(half, corner_u * angle[:, None], 2 * count)[chosen]
    bitangent = _sum_at(half, np.nan_to_num(along_v).repeat(3, axis=0), 2 * count)[chosen]
    unit_normals = normals.astype(np.float64)
    length = np.linalg.norm(tangent, axis=1)
    flat = ~(length > 1e-20)
    tangent[flat] = any_perpendicular(unit_normals[flat])
    length[flat] = 1.0
    result = np.empty((count, 4), np.float32)
    result[:, :3] = tangent / length[:, None]
    side = np.einsum("ij,ij->i", cross(unit_normals, result[:, :3]), bitangent)
    result[:, 3] = np.where(side < 0, -1.0, 1.0)
    return result


def uv_sides(corner_uv: FloatArray) -> npt.NDArray[np.int8]:
    """Return whether the triangle of each corner shows the front (1) or the back (-1) of the UV layer, (C,) int8.

    The value is 0 if it has no area there. ``corner_uv`` is (C, 2).
    """
    corner = corner_uv.reshape(-1, 3, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
        winding = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
    return ((winding > 0).astype(np.int8) - (winding < 0)).repeat(3)


def _corner_angles(place: FloatArray, normal: FloatArray) -> FloatArray:
    """Return the angle at each corner in the plane of its normal, (C,); 0 if it is undefined.

    ``place`` (T, 3, 3) are the positions of the corners, ``normal`` is (C, 3).
    """
    one, other = (_across((place[:, order] - place).reshape(-1, 3), normal) for order in ([1, 2, 0], [2, 0, 1]))
    angles: FloatArray = np.nan_to_num(np.arccos(np.clip(np.einsum("ij,ij->i", one, other), -1, 1)))
    return angles


def _across(vectors: FloatArray, normal: FloatArray) -> FloatArray:
    """Project vectors (C, 3) into the planes of normals and normalise them; 0 if nothing remains."""
    flat: FloatArray = np.nan_to_num(vectors - normal * np.einsum("ij,ij->i", normal, vectors)[:, None])
    length = np.sqrt(np.einsum("ij,ij->i", flat, flat))
    flat /= np.where((length > 0) & (length < np.inf), length, np.inf)[:, None]
    return flat


def any_perpendicular(normals: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return a unit vector perpendicular to each unit normal (n, 3)."""
    helper = np.zeros((len(normals), 3))
    smallest = np.abs(normals).argmin(axis=1) if len(normals) else np.empty(0, np.intp)
    helper[np.arange(len(normals)), smallest] = 1.0
    crossed = cross(normals, helper)
    length = np.linalg.norm(crossed, axis=1, keepdims=True)
    perpendicular: npt.NDArray[np.float64] = crossed / np.where(length > 0, length, 1)
    return perpendicular


def _sum_at(
    index: npt.NDArray[np.integer], per_corner: npt.NDArray[np.floating[Any]], count: int
) -> npt.NDArray[np.float64]:
    """Sum vectors of corners, (C, 3), by the given index: (count, 3)."""
    total = np.empty((count, 3))
    for axis in range(3):
        total[:, axis] = np.bincount(index, weights=per_corner[:, axis], minlength=count)
    return total
