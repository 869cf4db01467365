"""Frames decoded all at once against the rules of the format page, followed one record at a time."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.encodings.byte_reader import ByteStream
from meshferry.io_formats.unigine import frames
from meshferry.io_formats.unigine.animation.codec import AnimationFile
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.bones import Bone
from numpy.testing import assert_array_equal
from python_steps import python_steps

Table = list[list[list[float]]]


def follow_deltas(body: bytes, frame_count: int, bone_count: int, step: str, default_scale: float) -> tuple[Any, int]:
    """Decode frames of section 5 (step ``f``) or 8.1 (step ``H``) record by record; return (F, n, 10) and the end."""
    now = [[0.0] * 3 + [0.0, 0.0, 0.0, 32767.0] + [default_scale] * 3 for _ in range(bone_count)]
    table, place = [], 0
    for _ in range(frame_count):
        for bone in now:
            flags = body[place]
            place += 1
            for bit in range(7):
                if not flags >> bit & 1:
                    continue
                if bit == 3:
                    bone[3:7] = struct.unpack_from("<4h", body, place)
                    place += 8
                else:
                    (bone[bit if bit < 3 else bit + 3],) = struct.unpack_from("<" + step, body, place)
                    place += struct.calcsize(step)
        table.append([list(bone) for bone in now])
    return np.array(table).reshape(frame_count, bone_count, 10), place


def follow_flags(body: bytes, frame_count: int, bone_count: int) -> tuple[Any, int]:
    """Decode frames of section 8.2 record by record; return (F, n, 10) and the end."""
    table, place = [], 0
    for _ in range(frame_count * bone_count):
        flags = body[place]
        place += 1
        row: list[float] = []
        for bit, default in enumerate(((0, 0, 0), (0, 0, 0, 1), (1, 1, 1))):
            if flags >> bit & 1:
                row += struct.unpack_from(f"<{len(default)}f", body, place)
                place += 4 * len(default)
            else:
                row += default
        table.append(row)
    return np.array(table).reshape(frame_count, bone_count, 10), place


def side_by_side(found: Any) -> Any:
    return np.concatenate([array.astype(float) for array in (found.translation, found.rotation, found.scale)], axis=-1)


def random_records(generator: np.random.Generator, rows: Any, sizes: tuple[tuple[int, str], ...]) -> bytes:
    """Return records with these flags and values drawn at random."""
    parts = []
    for flags in rows.reshape(-1).tolist():
        parts.append(bytes((flags,)))
        for bit, (count, kind) in enumerate(sizes):
            if flags >> bit & 1:
                values = generator.normal(size=count) * 1000
                parts.append(np.abs(values).astype(kind).tobytes() if kind == "<u2" else values.astype(kind).tobytes())
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(20))
def test_deltas_are_followed(seed: int) -> None:
    generator = np.random.default_rng(seed)
    frame_count, bone_count = (int(number) for number in generator.integers(1, 40, 2))
    mask = int(generator.integers(0, 128))
    flags = generator.integers(0, 128, (frame_count, bone_count)).astype(np.uint8) & mask
    # Some bones change in next to no frame.
    flags[:, generator.random(bone_count) < 0.3] = 0
    flags[0] = mask
    head = bytes((bone_count,)) + np.arange(bone_count, dtype="<i2").tobytes()
    counted = bytes((mask, frame_count))
    vector, turn = (1, "<f4"), (4, "<i2")
    body = random_records(generator, flags, (vector, vector, vector, turn, vector, vector, vector))
    found = frames.read_embedded_frames(ByteStream(head + counted + body), bone_count)
    expected, end = follow_deltas(body, frame_count, bone_count, "f", 1)
    assert end == len(body)
    assert_array_equal(side_by_side(found), expected)
    assert frames.write_embedded_frames(found) == head + counted + body

    vector = (1, "<u2")
    body = random_records(generator, flags, (vector, vector, vector, turn, vector, vector, vector))
    ranges = np.ones(12, "<f4").tobytes()
    found = frames.read_quantized_frames(ByteStream(head + ranges + counted + body), bone_count)
    expected, _ = follow_deltas(body, frame_count, bone_count, "H", 0)
    assert_array_equal(side_by_side(found), expected)
    assert frames.write_quantized_frames(found) == head + ranges + counted + body


@pytest.mark.parametrize("seed", range(10))
def test_flags_are_followed(seed: int) -> None:
    generator = np.random.default_rng(seed)
    frame_count, bone_count = (int(number) for number in generator.integers(1, 40, 2))
    flags = generator.integers(0, 8, (frame_count, bone_count)).astype(np.uint8)
    body = random_records(generator, flags, ((3, "<f4"), (4, "<f4"), (3, "<f4")))
    stream = ByteStream(bytes((frame_count,)) + body)
    found = frames.read_flagged_frames(stream, np.arange(bone_count, dtype=np.int16))
    expected, end = follow_flags(body, frame_count, bone_count)
    assert end == len(body) and not stream.remaining
    assert_array_equal(side_by_side(found), expected)
    assert frames.encode_flagged_frames(found) == bytes((frame_count,)) + body


def test_real_frames_are_followed(samples: Path) -> None:
    data = (samples / "unigine" / "an11_cat_289bones.anim").read_bytes()
    found = UNIGINE_ANIMATION.read(data).frames
    body = data[len(data) - 4 - len(frames.encode_flagged_frames(found)) + 1 : -4]
    assert_array_equal(side_by_side(found), follow_flags(body, 31, 289)[0])
    data = (samples / "unigine" / "an10_robot_idle.anim").read_bytes()
    found = UNIGINE_ANIMATION.read(data).frames
    head = 1 + 24 + 48  # index list and ranges
    body = data[len(data) - 4 - len(frames.write_quantized_frames(found)) + head : -4]
    assert body[:3] == b"\x0f\xb8\x01"  # mask 0f, 120 frames
    expected, end = follow_deltas(body[3:], 120, 12, "H", 0)
    assert end == len(body) - 3
    assert_array_equal(side_by_side(found), expected)


@pytest.mark.parametrize("version", ["an10", "an11", "an13"])
def test_many_frames_take_no_step_each(version: str) -> None:
    """300 bones in 1,000 frames are 300,000 records."""
    generator = np.random.default_rng(1)
    flags = np.where(generator.random((1000, 300)) < 0.8, 3, 1).astype(np.uint8)
    indices, count = np.arange(300, dtype=np.int16), (1000, 300)
    bones, transforms = [Bone(str(number)) for number in range(300)], np.zeros((300, 10), np.float32)
    transforms[:, 6:] = 1
    stored: Any
    if version == "an10":
        flags[flags == 3] = 8
        flags[0] = 0x0F
        ranges = np.ones((2, 3), np.float32)
        steps, turns = np.zeros((*count, 3), np.uint16), np.full((*count, 4), 16383, np.int16)
        stored = frames.DeltaFrames(indices, 0x0F, flags, steps, turns, steps, ranges, ranges)
    else:
        turns = np.full((*count, 4), 0.5, np.float32)
        stored = frames.FlaggedFrames(indices, flags, np.ones((*count, 3)), turns, np.ones((*count, 3)))
    if version == "an13":
        transforms = transforms[:0]
    data = UNIGINE_ANIMATION.write(AnimationFile(version, bones, transforms, stored))
    assert python_steps(lambda: UNIGINE_ANIMATION.read(data)) < 200_000


def test_a_bone_that_changes_its_kind_takes_no_step_a_change() -> None:
    """Of 300,000 frames every ninth changes it."""
    flags = np.where(np.arange(300_000) // 9 % 2, 3, 1).astype(np.uint8).reshape(-1, 1)
    turns = np.full((300_000, 1, 4), 0.5, np.float32)
    stored = frames.FlaggedFrames(np.zeros(1, np.int16), flags, turns[..., :3], turns, turns[..., :3])
    transforms = np.ones((1, 10), np.float32)
    data = UNIGINE_ANIMATION.write(AnimationFile("an11", [Bone("x")], transforms, stored))
    assert python_steps(lambda: UNIGINE_ANIMATION.read(data)) < 150_000
    assert_array_equal(UNIGINE_ANIMATION.read(data).frames.flags, flags)
