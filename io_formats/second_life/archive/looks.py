"""The looks of faces -> materials. Equal looks share a material, which is named after its picture."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Report, counted, listed
from ...core.scene import Material
from ...core.shading import Channel, Factor, ImageMap, Mapping, Opacity, Shading, Texture, Tint
from ...encodings.quantization import srgb_to_linear
from .asset_store import AssetStore
from .document import NULL_ID, TRANSPARENT, TextureFace
from .older_materials import BLEND, MASK, OlderMaterial
from .older_materials import read_older_material as read_material
from .pictures import Pictures

MOST_MATERIALS = 10_000
"""Beyond this number, faces get a material of their colour alone."""
_STEPS = 15
"""Number of steps of each channel of the colours of materials beyond the largest number."""
_LEAST_REPEATS = 1e-4
"""Repeats below this count as this, since the mapping is divided by them."""


class Looks:
    """The materials of one import."""

    def __init__(self, assets: AssetStore, pictures: Pictures) -> None:
        self._assets = assets
        self._pictures = pictures
        self.materials: list[Material] = []
        self._names: dict[TextureFace, str] = {}
        self._numbers: dict[str, int] = {}
        """Number of materials by the first digits of their picture."""
        self._older: dict[str, OlderMaterial] = {}
        self._damaged: list[str] = []
        self._plain = 0
        """Number of faces with a material of their colour alone."""

    def material(self, face: TextureFace) -> str:
        """Return the name of the material of a face."""
        if face in self._names:
            return self._names[face]
        look = replace(face, bump=0, shiny=0, has_media=False, mapping=0)
        if look not in self._names and len(self.materials) >= MOST_MATERIALS:
            self._plain += 1
            red, green, blue = (round(part * _STEPS) / _STEPS for part in face.color[:3])
            look = face = TextureFace(color=(red, green, blue, 1.0))
        if look not in self._names:
            self._names[look] = self._add(look)
        self._names[face] = self._names[look]
        return self._names[look]

    def report(self, report: Report) -> None:
        """Report what the materials do not hold."""
        if self._plain:
            number = counted(self._plain, "face has", "faces have")
            template = "{} a plain colour, since the objects have more than {:,} materials"
            report.loss("too-many-materials", template, number, MOST_MATERIALS)
        maps = sum(older.has_normal_map + older.has_specular_map for older in self._older.values())
        if maps:
            number = counted(maps, "map of normals or reflections", "maps of normals or reflections")
            report.loss("older-materials", "{} of materials not carried over", number)
        if self._damaged:
            number = counted(len(self._damaged), "material")
            report.loss("damaged-materials", "{} missing or damaged: {}", number, listed(self._damaged))

    def _add(self, look: TextureFace) -> str:
        digits = look.texture[:8]
        number = self._numbers[digits] = self._numbers.get(digits, 0) + 1
        name = digits if number == 1 else f"{digits}_{number}"
        texture = self._pictures.texture(look.texture)
        # Another archive may lack the picture or the older material.
        known = repr((look, texture is not None, self._older_material(look.material)))
        identity = hashlib.sha256(known.encode()).hexdigest()
        self.materials.append(Material(name, shading=self._shading(look, texture), identity=identity))
        return name

    def _shading(self, look: TextureFace, texture: Texture | None) -> Shading:
        image = ImageMap(texture, is_color=True, mapping=mapping_of(look)) if texture is not None else None
        red, green, blue = srgb_to_linear(np.array([look.color], np.float32))[0, :3].tolist()
        tint = Tint((red, green, blue), image)
        shading = self._with_alpha(Shading(tint, roughness=Factor(1.0), is_two_sided=False), look, image)
        if look.is_full_bright:
            black = Tint((0.0, 0.0, 0.0))
            return replace(shading, base_color=black, specular=Factor(0.0), emission=tint, emission_strength=1.0)
        if look.glow > 0:
            return replace(shading, emission=tint, emission_strength=look.glow)
        return shading

    def _with_alpha(self, shading: Shading, look: TextureFace, image: ImageMap | None) -> Shading:
        """Return the shading with the alpha of a face: that of its colour times that of its picture."""
        older = self._older_material(look.material)
        is_masked = older.alpha_mode == MASK
        uses_picture = image is not None and image.texture.has_alpha and (is_masked or older.alpha_mode == BLEND)
        value = 0.0 if look.texture == TRANSPARENT else look.color[3]
        alpha = Factor(value, image if uses_picture else None, Channel.ALPHA)
        if uses_picture and is_masked:
            return replace(shading, alpha=alpha, opacity=Opacity.CLIP, alpha_threshold=older.alpha_cutoff)
        return replace(shading, alpha=alpha, opacity=Opacity.DITHERED) if uses_picture or value < 1 else shading

    def _older_material(self, uuid: str) -> OlderMaterial:
        if uuid not in self._older:
            content = self._assets.material(uuid) if uuid != NULL_ID else None
            self._older[uuid] = OlderMaterial()
            try:
                if content is not None:
                    self._older[uuid] = read_material(content)
                elif uuid != NULL_ID:
                    self._damaged.append(uuid)
            except FormatError:
                self._damaged.append(uuid)
        return self._older[uuid]


def mapping_of(face: TextureFace) -> Mapping:
    """Return the mapping of a face: about the centre (0.5, 0.5) rotated, then repeated, then moved.

    See docs/formats/opensim_archives.md, section Faces.
    """
    horizontal, vertical = (math.copysign(max(abs(repeat), _LEAST_REPEATS), repeat) for repeat in face.repeats)
    cosine, sine = math.cos(face.rotation), math.sin(face.rotation)
    offset = (
        face.offsets[0] + 0.5 - horizontal * 0.5 * (cosine + sine),
        face.offsets[1] + 0.5 - vertical * 0.5 * (cosine - sine),
    )
    return Mapping(scale=(horizontal, vertical), offset=offset, rotation=face.rotation)
