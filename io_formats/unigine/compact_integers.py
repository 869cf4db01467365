"""Compact integers: sign and magnitude in groups of bits, 6 in the first group and 7 in the others (section 2.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError
from ..core.messages import Text
from ..encodings.byte_reader import ByteStream

LARGEST_INTEGER = 2**31 - 1
_MOST_BYTES = 5
_GROUP_SHIFTS = np.array([0, 6, 13, 20, 27])
_LENGTH_LIMITS = (63, 8191, 1048575, 134217727)
"""Magnitudes from which the engine writes one more byte, although each of them would still fit into the shorter form:
63 has 6 bits."""


def read_integer(stream: ByteStream, what: str) -> int:
    """Decode one compact integer.

    Raises
    ------
    FormatError
        It is cut off, has more than 5 bytes or a magnitude of more than 2^31 - 1.
    """
    start = stream.position
    byte = stream.u8(what)
    magnitude, negative, shift = byte & 63, byte & 64, 6
    while byte & 128:
        if stream.position - start >= _MOST_BYTES:
            raise stream.error(
                "The file is damaged: {} is a number of more than {} bytes", Text(what), _MOST_BYTES, offset=start
            )
        byte = stream.u8(what)
        magnitude |= (byte & 127) << shift
        shift += 7
    if magnitude > LARGEST_INTEGER:
        raise stream.error("The file is damaged: {} is a number beyond {:,}", Text(what), LARGEST_INTEGER, offset=start)
    return -magnitude if negative else magnitude


def read_count(stream: ByteStream, what: str, *, size: int = 0, most: int = LARGEST_INTEGER) -> int:
    """Read a count that is not negative and at most ``most``.

    Each of the counted items has at least ``size`` bytes, so a count is rejected if the remaining data is too short.
    """
    start = stream.position
    count = read_integer(stream, Text("the number of {}", Text(what)))
    if not 0 <= count <= most:
        raise stream.error("The file is damaged: it claims {:,} {}", count, Text(what), offset=start)
    if count * size > stream.remaining:
        raise stream.error(
            "The file is cut off or damaged: it claims {:,} {}, which do not fit into the {:,} bytes left",
            count,
            Text(what),
            stream.remaining,
            offset=start,
        )
    return count


def read_integers(stream: ByteStream, count: int, what: str) -> npt.NDArray[np.int32]:
    """Decode ``count`` consecutive compact integers, (count,) int32."""
    stream.require(count, what)
    if not count:
        return np.empty(0, np.int32)
    start = stream.position
    raw = stream.rest()[: count * _MOST_BYTES]
    ends = np.flatnonzero(raw < 128)[:count] + 1
    if len(ends) < count:
        raise stream.error(
            "The file is cut off or damaged: {:,} of {:,} numbers of {} are whole", len(ends), count, Text(what)
        )
    lengths = np.diff(ends, prepend=0)
    longest = int(lengths.max())
    if longest > _MOST_BYTES:
        raise stream.error(
            "The file is damaged: {} hold a number of more than {} bytes", Text(what), _MOST_BYTES, offset=start
        )
    starts = ends - lengths
    heads = raw[starts]
    values = (heads & 63).astype(np.int64)
    for byte in range(1, longest):
        longer = np.flatnonzero(lengths > byte)
        values[longer] |= (raw[starts[longer] + byte].astype(np.int64) & 127) << int(_GROUP_SHIFTS[byte])
    if int(values.max()) > LARGEST_INTEGER:
        raise stream.error(
            "The file is damaged: {} hold a number beyond {:,}", Text(what), LARGEST_INTEGER, offset=start
        )
    stream.position = start + int(ends[-1])
    np.negative(values, out=values, where=(heads & 64) > 0)
    return values.astype(np.int32)


def encode_integer(value: int) -> bytes:
    """Encode a number with the same bytes as the engine. Faster than :func:`encode_integers` for one number.

    Raises
    ------
    ExportError
        The magnitude is more than 2^31 - 1.
    """
    rest = abs(int(value))
    if rest > LARGEST_INTEGER:
        raise ExportError("A number beyond {:,} cannot be written", LARGEST_INTEGER)
    more = sum(rest >= limit for limit in _LENGTH_LIMITS)
    groups = [rest & 63 | (64 if value < 0 else 0)]
    rest >>= 6
    for _ in range(more):
        groups[-1] |= 128
        groups.append(rest & 127)
        rest >>= 7
    return bytes(groups)


def encode_integers(values: npt.ArrayLike) -> bytes:
    """Encode (n,) integers, one after the other.

    Raises
    ------
    ExportError
        A magnitude is more than 2^31 - 1.
    """
    given = np.asarray(values, np.int64).ravel()
    magnitudes = np.abs(given)
    if len(given) and int(magnitudes.max()) > LARGEST_INTEGER:
        raise ExportError("A number beyond {:,} cannot be written", LARGEST_INTEGER)
    lengths = np.ones(len(given), np.intp)
    for limit in _LENGTH_LIMITS:
        lengths += magnitudes >= limit
    table = np.zeros((len(given), _MOST_BYTES), np.uint8)
    table[:, 0] = (magnitudes & 63) | np.where(given < 0, 64, 0)
    for byte in range(1, _MOST_BYTES):
        table[:, byte] = (magnitudes >> _GROUP_SHIFTS[byte]) & 127
    numbers = np.arange(_MOST_BYTES)
    table[numbers < lengths[:, None] - 1] |= 128
    return table[numbers < lengths[:, None]].tobytes()
