"""Hostile .texture and .dds files: whole ones of every pixel format, with hostile headers or changed bytes."""

from __future__ import annotations

import random
import struct

from . import raw

_CODES = {0: 1, 1: 2, 2: 3, 3: 4, 4: 2, 8: 2, 11: 8, 15: 16, 20: 4, 21: -8, 22: -16, 23: -16, 24: -8, 25: -16}
"""Bytes of a pixel by the code of .texture files; negative: of a block of 4 x 4 pixels."""
_FOURCCS = (b"DXT1", b"DXT3", b"DXT5", b"ATI1", b"ATI2", b"BC4U", b"BC5S", b"DX10", b"q\0\0\0", b"RXGB")
_DXGI = (10, 28, 61, 71, 78, 80, 83, 87, 95, 98, 99, 115, 2**32 - 1)
_HOSTILE = (0, 1, 2, 3, 4, 5, 6, 255, 256, 4096, 16_384, 16_385, 65_535, 2**31 - 1, -1, -(2**31))


def sound(rng: random.Random) -> tuple[bytes, str]:
    """Return a file that is whole, with a picture of few pixels."""
    width, height = rng.choice((1, 3, 4, 9, 32)), rng.choice((1, 2, 4, 17, 32))
    if rng.random() < 0.4:
        return _dds(rng, width, height), "DDS"
    code = rng.choice(list(_CODES))
    content = rng.randbytes(_size(_CODES[code], width, height))
    kind, mipmaps = rng.choice((0, 0, 0, 2, 3)), rng.choice((1, 1, 2, 5))
    compression = rng.choice((0, 4, 4, 4))
    if compression and rng.random() < 0.5:  # one literal, then copies of it
        content = _run_of(len(content))
    blocks = (struct.pack("<q", len(content)) + content if compression else content) * mipmaps
    if rng.random() < 0.5:
        header = struct.pack("<4s11i", b"tx10", kind, code, width, height, 1, mipmaps, 1, 1, -1, 0, compression)
    else:
        header = struct.pack("<4s4B4H", b"tx11", kind, code, compression, mipmaps, 1, width, height, 1)
    return header + blocks, "texture"


def _size(unit: int, width: int, height: int) -> int:
    return width * height * unit if unit > 0 else -(-width // 4) * -(-height // 4) * -unit


def _run_of(size: int) -> bytes:
    """Return an LZ4 block of equal bytes."""
    if size < 20:
        return bytes([size << 4]) + bytes(size) if size < 15 else bytes([0xF0, size - 15]) + bytes(size)
    more = size - 1 - 4 - 15
    return b"\x1fz\x01\x00" + b"\xff" * (more // 255) + bytes([more % 255]) + b"\x00"


def _dds(rng: random.Random, width: int, height: int) -> bytes:
    fourcc = rng.choice((*_FOURCCS, bytes(4)))
    bits = rng.choice((8, 16, 24, 32))
    masks = rng.choice(((255, 0, 0, 0), (255, 65280, 0xFF0000, 0xFF000000), (0xFF0000, 65280, 255, 0)))
    header = struct.pack("<4s7I44x", b"DDS ", 124, 0x1007, height, width, 0, 0, 1)
    header += struct.pack(
        "<2I4s5I", 32, 4 if any(fourcc) else rng.choice((0x40, 0x41, 2, 0x20000)), fourcc, bits, *masks
    )
    header += struct.pack("<5I", 0x1000, rng.choice((0, 0, 0, 0xFE00, 0x200000)), 0, 0, 0)
    if fourcc == b"DX10":
        header += struct.pack("<5I", rng.choice(_DXGI), rng.choice((3, 3, 3, 4)), 0, 1, 0)
    return header + rng.randbytes(width * height * 4 + 64)


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a hostile file and how it was made."""
    if files and rng.random() < 0.1:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    data, name = sound(rng)
    choice = rng.random()
    if choice < 0.5:
        return _with_numbers(data, name, rng), f"{name}, changed header"
    return (raw.mutate(data, rng), f"{name}, raw changes") if choice < 0.9 else (data, f"{name}, unchanged")


def _with_numbers(data: bytes, name: str, rng: random.Random) -> bytes:
    """Overwrite some numbers of the header, or the size of the first block."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if name == "DDS":
            width, at = 4, 4 * rng.randrange(1, 37)
        elif data.startswith(b"tx11"):
            at, width = rng.choice([*((at, 1) for at in range(4, 8)), *((at, 2) for at in range(8, 16, 2)), (16, 8)])
        else:
            at, width = rng.choice([*((4 * at, 4) for at in range(1, 12)), (48, 8)])
        number = rng.choice(_HOSTILE) % 2 ** (8 * width)
        changed[at : at + width] = number.to_bytes(width, "little")
    return bytes(changed)
