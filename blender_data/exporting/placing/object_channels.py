"""Read location, Euler angles and scale of objects, for files that store these channels."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Euler, Quaternion
from mathutils import Matrix as BlenderMatrix

from ....io_formats.core.placement import Channels
from .object_places import local_matrix

_NOISE = 2e-6
"""Tolerance for numbers computed from a matrix: relative to the number, or absolute for numbers below 1."""
_SHEARED = 1e-4
"""Tolerance for a matrix that is composed of its channels again, relative to its largest element."""


def read_channels(
    obj: bpy.types.Object, given: Channels, frame: bpy.types.Object | None, *, is_own_parent: bool
) -> tuple[Channels, bool]:
    """Return the transform of an object without delta transforms, and whether channels can represent it completely.

    Parameters
    ----------
    given:
        The transform in the file.
    frame:
        The ancestor to which the transform is relative; None for the world.
    is_own_parent:
        Whether the object has the same parent as in the file.
    """
    is_plain = obj.parent is None or obj.matrix_parent_inverse == BlenderMatrix.Identity(4)
    if obj.rotation_mode == given.order and is_plain and is_own_parent:
        return Channels(_triple(obj.location), _triple(obj.rotation_euler), _triple(obj.scale), given.order), True
    matrix = _without_deltas(obj)
    if obj.parent is not None:
        matrix = obj.matrix_parent_inverse @ matrix
    above = obj.parent
    while above is not None and above != frame:
        matrix = BlenderMatrix(local_matrix(above).tolist()) @ matrix
        above = above.parent
    location, rotation, scale = matrix.decompose()
    angles = rotation.to_euler(given.order, Euler(given.rotation, given.order))
    found = Channels(
        _near(location, given.location), _near(angles, given.rotation), _near(scale, given.scale), given.order
    )
    wanted = np.array(matrix, np.float64)
    difference = np.abs(found.matrix() - wanted).max()
    return found, bool(difference <= _SHEARED * max(1.0, np.abs(wanted).max()))


def _without_deltas(obj: bpy.types.Object) -> BlenderMatrix:
    """Return the matrix of an object's own channels in any rotation mode."""
    if obj.rotation_mode == "QUATERNION":
        rotation = obj.rotation_quaternion.normalized()
    elif obj.rotation_mode == "AXIS_ANGLE":
        angle, x, y, z = np.array(obj.rotation_axis_angle).tolist()
        rotation = Quaternion((x, y, z), angle)
    else:
        rotation = obj.rotation_euler
    return BlenderMatrix.LocRotScale(obj.location, rotation, obj.scale)


def _near(values: Sequence[float], given: Sequence[float]) -> tuple[float, float, float]:
    """Return three numbers from a matrix, replaced by those of the file where they differ only by rounding."""
    pairs = zip(values, given, strict=True)
    x, y, z = (old if abs(new - old) <= _NOISE * max(1.0, abs(old)) else new for new, old in pairs)
    return x, y, z


def _triple(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z
