"""An independent reading and making of .texture and .dds files: format page and ``struct``, none of our code."""

from __future__ import annotations

import struct

import numpy as np
from unigine_oracle import lz4_block

CODES = {0: 1, 1: 2, 2: 3, 3: 4, 21: -8, 22: -16, 23: -16, 24: -8, 25: -16}
"""Bytes of a pixel by the format's code; negative: of a block of 4 x 4 pixels."""


def size(code: int, width: int, height: int) -> int:
    unit = CODES[code]
    return width * height * unit if unit > 0 else -(-width // 4) * -(-height // 4) * -unit


def texture(
    code: int, width: int, height: int, blocks: bytes, *, magic: bytes = b"tx11", kind: int = 0, depth: int = 1,
    compression: int = 4, mipmaps: int = 1, layers: int = 1,
) -> bytes:  # fmt: skip
    """Return a .texture file; ``blocks`` is all that follows the header."""
    if magic == b"tx11":
        return struct.pack("<4s4B4H", magic, kind, code, compression, mipmaps, layers, width, height, depth) + blocks
    numbers = (kind, code, width, height, depth, mipmaps, layers, 6 if kind in (2, 4) else 1, -1, 0, compression)
    return struct.pack("<4s11i", magic, *numbers) + blocks


def block(content: bytes) -> bytes:
    return struct.pack("<q", len(content)) + content


def pixels_of_texture(data: bytes) -> tuple[int, int, int, bytes]:
    """Return code, width, height and the pixels of the first block."""
    if data[:4] == b"tx11":
        _kind, code, compression, _mipmaps, _layers, width, height, _depth = struct.unpack_from("<4B4H", data, 4)
        at = 16
    else:
        _kind, code, width, height, *_others, compression = struct.unpack_from("<11i", data, 4)
        at = 48
    expected = size(code, width, height)
    if not compression:
        return code, width, height, data[at : at + expected]
    stored = struct.unpack_from("<q", data, at)[0]
    content = data[at + 8 : at + 8 + stored]
    return code, width, height, content if stored == expected else lz4_block(content, expected)


def dds(
    width: int, height: int, pixels: bytes, *, fourcc: bytes = b"", bits: int = 0,
    masks: tuple[int, int, int, int] = (0, 0, 0, 0), flags: int = 0, caps2: int = 0,
    dx10: tuple[int, int] | None = None,
) -> bytes:  # fmt: skip
    """Return a DDS file; ``dx10`` is the DXGI code and the dimension (3 plane, 4 volume) of its extension."""
    if dx10:
        fourcc = b"DX10"
    header = struct.pack("<4s7I", b"DDS ", 124, 0x1007, height, width, 0, 0, 1) + bytes(44)
    header += struct.pack("<2I4s5I", 32, flags or (4 if fourcc else 0x40), fourcc or bytes(4), bits, *masks)
    header += struct.pack("<2I", 0x1000, caps2) + bytes(12)
    assert len(header) == 128
    return header + (struct.pack("<5I", *dx10, 0, 1, 0) if dx10 else b"") + pixels


def mode_of_four_colors(blocks: np.ndarray) -> np.ndarray:
    """Return colour blocks, (n, 8) uint8, with the first colour above the second: decoders differ where it is not."""
    ends = blocks[:, :4].copy().view("<u2")
    ends = np.sort(ends, axis=1)[:, ::-1]
    ends[:, 0] |= 0x8000
    ends[:, 1] &= 0x7FFF
    return np.concatenate((np.ascontiguousarray(ends).view(np.uint8), blocks[:, 4:]), axis=1)
