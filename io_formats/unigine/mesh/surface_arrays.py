"""Arrays of a surface, bytes <-> NumPy: tangents, weights, indices, attributes (section 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...binary.byte_reader import ByteStream
from ...binary.records import record_starts
from ...core.errors import FormatError
from ...core.scene import AnyArray, FloatArray
from .. import compact_integers
from . import array_checks
from .document import DEFAULT_LIGHTMAP, Surface, Weights
from .versions import LIGHTMAP_VERSIONS

MOST_WEIGHTS = 4
_WEIGHT_SIZES = np.zeros(256, np.intp)
_WEIGHT_SIZES[: MOST_WEIGHTS + 1] = 1 + 4 * np.arange(MOST_WEIGHTS + 1)
_SHORT_TANGENT = np.dtype([("xyz", "<i2", 3), ("w", "i1")])
"""A tangent of ms10, 7 bytes."""


def read_lightmap(stream: ByteStream, version: str) -> tuple[int, int]:
    """Read UV channel and resolution code of the lightmap if the version has them (section 3.4)."""
    if version not in LIGHTMAP_VERSIONS:
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
    """Read (count, 4) int16 tangents: a view, or a copy for the ``short`` ones of ms10."""
    if not short:
        return stream.array(np.int16, (count, 4), "the tangents")
    stored = stream.array(_SHORT_TANGENT, count, "the tangents")
    tangents = np.empty((count, 4), np.int16)
    tangents[:, :3] = stored["xyz"]
    tangents[:, 3] = stored["w"]
    return tangents


def encode_tangents(tangents: AnyArray, *, short: bool) -> AnyArray:
    """Convert tangents to their stored form."""
    if not short:
        return np.ascontiguousarray(tangents, "<i2")
    stored = np.empty(len(tangents), _SHORT_TANGENT)
    stored["xyz"], stored["w"] = tangents[:, :3], tangents[:, 3]
    return stored


def read_weights(stream: ByteStream, vertices: int, bones: int) -> Weights | None:
    """Read a count, 0 or ``vertices``, and weights; raise FormatError for invalid counts or bones."""
    start = stream.position
    count = compact_integers.read_count(stream, "vertices with weights", size=1)
    if not _all_or_none(stream, count, vertices, "vertices with weights", start):
        return None
    first = stream.position
    data = stream.rest()
    try:
        starts, end = record_starts(data, count, _WEIGHT_SIZES, what="vertices with weights")
    except FormatError as problem:
        offset = first + (problem.offset or 0)
        raise stream.error(f"{problem.message}, and a vertex has at most {MOST_WEIGHTS} bones", offset=offset) from None
    stream.position = first + end
    payload = np.ones(end, bool)
    payload[starts] = False
    pairs = data[:end][payload].view("<i2").reshape(-1, 2)
    weights = Weights(
        data[starts], np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]).view(np.uint16)
    )
    if len(weights.bones) and array_checks.highest(weights.bones) >= bones:
        wrong = int(np.flatnonzero(weights.bones.view(np.uint16) >= bones)[0])
        raise stream.error(
            f"A vertex is weighted to bone {weights.bones[wrong]}, but the file has {bones:,} bones, counted from 0",
            offset=first,
        )
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
    count = compact_integers.read_count(stream, what, size=width * np.dtype(dtype).itemsize)
    if not _all_or_none(stream, count, wanted, what, start):
        return None
    return stream.array(dtype, (count, width), f"the {what}")


def _all_or_none(stream: ByteStream, count: int, wanted: int, what: str, start: int) -> bool:
    if count not in (0, wanted):
        raise stream.error(f"The file is damaged: it has {count:,} {what}, not 0 or {wanted:,}", offset=start)
    return count > 0


def check_corner_counts(stream: ByteStream, c_count: int, t_count: int, start: int) -> None:
    """Raise FormatError for index lists of different lengths, or lengths that are not multiples of 3."""
    if c_count != t_count:
        message = f"The file is damaged: {c_count:,} corners have a position and {t_count:,} have attributes"
        raise stream.error(message, offset=start)
    if c_count % 3:
        raise stream.error(f"The file is damaged: {c_count:,} corners are not triangles", offset=start)


def check_indices(stream: ByteStream, indices: AnyArray, pool: int, what: str) -> None:
    """Raise FormatError for indices (C,) outside a pool of vertices."""
    if len(indices) and array_checks.highest(indices) >= pool:
        corner = int(np.flatnonzero(indices.view(f"u{indices.itemsize}") >= pool)[0])
        raise stream.error(f"Corner {corner:,} uses {what} {indices[corner]:,}, but there are {pool:,}, counted from 0")


def check_surface(stream: ByteStream, surface: Surface, tally: array_checks.Tally, *, short_tangents: bool) -> None:
    """Check the arrays of a surface: raise FormatError for invalid ones and count harmless oddities."""
    positions = surface.targets[0].positions if surface.targets else np.empty((0, 3), np.float32)
    tangents = surface.targets[0].tangents if surface.targets else np.empty((0, 4), np.int16)
    check_indices(stream, surface.c_indices, len(positions), "vertex")
    check_indices(stream, surface.t_indices, len(tangents), "triangle vertex")
    for number, target in enumerate(surface.targets):
        if len(target.positions) != len(positions) or len(target.tangents) != len(tangents):
            raise stream.error(
                f"Morph target {number} '{target.name}' has {len(target.positions):,} vertices and "
                f"{len(target.tangents):,} tangents, the base has {len(positions):,} and {len(tangents):,}"
            )
        if not len(target.positions):
            continue
        box = array_checks.box_of(target.positions)
        if not np.isfinite(box).all():
            vertex = int(np.flatnonzero(~np.isfinite(target.positions).all(1))[0])
            raise stream.error(f"The position of vertex {vertex:,} of target {number} is NaN or infinite")
        if not number and array_checks.boxes_disagree(surface.bounds[:6], box):
            tally.add("bounds", surface.name)
    bent = array_checks.bent_short_tangents if short_tangents else array_checks.bent_tangents
    tally.add("tangents", surface.name, sum(bent(target.tangents) for target in surface.targets))
    for uvs in (surface.uv0, surface.uv1):
        if uvs is not None and not array_checks.is_finite(uvs):
            tally.add("uvs", surface.name)
    if surface.weights is not None:
        tally.add("weights", surface.name, array_checks.uneven_weights(surface.weights.counts, surface.weights.values))
