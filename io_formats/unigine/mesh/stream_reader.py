"""ms10 to ms13: one continuous stream (section 4)."""

from __future__ import annotations

import numpy as np

from ...core.messages import Text
from ...encodings.byte_reader import ByteStream
from .. import values
from ..bones import read_table, read_transforms
from ..frames import read_embedded_frames
from . import surface_arrays
from .array_checks import Tally
from .document import EmbeddedAnimation, MeshFile, Surface, Target
from .versions import ANIMATED_VERSIONS, SHORT_TANGENT_VERSION

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
    if version in ANIMATED_VERSIONS:
        count = values.read_count(stream, "animations", size=1, most=MOST_TARGETS)
        names = [values.read_string(stream, Text("the name of animation {}", number)) for number in range(count)]
    count = values.read_count(stream, "surfaces", size=_LEAST_STREAM_SURFACE, most=MOST_SURFACES)
    document.surfaces = [_read_header(stream, version, number) for number in range(count)]
    stream.item = ""
    stream.expect(magic, "the version after the headers")
    document.transforms = read_transforms(stream, document.bones)
    for name in names:
        stream.item = Text("animation '{}'", name)
        document.animations.append(EmbeddedAnimation(name, read_embedded_frames(stream, len(document.bones))))
    for surface in document.surfaces:
        stream.item = Text("surface '{}'", surface.name)
        _read_body(stream, surface, version, len(document.bones))
        surface_arrays.check_read_surface(stream, surface, tally, short_tangents=version == SHORT_TANGENT_VERSION)
    stream.item = ""
    stream.expect(magic, "the version at the end")


def _read_header(stream: ByteStream, version: str, number: int) -> Surface:
    stream.item = Text("surface {}", number)
    name = values.read_string(stream, "the name")
    stream.item = Text("surface '{}'", name)
    channel, resolution = surface_arrays.read_lightmap(stream, version)
    bounds = stream.array(np.float32, 10, "the bounds")
    surface = Surface(name, bounds, lightmap_channel=channel, lightmap_resolution=resolution)
    targets = values.read_count(stream, "morph targets", size=1, most=MOST_TARGETS)
    for target in range(targets):
        target_name = values.read_string(stream, Text("the name of morph target {}", target))
        surface.targets.append(Target(target_name, _NO_POSITIONS, _NO_TANGENTS))
    return surface


def _read_body(stream: ByteStream, surface: Surface, version: str, bones: int) -> None:
    short = version == SHORT_TANGENT_VERSION
    for target in surface.targets:
        target.positions = surface_arrays.read_positions(stream, values.read_count(stream, "vertices", size=12))
        target.tangents = surface_arrays.read_tangents(
            stream, values.read_count(stream, "tangents", size=7), short=short
        )
    vertices, triangle_vertices = surface_arrays.pool_sizes(surface)
    surface.weights = surface_arrays.read_weights(stream, vertices, bones)
    surface_arrays.read_attributes(stream, surface, triangle_vertices)
    start = stream.position
    kind = surface_arrays.index_type(vertices)
    surface.c_indices = stream.array(kind, values.read_count(stream, "corners"), "the vertex indices")
    kind = surface_arrays.index_type(triangle_vertices)
    surface.t_indices = stream.array(kind, values.read_count(stream, "corners"), "the attribute indices")
    surface_arrays.check_corner_counts(stream, len(surface.c_indices), len(surface.t_indices), start)
