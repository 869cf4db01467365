"""Frames of the files <-> tracks of a scene's joints (sections 5, 8.1 and 8.2).

Both hold the same values, relative to the parent. Only the order of rotation components differs, and rotations of files
are normalised (16-bit rotations are never exactly of unit length).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError
from ..core.messages import Named, Report, Text, of_kind
from ..core.scene import AnyArray, Clip, FloatArray, Joint, Skeleton, TransformTrack
from .bones import from_skeleton
from .frames import ROTATION_BIT, SCALE_BITS, TRANSLATION_BITS, UNIT, DeltaFrames, FlaggedFrames

DEFAULT_TOLERANCE = 1e-6
"""Values closer than this to the default (translation 0, identity rotation, scale 1) are not stored, as in the engine.
Of the 18,000 stored values in real files, the closest differs by 1.01e-6."""
SCALE_NOISE = 1e-5
"""Tolerance for scale 1; delta frames do not store smaller deviations. The engine's tolerance is 1e-6, but scales from
Blender's float32 matrices deviate by more through rounding, so that nearly every animation would store them."""

_XYZW = (1, 2, 3, 0)
_WXYZ = (3, 0, 1, 2)
_UNIT_NOISE = 5e-7
"""Tolerance for the squared length of unit quaternions in float32. In real an11 files the deviation is at most 2e-7."""
_ODD_LENGTH = 1e-2
_SNAP = 1 / 64
"""Tolerance in quantisation steps: a value this little below an integer is rounded up instead of truncated, since
dequantised 16-bit values are inexact in float32."""
_EMPTY_RANGE = (1e9, -2e9)
_HIGHEST = 65535


def to_tracks(
    frames: DeltaFrames | FlaggedFrames, joints: Sequence[Joint], *, report: Report | None = None
) -> list[TransformTrack]:
    """Map the frames of a file to tracks, one for each animated bone in the file's order.

    Parameters
    ----------
    joints:
        The joints of the file's bone table.
    report:
        Receives warnings: bones listed twice (the first is used), rotations far from unit length.

    Returns
    -------
    tracks:
        With ``frames.frame_count`` frames; each array is (F, k) float32 and contiguous.
    """
    report = report or Report()
    indices = frames.bone_indices.tolist()
    rotation, odd = _unit(_dequantized(frames.rotation))
    bent = of_kind("bone", (joints[indices[place]].name for place in np.flatnonzero(odd).tolist()))
    text = "{} not of unit length, normalised: {}"
    report.change_of("not-unit-rotation", text, bent, "animated bone has rotations", "animated bones have rotations")
    translation, rotation, scale = (
        _by_bone(values) for values in (translations(frames), rotation[..., _WXYZ], scales(frames))
    )
    tracks: dict[int, TransformTrack] = {}
    twice: list[str] = []
    for place, joint in enumerate(indices):
        if joint in tracks:
            twice.append(joints[joint].name)
        else:
            tracks[joint] = TransformTrack(joint, translation[place], rotation[place], scale[place], 0)
    template = "{} animated twice in the file; the first animation is used: {}"
    report.loss_of("bone-animated-twice", template, of_kind("bone", twice), "bone is", "bones are")
    return list(tracks.values())


def translations(frames: DeltaFrames | FlaggedFrames) -> FloatArray:
    """Return the translations (F, n, 3) float32, in metres."""
    if isinstance(frames, DeltaFrames) and frames.translation_range is not None:
        return _from_range(frames.translation, frames.translation_range, frames.mask, TRANSLATION_BITS, 0.0)
    return frames.translation.astype(np.float32, copy=False)


def scales(frames: DeltaFrames | FlaggedFrames) -> FloatArray:
    """Return the scales (F, n, 3) float32."""
    if isinstance(frames, DeltaFrames) and frames.scale_range is not None:
        return _from_range(frames.scale, frames.scale_range, frames.mask, SCALE_BITS, 1.0)
    return frames.scale.astype(np.float32, copy=False)


def _from_range(
    values: AnyArray, minimum_and_range: FloatArray, mask: int, bits: Sequence[int], default: float
) -> FloatArray:
    """Dequantise an10 values: minimum + u * range / 65535, and the default for channels that are not animated."""
    whole = np.full(values.shape, default, np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # the importer reports NaN and infinite values itself
        low, width = minimum_and_range.astype(np.float64)
        for axis, bit in enumerate(bits):
            if mask >> bit & 1:
                whole[..., axis] = low[axis] + values[..., axis].astype(np.float64) * (width[axis] / _HIGHEST)
    return whole


def _dequantized(rotation: AnyArray) -> FloatArray:
    """Convert rotations to float32 without normalising them."""
    if rotation.dtype == np.float32:
        return rotation
    return np.asarray(rotation / np.float32(UNIT))


def _unit(rotation: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Normalise rotations (F, n, 4; w last); return them and a mask (n,) of bones with lengths far from 1.

    Unit rotations keep their exact values. Rotations of length zero become the identity.
    """
    squares = np.einsum("...i,...i->...", rotation, rotation, dtype=np.float64)
    near = np.abs(squares - 1) <= _UNIT_NOISE
    if near.all():
        return rotation, np.zeros(rotation.shape[1], bool)
    lengths = np.sqrt(squares)
    nothing = ~((lengths > 1e-12) & np.isfinite(lengths))
    factors = 1 / np.where(near | nothing, 1, lengths)
    unit: FloatArray = (rotation * factors[..., None]).astype(np.float32)
    unit[nothing] = (0, 0, 0, 1)
    odd = nothing | (np.abs(lengths - 1) > _ODD_LENGTH)
    return unit, np.asarray(odd.any(axis=0))


def _by_bone(values: FloatArray) -> FloatArray:
    """Return (F, n, k) as (n, F, k), so that each bone's values are contiguous."""
    return np.ascontiguousarray(np.moveaxis(values, 1, 0), np.float32)


# -- tracks -> frames -----------------------------------------------------------------------------


@dataclass
class _Samples:
    """All tracks of a clip: bones (n,), translation (F, n, 3), rotation (F, n, 4; w last), scale (F, n, 3)."""

    bones: AnyArray
    translation: FloatArray
    rotation: FloatArray
    scale: FloatArray


def flagged_frames(clip: Clip, skeleton: Skeleton) -> FlaggedFrames:
    """Map the joint tracks of a clip to frames of an11 and later, which omit default values.

    Bones are listed in the order of the tracks.

    Raises
    ------
    ExportError
        NaN or infinite values, tracks with another length than the clip or without a joint, or two tracks of one joint.
    """
    samples = _samples(clip, skeleton)
    flags = np.zeros(samples.translation.shape[:2], np.uint8)
    channels = []
    for bit, (values, default) in enumerate(
        ((samples.translation, (0, 0, 0)), (samples.rotation, (0, 0, 0, 1)), (samples.scale, (1, 1, 1)))
    ):
        row = np.array(default, np.float32)
        moved = (np.abs(values - row) > DEFAULT_TOLERANCE).any(axis=-1)
        flags |= moved.astype(np.uint8) << bit
        channels.append(np.where(moved[..., None], values, row))
    return FlaggedFrames(samples.bones, flags, *channels)


def report_playback(clip: Clip, version: str, report: Report) -> None:
    """Report the frame rate and root motion of a clip for a version that stores neither."""
    if clip.has_own_rate:
        template = "Animation '{}' has {:g} frames a second, which {} cannot store; an13 can"
        report.loss("frame-rate-left-out", template, Named("animation", clip.name), clip.fps, version)
    if clip.root_motion:
        template = "Animation '{}' has root motion, which {} cannot store; an13 can"
        report.loss("root-motion-left-out", template, Named("animation", clip.name), version)


def delta_frames(clip: Clip, skeleton: Skeleton) -> DeltaFrames:
    """Map the joint tracks of a clip to delta frames, for an animation embedded in a mesh.

    The mask includes translation, rotation or scale if it differs from the default for any animated bone, in the
    animation or at rest. Channels outside the mask must have the default in both, since it is not known which of the
    two an engine uses. Raises like ``flagged_frames``.
    """
    samples = _samples(clip, skeleton)
    rotation = _truncated(samples.rotation.astype(np.float64) * UNIT).astype(np.int16)
    mask = _mask(samples, rotation, skeleton)
    translation, scale = samples.translation, samples.scale
    if not mask >> TRANSLATION_BITS[0] & 1:
        translation = np.zeros_like(translation)
    if not mask >> SCALE_BITS[0] & 1:
        scale = np.ones_like(scale)
    if not mask >> ROTATION_BIT & 1:
        rotation = np.zeros_like(rotation)
        rotation[..., 3] = UNIT
    flags = _changes(mask, translation, rotation, scale)
    return DeltaFrames(samples.bones, mask, flags, translation, rotation, scale)


def quantized_frames(clip: Clip, skeleton: Skeleton) -> DeltaFrames:
    """Map the joint tracks of a clip to frames of an10: like ``delta_frames``, quantised to 16 bits."""
    exact = delta_frames(clip, skeleton)
    translation, translation_range = _to_range(exact.translation, bool(exact.mask >> TRANSLATION_BITS[0] & 1))
    scale, scale_range = _to_range(exact.scale, bool(exact.mask >> SCALE_BITS[0] & 1))
    flags = _changes(exact.mask, translation, exact.rotation, scale)
    return DeltaFrames(
        exact.bone_indices, exact.mask, flags, translation, exact.rotation, scale, translation_range, scale_range
    )


def _samples(clip: Clip, skeleton: Skeleton) -> _Samples:
    """Combine the joint tracks of a clip into arrays."""
    tracks = [track for track in clip.transforms if track.skeleton is not None]
    title = Named("animation", clip.name)
    seen: set[int] = set()
    for track in tracks:
        if not 0 <= track.target < len(skeleton.joints):
            raise ExportError("Animation '{}' moves bone {}, which '{}' lacks", title, track.target, skeleton.name)
        name = Named("bone", skeleton.joints[track.target].name)
        if track.target in seen:
            raise ExportError("Animation '{}' moves bone '{}' twice", title, name)
        seen.add(track.target)
        for values in (track.translation, track.rotation, track.scale):
            if len(values) != clip.frame_count:
                message = Text("{:,} frames instead of {:,}", len(values), clip.frame_count)
                raise ExportError("Animation '{}', bone '{}': {}", title, name, message)
            if not np.isfinite(values).all():
                raise ExportError("Animation '{}', bone '{}': some frames hold NaN or infinite values", title, name)

    def side_by_side(arrays: list[FloatArray], width: int) -> FloatArray:
        if not arrays:
            return np.empty((clip.frame_count, 0, width), np.float32)
        return np.stack(arrays, axis=1).astype(np.float32, copy=False)

    rotation = side_by_side([track.rotation for track in tracks], 4)[..., _XYZW]
    return _Samples(
        np.array([track.target for track in tracks], np.int16),
        side_by_side([track.translation for track in tracks], 3),
        _unit(rotation)[0],
        side_by_side([track.scale for track in tracks], 3),
    )


def _mask(samples: _Samples, rotation: AnyArray, skeleton: Skeleton) -> int:
    """Return the mask of the channels in use; translation and scale are included with all three axes or not at all."""
    rest = from_skeleton(skeleton)[1][samples.bones]
    translations = (samples.translation, rest[:, :3])
    rotations = (rotation, _truncated(rest[:, 3:7].astype(np.float64) * UNIT))
    scales = (samples.scale, rest[:, 7:])
    mask = 0
    if any((np.abs(values) > DEFAULT_TOLERANCE).any() for values in translations):
        mask |= sum(1 << bit for bit in TRANSLATION_BITS)
    # A rotation with w = -1 is the identity too.
    if any(values[..., :3].any() for values in rotations):
        mask |= 1 << ROTATION_BIT
    if any((np.abs(values - 1) > SCALE_NOISE).any() for values in scales):
        mask |= sum(1 << bit for bit in SCALE_BITS)
    return mask


def _changes(mask: int, translation: AnyArray, rotation: AnyArray, scale: AnyArray) -> AnyArray:
    """Return the flags (F, n): the mask in the first frame, then the channels that differ from the previous frame."""
    flags = np.zeros(rotation.shape[:2], np.uint8)
    flags[:1] = mask
    for bits, values in ((TRANSLATION_BITS, translation), (SCALE_BITS, scale)):
        for axis, bit in enumerate(bits):
            changed = values[1:, :, axis] != values[:-1, :, axis]
            flags[1:] |= changed.astype(np.uint8) << bit
    turned = (rotation[1:] != rotation[:-1]).any(axis=-1)
    flags[1:] |= turned.astype(np.uint8) << ROTATION_BIT
    flags &= mask
    return flags


def _to_range(values: FloatArray, animated: bool) -> tuple[AnyArray, FloatArray]:
    """Quantise (F, n, 3) to 16 bits within the range of each axis.

    As in the engine, the range is increased by 1 and values are truncated.
    """
    rounded = np.zeros(values.shape, np.uint16)
    pair = np.empty((2, 3), np.float32)
    pair[:] = np.reshape(_EMPTY_RANGE, (2, 1))
    if animated and values.size:
        for axis in range(3):
            column = values[..., axis]
            low = column.min()
            with np.errstate(over="ignore"):
                width = np.float32(column.max() - low) + np.float32(1)
            if not np.isfinite(width):
                raise ExportError("Bones move too far for an10, whose range is a 32-bit number; choose an11")
            pair[:, axis] = low, width
            steps = (column.astype(np.float64) - low) * (_HIGHEST / np.float64(width))
            rounded[..., axis] = _truncated(steps)
    return rounded, pair


def _truncated(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Truncate toward zero, except that values just below an integer are rounded up to it."""
    nearest = np.rint(values)
    return np.where(np.abs(values - nearest) <= _SNAP, nearest, np.trunc(values))
