"""Channels of objects whose files store location, Euler angles and scale."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Euler, Quaternion
from mathutils import Matrix as BlenderMatrix

from ....io_formats.core.placement import Channels
from .object_places import local_matrix

_NOISE = 2e-6
"""Tolerance of numbers that come from a matrix: relative to the number, or absolute below 1."""
_SHEARED = 1e-4
"""Tolerance of the matrix of decomposed channels, relative to the largest element."""


def read_channels(
    obj: bpy.types.Object, given: Channels, frame: bpy.types.Object | None, *, is_own_parent: bool
) -> tuple[Channels, bool]:
    """Return the transform of an object without delta transforms, and whether the channels hold all of it.

    Parameters
    ----------
    given:
        The transform in the file.
    frame:
        The ancestor that the transform is relative to; None for the world.
    is_own_parent:
        Whether the parent of the object is the one that the file gives it.
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
    """Return three numbers from a matrix; use the file's numbers where they differ by rounding errors only."""
    pairs = zip(values, given, strict=True)
    x, y, z = (old if abs(new - old) <= _NOISE * max(1.0, abs(old)) else new for new, old in pairs)
    return x, y, z


def _triple(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z
