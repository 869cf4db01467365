"""Temporary plain materials, which show pictures and values as a baked material does."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np

from ....io_formats.core.shading import Pixels, Texture
from ....io_formats.encodings import image_files
from ..reading.material_reading import OCCLUSION_GROUP
from .baked_pictures import packed, pictures_of
from .cycles_bakes import Baked, Blocks
from .surface_shaders import Map, SurfaceShaders

Textures = dict[bpy.types.Image, Texture]


class PlainMaterial:
    """A temporary material with packed pictures.

    Parameters
    ----------
    material:
        The baked material, of which everything but the nodes is copied.
    blocks:
        The data blocks of the material are added to these.
    """

    def __init__(self, material: bpy.types.Material, name: str, blocks: Blocks) -> None:
        self.material: bpy.types.Material = material.copy()
        blocks.append(self.material)
        self.name = name
        self.textures: Textures = {}
        self._blocks = blocks
        self._vector: Any = None
        self._tree: Any = self.material.node_tree
        for animated in (self.material, self._tree):
            animated.animation_data_clear()
        self._tree.nodes.clear()

    def lay_out(self, uv_map: str, mapping: Any) -> None:
        """Let the pictures lie on a UV map, repeated by a copy of a Mapping node unless it is None."""
        node = self._node("UVMap")
        node.uv_map, self._vector = uv_map, node.outputs[0]
        if mapping is not None:
            node = self._node("Mapping", Vector=self._vector)
            self._vector, node.vector_type = node.outputs[0], mapping.vector_type
            _take_values(mapping, node)

    def show(self, maps: dict[Map, Baked], shaders: SurfaceShaders, *, is_clipped: bool) -> None:
        """Show baked maps, and the values of those that were not baked.

        With ``is_clipped``, a comparison cuts out the transparent parts.
        """
        values = {name: value for kind in Map for name, value in (shaders.constants(kind) or {}).items()}
        pictures = pictures_of(maps, values)
        given: dict[str, Any] = dict(values)
        if pictures.keys() & {"Base Color", "Alpha"}:
            names = ("Base Color", "Alpha") if "Alpha" in pictures else ("Base Color",)
            image = self._image("base", packed(pictures, values, *names), is_color=True)
            given |= dict(zip(names, image.outputs, strict=False))
        if "Alpha" in pictures and is_clipped:
            test = self._node("Math", Value=given["Alpha"])
            test.operation, test.inputs[1].default_value, given["Alpha"] = "GREATER_THAN", 0.5, test.outputs[0]
        roles = ("Occlusion", "Roughness", "Metallic")
        if pictures.keys() & {*roles}:
            image = self._image("surface", packed(pictures, values, *roles), is_color=False)
            separate = self._node("SeparateColor", Color=image.outputs[0])
            given |= {name: out for name, out in zip(roles, separate.outputs, strict=True) if name in pictures}
        for name in pictures.keys() & {"Emission Color", "Specular IOR Level", "Normal"}:
            image = self._image(name.split()[0].lower(), packed(pictures, values, name), is_color=name[0] == "E")
            given[name] = image.outputs[0]
        if "Normal" in pictures:
            given["Normal"] = self._node("NormalMap", Color=given["Normal"]).outputs[0]
        self._node("OutputMaterial", Surface=self._shader(shaders, given).outputs[0])

    def _shader(self, shaders: SurfaceShaders, given: dict[str, Any]) -> Any:
        """Add a Principled BSDF with these inputs; an Emission node if the material only emits light."""
        if shaders.is_emission:
            shader = self._node("Emission", Color=given["Emission Color"], Strength=given["Emission Strength"])
            if given.get("Alpha", (1.0,)) == (1.0,):
                return shader
            mix = self._node("MixShader", Fac=given["Alpha"])
            for entry, made in zip(list(mix.inputs)[1:], (self._node("BsdfTransparent"), shader), strict=True):
                self._put(made.outputs[0], entry)
            return mix
        shader = self._node("BsdfPrincipled")
        if len(shaders.shaders) == 1 and shaders.shaders[0].node.type == "BSDF_PRINCIPLED":
            _take_values(shaders.shaders[0].node, shader)
        if isinstance(given.get("Occlusion"), bpy.types.NodeSocket):
            group = bpy.data.node_groups.new(OCCLUSION_GROUP, "ShaderNodeTree")
            self._blocks.append(group)
            group.interface.new_socket("Occlusion", in_out="INPUT", socket_type="NodeSocketFloat")
            node = self._node("Group")
            node.node_tree = group
            self._put(given["Occlusion"], node.inputs[0])
        for name in given.keys() & set(shader.inputs.keys()):
            self._put(given[name], shader.inputs[name])
        return shader

    def _node(self, kind: str, **inputs: Any) -> Any:
        made = self._tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            self._put(value, made.inputs[name])
        return made

    def _put(self, value: Any, entry: Any) -> None:
        if isinstance(value, bpy.types.NodeSocket):
            self._tree.links.new(value, entry)
        elif value is not None:
            entry.default_value = (*value, 1.0)[: len(entry.default_value)] if entry.type != "VALUE" else value[0]

    def _image(self, suffix: str, pixels: Pixels, *, is_color: bool) -> Any:
        """Return an image node with a packed picture."""
        pixels = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
        data = image_files.encode_png(pixels)
        image = bpy.data.images.new(f"{self.name}_{suffix}", 1, 1, is_data=not is_color)
        self._blocks.append(image)
        image.source, image.filepath_raw = "FILE", f"//{self.name}.png"
        image.pack(data=data, data_len=len(data))
        image.colorspace_settings.name = "sRGB" if is_color else "Non-Color"
        image.alpha_mode = "CHANNEL_PACKED"
        height, width = pixels.shape[:2]
        rgba = np.pad(pixels, ((0, 0), (0, 0), (0, 4 - pixels.shape[2])), constant_values=255)
        self.textures[image] = Texture(
            f"{self.name}.png",
            width=width,
            height=height,
            source=image.name_full,
            read=lambda: data,
            pixels=lambda: rgba,
        )
        node = self._node("TexImage", Vector=self._vector)
        node.image = image
        return node


def _take_values(source: Any, node: Any) -> None:
    """Copy the values of the unlinked inputs of a node to another one of the same type."""
    for entry in source.inputs:
        if not entry.is_linked and entry.name in node.inputs and hasattr(entry, "default_value"):
            node.inputs[entry.name].default_value = entry.default_value
