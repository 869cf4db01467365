"""Second Life's files in the shell: facts, checks, conversions between files; no Blender."""

from __future__ import annotations

import zipfile

import pytest
import second_life_made as made
import second_life_oracle as oracle
from meshfuzz import collada_seeds
from meshfuzz import second_life_seeds as seeds


@pytest.fixture
def crate(write):
    return write("crate.llmesh", made.crate())


@pytest.fixture
def torso(write):
    return write("torso.llmesh", made.torso())


@pytest.fixture
def bundle(write):
    return write("crates.slm", made.bundle())


# -- inspect, check, formats ----------------------------------------------------------------------


def test_inspect_tells_programs_of_levels_hulls_and_weight(meshferry, crate, torso, bundle):
    done = meshferry("inspect", "--json", "--verify", crate, torso, bundle)
    assert (done.status, done.err) == (0, "")
    static, rigged, several = done.entries
    assert [entry["format"] for entry in done.entries] == ["second_life_mesh", "second_life_mesh", "second_life_bundle"]
    assert all(entry["identical"] for entry in done.entries)
    found = oracle.decode(crate.read_bytes())
    assert list(static["lods"]) == list(oracle.LEVELS)
    assert [static["lods"][level]["triangles"] for level in oracle.LEVELS] == [12, 12, 4, 4]
    assert [static["lods"][level]["vertices"] for level in oracle.LEVELS] == [24, 24, 8, 8]
    assert {level: static["lods"][level]["bytes"] for level in oracle.LEVELS} == {
        level: found.sizes[level] for level in oracle.LEVELS
    }
    sizes = {level: found.sizes[level] for level in oracle.LEVELS}
    assert static["download_weight"] == pytest.approx(oracle.streaming_cost(sizes, (2, 1, 0.5)), abs=1e-4)
    assert (static["triangles"], static["surfaces"], static["hulls"], static["bones"]) == (12, 2, 0, 0)
    assert (rigged["triangles"], rigged["hulls"], rigged["bones"]) == (12, 2, 3)
    assert (several["triangles"], several["version"], several["materials"]) == (12, "3", 2)


def test_inspect_tells_people_of_levels_hulls_and_weight(meshferry, torso):
    done = meshferry("inspect", torso)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"{torso}: Second Life Mesh"
    size = oracle.decode(torso.read_bytes()).sizes["lowest_lod"]
    assert f"  lowest level: 4 triangles, 8 vertices, {size} bytes" in lines
    assert lines[-1].startswith("  2 physics hulls, download weight 0.0")
    assert lines[-1].endswith(" (estimate)"), "the size of a rigged mesh follows from its rig"


def test_files_without_an_extension_are_found_by_their_content(meshferry, tmp_path):
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "98a6e63e-12e2-481a-93db-93e6fa4f8b6d").write_bytes(made.crate())
    (folder / "notes").write_text("no mesh")
    (folder / "other.txt").write_bytes(made.crate())
    done = meshferry("inspect", "--json", folder)
    assert [entry["format"] for entry in done.entries] == ["second_life_mesh"]
    assert meshferry("inspect", "--json", folder / "other.txt").entries[0]["triangles"] == 12


def test_what_is_only_written_is_not_searched_for(meshferry, tmp_path):
    (tmp_path / "box.llsd").write_text("<llsd/>")
    done = meshferry("inspect", tmp_path)
    assert done.status == 1
    assert ".llmesh" in done.err
    assert ".llsd" not in done.err
    done = meshferry("inspect", tmp_path / "box.llsd")
    assert done.status == 1
    assert "Traceback" not in done.err


def test_collada_files_show_their_origin(meshferry, tmp_path):
    path = tmp_path / "box.dae"
    path.write_bytes(collada_seeds.files()["nested"])
    shown = meshferry("inspect", path).out
    assert "Collada 1.4.1\n  2 nodes, 24 triangles, 16 vertices, 4 surfaces\n" in shown
    assert "  written by seed, unit 0.01 m, Y up\n" in shown
    packed = tmp_path / "box.zae"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("box.dae", path.read_bytes())
        archive.writestr("__MACOSX/._box.dae", b"attributes of macOS")
    assert "  2 nodes, 24 triangles, 16 vertices, 4 surfaces\n" in meshferry("inspect", packed).out


def test_check_tells_what_the_viewer_refuses_of_collada_files(meshferry, tmp_path):
    (tmp_path / "a.dae").write_bytes(collada_seeds.files()["nested"])
    (tmp_path / "b.dae").write_bytes(collada_seeds.files()["shapes"])
    done = meshferry("check", "--json", tmp_path)
    found = {entry["file"][-5:]: {m["code"]: m["kind"] for m in entry["messages"]} for entry in done.entries}
    assert done.status == 1
    assert found["a.dae"]["mirrored-objects"] == "error"
    assert found["b.dae"]["strips-and-fans"] == "warning"


def test_formats_tells_what_is_read_and_written(meshferry):
    entries = {entry["name"]: entry for entry in meshferry("formats", "--json").entries}
    told = {
        name: (entry["reads"], entry["writes"], entry["is_set"])
        for name, entry in entries.items()
        if name.startswith("second_life")
    }
    assert told == {
        "second_life_mesh": ([".llmesh", ".mesh"], [".llmesh"], False),
        "second_life_bundle": ([".slm"], [".slm"], True),
        "second_life_upload": ([], [".dae"], True),
        "second_life_collada": ([".dae", ".zae"], [], False),
        "second_life_request": ([], [".llsd"], True),
        "second_life_animation": ([".anim"], [".anim"], False),
        "second_life_bvh": ([".bvh"], [".bvh"], False),
        "second_life_shape": ([".xml", ".bodypart"], [".xml"], False),
    }
    shown = meshferry("formats").out
    assert "Second Life Upload Set (.dae)\n  written only; several files beside each other\n" in shown
    assert "Second Life Mesh (.llmesh, .mesh)\n  read and written; .mesh read only\n" in shown


def test_check_applies_the_rules_of_the_uploader(meshferry, crate, tmp_path):
    done = meshferry("check", "--json", crate)
    assert (done.status, done.err) == (0, "")
    assert done.entries[0]["errors"] == []
    degenerate = made.box(sides=2)
    degenerate["TriangleList"] = seeds.shorts(0, 1, 2, 3, 3, 1)
    bad = tmp_path / "bad.llmesh"
    blocks = {"physics_convex": made.HULL, **made.levels([made.box()]), "physics_mesh": [degenerate]}
    bad.write_bytes(seeds.asset(blocks))
    done = meshferry("check", "--json", bad)
    assert done.status == 1
    found = [error for error in done.entries[0]["errors"] if error.get("elements", {}).get("kind") == "triangles"]
    assert len(found) == 1
    assert len(found[0]["elements"]["members"]) == 1
    assert meshferry("check", bad).status == 1


@pytest.mark.parametrize("damage", range(4))
def test_broken_files_are_one_line(damage, meshferry, crate):
    data = crate.read_bytes()
    first = oracle.decode(data).header_size
    crate.write_bytes(
        (data[:200], data[:first], data[: first - 1] + b"]" + data[first:], data[:first] + bytes(len(data) - first))[
            damage
        ]
    )
    for command in (["inspect"], ["check"], ["convert", crate.with_suffix(".dae")]):
        done = meshferry(command[0], crate, *command[1:])
        assert (done.status, done.out) == (1, "")
        assert len(done.err.splitlines()) == 1
        assert "defect" not in done.err


def test_a_block_that_is_cut_off_is_told_and_the_rest_is_there(meshferry, crate):
    crate.write_bytes(crate.read_bytes()[:-30])
    done = meshferry("inspect", "--json", crate)
    assert done.status == 0
    (entry,) = done.entries
    assert list(entry["lods"]) == ["medium_lod", "low_lod", "lowest_lod"]
    assert len(entry["warnings"]) == 1
