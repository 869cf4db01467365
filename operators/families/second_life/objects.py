"""Find the models of a Second Life upload from the selected objects, which may be any level or shape of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy

from ....blender_data.armature_modifiers import MESHABLE, armature_of
from ....blender_data.exporting.models.model_objects import ModelIndex, ModelObjects
from ....blender_data.exporting.object_selection import is_of_body
from ....blender_data.level_objects import LEVEL_PROPERTIES
from ....io_formats.core.messages import Text
from ....io_formats.second_life.asset.format import SECOND_LIFE_MESH
from ....io_formats.second_life.options import LEVEL_LABELS
from ...layouts import Condition
from ...sidebar import concerns, homes_of
from ...translations import rpt_

LEVELS = tuple(label.upper() for label in LEVEL_LABELS)
PHYSICS = "PHYSICS"
"""Name of the physics shape among the parts of a model; the others are the ``LEVELS``."""

PICKERS = dict(zip((*LEVELS, PHYSICS), (*LEVEL_PROPERTIES, "physics_object"), strict=True))
"""Property of the finest object that points to each part; empty for the finest level."""


def is_wanted(context: bpy.types.Context) -> bool:
    """Return whether the active object has a type to export to Second Life and was not imported from another family."""
    obj = context.object
    return obj is not None and obj.type in {*MESHABLE, "ARMATURE"} and concerns(context, "second_life")


def chosen_models(context: bpy.types.Context) -> list[ModelObjects]:
    """Return the models of the selection, the active one first, the others by name.

    Without a selection, use the active object.

    A selected LOD or physics object selects its model; a selected armature selects all meshes that it deforms, without
    bodies to fit clothes on.
    """
    active = context.view_layer.objects.active
    selected = sorted(context.view_layer.objects.selected, key=lambda obj: (obj != active, obj.name))
    if not selected and active is not None:
        selected = [active]
    index = ModelIndex(context.scene.objects)
    found: dict[Any, None] = {}
    for obj in selected:
        parts = [obj] if obj.type in MESHABLE else []
        if obj.type == "ARMATURE":
            worn = (one for one in context.scene.objects if armature_of(one) == obj and not is_of_body(one))
            parts = sorted(worn, key=_name)
        for part in parts:
            finest = index.finest_of(part)
            if finest.meshferry.role == "RENDER":
                found.setdefault(finest)
    return [index.model(finest) for finest in found]


HAS_MODEL: Condition = (lambda context: bool(chosen_models(context)), "Choose a mesh object")


def objects_by_part(model: ModelObjects) -> dict[str, list[Any]]:
    """Return the objects of a model by part: levels and physics. Parts without an object are left out."""
    shapes = [obj for obj in (model.physics, *model.hulls, model.base_hull) if obj is not None]
    levels = {LEVELS[level]: [obj] for level, obj in sorted(model.levels.items())}
    return {LEVELS[0]: [model.finest], **levels, **({PHYSICS: shapes} if shapes else {})}


def subject_of(models: Sequence[ModelObjects]) -> str:
    """Return a common name of several models for the sidebar."""
    if len(models) < 2:
        return str(models[0].finest.name) if models else ""
    return rpt_(Text("{} and {} more", models[0].finest.name, len(models) - 1))


def imported_from(obj: Any) -> Path | None:
    """Return the asset file that an object was imported from, if it still exists."""
    for collection in homes_of(obj):
        path = bpy.path.abspath(collection.meshferry.source_path)
        if path and collection.meshferry.file_format == SECOND_LIFE_MESH.name and os.path.isfile(path):
            return Path(path)
    return None


def _name(obj: Any) -> str:
    return str(obj.name)
