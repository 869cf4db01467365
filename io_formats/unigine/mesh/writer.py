"""Document -> bytes: mr02, ms10 to ms13 and, with stored blocks, ms14 and ms15 (sections 4, 6 and 9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.scene import AnyArray
from .. import collision
from .. import values as unigine_values
from ..bones import encode_table, encode_transforms
from ..frames import write_embedded_frames
from . import consistency, surface_arrays
from .document import MeshFile, Surface, Target
from .versions import (
    ANIMATED_VERSIONS,
    BLOCK_VERSIONS,
    LIGHTMAP_VERSIONS,
    SHORT_TANGENT_VERSION,
    SINGLE_TARGET_VERSION,
    SKINNED_VERSIONS,
    SOUP_VERSION,
)

_SOUP_NAME = 128

Part = bytes | memoryview
"""A part of the encoded file; arrays are included as views, without copying."""


def write(document: MeshFile) -> bytes:
    """Encode a mesh file with the same bytes as the engine; blocks of ms14 and ms15 are not compressed.

    Raises
    ------
    ExportError
        The version cannot be written or cannot hold the document, or the document's arrays do not fit together.
    """
    consistency.check_version(document)
    if document.version == SOUP_VERSION:
        return b"".join(_soup_parts(document))
    for surface in document.surfaces:
        consistency.check_written_surface(surface, len(document.bones))
    if document.version in BLOCK_VERSIONS:
        return b"".join(_block_parts(document))
    return b"".join(_stream_parts(document))


def _soup_parts(document: MeshFile) -> list[Part]:
    parts: list[Part] = [SOUP_VERSION.encode(), len(document.soup).to_bytes(4, "little")]
    for soup in document.soup:
        if len(soup.name) > _SOUP_NAME or len(soup.vertices) % 3 or soup.vertices.shape[1:] != (8,):
            raise ExportError(
                "Surface {!r} is not triangle soup with a name of at most {} bytes", soup.name, _SOUP_NAME
            )
        if not np.isfinite(soup.vertices[:, :3]).all():
            raise ExportError("Surface {!r}: the position of a vertex is NaN or infinite", soup.name)
        parts.append(soup.name.ljust(_SOUP_NAME, b"\0"))
        parts += (len(soup.vertices).to_bytes(4, "little"), _raw(soup.vertices, "<f4"))
    return parts


def _stream_parts(document: MeshFile) -> list[Part]:
    """Encode a file of ms10 to ms13 (section 4)."""
    version = document.version
    magic = version.encode("ascii")
    parts: list[Part] = [magic, _bounds(document.bounds), *_bone_table(document)]
    if version in ANIMATED_VERSIONS:
        parts.append(unigine_values.encode_integer(len(document.animations)))
        parts += [unigine_values.encode_string(animation.name) for animation in document.animations]
    parts.append(unigine_values.encode_integer(len(document.surfaces)))
    for surface in document.surfaces:
        parts += [*_name_and_lightmap(surface, version), _bounds(surface.bounds)]
        parts.append(unigine_values.encode_integer(len(surface.targets)))
        parts += [unigine_values.encode_string(target.name) for target in surface.targets]
    parts += [magic, encode_transforms(document.transforms, document.bones)]
    parts += [write_embedded_frames(animation.frames) for animation in document.animations]
    for surface in document.surfaces:
        for target in surface.targets:
            parts += [unigine_values.encode_integer(len(target.positions)), _raw(target.positions, "<f4")]
            parts += _tangents(target, version)
        parts += _weights(surface)
        parts += _attributes(surface)
        for indices, pool in zip(
            (surface.c_indices, surface.t_indices), surface_arrays.pool_sizes(surface), strict=True
        ):
            parts += [unigine_values.encode_integer(len(indices)), _indices(indices, pool)]
    parts.append(magic)
    return parts


def _block_parts(document: MeshFile) -> list[Part]:
    """Encode a file of ms14 or ms15 (section 6)."""
    version = document.version
    magic = version.encode("ascii")
    parts: list[Part] = [magic, unigine_values.encode_integer(document.leaf_size), _bounds(document.bounds)]
    if version in SKINNED_VERSIONS:
        parts += _bone_table(document)
    parts.append(unigine_values.encode_integer(len(document.surfaces)))
    for surface in document.surfaces:
        parts += _name_and_lightmap(surface, version)
        parts.append(unigine_values.encode_integers([len(surface.c_indices), len(surface.t_indices)]))
        parts.append(_bounds(surface.bounds))
        if version == SINGLE_TARGET_VERSION:
            parts.append(unigine_values.encode_integer(surface_arrays.pool_sizes(surface)[0]))
        else:
            parts.append(unigine_values.encode_integer(len(surface.targets)))
            for target in surface.targets:
                parts += [
                    unigine_values.encode_string(target.name),
                    unigine_values.encode_integer(len(target.positions)),
                ]
    parts += [document.memory_use.to_bytes(8, "little", signed=True), magic]
    if version in SKINNED_VERSIONS:
        parts.append(encode_transforms(document.transforms, document.bones))
    place = _size(parts)
    offsets = []
    for surface in document.surfaces:
        content = _geometry(surface, version)
        offsets.append(place)
        place += 16 + _size(content)
        parts += [_stored_size(_size(content)), *content]
    parts.append(magic)
    for surface in document.surfaces:
        block = surface.collision
        if block is None:
            positions = surface.targets[0].positions if surface.targets else np.empty((0, 3), np.float32)
            block = collision.build(positions, surface.c_indices, document.leaf_size)
        parts += [_stored_size(len(block)), block]
    parts += [magic, np.array(offsets, "<i8").tobytes(), magic]
    return parts


def _geometry(surface: Surface, version: str) -> list[Part]:
    """Encode the content of a geometry block (section 6.3)."""
    parts: list[Part] = []
    for target in surface.targets or [Target("", np.empty((0, 3), np.float32), np.empty((0, 4), np.int16))]:
        if surface.targets or version == SINGLE_TARGET_VERSION:
            parts += [_raw(target.positions, "<f4"), *_tangents(target, version)]
    if version in SKINNED_VERSIONS:
        parts += _weights(surface)
    parts += _attributes(surface)
    vertices, triangle_vertices = surface_arrays.pool_sizes(surface)
    parts += [_indices(surface.c_indices, vertices), _indices(surface.t_indices, triangle_vertices)]
    return parts


def _stored_size(size: int) -> bytes:
    """Encode the head of an uncompressed block: its size, twice (section 6.2)."""
    return size.to_bytes(8, "little") * 2


def _size(parts: Sequence[Part]) -> int:
    return sum(len(part) for part in parts)


def _bounds(bounds: AnyArray) -> bytes:
    if bounds.shape != (10,):
        raise ExportError("Bounds are ten numbers")
    return bounds.astype("<f4").tobytes()


def _bone_table(document: MeshFile) -> list[Part]:
    return [unigine_values.encode_integer(len(document.bones)), encode_table(document.bones)]


def _name_and_lightmap(surface: Surface, version: str) -> list[Part]:
    name = unigine_values.encode_string(surface.name)
    if version not in LIGHTMAP_VERSIONS:
        return [name]
    lightmap = (surface.lightmap_channel, surface.lightmap_resolution)
    if not all(0 <= value <= 255 for value in lightmap):
        raise ExportError("Surface '{}': the lightmap settings {} are not bytes", surface.name, lightmap)
    return [name, bytes(lightmap)]


def _tangents(target: Target, version: str) -> list[Part]:
    stored = surface_arrays.encode_tangents(target.tangents, short=version == SHORT_TANGENT_VERSION)
    return [unigine_values.encode_integer(len(target.tangents)), _raw(stored, stored.dtype)]


def _weights(surface: Surface) -> list[Part]:
    if surface.weights is None:
        return [unigine_values.encode_integer(0)]
    return [
        unigine_values.encode_integer(len(surface.weights.counts)),
        _raw(surface_arrays.encode_weights(surface.weights), "u1"),
    ]


def _attributes(surface: Surface) -> list[Part]:
    parts: list[Part] = []
    for values, kind in ((surface.uv0, "<f4"), (surface.uv1, "<f4"), (surface.colors, "u1")):
        if values is None:
            parts.append(unigine_values.encode_integer(0))
        else:
            parts += [unigine_values.encode_integer(len(values)), _raw(values, kind)]
    return parts


def _indices(indices: AnyArray, pool: int) -> memoryview:
    return _raw(indices, np.dtype(surface_arrays.index_type(pool)).newbyteorder("<"))


def _raw(values: AnyArray, kind: npt.DTypeLike) -> memoryview:
    """Return the bytes of an array, as a view if it already has this type."""
    return np.ascontiguousarray(values, kind).reshape(-1).view(np.uint8).data
