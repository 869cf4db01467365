"""Texture entries and extra parameters: random ones against a slow transcription of the page, and damaged ones."""

from __future__ import annotations

import base64
import math
import random
import struct
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from meshferry.io_formats.second_life.opensim import object_xml
from meshferry.io_formats.second_life.opensim.document import NULL_ID, PartLight, TextureEntry
from meshferry.io_formats.second_life.opensim.object_xml import binary_of
from meshfuzz import opensim_archive_seeds as made

RAW = bytes(range(16))


def mean(stored: list[bytes]) -> dict[str, Any]:
    """Return what the stored values of one face mean, as the page has them in its table."""
    texture, color, u, v, offset_u, offset_v, rotation, look, media, glow, material = stored
    return {
        "texture": str(uuid.UUID(bytes=texture)),
        "color": tuple((255 - value) / 255 for value in color),
        "repeats": (struct.unpack("<f", u)[0], struct.unpack("<f", v)[0]),
        "offsets": tuple(max(-1, struct.unpack("<h", value)[0] / 32767) for value in (offset_u, offset_v)),
        "rotation": struct.unpack("<h", rotation)[0] / 32768 * 2 * math.pi,
        "bump": look[0] & 0x1F,
        "is_full_bright": bool(look[0] & 0x20),
        "shiny": (look[0] & 0xC0) >> 6,
        "has_media": bool(media[0] & 1),
        "mapping": media[0] & 6,
        "glow": glow[0] / 255,
        "material": str(uuid.UUID(bytes=material)),
    }


def fields_of(entry: TextureEntry, face: int) -> dict[str, Any]:
    found = entry.face(face)
    return {name: getattr(found, name) for name in found.__slots__}


def random_value(rng: random.Random, index: int) -> bytes:
    if index in (2, 3):
        return struct.pack("<f", rng.choice((0.0, 1.0, -1.0, 0.01, 100.0, 3e38)))
    return rng.choice((rng.randbytes(made.PROPERTY_SIZES[index]), bytes(made.PROPERTY_SIZES[index])))


def test_random_entries_agree_with_a_slow_transcription() -> None:
    rng = random.Random(7)
    for _ in range(300):
        bits = rng.choice((3, 8, 14, 45, 64))
        properties = []
        stored = []
        for index in range(11):
            default = random_value(rng, index)
            pairs = [(rng.getrandbits(bits) or 1, random_value(rng, index)) for _ in range(rng.choice((0, 0, 1, 2, 9)))]
            properties.append((default, pairs))
            values = [default] * 65
            for mask, value in pairs:  # later ones win
                for face in range(64):
                    if mask & 1 << face:
                        values[face] = value
            stored.append(values)
        data = made.texture_entry(properties) + rng.choice((b"", b"\0"))
        entry, is_whole = object_xml.read_texture_entry(data)
        assert is_whole
        for face in (*range(object_xml.MOST_FACES), 64):
            assert fields_of(entry, face) == mean([values[face] for values in stored])
        assert all(face < object_xml.MOST_FACES for face in entry.exceptions)
        assert all(found != entry.default for found in entry.exceptions.values())


PLAIN = made.texture_entry([(random_value(random.Random(1), index), []) for index in range(11)])
"""An entry without masks."""


def test_entries_of_old_servers_have_no_material() -> None:
    for length in (len(PLAIN) - 16, len(PLAIN) - 17):
        entry, is_whole = object_xml.read_texture_entry(PLAIN[:length])
        assert is_whole
        assert entry.default.material == NULL_ID
        assert entry.default.glow == object_xml.read_texture_entry(PLAIN)[0].default.glow


def test_damaged_entries_keep_what_was_read() -> None:
    whole, _ = object_xml.read_texture_entry(PLAIN)
    for length in (*range(len(PLAIN) - 17), *range(len(PLAIN) - 15, len(PLAIN))):
        entry, is_whole = object_xml.read_texture_entry(PLAIN[:length])
        assert not is_whole, length
        assert entry.default.texture == (whole.default.texture if length >= 16 else NULL_ID)
        assert not entry.exceptions
    pairs = made.texture_entry([(RAW, [(1, bytes(16)), (1 << 40, RAW)])])
    entry, is_whole = object_xml.read_texture_entry(pairs[:-3])
    assert not is_whole
    assert (entry.face(0).texture, entry.face(40).texture) == (NULL_ID, str(uuid.UUID(bytes=RAW)))


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80" * 100_000, RAW + b"\x80" * 20_000_000, RAW + b"\xff\x7f" * 50_000, PLAIN + b"\x01" * 50_000],
    ids=["empty", "high bits", "endless mask", "many masks", "many materials"],
)
def test_hostile_entries_end_soon(data: bytes) -> None:
    start = time.process_time()
    entry, is_whole = object_xml.read_texture_entry(data)
    assert not is_whole
    assert len(entry.exceptions) <= object_xml.MOST_FACES
    assert time.process_time() - start < 0.5


def test_repeats_that_are_not_numbers_are_one() -> None:
    data = bytearray(PLAIN)
    data[22:26] = struct.pack("<f", math.nan)
    data[27:31] = struct.pack("<f", -math.inf)
    entry, is_whole = object_xml.read_texture_entry(bytes(data))
    assert not is_whole and entry.default.repeats == (1, 1)


@pytest.mark.parametrize(
    ("change", "is_whole"),
    [
        (lambda text: text, True),
        (lambda text: "\r\n ".join(text[start : start + 9] for start in range(0, len(text), 9)), True),
        (lambda text: text.rstrip("="), True),
        (lambda text: text[:3] + "?" + text[3:], False),
        (lambda text: text.rstrip("=")[:21], False),
        (lambda text: text + "rest", True),
    ],
)
def test_base64_is_read_up_to_its_damage(change: Callable[[str], str], is_whole: bool) -> None:
    found, whole = binary_of(change(base64.b64encode(RAW).decode()))
    assert whole == is_whole and RAW.startswith(found) and len(found) >= 15
    assert binary_of("") == (b"", True)


LIGHT = bytes((255, 51, 0, 204)) + struct.pack("<3f", 12.5, 0.25, 0.75)


def test_lights_projectors_and_other_parameters() -> None:
    projector = RAW + struct.pack("<3f", 1.5, 20.0, 0.0)
    data = made.extra((0x10, bytes(16)), (0x20, LIGHT), (0x40, projector), (0x70, bytes(4)), (0x90, bytes(9)))
    found, is_whole = object_xml.read_extra_params(data)
    assert is_whole and found.is_flexible and found.sculpt is None and not found.has_gltf_materials
    assert found.light == PartLight((1.0, 0.2, 0.0), 0.8, 12.5, str(uuid.UUID(bytes=RAW)), 1.5)
    found, _ = object_xml.read_extra_params(made.extra((0x20, LIGHT)))
    assert found.light == PartLight((1.0, 0.2, 0.0), 0.8, 12.5)
    found, _ = object_xml.read_extra_params(made.extra((0x40, projector), (0x80, b"\1\0" + RAW)))
    assert found.light is None and found.has_gltf_materials
    assert not object_xml.read_extra_params(made.extra((0x80, b"\0")))[0].has_gltf_materials
    broken = LIGHT[:4] + struct.pack("<3f", math.nan, 0, -1)
    assert object_xml.read_extra_params(made.extra((0x20, broken)))[0].light == PartLight((1.0, 0.2, 0.0), 0.8, 0.0)


def test_damaged_parameters_keep_those_before_the_damage() -> None:
    assert object_xml.read_extra_params(b"") == object_xml.read_extra_params(b"\0") == (object_xml.ExtraParams(), True)
    data = made.extra((0x10, bytes(16)), (0x30, RAW + b"\5"), (0x80, b"\1\0" + RAW))
    for length in range(1, len(data)):
        found, is_whole = object_xml.read_extra_params(data[:length])
        assert not is_whole
        assert found.is_flexible == (length >= 23) and (found.sculpt is not None) == (length >= 46)
    assert object_xml.read_extra_params(b"\xff" * 1000) == (object_xml.ExtraParams(), False)
    found, is_whole = object_xml.read_extra_params(made.extra((0x30, RAW), (0x10, bytes(16))))
    assert not is_whole and found.sculpt is None and found.is_flexible
