"""Scene nodes -> objects: names, hierarchy, transforms, armatures, levels of detail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy

from ...io_formats.scene import Node, Role
from .. import names

_EMPTY_SIZE = 0.25


def build_object(node: Node, data: bpy.types.Mesh | None, keep: Callable[[bpy.types.ID], Any]) -> bpy.types.Object:
    """Make the object of a node, without its parent; its rotation is a quaternion, as in the file.

    ``keep`` is given the object as soon as it is made, so that it goes again where the rest fails.
    """
    made: bpy.types.Object = keep(bpy.data.objects.new(names.fit(node.name), data))
    names.remember(made, node.name)
    made.rotation_mode = "QUATERNION"
    made.location = node.translation
    made.rotation_quaternion = node.rotation
    made.scale = node.scale
    made.meshferry.is_root = bool(node.properties.get("is_root", False))
    if made.data is None:
        made.empty_display_type = "ARROWS"
        made.empty_display_size = _EMPTY_SIZE
        made.show_name = True
    if node.role is not Role.RENDER:
        made.display_type = "WIRE"
        made.hide_render = True
    return made


def remember_rest(made: bpy.types.Object, node: Node) -> None:
    """Keep a node's rest transform, which its animation overwrites in Blender."""
    kept = made.meshferry
    kept.has_rest = True
    kept.rest_location = node.translation
    kept.rest_rotation = node.rotation
    kept.rest_scale = node.scale


def hang_on_armature(made: bpy.types.Object, armature: bpy.types.Object, groups: Sequence[str]) -> None:
    """Parent an object to its armature; with vertex groups, which get these names in this order, it deforms it."""
    made.parent = armature
    for name in groups:
        made.vertex_groups.new(name=name)
    if groups:
        made.modifiers.new("Armature", "ARMATURE").object = armature


def set_level(made: bpy.types.Object, node: Node, of_nodes: Sequence[bpy.types.Object]) -> None:
    """Keep a node's level of detail, and which object is the finest of its levels."""
    made.meshferry.lod = node.lod
    finest = node.properties.get("lod_of")
    if finest is not None:
        made.meshferry.lod_of = of_nodes[finest]


def link_levels(
    collection: bpy.types.Collection,
    armatures: Sequence[bpy.types.Object],
    of_nodes: Sequence[bpy.types.Object],
    keep: Callable[[bpy.types.ID], Any],
) -> list[bpy.types.Collection]:
    """Link objects to a collection, or, where there are coarser ones, to one in it for each level of detail.

    Returns
    -------
    list
        The collections of the coarser levels.
    """
    for armature in armatures:
        collection.objects.link(armature)
    levels = sorted({made.meshferry.lod for made in of_nodes})
    if not levels or levels[-1] == 0:
        for made in of_nodes:
            collection.objects.link(made)
        return []
    coarser = []
    for level in levels:
        part: bpy.types.Collection = keep(bpy.data.collections.new(f"LOD {level}"))
        collection.children.link(part)
        for made in of_nodes:
            if made.meshferry.lod == level:
                part.objects.link(made)
        if level:
            coarser.append(part)
    return coarser


def hide_levels(view_layer: bpy.types.ViewLayer, coarser: Sequence[bpy.types.Collection]) -> None:
    """Close the eyes of the collections of coarser levels, which lie in the same place as the finest."""
    waiting = [view_layer.layer_collection] if coarser else []
    while waiting:
        layer = waiting.pop()
        layer.hide_viewport |= layer.collection in coarser
        waiting.extend(layer.children)
