"""Dataclasses that mirror a MeshSerializer2 file or a variant one to one, and the sizes and headers of such files.

Letters in shapes: V vertices, T triangles. Arrays may be read-only views of the file's bytes.

The format has no magic number: its variants are recognised by their exact length.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

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


@dataclass(repr=False)
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
        held = ((NORMALS, self.normals), (TANGENTS, self.tangents), (UVS, self.uvs), (WEIGHTS, self.joint_weights))
        return POSITIONS | sum(bit for bit, values in held if values is not None)


HEADER = struct.Struct("<HHB")
FIRST_HEADER = struct.Struct("<iii")
DATE_SIZE = 8
POSITION_BOUNDS, UV_BOUNDS = 24, 16
"""Size of the bounds in bytes."""
TRIANGLE = 6
INDEX_COUNT = 2
"""Size of the index count in front of the triangles of a submesh, in bytes."""

_SIZES = {POSITIONS: 6, NORMALS: 3, TANGENTS: 4, UVS: 4, WEIGHTS: 24}
"""Bytes for each vertex."""
_FIRST_SIZES = {POSITIONS: 12, NORMALS: 12, TANGENTS: 16, UVS: 8}

_FARTHEST = 1e9
_NEAREST = 1e-30
"""Largest and smallest magnitude of coordinates other than 0; bytes that give others are not a mesh."""
_LEAST_EXTENT = 1e-7
_MOST_SUBMESHES = 1024
"""Real meshes have far fewer submeshes; values read from other kinds of files go into the thousands."""


class Header(NamedTuple):
    """The first five bytes, or twelve in version 1.

    In the variant with submeshes, ``triangles`` is the number of submeshes.
    """

    vertices: int
    triangles: int
    format: int
    is_first: bool = False
    """Whether the file is of version 1."""

    @classmethod
    def of(cls, data: bytes, start: int = 0, *, is_first: bool = False) -> Header | None:
        """Read a header, or return None if the data is too short."""
        layout = FIRST_HEADER if is_first else HEADER
        if len(data) < start + layout.size:
            return None
        vertices, triangles, content = layout.unpack_from(data, start)
        return cls(vertices, triangles, content, is_first)

    def allows(self, most: int) -> bool:
        """Return whether the format bits include positions and no bit above ``most``."""
        return bool(self.format & POSITIONS) and self.format <= most

    @property
    def fixed_size(self) -> int:
        """Number of bytes before the triangles."""
        if not self.vertices:
            return HEADER.size
        bounds = POSITION_BOUNDS + (UV_BOUNDS if self.format & UVS else 0)
        return HEADER.size + bounds + self.vertices * self.vertex_size

    @property
    def vertex_size(self) -> int:
        sizes = _FIRST_SIZES if self.is_first else _SIZES
        return sum(size for bit, size in sizes.items() if self.format & bit)

    @property
    def size(self) -> int:
        """Size of a file with this header (section 1)."""
        if self.is_first:
            return FIRST_HEADER.size + self.vertices * self.vertex_size + 12 * self.triangles
        return self.fixed_size + TRIANGLE * self.triangles

    @property
    def uv_bounds_at(self) -> int | None:
        """Offset of the UV bounds, or None if there are none."""
        if not self.format & UVS or not self.vertices:
            return None
        before = sum(size for bit, size in _SIZES.items() if self.format & bit and bit < UVS)
        return HEADER.size + POSITION_BOUNDS + self.vertices * before


def fits(head: bytes, size: int, start: int = 0) -> bool:
    """Return whether the header at ``start`` is valid and implies a size of ``size`` bytes (section 4).

    Without triangles the size alone is weak evidence, so the bounds must be plausible too.
    """
    header = Header.of(head, start)
    if header is None or not header.allows(15) or header.size != size:
        return False
    if not header.vertices:
        return not header.triangles
    return bool(header.triangles) or has_sound_bounds(head, header, start)


def has_sound_bounds(head: bytes, header: Header, start: int = 0) -> bool:
    """Return whether the bounds after a header can be those of a mesh, as far as ``head`` contains them."""
    if not header.vertices:
        return True
    if not sound_bounds(head, start + HEADER.size, 3):
        return False
    uv_bounds = header.uv_bounds_at
    if uv_bounds is None or start + uv_bounds + UV_BOUNDS > len(head):
        return True
    return sound_bounds(head, start + uv_bounds, 2)


def sound_bounds(head: bytes, start: int, axes: int) -> bool:
    """Return whether pairs of floats (minimum, maximum) can be bounds: ordered, and of plausible magnitude."""
    if len(head) < start + 8 * axes:
        return False
    values: tuple[float, ...] = struct.unpack_from(f"<{2 * axes}f", head, start)
    if not all(map(sound_number, values)):
        return False
    extents = [most - least for least, most in zip(values[::2], values[1::2], strict=True)]
    return min(extents) >= 0 and max(extents) >= _LEAST_EXTENT


def sound_number(value: float) -> bool:
    """Return whether a float can be a coordinate of a mesh."""
    return value == 0 or (math.isfinite(value) and _NEAREST <= abs(value) <= _FARTHEST)


# -- version 1 ----------------------------------------------------------------------------------


def fits_first(head: bytes, size: int) -> bool:
    """Return whether a file is of version 1: its size matches the header, and its first positions are plausible.

    Empty meshes are not recognised: twelve bytes that are nearly all zero can be anything.
    """
    header = Header.of(head, is_first=True)
    if header is None or not 0 < header.format <= 15 or not header.format & POSITIONS:
        return False
    if header.vertices <= 0 or header.triangles < 0 or header.size != size:
        return False
    count = min(3 * header.vertices, (len(head) - FIRST_HEADER.size) // 4)
    return all(map(sound_number, struct.unpack_from(f"<{count}f", head, FIRST_HEADER.size)))


_CODED = bytes(range(33, 49))
"""The characters for the nibbles 0 to 15 in version 1 as text."""
_TO_DIGIT = bytes.maketrans(_CODED, b"0123456789abcdef")
_FROM_DIGIT = bytes.maketrans(b"0123456789abcdef", _CODED)


def decode_text(text: bytes) -> bytes | None:
    """Decode pairs of characters to bytes, high nibble first. Return None if there are other characters."""
    if len(text) % 2 or text.translate(None, _CODED):
        return None
    return bytes.fromhex(text.translate(_TO_DIGIT).decode("ascii"))


def encode_text(data: bytes) -> bytes:
    """Encode each byte as two characters, high nibble first."""
    return data.hex().encode("ascii").translate(_FROM_DIGIT)


# -- variants of MeshSerializer2 -----------------------------------------------------------------


def fits_submeshes(head: bytes, size: int) -> bool:
    """Return whether a file can be of the variant with submeshes and bones.

    Its size alone is weak evidence, since the triangle counts are inside the data. So everything within ``head`` must
    be plausible.
    """
    header = Header.of(head)
    if header is None or not header.allows(31) or not header.vertices or not 0 < header.triangles <= _MOST_SUBMESHES:
        return False
    rest = size - header.fixed_size - INDEX_COUNT * header.triangles
    if rest < 0 or rest % TRIANGLE or rest // TRIANGLE > MOST * header.triangles:
        return False
    if not has_sound_bounds(head, header):
        return False
    return _submeshes_fit(head, size, header)


def _submeshes_fit(head: bytes, size: int, header: Header) -> bool:
    """Return whether the submeshes within ``head`` have valid vertex indices and end within the file."""
    at = header.fixed_size
    for _ in range(header.triangles):
        if at + INDEX_COUNT > len(head):
            return at + INDEX_COUNT <= size
        start = at + INDEX_COUNT
        at = start + TRIANGLE * int.from_bytes(head[at:start], "little")
        if at > size:
            return False
        count = (min(at, len(head)) - start) // 2
        if count and max(struct.unpack_from(f"<{count}H", head, start)) >= header.vertices:
            return False
    return at == size


def cached_name(head: bytes) -> tuple[str, int] | None:
    """Return the name in front of a mesh in a SALT cache, a .NET string, and the offset of the mesh.

    Return None if the bytes cannot be a name. Lengths must be encoded in as few bytes as possible, as .NET does.
    """
    length = shift = at = 0
    while True:
        if at >= min(len(head), 3):
            return None
        byte = head[at]
        length |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            break
    if (at > 1 and not head[at - 1]) or at + length > len(head):
        return None
    try:
        name = head[at : at + length].decode("utf-8")
    except UnicodeDecodeError:
        return None
    return (name, at + length) if not name or name.isprintable() else None


def fits_cached(head: bytes, size: int) -> bool:
    """Return whether a file is a mesh of a SALT cache: a name, a MeshSerializer2 file, and a date of eight bytes."""
    found = cached_name(head)
    if found is None or not fits(head, size - found[1] - DATE_SIZE, found[1]):
        return False
    header = Header.of(head, found[1])
    return header is not None and bool(header.vertices) and has_sound_bounds(head, header, found[1])
