"""The shaders of a material, the values of their inputs, and what these depend on."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import bpy

from ....io_formats.core.messages import Text
from ..reading.material_reading import image_path, occlusion_inputs
from ..reading.shader_nodes import Socket, output_of, source, sources

BLACK = (0.0, 0.0, 0.0, 1.0)
INPUTS: dict[str, dict[str, Any]] = {
    "BSDF_PRINCIPLED": {
        "color": "Base Color", "metallic": "Metallic", "roughness": "Roughness", "specular": "Specular IOR Level",
        "alpha": "Alpha", "emission": "Emission Color", "strength": "Emission Strength", "normal": "Normal",
    },
    "BSDF_DIFFUSE": {
        "color": "Color", "metallic": 0.0, "roughness": 1.0, "specular": 0.0, "alpha": 1.0, "emission": BLACK,
        "strength": 0.0, "normal": "Normal",
    },
    "BSDF_GLOSSY": {
        "color": "Color", "metallic": 1.0, "roughness": "Roughness", "specular": 0.5, "alpha": 1.0, "emission": BLACK,
        "strength": 0.0, "normal": "Normal",
    },
    "EMISSION": {"alpha": 1.0, "emission": "Color", "strength": "Strength"},
    "BSDF_TRANSPARENT": {},
}  # fmt: skip
"""For each type of shader that can be baked: the name of the input for each value, or the value itself."""

_PURE = frozenset(
    {
        *("RGB", "VALUE", "MATH", "VECT_MATH", "MIX", "MIX_RGB", "VALTORGB", "HUE_SAT", "BRIGHTCONTRAST", "GAMMA"),
        *("INVERT", "CURVE_RGB", "CURVE_VEC", "CURVE_FLOAT", "CLAMP", "MAP_RANGE", "SEPARATE_COLOR", "COMBINE_COLOR"),
        *("SEPXYZ", "COMBXYZ", "SEPRGB", "COMBRGB", "SEPHSV", "COMBHSV", "RGBTOBW", "MAPPING", "VECTOR_ROTATE"),
        *("BLACKBODY", "WAVELENGTH", "BUMP", "MIX_SHADER", "ADD_SHADER", *INPUTS),
    }
)
"""Types of nodes whose outputs depend on nothing but their inputs."""
_VIEW_DEPENDENT = frozenset({"LAYER_WEIGHT", "FRESNEL", "CAMERA", "LIGHT_PATH", "SHADERTORGB"})
_WORLD_RAYS = frozenset({"AMBIENT_OCCLUSION", "BEVEL"})


@dataclass(frozen=True)
class Dependence:
    """What the values of a material's shaders depend on, besides constants."""

    is_flat: bool
    """Whether they depend only on the exported UV map."""
    is_periodic: bool
    """Whether they are equal on all tiles of the UV map, if they are flat."""
    mapping: Any = None
    """The Mapping node that all images share, and which repeats the picture instead; None if there is none."""
    size: tuple[int, int] | None = None
    """Size of the largest image; None if there are further textures."""


NOTHING_KNOWN = Dependence(is_flat=False, is_periodic=False)


class SurfaceShaders:
    """The shaders between a material and its output.

    Parameters
    ----------
    tree:
        Nodes of the material.
    """

    def __init__(self, tree: bpy.types.NodeTree) -> None:
        output = output_of(tree)
        entry = output.inputs["Surface"] if output is not None else None
        self.occlusion = [socket for socket in occlusion_inputs(tree) if socket.is_linked]
        self._reached = list(sources(Socket(entry))) if entry is not None else []
        found = [one for one in self._reached if one.socket.type == "SHADER"]
        self.others = [one.node for one in found if one.node.type not in {*INPUTS, "MIX_SHADER", "ADD_SHADER"}]
        known = [one for one in found if one.node.type in INPUTS]
        surfaces = [one for one in known if one.node.type not in {"EMISSION", "BSDF_TRANSPARENT"}]
        emitting = [one for one in known if one.node.type == "EMISSION"]
        self.is_emission = bool(emitting) and not surfaces
        """Whether the material only emits light."""
        self.shaders = surfaces or emitting
        self.emitting = [*surfaces, *emitting]
        self.has_gaps = any(one.node.type == "ADD_SHADER" for one in found) or len(known) > len(self.shaders)
        """Whether the surface is covered in part only, so that colours are darkened."""

    def is_known(self) -> bool:
        """Return whether all shaders can be baked."""
        return bool(self.shaders) and not self.others

    def constant(self, key: str) -> tuple[float, ...] | None:
        """Return the value of an input that is the same in all shaders, otherwise None."""
        owners = self.emitting if key in {"emission", "strength"} else self.shaders
        found = {_value(one, INPUTS[one.node.type].get(key, 1.0)) for one in owners}
        return next(iter(found)) if len(found) == 1 else None

    def has_normals(self) -> bool:
        """Return whether nodes determine the normals of a shader."""
        named = [one.input("Normal") for one in self.shaders if INPUTS[one.node.type].get("normal")]
        return any(not source(entry).is_value for entry in named)

    def reached(self) -> Iterator[Socket]:
        """Yield the outputs that the surface and its occlusion depend on."""
        yield from self._reached
        for entry in self.occlusion:
            yield from sources(Socket(entry))

    def nodes(self, kinds: Collection[str]) -> list[Any]:
        return [one.node for one in self.reached() if one.node.type in kinds]

    def view_dependent(self) -> list[Text]:
        """Return the labels of nodes whose values depend on the view, the name of the object or on EEVEE."""
        found = [Text(node.bl_label) for node in self.nodes(_VIEW_DEPENDENT)]
        named = [one for one in self.reached() if one.node.type == "OBJECT_INFO" and one.socket.name == "Random"]
        windows = [one for one in self.reached() if one.node.type == "TEX_COORD" and one.socket.name == "Window"]
        return list(dict.fromkeys([*found, *(Text(one.node.bl_label) for one in (*named, *windows))]))

    def uses_generated(self) -> bool:
        """Return whether values depend on generated coordinates, which textures without others use."""
        named = any(one.node.type == "TEX_COORD" and one.socket.name == "Generated" for one in self.reached())
        return named or any(
            one.node.type.startswith("TEX_")
            and one.node.type not in {"TEX_IMAGE", "TEX_COORD"}
            and not _has_vector(one)
            for one in self.reached()
        )

    def casts_rays(self) -> bool:
        return bool(self.nodes(_WORLD_RAYS))

    def without_image(self) -> list[str]:
        """Return the names of images that are missing or in tiles, which are not baked."""
        images = [(node.label or node.name, node.image) for node in self.nodes({"TEX_IMAGE"})]
        return [
            image.name if image is not None else name
            for name, image in images
            if image is None or image.source == "TILED" or not (all(image.size) or _is_film(image))
        ]

    def dependence(self, uv_map: str, *, is_shown: bool) -> Dependence:
        """Return what the values depend on.

        ``is_shown`` is whether the exported UV map is the one that is marked for rendering.
        """
        reached = list(self.reached())
        if not all(_is_flat(one, uv_map, is_shown=is_shown) for one in reached):
            return NOTHING_KNOWN
        images = [one.node for one in reached if one.node.type == "TEX_IMAGE"]
        is_plain = all(_is_plain_use(one) for one in reached) and all(one.extension == "REPEAT" for one in images)
        mappings = [_mapping_of(node) for node in images]
        found = {_values(one) for one in mappings}
        shared = mappings[0] if is_plain and len(found) == 1 and None not in found else None
        is_periodic = is_plain and (shared is not None or not any(one is not None for one in mappings))
        sizes = [tuple(node.image.size) for node in images]
        size = max(sizes, key=lambda pair: pair[0] * pair[1], default=(16, 16))
        has_textures = any(one.node.type.startswith("TEX_") and one.node.type != "TEX_IMAGE" for one in reached)
        has_coordinates = not is_plain or has_textures or (0, 0) in sizes
        return Dependence(True, is_periodic, shared, None if has_coordinates else size)


def _value(shader: Socket, given: Any) -> tuple[float, ...] | None:
    """Return the constant value of an input, or None if nodes determine it."""
    if not isinstance(given, str):
        return given if isinstance(given, tuple) else (float(given),)
    found = source(shader.input(given))
    if found.is_value:
        return found.numbers()
    return Socket(found.node.outputs[0]).numbers() if found.node.type in {"RGB", "VALUE"} else None


def _is_film(image: bpy.types.Image) -> bool:
    """Return whether an image is a film or sequence, whose size is not known before it is shown."""
    return image.source in {"MOVIE", "SEQUENCE"} and os.path.isfile(image_path(image))


def _is_uv(found: Socket) -> bool:
    node = found.node
    if found.is_value:
        return False
    return node.type in {"UVMAP", "ATTRIBUTE"} or (node.type == "TEX_COORD" and found.socket.name == "UV")


def _is_flat(found: Socket, uv_map: str, *, is_shown: bool) -> bool:
    """Return whether an output depends on nothing but its inputs and the exported UV map."""
    node = found.node
    if node.type in _PURE:
        return True
    if node.type == "TEX_COORD":
        return found.socket.name == "UV" and is_shown and not node.from_instancer
    if node.type == "UVMAP":
        return not node.from_instancer and (node.uv_map == uv_map or (not node.uv_map and is_shown))
    if node.type == "ATTRIBUTE":
        return node.attribute_type == "GEOMETRY" and node.attribute_name == uv_map
    if node.type == "NORMAL_MAP":
        return node.space == "TANGENT" and (node.uv_map == uv_map or (not node.uv_map and is_shown))
    is_linked = _has_vector(found)
    if node.type == "TEX_IMAGE":
        return node.projection == "FLAT" and (is_linked or is_shown)
    return node.type.startswith("TEX_") and node.type != "TEX_ENVIRONMENT" and is_linked


def _has_vector(found: Socket) -> bool:
    return "Vector" in found.node.inputs and not source(found.input("Vector")).is_value


def _mapping_of(image: Any) -> Any:
    found = source(Socket(image.inputs["Vector"]))
    return None if found.is_value or found.node.type != "MAPPING" else found.node


def _values(mapping: Any) -> Any:
    """Return the constants of a Mapping node of coordinates; None if it is absent or has other inputs."""
    if mapping is None:
        return None
    inputs = [mapping.inputs[name] for name in ("Location", "Rotation", "Scale") if name in mapping.inputs]
    if any(socket.is_linked for socket in inputs) or not _is_uv(source(Socket(mapping.inputs["Vector"]))):
        return None
    return (mapping.vector_type, *(tuple(socket.default_value) for socket in inputs))


def _is_plain_use(found: Socket) -> bool:
    """Return whether a node uses coordinates only as an image does, directly or by a Mapping node."""
    for number, entry in enumerate(found.node.inputs):
        used = source(found.input(number)) if entry.is_linked else None
        if used is None or used.is_value:
            continue
        if _is_uv(used) and found.node.type not in {"TEX_IMAGE", "MAPPING"}:
            return False
        if used.node.type == "MAPPING" and found.node.type != "TEX_IMAGE":
            return False
    return True
