"""Normal maps whose green points down -> normal maps with green up, which other programs expect in files.

The functions change the open .blend file, so they are only used if it is not saved afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import bpy
import numpy as np

from .. import compat

_GREEN = 1


def turn_green_up(objects: Iterable[bpy.types.Object]) -> None:
    """Replace normal maps of objects whose green is inverted by nodes of an import by images with green up."""
    materials = {slot.material for obj in objects for slot in obj.material_slots if slot.material is not None}
    inverted: dict[bpy.types.Image, bpy.types.Image] = {}
    for material in materials:
        tree = compat.node_tree(material)
        for node in list(tree.nodes) if tree is not None and material.library is None else ():
            if node.type == "NORMAL_MAP" and (source := _image_node(node)) is not None:
                if source.image not in inverted:
                    inverted[source.image] = _with_inverted_green(source.image)
                source.image = inverted[source.image]
                tree.links.new(source.outputs["Color"], node.inputs["Color"])
                compat.set_green_up(node)


def _image_node(normal_map: Any) -> Any:
    """Return the image node before a Normal Map node if nodes between them invert green, otherwise None."""
    links = normal_map.inputs["Color"].links
    node = links[0].from_node if links else None
    if node is not None and not compat.is_green_down(normal_map):
        node = _source_of_inversion(node)
    is_image = node is not None and node.type == "TEX_IMAGE" and node.image is not None
    is_shared = is_image and sum(len(socket.links) for socket in node.outputs) > 1
    return node if is_image and not is_shared else None


def _source_of_inversion(node: Any) -> Any:
    """Return the socket whose value a vector node inverts by computing 1 - green; None for any other node."""
    if node.type != "VECT_MATH" or node.operation != "MULTIPLY_ADD" or not node.inputs[0].is_linked:
        return None
    factors = [tuple(socket.default_value) for socket in node.inputs[1:3]]
    return node.inputs[0].links[0].from_node if factors == [(1.0, -1.0, 1.0), (0.0, 1.0, 0.0)] else None


def _with_inverted_green(image: bpy.types.Image) -> bpy.types.Image:
    """Return a packed copy of an image with inverted green."""
    width, height = (int(side) for side in image.size)
    pixels = np.empty((width * height, image.channels), np.float32)
    image.pixels.foreach_get(pixels.reshape(-1))
    if image.channels > _GREEN:
        pixels[:, _GREEN] = 1.0 - pixels[:, _GREEN]
    name = image.name
    if image.library is None:
        image.name = f"{name} (green down)"
    made = bpy.data.images.new(name, width, height, alpha=image.channels == 4, is_data=True)
    made.pixels.foreach_set(pixels.reshape(-1))
    made.pack()
    name = made.name if made.name.lower().endswith(".png") else f"{made.name}.png"
    made.filepath_raw = f"//{name}"  # exporters treat images with equal paths as the same image
    return made
