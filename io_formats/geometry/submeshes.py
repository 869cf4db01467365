"""Submeshes: the points and values that some triangles of a mesh use, in separate arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.scene import IntArray, Layer, Mesh


@dataclass
class Pool:
    """The rows of an array that an index uses, in the order of the array."""

    chosen: slice | npt.NDArray[np.intp]
    """Selects the used rows: ``rows[chosen]``; a slice if there are no unused rows between the first and the last."""
    index: IntArray
    """The given index, relative to the selected rows."""
    count: int
    """Number of used rows."""


def pool_rows(index: IntArray) -> Pool:
    """Find the rows that ``index`` (C,) uses, and return the index relative to them."""
    if not len(index):
        return Pool(slice(0, 0), index, 0)
    first, last = int(index.min()), int(index.max())
    span = last + 1 - first
    if span > 8 * len(index):
        # A few triangles of a large mesh: sort them, instead of marking rows in an array of the size of the mesh.
        used, place = np.unique(index, return_inverse=True)
        return Pool(used.astype(np.intp), place.reshape(-1).astype(np.int32), len(used))
    moved = index - np.int32(first) if first else index
    mark = np.zeros(span, bool)
    mark[moved] = True
    count = int(np.count_nonzero(mark))
    if count == span:
        return Pool(slice(first, last + 1), moved, count)
    rank = np.cumsum(mark, dtype=np.int32)
    rank -= 1
    return Pool(np.flatnonzero(mark) + first, rank[moved], count)


def shared_index(layers: Iterable[Layer]) -> IntArray | None:
    """Return the index that all layers share, with equal numbers of values, or None."""
    found: IntArray | None = None
    count = 0
    for layer in layers:
        if layer.index is None:
            return None
        if found is None:
            found, count = layer.index, len(layer.values)
        elif len(layer.values) != count or (found is not layer.index and not np.array_equal(found, layer.index)):
            return None
    return found


def with_points(mesh: Mesh, rows: slice | npt.NDArray[np.integer], corner_point: IntArray) -> Mesh:
    """Return a mesh with only these points, their weights and shape keys; layers are unchanged.

    ``corner_point`` (C,) is the new point of each corner.
    """
    return replace(
        mesh,
        points=mesh.points[rows],
        corner_point=corner_point,
        shape_keys=[replace(key, points=key.points[rows]) for key in mesh.shape_keys],
        joint_indices=None if mesh.joint_indices is None else mesh.joint_indices[rows],
        joint_weights=None if mesh.joint_weights is None else mesh.joint_weights[rows],
    )


def with_corners(mesh: Mesh, chosen: npt.NDArray[np.generic]) -> Mesh:
    """Return a mesh with only these corners, or with all in another order; points and materials are unchanged."""

    def choose(layer: Layer) -> Layer:
        if layer.index is not None:
            return replace(layer, index=layer.index[chosen])
        return replace(layer, values=layer.values[chosen]) if layer.per_corner else layer

    return replace(mesh.with_layers(choose), corner_point=mesh.corner_point[chosen], polygon_sizes=None)


def part_of_slots(mesh: Mesh, slots: list[int]) -> Mesh:
    """Return the triangles of some material slots as a separate mesh, with these slots in the given order.

    Points and shared values that these triangles do not use are removed.
    """
    place = np.full(max(len(mesh.materials), len(mesh.surfaces), 1), -1, np.int32)
    place[slots] = np.arange(len(slots), dtype=np.int32)
    slot = place[mesh.material_index]
    kept = slot >= 0
    corners = np.repeat(kept, 3)
    points = pool_rows(mesh.corner_point[corners])
    pools: dict[tuple[int, int], Pool] = {}

    def cut(layer: Layer) -> Layer:
        if layer.index is None:
            return layer.rows(corners if layer.per_corner else points.chosen)
        key = (id(layer.index), len(layer.values))
        if key not in pools:
            pools[key] = pool_rows(layer.index[corners])
        return replace(layer.rows(pools[key].chosen), index=pools[key].index)

    return replace(
        with_points(mesh.with_layers(cut), points.chosen, points.index),
        material_index=slot[kept],
        materials=[mesh.materials[number] for number in slots],
        surfaces=[mesh.surfaces[number] for number in slots] if mesh.surfaces else [],
        polygon_sizes=_sizes_of_kept(mesh.polygon_sizes, kept),
    )


def _sizes_of_kept(sizes: IntArray | None, kept: npt.NDArray[np.bool_]) -> IntArray | None:
    """Return the sizes of polygons, all triangles of which are among those that are kept, (T,), or are not."""
    if sizes is None or not len(sizes) or int(sizes.min()) < 3 or int((sizes - 2).sum()) != len(kept):
        return None
    found: IntArray = sizes[kept[np.cumsum(sizes - 2) - (sizes - 2)]]
    return found


def triangle_runs(triangles: IntArray, most_vertices: int, most_triangles: int | None = None) -> Iterator[slice]:
    """Divide triangles (T, 3) into consecutive runs with at most this many different vertices and triangles.

    The number of runs is minimal for that order; there is at least one run, which may be empty.
    """
    most = len(triangles) if most_triangles is None else most_triangles
    start = 0
    while True:
        rest = np.ascontiguousarray(triangles[start : start + most]).reshape(-1)
        fitting = len(rest) // 3
        if len(rest) > most_vertices:
            first = np.full(int(rest.max()) + 1, -1, np.intp)
            first[rest[::-1]] = np.arange(len(rest) - 1, -1, -1)
            is_new = np.zeros(len(rest), bool)
            is_new[first[first >= 0]] = True
            seen = np.cumsum(is_new.reshape(-1, 3).sum(axis=1))
            fitting = int(np.searchsorted(seen, most_vertices, side="right"))
        yield slice(start, start + fitting)
        start += fitting
        if start == len(triangles):
            return
