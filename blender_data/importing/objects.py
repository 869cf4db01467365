"""Nodes of a scene -> objects: names, hierarchy, transforms, armatures, levels of detail, physics shapes."""

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from mathutils import Vector

from ...io_formats.core.scene import Node, Role
from .. import file_records, names
from ..level_objects import LEVEL_PROPERTIES
from ..properties import store_fields

_EMPTY_SIZE = 0.25


def build_object(node: Node, data: bpy.types.Mesh | None, keep: Callable[[bpy.types.ID], Any]) -> bpy.types.Object:
    """Create the object of a node, without its parent; its rotation is a quaternion, as in the file.

    ``keep`` is called with the new object, so that it is removed if the import fails.
    """
    made: bpy.types.Object = keep(bpy.data.objects.new(names.fit(node.name), data))
    names.remember(made, node.name)
    file_records.write_choices(made, node.choices)
    made.rotation_mode = "QUATERNION"
    made.location = node.translation
    made.rotation_quaternion = node.rotation
    made.scale = node.scale
    store_fields(made.meshferry, node)
    if node.file_matrix is not None:
        made.meshferry.file_matrix = " ".join(map(repr, node.file_matrix.reshape(-1).tolist()))
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


def set_role(made: bpy.types.Object, node: Node, of_nodes: Sequence[bpy.types.Object]) -> None:
    """Store the role of a node on its object and, for a coarser level, physics shape or hull, its finest object."""
    kept = made.meshferry
    if node.lod_of is not None:
        kept.lod_of = of_nodes[node.lod_of]
    kept.role = "BASE_HULL" if node.role is Role.HULL and node.is_base_hull else node.role.name
    if node.shape_of is not None:
        kept.shape_of = of_nodes[node.shape_of]


def point_to_parts(nodes: Sequence[Node], of_nodes: Sequence[bpy.types.Object]) -> None:
    """Set the references from the finest object of each model to its coarser levels and physics shape."""
    for node, made in zip(nodes, of_nodes, strict=True):
        finest, shaped = node.lod_of, node.shape_of
        if node.role is Role.RENDER and finest is not None and 0 < node.lod < len(LEVEL_PROPERTIES):
            setattr(of_nodes[finest].meshferry, LEVEL_PROPERTIES[node.lod], made)
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
    has_levels = any(made.meshferry.lod for made in of_nodes if made.meshferry.role == "RENDER")
    parts: dict[str, bpy.types.Collection] = {}
    hidden = []
    for made in sorted(of_nodes, key=lambda made: (made.meshferry.role != "RENDER", made.meshferry.lod)):
        level, is_shape = made.meshferry.lod, made.meshferry.role != "RENDER"
        if not (has_levels or is_shape):
            collection.objects.link(made)
            continue
        label = f"LOD {level_names[level] if level < len(level_names) else level}"
        label = names.fit(f"{collection.name} Physics" if is_shape else label)
        if label not in parts:
            parts[label] = keep(bpy.data.collections.new(label))
            collection.children.link(parts[label])
            parts[label].hide_render = is_shape or level > 0
            hidden += [parts[label]] if parts[label].hide_render else []
        parts[label].objects.link(made)
    return hidden


def hide_levels(view_layer: bpy.types.ViewLayer, hidden: Sequence[bpy.types.Collection]) -> None:
    """Hide these collections of levels of detail and shapes, which overlap the finest level."""
    waiting = [view_layer.layer_collection] if hidden else []
    while waiting:
        layer = waiting.pop()
        layer.hide_viewport |= layer.collection in hidden
        waiting.extend(layer.children)


_GAP = 0.1
"""Gap between two models, relative to the width of the widest."""


def place_side_by_side(models: Sequence[Sequence[bpy.types.Object]]) -> None:
    """Move all models but the first along X, so that their bounding boxes are in a row with gaps.

    The delta location is set, which also works for objects with an animated location.

    Parameters
    ----------
    models:
        The objects of each file, in the order along X; files without new objects are skipped.
    """
    ranges = [(model, found) for model in models if (found := _range(model)) is not None]
    gap = _GAP * max((end - start for _, (start, end) in ranges), default=0.0)
    reached = ranges[0][1][0] - gap if ranges else 0.0
    for model, (start, end) in ranges:
        shift = reached + gap - start
        reached = end + shift
        own = set(model)
        for obj in model:
            if obj.parent not in own:
                obj.delta_location.x += shift


def _range(model: Sequence[bpy.types.Object]) -> tuple[float, float] | None:
    """Return the smallest and largest X of a model's visible bounding boxes, or None if it has no objects.

    Blender does not evaluate hidden objects, so they are used only if no object is visible.
    """
    shown = [obj for obj in model if obj.visible_get()] or model
    places = [
        (obj.matrix_world @ Vector(corner)).x if obj.type != "EMPTY" else obj.matrix_world.translation.x
        for obj in shown
        for corner in obj.bound_box
    ]
    return (min(places), max(places)) if places else None
