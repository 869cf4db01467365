"""Rotations as arrays of quaternions (n, 4), (w, x, y, z)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


def unit_quaternions(values: FloatArray) -> tuple[FloatArray, int]:
    """Return unit quaternions, no rotation for zero ones, and how many were not unit."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(values.astype(np.float64), axis=1)
    broken = ~((length > 1e-12) & np.isfinite(length))
    odd = int(np.count_nonzero(broken | (np.abs(length - 1) > 1e-3)))
    length[broken] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        unit = (values / length[:, None]).astype(np.float32)
    unit[broken] = (1.0, 0.0, 0.0, 0.0)
    return unit, odd


def continuous(rotations: FloatArray) -> FloatArray:
    """Choose the sign of each quaternion nearest to the one before it, so that curves do not jump."""
    if len(rotations) < 2:
        return rotations
    turned = np.einsum("ij,ij->i", rotations[1:], rotations[:-1]) < 0
    signs = np.ones(len(rotations), np.float32)
    signs[1:] = np.where(np.cumsum(turned) % 2, -1, 1)
    signed: FloatArray = rotations * signs[:, None]
    return signed


def matrices_to_quaternions(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return unit quaternions (n, 4; w, x, y, z) of rotation matrices (n, 3, 3), w >= 0."""
    m = matrices
    trace = np.stack(
        (
            m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2],
            m[:, 0, 0] - m[:, 1, 1] - m[:, 2, 2],
            m[:, 1, 1] - m[:, 0, 0] - m[:, 2, 2],
            m[:, 2, 2] - m[:, 0, 0] - m[:, 1, 1],
        ),
        axis=1,
    )
    largest = trace.argmax(axis=1)
    symmetric = {(1, 2): m[:, 0, 1] + m[:, 1, 0], (1, 3): m[:, 0, 2] + m[:, 2, 0], (2, 3): m[:, 1, 2] + m[:, 2, 1]}
    skew = {1: m[:, 2, 1] - m[:, 1, 2], 2: m[:, 0, 2] - m[:, 2, 0], 3: m[:, 1, 0] - m[:, 0, 1]}
    # Row i of the table is 4 q_i q; the row with the largest diagonal divides best.
    table = np.empty((len(m), 4, 4))
    for i in range(4):
        table[:, i, i] = 1 + trace[:, i]
    for j, value in skew.items():
        table[:, 0, j] = table[:, j, 0] = value
    for (i, j), value in symmetric.items():
        table[:, i, j] = table[:, j, i] = value
    chosen: npt.NDArray[np.float64] = table[np.arange(len(m)), largest]
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    chosen[chosen[:, 0] < 0] *= -1
    return chosen


def rotated_xyzw(rotations: FloatArray, vector: tuple[float, float, float]) -> FloatArray:
    """Turn one vector by quaternions (…, 4) stored as (x, y, z, w), unit or not; return (…, 3)."""
    length = np.linalg.norm(rotations.astype(np.float64), axis=-1, keepdims=True)
    unit = rotations / np.where(length > 0, length, 1)
    axis, w = unit[..., :3], unit[..., 3:]
    start = np.broadcast_to(np.asarray(vector, np.float64), axis.shape)
    turned = start + 2 * np.cross(axis, np.cross(axis, start) + w * start)
    return turned.astype(np.float32)
