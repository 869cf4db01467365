"""Bones of joints whose ends are known: drawn to them, for people to read, with rolls that mirror from side to side.

A joint's own axes say nothing about such bones; they stay with the bone as ``bone.meshferry``, as those of all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Vector

from ...io_formats.core.scene import Joint
from .. import compat, joint_poses, names
from ..joint_poses import Array

_LEAST_LENGTH = 1e-4
"""Metres; joints that end nearer to their place than this say nothing about a direction."""
_SHORT = 0.01
"""Metres: length of the bones of such joints."""
_TOUCHING = 1e-6
"""Metres between a bone's head and the end of the one it hangs on up to which they are one point."""
_UNSCALED = 1e-6
_ALONG = 0.9
"""Cosine above which a bone is too near to an axis to be rolled by it."""

_ROLL_AXES = (Vector((0.0, -1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
"""The Z axes of bones look this way, or, of those that point there themselves, this way. Both lie in the plane that
mirrors left and right into each other, so that the bones of both sides are rolled alike and X-mirroring holds."""

_VOLUME_COLOR = "THEME04"


def vectors(joints: Sequence[Joint], parents: Sequence[int]) -> list[Array | None]:
    """Return where the bone of each joint ends, from its head, (3,) float64; None where the joint does not say.

    One that ends where it begins goes on in the direction of the joint above.
    """
    found: list[Array | None] = [None] * len(joints)
    for joint in joint_poses.parents_first(parents):
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


def draw(bone: bpy.types.EditBone, head: Array, vector: Array) -> None:
    """Place an edit bone and roll it."""
    bone.head = head.tolist()
    bone.tail = (head + vector).tolist()
    along = bone.vector.normalized()
    bone.align_roll(next((axis for axis in _ROLL_AXES if abs(along.dot(axis)) < _ALONG), _ROLL_AXES[0]))


def connect(
    bones: Sequence[bpy.types.EditBone], parents: Sequence[int], heads: Array, drawn: Sequence[Array | None]
) -> None:
    """Let bones that begin where the one above ends stay together when either is edited."""
    for joint, parent in enumerate(parents):
        above = drawn[parent] if parent >= 0 else None
        if above is None or drawn[joint] is None:
            continue
        bones[joint].use_connect = bool(np.abs(heads[parent] + above - heads[joint]).max() < _TOUCHING)


def sort(data: bpy.types.Armature, joints: Sequence[Joint], given: Sequence[str]) -> None:
    """Put bones into the bone collections that their joints name; those of volumes are thin, and have a colour.

    A volume is a joint with a scale of its own: the room that it fills, not a limb that something hangs on.
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
            compat.draw_thin(bone)
