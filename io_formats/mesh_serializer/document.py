"""A MeshSerializer2 file, or one of its relatives, one to one; sections are those of docs/formats/mesh_serializer.md.

Letters in shapes: V vertices, T triangles. Arrays may be read-only views of the file's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ..core.scene import AnyArray


class Variant(StrEnum):
    """Which of the family a file is (section 7); the values are what ``inspect`` calls its version."""

    CURRENT = "2"
    SUBMESHES = "2 with submeshes"
    CACHED = "2 in a SALT cache"
    FIRST = "1"
    FIRST_TEXT = "1 as text"


POSITIONS, NORMALS, TANGENTS, UVS, WEIGHTS = 1, 2, 4, 8, 16
"""Bits of the format; weights in ``Variant.SUBMESHES`` alone."""

MOST_SAFE = 64_000
"""Vertices and triangles that the original reader takes (section 4)."""
MOST = 65_535
"""Vertices and triangles that a file can hold."""


@dataclass
class Document:
    """One mesh. What is stored as floats in version 1 is stored as integers between bounds in all others."""

    variant: Variant
    positions: AnyArray
    """(V, 3) uint16 between ``position_bounds``; version 1: float32."""
    triangles: AnyArray
    """(T, 3) uint16 into the vertices, of all submeshes in a row; version 1: int32."""
    position_bounds: AnyArray | None = None
    """(6,) float32: xmin, xmax, ymin, ymax, zmin, zmax; None without vertices and in version 1."""
    normals: AnyArray | None = None
    """(V, 3) uint8, (b - 128) / 127; version 1: float32."""
    tangents: AnyArray | None = None
    """(V, 4) uint8, the last the side of the bitangent; version 1: float32."""
    uvs: AnyArray | None = None
    """(V, 2) uint16 between ``uv_bounds``; version 1: float32."""
    uv_bounds: AnyArray | None = None
    """(4,) float32: umin, umax, vmin, vmax; None without vertices or UVs and in version 1."""
    joint_weights: AnyArray | None = None
    """(V, 4) float32; ``Variant.SUBMESHES`` alone, as the next two."""
    joint_indices: AnyArray | None = None
    """(V, 4) uint16; the file holds no bones that they could name."""
    submeshes: list[int] | None = None
    """Triangles of each submesh; None: the format knows none."""
    name: str = ""
    """``Variant.CACHED`` alone, as the next."""
    date: int = 0
    """When it was cached: an int64 as .NET stores dates."""
    warnings: list[str] = field(default_factory=list)

    @property
    def format(self) -> int:
        """The bits that say what the vertices hold."""
        held = (
            (NORMALS, self.normals),
            (TANGENTS, self.tangents),
            (UVS, self.uvs),
            (WEIGHTS, self.joint_weights),
        )
        return POSITIONS | sum(bit for bit, values in held if values is not None)
