"""Poses of joints whose bind transforms may have scale <-> poses of Blender's bones, whose rest has none.

With W the bind world matrices (scale included), N Blender's rest matrices, p the parent, f a frame's
and b the bind's local transform, bone j is posed by ::

    basis_j = N_j^-1 W_p f_j b_j^-1 W_p^-1 N_j = (N_j^-1 W_p) f_j (W_j^-1 N_j)

This holds for any rest matrices, so bones may point in any direction. All is float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.geometry import hierarchy
from ...io_formats.geometry.transforms import components_to_quaternions, continuous_components

Array = npt.NDArray[np.float64]

_SQUARE = 1e-6
"""Cosine between two axes up to which they count as perpendicular."""


def matrices(translation: npt.ArrayLike, rotation: npt.ArrayLike, scale: npt.ArrayLike) -> Array:
    """Return translation * rotation * scale, (…, 4, 4) float64.

    ``rotation`` (…, 4) is (w, x, y, z) of any length; zero means the identity.
    """
    made = np.zeros((*np.shape(translation)[:-1], 4, 4))
    made[..., 3, 3] = 1.0
    _compose(np.moveaxis(made, (-2, -1), (0, 1)), translation, rotation, scale)
    return made


def _compose(components: Array, translation: npt.ArrayLike, rotation: npt.ArrayLike, scale: npt.ArrayLike) -> None:
    """Write translation * rotation * scale into the first three rows of matrices (3 or 4, 4, …)."""
    location, turn, size = (
        np.moveaxis(np.asarray(values, np.float64), -1, 0) for values in (translation, rotation, scale)
    )
    length = np.sqrt(turn[0] * turn[0] + turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3])
    if not length.all():
        turn = np.where(length > 0, turn, np.array([1.0, 0.0, 0.0, 0.0]).reshape(4, *[1] * length.ndim))
        length = np.where(length > 0, length, 1.0)
    w, x, y, z = turn / length
    components[0, 0] = 1 - 2 * (y * y + z * z)
    components[0, 1] = 2 * (x * y - w * z)
    components[0, 2] = 2 * (x * z + w * y)
    components[1, 0] = 2 * (x * y + w * z)
    components[1, 1] = 1 - 2 * (x * x + z * z)
    components[1, 2] = 2 * (y * z - w * x)
    components[2, 0] = 2 * (x * z - w * y)
    components[2, 1] = 2 * (y * z + w * x)
    components[2, 2] = 1 - 2 * (x * x + y * y)
    components[:3, :3] *= size
    components[:3, 3] = location


def inverse(many: Array) -> Array:
    """Invert matrices (…, 4, 4); if any is singular (a scale of zero), return pseudo-inverses."""
    try:
        inverted: Array = np.linalg.inv(many)
    except np.linalg.LinAlgError:
        inverted = np.linalg.pinv(many)
    return inverted


def rest_matrix(world: Array) -> Array:
    """Return bind world matrices (…, 4, 4) without scale: translations, and the rotations nearest to their axes.

    A mirrored joint keeps its Y axis, along which the bone points, and its Z axis.
    """
    made = np.zeros_like(world)
    axes = world[..., :3, :3]
    length = np.linalg.norm(axes, axis=-2, keepdims=True)
    axes = np.where(length > 0, axes / np.where(length > 0, length, 1.0), np.eye(3))
    # The triple product replaces ``np.linalg.det``, since LAPACK would start threads, which takes far longer.
    turns = (np.cross(axes[..., 0], axes[..., 1]) * axes[..., 2]).sum(axis=-1)
    axes = np.where(turns[..., None, None] < 0, axes * (-1.0, 1.0, 1.0), axes)
    components = np.moveaxis(axes, (-2, -1), (0, 1))
    made[..., :3, :3] = np.moveaxis(_nearest_rotations(components, _skewness(components)), (0, 1), (-2, -1))
    made[..., :3, 3] = world[..., :3, 3]
    made[..., 3, 3] = 1.0
    return made


@dataclass(frozen=True)
class PoseSpace:
    """The constant matrices of J joints that convert local transforms to poses of bones: left @ local @ right."""

    left: Array
    """(J, 4, 4) N_j^-1 W_p, with the symbols of the module's description."""
    right: Array
    """(J, 4, 4) W_j^-1 N_j, with the same symbols."""

    @classmethod
    def of(cls, bind: Array, parents: Sequence[int], rest: Array) -> PoseSpace:
        """Compute them from bind local matrices, parents and Blender's rest matrices (``bone.matrix_local``)."""
        world = hierarchy.world_matrices(bind, parents)
        above = np.where((np.asarray(parents) >= 0)[:, None, None], world[np.asarray(parents, np.intp)], np.eye(4))
        return cls(inverse(rest) @ above, inverse(world) @ rest)

    def to_local(self, joints: npt.NDArray[np.intp], basis: Array) -> Array:
        """Convert transforms of n bones relative to their rest, (n, F, 4, 4), to local transforms of their joints."""
        return inverse(self.left[joints])[:, None] @ basis @ inverse(self.right[joints])[:, None]


def unscaled(many: Array) -> Array:
    """Return transforms (…, 4, 4) whose axes have the length 1, as children without inherited scale see them."""
    made = many.copy()
    length = np.linalg.norm(many[..., :3, :3], axis=-2, keepdims=True)
    made[..., :3, :3] /= np.where(length > 0, length, 1.0)
    return made


def pose_matrices(rest: Array, parents: Sequence[int], basis: Array) -> Array:
    """Return the poses of bones that do not inherit scale, in the space of the armature, (J, F, 4, 4).

    The scale of a parent moves the heads of its children, and nothing else.

    Parameters
    ----------
    rest:
        (J, 4, 4) Blender's rest matrices.
    basis:
        (J, F, 4, 4) transforms relative to the rest.
    """
    posed = np.empty_like(basis)
    for bone in hierarchy.parents_first(parents):
        parent = parents[bone]
        if parent < 0:
            posed[bone] = rest[bone] @ basis[bone]
            continue
        offset = inverse(rest[parent]) @ rest[bone]
        posed[bone] = unscaled(posed[parent]) @ (offset @ basis[bone])
        posed[bone, :, :3, 3] = (posed[parent] @ (offset @ basis[bone, :, :, 3:]))[:, :3, 0]
    return posed


def own_transform(rest: Array, above: Array, rest_above: Array, posed: Array) -> Array:
    """Return the transform relative to its rest, (F, 4, 4), of a bone that does not inherit scale.

    It is the inverse of :func:`pose_matrices`. ``above`` (F, 4, 4) and ``rest_above`` are those of the parent.
    """
    back = inverse(rest) @ rest_above
    made: Array = back @ inverse(unscaled(above)) @ posed
    made[:, :3, 3] = (back @ (inverse(above) @ posed[:, :, 3:]))[:, :3, 0]
    return made


@dataclass(frozen=True)
class Channels:
    """Values of the f-curves of n bones in F frames, float64."""

    location: Array
    """(n, 3, F) values of the location."""
    rotation: Array
    """(n, 4, F) values of the rotation (w, x, y, z), without sign changes between frames."""
    scale: Array
    """(n, 3, F) values of the scale."""
    shear: Array
    """(n,) The largest cosine between two axes of a bone in any frame; above 0 it is shear, which bones cannot have."""


def bone_channels(
    space: PoseSpace, joints: npt.NDArray[np.intp], translation: Array, rotation: Array, scale: Array
) -> Channels:
    """Return the poses of the bones of n joints, given their local transforms (n, F, 3), (n, F, 4), (n, F, 3).

    The frames of each component are contiguous, and arithmetic works on whole components: several times faster than on
    matrices. Some thousand values for each component stay in the processor's cache.
    """
    count, frames = translation.shape[:2]
    local = np.empty((count, 3, 4, frames))
    _compose(local.transpose(1, 2, 0, 3), translation, rotation, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        # Inverse of ``PoseSpace.to_local``; the last rows (0, 0, 0, 1) are not computed.
        left, right = space.left[joints], space.right[joints]
        turned = (left[:, :3, :3] @ local.reshape(count, 3, 4 * frames)).reshape(local.shape)
        turned[:, :, 3] += left[:, :3, 3, None]
        right_transposed = np.ascontiguousarray(right.transpose(0, 2, 1))[:, None]
        basis = right_transposed @ turned
        parts = _decompose(basis.transpose(1, 2, 0, 3))
    location_parts, rotation_parts, scale_parts, shear = parts
    return Channels(
        location_parts.swapaxes(0, 1),
        continuous_components(rotation_parts).swapaxes(0, 1),
        scale_parts.swapaxes(0, 1),
        shear.max(axis=1, initial=0.0),
    )


def decompose(many: Array) -> tuple[Array, Array, Array, Array]:
    """Split matrices (n, 4, 4) into translation, rotation and scale.

    Returns
    -------
    translation, rotation, scale:
        (n, 3), (n, 4; w, x, y, z, w >= 0), (n, 3). A mirrored matrix has three negative scales.
    shear:
        (n,) the largest cosine between two axes of the matrix; above 0 it is shear, which is lost.
    """
    translation, rotation, scale, shear = _decompose(many.transpose(1, 2, 0))
    return translation.T, rotation.T, scale.T, shear


def _decompose(components: Array) -> tuple[Array, Array, Array, Array]:
    """Split matrices (3 or 4, 4, …) into translation (3, …), rotation (4, …), scale (3, …) and shear (…)."""
    unit = components[:3, :3]
    scale = np.sqrt(_dot(unit, unit))
    lost = ~(scale > 0)
    if lost.any():
        unit = unit / np.where(lost, 1.0, scale)
        flat = lost.any(axis=0)
        unit[:, :, flat] = np.where(lost[:, flat], np.eye(3)[:, :, None], unit[:, :, flat])
    else:
        unit = unit * (1.0 / scale)
    x, y, z = unit[:, 0], unit[:, 1], unit[:, 2]
    mirrored = _dot(x, (y[1] * z[2] - y[2] * z[1], y[2] * z[0] - y[0] * z[2], y[0] * z[1] - y[1] * z[0])) < 0
    if mirrored.any():
        scale = np.where(mirrored, -scale, scale)
        unit = np.where(mirrored, -unit, unit)
    shear = _skewness(unit)
    return components[:3, 3], components_to_quaternions(_nearest_rotations(unit, shear)), scale, shear


def _dot(a: Sequence[Array] | Array, b: Sequence[Array] | Array) -> Array:
    product: Array = a[0] * b[0]
    product += a[1] * b[1]
    product += a[2] * b[2]
    return product


def _skewness(unit: Array) -> Array:
    """Return the largest cosine between two axes, (…), of matrices (3, 3, …)."""
    x, y, z = unit[:, 0], unit[:, 1], unit[:, 2]
    cosines = [np.abs(_dot(a, b)) for a, b in ((x, y), (y, z), (z, x))]
    return np.maximum(np.maximum(cosines[0], cosines[1]), cosines[2])


def _nearest_rotations(unit: Array, shear: Array) -> Array:
    """Return the rotations nearest to matrices (3, 3, …) with axes of unit length.

    Perpendicular axes are not changed.
    """
    skewed = shear > _SQUARE
    if skewed.any():
        unit = unit.copy()
        u, _, v = np.linalg.svd(np.moveaxis(unit[:, :, skewed], -1, 0))
        unit[:, :, skewed] = np.moveaxis(u @ v, 0, -1)
    return unit


@dataclass
class BoneMap:
    """Mapping of the joints of a skeleton to the bones of an armature."""

    armature: bpy.types.Object
    bones: list[str | None]
    """Names of the bones, None for joints that the armature lacks."""
    pose_space: Callable[[], PoseSpace]
    """Function that computes :attr:`space`; it is called on first use, since only animations need the result."""
    size: float
    """Extent of the bone positions, in metres."""
    differs: bool = False
    """Whether the bind poses of the skeleton and an existing armature differ."""

    @functools.cached_property
    def space(self) -> PoseSpace:
        """Conversion of joint poses to bone poses."""
        return self.pose_space()
