"""Convert between BVH files and motions of the avatar, as the uploader reads them (animation page, section 7.2)."""

from __future__ import annotations

import numpy as np

from ...geometry.transforms import (
    euler_matrices,
    inverse_rotations,
    matrices_to_quaternions,
    rotate,
    rotation_matrices,
    rotation_product,
)
from ..animation.codec import Floats
from .document import Bvh

INCH = 0.02540005
"""Metres in an inch, with the viewer's rounded value."""
TO_AVATAR = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], np.float64)
"""From the axes of a BVH file (Y up, Z forward, X to the left) to those of the avatar."""


def joint_motion(document: Bvh, number: int) -> tuple[Floats, Floats | None]:
    """Return a joint's rotations (F, 4; w, x, y, z) in avatar axes and positions (F, 3) in metres, frame 0 included."""
    joint, values = document.joints[number], document.channels(number)
    turned = TO_AVATAR @ euler_matrices(values[:, -3:], joint.order) @ TO_AVATAR.T
    rotation = matrices_to_quaternions(turned)
    position = values[:, :3] @ TO_AVATAR.T * INCH if joint.has_position else None
    return rotation, position


def relative_to_first(rotation: Floats, position: Floats | None) -> tuple[Floats, Floats | None]:
    """Return the root's motion relative to its frame 0: R0^-1 R and R0^-1 (P - P0)."""
    back = inverse_rotations(rotation[:1])
    turned = rotation_product(back, rotation)
    turned[turned[:, 0] < 0] *= -1
    return turned, None if position is None else rotate(back, position - position[0])


def angles_of(rotation: Floats) -> Floats:
    """Return the angles (F, 3) in degrees, about Z, X and Y, of rotations (F, 4) in avatar axes."""
    m = TO_AVATAR.T @ rotation_matrices(rotation) @ TO_AVATAR
    about_x = np.arcsin(np.clip(m[:, 2, 1], -1, 1))
    locked = np.abs(m[:, 2, 1]) > 1 - 1e-9
    about_z = np.where(locked, np.arctan2(m[:, 1, 0], m[:, 0, 0]), np.arctan2(-m[:, 0, 1], m[:, 1, 1]))
    about_y = np.where(locked, 0.0, np.arctan2(-m[:, 2, 0], m[:, 2, 2]))
    return np.asarray(np.degrees(np.stack((about_z, about_x, about_y), axis=1)))
