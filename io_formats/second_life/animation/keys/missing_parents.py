"""Restore rotations relative to the parents in the file, for joints whose parents the skeleton lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....core.scene import Keys, Skeleton
from ....geometry.transforms import continuous_rotations, inverse_rotations, rotation_product
from ....passes.clips import values_at
from ...avatar import joints
from ...avatar.avatar_motion import AvatarMotion
from ..document import JointKeys, SecondLifeAnimation
from . import curves, reduction
from .codes import Floats


def restore_missing_parents(
    motion: AvatarMotion, original: SecondLifeAnimation, skeleton: Skeleton, fps: float
) -> AvatarMotion:
    """Return a motion with rotations relative to the file's parents, even if the skeleton lacks these joints.

    The import combines the rotation of a missing joint with the bones below it. A bone that is unchanged since the
    import gets the rotation of the file again; for any other, the rotation of the missing joints is removed.
    """
    there = {joints.canonical(joint.name) for joint in skeleton.joints}
    entries = original.known_joints()
    missing = {name for name, joint in entries.items() if name not in there and len(joint.rotation)}
    rotation = motion.rotation.copy()
    for number, name in enumerate(motion.names if missing else ()):
        above = list(itertools.takewhile(lambda parent: parent not in there, joints.ancestors(name)[1:]))
        if missing.isdisjoint(above):
            continue
        chain = [entries[joint] for joint in (*reversed(above), name) if joint in entries]
        own = entries[name] if name in entries else JointKeys(name.encode("utf-8"))
        imported = curves.snap_to_frames(_product(chain, original), original, fps)
        if reduction.distances(values_at(imported, motion.times), rotation[number]).max() <= curves.UNCHANGED:
            rotation[number] = _sampled(own, original, motion.times, fps)
        else:
            turn = inverse_rotations(
                _sampled_product([joint for joint in chain if joint is not own], original, motion.times)
            )
            rotation[number] = continuous_rotations(rotation_product(turn, rotation[number]))
    return replace(motion, rotation=rotation)


def _sampled(joint: JointKeys, original: SecondLifeAnimation, times: Floats, fps: float) -> Floats:
    """Return the rotations of a joint of a file as Blender shows them; without keys it is at rest."""
    if not len(joint.rotation):
        return np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
    return values_at(curves.snap_to_frames(curves.rotation_keys(original, joint), original, fps), times)


def _product(chain: Sequence[JointKeys], original: SecondLifeAnimation) -> Keys:
    """Return the combined rotation of a chain of joints, first to last, with keys at the times of all their keys."""
    found = [curves.rotation_keys(original, joint) for joint in chain if len(joint.rotation)]
    found += [curves.position_keys(original, joint) for joint in chain if len(joint.position)]
    times = np.unique(np.concatenate([keys.times for keys in found]))
    return Keys(times, continuous_rotations(_sampled_product(chain, original, times)))


def _sampled_product(chain: Sequence[JointKeys], original: SecondLifeAnimation, times: Floats) -> Floats:
    turn = np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
    for joint in chain:
        if len(joint.rotation):
            turn = rotation_product(turn, values_at(curves.rotation_keys(original, joint), times))
    return turn
