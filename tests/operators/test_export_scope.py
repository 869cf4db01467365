"""The default objects of an export: the same for all formats, and shown in the dialog."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy

MESH_EXPORTERS = ["timbermesh", "unigine_mesh", "second_life_upload", "second_life_mesh", "mesh_serializer"]


def add(bpy: Any, name: str, collection: Any, *, parent: Any = None, is_empty: bool = False) -> Any:
    mesh = None
    if not is_empty:
        mesh = bpy.data.meshes.new(name)
        points = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (0, 1), (1, 1), (1, 0))]
        mesh.from_pydata(points, [], [(0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (2, 6, 7, 3)])
        mesh.materials.append(bpy.data.materials.get("Wood") or bpy.data.materials.new("Wood"))
    made = bpy.data.objects.new(name, mesh)
    collection.objects.link(made)
    made.parent = parent
    return made


@pytest.fixture
def props(clean_blender: Any) -> Any:
    """Return Blender with an active collection of two meshes, one below an empty, and a hidden one, beside another."""
    bpy = clean_blender
    made = bpy.data.collections.new("Props")
    bpy.context.scene.collection.children.link(made)
    root = add(bpy, "#Root", made, is_empty=True)
    add(bpy, "#Lamp", made, parent=root)
    add(bpy, "#Chair", made)
    hidden = add(bpy, "#Hidden", made, parent=root)
    add(bpy, "#Outside", bpy.context.scene.collection)
    layer = bpy.context.view_layer
    layer.update()
    hidden.hide_set(True)
    layer.active_layer_collection = layer.layer_collection.children["Props"]
    return bpy


CASES = {
    (): ({"#Lamp", "#Chair"}, "collection 'Props' (2 meshes)"),
    ("#Lamp", "#Outside"): ({"#Lamp", "#Outside"}, "2 selected meshes"),
    ("#Chair", "#Root"): ({"#Chair"}, "1 selected mesh"),
    ("#Root",): ({"#Lamp"}, "1 mesh below '#Root'"),
    ("Camera",): ({"#Lamp", "#Chair"}, "collection 'Props' (2 meshes)"),
}


@pytest.mark.parametrize("selected", CASES, ids=" ".join)
@pytest.mark.parametrize("name", MESH_EXPORTERS)
def test_what_is_exported_without_being_told(
    props: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, selected: Iterable[str]
) -> None:
    from meshferry.io_formats import api
    from meshferry.operators.files import export_base

    bpy = props
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera")))
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj.name in selected)
    wanted, said = CASES[selected]
    scenes: list[Any] = []
    split = api.split

    def watched(scene: Any, *arguments: Any) -> Any:
        scenes.append(scene)
        return split(scene, *arguments)

    monkeypatch.setattr(export_base, "split", watched)
    operator = getattr(bpy.ops.export_scene, name)
    assert operator(filepath=str(tmp_path / f"any{extension_of(bpy, name)}")) == {"FINISHED"}
    nodes = [node for node in scenes[0].nodes if node.mesh is not None and node.lod == 0]
    assert {node.name for node in nodes if node.role.value == "render"} == wanted
    assert text_of(bpy, name) == said


def class_of(bpy: Any, name: str) -> Any:
    return getattr(bpy.types, f"EXPORT_SCENE_OT_{name}")


def extension_of(bpy: Any, name: str) -> str:
    return str(class_of(bpy, name).format.extensions[0])


def text_of(bpy: Any, name: str, **given: Any) -> str:
    """Return what the dialog says of the exported objects."""
    operator = class_of(bpy, name)
    values = {option.name: option.default for option in operator.option_table} | {"collection": "", "scope": "AUTO"}
    bases = tuple(base for base in operator.__bases__ if base is not bpy.types.Operator)  # which nothing can make
    own = {key: value for key, value in vars(operator).items() if not key.startswith("__")}
    asked = type("Asked", bases, {**own, **values, "filename_ext": "", **given})()
    source, _name = asked.source(bpy.context, "")
    return str(asked.scope_text(bpy.context, source))


def test_an_explicit_scope_wins_over_the_selection(props: Any, tmp_path: Path) -> None:
    bpy = props
    bpy.data.objects["#Chair"].select_set(True)
    assert text_of(bpy, "unigine_mesh", scope="COLLECTION") == "collection 'Props' (2 meshes)"
    assert text_of(bpy, "timbermesh", scope="SCENE") == "the scene (3 meshes)"
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "any.mesh"), scope="COLLECTION")
    assert {path.name for path in tmp_path.iterdir()} == {"#Lamp.mesh", "#Chair.mesh"}


def test_saved_scopes_keep_their_meaning(props: Any) -> None:
    """Collection exporters in .blend files store the numbers of the choices."""
    for name, order in (
        ("timbermesh", ["COLLECTION", "SELECTION", "SCENE", "AUTO"]),
        ("unigine_mesh", ["SELECTION", "COLLECTION", "SCENE", "AUTO"]),
        ("unigine_anim", ["ACTIVE", "SELECTION", "COLLECTION", "SCENE"]),
    ):
        choices = getattr(props.ops.export_scene, name).get_rna_type().properties["scope"].enum_items
        assert [choice.identifier for choice in sorted(choices, key=lambda choice: choice.value)] == order


def test_a_collection_selected_as_a_whole_stays_a_collection(props: Any, tmp_path: Path) -> None:
    for obj in props.data.collections["Props"].objects:
        obj.select_set(obj.visible_get())
    assert text_of(props, "timbermesh") == "collection 'Props' (2 meshes)"
    assert text_of(props, "unigine_mesh") == "2 selected meshes"


def test_nothing_below_an_armature_is_said(props: Any, tmp_path: Path) -> None:
    bpy = props
    armature = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(armature)
    armature.select_set(True)
    with pytest.raises(RuntimeError, match="There is nothing to export in what is below 'Rig'"):
        bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "any.mesh"))
    lamp = bpy.data.objects["#Lamp"]
    lamp.modifiers.new("Armature", "ARMATURE").object = armature
    assert text_of(bpy, "unigine_mesh") == "1 mesh below 'Rig'"
