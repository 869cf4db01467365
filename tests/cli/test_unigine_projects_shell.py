"""Meshes inside UNIGINE projects on the command line: materials in Blender's files, missing files in reports."""

import argparse
from pathlib import Path

import courtyard
import numpy as np
import pytest
import unigine_bytes
from meshferry.cli.batch.workers.protocol import Setup
from meshferry.cli.batch.workers.worker import Converter
from meshferry.cli.conversions import conversion_arguments
from meshferry.cli.conversions.blend_files import BlendSession
from unigine_projects import guid, material, mesh_node, runtime_path, write_project
from unigine_scene_bytes import nodes

MESH = guid(1)
FACE = unigine_bytes.ALL["ms12"]


@pytest.fixture
def lamp(tmp_path: Path) -> Path:
    """Return a mesh whose project has its material, but none of the material's textures."""
    slots = "".join(
        f'<texture name="{name}">guid://{guid(number)}</texture>'
        for number, name in enumerate(("albedo", "normal"), 10)
    )
    files = {
        runtime_path(MESH, "mesh"): FACE,
        "other.mesh": FACE,
        "oak.mat": material(guid(2), base="mesh_base", content=slots),
        "a.node": nodes(mesh_node(MESH, Face=guid(2)), mesh_node("other.mesh", Face=guid(3))),
    }
    return write_project(tmp_path / "data", files) / runtime_path(MESH, "mesh")


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_missing_files_are_counted_by_kind(meshferry, lamp: Path, command: str) -> None:
    done = meshferry(command, "--json", lamp, lamp.parents[2] / "other.mesh")
    assert done.status == 0
    texts = [
        [text if command == "inspect" else text["message"] for text in entry["warnings"]] for entry in done.entries
    ]
    names = f"'guid://{guid(10)} (albedo of oak)', 'guid://{guid(11)} (normal of oak)'"
    assert texts[0][-1] == f"2 textures missing in the project: {names}"
    assert texts[1][-1] == f"1 material missing in the project: 'Face ({guid(3)})'"


def test_the_project_is_chosen_for_files_outside(meshferry, lamp: Path, tmp_path: Path) -> None:
    outside = tmp_path / "desk" / lamp.name
    outside.parent.mkdir()
    outside.write_bytes(FACE)
    for command in ("check", "inspect"):
        assert "missing" not in meshferry(command, outside).out
        assert "2 textures missing" in meshferry(command, outside, "--project", lamp.parents[2]).out
        done = meshferry(command, outside, "--project", tmp_path / "nowhere")
        assert done.status == 2
        assert "nowhere: The folder of the project does not exist" in done.err


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_mounts_can_be_switched_off(meshferry, lamp: Path, tmp_path: Path, command: str) -> None:
    data = lamp.parents[2]
    (tmp_path / "shared").mkdir()
    (data / "oak.mat").rename(tmp_path / "shared" / "oak.mat")
    (data / "lib.umount").write_text('{"data_path": "../shared"}')
    assert "2 textures missing" in meshferry(command, lamp, "--mounts").out
    assert "1 material missing" in meshferry(command, lamp, "--no-mounts").out


@pytest.mark.parametrize("has_mounts", [True, False])
def test_workers_of_a_batch_know_whether_mounts_are_read(tmp_path: Path, has_mounts: bool) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to")
    conversion_arguments.add_conversion_arguments(parser)
    arguments = parser.parse_args(["--to", "blend", "--mounts" if has_mounts else "--no-mounts"])
    settings = conversion_arguments.settings_of(vars(arguments))
    converter = Converter(Setup(settings, str(tmp_path), []), BlendSession())
    assert converter._projects.has_mounts == has_mounts


def test_conversions_between_files_ignore_the_project(meshferry, lamp: Path, tmp_path: Path) -> None:
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    target = tmp_path / "out.mesh"
    assert meshferry("convert", lamp, target, "--mesh-version", "ms12").status == 0
    assert target.read_bytes() == FACE
    other = tmp_path / "out.timbermesh"
    assert meshferry("convert", lamp, other).status == 0
    nodes = TIMBERMESH.read(other.read_bytes()).nodes
    assert {mesh.material for node in nodes for mesh in node.meshes} == {"Face"}


@pytest.mark.needs_bpy
def test_blender_files_get_the_materials(meshferry, lamp: Path, tmp_path: Path) -> None:
    import bpy

    for options, name in (((), "oak"), (("--no-project-materials",), "Face")):
        target = tmp_path / f"{name}.blend"
        assert meshferry("convert", lamp, target, *options).status == 0
        with bpy.data.libraries.load(str(target)) as (there, _):
            assert there.materials == [name]


@pytest.mark.slow
@pytest.mark.needs_bpy
@pytest.mark.parametrize("kind", ["fbx", "obj", "glb"])
def test_normal_maps_in_files_of_other_programs_have_green_up(meshferry, tmp_path: Path, kind: str) -> None:
    """Each material has its own map; those of the project have green down, but for that of the bricks."""
    import bpy

    data = courtyard.make(tmp_path / "project")
    assert meshferry("convert", data / "courtyard.world", tmp_path / f"court.{kind}").status == 0
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    operators = {"fbx": bpy.ops.import_scene.fbx, "obj": bpy.ops.wm.obj_import, "glb": bpy.ops.import_scene.gltf}
    operators[kind](filepath=str(tmp_path / f"court.{kind}"))
    for name in ("tiles", "brick"):
        nodes = bpy.data.materials[name].node_tree.nodes
        (image,) = [node.inputs["Color"].links[0].from_node.image for node in nodes if node.type == "NORMAL_MAP"]
        source = bpy.data.images.load(str(data / "textures" / f"{name}_n.png"))
        assert tuple(image.size) == tuple(source.size)
        found, wanted = (np.array(one.pixels).reshape(-1, one.channels) for one in (image, source))
        if name == "tiles":
            wanted[:, 1] = 1.0 - wanted[:, 1]
        np.testing.assert_allclose(found[:, :3], wanted[:, :3], atol=0.01)
