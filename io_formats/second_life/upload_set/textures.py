"""A scene's materials -> those of the set, with their textures (formats page, sections 10 and 10.1)."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...core.messages import Text
from ...core.scene import Material as SceneMaterial
from ...core.scene import Scene
from ...core.shading import Texture
from ...encodings.image_files import extension_of
from ...encodings.quantization import linear_to_srgb
from . import names
from .document import Image, Material

MOST_PIXELS = 2048
"""Maximum width and height of textures; the viewer scales larger ones down."""

_READABLE = (".png", ".jpg", ".jpeg", ".tga", ".bmp")


class Materials:
    """The materials of a set, one for each material name; problems with textures are reported once."""

    def __init__(self, scene: Scene, *, is_copied: bool) -> None:
        self.materials: list[Material] = []
        self.images: list[Image] = []
        self._scene = scene
        self._is_copied = is_copied
        self._known: Mapping[str, SceneMaterial] = {material.name: material for material in scene.materials}
        self._symbols: dict[str, str] = {}
        self._taken: set[str] = set()
        self._image_of: dict[object, int | None] = {}

    def symbol(self, name: str, fallback: str, imported: str = "") -> str:
        """Return the symbol of a material by its name; a slot without a material uses the name ``fallback``.

        A new symbol is made from the name, or from the ``imported`` symbol.
        """
        known = name or fallback
        if known not in self._symbols:
            symbol = self._symbols[known] = names.material_symbol(imported or known, self._taken)
            self.materials.append(self._material(self._known.get(name) if name else None, known, symbol))
        return self._symbols[known]

    def slot_symbols(
        self, slots: Sequence[str], used: Container[int], model: str, imported: Mapping[str, str]
    ) -> list[str]:
        """Return the symbols of material slots, empty for unused ones.

        Slots without a material get the model's name and a number, so that they match between levels. ``imported`` has
        the symbols in the imported file by material name.
        """
        unnamed = list(itertools.accumulate(not name for name in slots))
        fallbacks = [f"{model}_plain" + (f"_{count}" if count > 1 else "") for count in unnamed]
        return [
            self.symbol(name, fallback, imported.get(name, "")) if number in used else ""
            for number, (name, fallback) in enumerate(zip(slots, fallbacks, strict=True))
        ]

    def part_symbol(self, symbol: str, number: int) -> str:
        """Return the symbol for a part of a face that was split because of its number of vertices.

        All parts have the same appearance as the whole face.
        """
        if not number:
            return symbol
        known = f"{symbol}\0{number}"  # names of materials in Blender contain no null character
        if known not in self._symbols:
            whole = next(material for material in self.materials if material.symbol == symbol)
            part = names.material_symbol(f"{symbol}_part_{number + 1}", self._taken)
            self._symbols[known] = part
            self.materials.append(replace(whole, symbol=part, name=f"{whole.name} part {number + 1}"))
        return self._symbols[known]

    def _material(self, material: SceneMaterial | None, name: str, symbol: str) -> Material:
        plain = names.printable(name)
        if material is None:
            return Material(symbol, plain, (1.0, 1.0, 1.0, 1.0))
        color = np.nan_to_num(np.array([material.color], np.float32), nan=0.0)
        encoded = tuple(np.clip(linear_to_srgb(color)[0], 0.0, 1.0).tolist())
        emission = float(np.clip(np.nan_to_num(material.emission), 0.0, 1.0))
        image = self._image(material.texture, material.name) if material.texture is not None else None
        return Material(symbol, plain, encoded, emission, image, material.gltf)

    def _image(self, texture: Texture, material: str) -> int | None:
        key: object = texture.data if texture.data is not None else texture.path
        if key not in self._image_of:
            self._image_of[key] = self._new_image(texture, material)
        return self._image_of[key]

    def _new_image(self, texture: Texture, material: str) -> int | None:
        report = self._scene.report
        shown = Text("texture '{}' of material '{}'", texture.name or Path(texture.path).name, material)
        path: Path | None = None
        if texture.data is None:
            if not texture.path:
                report.loss("texture-never-saved", "The {} was never saved, nor is it packed; left out", shown)
                return None
            path = Path(texture.path)
            if not os.path.isfile(path):
                template = "The {} is missing: there is no file {}; left out"
                report.loss("texture-missing", template, shown, texture.path)
                return None
        elif not self._is_copied:
            template = "The {} is packed in the .blend file, and textures are not to be copied; left out"
            report.loss("texture-packed", template, shown)
            return None
        extension = _extension(texture)
        if extension not in _READABLE:
            what = Text("a {} file, which", extension) if extension else Text("of a kind that")
            template = "The {} is {} the viewer does not read; save it as PNG, TGA or JPEG"
            report.loss("texture-kind-not-read", template, shown, what)
        if max(texture.width, texture.height) > MOST_PIXELS:
            template = "The {} has {} × {} pixels; the viewer scales it down to {} × {} at most"
            values = (shown, texture.width, texture.height, MOST_PIXELS, MOST_PIXELS)
            report.change("texture-scaled-down", template, *values)
        own = texture.name if path is None else path.name
        name = names.texture_name(own, extension) if self._is_copied else own
        self.images.append(Image(name, path, texture.data or b"", is_copied=self._is_copied))
        return len(self.images) - 1


def _extension(texture: Texture) -> str:
    """Return a texture's extension with its dot, preferably from its content, or empty if it is unknown."""
    found = re.search(r"\.([A-Za-z0-9]{1,5})\Z", texture.path if texture.data is None else texture.name)
    given = f".{found[1].lower()}" if found else ""
    return given if texture.data is None else extension_of(texture.data, given)
