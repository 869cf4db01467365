"""Arrays of a surface, bytes <-> NumPy: tangents, weights, indices, attributes (section 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Text
from ...core.scene import AnyArray, FloatArray
from ...encodings.byte_reader import ByteStream
from ...encodings.records import record_starts
from .. import values
from . import array_checks
from .document import DEFAULT_LIGHTMAP, Surface, Weights
from .versions import LIGHTMAP_VERSIONS

MOST_WEIGHTS = 4
_WEIGHT_SIZES = np.zeros(256, np.intp)
_WEIGHT_SIZES[: MOST_WEIGHTS + 1] = 1 + 4 * np.arange(MOST_WEIGHTS + 1)
_SHORT_TANGENT = np.dtype([("xyz", "<i2", 3), ("w", "i1")])
"""A tangent of ms10, 7 bytes: x, y, z and a sign byte."""


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
    count = values.read_count(stream, "vertices with weights", size=1)
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
    if len(weights.bones) and array_checks.highest_index(weights.bones) >= bones:
        wrong = int(np.flatnonzero(weights.bones.view(np.uint16) >= bones)[0])
        raise stream.error(
            "A vertex is weighted to bone {}, but the file has {:,} bones, counted from 0",
            weights.bones[wrong],
            bones,
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
    count = values.read_count(stream, what, size=width * np.dtype(dtype).itemsize)
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
        if len(indices) and array_checks.highest_index(indices) >= pool:
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


def check_read_surface(
    stream: ByteStream, surface: Surface, tally: array_checks.Tally, *, short_tangents: bool
) -> None:
    """Check the arrays of a surface: raise FormatError for invalid ones, and count harmless irregularities."""
    problem = broken_arrays(surface)
    if problem is not None:
        raise stream.error(problem)
    for target in surface.targets[:1]:
        if len(target.positions) and array_checks.boxes_disagree(surface.bounds[:6], target.positions):
            tally.add("wrong-bounds", surface.name)
    bent = array_checks.bent_short_tangents if short_tangents else array_checks.bent_tangents
    tally.add("not-unit-tangents", surface.name, sum(bent(target.tangents) for target in surface.targets))
    for uvs in (surface.uv0, surface.uv1):
        if uvs is not None and not np.isfinite(uvs).all():
            tally.add("nan-uv-coordinates", surface.name)
    if surface.weights is not None:
        tally.add(
            "unnormalised-weights",
            surface.name,
            array_checks.uneven_weights(surface.weights.counts, surface.weights.values),
        )
