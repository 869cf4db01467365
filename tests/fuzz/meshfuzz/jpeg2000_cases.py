"""Hostile codestreams of JPEG 2000: sound ones whose header, tile parts or data are changed."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

from . import raw

_SIZE = struct.Struct(">8I")
_SIZE_AT, _COUNT_AT, _RECORDS_AT = 8, 40, 42
"""Offsets of the numbers of the size segment, of the number of components, and of their records."""
_LEAST = 64
"""Length of streams with a whole header."""
_TILE_PART, _DATA, _END = b"\xff\x90", b"\xff\x93", b"\xff\xd9"
_HOSTILE = (0, 1, 2, 3, 16, 63, 64, 65, 255, 256, 1024, 4095, 4096, 4097, 65_535, 2**31 - 1, 2**31, 2**32 - 1)
_SIDES = (1, 2, 3, 7, 31, 64, 65, 200, 1000, 2048, 4095, 4096)
_MARKERS = (0x52, 0x53, 0x55, 0x57, 0x58, 0x5C, 0x5D, 0x5E, 0x5F, 0x60, 0x61, 0x63, 0x64, 0x30, 0x6F)


def make(seeds: Sequence[bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a hostile stream and how it was made; most pass a check of headers and lengths."""
    stream, kinds = rng.choice(seeds), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if len(stream) < _LEAST:
            break
        kind = rng.choice(list(_CHANGES))
        stream = _CHANGES[kind](stream, rng, seeds)
        kinds.append(kind)
    if rng.random() < 0.75:
        stream = repaired(stream)
    return stream, ", ".join(kinds)


def repaired(stream: bytes) -> bytes:
    """Let the lengths of the tile parts agree with the stream, and end it as the format states."""
    stream = stream.removesuffix(_END)
    at = _body(stream)
    while at + 12 <= len(stream) and stream[at : at + 2] == _TILE_PART:
        following = stream.find(_TILE_PART, at + 12)
        size = int.from_bytes(stream[at + 6 : at + 10], "big")
        if at + size < len(stream) and stream[at + size : at + size + 2] == _TILE_PART and size > 12:
            following = at + size
        end = following if following >= 0 else len(stream)
        stream = stream[: at + 6] + (end - at).to_bytes(4, "big") + stream[at + 10 :]
        at = end
    return stream + _END


def _body(stream: bytes) -> int:
    """Return the offset of the first tile part, or the length of the stream."""
    at = 2
    while at + 4 <= len(stream) and stream[at : at + 2] != _TILE_PART:
        at += 2 + int.from_bytes(stream[at + 2 : at + 4], "big")
    return min(at, len(stream))


def _data(stream: bytes) -> int:
    """Return the offset of the data of the first tile part."""
    at = stream.find(_DATA, _body(stream))
    return at + 2 if at >= 0 else len(stream)


def _numbers(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    changed = bytearray(stream)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = _SIZE_AT + 4 * rng.randrange(8)
        changed[at : at + 4] = rng.choice(_HOSTILE).to_bytes(4, "big")
    return bytes(changed)


def _sides(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Set another size that is allowed, with tiles that are not too many."""
    width, height = rng.choice(_SIDES), rng.choice(_SIDES)
    tile = [side if rng.random() < 0.5 else -(-side // rng.choice((1, 2, 3, 8, 32))) for side in (width, height)]
    return stream[:_SIZE_AT] + _SIZE.pack(width, height, 0, 0, *tile, 0, 0) + stream[_COUNT_AT:]


def _components(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Set another number of components, with records for them."""
    count = int.from_bytes(stream[_COUNT_AT:_RECORDS_AT], "big")
    new = rng.choice((1, 2, 3, 4, 5))
    head = stream[:4] + (38 + 3 * new).to_bytes(2, "big") + stream[6:_COUNT_AT]
    return head + new.to_bytes(2, "big") + b"\7\1\1" * new + stream[_RECORDS_AT + 3 * min(count, 16) :]


def _records(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    changed = bytearray(stream)
    at = _RECORDS_AT + rng.randrange(3 * max(1, min(changed[_COUNT_AT + 1], 5)))
    changed[at] = rng.choice((0, 1, 2, 3, 4, 6, 7, 8, 15, 37, 38, 0x87, 255))
    return bytes(changed)


def _settings(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Change bytes of the segments after the size: progression, layers, code blocks, quantisation."""
    changed = bytearray(stream)
    start, end = _RECORDS_AT + 3 * min(changed[_COUNT_AT + 1], 16), _body(stream)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if start < end:
            changed[rng.randrange(start, end)] = rng.choice((0, 1, 2, 4, 8, 15, 32, 33, 64, 127, 128, 255, 0x40))
    return bytes(changed)


def _segment(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Insert a segment of any kind, before the first tile part or into its header."""
    content = rng.randbytes(rng.choice((0, 1, 3, 5, 8, 12, 40)))
    made = bytes((0xFF, rng.choice(_MARKERS))) + (2 + len(content)).to_bytes(2, "big") + content
    at = _body(stream)
    if rng.random() < 0.4:
        at += 12
    return stream[:at] + made + stream[at:]


def _tile_part(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Change a number of a tile part, or repeat it."""
    at = _body(stream)
    changed = bytearray(stream)
    choice = rng.randrange(5)
    if choice == 0:
        changed[at + 4 : at + 6] = rng.choice((0, 1, 2, 255, 65_535)).to_bytes(2, "big")
    elif choice == 1:
        changed[at + 6 : at + 10] = rng.choice(_HOSTILE).to_bytes(4, "big")
    elif choice == 2:
        changed[at + 10 : at + 12] = bytes((rng.choice((0, 1, 2, 254, 255)), rng.choice((0, 1, 2, 255))))
    elif len(changed) < 1 << 20:
        part = stream.removesuffix(_END)[at:]
        return stream[:at] + part * rng.choice((2, 3, 20)) + _END
    return bytes(changed)


def _bits(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    """Change bytes of the compressed data."""
    changed = bytearray(stream)
    start = _data(stream)
    for _ in range(rng.choice((1, 2, 8, 64))):
        if start < len(changed):
            near = min(len(changed), start + rng.choice((16, 256, len(changed))))
            changed[rng.randrange(start, near)] = rng.randrange(256)
    return bytes(changed)


def _noise(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return stream[: _data(stream)] + rng.randbytes(rng.choice((0, 1, 10, 1000, 20_000))) + _END


def _cut(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return stream[: rng.randrange(2, len(stream) + 1)]


def _less_data(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return stream[: rng.randrange(min(_data(stream), len(stream)), len(stream) + 1)]


def _splice(stream: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    return stream[: _body(stream)] + other[_body(other) :]


def _raw(stream: bytes, rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return raw.mutate(stream, rng)


def _unchanged(stream: bytes, _rng: random.Random, _seeds: Sequence[bytes]) -> bytes:
    return stream


_CHANGES: dict[str, Callable[[bytes, random.Random, Sequence[bytes]], bytes]] = {
    "numbers of the size": _numbers,
    "size": _sides,
    "components": _components,
    "records of components": _records,
    "settings": _settings,
    "segment": _segment,
    "tile part": _tile_part,
    "bits": _bits,
    "noise": _noise,
    "cut": _cut,
    "less data": _less_data,
    "parts of another": _splice,
    "raw": _raw,
    "none": _unchanged,
}
