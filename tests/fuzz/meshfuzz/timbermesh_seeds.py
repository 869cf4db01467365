"""Small Timbermesh messages made by hand, each with another part of the format in it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from .wire import BYTES, FIXED32, VARINT, Field, encode, floats, message, number, text, varint

_PROPERTIES = (("position", 3), ("normal", 3), ("tangent", 4), ("color", 4), ("uv0", 2), ("uv1", 2), ("uv2", 2))


def vertex_property(name: str, count: int, dimension: int, kind: int = 4, *, field: int = 7) -> Field:
    """Return ``count`` vertices of plausible values; ``kind`` is the scalar type."""
    letter = {1: "B", 2: "I", 3: "i", 4: "f", 5: "d"}[kind]
    if kind in (4, 5):
        values: Iterable[float] = [math.sin(1 + i * 0.7) for i in range(count * dimension)]
    else:
        values = [i % 251 for i in range(count * dimension)]
    data = struct.pack(f"<{count * dimension}{letter}", *values)
    return message(field, text(1, name), number(2, kind), number(3, dimension), Field(4, BYTES, data))


def transform(scale: float = 1.0) -> list[Field]:
    return [
        message(3, *floats(0.5, 0, -2)),
        message(4, *floats(0, 0.6, 0, 0.8)),
        message(5, *floats(scale, scale, scale)),
    ]


def packed(indices: Iterable[int], material: str = "Wood.Folktails") -> Field:
    return message(8, Field(1, BYTES, b"".join(varint(i) for i in indices)), text(2, material))


def unpacked(indices: Iterable[int], material: str = "Wood.Folktails") -> Field:
    return message(8, *[Field(1, VARINT, varint(i)) for i in indices], text(2, material))


def fan(count: int) -> list[int]:
    """Return triangles over ``count`` vertices, each vertex used."""
    return [index for i in range(count - 2) for index in (0, i + 1, i + 2)]


def mesh_node(name: str, count: int = 24, *, parent: int = -1, layers: int = 7, loose: bool = False) -> list[Field]:
    """Return the fields of a node with a mesh of two materials."""
    indices = fan(count)
    make = unpacked if loose else packed
    half = len(indices) // 6 * 3
    return [
        number(1, parent),
        text(2, name),
        *transform(),
        number(6, count),
        *[vertex_property(known, count, dimension) for known, dimension in _PROPERTIES[:layers]],
        make(indices[:half]),
        make(indices[half:], "Metal.IronTeeth"),
    ]


def empty_node(name: str, parent: int) -> list[Field]:
    return [number(1, parent), text(2, name), *transform()]


def node_animation(frames: int, name: str = "Default") -> Field:
    poses = [
        message(
            3,
            message(1, *floats(i / 10, 0, 1)),
            message(2, *floats(0, math.sin(i / 9), 0, math.cos(i / 9))),
            message(3, *floats(1, 1, 1)),
        )
        for i in range(frames)
    ]
    return message(10, text(1, name), Field(2, FIXED32, struct.pack("<f", 24)), *poses)


def vertex_animation(frames: int, count: int, name: str = "Default") -> Field:
    poses = [
        message(4, vertex_property("offset", count, 3, field=1), vertex_property("rotation", count, 4, field=1))
        for _ in range(frames)
    ]
    return message(9, text(1, name), Field(2, FIXED32, struct.pack("<f", 25)), number(3, count), *poses)


def model(*nodes: list[Field], extra: Iterable[Field] = ()) -> bytes:
    return encode([*[message(3, *node) for node in nodes], *extra])


def seeds() -> dict[str, bytes]:
    """Return the messages by name, uncompressed."""
    unknown = [Field(90, BYTES, b"later"), number(91, 7), Field(92, FIXED32, b"abcd")]
    custom = [vertex_property(f"_custom{kind}", 24, 2, kind) for kind in (1, 2, 3, 5)]
    return {
        "empty": b"",
        "cube": model(mesh_node("Cube")),
        "bare": model(mesh_node("Bare", 5, layers=1)),
        "loose": model(mesh_node("Loose", 40, loose=True)),
        "tree": model(
            empty_node("Root", -1),
            mesh_node("#Slot#Entrance", 8, parent=0),
            empty_node("#Slot#Entrance", 1),
            mesh_node("Other root", 6, parent=-1, layers=3),
        ),
        "moving": model(empty_node("Root", -1), [*mesh_node("#Wheel", 12, parent=0), node_animation(20)]),
        "waving": model([*mesh_node("Flag", 12), vertex_animation(6, 9), vertex_animation(2, 12, "Other")]),
        "custom": model([*mesh_node("Custom"), *custom]),
        "unknown": model([*mesh_node("Unknown", 6), *unknown], extra=[text(2, "Named"), *unknown]),
        "wide": model(mesh_node("Wide", 2000, layers=5)),
    }
