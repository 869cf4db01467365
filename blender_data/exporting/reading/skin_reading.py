"""The binding of an imported mesh to joints, which the import stored on the object."""

from __future__ import annotations

from collections.abc import Iterable

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import Skin
from ...properties import stored_fields

Matrix4 = npt.NDArray[np.float64]

_SAME = 1e-5
"""Tolerance for matrices that count as equal, relative to their size: the rounding of single precision."""


def has_skin(obj: bpy.types.Object) -> bool:
    """Return whether the binding of the imported file is stored on an object."""
    return len(obj.meshferry.skin.joints) > 0


def read_skin(obj: bpy.types.Object, relative: Matrix4, space: Matrix4) -> Skin | None:
    """Return the binding stored with an object, or None.

    Parameters
    ----------
    relative:
        (4, 4) current matrix from the object's own space to that of the armature object. If it is unchanged since the
        import, the binding is exact; otherwise its bind shape matrix is changed accordingly. The binding in the file
        may have another unit, so the change is applied in the object's own space.
    space:
        (4, 4) from the space of the armature object to that of the exported joints: the armature's rotation and scale.
    """
    if not has_skin(obj):
        return None
    kept = obj.meshferry.skin
    bind_shape = _matrix(kept.bind_shape)
    given = _matrix(kept.given_matrix)
    if np.abs(relative - given).max() > _SAME * max(1.0, float(np.abs(given).max())):
        bind_shape = bind_shape @ np.linalg.pinv(given) @ relative
    inverse_bind = np.array([_matrix(joint.inverse_bind) for joint in kept.joints])
    positions = np.array([tuple(joint.position) for joint in kept.joints], np.float64)
    if not np.array_equal(space, np.identity(4)):
        bind_shape = space @ bind_shape
        inverse_bind = inverse_bind @ np.linalg.pinv(space)
        positions = positions @ space[:3, :3].T
    skin = Skin([joint.name for joint in kept.joints], inverse_bind, bind_shape, **stored_fields(kept, Skin))
    if kept.has_positions:
        skin.joint_positions = positions
        skin.alt_inverse_bind = np.array([_matrix(joint.alt_inverse_bind) for joint in kept.joints])
    return skin


def _matrix(values: Iterable[float]) -> Matrix4:
    return np.array(tuple(values), np.float64).reshape(4, 4)
