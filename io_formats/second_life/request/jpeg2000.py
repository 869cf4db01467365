"""JPEG 2000 as grids store it: the bare codestream, without the container of ``.jp2`` files."""

from __future__ import annotations

_CODESTREAM = b"\xff\x4f\xff\x51"
_CONTAINER = b"\0\0\0\x0cjP  "
_MOST_BOXES = 100


def codestream(data: bytes) -> bytes | None:
    """Return the codestream of a file without its container, or None if it is not JPEG 2000."""
    if data.startswith(_CODESTREAM):
        return data
    place = 0
    for _box in range(_MOST_BOXES):
        if not data.startswith(_CONTAINER) or place + 8 > len(data):
            return None
        size, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        start = place + 8
        if size == 1:  # the size follows in 8 further bytes
            size, start = int.from_bytes(data[start : start + 8], "big"), start + 8
        end = place + size if size else len(data)
        if end < start or end > len(data):
            return None
        if kind == b"jp2c":
            return data[start:end] if data.startswith(_CODESTREAM, start) else None
        place = end
    return None


def size_of(stream: bytes) -> tuple[int, int]:
    """Return width and height in pixels from a codestream; zeros if it is cut off."""
    if len(stream) < 24:
        return 0, 0
    right, bottom, left, top = (int.from_bytes(stream[start : start + 4], "big") for start in (8, 12, 16, 20))
    return max(right - left, 0), max(bottom - top, 0)
