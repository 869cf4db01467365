"""Re-export of imported scenes whose objects show other meshes or collections: no node gets what Blender lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import courtyard
import numpy as np
import pytest
import unigine_nodes
from test_scene_changes import by_name, export, imported, operate, reload

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def path(tmp_path: Path, clean_blender: Any) -> Path:
    """Return the world of a project, which is imported."""
    path = courtyard.make(tmp_path) / "courtyard.world"
    imported(clean_blender, path)
    return path


def separate(bpy: Any, name: str) -> Any:
    """Separate the first face of an object in edit mode; return the new object."""
    for polygon in bpy.data.objects[name].data.polygons:
        polygon.select = polygon.index == 0
    before = set(bpy.data.objects)
    bpy.context.tool_settings.mesh_select_mode = (False, False, True)
    operate(bpy, bpy.ops.object.mode_set, name, mode="EDIT")
    assert bpy.ops.mesh.separate(type="SELECTED") == {"FINISHED"}
    bpy.ops.object.mode_set(mode="OBJECT")
    (made,) = set(bpy.data.objects) - before
    return made


def test_separated_faces_do_not_become_a_copy_of_the_node(path: Path, clean_blender: Any) -> None:
    bpy, before = clean_blender, by_name(path)
    made = separate(bpy, "bench")
    operate(bpy, bpy.ops.object.duplicate, made.name, linked=True)
    for is_first in (True, False):
        report = export(bpy)
        assert ("Added: 'bench.001', 'bench.002'" in report) == is_first
        found = by_name(path)
        assert found["bench.001"].rest == found["bench.002"].rest != found["bench"].rest == before["bench"].rest
        assert "1 mesh edited here, which the file does not hold: 'bench'" in report
    bpy.data.objects["bench"].location.x += 2
    assert "Moved: 'bench'" in export(bpy), "the new object at the old place is not taken for the node"


def test_copies_of_a_mesh_are_written_while_their_vertices_stay(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    operate(bpy, bpy.ops.object.duplicate, "bench")
    operate(bpy, bpy.ops.object.duplicate, "bench", linked=True)
    bpy.data.objects["bench"].data.vertices[0].co.z += 1
    report = export(bpy)
    assert "Added: 'bench.001', 'bench.002'" in report and "new mesh" not in report


def test_applied_transforms_stay_in_the_file(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    for name in ("bench", "ground"):  # ground is flat
        bpy.data.objects[name].rotation_mode = "XYZ"
        bpy.data.objects[name].rotation_euler, bpy.data.objects[name].scale = (0.1, 0.2, 0.3), (3, 3, 3)
    operate(bpy, bpy.ops.object.parent_set, "lamp_1", "bench", type="OBJECT", keep_transform=True)
    export(bpy)
    old = path.read_bytes()
    operate(bpy, bpy.ops.object.transform_apply, "bench", "ground")
    assert tuple(bpy.data.objects["bench"].scale) == (1, 1, 1)
    report = export(bpy)
    assert "2 meshes with an applied transform, which stays in the file instead: 'bench', 'ground'" in report
    assert "edited" not in report and path.read_bytes() == old
    before = by_name(path)
    bpy.data.objects["bench"].location.z += 2
    assert "Moved: 'bench'" in export(bpy)
    for name, height in (("bench", 2), ("lamp_1", 2), ("ground", 0)):
        moved = before[name].world.copy()
        moved[2, 3] += height
        assert np.allclose(by_name(path)[name].world, moved, atol=1e-5), name
    bpy.data.objects["bench"].data.vertices[0].co.z += 1
    assert "1 mesh edited here, which the file does not hold: 'bench'" in export(bpy)


def test_objects_with_another_mesh_are_named(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    bench, ground = bpy.data.objects["bench"], bpy.data.objects["ground"]
    operate(bpy, bpy.ops.object.duplicate, "bench")
    bpy.context.object.data = bpy.data.meshes.new("of the user")
    bench.data = ground.data
    plain = bpy.data.objects.new("more ground", ground.data)
    ground.users_collection[0].objects.link(plain)
    report = export(bpy)
    assert "1 object with another mesh than in the file, which is not written: 'bench'" in report
    assert "1 object with a new mesh, which only Re-export writes, of enabled objects with faces" in report
    assert "Added: 'more ground'" in report and "Other material" not in report
    found, before = unigine_nodes.read_nodes(path.read_bytes()), unigine_nodes.read_nodes(old)
    (added,) = found.keys() - before.keys()
    assert found[added].materials == by_name(path)["ground"].materials, "the node of the mesh is copied"
    plain.material_slots[0].link = "OBJECT"
    plain.material_slots[0].material = bpy.data.materials["glow"]
    assert "Other material: 'more ground'" in export(bpy)
    assert unigine_nodes.read_nodes(path.read_bytes())[added].materials == [courtyard.material("glow")]


def test_copied_instance_refers_to_the_collection_that_it_shows(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    operate(bpy, bpy.ops.object.duplicate, "planter_1")
    copy = bpy.context.object
    copy.instance_collection = bpy.data.collections.new("other")
    copy.users_collection[0].children.link(copy.instance_collection)
    report = export(bpy)
    assert "1 object made here not written" in report and copy.name in report and path.read_bytes() == old
    bpy.data.objects["planter_1"].instance_collection = copy.instance_collection
    assert "'planter_1'" in export(bpy).partition("another collection")[2] and path.read_bytes() == old
    operate(bpy, bpy.ops.object.duplicate, "walls")
    copy, planter = bpy.context.object, bpy.data.objects["planter_2"].instance_collection
    copy.instance_type, copy.instance_collection = "COLLECTION", planter
    assert f"Added: '{copy.name}'" in export(bpy)
    found = unigine_nodes.read_nodes(path.read_bytes())
    (added,) = found.keys() - unigine_nodes.read_nodes(old).keys()
    assert "NodeReference" in found[added].rest, "the node of the collection is copied"
    assert "Added" not in export(bpy)


def test_reload_gives_nodes_their_meshes_again(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    bpy.data.objects["bench"].data = bpy.data.objects["ground"].data
    assert "'bench'" in export(bpy).partition("another mesh")[2]
    reload(bpy)
    assert export(bpy).endswith("nothing changed")
