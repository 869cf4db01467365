"""Document -> bytes (formats page, sections 1 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError
from ..core.scene import AnyArray
from . import layout
from .document import MOST, Document, Variant


def write(document: Document) -> bytes:
    """Encode a document. A document that was read gives the same bytes again.

    Raises
    ------
    ExportError
        More vertices or triangles than the counts of the file can hold.
    """
    if document.variant in (Variant.FIRST, Variant.FIRST_TEXT):
        data = b"".join(_first(document))
        return layout.encode_text(data) if document.variant is Variant.FIRST_TEXT else data
    return b"".join(_quantised(document))


def _quantised(document: Document) -> Iterator[bytes]:
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
    yield layout.HEADER.pack(vertices, triangles if counts is None else len(counts), document.format)
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
        yield document.date.to_bytes(layout.DATE_SIZE, "little", signed=True)


def _first(document: Document) -> Iterator[bytes]:
    yield layout.FIRST_HEADER.pack(len(document.positions), len(document.triangles), document.format)
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
