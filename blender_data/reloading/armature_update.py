"""Update the bones of an armature from a new import.

Poses, constraints and bones that the user added are not changed.
"""

from __future__ import annotations

from collections import Counter

import bpy
import numpy as np

from ..operator_calls import edited
from ..properties import copy_group

_SAME = 1e-6
"""Tolerance for equal positions, relative to the largest coordinate if that is above 1."""
_SAME_AXES = 1e-5
"""Tolerance for equal axes of bones."""

JointKey = tuple[str, int]
"""Name of a joint in the file, and its number among the joints of this name."""


def bones_by_joint(armature: bpy.types.Armature) -> dict[JointKey, bpy.types.Bone]:
    """Return the imported bones of an armature by their joints."""
    bones = sorted((bone for bone in armature.bones if bone.meshferry.order >= 0), key=lambda one: one.meshferry.order)
    counts: Counter[str] = Counter()
    found: dict[JointKey, bpy.types.Bone] = {}
    for bone in bones:
        name = bone.meshferry.joint_name
        found[name, counts[name]] = bone
        counts[name] += 1
    return found


def adopt_names(new: bpy.types.Armature, old: bpy.types.Armature) -> None:
    """Give the new bones the names that the user gave the old ones; Blender renames vertex groups and f-curves."""
    given, made = bones_by_joint(old), bones_by_joint(new)
    renamed = [(made[joint], given[joint].name) for joint in made if joint in given]
    renamed = [(bone, name) for bone, name in renamed if bone.name != name]
    for number, (bone, _name) in enumerate(renamed):  # Two passes are needed, since bones may have swapped their names.
        bone.name = f"Meshferry {number}"
    for bone, name in renamed:
        bone.name = name


def update_armature(context: bpy.types.Context, old: bpy.types.Armature, new: bpy.types.Armature) -> list[str]:
    """Move bones to their new rest poses and add new ones; return the names of bones that the file no longer has.

    Unchanged bones are left alone, so that their drawn lengths, rolls and parents stay as the user set them. The bones
    of both armatures have the same names, see :func:`adopt_names`.
    """
    moved = [bone for bone in new.bones if bone.name not in old.bones or not _is_same(old.bones[bone.name], bone)]
    hung = [bone for bone in new.bones if bone.name in old.bones and _is_hung_elsewhere(old.bones[bone.name], bone)]
    before = {bone.name for bone in old.bones}
    with edited(context, old):
        edit_bones = old.edit_bones
        connected = [bone for bone in edit_bones if bone.use_connect]
        for bone in connected:  # all at once: connected bones move each other
            bone.use_connect = False
        for bone in moved:
            _place(edit_bones.get(bone.name) or edit_bones.new(bone.name), bone)
        for bone in new.bones:
            if bone in hung or bone.name not in before:
                edit_bones[bone.name].parent = edit_bones[bone.parent.name] if bone.parent is not None else None
        for bone in connected:
            _connect(bone)
    for bone in new.bones:
        kept = old.bones[bone.name]
        copy_group(bone.meshferry, kept.meshferry)
        kept.meshferry.rest_matrix = np.array(kept.matrix_local).reshape(-1)
        if bone.name not in before:
            kept.use_deform, kept.inherit_scale = bone.use_deform, bone.inherit_scale
            _show_as(old, kept, bone)
    return [bone.name for bone in old.bones if bone.meshferry.order >= 0 and bone.name not in new.bones]


def _place(edited: bpy.types.EditBone, bone: bpy.types.Bone) -> None:
    edited.head, edited.tail = (0.0, 0.0, 0.0), (0.0, bone.length, 0.0)
    edited.matrix = bone.matrix_local


def _connect(edited: bpy.types.EditBone) -> None:
    """Connect a bone to its parent, unless that would move it."""
    parent = edited.parent
    edited.use_connect = parent is not None and (parent.tail - edited.head).length <= _SAME * max(
        1.0, edited.head.length
    )


def _is_same(old: bpy.types.Bone, new: bpy.types.Bone) -> bool:
    now = np.array(new.matrix_local)
    apart = np.abs(now - np.array(old.matrix_local))
    return bool(apart[:3, :3].max() <= _SAME_AXES and apart[:3, 3].max() <= _SAME * max(1.0, np.abs(now).max()))


def _is_hung_elsewhere(old: bpy.types.Bone, new: bpy.types.Bone) -> bool:
    """Return whether the file now gives a bone another parent than before."""
    orders = {bone.meshferry.order: bone.name for bone in old.id_data.bones if bone.meshferry.order >= 0}
    before = orders.get(old.meshferry.parent_order, "")
    return before != (new.parent.name if new.parent is not None else "")


def _show_as(armature: bpy.types.Armature, bone: bpy.types.Bone, like: bpy.types.Bone) -> None:
    """Assign a new bone to bone collections with the names of those of another bone, which are created if necessary."""
    for group in like.collections:
        there = armature.collections_all.get(group.name)
        if there is None:
            there = armature.collections.new(group.name)
            there.is_visible = group.is_visible
        there.assign(bone)
