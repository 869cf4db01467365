"""Valid messages with very many parts of one kind: what takes the square of their number takes for ever.

The counts lie below, at and above what a reader may sensibly refuse.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

from . import timbermesh_seeds
from .wire import BYTES, FIXED32, Field, encode, floats, message, number, text

_COUNTS = (1000, 4000, 16_384, 16_385)
_LARGE_COUNTS = (65_000, 130_000, 240_000, 400_000)
_LARGE = 0.05
"""Share of large crowds: each takes seconds to make, as long as thousands of other cases."""

POSE = message(
    3, message(1, *floats(1, 2, 3)), message(2, *floats(0, 0, 0.6, 0.8)), message(3, *floats(1, 1, 2))
).encode()


def crowd(rng: random.Random) -> tuple[bytes, str]:
    """Return a crowded file and what it is made of."""
    kind = rng.choice(sorted(CROWDS))
    count = rng.choice(_LARGE_COUNTS if rng.random() < _LARGE else _COUNTS)
    return zlib.compress(CROWDS[kind](count), 1), f"crowd: {count} {kind}"


def _node(parent: int, name: str, *more: Field) -> bytes:
    return message(3, number(1, parent), text(2, name), *timbermesh_seeds.transform(), *more).encode()


def _meshes(count: int, *, same: bool) -> bytes:
    parts = [number(1, -1), text(2, "Node"), number(6, 3), timbermesh_seeds.vertex_property("position", 3, 3)]
    meshes = [timbermesh_seeds.packed((0, 1, 2), "Same" if same else f"Wood{i}") for i in range(count)]
    return message(3, *parts, *meshes).encode()


def _mesh_nodes(count: int) -> bytes:
    """Return many nodes with one triangle each."""
    parts = [number(6, 3), timbermesh_seeds.vertex_property("position", 3, 3), timbermesh_seeds.packed((0, 1, 2))]
    return b"".join(_node(-1, "Tile", *parts) for _ in range(count))


def _animations(count: int, field: int, *, same: bool) -> bytes:
    frames = [Field(3 if field == 10 else 4, BYTES, POSE[2:] if field == 10 else b"")]
    found = [
        message(field, text(1, "Default" if same else f"Clip{i}"), Field(2, FIXED32, b"\x00\x00\xc0\x41"), *frames)
        for i in range(count)
    ]
    return _node(-1, "Node", *found)


def _frames(count: int) -> bytes:
    return message(3, number(1, -1), Field(10, BYTES, encode([text(1, "Default")]) + POSE * count)).encode()


def _vertex_frames(count: int, vertices: int = 3) -> bytes:
    """Return a clip that moves three vertices; keeping the others for every frame takes very much."""
    offset, rotation = (timbermesh_seeds.vertex_property(n, 3, k, field=1) for n, k in (("offset", 3), ("rotation", 4)))
    head = encode([text(1, "Default"), Field(2, FIXED32, b"\x00\x00\xc0\x41"), number(3, 3)])
    animation = Field(9, BYTES, head + message(4, offset, rotation).encode() * count)
    position = timbermesh_seeds.vertex_property("position", vertices, 3)
    return _node(-1, "Flag", number(6, vertices), position, timbermesh_seeds.packed((0, 1, 2)), animation)


def _properties(count: int, *, same: bool) -> bytes:
    names = ("uv0" if same else f"layer{i}" for i in range(count))
    mesh = [number(6, 3), timbermesh_seeds.vertex_property("position", 3, 3), timbermesh_seeds.packed((0, 1, 2))]
    return _node(-1, "Node", *mesh, *(timbermesh_seeds.vertex_property(name, 3, 2) for name in names))


CROWDS: dict[str, Callable[[int], bytes]] = {
    "nodes of one name": lambda n: b"".join(_node(-1, "Same") for _ in range(n)),
    "nodes in a chain": lambda n: b"".join(_node(i - 1, f"Link{i}") for i in range(n)),
    "nodes in a chain, forwards": lambda n: b"".join(_node(i + 1 if i + 1 < n else -1, f"Link{i}") for i in range(n)),
    "nodes in a circle": lambda n: b"".join(_node((i + 1) % n, f"Link{i}") for i in range(n)),
    "nodes of one parent": lambda n: b"".join(_node(0 if i else -1, f"Leaf{i}") for i in range(n)),
    "mesh nodes": _mesh_nodes,
    "meshes": lambda n: _meshes(n, same=False),
    "meshes of one material": lambda n: _meshes(n, same=True),
    "layers": lambda n: _properties(n, same=False),
    "layers of one name": lambda n: _properties(n, same=True),
    "node animations": lambda n: _animations(n, 10, same=False),
    "node animations of one name": lambda n: _animations(n, 10, same=True),
    "vertex animations": lambda n: _animations(n, 9, same=False),
    "keyframes": _frames,
    "vertex frames": _vertex_frames,
    "vertex frames of a large mesh": lambda n: _vertex_frames(n, 20_000),
}
