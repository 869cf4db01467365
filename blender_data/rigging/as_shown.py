"""Bind meshes as they are shown on a posed or shaped armature, and find clothes inside of their body.

The rest form of a mesh follows from its shown form and its weights, by the inverse of the blended transform of each
vertex. All transforms are in world space and double precision.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import Text, counted
from .. import arrays, scene_state
from ..armature_modifiers import armature_modifiers, deforming_parent
from ..mesh_data import element_selection, file_normals
from . import joint_poses, joint_weights, rig_copies, shown_bindings
from .joint_poses import Array
from .joint_weights import JointWeights, require_scale, surface_of

LEAST_SIZE = 0.3
"""Smallest singular value of a blended transform by which a vertex is carried; others follow their strongest joint."""
MOST_STRETCH = 2.0
"""Factor of length from which an edge of the rest form is reported."""
_STILL = 1e-6
"""Largest element by which a transform differs from the identity because of rounding."""

_VISIBLE = 1e-5
"""Distance in metres above which a difference is reported."""

Flags = npt.NDArray[np.bool_]


def bone_transforms(armature: bpy.types.Object) -> dict[str, Array]:
    """Return the transform of each bone of an armature object from its rest to its pose, (4, 4).

    Raises
    ------
    MeshferryError
        The armature object has a scale of zero.
    """
    require_scale(armature)
    world = np.array(armature.matrix_world, np.float64)
    back = np.linalg.inv(world)
    return {
        bone.name: world @ np.array(bone.matrix, np.float64) @ np.linalg.inv(np.array(bone.bone.matrix_local)) @ back
        for bone in armature.pose.bones
    }


def is_moved(transforms: Mapping[str, Array]) -> bool:
    """Return whether a bone is not at rest."""
    return any(np.abs(matrix - np.identity(4)).max() > _STILL for matrix in transforms.values())


def _armature_of(obj: bpy.types.Object) -> bpy.types.Object | None:
    """Return the armature object that shows a mesh object, or None."""
    modifier = next(iter(armature_modifiers(obj)), None)
    if modifier is None:
        return obj.parent if deforming_parent(obj) == "ARMATURE" else None
    return modifier.object if modifier.show_viewport or shown_bindings.matrices(obj) else None


def _blend(obj: bpy.types.Object) -> tuple[JointWeights, dict[str, Array]] | None:
    """Return the weights by which an armature shows a mesh object, and the transforms of its bones; None without one.

    Bones without *Deform* do not take part, except in the armatures of bindings.
    """
    armature, binding = _armature_of(obj), shown_bindings.matrices(obj)
    if armature is None:
        return None
    transforms = bone_transforms(armature)
    if binding:
        world = np.array(armature.matrix_world, np.float64)
        back = np.linalg.inv(world)
        transforms = {name: transforms[name] @ world @ binding[name] @ back for name in transforms if name in binding}
    else:
        transforms = {name: matrix for name, matrix in transforms.items() if armature.data.bones[name].use_deform}
    return joint_weights.read(obj, transforms), transforms


def shown(obj: bpy.types.Object) -> Array:
    """Return the transforms by which armatures show the vertices of a mesh object, (V, 4, 4)."""
    blend = _blend(obj)
    if blend is None:
        return np.broadcast_to(np.identity(4), (len(obj.data.vertices), 4, 4))
    return rig_copies.blended(*blend, np.identity(4))


def shown_points(obj: bpy.types.Object) -> Array:
    """Return the points of a mesh object as its shape keys and armatures show them, (V, 3) in world space."""
    points = arrays.read(obj.data.vertices, "co", 3).astype(np.float64)
    keys = obj.data.shape_keys
    if keys is not None and keys.use_relative:
        of_key = {key.name: arrays.read(key.data, "co", 3) for key in keys.key_blocks}
        points = of_key[keys.reference_key.name].astype(np.float64)
        for key in keys.key_blocks:
            if key.value and not key.mute and key != keys.reference_key:
                points += key.value * (of_key[key.name] - of_key[key.relative_key.name])
    return rig_copies.moved(points, shown(obj) @ np.array(obj.matrix_world, np.float64))


@contextlib.contextmanager
def shown_copies(items: Iterable[bpy.types.Object]) -> Iterator[dict[bpy.types.Object, bpy.types.Object]]:
    """Yield copies of mesh objects that have the shown form as their own, and remove them after a ``with`` block."""
    copies: dict[bpy.types.Object, bpy.types.Object] = {}
    try:
        for obj in items:
            copy = copies[obj] = obj.copy()
            copy.data = obj.data.copy()
            if copy.data.shape_keys is not None:
                copy.shape_key_clear()
            rig_copies.move(copy.data, _in_object(obj, shown(obj)))
        yield copies
    finally:
        for copy in copies.values():
            data = copy.data
            bpy.data.objects.remove(copy)
            bpy.data.meshes.remove(data)


@contextlib.contextmanager
def kept_form(
    context: bpy.types.Context, items: Sequence[bpy.types.Object], armature: bpy.types.Object | None
) -> Iterator[list[Text]]:
    """Keep the form in which mesh objects are shown, while a ``with`` block changes their weights and binds them.

    Yield a list that afterwards has phrases about vertices and edges of which the rest form is doubtful; they are
    selected for edit mode. Objects that no armature deforms afterwards are not changed.

    Parameters
    ----------
    armature:
        The armature object to which the objects are bound afterwards; if it is None, nothing is done.
    """
    said: list[Text] = []
    if armature is None:
        yield said
        return
    before, seen = _shown_exactly(context, items), _evaluated_points(context, items, [])
    yield said
    folded = stretched = 0
    apart = 0.0
    bound = [obj for obj in items if _armature_of(obj) is not None]
    for obj in bound:
        _use_plainly(obj, armature)
        vertices, edges = _carry(obj, before[obj])
        folded, stretched = folded + int(vertices.sum()), stretched + int(edges.sum())
        ends = arrays.read(obj.data.edges, "vertices", 2, np.int32)[edges]
        if len(chosen := np.union1d(np.flatnonzero(vertices), ends)):
            element_selection.select_points(obj, chosen.tolist())
    others = [obj for obj in bound if any(_other_modifiers([obj]))]
    for obj, points in _evaluated_points(context, others, []).items():
        if len(points) == len(seen[obj]):
            apart = max(apart, float(np.linalg.norm(points - seen[obj], axis=1).max(initial=0.0)))
    if folded:
        number = counted(folded, "vertex follows", "vertices follow")
        said.append(Text("{} one bone only, since the pose turns them inside out (selected in Edit Mode)", number))
    if stretched:
        number = counted(stretched, "edge is", "edges are")
        said.append(Text("{} more than twice as long at rest (selected in Edit Mode)", number))
    if apart > _VISIBLE:
        template = "other modifiers change the form by up to {:.1f} mm; apply them first"
        said.append(Text(template, apart * 1000.0))


def _shown_exactly(context: bpy.types.Context, items: Sequence[bpy.types.Object]) -> dict[bpy.types.Object, Array]:
    """Return the results of :func:`shown`, moved to the points that Blender shows without other modifiers.

    The two differ with Preserve Volume, envelopes, masks, bendy bones and several armatures.
    """
    others = list(_other_modifiers(items))
    undeformed = _evaluated_points(context, items, [*others, *scene_state.undeformed(items)])
    found = {}
    for obj, points in _evaluated_points(context, items, others).items():
        found[obj] = shown(obj).copy()
        found[obj][:, :3, 3] += points - rig_copies.moved(undeformed[obj], found[obj])
    return found


def _carry(obj: bpy.types.Object, before: Array) -> tuple[Flags, Flags]:
    """Give a bound mesh object the rest form with which its weights show it as it was shown before.

    Return which vertices follow their strongest joint only, (V,), and which edges are stretched, (E,).

    Parameters
    ----------
    before:
        (V, 4, 4) transforms by which it was shown with the old weights.
    """
    weights, transforms = _blend(obj) or (JointWeights([], np.empty((len(before), 0), np.float32)), {})
    after = rig_copies.blended(weights, transforms, np.identity(4))
    folded = _folded(after[:, :3, :3])
    if folded.any():
        strongest = np.array([transforms[name] for name in weights.joints])
        after[folded] = strongest[weights.values[folded].argmax(axis=1)]
    lengths = _edge_lengths(obj, before)
    rig_copies.move(obj.data, _in_object(obj, joint_poses.inverse(after) @ before))
    obj.data.update()
    still = np.broadcast_to(np.identity(4), before.shape)
    return folded, _edge_lengths(obj, still) > MOST_STRETCH * np.maximum(lengths, _VISIBLE)


def _folded(linear: Array) -> Flags:
    """Return which matrices, of (V, 3, 3), have a singular value below :data:`LEAST_SIZE` or a negative determinant."""
    volumes = np.linalg.det(linear)
    # The product of the two largest singular values is at most half of the sum of all squares.
    folded: Flags = 2.0 * volumes < LEAST_SIZE * (linear * linear).sum(axis=(1, 2))
    folded[folded] = (np.linalg.svd(linear[folded], compute_uv=False)[:, 2] < LEAST_SIZE) | (volumes[folded] < 0)
    return folded


def _use_plainly(obj: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Let only weights for one armature deform an object, as in the target program, and let its normals follow."""
    shown_bindings.hide(obj)
    found = armature_modifiers(obj)
    own = next((modifier for modifier in found if modifier.object == armature), next(iter(found), None))
    for modifier in found:
        modifier.use_deform_preserve_volume = modifier.use_bone_envelopes = modifier.use_multi_modifier = False
        modifier.vertex_group = ""
        if modifier != own:
            modifier.show_viewport = modifier.show_render = False
    obj.meshferry.property_unset("skin")
    file_normals.make_editable(obj.data)


def _other_modifiers(items: Iterable[bpy.types.Object]) -> Iterator[tuple[Any, str, Any]]:
    """Yield the settings for :func:`.scene_state.changed` that disable all modifiers except armatures."""
    for obj in items:
        found = (modifier for modifier in obj.modifiers if modifier.type != "ARMATURE" and modifier.show_viewport)
        yield from ((modifier, "show_viewport", False) for modifier in found)


def _evaluated_points(
    context: bpy.types.Context, items: Sequence[bpy.types.Object], settings: Iterable[tuple[Any, str, Any]]
) -> dict[bpy.types.Object, Array]:
    """Return the points of objects with their modifiers in world space, (n, 3), with temporary settings."""
    found: dict[bpy.types.Object, Array] = {}
    with scene_state.evaluated(context, items), scene_state.changed(context, settings):
        context.view_layer.update()
        for obj in items:
            seen = obj.evaluated_get(context.evaluated_depsgraph_get())
            points = arrays.read(seen.data.vertices, "co", 3).astype(np.float64)
            world = np.array(seen.matrix_world, np.float64)
            found[obj] = points @ world[:3, :3].T + world[:3, 3]
    return found


def _in_object(obj: bpy.types.Object, transforms: Array) -> Array:
    """Return transforms of world space in the space of an object."""
    world = np.array(obj.matrix_world, np.float64)
    return np.linalg.inv(world) @ transforms @ world


def _edge_lengths(obj: bpy.types.Object, transforms: Array) -> Array:
    """Return the lengths of the edges of an object in world space, (E,), after transforms of that space."""
    points = arrays.read(obj.data.vertices, "co", 3)
    moved_points = rig_copies.moved(points, transforms @ np.array(obj.matrix_world, np.float64))
    ends = arrays.read(obj.data.edges, "vertices", 2, np.int32)
    return np.linalg.norm(moved_points[ends[:, 0]] - moved_points[ends[:, 1]], axis=1)


DEEPEST = 0.1
"""Distance in metres from the surface up to which a point may be inside: farther ones are of openings of the body."""
_ON = 1e-4
"""Distance in metres below the surface up to which a point counts as on it."""


def vertices_inside(
    clothes: Sequence[bpy.types.Object], body: Sequence[bpy.types.Object]
) -> dict[bpy.types.Object, npt.NDArray[np.bool_]]:
    """Return which vertices of clothes, (V,), are inside of a body, all of them as armatures show them now."""
    surface = surface_of(body, shown_points)
    found = {}
    for obj in clothes:
        depth = surface.depth_of(shown_points(obj))
        found[obj] = (depth > _ON) & (depth < DEEPEST)
    return found
