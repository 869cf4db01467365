"""Assign Project Materials, and the panel of a material from a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import unigine_bytes
from unigine_projects import guid, material, mesh_node, runtime_path, write_project
from unigine_scene_bytes import nodes

pytestmark = pytest.mark.needs_bpy

MESH, OAK = guid(1), guid(2)
OAK_CONTENT = '<parameter name="roughness">0.25</parameter><texture name="albedo">guid://' + guid(9) + "</texture>"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        runtime_path(MESH, "mesh"): unigine_bytes.ALL["ms12"],
        "oak.mat": material(OAK, base="Unigine::mesh_base", content=OAK_CONTENT),
        "a.node": nodes(mesh_node(f"guid://{MESH}", Face=OAK)),
    }
    return write_project(tmp_path / "data", files)


def imported(path: Path, **options: Any) -> Any:
    import bpy

    bpy.ops.import_scene.unigine(filepath=str(path), use_project_materials=False, **options)
    return bpy.context.object


def test_materials_are_assigned_and_exported_names_stay(data: Path, clean_blender: Any) -> None:
    from meshferry.blender_data.mesh_data import surfaces

    obj = imported(data / runtime_path(MESH, "mesh"))
    assert obj.material_slots[0].material.name == "Face"
    assert clean_blender.ops.object.meshferry_project_materials() == {"FINISHED"}
    made = obj.material_slots[0].material
    assert (made.name, made.meshferry.identity, made.roughness) == ("oak", OAK, 0.25)
    assert [surface.name for surface in surfaces.written(obj)] == ["Face"]
    shown = {value.name: value.value for value in made.meshferry.file_properties}
    assert shown["File"] == "oak.mat" and shown["Missing Texture (albedo)"] == f"guid://{guid(9)}"
    clean_blender.ops.object.meshferry_project_materials()
    assert obj.material_slots[0].material == made, "a second run uses the material again"


def test_colour_and_opacity_of_a_graph_are_shown(data: Path, clean_blender: Any) -> None:
    graph = 'BaseMaterial< parent=Unigine::mesh_transparent >\n{\nColor "Glass Tint"=[1 0 1 1]\nSlider "opacity"=0.6\n}'
    (data / ".runtimes").mkdir(exist_ok=True)
    (data / ".runtimes" / f"{guid(7)}.basemat").write_text(graph, "utf-8")
    own = '<parameter name="Glass Tint">0 0 1 1</parameter>'
    (data / "oak.mat").write_text(
        f'<?xml version="1.0"?><material guid="{OAK}" base_material="{guid(7)}">{own}</material>', "utf-8"
    )
    clean_blender.ops.import_scene.unigine(filepath=str(data / runtime_path(MESH, "mesh")))
    made = clean_blender.context.object.material_slots[0].material
    inputs = made.node_tree.nodes["Principled BSDF"].inputs
    assert inputs["Base Color"].default_value[:3] == pytest.approx((0, 0, 1))
    assert inputs["Alpha"].default_value == made.diffuse_color[3] == pytest.approx(0.6)
    shown = {value.name: value.value for value in made.meshferry.file_properties}
    assert shown["Base"] == "graph"
    assert (shown["Parameter (Glass Tint)"], shown["Parameter (opacity)"]) == ("0 0 1 1", "0.6")


def test_a_file_outside_needs_the_folder_of_its_project(data: Path, tmp_path: Path, clean_blender: Any) -> None:
    path = tmp_path / "desk" / f"{MESH}.mesh"
    path.parent.mkdir()
    path.write_bytes(unigine_bytes.ALL["ms12"])
    obj = imported(path)
    with pytest.raises(RuntimeError, match="not in a UNIGINE project; choose the folder"):
        clean_blender.ops.object.meshferry_project_materials()
    assert obj.material_slots[0].material.name == "Face"
    assert clean_blender.ops.object.meshferry_project_materials(directory=str(data)) == {"FINISHED"}
    assert obj.material_slots[0].material.name == "oak"


def test_missing_materials_leave_the_slots_as_they_are(data: Path, clean_blender: Any) -> None:
    (data / "a.node").write_bytes(nodes(mesh_node(MESH, Face=guid(8))))
    obj = imported(data / runtime_path(MESH, "mesh"))
    before = obj.material_slots[0].material
    clean_blender.ops.object.meshferry_project_materials()
    assert obj.material_slots[0].material == before and len(clean_blender.data.materials) == 1


def test_other_objects_cannot_be_assigned(clean_blender: Any) -> None:
    mesh = clean_blender.data.objects.new("Own", clean_blender.data.meshes.new("Own"))
    clean_blender.context.scene.collection.objects.link(mesh)
    mesh.select_set(True)
    assert not clean_blender.ops.object.meshferry_project_materials.poll()


def test_materials_of_one_name_are_told_apart(data: Path, clean_blender: Any) -> None:
    """An import uses the material of the same GUID, never one of the same name with another."""
    clean_blender.ops.import_scene.unigine(filepath=str(data / runtime_path(MESH, "mesh")))
    first = clean_blender.context.object.material_slots[0].material
    assert (first.name, first.meshferry.identity) == ("oak", OAK)
    first.name = "painted"
    (data / "oak.mat").rename(data / "birch.mat")
    (data / "oak.mat").write_text(material(guid(7), base="Unigine::mesh_base"), "utf-8")
    (data / "b.node").write_bytes(nodes(*[mesh_node(MESH, Face=guid(7))] * 2))
    clean_blender.data.materials.new("oak").meshferry.identity = guid(6)
    from meshferry.operators.files.session_projects import session_projects

    session_projects.cache_clear()
    clean_blender.ops.import_scene.unigine(filepath=str(data / runtime_path(MESH, "mesh")))
    second = clean_blender.context.object.material_slots[0].material
    assert (second.name, second.meshferry.identity) == ("oak.001", guid(7))
    (data / "b.node").unlink()
    session_projects.cache_clear()
    clean_blender.ops.import_scene.unigine(filepath=str(data / runtime_path(MESH, "mesh")))
    assert clean_blender.context.object.material_slots[0].material == first, "by its GUID, although it was renamed"
