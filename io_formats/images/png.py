"""PNG files: encode pixels with 8 bits per channel, and recognise files that are already in that form.

A PNG file is a signature of 8 bytes and chunks: length, type, content, CRC; numbers are big-endian. The first one is
``IHDR``: width, height, bits per channel, colour type, compression, filter, interlace.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

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
