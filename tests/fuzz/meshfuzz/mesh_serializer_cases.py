"""Hostile files of the MeshSerializer family: whole ones of every variant, with values that are hostile in themselves.

Their length is all that makes them what they are, so most changes keep it: counts that lie are given the bytes that
they ask for, and values are overwritten in their place.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from . import raw

_FLOATS = (0.0, -0.0, 1e-45, 1e-30, 1e-9, 0.001, 1.0, 1e9, 3e38, -3e38, float("nan"), float("inf"), float("-inf"))
_SIGNALLING = 0x7FA00000
_SIZES = {1: 6, 2: 3, 4: 4, 8: 4, 16: 24}
_FIRST_SIZES = {1: 12, 2: 12, 4: 16, 8: 8}
_MOST = 65_535

Maker = Callable[[random.Random], bytes]


def sound(rng: random.Random, variant: str, *, vertices: int, triangles: int, bits: int) -> bytes:
    """Return a file that is one, with everyday bounds and triangles of vertices that there are."""
    if variant.startswith("first"):
        data = struct.pack("<3i", vertices, triangles, bits & 15)
        data += _everyday(rng, sum(size for bit, size in _FIRST_SIZES.items() if bits & bit) * vertices // 4)
        data += _indices(rng, triangles, vertices, "i")
        return _as_text(data) if variant == "first as text" else data
    weights = 16 if variant == "submeshes" else 0
    parts = [triangles] if variant != "submeshes" else _shares(rng, triangles)
    bits &= 15 | weights
    data = struct.pack("<HHB", vertices, len(parts) if weights else triangles, bits)
    data += _bounds(rng, 3) if vertices else b""
    data += rng.randbytes(sum(size for bit, size in _SIZES.items() if bits & bit and bit < 8) * vertices)
    if bits & 8 and vertices:
        data += _bounds(rng, 2) + rng.randbytes(4 * vertices)
    if bits & 16:
        data += b"".join(struct.pack("<4f4H", 0.5, 0.5, 0, 0, 1, 2, 0, 0) for _ in range(vertices))
    for part in parts:
        data += (struct.pack("<H", part) if weights else b"") + _indices(rng, part, vertices, "H")
    if variant == "cache":
        name = rng.choice(("tree", "", "Ёлка" * 30, "x" * 300)).encode()
        return _prefix(len(name)) + name + data + rng.randbytes(8)
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


def _bounds(rng: random.Random, axes: int) -> bytes:
    ends = [sorted((rng.uniform(-9, 9), rng.uniform(-9, 9))) for _ in range(axes)]
    return b"".join(struct.pack("<2f", *pair) for pair in ends)


def _everyday(rng: random.Random, count: int) -> bytes:
    cycle = [rng.uniform(-2, 2) for _ in range(97)]
    return struct.pack(f"<{count}f", *[cycle[number % 97] for number in range(count)])


def _indices(rng: random.Random, triangles: int, vertices: int, code: str) -> bytes:
    step = rng.choice((1, 1, 7, 31))
    return struct.pack(
        f"<{3 * triangles}{code}", *[number * step % max(1, vertices) for number in range(3 * triangles)]
    )


def _shares(rng: random.Random, triangles: int) -> Sequence[int]:
    """Return the triangles of each submesh; some are empty, and some files have very many."""
    count = rng.choice((1, 2, 3, 10, 1024 if rng.random() < 0.05 else 4))
    cuts = sorted(rng.randrange(triangles + 1) for _ in range(count - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, triangles], strict=True)]


def _prefix(length: int) -> bytes:
    return bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])


def _as_text(data: bytes) -> bytes:
    return bytes(character for byte in data for character in (33 + (byte >> 4), 33 + (byte & 15)))
