"""Bytes <-> document: mr02, the writer, and the checks that all versions share (sections 4, 6 and 9)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError, UnsupportedFormatError
from ...core.format import OutputFile
from ...core.messages import Named, Report, Text
from ...core.scene import AnyArray
from ...encodings.byte_reader import ByteStream
from .. import values as unigine_values
from ..bones import encode_table, encode_transforms, report_oddities
from ..frames import write_embedded_frames
from . import collision, file_layouts
from . import document as mesh_document
from . import format as mesh_format
from .document import MeshFile, SoupSurface, Surface, Target

_SOUP_NAME = 128
_SOUP_VERTEX = 8


def read(data: bytes, *, inflated_limit: int | None = None) -> MeshFile:
    """Decode a mesh file of mr02, ms10 to ms15 or sk10 (docs/formats/unigine.md, sections 3 to 7, 9).

    Parameters
    ----------
    data:
        The file. Arrays of the document are views of it where possible.
    inflated_limit:
        Maximum inflated size of all blocks in bytes (default: the larger of 64 MiB and 64 times the file size).

    Raises
    ------
    FormatError
        The file breaks a rule of section 11.
    """
    stream = ByteStream(data)
    version = bytes(data[:4]).decode("latin-1")
    if version not in mesh_format.READ_VERSIONS:
        raise UnsupportedFormatError("Not a UNIGINE mesh of a known version: it starts with {!r}", data[:4], offset=0)
    document = MeshFile(version)
    tally = mesh_document.Tally()
    if version == mesh_format.SOUP_VERSION:
        _read_soup(stream, document)
    elif version in mesh_format.BLOCK_VERSIONS:
        file_layouts.read_blocks(stream, document, tally, inflated_limit)
    else:
        file_layouts.read_stream(stream, document, tally)
    stream.item = ""
    stream.expect_end()
    if version != mesh_format.SOUP_VERSION:
        _check_bounds(document, stream.report)
    names = [surface.name for surface in document.surfaces] or [soup_name(soup) for soup in document.soup]
    report_oddities(document.bones, document.transforms, stream.report)
    mesh_document.check_names(names, stream.report.change)
    tally.report(stream.report)
    document.warnings = stream.report.messages
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal. From ms14 on, only headers and inflated blocks are compared."""
    if one == other:
        return True
    if one[:4] != other[:4] or one[:4].decode("latin-1") not in mesh_format.BLOCK_VERSIONS:
        return False
    return file_layouts.inflated_parts(one) == file_layouts.inflated_parts(other)


def soup_name(surface: SoupSurface) -> str:
    """Return the name of a surface of mr02: its bytes before the first zero."""
    return surface.name.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _read_soup(stream: ByteStream, document: MeshFile) -> None:
    stream.expect(mesh_format.SOUP_VERSION.encode(), "the version")
    start = stream.position
    count = stream.i32("the number of surfaces")
    if not 0 <= count <= stream.remaining // (_SOUP_NAME + 4):
        raise stream.error("The file is cut off or damaged: it claims {:,} surfaces", count, offset=start)
    for number in range(count):
        stream.item = Text("surface {}", number)
        name = bytes(stream.take(_SOUP_NAME, "the name"))
        start = stream.position
        vertices = stream.i32("the number of vertices")
        if vertices < 0 or vertices % 3:
            raise stream.error("The file is damaged: {:,} vertices are not triangles", vertices, offset=start)
        soup = SoupSurface(name, stream.array(np.float32, (vertices, _SOUP_VERTEX), "the vertices"))
        document.soup.append(soup)
        stream.item = Text("surface '{}'", Named("layer", soup_name(soup)))
        if not np.isfinite(soup.vertices[:, :3]).all():
            raise stream.error("The position of a vertex is NaN or infinite", offset=start + 4)


def _check_bounds(document: MeshFile, report: Report) -> None:
    """Warn if the bounds of the mesh differ from the combined bounds of its surfaces."""
    filled = [
        surface.bounds[:6] for surface in document.surfaces if surface.targets and len(surface.targets[0].positions)
    ]
    if filled:
        corners = np.concatenate(filled).reshape(-1, 3)
        if mesh_document.boxes_disagree(document.bounds[:6], corners):
            report.change("wrong-bounds", "The bounds of the mesh disagree with those of its surfaces")


Part = bytes | memoryview
"""A part of the encoded file; arrays are included as views, without copying."""


def write(document: MeshFile) -> bytes:
    """Encode a mesh file with the same bytes as the engine; blocks of ms14 and later are not compressed.

    Raises
    ------
    ExportError
        The version cannot be written or cannot hold the document, or the document's arrays do not fit together.
    """
    mesh_document.check_version(document)
    if document.version == mesh_format.SOUP_VERSION:
        return b"".join(_soup_parts(document))
    for surface in document.surfaces:
        mesh_document.check_written_surface(surface, len(document.bones))
    if document.version in mesh_format.BLOCK_VERSIONS:
        return b"".join(_block_parts(document))
    return b"".join(_stream_parts(document))


def write_files(document: MeshFile, stem: str) -> list[OutputFile]:
    """Encode a mesh file, after the files that it needs beside it."""
    extension = mesh_format.SKINNED_EXTENSION if document.version == mesh_format.SEPARATE_SKELETON_VERSION else ".mesh"
    return [*document.companions, OutputFile(stem + extension, write(document))]


def _soup_parts(document: MeshFile) -> list[Part]:
    parts: list[Part] = [mesh_format.SOUP_VERSION.encode(), len(document.soup).to_bytes(4, "little")]
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
    if version in mesh_format.ANIMATED_VERSIONS:
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
            (surface.c_indices, surface.t_indices), mesh_document.pool_sizes(surface), strict=True
        ):
            parts += [unigine_values.encode_integer(len(indices)), _indices(indices, pool)]
    parts.append(magic)
    return parts


def _block_parts(document: MeshFile) -> list[Part]:
    """Encode a file of ms14, ms15 or sk10 (sections 6 and 7)."""
    version = document.version
    magic = version.encode("ascii")
    parts: list[Part] = [magic, unigine_values.encode_integer(document.leaf_size), _bounds(document.bounds)]
    has_skeleton_file = version == mesh_format.SEPARATE_SKELETON_VERSION
    if has_skeleton_file:
        parts += _skeleton(document)
    elif version in mesh_format.SKINNED_VERSIONS:
        parts += _bone_table(document)
    parts.append(unigine_values.encode_integer(len(document.surfaces)))
    for surface in document.surfaces:
        parts += _name_and_lightmap(surface, version)
        parts.append(unigine_values.encode_integers([len(surface.c_indices), len(surface.t_indices)]))
        parts.append(_bounds(surface.bounds))
        if version == mesh_format.SINGLE_TARGET_VERSION:
            parts.append(unigine_values.encode_integer(mesh_document.pool_sizes(surface)[0]))
        else:
            parts.append(unigine_values.encode_integer(len(surface.targets)))
            for target in surface.targets:
                parts += [
                    unigine_values.encode_string(target.name),
                    unigine_values.encode_integer(len(target.positions)),
                ]
    parts += [document.memory_use.to_bytes(8, "little", signed=True), magic]
    if version in mesh_format.SKINNED_VERSIONS and not has_skeleton_file:
        parts.append(encode_transforms(document.transforms, document.bones))
    place = _size(parts)
    offsets = []
    for surface in document.surfaces:
        content = _geometry(surface, version)
        offsets.append(place)
        place += 16 + _size(content)
        parts += [_stored_size(_size(content)), *content]
    parts.append(magic)
    for surface in () if has_skeleton_file else document.surfaces:
        block = surface.collision
        if block is None:
            positions = surface.targets[0].positions if surface.targets else np.empty((0, 3), np.float32)
            block = collision.build(positions, surface.c_indices, document.leaf_size)
        parts += [_stored_size(len(block)), block]
    if not has_skeleton_file:
        parts.append(magic)
    parts += [np.array(offsets, "<i8").tobytes(), magic]
    return parts


def _skeleton(document: MeshFile) -> list[Part]:
    """Encode the joints of sk10, their bind and rest transforms, and the reference to the skeleton file (section 7)."""
    bones, rest = document.bones, document.rest_transforms
    if len(rest) not in (0, len(bones)):
        raise ExportError("{:,} rest transforms for {:,} bones", len(rest), len(bones))
    return [
        len(bones).to_bytes(4, "little"),
        encode_table(bones),
        len(bones).to_bytes(4, "little"),
        encode_transforms(document.transforms, bones),
        len(rest).to_bytes(4, "little"),
        encode_transforms(rest, bones[: len(rest)]),
        unigine_values.encode_long_string(document.skeleton_guid),
        unigine_values.encode_long_string(document.skeleton_path),
    ]


def geometry_size(surface: Surface, version: str) -> int:
    """Return the size of an uncompressed geometry block in bytes."""
    return _size(_geometry(surface, version))


def _geometry(surface: Surface, version: str) -> list[Part]:
    """Encode the content of a geometry block (section 6.3)."""
    parts: list[Part] = []
    for target in surface.targets or [Target("", np.empty((0, 3), np.float32), np.empty((0, 4), np.int16))]:
        if surface.targets or version == mesh_format.SINGLE_TARGET_VERSION:
            parts += [_raw(target.positions, "<f4"), *_tangents(target, version)]
    if version in mesh_format.SKINNED_VERSIONS:
        parts += _weights(surface)
    parts += _attributes(surface)
    vertices, triangle_vertices = mesh_document.pool_sizes(surface)
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
    if version not in mesh_format.LIGHTMAP_VERSIONS:
        return [name]
    lightmap = (surface.lightmap_channel, surface.lightmap_resolution)
    if not all(0 <= value <= 255 for value in lightmap):
        title = Named("layer", surface.name)
        raise ExportError("Surface '{}': the lightmap settings {} are not bytes", title, lightmap)
    return [name, bytes(lightmap)]


def _tangents(target: Target, version: str) -> list[Part]:
    stored = mesh_document.encode_tangents(target.tangents, short=version == mesh_format.SHORT_TANGENT_VERSION)
    return [unigine_values.encode_integer(len(target.tangents)), _raw(stored, stored.dtype)]


def _weights(surface: Surface) -> list[Part]:
    if surface.weights is None:
        return [unigine_values.encode_integer(0)]
    return [
        unigine_values.encode_integer(len(surface.weights.counts)),
        _raw(mesh_document.encode_weights(surface.weights), "u1"),
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
    return _raw(indices, np.dtype(mesh_document.index_type(pool)).newbyteorder("<"))


def _raw(values: AnyArray, kind: npt.DTypeLike) -> memoryview:
    """Return the bytes of an array, as a view if it already has this type."""
    return np.ascontiguousarray(values, kind).reshape(-1).view(np.uint8).data
