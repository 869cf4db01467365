"""Alignment of the bones of older figures with the axes along which shapes scale."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Fix, Report
from ... import names
from .. import body_shapes
from . import actions, armature_turning


def is_local(data: Any) -> bool:
    """Return whether the bones of an armature can be edited."""
    return data.library is None and data.override_library is None


def is_older(armature: Any) -> bool:
    """Return whether the bones of a figure's armature object do not lie by the rule for shapes."""
    shapes = body_shapes.shapes()
    return shapes is not None and armature.data.meshferry.bone_axes != shapes.BONE_AXES


def align(context: bpy.types.Context, armatures: Iterable[Any]) -> Report:
    """Turn the bones of armature objects of figures, and all that depends on their axes.

    Returns
    -------
    Report
        Names what could not be converted exactly.

    Raises
    ------
    MeshferryError
        A figure does not stand upright, or an action cannot be converted. Nothing is changed.
    """
    shapes = body_shapes.shapes()
    by_data = {armature.data: armature for armature in armatures}
    wanted: dict[bpy.types.Armature, armature_turning.Directions] = {}
    alone: dict[bpy.types.Armature, list[str]] = {}
    for data in by_data:
        found = _directions(data)
        wanted[data] = {bone: (vector, up) for bone, (vector, up) in found.items() if up is not None}
        alone[data] = list(found)
    report = armature_turning.turn_bones(context, wanted, alone, shapes.BONE_AXES if shapes is not None else "")
    for armature in by_data.values():
        unfit = body_shapes.unfit_bones(armature)
        report.loss_of("unfit-bones", "Shapes are not exact on {}: {}", unfit, "bone")
    return report


def _directions(data: bpy.types.Armature) -> dict[str, Any]:
    shapes = body_shapes.shapes()
    bones = data.bones
    heads = np.array([bone.head_local for bone in bones], np.float64).reshape(-1, 3)
    found = shapes.bone_directions([names.name_in_file(bone) for bone in bones], heads) if shapes is not None else {}
    return {bones[number].name: direction for number, direction in found.items()}


def is_for_others(action: bpy.types.Action, slot: Any, armature: Any) -> bool:
    """Return whether an action keys bones of an armature object that lay by another rule when it was made."""
    if not actions.is_made_for_others(action, armature.data) or not body_shapes.is_figure(armature):
        return False
    keyed = actions.keyed_bones(action, slot)
    try:
        directions = _directions(armature.data)
    except MeshferryError:  # a figure that does not stand upright cannot be aligned
        return bool(keyed)
    return any(up is not None and bone in keyed for bone, (_vector, up) in directions.items())


def report_others(armature: Any, played: Iterable[tuple[bpy.types.Action, Any]], report: Report) -> None:
    """Warn of actions that were made for bones that lie otherwise than those of an armature object."""
    for action in dict.fromkeys(action for action, slot in played if is_for_others(action, slot, armature)):
        if is_older(armature):
            report.warning(
                "action-for-aligned-bones",
                "action '{}' was made for bones along the avatar's axes, so poses differ; align the bones",
                action.name,
                item=armature.name,
                fix=Fix.ALIGN_BONES,
                names=(armature.name,),
            )
        else:
            report.warning(
                "action-for-other-bones",
                "action '{}' was made for bones that point elsewhere, so poses differ; import its file again",
                action.name,
                item=armature.name,
            )
