"""Bytes -> the largest picture of a .texture file (docs/formats/unigine_textures.md)."""

from __future__ import annotations

from ...core.errors import UnsupportedFormatError
from ...encodings import lz4_block
from ...encodings.byte_reader import ByteStream
from ...encodings.dds import Layout, Picture, check_size

MAGICS = (b"tx10", b"tx11")
_VOLUME, _HIGHEST_KIND = 1, 4
"""Numbers of texture types: the types are plane, volume, cube, array and array of cubes."""
_LZ4 = (3, 4)
_CODES = {
    0: Layout.R8, 1: Layout.RG8, 2: Layout.RGB8, 3: Layout.RGBA8,
    21: Layout.BC1, 22: Layout.BC2, 23: Layout.BC3, 24: Layout.BC4, 25: Layout.BC5,
}  # fmt: skip
_OTHER_NAMES = {
    4: "R16", 5: "RG16", 6: "RGB16", 7: "RGBA16", 8: "R16F", 9: "RG16F", 10: "RGB16F", 11: "RGBA16F", 12: "R32F",
    13: "RG32F", 14: "RGB32F", 15: "RGBA32F", 16: "RGB565", 17: "RGBA4", 18: "RGB5A1", 19: "RGB10A2", 20: "RG11B10F",
}  # fmt: skip


def read_picture(data: bytes) -> Picture:
    """Return the largest mipmap of the first face and layer; smaller mipmaps are not decoded.

    Raises
    ------
    UnsupportedFormatError
        A volume texture, or pixels that are neither 8-bit integers nor BC1 to BC5.
    FormatError
        The data breaks the format.
    """
    stream = ByteStream(data, item="texture")
    magic = bytes(stream.take(4, "the magic"))
    if magic == b"tx10":
        kind, code, width, height, depth, _mipmaps, _layers = (stream.i32("the header") for _ in range(7))
        stream.skip(12, "the header")  # number of faces, flags and 0; the type determines the number of faces
        compression = stream.i32("the compression")
    elif magic == b"tx11":
        kind, code, compression, _mipmaps = (stream.u8("the header") for _ in range(4))
        _layers, width, height, depth = stream.array("u2", 4, "the header").tolist()
    else:
        raise UnsupportedFormatError("Not a UNIGINE texture of tx10 or tx11: it starts with {!r}", magic)
    if not 0 <= kind <= _HIGHEST_KIND:
        raise stream.error("The file is damaged: {} is not a type of texture", kind)
    if kind == _VOLUME or depth > 1:
        raise UnsupportedFormatError("It is a volume texture, which has no counterpart in Blender")
    layout = _CODES.get(code)
    if layout is None:
        raise UnsupportedFormatError("Its pixel format ({}) is not supported", _OTHER_NAMES.get(code, str(code)))
    check_size(width, height)
    return Picture(layout, width, height, _read_pixels(stream, compression, layout.size(width, height)))


def _read_pixels(stream: ByteStream, compression: int, size: int) -> memoryview | bytearray:
    """Return the first block of pixels, of ``size`` bytes once decoded."""
    if not compression:
        return stream.take(size, "the pixels")
    start = stream.position
    stored = stream.i64("the size of the pixels")
    if stored == size:
        return stream.take(size, "the pixels")
    if compression not in _LZ4:
        raise UnsupportedFormatError("Its compression ({}) is not supported", compression)
    if stored < 0 or size > lz4_block.HIGHEST_RATIO * stored:
        raise stream.error("{:,} bytes cannot be decoded to the {:,} bytes of the pixels", stored, size, offset=start)
    return lz4_block.decode(stream.take(stored, "the pixels"), size, item="texture")
