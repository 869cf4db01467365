"""UNIGINE animations as bytes: files made by hand field by field, and real ones with what is stated of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_bytes as made
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.core.messages import errors_of
from meshferry.io_formats.encodings.byte_reader import ByteStream
from meshferry.io_formats.registry import by_content
from meshferry.io_formats.unigine import bones, frames
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.joint_tracks import translations
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshfuzz.tokens import floats, i32, shorts, text
from numpy.testing import assert_array_equal

FACTS = re.compile(r"bones (\d+), animated (\d+), frames (\d+), (?:flag (0x\w+), name \"(.*?)\"|flags \[(.*?)\])")


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "unigine"


@pytest.fixture(scope="module")
def stated(folder: Path) -> dict[str, tuple[str, re.Match[str]]]:
    """Return what the README of the samples says of each animation: magic and facts."""
    found = {}
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and cells[1].endswith(".anim"):
            facts = FACTS.match(cells[4])
            assert facts, line
            found[cells[1]] = cells[2], facts
    assert len(found) == 10
    return found


# -- files made by hand ---------------------------------------------------------------------------


def test_frames_in_a_mesh_keep_what_is_not_flagged() -> None:
    stream = ByteStream(made.EMBEDDED + b"more")
    found = frames.read_embedded_frames(stream, 2)
    assert stream.remaining == 4
    assert found.bone_indices.tolist() == [0, 1]
    assert (found.mask, found.frame_count) == (0x0F, 3)
    assert found.flags.tolist() == [[0x0F, 0x0F], [0, 2], [5, 8]]
    assert_array_equal(found.translation, np.array(made.EMBEDDED_TRANSLATION, np.float32))
    assert_array_equal(found.rotation, made.EMBEDDED_ROTATION)
    assert_array_equal(found.scale, np.ones((3, 2, 3)))
    assert frames.write_embedded_frames(found) == made.EMBEDDED


def test_channels_outside_the_mask_are_neutral() -> None:
    body = b"\x01" + shorts(0).data + b"\x00" + b"\x01" + b"\x00"
    found = frames.read_embedded_frames(ByteStream(body), 1)
    assert found.translation.tolist() == [[[0, 0, 0]]]
    assert found.rotation.tolist() == [[[0, 0, 0, 32767]]]
    assert found.scale.tolist() == [[[1, 1, 1]]]
    assert frames.write_embedded_frames(found) == body


def test_an10_is_rounded_within_its_range() -> None:
    document = UNIGINE_ANIMATION.read(made.QUANTIZED)
    assert (document.version, document.name) == ("an10", "wave")
    assert [(bone.name, bone.parent) for bone in document.bones] == [("tip", 1), ("base", -1)]
    assert document.frames.bone_indices.tolist() == [1]
    expected = [[[-1, 0, 65534]], [[1, 0, 65534]]]
    np.testing.assert_allclose(translations(document.frames), expected, rtol=0, atol=1e-6)
    assert document.frames.rotation.tolist() == [[[0, 0, 0, 32767]], [[0, 0, 0, 32767]]]
    assert UNIGINE_ANIMATION.write(document) == made.QUANTIZED


@pytest.mark.parametrize(("data", "version"), [(made.FLAGGED, "an11"), (made.AN12, "an12"), (made.AN13, "an13")])
def test_what_is_not_flagged_is_default_in_later_versions(data: bytes, version: str) -> None:
    document = UNIGINE_ANIMATION.read(data)
    assert document.version == version
    assert [(bone.name, bone.parent) for bone in document.bones] == [("tip", 1), ("base", -1)]
    stored = document.frames
    assert stored.bone_indices.tolist() == [1]
    assert stored.flags.tolist() == [[7], [2]]
    assert stored.translation.tolist() == [[[1, 2, 3]], [[0, 0, 0]]]
    assert_array_equal(stored.rotation, np.array([[[0, 0, 0.6, 0.8]], [[0, 1, 0, 0]]], np.float32))
    assert stored.scale.tolist() == [[[1, 2, 1]], [[1, 1, 1]]]
    if version == "an11":
        assert_array_equal(document.transforms[0], [0, 0, 2, 0, 0, 0, 1, 1, 1, 1])
        assert_array_equal(document.transforms[1], np.array([1, 0, 0, 0, 0, 0.6, 0.8, 1, 2, 1], np.float32))
    else:
        assert (document.fps, document.root_motion) == (24, True)
        assert (document.skeleton_guid, document.skeleton_path) == (made.GUID, "guid://" + made.GUID)
    if version == "an12":
        with pytest.raises(ExportError, match="choose an13"):
            UNIGINE_ANIMATION.write(document)
        document.version = "an13"
        assert UNIGINE_ANIMATION.write(document) == made.AN13
    else:
        assert UNIGINE_ANIMATION.write(document) == data


def test_the_magic_alone_decides() -> None:
    for data in (made.QUANTIZED, made.FLAGGED, made.AN12, made.AN13):
        assert by_content(data, len(data)) is UNIGINE_ANIMATION
    with pytest.raises(FormatError):
        UNIGINE_ANIMATION.read(b"an14" + made.AN13[4:])


def test_same_content_despite_longer_numbers() -> None:
    assert made.FLAGGED[4] == 2
    longer = made.FLAGGED[:4] + b"\x82\x00" + made.FLAGGED[5:]
    assert UNIGINE_ANIMATION.same_content(made.FLAGGED, longer)
    other = made.FLAGGED.replace(b"base", b"bass")
    assert not UNIGINE_ANIMATION.same_content(made.FLAGGED, other)
    assert UNIGINE_ANIMATION.same_content(made.AN12, bytes(made.AN12))


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


FIRST_FLAGS = b"\x07" + floats(1, 2, 3).data
REFUSED = {
    "bit 3 in an11": (changed(made.FLAGGED, FIRST_FLAGS, b"\x0f" + FIRST_FLAGS[1:]), "unknown channels"),
    "bit 7 in an11": (changed(made.FLAGGED, FIRST_FLAGS, b"\x87" + FIRST_FLAGS[1:]), "unknown channels"),
    "bit 7 in a delta": (changed(made.QUANTIZED, b"\x01" + b"\xaa\xaa", b"\x81\xaa\xaa"), "unknown channels"),
    "bit 7 in the mask": (changed(made.QUANTIZED, b"\x07\x02\x07", b"\x87\x02\x87"), "mask 0x87"),
    "a first frame without the mask's": (changed(made.QUANTIZED, b"\x07\x02\x07", b"\x0f\x02\x07"), "first frame"),
    "a channel outside the mask": (
        changed(made.QUANTIZED, b"\x01\xaa\xaa", b"\x09\xaa\xaa" + bytes(8)),
        "does not animate",
    ),
    "two animations": (changed(made.QUANTIZED, b"\x01" + text("wave").data, b"\x02" + text("wave").data), "holds one"),
    "a bone that does not exist": (
        changed(made.FLAGGED, b"\x01" + shorts(1).data + b"\x02", b"\x01" + shorts(2).data + b"\x02"),
        "animates bone 2",
    ),
    "a negative bone": (
        changed(made.FLAGGED, b"\x01" + shorts(1).data + b"\x02", b"\x01" + shorts(-1).data + b"\x02"),
        "animates bone -1",
    ),
    "a parent that is its own": (
        changed(made.FLAGGED, text("base").data + shorts(-1).data, text("base").data + shorts(0).data),
        "own ancestor",
    ),
    "sync markers": (made.flagged("an13", i32(1).data + bytes(8)), "sync markers, which are not supported"),
    "root motion 2": (made.flagged("an13", motion=2), "Root motion"),
    "12 more bytes in an12": (made.flagged("an12", bytes(12)), "magic before the frames"),
    "bytes behind the end": (made.FLAGGED + b"\0", "follow after its end"),
    "another magic at the end": (made.FLAGGED[:-4] + b"an12", "magic at the end"),
    "more frames than bytes": (
        changed(made.FLAGGED, made.FLAGGED_FRAMES, b"\xbf\xff\xff\xff\x07" + made.FLAGGED_FRAMES[1:]),
        "do not fit|claims",
    ),
    "no number": (changed(made.FLAGGED, FIRST_FLAGS, b"\x07" + floats(1, float("nan"), 3).data), "NaN or infinite"),
    "infinity": (changed(made.FLAGGED, FIRST_FLAGS, b"\x07" + floats(1, float("inf"), 3).data), "NaN or infinite"),
    "a range without end": (
        changed(made.QUANTIZED, floats(3, 1, 65535).data, floats(3, float("inf"), 65535).data),
        "range of the translation",
    ),
    "endless frames of no bone": (
        made.FLAGGED[: -4 - len(made.FLAGGED_FRAMES) - 3] + b"\x00" + b"\xbf\xff\xff\xff\x07" + b"an11",
        "claims",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case: str) -> None:
    data, reason = REFUSED[case]
    with pytest.raises(FormatError, match=reason) as caught:
        UNIGINE_ANIMATION.read(data)
    assert caught.value.offset is not None
    if case == "bit 7 in the mask":
        assert caught.value.offset == data.index(b"\x87\x02\x87")


def test_channels_without_any_move_nothing() -> None:
    document = UNIGINE_ANIMATION.read(made.QUANTIZED)
    assert isinstance(document.frames, frames.DeltaFrames)
    assert "animates-no-channel" not in {found.code for found in UNIGINE_ANIMATION.check(document)}
    document.frames.mask = 0
    assert "animates-no-channel" in {found.code for found in UNIGINE_ANIMATION.check(document)}


def test_bones_animated_twice_are_named() -> None:
    document = UNIGINE_ANIMATION.read(made.FLAGGED)
    stored = document.frames
    assert isinstance(stored, frames.FlaggedFrames)
    values = (np.repeat(part, 2, axis=1) for part in (stored.flags, stored.translation, stored.rotation, stored.scale))
    document.frames = frames.FlaggedFrames(np.repeat(stored.bone_indices, 2), *values)
    scene = UNIGINE_ANIMATION.to_scene(document, "x")
    assert "bone-animated-twice" in {message.code for message in scene.warnings}
    assert len(scene.clips[0].transforms) == len(stored.bone_indices)


def test_too_many_bones_are_counted() -> None:
    many = [bones.Bone("b", -1)] * (bones.MOST_BONES + 1)
    with pytest.raises(ExportError, match=f"^{len(many):,} bones; a file holds at most {bones.MOST_BONES:,}$"):
        bones.encode_table(many)


def test_oddities_are_said() -> None:
    data = changed(made.FLAGGED, text("tip").data, text("base").data)
    data = changed(data, floats(0, 1, 0, 0).data, floats(0, 2, 0, 0).data)
    warnings = UNIGINE_ANIMATION.facts(UNIGINE_ANIMATION.read(data))["warnings"]
    assert len(warnings) == 2
    assert "used twice" in warnings[0]
    assert "1 animated bone has rotations not of unit length, normalised: 'base'" in warnings[1]
    scene = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(data), "x")
    assert scene.clips[0].transforms[0].rotation[1].tolist() == [0, 0, 1, 0]


# -- real files -----------------------------------------------------------------------------------


def test_real_files_hold_what_is_stated(folder: Path, stated: dict[str, tuple[str, re.Match[str]]]) -> None:
    for name, (magic, facts) in stated.items():
        document = UNIGINE_ANIMATION.read((folder / name).read_bytes())
        stored = document.frames
        counts = len(document.bones), len(stored.bone_indices), stored.frame_count
        assert (document.version, *counts) == (magic, *map(int, facts.group(1, 2, 3))), name
        if facts.group(4):
            assert (stored.mask, document.name) == (int(facts.group(4), 16), facts.group(5)), name
        else:
            assert np.unique(stored.flags).tolist() == [int(flag) for flag in facts.group(6).split(",") if flag], name
        assert document.warnings == []
        assert errors_of(UNIGINE_ANIMATION.check(document)) == []


def test_real_files_come_back_to_the_byte(folder: Path, stated: dict[str, Any]) -> None:
    for name in stated:
        data = (folder / name).read_bytes()
        assert UNIGINE_ANIMATION.write(UNIGINE_ANIMATION.read(data)) == data, name


def test_facts_of_real_files(folder: Path) -> None:
    facts = UNIGINE_ANIMATION.facts(UNIGINE_ANIMATION.read((folder / "an13_jump.anim").read_bytes()))
    assert facts["clips"] == [{"name": "", "kind": "bone", "frames": 27, "fps": 30.0}]
    assert (facts["version"], facts["bones"], facts["nodes"], facts["warnings"]) == ("an13", 25, 0, [])


def test_bind_transforms_are_copies_of_the_mesh(folder: Path) -> None:
    for animation, mesh in (
        ("an10_gun_4bones.anim", "ms11_gun_4bones_anim1.mesh"),
        ("an10_robot_idle.anim", "ms12_robot_12bones.mesh"),
        ("an11_cat_289bones.anim", "ms13_cat_289bones.mesh"),
    ):
        document = UNIGINE_ANIMATION.read((folder / animation).read_bytes())
        assert document.transforms.tobytes() in (folder / mesh).read_bytes(), animation


EMBEDDED = {
    "ms11_arms_40bones_anim1.mesh": ("scene", 40, 1, 0x7F),
    "ms11_gun_4bones_anim1.mesh": ("scene", 4, 1, 0x0F),
    "ms11_switch_9bones_anim100.mesh": ("TestSingleMat_Strelka_1-6-R_AnimationPart", 9, 100, 0x07),
    "ms12_hand_63bones.mesh": ("scene", 63, 1, 0x7F),
    "ms12_pistol_11bones_anim1.mesh": ("scene", 11, 1, 0x07),
    "ms12_robot_12bones.mesh": ("scene", 12, 1, 0x0F),
}


@pytest.mark.parametrize("name", EMBEDDED)
def test_frames_inside_real_meshes(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (animation,) = UNIGINE_MESH.read(data).animations
    stored = animation.frames
    assert (animation.name, len(stored.bone_indices), stored.frame_count, stored.mask) == EMBEDDED[name]
    assert frames.write_embedded_frames(stored) in data
