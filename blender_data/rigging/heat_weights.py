"""Automatic weights: Blender's heat weights, computed on a copy of the surface from which unsolvable parts are removed.

Blender's heat weights leave out parts from which the mesh itself hides every bone, such as buttons and the outer side
of doubled cloth. One such part can make the solution of all others fail, although the operator reports success. Hidden
parts are therefore removed from the copy. Afterwards they get the weights of the nearest surface.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter

import bmesh
import bpy
import numpy as np
import numpy.typing as npt
from mathutils.bvhtree import BVHTree

from ...io_formats.geometry.connectivity import labels
from .. import arrays
from ..operator_calls import edit_mode
from .joint_weights import Points, WeightedSurface, Weights, read

_SEAM = 5e-4
"""Largest distance in metres between points that are welded, such as at seams between pieces of cloth."""
_COVER = 0.03
"""Largest distance in metres from a surface to one below it that it hides. It covers layers of cloth, but not an arm in
front of the body."""
_MOSTLY = 0.75
"""Share of hidden triangles from which a loose part is left out completely."""
_CLEAR = 3e-4
"""Distance in metres by which rays start off the surface, so that they do not hit it."""
_MOST_PARTS = 50
"""Largest number of loose parts that are solved separately."""
_BLOCK = 1 << 14


def heat_weights(context: bpy.types.Context, surface: WeightedSurface, bones: Mapping[str, Points]) -> WeightedSurface:
    """Return the surface with heat weights for bones, of which ``bones`` has head and end in world space, (2, 3).

    Parts that are hidden or cannot be solved are left out. If no part remains, all points get weights by their
    distances from the bones.
    """
    joints, lines = tuple(bones), np.array(list(bones.values())).reshape(-1, 2, 3)
    whole = _welded(surface)
    visible = _visible(whole, lines)
    with _temporary_armature(context, bones) as deforming:
        weights = _solved(context, visible, deforming, joints)
        for part in _unsolved_parts(visible, weights):
            alone = WeightedSurface(visible.points, visible.triangles[part])
            corners = np.unique(alone.triangles)
            weights[corners] = _solved(context, alone, deforming, joints)[corners]
    missing = ~(weights > 0).any(axis=1)
    found = WeightedSurface(visible.points, visible.triangles, joints, weights).without(missing)
    if len(found.triangles):
        return found
    return WeightedSurface(surface.points, surface.triangles, joints, nearest_bones(surface.points, lines))


def nearest_bones(points: Points, lines: npt.NDArray[np.float64]) -> Weights:
    """Return weights that fall off with the fourth power of the distance from each bone, (P, B).

    ``lines`` are the heads and ends of the bones, (B, 2, 3).
    """
    found = [1.0 / np.maximum(distance, 1e-3) ** 4 for distance, _target in bone_distances(points, lines)]
    weights = np.concatenate([np.empty((0, len(lines))), *found])
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def bone_distances(points: Points, lines: npt.NDArray[np.float64]) -> Iterator[tuple[Points, Points]]:
    """Yield for each block of points the distances to all bones, (n, B), and the nearest points of them, (n, B, 3)."""
    start, along = lines[:, 0], lines[:, 1] - lines[:, 0]
    length = np.maximum((along * along).sum(axis=1), 1e-12)
    for first in range(0, len(points), _BLOCK):
        to = points[first : first + _BLOCK, None] - start
        share = np.clip((to * along).sum(axis=2) / length, 0.0, 1.0)
        target = start + share[..., None] * along
        yield np.linalg.norm(points[first : first + _BLOCK, None] - target, axis=2), target


def _welded(surface: WeightedSurface) -> WeightedSurface:
    """Return the surface with seams welded, and without triangles of zero area, for which no solution exists."""
    mesh = _new_mesh(surface)
    try:
        with arrays.edited(mesh) as made:
            bmesh.ops.remove_doubles(made, verts=made.verts[:], dist=_SEAM)
            bmesh.ops.dissolve_degenerate(made, edges=made.edges[:], dist=_SEAM)
            bmesh.ops.triangulate(made, faces=made.faces[:])
        points, corners = arrays.points_of(mesh), arrays.corner_vertices(mesh)
    finally:
        bpy.data.meshes.remove(mesh)
    return WeightedSurface(points.astype(np.float64), corners.reshape(-1, 3))


def _visible(surface: WeightedSurface, lines: npt.NDArray[np.float64]) -> WeightedSurface:
    """Return the surface without hidden triangles; all other triangles are made to face away from the nearest bone.

    A triangle is hidden if another layer closely below it is nearer to the bones. Parts that are mostly hidden are left
    out completely, since the rest would get other weights than the layer below. The direction matters because Blender
    prefers bones on the side opposite to the normals, which point inwards on the inner side of doubled cloth.
    """
    inwards, depth = _ways_in(surface.points, lines)
    a, b, c = (surface.points[surface.triangles[:, corner]] for corner in range(3))
    normal = np.cross(b - a, c - a)
    faces_in = (normal * inwards[surface.triangles].sum(axis=1)).sum(axis=1) > 0
    below = np.zeros_like(surface.points)
    np.add.at(below, surface.triangles, np.where(faces_in, 1.0, -1.0)[:, None, None] * normal[:, None])
    below /= np.maximum(np.linalg.norm(below, axis=1, keepdims=True), 1e-12)
    tree = BVHTree.FromPolygons(surface.points.tolist(), surface.triangles.tolist())
    reach = np.clip(depth - _CLEAR, 0.0, _COVER)
    hidden = _hits(tree, surface.points, inwards, reach) | _hits(tree, surface.points, below, reach)
    is_hidden: npt.NDArray[np.bool_] = hidden[surface.triangles].all(axis=1)
    part = _parts(surface)
    share = np.bincount(part, is_hidden) / np.maximum(np.bincount(part), 1)
    is_hidden |= share[part] > _MOSTLY
    triangles = np.where(faces_in[:, None], surface.triangles[:, ::-1], surface.triangles)
    return WeightedSurface(surface.points, triangles[~is_hidden])


def _ways_in(points: Points, lines: npt.NDArray[np.float64]) -> tuple[Points, Points]:
    """Return the directions from points to the nearest bones, (P, 3), and their distances, (P,)."""
    ways, depths = [np.empty((0, 3))], [np.empty(0)]
    for number, (distance, target) in enumerate(bone_distances(points, lines)):
        here = np.arange(len(distance))
        nearest = distance.argmin(axis=1)
        depths.append(distance[here, nearest])
        way = target[here, nearest] - points[number * _BLOCK : number * _BLOCK + len(here)]
        ways.append(way / np.maximum(depths[-1], 1e-9)[:, None])
    return np.concatenate(ways), np.concatenate(depths)


def _hits(tree: BVHTree, points: Points, ways: Points, reach: Points) -> npt.NDArray[np.bool_]:
    """Return whether a ray of limited length from each point hits the surface, (P,)."""
    found = map(tree.ray_cast, (points + _CLEAR * ways).tolist(), ways.tolist(), reach.tolist())
    distance = np.array(list(map(itemgetter(3), found)), np.float64)  # None becomes NaN
    return np.isfinite(distance)


def _parts(surface: WeightedSurface) -> npt.NDArray[np.intp]:
    """Return the number of its loose part for each triangle."""
    triangles = surface.triangles
    part = labels(len(surface.points), np.repeat(triangles[:, 0], 2), triangles[:, 1:].reshape(-1))
    return part[triangles[:, 0]]


def _unsolved_parts(surface: WeightedSurface, weights: Weights) -> list[npt.NDArray[np.bool_]]:
    """Return the loose parts that have points without weights, each as flags of triangles.

    The largest part comes first.
    """
    missing: npt.NDArray[np.bool_] = ~(weights > 0).any(axis=1)
    part = _parts(surface)
    number, count = np.unique(part[missing[surface.triangles].all(axis=1)], return_counts=True)
    ordered = number[np.argsort(-count, kind="stable")][:_MOST_PARTS]
    return [part == one for one in ordered.tolist()]


def _solved(
    context: bpy.types.Context, surface: WeightedSurface, armature: bpy.types.Object, joints: Sequence[str]
) -> Weights:
    """Return Blender's heat weights of a surface, (P, J); rows of zeros for points without a solution."""
    weights = np.zeros((len(surface.points), len(joints)), np.float32)
    points, corners = np.unique(surface.triangles, return_inverse=True)
    if not len(points):
        return weights
    part = WeightedSurface(surface.points[points], corners.reshape(-1, 3).astype(np.int32))
    mesh = _new_mesh(part)
    obj = bpy.data.objects.new(mesh.name, mesh)
    # The scene's own collection cannot be hidden or excluded.
    context.scene.collection.objects.link(obj)
    objects = [obj, armature]
    try:
        context.view_layer.update()
        with (
            context.temp_override(
                active_object=armature, object=armature, selected_objects=objects, selected_editable_objects=objects
            ),
            suppress(RuntimeError),  # if there is no solution for a bone, the weights show that
        ):
            bpy.ops.object.parent_set(type="ARMATURE_AUTO")
        found = read(obj, set(joints)).for_joints(joints)
    finally:
        bpy.data.objects.remove(obj)
        bpy.data.meshes.remove(mesh)
    found[~np.isfinite(found)] = 0.0
    weights[points] = found
    return weights


@contextmanager
def _temporary_armature(context: bpy.types.Context, bones: Mapping[str, Points]) -> Iterator[bpy.types.Object]:
    """Yield an armature object at the origin with bones from their heads to their ends, (2, 3) each."""
    data = bpy.data.armatures.new("Heat Weights")
    obj = bpy.data.objects.new("Heat Weights", data)
    context.scene.collection.objects.link(obj)
    try:
        with edit_mode(context, obj):
            for name, (head, end) in bones.items():
                bone = data.edit_bones.new(name)
                bone.head, bone.tail = head.tolist(), end.tolist()
        yield obj
    finally:
        bpy.data.objects.remove(obj)
        bpy.data.armatures.remove(data)


def _new_mesh(surface: WeightedSurface) -> bpy.types.Mesh:
    mesh = bpy.data.meshes.new("Heat Weights")
    arrays.fill_triangles(mesh, surface.points, surface.triangles)
    mesh.update(calc_edges=True)
    return mesh
