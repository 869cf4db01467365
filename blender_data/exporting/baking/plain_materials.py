"""Temporary plain materials, which show pictures and values as a baked material does."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np

from ....io_formats.core.shading import Opacity, Pixels, Shading, Texture
from ....io_formats.encodings import image_files
from ..reading.material_reading import OCCLUSION_GROUP
from .baked_pictures import Look
from .surface_shaders import INPUTS, SurfaceShaders


class PlainMaterial:
    """A temporary material with packed pictures.

    Parameters
    ----------
    material:
        The baked material, of which everything but the nodes is copied.
    uv_map:
        Name of the UV map on which the pictures lie; empty for the one that is marked for rendering.
    mapping:
        Mapping node that repeats the pictures, or None.
    """

    def __init__(
        self, material: bpy.types.Material, name: str, look: Look, shading: Shading, *, uv_map: str, mapping: Any
    ) -> None:
        self.material: bpy.types.Material = material.copy()
        self.blocks: list[Any] = [self.material]
        self.textures: dict[bpy.types.Image, Texture] = {}
        self.material.animation_data_clear()
        self.name = name
        self._look = look
        self._shading = shading
        self._tree = self.material.node_tree
        self._principled = _copied_values(material)
        self._tree.animation_data_clear()
        self._tree.nodes.clear()
        self._vector = self._coordinates(uv_map, mapping)
        self._build()

    def _node(self, kind: str, **inputs: Any) -> Any:
        made = self._tree.nodes.new(f"ShaderNode{kind}")
        for name, value in inputs.items():
            self._put(value, made.inputs[name.replace("_", " ")])
        return made

    def _put(self, value: Any, entry: Any) -> None:
        if isinstance(value, bpy.types.NodeSocket):
            self._tree.links.new(value, entry)
        elif value is not None:
            entry.default_value = value if hasattr(entry.default_value, "__len__") else value[0]

    def _coordinates(self, uv_map: str, mapping: Any) -> Any:
        """Return the output with the coordinates of the pictures, or None for plain ones."""
        if not uv_map and mapping is None:
            return None
        node = self._node("UVMap")
        node.uv_map = uv_map
        if mapping is None:
            return node.outputs[0]
        made = self._node("Mapping", Vector=node.outputs[0])
        made.vector_type = mapping.vector_type
        for name in ("Location", "Rotation", "Scale"):
            if name in mapping.inputs and name in made.inputs:
                made.inputs[name].default_value = mapping.inputs[name].default_value
        return made.outputs[0]

    def _image(self, suffix: str, pixels: Pixels, *, is_color: bool) -> Any:
        """Return an image node with a packed picture."""
        data = image_files.encode_png(pixels)
        image = bpy.data.images.new(f"{self.name}_{suffix}", 1, 1, is_data=not is_color)
        self.blocks.append(image)
        image.source = "FILE"
        image.filepath_raw = f"//{self.name}.png"
        image.pack(data=data, data_len=len(data))
        image.colorspace_settings.name = "sRGB" if is_color else "Non-Color"
        image.alpha_mode = "CHANNEL_PACKED"
        height, width = pixels.shape[:2]
        self.textures[image] = Texture(
            f"{self.name}.png", width=width, height=height, source=image.name_full, read=lambda: data,
            pixels=lambda: _with_alpha(pixels),
        )  # fmt: skip
        node = self._node("TexImage", Vector=self._vector)
        node.image = image
        return node

    def _build(self) -> None:
        look, values = self._look, self._look.values
        base = self._image("base", look.base, is_color=True) if look.base is not None else None
        alpha = base.outputs["Alpha"] if base is not None and look.has_alpha else values.get("alpha")
        if self._shading.opacity is Opacity.CLIP and isinstance(alpha, bpy.types.NodeSocket):
            test = self._tree.nodes.new("ShaderNodeMath")
            test.operation = "GREATER_THAN"
            self._put(alpha, test.inputs[0])
            test.inputs[1].default_value = 0.5
            alpha = test.outputs[0]
        emission: Any = values.get("emission")
        if look.emission is not None:
            emission = self._image("emission", look.emission, is_color=True).outputs["Color"]
        strength = values.get("strength", (look.strength,))
        output = self._node("OutputMaterial")
        if look.is_emission:
            shader = self._node("Emission", Color=emission, Strength=strength).outputs[0]
            if alpha is not None and alpha != (1.0,):
                mix = self._tree.nodes.new("ShaderNodeMixShader")
                self._put(alpha, mix.inputs[0])
                self._put(self._node("BsdfTransparent").outputs[0], mix.inputs[1])
                self._put(shader, mix.inputs[2])
                shader = mix.outputs[0]
            self._put(shader, output.inputs["Surface"])
            return
        shader = self._tree.nodes.new("ShaderNodeBsdfPrincipled")
        for name, value in self._principled.items():
            if name in shader.inputs:
                shader.inputs[name].default_value = value
        color = base.outputs["Color"] if base is not None else values.get("color")
        given = {"Base Color": color, "Alpha": alpha, "Emission Color": emission, "Emission Strength": strength}
        given |= {"Roughness": values.get("roughness"), "Metallic": values.get("metallic")}
        given["Specular IOR Level"] = values.get("specular")
        if look.specular is not None:
            given["Specular IOR Level"] = self._image("specular", look.specular, is_color=False).outputs["Color"]
        if look.normal is not None:
            normal = self._image("normal", look.normal, is_color=False)
            given["Normal"] = self._node("NormalMap", Color=normal.outputs["Color"]).outputs[0]
        given |= self._surface(look) if look.surface is not None else {}
        for name, value in given.items():
            self._put(value, shader.inputs[name])
        self._put(shader.outputs[0], output.inputs["Surface"])

    def _surface(self, look: Look) -> dict[str, Any]:
        """Add the picture of occlusion, roughness and metal; return the outputs for the shader's inputs."""
        separate = self._tree.nodes.new("ShaderNodeSeparateColor")
        self._put(self._image("surface", look.surface, is_color=False).outputs["Color"], separate.inputs[0])
        if look.has_occlusion:
            group = bpy.data.node_groups.new(OCCLUSION_GROUP, "ShaderNodeTree")
            self.blocks.append(group)
            group.interface.new_socket("Occlusion", in_out="INPUT", socket_type="NodeSocketFloat")
            node = self._tree.nodes.new("ShaderNodeGroup")
            node.node_tree = group
            self._put(separate.outputs[0], node.inputs["Occlusion"])
        keys = {"Roughness": ("roughness", 1), "Metallic": ("metallic", 2)}
        return {name: separate.outputs[number] for name, (key, number) in keys.items() if key not in look.values}

    def remove(self) -> None:
        """Remove the material and its pictures."""
        bpy.data.batch_remove(self.blocks)


def _with_alpha(pixels: Pixels) -> Pixels:
    if pixels.shape[2] == 4:
        return pixels
    return np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)])


def _copied_values(material: bpy.types.Material) -> dict[str, Any]:
    """Return the values of the unlinked inputs of a material's only Principled BSDF, such as coat and IOR."""
    shaders = [one for one in SurfaceShaders(material.node_tree).shaders if one.node.type in INPUTS]
    if len(shaders) != 1 or shaders[0].node.type != "BSDF_PRINCIPLED":
        return {}
    found = {}
    for entry in shaders[0].node.inputs:
        if not entry.is_linked and hasattr(entry, "default_value") and entry.name != "Normal":
            value = entry.default_value
            found[entry.name] = tuple(value) if hasattr(value, "__len__") else value
    return found
