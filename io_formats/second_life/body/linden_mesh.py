"""Files ``.llm`` of a viewer: a mesh of the classic avatar with its morph targets (shape format page, section 8.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...encodings.byte_reader import ByteStream
from ..avatar import skeleton_table

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

SIGNATURE = b"Linden Binary Mesh 1.0\0\0"
_END_OF_MORPHS = "End Morphs"
_NAME_SIZE = 64
_REMAP = np.dtype([("source", "<i4"), ("target", "<i4")])
_MOVED = np.dtype(
    [("vertex", "<u4"), ("position", "<f4", 3), ("normal", "<f4", 3), ("binormal", "<f4", 3), ("uv", "<f4", 2)]
)
ROOT = ""
"""Stands for the root of the avatar, above mPelvis, in lists of joints."""


@dataclass(frozen=True)
class Morph:
    """Differences of n vertices from the base mesh."""

    vertices: Indices
    """(n,)"""
    positions: Floats
    """(n, 3) in metres."""


@dataclass(frozen=True)
class LindenMesh:
    """v vertices in the avatar's space: metres, X forward, Y to the left, Z up."""

    positions: Floats
    """(v, 3)"""
    normals: Floats
    """(v, 3)"""
    uvs: Floats
    """(v, 2), V up."""
    triangles: Indices
    """(t, 3)"""
    joint_indices: Indices
    """(v, 2) places in ``joints`` of the two joints that move each vertex; (v, 0) for rigid meshes."""
    joint_weights: Floats
    """(v, 2), with the sum 1; (v, 0) for rigid meshes."""
    joints: tuple[str, ...]
    """Joints between which weights lead; a joint may occur more than once."""
    morphs: Mapping[str, Morph]


def read_linden_mesh(data: bytes, name: str) -> LindenMesh:
    """Return the mesh in the bytes of a file.

    Raises
    ------
    FormatError
        The file is damaged, or holds only the faces of a coarser level.
    """
    try:
        return _read(ByteStream(data))
    except FormatError as error:
        raise error.in_file(name) from None


def _read(stream: ByteStream) -> LindenMesh:
    if not data_is_mesh(stream.data):
        raise stream.error("This is not a mesh of the classic avatar: it does not begin with 'Linden Binary Mesh 1.0'")
    stream.skip(len(SIGNATURE), "signature")
    has_weights, has_details = (bool(stream.u8("flag")) for _ in range(2))
    stream.skip(12 + 12 + 1 + 12, "position, rotation and scale")
    count = stream.u16("number of vertices")
    positions, normals, _binormals = (
        _floats(stream, (count, 3), what) for what in ("positions", "normals", "binormals")
    )
    uvs = _floats(stream, (count, 2), "UVs")
    if has_details:
        stream.skip(count * 8, "detail UVs")
    places = _floats(stream, (count,), "weights") if has_weights else np.zeros(0, np.float32)
    triangles = _vertices(stream, stream.array("i2", (stream.u16("number of faces"), 3), "faces"), count, "A face")
    joints: tuple[str, ...] = ()
    if has_weights:
        number = stream.u16("number of joints")
        stream.require(number * _NAME_SIZE, "names of joints")
        joints = joint_list([_name(stream, "name of a joint") for _ in range(number)], stream)
    indices, weights = _influences(stream, places, joints)
    morphs = {}
    while (name := _name(stream, "name of a morph target")) != _END_OF_MORPHS:
        stream.item = f"morph target '{name}'"
        rows = stream.array(_MOVED, stream.i32("number of vertices"), "vertices")
        moved = _vertices(stream, rows["vertex"], count, "It")
        morphs[name] = Morph(moved, _finite(stream, rows["position"], "positions"))
        stream.item = ""
    stream.array(_REMAP, stream.i32("number of remaps"), "remaps")
    stream.expect_end()
    return LindenMesh(positions, normals, uvs, triangles, indices, weights, joints, morphs)


def data_is_mesh(data: bytes | memoryview) -> bool:
    """Return whether bytes begin as such a file does."""
    return bytes(data[: len(SIGNATURE)]) == SIGNATURE


def joint_list(names: list[str], stream: ByteStream) -> tuple[str, ...]:
    """Return the joints that weights count, from those that a file names (section 8.3)."""
    table = skeleton_table.table()
    for name in names:
        if name not in table:
            raise stream.error("The avatar has no joint '{}'", name)
    found: list[str] = []
    for name in table:
        if name not in names:
            continue
        above = next((joint for joint in skeleton_table.ancestors(name)[1:] if table[joint].is_base), ROOT)
        if not found or found[-1] != above:
            found.append(above)
        found.append(name)
    return tuple(found)


def _influences(stream: ByteStream, places: Floats, joints: tuple[str, ...]) -> tuple[Indices, Floats]:
    if not len(places):
        return np.zeros((0, 0), np.int64), np.zeros((0, 0), np.float32)
    is_outside = (places < 0) | (places >= len(joints))
    if is_outside.any():
        raise stream.error(
            "Vertex {:,} has the weight {:g}, which leads to none of its {} joints",
            int(is_outside.argmax()),
            float(places[is_outside.argmax()]),
            len(joints),
        )
    first = np.floor(places).astype(np.int64)
    part = places - first
    second = np.minimum(first + 1, len(joints) - 1)
    return np.stack((first, second), axis=1), np.stack((1 - part, part), axis=1)


def _floats(stream: ByteStream, shape: tuple[int, ...], what: str) -> Floats:
    return _finite(stream, stream.array("f4", shape, what), what)


def _finite(stream: ByteStream, values: npt.NDArray[Any], what: str) -> Floats:
    if not np.isfinite(values).all():
        raise stream.error("Its {} have NaN or infinite values", what)
    return np.ascontiguousarray(values, np.float32)


def _vertices(stream: ByteStream, values: npt.NDArray[Any], count: int, what: str) -> Indices:
    """Return indices of vertices, which must exist."""
    is_outside = (values < 0) | (values >= count)
    if is_outside.any():
        raise stream.error("{} uses vertex {:,} of {:,}", what, int(values[is_outside][0]), count)
    return values.astype(np.int64)


def _name(stream: ByteStream, what: str) -> str:
    data = bytes(stream.take(_NAME_SIZE, what))
    if b"\0" not in data:
        raise stream.error("The {} has no end within {} bytes", what, _NAME_SIZE)
    return data[: data.index(b"\0")].decode("latin-1")
