"""Move the heads of an armature's bones in the rest pose; bones that depend on them move, too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Vector

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
