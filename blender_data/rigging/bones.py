"""Bones of an armature: the positions of their heads, *Deform*, and whether they rest where an import put them."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Vector

from ...io_formats.core.capabilities import Capabilities
from .. import names
from ..mesh_data import vertex_weights
from ..operator_calls import edited

_TOUCHING = 1e-5
"""Largest distance in metres between a bone's head and the end of its parent at which they are connected."""
_LEAST_LENGTH = 1e-4
"""Minimum length of bones in metres. Up to 4.5 Blender deletes bones without length on leaving edit mode."""


def move_heads(
    context: bpy.types.Context, armature: bpy.types.Object, heads: Mapping[str, npt.NDArray[np.float64]]
) -> None:
    """Move bones of an armature object to new heads, (3,) in its space; other bones move with their parents.

    Bones keep their direction, length and roll, but a bone connected to a child ends at the child's head. Objects whose
    parent is a bone, and meshes that the armature deforms, keep their location.
    """
    with _unmoved_children(context, armature), edited(context, armature.data):
        _move(armature.data, heads)


def _move(data: bpy.types.Armature, heads: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Move bones in edit mode to the heads given by name; other bones follow their parents, and ends stay connected."""
    bones = sorted(data.edit_bones, key=lambda bone: len(bone.parent_recursive))
    connected = [bone for bone in bones if bone.parent is not None and bone.use_connect]
    before = {bone.name: (bone.head.copy(), bone.tail.copy(), bone.roll) for bone in bones}
    for bone in bones:
        bone.use_connect = False
    moved: dict[str, Vector] = {}
    for bone in bones:
        head, tail, roll = before[bone.name]
        wanted = heads.get(bone.name)
        above = moved[bone.parent.name] if bone.parent is not None else Vector((0.0, 0.0, 0.0))
        moved[bone.name] = by = above if wanted is None else Vector(wanted.tolist()) - head
        bone.head, bone.tail, bone.roll = head + by, tail + by, roll
    for bone in reversed(connected):  # reversed, so that the first connected child of a parent determines its end
        if (bone.head - bone.parent.head).length > _LEAST_LENGTH:
            bone.parent.tail = bone.head
    for bone in connected:
        bone.use_connect = (bone.head - bone.parent.tail).length < _TOUCHING


@contextlib.contextmanager
def _unmoved_children(context: bpy.types.Context, armature: bpy.types.Object) -> Iterator[None]:
    """Keep the world transforms of objects whose parent is a bone of the armature, in a ``with`` block.

    Their parent inverse is changed, since Blender does not evaluate the world matrices of objects in excluded
    collections and other scenes, and since their own transform may be animated.
    """
    children = [
        obj
        for obj in bpy.data.objects
        if obj.parent is not None
        and obj.parent.data == armature.data
        and obj.parent_type == "BONE"
        and obj.parent_bone in armature.data.bones
    ]
    before = [_bone_matrix(context, obj) @ obj.matrix_parent_inverse for obj in children]
    yield
    context.view_layer.update()
    for obj, matrix in zip(children, before, strict=True):
        obj.matrix_parent_inverse = _bone_matrix(context, obj).inverted_safe() @ matrix


def _bone_matrix(context: bpy.types.Context, obj: bpy.types.Object) -> Matrix:
    """Return the matrix, in the space of its armature, that a bone applies to an object parented to it."""
    bone = obj.parent.data.bones[obj.parent_bone]
    pose = obj.parent.pose.bones.get(bone.name)
    is_evaluated = pose is not None and context.view_layer.objects.get(obj.parent.name) == obj.parent
    if bone.use_relative_parent:
        return pose.matrix_channel.copy() if is_evaluated else Matrix()
    return (pose.matrix if is_evaluated else bone.matrix_local) @ Matrix.Translation((0.0, bone.length, 0.0))


def weighted_groups(obj: bpy.types.Object) -> list[str]:
    """Return the names of the vertex groups of a mesh object in which a vertex has a weight above 0."""
    _counts, groups, weights = vertex_weights.read(obj.data)
    used = np.unique(groups[weights > 0]).tolist()
    return [obj.vertex_groups[number].name for number in used if number < len(obj.vertex_groups)]


def switch_on(armature: bpy.types.Object, bones: Iterable[str]) -> list[str]:
    """Switch Deform on for the named bones of an armature object; return those for which it was off."""
    found = [armature.data.bones[name] for name in bones if name in armature.data.bones]
    changed = [bone for bone in found if not bone.use_deform]
    for bone in changed:
        bone.use_deform = True
    return [bone.name for bone in changed]


def switch_on_weighted(obj: bpy.types.Object, armature: bpy.types.Object) -> list[str]:
    """Switch Deform on for all bones with weights of a mesh object, so that a pose in Blender moves the mesh.

    Return the names of the bones for which it was off.
    """
    return switch_on(armature, weighted_groups(obj))


def set_deforming(armature: bpy.types.Object, bones: Collection[str], among: Iterable[str]) -> None:
    """Switch Deform on for ``bones`` of an armature object, and off for the others ``among`` them."""
    for name in among:
        bone = armature.data.bones[name]
        if bone.use_deform != (name in bones):
            bone.use_deform = name in bones


def exported_bones(armature: bpy.types.Object, capabilities: Capabilities) -> set[str]:
    """Return the names of the bones of which a format stores weights.

    If the format ignores *Deform*, these are the bones whose joints the target program knows by name.
    """
    knows = capabilities.knows_joint
    return {
        bone.name
        for bone in armature.data.bones
        if bone.use_deform or (knows is not None and knows(names.name_in_file(bone)))
    }


Array = npt.NDArray[np.float64]

_DRIFT = 1e-4
"""Tolerance for the axes of an unmoved bone: editing an ancestor changes the axes of very short bones by this much."""

_POSITION_DRIFT = 1e-6
"""Tolerance for the position of an unmoved bone, relative to the largest coordinate of the rig."""


def rest_matrices(bones: Sequence[bpy.types.Bone]) -> Array:
    """Return the rest matrices of bones in the space of their armature, (J, 4, 4) float64."""
    return np.array([bone.matrix_local for bone in bones], np.float64).reshape(-1, 4, 4)


def location_axes(bone: bpy.types.Bone) -> Array:
    """Return the matrix (3, 3) from the axes of a bone's location channel to those of the bone at rest.

    Without *Local Location* the channel is along the axes of the parent, or of the armature.
    """
    if bone.use_local_location:
        return np.identity(3)
    own = np.linalg.inv(np.array(bone.matrix_local, np.float64)[:3, :3])
    above = bone.parent.matrix_local.to_3x3() if bone.parent is not None else Matrix.Identity(3)
    return np.asarray(own @ np.array(above, np.float64))


def kept_matrices(bones: Sequence[bpy.types.Bone], name: str) -> Array:
    """Return the matrices stored as properties of bones, (J, 4, 4) float64; zeros for bones without one."""
    kept = [np.asarray(getattr(bone.meshferry, name), np.float64).reshape(4, 4) for bone in bones]
    return np.array(kept, np.float64).reshape(-1, 4, 4)


def unmoved_bones(bones: Sequence[bpy.types.Bone]) -> npt.NDArray[np.bool_]:
    """Return which bones rest where an import put them, (J,)."""
    return are_unmoved(rest_matrices(bones), kept_matrices(bones, "rest_matrix"))


def are_unmoved(rest: Array, kept: Array) -> npt.NDArray[np.bool_]:
    """Return whether each bone is unmoved, (J,), from its rest matrices now and on import.

    The tolerances allow for changes of bones whose ancestors were edited.
    """
    apart = np.abs(rest - kept)
    extent = np.abs(kept[:, :3, 3]).max(initial=0.0)
    turned: npt.NDArray[np.bool_] = apart[:, :3, :3].reshape(-1, 9).max(axis=1, initial=0.0) > _DRIFT
    return ~turned & (apart[:, :3, 3].max(axis=1, initial=0.0) <= _POSITION_DRIFT * extent)
