"""A picture in memory, with its pixels as a graphics card stores them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..core.errors import FormatError

LARGEST_SIDE = 16_384
"""Largest width and height in pixels, which is also the limit of graphics cards."""


class Layout(Enum):
    """How pixels are stored: as bytes one after another, or in compressed blocks of 4 x 4 pixels (BC)."""

    R8 = "R8"
    RG8 = "RG8"
    RGB8 = "RGB8"
    RGBA8 = "RGBA8"
    BGR8 = "BGR8"
    BGRA8 = "BGRA8"
    BGRX8 = "BGRX8"
    BC1 = "BC1"
    BC2 = "BC2"
    BC3 = "BC3"
    BC4 = "BC4"
    BC5 = "BC5"
    BC6H_UNSIGNED = "BC6H"
    BC6H_SIGNED = "BC6H signed"
    BC7 = "BC7"

    @property
    def is_compressed(self) -> bool:
        return self.value.startswith("BC")

    @property
    def unit_size(self) -> int:
        """Bytes of a pixel, or of a block if compressed."""
        if self.is_compressed:
            return 8 if self in (Layout.BC1, Layout.BC4) else 16
        return len(self.value) - 1

    def size(self, width: int, height: int) -> int:
        """Return the number of bytes of a picture."""
        if self.is_compressed:
            return (width + 3) // 4 * ((height + 3) // 4) * self.unit_size
        return width * height * self.unit_size


@dataclass(frozen=True)
class Picture:
    """A picture: rows from the top, each from the left."""

    layout: Layout
    width: int
    height: int
    pixels: bytes | bytearray | memoryview


def check_size(width: int, height: int) -> None:
    """Raise FormatError for a width or height that no picture has, before anything is computed from them."""
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise FormatError("The picture has {:,} x {:,} pixels; 1 to {:,} are possible", width, height, LARGEST_SIDE)
