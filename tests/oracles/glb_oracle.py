"""GLB files and the PNG images in them, read with the standard library and NumPy alone."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt


def read_glb(data: bytes) -> tuple[Any, bytes]:
    """Return the JSON and the binary buffer of a GLB file."""
    assert data[:4] == b"glTF"
    version, length = struct.unpack_from("<II", data, 4)
    assert (version, length) == (2, len(data))
    chunks = {}
    at = 12
    while at < len(data):
        size, kind = struct.unpack_from("<I4s", data, at)
        assert size % 4 == 0
        chunks[kind] = data[at + 8 : at + 8 + size]
        at += 8 + size
    return json.loads(chunks[b"JSON"]), chunks.get(b"BIN\0", b"")


def images_of(data: bytes) -> list[bytes]:
    """Return the image files in a GLB file."""
    content, buffer = read_glb(data)
    found = []
    for image in content.get("images", []):
        view = content["bufferViews"][image["bufferView"]]
        found.append(buffer[view.get("byteOffset", 0) :][: view["byteLength"]])
    return found


def read_png(data: bytes) -> npt.NDArray[np.uint8]:
    """Decode a PNG file of 8 bits per channel, not interlaced: (H, W, channels), the topmost row first."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    packed, at = b"", 8
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, at + 8)
            assert (depth, interlaced) == (8, 0)
            channels = {0: 1, 2: 3, 4: 2, 6: 4}[color]
        packed += data[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * channels)
    above = [0] * (width * channels)
    rows = []
    for line in lines.tolist():
        rows.append(above := _unfiltered(line[0], line[1:], above, channels))
    return np.array(rows, np.uint8).reshape(height, width, channels)


def _unfiltered(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    """Undo the filter of one row (PNG specification, section 9)."""
    row: list[int] = []
    for number, value in enumerate(line):
        left = row[number - step] if number >= step else 0
        corner = above[number - step] if number >= step else 0
        row.append(
            (value + (0, left, above[number], (left + above[number]) // 2, _paeth(left, above[number], corner))[kind])
            & 255
        )
    return row


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))
