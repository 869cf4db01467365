"""Checks of whole arrays of a surface in few passes (section 11), and a count of harmless irregularities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from ...core.messages import Report, counted, listed
from ...core.scene import AnyArray, FloatArray
from ...geometry.transforms import bounds

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
                report.change(code, "{}: {}", number, listed(list(dict(found))))


def check_names(names: Iterable[str], report: Callable[..., None]) -> None:
    """Report surface names that occur more than once."""
    double = [name for name, times in Counter(names).items() if times > 1]
    if double:
        number = counted(len(double), "surface name is", "surface names are")
        report("repeated-surface-name", "{} used twice: {}", number, listed(double))


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
