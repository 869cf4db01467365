"""How many pictures an export bakes at most, which its dialog shows and asks about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

from ...blender_data import compat
from ...blender_data.export_options import ExportOptions
from ...blender_data.exporting.baking.material_bakes import is_mended, maps_of, price_text
from ...blender_data.exporting.baking.surface_shaders import SurfaceShaders
from ...blender_data.exporting.models import material_losses
from ...blender_data.exporting.reading.image_maps import ImageReader
from ...blender_data.exporting.reading.material_reading import read_material
from ...blender_data.exporting.reading.shading_reading import shading_of
from ...io_formats.core.capabilities import Capabilities
from ...io_formats.core.messages import Report, Text
from ..translations import rpt_

_MOST_SETS = 8
"""Largest number of sets of pictures that are baked without a question."""


def bake_price(objects: Sequence[Any], options: ExportOptions, can: Capabilities) -> tuple[int, Text]:
    """Return the largest number of sets of pictures that an export of objects bakes, and a text about them."""
    users: dict[bpy.types.Material, dict[Any, None]] = {}
    for obj in objects if options.use_bake_materials else ():
        for slot in obj.material_slots:
            if slot.material is not None and not (slot.material.meshferry.identity and can.placement):
                users.setdefault(slot.material, {})[obj.data] = None
    materials, meshes, sets, pictures = 0, set[Any](), 0, 0
    for material, data in users.items():
        tree = compat.node_tree(material)
        shaders = SurfaceShaders(tree) if tree is not None else None
        maps = list(maps_of(shaders)) if shaders is not None and shaders.is_known() else []
        maps_on_uvs = [layer.name for one in data for layer in getattr(one, "uv_layers", ()) if layer.active_render]
        layers = material_losses.layers_of(material, tuple(maps_on_uvs[:1]), objects)
        if shaders is None or not maps or not _is_mended(material, layers, options, can):
            continue
        is_flat = bool(maps_on_uvs) and shaders.dependence(maps_on_uvs[0], is_shown=True).is_flat
        count = 1 if is_flat else len(data)
        materials, sets, pictures = materials + 1, sets + count, pictures + count * len(maps)
        meshes |= set(data)
    return sets, price_text(materials, len(meshes), pictures) if sets else Text("")


def _is_mended(material: bpy.types.Material, layers: Any, options: ExportOptions, can: Capabilities) -> bool:
    if not can.gltf_materials:
        return is_mended(shading_of(material, ImageReader(Report()), layers)[1])
    plain = read_material(material, Report())
    return is_mended(material_losses.losses_of(material, plain, layers, use_gltf=options.use_pbr_materials)[1])


def question_of_bakes(objects: Sequence[Any], options: ExportOptions, can: Capabilities) -> str:
    """Return a question if an export bakes many pictures, or an empty string."""
    sets, text = bake_price(objects, options, can)
    if sets <= _MOST_SETS:
        return ""
    return rpt_(Text("Bake {}? This may take minutes, and each picture is uploaded for a fee in Second Life", text))
