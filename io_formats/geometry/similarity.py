"""The rotation and scale between two sets of points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SNAPPED = np.radians(2.0)
"""Angle within which a rotation counts as a multiple of 90°."""


def similarity(ours: Array, theirs: Array) -> tuple[Array, float]:
    """Return the rotation (3, 3) and the scale that bring points (n, 3) nearest to others, (n, 3).

    A rotation within 2° of one that only permutes axes is exactly that one.
    """
    ours, theirs = ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)
    u, _, v = np.linalg.svd(theirs.T @ ours)
    turn = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v
    spread = float((ours * ours).sum())
    scale = float(np.sqrt((theirs * theirs).sum() / spread)) if spread > 0 else 1.0
    plain = np.zeros((3, 3))
    rows = np.abs(turn).argmax(axis=1)
    plain[range(3), rows] = np.sign(turn[range(3), rows])
    if np.linalg.det(plain) > 0.5 and np.trace(plain.T @ turn) > 1 + 2 * np.cos(_SNAPPED):
        turn = plain
    return turn, 1.0 if abs(scale - 1) < 0.02 else scale
