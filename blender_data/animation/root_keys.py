"""Keys of the root bones of figures, which include the movement of the shape that puts the feet on the floor.

So the feet stay on the floor while an action plays. Exports subtract the movement again.
"""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from .. import animated_blocks, arrays
from ..mesh_data import mesh_edits

Array = npt.NDArray[np.float64]

_SAME = 1e-9
"""Distance in metres below which keys are not moved."""


def included_offset(action: bpy.types.Action, offset: Array) -> Array:
    """Return the movement along the axes of the armature, (3,), that the keys of an action for the root bone include.

    It is that of the shape of the armature, ``offset``, unless something else is known: keys from files include none.
    """
    kept = action.meshferry
    if kept.has_shape_root:
        return np.array(kept.shape_root, np.float64)
    return np.zeros(3) if kept.fingerprint else offset


def follow_root(armature: bpy.types.Object, root: str, axes: Array, before: Array, offset: Array) -> None:
    """Move the keys of the root bone in the actions of an armature object as its shape moves the bone.

    Actions that no object plays are not changed; what their keys include is stored.

    Parameters
    ----------
    axes:
        (3, 3) axes of the root bone at rest as columns.
    before, offset:
        (3,) movements by the shape along the axes of the armature, before and after the change.
    """
    path = f'pose.bones["{bpy.utils.escape_identifier(root)}"].location'
    own = {holder.action: holder.action_slot for holder in animated_blocks.action_holders(armature)}
    for action, slot in own.items():
        curves = animated_blocks.curves_at(action, slot, path) if action.is_editable else []
        if curves:
            _move(action, curves, axes.T @ (offset - included_offset(action, before)))
            _store(action, offset)
    if np.array_equal(before, offset):
        return
    for action in bpy.data.actions:
        is_unused = action.users == int(action.use_fake_user) and action.is_editable
        if is_unused and not action.meshferry.has_shape_root and animated_blocks.curves_at(action, None, path):
            _store(action, included_offset(action, before))


def _store(action: Any, offset: Array) -> None:
    action.meshferry.shape_root, action.meshferry.has_shape_root = offset.tolist(), True


def _move(action: Any, curves: list[bpy.types.FCurve], distances: Array) -> None:
    """Move the keys of location curves by distances (3,), and the checksum with which edits of users are found."""
    for curve in curves:
        distance = distances[curve.array_index]
        if abs(distance) < _SAME:
            continue
        keys = curve.keyframe_points
        checksum = -mesh_edits.key_checksum(arrays.read(keys, "co", 2))
        for name in ("co", "handle_left", "handle_right"):
            values = arrays.read(keys, name, 2)
            values[:, 1] += distance
            keys.foreach_set(name, arrays.flat(values))
        checksum += mesh_edits.key_checksum(arrays.read(keys, "co", 2))
        curve.update()
        if action.meshferry.fingerprint:
            action.meshferry.fingerprint = repr(float(action.meshferry.fingerprint) + checksum)
