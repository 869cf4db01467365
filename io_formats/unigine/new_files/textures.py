"""Textures of new materials -> PNG assets, each written once (docs/formats/unigine_writing.md, Textures).

The editor chooses the compression by the postfix of a file's name, or by the parameters of its ``.meta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from ...core.messages import Report, counted, listed
from ...disk.file_names import cautious_key, file_name
from .assets import AssetKind, NewAsset, Parameter
from .packed_images import Recipe, copy_recipe, encode_recipe

_MOST_NAMES = 5
_ALPHA_PRESET, _ALPHA_FORMAT, _OLD_ALPHA_FORMAT = "albedo (rgba)", "Auto (DXT1 or DXT5)", "DXT5"


@dataclass(frozen=True)
class TextureKind:
    """How the editor imports the textures of a slot."""

    postfix: str
    preset: str
    format: str
    is_srgb: bool


ALBEDO = TextureKind("_alb", "albedo (rgb)", "DXT1", is_srgb=True)
SHADING = TextureKind("_sh", "shading (rgb)", "DXT1", is_srgb=True)
NORMAL = TextureKind("_n", "normal map (rg)", "ATI2", is_srgb=False)
OCCLUSION = TextureKind("_a", "ambient occlusion", "ATI1", is_srgb=False)
EMISSION = TextureKind("_e", "emission", "DXT1", is_srgb=True)


@dataclass
class _Image:
    """A texture that will be written."""

    name: str
    kind: TextureKind
    recipe: Recipe
    is_green_up: bool


class NewTextures:
    """The textures that an export writes.

    Parameters
    ----------
    sdk:
        First two numbers of the version of the project's SDK.
    taken:
        Keys (``cautious_key``) of the names of other files in the folder. The keys of new files are added.
    """

    def __init__(self, sdk: tuple[int, int], taken: set[str]) -> None:
        self._sdk = sdk
        self._taken = taken
        self._images: dict[tuple[TextureKind, Recipe, bool], _Image] = {}

    def name_of(self, kind: TextureKind, recipe: Recipe, *, is_green_up: bool = False) -> str:
        """Return the file name for an image; an image that several materials use is written once."""
        key = (kind, copy_recipe(recipe.textures[0]) if recipe.is_copy else recipe, is_green_up)
        if key not in self._images:
            stem = _plain_stem(recipe.textures[0].name, kind)
            name = free_name(stem, f"{kind.postfix}.png", self._taken)
            self._images[key] = _Image(name, kind, recipe, is_green_up)
        image = self._images[key]
        if len(recipe.planes) > len(image.recipe.planes):  # the same image, but this use includes its alpha
            image.recipe = recipe
        return image.name

    def assets(self) -> list[NewAsset]:
        """Return the assets in the order in which :meth:`name_of` first returned their names."""
        return [
            NewAsset(image.name, AssetKind.TEXTURE, partial(_encoded, image.recipe), self._settings(image))
            for image in self._images.values()
        ]

    def report_sizes(self, report: Report) -> None:
        """Report images that the editor scales since their sizes are not powers of two."""
        textures = dict.fromkeys(texture for image in self._images.values() for texture in image.recipe.textures)
        odd = [one.name for one in textures if any(side & (side - 1) for side in (one.width, one.height))]
        if odd:
            template = "The editor scales {}, whose sizes are not powers of two: {}"
            report.note("texture-size", template, counted(len(odd), "texture"), listed(odd, _MOST_NAMES))

    def _settings(self, image: _Image) -> tuple[Parameter, ...]:
        """Return the import settings of a texture, in the order in which the editor writes them."""
        has_alpha = image.kind is ALBEDO and len(image.recipe.planes) > 3
        alpha_format = _ALPHA_FORMAT if self._sdk >= (2, 11) else _OLD_ALPHA_FORMAT
        made = [
            Parameter("string", "height", "auto"),
            Parameter("string", "image_format", alpha_format if has_alpha else image.kind.format),
            Parameter("string", "image_type", "2d"),
            Parameter("bool", "invert_g", str(int(image.is_green_up))),
            Parameter("string", "mipmap_type", "box"),
            Parameter("string", "preset_name", _ALPHA_PRESET if has_alpha else image.kind.preset),
            Parameter("bool", "srgb_correction", str(int(image.kind.is_srgb))),
            Parameter("bool", "unchanged", "0"),
            Parameter("string", "width", "auto"),
        ]
        if self._sdk >= (2, 19):
            made += [
                Parameter("int", "blur_radius", "1"),
                Parameter("bool", "mipmap_sharp_only_lightness", "1"),
                Parameter("float", "sharpness_intensity", "0.25"),
                Parameter("float", "sharpness_radius", "1"),
            ]
        return tuple(sorted(made, key=lambda parameter: parameter.name))


def _encoded(recipe: Recipe, _guids: Mapping[str, str]) -> bytes:
    return encode_recipe(recipe)


def _plain_stem(name: str, kind: TextureKind) -> str:
    """Return the name of an image without extension and postfix."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    postfixes = (kind.postfix, ALBEDO.postfix, SHADING.postfix)
    ending = next((postfix for postfix in postfixes if stem.lower().endswith(postfix)), "")
    return stem[: len(stem) - len(ending)] or stem


def free_name(stem: str, ending: str, taken: set[str]) -> str:
    """Return a file name that is valid and unused in the folder on all systems, and add its key to ``taken``."""
    plain, number = file_name(stem), 1
    name = plain + ending
    while cautious_key(name) in taken:
        number += 1
        name = f"{plain}_{number}{ending}"
    taken.add(cautious_key(name))
    return name
