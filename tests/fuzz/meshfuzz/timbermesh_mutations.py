"""Hostile changes to a Timbermesh message: its fields, its numbers, its lengths, its counts."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable

from . import raw
from .wire import BYTES, FIXED32, FIXED64, VARINT, Field, encode, message, number, parse, varint

_CHILDREN = {
    "Model": {3: "Node"},
    "Node": {
        3: "Vector",
        4: "Vector",
        5: "Vector",
        7: "Property",
        8: "Mesh",
        9: "VertexAnimation",
        10: "NodeAnimation",
    },
    "VertexAnimation": {4: "VertexFrame"},
    "VertexFrame": {1: "Property"},
    "NodeAnimation": {3: "NodeFrame"},
    "NodeFrame": {1: "Vector", 2: "Vector", 3: "Vector"},
}
_FIELDS = {
    "Model": 3,
    "Node": 10,
    "Mesh": 2,
    "VertexAnimation": 4,
    "VertexFrame": 1,
    "NodeAnimation": 3,
    "NodeFrame": 3,
    "Property": 4,
    "Vector": 4,
}

_NUMBERS = (
    0, 1, -1, 2, 3, 4, 5, 7, 23, 24, 25, 127, 128, 255, 256, 16384, 65535, 65536, 10**6, 2**24, 2**28, 2**31 - 1,
    2**31, -(2**31), 2**32 - 1, 2**32, 2**63 - 1, -(2**63),
)  # fmt: skip
_FLOATS = (
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    -float("inf"),
    3e-39,
    1e-30,
    1e-7,
    1.0,
    -1.0,
    1e18,
    4e18,
    1e30,
    3.4e38,
    -3.4e38,
)
_TEXTS = (
    b"", b"\x00", b"a\x00b", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", "\U0001f9ab".encode() * 40, b"x" * 300,
    b"n" * 70_000, b"position", b"normal", b"tangent", b"color", b"uv0", b"uv1", b"uv7", b"offset", b"rotation",
    b"Default", b"..", b"/", b"Wood.001",
)  # fmt: skip


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return the message with a few changes, each somewhere in the tree of its parts."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        content = _descend(content, "Model", rng)
    return content


def _descend(content: bytes, kind: str, rng: random.Random) -> bytes:
    """Change one field of this message, or one inside a child message."""
    fields = parse(content)
    children = _CHILDREN.get(kind, {})
    inner = [i for i, field in enumerate(fields) if field.number in children and field.wire == BYTES]
    if inner and rng.random() < 0.85:
        # First a kind of child, then one of them: else the many frames of an animation would take nearly all changes.
        wanted = rng.choice(sorted({fields[i].number for i in inner}))
        at = rng.choice([i for i in inner if fields[i].number == wanted])
        fields[at] = fields[at].with_payload(_descend(fields[at].payload, children[wanted], rng))
        return encode(fields)
    return encode(rng.choice(_CHANGES)(fields, kind, rng))


def _change_value(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    if not fields:
        return _add_field(fields, kind, rng)
    at = rng.randrange(len(fields))
    found = fields[at]
    if found.wire == VARINT:
        fields[at] = found.with_payload(varint(rng.choice(_NUMBERS), rng.choice((0, 0, 0, 2, 4, 10, 13))))
    elif found.wire == FIXED32:
        fields[at] = found.with_payload(struct.pack("<f", rng.choice(_FLOATS)))
    elif found.wire == BYTES:
        fields[at] = found.with_payload(_change_bytes(found, kind, rng))
    return fields


def _change_bytes(found: Field, kind: str, rng: random.Random) -> bytes:
    """Change a text, an index run, vertex data or a whole child message, each after its own kind."""
    if kind == "Mesh" and found.number == 1:
        return _change_indices(found.payload, rng)
    if kind == "Property" and found.number == 4:
        return _change_data(found.payload, rng)
    if found.number in _CHILDREN.get(kind, {}):
        return raw.mutate(found.payload, rng)
    return rng.choice(_TEXTS)


def _change_indices(payload: bytes, rng: random.Random) -> bytes:
    pick = rng.randrange(6)
    if pick == 0:
        return payload + varint(rng.choice(_NUMBERS), rng.choice((0, 0, 2, 6, 10, 12)))
    if pick == 1:
        return payload[: rng.randrange(len(payload) + 1)]
    if pick == 2:
        return b"".join(varint(rng.choice(_NUMBERS)) for _ in range(rng.choice((3, 6, 30))))
    if pick == 3:
        return payload * rng.choice((2, 3, 50))
    if pick == 4:
        return bytes(rng.choice((3, 300, 30_000)))  # the same vertex three times
    return raw.mutate(payload, rng)


def _change_data(payload: bytes, rng: random.Random) -> bytes:
    pick = rng.randrange(5)
    if pick == 0 and len(payload) >= 4:
        at = rng.randrange(len(payload) // 4) * 4
        many = rng.choice((1, 1, 3, len(payload) // 4))
        values = struct.pack("<f", rng.choice(_FLOATS)) * many
        return (payload[:at] + values + payload[at + len(values) :])[: len(payload)]
    if pick == 1:
        return payload[: len(payload) - rng.choice((1, 2, 4, 8, 12))]
    if pick == 2:
        return payload + bytes(rng.choice((1, 2, 4, 8, 12, 4096)))
    if pick == 3:
        return b""
    return raw.mutate(payload, rng)


def _change_length(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    inside = [i for i, field in enumerate(fields) if field.wire == BYTES]
    if not inside:
        return _change_value(fields, kind, rng)
    at = rng.choice(inside)
    true = len(fields[at].payload)
    lie = rng.choice(
        (0, 1, true - 1, true + 1, true + 7, true * 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + true, 2**63, -1)
    )
    fields[at] = Field(fields[at].number, BYTES, fields[at].payload, varint(max(lie, -1), rng.choice((0, 0, 0, 3, 11))))
    return fields


def _remove(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    if fields:
        del fields[rng.randrange(len(fields))]
    return fields


def _repeat(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    if fields:
        at = rng.randrange(len(fields))
        most = max(1, 300_000 // (len(fields[at].payload) + 2))
        fields[at:at] = [fields[at]] * min(most, rng.choice((1, 1, 2, 5, 100, 2000)))
    return fields


def _swap(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    if len(fields) > 1:
        one, other = rng.sample(range(len(fields)), 2)
        fields[one], fields[other] = fields[other], fields[one]
    return fields


def _swap_contents(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    """Exchange two contents and leave the numbers: a name becomes vertex data, a node becomes a text."""
    if len(fields) > 1:
        one, other = rng.sample(range(len(fields)), 2)
        a, b = fields[one], fields[other]
        fields[one], fields[other] = Field(a.number, b.wire, b.payload), Field(b.number, a.wire, a.payload)
    return fields


def _renumber(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    if fields:
        at = rng.randrange(len(fields))
        fresh = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 19000, 2**28, 2**29 - 1, 2**29, 2**40))
        fields[at] = Field(fresh, fields[at].wire, fields[at].payload)
    return fields


def _rewire(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    """Claim another wire type for the same bytes."""
    if fields:
        at = rng.randrange(len(fields))
        payload = fields[at].payload
        fields[at] = Field(fields[at].number, rng.choice((0, 1, 2, 3, 4, 5, 6, 7)), payload[:10] or b"\x00", None)
    return fields


def _add_field(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    """Add a field that the message knows, or one of later versions, with a random content."""
    known = rng.randrange(1, _FIELDS.get(kind, 4) + 1)
    fresh = known if rng.random() < 0.7 else rng.choice((11, 90, 100_000))
    contents = (
        number(fresh, rng.choice(_NUMBERS)),
        Field(fresh, FIXED32, struct.pack("<f", rng.choice(_FLOATS))),
        Field(fresh, FIXED64, b"\x01" * 8),
        Field(fresh, BYTES, rng.choice(_TEXTS)),
        message(fresh),
        Field(fresh, 3, b"\x08\x01" + varint(fresh << 3 | 4)),
        Field(fresh, BYTES, nested(rng.choice((3, 90, 110, 5000)), fresh)),
    )
    fields.insert(rng.randrange(len(fields) + 1), rng.choice(contents))
    return fields


@functools.lru_cache(maxsize=64)
def nested(depth: int, field: int) -> bytes:
    """Return ``depth`` messages inside each other."""
    heads = []
    size = 0
    for _ in range(depth):
        heads.append(varint(field << 3 | BYTES) + varint(size))
        size += len(heads[-1])
    return b"".join(reversed(heads))


def _mix_packing(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    """Split a run of indices into packed chunks and single numbers."""
    runs = [i for i, field in enumerate(fields) if field.number == 1 and field.wire == BYTES]
    if kind != "Mesh" or not runs:
        return _change_value(fields, kind, rng)
    payload = fields[runs[0]].payload
    cut = rng.randrange(len(payload) + 1)
    singles = [number(1, byte & 127) for byte in payload[cut : cut + 60]]
    fields[runs[0] : runs[0] + 1] = [Field(1, BYTES, payload[:cut]), *singles, Field(1, BYTES, payload[cut + 60 :])]
    return fields


def _flood(fields: list[Field], kind: str, rng: random.Random) -> list[Field]:
    """Add very many tiny parts of one kind."""
    tiny = rng.choice((b"", b"\x08\x00", b"\x0a\x00", b"\x12\x01a"))
    child = rng.choice(sorted(_CHILDREN.get(kind, {1: "", 2: ""})))
    return [*fields, *[Field(child, BYTES, tiny)] * rng.choice((200, 3000))]


Change = Callable[[list[Field], str, random.Random], list[Field]]
_CHANGES: tuple[Change, ...] = (
    *[_change_value] * 8,
    *[_remove, _repeat, _swap, _swap_contents, _renumber, _rewire, _add_field, _change_length, _mix_packing] * 2,
    _flood,
)
