"""The colours of meshes in a small picture: material colours multiplied by vertex colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np

from .. import arrays

_LAYER = "Picture"
_LEAST_ALPHA = 0.4
"""Minimum alpha of transparent materials, so that they are visible in a picture."""
_PLAIN = (0.5, 0.5, 0.5, 1.0)
"""Linear colour for faces without a material."""


def show_colors(objects: Sequence[bpy.types.Object]) -> str:
    """Prepare the colours of objects for Workbench; return the ``color_type`` to set."""
    meshes = {one.data.name_full: one for one in objects if one.type == "MESH"}
    for slot in (slot for one in objects for slot in one.material_slots):
        if slot.material is not None:
            color: Any = slot.material.diffuse_color
            color[3] = max(color[3], _LEAST_ALPHA)
    if any(_has_texture(slot.material) for one in objects for slot in one.material_slots):
        return "TEXTURE"
    if not any(len(one.data.color_attributes) for one in meshes.values()):
        return "MATERIAL"
    for one in meshes.values():
        _bake(one)
    return "VERTEX"


def _has_texture(material: bpy.types.Material | None) -> bool:
    """Return whether a material has a texture whose image is available."""
    tree = material.node_tree if material is not None else None
    nodes: Any = tree.nodes if tree is not None else ()
    return any(node.type == "TEX_IMAGE" and node.image is not None and node.image.size[0] > 0 for node in nodes)


def _bake(owner: bpy.types.Object) -> None:
    """Add a colour attribute to a mesh: the material's colour times the mesh's own colour attribute."""
    mesh: bpy.types.Mesh = owner.data
    table = np.array(
        [tuple(slot.material.diffuse_color) if slot.material else _PLAIN for slot in owner.material_slots] or [_PLAIN],
        np.float32,
    )
    table[:, 3] = 1.0
    slots = arrays.read(mesh.polygons, "material_index", dtype=np.int32)
    corners = arrays.read(mesh.polygons, "loop_total", dtype=np.int32)
    colors = np.repeat(table[np.clip(slots, 0, len(table) - 1)], corners, axis=0)
    given = mesh.color_attributes.active_color or next(iter(mesh.color_attributes), None)
    if given is not None and len(colors) == len(mesh.loops):
        painted = arrays.read(given.data, "color", 4)[:, :3]
        if given.domain == "POINT":
            painted = painted[arrays.corner_vertices(mesh)]
        colors[:, :3] *= np.clip(np.nan_to_num(painted), 0.0, 1.0)
    layer = mesh.color_attributes.new(_LAYER, "FLOAT_COLOR", "CORNER")
    layer.data.foreach_set("color", arrays.flat(colors))
    index = mesh.color_attributes.find(layer.name)
    mesh.color_attributes.active_color_index = index
    mesh.color_attributes.render_color_index = index
