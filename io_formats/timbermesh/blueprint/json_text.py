"""JSON as mods of Timberborn have it, with the location of each value in the bytes of the file, and changes of them.

Accepted beside strict JSON: a byte order mark, ``//`` and ``/* */`` comments, a trailing comma, single quotes, names
without quotes, line breaks inside strings, NaN and infinity, numbers such as ``.5``, ``5.`` and ``+5``. Of equal keys
in one object the last one counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

from ...core.errors import FormatError
from ...core.messages import Text

MOST_BYTES = 1 << 24
MOST_VALUES = 1_000_000
MOST_DEPTH = 100
"""Objects and arrays inside each other."""
BOM = b"\xef\xbb\xbf"

_BLANK = rb"(?:[ \t\r\n\f\v]|//[^\n]*+|/\*.*?\*/)*+"
_SKIP = re.compile(_BLANK, re.DOTALL)
_TOKEN = re.compile(
    _BLANK + rb"(?:(?P<mark>[{}\[\],:])"
    rb"|\"(?P<plain>[^\"\\]*+)\""
    rb"|(?P<number>[-+]?(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+)(?![\w.$+-])"
    rb"|(?P<word>[-+]?[\w$\x80-\xff][\w$.\x80-\xff+-]*+)"
    rb"|(?P<escaped>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'))?",
    re.DOTALL,
)
_MARK, _PLAIN, _NUMBER, _WORD, _ESCAPED = range(1, 6)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "/": "/", '"': '"', "'": "'"}
_WORDS = {
    b"true": True,
    b"false": False,
    b"null": None,
    b"NaN": float("nan"),
    b"Infinity": float("inf"),
    b"-Infinity": float("-inf"),
}
_NAME = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")
MOST_DIGITS = 400


class JsonMember:
    """A member of an object: the location of its key, with the quotes, and its value."""

    __slots__ = ("end", "start", "value")

    def __init__(self, start: int, end: int, value: JsonValue) -> None:
        self.start = start
        """Offset in bytes."""
        self.end = end
        self.value = value


class JsonValue:
    """A value, and its location in the bytes of the file."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: Content, start: int, end: int) -> None:
        self.value: Content = value
        """The decoded value: numbers are floats, objects are dictionaries of members in the order of the file."""
        self.start = start
        """Offset in bytes of the first character: the opening quote, brace or bracket, or the first digit."""
        self.end = end
        """Offset in bytes after the last character."""

    @property
    def members(self) -> dict[str, JsonMember]:
        """The members of an object; an empty dictionary for other values."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[JsonValue]:
        """The elements of an array; an empty list for other values."""
        return self.value if isinstance(self.value, list) else []

    def find(self, *names: str) -> JsonValue | None:
        """Return the value at a path of keys, and of indices of arrays in decimal; None if there is none."""
        found: JsonValue = self
        for name in names:
            if name in found.members:
                found = found.members[name].value
            elif found.items and name.isdecimal() and int(name) < len(found.items):
                found = found.items[int(name)]
            else:
                return None
        return found

    def plain(self) -> Any:
        """Return the value as dictionaries, lists, texts, floats, booleans and None."""
        if isinstance(self.value, dict):
            return {key: member.value.plain() for key, member in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


Content: TypeAlias = str | float | bool | dict[str, JsonMember] | list[JsonValue] | None


def parse(data: bytes) -> JsonValue:
    """Parse a file in UTF-8; all offsets are in bytes from its start, a byte order mark included.

    Raises
    ------
    FormatError
        The file is damaged, too large or too deep. The text names line and column.
    """
    if len(data) > MOST_BYTES:
        raise FormatError("The file has {:,} bytes; at most {:,} are read", len(data), MOST_BYTES)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise error_at(data, problem.start, Text("not UTF-8")) from None
    parser = _Parser(data)
    found = parser.value(0)
    end = skip_blanks(data, found.end)
    if end < len(data):
        raise error_at(data, end, Text("text after the end of the JSON value"))
    return found


def skip_blanks(data: bytes, offset: int) -> int:
    """Return the offset of the first byte from this one on that is not a blank or in a comment."""
    found = _SKIP.match(data, offset)
    return found.end() if found is not None else offset


def line_and_column(data: bytes, offset: int) -> tuple[int, int]:
    """Return line and column of a byte, both from 1; columns count characters, without a byte order mark."""
    start = data.rfind(b"\n", 0, offset) + 1
    text = data[start:offset].removeprefix(BOM) if start == 0 else data[start:offset]
    return data.count(b"\n", 0, offset) + 1, len(text.decode("utf-8", "replace")) + 1


def error_at(data: bytes, offset: int, problem: Text) -> FormatError:
    """Return an error that states the line and column of a byte offset, and the problem."""
    return FormatError("Line {:,}, column {:,}: {}", *line_and_column(data, offset), problem)


def pointer_of(names: Iterable[str]) -> str:
    """Return the JSON pointer (RFC 6901) of a path of keys; an empty text for none."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def names_of(pointer: str) -> list[str]:
    """Return the keys of a JSON pointer."""
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


class _Parser:
    """Reads one value after another. Byte offsets suffice, since all marks are ASCII."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = len(BOM) if data.startswith(BOM) else 0
        self.number = 0
        """Number of values read so far."""

    def next(self) -> re.Match[bytes]:
        """Return the next token and move behind it."""
        token = _TOKEN.match(self.data, self.offset)
        if token is None:  # the expression also matches nothing
            raise self.error("unreadable")
        self.offset = token.end()
        return token

    def error(self, text: str, *values: object) -> FormatError:
        """Return an error at the current offset."""
        return error_at(self.data, self.offset, Text(text, *values))

    def value(self, depth: int) -> JsonValue:
        """Read a value."""
        return self._value_of(self.next(), depth)

    def _value_of(self, token: re.Match[bytes], depth: int) -> JsonValue:
        """Return the value that starts with a token."""
        kind = token.lastindex
        self.number += 1
        if self.number > MOST_VALUES:
            raise self.error("more than {:,} values", MOST_VALUES)
        if kind == _NUMBER:
            start, end = token.span(_NUMBER)
            if end - start > MOST_DIGITS:
                raise self._refuse(token, "a number of more than {} digits", MOST_DIGITS)
            return JsonValue(float(token[_NUMBER]), start, end)
        if kind == _PLAIN:
            start, end = token.span(_PLAIN)
            return JsonValue(token[_PLAIN].decode(), start - 1, end + 1)
        if kind == _MARK:
            return self._container(token, depth + 1)
        if kind == _WORD and token[_WORD] in _WORDS:
            return JsonValue(_WORDS[token[_WORD]], *token.span(_WORD))
        if kind == _ESCAPED:
            return JsonValue(self._unescaped(token), *token.span(_ESCAPED))
        raise self._refuse(token, "a value is expected here")

    def _container(self, token: re.Match[bytes], depth: int) -> JsonValue:
        """Read an object or an array after its first mark."""
        mark, start = token[_MARK], token.start(_MARK)
        if mark not in b"{[":
            raise self._refuse(token, "a value is expected here")
        if depth > MOST_DEPTH:
            raise self._refuse(token, "more than {} objects and arrays inside each other", MOST_DEPTH)
        content = self._members(depth) if mark == b"{" else self._items(depth)
        return JsonValue(content, start, self.offset)

    def _members(self, depth: int) -> dict[str, JsonMember]:
        """Read the members of an object up to its closing brace."""
        found: dict[str, JsonMember] = {}
        token = self.next()
        while token[_MARK] != b"}":
            key, start, end = self._key(token)
            token = self.next()
            if token[_MARK] != b":":
                raise self._refuse(token, "a colon is expected here")
            found[key] = JsonMember(start, end, self._value_of(self.next(), depth))
            token = self._after_comma(b"}")
        return found

    def _items(self, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        token = self.next()
        while token[_MARK] != b"]":
            found.append(self._value_of(token, depth))
            token = self._after_comma(b"]")
        return found

    def _after_comma(self, end: bytes) -> re.Match[bytes]:
        """Return the token after a comma, or the end of the object or array."""
        token = self.next()
        if token[_MARK] == b",":
            return self.next()
        if token[_MARK] != end:
            raise self._refuse(token, "a comma or {} is expected here", end.decode())
        return token

    def _key(self, token: re.Match[bytes]) -> tuple[str, int, int]:
        """Return the text, start and end of a key."""
        kind = token.lastindex
        if kind == _PLAIN:
            start, end = token.span(_PLAIN)
            return token[_PLAIN].decode(), start - 1, end + 1
        if kind == _ESCAPED:
            return self._unescaped(token), *token.span(_ESCAPED)
        if kind == _WORD and _NAME.fullmatch(token[_WORD]):
            return token[_WORD].decode(), *token.span(_WORD)
        raise self._refuse(token, "a name or } is expected here")

    def _unescaped(self, token: re.Match[bytes]) -> str:
        """Return the text of a string; lone surrogates become U+FFFD, since no UTF-8 text can have them."""
        text = token[_ESCAPED][1:-1].decode()
        if "\\" not in text:
            return text

        def replaced(found: re.Match[str]) -> str:
            code, letter = found.groups()
            if code is not None:
                return chr(int(code, 16))
            if letter not in _ESCAPES:
                raise self._refuse(token, "the string has an unknown escape sequence: {}", found[0])
            return _ESCAPES[letter]

        text = _ESCAPE.sub(replaced, text)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _refuse(self, token: re.Match[bytes], text: str, *values: object) -> FormatError:
        """Return an error at the start of a token."""
        self.offset = skip_blanks(self.data, token.start())
        rest = self.data[self.offset : self.offset + 2]
        if not rest:
            return self.error("the file ends too early")
        if rest == b"/*":
            return self.error("the comment has no end")
        if token.lastindex is None and rest[:1] in b"\"'":
            return self.error("the string has no end")
        return self.error(text, *values)


_INDENT = re.compile(rb"[ \t]*")
_LINE_END = re.compile(rb"[ \t]*(?:\r?\n|\Z)")
_LAST_COMMENTS = re.compile(rb"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*(?=[ \t]*\r?\n)")
"""Comments between a member and the end of its line."""
_FIRST_INDENT = re.compile(rb"\n([ \t]+)[^\s]")

New: TypeAlias = "float | str | bytes | Mapping[str, New]"
"""A value to write: bytes are JSON as it is."""


def number_text(value: float) -> str:
    """Return a finite number with at least one decimal, small ones as the game's editor writes them: ``1.0E-07``."""
    text = repr(float(value) + 0.0)
    digits, mark, exponent = text.partition("e")
    return f"{digits if '.' in digits else digits + '.0'}E{exponent}" if mark else text


class TextEdits:
    """Changes of one file, with the indent and the line ends that the file has."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
        first = _FIRST_INDENT.search(data)
        self.unit = first[1] if first is not None else b"  "
        self.has_lines = b"\n" in data
        self._pieces: list[tuple[int, int, bytes]] = []

    def result(self) -> bytes:
        """Return the changed file."""
        parts, position = [], 0
        for start, end, text in sorted(self._pieces, key=lambda piece: piece[:2]):
            parts += [self.data[position:start], text]
            position = max(position, end)
        return b"".join([*parts, self.data[position:]])

    def replace(self, value: JsonValue, new: float | str | bytes) -> None:
        """Replace a value by a number, a text, which keeps its kind of quotes, or by JSON."""
        text = self._spelled(new, None)
        if isinstance(new, str) and self.data[value.start : value.start + 1] == b"'":
            text = b"'" + text[1:-1].replace(b'\\"', b'"').replace(b"'", b"\\'") + b"'"
        self._pieces.append((value.start, value.end, text))

    def append(self, array: JsonValue, new: str) -> None:
        """Append a text to an array, in a line of its own if the last element is."""
        item = self._spelled(new, None)
        if not array.items:
            line, place = self.newline + self.indent_of(array.start), array.start + 1
            end = b"" if b"\n" in self.data[array.start : array.end] else line
            self._pieces.append((place, place, line + self.unit + item + end))
            return
        last = array.items[-1]
        comma = skip_blanks(self.data, last.end)
        has_comma = self.data[comma : comma + 1] == b","
        place = comma + 1 if has_comma else last.end
        comments = _LAST_COMMENTS.match(self.data, place)
        blank = self.newline + self.indent_of(last.start) if self._is_first(last.start) else b" "
        if not has_comma:
            self._pieces.append((place, place, b","))
        place = comments.end() if comments is not None else place
        self._pieces.append((place, place, blank + item + (b"," if has_comma else b"")))

    def insert(self, holder: JsonValue, new: Mapping[str, New], after: str | None = None) -> None:
        """Insert members into an object: after a member, or in lines of their own at its start for None."""
        members = _in_order(holder)
        text = self.data[holder.start : holder.end]
        is_lined = self.has_lines and (after is None or b"\n" in text)
        outer = self.indent_of(holder.start)
        inner = self._inner_indent(holder) if is_lined else None
        blank = self.newline + (inner or b"") if is_lined else b" "
        body = b",".join(blank + self._member(key, value, inner) for key, value in new.items())
        place, has_more = holder.start + 1, bool(members)
        if after is not None:
            member = holder.members[after]
            place, has_more = member.value.end, member is not members[-1]
            comma = self._comma(member)
            if comma is None:
                self._pieces.append((place, place, b","))
            else:
                place = comma + 1
            comments = _LAST_COMMENTS.match(self.data, place)
            place = comments.end() if comments is not None else place
        end = place
        body += b"," if has_more else b""
        if is_lined and not _LINE_END.match(self.data, place):
            body += self.newline + ((inner or b"") if has_more else outer)
            end = self._indent_end(place)
        self._pieces.append((place, end, body))

    def remove(self, holder: JsonValue, names: Collection[str]) -> None:
        """Remove members of an object with their commas; comments around them stay."""
        members = sorted(holder.members.items(), key=lambda pair: pair[1].start)
        for name, member in members:
            if name in names:
                self._remove(member)
        left = [member for name, member in members if name not in names]
        if left and members[-1][0] in names and self._comma(members[-1][1]) is None:
            comma = self._comma(left[-1])
            if comma is not None:
                self._pieces.append((comma, comma + 1, b""))

    def child_indent(self, holder: JsonValue) -> bytes:
        """Return the indent of the children of a node, also if it has none yet."""
        children = holder.find("Children")
        if children is not None and children.members:
            return self._inner_indent(children)
        return self._inner_indent(holder) + self.unit

    def moved(self, value: JsonValue, indent: bytes) -> bytes:
        """Return the bytes of a value with another indent: in each line, the indent of its first line is replaced."""
        return re.sub(rb"(?<=\n)" + self.indent_of(value.start), indent, self.data[value.start : value.end])

    def indent_of(self, offset: int) -> bytes:
        """Return the blanks at the start of a line."""
        start = self.data.rfind(b"\n", 0, offset) + 1
        return self.data[start : self._indent_end(start)]

    def _indent_end(self, offset: int) -> int:
        found = _INDENT.match(self.data, offset)
        return found.end() if found is not None else offset

    def _inner_indent(self, holder: JsonValue) -> bytes:
        """Return the indent of the members of an object."""
        members = _in_order(holder)
        if members and self._is_first(members[0].start):
            return self.indent_of(members[0].start)
        return self.indent_of(holder.start) + self.unit

    def _is_first(self, offset: int) -> bool:
        """Return whether only blanks are before an offset in its line, and there is a line before."""
        start = self.data.rfind(b"\n", 0, offset) + 1
        return start > 0 and not self.data[start:offset].strip(b" \t")

    def _comma(self, member: JsonMember) -> int | None:
        """Return the offset of the comma after a member."""
        offset = skip_blanks(self.data, member.value.end)
        return offset if self.data[offset : offset + 1] == b"," else None

    def _remove(self, member: JsonMember) -> None:
        """Remove a member with its comma, and with its line if nothing else is on it."""
        start, end = member.start, member.value.end
        comma = self._comma(member)
        if comma is not None:
            if self.data[end:comma].strip():  # comments
                self._pieces.append((comma, comma + 1, b""))
            else:
                end = comma + 1
        after = _LINE_END.match(self.data, end)
        if after is not None and self._is_first(start):
            start, end = start - len(self.indent_of(start)), after.end()
        elif comma is not None:
            end = self._indent_end(end)
        self._pieces.append((start, end, b""))

    def _member(self, key: str, value: New, indent: bytes | None) -> bytes:
        return json.dumps(key, ensure_ascii=False).encode() + b": " + self._spelled(value, indent)

    def _spelled(self, value: New, indent: bytes | None) -> bytes:
        """Return a value as JSON with one member on each line, or all on one line if ``indent`` is None."""
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False).encode()
        if not isinstance(value, Mapping):
            return number_text(value).encode()
        if indent is None:
            return b"{ " + b", ".join(self._member(key, inner, None) for key, inner in value.items()) + b" }"
        lines = [indent + self.unit + self._member(key, inner, indent + self.unit) for key, inner in value.items()]
        return b"{" + self.newline + (b"," + self.newline).join(lines) + self.newline + indent + b"}"


def _in_order(holder: JsonValue) -> list[JsonMember]:
    """Return the members of an object in the order of the file."""
    return sorted(holder.members.values(), key=lambda member: member.start)
