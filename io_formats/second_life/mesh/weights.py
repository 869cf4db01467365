"""Weights of a face <-> arrays (formats page, section 4.1).

Each vertex has up to four influences of three bytes, a joint and a weight; fewer than four end with a byte of 255.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...binary.records import record_starts

MOST = 4
"""Maximum number of influences of a vertex."""
_END = 0xFF
_SIZES = np.zeros(256, np.intp)
_SIZES[[1, 4, 7, 10, 12]] = (1, 4, 7, 10, 12)
_LONGEST = 12

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.uint16]


def decode(data: bytes, count: int) -> tuple[Bytes, Integers, Bytes, str]:
    """Decode the influences of ``count`` vertices.

    Returns
    -------
    joint_indices, joint_weights, influences:
        (count, 4) uint8, (count, 4) uint16 and (count,) uint8, as in :class:`~.lod_block.Face`; weights of zero are
        dropped, unused entries are 0.
    oddity:
        Description of an error without a full stop, or empty. Vertices after the end of the data have no influence.
    """
    reach = data[: _LONGEST * count]
    size = len(reach)
    # After the end, pad with records without influences; missing data is detected and reported below.
    padded = np.full(size + count + 2 * _LONGEST, _END, np.uint8)
    padded[:size] = np.frombuffer(reach, np.uint8)
    lengths = np.full(size + count + _LONGEST, _LONGEST, np.uint8)
    for slot in reversed(range(MOST)):
        lengths[padded[3 * slot : 3 * slot + len(lengths)] == _END] = 3 * slot + 1
    starts, end = record_starts(lengths, count, _SIZES, what="vertices with weights")
    records = np.minimum(lengths[starts].astype(np.intp), size - starts)  # sizes, cut at the end of the data
    whole = records == lengths[starts]
    held = np.where(whole, records // 3, 0)
    held[records == _LONGEST] = MOST
    joints = np.zeros((count, MOST), np.uint8)
    weights = np.zeros((count, MOST), np.uint16)
    influences = np.zeros(count, np.uint8)
    for slot in range(MOST):
        places = np.flatnonzero(held > slot)
        at = starts[places] + 3 * slot
        values = padded[at + 1].astype(np.uint16) | padded[at + 2].astype(np.uint16) << np.uint16(8)
        places, at, values = (array[values > 0] for array in (places, at, values))
        free = influences[places]
        joints[places, free] = padded[at]
        weights[places, free] = values
        influences[places] += 1
    oddity = ""
    if not whole.all():
        oddity = f"the weights end early, {np.count_nonzero(~whole):,} of {count:,} vertices have none"
    elif end < len(data):
        oddity = f"{len(data) - end:,} bytes are left over after the weights"
    return joints, weights, influences, oddity


def encode(joints: Bytes, weights: Integers, influences: Bytes) -> bytes:
    """Encode the first ``influences`` entries of each vertex; shapes as returned by :func:`decode`."""
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
