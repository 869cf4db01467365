"""Poses of joints whose bind transforms may have scale <-> poses of Blender's bones, whose rest has none.

With W the bind world matrices (scale included), N Blender's rest matrices, p the parent, f a frame's
and b the bind's local transform, bone j is posed by ::

    basis_j = N_j^-1 W_p f_j b_j^-1 W_p^-1 N_j = (N_j^-1 W_p) f_j (W_j^-1 N_j)

which holds for any rest matrices: bones may point where an artist wants them. All is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import TransformTrack
from ..io_formats.geometry.quaternions import continuous, matrices_to_quaternions

Array = npt.NDArray[np.float64]

_SQUARE = 1e-6
"""Cosine up to which two axes count as perpendicular."""


def matrices(translation: npt.ArrayLike, rotation: npt.ArrayLike, scale: npt.ArrayLike) -> Array:
    """Return translation * rotation * scale, (…, 4, 4) float64.

    ``rotation`` (…, 4) is (w, x, y, z), of any length; a zero one is no rotation.
    """
    return np.ascontiguousarray(np.moveaxis(_components(translation, rotation, scale), (0, 1), (-2, -1)))


def _components(translation: npt.ArrayLike, rotation: npt.ArrayLike, scale: npt.ArrayLike) -> Array:
    """Return what ``matrices`` does as (4, 4, …): arithmetic of whole components is several times faster."""
    place, turn, size = (
        np.moveaxis(np.asarray(values, np.float64), -1, 0) for values in (translation, rotation, scale)
    )
    turn = np.ascontiguousarray(turn)
    length = np.sqrt((turn * turn).sum(axis=0))
    if not length.all():
        turn = np.where(length > 0, turn, np.array([1.0, 0.0, 0.0, 0.0]).reshape(4, *[1] * length.ndim))
        length = np.where(length > 0, length, 1.0)
    w, x, y, z = turn / length
    made = np.zeros((4, 4, *length.shape))
    made[0, 0] = 1 - 2 * (y * y + z * z)
    made[0, 1] = 2 * (x * y - w * z)
    made[0, 2] = 2 * (x * z + w * y)
    made[1, 0] = 2 * (x * y + w * z)
    made[1, 1] = 1 - 2 * (x * x + z * z)
    made[1, 2] = 2 * (y * z - w * x)
    made[2, 0] = 2 * (x * z - w * y)
    made[2, 1] = 2 * (y * z + w * x)
    made[2, 2] = 1 - 2 * (x * x + y * y)
    made[:3, :3] *= size
    made[:3, 3] = place
    made[3, 3] = 1.0
    return made


def parents_first(parents: Sequence[int]) -> list[int]:
    """Return the indices of joints so that each comes after its parent; what hangs in a cycle comes as a root."""
    order: list[int] = []
    state = [0] * len(parents)
    for start in range(len(parents)):
        path = []
        joint = start
        while joint >= 0 and not state[joint]:
            state[joint] = 1
            path.append(joint)
            joint = parents[joint]
        order += reversed(path)
    return order


def world_matrices(local: Array, parents: Sequence[int]) -> Array:
    """Multiply local matrices (J, 4, 4) down the chains of parents (-1: a root); scales multiply, too.

    Chains of absurd scales overflow to infinity; nothing is raised.
    """
    world = local.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for joint in parents_first(parents):
            if parents[joint] >= 0:
                world[joint] = world[parents[joint]] @ local[joint]
    return world


def inverse(many: Array) -> Array:
    """Invert matrices (…, 4, 4); those without inverse (a scale of zero) get their pseudo-inverse."""
    try:
        inverted: Array = np.linalg.inv(many)
    except np.linalg.LinAlgError:
        inverted = np.linalg.pinv(many)
    return inverted


def rest_matrix(world: Array) -> Array:
    """Return bind world matrices (…, 4, 4) without scale: their places, and the nearest rotations to their axes.

    A mirrored joint keeps its Y axis, along which the bone points, and its Z axis.
    """
    made = np.zeros_like(world)
    axes = world[..., :3, :3]
    length = np.linalg.norm(axes, axis=-2, keepdims=True)
    axes = np.where(length > 0, axes / np.where(length > 0, length, 1.0), np.eye(3))
    # A triple product: LAPACK wakes a thread for each processor, which takes far longer than this.
    turns = (np.cross(axes[..., 0], axes[..., 1]) * axes[..., 2]).sum(axis=-1)
    axes = np.where(turns[..., None, None] < 0, axes * (-1.0, 1.0, 1.0), axes)
    made[..., :3, :3] = _nearest_rotations(axes.reshape(-1, 3, 3)).reshape(axes.shape)
    made[..., :3, 3] = world[..., :3, 3]
    made[..., 3, 3] = 1.0
    return made


@dataclass(frozen=True)
class PoseSpace:
    """The constant matrices around a frame's local transform, one each for J joints."""

    left: Array
    """(J, 4, 4) N_j^-1 W_p."""
    right: Array
    """(J, 4, 4) W_j^-1 N_j."""

    @classmethod
    def of(cls, bind: Array, parents: Sequence[int], rest: Array) -> PoseSpace:
        """Build it from bind local matrices, parents and Blender's rest matrices (``bone.matrix_local``)."""
        world = world_matrices(bind, parents)
        above = np.where((np.asarray(parents) >= 0)[:, None, None], world[np.asarray(parents, np.intp)], np.eye(4))
        return cls(inverse(rest) @ above, inverse(world) @ rest)

    def to_basis(self, joint: int | npt.NDArray[np.intp], local: Array) -> Array:
        """Turn local transforms of a joint's frames, (F, 4, 4), into those of its bone relative to its rest."""
        return self.left[joint] @ local @ self.right[joint]

    def to_local(self, joint: int | npt.NDArray[np.intp], basis: Array) -> Array:
        """Turn a bone's transforms relative to its rest into local transforms of the joint; undoes ``to_basis``."""
        return inverse(self.left[joint]) @ basis @ inverse(self.right[joint])


@dataclass(frozen=True)
class Channels:
    """What the f-curves of a bone hold: F frames, float64."""

    location: Array
    rotation: Array
    """(F, 4) (w, x, y, z), continuous."""
    scale: Array
    shear: float
    """The largest cosine between two axes of a frame, which a bone cannot show."""


def bone_channels(space: PoseSpace, joint: int, frames: TransformTrack) -> Channels:
    """Return the pose of a joint's bone in all frames of a track."""
    local = _components(frames.translation, frames.rotation, frames.scale)
    with np.errstate(over="ignore", invalid="ignore"):
        # What PoseSpace.to_basis does, as two products of small matrices with all frames side by side.
        turned = (space.left[joint] @ local.reshape(4, -1)).reshape(local.shape)
        columns = np.ascontiguousarray(turned.transpose(1, 0, 2)).reshape(4, -1)
        basis = (space.right[joint].T @ columns).reshape(local.shape).transpose(1, 0, 2)
        location, rotation, scale, shear = _decompose(basis)
    return Channels(location, continuous(rotation), scale, float(shear.max(initial=0.0)))


def decompose(many: Array) -> tuple[Array, Array, Array, Array]:
    """Part matrices (n, 4, 4) into translation, rotation and scale.

    Returns
    -------
    translation, rotation, scale:
        (n, 3), (n, 4; w, x, y, z, w >= 0), (n, 3). A mirrored matrix has three negative scales.
    shear:
        (n,) the largest cosine between two of the matrix' axes: 0 where nothing is lost.
    """
    return _decompose(many.transpose(1, 2, 0))


def _decompose(components: Array) -> tuple[Array, Array, Array, Array]:
    """Do the same for (4, 4, n)."""
    unit = np.ascontiguousarray(components[:3, :3])
    scale = np.sqrt(unit[0] * unit[0] + unit[1] * unit[1] + unit[2] * unit[2])
    lost = ~(scale > 0)
    unit /= np.where(lost, 1.0, scale)
    flat = lost.any(axis=0)
    if flat.any():
        unit[:, :, flat] = np.where(lost[:, flat], np.eye(3)[:, :, None], unit[:, :, flat])
    x, y, z = unit[:, 0], unit[:, 1], unit[:, 2]
    mirrored = _dot(x, (y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0])) < 0
    if mirrored.any():
        scale = np.where(mirrored, -scale, scale)
        unit = np.where(mirrored, -unit, unit)
    shear = _skewness(unit)
    rotations = _nearest_rotations(unit.transpose(2, 0, 1), shear)
    return components[:3, 3].T, matrices_to_quaternions(rotations), scale.T, shear


def _dot(one: Sequence[Array] | Array, other: Sequence[Array] | Array) -> Array:
    product: Array = one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
    return product


def _skewness(unit: Array) -> Array:
    """Return the largest cosine between two axes of frames (3, 3, n), (n,)."""
    x, y, z = unit[:, 0], unit[:, 1], unit[:, 2]
    cosines = [np.abs(_dot(one, other)) for one, other in ((x, y), (y, z), (z, x))]
    widest: Array = np.maximum(np.maximum(cosines[0], cosines[1]), cosines[2])
    return widest


def _nearest_rotations(unit: Array, shear: Array | None = None) -> Array:
    """Return the rotations nearest to frames (n, 3, 3) of unit axes; those of perpendicular axes are them."""
    skewed = np.flatnonzero((_skewness(unit.transpose(1, 2, 0)) if shear is None else shear) > _SQUARE)
    if len(skewed):
        unit = unit.copy()
        u, _, v = np.linalg.svd(unit[skewed])
        unit[skewed] = u @ v
    return unit
