"""Changes of members and numbers in the bytes of a JSON file; all other bytes stay as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from .json_text import JsonMember, JsonValue, skip_blanks

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

    def replace(self, value: JsonValue, new: float | str) -> None:
        """Replace a number or a text, which keeps its kind of quotes."""
        text = self._spelled(new, None)
        if isinstance(new, str) and self.data[value.start : value.start + 1] == b"'":
            text = b"'" + text[1:-1].replace(b'\\"', b'"').replace(b"'", b"\\'") + b"'"
        self._pieces.append((value.start, value.end, text))

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
