"""Weights of an object for some of its vertex groups: as an array, from the surface of another mesh, or filled in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

import bpy
import numpy as np
import numpy.typing as npt
from mathutils.bvhtree import BVHTree

from ...io_formats.core.errors import MeshferryError
from .. import arrays
from ..mesh_data import vertex_weights
from .joint_poses import Array

Weights = npt.NDArray[np.float32]

LEAST_WEIGHT = 0.01
"""Share of a vertex's total weight below which a weight is removed."""


@dataclass
class JointWeights:
    """Weights of vertices for named joints."""

    joints: list[str]
    values: Weights
    """(V, J) weights; 0 means no weight."""

    def for_joints(self, joints: Sequence[str]) -> Weights:
        """Return the weights in the order of ``joints``, (V, n); 0 for a joint without weights."""
        place = {name: column for column, name in enumerate(self.joints)}
        found = np.zeros((len(self.values), len(joints)), np.float32)
        known = [(column, place[name]) for column, name in enumerate(joints) if name in place]
        if known:
            here, there = zip(*known, strict=True)
            found[:, here] = self.values[:, there]
        return found

    def renamed(self, joints: Sequence[str]) -> JointWeights:
        """Return the weights with new joint names, (J,). Weights of joints with equal new names are added."""
        names = list(dict.fromkeys(joints))
        values = np.zeros((len(self.values), len(names)), np.float32)
        np.add.at(values.T, [names.index(name) for name in joints], self.values.T)
        return JointWeights(names, values)

    @property
    def used(self) -> list[str]:
        """Names of the joints with weights."""
        return [self.joints[column] for column in np.flatnonzero((self.values > 0).any(axis=0)).tolist()]

    @property
    def unweighted(self) -> int:
        """Number of vertices without weights."""
        return int(np.count_nonzero(~(self.values > 0).any(axis=1)))


def read(obj: bpy.types.Object, joints: Collection[str]) -> JointWeights:
    """Return the weights of a mesh object for its vertex groups that are named after joints."""
    names = [group.name for group in obj.vertex_groups]
    columns = [place for place, name in enumerate(names) if name in joints]
    column_of = np.full(len(names), -1, np.intp)
    column_of[columns] = np.arange(len(columns))
    counts, groups, weights = vertex_weights.read(obj.data)
    vertex = np.repeat(np.arange(len(counts)), counts)
    # Groups that no longer exist have an index beyond the list of names.
    known = groups < len(names)
    known[known] = column_of[groups[known]] >= 0
    values = np.zeros((len(counts), len(columns)), np.float32)
    values[vertex[known], column_of[groups[known]]] = weights[known]
    return JointWeights([names[place] for place in columns], values)


def write(obj: bpy.types.Object, weights: JointWeights, joints: Collection[str]) -> None:
    """Replace the weights of an object for all joints; groups of joints without weights are removed.

    If the object has a Mirror modifier, empty groups of the other side are kept, since the modifier needs them.
    """
    kept = set(weights.used)
    if any(modifier.type == "MIRROR" and modifier.use_mirror_vertex_groups for modifier in obj.modifiers):
        kept = kept.union(map(bpy.utils.flip_name, kept)).intersection(joints)
    for group in [group for group in obj.vertex_groups if group.name in joints and group.name not in kept]:
        obj.vertex_groups.remove(group)
    names = [*weights.used, *sorted(kept.difference(weights.used))]
    groups = [obj.vertex_groups.get(name) or obj.vertex_groups.new(name=name) for name in names]
    vertex_weights.replace(obj.data, [group.index for group in groups], weights.for_joints(names))
    obj.data.update()


def limited(values: Weights, most: int, least: float = LEAST_WEIGHT) -> Weights:
    """Return weights with at most ``most`` for each vertex, none below ``least`` of the sum, and a sum of 1.

    Vertices without weights are not changed.
    """
    found = np.maximum(values, 0.0)
    if found.shape[1] > most:
        weakest = np.argpartition(-found, most - 1, axis=1)[:, most:]
        np.put_along_axis(found, weakest, 0.0, axis=1)
    found[found < least * found.sum(axis=1, keepdims=True)] = 0.0
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.zeros_like(found), where=total > 0)


def mixed(old: JointWeights, new: JointWeights, share: Weights, most: int) -> JointWeights:
    """Mix old and new weights: ``share`` (V,) of 1 means the new ones, 0 the old ones unchanged."""
    joints = list(dict.fromkeys([*old.joints, *new.joints]))
    values = old.for_joints(joints)
    part = share > 0
    of_part = share[part, None]
    blend = of_part * new.for_joints(joints)[part] + (1.0 - of_part) * values[part]
    values[part] = limited(blend, most)
    return JointWeights(joints, values)


_FACING = np.cos(np.radians(60.0))
_LEAST_SCALE = 1e-9
"""Scale below which an object counts as flat."""

Points = npt.NDArray[np.float64]
Triangles = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Nearest:
    """The nearest points of a surface for n points."""

    points: Points
    """(n, 3)."""
    normals: Points
    """(n, 3) normals of their triangles."""
    corners: Triangles
    """(n, 3) indices of the points of their triangles."""
    share: Points
    """(n, 3) barycentric coordinates in their triangles."""
    distances: Points
    """(n,) distances in metres from the given points."""


@dataclass(frozen=True)
class WeightedSurface:
    """Triangles with weights at their points, in world space."""

    points: Points
    """(P, 3) positions in world space."""
    triangles: Triangles
    """(T, 3) indices of points."""
    joints: tuple[str, ...] = ()
    weights: Weights = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """(P, J) weights of J joints, or an empty array."""

    def without(self, points: npt.NDArray[np.bool_]) -> WeightedSurface:
        """Return the surface without the triangles that use any of the points marked in ``points`` (P,)."""
        return replace(self, triangles=self.triangles[~points[self.triangles].any(axis=1)])

    def facing_weights_at(self, points: Points, normals: Points) -> tuple[Weights, npt.NDArray[np.bool_]]:
        """Return the weights of the nearest point of the surface for each point, (n, J), and where it faces alike.

        Parameters
        ----------
        normals:
            (n, 3) normals of the points. The surface faces alike where its normal differs by at most 60 degrees.
        """
        if not len(points):
            return np.empty((0, len(self.joints)), np.float32), np.empty(0, np.bool_)
        near = self._nearest(points)
        found: Weights = np.einsum("vc,vcj->vj", near.share, self.weights[near.corners]).astype(np.float32)
        return found, (near.normals * normals).sum(axis=1) >= _FACING

    def depth_of(self, points: Points) -> Points:
        """Return the distance of each point from the surface, (n,), positive on the side opposite to its normals.

        The normals are those of the points of the surface, interpolated, so that edges count rightly.
        """
        if not len(points) or not len(self.triangles):
            return np.full(len(points), -np.inf)
        near = self._nearest(points)
        a, b, c = (self.points[self.triangles[:, corner]] for corner in range(3))
        normals = np.zeros_like(self.points)
        np.add.at(normals, self.triangles, np.cross(b - a, c - a)[:, None])
        facing = np.einsum("vc,vcj->vj", near.share, normals[near.corners])
        below = ((near.points - points) * facing).sum(axis=1)
        return np.sign(below) * near.distances

    def _nearest(self, points: Points) -> _Nearest:
        """Return the nearest point of the surface for each of at least one point, (n, 3)."""
        tree = BVHTree.FromPolygons(self.points.tolist(), self.triangles.tolist())
        nearest, normals, triangle, distances = zip(*map(tree.find_nearest, points.tolist()), strict=True)
        # np.array takes ten times as long for lists of vectors.
        found, facing = (np.fromiter(chain.from_iterable(of), np.float64).reshape(-1, 3) for of in (nearest, normals))
        corners = self.triangles[np.array(triangle, np.intp)]
        share = barycentric(found, self.points[corners])
        return _Nearest(found, facing, corners, share, np.array(distances, np.float64))


def require_scale(obj: bpy.types.Object) -> None:
    """Raise an error if an object has a scale of zero."""
    if np.linalg.matrix_rank(np.array(obj.matrix_world.to_3x3()), tol=_LEAST_SCALE) < 3:
        raise MeshferryError("{}: it has a scale of zero; correct the scale first", obj.name)


def world_points(obj: bpy.types.Object) -> Points:
    """Return the points of a mesh object, undeformed by modifiers, in world space."""
    points = arrays.read(obj.data.vertices, "co", 3).astype(np.float64)
    matrix = np.array(obj.matrix_world, np.float64)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def world_normals(obj: bpy.types.Object) -> Points:
    """Return the normals of the points of a mesh object in world space, (P, 3)."""
    matrix = np.array(obj.matrix_world, np.float64)[:3, :3]
    normals = (
        arrays.read(obj.data.vertex_normals, "vector", 3) @ np.linalg.pinv(matrix) * np.sign(np.linalg.det(matrix))
    )
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)


def triangles_of(obj: bpy.types.Object) -> Triangles:
    """Return the triangles of a mesh object as indices of points, (T, 3)."""
    obj.data.calc_loop_triangles()
    return arrays.read(obj.data.loop_triangles, "vertices", 3, np.int32)


def surface_of(
    items: Iterable[bpy.types.Object], points_of: Callable[[bpy.types.Object], Points] = world_points
) -> WeightedSurface:
    """Return the joined surface of mesh objects, without weights; ``points_of`` gives their points in world space."""
    points: list[Points] = [np.empty((0, 3))]
    triangles: list[Triangles] = [np.empty((0, 3), np.int32)]
    first = 0
    for obj in items:
        points.append(points_of(obj))
        triangles.append(triangles_of(obj) + np.int32(first))
        first += len(points[-1])
    return WeightedSurface(np.concatenate(points), np.concatenate(triangles))


def mirror_surface(
    surface: WeightedSurface, origin: Points, across: Points, other_sides: Sequence[int]
) -> WeightedSurface:
    """Return a surface reflected in a plane, with the weights of left and right joints exchanged.

    Parameters
    ----------
    origin, across:
        (3,): a point of the plane, and its normal of length 1.
    other_sides:
        For each joint, the index of the joint on the other side, or its own.
    """
    points = surface.points - 2.0 * ((surface.points - origin) @ across)[:, None] * across
    return replace(surface, points=points, weights=surface.weights[:, list(other_sides)])


def barycentric(points: Points, corners: Points) -> Points:
    """Return barycentric coordinates (n, 3) of points (n, 3) in triangles with corners (n, 3, 3)."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    to = points - corners[:, 0]
    aa, ab, bb = ((x * y).sum(axis=1) for x, y in ((a, a), (a, b), (b, b)))
    ta, tb = (to * a).sum(axis=1), (to * b).sum(axis=1)
    area = aa * bb - ab * ab
    # In triangles without area, any combination of the corners is acceptable.
    safe = np.where(area > 1e-12 * np.maximum(aa * bb, 1e-300), area, np.inf)
    of_b, of_c = (bb * ta - ab * tb) / safe, (aa * tb - ab * ta) / safe
    share = np.clip(np.column_stack((1.0 - of_b - of_c, of_b, of_c)), 0.0, 1.0)
    return share / share.sum(axis=1, keepdims=True)


_SMOOTHINGS = 20
"""Number of times that filled weights are averaged with those of their neighbours."""
_THICKEST = 0.02
"""Largest thickness of cloth in metres."""
_SURFACE = 1e-5
"""Distance in metres below a vertex from which on triangles belong to the other side."""


def from_other_side(
    weights: Weights, known: npt.NDArray[np.bool_], points: Points, normals: Points, triangles: Triangles
) -> tuple[Weights, npt.NDArray[np.bool_]]:
    """Return weights of which the unknown ones on the inner side of thick cloth are those of its outer side.

    The inner side faces the surface from which the weights come, and its border may be far away along the mesh.

    Parameters
    ----------
    weights, known:
        (V, J), and (V,) whether they are known.
    points, normals:
        (V, 3) in world space.
    """
    unknown = np.flatnonzero(~known)
    if not len(unknown) or not len(triangles):
        return weights, known
    tree = BVHTree.FromPolygons(points.tolist(), triangles.tolist())
    starts = points[unknown] - _SURFACE * normals[unknown]
    hits = map(tree.ray_cast, starts.tolist(), (-normals[unknown]).tolist(), repeat(_THICKEST))
    places, _normals, indices, _distances = zip(*hits, strict=True)
    is_hit = np.array([index is not None for index in indices])
    vertices = unknown[is_hit]
    corners = triangles[[index for index in indices if index is not None]]
    share = barycentric(np.array([place for place in places if place is not None]).reshape(-1, 3), points[corners])
    facing = np.einsum("vc,vcj,vj->v", share, normals[corners], normals[vertices])
    is_other = known[corners].all(axis=1) & (facing < -0.5)
    made, is_known = weights.copy(), known.copy()
    made[vertices[is_other]] = np.einsum("vc,vcj->vj", share, weights[corners])[is_other]
    is_known[vertices[is_other]] = True
    return made, is_known


def fill_weights(weights: Weights, known: npt.NDArray[np.bool_], edges: npt.NDArray[np.int32]) -> Weights:
    """Return weights of which the unknown ones are filled in along the mesh from the known ones.

    Vertices that are connected to no known one keep theirs.

    Parameters
    ----------
    weights, known:
        (V, J), and (V,) whether they are known.
    edges:
        (E, 2) vertices.
    """
    values, is_known = np.where(known[:, None], weights, 0.0).astype(np.float64), known.copy()
    ends, others = np.concatenate((edges, edges[:, ::-1])).T
    while True:
        of_known = is_known[others] & ~is_known[ends]
        if not of_known.any():
            break
        total, count = _sums(values, ends[of_known], others[of_known])
        found = count > 0
        values[found] = total[found] / count[found, None]
        is_known |= found
    filled_in = is_known & ~known
    from_unknown = filled_in[ends]
    for _ in range(_SMOOTHINGS if filled_in.any() else 0):
        total, count = _sums(values, ends[from_unknown], others[from_unknown])
        values[filled_in] = total[filled_in] / np.maximum(count[filled_in, None], 1)
    return np.where(is_known[:, None], values, weights).astype(np.float32)


def _sums(
    values: Array, ends: npt.NDArray[np.int32], others: npt.NDArray[np.int32]
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return for each vertex the sum of the values of its neighbours, and their number."""
    total = np.zeros_like(values)
    np.add.at(total, ends, values[others])
    return total, np.bincount(ends, minlength=len(values))
