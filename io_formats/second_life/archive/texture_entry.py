"""The texture entry of a part: how its faces look (docs/formats/opensim_archives.md, section Faces)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .binary_text import uuid_text
from .document import TextureEntry, TextureFace

MOST_FACES = 45
"""Number of faces for which the viewer keeps values (``MAX_TES``); bits of further faces are ignored."""
_LONGEST = 4095
"""Bytes that the viewer reads (``MAX_TE_BUFFER``)."""
_MASK_BITS = (1 << 64) - 1
_DEFAULT = TextureFace()
_COLOR_MAXIMUM = 255


@dataclass(frozen=True)
class _Property:
    """A property of all faces, as it is stored."""

    size: int
    convert: Callable[[bytes], Any]
    default: Any
    is_required: bool = True


def _color(data: bytes) -> tuple[float, ...]:
    return tuple((_COLOR_MAXIMUM - value) / _COLOR_MAXIMUM for value in data)


def _repeats(data: bytes) -> float:
    return float(struct.unpack("<f", data)[0])


def _offset(data: bytes) -> float:
    return max(int.from_bytes(data, "little", signed=True) / 32767, -1.0)


def _rotation(data: bytes) -> float:
    return int.from_bytes(data, "little", signed=True) / 32768 * math.tau


_PROPERTIES = (
    _Property(16, uuid_text, _DEFAULT.texture),
    _Property(4, _color, _DEFAULT.color),
    _Property(4, _repeats, _DEFAULT.repeats[0]),
    _Property(4, _repeats, _DEFAULT.repeats[1]),
    _Property(2, _offset, _DEFAULT.offsets[0]),
    _Property(2, _offset, _DEFAULT.offsets[1]),
    _Property(2, _rotation, _DEFAULT.rotation),
    _Property(1, ord, 0),
    _Property(1, ord, 0),
    _Property(1, lambda data: data[0] / 255, _DEFAULT.glow),
    # Entries of old servers end before the material.
    _Property(16, uuid_text, _DEFAULT.material, is_required=False),
)


def read_texture_entry(data: bytes) -> tuple[TextureEntry, bool]:
    """Decode a texture entry.

    Returns
    -------
    entry, is_whole:
        The entry; False if it is damaged. Values up to the damage are used, the others are the defaults.
    """
    reader = _Reader(data[:_LONGEST])
    is_whole = len(data) <= _LONGEST
    values = [[stored.default] * (MOST_FACES + 1) for stored in _PROPERTIES]
    used = 0
    try:
        for stored, row in zip(_PROPERTIES, values, strict=True):
            if not stored.is_required and reader.is_at_end():
                break
            row[:] = [stored.convert(reader.take(stored.size))] * len(row)
            while mask := reader.mask():
                value = stored.convert(reader.take(stored.size))
                for face in range(MOST_FACES):
                    if mask >> face & 1:
                        row[face] = value
                used |= mask
    except EOFError:
        is_whole = False
    for row, default in zip(values[2:4], _DEFAULT.repeats, strict=True):
        if not all(map(math.isfinite, row)):
            row[:] = [value if math.isfinite(value) else default for value in row]
            is_whole = False
    faces = [face for face in range(MOST_FACES) if used >> face & 1]
    columns = {face: tuple(row[face] for row in values) for face in (MOST_FACES, *faces)}
    looks = {column: _face(column) for column in set(columns.values())}
    plain = looks[columns.pop(MOST_FACES)]
    exceptions = {face: looks[column] for face, column in columns.items() if looks[column] != plain}
    return TextureEntry(plain, exceptions), is_whole


def _face(column: tuple[Any, ...]) -> TextureFace:
    """Return the look of a face from the values of its properties."""
    texture, color, repeat_u, repeat_v, offset_u, offset_v, rotation, bump, media, glow, material = column
    return TextureFace(
        texture=texture,
        color=color,
        repeats=(repeat_u, repeat_v),
        offsets=(offset_u, offset_v),
        rotation=rotation,
        bump=bump & 0x1F,
        shiny=bump >> 6,
        is_full_bright=bool(bump & 0x20),
        has_media=bool(media & 1),
        mapping=media & 6,
        glow=glow,
        material=material,
    )


class _Reader:
    """A cursor over the bytes, which end like an additional 0."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes; raise EOFError if fewer are left."""
        start = self._at
        self._at += size
        if self._at > len(self._data):
            raise EOFError
        return self._data[start : self._at]

    def mask(self) -> int:
        """Return the faces of the next value as bits, or 0 after the last value of a property."""
        mask, has_more = 0, not self.is_at_end()
        while has_more:
            byte = self.take(1)[0]
            mask = (mask << 7 | byte & 0x7F) & _MASK_BITS
            has_more = bool(byte & 0x80)
        return mask
