"""MeshSerializer2 files put together and taken apart by hand, for tests that must not trust our own reader or writer.

``struct`` and NumPy alone; what is here follows the layout of the format page's section 1 and nothing else.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

NORMALS, TANGENTS, UVS = 2, 4, 8
"""Bits of the format beside positions, 1."""


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


def pack(stored: Stored) -> bytes:
    """Return the bytes of a file."""
    held = ((NORMALS, stored.normals), (TANGENTS, stored.tangents), (UVS, stored.uvs))
    bits = 1 + sum(bit for bit, values in held if values is not None)
    parts = [struct.pack("<HHB", len(stored.positions), len(stored.triangles), bits)]
    if len(stored.positions):
        parts.append(np.asarray(stored.bounds, "<f4").tobytes())
    parts.append(np.asarray(stored.positions, "<u2").tobytes())
    parts += [
        np.asarray(values, np.uint8).tobytes() for values in (stored.normals, stored.tangents) if values is not None
    ]
    if stored.uvs is not None:
        parts += [np.asarray(stored.uv_bounds, "<f4").tobytes(), np.asarray(stored.uvs, "<u2").tobytes()]
    return b"".join([*parts, np.asarray(stored.triangles, "<u2").tobytes()])


def unpack(data: bytes) -> Stored:
    """Return what the bytes of a file with vertices hold."""
    vertices, triangles, bits = struct.unpack_from("<HHB", data)
    place = 5

    def take(count: int, width: int, kind: str) -> Any:
        nonlocal place
        values = np.frombuffer(data, kind, count * width, place).reshape(count, width)
        place += values.nbytes
        return values

    bounds = take(3, 2, "<f4")
    positions = take(vertices, 3, "<u2")
    normals = take(vertices, 3, "u1") if bits & NORMALS else None
    tangents = take(vertices, 4, "u1") if bits & TANGENTS else None
    uv_bounds = take(2, 2, "<f4") if bits & UVS else None
    uvs = take(vertices, 2, "<u2") if bits & UVS else None
    indices = take(triangles, 3, "<u2")
    assert place == len(data), f"{len(data) - place} bytes are left"
    return Stored(bounds, positions, indices, normals, tangents, uv_bounds, uvs)


def first(stored: Stored, *, as_text: bool = False) -> bytes:
    """Return the bytes of a file of version 1 with positions, normals and UVs (section 7)."""
    parts = [struct.pack("<iii", len(stored.positions), len(stored.triangles), 1 + NORMALS + UVS)]
    parts += [values.astype("<f4").tobytes() for values in (stored.points, directions(stored.normals), stored.uv)]
    data = b"".join([*parts, stored.triangles.astype("<i4").tobytes()])
    if not as_text:
        return data
    values = np.frombuffer(data, np.uint8)
    return (np.stack((values >> 4, values & 15), axis=1) + np.uint8(33)).tobytes()


def with_submeshes(stored: Stored, counts: tuple[int, ...]) -> bytes:
    """Return the bytes of a file of the port with submeshes, which have so many triangles each."""
    whole = pack(stored)
    body = whole[5 : len(whole) - stored.triangles.size * 2]
    parts = [struct.pack("<HHB", len(stored.positions), len(counts), whole[4]), body]
    start = 0
    for count in counts:
        parts += [struct.pack("<H", count), stored.triangles[start : start + count].astype("<u2").tobytes()]
        start += count
    return b"".join(parts)


def cached(stored: Stored, name: str, ticks: int) -> bytes:
    """Return the bytes of a file of a SALT cache: a name before, a date after."""
    text = name.encode()
    assert len(text) < 128
    return bytes([len(text)]) + text + pack(stored) + struct.pack("<q", ticks)


def crate(size: tuple[float, float, float] = (2.0, 1.0, 4.0), *, tangents: bool = False) -> Stored:
    """Return a box of this size in Unity's axes, its bottom on the ground: 24 vertices, 12 triangles, each side's UVs.

    It is made as the wiki's writer does: in Unity, front faces are wound so that the cross product of their edges
    points outwards in left-handed axes.
    """
    corners, normals, sides, uvs = [], [], [], []
    for axis in range(3):
        for sign in (0, 1):
            first = len(corners)
            for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
                place = [0, 0, 0]
                place[axis], place[(axis + 1) % 3], place[(axis + 2) % 3] = sign, u, v
                corners.append(place)
                uvs.append((u, v))
                normal = [128, 128, 128]
                normal[axis] = 255 if sign else 1
                normals.append(normal)
            turn = (0, 1, 2, 0, 2, 3) if sign else (2, 1, 0, 3, 2, 0)
            sides.append([first + corner for corner in turn])
    half = np.array(size) / 2
    bounds = np.stack(([-half[0], 0, -half[2]], [half[0], size[1], half[2]]), axis=1).astype(np.float32)
    made = Stored(
        bounds,
        np.array(corners, np.uint16) * 65535,
        np.array(sides, np.uint16).reshape(-1, 3),
        np.array(normals, np.uint8),
        None,
        np.array([[0, 1], [0, 1]], np.float32),
        np.array(uvs, np.uint16) * 65535,
    )
    if tangents:
        along = np.full((24, 4), 128, np.uint8)
        along[np.arange(24), np.repeat((1, 2, 0), 8)] = 255
        along[:, 3] = np.where(np.arange(24) % 8 < 4, 1, 255)
        made.tangents = along
    return made


def assert_same(before: Stored, after: Stored) -> int:
    """See that two files hold the same triangles, stored alike; return how many vertices have other directions.

    Where Blender has no exact normals (before 4.5), its tangent space may change them: few at all, by 3 steps at most;
    those of triangles without area, or back to back on the same vertices, by more.
    """
    np.testing.assert_array_equal(before.bounds, after.bounds)
    np.testing.assert_array_equal(before.proper, after.triangles)
    np.testing.assert_array_equal(before.positions, after.positions)
    assert (before.uvs is None) == (after.uvs is None)
    if before.uvs is not None:
        np.testing.assert_array_equal(before.uv_bounds, after.uv_bounds)
        np.testing.assert_array_equal(before.uvs, after.uvs)
    assert (before.normals is None, before.tangents is None) == (after.normals is None, after.tangents is None)
    steps = np.abs(before.normals.astype(int) - after.normals.astype(int)).max(axis=1)
    differ = steps > 0
    corners = before.points[before.triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    _, same, often = np.unique(np.sort(before.triangles, axis=1), axis=0, return_inverse=True, return_counts=True)
    is_plain = np.ones(len(steps), bool)
    is_plain[before.triangles[(areas < 1e-9) | (often[same.reshape(-1)] > 1)]] = False
    assert steps[is_plain].max(initial=0) <= 3
    if before.tangents is not None:
        np.testing.assert_array_equal(before.tangents[~differ], after.tangents[~differ])
    return int(np.count_nonzero(differ))
