"""MeshSerializer2 files and their relatives through the shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
from meshfuzz.mesh_serializer_seeds import as_text, directions, pack, pack_cached, pack_first
from outputs import names_in

DATE = 0x08D5_0000_0000_0000
"""A day in 2017, as .NET counts."""


def first(stored: made.Stored) -> bytes:
    return pack_first(stored.points, stored.triangles, directions(stored.normals), uvs=stored.uv)


RELATIVES = {
    "first.data": (first(made.crate()), "first MeshSerializer, of 2006,"),
    "text.bytes": (as_text(first(made.crate())), "first MeshSerializer, of 2006, as text"),
    "parts.bin": (pack(made.crate(), (4, 8)), "variant with submeshes and bones"),
    "cached.mesh": (pack_cached(pack(made.crate()), "Walls", DATE), "SALT mod cache, from 20"),
}


def write(path: Path, stored: made.Stored | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(stored if stored is not None else made.crate()))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder of a project: three meshes among files that are called alike and are something else."""
    tree = tmp_path / "Assets"
    write(tree / "StreamingAssets" / "Wall.data")
    write(tree / "Resources" / "Crate.bytes")
    write(tree / "Barrel")
    for name in ("level.data", "icons.bin", "table.bytes", "scan.3d", "LICENSE"):
        (tree / name).write_bytes(b"something else altogether, of no length in particular " * 40)
    return tree


def test_in_a_folder_the_content_decides(meshferry: Any, tree: Path, tmp_path: Path) -> None:
    done = meshferry("convert", tree, "--to", "bytes", "-o", tmp_path / "out")
    assert (done.status, done.err) == (0, "")
    assert names_in(tmp_path / "out") == ["Barrel.bytes", "Resources/Crate.bytes", "StreamingAssets/Wall.bytes"]
    assert {path.read_bytes() for path in (tmp_path / "out").rglob("*.bytes")} == {pack(made.crate())}
    assert len(meshferry("inspect", "--json", tree).entries) == 3
    assert len(meshferry("check", "--json", tree).entries) == 3


@pytest.mark.parametrize("name", ["level.data", "icons.bin"])
def test_what_was_named_and_is_none_is_an_error(meshferry: Any, tree: Path, tmp_path: Path, name: str) -> None:
    done = meshferry("convert", tree / name, tmp_path / "out.data")
    assert done.status == 1
    assert name in done.err and "not a format that Meshferry reads" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "out.data").exists()


@pytest.mark.parametrize("extension", [".data", ".bin", ".bytes", ".3d"])
def test_one_mesh_under_each_name(meshferry: Any, tree: Path, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"out{extension}"
    assert meshferry("convert", tree / "Barrel", path).status == 0
    assert path.read_bytes() == pack(made.crate())


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_are_named_and_become_the_present_version(meshferry: Any, tmp_path: Path, name: str) -> None:
    data, called = RELATIVES[name]
    (tmp_path / name).write_bytes(data)
    (entry,) = meshferry("inspect", "--verify", "--json", tmp_path / name).entries
    assert (entry["format"], entry["vertices"], entry["triangles"]) == ("mesh_serializer", 24, 12)
    assert entry["version"] not in {"", "2"}
    assert entry["identical"] is True
    done = meshferry("convert", tmp_path / name, tmp_path / "out.data")
    assert done.status == 0
    assert called in done.err
    stored, crate = made.unpack((tmp_path / "out.data").read_bytes()), made.crate()
    np.testing.assert_array_equal(stored.triangles, crate.triangles)
    np.testing.assert_array_equal(stored.positions, crate.positions)
    np.testing.assert_array_equal(stored.normals, crate.normals)


def test_points_alone_are_inspected_with_a_warning_and_not_written(meshferry: Any, tmp_path: Path) -> None:
    stored = made.crate()
    stored.triangles = stored.triangles[:0]
    cloud = write(tmp_path / "cloud.data", stored)
    done = meshferry("inspect", cloud)
    assert done.status == 0
    assert "warning" in done.out and "only points" in done.out
    done = meshferry("convert", cloud, tmp_path / "out.data")
    assert done.status == 1
    assert "'cloud' has no faces" in done.err
    assert not (tmp_path / "out.data").exists()


def test_formats_lists_it(meshferry: Any) -> None:
    (entry,) = [entry for entry in meshferry("formats", "--json").entries if entry["name"] == "mesh_serializer"]
    assert entry["extensions"] == [".data", ".bin", ".bytes", ".3d", ".mesh"]


def test_axes_are_turned_on_the_way(meshferry: Any, tmp_path: Path) -> None:
    """Import as one convention, export as the other: turned by half a turn about the vertical."""
    stored = made.crate()
    stored.bounds = stored.bounds + np.array([[5], [0], [7]], np.float32)
    path = write(tmp_path / "aside.data", stored)
    assert meshferry("convert", path, tmp_path / "same.data", "--axes", "swap-yz").status == 0
    assert (tmp_path / "same.data").read_bytes() == path.read_bytes(), "the same choice on both sides is none"


# -- with Blender -------------------------------------------------------------------------------------------------


@pytest.mark.needs_bpy
def test_a_blend_file_of_several_objects(meshferry: Any, tmp_path: Path) -> None:
    import bpy

    for name, x in (("Wall", 0), ("Crate:2", 5)):
        bpy.ops.mesh.primitive_cube_add(location=(x, 0, 0))
        bpy.context.object.name = name
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "yard.blend"))
    done = meshferry("convert", tmp_path / "yard.blend", tmp_path / "joined.data", "--mesh-files", "joined")
    assert done.status == 0, done.err
    assert len(made.unpack((tmp_path / "joined.data").read_bytes()).triangles) == 24
    done = meshferry("convert", tmp_path / "yard.blend", "--to", "bytes", "-o", tmp_path / "each")
    assert done.status == 0, done.err
    assert names_in(tmp_path / "each") == ["yard.Crate_2.bytes", "yard.Wall.bytes"]


def three_objects(path: Path, material: str) -> Path:
    """Save a file of three objects: one without a UV map, one with everything, one with points of no triangle."""
    from dataclasses import replace

    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.cli.conversions.blend_files import BlendSession
    from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene

    points = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (5, 5, 5)], np.float32)
    whole = Mesh(points[:3], np.arange(3, dtype=np.int32), np.zeros(1, np.int32), [material])
    whole.uvs = [Layer("UV", points[:3, :2].copy())]
    loose = replace(whole, points=points, uvs=[Layer("UV", points[:, :2].copy())])
    meshes = {"Bare": replace(whole, uvs=[]), "Loose": loose, "Whole": whole}
    with BlendSession() as session:
        session.start_empty()
        options = ImportOptions.of({})
        scene = Scene("parts", [Node(name, mesh=mesh) for name, mesh in meshes.items()])
        session.import_scene(scene, options, path)
        session.save(path, compress=False)
    return path


@pytest.mark.needs_bpy
def test_what_one_file_lost_is_said_of_it_alone(meshferry: Any, tmp_path: Path) -> None:
    source = three_objects(tmp_path / "parts.blend", "Steel")
    options = ("--to", "data", "-o", tmp_path / "out", "--mesh-tangents", "always")
    done = meshferry("convert", "--json", source, *options)
    said = {Path(entry["output"]).stem: entry["warnings"] for entry in done.entries}
    assert {name: len(texts) for name, texts in said.items()} == {
        "parts.Bare": 2,
        "parts.Loose": 1,
        "parts.Whole": 0,
    }, said
    assert said["parts.Bare"][0] == "material 'Steel' of object 'Bare' and 2 more not carried over"
    assert "no UV map" in said["parts.Bare"][1] and "1 vertex belongs to no triangle" in said["parts.Loose"][0]
    assert [entry["facts"]["materials"] for entry in done.entries] == [0, 0, 0]
    assert [entry["facts"]["uv_layers"] for entry in done.entries] == [0, 1, 1]


@pytest.mark.needs_bpy
def test_a_strict_conversion_writes_what_lost_nothing(meshferry: Any, tmp_path: Path) -> None:
    source = three_objects(tmp_path / "parts.blend", "")
    options = ("--strict", "--to", "data", "-o", tmp_path / "out", "--mesh-tangents", "always")
    assert meshferry("convert", source, *options).status == 1
    assert names_in(tmp_path / "out") == ["parts.Whole.data"]


def test_a_split_is_said_once(meshferry: Any, tmp_path: Path) -> None:
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.scene import Mesh, Node, Scene

    count = 64_001
    corners = (np.arange(count)[:, None] + np.arange(3)).astype(np.int32).ravel() % count
    places = np.random.default_rng(1).uniform(-1, 1, (count, 3)).astype(np.float32)
    mesh = Mesh(places, corners, np.zeros(count, np.int32), [""])
    api.write_scene(Scene("s", [Node("s", mesh=mesh)]), tmp_path / "s.timbermesh", registry.by_name("timbermesh"))
    done = meshferry(
        "convert", tmp_path / "s.timbermesh", "--to", "data", "-o", tmp_path / "out", "--large-meshes", "split"
    )
    assert done.status == 0
    assert names_in(tmp_path / "out") == ["s.s_1.data", "s.s_2.data"]
    assert done.err.count("split into 2 files") == 1
    one = meshferry("convert", tmp_path / "s.timbermesh", tmp_path / "one.data", "--large-meshes", "split")
    assert one.status == 1
    assert "2 meshes ('s_1', 's_2') cannot become one file; use --to data -o FOLDER" in one.err
