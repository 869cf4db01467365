"""Keys of joints in physical units: read, kept after an edit, restored, chosen from samples (animation format page).

Curves are split at their worst sample until no sample is off by more than the tolerance plus the rounding of the keys
around it (Ramer, Douglas and Peucker). All segments of several curves are processed at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.scene import AnyArray, Keys, Skeleton
from ...geometry.transforms import Floats, continuous_rotations, inverse_rotations, rotation_product
from ...passes.clips import values_at
from ..avatar import joints
from . import codec
from .codec import JointKeys, SecondLifeAnimation, decode_text
from .motion import AvatarMotion

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
    return 2 * duration / codec.MOST


def frame_rate(document: SecondLifeAnimation) -> float:
    """Return the lowest common frame rate that has a frame at the end and at each key; 0 if there is none.

    Fewer than four different times, as in poses, are not evidence of a rate.
    """
    arrays = [keys[:, 0] for joint in document.joints for keys in (joint.rotation, joint.position)]
    stored = np.unique(np.concatenate([np.empty(0), *arrays]))
    seconds = codec.times_of(stored, document.duration) if document.has_codes else stored
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
    rotations = codec.decode_values(values, is_rotation=True) if document.has_codes else codec.euler_rotations(values)
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
        return _sorted(document, joint.position, codec.decode_values(values, is_rotation=False))
    return _sorted(document, joint.position, np.clip(values.astype(np.float64), -codec.FARTHEST, codec.FARTHEST))


def _sorted(document: SecondLifeAnimation, keys: AnyArray, values: Floats) -> Keys:
    """Sort keys by time; of several at one time the last one counts."""
    if document.has_codes:
        times = codec.times_of(keys[:, 0], document.duration)
    else:
        times = np.clip(keys[:, 0].astype(np.float64), -_FARTHEST_TIME, _FARTHEST_TIME)
    order = np.argsort(times, kind="stable")
    kept = order[np.append(np.diff(times[order]) > 0, True)[: len(order)]]
    return Keys(times[kept], values[kept])


Indices = npt.NDArray[np.intp]

_CURVES_AT_ONCE = 8
"""Number of curves whose samples, at most 1,801 each at 30 frames per second, fit the processor's cache."""


def distances(one: Floats, other: Floats) -> Floats:
    """Return the angles in radians between unit quaternions (…, 4), or the distances between points (…, 3)."""
    difference = one - other
    if difference.shape[-1] == 3:
        return np.asarray(np.linalg.norm(difference, axis=-1))
    # Computed from the chord, since the arc cosine has no precision near 0. Both signs of a quaternion are the same
    # rotation.
    squared = np.einsum("...i,...i->...", difference, difference)
    return np.asarray(4 * np.arcsin(np.sqrt(np.clip(np.minimum(squared, 4 - squared), 0, 4)) / 2))


def significances(exact: Floats, stored: Floats, times: Floats, finest: Floats) -> Floats:
    """Return for each sample, (J, F), the smallest tolerance at which the sample is not needed as a key.

    For a tolerance t, at least ``finest``, the samples with a value above t are kept; the first sample is always kept.
    The sample at which a segment is split does not depend on the tolerance, so one run serves all tolerances.

    Parameters
    ----------
    exact:
        (J, F, k) samples of J curves: unit quaternions, each nearest to the one before it, or points.
    stored:
        (J, F, k) the samples as a reader decodes them; quaternions with w >= 0, since their signs matter to viewers.
    times:
        (F,) times of the samples as a reader decodes them, rising.
    finest:
        (J,) smallest tolerance of each curve, in the unit of :func:`distances`.
    """
    found = np.full(exact.shape[:2], -np.inf)
    for start in range(0, len(exact), _CURVES_AT_ONCE):
        some = slice(start, start + _CURVES_AT_ONCE)
        _split(found[some], exact[some], stored[some], times, finest[some])
    return found


def _split(found: Floats, exact: Floats, stored: Floats, times: Floats, finest: Floats) -> None:
    """Fill the array ``found`` with the results of :func:`significances` for a few curves."""
    curves, frames = found.shape
    if not frames:
        return
    rounding = distances(exact, stored)
    off = (distances(exact, stored[:, :1]) - rounding[:, :1]).max(axis=1)
    found[:, -1] = off
    found[:, 0] = np.inf
    # A segment is a pair of indices into the concatenated samples of all curves.
    rows = np.flatnonzero(off > finest)
    points = (curves * frames, -1)
    samples = _Samples(exact.reshape(points), stored.reshape(points), rounding.reshape(-1), np.tile(times, curves))
    start, end = rows * frames, rows * frames + frames - 1
    _split_segments(found.reshape(-1), samples, (start, end), off[rows], finest[rows])


def needed_between(exact: Floats, stored: Floats, times: Floats, fixed: Indices, tolerance: float) -> Indices:
    """Return the samples of one curve (F, k) to keep as keys, in order: ``fixed`` ones, and those needed between them.

    Before the first and after the last key the value is held. The other parameters are those of ``significances``.
    """
    last = len(exact) - 1
    rounding = distances(exact, stored)
    ends = []
    for end, held, outside in ((0, fixed[0], slice(0, fixed[0])), (last, fixed[-1], slice(fixed[-1] + 1, None))):
        if (distances(exact[outside], stored[held]) - rounding[held]).max(initial=0.0) > tolerance:
            ends.append(end)
    kept = np.union1d(fixed, np.array(ends, np.intp))
    values = np.full(len(exact), -np.inf)
    values[kept] = np.inf
    count = len(kept) - 1
    above, limit = np.full(count, np.inf), np.full(count, tolerance)
    samples = _Samples(exact, stored, rounding, times)
    _split_segments(values, samples, (kept[:-1], kept[1:]), above, limit)
    return np.flatnonzero(values > tolerance)


def _split_segments(
    values: Floats, samples: _Samples, segments: tuple[Indices, Indices], above: Floats, limit: Floats
) -> None:
    """Split segments recursively; set in ``values`` the significance of each sample at which one is split.

    Parameters
    ----------
    segments:
        First and last sample of each segment.
    above:
        Significance of each segment: an upper limit for the samples in it.
    limit:
        Tolerance of each segment.
    """
    start, end = segments
    while True:
        inner = end - start > 1
        start, end, above, limit = start[inner], end[inner], above[inner], limit[inner]
        if not len(start):
            return
        worst, excess = samples.worst(start, end)
        needed = excess > limit
        start, end, worst, limit = start[needed], end[needed], worst[needed], limit[needed]
        above = np.minimum(above[needed], excess[needed])
        values[worst] = above
        start, end = np.concatenate((start, worst)), np.concatenate((worst, end))
        above, limit = np.tile(above, 2), np.tile(limit, 2)


@dataclass
class _Samples:
    """Concatenated samples of several curves."""

    exact: Floats
    stored: Floats
    rounding: Floats
    """Distance between the exact and the stored value of each sample."""
    times: Floats

    def worst(self, start: Indices, end: Indices) -> tuple[Indices, Floats]:
        """Return the sample of each segment that is farthest from the curve between its keys, and that distance.

        The rounding of the keys is subtracted. ``start`` and ``end`` have a sample between them.
        """
        counts = end - start - 1
        first = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) + np.repeat(start + 1 - first, counts)
        begin = np.repeat(self.times[start], counts)
        share = (self.times[place] - begin) / np.repeat(self.times[end] - self.times[start], counts)
        a, b = self.stored[start], self.stored[end]
        between = interpolate(np.repeat(a, counts, axis=0), np.repeat(b, counts, axis=0), share[:, None])
        off = distances(self.exact[place], between)
        most = np.maximum.reduceat(off, first)
        candidates = np.flatnonzero(off == np.repeat(most, counts))
        segment = np.searchsorted(first, candidates, side="right")
        worst = place[candidates[np.unique(segment, return_index=True)[1]]]
        return worst, most - np.maximum(self.rounding[start], self.rounding[end])


def interpolate(a: Floats, b: Floats, share: Floats) -> Floats:
    """Return values (n, k) between keys as a viewer computes them; ``share`` is (n, 1).

    Values are interpolated linearly, and quaternions are normalised. Quaternions of opposite sign turn the short way at
    a constant speed.
    """
    mixed = a + share * (b - a)
    if a.shape[-1] == 4:
        cosine = (a * b).sum(axis=-1)
        turned = np.flatnonzero(cosine < 0)
        if len(turned):
            angle = np.arccos(np.clip(-cosine[turned], 0, 1))[:, None]
            weights = np.sin((1 - share[turned]) * angle), -np.sin(share[turned] * angle)
            mixed[turned] = np.where(angle > 1e-4, weights[0] * a[turned] + weights[1] * b[turned], a[turned])
        mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
    return mixed


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
                rotation=_edited(original, rotation_keys(original, joint), joint.rotation, motion, number, fps),
                position=_edited(original, position_keys(original, joint), joint.position, motion, number, fps),
            )
    return found


def _edited(
    original: SecondLifeAnimation, keys: Keys, rows: AnyArray, motion: AvatarMotion, number: int, fps: float
) -> AnyArray:
    """Return the keys of an edited curve, (n, 4) codes of time and value.

    ``rows`` are the codes of the file's keys. These are kept where the curve still has their values, and keys are added
    where needed. The result is empty if the curve is constant, or if not all keys of the file were sampled.
    """
    none = np.empty((0, 4), np.uint16)
    is_rotation = keys.values.shape[1] == 4
    exact = motion.rotation[number] if is_rotation else motion.position[number]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if len(rows) != len(keys.times) or distances(exact, exact[:1]).max() <= UNCHANGED:
        return none
    shown = snap_to_frames(keys, original, fps)
    at = np.searchsorted(motion.times, shown.times - _SAME_TIME).clip(max=len(exact) - 1)
    sampled = np.column_stack((codec.time_codes_of(motion.times, original.duration), codec.encode_values(exact)))
    sampled[at, 0] = rows[:, 0]
    same = distances(exact[at], shown.values) <= UNCHANGED
    sampled[at[same]] = rows[same]
    is_sampled = np.abs(motion.times[at] - shown.times) <= _SAME_TIME
    if not (is_sampled.all() and same.any() and (np.diff(sampled[:, 0].astype(int)) > 0).all()):
        return none
    stored = codec.decode_values(sampled[:, 1:], is_rotation=is_rotation)
    stored = continuous_rotations(stored) if is_rotation else stored
    times = codec.times_of(sampled[:, 0], original.duration)
    kept = needed_between(exact, stored, times, at[same], UNCHANGED)
    return sampled[kept].astype(np.uint16)


MOST_DEGREES = 0.5
"""Angle up to which a loop counts as closed."""
MOST_MILLIMETRES = 2.0
"""Distance up to which a loop counts as closed."""


@dataclass
class Jump:
    """Difference of one joint between the end of a loop (loop out) and its start (loop in)."""

    joint: str
    degrees: float
    millimetres: float

    @property
    def is_closed(self) -> bool:
        return self.degrees < MOST_DEGREES and self.millimetres < MOST_MILLIMETRES


def loop_jumps(document: SecondLifeAnimation) -> list[Jump]:
    """Return the jump of each joint of a looped animation, the largest first; empty if it does not loop.

    A loop of zero length has no jump.
    """
    loop_in, loop_out = (min(max(time, 0.0), document.duration) for time in (document.loop_in, document.loop_out))
    if not document.loop or loop_in >= loop_out:
        return []
    times = np.array((loop_in, loop_out))

    def ends(keys: Keys) -> tuple[np.ndarray, np.ndarray]:
        start, end = values_at(keys, times)
        return start, end

    found = []
    for joint in document.joints:
        jump = Jump(decode_text(joint.name), 0.0, 0.0)
        if len(joint.rotation):
            jump.degrees = float(np.degrees(distances(*ends(rotation_keys(document, joint)))))
        if len(joint.position):
            jump.millimetres = float(distances(*ends(position_keys(document, joint)))) * 1000
        found.append(jump)
    return sorted(found, key=lambda jump: max(jump.degrees / MOST_DEGREES, jump.millimetres / MOST_MILLIMETRES))[::-1]


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
        imported = snap_to_frames(_product(chain, original), original, fps)
        if distances(values_at(imported, motion.times), rotation[number]).max() <= UNCHANGED:
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
    return values_at(snap_to_frames(rotation_keys(original, joint), original, fps), times)


def _product(chain: Sequence[JointKeys], original: SecondLifeAnimation) -> Keys:
    """Return the combined rotation of a chain of joints, first to last, with keys at the times of all their keys."""
    found = [rotation_keys(original, joint) for joint in chain if len(joint.rotation)]
    found += [position_keys(original, joint) for joint in chain if len(joint.position)]
    times = np.unique(np.concatenate([keys.times for keys in found]))
    return Keys(times, continuous_rotations(_sampled_product(chain, original, times)))


def _sampled_product(chain: Sequence[JointKeys], original: SecondLifeAnimation, times: Floats) -> Floats:
    turn = np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
    for joint in chain:
        if len(joint.rotation):
            turn = rotation_product(turn, values_at(rotation_keys(original, joint), times))
    return turn
