"""Give the keys of joints that a target lacks to the joints below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..core.scene import Joint, Keys, KeyTrack, Skeleton
from ..geometry.transforms import continuous_rotations, rotate, rotation_product
from .sample_keys import values_at

Floats = npt.NDArray[np.float64]

_MOVED = 1e-6
"""Distance in metres below which a joint counts as unmoved by the joints above it."""


def without_missing(
    tracks: Sequence[KeyTrack], skeleton: Skeleton, is_there: Sequence[bool]
) -> tuple[list[KeyTrack], list[str]]:
    """Return tracks of joints that exist, which move as if the missing ones above them existed.

    Parameters
    ----------
    is_there:
        Whether the target has each joint.

    Returns
    -------
    tuple[list[KeyTrack], list[str]]
        The tracks, and the names of the missing joints whose keys went into others.
    """
    by_joint = {track.target: track for track in tracks}
    missing = {joint for joint in by_joint if not is_there[joint]}
    found: list[KeyTrack] = []
    used: dict[int, None] = {}
    for joint in range(len(skeleton.joints)) if missing else ():
        chain = _missing_above(joint, skeleton.joints, is_there) if is_there[joint] else []
        if not missing.isdisjoint(chain):
            used.update((above, None) for above in chain if above in missing)
            by_joint[joint] = _joined([*chain, joint], by_joint, skeleton.joints, tracks[0].skeleton)
    found = [track for joint, track in by_joint.items() if is_there[joint]]
    return found, [skeleton.joints[joint].name for joint in used]


def _missing_above(joint: int, joints: Sequence[Joint], is_there: Sequence[bool]) -> list[int]:
    """Return the missing joints between a joint and the nearest existing one above it, the topmost first."""
    chain = []
    above = joints[joint].parent
    while above >= 0 and not is_there[above]:
        chain.append(above)
        above = joints[above].parent
    return chain[::-1]


def _joined(chain: Sequence[int], tracks: Mapping[int, KeyTrack], joints: Sequence[Joint], skeleton: int) -> KeyTrack:
    """Return the track of the last joint of a chain relative to the parent of the first one."""
    own = [tracks[joint] for joint in chain if joint in tracks]
    times = np.unique(
        np.concatenate([keys.times for track in own for keys in (track.rotation, track.translation) if keys])
    )
    place, rest = np.zeros((len(times), 3)), np.zeros((len(times), 3))
    turn = rest_turn = np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
    for number in chain:
        joint, track = joints[number], tracks.get(number)
        still = np.tile(joint.translation, (len(times), 1))
        rest = rest + rotate(rest_turn, still)
        rest_turn = rotation_product(rest_turn, np.tile(joint.rotation, (len(times), 1)))
        moved = still
        if track is not None and track.translation is not None:
            moved = values_at(track.translation, times) + (still if track.is_offset else 0.0)
        place = place + rotate(turn, moved)
        turned = np.tile(joint.rotation, (len(times), 1))
        if track is not None and track.rotation is not None:
            turned = values_at(track.rotation, times)
        turn = rotation_product(turn, turned)
    last = tracks.get(chain[-1])
    found = KeyTrack(chain[-1], skeleton, rotation=Keys(times, continuous_rotations(turn)))
    if last is not None and last.translation is not None and not last.is_offset:
        found.translation = Keys(times, place)
    elif np.abs(place - rest).max() > _MOVED:
        found.translation, found.is_offset = Keys(times, place - rest), True
    return found
