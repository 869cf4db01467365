"""Files of the MeshSerializer family, put together from the format page with ``struct`` and NumPy alone."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

NORMALS, TANGENTS, UVS, WEIGHTS = 2, 4, 8, 16
"""Bits of the format beside positions, 1."""
TRIANGLES = ((0, 1, 2), (2, 3, 4), (4, 5, 6))
Triangles = Sequence[tuple[int, int, int]]


@dataclass
class Stored:
    """The numbers of a file as they are stored."""

    bounds: Any
    """(3, 2) float32: least and most of x, y, z."""
    positions: Any
    """(V, 3) uint16."""
    triangles: Any
    """(T, 3) uint16."""
    normals: Any = None
    """(V, 3) uint8."""
    tangents: Any = None
    """(V, 4) uint8."""
    uv_bounds: Any = None
    """(2, 2) float32."""
    uvs: Any = None
    """(V, 2) uint16."""
    weights: bytes | None = None
    """Four float32 and four uint16 for each vertex."""

    @property
    def points(self) -> Any:
        """(V, 3) in double precision."""
        return between(self.positions, self.bounds)

    @property
    def uv(self) -> Any:
        """(V, 2) in double precision."""
        return between(self.uvs, self.uv_bounds)

    @property
    def step(self) -> Any:
        """The distance between two neighbouring numbers on each axis."""
        return np.diff(self.bounds.astype(np.float64), axis=1)[:, 0] / 65535

    @property
    def uv_step(self) -> Any:
        return np.diff(self.uv_bounds.astype(np.float64), axis=1)[:, 0] / 65535

    @property
    def proper(self) -> Any:
        """The triangles with three different corners."""
        a, b, c = self.triangles.T
        return self.triangles[(a != b) & (b != c) & (c != a)]


def between(steps: Any, bounds: Any) -> Any:
    """Return the values of steps between bounds."""
    least, most = bounds.astype(np.float64).T
    return steps.astype(np.float64) / 65535 * (most - least) + least


def directions(stored: Any) -> Any:
    """Return the directions of bytes, not of unit length."""
    return (stored.astype(np.float64) - 128) / 127


# -- files ----------------------------------------------------------------------------------------


def pack(stored: Stored, submeshes: Sequence[int] | None = None) -> bytes:
    """Return the bytes of a file; ``submeshes`` are the triangles of each in the port that has them (section 7)."""
    held = ((NORMALS, stored.normals), (TANGENTS, stored.tangents), (UVS, stored.uvs), (WEIGHTS, stored.weights))
    bits = 1 + sum(bit for bit, values in held if values is not None)
    second = len(stored.triangles) if submeshes is None else len(submeshes)
    parts = [struct.pack("<HHB", len(stored.positions), second, bits)]
    if len(stored.positions):
        parts.append(np.asarray(stored.bounds, "<f4").tobytes())
    parts.append(np.asarray(stored.positions, "<u2").tobytes())
    parts += [
        np.asarray(values, np.uint8).tobytes() for values in (stored.normals, stored.tangents) if values is not None
    ]
    if stored.uvs is not None and len(stored.uvs):
        parts += [np.asarray(stored.uv_bounds, "<f4").tobytes(), np.asarray(stored.uvs, "<u2").tobytes()]
    parts.append(stored.weights or b"")
    corners = np.asarray(stored.triangles, "<u2").tobytes()
    start = 0
    for count in submeshes or ():
        parts += [struct.pack("<H", count), corners[6 * start : 6 * (start + count)]]
        start += count
    return b"".join([*parts, corners if submeshes is None else b""])


def pack_cached(data: bytes, name: str, ticks: int) -> bytes:
    """Return the bytes of a file in a SALT mod cache (section 7): a name of up to 16,383 bytes before, a date after."""
    text = name.encode()
    length = bytes([len(text)]) if len(text) < 128 else bytes([len(text) & 127 | 128, len(text) >> 7])
    return length + text + data + struct.pack("<q", ticks)


def pack_first(points: Any, triangles: Any, normals: Any = None, tangents: Any = None, uvs: Any = None) -> bytes:
    """Return the bytes of a file of version 1 (section 7)."""
    held = ((1, points), (NORMALS, normals), (TANGENTS, tangents), (UVS, uvs))
    bits = sum(bit for bit, values in held if values is not None)
    layers = [np.asarray(values, "<f4").tobytes() for _, values in held if values is not None]
    head = struct.pack("<iii", len(points), len(triangles), bits)
    return b"".join([head, *layers, np.asarray(triangles, "<i4").tobytes()])


def as_text(data: bytes) -> bytes:
    """Return a file of version 1 "for the web": a character for each half of a byte, the high one first."""
    values = np.frombuffer(data, np.uint8)
    return (np.stack((values >> 4, values & 15), axis=1) + np.uint8(33)).tobytes()


# -- made values ----------------------------------------------------------------------------------


def sample(
    vertices: int = 7,
    triangles: Triangles = TRIANGLES,
    bits: int = 11,
    *,
    bounds: Sequence[float] = (-1.0, 2.0, 0.5, 0.75, -3.0, 5.5),
    uv_bounds: Sequence[float] = (-0.25, 1.5, 0.0, 1.0),
) -> Stored:
    """Return values of a file with these layers."""
    numbers = np.arange(vertices)
    signs = 1 + 254 * (numbers % 2)[:, None]
    weights = (struct.pack("<4f4H", 0.5, 0.25, 0.25, 0, number % 3, 1, 2, 0) for number in range(vertices))
    return Stored(
        np.array(bounds).reshape(3, 2),
        _steps(numbers, 3),
        np.array(triangles).reshape(-1, 3),
        _directions(numbers) if bits & NORMALS else None,
        np.hstack((_directions(numbers + 3), signs)) if bits & TANGENTS else None,
        np.array(uv_bounds).reshape(2, 2),
        _steps(numbers + 11, 2) if bits & UVS else None,
        b"".join(weights) if bits & WEIGHTS else None,
    )


def _steps(numbers: Any, count: int) -> Any:
    return (numbers[:, None] * 9241 + np.arange(count) * 30011 + numbers[:, None] ** 2 * 127) % 65536


def _directions(numbers: Any) -> Any:
    a, b = numbers * 1.7, numbers * 0.9
    rows = np.stack((np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)), axis=1)
    return np.floor(rows * 127 + 128).astype(np.uint8)


def current(**changes: Any) -> bytes:
    """Return a MeshSerializer2 file."""
    return pack(sample(**changes))


def submeshes(parts: Sequence[Triangles], **changes: Any) -> bytes:
    """Return a file of the port with submeshes and bones."""
    triangles = [triangle for part in parts for triangle in part]
    return pack(sample(triangles=triangles, **changes), [len(part) for part in parts])


def cached(name: str, date: int = 635_608_512_000_000_000, **changes: Any) -> bytes:
    """Return a mesh of a SALT mod cache."""
    return pack_cached(current(**changes), name, date)


def first(vertices: int = 5, triangles: Triangles = TRIANGLES[:2], bits: int = 15) -> bytes:
    """Return a version 1."""
    n = np.arange(vertices)
    return pack_first(
        np.stack((np.sin(n), 0.5 * n, np.cos(2 * n)), axis=1),
        triangles,
        np.stack((np.sin(n), np.cos(n), 0 * n), axis=1) if bits & NORMALS else None,
        np.stack((np.cos(n), -np.sin(n), 0 * n, 1 - 2 * (n % 2)), axis=1) if bits & TANGENTS else None,
        np.stack((0.3 * n, 1 - 0.1 * n), axis=1) if bits & UVS else None,
    )


def family() -> dict[str, bytes]:
    """Return files of every variant by name."""
    found = {f"2, format {bits}": current(bits=bits) for bits in (1, 3, 5, 7, 9, 11, 13, 15)}
    found["2, points"] = current(triangles=())
    found["2, nothing"] = current(vertices=0, triangles=())
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
