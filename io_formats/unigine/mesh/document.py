"""Dataclasses that mirror a UNIGINE mesh file, and checks of arrays; sections refer to docs/formats/unigine.md.

Letters in shapes: nv coordinate vertices and nt triangle vertices of a surface, C = 3 × triangles corners, nb bones.
Arrays may be read-only views of the file's bytes.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError, FormatError
from ...core.format import OutputFile
from ...core.messages import Message, Named, Report, Text, counted, listed, of_kind
from ...core.scene import AnyArray, FloatArray
from ...encodings.byte_reader import ByteStream
from ...encodings.records import record_starts
from ...geometry.transforms import bounds
from .. import values as unigine_values
from ..bones import Bone
from ..frames import DeltaFrames
from . import format as mesh_format

DEFAULT_LIGHTMAP = (1, 3)
"""UV channel and resolution code (0 to 7, meaning 32 to 4096 pixels) of the lightmap of a new surface."""


@dataclass
class Target:
    """A morph target of a surface; the first one is the base shape."""

    name: str
    positions: FloatArray
    """(nv, 3) float32, object space, bind pose."""
    tangents: AnyArray
    """(nt, 4) int16 x, y, z, w / 32767: a quaternion whose sign of w is the handedness (section 3.1). In ms10, w is the
    sign byte, -127 or 127."""


@dataclass
class Weights:
    """Bone weights of the coordinate vertices, one after the other, unsorted."""

    counts: AnyArray
    """(nv,) uint8, number of weights of each vertex, 0 to 4."""
    bones: AnyArray
    """(sum of counts,) int16 bone indices."""
    values: AnyArray
    """(sum of counts,) uint16 / 65535."""


@dataclass
class Surface:
    """A surface: its targets, and attributes of all its vertices (None if absent)."""

    name: str
    bounds: FloatArray
    """(10,) float32: box minimum, box maximum, sphere centre, radius."""
    targets: list[Target] = field(default_factory=list)
    weights: Weights | None = None
    uv0: FloatArray | None = None
    """(nt, 2) float32, v from the top."""
    uv1: FloatArray | None = None
    colors: AnyArray | None = None
    """(nt, 4) uint8: red, green, blue, alpha, as stored."""
    c_indices: AnyArray = field(default_factory=lambda: np.empty(0, np.uint8))
    """(C,) uint8, uint16 or int32 into the coordinate vertices."""
    t_indices: AnyArray = field(default_factory=lambda: np.empty(0, np.uint8))
    """(C,) uint8, uint16 or int32 into the triangle vertices."""
    lightmap_channel: int = DEFAULT_LIGHTMAP[0]
    lightmap_resolution: int = DEFAULT_LIGHTMAP[1]
    collision: bytes | None = None
    """ms14, ms15: the content of the collision block, uncompressed (section 6.4)."""


@dataclass
class SoupSurface:
    """A surface of mr02: triangles that share no vertices."""

    name: bytes
    """128 bytes: the name, padded with zeros."""
    vertices: FloatArray
    """(3 triangles, 8) float32: position, normal, uv with v from the bottom."""


@dataclass
class EmbeddedAnimation:
    """An animation inside a mesh file of ms10 to ms12 (section 5)."""

    name: str
    frames: DeltaFrames


@dataclass
class MeshFile:
    """A mesh file of any version."""

    version: str
    """The magic number, e.g. ``ms13``."""
    bounds: FloatArray = field(default_factory=lambda: np.zeros(10, np.float32))
    bones: list[Bone] = field(default_factory=list)
    transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """(nb, 10) float32 local bind transforms: translation, rotation (x, y, z, w), scale."""
    animations: list[EmbeddedAnimation] = field(default_factory=list)
    surfaces: list[Surface] = field(default_factory=list)
    soup: list[SoupSurface] = field(default_factory=list)
    """Surfaces of mr02; ``surfaces`` is empty in this case."""
    leaf_size: int = 4
    """ms14 and later: :data:`~.collision.LEAF_SIZE` of the collision trees."""
    memory_use: int = 0
    """ms14 and later: the engine's estimate of its memory use in bytes, whose formula is unknown."""
    rest_transforms: FloatArray = field(default_factory=lambda: np.empty((0, 10), np.float32))
    """sk10: (nr, 10) float32 local rest transforms of the first nr bones, like ``transforms``."""
    skeleton_guid: str = ""
    """sk10: identifier of the skeleton file."""
    skeleton_path: str = ""
    """sk10: path of the skeleton file in the project."""
    warnings: list[Any] = field(default_factory=list)
    """Messages of the reader (section 11); not part of the file."""
    companions: list[OutputFile] = field(default_factory=list)
    """sk10: files to write beside the mesh, the skeleton and ``.meta`` files; not part of the file."""
    findings: list[Message] = field(default_factory=list)
    """Findings about the skeleton file; not part of the file."""
    own_files: frozenset[str] | None = None
    """The only existing files that an export may replace with this one, see ``Mesh.own_files``; not part of the
    file."""


_BLOCK = 1 << 15
_LENGTH_TOLERANCE = 1e-2
_LEAST_SQUARE = (32767 * (1 - _LENGTH_TOLERANCE)) ** 2
_MOST_SQUARE = (32767 * (1 + _LENGTH_TOLERANCE)) ** 2
_BOX_TOLERANCE = 1e-3
WEIGHT_SUM = 65535
WEIGHT_SUM_TOLERANCE = 3
"""Tolerance for the sum of up to four weights, each of which is rounded down, in multiples of 1/65535."""

_KINDS = {
    "wrong-bounds": (
        "surface has bounds that disagree with the vertices",
        "surfaces have bounds that disagree with the vertices",
    ),
    "not-unit-tangents": ("tangent is not of unit length", "tangents are not of unit length"),
    "nan-uv-coordinates": (
        "surface has UV coordinates that are NaN or infinite",
        "surfaces have UV coordinates that are NaN or infinite",
    ),
    "unnormalised-weights": ("vertex has weights that do not sum to 1", "vertices have weights that do not sum to 1"),
}


class Tally:
    """Counts of harmless irregularities by message code, with the surfaces that have them."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, int]]] = {kind: [] for kind in _KINDS}

    def add(self, kind: str, surface: str, count: int = 1) -> None:
        """Add a number of irregularities of a kind in a surface."""
        if count:
            self._found[kind].append((surface, count))

    def report(self, report: Report) -> None:
        """Report each kind of irregularity in one message."""
        for code, found in self._found.items():
            if found:
                number = counted(sum(count for _, count in found), *_KINDS[code])
                report.change(code, "{}: {}", number, listed(of_kind("layer", dict(found))))


def check_names(names: Iterable[str], report: Callable[..., None]) -> None:
    """Report surface names that occur more than once."""
    double = [name for name, times in Counter(names).items() if times > 1]
    if double:
        number = counted(len(double), "surface name is", "surface names are")
        report("repeated-surface-name", "{} used twice: {}", number, listed(of_kind("layer", double)))


def boxes_disagree(stored: FloatArray, points: FloatArray) -> bool:
    """Return whether a stored box (6,) differs from that of points by more than a thousandth of its size."""
    true = bounds(points).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.linalg.norm((true[3:] - true[:3]).astype(np.float64)))
        off = float(np.abs(stored.astype(np.float64) - true).max())
    return not off <= 1e-5 + _BOX_TOLERANCE * size


def highest_index(indices: AnyArray) -> int:
    """Return the largest of (n,) indices, n > 0; negative indices count as very large ones."""
    return int(indices.view(np.dtype(f"u{indices.itemsize}")).max())


def bent_tangents(tangents: AnyArray) -> int:
    """Count tangents (nt, 4) int16 whose length differs from 1 by more than a hundredth."""
    flat = tangents.reshape(-1)
    bent = 0
    for first in range(0, len(flat), 4 * _BLOCK):
        squares = flat[first : first + 4 * _BLOCK].astype(np.float32)
        squares *= squares
        # Sums pairs as complex numbers, in two steps: several times faster than a sum along rows of four.
        pairs = squares.view(np.complex64)
        halves = (pairs[0::2] + pairs[1::2]).view(np.float32)
        sums = halves[0::2] + halves[1::2]
        if sums.min() < _LEAST_SQUARE or sums.max() > _MOST_SQUARE:
            bent += int(np.count_nonzero((sums < _LEAST_SQUARE) | (sums > _MOST_SQUARE)))
    return bent


def bent_short_tangents(tangents: AnyArray) -> int:
    """Count tangents of ms10, (nt, 4) int16 with the handedness in w, whose x, y, z are longer than 1."""
    squares = (tangents[:, :3].astype(np.float32) ** 2).sum(1)
    return int(np.count_nonzero(squares > _MOST_SQUARE))


def uneven_weights(counts: AnyArray, values: AnyArray) -> int:
    """Count vertices with weights whose sum is not 65535, allowing for rounding down."""
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    ends = np.cumsum(counts, dtype=np.int64)
    total = sums[ends] - sums[ends - counts]
    off = (total > WEIGHT_SUM) | (total < WEIGHT_SUM - WEIGHT_SUM_TOLERANCE)
    return int(np.count_nonzero(off & (counts > 0)))


MOST_WEIGHTS = 4
_WEIGHT_SIZES = np.zeros(256, np.intp)
_WEIGHT_SIZES[: MOST_WEIGHTS + 1] = 1 + 4 * np.arange(MOST_WEIGHTS + 1)
_SHORT_TANGENT = np.dtype([("xyz", "<i2", 3), ("w", "i1")])
"""A tangent of ms10, 7 bytes: x, y, z and a sign byte."""


def read_lightmap(stream: ByteStream, version: str) -> tuple[int, int]:
    """Read UV channel and resolution code of the lightmap if the version has them (section 3.4)."""
    if version not in mesh_format.LIGHTMAP_VERSIONS:
        return DEFAULT_LIGHTMAP
    return stream.u8("the lightmap channel"), stream.u8("the lightmap resolution")


def index_type(pool: int) -> npt.DTypeLike:
    """Return the type of indices into a pool of this size."""
    return np.dtype(np.uint8 if pool < 256 else np.uint16 if pool < 65536 else np.int32)


def read_positions(stream: ByteStream, count: int) -> FloatArray:
    """Read (count, 3) float32 positions, as a view."""
    positions: FloatArray = stream.array(np.float32, (count, 3), "the vertices")
    return positions


def read_tangents(stream: ByteStream, count: int, *, short: bool) -> AnyArray:
    """Read (count, 4) int16 tangents: a view of the data, or a copy for the ``short`` tangents of ms10."""
    if not short:
        return stream.array(np.int16, (count, 4), "the tangents")
    stored = stream.array(_SHORT_TANGENT, count, "the tangents")
    tangents = np.empty((count, 4), np.int16)
    tangents[:, :3] = stored["xyz"]
    tangents[:, 3] = stored["w"]
    return tangents


def encode_tangents(tangents: AnyArray, *, short: bool) -> AnyArray:
    """Convert tangents to the form in which the file stores them."""
    if not short:
        return np.ascontiguousarray(tangents, "<i2")
    stored = np.empty(len(tangents), _SHORT_TANGENT)
    stored["xyz"], stored["w"] = tangents[:, :3], tangents[:, 3]
    return stored


def read_weights(stream: ByteStream, vertices: int, bones: int) -> Weights | None:
    """Read a count, 0 or ``vertices``, and weights; raise FormatError for invalid counts or bones."""
    start = stream.position
    count = unigine_values.read_count(stream, "vertices with weights", size=1)
    if not _all_or_none(stream, count, vertices, "vertices with weights", start):
        return None
    first = stream.position
    data = stream.rest()
    try:
        starts, end = record_starts(data, count, _WEIGHT_SIZES, what="vertices with weights")
    except FormatError as problem:
        offset = first + (problem.offset or 0)
        raise stream.error(
            "{}, and a vertex has at most {} bones", problem.message, MOST_WEIGHTS, offset=offset
        ) from None
    stream.position = first + end
    payload = np.ones(end, bool)
    payload[starts] = False
    pairs = data[:end][payload].view("<i2").reshape(-1, 2)
    weights = Weights(
        data[starts], np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]).view(np.uint16)
    )
    if len(weights.bones) and highest_index(weights.bones) >= bones:
        wrong = int(np.flatnonzero(weights.bones.view(np.uint16) >= bones)[0])
        template = "A vertex is weighted to bone {}, but the file has {:,} bones, counted from 0"
        raise stream.error(template, weights.bones[wrong], bones, offset=first)
    return weights


def encode_weights(weights: Weights) -> AnyArray:
    """Encode the records of weights, without their count, as (n,) uint8."""
    counts = weights.counts.astype(np.intp)
    ends = np.cumsum(counts * 4 + 1)
    size = int(ends[-1]) if len(ends) else 0
    starts = ends - counts * 4 - 1
    records = np.empty(size, np.uint8)
    payload = np.ones(size, bool)
    payload[starts] = False
    records[starts] = weights.counts
    pairs = np.empty((len(weights.bones), 2), "<i2")
    pairs[:, 0] = weights.bones
    pairs[:, 1] = np.ascontiguousarray(weights.values, "<u2").view("<i2")
    records[payload] = pairs.reshape(-1).view(np.uint8)
    return records


def read_attributes(stream: ByteStream, surface: Surface, triangle_vertices: int) -> None:
    """Read UV0, UV1 and colours, each for all triangle vertices or for none."""
    surface.uv0 = _read_attribute(stream, triangle_vertices, np.float32, 2, "first UV coordinates")
    surface.uv1 = _read_attribute(stream, triangle_vertices, np.float32, 2, "second UV coordinates")
    surface.colors = _read_attribute(stream, triangle_vertices, np.uint8, 4, "colours")


def _read_attribute(stream: ByteStream, wanted: int, dtype: npt.DTypeLike, width: int, what: str) -> AnyArray | None:
    start = stream.position
    count = unigine_values.read_count(stream, what, size=width * np.dtype(dtype).itemsize)
    if not _all_or_none(stream, count, wanted, what, start):
        return None
    return stream.array(dtype, (count, width), f"the {what}")


def _all_or_none(stream: ByteStream, count: int, wanted: int, what: str, start: int) -> bool:
    if count not in (0, wanted):
        raise stream.error("The file is damaged: it has {:,} {}, not 0 or {:,}", count, what, wanted, offset=start)
    return count > 0


def check_corner_counts(stream: ByteStream, c_count: int, t_count: int, start: int) -> None:
    """Raise FormatError for index lists of different lengths, or lengths that are not multiples of 3."""
    if c_count != t_count:
        template = "The file is damaged: {:,} corners have a position and {:,} have attributes"
        raise stream.error(template, c_count, t_count, offset=start)
    if c_count % 3:
        raise stream.error("The file is damaged: {:,} corners are not triangles", c_count, offset=start)


def pool_sizes(surface: Surface) -> tuple[int, int]:
    """Return the number of coordinate vertices and the number of triangle vertices."""
    if not surface.targets:
        return 0, 0
    return len(surface.targets[0].positions), len(surface.targets[0].tangents)


def broken_arrays(surface: Surface) -> Text | None:
    """Return the reason why the shapes and indices of a surface do not fit together, or None if they do."""
    vertices, triangle_vertices = pool_sizes(surface)
    for indices, pool, what in (
        (surface.c_indices, vertices, "vertex"),
        (surface.t_indices, triangle_vertices, "triangle vertex"),
    ):
        if len(indices) and highest_index(indices) >= pool:
            corner = int(np.flatnonzero(indices.view(f"u{indices.itemsize}") >= pool)[0])
            template = "Corner {:,} uses {} {:,}, but there are {:,}, counted from 0"
            return Text(template, corner, what, indices[corner], pool)
    for number, target in enumerate(surface.targets):
        if target.positions.shape != (vertices, 3) or target.tangents.shape != (triangle_vertices, 4):
            counts = (len(target.positions), len(target.tangents), vertices, triangle_vertices)
            template = "Morph target {} '{}' has {:,} vertices and {:,} tangents, the base has {:,} and {:,}"
            return Text(template, number, target.name, *counts)
        if not np.isfinite(target.positions).all():
            vertex = int(np.flatnonzero(~np.isfinite(target.positions).all(1))[0])
            return Text("The position of vertex {:,} of target {} is NaN or infinite", vertex, number)
    return None


def check_read_surface(stream: ByteStream, surface: Surface, tally: Tally, *, short_tangents: bool) -> None:
    """Check the arrays of a surface: raise FormatError for invalid ones, and count harmless irregularities."""
    problem = broken_arrays(surface)
    if problem is not None:
        raise stream.error(problem)
    for target in surface.targets[:1]:
        if len(target.positions) and boxes_disagree(surface.bounds[:6], target.positions):
            tally.add("wrong-bounds", surface.name)
    bent = bent_short_tangents if short_tangents else bent_tangents
    tally.add("not-unit-tangents", surface.name, sum(bent(target.tangents) for target in surface.targets))
    for uvs in (surface.uv0, surface.uv1):
        if uvs is not None and not np.isfinite(uvs).all():
            tally.add("nan-uv-coordinates", surface.name)
    if surface.weights is not None:
        tally.add("unnormalised-weights", surface.name, uneven_weights(surface.weights.counts, surface.weights.values))


def check_version(document: MeshFile) -> None:
    """Raise ExportError if the version cannot be written or cannot hold the document."""
    version = document.version
    if version not in mesh_format.WRITTEN_VERSIONS:
        raise ExportError(
            "Version {} cannot be written; choose one of {}", version, ", ".join(mesh_format.WRITTEN_VERSIONS)
        )
    if document.bones and version not in mesh_format.SKINNED_VERSIONS:
        raise ExportError("{} holds no bones; choose ms13 or ms14, or export without the armature", version)
    if document.animations and version not in mesh_format.ANIMATED_VERSIONS:
        raise ExportError(
            "{} holds no animations; choose {} or write an .anim", version, ", ".join(mesh_format.ANIMATED_VERSIONS)
        )
    if document.surfaces and version == mesh_format.SOUP_VERSION:
        raise ExportError("{} holds triangle soup and no indices; the surfaces are not converted", version)
    if document.soup and version != mesh_format.SOUP_VERSION:
        raise ExportError("Triangle soup cannot be written as {}", version)
    if version == mesh_format.SINGLE_TARGET_VERSION:
        for surface in document.surfaces:
            if len(surface.targets) > 1:
                template = "Surface '{}': {} holds no morph targets; choose ms13 or ms14"
                raise ExportError(template, Named("layer", surface.name), version)


def check_written_surface(surface: Surface, bones: int) -> None:
    """Raise ExportError for arrays that do not fit together, which the reader would reject."""
    label = Text("Surface '{}'", Named("layer", surface.name))
    vertices, triangle_vertices = pool_sizes(surface)
    problem = broken_arrays(surface)
    if problem:
        raise ExportError("{}: {}", label, problem)
    for values, width, what in ((surface.uv0, 2, "UV0"), (surface.uv1, 2, "UV1"), (surface.colors, 4, "colours")):
        if values is not None and values.shape != (triangle_vertices, width):
            raise ExportError("{}: its {} are not those of its {:,} triangle vertices", label, what, triangle_vertices)
    corners = len(surface.c_indices)
    if corners != len(surface.t_indices) or corners % 3:
        raise ExportError("{}: {:,} and {:,} corners are not triangles", label, corners, len(surface.t_indices))
    if surface.weights is not None:
        _check_weights(surface.weights, vertices, bones, label)


def _check_weights(weights: Weights, vertices: int, bones: int, label: str) -> None:
    counts, used = weights.counts, weights.bones
    if len(counts) != vertices or not (int(counts.sum(dtype=np.int64)) == len(used) == len(weights.values)):
        raise ExportError("{}: its weights are not those of its {:,} vertices", label, vertices)
    if len(counts) and int(counts.max()) > MOST_WEIGHTS:
        raise ExportError("{}: a vertex has more than {} bones", label, MOST_WEIGHTS)
    if len(used) and highest_index(used) >= bones:
        raise ExportError("{}: a vertex is weighted to a bone that does not exist", label)
