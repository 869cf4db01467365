"""Explanations of files that resemble MeshSerializer2 but cannot be read."""

from __future__ import annotations

from ..core.messages import Text
from . import layout
from .document import MOST
from .layout import Header

_MOST_WRAPS = 64
"""Largest number of overflows of a 16-bit count that is tried: meshes of four million vertices or triangles."""
_MOST_PER_VERTEX = 6
"""Largest ratio of triangles to vertices, or vertices to triangles, of a file that counts as a damaged mesh."""


def explain_near_miss(head: bytes, size: int) -> str:
    """Return a sentence about the file without a full stop, or an empty string."""
    header = Header.of(head)
    if header is None:
        return ""
    return _wrapped(head, size, header) or _bind_poses(head, size) or _cut_off(head, size, header)


def _is_possible(head: bytes, header: Header) -> bool:
    """Return whether a header and its bounds are plausible."""
    return header.allows(15) and header.vertices > 0 and layout.has_sound_bounds(head, header)


def _wrapped(head: bytes, size: int, header: Header) -> str:
    """Recognise a mesh with more vertices or triangles than its 16-bit counts can hold (section 4)."""
    if not header.allows(15) or not layout.sound_bounds(head, layout.HEADER.size, 3):
        return ""
    for wraps in range(_MOST_WRAPS):
        large = Header(header.vertices + wraps * (MOST + 1), header.triangles, header.format)
        rest, left = divmod(size - large.size, layout.TRIANGLE * (MOST + 1))
        if left or not 0 <= rest < _MOST_WRAPS or not (wraps or rest) or not large.vertices:
            continue
        triangles = large.triangles + rest * (MOST + 1)
        return Text(
            "This looks like a mesh of Unity's MeshSerializer2 with {:,} vertices and {:,} triangles, written by a "
            "program that ignored the limit of {:,} of each; its triangles are damaged beyond repair. Export "
            "the mesh again in parts",
            large.vertices,
            triangles,
            MOST,
        )
    return ""


def _bind_poses(head: bytes, size: int) -> str:
    """Recognise the PCF asset format, a variant with bones whose layout is known only in part (section 7)."""
    for start, poses in ((4, 0), (6, int.from_bytes(head[4:6], "little"))):
        vertices, triangles = (int.from_bytes(head[at : at + 2], "little") for at in (0, 2))
        weights = 24 * vertices if poses else 0
        for format_size in (0, 1):
            sizes = start + format_size + layout.POSITION_BOUNDS + layout.UV_BOUNDS + 64 * poses
            expected = sizes + 17 * vertices + weights + layout.TRIANGLE * triangles
            at = start + format_size
            if vertices and triangles and expected == size and layout.sound_bounds(head, at, 3):
                return (
                    "This looks like a mesh of the PCF asset format, a variant of MeshSerializer2 whose layout is not "
                    "known well enough to read it"
                )
    return ""


def _cut_off(head: bytes, size: int, header: Header) -> str:
    """Recognise a file that begins like the format but has a different size than its header implies."""
    if not _is_possible(head, header) or not header.triangles:
        return ""
    few, many = sorted((header.vertices, header.triangles))
    if many > _MOST_PER_VERTEX * few or not header.size // 4 <= size <= 4 * header.size:
        return ""
    return Text(
        "This begins like a mesh of Unity's MeshSerializer2 with {:,} vertices and {:,} triangles, which need {:,} "
        "bytes, but it has {:,}: it is damaged or something else",
        header.vertices,
        header.triangles,
        header.size,
        size,
    )
