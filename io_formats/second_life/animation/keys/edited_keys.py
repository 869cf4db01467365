"""Keys of an imported joint after an edit: keys of the file are kept where the pose at their time is unchanged."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ....core.scene import AnyArray, Keys
from ....geometry.transforms import continuous_rotations
from ...avatar.avatar_motion import AvatarMotion
from ..document import JointKeys, SecondLifeAnimation
from . import codes, curves, reduction

_SAME_TIME = 1e-4
"""Difference in seconds below which a sample is at the time of a key; Blender's frames have single precision."""


def edited_joints(
    original: SecondLifeAnimation | None, duration: float, motion: AvatarMotion, numbers: Iterable[int], fps: float
) -> dict[str, JointKeys]:
    """Return the keys of joints that changed since the import, by name.

    A curve that has to be sampled again has no keys in the result. The result is empty if the length of the animation
    differs from that in the file.

    Parameters
    ----------
    duration:
        Length of the animation in seconds.
    numbers:
        The changed joints of the motion.
    fps:
        Frame rate at which the keys were imported.
    """
    if original is None or original.duration != duration:
        return {}
    joints = original.known_joints()
    found = {}
    for number in numbers:
        if motion.names[number] in joints:
            joint = joints[motion.names[number]]
            found[motion.names[number]] = JointKeys(
                joint.name,
                rotation=_edited(original, curves.rotation_keys(original, joint), joint.rotation, motion, number, fps),
                position=_edited(original, curves.position_keys(original, joint), joint.position, motion, number, fps),
            )
    return found


def _edited(
    original: SecondLifeAnimation, keys: Keys, rows: AnyArray, motion: AvatarMotion, number: int, fps: float
) -> AnyArray:
    """Return the keys of an edited curve, (n, 4) codes.

    Keys of the file are kept where the curve still has their values, and keys are added where needed. The result is
    empty if the curve is constant, or if not all keys of the file were sampled.
    """
    none = np.empty((0, 4), np.uint16)
    is_rotation = keys.values.shape[1] == 4
    exact = motion.rotation[number] if is_rotation else motion.position[number]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if len(rows) != len(keys.times) or reduction.distances(exact, exact[:1]).max() <= curves.UNCHANGED:
        return none
    shown = curves.snap_to_frames(keys, original, fps)
    at = np.searchsorted(motion.times, shown.times - _SAME_TIME).clip(max=len(exact) - 1)
    sampled = np.column_stack((codes.time_codes_of(motion.times, original.duration), codes.encode_values(exact)))
    sampled[at, 0] = rows[:, 0]
    same = reduction.distances(exact[at], shown.values) <= curves.UNCHANGED
    sampled[at[same]] = rows[same]
    is_sampled = np.abs(motion.times[at] - shown.times) <= _SAME_TIME
    if not (is_sampled.all() and same.any() and (np.diff(sampled[:, 0].astype(int)) > 0).all()):
        return none
    stored = codes.decode_values(sampled[:, 1:], is_rotation=is_rotation)
    stored = continuous_rotations(stored) if is_rotation else stored
    times = codes.times_of(sampled[:, 0], original.duration)
    kept = reduction.needed_between(exact, stored, times, at[same], curves.UNCHANGED)
    found: AnyArray = sampled[kept].astype(np.uint16)
    return found
