"""New materials of a scene -> ``.mat`` files and their textures (docs/formats/unigine_writing.md, Materials).

A file holds only what differs from the engine's ``mesh_base``. The result is the inverse of ``material_shading``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ...core import shading as neutral
from ...core.messages import Named, Report, Text, joined
from ...core.scene import Material, plain_shading
from ...core.shading import Channel, Color, Extension, Factor, ImageMap, NormalMap, Opacity, Projection, Shading, Tint
from ...disk.file_names import free_name
from ...encodings.quantization import linear_to_srgb
from .guids import GUID_PREFIX
from .new_assets import AssetKind, NewAsset
from .new_textures import (
    ALBEDO,
    EMISSION,
    NORMAL,
    OCCLUSION,
    SHADING,
    NewTextures,
    Plane,
    Recipe,
    TextureKind,
    can_be_made,
    copy_recipe,
)
from .project_materials import name_hash

_BASE = "mesh_base"
_HASHED_BASES = (2, 15)
"""First SDK whose materials refer to their base by the hash of its full name and have no name of their own."""
_BLEND_OPTIONS = (2, 17)
"""First SDK that has the factors of blending as options, not as an element."""
_EXTENSION = ".mat"
_WRAPS = {Extension.REPEAT: "", Extension.EXTEND: "clamp", Extension.CLIP: "border"}
_PROJECTIONS = {Projection.BOX_OBJECT: 2, Projection.BOX_WORLD: 3, Projection.TOP_OBJECT: 4, Projection.TOP_WORLD: 5}
"""Value of the state ``base_mapping`` for each projection. For UV it is the index of the UV map, 0 or 1."""
_TEST_AT = 0.5
"""Opacity from which the engine's alpha test shows a pixel, as a value of the material."""
_UNUSED_SPECULAR = 127
_WHITE_COLOR = (1.0, 1.0, 1.0)
_WHITE = 0.999


@dataclass(frozen=True)
class NewMaterials:
    """The files of new materials."""

    assets: list[NewAsset]
    """Textures and materials."""
    names: dict[str, str]
    """Name of the asset of each material by the material's name."""


def material_assets(materials: Sequence[Material], version: str, taken: set[str], report: Report) -> NewMaterials:
    """Return the assets of the materials that are not in the project already.

    Parameters
    ----------
    materials:
        Materials with distinct names. Materials with an identity are in the project and are left out.
    version:
        Version that the files state, such as ``2.19.0.3``.
    taken:
        Keys by ``cautious_key`` of the names of other files in the folder; those of the assets are added.
    report:
        Receives messages about settings that the engine's material cannot store.
    """
    major, minor = (int(number) for number in version.split(".")[:2])
    textures = NewTextures((major, minor), taken)
    names: dict[str, str] = {}
    made: list[NewAsset] = []
    for material in materials:
        if material.identity:
            continue
        name = free_name(material.name, _EXTENSION, taken)
        shading = material.shading or _known_shading(material)
        about = report.about(Text("Material '{}'", Named("material", material.name)))
        values = _Values(shading, textures, (major, minor), about)
        made.append(NewAsset(name, AssetKind.MATERIAL, partial(_encode, name, version, values)))
        names[material.name] = name
    textures.report_sizes(report)
    return NewMaterials([*textures.assets(), *made], names)


def _known_shading(material: Material) -> Shading:
    """Return a shading for a material that has none; it is opaque unless the material or its colour is transparent."""
    made = plain_shading(material, has_vertex_color=False)
    is_transparent = material.is_transparent or made.alpha.value < _WHITE
    made = made if is_transparent else replace(made, opacity=Opacity.OPAQUE, alpha=Factor(1.0))
    return replace(made, is_two_sided=False)


class _Values:
    """Parameters, states and textures in the file of one material."""

    def __init__(self, shading: Shading, textures: NewTextures, sdk: tuple[int, int], report: Report) -> None:
        self.sdk = sdk
        self.report = report
        self.options: dict[str, str] = {}
        self.blend: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.textures: list[tuple[str, str, str]] = []
        """Slot, name of the asset and wrap mode of each texture."""
        self.parameters: dict[str, str] = {}
        self._files = textures
        self._other_mappings: list[Text] = []
        self._has_rotation = False
        self.shading = shading = self._with_images(shading)
        self.mapping = self._set_mapping()
        self._set_options()
        self._set_base_color()
        self._set_reflection()
        if shading.normal is not None:
            self._set_normal(shading.normal)
        self._set_occlusion()
        self._set_emission()
        if shading.specular_tint != Tint():
            report.loss(
                "specular-tint-left-out", "its specular tint is left out, which UNIGINE's materials do not have"
            )
        if self._other_mappings:
            template = "UNIGINE has one mapping for its images, so the mapping of others is left out: {}"
            report.loss("image-mapping-left-out", template, joined(self._other_mappings))
        if self._has_rotation:
            text = "its images are rotated, which UNIGINE's materials cannot store; they are exported without rotation"
            report.loss("image-rotation-left-out", text)

    # -- values ---------------------------------------------------------------------------------

    def _number(self, name: str, value: float, default: float) -> None:
        if value != default:
            self._set_parameter(name, (value,))

    def _set_parameter(self, name: str, numbers: Sequence[float]) -> None:
        if not np.isfinite(numbers).all():
            self.report.loss("not-finite-parameter", "its {} is NaN or infinite, and is left out", name)
            return
        self.parameters[name] = " ".join(f"{number:.9g}" for number in numbers)

    def _color(self, name: str, color: Color) -> None:
        """Set a linear colour; the file stores it sRGB-encoded."""
        if color != _WHITE_COLOR:
            self._set_parameter(name, linear_to_srgb(np.array([(*color, 1.0)], np.float32))[0].tolist())

    def _transform(self, name: str, mapping: neutral.Mapping) -> None:
        (x, y), (x_offset, y_offset) = mapping.scale, mapping.offset
        self._has_rotation |= mapping.rotation != 0.0
        if mapping.projection is Projection.UV:  # in the file, v counts downwards
            y_offset = 1.0 - y - y_offset
        numbers = (x, y, x_offset, y_offset)
        if numbers != (1.0, 1.0, 0.0, 0.0):
            self._set_parameter(name, numbers)

    def _texture(
        self, slot: str, kind: TextureKind, recipe: Recipe, extension: Extension, *, is_green_up: bool = False
    ) -> None:
        name = self._files.name_of(kind, recipe, is_green_up=is_green_up)
        self.textures.append((slot, name, _WRAPS[extension]))

    # -- images ---------------------------------------------------------------------------------

    def _with_images(self, shading: Shading) -> Shading:
        """Return the shading without images that have no effect, and without images that no file can be made of.

        The latter are reported.
        """
        changed: dict[str, Any] = {}
        for name, part in vars(shading).items():
            image = getattr(part, "image", None)
            if isinstance(part, Factor) and part.value == 0.0:
                changed[name] = replace(part, image=None)
            if image is None or name in changed or can_be_made(copy_recipe(image.texture)):
                continue
            text = "its texture '{}' cannot be written as PNG without Blender, so that its factor alone is"
            self.report.loss("texture-not-written", text, Named("image", image.texture.name))
            changed[name] = None if isinstance(part, NormalMap) else replace(part, image=None)
        return replace(shading, **changed)

    def _set_mapping(self) -> neutral.Mapping:
        """Set the common mapping, which is the mapping of the first image, and return it."""
        parts = (self.shading.base_color, self.shading.normal, *self._factors(), self.shading.alpha)
        images = [part.image for part in parts if part is not None and part.image is not None]
        if not images:
            return neutral.Mapping()
        mapping = images[0].mapping
        if number := self._mapping_number(mapping):
            self.states["base_mapping"] = str(number)
        self._transform("uv_transform", mapping)
        if mapping.projection in (Projection.BOX_OBJECT, Projection.BOX_WORLD):
            self._number("triplanar_blend", mapping.blend, 0.5)
        return mapping

    def _mapping_number(self, mapping: neutral.Mapping) -> int:
        """Return the value of the state ``base_mapping``."""
        if mapping.projection is not Projection.UV:
            return _PROJECTIONS[mapping.projection]
        if mapping.uv_layer > 1:
            text = "UNIGINE's materials have two UV maps; the first is used in place of the {}th"
            self.report.loss("uv-map-left-out", text, mapping.uv_layer + 1)
        return mapping.uv_layer if mapping.uv_layer <= 1 else 0

    def _set_own_mapping(self, prefix: str, image: ImageMap) -> None:
        """Set the mapping of a slot that can have a separate mapping, if it differs from the common one."""
        if image.mapping != self.mapping:
            self.states[f"{prefix}_mapping"] = str(self._mapping_number(image.mapping) + 1)
            self._transform(f"{prefix}_uv_transform", image.mapping)

    def _check_mapping(self, image: ImageMap) -> None:
        if image.mapping != self.mapping:
            self._other_mappings.append(Text("'{}'", Named("image", image.texture.name)))

    # -- slots ----------------------------------------------------------------------------------

    def _factors(self) -> tuple[Factor, Factor, Factor]:
        return self.shading.metallic, self.shading.roughness, self.shading.specular

    def _set_options(self) -> None:
        """Set the options for both sides and for transparency."""
        shading = self.shading
        if shading.is_two_sided:
            self.options["two_sided"] = "1"
        if shading.opacity is Opacity.OPAQUE:
            return
        is_blended = shading.opacity in (Opacity.BLEND, Opacity.ADD)
        if shading.opacity is Opacity.DITHERED:
            # the engine's alpha test would show a pixel completely or not at all
            is_blended = shading.alpha.image is None
            if not is_blended:
                text = (
                    "its dithered transparency becomes an alpha test; set its render method to Blended for a smooth one"
                )
                self.report.change("dithered-becomes-alpha-test", text)
        self.options["transparent"] = "2" if is_blended else "1"
        if not is_blended:
            return
        factors = {"src": "src_alpha", "dest": "one" if shading.opacity is Opacity.ADD else "one_minus_src_alpha"}
        if self.sdk >= _BLEND_OPTIONS:
            self.options |= {f"blend_{name}": factor for name, factor in factors.items()}
        else:
            self.blend = factors

    def _set_base_color(self) -> None:
        tint = self.shading.base_color
        self._color("albedo_color", tint.value)
        if tint.uses_vertex_color:
            self.states |= {"vertex_color": "1", "vertex_albedo": "1"}
        alpha = self._alpha_plane()
        image = tint.image or (self.shading.alpha.image if alpha is not None else None)
        if image is None:
            return
        color = copy_recipe(image.texture).planes if tint.image is not None else (Plane(), Plane(), Plane())
        self._texture("albedo", ALBEDO, Recipe(color if alpha is None else (*color, alpha)), image.extension)

    def _alpha_plane(self) -> Plane | None:
        """Set the parameters of the opacity, and return the channel of its image, if it has one."""
        shading = self.shading
        alpha, power = shading.alpha, shading.alpha_power
        if shading.opacity is Opacity.OPAQUE:
            return None
        threshold = shading.alpha_threshold if shading.opacity is Opacity.CLIP else _TEST_AT
        if alpha.image is None:
            value = 1.0 - alpha.value if alpha.is_inverted else alpha.value
            self._number("transparent", float(value**power >= threshold) if threshold != _TEST_AT else value, 1.0)
            self._number("transparent_pow", power, 1.0)
            return Plane()  # the image of the colour may have an alpha channel, which is kept
        self._check_mapping(alpha.image)
        plane = _plane_of(alpha)
        if threshold != _TEST_AT:
            limit = threshold ** (1.0 / power) if power else threshold
            return replace(plane, threshold=limit if alpha.is_inverted else limit / max(alpha.value, 1e-6))
        if not alpha.is_inverted:
            self._number("transparent", alpha.value, 1.0)
        self._number("transparent_pow", power, 1.0)
        return plane

    def _set_reflection(self) -> None:
        """Set metalness, roughness and specular, whose images are combined into the channels of one image."""
        factors = self._factors()
        for name, default, factor in zip(("metalness", "roughness", "specular"), (0.0, 1.0, 0.5), factors, strict=True):
            value = factor.value
            if factor.is_inverted:
                value = 1.0 - value if factor.image is None else 1.0
            self._number(name, value, default)
        images = [factor.image for factor in factors if factor.image is not None]
        if not images:
            return
        if self.shading.specular.image is not None:
            self.states["specular_map"] = "1"
        for image in dict.fromkeys(images):
            self._check_mapping(image)
        planes = [_plane_of(factor) if factor.image is not None else None for factor in factors]
        self._texture("shading", SHADING, self._shading_recipe(planes), images[0].extension)

    def _shading_recipe(self, planes: Sequence[Plane | None]) -> Recipe:
        """Return the recipe of the image of metalness, roughness and specular.

        If only one image is used, channels without effect are also taken from it, if its file can then be copied
        unchanged.
        """
        metal, rough, specular = planes
        texture = next(plane.texture for plane in planes if plane is not None)
        has_metal = metal is not None or self.shading.metallic.value != 0.0
        copied = [Plane(texture, channel) for channel in (Channel.RED, Channel.GREEN, Channel.BLUE)]
        whole = (metal or (Plane() if has_metal else copied[0]), rough or Plane(), specular or copied[2])
        if Recipe(whole).is_copy:
            return Recipe(whole)
        return Recipe((metal or Plane(), rough or Plane(), specular or Plane(value=_UNUSED_SPECULAR)))

    def _set_normal(self, normal: NormalMap) -> None:
        recipe = copy_recipe(normal.image.texture)
        if not normal.has_blue:
            recipe = Recipe((*recipe.planes[:2], Plane(normal.image.texture, Channel.BLUE, is_normal_z=True)))
        self._check_mapping(normal.image)
        self._number("normal_scale", normal.strength, 1.0)
        if normal.is_object_space:
            self.states["normal_map"] = "1"
        is_green_up = not normal.is_green_down and not normal.is_object_space
        self._texture("normal", NORMAL, recipe, normal.image.extension, is_green_up=is_green_up)

    def _set_occlusion(self) -> None:
        occlusion = self.shading.occlusion
        if occlusion is None or occlusion.image is None:
            return
        plane = _plane_of(occlusion)
        is_whole = plane.channel is Channel.RED and plane.is_unchanged
        self.states["ao_map"] = "1"
        self._set_own_mapping("ao", occlusion.image)
        recipe = copy_recipe(occlusion.image.texture) if is_whole else Recipe((plane, plane, plane))
        self._texture("ambient_occlusion", OCCLUSION, recipe, occlusion.image.extension)

    def _set_emission(self) -> None:
        tint, strength = self.shading.emission, self.shading.emission_strength
        if tint is None or strength <= 0.0:
            return
        self.states["emission"] = "1"
        self._color("emission_color", tint.value)
        self._number("emission_scale", strength, 1.0)
        if tint.image is not None:
            self._set_own_mapping("emission", tint.image)
            self._texture("emission", EMISSION, copy_recipe(tint.image.texture), tint.image.extension)


def _plane_of(factor: Factor) -> Plane:
    """Return the image channel of a factor.

    The factor's value becomes a parameter of the material instead, unless the image is inverted.
    """
    texture = factor.image.texture if factor.image is not None else None
    return Plane(texture, factor.channel, inverted_by=factor.value if factor.is_inverted else 0.0)


def _encode(name: str, version: str, values: _Values, guids: Mapping[str, str]) -> bytes:
    """Return the ``.mat`` file of a material."""
    is_hashed = values.sdk >= _HASHED_BASES
    named = {} if is_hashed else {"name": name.removesuffix(_EXTENSION)}
    base = name_hash(f"Unigine::{_BASE}") if is_hashed else _BASE
    attributes = {"version": version, **named, "guid": guids[name], "base_material": base}
    fixed = {"expression" if is_hashed else "use_expression": "0"}
    lines = [_line("options", values.options)] if values.options else []
    lines += [_line("blend", values.blend)] if values.blend else []
    lines += [_line("state", {"name": state}, value) for state, value in values.states.items()]
    for slot, texture, wrap in values.textures:
        stated = {"name": slot} | ({"wrap": wrap} if wrap else {})
        lines.append(_line("texture", stated, GUID_PREFIX + guids[texture]))
    lines += [_line("parameter", {"name": name, **fixed}, value) for name, value in values.parameters.items()]
    opening = f"<material{_attributes(attributes)}>"
    text = "\n".join(
        ('<?xml version="1.0" encoding="utf-8"?>', opening, *(f"\t{line}" for line in lines), "</material>")
    )
    return f"{text}\n".encode()


def _line(tag: str, attributes: Mapping[str, str], text: str = "") -> str:
    opening = f"<{tag}{_attributes(attributes)}"
    return f"{opening}>{escape(text)}</{tag}>" if text else f"{opening}/>"


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in values.items())
