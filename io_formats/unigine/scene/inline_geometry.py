"""A mesh inside a scene file -> the document of a mesh file (docs/formats/unigine_scenes.md, section 4)."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from ...core.errors import FormatError
from ..mesh.document import MeshFile, Surface, Target
from .numbers import Numbers, parse_numbers

_VERSION = "ms13"
"""Version of mesh files that store the same data."""
_SIZES = {0: 3, 16: 4, 32: 4, 48: 4}
"""Number of values for each vertex in an array, by the array's offset: position (0), two UV layers (16), tangent frame
(32) and colour (48)."""
_QUANTISED = 32767


def read_inline_mesh(element: Element) -> MeshFile | None:
    """Return the mesh inside a node's element; None if there is none.

    Raises
    ------
    FormatError
        Counts, numbers or indices do not fit.
    """
    found = element.findall("vertex")
    if not found:
        return None
    arrays = dict(_array(child) for child in found)
    counts = {len(values) for values in arrays.values()}
    if 0 not in arrays or len(counts) != 1:
        raise FormatError("its vertex arrays are incomplete or of different lengths")
    indices = _indices(element.find("indices"), counts.pop())
    ranges = [_range(child, len(indices)) for child in element.findall("object_surface")]
    return MeshFile(
        _VERSION, surfaces=[_inline_surface(name, indices[begin:end], arrays) for name, begin, end in ranges]
    )


def _array(element: Element) -> tuple[int, Numbers]:
    """Return the offset and the values of an array of vertex data."""
    offset, count, size = (_whole(element, name) for name in ("offset", "num_vertex", "size"))
    values = parse_numbers(element.text)
    if values is None:
        raise FormatError("its vertex data has a value that is not a finite number")
    if size != _SIZES.get(offset) or len(values) != count * size:
        raise FormatError(
            "its vertex array at offset {} has {:,} numbers for {:,} vertices", offset, len(values), count
        )
    return offset, values.reshape(count, size)


def _whole(element: Element, name: str) -> int:
    try:
        value = int(element.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 31:
        raise FormatError("attribute '{}' of '{}' is not a number", name, element.tag)
    return value


def _indices(element: Element | None, points: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    values = parse_numbers(element.text) if element is not None else None
    if element is None or values is None or len(values) != _whole(element, "num_indices"):
        raise FormatError("its indices are missing or of another number than stated")
    if len(values) and not 0 <= values.min() <= values.max() < points:
        raise FormatError("an index is outside its {:,} vertices", points)
    return values.astype(np.int64)


def _range(element: Element, indices: int) -> tuple[str, int, int]:
    begin, end = _whole(element, "begin"), _whole(element, "end")
    if not begin <= end <= indices or (end - begin) % 3:
        raise FormatError("surface '{}' has invalid triangles {:,} to {:,}", element.get("name", ""), begin, end)
    return element.get("name", ""), begin, end


def _inline_surface(
    name: str, indices: np.ndarray[tuple[int], np.dtype[np.int64]], arrays: dict[int, Numbers]
) -> Surface:
    used, corners = np.unique(indices, return_inverse=True)
    rows = {offset: values[used] for offset, values in arrays.items()}
    uvs = rows.get(16)
    # Quaternions of length 0 make the mesh reader compute normals from the triangles.
    frames = rows.get(32, np.zeros((len(used), 4)))
    stored = np.round(np.clip(frames, -1, 1) * _QUANTISED).astype(np.int16)
    stored[(stored[:, 3] == 0) & np.any(stored != 0, axis=1) & np.signbit(frames[:, 3]), 3] = -1
    corners = corners.reshape(-1).astype(np.int32)
    return Surface(
        name,
        np.zeros(10, np.float32),
        [Target("", rows[0].astype(np.float32), stored)],
        uv0=None if uvs is None else uvs[:, :2].astype(np.float32),
        uv1=None if uvs is None else uvs[:, 2:].astype(np.float32),
        colors=np.round(np.clip(rows[48], 0, 1) * 255).astype(np.uint8) if 48 in rows else None,
        c_indices=corners,
        t_indices=corners,
    )
