"""Keys of a file in physical units: sorted, without doubled times (animation format page, section 2.3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.scene import AnyArray, Keys
from ...geometry.quaternions import continuous
from . import codes
from .document import JointKeys, SecondLifeAnimation

Floats = npt.NDArray[np.float64]


def precision(duration: float) -> float:
    """Return the time by which a viewer's own encoding moves a key: two codes, in seconds."""
    return 2 * duration / codes.MOST


def snapped(keys: Keys, fps: float, step: float) -> Keys:
    """Return keys with times moved to the nearest frame if it is not farther than ``step`` seconds."""
    whole = np.rint(keys.times * fps) / fps
    return Keys(np.where(np.abs(whole - keys.times) <= step, whole, keys.times), keys.values)


def rotation_keys(document: SecondLifeAnimation, joint: JointKeys) -> Keys:
    """Return the rotations of a joint as unit quaternions (w, x, y, z), each with the sign nearest to the one before.

    Where signs differ in the file, viewers turn at a constant speed instead of linearly: up to 8° in the middle.
    """
    values = joint.rotation[:, 1:]
    rotations = codes.rotations_of(values) if document.has_codes else codes.euler_rotations(values)
    keys = _sorted(document, joint.rotation, rotations)
    return Keys(keys.times, continuous(keys.values))


def position_keys(document: SecondLifeAnimation, joint: JointKeys) -> Keys:
    """Return the positions of a joint in metres."""
    values = joint.position[:, 1:]
    if document.has_codes:
        return _sorted(document, joint.position, codes.values_of(values, codes.FARTHEST).astype(np.float64))
    return _sorted(document, joint.position, np.clip(values.astype(np.float64), -codes.FARTHEST, codes.FARTHEST))


def _sorted(document: SecondLifeAnimation, keys: AnyArray, values: Floats) -> Keys:
    """Sort keys by time; of several at one time the last one counts."""
    times = codes.times_of(keys[:, 0], document.duration) if document.has_codes else keys[:, 0].astype(np.float64)
    order = np.argsort(times, kind="stable")
    kept = order[np.append(np.diff(times[order]) > 0, True)[: len(order)]]
    return Keys(times[kept], values[kept])
