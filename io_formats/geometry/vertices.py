"""Conversion between corners and unique vertices: split for export, weld for import; removal of invalid triangles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..core.messages import Report, counted
from ..core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh
from .normals import uv_sides
from .triangles import sizes_of_kept, with_corners, with_points

_PASSES = 24
"""Maximum number of passes of :func:`split`; the remaining corners (centres of huge fans) are sorted."""
_BLOCK = 1 << 14
"""Corners compared at a time, few enough that the rows of both sides stay in the processor's cache."""


@dataclass(eq=False, repr=False)
class Split:
    """Unique vertices: V of them over P points and C corners."""

    corner_vertex: IntArray
    """(C,) int32: the vertex of each corner."""
    vertex_corner: npt.NDArray[np.intp]
    """(V,): a corner of each vertex, which supplies its layer values."""


@dataclass(eq=False, repr=False)
class SplitKey:
    """Values of corners, (C, k).

    Corners of a point whose values differ by more than ``tolerance`` are kept separate.
    """

    values: AnyArray
    tolerance: float = 0.0
    is_wildcard: npt.NDArray[np.bool_] | None = None
    """(C,) wildcard corners, which compare equal to any other."""

    def equal(self, one: npt.NDArray[np.intp] | slice, other: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return whether the values agree for each pair of corners."""
        same = np.empty(len(other), bool)
        for start in range(0, len(other), _BLOCK):
            block = slice(start, start + _BLOCK)
            first = self.values[block] if isinstance(one, slice) else self.values.take(one[block], axis=0)
            same[block] = self._near(first, self.values.take(other[block], axis=0))
        if self.is_wildcard is not None:
            same |= self.is_wildcard[one]
        return same

    def _near(self, first: AnyArray, second: AnyArray) -> npt.NDArray[np.bool_]:
        """Return which rows of two arrays are equal within the tolerance, (n,)."""
        near = np.ones(len(first), bool)
        with np.errstate(invalid="ignore", over="ignore"):
            for column in range(first.shape[1]):
                if self.tolerance:
                    near &= np.abs(first[:, column] - second[:, column]) <= self.tolerance
                else:
                    near &= first[:, column] == second[:, column]
        return near


def split(corner_point: IntArray, point_count: int, keys: Sequence[SplitKey]) -> Split:
    """Assign one vertex to all corners of the same point with (nearly) the same layer values.

    The first corner of each point represents it. Corners that differ from it are compared with the first of the
    remaining ones, and so on: passes over fewer and fewer corners instead of sorting all of them. Vertices are in the
    order of the points; the additional vertices of seams come after all points.
    """
    corners = len(corner_point)
    corner_vertex = np.empty(corners, np.int32)
    representative = np.full(point_count, -1, np.intp)
    representative[corner_point[::-1]] = np.arange(corners - 1, -1, -1)
    for key in keys:
        if key.is_wildcard is not None:  # prefer a corner that is not a wildcard as the point's representative
            meant = np.flatnonzero(~key.is_wildcard)[::-1]
            representative[corner_point[meant]] = meant
    used = representative >= 0
    vertex_of_point = np.cumsum(used, dtype=np.int32) - 1
    vertex_corner = [representative[used]]
    vertices = len(vertex_corner[0])
    keys = [key for key in keys if key.values.shape[1]]
    first = representative[corner_point]
    same = np.ones(corners, bool)
    for key in keys:
        same &= key.equal(slice(None), first)
    same[vertex_corner[0]] = True  # NaN differs from itself, but a corner must count as equal to itself
    np.take(vertex_of_point, corner_point, out=corner_vertex)
    pending = np.flatnonzero(~same)
    passes = 0
    while len(pending):
        points = corner_point[pending]
        passes += 1
        if passes > _PASSES:
            names, count, representative = _sorted_groups(pending, points, keys)
            corner_vertex[pending] = names + vertices
            vertex_corner.append(representative)
            vertices += count
            break
        representative[points[::-1]] = pending[::-1]
        for key in keys:
            if key.is_wildcard is not None:
                meant = pending[~key.is_wildcard[pending]][::-1]
                representative[corner_point[meant]] = meant
        leaders = pending[representative[points] == pending]
        vertex_of_point[corner_point[leaders]] = np.arange(vertices, vertices + len(leaders), dtype=np.int32)
        vertices += len(leaders)
        vertex_corner.append(leaders)
        same = np.ones(len(pending), bool)
        first = representative[points]
        for key in keys:
            same &= key.equal(pending, first)
        same |= first == pending
        corner_vertex[pending[same]] = vertex_of_point[points[same]]
        pending = pending[~same]
    return Split(corner_vertex, np.concatenate(vertex_corner))


def _sorted_groups(
    pending: npt.NDArray[np.intp], points: IntArray, keys: Sequence[SplitKey]
) -> tuple[IntArray, int, npt.NDArray[np.intp]]:
    """Group corners by point and rounded values; return their groups, the number of groups, and a corner of each."""
    rows = points.astype(np.float64)[:, None]
    for key in sorted(keys, key=lambda key: key.is_wildcard is not None):
        values = key.values[pending].astype(np.float64)
        if key.tolerance:
            values = np.rint(values / key.tolerance)
        if key.is_wildcard is not None:
            # Wildcard corners get the values of a corner that agrees with them in everything else.
            _, group = np.unique(rows, axis=0, return_inverse=True)
            group = group.reshape(-1)
            wild = key.is_wildcard[pending]
            meant = np.flatnonzero(~wild)
            source = np.full(len(pending), -1, np.intp)
            source[group[meant][::-1]] = meant[::-1]
            source = source[group[wild]]
            values[wild] = np.where(source[:, None] < 0, 0.0, values[source])
        rows = np.column_stack((rows, values))
    _, representative, groups = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    groups = groups.reshape(-1)
    for key in keys:
        if key.is_wildcard is not None:
            meant = np.flatnonzero(~key.is_wildcard[pending])[::-1]
            representative[groups[meant]] = meant
    return groups.astype(np.int32), len(representative), pending[representative]


TANGENT_TOLERANCE = 0.5
"""About 30°: MikkTSpace gives the corners of one smooth vertex nearly the same tangent, but not those of other fans."""


def layer_keys(mesh: Mesh, tolerance: float) -> list[SplitKey]:
    """Return the keys that separate the corners of a mesh: its layers with more than one value for each point.

    ``tolerance`` applies to normals, which have small errors after passing through Blender's tangent space; UVs,
    colours and custom layers must agree exactly.
    """
    keys: list[SplitKey] = []
    for layer in mesh.layers():
        if layer.index is None and not layer.per_corner:
            continue
        values = layer.at_corners(mesh.corner_point)
        if layer is mesh.tangent:
            without = values[:, 3] == 0
            keys.append(SplitKey(values, TANGENT_TOLERANCE, without if without.any() else None))
        else:
            keys.append(SplitKey(values, tolerance if layer is mesh.normal else 0.0))
        if layer.stored is not None and layer.stored.dtype == np.uint16:
            steps = replace(layer, values=layer.stored.astype(np.float32))
            keys.append(SplitKey(steps.at_corners(mesh.corner_point), 0.0))
    return keys


def split_mesh(mesh: Mesh, tolerance: float) -> tuple[Mesh, Split]:
    """Return a mesh with a point for each unique vertex and all layers on the points, and the split."""
    found = split(mesh.corner_point, len(mesh.points), layer_keys(mesh, tolerance))
    corner = found.vertex_corner
    point = mesh.corner_point[corner]

    def spread(layer: Layer) -> Layer:
        return layer.on_vertices(corner, point)

    return with_points(mesh.with_layers(spread), point, found.corner_vertex), found


def points_first(split_vertices: Split, corner_point: IntArray) -> Split:
    """Reorder vertices by their points, so that the vertices of the first points come first."""
    order = np.argsort(corner_point[split_vertices.vertex_corner], kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Split(rank[split_vertices.corner_vertex], split_vertices.vertex_corner[order])


def weld_map(rows: Sequence[npt.NDArray[np.floating]]) -> tuple[IntArray, npt.NDArray[np.intp]]:
    """Find points that agree exactly in all given arrays, each (P, k).

    Returns
    -------
    new_point:
        (P,) int32, index of the welded point of each point, in order of first appearance.
    first:
        (W,) index of the first point of each welded point.
    """
    count = len(rows[0])
    if not count:
        return np.empty(0, np.int32), np.empty(0, np.intp)
    # + 0.0 makes -0.0 and 0.0 the same bits
    bits = [np.ascontiguousarray(row, np.float32) + np.float32(0.0) for row in rows]
    columns = [array.view(np.uint32)[:, column] for array in bits for column in range(array.shape[1])]
    mixed = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed, kind="stable")
    ordered = mixed[order]
    new_group = np.ones(count, bool)
    new_group[1:] = ordered[1:] != ordered[:-1]
    # Points with equal hashes may differ: compare neighbours too. At worst, equal points are not welded.
    for column in columns:
        values = column[order]
        new_group[1:] |= values[1:] != values[:-1]
    group = np.cumsum(new_group) - 1
    leader = order[new_group]
    by_appearance = np.argsort(leader, kind="stable")
    rank = np.empty(len(leader), np.int32)
    rank[by_appearance] = np.arange(len(leader), dtype=np.int32)
    new_point = np.empty(count, np.int32)
    new_point[order] = rank[group]
    return new_point, leader[by_appearance]


def weld(mesh: Mesh, tracks: Sequence[npt.NDArray[np.float32]] = ()) -> tuple[Mesh, npt.NDArray[np.intp]]:
    """Weld points at the same position that stay together in all shape keys and ``tracks`` (F, P, 3).

    Return the welded mesh, with layers moved to the corners where welded points differ in them, and for each new point
    the index of the original point.
    """
    moving = [track.transpose(1, 0, 2).reshape(len(mesh.points), -1) for track in tracks]
    moving += [key.points for key in mesh.shape_keys]
    if mesh.joint_weights is not None and mesh.joint_indices is not None:
        moving += [mesh.joint_weights, mesh.joint_indices.astype(np.float32)]
    new_point, first = weld_map([mesh.points, *moving])
    if len(first) == len(mesh.points):
        return mesh, first

    def move(layer: Layer) -> Layer:
        if layer.index is not None or layer.per_corner:
            return layer
        kept, stored = layer.values[first], None if layer.stored is None else layer.stored[first]
        is_one = layer.stored is None or stored is None or np.array_equal(stored[new_point], layer.stored)
        if is_one and np.array_equal(kept[new_point], layer.values):
            return replace(layer, values=kept, stored=stored)
        return replace(layer, index=mesh.corner_point)

    return with_points(mesh.with_layers(move), first, new_point[mesh.corner_point]), first


def shares_mirrored_vertices(mesh: Mesh) -> bool:
    """Return whether a triangle with mirrored UVs shares a point with a triangle that is not mirrored."""
    if not mesh.uvs or not len(mesh.corner_point):
        return False
    side = uv_sides(mesh.uvs[0].at_corners(mesh.corner_point))
    return bool(np.intersect1d(mesh.corner_point[side > 0], mesh.corner_point[side < 0]).size)


def repeats_corners(corners: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Return which triangles (C,) or (T, 3) use a point twice, (T,)."""
    a, b, c = corners.reshape(-1, 3).T
    repeated: npt.NDArray[np.bool_] = (a == b) | (b == c) | (c == a)
    return repeated


def count_loose(corners: npt.NDArray[np.integer], count: int) -> int:
    """Return how many of ``count`` points no triangle uses."""
    used = np.zeros(count, bool)
    used[corners] = True
    return count - int(np.count_nonzero(used))


def report_loose(mesh: Mesh, report: Report) -> None:
    """Report the points that no triangle uses, which :func:`split_mesh` leaves out."""
    if loose := count_loose(mesh.corner_point, len(mesh.points)):
        number = counted(loose, "vertex belongs", "vertices belong")
        report.loss("loose-vertices", "{} to no triangle; left out", number)


def usable_weights(weights: FloatArray, report: Report) -> FloatArray:
    """Return weights of points, with 0 for those that are invalid, which are reported."""
    usable = (weights >= 0) & (weights < 1e9)
    if usable.all():
        return weights
    number = counted(int((~usable).any(axis=1).sum()), "vertex had weights", "vertices had weights")
    report.change("invalid-weights", "{} that are negative, NaN or infinite; left out", number)
    return np.where(usable, weights, np.float32(0))


def drop_repeated_corners(mesh: Mesh, identity: IntArray | None = None) -> tuple[Mesh, int]:
    """Remove triangles that use a point twice, which crash Blender; return their number.

    ``identity`` (P,) has the same number for points that count as one.
    """
    corners = mesh.corner_point if identity is None else identity[mesh.corner_point]
    repeated = repeats_corners(corners)
    count = int(np.count_nonzero(repeated))
    if not count:
        return mesh, 0
    kept = ~repeated
    reduced = replace(with_corners(mesh, np.repeat(kept, 3)), material_index=mesh.material_index[kept])
    return replace(reduced, polygon_sizes=sizes_of_kept(mesh.polygon_sizes, kept)), count


def turn_triangles(mesh: Mesh) -> Mesh:
    """Reverse the corners of every triangle, together with their values."""
    return with_corners(mesh, np.arange(len(mesh.corner_point)).reshape(-1, 3)[:, ::-1].reshape(-1))
