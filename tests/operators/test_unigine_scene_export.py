"""New UNIGINE scenes as an artist or a script exports them, judged by an XML parser and a decoder of meshes."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
from unigine_scene_oracle import WrittenScene

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "blender"))
from helpers_export import add, assert_same_triangles, materials, model_collection, square, tetra
from helpers_models import rig, skinned
from test_export_placement import pictured

pytestmark = pytest.mark.needs_bpy

ODD = 'Лампа <1> & "2"/x'


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def street(clean_blender):
    """Linked duplicates below sheared and mirrored parents, nested instances, modifiers, an armature, odd names."""
    bpy = clean_blender
    lamp = model_collection("Lamp")
    bpy.context.view_layer.layer_collection.children["Lamp"].exclude = True
    lamp.instance_offset = (0, 0, 1)
    foot = tetra("Foot", lamp, location=(1, 0, 0))
    tetra(ODD, lamp, parent=foot, scale=(2, 1, 1)).modifiers.new("Array", "ARRAY").count = 2
    pair = model_collection("Pair")
    bpy.context.view_layer.layer_collection.children["Pair"].exclude = True
    for x in (0, 3):
        add("Post", None, pair, instance_type="COLLECTION", instance_collection=lamp, location=(x, 0, 0))
    top = add("Top", location=(1, 2, 3), rotation_euler=(0.3, 0.4, 0.5), scale=(-1, 2, 0.5))
    first = tetra("Stone", parent=top, rotation_euler=(1, 0, 0))
    materials(first, "Red", "Blue")
    first.data.polygons[0].material_index = 1
    add("Stone.001", first.data, location=(9, 0, 0), scale=(1, 1, -3))
    add("Way", None, parent=top, instance_type="COLLECTION", instance_collection=pair, rotation_euler=(0, 0, 1))
    skinned(rig(location=(0, 9, 0), scale=(2, 2, 2)))
    square("Hidden").hide_set(True)
    bpy.context.view_layer.update()
    return bpy


def export(bpy, path, **options):
    return bpy.ops.export_scene.unigine_scene(filepath=str(path), **{"collection": "Model", **options})


def test_a_new_scene_is_what_blender_shows(street, tmp_path, capfd):
    path = tmp_path / "data" / "street.node"
    path.parent.mkdir()
    assert export(street, path) == {"FINISHED"}
    written = WrittenScene(path)
    hidden = street.data.objects["Hidden"]
    expected = pictured()
    assert_same_triangles(written.triangles(), expected, 1e-4)
    found = {node.name: node for node in written.nodes()}
    for name in ("Top", "Stone", "Stone.001", "Way"):
        np.testing.assert_allclose(found[name].world, np.array(street.data.objects[name].matrix_world), atol=1e-5)
    assert found["Stone"].element.findtext("mesh_name") == found["Stone.001"].element.findtext("mesh_name")
    assert found["Tube"].element.get("type") == "ObjectMeshSkinned"
    assert ODD in found
    assert hidden.name not in found
    names = sorted(contents(path.parent))
    assert sum(name.endswith(".node") for name in names) == 3
    assert sum(name.endswith(".mesh") for name in names) == 4
    assert {f"{name}.meta" for name in names if name.endswith((".node", ".mesh"))} <= set(names)
    said = capfd.readouterr().out
    assert "'Hidden': hidden, left out" in said
    assert f"{len(names)} files written" in said

    before = len(street.data.objects)
    street.ops.import_scene.unigine(directory=str(path.parent), files=[{"name": path.name}])
    made = street.data.objects[before:]
    for obj in list(street.data.collections["Model"].all_objects):
        obj.hide_viewport = True
    street.context.view_layer.update()
    assert made
    assert_same_triangles(pictured(), expected, 1e-4)


def test_hidden_objects_are_disabled_nodes_when_asked(street, tmp_path):
    export(street, tmp_path / "street.node", use_hidden=True)
    found = {node.name: node.is_hidden for node in WrittenScene(tmp_path / "street.node").nodes()}
    assert [name for name, is_hidden in found.items() if is_hidden] == ["Hidden"]


def test_a_second_export_and_a_re_export_change_only_what_was_changed(street, tmp_path, capfd):
    path = tmp_path / "street.node"
    export(street, path)
    first = contents(tmp_path)
    assert export(street, path) == {"FINISHED"}
    assert contents(tmp_path) == first
    street.data.objects["Stone.001"].location.x = -5
    street.context.view_layer.objects.active = street.data.objects["Stone.001"]
    capfd.readouterr()
    assert street.ops.export_scene.meshferry_again() == {"FINISHED"}
    second = contents(tmp_path)
    changed = {name for name in second if second[name] != first.get(name)}
    assert changed == {"street.node", ".street.node.written.json"}
    assert "2 files changed" in capfd.readouterr().out
    found = {node.name: node for node in WrittenScene(path).nodes()}
    assert found["Stone.001"].world[0, 3] == -5


def test_files_of_others_are_not_replaced(street, tmp_path):
    path = tmp_path / "street.node"
    export(street, path)
    mesh = tmp_path / "street" / "Stone.mesh"
    mesh.write_bytes(mesh.read_bytes() + b"\0")
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match=r"Stone\.mesh"):
        export(street, path)
    assert contents(tmp_path) == before


def test_an_imported_scene_gets_its_changes_or_becomes_a_new_scene(street, tmp_path, capfd):
    path = tmp_path / "street.node"
    export(street, path)
    street.ops.import_scene.unigine(directory=str(tmp_path), files=[{"name": path.name}])
    (collection,) = (one for one in street.data.collections if one.meshferry.from_file)
    (stone,) = (
        obj for obj in collection.objects if obj.meshferry.source_name == "Stone.001" or obj.name == "Stone.001"
    )
    stone.location.x = 77
    old, before = path.read_text(encoding="utf-8"), contents(tmp_path)
    capfd.readouterr()
    assert export(street, path, collection=collection.name) == {"FINISHED"}
    assert "Moved: " in capfd.readouterr().out
    new = path.read_text(encoding="utf-8")
    assert sum(a != b for a, b in zip(old.splitlines(), new.splitlines(), strict=True)) == 1
    assert {name for name, digest in contents(tmp_path).items() if before.get(name) != digest} == {"street.node"}
    copy = tmp_path / "copy.node"
    assert export(street, copy, collection=collection.name) == {"FINISHED"}
    assert path.read_text(encoding="utf-8") == new
    assert_same_triangles(WrittenScene(copy).triangles(), WrittenScene(path).triangles(), 1e-4)
    references = [
        {node.element.findtext("mesh_name") for node in WrittenScene(one).nodes()} - {None} for one in (path, copy)
    ]
    assert not references[0] & references[1]
    street.context.view_layer.objects.active = stone
    assert street.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "copy.node: nothing changed" in capfd.readouterr().out


def test_the_exporter_of_a_collection(street, tmp_path):
    layer = street.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children["Model"]
    street.ops.collection.exporter_add(name="IO_FH_unigine_scene")
    (exporter,) = street.data.collections["Model"].exporters
    owner = exporter if hasattr(exporter, "filepath") else exporter.export_properties
    owner.filepath = str(tmp_path / "street.node")
    street.ops.collection.export_all()
    assert len(WrittenScene(tmp_path / "street.node").triangles()) == len(pictured())
