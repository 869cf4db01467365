"""Armatures -> skeletons with a joint at the head of each bone, independent of the bones' directions and rolls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Skeleton
from ....io_formats.geometry import hierarchy
from ...rigging import joint_poses
from ...rigging.armature_reading import ReadSkeleton, rounded, rounded_joint

Matrix4 = npt.NDArray[np.float64]


def lod_model_skeleton(read: ReadSkeleton, space: Matrix4) -> Skeleton:
    """Return the joints of an armature transformed by ``space`` (4, 4), each exactly at its bone's head.

    Joints have no rotation or scale, since the direction of a Blender bone is arbitrary. Only imported joints without
    children keep the rotation and scale of the file.
    """
    world = space @ hierarchy.world_matrices(read.local, read.parents)
    bones = read.obj.data.bones
    tails = np.array([bones[name].tail_local - bones[name].head_local for name in read.bones], np.float64)
    is_parent = set(read.parents)
    for number, name in enumerate(read.bones):
        if bones[name].meshferry.order < 0 or number in is_parent:
            world[number, :3, :3] = np.identity(3)
    parents = np.array([np.identity(4) if parent < 0 else world[parent] for parent in read.parents]).reshape(-1, 4, 4)
    translation, rotation, scale, _ = joint_poses.decompose(joint_poses.inverse(parents) @ world)
    joints = [
        replace(
            rounded_joint(joint.name, joint.parent, translation[number], rotation[number], scale[number]),
            tail=rounded(space[:3, :3] @ tails[number]),
            is_as_imported=joint.is_as_imported,
        )
        for number, joint in enumerate(read.skeleton.joints)
    ]
    return replace(read.skeleton, joints=joints, choices=())
