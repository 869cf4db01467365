"""Records of a flag byte, followed by a value for each set bit: the frames of every animation (sections 5 and 8).

A layout states the size in bytes of the value for each bit. Records are stored one after the other, without padding.
The values of one bit are read or written for all records at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..core.scene import AnyArray

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
