"""Textures of new materials -> PNG assets, each written once (docs/formats/unigine_writing.md, Textures).

The editor chooses the compression by the postfix of a file's name, or by the parameters of its ``.meta``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Named, Report, counted, listed, of_kind
from ...core.shading import Channel, Pixels, Texture
from ...disk.file_names import free_name
from ...encodings import image_files
from .new_assets import AssetKind, NewAsset, Parameter

_NUMBERS = {Channel.RED: 0, Channel.GREEN: 1, Channel.BLUE: 2, Channel.ALPHA: 3}
_COLORS = (Channel.RED, Channel.GREEN, Channel.BLUE)
FULL = 255


@dataclass(frozen=True)
class Plane:
    """One channel of a new image: the constant ``value``, or a channel of another image, possibly modified."""

    texture: Texture | None = None
    channel: Channel = Channel.RED
    value: int = FULL
    """Value of all pixels if ``texture`` is None."""
    inverted_by: float = 0.0
    """If not 0, the channel is multiplied by this and subtracted from 1."""
    threshold: float | None = None
    """If set, the channel becomes 1 where it is at least this value, otherwise 0."""
    is_normal_z: bool = False
    """Whether the channel is the third component of normals, which is computed from red and green."""

    @property
    def is_unchanged(self) -> bool:
        return self.inverted_by == 0.0 and self.threshold is None and not self.is_normal_z


@dataclass(frozen=True)
class Recipe:
    """Description of an image to be made: its three channels, or four with alpha."""

    planes: tuple[Plane, ...]

    @property
    def textures(self) -> list[Texture]:
        """The source images, each once."""
        return list(dict.fromkeys(plane.texture for plane in self.planes if plane.texture is not None))

    @property
    def is_copy(self) -> bool:
        """Whether the result is one source image without any change, except that its alpha may be dropped."""
        wanted = tuple(_NUMBERS)[: len(self.planes)]
        is_same = all(plane.texture == self.planes[0].texture and plane.is_unchanged for plane in self.planes)
        return is_same and bool(self.textures) and tuple(plane.channel for plane in self.planes) == wanted


def copy_recipe(texture: Texture, *, with_alpha: bool = False) -> Recipe:
    """Return a recipe that copies an image unchanged."""
    channels = (*_COLORS, Channel.ALPHA) if with_alpha else _COLORS
    return Recipe(tuple(Plane(texture, channel) for channel in channels))


def can_be_made(recipe: Recipe) -> bool:
    """Return whether a recipe can be made: its images have pixels, or a single file can be copied."""
    if all(texture.pixels is not None for texture in recipe.textures):
        return True
    return recipe.is_copy and image_files.is_plain(_content(recipe.textures[0]) or b"")


def encode_recipe(recipe: Recipe) -> bytes:
    """Return a PNG file with 8 bits per channel.

    It is the file of the only source image if that is such a PNG file, otherwise a new file.

    Raises
    ------
    FormatError
        An image cannot be read any more.
    """
    if recipe.is_copy:
        content = _content(recipe.textures[0])
        if content is not None and image_files.is_plain(content):
            return content
    return image_files.encode_png(_pixels(recipe))


def _content(texture: Texture) -> bytes | None:
    """Return the file of an image, or None if there is none or the pixels were changed since it was loaded."""
    if texture.data is not None:
        return texture.data
    return texture.read() if texture.read is not None else None


def _pixels(recipe: Recipe) -> Pixels:
    """Return the pixels of an image to be made, in the size of its largest source image."""
    sources = {texture: _read(texture) for texture in recipe.textures}
    height, width = max((pixels.shape[:2] for pixels in sources.values()), key=lambda size: size[0] * size[1])
    made = np.empty((height, width, len(recipe.planes)), np.uint8)
    for number, plane in enumerate(recipe.planes):
        if plane.texture is None:
            made[..., number] = plane.value
        else:
            made[..., number] = _resized(_values(plane, sources[plane.texture]), (height, width))
    return made


def _read(texture: Texture) -> Pixels:
    if texture.pixels is None:
        raise FormatError("The pixels of the image '{}' are not known", Named("image", texture.name))
    return texture.pixels()


def _values(plane: Plane, pixels: Pixels) -> npt.NDArray[np.uint8]:
    """Return the values (H, W) of one channel."""
    values = pixels[..., _NUMBERS[plane.channel]]
    if plane.is_unchanged:
        return values
    if plane.is_normal_z:
        flat = pixels[..., :2].astype(np.float32) / 127.5 - 1.0
        z = np.sqrt(np.clip(1.0 - np.square(flat).sum(axis=2), 0.0, None))
        return _bytes(0.5 + 0.5 * z)
    scaled = values.astype(np.float32) / FULL
    if plane.inverted_by != 0.0:
        scaled = 1.0 - scaled * np.float32(plane.inverted_by)
    if plane.threshold is not None:
        return np.where(scaled >= plane.threshold, np.uint8(FULL), np.uint8(0))
    return _bytes(scaled)


def _bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    made: npt.NDArray[np.uint8] = np.rint(np.clip(values, 0.0, 1.0) * FULL).astype(np.uint8)
    return made


def _resized(values: npt.NDArray[np.uint8], size: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Resize values (H, W) by nearest-neighbour sampling."""
    if values.shape == tuple(size):
        return values
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, values.shape, strict=True))
    resized: npt.NDArray[np.uint8] = values.take(rows, axis=0).take(columns, axis=1)
    return resized


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
            names = listed(of_kind("image", odd), _MOST_NAMES)
            report.note("texture-size", template, counted(len(odd), "texture"), names)

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
