"""Copies of a material in which Emission nodes in place of the shaders show the values of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import bpy

from ....io_formats.core.messages import Text
from ..reading.material_reading import occlusion_inputs
from ..reading.shader_nodes import output_of
from .surface_shaders import BLACK, INPUTS


class Map(Enum):
    """The values that one bake gives."""

    COLOR = Text("colour")
    SURFACE = Text("roughness and metal")
    """Occlusion, roughness and metal."""
    COVERAGE = Text("transparency")
    """Alpha, specular, and the part of the surface that has a colour."""
    EMISSION = Text("emission")
    NORMAL = Text("normals")


Remove = Callable[[Any], None]


class EmissionCopy:
    """A copy of a material for one bake, with copies of its groups and without animation data.

    The copy shares no nodes with the original, since an evaluation of the temporary scene would write animated values
    into the user's nodes.
    """

    def __init__(
        self, material: bpy.types.Material, kind: Map, target: bpy.types.Image, *, mutes_mapping: bool
    ) -> None:
        self.material = material.copy()
        self.blocks: list[Any] = [self.material]
        self._kind = kind
        self._mutes_mapping = mutes_mapping
        self._groups: dict[Any, Any] = {}
        self.material.animation_data_clear()
        tree = self.material.node_tree
        output = output_of(tree)
        for node in [node for node in tree.nodes if node.type == "OUTPUT_MATERIAL" and node != output]:
            tree.nodes.remove(node)
        output.target = "ALL"
        for name in ("Displacement", "Volume"):
            for link in list(output.inputs[name].links):
                tree.links.remove(link)
        links: list[Any] = [link for socket in occlusion_inputs(tree) for link in socket.links or ()]
        self._change(tree, links[0].from_socket if links else None)
        node = tree.nodes.new("ShaderNodeTexImage")
        node.image = target
        for other in tree.nodes:
            other.select = False
        node.select, tree.nodes.active = True, node

    def _change(self, tree: bpy.types.NodeTree, occlusion: Any) -> None:
        """Replace the shaders of a tree, and its groups by changed copies."""
        tree.animation_data_clear()
        for node in list(tree.nodes):
            if node.type == "GROUP" and node.node_tree is not None:
                if node.node_tree not in self._groups:
                    copy = self._groups[node.node_tree] = node.node_tree.copy()
                    self.blocks.append(copy)
                    self._change(copy, None)
                node.node_tree = self._groups[node.node_tree]
            elif node.type == "TEX_COORD" and node.object is not None:
                empty = bpy.data.objects.new("meshferry bake", None)
                self.blocks.append(empty)
                empty.matrix_world = node.object.matrix_world
                node.object = empty
            elif node.type == "MAPPING" and self._mutes_mapping:
                node.mute = True
            elif node.type in INPUTS and not node.mute:
                self._replace(tree, node, occlusion)

    def _replace(self, tree: bpy.types.NodeTree, node: Any, occlusion: Any) -> None:
        targets = [link.to_socket for link in node.outputs[0].links]
        given = INPUTS[node.type]
        is_surface = "color" in given
        if self._kind is Map.NORMAL and is_surface:
            made = tree.nodes.new("ShaderNodeBsdfDiffuse")
            made.inputs["Color"].default_value = (1.0, 1.0, 1.0, 1.0)
            _feed(tree, node, given["normal"], made.inputs["Normal"], is_normal=True)
        else:
            made = tree.nodes.new("ShaderNodeEmission")
            made.inputs["Color"].default_value = BLACK
            made.inputs["Strength"].default_value = 1.0
            if self._kind is Map.COLOR and is_surface:
                _feed(tree, node, given["color"], made.inputs["Color"])
            elif self._kind is Map.EMISSION and "emission" in given:
                _feed(tree, node, given["emission"], made.inputs["Color"])
                _feed(tree, node, given["strength"], made.inputs["Strength"])
            elif self._kind is Map.SURFACE and is_surface:
                self._combine(tree, node, made, (occlusion or 1.0, given["roughness"], given["metallic"]))
            elif self._kind is Map.COVERAGE and "alpha" in given:
                self._combine(tree, node, made, (given["alpha"], given.get("specular", 0.0), float(is_surface)))
        for target in targets:
            tree.links.new(made.outputs[0], target)
        tree.nodes.remove(node)

    @staticmethod
    def _combine(tree: bpy.types.NodeTree, node: Any, made: Any, values: tuple[Any, Any, Any]) -> None:
        combined = tree.nodes.new("ShaderNodeCombineXYZ")
        for entry, value in zip(combined.inputs, values, strict=True):
            _feed(tree, node, value, entry)
        tree.links.new(combined.outputs[0], made.inputs["Color"])

    def remove(self) -> None:
        """Remove the copies."""
        bpy.data.batch_remove(self.blocks)


def _feed(tree: bpy.types.NodeTree, node: Any, given: Any, target: Any, *, is_normal: bool = False) -> None:
    """Give an input the value or the link of the input ``given`` of a node; other values are constants or outputs."""
    if isinstance(given, bpy.types.NodeSocket):
        tree.links.new(given, target)
        return
    if not isinstance(given, str):
        target.default_value = given
        return
    entry = node.inputs[given]
    links = [link for link in entry.links if link.is_valid and not link.is_muted]
    if links:
        tree.links.new(links[0].from_socket, target)
    elif not is_normal:
        target.default_value = entry.default_value
