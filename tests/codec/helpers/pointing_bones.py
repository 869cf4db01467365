"""An avatar with other axes, as rigs of other programs: bones point to their ends, touch, and inherit scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any


def without_axes(skeleton: Any) -> Any:
    """Return a skeleton of the avatar's joints whose bones point to their ends."""
    from meshferry.io_formats.second_life.avatar import joints as avatar_joints

    joints = []
    for joint in skeleton.joints:
        x, y, z = avatar_joints.table()[avatar_joints.canonical(joint.name)].end
        joints.append(replace(joint, tail=(y, -x, z), up=None))
    return replace(skeleton, joints=joints, bone_axes="", inherits_scale=True)


def add(**which: Any) -> Any:
    """Add the armature and make it active."""
    import bpy
    from meshferry.blender_data.importing import armatures
    from meshferry.io_formats.second_life.avatar import skeletons

    avatar = armatures.add_skeleton(bpy.context, without_axes(skeletons.avatar_skeleton(**which)), name="Avatar")
    connect(avatar)
    return avatar


def connect(avatar: Any) -> None:
    """Connect the bones that start at the ends of their parents."""
    import bpy
    from meshferry.blender_data.importing import armatures

    bones = [bone for bone in avatar.data.bones if bone.parent is not None]
    touching = [bone.name for bone in bones if (bone.head_local - bone.parent.tail_local).length < 5e-6]
    armatures.connect(bpy.context, avatar, touching, is_connected=True)
