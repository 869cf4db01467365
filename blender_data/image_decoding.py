"""Decode image files with Blender."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import bpy

from ..io_formats.core.errors import FormatError
from ..io_formats.core.messages import Named
from ..io_formats.core.shading import Pixels
from ..io_formats.encodings.quantization import to_unorm
from .exporting.reading.material_reading import pixels_of


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
