"""Vectors, quaternions, matrices and axes: products, bounds, translation, rotation and scale of many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
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


def matrices_to_quaternions(matrices: Floats) -> Floats:
    """Return unit quaternions (n, 4; w, x, y, z) of rotation matrices (n, 3, 3), w >= 0."""
    return components_to_quaternions(matrices.transpose(1, 2, 0)).T


def components_to_quaternions(m: Floats) -> Floats:
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


def _by_largest_component(m: Floats) -> Floats:
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
    chosen: Floats = table[largest, :, np.arange(m.shape[2])].T
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


def rotation_product(a: Floats, b: Floats) -> Floats:
    """Multiply quaternions (…, 4): the rotation ``b``, then ``a``."""
    w, u = a[..., :1], a[..., 1:]
    s, v = b[..., :1], b[..., 1:]
    scalar = w * s - (u * v).sum(axis=-1, keepdims=True)
    return np.concatenate((scalar, w * v + s * u + np.cross(u, v)), axis=-1)


def inverse_rotations(rotations: Floats) -> Floats:
    """Return the inverse rotations of unit quaternions (…, 4)."""
    return rotations * (1.0, -1.0, -1.0, -1.0)


def rotate(rotations: Floats, vectors: Floats) -> Floats:
    """Rotate vectors (…, 3) by unit quaternions (…, 4)."""
    w, axis = rotations[..., :1], rotations[..., 1:]
    turned: Floats = vectors + 2 * np.cross(axis, np.cross(axis, vectors) + w * vectors)
    return turned


def rotation_matrices(rotations: Floats) -> Floats:
    """Return the matrices (…, 3, 3) of unit quaternions (…, 4)."""
    columns = [rotate(rotations, np.broadcast_to(axis, (*rotations.shape[:-1], 3))) for axis in np.identity(3)]
    return np.stack(columns, axis=-1)


def axis_rotations(axis: int, angles: Floats) -> Floats:
    """Return the matrices (n, 3, 3) of rotations about X, Y or Z (0, 1 or 2) by angles (n,) in radians."""
    made = np.zeros((len(angles), 3, 3))
    one, other = (axis + 1) % 3, (axis + 2) % 3
    made[:, axis, axis] = 1.0
    made[:, one, one] = made[:, other, other] = np.cos(angles)
    made[:, other, one] = np.sin(angles)
    made[:, one, other] = -np.sin(angles)
    return made


def euler_matrices(degrees: Floats, order: str) -> Floats:
    """Return the matrices (n, 3, 3) of angles (n, 3) about the axes of ``order``, such as ZXY; the last is first."""
    made = np.broadcast_to(np.identity(3), (len(degrees), 3, 3))
    for axis, angle in zip(order, np.radians(degrees).T, strict=True):
        made = made @ axis_rotations("XYZ".index(axis), angle)
    return made


Matrix = Floats
Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

MIRROR: Matrix = np.diag((-1.0, 1.0, 1.0, 1.0))
"""The mirroring that is applied to the points of mirrored objects, since files store positive scales alone."""


def unmirrored(rotation: Quaternion, scale: Vector3) -> tuple[Quaternion, Vector3, bool]:
    """Return a rotation, positive scales, and whether :data:`MIRROR` has to be applied to the points before them.

    Two negative scales are a rotation by 180°. All mirrorings are therefore the same one with another rotation, and
    all duplicates of a mesh need at most one mirrored mesh.
    """
    is_negative = np.signbit(scale)
    is_mirrored = bool(is_negative.sum() % 2)
    is_negative[0] ^= is_mirrored
    if is_negative.any():
        half_turn = np.array((0.0, *~is_negative), np.float64)
        w, x, y, z = rotation_product(np.array(rotation, np.float64), half_turn).tolist()
        rotation = (w, x, y, z)
    x, y, z = np.abs(scale).tolist()
    return rotation, (x, y, z), is_mirrored


def matrix_of_linear(linear: Matrix) -> Matrix:
    """Return the (4, 4) matrix of a rotation, scale and shear (3, 3)."""
    matrix = np.identity(4)
    matrix[:3, :3] = linear
    return matrix


def matrix_of_transform(
    translation: tuple[float, float, float],
    rotation: tuple[float, float, float, float],
    scale: tuple[float, float, float],
) -> Matrix:
    """Return the (4, 4) matrix of a translation, rotation (w, x, y, z) and scale, for column vectors."""
    w, x, y, z = np.array(rotation, np.float64) / (np.linalg.norm(rotation) or 1.0)
    matrix = np.identity(4)
    matrix[:3, :3] = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    matrix[:3, :3] *= scale
    matrix[:3, 3] = translation
    return matrix


Place = tuple[Vector3, Quaternion, Vector3]
"""Translation, rotation (w, x, y, z) and scale."""
_AT_REST: tuple[Quaternion, Vector3] = ((1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
_STRAIGHT = 1e-5
"""Largest cosine of two axes that count as perpendicular."""


def decompose_matrix(matrix: Matrix) -> tuple[Place, Matrix | None]:
    """Return translation, rotation and scale of a matrix, and the remaining factor (4, 4), such as shear, or None.

    The matrix is the product of the transform and this factor. A mirroring matrix gives a negative scale along one
    axis.
    """
    linear = matrix[:3, :3]
    translation = tuple(matrix[:3, 3].tolist())
    lengths = np.linalg.norm(linear, axis=0)
    if not (lengths > 0).all():
        return (translation, *_AT_REST), matrix_of_linear(linear)
    axes = linear / lengths
    rest = None
    if np.abs(axes.T @ axes - np.identity(3)).max() > _STRAIGHT:
        axes, upper = np.linalg.qr(linear)
        lengths = np.diag(upper).copy()
        if np.abs(lengths).min() < _STRAIGHT * np.abs(lengths).max():
            return (translation, *_AT_REST), matrix_of_linear(linear)
        axes, lengths = axes * np.sign(lengths), np.abs(lengths)
        rest = matrix_of_linear(upper / np.diag(upper)[:, None])
    if np.linalg.det(axes) < 0:
        mirrored = int(np.argmin(np.diag(axes)))
        axes[:, mirrored] *= -1
        lengths[mirrored] *= -1
    rotation = tuple(matrices_to_quaternions(axes[None])[0].tolist())
    return (translation, rotation, tuple(lengths.tolist())), rest


class Basis(NamedTuple):
    """A signed permutation of axes, from a file's space to Blender's (right-handed, Z up).

    ``order`` is, for x, y and z in Blender, the file's axis (0, 1, 2); ``signs`` is its sign. ``basis.inverse``
    converts back to the file's space with the same methods.
    """

    order: tuple[int, int, int]
    signs: tuple[int, int, int]

    @property
    def inverse(self) -> Basis:
        order = [0, 0, 0]
        signs = [1, 1, 1]
        for target, (source, sign) in enumerate(zip(self.order, self.signs, strict=True)):
            order[source] = target
            signs[source] = sign
        return Basis((order[0], order[1], order[2]), (signs[0], signs[1], signs[2]))

    @property
    def mirrors(self) -> bool:
        """Whether handedness changes, and with it winding and the sign of bitangents."""
        permutation = np.zeros((3, 3))
        permutation[range(3), self.order] = self.signs
        return bool(np.linalg.det(permutation) < 0)

    def vectors(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert points, normals or directions, (…, 3) or more columns; further columns are copied."""
        mapped = np.empty(values.shape, np.float32)
        with np.errstate(invalid="ignore"):  # NumPy warns about signalling NaN
            for target, (source, sign) in enumerate(zip(self.order, self.signs, strict=True)):
                # Not np.negative: NumPy 2.4 writes wrong values with some strides.
                np.multiply(values[..., source], np.float32(sign), out=mapped[..., target], casting="same_kind")
        mapped[..., 3:] = values[..., 3:]
        return mapped

    def scales(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert scale factors (…, 3): axes are permuted, signs are kept."""
        return np.ascontiguousarray(values[..., list(self.order)], np.float32)

    def quaternions_from_xyzw(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert file quaternions (…, 4; x, y, z, w) to Blender's (w, x, y, z)."""
        mapped = np.empty(values.shape, np.float32)
        mapped[..., 0] = values[..., 3]
        mapped[..., 1:] = self._turn_axes(values[..., :3])
        return mapped

    def quaternions_to_xyzw(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert quaternions (…, 4; w, x, y, z) of this basis' source space to (x, y, z, w) of its target."""
        mapped = np.empty(values.shape, np.float32)
        mapped[..., 3] = values[..., 0]
        mapped[..., :3] = self._turn_axes(values[..., 1:])
        return mapped

    def _turn_axes(self, axes: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
        """Convert rotation axes; a mirrored basis reverses the direction of rotation."""
        turned = self.vectors(axes)
        return turned * np.float32(-1) if self.mirrors else turned


def flip_winding(corners: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Reverse the corners of every triangle: of (C,) values, (a, b, c) becomes (c, b, a)."""
    return np.ascontiguousarray(corners.reshape(-1, 3)[:, ::-1]).reshape(-1)


_SNAPPED = np.radians(2.0)
"""Angle within which a rotation counts as a multiple of 90°."""
_UPRIGHT = np.radians(10.0)
"""Angle within which the vertical axis counts as one of the axes: skeletons stand, and proportions tilt the result."""
_SAME_SIZE = 0.05
"""Difference of a scale from 1 that counts as other proportions, not as another size."""
_ON_A_LINE = 0.02
"""Share of the spread along a line below which points across it do not show a rotation about it, as on a spine."""


def similarity(ours: Floats, theirs: Floats, parents: Sequence[int]) -> tuple[Floats, float]:
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


def _rotation(ours: Floats, theirs: Floats) -> Floats:
    """Return the rotation (3, 3) that best turns points ``ours`` to ``theirs``, both (n, 3) and centred.

    It is snapped to keep an axis upright, or to multiples of 90 degrees, if it is close to that.
    """
    u, spread, v = np.linalg.svd(theirs.T @ ours)
    turn: Floats = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v
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


def _swing(start: Floats, end: Floats) -> Floats:
    """Return the smallest rotation (3, 3) from one direction to another."""
    x, y, z = np.cross(start, end)
    across: Floats = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    cosine = max(float(start @ end), -0.999)  # the axis of a rotation by 180° is not determined
    return np.identity(3) + across + across @ across / (1 + cosine)


def _scale(ours: Floats, theirs: Floats, parents: Sequence[int]) -> float:
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


def cross(one: npt.NDArray[np.floating[Any]], other: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return the cross products of vectors (…, 3), bitwise equal to those of ``numpy.cross``.

    ``numpy.cross`` first determines which axes hold the vectors, which takes longer than the products of a small mesh.
    """
    found = np.empty(one.shape, np.result_type(one, other))
    for axis, (second, third) in enumerate(((1, 2), (2, 0), (0, 1))):
        np.multiply(one[..., second], other[..., third], out=found[..., axis])
        found[..., axis] -= one[..., third] * other[..., second]
    return found


def bounds(points: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """Return the smallest and the largest coordinates of points (n, 3), as (2, 3); n must not be 0.

    Column by column, since NumPy takes 20 times as long for the minimum along the first axis of rows this short.
    """
    columns = [points[:, axis] for axis in range(points.shape[1])]
    return np.array([[column.min() for column in columns], [column.max() for column in columns]])


def cofactors(matrix: Floats) -> Floats:
    """Return the cofactors of a (3, 3) matrix, which transform the normals of transformed points, up to the sign."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    return np.array(
        (
            (e * i - h * f, f * g - i * d, d * h - g * e),
            (h * c - b * i, i * a - c * g, g * b - a * h),
            (b * f - e * c, c * d - f * a, a * e - d * b),
        )
    )
