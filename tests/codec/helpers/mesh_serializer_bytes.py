"""Files of the whole family, put together with ``struct`` from the format page, not by our writer."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

NORMALS, TANGENTS, UVS, WEIGHTS = 2, 4, 8, 16


def quantised(
    vertices: int = 7,
    triangles: Sequence[tuple[int, int, int]] = ((0, 1, 2), (2, 3, 4), (4, 5, 6)),
    bits: int = 11,
    *,
    second: int | None = None,
    bounds: Sequence[float] = (-1.0, 2.0, 0.5, 0.75, -3.0, 5.5),
    uv_bounds: Sequence[float] = (-0.25, 1.5, 0.0, 1.0),
) -> bytes:
    """Return a MeshSerializer2 file up to its triangles (section 1); ``second`` stands for their number."""
    data = struct.pack("<HHB", vertices, len(triangles) if second is None else second, bits)
    if vertices:
        data += struct.pack("<6f", *bounds)
    data += b"".join(struct.pack("<3H", *_steps(i, 3)) for i in range(vertices))
    if bits & NORMALS:
        data += b"".join(struct.pack("<3B", *_direction(i)) for i in range(vertices))
    if bits & TANGENTS:
        data += b"".join(struct.pack("<4B", *_direction(i + 3), 1 + 254 * (i % 2)) for i in range(vertices))
    if bits & UVS:
        data += struct.pack("<4f", *uv_bounds) if vertices else b""
        data += b"".join(struct.pack("<2H", *_steps(i + 11, 2)) for i in range(vertices))
    if bits & WEIGHTS:
        data += b"".join(struct.pack("<4f4H", 0.5, 0.25, 0.25, 0, i % 3, 1, 2, 0) for i in range(vertices))
    return data


def _steps(number: int, count: int) -> list[int]:
    return [(number * 9241 + axis * 30011 + number * number * 127) % 65536 for axis in range(count)]


def _direction(number: int) -> list[int]:
    a, b = number * 1.7, number * 0.9
    row = (math.cos(a) * math.cos(b), math.sin(a) * math.cos(b), math.sin(b))
    return [math.floor(value * 127 + 128) for value in row]


def indices(triangles: Sequence[tuple[int, int, int]], code: str = "H") -> bytes:
    return b"".join(struct.pack(f"<3{code}", *row) for row in triangles)


TRIANGLES = ((0, 1, 2), (2, 3, 4), (4, 5, 6))


def current(**changes: Any) -> bytes:
    """Return a MeshSerializer2 file."""
    return quantised(**changes) + indices(changes.get("triangles", TRIANGLES))


def submeshes(parts: Sequence[Sequence[tuple[int, int, int]]], **changes: Any) -> bytes:
    """Return a file of the port with submeshes and bones (section 7)."""
    data = quantised(second=len(parts), **changes)
    return data + b"".join(struct.pack("<H", len(part)) + indices(part) for part in parts)


def cached(name: str, date: int = 635_608_512_000_000_000, **changes: Any) -> bytes:
    """Return a mesh of a SALT mod cache (section 7); names of up to 16,383 bytes."""
    text = name.encode()
    length = bytes([len(text)]) if len(text) < 128 else bytes([len(text) & 127 | 128, len(text) >> 7])
    return length + text + current(**changes) + struct.pack("<q", date)


def first(
    vertices: int = 5, triangles: Sequence[tuple[int, int, int]] = ((0, 1, 2), (2, 3, 4)), bits: int = 15
) -> bytes:
    """Return a version 1 (section 7)."""
    data = struct.pack("<3i", vertices, len(triangles), bits)
    data += b"".join(struct.pack("<3f", math.sin(i), 0.5 * i, math.cos(2 * i)) for i in range(vertices))
    if bits & NORMALS:
        data += b"".join(struct.pack("<3f", math.sin(i), math.cos(i), 0) for i in range(vertices))
    if bits & TANGENTS:
        data += b"".join(struct.pack("<4f", math.cos(i), -math.sin(i), 0, 1 - 2 * (i % 2)) for i in range(vertices))
    if bits & UVS:
        data += b"".join(struct.pack("<2f", 0.3 * i, 1 - 0.1 * i) for i in range(vertices))
    return data + indices(triangles, "i")


def as_text(data: bytes) -> bytes:
    """Return a version 1 "for the web": a character for each half of a byte, the high one first."""
    return b"".join(bytes([33 + (byte >> 4), 33 + (byte & 15)]) for byte in data)


def family() -> dict[str, bytes]:
    """Return files of every variant by name."""
    found = {f"2, format {bits}": current(bits=bits) for bits in (1, 3, 5, 7, 9, 11, 13, 15)}
    found["2, points"] = current(triangles=())
    found["2, nothing"] = struct.pack("<HHB", 0, 0, 11)
    found["2, flat"] = current(bounds=(-1, 1, -0.0005, 0.0005, 0, 0))
    for bits in (1, 11, 17, 31):
        found[f"submeshes, format {bits}"] = submeshes([TRIANGLES[:2], TRIANGLES[2:]], bits=bits)
    found["submeshes, one"] = submeshes([TRIANGLES])
    found["submeshes, one empty"] = submeshes([TRIANGLES, ()], bits=27)
    found["cache"] = cached("tree_01")
    found["cache, long name"] = cached("Ё" * 100, bits=15)
    found["cache, no name"] = cached("", date=0)
    for bits in (1, 3, 9, 15):
        found[f"1, format {bits}"] = first(bits=bits)
        found[f"1 as text, format {bits}"] = as_text(first(bits=bits))
    return found
