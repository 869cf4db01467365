"""Dataclasses that mirror a MeshSerializer2 file or a variant one to one (docs/formats/mesh_serializer.md).

Letters in shapes: V vertices, T triangles. Arrays may be read-only views of the file's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.scene import AnyArray


class Variant(StrEnum):
    """The variant of a file (section 7). The values are what ``inspect`` prints as version."""

    CURRENT = "2"
    SUBMESHES = "2 with submeshes"
    CACHED = "2 in a SALT cache"
    FIRST = "1"
    FIRST_TEXT = "1 as text"


POSITIONS, NORMALS, TANGENTS, UVS, WEIGHTS = 1, 2, 4, 8, 16
"""Bits of the format field; weights occur only in ``Variant.SUBMESHES``."""

MOST_SAFE = 64_000
"""Most vertices, and most triangles, that the original reader accepts (section 4)."""
MOST = 65_535
"""Most vertices, and most triangles, that a file can hold."""


@dataclass
class Document:
    """One mesh. Version 1 stores floats; all other variants store integers with the bounds of their range."""

    variant: Variant
    positions: AnyArray
    """(V, 3) uint16 between ``position_bounds``; version 1: float32."""
    triangles: AnyArray
    """(T, 3) uint16 into the vertices, the submeshes one after the other; version 1: int32."""
    position_bounds: AnyArray | None = None
    """(6,) float32: xmin, xmax, ymin, ymax, zmin, zmax; None without vertices and in version 1."""
    normals: AnyArray | None = None
    """(V, 3) uint8, (b - 128) / 127; version 1: float32."""
    tangents: AnyArray | None = None
    """(V, 4) uint8, the last one the sign of the bitangent; version 1: float32."""
    uvs: AnyArray | None = None
    """(V, 2) uint16 between ``uv_bounds``; version 1: float32."""
    uv_bounds: AnyArray | None = None
    """(4,) float32: umin, umax, vmin, vmax; None without vertices or UVs and in version 1."""
    joint_weights: AnyArray | None = None
    """(V, 4) float32; only in ``Variant.SUBMESHES``, like the next two fields."""
    joint_indices: AnyArray | None = None
    """(V, 4) uint16 bone indices; the file does not hold the bones."""
    submeshes: list[int] | None = None
    """Number of triangles of each submesh, or None if the variant has no submeshes."""
    name: str = ""
    """Only in ``Variant.CACHED``, like the next field."""
    date: int = 0
    """Time of caching: an int64 as .NET stores dates."""
    warnings: list[Any] = field(default_factory=list)

    @property
    def format(self) -> int:
        """The bits that state which vertex values the file holds."""
        held = (
            (NORMALS, self.normals),
            (TANGENTS, self.tangents),
            (UVS, self.uvs),
            (WEIGHTS, self.joint_weights),
        )
        return POSITIONS | sum(bit for bit, values in held if values is not None)
