"""Conversion between packed protobuf varints and int32 arrays in a few passes of NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError

_BLOCK = 1 << 18
"""Values for each pass. A block fits the processor's cache, which makes the passes several times faster."""


def decode_varints(packed: bytes) -> npt.NDArray[np.int32]:
    """Decode a run of varints to (n,) int32. Like protobuf, keep the low 32 bits of larger values.

    Raises
    ------
    FormatError
        The last varint is cut off, or one has more than 10 bytes.
    """
    raw = np.frombuffer(packed, np.uint8)
    if not len(raw):
        return np.empty(0, np.int32)
    last = raw < 128
    if not last[-1]:
        raise FormatError("The indices of a mesh are cut off")
    count = int(np.count_nonzero(last))
    if count == len(raw):
        return raw.astype(np.int32)
    values = np.empty(count, np.int32)
    done = 0
    ends = np.flatnonzero(last)
    for first in range(0, count, _BLOCK):
        block_ends = ends[first : first + _BLOCK] + 1
        stop = int(block_ends[-1])
        values[first : first + len(block_ends)] = _decode_block(raw[done:stop], block_ends - done)
        done = stop
    return values


def _decode_block(raw: npt.NDArray[np.uint8], ends: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
    """Decode the varints of ``raw``; ``ends`` are the offsets after each."""
    lengths = np.diff(ends, prepend=0)
    longest = int(lengths.max())
    if longest > 10:
        raise FormatError("The indices of a mesh hold a number of more than 10 bytes")
    starts = ends - lengths
    values = raw[starts].astype(np.uint32)
    values &= 127
    all_longer = int(lengths.min())
    for byte in range(1, min(longest, 5)):
        if byte < all_longer:
            values |= (raw[starts + byte].astype(np.uint32) & 127) << np.uint32(7 * byte)
        else:
            longer = np.flatnonzero(lengths > byte)
            values[longer] |= (raw[starts[longer] + byte].astype(np.uint32) & 127) << np.uint32(7 * byte)
    return values.view(np.int32)


def encode_varints(values: npt.NDArray[np.int32]) -> bytes:
    """Encode (n,) non-negative int32 as packed varints."""
    return b"".join(_encode_block(values[first : first + _BLOCK]) for first in range(0, len(values), _BLOCK))


def _encode_block(values: npt.NDArray[np.int32]) -> bytes:
    unsigned = values.astype(np.uint32)
    highest = int(unsigned.max(initial=0))
    width = max(1, (highest.bit_length() + 6) // 7)
    if width == 1:
        return unsigned.astype(np.uint8).tobytes()
    table = np.empty((len(unsigned), width), np.uint8)
    keep = np.empty((len(unsigned), width), bool)
    for byte in range(width):
        rest = unsigned >> np.uint32(7 * byte)
        more = rest > 127
        table[:, byte] = rest & 127
        table[:, byte] |= more.view(np.uint8) << 7
        keep[:, byte] = rest > 0
    keep[:, 0] = True
    return table[keep].tobytes()
