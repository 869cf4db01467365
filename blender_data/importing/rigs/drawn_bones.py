"""Place bones along joints whose end is known, with mirrored rolls on the left and right side.

The joints' own axes are not used for such bones; they are stored in ``bone.meshferry`` as for all bones.
"""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Vector

from ....io_formats.core.scene import Joint
from ....io_formats.geometry import hierarchy
from ... import names
from ...rigging.joint_poses import Array

_LEAST_LENGTH = 1e-4
"""Smallest length of a joint in metres from which its direction is used."""
_SHORT = 0.01
"""Length of the bones of shorter joints, in metres."""
_UNSCALED = 1e-6
_ALONG = 0.9
"""Cosine of the angle between a bone and a roll axis above which the other roll axis is used."""

_ROLL_AXES = (Vector((0.0, -1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
"""Preferred Z axes of bones; the second is for bones that point along the first. Both are in the mirror plane of left
and right, so that bones of both sides have mirrored rolls and X-mirroring works."""

_VOLUME_COLOR = "THEME04"


def bone_vectors(joints: Sequence[Joint], parents: Sequence[int]) -> list[Array | None]:
    """Return the vector from head to end of each joint's bone, (3,) float64; None if the end of the joint is not known.

    A bone without length gets the direction of its parent.
    """
    found: list[Array | None] = [None] * len(joints)
    for joint in hierarchy.parents_first(parents):
        tail = joints[joint].tail
        if tail is None:
            continue
        vector = np.asarray(tail, np.float64)
        if np.linalg.norm(vector) < _LEAST_LENGTH:
            above = found[parents[joint]] if parents[joint] >= 0 else None
            along = np.array((0.0, 0.0, 1.0)) if above is None else above
            vector = along / np.linalg.norm(along) * _SHORT
        found[joint] = vector
    return found


def draw_bone(bone: bpy.types.EditBone, head: Array, vector: Array, up: Sequence[float] | None) -> None:
    """Place an edit bone and roll it; ``up`` is the direction of its Z axis, None to choose one."""
    bone.head = head.tolist()
    bone.tail = (head + vector).tolist()
    along = bone.vector.normalized()
    chosen = next((axis for axis in _ROLL_AXES if abs(along.dot(axis)) < _ALONG), _ROLL_AXES[0])
    bone.align_roll(chosen if up is None else Vector(up))


def sort_bones(data: bpy.types.Armature, joints: Sequence[Joint], given: Sequence[str]) -> None:
    """Assign bones to the collections named by their joints; bones of collision volumes are thin and coloured.

    A joint with a scale is a collision volume with this size.
    """
    collections: dict[str, bpy.types.BoneCollection] = {}
    for joint, name in zip(joints, given, strict=True):
        bone = data.bones[name]
        if joint.group:
            if joint.group not in collections:
                collections[joint.group] = data.collections.new(names.fit_all([joint.group], "Bones")[0])
            collections[joint.group].assign(bone)
        if joint.tail is not None and max(abs(part - 1.0) for part in joint.scale) > _UNSCALED:
            bone.color.palette = _VOLUME_COLOR
            bone.display_type = "STICK"
