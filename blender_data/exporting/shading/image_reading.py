"""Images of materials as textures; their pixels are read when they are needed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import bpy
import numpy as np

from ....io_formats.core.messages import Named, Report
from ....io_formats.core.shading import Pixels, Texture
from ....io_formats.disk.special_files import special_kind
from ..reading.material_reading import MOST_PIXELS, file_name_of, image_path, report_tiles, stored_pixels

_PLAIN_SOURCES = ("FILE", "GENERATED", "TILED")
_DEPTHS_WITH_ALPHA = (32, 64, 128)
"""Values of ``Image.depth`` (bits per pixel) of images with an alpha channel. ``Image.channels`` is 4 even for byte
images without alpha."""
_PNG = ".png"


class ImageReader:
    """Creates the textures of images, each once.

    Parameters
    ----------
    report:
        Receives a message for each image that cannot be read.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._known: dict[bpy.types.Image, Texture | None] = {}

    def texture(self, image: bpy.types.Image) -> Texture | None:
        """Return the texture of an image, or None if it is missing or cannot be read."""
        if image not in self._known:
            self._known[image] = self._make(image)
        return self._known[image]

    def _make(self, image: bpy.types.Image) -> Texture | None:
        width, height = (int(side) for side in image.size)
        if image.source not in _PLAIN_SOURCES:
            text = "it is a film or a sequence of images, which was not exported"
            self._report.loss("image-not-exported", text, item=Named("image", image.name))
            return None
        if not width * height:
            text = "the image is missing or cannot be read, so that materials have their values without it"
            self._report.loss("unreadable-image", text, item=Named("image", image.name))
            return None
        if width * height > MOST_PIXELS:
            text = "the image is too large to be exported; scale it down"
            self._report.loss("image-not-exported", text, item=Named("image", image.name))
            return None
        if image.source == "TILED":
            report_tiles(self._report, image)
        if image.is_float:
            text = "it has more than 8 bits per channel, of which 8 are exported"
            self._report.change("image-depth-changed", text, item=Named("image", image.name))
        path = image_path(image)
        has_file = not image.is_dirty and image.source != "GENERATED" and image.packed_file is None
        return Texture(
            file_name_of(image, path),
            width=width,
            height=height,
            source=path if has_file else image.name_full,
            read=None if image.is_dirty else partial(_file_of, image, path if has_file else ""),
            pixels=partial(_pixels, image),
        )


def has_alpha(image: bpy.types.Image) -> bool:
    """Return whether an image has an alpha channel."""
    return image.depth in _DEPTHS_WITH_ALPHA


def has_colors(image: bpy.types.Image) -> bool:
    """Return whether the values of an image are colours, not plain numbers."""
    return not image.colorspace_settings.is_data


def _pixels(image: bpy.types.Image) -> Pixels:
    return np.ascontiguousarray(stored_pixels(image))


def _file_of(image: bpy.types.Image, path: str) -> bytes:
    """Return the content of a PNG file or a packed image.

    Empty bytes otherwise, so that the pixels are used instead.
    """
    if image.packed_file is not None:
        return bytes(image.packed_file.data)
    if not path.lower().endswith(_PNG) or special_kind(path):
        return b""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
