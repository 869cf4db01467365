"""Axes of bones that a reload keeps: earlier versions laid out bones otherwise, and actions depend on their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ....io_formats.core.scene import Joint, Skeleton
from ... import names
from ...rigging import joint_poses
from ...rigging.joint_poses import Array

_SAME = 1e-5
"""Difference of rotation matrices below which bones and joints count as not turned: single precision."""

JointKey = tuple[str, int]
"""Name of a joint in the file, and its number among the joints of this name."""


def bones_by_joint(armature: bpy.types.Armature) -> dict[JointKey, bpy.types.Bone]:
    """Return the imported bones of an armature by their joints."""
    bones = sorted((bone for bone in armature.bones if bone.meshferry.order >= 0), key=lambda one: one.meshferry.order)
    keys = _numbered([bone.meshferry.joint_name or names.name_in_file(bone) for bone in bones])
    return dict(zip(keys, bones, strict=True))


def replaced_by(skeleton: Skeleton, candidates: Sequence[bpy.types.Object]) -> bpy.types.Armature | None:
    """Return the armature with most joints of a skeleton; of several, the one with its name. None if all lack them."""
    wanted = {joint.name for joint in skeleton.joints}
    ranked = [
        (len(wanted.intersection(name for name, _number in bones_by_joint(obj.data))), -place, obj)
        for place, obj in enumerate(sorted(candidates, key=lambda obj: names.name_in_file(obj) != skeleton.name))
    ]
    most, _place, found = max(ranked, key=lambda entry: entry[:2], default=(0, 0, None))
    data: Any = found.data if found is not None and most else None
    return data


def adopt(
    data: bpy.types.Armature,
    given: Sequence[str],
    joints: Sequence[Joint],
    world: Array,
    before: bpy.types.Armature,
) -> None:
    """Give new edit bones the axes that the import of the same joints gave those of an earlier armature.

    A bone whose joint rests in another direction in the file now is turned like its joint. ``world`` are the bind
    matrices of the joints, (J, 4, 4).
    """
    earlier = bones_by_joint(before)
    now = joint_poses.rest_matrix(world)
    for name, key, matrix in zip(given, _numbered([names.readable(joint.name) for joint in joints]), now, strict=True):
        bone = earlier.get(key)
        if bone is None:
            continue
        kept = bone.meshferry
        edited = data.edit_bones[name]
        was, rest = (np.array(values, np.float64).reshape(4, 4) for values in (kept.bind_matrix, kept.rest_matrix))
        if not was.any() or not rest.any():
            continue
        turn = matrix[:3, :3] @ joint_poses.rest_matrix(was[None])[0, :3, :3].T
        if np.abs(turn - np.identity(3)).max() <= _SAME:
            turn = np.identity(3)
        wanted = np.identity(4)
        wanted[:3, :3] = turn @ rest[:3, :3]
        wanted[:3, 3] = matrix[:3, 3]
        if np.abs(wanted[:3, :3] - np.array(edited.matrix)[:3, :3]).max() > _SAME:
            edited.matrix = Matrix(wanted.tolist())


def _numbered(joint_names: Sequence[str]) -> list[JointKey]:
    counts: dict[str, int] = {}
    keys = []
    for name in joint_names:
        keys.append((name, counts.setdefault(name, 0)))
        counts[name] += 1
    return keys
