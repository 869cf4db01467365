"""DDS files: read the largest picture of any, and write one picture as the plainest DDS file.

A DDS file is a header of 128 bytes, 20 more if its pixel format is named ``DX10``, then the pixels: for each array
element, for each face of a cube, each mipmap from the largest. The first picture is therefore right after the header.

Files of others are not handed to Blender as they are: a volume (3D) texture crashed Blender 4.5, and it trusts sizes in
the header.
"""

import struct
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from ..core.errors import FormatError, UnsupportedFormatError
from ..core.messages import Text

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


MAGIC = b"DDS "
_HEADER = struct.Struct("<4s 7I 44x 2I 4s 5I 2I 12x")
_EXTENSION = struct.Struct("<5I")
_HEADER_SIZE, _PIXEL_FORMAT_SIZE = 124, 32
_HAS_CAPS_SIZE_AND_FORMAT, _HAS_PITCH, _HAS_BYTE_SIZE = 0x1007, 0x8, 0x80000
_HAS_ALPHA, _ALPHA_ONLY, _HAS_FOURCC, _IS_RGB, _IS_LUMINANCE = 0x1, 0x2, 0x4, 0x40, 0x20000
_IS_TEXTURE, _IS_VOLUME = 0x1000, 0x200000
_DX10, _DIMENSION_2D, _DIMENSION_3D = b"DX10", 3, 4

_FOURCC = {
    b"DXT1": Layout.BC1,
    b"DXT2": Layout.BC2,
    b"DXT3": Layout.BC2,
    b"DXT4": Layout.BC3,
    b"DXT5": Layout.BC3,
    b"ATI1": Layout.BC4,
    b"BC4U": Layout.BC4,
    b"ATI2": Layout.BC5,
    b"BC5U": Layout.BC5,
}
_WRITTEN_FOURCC = {
    Layout.BC1: b"DXT1",
    Layout.BC2: b"DXT3",
    Layout.BC3: b"DXT5",
    Layout.BC4: b"ATI1",
    Layout.BC5: b"ATI2",
}
_DXGI = {
    28: Layout.RGBA8, 29: Layout.RGBA8, 49: Layout.RG8, 61: Layout.R8, 71: Layout.BC1, 72: Layout.BC1, 74: Layout.BC2,
    75: Layout.BC2, 77: Layout.BC3, 78: Layout.BC3, 80: Layout.BC4, 83: Layout.BC5, 87: Layout.BGRA8, 88: Layout.BGRX8,
    91: Layout.BGRA8, 93: Layout.BGRX8, 95: Layout.BC6H_UNSIGNED, 96: Layout.BC6H_SIGNED, 98: Layout.BC7,
    99: Layout.BC7,
}  # fmt: skip
"""Codes of the DX10 extension; the sRGB ones store the same bytes."""
_WRITTEN_DXGI = {Layout.BC6H_UNSIGNED: 95, Layout.BC6H_SIGNED: 96, Layout.BC7: 98}
_MASKS = {
    Layout.R8: (0xFF, 0, 0, 0),
    Layout.RG8: (0xFF, 0xFF00, 0, 0),
    Layout.RGB8: (0xFF, 0xFF00, 0xFF0000, 0),
    Layout.BGR8: (0xFF0000, 0xFF00, 0xFF, 0),
    Layout.RGBA8: (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    Layout.BGRA8: (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
    Layout.BGRX8: (0xFF0000, 0xFF00, 0xFF, 0),
}
"""Bits of red, green, blue and alpha in a pixel."""


def read(data: bytes) -> Picture:
    """Return the largest mipmap of the first face and array element of a DDS file.

    Raises
    ------
    UnsupportedFormatError
        A volume texture, or a pixel format without an entry in ``Layout``.
    FormatError
        Not a DDS file, or a damaged one.
    """
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise FormatError("This is not a DDS file, or it is cut off")
    fields = _HEADER.unpack_from(data)
    header_size, _flags, height, width = fields[1:5]
    format_flags, fourcc, bits = fields[9:12]
    masks, caps2 = fields[12:16], fields[17]
    if header_size != _HEADER_SIZE or fields[8] != _PIXEL_FORMAT_SIZE:
        raise FormatError("The header of the DDS file is damaged", offset=4)
    start = _HEADER.size
    is_volume = bool(caps2 & _IS_VOLUME)
    if format_flags & _HAS_FOURCC and fourcc == _DX10:
        if len(data) < start + _EXTENSION.size:
            raise FormatError("The DDS file is cut off", offset=len(data))
        code, dimension = _EXTENSION.unpack_from(data, start)[:2]
        start += _EXTENSION.size
        layout, name = _DXGI.get(code), f"DXGI {code}"
        is_volume |= dimension == _DIMENSION_3D
    elif format_flags & _HAS_FOURCC:
        layout, name = _FOURCC.get(fourcc), _shown(fourcc)
    else:
        layout, name = _plain_layout(format_flags, bits, masks), Text("{} bits with other masks", bits)
    if is_volume:
        raise UnsupportedFormatError("It is a volume texture, which has no counterpart in Blender")
    if layout is None:
        raise UnsupportedFormatError("Its pixel format ({}) is not supported", name)
    check_size(width, height)
    size = layout.size(width, height)
    if size > len(data) - start:
        raise FormatError(
            "The file is cut off: {:,} bytes expected for {:,} x {:,} pixels, {:,} left",
            size,
            width,
            height,
            len(data) - start,
            offset=start,
        )
    return Picture(layout, width, height, memoryview(data)[start : start + size])


_ENDS_AT = {Layout.BC1: 0, Layout.BC2: 8, Layout.BC3: 8}
"""Offset in a block of its two colours, of 5, 6 and 5 bits, between which its pixels are."""
_BITS = np.array((31 << 11, 63 << 5, 31), np.uint16)
"""Bits of red, green and blue in a colour."""
_SHARES = np.array(((3, 0), (2, 1), (1, 2), (0, 3)), np.float32) / np.float32(3)
"""Shares of both colours in the four colours of a block."""


def sample_colors(picture: Picture, most: int) -> npt.NDArray[np.float32] | None:
    """Return about as many colours of a picture, (n, 3), without decoding it; None for other layouts.

    Their mean is about that of the pixels.
    """
    layout = picture.layout
    units = np.frombuffer(picture.pixels, np.uint8).reshape(-1, layout.unit_size)
    units = units[:: max(1, len(units) // most) | 1]  # an odd step, so that samples are of many columns
    if layout in _ENDS_AT:
        start = _ENDS_AT[layout]
        ends = np.ascontiguousarray(units[:, start : start + 4]).view("<u2")[..., None]
        colors = (ends & _BITS) / _BITS.astype(np.float32)
        return np.asarray(_SHARES @ colors, np.float32).reshape(-1, 3)
    places = [layout.value.find(channel) for channel in "RGB"]
    if layout.is_compressed or min(places) < 0:
        return None
    return units[:, places].astype(np.float32) / np.float32(255)


def _plain_layout(flags: int, bits: int, masks: tuple[int, ...]) -> Layout | None:
    """Return the layout of uncompressed pixels, or None if it is not supported."""
    alpha = masks[3] if flags & _HAS_ALPHA else 0
    if flags & _IS_LUMINANCE:
        return Layout.R8 if bits == 8 and masks[0] == 0xFF else None
    if flags & _ALPHA_ONLY:
        return Layout.R8 if bits == 8 else None
    if not flags & _IS_RGB:
        return None
    if bits == 32 and masks[:3] == _MASKS[Layout.RGBA8][:3] and not alpha:
        return None  # bytes R, G, B and an unused one: not seen in real files
    wanted = (*masks[:3], alpha)
    return next((kind for kind, has in _MASKS.items() if has == wanted and 8 * kind.unit_size == bits), None)


def _shown(fourcc: bytes) -> str:
    number = int.from_bytes(fourcc, "little")
    return fourcc.decode("ascii") if fourcc.isalnum() else f"code {number}"


def write(picture: Picture) -> bytes:
    """Return a 2D DDS file of one picture without mipmaps, in the form that Blender 4.5 to 5.3 reads."""
    layout = picture.layout
    flags, masks, extension, fourcc = _HAS_FOURCC, (0, 0, 0, 0), b"", b"\0\0\0\0"
    if layout in _WRITTEN_DXGI:
        fourcc = _DX10
        extension = _EXTENSION.pack(_WRITTEN_DXGI[layout], _DIMENSION_2D, 0, 1, 0)
    elif layout.is_compressed:
        fourcc = _WRITTEN_FOURCC[layout]
    else:
        masks = _MASKS[layout]
        flags = _IS_RGB | (_HAS_ALPHA if masks[3] else 0)
    size = len(picture.pixels)
    pitch = size if layout.is_compressed else picture.width * layout.unit_size
    header = _HEADER.pack(
        MAGIC,
        _HEADER_SIZE,
        _HAS_CAPS_SIZE_AND_FORMAT | (_HAS_BYTE_SIZE if layout.is_compressed else _HAS_PITCH),
        picture.height,
        picture.width,
        pitch,
        0,
        0,
        _PIXEL_FORMAT_SIZE,
        flags,
        fourcc,
        0 if layout.is_compressed else 8 * layout.unit_size,
        *masks,
        _IS_TEXTURE,
        0,
    )
    return b"".join((header, extension, picture.pixels))
