"""Rotations as arrays of quaternions (n, 4), (w, x, y, z)."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
AnyFloats = TypeVar("AnyFloats", bound=npt.NDArray[np.floating])


def unit_quaternions(values: FloatArray) -> tuple[FloatArray, int]:
    """Return unit quaternions, the identity for zero ones, and the number of those that were not of unit length."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(values.astype(np.float64), axis=1)
    broken = ~((length > 1e-12) & np.isfinite(length))
    odd = int(np.count_nonzero(broken | (np.abs(length - 1) > 1e-3)))
    length[broken] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        unit = (values / length[:, None]).astype(np.float32)
    unit[broken] = (1.0, 0.0, 0.0, 0.0)
    return unit, odd


def continuous_rotations(rotations: AnyFloats) -> AnyFloats:
    """Choose the sign of each quaternion (n, 4) nearest to the previous one, so that curves are continuous."""
    return continuous_components(rotations.T).T


def continuous_components(rotations: AnyFloats) -> AnyFloats:
    """Apply ``continuous`` along the last axis of quaternions stored by component (4, …, n)."""
    before, after = rotations[..., :-1], rotations[..., 1:]
    product = before[0] * after[0]
    for number in (1, 2, 3):
        product += before[number] * after[number]
    turned = product < 0
    if not turned.any():
        return rotations
    signed = rotations.copy()
    signed[..., 1:] *= np.where(np.cumsum(turned, axis=-1) % 2, -1, 1).astype(rotations.dtype)
    return signed


def matrices_to_quaternions(matrices: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return unit quaternions (n, 4; w, x, y, z) of rotation matrices (n, 3, 3), w >= 0."""
    return components_to_quaternions(matrices.transpose(1, 2, 0)).T


def components_to_quaternions(m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return unit quaternions (4, …; w, x, y, z) of rotation matrices (3, 3, …), w >= 0."""
    # 4 w q: sufficiently exact unless w is small, i.e. for angles below 120 degrees.
    found = np.empty((4, *m.shape[2:]))
    np.add(m[0, 0] + m[1, 1] + m[2, 2], 1, out=found[0])
    for number, (row, column) in enumerate(((2, 1), (0, 2), (1, 0)), 1):
        np.subtract(m[row, column], m[column, row], out=found[number])
    wide = found[0] < 1
    if wide.any():
        found[:, wide] = _by_largest_component(m[:, :, wide])
    found /= np.sqrt((found * found).sum(axis=0))
    return found


def _by_largest_component(m: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return quaternions (4, n) of any length, w >= 0, of rotation matrices (3, 3, n)."""
    signs = np.array(((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)))
    # Row i of the table is 4 q_i q; the row with the largest diagonal element is the most accurate.
    table = np.empty((4, 4, m.shape[2]))
    for i in range(4):
        table[i, i] = 1 + signs[i] @ m[(0, 1, 2), (0, 1, 2)]
    for j, (row, column) in enumerate(((2, 1), (0, 2), (1, 0)), 1):
        table[0, j] = table[j, 0] = m[row, column] - m[column, row]
    for i, j in ((1, 2), (1, 3), (2, 3)):
        table[i, j] = table[j, i] = m[i - 1, j - 1] + m[j - 1, i - 1]
    largest = table[(0, 1, 2, 3), (0, 1, 2, 3)].argmax(axis=0)
    chosen: npt.NDArray[np.float64] = table[largest, :, np.arange(m.shape[2])].T
    chosen[:, chosen[0] < 0] *= -1
    return chosen


def rotated_xyzw(rotations: FloatArray, vector: tuple[float, float, float]) -> FloatArray:
    """Rotate a vector by quaternions (…, 4) stored as (x, y, z, w), not necessarily of unit length; return (…, 3)."""
    length = np.linalg.norm(rotations.astype(np.float64), axis=-1, keepdims=True)
    unit = rotations / np.where(length > 0, length, 1)
    axis, w = unit[..., :3], unit[..., 3:]
    start = np.broadcast_to(np.asarray(vector, np.float64), axis.shape)
    turned = start + 2 * np.cross(axis, np.cross(axis, start) + w * start)
    return turned.astype(np.float32)


def rotation_product(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Multiply quaternions (…, 4): the rotation ``b``, then ``a``."""
    w, u = a[..., :1], a[..., 1:]
    s, v = b[..., :1], b[..., 1:]
    scalar = w * s - (u * v).sum(axis=-1, keepdims=True)
    return np.concatenate((scalar, w * v + s * u + np.cross(u, v)), axis=-1)


def inverse_rotations(rotations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the inverse rotations of unit quaternions (…, 4)."""
    return rotations * (1.0, -1.0, -1.0, -1.0)


def rotate(rotations: npt.NDArray[np.float64], vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rotate vectors (…, 3) by unit quaternions (…, 4)."""
    w, axis = rotations[..., :1], rotations[..., 1:]
    turned: npt.NDArray[np.float64] = vectors + 2 * np.cross(axis, np.cross(axis, vectors) + w * vectors)
    return turned


def rotation_matrices(rotations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the matrices (…, 3, 3) of unit quaternions (…, 4)."""
    columns = [rotate(rotations, np.broadcast_to(axis, (*rotations.shape[:-1], 3))) for axis in np.identity(3)]
    return np.stack(columns, axis=-1)


def axis_rotations(axis: int, angles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the matrices (n, 3, 3) of rotations about X, Y or Z (0, 1 or 2) by angles (n,) in radians."""
    made = np.zeros((len(angles), 3, 3))
    one, other = (axis + 1) % 3, (axis + 2) % 3
    made[:, axis, axis] = 1.0
    made[:, one, one] = made[:, other, other] = np.cos(angles)
    made[:, other, one] = np.sin(angles)
    made[:, one, other] = -np.sin(angles)
    return made


def euler_matrices(degrees: npt.NDArray[np.float64], order: str) -> npt.NDArray[np.float64]:
    """Return the matrices (n, 3, 3) of angles (n, 3) about the axes of ``order``, such as ZXY; the last is first."""
    made = np.broadcast_to(np.identity(3), (len(degrees), 3, 3))
    for axis, angle in zip(order, np.radians(degrees).T, strict=True):
        made = made @ axis_rotations("XYZ".index(axis), angle)
    return made
