"""Values of UNIGINE files: compact integers, strings, and texts of XML as the editor writes them (section 2)."""

import re

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
        template = "The file is cut off or damaged: it claims {:,} {}, which do not fit into the {:,} bytes left"
        raise stream.error(template, count, Text(what), stream.remaining, offset=start)
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


LONGEST_STRING = 4096


def read_string(stream: ByteStream, what: str) -> str:
    r"""Read a string whose length is a compact integer.

    Bytes that are not UTF-8 become escapes such as ``\xcf`` in the text.

    Raises
    ------
    FormatError
        The string has no terminating zero, contains a zero, has more than 4,096 bytes, or is cut off.
    """
    start = stream.position
    return _string_content(stream, read_integer(stream, Text("the length of {}", Text(what))), what, start)


def read_long_string(stream: ByteStream, what: str) -> str:
    """Read a string whose length is an i32 (sk10, sn10, an12, an13); otherwise like ``read``."""
    start = stream.position
    return _string_content(stream, stream.i32(Text("the length of {}", Text(what))), what, start)


def _string_content(stream: ByteStream, length: int, what: str, start: int) -> str:
    """Read the bytes of a string that ends with a zero byte, which ``length`` includes."""
    if not 0 <= length <= LONGEST_STRING:
        raise stream.error("The file is damaged: {} would have {:,} bytes", Text(what), length, offset=start)
    if not length:
        return ""
    content = bytes(stream.take(length, what))
    if content.find(0) != length - 1:
        raise stream.error("The file is damaged: {} does not end where its length says", Text(what), offset=start)
    try:
        return content[:-1].decode("utf-8")
    except UnicodeDecodeError:
        text = content[:-1].decode("utf-8", "backslashreplace")
        stream.report.change("not-utf-8", "{} is not UTF-8; it became '{}'", Text(what).capitalized(), text)
        return text


def encode_string(text: str) -> bytes:
    """Encode a string with its length as a compact integer.

    Raises
    ------
    ExportError
        The text contains a zero character, or is longer than :func:`read_string` accepts.
    """
    content = _string_bytes(text)
    return encode_integer(len(content)) + content


def encode_long_string(text: str) -> bytes:
    """Encode a string with its length as an i32."""
    content = _string_bytes(text)
    return len(content).to_bytes(4, "little") + content


def _string_bytes(text: str) -> bytes:
    content = text.encode("utf-8", "backslashreplace") + b"\0"
    if len(content) > LONGEST_STRING:
        raise ExportError(
            "The name '{:…<41}' is too long: it has {:,} bytes of {:,}", text[:40], len(content), LONGEST_STRING
        )
    if content.find(0) != len(content) - 1:
        raise ExportError("The name {!r} has a zero character in it", text)
    return content


_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}
_ESCAPED |= {sign: f"&#{ord(sign)};" for sign in "\t\n\r"}
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
SHORT_NUMBER = "%.8g"
"""Format of the numbers of matrices, except in projects of the double-precision build."""


def printable(text: str) -> str:
    """Replace characters that XML cannot contain by underscores."""
    return _NOT_IN_XML.sub("_", text)


def escaped(text: str) -> bytes:
    """Escape a text for use as the value of an attribute or the content of an element."""
    return "".join(_ESCAPED.get(sign, sign) for sign in printable(text)).encode()


def matrix_words(matrix: npt.NDArray[np.float64], number: str = SHORT_NUMBER) -> list[str]:
    """Return the 16 numbers of a (4, 4) matrix as texts, column after column."""
    words = [number % (value + 0.0) for value in matrix.T.reshape(-1).tolist()]
    words[3::4] = ["0.0", "0.0", "0.0", "1.0"]
    return words


def transform_element(words: list[str]) -> bytes:
    """Return the XML element of a matrix from the texts of its numbers."""
    return b"<transform>" + " ".join(words).encode() + b"</transform>"
