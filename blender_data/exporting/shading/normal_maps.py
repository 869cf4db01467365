"""Normal input of a shader -> neutral normal map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bpy

from ....io_formats.core.shading import Channel, NormalMap
from ... import compat
from .node_sources import Socket, source
from .socket_values import SocketValues

_COMBINATIONS = {"COMBINE_COLOR", "COMBRGB", "COMBXYZ"}
_GREEN_UP = ((1.0, -1.0, 1.0), (0.0, 1.0, 0.0))
_AS_COLOR = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
_IDENTITY, _INVERSE = [(0.0, 0.0), (1.0, 1.0)], [(0.0, 1.0), (1.0, 0.0)]


@dataclass
class _Color:
    """The image at the colour input of a Normal Map node, with the changes of its channels."""

    image: Socket | None = None
    is_green_down: bool = False
    has_blue: bool = True


class NormalReader:
    """Reads the normal map of one material."""

    def __init__(self, values: SocketValues) -> None:
        self._values = values

    def read(self, entry: Socket) -> NormalMap | None:
        """Return the normal map at an input, also if a Bump node is between them; None if there is none."""
        found = source(entry)
        while not found.is_value and found.node.type == "BUMP":
            self._values.left_out.add_node(found.node)
            found = source(found.input("Normal"))
        if found.is_value:
            return None
        node = found.node
        if node.type != "NORMAL_MAP" or node.space not in {"TANGENT", "OBJECT"}:
            self._values.left_out.add_node(node)
            return None
        color = self._color(source(found.input("Color")))
        image = self._values.maps.of(color.image, is_data=True) if color.image is not None else None
        if image is None:
            return None
        is_object_space = node.space == "OBJECT"
        is_green_down = (color.is_green_down != compat.is_green_down(node)) and not is_object_space
        strength = self._values.fixed(found.input("Strength"), 1.0, "Strength")
        return NormalMap(image, strength, is_green_down, color.has_blue, is_object_space)

    def _color(self, found: Socket) -> _Color:
        """Return the image of a normal map, and the changes of its channels that imports or artists add as nodes."""
        if found.is_value:
            return _Color()
        node = found.node
        if node.type == "TEX_IMAGE":
            return _Color(found)
        if _constants(found) == _GREEN_UP:
            color = self._color(source(found.input(0)))
            return _Color(color.image, not color.is_green_down, color.has_blue)
        if (flat := _flat_normals(found)) is not None:
            return flat
        if node.type in _COMBINATIONS and (combined := self._combined(found)) is not None:
            return combined
        if node.type == "CURVE_RGB" and _inverts_green(node):
            color = self._color(source(found.input("Color")))
            return _Color(color.image, not color.is_green_down, color.has_blue)
        self._values.left_out.add_node(node)
        linked = [source(found.input(number)) for number, entry in enumerate(node.inputs) if entry.is_linked]
        inner = next((above for above in linked if not above.is_value), None)
        return self._color(inner) if inner is not None else _Color()

    def _combined(self, found: Socket) -> _Color | None:
        """Return the image whose channels a node combines again, possibly with green inverted.

        None for any other node.
        """
        red, green, blue = (self._values.factor(found.input(number)) for number in range(3))
        if red.image is None or green.image != red.image or red.is_inverted:
            return None
        if (red.channel, green.channel) != (Channel.RED, Channel.GREEN):
            return None
        image = _image_before(source(found.input(0)))
        return _Color(image, green.is_inverted, blue.image is not None) if image is not None else None


def _image_before(found: Socket) -> Socket | None:
    """Return the image from which a node separates a channel, or None."""
    for _step in range(10):
        if found.is_value:
            return None
        if found.node.type == "TEX_IMAGE":
            return found
        found = next((source(found.input(n)) for n, entry in enumerate(found.node.inputs) if entry.is_linked), found)
    return None


def _constants(found: Socket) -> tuple[tuple[float, ...], ...] | None:
    """Return multiplier and addend of a vector node that multiplies and adds constants, otherwise None."""
    node = found.node
    if found.is_value or node.type != "VECT_MATH" or node.operation != "MULTIPLY_ADD":
        return None
    entries = [source(found.input(number)) for number in (1, 2)]
    return tuple(entry.numbers() for entry in entries) if all(entry.is_value for entry in entries) else None


def _flat_normals(found: Socket) -> _Color | None:
    """Return the image of a normal map if nodes that an import added compute its third component, otherwise None."""
    if _constants(found) != _AS_COLOR:
        return None
    whole = source(found.input(0))
    if whole.is_value or whole.node.type != "VECT_MATH" or whole.node.operation != "ADD":
        return None
    flat = source(whole.input(0))
    constants = _constants(flat)
    if constants is None or constants[0] not in {(2.0, 2.0, 0.0), (2.0, -2.0, 0.0)}:
        return None
    image = source(flat.input(0))
    is_image = not image.is_value and image.node.type == "TEX_IMAGE"
    return _Color(image, constants[0][1] < 0, has_blue=False) if is_image else None


def _inverts_green(node: bpy.types.Node) -> bool:
    """Return whether an RGB Curves node inverts green and nothing else."""

    def points(curve: Any) -> list[tuple[float, float]]:
        return [(point.location[0], point.location[1]) for point in curve.points]

    curves = [points(curve) for curve in node.mapping.curves]
    return curves[1] == _INVERSE and all(curves[number] == _IDENTITY for number in (0, 2, 3))
