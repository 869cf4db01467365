"""Decode image files with Blender, and mean colours of images that need not be decoded."""

import contextlib
from collections.abc import Iterator

import bpy
import numpy as np
import numpy.typing as npt

from ..io_formats.core.errors import FormatError
from ..io_formats.core.messages import Named
from ..io_formats.core.shading import Color, Pixels
from ..io_formats.encodings import dds
from ..io_formats.encodings.quantization import srgb_to_linear, to_unorm
from .exporting.reading.material_reading import pixels_of

_SAMPLES = 4096
_MOST_PIXELS = 1 << 22
"""Largest number of pixels of an image that is read for its mean, which takes about 50 ms."""


def mean_color(image: bpy.types.Image) -> Color | None:
    """Return the mean linear colour of an image that is decoded already, or of a packed DDS file; None for others."""
    if image.has_data:
        if not 0 < len(image.pixels) <= _MOST_PIXELS * image.channels:
            return None
        pixels = pixels_of(image).reshape(-1, 4)
        pixels = pixels[:: max(1, len(pixels) // _SAMPLES) | 1]  # an odd step, so that samples are of many columns
        colors, weights = pixels[:, :3], pixels[:, 3] if pixels[:, 3].any() else None
        return _mean(colors if image.is_float else srgb_to_linear(colors), weights)
    if image.packed_file is not None and image.filepath_raw.lower().endswith(".dds"):
        return mean_of_dds(image.packed_file.data)  # a copy, which takes as long as all else of an import
    return None


def mean_of_dds(content: bytes) -> Color | None:
    """Return the mean linear colour of a DDS file; None for others, damaged ones, and layouts that need decoding."""
    try:
        colors = dds.sample_colors(dds.read(content), _SAMPLES // 16)
    except FormatError:
        return None
    return None if colors is None else _mean(srgb_to_linear(colors))


def _mean(colors: npt.NDArray[np.float32], weights: npt.NDArray[np.float32] | None = None) -> Color:
    mean = colors.mean(axis=0) if weights is None else np.average(colors, axis=0, weights=weights)
    red, green, blue = (min(max(0.0, part), 1.0) for part in mean.tolist())  # 0 for what is not a number
    return (red, green, blue)


def decode(content: bytes, name: str) -> Pixels:
    """Return the pixels of an image file as stored, (H, W, 4) uint8, the lowest row first.

    Files with 8 bits per channel are decoded exactly. An image without alpha is opaque.

    Raises
    ------
    FormatError
        Blender cannot decode the file, which is called ``name``.
    """
    with packed_image(content) as image:
        if not all(image.size):
            raise FormatError("Blender cannot decode the image '{}'", Named("image", name))
        return as_bytes(image)


def as_bytes(image: bpy.types.Image) -> Pixels:
    """Return the pixels of a Non-Color image, (H, W, 4) uint8, the lowest row first."""
    return to_unorm(pixels_of(image))


@contextlib.contextmanager
def packed_image(content: bytes) -> Iterator[bpy.types.Image]:
    """Yield a temporary image with the content of an image file, whose values Blender does not convert."""
    image = bpy.data.images.new("meshferry", 1, 1)
    try:
        image.colorspace_settings.name = "Non-Color"
        image.alpha_mode = "CHANNEL_PACKED"  # otherwise Blender multiplies colours by alpha
        image.source = "FILE"
        image.pack(data=content, data_len=len(content))
        yield image
    finally:
        bpy.data.images.remove(image)
