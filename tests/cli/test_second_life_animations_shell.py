"""Second Life animations on the command line: facts, conversions between families, archives of OpenSim."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from meshfuzz import second_life_animation_seeds as made
from meshfuzz.opensim_archive_seeds import opensim_tar

JPEG_2000 = b"\xff\x4f\xff\x51\0\x2f" + bytes(100)


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    path = tmp_path / "arms.anim"
    path.write_bytes(made.ARMS)
    return path


def test_inspect_states_keys_and_playback(meshferry: Any, arms: Path) -> None:
    done = meshferry("inspect", "--verify", arms)
    assert done.status == 0
    assert done.out.splitlines() == [
        f"{arms}: Second Life Animation 1.0",
        "  3 bones",
        "  5 rotation keys, 2 position keys",
        "  priority 3, loop from 0 to 2 s, ease 0.3 s in, 0.3 s out, hand pose 1",
        "  animation unnamed, bone, 2 s",
        "  identical after decoding and encoding",
    ]


def test_anim_files_stay_in_their_family(meshferry: Any, arms: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.anim"
    assert meshferry("convert", arms, target).status == 0
    assert target.read_bytes() == made.ARMS
    for to, kind in (("anim", "second_life_animation"), ("unigine_animation", "unigine_animation")):
        assert meshferry("convert", arms, "--to", to, "-o", tmp_path / to).status == 0
        (entry,) = meshferry("inspect", "--json", tmp_path / to / "arms.anim").entries
        assert entry["format"] == kind


def format_of(meshferry: Any, path: Path) -> str:
    (entry,) = meshferry("inspect", "--json", path).entries
    return str(entry["format"])


@pytest.mark.needs_bpy
def test_anim_from_blend_files_stays_in_the_family_of_the_animation(meshferry: Any, arms: Path, tmp_path: Path) -> None:
    blend = tmp_path / "arms.blend"
    assert meshferry("convert", arms, blend).status == 0
    done = meshferry("convert", blend, tmp_path / "out.anim")
    assert (done.status, "not carried over" in done.err, "Written as" in done.err) == (0, False, False)
    assert (tmp_path / "out.anim").read_bytes() == made.ARMS
    done = meshferry("convert", blend, "--to", "unigine_animation", "-o", tmp_path / "own")
    assert "1 set of playback settings not carried over: 'arms'" in done.err
    other = tmp_path / "own" / "arms.anim"
    assert format_of(meshferry, other) == "unigine_animation"
    assert meshferry("convert", other, tmp_path / "other.blend").status == 0
    done = meshferry("convert", tmp_path / "other.blend", tmp_path / "other.anim")
    assert format_of(meshferry, tmp_path / "other.anim") == "unigine_animation"
    assert "Written as UNIGINE Animation; --to second_life_animation writes Second Life Animation" in done.err


@pytest.mark.needs_bpy
@pytest.mark.parametrize("joints", ["second_life", "unigine"])
@pytest.mark.parametrize("origin", ["both", "unknown"])
def test_the_joints_decide_if_the_origin_does_not(
    meshferry: Any, arms: Path, tmp_path: Path, clean_blender: Any, joints: str, origin: str
) -> None:
    """Actions that were made in Blender have no format."""
    bpy = clean_blender
    assert bpy.ops.import_scene.second_life(filepath=str(arms)) == {"FINISHED"}
    (action,) = bpy.data.actions
    assert action.meshferry.file_format == "second_life_animation"
    action.meshferry.property_unset("file_format")
    if origin == "both":
        action.meshferry.file_format = "unigine_animation"
        other = action.copy()
        other.use_fake_user = True
        other.name = other.meshferry.clip_name = "other"
        other.meshferry.file_format = "second_life_animation"
    if joints == "unigine":
        for bone in bpy.data.armatures[0].bones:
            bone.name = f"Bip{bone.name}"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
    done = meshferry("convert", tmp_path / "a.blend", "--to", "anim", "-o", tmp_path / "out", "--clip-names", "arms")
    (written,) = (tmp_path / "out").iterdir()
    assert (done.status, format_of(meshferry, written)) == (0, f"{joints}_animation")


def test_errors_of_a_file_do_not_prevent_writing_it_again(meshferry: Any, tmp_path: Path) -> None:
    """A real joint of BVH files, which viewers refuse on upload and leave out in the world."""
    turn = made.keys((0, made.ZERO, made.ZERO, made.ZERO))
    source = tmp_path / "old.anim"
    rows = made.joint(b"lFoot_End", rotation=turn) + made.joint(b"mHead", rotation=turn)
    source.write_bytes(made.header(joints=2) + rows + made.ending())
    assert meshferry("check", source).status == 1
    done = meshferry("convert", source, tmp_path / "copy.anim")
    assert (done.status, "lFoot_End" in done.err) == (0, True)
    assert (tmp_path / "copy.anim").read_bytes() == source.read_bytes()


def test_bvh_becomes_an_animation_with_reduced_keys(meshferry: Any, tmp_path: Path) -> None:
    source = tmp_path / "walk.bvh"
    source.write_bytes(made.BVH)
    assert meshferry("convert", source, tmp_path / "walk.anim").status == 0
    (entry,) = meshferry("inspect", "--json", tmp_path / "walk.anim").entries
    assert (entry["format"], entry["clips"][0]["seconds"], entry["bones"]) == ("second_life_animation", 0.2, 2)


@pytest.mark.parametrize("name", ["asset.dat", "0836b67f-7f7b-f37b-c00a-460dc1521f5a_animation.bvh", "plain"])
def test_the_content_decides(meshferry: Any, tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.write_bytes(made.ARMS)
    assert meshferry("inspect", source).out.startswith(f"{source}: Second Life Animation")
    assert meshferry("convert", source, tmp_path / "out.anim").status == 0
    source.write_bytes(JPEG_2000)
    done = meshferry("inspect", source)
    assert (done.status, "JPEG 2000 image" in done.err) == (1, True)


def test_animations_in_archives(meshferry: Any, tmp_path: Path) -> None:
    one, two = (f"assets/0836b67f-7f7b-f37b-c00a-460dc1521f5{number}_animation.bvh" for number in "ab")
    entries = ((one, made.ARMS), ("assets/x_mesh.llmesh", b"{}"), (two, JPEG_2000))
    (tmp_path / "land.oar").write_bytes(gzip.compress(opensim_tar(*entries)))
    done = meshferry("batch", tmp_path / "land.oar", "--to", "anim", "-o", tmp_path / "out")
    assert done.status == 1
    written = [path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.anim")]
    assert written == [f"land/{one[:-4]}.anim"]
    assert (tmp_path / "out" / written[0]).read_bytes() == made.ARMS
    assert "JPEG 2000 image" in done.err
