"""Binary LLSD, the value tree of all Second Life data (formats page, section 1).

This codec replaces a library because strings may be raw bytes (model bundles store whole assets in them), the end of an
asset's header must be known, and counts and lengths of hostile files must be rejected before memory is allocated.

Values are Python's: None, bool, int, float, str, bytes (binary), ``uuid.UUID``, list, dict (in the order of the data),
and :class:`RawString`, :class:`URI`, :class:`Date`. Integers and reals are distinguished. The last of equal keys is
used.
"""

import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import ExportError, FormatError

DEEPEST = 96
"""Maximum nesting depth of arrays and maps; the viewer accepts no more."""

MOST_VALUES = 100_000
"""Maximum number of values of one block. The largest real ones, skins, have some thousand."""

_INTEGER, _REAL, _LENGTH, _DATE = struct.Struct(">i"), struct.Struct(">d"), struct.Struct(">I"), struct.Struct("<d")
_QUOTES = b"'\""
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class RawString(bytes):
    """A string whose bytes are not UTF-8; model bundles store whole assets in such strings."""


class URI(str):
    """A value of the LLSD type URI."""


class Date(float):
    """A value of the LLSD type date, in seconds since 1970-01-01."""


@dataclass
class Allowance:
    """Number of values that may still be read, shared by all blocks of a file."""

    values: int = MOST_VALUES


def read(data: bytes, *, start: int = 0, allowance: Allowance | None = None, item: str = "") -> tuple[Any, int]:
    """Decode one value.

    Parameters
    ----------
    data, start:
        The bytes, and the offset of the value; what follows the value is ignored.
    allowance:
        Counted down by each value; default: :data:`MOST_VALUES`.
    item:
        Description of the value, for errors.

    Returns
    -------
    value, end:
        The value, and the offset after it.

    Raises
    ------
    FormatError
        The bytes end too early, a marker is unknown, or there are too many values or nesting levels.
    """
    reader = _Reader(data, start, allowance or Allowance(), item)
    return reader.value(1), reader.position


def first_pairs(data: bytes) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Decode as much of a map as the beginning of a file contains.

    Returns
    -------
    pairs, cut:
        The complete pairs, and the key and marker of the first incomplete value (None if there is none).
    """
    reader = _Reader(data, 0, Allowance(), "")
    pairs: dict[str, Any] = {}
    key = ""
    place = len(data)
    try:
        reader.expect(b"{")
        for _ in range(reader.length()):
            key, place = "", len(data)
            key = reader.key()
            place = reader.position
            pairs[key] = reader.value(2)
    except FormatError:
        return pairs, (key, chr(data[place])) if place < len(data) else None
    return pairs, None


class _Reader:
    """A cursor that never reads past the end."""

    def __init__(self, data: bytes, start: int, allowance: Allowance, item: str) -> None:
        self.data = data
        self.position = start
        self.allowance = allowance
        self.item = item
        self.plain: dict[int, Callable[[], Any]] = {
            ord("!"): lambda: None,
            ord("1"): lambda: True,
            ord("0"): lambda: False,
            ord("i"): lambda: self.number(_INTEGER),
            ord("r"): lambda: self.number(_REAL),
            ord("u"): lambda: uuid.UUID(bytes=self.take(16)),
            ord("b"): lambda: self.take(self.length()),
            ord("s"): lambda: _text(self.take(self.length())),
            ord("l"): lambda: URI(self.take(self.length()).decode("utf-8", "surrogateescape")),
            ord("d"): lambda: Date(self.number(_DATE)),
        }

    def error(self, template: str, *values: object, offset: int) -> FormatError:
        return FormatError(template, *values, offset=offset, item=self.item)

    def take(self, size: int) -> bytes:
        start = self.position
        if size > len(self.data) - start:
            raise self.error("The data is cut off or damaged: it ends within a value", offset=start)
        self.position = start + size
        return self.data[start : self.position]

    def number(self, kind: struct.Struct) -> Any:
        return kind.unpack(self.take(kind.size))[0]

    def length(self) -> int:
        """Read a length; it is not checked against the size of the remaining data."""
        found: int = _LENGTH.unpack(self.take(4))[0]
        return found

    def expect(self, wanted: bytes) -> None:
        start = self.position
        found = self.take(1)
        if found != wanted:
            raise self.error(
                "The data is damaged: expected '{}', found byte {}", wanted.decode(), found[0], offset=start
            )

    def spend(self, place: int) -> None:
        """Subtract one value from the allowance; raise FormatError if it is used up."""
        self.allowance.values -= 1
        if self.allowance.values < 0:
            raise self.error("The data has too many values; it is damaged or hostile", offset=place)

    def value(self, depth: int) -> Any:
        """Read one value of any kind."""
        start = self.position
        marker = self.take(1)[0]
        self.spend(start)
        plain = self.plain.get(marker)
        if plain is not None:
            return plain()
        if marker in _QUOTES:
            return _text(self.quoted(marker))
        if marker not in b"[{":
            raise self.error("The data is damaged: no value starts with byte {}", marker, offset=start)
        if depth > DEEPEST:
            raise self.error("The data is damaged: values are nested more than {} levels deep", DEEPEST, offset=start)
        return self.array(depth) if marker == ord("[") else self.map(depth)

    def count(self, least: int) -> int:
        """Read the number of values of an array or map.

        Raise FormatError if the data is too short for so many values of at least ``least`` bytes each.
        """
        start = self.position
        found = self.length()
        if found * least > len(self.data) - self.position:
            left = len(self.data) - self.position
            template = "The data is damaged: {:,} values do not fit into the {:,} bytes left"
            raise self.error(template, found, left, offset=start)
        return found

    def array(self, depth: int) -> list[Any]:
        count = self.count(1)
        values = [self.value(depth + 1) for _ in range(count)]
        self.expect(b"]")
        return values

    def map(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self.count(3)):
            key = self.key()
            values[key] = self.value(depth + 1)
        self.expect(b"}")
        return values

    def key(self) -> str:
        start = self.position
        marker = self.take(1)[0]
        if marker == ord("k"):
            content = self.take(self.length())
        elif marker in _QUOTES:
            content = self.quoted(marker)
        else:
            raise self.error("The data is damaged: expected a key, found byte {}", marker, offset=start)
        return content.decode("utf-8", "surrogateescape")

    def quoted(self, quote: int) -> bytes:
        """Read a string in the notation of old servers, up to its closing quote; a backslash starts an escape."""
        start = at = self.position
        pieces: list[bytes] = []
        end = self.data.find(quote, at)
        while end >= 0:
            escape = self.data.find(b"\\", at, end)
            if escape < 0:
                self.position = end + 1
                return b"".join((*pieces, self.data[at:end]))
            self.spend(escape)
            byte, after = self._escaped(escape + 1)
            pieces += [self.data[at:escape], byte]
            at = after
            if end < at:
                end = self.data.find(quote, at)
        raise self.error("The data is cut off or damaged: a string does not end", offset=start)

    def _escaped(self, at: int) -> tuple[bytes, int]:
        """Decode an escape from the offset after its backslash; return its byte and the offset after the escape."""
        letter = self.data[at : at + 1]
        if letter != b"x":
            return _ESCAPES.get(letter, letter), at + 1
        try:
            return bytes.fromhex(self.data[at + 1 : at + 3].decode("ascii").rjust(2, "?")), at + 3
        except ValueError:
            raise self.error("The data is damaged: an escape in a string is broken", offset=at) from None


def _text(content: bytes) -> str | RawString:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return RawString(content)


def write(value: Any) -> bytes:
    """Encode one value. Maps keep their order (see :func:`sorted_map`); NumPy numbers are encoded like Python's.

    Raises
    ------
    ExportError
        LLSD has no such value, an integer does not fit into 32 bits, or the nesting is too deep.
    """
    parts: list[bytes] = []
    _write(value, parts, 1)
    return b"".join(parts)


def _write(value: Any, parts: list[bytes], depth: int) -> None:
    # A NumPy number. NumPy is not imported here, since recognising files needs this module but not NumPy.
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, bool):
        parts.append({None: b"!", True: b"1", False: b"0"}[value])
    elif isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise ExportError("The number {:,} does not fit into 32 bits", value)
        parts.append(b"i" + _INTEGER.pack(value))
    elif isinstance(value, Date):
        parts.append(b"d" + _DATE.pack(value))
    elif isinstance(value, float):
        parts.append(b"r" + _REAL.pack(value))
    elif isinstance(value, uuid.UUID):
        parts.append(b"u" + value.bytes)
    elif isinstance(value, str):
        content = encoded(value)
        parts += [b"l" if isinstance(value, URI) else b"s", _LENGTH.pack(len(content)), content]
    elif isinstance(value, bytes | bytearray | memoryview):
        parts += [b"s" if isinstance(value, RawString) else b"b", _LENGTH.pack(len(value)), bytes(value)]
    elif isinstance(value, list | tuple | dict):
        _write_many(value, parts, depth)
    else:
        raise ExportError("A value of type {} cannot be stored", type(value).__name__)


def _write_many(value: Any, parts: list[bytes], depth: int) -> None:
    if depth > DEEPEST:
        raise ExportError("Values are nested more than {} levels deep", DEEPEST)
    if isinstance(value, dict):
        parts.append(b"{" + _LENGTH.pack(len(value)))
        for key, inner in value.items():
            name = encoded(key)
            parts += [b"k", _LENGTH.pack(len(name)), name]
            _write(inner, parts, depth + 1)
        parts.append(b"}")
        return
    parts.append(b"[" + _LENGTH.pack(len(value)))
    for inner in value:
        _write(inner, parts, depth + 1)
    parts.append(b"]")


def encoded(text: str) -> bytes:
    """Encode a text as UTF-8.

    Bytes of the file that were not UTF-8 are restored; other lone surrogates become ``?``.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def sorted_map(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map with its keys in the viewer's order: sorted by their bytes."""
    return {key: values[key] for key in sorted(values, key=encoded)}


def as_real(value: Any) -> float | None:
    """Return an integer or real as float, as the viewer does, or None for any other value."""
    return float(value) if isinstance(value, int | float) else None


def as_integer(value: Any) -> int | None:
    """Return an integer or real as int, as the viewer does, or None for any other value."""
    if isinstance(value, float) and not abs(value) < 2**31:  # NaN, or outside the range of integers
        return None
    return int(value) if isinstance(value, int | float) else None


def as_bytes(value: Any) -> bytes | None:
    """Return binary data, or None for any other value."""
    return value if isinstance(value, bytes) and not isinstance(value, RawString) else None
