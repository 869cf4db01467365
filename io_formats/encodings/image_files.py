"""Recognition of image files without decoding them, and PNG files with 8 bits per channel.

A PNG file is a signature of 8 bytes and chunks: length, type, content, CRC; numbers are big-endian. The first one is
``IHDR``: width, height, bits per channel, colour type, compression, filter, interlace.
"""

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

_MAGICS = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"v/1\x01": "OpenEXR",
    b"#?RADIANCE": "Radiance HDR",
    b"#?RGBE": "Radiance HDR",
    b"8BPS": "PSD",
    b"BM": "BMP",
}
_EXTENSIONS = {
    ".png": rb"\x89PNG",
    ".jpg .jpeg": rb"\xff\xd8\xff",
    ".bmp": rb"BM",
    ".j2c .jpc .j2k": rb"\xff\x4f\xff\x51",
    ".jp2": rb"\0\0\0\x0cjP",
    ".tif .tiff .tx": rb"II\*\0|MM\0\*",
    ".dds": rb"DDS ",
    ".webp": rb"(?s)RIFF.{4}WEBP",
    ".exr": rb"v/1\x01",
    ".hdr": rb"#\?RADIANCE|#\?RGBE",
}
"""Beginnings of image files by their extensions, the usual one first."""
_BEGINNING = re.compile(
    rb"\x89PNG|\xff\xd8\xff|(II|MM)(\*\0|\0[*+]|\+\0)|v/1\x01|#\?RADIANCE|#\?RGBE|8BPS|DDS |\xff\x4f\xff\x51"
    rb"|\0\0\0\x0cjP|GIF8|SDPX|XPDS|\x80\x2a\x5f\xd7|\x01\xda[\0\1]|BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"
    rb"|RIFF.{4}(WEBP|AVI )|.{4}(ftyp|moov|mdat|wide)|\x1a\x45\xdf\xa3|OggS|FLV\x01|\0\0\x01[\xba\xb3]"
    rb"|\x30\x26\xb2\x75",
    re.DOTALL,
)
"""Matches the beginnings of pictures and films that Blender may read; Targa has none."""
JPEG_2000 = (".j2c", ".jp2")
"""Extensions of JPEG 2000 files, without and with a container."""
_PNG_END = b"IEND"
_TARGA_HEADER = 18
_TARGA_TYPES = {1, 2, 3, 9, 10, 11}
_TARGA_DEPTHS = {8, 15, 16, 24, 32}


def image_kind(data: bytes) -> str:
    """Return the name of an image file's format, or an empty string if Blender cannot read it or it is cut off.

    DDS is left out, since files of others must not be given to Blender as they are.
    """
    for magic, name in _MAGICS.items():
        if data.startswith(magic):
            return "" if name == "PNG" and _PNG_END not in data[-64:] else name
    return "Targa" if _is_targa(data) else ""


def begins_as_picture(data: bytes) -> bool:
    """Return whether the first 64 bytes of a file are those of a picture or film that Blender may read."""
    return _BEGINNING.match(data) is not None or _is_targa(data)


def extension_of(data: bytes | Path, given: str) -> str:
    """Return the extension of an image by its content or file, or ``given`` if it fits or the content is unknown."""
    if isinstance(data, Path):
        with data.open("rb") as file:
            data = file.read(64)
    for extensions, magic in _EXTENSIONS.items():
        if re.match(magic, data):
            return given if given.lower() in extensions.split() else extensions.split()[0]
    return ".tga" if _is_targa(data) else given


def _is_targa(data: bytes) -> bool:
    """Targa files have no magic number, so that the fields of the header decide."""
    if len(data) < _TARGA_HEADER:
        return False
    has_palette, kind, depth = data[1], data[2], data[16]
    width, height = int.from_bytes(data[12:14], "little"), int.from_bytes(data[14:16], "little")
    return has_palette < 2 and kind in _TARGA_TYPES and depth in _TARGA_DEPTHS and width > 0 and height > 0


PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_CHUNK = struct.Struct(">I4s")
_HEADER = struct.Struct(">IIBBBBB")
_COLOR, _COLOR_AND_ALPHA = 2, 6
_COLOR_TYPES = {3: _COLOR, 4: _COLOR_AND_ALPHA}
"""Colour type by number of channels."""
_LEVEL = 6


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Encode pixels (H, W, 3) or with alpha (H, W, 4), the topmost row first, as a PNG file."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + channels * width), np.uint8)  # a PNG row starts with a filter type; 0 is none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = _HEADER.pack(width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes(), _LEVEL)), _chunk(b"IEND", b""))
    return b"".join((PNG_MAGIC, *chunks))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return _CHUNK.pack(len(data), kind) + data + struct.pack(">I", zlib.crc32(kind + data))


def is_plain(data: bytes) -> bool:
    """Return whether a file is a whole PNG of colours with 8 bits per channel, without palette or a transparent colour.

    Programs read other kinds, such as 16 bits, palettes and grey, in different ways.
    """
    start = len(PNG_MAGIC)
    if not data.startswith(PNG_MAGIC) or b"IEND" not in data[-12:] or len(data) < start + 8 + _HEADER.size:
        return False
    _width, _height, bits, color_type = _HEADER.unpack_from(data, start + 8)[:4]
    if bits != 8 or color_type not in _COLOR_TYPES.values():
        return False
    while start + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, start)
        if kind in (b"tRNS", b"IDAT"):
            return bool(kind == b"IDAT")
        start += _CHUNK.size + length + 4
    return False
