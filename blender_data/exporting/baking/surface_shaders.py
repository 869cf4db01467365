"""The shaders of a material, the values of their inputs, and what these depend on."""

import os
from collections.abc import Container
from enum import Enum
from typing import Any

import bpy

from ....io_formats.core.messages import Report, Text
from ....io_formats.core.shading import Extension, Mapping
from ..reading.image_maps import ImageMaps, ImageReader, SurfaceLayers
from ..reading.material_reading import image_path, occlusion_inputs
from ..reading.shader_nodes import LeftOut, Socket, output_of, source, sources

Numbers = tuple[float, ...]


class Map(Enum):
    """The values that one bake gives."""

    COVERAGE = Text("transparency")
    """Alpha, specular, and the part of the surface that has a colour."""
    COLOR = Text("colour")
    SURFACE = Text("roughness and metal")
    EMISSION = Text("emission")
    NORMAL = Text("normals")


_NO_LIGHT = ((0.0, 0.0, 0.0, 1.0), 0.0)
_ROWS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "BSDF_PRINCIPLED": (
        ("Alpha", "Specular IOR Level", 1.0), ("Base Color",), (1.0, "Roughness", "Metallic"),
        ("Emission Color", "Emission Strength"), ("Normal",),
    ),
    "BSDF_DIFFUSE": ((1.0, 0.0, 1.0), ("Color",), (1.0, 1.0, 0.0), _NO_LIGHT, ("Normal",)),
    "BSDF_GLOSSY": ((1.0, 0.5, 1.0), ("Color",), (1.0, "Roughness", 1.0), _NO_LIGHT, ("Normal",)),
    "EMISSION": ((1.0, 0.0, 0.0), (), (), ("Color", "Strength"), ()),
    "BSDF_TRANSPARENT": ((0.0, 0.0, 0.0), (), (), (), ()),
}  # fmt: skip
INPUTS = {kind: dict(zip(Map, rows, strict=True)) for kind, rows in _ROWS.items()}
"""For each type of shader that can be baked, the values of each map: constants and names of inputs; empty for none."""
PRINCIPLED = INPUTS["BSDF_PRINCIPLED"]

_PURE = frozenset(
    {
        *("RGB", "VALUE", "MATH", "VECT_MATH", "MIX", "MIX_RGB", "VALTORGB", "HUE_SAT", "BRIGHTCONTRAST", "GAMMA"),
        *("INVERT", "CURVE_RGB", "CURVE_VEC", "CURVE_FLOAT", "CLAMP", "MAP_RANGE", "SEPARATE_COLOR", "COMBINE_COLOR"),
        *("SEPXYZ", "COMBXYZ", "SEPRGB", "COMBRGB", "SEPHSV", "COMBHSV", "RGBTOBW", "MAPPING", "VECTOR_ROTATE"),
        *("BLACKBODY", "WAVELENGTH", "BUMP", "MIX_SHADER", "ADD_SHADER", *INPUTS),
    }
)
"""Types of nodes whose outputs depend on nothing but their inputs."""
_UV_NAMES = {"UVMAP": "uv_map", "NORMAL_MAP": "uv_map", "ATTRIBUTE": "attribute_name"}
_VIEW_DEPENDENT = frozenset({"LAYER_WEIGHT", "FRESNEL", "CAMERA", "LIGHT_PATH", "SHADERTORGB"})
_COORDINATES = {"TEX_COORD", "MAPPING", "UVMAP", "ATTRIBUTE"}
_DARK = ((0.0, 0.0, 0.0, 1.0), (0.0,))
"""Colour and strength of a shader that emits no light."""


class SurfaceShaders:
    """The shaders between a material and its output.

    Parameters
    ----------
    tree:
        Nodes of the material.
    without:
        The maps that files cannot hold.
    """

    def __init__(self, tree: bpy.types.NodeTree, without: Container[Map] = ()) -> None:
        output = output_of(tree)
        self.reached = list(sources(Socket(output.inputs["Surface"]))) if output is not None else []
        """The outputs that the surface depends on, one for each node."""
        found = [one for one in self.reached if one.socket.type == "SHADER"]
        shaders = [one for one in found if one.node.type not in {"MIX_SHADER", "ADD_SHADER"}]
        has_occlusion = any(socket.is_linked for socket in occlusion_inputs(tree))
        kinds = {one.node.type for one in shaders} - {"BSDF_TRANSPARENT"}
        is_known = bool(kinds) and kinds <= INPUTS.keys() and not has_occlusion
        needed: list[Map] = []
        self.values: dict[str, Any] = {}
        """The values of all other maps, by the inputs of a Principled BSDF."""
        for kind in Map if is_known else ():
            rows = {_values(one, kind) for one in shaders if INPUTS[one.node.type][kind]}
            is_added = kind is Map.COVERAGE and any(one.node.type == "ADD_SHADER" for one in found)
            if is_added or len(rows) > 1 or any(None in row for row in rows):
                needed.append(kind)
            else:
                self.values |= {name: value for row in rows for name, value in zip(PRINCIPLED[kind], row, strict=True)}
        self.maps = [kind for kind in needed if kind not in without]
        """The maps that have to be baked."""
        self.can_bake = is_known and bool(self.maps or not needed)
        """Whether all shaders can be baked, and files hold something of that."""
        self.samples = 64 if any(one.node.type in {"AMBIENT_OCCLUSION", "BEVEL"} for one in self.reached) else 1
        """Samples for each pixel: one, in its middle, unless nodes cast rays."""

    def missing_image(self) -> str:
        """Return the name of an image that is missing or in tiles, which cannot be baked, or an empty text."""
        for node in (one.node for one in self.reached if one.node.type in {"TEX_IMAGE", "TEX_ENVIRONMENT"}):
            image = node.image
            if image is None or image.source == "TILED" or not (all(image.size) or os.path.isfile(image_path(image))):
                return image.name if image is not None else node.name
        return ""

    def unsteady(self, *, is_modified: bool) -> list[Text]:
        """Return the labels of nodes that give other values in a bake than in Blender.

        ``is_modified`` is whether modifiers may change the generated coordinates of the mesh.
        """
        outputs = {"OBJECT_INFO": {"Random"}, "TEX_COORD": {"Window", *(("Generated",) if is_modified else ())}}
        labels = (
            one.node.bl_label
            for one in self.reached
            if one.node.type in _VIEW_DEPENDENT
            or getattr(one.node, "attribute_type", "") == "VIEW_LAYER"
            or _linked_outputs(one.node) & outputs.get(one.node.type, set())
            or (is_modified and _is_procedural(one.node) and not _has_vector(one))
        )
        return [Text(label) for label in dict.fromkeys(labels)]

    def is_flat(self, layers: SurfaceLayers) -> bool:
        """Return whether all values depend only on the first UV map, on which the pictures lie."""
        return all(_is_flat(one, "".join(layers.uvs[:1]), layers.shown_uv) for one in self.reached)

    def tiling(self, layers: SurfaceLayers) -> tuple[Mapping, tuple[int, int]] | None:
        """Return the mapping that all images share, and the size of the largest one.

        None if flat values may differ between the tiles of the UV map.
        """
        images, left_out = [one for one in self.reached if one.node.type == "TEX_IMAGE"], LeftOut()
        maps = ImageMaps(ImageReader(Report()), layers, left_out)
        found = {(one.mapping, one.extension) if one is not None else None for one in map(maps.of, images)}
        shared = found.pop() if found else (Mapping(), Extension.REPEAT)
        others = [one for one in self.reached if one.node.type not in {"TEX_IMAGE", "MAPPING"}]
        used = {source(one.input(n)).node.type for one in others for n, _entry in enumerate(one.node.inputs)}
        is_mixed = bool(found or left_out.nodes or left_out.mappings or used & _COORDINATES)
        if is_mixed or shared is None or shared[1] is not Extension.REPEAT:
            return None
        sizes = [tuple(one.node.image.size) for one in images]
        return shared[0], max(sizes, key=lambda size: size[0] * size[1], default=(16, 16))


def _values(shader: Socket, kind: Map) -> tuple[Numbers | None, ...]:
    """Return the constants of a shader for a map, None where nodes determine the value."""
    row = tuple(_value(shader, given) for given in INPUTS[shader.node.type][kind])
    return _DARK if kind is Map.EMISSION and row[1] == (0.0,) else row


def _value(shader: Socket, given: Any) -> Numbers | None:
    if not isinstance(given, str):
        return given if isinstance(given, tuple) else (given,)
    found = source(shader.input(given))
    if found.is_value:
        return found.numbers()
    return Socket(found.node.outputs[0]).numbers() if found.node.type in {"RGB", "VALUE"} else None


def _is_flat(found: Socket, uv_map: str, shown: str) -> bool:
    """Return whether a node depends on nothing but its inputs and a UV map; ``shown`` is the one for rendering."""
    node, kind, is_shown = found.node, found.node.type, shown == uv_map
    if kind == "TEX_COORD":
        return is_shown and _linked_outputs(node) <= {"UV"}
    if kind in _UV_NAMES:
        is_tangent = getattr(node, "space", "TANGENT") == "TANGENT"
        return is_tangent and (getattr(node, _UV_NAMES[kind]) or shown) == uv_map
    if kind == "TEX_IMAGE":
        return node.projection != "BOX" and (is_shown or _has_vector(found))
    return kind in _PURE or (_is_procedural(node) and _has_vector(found))


def _linked_outputs(node: Any) -> set[str]:
    return {output.name for output in node.outputs if output.is_linked}


def _is_procedural(node: Any) -> bool:
    return node.type.startswith("TEX_") and node.type not in {"TEX_IMAGE", "TEX_COORD"}


def _has_vector(found: Socket) -> bool:
    return "Vector" in found.node.inputs and not source(found.input("Vector")).is_value
