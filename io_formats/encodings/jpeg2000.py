"""JPEG 2000: the bare codestream, without the container of ``.jp2`` files, and whether Blender may decode it.

Blender's decoder crashes or needs much memory for some streams, and shows damaged ones in magenta. So a stream that
is not trusted has to be examined first.
"""

import struct
from dataclasses import dataclass

from ..core.messages import Text

LARGEST_SIDE = 4096
"""Pixels. A stream of 358 bytes with 8,192 x 8,192 pixels costs 273 MB and 2.5 s."""
_LARGEST_HEADERS = 2**16
"""Bytes by which a stream may exceed its pixels, a byte for each component, to be completed."""
_MOST_TILES = 1024
_MOST_SEGMENTS = 10_000
"""Marker segments of the main header."""
_PARTS_OF_TILE = 255
_COMPONENTS = {1, 3, 4, 5}
_SIZE, _TILE_PART = struct.Struct(">HH8IH"), struct.Struct(">HHIBB")
_SIZE_START = 4
"""Offset of the length of the size segment, after two markers."""
_START_OF_TILE, _END = b"\xff\x90", b"\xff\xd9"
_EIGHT_BITS = b"\7\1\1"
"""A component of 8 unsigned bits that is not subsampled."""
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


@dataclass(frozen=True)
class Jpeg2000Info:
    """A codestream that Blender may decode."""

    width: int
    height: int
    components: int
    """1 grey, 2 grey and alpha, 3 colour, 4 and 5 colour and alpha."""
    stream: bytes
    """The codestream, without a container. Where it is cut off in its last tile part, zeros follow up to the end that
    this states: the viewer shows such pictures, and a real inventory has them in 4 of 100 pictures."""


class _Refused(Exception):
    """A stream that must not be decoded, with the reason."""

    def __init__(self, template: str, *values: object) -> None:
        super().__init__()
        self.reason = Text(template, *values)


def examine(data: bytes, *, two_components: bool = False) -> Jpeg2000Info | Text:
    """Return facts about a file that Blender may decode, or the reason why it must not.

    Parameters
    ----------
    data:
        A codestream or a ``.jp2`` file.
    two_components:
        Whether grey with alpha is accepted. Blender 4.5 crashes in a quarter of such cases, Blender 5.2 does not.
    """
    try:
        if not data:
            raise _Refused("it is empty")
        stream = codestream(data)
        if stream is None:
            raise _Refused("it is not JPEG 2000, or is cut off")
        width, height, components, tiles = _size_segment(stream)
        if components not in (_COMPONENTS | {2} if two_components else _COMPONENTS):
            raise _Refused("it has {:,} colour components", components)
        stream = _whole(stream, tiles, width * height * components + _LARGEST_HEADERS)
    except struct.error:
        return Text("it is cut off")
    except _Refused as refused:
        return refused.reason
    return Jpeg2000Info(width, height, components, stream)


def _size_segment(stream: bytes) -> tuple[int, int, int, int]:
    """Return width, height, and numbers of components and of tiles."""
    length, _, *numbers, components = _SIZE.unpack_from(stream, _SIZE_START)
    width, height, left, top, tile_width, tile_height, tile_left, tile_top = numbers
    if left or top or tile_left or tile_top:
        raise _Refused("its picture does not start at the origin")
    if not (0 < width <= LARGEST_SIDE and 0 < height <= LARGEST_SIDE):
        raise _Refused("it has {:,} x {:,} pixels; at most {:,} on a side are read", width, height, LARGEST_SIDE)
    if not (0 < tile_width <= width and 0 < tile_height <= height):
        raise _Refused("its tiles have {:,} x {:,} pixels, the picture {:,} x {:,}", *numbers[4:6], width, height)
    tiles = -(-width // tile_width) * -(-height // tile_height)
    if tiles > _MOST_TILES:
        raise _Refused("it has {:,} tiles", tiles)
    start = _SIZE_START + _SIZE.size
    if length != _SIZE.size + 3 * components:
        raise _Refused("its header is damaged")
    if stream[start : start + 3 * components] != _EIGHT_BITS * components:
        raise _Refused("its components do not all have 8 bits for every pixel")
    return width, height, components, tiles


def _whole(stream: bytes, tiles: int, most: int) -> bytes:
    """Follow the lengths of the main header's segments and of the tile parts to the end of the stream.

    Return the stream, with zeros if its last tile part is there by half or more and ends within ``most`` bytes.
    """
    at = _SIZE_START + struct.unpack_from(">H", stream, _SIZE_START)[0]
    for _ in range(_MOST_SEGMENTS):
        marker, length = stream[at : at + 2], struct.unpack_from(">H", stream, at + 2)[0]
        if marker == _START_OF_TILE:
            break
        if marker[0] != 0xFF or marker == _END or length < 2:
            raise _Refused("its header is damaged")
        at += 2 + length
    seen = set()
    for _ in range(_PARTS_OF_TILE * tiles):
        if stream[at : at + 2] != _START_OF_TILE:
            break
        length, tile, size, number, count = _TILE_PART.unpack_from(stream, at + 2)
        if length != _TILE_PART.size or tile >= tiles or 0 < size <= 2 + _TILE_PART.size:
            raise _Refused("a tile is damaged")
        if not size:  # the last one, up to the end
            size = len(stream) - len(_END) - at
        seen.add(tile)
        if at + size + len(_END) > len(stream):
            is_last = len(seen) == tiles and (not count or number + 1 == count)
            if is_last and (len(stream) - at) * 2 >= size and at + size <= most:
                return stream[: at + size].ljust(at + size, b"\0") + _END
            raise _Refused("it is cut off")
        at += size
    if stream[at : at + 2] != _END or len(seen) < tiles:
        raise _Refused("it is cut off")
    return stream
