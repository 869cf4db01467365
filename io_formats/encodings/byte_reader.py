"""A cursor over bytes that never reads past their end; arrays are views without a copy.

All data is little-endian and unpadded. Arrays may be unaligned: NumPy can compute with them, but reductions are several
times slower than over an aligned copy.
"""

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.errors import FormatError
from ..core.messages import Report, Text

_SCALARS = {
    name: struct.Struct("<" + code) for name, code in zip(("u8", "u16", "i16", "i32", "i64"), "BHhiq", strict=True)
}


class ByteStream:
    """Read one value after the other.

    Parameters
    ----------
    data:
        The bytes; they must not be modified while views of them are in use.
    item:
        The owner of the bytes, e.g. ``surface 'Roof'``, for errors. May be changed while reading.
    """

    def __init__(self, data: bytes | bytearray | memoryview, *, item: str = "") -> None:
        self.data = memoryview(data).cast("B").toreadonly()
        self.position = 0
        self.item = item
        self.report = Report()
        """Unusual content that the reader found, for the warnings of the document."""

    @property
    def remaining(self) -> int:
        """Number of bytes that are left."""
        return len(self.data) - self.position

    def error(self, template: str, *values: object, offset: int | None = None) -> FormatError:
        """Return an error with the item and the offset (by default the current one), to be raised."""
        return FormatError(template, *values, offset=self.position if offset is None else offset, item=self.item)

    def require(self, size: int, what: str) -> None:
        """Raise FormatError if fewer than ``size`` bytes are left, before memory is allocated for them."""
        if size < 0 or size > len(self.data):
            raise self.error(
                "The file is cut off or damaged: {:,} bytes expected for {}, {:,} left",
                size,
                Text(what),
                self.remaining,
            )
        if size > self.remaining:
            raise self.error("The file is cut off or damaged: it ends within {}", Text(what))

    def skip(self, size: int, what: str) -> int:
        """Skip ``size`` bytes; return the position before them."""
        self.require(size, what)
        start = self.position
        self.position += size
        return start

    def take(self, size: int, what: str) -> memoryview:
        """Return the next ``size`` bytes as a view."""
        start = self.skip(size, what)
        return self.data[start : start + size]

    def _scalar(self, kind: str, what: str) -> int:
        unpacker = _SCALARS[kind]
        start = self.skip(unpacker.size, what)
        value: int = unpacker.unpack_from(self.data, start)[0]
        return value

    def u8(self, what: str) -> int:
        return self._scalar("u8", what)

    def u16(self, what: str) -> int:
        return self._scalar("u16", what)

    def i16(self, what: str) -> int:
        return self._scalar("i16", what)

    def i32(self, what: str) -> int:
        return self._scalar("i32", what)

    def i64(self, what: str) -> int:
        return self._scalar("i64", what)

    def array(self, dtype: npt.DTypeLike, shape: int | tuple[int, ...], what: str) -> npt.NDArray[Any]:
        """Return the next values as a read-only view of the bytes, possibly unaligned."""
        kind = np.dtype(dtype).newbyteorder("<")
        shape = (shape,) if isinstance(shape, int) else shape
        count = 1
        for length in shape:
            count *= length
        if count < 0:
            raise self.error("The file is damaged: {} has a negative number of values", Text(what))
        start = self.skip(count * kind.itemsize, what)
        if not count:  # NumPy rejects an empty view at the end of a buffer
            return np.empty(shape, kind)
        return np.frombuffer(self.data, kind, count, start).reshape(shape)

    def rest(self) -> npt.NDArray[np.uint8]:
        """Return all bytes from the current position to the end, (remaining,) uint8, without moving the position."""
        return np.frombuffer(self.data[self.position :], np.uint8) if self.remaining else np.empty(0, np.uint8)

    def expect(self, wanted: bytes, what: str) -> None:
        """Read bytes that must be equal to ``wanted``."""
        start = self.position
        found = bytes(self.take(len(wanted), what))
        if found != wanted:
            raise self.error(
                "The file is damaged: {} should be {}, but is {}",
                Text(what),
                _shown(wanted),
                _shown(found),
                offset=start,
            )

    def expect_end(self) -> None:
        """Raise FormatError if there are bytes after the current position."""
        if self.remaining:
            raise self.error("The file is damaged: {:,} bytes follow after its end", self.remaining)


def _shown(data: bytes) -> str:
    return repr(data.decode("ascii")) if data.isascii() and data.decode("ascii").isprintable() else data.hex(" ")
