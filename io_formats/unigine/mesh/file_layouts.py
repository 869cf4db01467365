"""The layouts of mesh files: one continuous stream (section 4), or headers and compressed blocks (sections 6 and 7)."""

from dataclasses import dataclass

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Named, Text
from ...core.scene import AnyArray
from ...encodings import lz4_block
from ...encodings.byte_reader import ByteStream
from .. import values
from ..bones import read_table, read_transforms
from ..frames import read_embedded_frames
from . import collision
from . import document as mesh_document
from . import format as mesh_format
from .document import EmbeddedAnimation, MeshFile, Surface, Tally, Target

MOST_SURFACES = 32768
MOST_TARGETS = 32768
_LEAST_STREAM_SURFACE = 42
"""Size in bytes of the shortest possible surface header."""
_NO_POSITIONS, _NO_TANGENTS = np.empty((0, 3), np.float32), np.empty((0, 4), np.int16)


def read_stream(stream: ByteStream, document: MeshFile, tally: Tally) -> None:
    """Read the whole stream into a document whose version is known."""
    version = document.version
    magic = version.encode("ascii")
    stream.expect(magic, "the version")
    document.bounds = stream.array(np.float32, 10, "the bounds")
    document.bones = read_table(stream, values.read_integer(stream, "the number of bones"))
    names = []
    if version in mesh_format.ANIMATED_VERSIONS:
        count = values.read_count(stream, "animations", size=1, most=MOST_TARGETS)
        names = [values.read_string(stream, Text("the name of animation {}", number)) for number in range(count)]
    count = values.read_count(stream, "surfaces", size=_LEAST_STREAM_SURFACE, most=MOST_SURFACES)
    document.surfaces = [_read_header(stream, version, number) for number in range(count)]
    stream.item = ""
    stream.expect(magic, "the version after the headers")
    document.transforms = read_transforms(stream, document.bones)
    for name in names:
        stream.item = Text("animation '{}'", Named("animation", name))
        document.animations.append(EmbeddedAnimation(name, read_embedded_frames(stream, len(document.bones))))
    for surface in document.surfaces:
        stream.item = Text("surface '{}'", Named("layer", surface.name))
        _read_body(stream, surface, version, len(document.bones))
        mesh_document.check_read_surface(
            stream, surface, tally, short_tangents=version == mesh_format.SHORT_TANGENT_VERSION
        )
    stream.item = ""
    stream.expect(magic, "the version at the end")


def _read_header(stream: ByteStream, version: str, number: int) -> Surface:
    stream.item = Text("surface {}", number)
    name = values.read_string(stream, "the name")
    stream.item = Text("surface '{}'", Named("layer", name))
    channel, resolution = mesh_document.read_lightmap(stream, version)
    bounds = stream.array(np.float32, 10, "the bounds")
    surface = Surface(name, bounds, lightmap_channel=channel, lightmap_resolution=resolution)
    targets = values.read_count(stream, "morph targets", size=1, most=MOST_TARGETS)
    for target in range(targets):
        target_name = values.read_string(stream, Text("the name of morph target {}", target))
        surface.targets.append(Target(target_name, _NO_POSITIONS, _NO_TANGENTS))
    return surface


def _read_body(stream: ByteStream, surface: Surface, version: str, bones: int) -> None:
    short = version == mesh_format.SHORT_TANGENT_VERSION
    for target in surface.targets:
        target.positions = mesh_document.read_positions(stream, values.read_count(stream, "vertices", size=12))
        target.tangents = mesh_document.read_tangents(
            stream, values.read_count(stream, "tangents", size=7), short=short
        )
    vertices, triangle_vertices = mesh_document.pool_sizes(surface)
    surface.weights = mesh_document.read_weights(stream, vertices, bones)
    mesh_document.read_attributes(stream, surface, triangle_vertices)
    start = stream.position
    kind = mesh_document.index_type(vertices)
    surface.c_indices = stream.array(kind, values.read_count(stream, "corners"), "the vertex indices")
    kind = mesh_document.index_type(triangle_vertices)
    surface.t_indices = stream.array(kind, values.read_count(stream, "corners"), "the attribute indices")
    mesh_document.check_corner_counts(stream, len(surface.c_indices), len(surface.t_indices), start)


_LEAST_BLOCK_SURFACE = 44
_LEAST_LIMIT = 64 * 1024 * 1024
_LIMIT_RATIO = 64


@dataclass
class _Outline:
    """The size of a surface's geometry block, as stated by the header."""

    surface: Surface
    c_count: int
    t_count: int
    vertices: list[int]
    """Number of vertices of each morph target."""

    @property
    def least_size(self) -> int:
        """Minimum size of the block in bytes, with indices of one byte and no triangle vertices."""
        return 12 * sum(self.vertices) + self.c_count + self.t_count


class _Blocks:
    """Read blocks and limit their total inflated size."""

    def __init__(self, stream: ByteStream, limit: int | None) -> None:
        self.stream = stream
        self.limit = limit or max(_LEAST_LIMIT, _LIMIT_RATIO * len(stream.data))

    def geometry(self, outline: _Outline) -> bytearray | memoryview:
        return self._read("the geometry", least=outline.least_size)

    def collision(self, outline: _Outline) -> bytearray | memoryview:
        return self._read("the collision data", most=collision.largest(outline.c_count // 3))

    def _read(self, what: str, *, least: int = 0, most: int | None = None) -> bytearray | memoryview:
        """Read a block of ``least`` to ``most`` bytes; an uncompressed block is returned as a view."""
        stream = self.stream
        start = stream.position
        what = Text(what)
        size, stored = stream.i64(Text("the size of {}", what)), stream.i64(Text("the stored size of {}", what))
        if stored < 0 or stored > size or size > lz4_block.HIGHEST_RATIO * stored:
            raise stream.error(
                "The file is damaged: {} has {:,} bytes, stored in {:,}", what, size, stored, offset=start
            )
        if size < least:
            template = "The file is damaged: {} has {:,} bytes, but the header asks for {:,} or more"
            raise stream.error(template, what, size, least, offset=start)
        if most is not None and size > most:
            template = "The file is damaged: {} has {:,} bytes, but the surface needs {:,} at most"
            raise stream.error(template, what, size, most, offset=start)
        content = stream.take(stored, what)
        if size == stored:
            return content
        self.limit -= size
        if self.limit < 0:
            raise stream.error("{} inflates beyond the limit; the file is damaged or hostile", what, offset=start)
        try:
            return lz4_block.decode(content, size)
        except FormatError as problem:
            raise stream.error("{}: {}", what, problem.message, offset=start + 16 + (problem.offset or 0)) from None


def read_blocks(stream: ByteStream, document: MeshFile, tally: Tally, inflated_limit: int | None) -> None:
    """Read the whole stream into a document whose version is known."""
    blocks = _Blocks(stream, inflated_limit)
    magic = document.version.encode("ascii")
    outlines = _read_head(stream, document)
    document.surfaces = [outline.surface for outline in outlines]
    offsets = []
    for outline in outlines:
        stream.item = Text("surface '{}'", Named("layer", outline.surface.name))
        offsets.append(stream.position)
        content = blocks.geometry(outline)
        _read_geometry(content, outline, document, tally)
    stream.item = ""
    stream.expect(magic, "the version after the geometry")
    if document.version != mesh_format.SEPARATE_SKELETON_VERSION:
        for outline in outlines:
            stream.item = Text("surface '{}'", Named("layer", outline.surface.name))
            outline.surface.collision = bytes(blocks.collision(outline))
        stream.item = ""
        stream.expect(magic, "the version after the collision data")
    table = stream.array(np.int64, len(outlines), "the table of offsets")
    if table.tolist() != offsets:
        stream.report.change("wrong-offsets", "The table of offsets is wrong; the engine may not load the file")
    stream.expect(magic, "the version at the end")


def _read_head(stream: ByteStream, document: MeshFile) -> list[_Outline]:
    """Read everything before the first geometry block."""
    version = document.version
    magic = version.encode("ascii")
    stream.expect(magic, "the version")
    document.leaf_size = values.read_count(stream, "triangles a leaf")
    document.bounds = stream.array(np.float32, 10, "the bounds")
    if version == mesh_format.SEPARATE_SKELETON_VERSION:
        _read_skeleton(stream, document)
    elif version in mesh_format.SKINNED_VERSIONS:
        document.bones = read_table(stream, values.read_integer(stream, "the number of bones"))
    count = values.read_count(stream, "surfaces", size=_LEAST_BLOCK_SURFACE, most=MOST_SURFACES)
    outlines = [_read_outline(stream, version, number) for number in range(count)]
    stream.item = ""
    document.memory_use = stream.i64("the memory use")
    stream.expect(magic, "the version after the headers")
    if version in mesh_format.SKINNED_VERSIONS and version != mesh_format.SEPARATE_SKELETON_VERSION:
        document.transforms = read_transforms(stream, document.bones)
    return outlines


def _read_skeleton(stream: ByteStream, document: MeshFile) -> None:
    document.bones = read_table(stream, stream.i32("the number of joints"))
    start = stream.position
    bind = stream.i32("the number of bind transforms")
    if bind != len(document.bones):
        raise stream.error("The file has {:,} bind transforms for {:,} joints", bind, len(document.bones), offset=start)
    document.transforms = read_transforms(stream, document.bones)
    start = stream.position
    rest = stream.i32("the number of rest transforms")
    if rest not in (0, len(document.bones)):
        raise stream.error("The file has {:,} rest transforms for {:,} joints", rest, len(document.bones), offset=start)
    document.rest_transforms = read_transforms(stream, document.bones[:rest], "rest")
    document.skeleton_guid = values.read_long_string(stream, "the GUID of the skeleton")
    document.skeleton_path = values.read_long_string(stream, "the path of the skeleton")


def _read_outline(stream: ByteStream, version: str, number: int) -> _Outline:
    """Read the header of a surface, with the counts of its geometry, which follows after all headers."""
    stream.item = Text("surface {}", number)
    name = values.read_string(stream, "the name")
    stream.item = Text("surface '{}'", Named("layer", name))
    channel, resolution = mesh_document.read_lightmap(stream, version)
    start = stream.position
    c_count = values.read_count(stream, "corners")
    t_count = values.read_count(stream, "corners")
    mesh_document.check_corner_counts(stream, c_count, t_count, start)
    bounds = stream.array(np.float32, 10, "the bounds")
    surface = Surface(name, bounds, lightmap_channel=channel, lightmap_resolution=resolution)
    names = [""]
    if version == mesh_format.SINGLE_TARGET_VERSION:
        vertices = [values.read_count(stream, "vertices")]
    else:
        names, vertices = [], []
        for target in range(values.read_count(stream, "morph targets", size=2, most=MOST_TARGETS)):
            names.append(values.read_string(stream, Text("the name of morph target {}", target)))
            vertices.append(values.read_count(stream, "vertices"))
    surface.targets = [Target(text, np.empty((0, 3), np.float32), _NO_TANGENTS) for text in names]
    return _Outline(surface, c_count, t_count, vertices)


def _read_geometry(content: bytearray | memoryview, outline: _Outline, document: MeshFile, tally: Tally) -> None:
    """Read the content of a geometry block into its surface (section 6.3)."""
    surface = outline.surface
    stream = ByteStream(content, item=Text("surface '{}', in its geometry", Named("layer", surface.name)))
    for target, count in zip(surface.targets, outline.vertices, strict=True):
        target.positions = mesh_document.read_positions(stream, count)
        target.tangents = mesh_document.read_tangents(
            stream, values.read_count(stream, "tangents", size=8), short=False
        )
    vertices, triangle_vertices = mesh_document.pool_sizes(surface)
    if document.version in mesh_format.SKINNED_VERSIONS:
        surface.weights = mesh_document.read_weights(stream, vertices, len(document.bones))
    mesh_document.read_attributes(stream, surface, triangle_vertices)
    after = outline.t_count * np.dtype(mesh_document.index_type(triangle_vertices)).itemsize
    surface.c_indices = _read_indices(stream, outline.c_count, vertices, after, "the vertex indices")
    surface.t_indices = _read_indices(stream, outline.t_count, triangle_vertices, 0, "the attribute indices")
    stream.expect_end()
    mesh_document.check_read_surface(stream, surface, tally, short_tangents=False)


def _read_indices(stream: ByteStream, count: int, pool: int, after: int, what: str) -> AnyArray:
    """Read ``count`` indices into ``pool`` vertices.

    Indices into large pools are i32 or compact integers. They are read as i32 if the rest of the block then has the
    right size: ``after`` is the size of the data after them, with its indices as i32 too.
    """
    kind = np.dtype(mesh_document.index_type(pool))
    if kind.itemsize == 4 and stream.remaining != 4 * count + after:
        return values.read_integers(stream, count, what)
    return stream.array(kind, count, what)


def inflated_parts(data: bytes) -> list[bytes]:
    """Return the parts of a file that define its content: the header, and each block inflated.

    Raises
    ------
    FormatError
        The file breaks a rule of section 11.
    """
    stream = ByteStream(data)
    document = MeshFile(bytes(data[:4]).decode("latin-1"))
    outlines = _read_head(stream, document)
    blocks = _Blocks(stream, None)
    parts = [bytes(stream.data[: stream.position])]
    parts += [bytes(blocks.geometry(outline)) for outline in outlines]
    parts.append(bytes(stream.take(4, "the version after the geometry")))
    if document.version != mesh_format.SEPARATE_SKELETON_VERSION:
        parts += [bytes(blocks.collision(outline)) for outline in outlines]
    return parts
