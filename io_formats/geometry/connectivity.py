"""Connectivity of triangles: loose parts, open edges, points at equal positions."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.scene import IntArray, Layer, Mesh
from .normals import face_normals
from .triangles import pool_rows, with_points
from .vertices import drop_repeated_corners, weld_map

_FOLDED = -0.999
"""Triangles whose normals have a smaller cosine are back to back, such as the two sides of a cloth."""

_Indices = npt.NDArray[np.intp]


def labels(count: int, one: npt.NDArray[np.integer], other: npt.NDArray[np.integer]) -> _Indices:
    """Return the smallest index of the connected component of each of ``count`` items, (count,).

    ``one`` and ``other`` (n,) are the pairs of connected items.
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
        while True:  # follow chains of labels to their ends, in passes that each double the distance
            further = label[label]
            if np.array_equal(further, label):
                break
            label = further
    return label


def places(points: npt.NDArray[np.floating]) -> IntArray:
    """Number the different positions of points (P, 3) in order of first appearance: (P,) int32."""
    return weld_map([points])[0]


def parts(mesh: Mesh) -> IntArray:
    """Return the number of the loose part of each triangle, (T,) int32 from 0.

    Triangles are connected if they share a point, or points at equal positions.
    """
    triangles = places(mesh.points)[mesh.corner_point].reshape(-1, 3)
    if not len(triangles):
        return np.empty(0, np.int32)
    count = int(triangles.max()) + 1
    of_place = labels(count, np.repeat(triangles[:, 0], 2), triangles[:, 1:].reshape(-1))
    _, part = np.unique(of_place[triangles[:, 0]], return_inverse=True)
    return part.reshape(-1).astype(np.int32)


def open_points(corner_point: IntArray, count: int) -> npt.NDArray[np.bool_]:
    """Return which of ``count`` points are on an edge with only one triangle, (count,)."""
    start, end = _edges(corner_point)
    key, uses = np.unique(_keys(start, end, count), return_counts=True)
    border = key[uses == 1]
    found = np.zeros(count, bool)
    found[border // count] = True
    found[border % count] = True
    return found


def sewn(mesh: Mesh) -> Mesh:
    """Weld the points of edges that two triangles have at the same position; remove unused points.

    Thus seams of UVs and normals, at which files split vertices, do not count as open edges. Back-to-back sides of a
    cloth stay separate, and so do parts that only touch. If welded points differ in weights, those of the first are
    used. Shape keys are removed.
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
        used = pool_rows(mesh.corner_point)
        return replace(layer, values=layer.values[used.chosen], index=used.index)

    return drop_repeated_corners(with_points(mesh.with_layers(move), kept, new_point[mesh.corner_point]))[0]


def _edges(corner_point: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and second point of the edge that starts at each corner, (C,)."""
    following: IntArray = np.roll(corner_point.reshape(-1, 3), -1, axis=1).reshape(-1)
    return corner_point, following


def _keys(one: IntArray, other: IntArray, count: int) -> npt.NDArray[np.int64]:
    """Return a key for each edge, independent of its direction."""
    low = np.minimum(one, other).astype(np.int64)
    return low * count + np.maximum(one, other)
