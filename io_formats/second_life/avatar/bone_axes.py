"""Directions of the avatar's bones in Blender: along the avatar's axes if a body shape can scale them unevenly.

A pose bone scales along its own axes only. Bones that are always scaled evenly or not
at all point to their ends. Everything is in the avatar's space.
"""

from __future__ import annotations

import functools

import numpy as np

from ..shape.evaluation import uneven_bones
from . import skeleton_table
from .skeleton_table import Matrix

AXES = "AVATAR"
"""Identifier of these directions, stored with armatures and actions in .blend files."""

_ROLL_AXES = ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
"""Preferred Z axes of bones: forwards, or upwards for bones that point forwards or backwards. Both are in the mirror
plane of left and right, so that bones of both sides have mirrored rolls."""
_ALONG = 0.9
"""Cosine of the angle between a bone and a roll axis above which the other axis is used."""
_LEAST_LENGTH = 1e-3
"""Length in metres below which an end does not give a usable length."""


@functools.cache
def aligned_joints() -> frozenset[str]:
    """Return the names of the joints whose bones lie along the axes: bones that scale unevenly, and all volumes."""
    volumes = (name for name, joint in skeleton_table.table().items() if joint.is_collision_volume)
    return uneven_bones() | frozenset(volumes)


@functools.cache
def aligned_axes(name: str) -> tuple[Matrix, Matrix]:
    """Return the direction of an aligned joint's bone and of the bone's Z axis, each (3,).

    They are axes of the joint at rest: the one nearest to the joint's end, and the one nearest to a preferred axis.
    """
    joint = skeleton_table.table()[name]
    own = joint.axes
    shares = np.array(joint.end) @ own
    nearest = int(np.abs(shares).argmax())
    along = own[:, nearest] * np.sign(shares[nearest])
    roll = next(np.array(axis) for axis in _ROLL_AXES if abs(along @ axis) < _ALONG)
    across = np.abs(roll @ own)
    across[nearest] = -1.0
    best = int(across.argmax())
    return along, own[:, best] * np.sign(roll @ own[:, best])


def drawn_axes(name: str, end: Matrix) -> tuple[Matrix, Matrix | None]:
    """Return the vector from head to tail of a joint's bone, (3,), and the direction of its Z axis if it matters, (3,).

    ``end`` is the end of the joint relative to its head. The tail of an aligned bone is the point on its axis that is
    nearest to the end. Bones of volumes are at most half as long as the volume, because the ends of some are up to 6 cm
    in front of the figure.
    """
    if name not in aligned_joints():
        return end, None
    along, up = aligned_axes(name)
    length = float(end @ along)
    length = length if length > _LEAST_LENGTH else float(np.linalg.norm(end))
    joint = skeleton_table.table()[name]
    if joint.is_collision_volume:
        half = float(np.linalg.norm(joint.local[:3, :3].T @ along)) / 2
        length *= min(1.0, half / float(np.array(joint.end) @ along))
    return along * length, up
