"""Bone tables with their bind transforms <-> a scene's skeleton (sections 2.4 and 3.3).

Files and scenes use the same space; only the order of rotation components differs. Values are copied exactly.
"""

from __future__ import annotations

import numpy as np

from ..core.errors import ExportError
from ..core.scene import FloatArray, Joint, Skeleton
from .bones import MOST_BONES, Bone

IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
"""The identity transform in the order of files: translation, rotation (x, y, z, w), scale."""


def to_skeleton(name: str, bones: list[Bone], transforms: FloatArray) -> Skeleton:
    """Map a bone table and its local transforms (nb, 10) to a skeleton with joints in the order of the file."""
    joints = []
    for bone, (tx, ty, tz, x, y, z, w, sx, sy, sz) in zip(bones, transforms.tolist(), strict=True):
        joints.append(Joint(bone.name, bone.parent, (tx, ty, tz), (w, x, y, z), (sx, sy, sz)))
    return Skeleton(name, joints)


def from_skeleton(skeleton: Skeleton) -> tuple[list[Bone], FloatArray]:
    """Map a skeleton to a bone table and its local transforms, (nb, 10) float32.

    Raises
    ------
    ExportError
        More bones than a file can hold, or a NaN or infinite bind transform.
    """
    if len(skeleton.joints) > MOST_BONES:
        raise ExportError(
            "'{}' has {:,} bones; UNIGINE files hold {:,} at most. Export deform bones only, or split the armature",
            skeleton.name,
            len(skeleton.joints),
            MOST_BONES,
        )
    transforms = np.empty((len(skeleton.joints), 10), np.float32)
    for row, joint in zip(transforms, skeleton.joints, strict=True):
        w, x, y, z = joint.rotation
        row[:] = (*joint.translation, x, y, z, w, *joint.scale)
    broken = ~np.isfinite(transforms).all(axis=1)
    if broken.any():
        name = skeleton.joints[int(np.flatnonzero(broken)[0])].name
        raise ExportError("Bone '{}' of '{}': its rest transform holds NaN or infinite values", name, skeleton.name)
    return [Bone(joint.name, joint.parent) for joint in skeleton.joints], transforms
