"""Tangents of split vertices, for conversions that Blender takes no part in.

In Blender, ``Mesh.calc_tangents`` (MikkTSpace) is used instead. Here triangles give their vertices
the gradient of the first UV layer, weighted by area.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .vectors import cross

FloatArray = npt.NDArray[np.float32]


def vertex_tangents(
    positions: FloatArray, normals: FloatArray, uv: FloatArray, corner_vertex: npt.NDArray[np.int32]
) -> FloatArray:
    """Return (V, 4) float32: unit tangents perpendicular to the normals, and the sign of the bitangent.

    The bitangent is ``sign * cross(normal, tangent)`` in a right-handed space. Vertices whose
    triangles have no area in the UV layer get some tangent perpendicular to the normal.
    """
    triangle = corner_vertex.reshape(-1, 3)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        edge = [positions[triangle[:, k]] - positions[triangle[:, 0]] for k in (1, 2)]
        delta = [uv[triangle[:, k]] - uv[triangle[:, 0]] for k in (1, 2)]
        winding = delta[0][:, 0] * delta[1][:, 1] - delta[0][:, 1] * delta[1][:, 0]
        turned = np.sign(winding)[:, None]
        along_u = (edge[0] * delta[1][:, 1:2] - edge[1] * delta[0][:, 1:2]) * turned
        along_v = (edge[1] * delta[0][:, 0:1] - edge[0] * delta[1][:, 0:1]) * turned
    tangent = _sum_at(corner_vertex, np.nan_to_num(along_u), len(positions))
    bitangent = _sum_at(corner_vertex, np.nan_to_num(along_v), len(positions))
    unit_normals = normals.astype(np.float64)
    tangent -= unit_normals * np.einsum("ij,ij->i", unit_normals, tangent)[:, None]
    length = np.linalg.norm(tangent, axis=1)
    flat = ~(length > 1e-20)
    tangent[flat] = any_perpendicular(unit_normals[flat])
    length[flat] = 1.0
    result = np.empty((len(positions), 4), np.float32)
    result[:, :3] = tangent / length[:, None]
    side = np.einsum("ij,ij->i", cross(unit_normals, result[:, :3]), bitangent)
    result[:, 3] = np.where(side < 0, -1.0, 1.0)
    return result


def any_perpendicular(normals: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return for each unit normal (n, 3) one unit vector perpendicular to it."""
    helper = np.zeros((len(normals), 3))
    smallest = np.abs(normals).argmin(axis=1) if len(normals) else np.empty(0, np.intp)
    helper[np.arange(len(normals)), smallest] = 1.0
    crossed = cross(normals, helper)
    length = np.linalg.norm(crossed, axis=1, keepdims=True)
    perpendicular: npt.NDArray[np.float64] = crossed / np.where(length > 0, length, 1)
    return perpendicular


def _sum_at(
    index: npt.NDArray[np.int32], per_triangle: npt.NDArray[np.floating], count: int
) -> npt.NDArray[np.float64]:
    """Add a triangle's (T, 3) vectors up at the vertices of its corners, (count, 3)."""
    total = np.empty((count, 3))
    for axis in range(3):
        total[:, axis] = np.bincount(index, weights=np.repeat(per_triangle[:, axis], 3), minlength=count)
    return total
