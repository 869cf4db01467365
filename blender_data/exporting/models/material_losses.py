"""Parts of materials that neither the diffuse picture nor the glTF material of an upload set can hold."""

from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.capabilities import Capabilities
from ....io_formats.core.messages import Named, Report, Text
from ....io_formats.core.scene import Material
from ....io_formats.core.shading import Channel, Factor, Opacity, Projection, Shading, Texture, Tint
from ... import arrays
from ...export_options import ExportOptions
from ..reading.image_maps import ImageReader, SurfaceLayers
from ..reading.material_reading import COLOR_INPUTS, images_of, read_material, shader_of
from ..reading.shader_nodes import LeftOut
from ..reading.shading_reading import shading_of
from .gltf_export import EXTENSIONS, needs_gltf, nodes_left_out

_WHITE = (1.0, 1.0, 1.0)
_SAME = 1e-4
"""Tolerance for colours and alpha values that count as equal."""


def layers_of(material: bpy.types.Material, uvs: tuple[str, ...], objects: Sequence[bpy.types.Object]) -> SurfaceLayers:
    """Return the layers of the objects with a material; ``uvs`` are the exported UV maps, the shown one first."""
    return SurfaceLayers(uvs, "".join(uvs[:1]), lambda attribute: _same_color(material, objects, attribute))


def _same_color(
    material: bpy.types.Material, objects: Sequence[bpy.types.Object], name: str
) -> tuple[float, ...] | None:
    """Return the value of a colour attribute that is the same on all faces of the objects with a material."""
    found: set[tuple[float, ...]] = set()
    for obj in (one for one in objects if any(slot.material == material for slot in one.material_slots)):
        layers = obj.data.color_attributes if isinstance(obj.data, bpy.types.Mesh) else ()
        layer = layers.get(name or layers.default_color_name) if layers else None
        if layer is None or not len(layer.data):
            return None
        values = arrays.read(layer.data, "color", 4)
        if np.ptp(values, axis=0).max() > _SAME:
            return None
        found.add(tuple(values[0].tolist()))
    return found.pop() if len(found) == 1 else None


def losses(
    material: bpy.types.Material, layers: SurfaceLayers, options: ExportOptions, can: Capabilities
) -> tuple[Shading, LeftOut]:
    """Return the shading of a material, and what files cannot hold of it.

    An upload set has a diffuse colour and picture. If it has a glTF material, too, the report of that names the
    settings that glTF stores in extensions.
    """
    shading, left_out = shading_of(material, ImageReader(Report()), layers)
    if not can.gltf_materials:
        return shading, left_out
    diffuse = diffuse_of(shading)
    left_out.mappings += _losses(shading, diffuse)
    plain = read_material(material, Report(), lambda image, _report: Texture(image.name))
    if not _is_alpha_held(shading, diffuse, plain):
        left_out.mappings.append(Text("its transparency"))
    if shading.occlusion is not None:
        shader: Any = shader_of(material.node_tree)
        if len(set(images_of(shader.inputs[COLOR_INPUTS[shader.type]]))) > (diffuse.image is not None):
            left_out.mappings.append(Text("a product with ambient occlusion"))
    if shading.opacity is Opacity.ADD:
        left_out.settings.append(Text("additive blending"))
    if options.use_pbr_materials and needs_gltf(material):
        left_out.nodes.update(nodes_left_out(material))
        left_out.settings = [word for word in left_out.settings if word not in EXTENSIONS.values()]
    elif shading.specular.image is not None or shading.specular_tint.image is not None:
        left_out.settings.append(Text("specular"))
    return shading, left_out


def diffuse_of(shading: Shading) -> Tint:
    """Return the colour of the diffuse picture: that of a material that only emits light, otherwise the base colour."""
    is_black = shading.base_color.image is None and not any(shading.base_color.value)
    return shading.emission if is_black and shading.emission is not None else shading.base_color


def _losses(shading: Shading, diffuse: Tint) -> list[str]:
    """Return what the diffuse picture and glTF cannot hold of a shading."""
    lost: list[str] = []
    if diffuse.image is not None and np.abs(np.subtract(diffuse.value, _WHITE)).max() > _SAME:
        name = Named("image", diffuse.image.texture.name)
        lost.append(Text("the colour that multiplies the image '{}'", name))
    emission = shading.emission or Tint()
    if any(tint.uses_vertex_color for tint in (shading.base_color, emission)):
        lost.append(Text("a colour attribute"))
    images = (diffuse.image, emission.image, shading.metallic.image, shading.roughness.image, shading.alpha.image)
    normal = shading.normal.image if shading.normal is not None else None
    if any(image is not None and image.mapping.projection is not Projection.UV for image in (*images, normal)):
        lost.append(Text("projected images"))
    return lost


def _is_alpha_held(shading: Shading, diffuse: Tint, plain: Material) -> bool:
    """Return whether a diffuse picture or colour holds the alpha of a shading; a picture replaces the colour."""
    alpha = shading.alpha
    if shading.opacity is Opacity.ADD:
        return True
    if alpha.image is None:
        opacity = plain.color[3] if plain.texture is None else 1.0
        return abs(alpha.value - opacity) <= _SAME
    is_own = plain.texture is not None and alpha.image == diffuse.image
    return is_own and alpha == Factor(1.0, alpha.image, Channel.ALPHA) and shading.alpha_power == 1.0
