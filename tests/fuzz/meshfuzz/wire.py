"""Protobuf's wire format, one level at a time, able to write what no library would.

Written without the package's codec and without the protobuf library: the seeds must not depend on what they test,
and a hostile file has lengths that lie and numbers of eleven bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


@dataclass(frozen=True)
class Field:
    """One field of a message: number, wire type and payload, as they stand in the file."""

    number: int
    wire: int
    payload: bytes
    """The varint, the 4 or 8 bytes, or the content without its length."""
    length: bytes | None = None
    """The length to write instead of the true one."""

    def encode(self) -> bytes:
        head = varint(self.number << 3 | self.wire)
        if self.wire == BYTES:
            return head + (varint(len(self.payload)) if self.length is None else self.length) + self.payload
        return head + self.payload

    def with_payload(self, payload: bytes) -> Field:
        return replace(self, payload=payload)


def varint(value: int, width: int = 0) -> bytes:
    """Encode a number as protobuf does (negative: ten bytes), in at least ``width`` bytes."""
    value &= (1 << 64) - 1
    if value < 128 and width < 2:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127 or len(out) + 1 < width:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at ``position`` and the position after it; past the end, what there is."""
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, position


def parse(data: bytes) -> list[Field]:
    """Split a message into its fields. A remainder that cannot be parsed becomes one last raw field."""
    fields = []
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        wire = tag & 7
        start = position
        if wire == VARINT:
            _, position = read_varint(data, position)
        elif wire == BYTES:
            length, start = read_varint(data, position)
            position = min(start + length, len(data))
        elif wire in (FIXED32, FIXED64):
            position += 4 if wire == FIXED32 else 8
        else:
            position = len(data)
        fields.append(Field(tag >> 3, wire, data[start:position]))
    return fields


def encode(fields: list[Field]) -> bytes:
    return b"".join(field.encode() for field in fields)


def number(field: int, value: int) -> Field:
    return Field(field, VARINT, varint(value))


def text(field: int, value: str) -> Field:
    return Field(field, BYTES, value.encode())


def message(field: int, *parts: Field) -> Field:
    return Field(field, BYTES, encode(list(parts)))


def floats(*values: float) -> list[Field]:
    """Return float fields numbered from 1, zeros left out as proto3 does."""
    return [Field(i, FIXED32, struct.pack("<f", value)) for i, value in enumerate(values, 1) if value]
