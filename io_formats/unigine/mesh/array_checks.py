"""Checks of whole arrays of a surface in few passes (section 11), and a count of harmless oddities.

Minimum and maximum show whether all values are finite, since NaN and infinity propagate to them, and are also the
bounding box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from ...core.messages import counted, listed
from ...core.scene import AnyArray, FloatArray

_WIDE = 768
"""Width of the rows in which NumPy computes minimum and maximum of points: rows of 3 values are ten times slower."""
_BLOCK = 1 << 15
_LENGTH_TOLERANCE = 1e-2
_LEAST_SQUARE = (32767 * (1 - _LENGTH_TOLERANCE)) ** 2
_MOST_SQUARE = (32767 * (1 + _LENGTH_TOLERANCE)) ** 2
_BOX_TOLERANCE = 1e-3
WEIGHT_SUM = 65535
WEIGHT_SUM_TOLERANCE = 3
"""Each of up to four weights is rounded down, so that a sum can be up to 3 too small."""

_KINDS = {
    "bounds": (
        "surface has bounds that disagree with the vertices",
        "surfaces have bounds that disagree with the vertices",
    ),
    "tangents": ("tangent is not of unit length", "tangents are not of unit length"),
    "uvs": (
        "surface has UV coordinates that are NaN or infinite",
        "surfaces have UV coordinates that are NaN or infinite",
    ),
    "weights": ("vertex has weights that do not sum to 1", "vertices have weights that do not sum to 1"),
}


class Tally:
    """Counts of oddities by kind, with the surfaces that have them."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, int]]] = {kind: [] for kind in _KINDS}

    def add(self, kind: str, surface: str, count: int = 1) -> None:
        """Count oddities of a kind in a surface."""
        if count:
            self._found[kind].append((surface, count))

    def warnings(self) -> list[str]:
        """Return one warning for each kind."""
        return [self.warning(kind) for kind, found in self._found.items() if found]

    def warning(self, kind: str) -> str:
        """Return the warning for a kind, or an empty text."""
        found = self._found[kind]
        number = counted(sum(count for _, count in found), *_KINDS[kind])
        return f"{number}: {listed(list(dict(found)))}" if found else ""


def double_names(names: Iterable[str], thing: str) -> list[str]:
    """Return a warning if names occur twice."""
    double = [name for name, times in Counter(names).items() if times > 1]
    return (
        [f"{counted(len(double), f'{thing} name is', f'{thing} names are')} used twice: {listed(double)}"]
        if double
        else []
    )


def box_of(points: FloatArray) -> FloatArray:
    """Return minimum and maximum x, y, z of (P, 3) float32 points, P > 0, as (6,) float32.

    The result is finite if and only if all points are.
    """
    flat = points.reshape(-1)
    whole = len(flat) // _WIDE * _WIDE
    lows, highs = [], []
    for part in (flat[:whole].reshape(-1, _WIDE), flat[whole:].reshape(-1, 3)):
        if len(part):
            lows.append(part.min(0).reshape(-1, 3))
            highs.append(part.max(0).reshape(-1, 3))
    return np.concatenate((np.concatenate(lows).min(0), np.concatenate(highs).max(0)))


def boxes_disagree(stored: FloatArray, true: FloatArray) -> bool:
    """Return whether a stored box (6,) differs from the true one by more than a thousandth of its size."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.linalg.norm((true[3:] - true[:3]).astype(np.float64)))
        off = float(np.abs(stored.astype(np.float64) - true).max())
    return not off <= 1e-5 + _BOX_TOLERANCE * size


def is_finite(values: FloatArray) -> bool:
    """Return whether all numbers of an array are finite."""
    return not values.size or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def highest(indices: AnyArray) -> int:
    """Return the largest of (n,) indices, n > 0; negative indices count as very large ones."""
    return int(indices.view(np.dtype(f"u{indices.itemsize}")).max())


def bent_tangents(tangents: AnyArray) -> int:
    """Count tangents (nt, 4) int16 whose length differs from 1 by more than a hundredth."""
    flat = tangents.reshape(-1)
    bent = 0
    for first in range(0, len(flat), 4 * _BLOCK):
        squares = flat[first : first + 4 * _BLOCK].astype(np.float32)
        squares *= squares
        # Sum pairs as complex numbers, twice: several times faster than a sum along rows of four.
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
