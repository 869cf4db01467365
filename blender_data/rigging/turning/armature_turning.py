"""Turn the bones of armatures at rest, and convert all data that depend on their axes, so that poses do not change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix, Vector

from ....io_formats.core.messages import Report
from ... import compat
from ...exporting.clips import pose_curves
from ...importing.rigs.armatures import edited
from .. import body_shapes, imported_bones
from ..joint_poses import Array, rest_matrix
from . import actions, drivers
from .constraints import ConstraintTurner
from .keys import turned_angles
from .turns import SAME, VECTORS, ArmatureTurns, BoneTurn, Turns

Directions = Mapping[str, tuple[Array, Array]]
"""New directions by name of the bone: the vector from head to tail and the direction of the Z axis, (3,) each, in the
space of the armature."""

_TOUCHING = 1e-5
"""Largest distance in metres between a bone's head and the tail of its parent at which they are connected."""


def turn_bones(
    context: bpy.types.Context,
    wanted: Mapping[bpy.types.Armature, Directions],
    alone: Mapping[bpy.types.Armature, Iterable[str]],
    axes: str,
) -> Report:
    """Turn bones of armatures; all objects that use these armatures keep the poses of their bones.

    Actions, NLA strips, constraints and objects parented to bones are converted.

    Parameters
    ----------
    wanted:
        New directions of the bones that turn, by armature.
    alone:
        Bones that are disconnected and do not inherit scale afterwards, by armature.
    axes:
        Rule by which the bones lie afterwards, stored with armatures and actions.

    Returns
    -------
    Report
        Names what could not be converted exactly.

    Raises
    ------
    MeshferryError
        An action cannot be converted for all armatures that play it. Nothing is changed.
    """
    report = Report()
    before = {data: _matrices(data) for data in wanted}
    lengths = {data: {bone.name: bone.length for bone in data.bones} for data in wanted}
    expected = {data: _turns(data, before[data], _expected(data, wanted[data]), lengths[data]) for data in wanted}
    planned = actions.plan(expected, axes, report)
    objects: list[Any] = [obj for obj in bpy.data.objects if obj.type == "ARMATURE" and obj.data in wanted]
    for obj in objects:
        if obj.animation_data is not None:
            obj.animation_data.use_tweak_mode = False  # otherwise the action cannot be changed
    scaled = {data: _scaling(data) for data in wanted}
    connected = {
        data: {bone.name for bone in data.bones if bone.use_connect and bone.parent is not None} for data in wanted
    }
    unmoved = {data: imported_bones.unmoved(data.bones) for data in wanted}
    for data in wanted:
        _edit(context, data, wanted[data], set(alone[data]))
    turns = {data: _turns(data, before[data], _matrices(data), lengths[data]) for data in wanted}
    loose = {data: {name for name in names if not data.bones[name].use_connect} for data, names in connected.items()}
    for found in planned:
        found.turns = turns[found.holders[0][0].data]
    results = actions.convert(planned, loose, axes)
    results.report_to(report)
    _report_inherited_scale(objects, scaled, report)
    constraints = ConstraintTurner(turns, loose)
    constraints.turn()
    converted = drivers.convert(turns)
    _report_relations(constraints, drivers.dependent(turns, converted), report)
    for obj in objects:
        _turn_pose(obj, turns[obj.data], loose[obj.data])
    _turn_children(turns, report)
    for data in wanted:
        _store(data, turns[data], unmoved[data], axes)
    for obj in objects:
        if body_shapes.is_shaped(obj):
            body_shapes.apply(obj)
    context.view_layer.update()
    return report


def _matrices(data: bpy.types.Armature) -> dict[str, Array]:
    """Return the axes of bones at rest, (3, 3) float64, as columns.

    Blender's matrices of bones that point backwards or downwards are skewed by up to 5e-5.
    """
    rests = rest_matrix(np.array([bone.matrix_local for bone in data.bones], np.float64).reshape(-1, 4, 4))
    return {bone.name: rest[:3, :3] for bone, rest in zip(data.bones, rests, strict=True)}


def _expected(data: bpy.types.Armature, directions: Directions) -> dict[str, Array]:
    """Return the axes that bones will have, up to rounding."""
    found = _matrices(data)
    for name, (vector, up) in directions.items():
        along = vector / np.linalg.norm(vector)
        across = np.cross(along, up)
        across /= np.linalg.norm(across)
        found[name] = np.column_stack((across, along, np.cross(across, along)))
    return found


def _turns(
    data: bpy.types.Armature, before: Mapping[str, Array], after: Mapping[str, Array], lengths: Mapping[str, float]
) -> dict[str, BoneTurn]:
    """Return the changes of bones; those that differ by rounding only are left out."""
    same = np.identity(3)
    axes = {}
    for name, old in before.items():
        turned = old.T @ after[name]
        axes[name] = same if np.abs(turned - same).max() <= SAME else turned
    found = {}
    for bone in data.bones:
        own = axes[bone.name]
        of_location = own
        if not bone.use_local_location:
            of_location = axes[bone.parent.name] if bone.parent is not None else same
        turn = BoneTurn(own, of_location.T, (lengths[bone.name], bone.length))
        if turn.is_turned or of_location is not same or abs(bone.length - lengths[bone.name]) > SAME:
            found[bone.name] = turn
    return found


def _scaling(data: bpy.types.Armature) -> set[str]:
    """Return the bones of which others inherit the scale."""
    return {bone.parent.name for bone in data.bones if bone.parent is not None and bone.inherit_scale != "NONE"}


def _edit(context: bpy.types.Context, data: bpy.types.Armature, directions: Directions, alone: set[str]) -> None:
    with edited(context, data):
        connected = [bone for bone in data.edit_bones if bone.use_connect and bone.parent is not None]
        for bone in connected:  # all at once: connected bones move each other
            bone.use_connect = False
        for name, (vector, up) in directions.items():
            bone = data.edit_bones[name]
            bone.tail = bone.head + Vector(vector.tolist())
            bone.align_roll(Vector(up.tolist()))
        for name in alone:
            data.edit_bones[name].inherit_scale = "NONE"
        for bone in connected:
            bone.use_connect = bone.name not in alone and (bone.parent.tail - bone.head).length < _TOUCHING


def _turn_pose(obj: Any, turns: Turns, loose: set[str]) -> None:
    """Convert the channels of a pose. The locations of bones that were connected had no effect."""
    for name in loose:
        obj.pose.bones[name].location = (0.0, 0.0, 0.0)
    for name, turn in turns.items():
        bone = obj.pose.bones[name]
        for channel, first in VECTORS.items():
            values = np.array(getattr(bone, channel), np.float64)
            values[first : first + 3] = turn.matrix(channel) @ values[first : first + 3]
            setattr(bone, channel, values.tolist())
        if turn.is_turned:
            is_euler = pose_curves.rotation_channel(bone.rotation_mode) == "rotation_euler"
            order = bone.rotation_mode if is_euler else "XYZ"
            angles = np.array([bone.rotation_euler[:]], np.float64)
            bone.rotation_euler = turned_angles(turn, order, angles)[0].tolist()


def _turn_children(turns: ArmatureTurns, report: Report) -> None:
    """Keep objects whose parent is a bone in place, relative to the bone."""
    linked = []
    for obj in bpy.data.objects:
        armature: Any = obj.parent
        if armature is None or armature.type != "ARMATURE" or obj.parent_type != "BONE" or armature.data not in turns:
            continue
        turn = turns[armature.data].get(obj.parent_bone)
        if turn is None or armature.data.bones[obj.parent_bone].use_relative_parent:
            continue
        if obj.is_editable:
            obj.matrix_parent_inverse = Matrix(turn.tail.tolist()) @ obj.matrix_parent_inverse
        else:
            linked.append(obj.name)
    report.loss_of("linked-children", "{} parented to bones, but linked from another file, moved: {}", linked)


def _store(data: bpy.types.Armature, turns: Turns, unmoved: npt.NDArray[np.bool_], axes: str) -> None:
    """Store the rest matrices of imported bones anew, so that their joints count as unchanged."""
    for bone, is_unmoved in zip(data.bones, unmoved, strict=True):
        kept = np.array(bone.meshferry.rest_matrix, np.float64).reshape(4, 4)
        if is_unmoved:
            kept = np.array(bone.matrix_local, np.float64)
        elif bone.name in turns:
            kept[:3, :3] = kept[:3, :3] @ turns[bone.name].axes
        bone.meshferry.rest_matrix = kept.reshape(-1)
    data.meshferry.bone_axes = axes


def _report_inherited_scale(
    objects: Iterable[Any], scaling: Mapping[bpy.types.Armature, set[str]], report: Report
) -> None:
    """Report scaled bones whose scale other bones inherited, unless a shape sets it."""
    found: dict[str, None] = {}
    for obj in objects:
        keyed: set[Any] = set()
        for action in pose_curves.own_actions(obj):
            keyed |= pose_curves.scaled_bones(compat.action_curves(action, None))
        for bone in obj.pose.bones:
            is_posed = any(abs(value - 1.0) > 1e-6 for value in bone.scale) and not body_shapes.is_shaped(obj)
            if bone.name in scaling[obj.data] and (is_posed or bone.name in keyed):
                found[f"{obj.name}: {bone.name}"] = None
    report.loss_of(
        "scale-not-inherited",
        "{} the bones below: {}",
        list(found),
        "scaled bone no longer scales",
        "scaled bones no longer scale",
    )


def _report_relations(constraints: ConstraintTurner, driven: list[str], report: Report) -> None:
    report.loss_of(
        "constraints-of-turned-bones",
        "{} not converted: {}",
        constraints.unconverted,
        "constraint depends on the axes or ends of bones and was",
        "constraints depend on the axes or ends of bones and were",
    )
    report.change_of(
        "constraints-without-effect",
        "{} muted, since Blender did not move connected bones by constraints: {}",
        constraints.muted,
        "constraint",
    )
    report.change_of(
        "limits-of-turned-bones",
        "Settings with one value for each axis were given to the nearest axes of {}: {}",
        constraints.approximate,
        "bone",
    )
    report.loss_of(
        "drivers-of-turned-bones",
        "{} not converted: {}",
        driven,
        "driver sets or reads channels of bones along their axes and was",
        "drivers set or read channels of bones along their axes and were",
    )
