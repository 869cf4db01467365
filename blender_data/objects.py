"""Scene nodes -> objects: names, hierarchy, transforms."""

from __future__ import annotations

import bpy

from ..io_formats.scene import Node, Role
from . import names

_EMPTY_SIZE = 0.25


def build_object(node: Node, data: bpy.types.Mesh | None) -> bpy.types.Object:
    """Make the object of a node, without its parent; its rotation is a quaternion, as in the file."""
    made = bpy.data.objects.new(names.fit(node.name), data)
    try:
        _set_up(made, node)
    except BaseException:
        bpy.data.objects.remove(made)  # nobody else knows of it yet
        raise
    return made


def _set_up(made: bpy.types.Object, node: Node) -> None:
    """Give a new object the name, transform and looks of its node."""
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


def remember_rest(made: bpy.types.Object, node: Node) -> None:
    """Keep a node's rest transform, which its animation overwrites in Blender."""
    kept = made.meshferry
    kept.has_rest = True
    kept.rest_location = node.translation
    kept.rest_rotation = node.rotation
    kept.rest_scale = node.scale
