"""Triangles of polygons, as fans and back (``Mesh.polygon_sizes``), and submeshes with their own points and values."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.scene import FloatArray, IntArray, Layer, Mesh
from .normals import face_normals


@dataclass(eq=False, repr=False)
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


Mask = npt.NDArray[np.bool_]
_FOLDED = 1e-3
"""Cosine of the angle between a triangle and its polygon, from 90° on, up to which it counts as rounding."""
_MOST_TRIED = 4_000_000
"""Number of corners for which starts of concave polygons are tried, about 2 seconds: damaged files have many."""


def fan_corners(sizes: IntArray) -> npt.NDArray[np.intp] | None:
    """Return the corner of polygons with these sizes for each corner of their triangles, (3 T,); None for triangles.

    The triangles of a polygon share its first corner.
    """
    if (sizes == 3).all():
        return None
    counts = sizes - 2
    starts = np.cumsum(sizes) - sizes
    first = np.repeat(starts, counts)
    step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    corners = np.empty((len(first), 3), np.intp)
    corners[:, 0] = first
    corners[:, 1] = first + step + 1
    corners[:, 2] = first + step + 2
    return corners.reshape(-1)


def folded_polygons(positions: FloatArray, points: IntArray, sizes: IntArray) -> Mask:
    """Return which polygons overlap themselves as fans, (G,).

    Parameters
    ----------
    positions:
        (P, 3).
    points:
        (C,) the position of each corner.
    sizes:
        (G,) number of corners of each polygon.
    """
    corners = fan_corners(sizes)
    if corners is None:
        return np.zeros(len(sizes), bool)
    normals = face_normals(positions, points[corners]).astype(np.float64)
    counts = sizes - 2
    starts = np.cumsum(counts) - counts
    whole = np.repeat(np.add.reduceat(normals, starts), counts, axis=0)
    along = (normals * whole).sum(axis=1)
    limit = _FOLDED * np.linalg.norm(normals, axis=1) * np.linalg.norm(whole, axis=1)
    return np.asarray(np.logical_or.reduceat(along < -limit, starts))


def unfolded_corners(positions: FloatArray, points: IntArray, sizes: IntArray) -> npt.NDArray[np.intp] | None:
    """Return corners of polygons, (C,), so that concave ones start where their fan does not overlap, if it is possible.

    Return None if no polygon is folded. Parameters are those of :func:`folded_polygons`.
    """
    is_folded = folded_polygons(positions, points, sizes)
    if not is_folded.any():
        return None
    order = np.arange(len(points))
    starts = np.cumsum(sizes) - sizes
    concave = sizes[is_folded]
    for turn in range(1, min(int(concave.max()), 1 + _MOST_TRIED // int(concave.sum(dtype=np.int64)))):
        left = np.flatnonzero(is_folded & (sizes > turn))
        counts = sizes[left]
        step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        turned = np.repeat(starts[left], counts) + (step + turn) % np.repeat(counts, counts)
        found = ~folded_polygons(positions, points[turned], counts)
        chosen = np.repeat(found, counts)
        order[(np.repeat(starts[left], counts) + step)[chosen]] = turned[chosen]
        is_folded[left[found]] = False
        if not is_folded.any():
            break
    return order


def sizes_of_kept(sizes: IntArray | None, kept: Mask) -> IntArray | None:
    """Return the sizes of polygons after the removal of triangles, (T,); polygons that lose one fall into triangles."""
    starts = _starts(sizes, len(kept))
    if starts is None:
        return None
    polygon = np.cumsum(starts) - 1
    is_broken = np.zeros(int(polygon[-1]) + 1 if len(polygon) else 0, bool)
    is_broken[polygon[~kept]] = True
    return _sizes((starts | is_broken[polygon])[kept])


def with_polygons(mesh: Mesh) -> tuple[Mesh, IntArray | None]:
    """Return a mesh whose corners and ``material_index`` are those of polygons, and their sizes, (G,).

    The triangles must have three different points. Those that are not the fan of a polygon without repeated points
    stay triangles. Return the mesh itself and None if all do.
    """
    starts = _starts(mesh.polygon_sizes, mesh.triangle_count)
    if starts is None:
        return mesh, None
    triangles = mesh.corner_point.reshape(-1, 3)
    before, after = triangles[:-1], triangles[1:]
    continues = (before[:, 0] == after[:, 0]) & (before[:, 2] == after[:, 1])
    continues &= mesh.material_index[:-1] == mesh.material_index[1:]
    starts[1:] |= ~continues
    starts |= _touching(mesh.corner_point, starts)
    if starts.all():
        return mesh, None
    return replace(with_corners(mesh, _corners(starts)), material_index=mesh.material_index[starts]), _sizes(starts)


def _starts(sizes: IntArray | None, triangles: int) -> Mask | None:
    """Return which triangles are the first of a polygon, (T,), or None if the sizes are not those of the triangles."""
    if sizes is None or not len(sizes) or int(sizes.min()) < 3:
        return None
    if int(sizes.sum(dtype=np.int64)) - 2 * len(sizes) != triangles:
        return None
    starts = np.zeros(triangles, bool)
    counts = sizes - 2
    starts[np.cumsum(counts) - counts] = True
    return starts


def _sizes(starts: Mask) -> IntArray:
    return np.diff(np.append(np.flatnonzero(starts), len(starts))).astype(np.int32) + np.int32(2)


def _corners(starts: Mask) -> npt.NDArray[np.intp]:
    """Return the corners of triangles that are those of polygons: three of the first, the last of all others."""
    chosen = np.ones((len(starts), 3), bool)
    chosen[:, :2] = starts[:, None]
    return np.flatnonzero(chosen)


def _touching(corner_point: IntArray, starts: Mask) -> Mask:
    """Return the triangles of polygons that use a point twice, which Blender cannot hold, (T,)."""
    sizes = _sizes(starts)
    polygon = np.cumsum(starts) - 1
    is_bad = np.zeros(len(sizes), bool)
    triangles = corner_point.reshape(-1, 3)
    quads = np.flatnonzero(starts)[sizes == 4]
    is_bad[sizes == 4] = triangles[quads, 1] == triangles[quads + 1, 2]
    if (sizes > 4).any():
        owner = np.repeat(np.arange(len(sizes)), sizes)
        large = sizes[owner] > 4
        pairs = owner[large] * (int(corner_point.max()) + 1) + corner_point[_corners(starts)][large]
        order = np.argsort(pairs, kind="stable")
        again = np.flatnonzero(pairs[order][1:] == pairs[order][:-1])
        is_bad[owner[large][order[again]]] = True
    found: Mask = is_bad[polygon]
    return found
