"""Images whose channels are taken from several images, as the engine's texture slots require."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.shading import Channel, Pixels, Texture
from ...encodings import image_files

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
        raise FormatError("The pixels of the image '{}' are not known", texture.name)
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
