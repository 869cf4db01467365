"""Checksums of materials, by which an export finds those that were changed since their import."""

from __future__ import annotations

import zlib
from typing import Any

import bpy

from . import compat


def material_checksum(material: bpy.types.Material) -> str:
    """Return a checksum of the nodes of a material with their values, images and links, and of its settings."""
    parts: list[Any] = [material.surface_render_method, material.use_backface_culling]
    tree = compat.node_tree(material)
    for node in tree.nodes if tree is not None else ():
        image = getattr(node, "image", None)
        parts += [node.bl_idname, node.name, node.mute, image.name if image is not None else ""]
        parts += [None if socket.is_linked else _value(socket) for socket in node.inputs]
    for link in tree.links if tree is not None else ():
        parts.append((link.from_socket.identifier, link.to_node.name))
    return str(zlib.crc32(repr(parts).encode()))


def _value(socket: bpy.types.NodeSocket) -> Any:
    value = getattr(socket, "default_value", None)
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else value


def is_changed(material: bpy.types.Material) -> bool:
    """Return whether an imported material was changed since; False if its original checksum is not known."""
    known = material.meshferry.fingerprint
    return bool(known) and known != material_checksum(material)
