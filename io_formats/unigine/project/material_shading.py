"""Materials of a UNIGINE project -> neutral shading (``docs/formats/unigine_projects.md``, Shading).

The states of a material decide which of its textures are used. If a texture is missing, its factor or colour is used
alone. Settings without a counterpart are collected as texts.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from ...core import shading as neutral
from ...core.messages import Message, Named, Report, Text, counted, listed, of_kind
from ...core.scene import Material
from ...core.shading import Channel, Color, Extension, Factor, ImageMap, Opacity, Projection, Shading, Texture, Tint
from ...encodings.quantization import srgb_to_linear
from .guids import FoundTexture, is_guid, plain_reference
from .project_materials import ProjectMaterial

_BASE_COLORS = (
    "albedo_color",
    "albedo_tint",
    "base_color",
    "base_tint",
    "diffuse_color",
    "diffuse_tint",
    "albedo",
    "diffuse",
    "main_color",
    "color",
    "tint",
)
"""Usual names of the base colour, the most likely first."""
_COLOR_WORDS = ("albedo", "diffuse", "base", "tint")
"""Words in other names of the base colour, the most likely first."""
_OTHER_COLORS = ("emissi", "specular", "detail", "coat", "clearcoat", "sheen", "subsurface", "sss", "fresnel", "rim")
"""Beginnings of words in the names of colours that are not the base colour."""
_NO_COLORS = (
    *("uv", "transform", "tiling", "offset", "scale", "size", "speed"),
    *("position", "direction", "rotation", "normal", "mask", "channel"),
)
"""Beginnings of words in the names of vectors that are not colours."""
_OPACITY_WORDS = ("opacity", "transparency", "alpha")
_NO_OPACITIES = ("pow", "contrast", "threshold", "test", "clip", "exponent")


def base_colors(parameters: Mapping[str, str]) -> list[str]:
    """Return the names of the parameters that may be the base colour: none, one, or several equally likely ones."""
    words = {name: _words(name) for name, value in parameters.items() if len(_numbers(value)) in (3, 4)}
    for exact in _BASE_COLORS:
        if found := [name for name, parts in words.items() if "_".join(parts) == exact]:
            return found[:1]
    left = [name for name, parts in words.items() if not _has_word(parts, _OTHER_COLORS + _NO_COLORS)]
    named = ([name for name in left if _has_word(words[name], (word,))] for word in _COLOR_WORDS)
    return next((found for found in named if found), [])


def opacity_parameter(parameters: Mapping[str, str]) -> float | None:
    """Return the opacity, 0 to 1: the value of the only parameter whose name means opacity, transparency or alpha."""
    words = {name: _words(name) for name, value in parameters.items() if len(_numbers(value)) == 1}
    left = [name for name, parts in words.items() if not _has_word(parts, _OTHER_COLORS + _NO_OPACITIES)]
    for word in _OPACITY_WORDS:
        found = [name for name in left if words[name] == [word]] or [name for name in left if word in words[name]]
        if len(found) == 1:
            value = min(max(_numbers(parameters[found[0]])[0], 0.0), 1.0)
            return 1.0 - value if word == "transparency" else value
    return None


def _words(name: str) -> list[str]:
    """Return the words of a name such as ``albedo_tint``, ``Albedo Tint`` or ``albedoTint`` in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.findall(r"[^\W_]+", spaced.lower().replace("colour", "color"))


def _has_word(words: Iterable[str], starts: tuple[str, ...]) -> bool:
    return any(word.startswith(starts) for word in words)


def _numbers(text: str) -> list[float]:
    """Parse the numbers of a value; return an empty list if a part of it is not a finite number."""
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        return []
    return found if all(map(math.isfinite, found)) else []


_LABELS = ("albedo", "metalness", "roughness", "normal tangent space", "ambient occlusion", "emission", "opacity")
_OF_INPUT = {label: label.replace(" ", "_").removesuffix("_tangent_space") for label in _LABELS}
"""Slot of the standard shader for each label of an input of a graph."""
_SEVERAL = {"diffuse": ("albedo",), "shading": ("metalness", "roughness"), "ao": ("ambient_occlusion",)}
_OF_WORD: Mapping[str, tuple[str, ...]] = {slot: (slot,) for slot in _OF_INPUT.values()} | _SEVERAL
"""Slots of the standard shader for each name of a slot of a graph."""
_OF_POSTFIX = {"alb": "albedo", "d": "albedo", "n": "normal", "sh": "shading", "a": "ao", "e": "emission"}


def graph_slots(material: ProjectMaterial, find: Callable[[str], FoundTexture]) -> dict[str, str]:
    """Return the slot in the graph for each texture slot of the standard shader.

    The source of the graph shows which inputs each texture feeds. Without it, the slot's name decides, or else the
    postfix of the texture's name, which the engine's editor uses, too.
    """
    slots: dict[str, str] = {}
    for slot, use in material.textures.items():
        inputs = material.inputs.get(slot)
        if inputs is not None:
            fed = tuple(_OF_INPUT[label.lower()] for label in inputs if label.lower() in _OF_INPUT)
        else:
            fed = _OF_WORD.get(slot.lower()) or _by_postfix(find(use.reference).name)
        for name in fed:
            slots.setdefault(name, slot)
    return slots


def _by_postfix(name: str) -> tuple[str, ...]:
    return _OF_WORD.get(_OF_POSTFIX.get(PurePosixPath(name).stem.lower().rpartition("_")[2], ""), ())


Find = Callable[[str], FoundTexture]
Load = Callable[[FoundTexture], Texture | None]


@dataclass(frozen=True)
class ShownMaterial:
    """A neutral material, and the settings of the project's material that Blender does not show."""

    material: Material
    not_shown: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Texture slot by reference, for textures that the material uses but whose files are missing."""


_PBR_BASES = {"mesh_base", "mesh_pbr_base"}
MISSING_TEXTURE = "Missing Texture"
"""Prefix of the names of custom properties that hold the reference to a missing texture."""
PARAMETER = "Parameter"
"""Prefix of the names of custom properties that hold the parameters of the project's material."""
NAME_IN_PROJECT = "Name in Project"
_GRAPH = "graph"
"""Name of the base material of material graphs."""
_COLOR_SLOTS = {"albedo", "diffuse", "emission"}
"""Slots whose images are sRGB-encoded."""
_WRAPS = {"clamp": Extension.EXTEND, "border": Extension.CLIP}
_ENGINE_COLORS: Mapping[str, tuple[float, float, float, float]] = {
    "white": (1.0, 1.0, 1.0, 1.0),
    "black": (0.0, 0.0, 0.0, 1.0),
    "red": (1.0, 0.0, 0.0, 1.0),
    "checker_d": (0.5, 0.5, 0.5, 1.0),
}
"""Plain colours that are used in place of the engine's own textures."""

_PROJECTIONS = (
    neutral.Mapping(),
    neutral.Mapping(uv_layer=1),
    neutral.Mapping(Projection.BOX_OBJECT),
    neutral.Mapping(Projection.BOX_WORLD),
    neutral.Mapping(Projection.TOP_OBJECT),
    neutral.Mapping(Projection.TOP_WORLD),
)
"""Projections, indexed by the value of the state ``base_mapping``."""

_STATES_NOT_SHOWN = {
    "detail": "detail maps",
    "microfiber_map": "microfiber",
    "parallax": "parallax",
    "translucent": "translucency",
    "auxiliary": "auxiliary pass",
}
_GRAPH_COLORS = "colours of the graph"
_BLENDED_ALPHA = 0.3
"""Alpha used for blended materials whose graph computes the alpha, such as glass."""
_MOST_PARAMETERS = 1000
_BRIGHTEST = 1e6
"""Largest component of a colour; larger ones would overflow."""
_DESTINATIONS_THAT_ADD = _SOURCES_WITHOUT_ALPHA = {"one", "2"}
"""Values of ``blend_dest`` and ``blend_src`` that mean a factor of 1."""


def shown_material(name: str, material: ProjectMaterial, find: Find, load: Load) -> ShownMaterial:
    """Return the neutral material for a material of a project.

    Parameters
    ----------
    name:
        Name of the material in the scene, which must be unique there.
    find:
        Function that returns the texture file for a reference.
    load:
        Function that returns the image of a texture file, or None if it cannot be shown.
    """
    builder = _Shader(material, find, load)
    shading = builder.shading()
    words = tuple(dict.fromkeys(builder.not_shown))
    own_name = material.name if material.name != name else ""
    properties = {NAME_IN_PROJECT: own_name, "File": material.file or "", "Base": material.base or ""}
    properties["Not Shown"] = ", ".join(words)
    properties |= {f"{MISSING_TEXTURE} ({slot})": reference for slot, reference in builder.missing.items()}
    stated = list(material.parameters.items())[:_MOST_PARAMETERS]
    properties |= {f"{PARAMETER} ({parameter})": value for parameter, value in stated}
    given = {label: value for label, value in properties.items() if value}
    made = Material(name, shading=shading, identity=material.guid, properties=given)
    missing = {reference: slot for slot, reference in builder.missing.items()}
    return ShownMaterial(made, words, missing)


def not_shown_warnings(materials: Sequence[ShownMaterial]) -> list[Message]:
    """Return one message for each kind of setting that the materials of an import do not show."""
    owners: dict[str, list[str]] = {}
    for shown in materials:
        for word in shown.not_shown:
            owners.setdefault(word, []).append(shown.material.name)
    report = Report()
    for word, owned in owners.items():
        names = of_kind("material", owned)
        if word == _GRAPH_COLORS:
            template = "{} without the colours of their graph: {}"
            report.loss_of("graph-colours-left-out", template, names, "material", most=5)
        else:
            number, template = counted(len(names), "material"), "{} shown without {}: {}"
            report.loss("material-setting-left-out", template, number, Text(word), listed(names, 5))
    return report.messages


def _index(text: str) -> int:
    """Return an index, or -1 if the text is not one."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1


class _Shader:
    """Builds the shading of one material, and collects settings that it cannot show."""

    def __init__(self, material: ProjectMaterial, find: Find, load: Load) -> None:
        self.material = material
        self.find = find
        self.load = load
        self.not_shown: list[str] = []
        self.missing: dict[str, str] = {}
        """Texture slot by reference, for used textures whose files are missing."""
        self.is_graph = material.base == _GRAPH
        self.may_be_graph = self.is_graph or material.base is None or is_guid(material.base)
        """Whether parameters may have any names: those of a graph, or of a base material that is missing."""
        self.is_specular = self.state("workflow") == "1"
        self.slots = graph_slots(material, find) if self.is_graph else {slot: slot for slot in material.textures}
        """Slot in the file for each slot of the standard shader."""

    # -- values ---------------------------------------------------------------------------------

    def state(self, name: str) -> str:
        return self.material.states.get(name, "0").strip()

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return the numbers of a parameter. Missing, NaN and infinite components are replaced by the default."""
        words = self.material.parameters.get(name, "").replace(",", " ").split()[: len(default)]
        try:
            given = [float(word) for word in words]
        except ValueError:
            self.not_shown.append(Text("parameter '{}', which is not a number", name))
            return default
        pairs = zip([*given, *default[len(given) :]], default, strict=True)
        return tuple(value if math.isfinite(value) else fallback for value, fallback in pairs)

    def number(self, name: str, default: float) -> float:
        return self.numbers(name, (default,))[0]

    def color(self, name: str, default: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        """Return a colour parameter, which is sRGB-encoded in the file, as linear RGB and alpha."""
        values = np.clip(np.array(self.numbers(name, default)), 0.0, _BRIGHTEST).astype(np.float32)
        red, green, blue = srgb_to_linear(values[:3].reshape(1, 3))[0].tolist()
        return (red, green, blue, float(values[3]))

    def mapping(self, slot: str = "") -> neutral.Mapping:
        """Return the mapping of a slot: its own if it has one, otherwise the common mapping of the base textures."""
        chosen = self.state(f"{slot}_mapping") if slot else "0"
        prefix = f"{slot}_" if chosen != "0" else ""
        own = _index(chosen) if prefix else -1
        number = own - 1 if own >= 0 else _index(self.state("base_mapping"))
        base = _PROJECTIONS[number if 0 <= number < len(_PROJECTIONS) else 0]
        x, y, x_offset, y_offset = self.numbers(f"{prefix}uv_transform", (1.0, 1.0, 0.0, 0.0))
        if base.projection is Projection.UV:  # in the file, v counts downwards
            return neutral.Mapping(uv_layer=base.uv_layer, scale=(x, y), offset=(x_offset, 1.0 - y - y_offset))
        blend = min(max(self.number("triplanar_blend", 0.5), 0.0), 1.0)
        return neutral.Mapping(base.projection, scale=(x, y), offset=(x_offset, y_offset), blend=blend)

    # -- textures -------------------------------------------------------------------------------

    def texture(self, slot: str) -> tuple[ImageMap | None, FoundTexture | None]:
        """Return the image of a slot and its files.

        The image is None if it cannot be shown, both if there is no texture.
        """
        use = self.material.textures.get(self.slots.get(slot, ""))
        if use is None or not plain_reference(use.reference):
            return None, None
        found = self.find(use.reference)
        if found.engine_name or found.file is None:
            if not found.engine_name:
                self.missing[slot] = use.reference
            elif found.engine_name not in _ENGINE_COLORS and slot != "normal":
                self.not_shown.append(Text("texture '{}' of the engine", Named("image", found.engine_name)))
            return None, found
        texture = self.load(found)
        own = slot if slot in ("emission", "ambient_occlusion") else ""
        mapping = self.mapping("ao" if own == "ambient_occlusion" else own)
        if texture is None:
            return None, found
        extension = _WRAPS.get(use.wrap, Extension.REPEAT)
        return ImageMap(texture, slot in _COLOR_SLOTS, mapping, extension), found

    def factor(self, value: float, slot: str, channel: Channel, *, is_inverted: bool = False) -> Factor:
        image, found = self.texture(slot)
        if found is not None and image is None:
            value *= _ENGINE_COLORS.get(found.engine_name, _ENGINE_COLORS["white"])["RGBA".index(channel.value)]
        return Factor(value, image, channel, is_inverted)

    def tint(self, color: Color, slot: str, *, uses_vertex_color: bool = False) -> Tint:
        image, found = self.texture(slot)
        if found is not None and image is None:
            engine = _ENGINE_COLORS.get(found.engine_name, _ENGINE_COLORS["white"])
            color = (color[0] * engine[0], color[1] * engine[1], color[2] * engine[2])
        return Tint(color, image, uses_vertex_color)

    # -- shading --------------------------------------------------------------------------------

    def shading(self) -> Shading:
        """Return the shading, from the slots and states of ``mesh_base`` or of a graph."""
        slot = "diffuse" if self.is_specular else "albedo"
        if not self.is_graph and self.material.base not in _PBR_BASES:
            self.not_shown.append(Text("base material '{}'", Named("material", self.material.base or "unknown")))
            slot = slot if slot in self.slots or "diffuse" not in self.slots else "diffuse"
            red, green, blue, alpha = self.base_color(slot)
            mode = self.opacity() if self.may_be_graph else Opacity.OPAQUE
            return Shading(self.tint((red, green, blue), slot), opacity=mode, alpha=self.alpha(slot, alpha, mode))
        red, green, blue, alpha = self.base_color(slot)
        if self.is_graph:
            self.not_shown.append("nodes of the material graph")
        self.not_shown += [word for state, word in _STATES_NOT_SHOWN.items() if self.state(state) == "1"]
        is_tinted = self.state("vertex_color") == "1" and self.state("vertex_albedo") == "1"
        mode = self.opacity()
        metallic, roughness, specular = self.reflection()
        return Shading(
            base_color=self.tint((red, green, blue), slot, uses_vertex_color=is_tinted),
            metallic=metallic,
            roughness=roughness,
            specular=specular,
            specular_tint=self.specular_tint(),
            normal=self.normal(),
            occlusion=self.occlusion(),
            emission=self.emission(),
            emission_strength=max(self.number("emission_scale", 1.0), 0.0) if self.is_emissive else 0.0,
            opacity=mode,
            alpha=self.alpha(slot, alpha, mode),
            alpha_power=max(self.number("transparent_pow", 1.0), 0.0),
            is_two_sided=self.option("two_sided") in ("1", "true"),
        )

    def base_color(self, slot: str) -> tuple[float, float, float, float]:
        """Return the base colour with its alpha.

        In material graphs, the parameter of the colour may have any name.
        """
        name = f"{slot}_color"
        if self.may_be_graph and name not in self.material.parameters:
            found = base_colors(self.material.parameters)
            name = found[0] if len(found) == 1 else ""
            if not name and (found or slot not in self.slots):
                self.not_shown.append(_GRAPH_COLORS)
        return self.color(name, (1.0,) * 4)

    def option(self, name: str) -> str:
        return self.material.options.get(name, "0").strip().lower()

    def factor_default(self, slot: str, default: float) -> float:
        """Return the default of a factor, which is 1 if a graph's texture alone determines the input."""
        return 1.0 if self.is_graph and slot in self.slots else default

    def reflection(self) -> tuple[Factor, Factor, Factor]:
        """Return the factors of metallic, roughness and specular."""
        if self.is_specular:
            self.not_shown.append("exact reflections of the specular workflow")
            gloss = self.factor(self.number("gloss", 0.0), "specular", Channel.ALPHA, is_inverted=True)
            return Factor(0.0), gloss, Factor(0.5)
        metal, rough = ("metalness", "roughness") if self.is_graph else ("shading", "shading")
        rough_channel = Channel.GREEN
        if self.is_graph and self.slots.get(metal) != self.slots.get(rough):
            rough_channel = Channel.RED  # a separate roughness texture, which is usually grey
        metalness = self.number("metalness", self.factor_default(metal, 0.0))
        metallic = self.factor(metalness, metal, Channel.RED)
        roughness = self.factor(self.number("roughness", self.factor_default(rough, 1.0)), rough, rough_channel)
        specular = self.number("specular", 0.5)
        if self.state("specular_map") == "1":
            return metallic, roughness, self.factor(specular, "shading", Channel.BLUE)
        return metallic, roughness, Factor(specular)

    def specular_tint(self) -> Tint:
        if not self.is_specular:
            return Tint()
        return self.tint(self.color("specular_color", (0.0, 0.0, 0.0, 1.0))[:3], "specular")

    @property
    def uses_normal_blue(self) -> bool:
        """Whether the blue channel of the normal map holds the opacity."""
        return self.state("opacity_map") == "1"

    def normal(self) -> neutral.NormalMap | None:
        """Return the normal map of the material; None without an image that Blender can show."""
        image, found = self.texture("normal")
        if image is None or found is None:
            return None
        if image.mapping.projection is not Projection.UV:
            self.not_shown.append("normal map in triplanar projection")
            return None
        is_object_space = self.state("normal_map") == "1"
        strength = self.number("normal_scale", 1.0)
        if strength < 0:
            self.not_shown.append("negative strength of the normal map")
        is_green_down = not found.is_green_up and not is_object_space
        return neutral.NormalMap(image, abs(strength), is_green_down, not self.uses_normal_blue, is_object_space)

    def occlusion(self) -> Factor | None:
        if self.state("ao_map") != "1" and not (self.is_graph and "ambient_occlusion" in self.slots):
            return None
        factor = self.factor(1.0, "ambient_occlusion", Channel.RED)
        return factor if factor.image is not None else None

    @property
    def is_emissive(self) -> bool:
        return self.state("emission") in ("1", "true") or (self.is_graph and "emission" in self.slots)

    def emission(self) -> Tint | None:
        if not self.is_emissive:
            return None
        return self.tint(self.color("emission_color", (1.0,) * 4)[:3], "emission")

    def opacity(self) -> Opacity:
        """Return how alpha is used, according to the options of the material."""
        chosen = self.option("transparent")
        if chosen in ("1", "alpha_test") or (chosen == "0" and self.option("alpha_test") in ("1", "true")):
            return Opacity.CLIP
        if chosen in ("0", "opaque", "none") and self.material.graph_parent != "mesh_transparent":
            return Opacity.OPAQUE
        return Opacity.ADD if self.option("blend_dest") in _DESTINATIONS_THAT_ADD else Opacity.BLEND

    def alpha(self, slot: str, alpha: float, mode: Opacity) -> Factor:
        """Return the alpha of the material, whose image is in ``slot`` unless its graph or normal map holds it."""
        if mode is Opacity.OPAQUE or self.option("blend_src") in _SOURCES_WITHOUT_ALPHA:
            return Factor(1.0)
        value = min(max(alpha * self.number("transparent", 1.0), 0.0), 1.0)
        if self.may_be_graph and mode is not Opacity.CLIP:
            stated = opacity_parameter(self.material.parameters)
            if stated is None and value == 1.0 and mode is Opacity.BLEND and "opacity" not in self.slots:
                stated = _BLENDED_ALPHA
            value *= 1.0 if stated is None else stated
        if self.is_graph and "opacity" in self.slots:
            is_alpha = self.slots["opacity"] == self.slots.get(slot)
            return self.factor(value, "opacity", Channel.ALPHA if is_alpha else Channel.RED)
        if self.uses_normal_blue:
            return self.factor(value, "normal", Channel.BLUE)
        if self.material.inputs and mode is not Opacity.CLIP:  # no texture feeds the opacity input of the graph
            return Factor(value)
        return self.factor(value, slot, Channel.ALPHA)
