"""Conversions to new UNIGINE scenes from the formats that Blender reads, judged by an XML parser and a mesh decoder."""

import sys
from pathlib import Path

import numpy as np
import pytest
from outputs import opened
from unigine_scene_oracle import WrittenScene

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "blender"))

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def models(clean_blender, tmp_path):
    """A .blend and a .glb file of the same scene: a shared mesh with a material, below a rotated and scaled parent."""
    from helpers_export import add, materials, tetra

    bpy = clean_blender
    top = add("Top", location=(1, 2, 3), rotation_euler=(0, 0, 1), scale=(2, 2, 2))
    stone = tetra("Stone", parent=top, location=(1, 0, 0))
    materials(stone, "Red")
    add("Stone.001", stone.data, location=(9, 0, 0))
    bpy.context.view_layer.update()
    folder = tmp_path / "in"
    folder.mkdir()
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "street.blend"))
    bpy.ops.export_scene.gltf(filepath=str(folder / "garden.glb"))
    worlds = {name: np.array(bpy.data.objects[name].matrix_world) for name in ("Stone", "Stone.001")}
    return folder, worlds


def assert_written(path, worlds):
    written = WrittenScene(path)
    found = {node.name: node for node in written.nodes()}
    for name, world in worlds.items():
        np.testing.assert_allclose(found[name].world, world, atol=1e-5)
    assert len({found[name].element.findtext("mesh_name") for name in worlds}) == 1
    (surface,) = found["Stone"].element.findall("surface")
    material = surface.get("material", "")
    assert written.files[material].name == "Red.mat"
    assert len(written.triangles()) == 4 * len(worlds)


@pytest.mark.parametrize("name", ["street.blend", "garden.glb"])
def test_a_file_becomes_a_scene_with_meshes_and_materials(meshferry, models, tmp_path, name):
    folder, worlds = models
    path = tmp_path / "data" / "new.node"
    path.parent.mkdir()
    done = meshferry("convert", folder / name, path)
    assert done.status == 0, done.err
    assert "3 objects, 8 triangles, 1 material" in done.out
    assert_written(path, worlds)


@pytest.mark.slow
def test_batches_write_a_scene_for_each_file(meshferry, models, tmp_path):
    folder, worlds = models
    done = meshferry("batch", folder, "--to", "node", "-o", tmp_path / "data", "-j", "1")
    assert done.status == 0, done.err
    for name in ("street", "garden"):
        assert_written(tmp_path / "data" / f"{name}.node", worlds)


def test_a_blend_file_changes_its_scene_and_becomes_another_one(meshferry, models, tmp_path):
    folder, _worlds = models
    path, blend = tmp_path / "new.node", tmp_path / "again.blend"
    assert meshferry("convert", folder / "street.blend", path).status == 0
    assert meshferry("convert", path, blend).status == 0
    bpy = opened(blend)
    bpy.data.objects["Stone.001"].location.x = 77
    bpy.ops.wm.save_mainfile()
    old = path.read_text(encoding="utf-8")
    assert meshferry("convert", blend, path).status == 0
    new = path.read_text(encoding="utf-8")
    assert sum(a != b for a, b in zip(old.splitlines(), new.splitlines(), strict=True)) == 1
    other = tmp_path / "other.node"
    assert meshferry("convert", blend, other).status == 0
    names = {node.name: node for node in WrittenScene(other).nodes()}
    assert names["Stone.001"].world[0, 3] == 77
