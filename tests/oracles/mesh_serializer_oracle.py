"""An independent reading of MeshSerializer2 files: docs/formats/mesh_serializer.md and ``struct``, none of our code.

One value after the other, plainly, so that it can be held against the page line by line; numbers in double precision.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

Row = tuple[float, ...]


class WrongFile(Exception):
    """The bytes are not what the page says."""


@dataclass
class Plain:
    """What a file says, in its own space."""

    format: int
    position_bounds: Row = ()
    uv_bounds: Row = ()
    position_steps: list[tuple[int, ...]] = field(default_factory=list)
    uv_steps: list[tuple[int, ...]] = field(default_factory=list)
    normal_bytes: list[tuple[int, ...]] = field(default_factory=list)
    tangent_bytes: list[tuple[int, ...]] = field(default_factory=list)
    triangles: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def positions(self) -> list[Row]:
        """Section 2."""
        return [values(steps, self.position_bounds) for steps in self.position_steps]

    @property
    def uvs(self) -> list[Row]:
        return [values(steps, self.uv_bounds) for steps in self.uv_steps]

    @property
    def normals(self) -> list[Row]:
        """Of unit length; zero ones stay zero."""
        return [unit(tuple((byte - 128) / 127 for byte in row)) for row in self.normal_bytes]

    @property
    def tangents(self) -> list[Row]:
        """A unit direction and -1 or 1."""
        return [
            (*unit(tuple((byte - 128) / 127 for byte in row[:3])), -1.0 if row[3] < 128 else 1.0)
            for row in self.tangent_bytes
        ]


def values(steps: tuple[int, ...], bounds: Row) -> Row:
    return tuple(q / 65535 * (bounds[2 * k + 1] - bounds[2 * k]) + bounds[2 * k] for k, q in enumerate(steps))


def unit(row: Row) -> Row:
    length = sum(value * value for value in row) ** 0.5
    return tuple(value / length for value in row) if length else row


def read(data: bytes) -> Plain:
    """Read a MeshSerializer2 file of at least one vertex (section 1)."""
    vertices, triangles, bits = struct.unpack_from("<HHB", data)
    if not bits & 1 or bits > 15:
        raise WrongFile(f"format {bits}")
    length = 5 + 24 + 6 * vertices
    length += 3 * vertices if bits & 2 else 0
    length += 4 * vertices if bits & 4 else 0
    length += 16 + 4 * vertices if bits & 8 else 0
    length += 6 * triangles
    if len(data) != length:
        raise WrongFile(f"{len(data)} bytes instead of {length}")
    plain = Plain(bits)
    plain.position_bounds = struct.unpack_from("<6f", data, 5)
    at = 29
    plain.position_steps, at = rows(data, at, "<3H", vertices)
    if bits & 2:
        plain.normal_bytes, at = rows(data, at, "<3B", vertices)
    if bits & 4:
        plain.tangent_bytes, at = rows(data, at, "<4B", vertices)
    if bits & 8:
        plain.uv_bounds = struct.unpack_from("<4f", data, at)
        plain.uv_steps, at = rows(data, at + 16, "<2H", vertices)
    plain.triangles, at = rows(data, at, "<3H", triangles)
    if at != len(data) or any(index >= vertices for row in plain.triangles for index in row):
        raise WrongFile("indices")
    return plain


def rows(data: bytes, at: int, layout: str, count: int) -> tuple[list[tuple[int, ...]], int]:
    end = at + struct.calcsize(layout) * count
    return list(struct.iter_unpack(layout, data[at:end])), end


def to_blender(row: Row, axes: str = "UNITY") -> Row:
    """Section 3; further numbers of a row are kept."""
    x, y, z = row[:3]
    return (-x, -z, y, *row[3:]) if axes == "UNITY" else (x, z, y, *row[3:])
