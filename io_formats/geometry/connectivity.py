"""How triangles hang together: parts that nothing joins, open edges, points that stand in one place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.scene import IntArray, Layer, Mesh
from .normals import face_normals
from .submeshes import pool
from .vertices import drop_repeated_corners, weld_map

_FOLDED = -0.999
"""Cosine between the normals of two triangles that lie back to back: the two sides of a cloth, not its surface."""

_Indices = npt.NDArray[np.intp]


def labels(count: int, one: npt.NDArray[np.integer], other: npt.NDArray[np.integer]) -> _Indices:
    """Return for each of ``count`` things the least number of those it is joined with, (count,).

    ``one`` and ``other`` (n,) name the pairs that are joined.
    """
    label = np.arange(count)
    one, other = np.asarray(one), np.asarray(other)
    while len(one):
        of_one, of_other = label[one], label[other]
        apart = of_one != of_other
        if not apart.any():
            break
        one, other, of_one, of_other = one[apart], other[apart], of_one[apart], of_other[apart]
        np.minimum.at(label, np.maximum(of_one, of_other), np.minimum(of_one, of_other))
        while True:  # each follows its label's label, twice as far with each pass
            further = label[label]
            if np.array_equal(further, label):
                break
            label = further
    return label


def places(points: npt.NDArray[np.floating]) -> IntArray:
    """Number the places where points (P, 3) stand, from 0 in order of first appearance: (P,) int32."""
    return weld_map([points])[0]


def parts(mesh: Mesh) -> IntArray:
    """Return for each triangle the number of its loose part, (T,) int32 from 0.

    Triangles belong together where they share a point, or points that stand in one place.
    """
    triangles = places(mesh.points)[mesh.corner_point].reshape(-1, 3)
    if not len(triangles):
        return np.empty(0, np.int32)
    count = int(triangles.max()) + 1
    of_place = labels(count, np.repeat(triangles[:, 0], 2), triangles[:, 1:].reshape(-1))
    _, part = np.unique(of_place[triangles[:, 0]], return_inverse=True)
    return part.reshape(-1).astype(np.int32)


def open_points(corner_point: IntArray, count: int) -> npt.NDArray[np.bool_]:
    """Tell of each of ``count`` points whether an edge ends there that only one triangle has, (count,)."""
    start, end = _edges(corner_point)
    key, uses = np.unique(_keys(start, end, count), return_counts=True)
    border = key[uses == 1]
    found = np.zeros(count, bool)
    found[border // count] = True
    found[border % count] = True
    return found


def sewn(mesh: Mesh) -> Mesh:
    """Return a mesh whose points are joined along edges that two triangles share in place, unused points left out.

    So the seams of UVs and normals, where files part vertices, are no open edges. The sides of a cloth that lie back
    to back stay apart, and so do parts that merely touch. Where joined points differ in weights, the first has its
    way; shape keys are left out.
    """
    mesh = replace(mesh, shape_keys=[])
    place = places(mesh.points)
    count = len(mesh.points)
    start, end = _edges(mesh.corner_point)
    from_place, to_place = place[start], place[end]
    key = _keys(from_place, to_place, count)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else np.empty(0, int)
    uses = np.diff(np.append(first, len(ordered)))
    first = first[uses == 2]
    one, other = order[first], order[first + 1]
    normals = face_normals(mesh.points, mesh.corner_point).astype(np.float64)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    cosine = np.einsum("ij,ij->i", normals[one // 3], normals[other // 3])
    meets = (from_place[one] == to_place[other]) & (from_place[one] != to_place[one]) & (cosine > _FOLDED)
    one, other = one[meets], other[meets]
    label = labels(count, np.concatenate([start[one], end[one]]), np.concatenate([end[other], start[other]]))
    kept = np.unique(label[mesh.corner_point])
    number = np.zeros(count, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    new_point = number[label]

    def move(layer: Layer) -> Layer:
        if layer.index is not None or layer.per_corner:
            return layer
        values = layer.values[kept]
        if np.array_equal(values[new_point[mesh.corner_point]], layer.values[mesh.corner_point]):
            return replace(layer, values=values)
        used = pool(mesh.corner_point)
        return replace(layer, values=layer.values[used.chosen], index=used.index)

    joined = replace(
        mesh.with_layers(move),
        points=mesh.points[kept],
        corner_point=new_point[mesh.corner_point],
        joint_indices=None if mesh.joint_indices is None else mesh.joint_indices[kept],
        joint_weights=None if mesh.joint_weights is None else mesh.joint_weights[kept],
    )
    return drop_repeated_corners(joined)[0]


def _edges(corner_point: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the second point of the edge that begins at each corner, (C,)."""
    following: IntArray = np.roll(corner_point.reshape(-1, 3), -1, axis=1).reshape(-1)
    return corner_point, following


def _keys(one: IntArray, other: IntArray, count: int) -> npt.NDArray[np.int64]:
    """Return a number for each edge, whichever way it goes."""
    low = np.minimum(one, other).astype(np.int64)
    return low * count + np.maximum(one, other)
