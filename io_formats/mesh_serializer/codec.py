"""Bytes <-> document (formats page, sections 1, 5 and 7)."""

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError, FormatError, UnsupportedFormatError
from ..core.messages import Text, counted
from ..core.scene import AnyArray
from ..encodings.byte_reader import ByteStream
from . import document as mesh_serializer_document
from .document import MOST, NORMALS, TANGENTS, UVS, WEIGHTS, Document, Variant
from .format import explain_near_miss, variant_of

_HEAD_SIZE = 4096
_AXES = ("X", "Y", "Z")


def read(data: bytes, *, inflated_limit: int | None = None) -> Document:
    """Decode a file of any variant; arrays are views of ``data``.

    ``inflated_limit`` is ignored: nothing is compressed.

    Raises
    ------
    FormatError
        The size does not match the header, the bounds are invalid, or triangles refer to vertices that do not exist.
    """
    head = data[:_HEAD_SIZE]
    variant = variant_of(head, len(data))
    if variant is None:
        raise UnsupportedFormatError(
            explain_near_miss(head, len(data)) or "This is not a mesh of Unity's MeshSerializer2"
        )
    if variant is Variant.FIRST_TEXT:
        decoded = mesh_serializer_document.decode_text(data)
        if decoded is None:
            raise FormatError("The file is damaged: its text has characters other than ! to 0")
        data = decoded
    stream = ByteStream(data)
    if variant in (Variant.FIRST, Variant.FIRST_TEXT):
        document = _read_first(stream, variant)
    else:
        document = _read_quantised(stream, variant)
    stream.expect_end()
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files have equal bytes; nothing is compressed."""
    return one == other


def _read_quantised(stream: ByteStream, variant: Variant) -> Document:
    """Read a MeshSerializer2 file, or a variant with the same vertex data."""
    name = ""
    if variant is Variant.CACHED:
        name, start = mesh_serializer_document.cached_name(bytes(stream.data[:_HEAD_SIZE])) or ("", 0)
        stream.skip(start, "the name")
    header = mesh_serializer_document.Header(
        *mesh_serializer_document.HEADER.unpack(stream.take(mesh_serializer_document.HEADER.size, "the header"))
    )
    count = header.vertices
    bounds = _bounds(stream, 3, "positions") if count else None
    document = Document(
        variant, stream.array(np.uint16, (count, 3), "the positions"), np.empty((0, 3), np.uint16), bounds, name=name
    )
    if header.format & NORMALS:
        document.normals = stream.array(np.uint8, (count, 3), "the normals")
    if header.format & TANGENTS:
        document.tangents = stream.array(np.uint8, (count, 4), "the tangents")
    if header.format & UVS:
        document.uv_bounds = _bounds(stream, 2, "UVs") if count else None
        document.uvs = stream.array(np.uint16, (count, 2), "the UVs")
    if header.format & WEIGHTS:
        record = np.dtype([("weights", "<f4", 4), ("indices", "<u2", 4)])
        rows = stream.array(record, count, "the bone weights")
        document.joint_weights, document.joint_indices = rows["weights"], rows["indices"]
    if variant is Variant.SUBMESHES:
        document.submeshes, document.triangles = _read_submeshes(stream, header.triangles, count)
    else:
        document.triangles = _triangles(stream, np.uint16, header.triangles, count)
    if variant is Variant.CACHED:
        document.date = stream.i64("the date")
    return document


def _bounds(stream: ByteStream, axes: int, what: str) -> AnyArray:
    """Read bounds, (2 axes,) float32, minimum and maximum of each axis; raise FormatError if they are invalid."""
    start = stream.position
    bounds = stream.array(np.float32, 2 * axes, Text("the bounds of the {}", Text(what)))
    for axis, (least, most) in enumerate(bounds.reshape(-1, 2).tolist()):
        label = ("U", "V")[axis] if axes == 2 else _AXES[axis]
        if not (np.isfinite(least) and np.isfinite(most)):
            raise stream.error(
                "The file is damaged: the bounds of the {} are NaN or infinite in {}", Text(what), label, offset=start
            )
        if most < least:
            raise stream.error(
                "The file is damaged: the bounds of the {} go from {:g} down to {:g} in {}",
                Text(what),
                least,
                most,
                label,
                offset=start,
            )
    return bounds


def _triangles(stream: ByteStream, dtype: type[np.generic], count: int, vertices: int) -> AnyArray:
    """Read triangles, (T, 3); raise FormatError if their vertices do not exist."""
    start = stream.position
    triangles = stream.array(dtype, (count, 3), "the triangles")
    if count and not 0 <= int(triangles.min()) <= int(triangles.max()) < vertices:
        wrong = int(np.count_nonzero(((triangles < 0) | (triangles >= vertices)).any(axis=1)))
        raise stream.error(
            "The file is damaged: {} that do not exist; there are {:,}",
            counted(wrong, "triangle refers to vertices", "triangles refer to vertices"),
            vertices,
            offset=start,
        )
    return triangles


def _read_submeshes(stream: ByteStream, count: int, vertices: int) -> tuple[list[int], AnyArray]:
    """Read the triangles of each submesh, preceded by their count; return the counts and all triangles."""
    counts: list[int] = []
    runs: list[AnyArray] = []
    for number in range(count):
        stream.item = Text("submesh {}", number + 1)
        triangles = stream.u16("the number of triangles")
        runs.append(_triangles(stream, np.uint16, triangles, vertices))
        counts.append(triangles)
    stream.item = ""
    return counts, np.concatenate(runs)


def _read_first(stream: ByteStream, variant: Variant) -> Document:
    """Read a file of version 1."""
    header = mesh_serializer_document.Header(
        *mesh_serializer_document.FIRST_HEADER.unpack(
            stream.take(mesh_serializer_document.FIRST_HEADER.size, "the header")
        )
    )
    count = header.vertices
    document = Document(variant, stream.array(np.float32, (count, 3), "the positions"), np.empty((0, 3), np.int32))
    if header.format & NORMALS:
        document.normals = stream.array(np.float32, (count, 3), "the normals")
    if header.format & TANGENTS:
        document.tangents = stream.array(np.float32, (count, 4), "the tangents")
    if header.format & UVS:
        document.uvs = stream.array(np.float32, (count, 2), "the UVs")
    document.triangles = _triangles(stream, np.int32, header.triangles, count)
    return document


def write(document: Document) -> bytes:
    """Encode a document. A document that was read gives the same bytes again.

    Raises
    ------
    ExportError
        More vertices or triangles than the counts of the file can hold.
    """
    if document.variant in (Variant.FIRST, Variant.FIRST_TEXT):
        data = b"".join(_first(document))
        return mesh_serializer_document.encode_text(data) if document.variant is Variant.FIRST_TEXT else data
    return b"".join(_quantised(document))


def _quantised(document: Document) -> Iterator[bytes]:
    """Yield the parts of a file of MeshSerializer2 in the order of the format page."""
    counts = document.submeshes
    vertices, triangles = len(document.positions), len(document.triangles)
    if max(vertices, triangles if counts is None else max(counts, default=0)) > MOST:
        raise ExportError(
            "The mesh has {:,} vertices and {:,} triangles; a file holds {:,} vertices and {:,} triangles",
            vertices,
            triangles,
            MOST,
            MOST,
        )
    if document.variant is Variant.CACHED:
        yield _dotnet_string(document.name)
    yield mesh_serializer_document.HEADER.pack(vertices, triangles if counts is None else len(counts), document.format)
    yield _bytes(document.position_bounds, "<f4")
    yield _bytes(document.positions, "<u2")
    yield _bytes(document.normals, np.uint8)
    yield _bytes(document.tangents, np.uint8)
    yield _bytes(document.uv_bounds, "<f4")
    yield _bytes(document.uvs, "<u2")
    if document.joint_weights is not None:
        record = np.empty(vertices, [("weights", "<f4", 4), ("indices", "<u2", 4)])
        record["weights"], record["indices"] = document.joint_weights, document.joint_indices
        yield record.tobytes()
    if counts is None:
        yield _bytes(document.triangles, "<u2")
    else:
        for count, end in zip(counts, accumulate(counts), strict=True):
            yield count.to_bytes(2, "little") + _bytes(document.triangles[end - count : end], "<u2")
    if document.variant is Variant.CACHED:
        yield document.date.to_bytes(mesh_serializer_document.DATE_SIZE, "little", signed=True)


def _first(document: Document) -> Iterator[bytes]:
    yield mesh_serializer_document.FIRST_HEADER.pack(len(document.positions), len(document.triangles), document.format)
    for values in (document.positions, document.normals, document.tangents, document.uvs):
        yield _bytes(values, "<f4")
    yield _bytes(document.triangles, "<i4")


def _bytes(values: AnyArray | None, dtype: npt.DTypeLike) -> bytes:
    return b"" if values is None else np.ascontiguousarray(values, dtype).tobytes()


def _dotnet_string(text: str) -> bytes:
    """Encode a .NET string: its length in groups of seven bits, lowest first, then UTF-8."""
    content = text.encode("utf-8")
    prefix = bytearray()
    rest = len(content)
    while rest > 127:
        prefix.append(rest & 127 | 128)
        rest >>= 7
    return bytes(prefix) + bytes([rest]) + content
