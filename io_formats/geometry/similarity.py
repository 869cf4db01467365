"""The rotation and scale between the joints of two skeletons at rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_SNAPPED = np.radians(2.0)
"""Angle within which a rotation counts as a multiple of 90°."""
_UPRIGHT = np.radians(10.0)
"""Angle within which the vertical axis counts as one of the axes: skeletons stand, and proportions tilt the result."""
_SAME_SIZE = 0.05
"""Difference of a scale from 1 that counts as other proportions, not as another size."""
_ON_A_LINE = 0.02
"""Share of the spread along a line below which points across it do not show a rotation about it, as on a spine."""


def similarity(ours: Array, theirs: Array, parents: Sequence[int]) -> tuple[Array, float]:
    """Return the rotation (3, 3) and the scale that bring joints (n, 3) nearest to others, (n, 3).

    A rotation within 2° of one that only permutes axes is exactly that one, and a vertical axis within 10° of an
    axis is put on it. The scale is that of the bones' lengths, so that it does not depend on the pose at rest; one
    within 5% of 1 is exactly 1.

    Parameters
    ----------
    parents:
        Index of each joint's parent, or -1.
    """
    return _rotation(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0)), _scale(ours, theirs, parents)


def _rotation(ours: Array, theirs: Array) -> Array:
    u, spread, v = np.linalg.svd(theirs.T @ ours)
    turn: Array = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v
    if spread[1] < _ON_A_LINE * spread[0]:
        turn = _swing(v[0], u[:, 0])
    up = turn[:, 2]
    axis = np.identity(3)[np.abs(up).argmax()] * np.sign(up[np.abs(up).argmax()])
    if up @ axis > np.cos(_UPRIGHT):
        turn = _swing(up, axis) @ turn
    plain = np.zeros((3, 3))
    rows = np.abs(turn).argmax(axis=1)
    plain[range(3), rows] = np.sign(turn[range(3), rows])
    if np.linalg.det(plain) > 0.5 and np.trace(plain.T @ turn) > 1 + 2 * np.cos(_SNAPPED):
        return plain
    return turn


def _swing(start: Array, end: Array) -> Array:
    """Return the smallest rotation (3, 3) from one direction to another."""
    x, y, z = np.cross(start, end)
    across: Array = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    cosine = max(float(start @ end), -0.999)  # the axis of a rotation by 180° is not determined
    return np.identity(3) + across + across @ across / (1 + cosine)


def _scale(ours: Array, theirs: Array, parents: Sequence[int]) -> float:
    """Return the median of the ratios of the bones' lengths; long bones count more."""
    above = np.asarray(parents, np.intp)
    below = np.flatnonzero(above >= 0)
    length, other = (np.linalg.norm(heads[below] - heads[above[below]], axis=1) for heads in (ours, theirs))
    known = length > 0
    if not known.any():
        return 1.0
    ratios, weights = other[known] / length[known], length[known] ** 2
    order = np.argsort(ratios)
    share = np.cumsum(weights[order])
    scale = float(ratios[order][np.searchsorted(share, share[-1] / 2)])
    return 1.0 if abs(scale - 1) < _SAME_SIZE or scale <= 0 else scale
