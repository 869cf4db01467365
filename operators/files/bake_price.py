"""How many pictures an export bakes at most, which its dialog shows and asks about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy

from ...blender_data.exporting.baking.material_bakes import BakeSurface, BakeTask, planned, price_of
from ...blender_data.exporting.models.material_losses import layers_of
from ...blender_data.exporting.models.model_objects import find_models
from ...blender_data.exporting.object_selection import candidates_of
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.format import Format
from ...io_formats.core.messages import Report, Text
from ..option_properties import to_export_options

NOTHING = (0, Text(""))


def bake_price(
    context: bpy.types.Context, chosen: Callable[[], tuple[Any, dict[str, Any]]], target: Format
) -> tuple[int, Text]:
    """Return the largest number of sets of pictures that an export bakes, and a text about them.

    ``chosen`` returns the source of the export and the values of its options. Its errors are left to the export.
    """
    try:
        source, values = chosen()
        options, can = to_export_options(values), target.capabilities_with(values)
        if not (can.bakes_materials and options.use_baked_materials):
            return NOTHING
        models = find_models(context, source, options) if can.gltf_materials else []
        objects = [model.finest for model in models] if can.gltf_materials else candidates_of(context, source)
    except MeshferryError:
        return NOTHING
    users: dict[bpy.types.Material, dict[Any, BakeSurface]] = {}
    for obj in objects:
        maps = sorted(getattr(obj.data, "uv_layers", ()), key=lambda layer: not layer.active_render)
        for material in (slot.material for slot in obj.material_slots if slot.material is not None):
            layers = layers_of(material, tuple(layer.name for layer in maps), objects)
            users.setdefault(material, {}).setdefault(obj.data, BakeSurface(obj, obj.name, layers))
    tasks = [BakeTask(material.name, material, list(surfaces.values())) for material, surfaces in users.items()]
    tasks = planned(tasks, options, can, Report())
    return (sum(task.sets for task in tasks), price_of(tasks)) if tasks else NOTHING
