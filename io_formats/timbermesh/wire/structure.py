"""Walk the wire structure of a message before any memory is allocated for it.

Protobuf would create an object for every two bytes of a hostile file. This pass counts first, reports the offset at
which the structure is broken, and finds meshes whose indices are not packed. It does not visit vertices, indices or
keyframes, only messages, of which real files have a few hundred.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...core.errors import FormatError
from .messages import child_messages, field_wires

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_SINGLE_INDEX = ("Mesh", 1, _VARINT)
"""Message, field and wire type of a mesh index that is stored by itself instead of in a packed run."""

_BYTES_PER_STEP = 48

_MOST = {
    "Node": 8_192,
    "VertexProperty": 131_072,
    "Mesh": 16_384,
    "VertexAnimation": 16_384,
    "VertexAnimationFrame": 16_384,
    "NodeAnimation": 8_192,
    "NodeAnimationFrame": 250_000,
}
"""Maximum number of each message: far above any real model (964 real files hold 1,314 nodes and 8,852 keyframes in
all), and low enough that a file with so many opens and saves within two seconds."""

_WALKED = ("Model", "Node", "Mesh", "VertexProperty", "VertexAnimation", "VertexAnimationFrame", "NodeAnimation")
_CHILDREN = {name: child_messages(name) for name in _WALKED}
_FIELDS = {name: field_wires(name) for name in _WALKED}


@dataclass
class Structure:
    """The result of the walk."""

    has_unknown_fields: bool = False
    unpacked_meshes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Slices (start, end) of the meshes whose indices are stored one by one, by the number of the mesh in the file."""
    counts: Counter[str] = field(default_factory=Counter)


def check_structure(content: bytes) -> Structure:
    """Check the wire structure of a Model message.

    Raises
    ------
    FormatError
        A varint of more than 10 bytes, a length past the end, an obsolete wire type, or more messages than any
        real model has; with the byte offset.
    """
    walker = _Walker(content)
    walker.walk("Model", 0, len(content))
    return walker.found


def check_mesh(content: bytes) -> None:
    """Check the fields of one mesh that :func:`check_structure` did not visit; raise the same errors."""
    _Walker(content).walk("Mesh", 0, len(content))


class _Walker:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.found = Structure()
        self.steps_left = 1_000_000 + len(content) // _BYTES_PER_STEP

    def walk(self, message: str, start: int, end: int) -> None:
        """Walk one message in ``content[start:end]`` and the messages in it."""
        children, known = _CHILDREN[message], _FIELDS[message]
        position = start
        while position < end:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise FormatError(
                    "Far more parts than any real model has; the file is damaged or hostile", offset=position
                )
            tag_at = position
            tag, position = self.varint(position, end)
            number, wire = tag >> 3, tag & 7
            if number == 0:
                raise FormatError("Damaged data: a field without a number", offset=tag_at)
            if known.get(number) != wire and (message, number, wire) != _SINGLE_INDEX:
                self.found.has_unknown_fields = True
            if wire == _BYTES:
                length, position = self.varint(position, end)
                if length > end - position:
                    raise FormatError(
                        "Damaged data: a part of {:,} bytes where {:,} are left",
                        length,
                        end - position,
                        offset=tag_at,
                        item=message,
                    )
                if number in children:
                    self.enter(children[number], position, position + length)
                position += length
            elif wire == _VARINT:
                if (message, number, wire) == _SINGLE_INDEX:
                    self.found.unpacked_meshes[self.found.counts["Mesh"] - 1] = (start, end)
                    return  # skip the rest: it may hold millions of indices, which protobuf checks
                _, position = self.varint(position, end)
            elif wire in (_FIXED32, _FIXED64):
                position += 4 if wire == _FIXED32 else 8
                if position > end:
                    raise FormatError("Damaged data: a number is cut off", offset=tag_at, item=message)
            else:
                raise FormatError("Damaged data: unknown wire type {}", wire, offset=tag_at, item=message)

    def enter(self, message: str, start: int, end: int) -> None:
        """Count a message, and walk it if it can hold other messages."""
        counts = self.found.counts
        counts[message] += 1
        if counts[message] > _MOST.get(message, counts[message]):
            raise FormatError(
                "More than {:,} {} parts; the file is damaged or hostile", _MOST[message], message, offset=start
            )
        if message in _CHILDREN:
            self.walk(message, start, end)

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """Decode one varint; return its value and the position after it."""
        content = self.content
        if position < end and content[position] < 128:
            return content[position], position + 1
        value = 0
        for count in range(10):
            if position + count >= end:
                raise FormatError("Damaged data: a number is cut off", offset=position)
            byte = content[position + count]
            value |= (byte & 127) << (7 * count)
            if byte < 128:
                return value, position + count + 1
        raise FormatError("Damaged data: a number of more than 10 bytes", offset=position)
