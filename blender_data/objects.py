"""Scene nodes -> objects: names, hierarchy, transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy

from ..io_formats.scene import Node, Role
from . import names

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
