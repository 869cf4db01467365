"""Frames of animations: delta frames (section 5, an10) and frames that omit default values (section 8.2).

A layout states the size in bytes of the value for each bit. Records are stored one after the other, without padding.
The values of one bit are read or written for all records at once.

Both consist of records, frame by frame and bone by bone: a byte of flags and the values for the bits that are set.
Decoding gathers each channel of all records at once; encoding scatters them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError, FormatError
from ..core.scene import AnyArray, FloatArray
from ..encodings.byte_reader import ByteStream
from ..encodings.records import record_starts
from . import values as unigine_values

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.intp]


class RecordLayout:
    """Size of the value for each bit of a flag byte, in the order of the bits.

    Parameters
    ----------
    sizes:
        Number of bytes of the values for bit 0, bit 1, and so on. Higher bits must not be set.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        flags = np.arange(256)
        self.size_of: Offsets = np.ones(256, np.intp)
        """(256,) size of a record for each flag byte."""
        self._before = np.empty((len(sizes), 256), np.intp)
        for bit, size in enumerate(sizes):
            self._before[bit] = self.size_of
            self.size_of[flags >> bit & 1 == 1] += size

    @property
    def known_bits(self) -> int:
        return (1 << len(self.sizes)) - 1

    def offsets(self, bit: int, starts: Offsets, flags: Bytes) -> Offsets:
        """Return the byte offset of the value for a flag bit in each record, if the bit is set.

        ``starts`` are the offsets of the records, and ``flags`` their flag bytes; all have the same shape.
        """
        return np.asarray(starts + self._before[bit][flags])

    def gather(self, data: Bytes, offsets: Offsets, bit: int, dtype: str) -> AnyArray:
        """Read the values for one flag bit at byte offsets of any shape (…).

        The result has shape (…, k), where k is the number of ``dtype`` items in one value of the channel.
        """
        width = self.sizes[bit] // np.dtype(dtype).itemsize
        if not offsets.size:
            return np.empty((*offsets.shape, width), dtype)
        taken = _windows(data, self.sizes[bit])[offsets]
        return taken.view(dtype).reshape(*offsets.shape, width)

    def pack(self, flags: Bytes, values: Sequence[AnyArray]) -> bytes:
        """Encode records with flag bytes (…).

        ``values`` has one array (…, k) for each bit; only values whose bit is set are stored.
        """
        flat = np.ascontiguousarray(flags, np.uint8).reshape(-1)
        ends = np.cumsum(self.size_of[flat])
        starts = ends - self.size_of[flat]
        packed = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        packed[starts] = flat
        for bit, (size, array) in enumerate(zip(self.sizes, values, strict=True)):
            records = np.flatnonzero(flat >> bit & 1)
            if len(records):
                rows = np.ascontiguousarray(array.reshape(len(flat), -1)[records])
                offsets = self.offsets(bit, starts[records], flat[records])
                _windows(packed, size)[offsets] = rows.view(f"V{size}")[:, 0]
        return packed.tobytes()


def _windows(data: Bytes, size: int) -> AnyArray:
    """Return a view whose element i consists of the ``size`` bytes from byte i on, without alignment."""
    return np.ndarray((len(data) - size + 1,), f"V{size}", buffer=data, strides=(1,))


def hold_offsets(offsets: Offsets, flagged: npt.NDArray[np.bool_]) -> Offsets:
    """Replace the offsets (F, n) of unflagged records by the last flagged offset of an earlier frame.

    Offsets ascend with the frames, so this is a running maximum. The first frame must be flagged.
    """
    if flagged.all():
        return offsets
    return np.asarray(np.maximum.accumulate(np.where(flagged, offsets, 0), axis=0))


@dataclass
class DeltaFrames:
    """Frames in which an unflagged channel keeps its value of the previous frame.

    There are F frames of n bones. In the arrays, unflagged values are already filled in.
    """

    bone_indices: AnyArray
    """(n,) int16 indices of the animated bones in the bone table."""
    mask: int
    """Animated channels: bits 0 to 2 translation x, y, z, bit 3 rotation, bits 4 to 6 scale x, y, z."""
    flags: AnyArray
    """(F, n) uint8 as stored."""
    translation: AnyArray
    """(F, n, 3) float32; an10: uint16, quantised within ``translation_range``. 0 for channels outside the mask."""
    rotation: AnyArray
    """(F, n, 4) int16 x, y, z, w / 32767; (0, 0, 0, 32767) for channels outside the mask."""
    scale: AnyArray
    """(F, n, 3) float32; an10: uint16, quantised within ``scale_range``. 1 (an10: 0) for channels outside the mask."""
    translation_range: FloatArray | None = None
    """an10: (2, 3) float32, minimum and range: value = minimum + u * range / 65535."""
    scale_range: FloatArray | None = None
    """an10: (2, 3) float32, minimum and range of the scale, used like ``translation_range``."""

    @property
    def frame_count(self) -> int:
        return len(self.flags)


@dataclass
class FlaggedFrames:
    """Frames in which an unflagged component has its default: translation 0, identity rotation, scale 1."""

    bone_indices: AnyArray
    """(n,) int16 indices of the animated bones in the bone table."""
    flags: AnyArray
    """(F, n) uint8 as stored: bit 0 translation, bit 1 rotation, bit 2 scale."""
    translation: FloatArray
    """(F, n, 3) float32."""
    rotation: FloatArray
    """(F, n, 4) float32, x, y, z, w."""
    scale: FloatArray
    """(F, n, 3) float32."""

    @property
    def frame_count(self) -> int:
        return len(self.flags)


_DELTA = RecordLayout((4, 4, 4, 8, 4, 4, 4))
_QUANTIZED = RecordLayout((2, 2, 2, 8, 2, 2, 2))
_FLAGGED = RecordLayout((12, 16, 12))

TRANSLATION_BITS, ROTATION_BIT, SCALE_BITS = (0, 1, 2), 3, (4, 5, 6)
"""Channel bits of delta frames."""
UNIT = 32767
"""Stored value that means 1 in rotation components of delta frames."""

_MOST_EMPTY_FRAMES = 65536
"""Maximum number of frames without bones. Such frames take no bytes, so the file size does not limit a damaged
count."""


def read_embedded_frames(stream: ByteStream, bone_count: int) -> DeltaFrames:
    """Decode the body of an animation embedded in a mesh: index list, channel mask, frames (section 5).

    Parameters
    ----------
    stream:
        Positioned at the count of animated bones; after the call, behind the last frame.
    bone_count:
        Number of bones in the file's table.

    Raises
    ------
    FormatError
        Bones that do not exist, an unknown channel, a first frame without exactly the channels of the mask, NaN or
        infinite values, or the end of the file.
    """
    return _read_delta(stream, read_bone_indices(stream, bone_count), _DELTA)


def write_embedded_frames(frames: DeltaFrames) -> bytes:
    """Encode the body of an embedded animation for ``read_embedded_frames``."""
    return encode_bone_indices(frames.bone_indices) + _encode_delta(frames, _DELTA)


def read_quantized_frames(stream: ByteStream, bone_count: int) -> DeltaFrames:
    """Decode the body of an an10 animation (section 8.1); raises like ``read_embedded_frames``."""
    indices = read_bone_indices(stream, bone_count)
    ranges: FloatArray = stream.array(np.float32, (2, 2, 3), "the ranges of translation and scale").copy()
    frames = _read_delta(stream, indices, _QUANTIZED)
    frames.translation_range, frames.scale_range = ranges[0], ranges[1]
    for bits, pair, what in ((TRANSLATION_BITS, ranges[0], "translation"), (SCALE_BITS, ranges[1], "scale")):
        animated = [axis for axis, bit in enumerate(bits) if frames.mask >> bit & 1]
        with np.errstate(over="ignore", invalid="ignore"):
            whole = np.isfinite(pair).all(axis=0) & np.isfinite(pair[0] + pair[1])
        if not whole[animated].all():
            raise stream.error("The range of the {} is NaN or infinite", what)
    return frames


def write_quantized_frames(frames: DeltaFrames) -> bytes:
    """Encode the body of an an10 animation for ``read_quantized_frames``."""
    if frames.translation_range is None or frames.scale_range is None:
        raise ExportError("Frames without ranges cannot be written as an10")
    ranges = np.stack((frames.translation_range, frames.scale_range)).astype("<f4")
    return encode_bone_indices(frames.bone_indices) + ranges.tobytes() + _encode_delta(frames, _QUANTIZED)


def read_bone_indices(stream: ByteStream, bone_count: int) -> AnyArray:
    """Read the list of animated bones: a count and (n,) int16 below ``bone_count``."""
    count = unigine_values.read_count(stream, "animated bones", size=2)
    start = stream.position
    indices = stream.array(np.int16, count, "the list of animated bones").copy()
    wrong = np.flatnonzero((indices < 0) | (indices >= bone_count))
    if len(wrong):
        template = "The file animates bone {}, but it has {:,} bones, counted from 0"
        raise stream.error(template, indices[wrong[0]], bone_count, offset=start + 2 * int(wrong[0]))
    return indices


def encode_bone_indices(indices: AnyArray) -> bytes:
    """Encode the list of animated bones for ``read_bone_indices``."""
    return unigine_values.encode_integer(len(indices)) + np.ascontiguousarray(indices, "<i2").tobytes()


def read_flagged_frames(stream: ByteStream, indices: AnyArray) -> FlaggedFrames:
    """Decode a frame count and frames that omit default values (section 8.2).

    Parameters
    ----------
    indices:
        (n,) int16, the animated bones.

    Raises
    ------
    FormatError
        An unknown flag, NaN or infinite values, or the end of the file.
    """
    data, starts, flags = _read_records(stream, len(indices), _FLAGGED)
    values = []
    for bit, default in enumerate(((0, 0, 0), (0, 0, 0, 1), (1, 1, 1))):
        flagged = (flags >> bit & 1).astype(bool)
        offsets = _FLAGGED.offsets(bit, starts, flags)
        if flagged.all():
            channel = _FLAGGED.gather(data, offsets, bit, "<f4")
        else:
            channel = np.empty((*flags.shape, len(default)), np.float32)
            channel[:] = default
            channel[flagged] = _FLAGGED.gather(data, offsets[flagged], bit, "<f4")
        _check_finite(stream, channel, ("translation", "rotation", "scale")[bit])
        values.append(channel)
    return FlaggedFrames(indices, flags, *values)


def encode_flagged_frames(frames: FlaggedFrames) -> bytes:
    """Encode frame count and frames for ``read_flagged_frames``."""
    values = [np.ascontiguousarray(channel, "<f4") for channel in (frames.translation, frames.rotation, frames.scale)]
    return unigine_values.encode_integer(frames.frame_count) + _FLAGGED.pack(frames.flags, values)


def _read_records(stream: ByteStream, bone_count: int, layout: RecordLayout) -> tuple[Bytes, Offsets, Bytes]:
    """Read a frame count and find the records of F frames of n bones.

    Return the bytes from the first record on, and the offsets (F, n) and flags (F, n) of the records.
    """
    # Each record has at least one byte, so the data limits the count. Without records, this limit is used.
    most = unigine_values.LARGEST_INTEGER if bone_count else _MOST_EMPTY_FRAMES
    frame_count = unigine_values.read_count(stream, "frames", size=bone_count, most=most)
    data = stream.rest()
    try:
        found, end = record_starts(data, frame_count * bone_count, layout.size_of, what="bones of all frames")
    except FormatError as problem:
        raise stream.error(problem.message, offset=stream.position + (problem.offset or 0)) from None
    starts = found.reshape(frame_count, bone_count)
    flags = data[starts]
    unknown = np.argwhere(flags & ~np.uint8(layout.known_bits))
    if len(unknown):
        frame, bone = unknown[0].tolist()
        template, flag = "Frame {}, animated bone {}: unknown channels, flags {:#04x}", int(flags[frame, bone])
        raise stream.error(template, frame, bone, flag, offset=stream.position + int(starts[frame, bone]))
    stream.skip(end, "the frames")
    return data, starts, flags


def _read_delta(stream: ByteStream, indices: AnyArray, layout: RecordLayout) -> DeltaFrames:
    """Read mask, frame count and frames in which unflagged channels keep their values."""
    mask = stream.u8("the channel mask")
    if mask & ~layout.known_bits:
        raise stream.error("Unknown channels are animated: mask {:#04x}", mask, offset=stream.position - 1)
    data, starts, flags = _read_records(stream, len(indices), layout)
    _check_mask(stream, flags, mask)
    step = "<u2" if layout is _QUANTIZED else "<f4"
    shape = flags.shape

    def channel(bit: int, kind: str) -> AnyArray:
        flagged = (flags >> bit & 1).astype(bool)
        return layout.gather(data, hold_offsets(layout.offsets(bit, starts, flags), flagged), bit, kind)

    def vectors(bits: tuple[int, ...], default: int, what: str) -> AnyArray:
        values = np.full((*shape, 3), default, step)
        for axis, bit in enumerate(bits):
            if mask >> bit & 1:
                values[..., axis] = channel(bit, step)[..., 0]
        if step == "<f4":
            _check_finite(stream, values, what)
        return values

    if mask >> ROTATION_BIT & 1:
        rotation = channel(ROTATION_BIT, "<i2")
    else:
        rotation = np.zeros((*shape, 4), "<i2")
        rotation[..., 3] = UNIT
    translation = vectors(TRANSLATION_BITS, 0, "translation")
    scale = vectors(SCALE_BITS, 1 if step == "<f4" else 0, "scale")
    return DeltaFrames(indices, mask, flags, translation, rotation, scale)


def _check_mask(stream: ByteStream, flags: Bytes, mask: int) -> None:
    """Raise FormatError if the first frame lacks an animated channel, or a frame has channels that are not animated."""
    if not flags.size:
        return
    first = np.flatnonzero(flags[0] != mask)
    if len(first):
        template = "The first frame must hold all animated channels (mask {:#04x}), but its bone {} has {:#04x}"
        raise stream.error(template, mask, int(first[0]), int(flags[0, first[0]]))
    if (flags & ~np.uint8(mask)).any():
        raise stream.error("A frame holds channels that the mask {:#04x} does not animate", mask)


def _check_finite(stream: ByteStream, values: AnyArray, what: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        frame, bone = np.argwhere(~finite.all(axis=-1))[0].tolist()
        raise stream.error("Frame {}, animated bone {}: its {} is NaN or infinite", frame, bone, what)


def _encode_delta(frames: DeltaFrames, layout: RecordLayout) -> bytes:
    """Encode mask, frame count and frames."""
    step = "<u2" if layout is _QUANTIZED else "<f4"
    translation, scale = np.ascontiguousarray(frames.translation, step), np.ascontiguousarray(frames.scale, step)
    rotation = np.ascontiguousarray(frames.rotation, "<i2")
    values = [*(translation[..., axis] for axis in range(3)), rotation, *(scale[..., axis] for axis in range(3))]
    head = bytes((frames.mask,)) + unigine_values.encode_integer(frames.frame_count)
    return head + layout.pack(frames.flags, values)
