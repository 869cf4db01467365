"""LZ4 blocks without a frame: sequences of literals and copies of earlier output.

A sequence is a token (4 bits: number of literals; 4 bits: length of the copy minus 4; the value 15 means that further
bytes are added to it, up to and including the first below 255), the literals, a u16 offset back, and the further bytes
of the copy's length. The last sequence ends after its literals.
"""

from ..core.errors import FormatError
from ..core.messages import Text

HIGHEST_RATIO = 255
"""Largest possible ratio of inflated to compressed size: one byte adds at most 255 to a length."""


def decode(data: bytes | bytearray | memoryview, size: int, *, item: str = "") -> bytearray:
    """Decode a block to ``size`` bytes.

    Parameters
    ----------
    data:
        The block.
    size:
        Expected size of the output. Nothing is allocated in advance, so that a wrong size costs no memory.
    item:
        The owner of the block, for errors.

    Raises
    ------
    FormatError
        The block is damaged or has another size; with the offset in the block.
    """
    source = bytes(data)
    end = len(source)
    result = bytearray()
    place = 0
    try:
        while place < end:
            token = source[place]
            place += 1
            length = token >> 4
            if length == 15:
                length, place = _longer(source, place, length)
            if length > end - place or len(result) + length > size:
                raise _broken("literals beyond the end", place, item)
            result += source[place : place + length]
            place += length
            if place == end:
                break
            distance = source[place] | source[place + 1] << 8
            place += 2
            length = token & 15
            if length == 15:
                length, place = _longer(source, place, length)
            length += 4
            start = len(result) - distance
            if not distance or start < 0:
                raise _broken("a copy from before the start", place, item)
            if len(result) + length > size:
                raise _broken(Text("it decodes to more than {:,} bytes", size), place, item)
            if distance >= length:
                result += result[start : start + length]
            else:  # overlapping copy: it repeats its own output
                piece = bytes(result[start:])
                result += (piece * (length // distance + 1))[:length]
    except IndexError:
        raise _broken("it is cut off", end, item) from None
    if len(result) != size:
        raise _broken(Text("{:,} of {:,} bytes are decoded", len(result), size), end, item)
    return result


def _longer(source: bytes, place: int, length: int) -> tuple[int, int]:
    """Add the further bytes of a length; return the length and the position after them."""
    while True:
        byte = source[place]
        place += 1
        length += byte
        if byte != 255:
            return length, place


def _broken(reason: str, place: int, item: str) -> FormatError:
    return FormatError("The compressed data is damaged ({})", Text(reason), offset=place, item=item)
