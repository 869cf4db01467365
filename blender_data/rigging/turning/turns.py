"""Changes of bones' axes at rest.

With C the new axes of a bone as columns in its old ones, its transform B relative to its rest becomes C^-1 B C.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ..joint_poses import Array

SAME = 1e-6
"""Difference of rotation matrices up to which bones count as not turned: rounding to single precision."""

VECTORS = {"location": 0, "rotation_quaternion": 1, "rotation_axis_angle": 1, "scale": 0}
"""Channels of which three components are converted by a matrix, with the first of these components."""


@dataclass(frozen=True)
class BoneTurn:
    """Change of the axes and the length of one bone."""

    axes: Array
    """(3, 3) C, with the symbols of the module's description."""
    location: Array
    """(3, 3) matrix that converts locations; without *Local Location* these are along the axes of the parent."""
    length: tuple[float, float]
    """Length before and after, in metres."""

    @property
    def is_turned(self) -> bool:
        """Whether the axes differ."""
        return not is_same(self.axes, np.identity(3))

    @property
    def tail(self) -> Array:
        """(4, 4) old tail, relative to the new one: objects parented to the bone are placed relative to its tail."""
        made = np.identity(4)
        made[:3, :3] = self.axes.T
        made[:3, 3] = self.axes.T @ (0.0, self.length[0], 0.0) - (0.0, self.length[1], 0.0)
        return made

    def matrix(self, channel: str) -> Array:
        """Return the matrix (3, 3) that converts the vector of a channel of :data:`VECTORS`.

        The vector parts of quaternions, and the axes beside angles, turn as vectors do.
        """
        if channel == "location":
            return self.location
        return self.axes.T**2 if channel == "scale" else self.axes.T

    def shears(self, scales: Array) -> bool:
        """Return whether scales, (n, 3), along the old axes are not scales along the new axes."""
        turned = self.axes.T @ (scales[:, :, None] * self.axes)
        return bool(np.abs(turned * (1.0 - np.identity(3))).max(initial=0.0) > 1e-5)


Turns = Mapping[str, BoneTurn]
"""Changes by name of the bone; bones that do not change are left out."""
ArmatureTurns = Mapping[bpy.types.Armature, Turns]


def turn_in(turns: ArmatureTurns, obj: Any, bone: str) -> BoneTurn | None:
    """Return the change of a bone of an object, None if there is none."""
    is_armature = isinstance(obj, bpy.types.Object) and obj.type == "ARMATURE"
    return turns.get(obj.data, {}).get(bone) if is_armature else None


def is_same(a: Array, b: Array) -> bool:
    """Return whether two rotation matrices are equal except for rounding."""
    return bool(np.abs(a - b).max() <= SAME * 10)


@functools.cache
def _right_angles() -> Array:
    """Return the 24 rotations by multiples of 90°, (24, 3, 3)."""
    signed = [
        np.array([[sign * (column == axis) for column in range(3)] for axis, sign in zip(order, signs, strict=True)])
        for order in itertools.permutations(range(3))
        for signs in itertools.product((1.0, -1.0), repeat=3)
    ]
    return np.array([matrix for matrix in signed if np.linalg.det(matrix) > 0])


def nearest_right_angles(axes: Array) -> Array:
    """Return the nearest rotation by multiples of 90°, (3, 3), for settings that hold one value for each axis."""
    choices = _right_angles()
    return np.array(choices[(choices * axes).sum(axis=(1, 2)).argmax()])
