"""Scene nodes -> objects: names, hierarchy, transforms, armatures, levels of detail, physics shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy

from ...io_formats.core.scene import Node, Role
from .. import import_choices, names
from ..properties import store_fields

_EMPTY_SIZE = 0.25

_LEVELS = ("medium_level", "low_level", "lowest_level")
"""Properties of the finest object that point to its coarser levels."""


def build_object(node: Node, data: bpy.types.Mesh | None, keep: Callable[[bpy.types.ID], Any]) -> bpy.types.Object:
    """Create the object of a node, without its parent; its rotation is a quaternion, as in the file.

    ``keep`` is called with the new object, so that it is removed if the import fails.
    """
    made: bpy.types.Object = keep(bpy.data.objects.new(names.fit(node.name), data))
    names.remember(made, node.name)
    import_choices.write(made, node.choices)
    made.rotation_mode = "QUATERNION"
    made.location = node.translation
    made.rotation_quaternion = node.rotation
    made.scale = node.scale
    store_fields(made.meshferry, node)
    if made.data is None:
        made.empty_display_type = "ARROWS"
        made.empty_display_size = _EMPTY_SIZE
        made.show_name = True
    if node.role is not Role.RENDER:
        made.display_type = "WIRE"
        made.hide_render = True
    return made


def remember_rest(made: bpy.types.Object, node: Node) -> None:
    """Store a node's rest transform, since its animation changes the object's transform."""
    kept = made.meshferry
    kept.has_rest = True
    kept.rest_location = node.translation
    kept.rest_rotation = node.rotation
    kept.rest_scale = node.scale


def hang_on_armature(made: bpy.types.Object, armature: bpy.types.Object, groups: Sequence[str]) -> None:
    """Parent an object to an armature; with group names, add these vertex groups and an Armature modifier."""
    made.parent = armature
    for name in groups:
        made.vertex_groups.new(name=name)
    if groups:
        made.modifiers.new("Armature", "ARMATURE").object = armature


def set_level(made: bpy.types.Object, node: Node, of_nodes: Sequence[bpy.types.Object]) -> None:
    """Store which object is the finest level of detail of a node."""
    if node.lod_of is not None:
        made.meshferry.lod_of = of_nodes[node.lod_of]


def set_role(made: bpy.types.Object, node: Node, of_nodes: Sequence[bpy.types.Object]) -> None:
    """Store the role of a node, and the model of its physics shape or hull."""
    kept = made.meshferry
    kept.role = "BASE_HULL" if node.role is Role.HULL and node.is_base_hull else node.role.name
    if node.shape_of is not None:
        kept.shape_of = of_nodes[node.shape_of]


def point_to_parts(nodes: Sequence[Node], of_nodes: Sequence[bpy.types.Object]) -> None:
    """Set the references from the finest object of each model to its coarser levels and physics shape."""
    for node, made in zip(nodes, of_nodes, strict=True):
        finest, shaped = node.lod_of, node.shape_of
        if node.role is Role.RENDER and finest is not None and 0 < node.lod <= len(_LEVELS):
            setattr(of_nodes[finest].meshferry, _LEVELS[node.lod - 1], made)
        elif node.role is Role.PHYSICS and shaped is not None:
            of_nodes[shaped].meshferry.physics_object = made


def link_levels(
    collection: bpy.types.Collection,
    armatures: Sequence[bpy.types.Object],
    of_nodes: Sequence[bpy.types.Object],
    keep: Callable[[bpy.types.ID], Any],
    level_names: Sequence[str] = (),
) -> list[bpy.types.Collection]:
    """Link objects to a collection; coarser levels of detail and physics shapes go to collections inside it.

    Parameters
    ----------
    level_names:
        Names of the levels in the file, the finest first; levels without a name use their number.

    Returns
    -------
    list
        The collections of levels and shapes that overlap the finest level.
    """
    for armature in armatures:
        collection.objects.link(armature)
    shown = [made for made in of_nodes if made.meshferry.role == "RENDER"]
    hidden = _link_levels(collection, shown, keep, level_names)
    shapes = [made for made in of_nodes if made.meshferry.role != "RENDER"]
    if shapes:
        part: bpy.types.Collection = keep(bpy.data.collections.new(names.fit(f"{collection.name} Physics")))
        collection.children.link(part)
        for made in shapes:
            part.objects.link(made)
        hidden.append(part)
    for part in hidden:
        part.hide_render = True
    return hidden


def _link_levels(
    collection: bpy.types.Collection,
    shown: Sequence[bpy.types.Object],
    keep: Callable[[bpy.types.ID], Any],
    level_names: Sequence[str],
) -> list[bpy.types.Collection]:
    levels = sorted({made.meshferry.lod for made in shown})
    if not levels or levels[-1] == 0:
        for made in shown:
            collection.objects.link(made)
        return []
    coarser = []
    for level in levels:
        label = f"LOD {level_names[level]}" if level < len(level_names) else f"LOD {level}"
        part: bpy.types.Collection = keep(bpy.data.collections.new(label))
        collection.children.link(part)
        for made in shown:
            if made.meshferry.lod == level:
                part.objects.link(made)
        if level:
            coarser.append(part)
    return coarser


def hide_levels(view_layer: bpy.types.ViewLayer, hidden: Sequence[bpy.types.Collection]) -> None:
    """Hide these collections of levels of detail and shapes, which overlap the finest level."""
    waiting = [view_layer.layer_collection] if hidden else []
    while waiting:
        layer = waiting.pop()
        layer.hide_viewport |= layer.collection in hidden
        waiting.extend(layer.children)
