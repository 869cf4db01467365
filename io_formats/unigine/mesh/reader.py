"""Bytes -> document: mr02, and the checks that all versions share. Other modules read the other layouts."""

from __future__ import annotations

import numpy as np

from ...core.errors import UnsupportedFormatError
from ...core.messages import Report, Text
from ...encodings.byte_reader import ByteStream
from ..bones import report_oddities
from . import array_checks, block_reader, stream_reader
from .document import MeshFile, SoupSurface
from .versions import BLOCK_VERSIONS, READ_VERSIONS, SOUP_VERSION

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
    if version not in READ_VERSIONS:
        raise UnsupportedFormatError("Not a UNIGINE mesh of a known version: it starts with {!r}", data[:4], offset=0)
    document = MeshFile(version)
    tally = array_checks.Tally()
    if version == SOUP_VERSION:
        _read_soup(stream, document)
    elif version in BLOCK_VERSIONS:
        block_reader.read_blocks(stream, document, tally, inflated_limit)
    else:
        stream_reader.read_stream(stream, document, tally)
    stream.item = ""
    stream.expect_end()
    if version != SOUP_VERSION:
        _check_bounds(document, stream.report)
    names = [surface.name for surface in document.surfaces] or [soup_name(soup) for soup in document.soup]
    report_oddities(document.bones, document.transforms, stream.report)
    array_checks.check_names(names, stream.report.change)
    tally.report(stream.report)
    document.warnings = stream.report.messages
    return document


def same_content(one: bytes, other: bytes) -> bool:
    """Return whether two files are equal. From ms14 on, only headers and inflated blocks are compared."""
    if one == other:
        return True
    if one[:4] != other[:4] or one[:4].decode("latin-1") not in BLOCK_VERSIONS:
        return False
    return block_reader.inflated_parts(one) == block_reader.inflated_parts(other)


def soup_name(surface: SoupSurface) -> str:
    """Return the name of a surface of mr02: its bytes before the first zero."""
    return surface.name.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _read_soup(stream: ByteStream, document: MeshFile) -> None:
    stream.expect(SOUP_VERSION.encode(), "the version")
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
        stream.item = Text("surface '{}'", soup_name(soup))
        if not np.isfinite(soup.vertices[:, :3]).all():
            raise stream.error("The position of a vertex is NaN or infinite", offset=start + 4)


def _check_bounds(document: MeshFile, report: Report) -> None:
    """Warn if the bounds of the mesh differ from the combined bounds of its surfaces."""
    filled = [
        surface.bounds[:6] for surface in document.surfaces if surface.targets and len(surface.targets[0].positions)
    ]
    if filled:
        corners = np.concatenate(filled).reshape(-1, 3)
        if array_checks.boxes_disagree(document.bounds[:6], corners):
            report.change("wrong-bounds", "The bounds of the mesh disagree with those of its surfaces")
