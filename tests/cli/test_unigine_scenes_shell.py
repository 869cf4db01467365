"""Nodes and worlds of UNIGINE on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from glb_oracle import read_glb
from meshfuzz import tokens, unigine_seeds
from unigine_scene_bytes import mesh, moved, node, nodes, reference, world


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the folder of a project: a level with two trees of two meshes, one of them hidden."""
    folder = tmp_path / "data"
    (folder / ".runtimes").mkdir(parents=True)
    (folder / "box.mesh").write_bytes(tokens.encode(unigine_seeds.meshes()["ms11 plain"]))
    tree = nodes(mesh("box.mesh", "trunk", transform=moved(0, 1), enabled=1), mesh("box.mesh", "nest", enabled=0))
    (folder / "tree.node").write_bytes(tree)
    (folder / "addon.node").write_bytes(b"\x7fELF\x02\x01")
    level = world(
        reference("tree.node", "one", moved(10)), reference("tree.node", "two", moved(20)), node("Fog", "mist")
    )
    (folder / "level.world").write_bytes(level)
    return folder


def test_inspect_counts_nodes_by_type(meshferry: Callable, data: Path) -> None:
    done = meshferry("inspect", data / "level.world")
    assert done.out.splitlines()[1:] == [
        "  3 nodes, 0 triangles, 0 vertices, 0 surfaces",
        "  0 meshes and 1 node file referred to",
        "  2 NodeReference, 1 Fog",
    ]
    (entry,) = meshferry("inspect", "--json", data / "tree.node").entries
    assert (entry["types"], entry["meshes"]) == ({"ObjectMeshStatic": 2}, 1)


def test_check_names_what_is_missing(meshferry: Callable, data: Path) -> None:
    assert "No problems found" in meshferry("check", data / "level.world").out
    (data / "box.mesh").unlink()
    done = meshferry("check", data / "level.world")
    assert done.status == 0
    assert "warning: 2 meshes not found; an empty stands for each: 'trunk', 'nest'" in done.out + done.err


@pytest.mark.needs_bpy
def test_a_world_becomes_a_glb_with_every_place(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    done = meshferry("convert", data / "level.world", tmp_path / "level.glb")
    assert done.status == 0, done.err
    assert "'nest', 'nest.001': hidden, left out" in done.out + done.err
    content, _ = read_glb((tmp_path / "level.glb").read_bytes())
    places = {}
    parents = {child: number for number, entry in enumerate(content["nodes"]) for child in entry.get("children", ())}
    for number, entry in enumerate(content["nodes"]):
        if "mesh" in entry:
            place, above = np.zeros(3), number
            while above is not None:
                place += content["nodes"][above].get("translation", (0, 0, 0))
                above = parents.get(above)
            places[entry["name"]] = (place.tolist(), entry["mesh"])
    assert sorted(place for place, _ in places.values()) == [[10, 0, -1], [20, 0, -1]]
    assert len({shared for _, shared in places.values()}) == 1


@pytest.mark.needs_bpy
def test_a_world_becomes_a_blend_with_instances(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    assert meshferry("convert", data / "level.world", tmp_path / "level.blend").status == 0
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "level.blend"))
    one, two = (bpy.data.objects[name] for name in ("one", "two"))
    assert one.instance_collection == two.instance_collection == bpy.data.collections["tree"]
    assert len(bpy.data.meshes) == 1


@pytest.mark.needs_bpy
def test_a_scene_with_lights_and_cameras_is_converted(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    (data / "lit.node").write_bytes(
        nodes(mesh("box.mesh", "box"), node("LightOmni", "lamp"), node("PlayerDummy", "eye"))
    )
    done = meshferry("convert", data / "lit.node", tmp_path / "lit.blend", "--lights", "--cameras")
    assert done.status == 0, done.err
    import bpy

    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "lit.blend"))
    assert {obj.name: obj.type for obj in bpy.data.objects} == {"box": "MESH", "lamp": "LIGHT", "eye": "CAMERA"}


@pytest.mark.needs_bpy
def test_hidden_nodes_are_left_out_of_conversions_of_a_blend_file(
    meshferry: Callable, data: Path, tmp_path: Path
) -> None:
    """They are hidden in both ways: by the eye at the top, disabled in the collection of the reference."""
    (data / "level.world").write_bytes(
        world(reference("tree.node", "one"), mesh("box.mesh", "off", enabled=0), mesh("box.mesh", "on"))
    )
    assert meshferry("convert", data / "level.world", tmp_path / "level.blend").status == 0
    done = meshferry("convert", tmp_path / "level.blend", tmp_path / "level.glb")
    assert done.status == 0, done.err
    assert "'off', 'nest': hidden, left out" in done.out + done.err
    content, _ = read_glb((tmp_path / "level.glb").read_bytes())
    assert sorted(entry["name"] for entry in content["nodes"] if "mesh" in entry) == ["on", "trunk"]


def test_formats_of_models_are_refused(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    done = meshferry("convert", data / "level.world", tmp_path / "level.mesh")
    assert done.status == 1
    assert done.err.count("It places many models; convert it to .blend, .glb") == 1
    assert not (tmp_path / "level.mesh").exists()


def test_a_search_takes_scenes_by_their_content_and_only_for_formats_of_scenes(
    meshferry: Callable, data: Path, tmp_path: Path
) -> None:
    done = meshferry("inspect", data)
    assert "addon.node" not in done.out + done.err and "tree.node" in done.out
    done = meshferry("convert", data, "--to", "mesh", "-o", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").rglob("*.*")] == ["box.mesh"]


@pytest.mark.needs_bpy
@pytest.mark.slow
def test_a_batch_converts_scenes(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    done = meshferry("batch", data, "--to", "glb", "-o", tmp_path / "out", "--match", "*.world", "--match", "*.node")
    assert done.status == 0, done.err
    assert sorted(path.name for path in (tmp_path / "out").glob("*.glb")) == ["level.glb", "tree.glb"]


@pytest.mark.needs_bpy
def test_changes_of_a_blend_file_go_back_into_the_world(meshferry: Callable, data: Path, tmp_path: Path) -> None:
    import bpy

    level, blend = data / "level.world", tmp_path / "level.blend"
    old = level.read_bytes().replace(b"<node ", b'<node id="1" ', 1).replace(b"<node type", b'<node id="2" type', 1)
    level.write_bytes(old.replace(b'<node type="Fog"', b'<node id="3" type="Fog"'))
    old = level.read_bytes()
    assert meshferry("convert", level, blend).status == 0
    bpy.ops.wm.open_mainfile(filepath=str(blend))
    bpy.data.objects["one"].location.x = 33
    bpy.ops.wm.save_mainfile()
    done = meshferry("convert", blend, level, "--dry-run")
    assert done.status == 0 and "Moved: 'one'" in done.out + done.err
    assert level.read_bytes() == old
    assert meshferry("convert", blend, level).status == 0
    assert level.read_bytes() == old.replace(b" 10 0.0 0.0 1<", b" 33 0.0 0.0 1<")
    again = meshferry("convert", blend, level)
    assert again.status == 1 and "choose Reload from File first" in again.err
    other = meshferry("convert", blend, data / "other.node")
    assert other.status == 0 and (data / "other.node.meta").exists()
    refused = meshferry("convert", blend, "--to", "world", "-o", tmp_path)
    assert refused.status == 2 and "name that file instead of --to world" in refused.err
