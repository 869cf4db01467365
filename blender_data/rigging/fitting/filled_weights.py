"""Weights of vertices for which none are known, filled in along the mesh."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..joint_poses import Array
from ..joint_weights import Weights

_SMOOTHINGS = 20
"""Number of times that filled weights are averaged with those of their neighbours."""


def filled(weights: Weights, known: npt.NDArray[np.bool_], edges: npt.NDArray[np.int32]) -> Weights:
    """Return weights of which the unknown ones are filled in along the mesh from the known ones.

    Vertices that are connected to no known one keep theirs.

    Parameters
    ----------
    weights, known:
        (V, J), and (V,) whether they are known.
    edges:
        (E, 2) vertices.
    """
    values, is_known = np.where(known[:, None], weights, 0.0).astype(np.float64), known.copy()
    ends, others = np.concatenate((edges, edges[:, ::-1])).T
    while True:
        of_known = is_known[others] & ~is_known[ends]
        if not of_known.any():
            break
        total, count = _sums(values, ends[of_known], others[of_known])
        found = count > 0
        values[found] = total[found] / count[found, None]
        is_known |= found
    filled_in = is_known & ~known
    from_unknown = filled_in[ends]
    for _ in range(_SMOOTHINGS if filled_in.any() else 0):
        total, count = _sums(values, ends[from_unknown], others[from_unknown])
        values[filled_in] = total[filled_in] / np.maximum(count[filled_in, None], 1)
    made: Weights = np.where(is_known[:, None], values, weights).astype(np.float32)
    return made


def _sums(
    values: Array, ends: npt.NDArray[np.int32], others: npt.NDArray[np.int32]
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return for each vertex the sum of the values of its neighbours, and their number."""
    total = np.zeros_like(values)
    np.add.at(total, ends, values[others])
    return total, np.bincount(ends, minlength=len(values))
