"""The avatar as versions 0.1 and 0.2 drew it: bones point to their ends, touch, and inherit scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np


def without_axes(skeleton: Any) -> Any:
    """Return a skeleton of the avatar's joints as earlier versions gave it to the importer."""
    from meshferry.io_formats.second_life.avatar import skeleton_table

    joints = []
    for joint in skeleton.joints:
        x, y, z = skeleton_table.table()[skeleton_table.canonical(joint.name)].end
        joints.append(replace(joint, tail=(y, -x, z), up=None))
    return replace(skeleton, joints=joints, bone_axes="", inherits_scale=True)


def add(**which: Any) -> Any:
    """Add the armature and make it active."""
    import bpy
    from meshferry.blender_data.importing.rigs import armatures
    from meshferry.io_formats.second_life.avatar import skeletons

    avatar = armatures.add_skeleton(bpy.context, without_axes(skeletons.avatar_skeleton(**which)), name="Avatar")
    connect(avatar)
    return avatar


def connect(avatar: Any) -> None:
    """Connect the bones that start at the ends of their parents."""
    import bpy
    from meshferry.blender_data.importing.rigs import armatures

    bones = [bone for bone in avatar.data.bones if bone.parent is not None]
    touching = [bone.name for bone in bones if (bone.head_local - bone.parent.tail_local).length < 5e-6]
    armatures.connect(bpy.context, avatar, touching, is_connected=True)


def disconnect(avatar: Any, bones: Any) -> None:
    """Disconnect bones from their parents."""
    import bpy
    from meshferry.blender_data.importing.rigs import armatures

    armatures.connect(bpy.context, avatar, bones, is_connected=False)


def joints(avatar: Any) -> Any:
    """Return head and rotation relative to the rest of each joint in the world, (joints, 4, 4), in this frame."""
    import bpy
    from meshferry.blender_data.rigging.joint_poses import rest_matrix

    bones = avatar.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    found = rest_matrix(np.array(avatar.matrix_world, np.float64) @ matrices(bones, "matrix"))
    # The order of pose bones and bones may differ.
    order = [avatar.data.bones.find(bone.name) for bone in bones]
    rests = rest_matrix(matrices(avatar.data.bones, "matrix_local")[order])
    found[:, :3, :3] = found[:, :3, :3] @ rests[:, :3, :3].transpose(0, 2, 1)
    return found


def matrices(bones: Any, name: str) -> Any:
    """Return a matrix of each bone, (bones, 4, 4)."""
    flat = np.empty(16 * len(bones), np.float32)
    bones.foreach_get(name, flat)
    return flat.reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)


def skews(avatar: Any) -> Any:
    """Return how far the rest matrices of each bone or of a bone above are from rotations, (joints,).

    Blender's matrices of legs that point downwards are not exact. Poses of the bones below depend on it, by up to twice
    as much in extreme poses.
    """
    found = {}
    for bone in avatar.data.bones:  # parents first
        axes = np.array(bone.matrix_local, np.float64)[:3, :3]
        own = np.abs(axes.T @ axes - np.identity(3)).max()
        found[bone.name] = max(own, found[bone.parent.name]) if bone.parent else own
    return 2 * np.array(list(found.values()))
