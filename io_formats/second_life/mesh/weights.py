"""Weights of a face <-> arrays (formats page, section 4.1).

Each vertex has up to four influences of three bytes: a joint (1) and a weight (2). After fewer than four influences, a
byte of 255 ends the list.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...core.messages import Report
from ...encodings.records import record_starts

MOST = 4
"""Maximum number of influences of a vertex."""
_END = 0xFF
_SIZES = np.zeros(256, np.intp)
_SIZES[[1, 4, 7, 10, 12]] = (1, 4, 7, 10, 12)
_LONGEST = 12

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.uint16]


def decode_weights(data: bytes, count: int, report: Report) -> tuple[Bytes, Integers, Bytes]:
    """Decode the influences of ``count`` vertices; those after the end of the data have none.

    Returns
    -------
    joint_indices, joint_weights, influences:
        (count, 4) uint8, (count, 4) uint16 and (count,) uint8, as in :class:`~.lod_block.Face`; weights of zero are
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
        report.loss("bytes-after-weights", "{:,} bytes are left over after the weights", count)


def encode_weights(joints: Bytes, weights: Integers, influences: Bytes) -> bytes:
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
