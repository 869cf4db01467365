"""Keys of a file in physical units: sorted, without doubled times (animation format page, section 2.3)."""

from __future__ import annotations

import numpy as np

from ....core.scene import AnyArray, Keys
from ....geometry.transforms import continuous_rotations
from ..document import JointKeys, SecondLifeAnimation
from . import codes
from .codes import Floats

UNCHANGED = 2e-4
"""Angle in radians, and distance in metres, below which a sampled joint counts as unchanged since the import; Blender's
single-precision matrices are within 5e-5."""
_WIDE = np.cos(np.radians(45))
"""Cosine of half the angle: quaternions with this dot product are rotations that differ by 90°."""
_FARTHEST_TIME = 1e6
"""Largest time in seconds to which times of version 0.1 are clamped, since a file may hold any number."""
_LEAST_TIMES = 4
"""Smallest number of different times from which a frame rate is derived."""
_RATES = (8.0, 10.0, 12.0, 12.5, 15.0, 16.0, 20.0, 24.0, 25.0, 30.0, 40.0, 45.0, 48.0, 50.0, 60.0)
"""Frame rates of real files; three quarters have all keys on frames of one of them."""


def time_tolerance(duration: float) -> float:
    """Return the tolerance for key times in seconds: two steps of the time code.

    A viewer's own encoding moves keys by this much.
    """
    return 2 * duration / codes.MOST


def frame_rate(document: SecondLifeAnimation) -> float:
    """Return the lowest common frame rate that has a frame at the end and at each key; 0 if there is none.

    Fewer than four different times, as in poses, are not evidence of a rate.
    """
    arrays = [keys[:, 0] for joint in document.joints for keys in (joint.rotation, joint.position)]
    stored = np.unique(np.concatenate([np.empty(0), *arrays]))
    seconds = codes.times_of(stored, document.duration) if document.has_codes else stored
    times = np.unique(np.append(seconds, document.duration))
    if len(times) < _LEAST_TIMES or document.duration <= 0:
        return 0.0
    step = time_tolerance(document.duration)
    return next((rate for rate in _RATES if (np.abs(np.rint(times * rate) / rate - times) <= step).all()), 0.0)


def snap_to_frames(keys: Keys, document: SecondLifeAnimation, fps: float) -> Keys:
    """Return keys of a file at the times at which Blender shows them.

    A key within the precision of the nearest frame is moved to that frame; other keys keep their times.
    """
    whole = np.rint(keys.times * fps) / fps
    is_near = np.abs(whole - keys.times) <= time_tolerance(document.duration)
    return Keys(np.where(is_near, whole, keys.times), keys.values)


def rotation_keys(document: SecondLifeAnimation, joint: JointKeys) -> Keys:
    """Return the rotations of a joint as unit quaternions (w, x, y, z), each with the sign nearest to the one before.

    Between two keys of opposite sign, viewers turn at a constant speed instead of linearly. If these are over 90°
    apart, a key is added in the middle, since the difference would be up to 8°; with the key it is at most 1°.
    """
    values = joint.rotation[:, 1:]
    rotations = codes.decode_values(values, is_rotation=True) if document.has_codes else codes.euler_rotations(values)
    keys = _sorted(document, joint.rotation, rotations)
    cosine = (keys.values[:-1] * keys.values[1:]).sum(axis=1)
    signed = continuous_rotations(keys.values)
    wide = np.flatnonzero((cosine < 0) & (cosine > -_WIDE))
    if len(wide):
        middle = signed[wide] + signed[wide + 1]
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        times = np.insert(keys.times, wide + 1, (keys.times[wide] + keys.times[wide + 1]) / 2)
        return Keys(times, np.insert(signed, wide + 1, middle, axis=0))
    return Keys(keys.times, signed)


def position_keys(document: SecondLifeAnimation, joint: JointKeys) -> Keys:
    """Return the positions of a joint in metres."""
    values = joint.position[:, 1:]
    if document.has_codes:
        return _sorted(document, joint.position, codes.decode_values(values, is_rotation=False))
    return _sorted(document, joint.position, np.clip(values.astype(np.float64), -codes.FARTHEST, codes.FARTHEST))


def _sorted(document: SecondLifeAnimation, keys: AnyArray, values: Floats) -> Keys:
    """Sort keys by time; of several at one time the last one counts."""
    if document.has_codes:
        times = codes.times_of(keys[:, 0], document.duration)
    else:
        times = np.clip(keys[:, 0].astype(np.float64), -_FARTHEST_TIME, _FARTHEST_TIME)
    order = np.argsort(times, kind="stable")
    kept = order[np.append(np.diff(times[order]) > 0, True)[: len(order)]]
    return Keys(times[kept], values[kept])
