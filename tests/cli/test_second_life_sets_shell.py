"""Sets of Collada files on the command line: each is one input, with the levels and physics from its partner files."""

from __future__ import annotations

import pytest
import upload_scenes


@pytest.fixture
def hut(tmp_path):
    """Write the five files of two objects; return the main one."""
    from meshferry.io_formats import api
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

    path = tmp_path / "set" / "hut.dae"
    path.parent.mkdir()
    api.write_scene(upload_scenes.static_scene(), path, SECOND_LIFE_UPLOAD)
    return path


def parts_in(path):
    """Return level and role of all meshes' objects of a .blend file."""
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(path))
    return sorted((obj.meshferry.lod, obj.meshferry.role) for obj in bpy.data.objects if obj.type == "MESH")


SET = [(0, "RENDER"), (0, "RENDER"), *((level, "RENDER") for level in (1, 1, 2, 2, 3, 3))]
PHYSICS = (0, "PHYSICS")


def test_inspect_and_check_take_a_set_as_one_file(meshferry, hut):
    names = sorted(path.name for path in hut.parent.iterdir())
    assert {"hut.dae", "hut_LOD0.dae", "hut_LOD1.dae", "hut_LOD2.dae", "hut_PHYS.dae"} <= set(names)
    done = meshferry("inspect", "--json", hut.parent)
    assert (done.status, [entry["file"] for entry in done.entries]) == (0, [str(hut)])
    assert list(done.entries[0]["partner_files"]) == ["_LOD2", "_LOD1", "_LOD0", "_PHYS"]
    alone = meshferry("inspect", "--json", hut.with_name("hut_LOD1.dae")).entries[0]
    assert "partner_files" not in alone
    hut.with_name("hut_LOD0.dae").write_text("<COLLADA>")
    for command in ("inspect", "check"):
        done = meshferry(command, "--json", hut)
        assert "hut_LOD0.dae" in str(done.entries[0]["warnings"])
        assert "The file was not read: The XML is not well-formed" in str(done.entries[0]["warnings"])


@pytest.mark.needs_bpy
@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [
        (["set/hut.dae"], [], [PHYSICS, *SET]),
        (["set"], [], [PHYSICS, *SET]),
        (["set/hut_LOD1.dae"], [], SET[:2]),
        (["set/hut.dae"], ["--no-partner-files"], SET[:2]),
        (["set/hut_PHYS.dae", "set/hut_LOD1.dae", "set/hut.dae"], ["--files-as-levels"], [PHYSICS, *SET[:4]]),
    ],
)
def test_convert_writes_the_parts_of_a_set(meshferry, hut, tmp_path, given, options, expected):
    done = meshferry("convert", *(tmp_path / name for name in given), tmp_path / "hut.blend", *options)
    assert done.status == 0, done.err
    assert parts_in(tmp_path / "hut.blend") == sorted(expected)


@pytest.mark.needs_bpy
def test_a_folder_becomes_a_file_for_each_set(meshferry, hut, tmp_path):
    done = meshferry("convert", hut.parent, "--to", "blend", "-o", tmp_path / "out")
    assert (done.status, [path.name for path in (tmp_path / "out").iterdir()]) == (0, ["hut.blend"])
    assert parts_in(tmp_path / "out" / "hut.blend") == sorted([PHYSICS, *SET])


@pytest.mark.needs_workers
def test_a_batch_converts_a_set_once_and_again_if_a_partner_changes(meshferry, hut, tmp_path):
    pytest.importorskip("rich")
    batch = ("batch", "--json", hut.parent, "--to", "llmesh", "-o", tmp_path / "out", "--jobs", 1)
    done = meshferry(*batch)
    assert done.status == 0, done.err
    assert sorted(path.name for path in (tmp_path / "out").glob("*.llmesh"))
    level = hut.with_name("hut_LOD1.dae")
    for result in ("done", "done", "skipped"):
        found = [entry for entry in done.entries if "input" in entry]
        assert [(entry["input"], entry["result"]) for entry in found] == [(str(hut), result)]
        if result == "done" and not level.read_bytes().endswith(b"\n\n"):
            level.write_bytes(level.read_bytes() + b"\n")
        done = meshferry(*batch)
