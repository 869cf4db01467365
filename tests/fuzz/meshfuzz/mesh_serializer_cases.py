"""Hostile files of the MeshSerializer family: whole ones of every variant, with values that are hostile in themselves.

Their length is all that makes them what they are, so most changes keep it: counts that lie are given the bytes that
they ask for, and values are overwritten in their place.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import raw
from .mesh_serializer_seeds import NORMALS, TANGENTS, UVS, WEIGHTS, Stored, as_text, pack, pack_cached, pack_first

_FLOATS = (0.0, -0.0, 1e-45, 1e-30, 1e-9, 0.001, 1.0, 1e9, 3e38, -3e38, float("nan"), float("inf"), float("-inf"))
_SIGNALLING = 0x7FA00000
_SIZES = {1: 6, 2: 3, 4: 4, 8: 4}
_MOST = 65_535

Maker = Callable[[random.Random], bytes]


def sound(rng: random.Random, variant: str, *, vertices: int, triangles: int, bits: int) -> bytes:
    """Return a file that is one, with everyday bounds and triangles of vertices that there are."""
    corners = _corners(rng, triangles, vertices)
    if variant.startswith("first"):
        widths = (3, *(width if bits & bit else 0 for bit, width in ((NORMALS, 3), (TANGENTS, 4), (UVS, 2))))
        layers = [_everyday(rng, (vertices, width)) if width else None for width in widths]
        data = pack_first(layers[0], corners, *layers[1:])
        return as_text(data) if variant == "first as text" else data

    def noise(bit: int, width: int, kind: str = "u1") -> Any:
        size = vertices * width * np.dtype(kind).itemsize
        return np.frombuffer(rng.randbytes(size), kind).reshape(vertices, width) if bits & bit else None

    has_weights = variant == "submeshes" and bits & WEIGHTS
    stored = Stored(
        _bounds(rng, 3),
        noise(1, 3, "<u2"),
        corners,
        noise(NORMALS, 3),
        noise(TANGENTS, 4),
        _bounds(rng, 2),
        noise(UVS, 2, "<u2"),
        struct.pack("<4f4H", 0.5, 0.5, 0, 0, 1, 2, 0, 0) * vertices if has_weights else None,
    )
    data = pack(stored, _shares(rng, triangles) if variant == "submeshes" else None)
    if variant == "cache":
        return pack_cached(data, rng.choice(("tree", "", "Ёлка" * 30, "x" * 300)), rng.getrandbits(63))
    return data


VARIANTS = ("current", "current", "current", "cache", "submeshes", "first", "first as text")


def whole(rng: random.Random) -> tuple[bytes, str]:
    """Return a sound file of any variant; a few of them are as large as they can be."""
    variant = rng.choice(VARIANTS)
    least = 1 if variant != "current" else 0
    if rng.random() < 0.004:
        vertices, triangles = rng.choice(((_MOST, _MOST), (64_001, 10), (10, 64_001), (_MOST, 0)))
    else:
        vertices, triangles = max(least, int(rng.expovariate(1 / 12))), int(rng.expovariate(1 / 10))
    triangles = triangles if vertices else 0
    data = sound(rng, variant, vertices=vertices, triangles=triangles, bits=1 | rng.randrange(32))
    return data, f"{variant}, {vertices} vertices, {triangles} triangles"


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a case: a sample or a made file, whole or changed."""
    choice = rng.random()
    if files and choice < 0.1:
        name = rng.choice(sorted(files, key=lambda name: len(files[name]))[:5])
        data, name = files[name], f"sample {name}"
    else:
        data, name = whole(rng)
    if choice > 0.85:
        return data, f"{name}, unchanged"
    if choice > 0.75:
        return raw.mutate(data, rng), f"{name}, raw changes"
    for _ in range(rng.choice((1, 1, 2, 5))):
        data = rng.choice(_CHANGES)(data, rng)
    return data, f"{name}, changed values"


# -- changes that keep the length ---------------------------------------------------------------


def _any_float(data: bytes, rng: random.Random) -> bytes:
    """Put an odd number where a float may stand: at the bounds, or anywhere."""
    at = rng.choice((5 + 4 * rng.randrange(6), 12 + 4 * rng.randrange(8), rng.randrange(max(1, len(data) - 3))))
    odd = struct.pack("<I", _SIGNALLING) if rng.random() < 0.1 else struct.pack("<f", rng.choice(_FLOATS))
    return _put(data, at, odd)


def _any_index(data: bytes, rng: random.Random) -> bytes:
    """Change one of the last numbers, which are indices."""
    odd = struct.pack("<H", rng.choice((0, 1, 2, 255, 256, 32767, 32768, 65535)))
    return _put(data, max(0, len(data) - 2 * rng.randrange(1, 30)), odd)


def _any_byte(data: bytes, rng: random.Random) -> bytes:
    return _put(data, rng.randrange(max(1, len(data))), bytes([rng.choice((0, 1, 127, 128, 129, 254, 255))]))


def _same_bytes(data: bytes, rng: random.Random) -> bytes:
    """Make a stretch the same: flat meshes, normals without direction, triangles without area."""
    at, length = rng.randrange(max(1, len(data))), rng.choice((6, 24, 60, len(data)))
    return _put(data, at, bytes([rng.choice((0, 1, 127, 128, 255))]) * min(length, len(data) - at))


def _lie(data: bytes, rng: random.Random) -> bytes:
    """Change a count, and give the file the length that it then asks for."""
    if len(data) < 5:
        return data
    vertices, triangles, bits = struct.unpack_from("<HHB", data)
    vertices = rng.choice((vertices, 0, 1, 2, min(vertices + 1, _MOST), 300, _MOST if rng.random() < 0.05 else 7))
    triangles = rng.choice((triangles, 0, 1, min(triangles + 1, _MOST), 500, _MOST if rng.random() < 0.05 else 9))
    bits = rng.choice((bits, bits, 1, 3, 9, 11, 15))
    size = 5 + (24 + 16 * bool(bits & 8) if vertices else 0) + 6 * triangles
    size += vertices * sum(value for bit, value in _SIZES.items() if bits & 15 & bit)
    return (struct.pack("<HHB", vertices, triangles, bits) + data[5:]).ljust(size, b"\0")[:size]


def _format(data: bytes, rng: random.Random) -> bytes:
    return _put(data, 4, bytes([rng.randrange(256)]))


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _any_float,
    _any_float,
    _any_index,
    _any_byte,
    _same_bytes,
    _lie,
    _format,
)


# -- pieces -------------------------------------------------------------------------------------


def _put(data: bytes, at: int, fresh: bytes) -> bytes:
    return data if at + len(fresh) > len(data) else data[:at] + fresh + data[at + len(fresh) :]


def _bounds(rng: random.Random, axes: int) -> Any:
    return np.sort([[rng.uniform(-9, 9), rng.uniform(-9, 9)] for _ in range(axes)], axis=1)


def _everyday(rng: random.Random, shape: tuple[int, int]) -> Any:
    return np.resize([rng.uniform(-2, 2) for _ in range(97)], shape)


def _corners(rng: random.Random, triangles: int, vertices: int) -> Any:
    return (np.arange(3 * triangles) * rng.choice((1, 1, 7, 31)) % max(1, vertices)).reshape(-1, 3)


def _shares(rng: random.Random, triangles: int) -> Sequence[int]:
    """Return the triangles of each submesh; some are empty, and some files have very many."""
    count = rng.choice((1, 2, 3, 10, 1024 if rng.random() < 0.05 else 4))
    cuts = sorted(rng.randrange(triangles + 1) for _ in range(count - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, triangles], strict=True)]
