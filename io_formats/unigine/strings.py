"""Strings: a length that includes the terminating zero, UTF-8 text, the zero (section 2.2)."""

from __future__ import annotations

from ..core.errors import ExportError
from ..core.messages import Text
from ..encodings.byte_reader import ByteStream
from . import compact_integers

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
    return _string_content(
        stream, compact_integers.read_integer(stream, Text("the length of {}", Text(what))), what, start
    )


def read_long_string(stream: ByteStream, what: str) -> str:
    """Read a string whose length is an i32 (sk10, sn10, an12, an13); otherwise like ``read``."""
    start = stream.position
    return _string_content(stream, stream.i32(Text("the length of {}", Text(what))), what, start)


def _string_content(stream: ByteStream, length: int, what: str, start: int) -> str:
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
    return compact_integers.encode_integer(len(content)) + content


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
