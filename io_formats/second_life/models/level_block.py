"""Blocks of triangles <-> arrays: levels of detail and the physics mesh (formats page, sections 3 and 4.1).

Each vertex has up to four influences of three bytes: a joint (1) and a weight (2). After fewer than four influences, a
byte of 255 ends the list.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Report, Text, counted
from ...encodings.records import record_starts
from . import llsd_arrays
from .llsd import as_bytes, sorted_map

MOST = 4
"""Maximum number of influences of a vertex."""
_END = 0xFF
_SIZES = np.zeros(256, np.intp)
_SIZES[[1, 4, 7, 10, 12]] = (1, 4, 7, 10, 12)
_LONGEST = 12

Bytes = npt.NDArray[np.uint8]


def decode_weights(data: bytes, count: int, report: Report) -> tuple[Bytes, llsd_arrays.Integers, Bytes]:
    """Decode the influences of ``count`` vertices; those after the end of the data have none.

    Returns
    -------
    joint_indices, joint_weights, influences:
        (count, 4) uint8, (count, 4) uint16 and (count,) uint8, as in :class:`Face`; weights of zero are
        dropped, unused entries are 0.
    """
    records, held = _records(data, count, report)
    weights = records[:, :, 1].astype(np.uint16) | records[:, :, 2].astype(np.uint16) << np.uint16(8)
    if held is not None:
        weights[np.arange(MOST) >= held[:, None]] = 0
    used = weights > 0
    joints = records[:, :, 0] * used
    influences: Bytes = np.ascontiguousarray(used.T).sum(axis=0, dtype=np.uint8)
    if (used[:, 1:] > used[:, :-1]).any():  # a weight of zero comes before other weights
        order = np.argsort(~used, axis=1, kind="stable")
        joints, weights = (np.take_along_axis(values, order, axis=1) for values in (joints, weights))
    return joints, weights, influences


def _records(data: bytes, count: int, report: Report) -> tuple[Bytes, Bytes | None]:
    """Return the bytes of each vertex, (count, 4, 3), and its number of valid influences, None if all are valid."""
    reach = np.frombuffer(data[: _LONGEST * count], np.uint8)
    size = len(reach)
    # every vertex has four influences, as no list ends early
    if size == _LONGEST * count and not (reach[::3] == _END).any():
        _report_left_over(len(data) - size, report)
        return reach.reshape(count, MOST, 3), None
    # Append records without influences; missing data is detected and reported below.
    padded = np.full(size + count + 2 * _LONGEST, _END, np.uint8)
    padded[:size] = reach
    lengths = np.full(size + count + _LONGEST, _LONGEST, np.uint8)
    for slot in reversed(range(MOST)):
        lengths[padded[3 * slot : 3 * slot + len(lengths)] == _END] = 3 * slot + 1
    starts, end = record_starts(lengths, count, _SIZES, what="vertices with weights")
    sizes = np.minimum(lengths[starts].astype(np.intp), size - starts)  # do not extend beyond the end of the data
    whole = sizes == lengths[starts]
    held = np.where(whole, sizes // 3, 0)
    records = padded[starts[:, None] + np.arange(_LONGEST)].reshape(count, MOST, 3)
    if whole.all():
        _report_left_over(len(data) - end, report)
    else:
        template = "the weights end early, {:,} of {:,} vertices have none"
        report.loss("weights-cut-off", template, int(np.count_nonzero(~whole)), count)
    return records, held


def _report_left_over(count: int, report: Report) -> None:
    if count > 0:
        report.loss("bytes-after-weights", "{} left over after the weights", counted(count, "byte is", "bytes are"))


def encode_weights(joints: Bytes, weights: llsd_arrays.Integers, influences: Bytes) -> bytes:
    """Encode the first ``influences`` entries of each vertex; shapes as returned by :func:`decode_weights`."""
    held = influences.astype(np.intp)
    lengths = np.where(held == MOST, _LONGEST, 3 * held + 1)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    data = np.full(int(ends[-1]) if len(ends) else 0, _END, np.uint8)
    for slot in range(MOST):
        places = np.flatnonzero(held > slot)
        at = starts[places] + 3 * slot
        data[at] = joints[places, slot]
        data[at + 1] = weights[places, slot] & 255
        data[at + 2] = weights[places, slot] >> 8
    return data.tobytes()


@dataclass
class Face:
    """One face of a level, still quantised: V vertices, T triangles."""

    positions: llsd_arrays.Integers
    """(V, 3) quantised positions."""
    position_domain: llsd_arrays.Reals
    """(2, 3): minimum and maximum, in single precision."""
    triangles: llsd_arrays.Integers
    """(T, 3), counter-clockwise, all below V."""
    normals: llsd_arrays.Integers | None = None
    """(V, 3) normals, quantised over -1 to 1."""
    uvs: llsd_arrays.Integers | None = None
    """(V, 2) quantised UVs, v upwards."""
    uv_domain: llsd_arrays.Reals | None = None
    """(2, 2): minimum and maximum of the UVs, in single precision."""
    joint_indices: npt.NDArray[np.uint8] | None = None
    """(V, 4) into the skin's joint names; only the first ``influences`` are used."""
    joint_weights: llsd_arrays.Integers | None = None
    """(V, 4) weights as multiples of 1/65535; unused entries are 0."""
    influences: npt.NDArray[np.uint8] | None = None
    """(V,) number of influences of each vertex, 0 to 4."""
    normalized_scale: tuple[float, float, float] | None = None
    no_geometry: bool = False
    """Whether the face is empty in this level; all arrays are empty."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Keys of the face that Meshferry does not know, with their values."""


MOST_FACES = 8
"""Maximum number of faces of a mesh in Second Life."""
_MOST_FACES_READ = 64

_UNIT = np.array(((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)))
_KNOWN = {
    "NoGeometry",
    "Normal",
    "NormalizedScale",
    "Position",
    "PositionDomain",
    "TexCoord0",
    "TexCoord0Domain",
    "TriangleList",
    "Weights",
}


def empty_face() -> Face:
    """Return an empty face."""
    return Face(np.empty((0, 3), np.uint16), np.zeros((2, 3)), np.empty((0, 3), np.uint16), no_geometry=True)


def faces_of(value: Any, report: Report) -> list[Face]:
    """Decode a block of triangles (formats page, sections 3 and 4.1).

    Errors in a face are repaired or left out, and reported in ``report``, whose item is the block.
    Triangles with vertices that do not exist and placeholders (0, 0, 0) are dropped. Faces with NaN or infinite
    positions or fewer than three vertices become empty, so that faces keep their numbers.

    Raises
    ------
    FormatError
        The block is not a list of faces, or has far more than a mesh can have.
    """
    if not isinstance(value, list):
        raise FormatError("The data is damaged: it is not a list of faces", item=report.item)
    if len(value) > _MOST_FACES_READ:
        raise FormatError("The data is damaged: it has {:,} faces; a mesh has at most 8", len(value), item=report.item)
    if len(value) > MOST_FACES:
        report.change("too-many-faces", "{} faces; Second Life accepts at most {}", len(value), MOST_FACES)
    return [_face(face, report.about(Text("{}, face {}", report.item, number))) for number, face in enumerate(value, 1)]


def _face(value: Any, report: Report) -> Face:
    """Decode a face of a level; one that cannot be used becomes an empty face, with a message."""

    def empty(why: str) -> Face:
        if why:
            report.loss("face-left-out", "{}; it is left out", Text(why))
        return empty_face()

    if not isinstance(value, dict):
        return empty("it is not a map")
    if "NoGeometry" in value:
        return empty("")
    positions = llsd_arrays.integer_rows(value.get("Position"), 3)
    if positions is None or len(positions) < 3:
        return empty("it has fewer than three vertices")
    try:
        domain = llsd_arrays.domain_of(value.get("PositionDomain"), 3)
    except llsd_arrays.NonFiniteRangeError:
        return empty("the range of its positions is NaN or infinite")
    if domain is None:
        domain = _UNIT
        report.change("range-missing", "the range of its positions is missing; -0.5 to 0.5 is used")
    face = Face(positions, domain, _triangles(value.get("TriangleList"), len(positions), report))
    face.normals = _layer(value, "Normal", 3, len(positions), report)
    face.uvs = _layer(value, "TexCoord0", 2, len(positions), report)
    if face.uvs is not None:
        _set_uv_domain(face, value.get("TexCoord0Domain"), report)
    weights = as_bytes(value.get("Weights"))
    if weights:
        face.joint_indices, face.joint_weights, face.influences = decode_weights(weights, len(positions), report)
    _set_size(face, value.get("NormalizedScale"), report)
    face.extra = {key: inner for key, inner in value.items() if key not in _KNOWN}
    return face


def _layer(value: dict[str, Any], key: str, width: int, count: int, report: Report) -> llsd_arrays.Integers | None:
    """Decode normals or UVs, (``count``, ``width``); surplus rows are ignored, and too few are left out."""
    rows = llsd_arrays.integer_rows(value.get(key), width)
    if rows is None or len(rows) == count:
        return rows
    what = Text({"Normal": "normals", "TexCoord0": "UV coordinates"}[key])
    if len(rows) > count:
        report.loss("surplus-values", "{:,} {} for {:,} vertices; the surplus is ignored", len(rows), what, count)
        return rows[:count]
    report.loss("values-missing", "{:,} {} for {:,} vertices; they are left out", len(rows), what, count)
    return None


def _set_uv_domain(face: Face, value: Any, report: Report) -> None:
    try:
        face.uv_domain = llsd_arrays.domain_of(value, 2)
    except llsd_arrays.NonFiniteRangeError:
        face.uvs = None
        report.loss("nan-range", "the range of its UV coordinates is NaN or infinite; they are left out")
        return
    if face.uv_domain is None:
        face.uv_domain = np.array(((0.0, 0.0), (1.0, 1.0)))
        report.change("range-missing", "the range of its UV coordinates is missing; 0 to 1 is used")


def _set_size(face: Face, value: Any, report: Report) -> None:
    size = llsd_arrays.as_reals(value, 3)
    if size is None:
        return
    with np.errstate(over="ignore"):
        usable = np.isfinite(size.astype(np.float32)).all() and (size > 0).all()
    if usable:
        face.normalized_scale = (float(size[0]), float(size[1]), float(size[2]))
    else:
        report.loss("invalid-size", "its size is not a positive number and is left out")


def _triangles(value: Any, vertices: int, report: Report) -> llsd_arrays.Integers:
    data = as_bytes(value) or b""
    if len(data) % 6:
        report.loss("triangles-cut-off", "the list of triangles ends in the middle of one, which is left out")
    triangles = np.frombuffer(data, "<u2", len(data) // 6 * 3).reshape(-1, 3)
    a, b, c = triangles.T  # faster than reducing along the rows
    beyond = (a >= vertices) | (b >= vertices) | (c >= vertices)
    if beyond.any():
        number = counted(int(np.count_nonzero(beyond)), "triangle uses a vertex", "triangles use vertices")
        report.loss("triangles-beyond-vertices", "{} beyond the last one, left out", number)
    dropped = beyond | ((a | b | c) == 0)  # (0, 0, 0) is the placeholder of an empty face
    return triangles[~dropped] if dropped.any() else triangles


def block_of(faces: list[Face]) -> list[Any]:
    """Encode faces as a block: keys sorted, ranges in single precision.

    A face without triangles is written as ``NoGeometry``.
    """
    return [_map_of(face) for face in faces]


def _map_of(face: Face) -> dict[str, Any]:
    """Return the LLSD map of a face."""
    if face.no_geometry or not len(face.triangles):
        return {"NoGeometry": True}
    values: dict[str, Any] = {
        **face.extra,
        "Position": llsd_arrays.integer_bytes(face.positions),
        "PositionDomain": llsd_arrays.domain_map(face.position_domain),
        "TriangleList": llsd_arrays.integer_bytes(face.triangles),
    }
    if face.normals is not None:
        values["Normal"] = llsd_arrays.integer_bytes(face.normals)
    if face.uvs is not None and face.uv_domain is not None:
        values["TexCoord0"] = llsd_arrays.integer_bytes(face.uvs)
        values["TexCoord0Domain"] = llsd_arrays.domain_map(face.uv_domain)
    if face.joint_indices is not None and face.joint_weights is not None and face.influences is not None:
        values["Weights"] = encode_weights(face.joint_indices, face.joint_weights, face.influences)
    if face.normalized_scale is not None:
        values["NormalizedScale"] = llsd_arrays.singles(face.normalized_scale)
    return sorted_map(values)
