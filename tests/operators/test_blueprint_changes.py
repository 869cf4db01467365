"""Changes of imported blueprints go back into their text: all or none, and nothing else."""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any

import pytest
import timber_mod

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def path(tmp_path: Path, clean_blender: Any) -> Path:
    """Return the blueprint of a mod, which is imported."""
    path = timber_mod.make(tmp_path / "mod")
    imported(clean_blender, path)
    return path


def imported(bpy: Any, path: Path, **options: Any) -> Any:
    assert bpy.ops.import_scene.timbermesh(filepath=str(path), **options) == {"FINISHED"}
    return bpy.context.view_layer.active_layer_collection.collection


def plan(collection: Any = None) -> Any:
    """Return the changes of the only import, or of a collection."""
    import bpy
    from meshferry.blender_data.exporting.placements.placement_patch import plan_patch
    from meshferry.blender_data.steps import finish
    from meshferry.io_formats.projects import Projects

    collection = collection or next(one for one in bpy.data.collections if one.meshferry.from_file)
    return finish(plan_patch(collection, Projects()))


def diff(old: bytes, new: bytes) -> list[str]:
    """Return the removed and added lines without their indents."""
    lines = difflib.ndiff(old.decode().splitlines(), new.decode().splitlines())
    return [line[0] + line[2:].strip() for line in lines if line[0] in "+-"]


def node(key: str, *, number: int = 0) -> Any:
    """Return the object of a node."""
    import bpy

    return [obj for obj in bpy.data.objects if obj.meshferry.node_key.endswith(key)][number]


def refusal() -> str:
    from meshferry.io_formats.core.errors import ExportError

    with pytest.raises(ExportError) as caught:
        plan()
    return str(caught.value)


def select(bpy: Any, *objects: Any) -> None:
    for layer in bpy.context.view_layer.layer_collection.children:
        show(layer)
    bpy.context.view_layer.update()
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
        assert obj.select_get() == (obj in objects), obj
    bpy.context.view_layer.objects.active = objects[-1]


def show(layer: Any) -> None:
    """Show a collection and all in it, as the user does before hidden objects are chosen."""
    layer.exclude = layer.hide_viewport = layer.collection.hide_viewport = False
    for child in layer.children:
        show(child)


def test_unchanged_and_layout(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    assert not plan().edits and plan().patched.data == path.read_bytes()
    node("/Walls").delta_location.x = 3.0
    node("/").location.x, node("/").scale.y = 5.0, 2.0
    node("/Roof").name = "Other"
    node("/Door").hide_viewport = True
    empty = bpy.data.objects.new("layout", None)
    bpy.context.scene.collection.objects.link(empty)
    node("/").parent = empty
    for frame in (1, 7):
        bpy.context.scene.frame_set(frame)
        found = plan()
        assert not found.edits and not found.messages and found.patched.data == path.read_bytes()


def test_moved_turned_and_scaled(path: Path) -> None:
    old = path.read_bytes()
    walls, door, roof = node("/Walls"), node("/Door"), node("/Roof")
    plain, moved, beam = node("/Plain#nested"), node("/Moved#nested"), node("/Moved#nested/Children/Beam")
    walls.location.x = -0.75
    walls.rotation_euler.x = math.radians(-30.0)
    walls.scale.z = 2.5
    door.location.z = 1e-7
    roof.rotation_euler.z += math.radians(5e-5)  # a clean rotation stays
    plain.location.x = -4.0
    moved.location.x = -1.0
    beam.location.x = -2.0
    box, capsule = node("/#Finished/CollidersSpec/BoxColliders/0"), node("/CapsuleColliders/0")
    box.location.z, box.scale.x = 0.25, 1.5
    capsule.scale = (0.5,) * 3
    node("/Attachments/0").scale.x = 3.0
    found = plan()
    nine = ["TransformSpec", "Position", "X", "Y", "Z", "}", "Rotation", "X", "Y", "Z", "}", "Scale", "X", "Y", "Z"]
    lines = diff(old, found.patched.data)
    assert [line for line in lines if "{ " in line or "Path" in line] == [
        '-"Scale": { "X": 1.0, "Y": 1.0, "Z": 1.0 }',
        '+"Scale": { "X": 3.0, "Y": 1.0, "Z": 1.0 }',
        '-{ "Center": { "X": 0.5, "Y": 0.5, "Z": 0.5 }, "Size": { "X": 1.0, "Y": 2.0, "Z": 3.0 } },',
        '+{ "Center": { "X": 0.5, "Y": 0.25, "Z": 0.5 }, "Size": { "X": 1.5, "Y": 2.0, "Z": 3.0 } },',
        '-{ "Center": { "X": 0.5, "Y": 0.5, "Z": 0.5 }, "Radius": 0.25, "Height": 2.0, "Axis": "Y" }',
        '+{ "Center": { "X": 0.5, "Y": 0.5, "Z": 0.5 }, "Radius": 0.5, "Height": 4.0, "Axis": "Y" }',
        '-"Position": { "X": 0.5, "Y": 0.0, "Z": 1 },',
        '+"Position": { "X": 0.75, "Y": 0.0, "Z": 1 },',
        '-"Rotation": { "X": 30.0, "Y": 270.0, "Z": 0.0 },',
        '+"Rotation": { "X": -30.0, "Y": 270.0, "Z": 0.0 },',
        '-"Scale": { "X": 1.0, "Y": 2.0, "Z": 1.5 }',
        '+"Scale": { "X": 1.0, "Y": 2.5, "Z": 1.5 }',
        '-"BlueprintPath": "Modules/Module.blueprint"',
        '+"BlueprintPath": "Modules/Module.blueprint",',
        '-"TransformSpec": { "Position": { "Z": 0.5 } },',
        '+"TransformSpec": { "Position": { "Z": 0.5, "X": 1.0 } },',
        '-"Beam": { "TransformSpec": { "Position": { "X": 0.25 } } }',
        '+"Beam": { "TransformSpec": { "Position": { "X": 2.0 } } }',
    ]
    new = [line[1:].strip('",{: ').partition('"')[0] for line in lines if line[0] == "+" and "{ " not in line]
    assert new[: len(nine)] == nine and '+"Y": 1.0E-07,' in lines
    names = ["}", "}", "BlueprintPath", "Modification", "TransformSpec", "Position", "X", "}", "}", "}"]
    assert new[len(nine) :] == names


def test_matrices_of_other_channels(path: Path, clean_blender: Any) -> None:
    """A quaternion, or a parent inverse, gives the numbers of the same matrix; shear is reported."""
    bpy, old = clean_blender, path.read_bytes()
    walls, window = node("/Walls"), node("/Window")
    walls.rotation_mode = "QUATERNION"
    bpy.context.view_layer.update()
    matrix = walls.matrix_basis.copy()
    walls.rotation_mode = "XYZ"
    walls.matrix_basis = matrix
    window.matrix_parent_inverse.translation.z = 1.0
    found = plan()
    assert [edit.title for edit in found.edits] == ["Window"]
    window.matrix_parent_inverse[0][1] = 0.5
    assert ["sheared" in message for message in plan().messages] == [True]
    assert path.read_bytes() == old


def test_added(path: Path, clean_blender: Any) -> None:
    """Copies with and without what is below them, and a new model, get names and keys that nothing else has."""
    bpy, old = clean_blender, path.read_bytes()
    select(bpy, node("/Walls"))
    bpy.ops.object.duplicate(linked=True)
    copied = bpy.context.object
    copied.location.x = -2.0
    found = plan()
    assert [str(line) for line in found.lines()] == ["Added: 'Walls.001'"] and not found.messages
    lines = diff(old, found.patched.data)
    assert not [line for line in lines if line[0] == "-"] and '+"Position": { "X": 2.0, "Y": 0.0, "Z": 1 },' in lines
    assert sum('"Walls (1)"' in line for line in lines) == sum('"Window"' in line for line in lines) == 1
    found.write()
    assert not plan().edits and node("/Walls").location.x == -0.5
    window, mill = node("/Walls (1)"), bpy.data.objects.new("Roof", None)
    assert window == copied
    window.location.y = 0.25
    mill["Model"] = "Parts/Windmill"
    node("/Roof").users_collection[0].objects.link(mill)
    mill.parent, mill.location.z = node("/Window"), 0.5
    select(bpy, node("/Window"), *(one for one in node("/Window").children_recursive if one != mill))
    bpy.ops.object.duplicate()
    box = next(one for one in bpy.context.selected_objects if "Box" in one.name)
    box.location.z = 0.125
    found = plan()
    keys = ["/Walls/Children/Window/Children/Roof (1)", "/Window (1)", "/Window (1)/CollidersSpec/BoxColliders/0"]
    assert all(any(key.endswith(wanted) for key in found.patched.keys.values()) for wanted in keys), found.patched.keys
    assert len(found.patched.keys) == 3
    found.write()
    assert not plan().edits and not plan().messages


def test_removed(path: Path, clean_blender: Any) -> None:
    """The text of removed children goes with its commas, comments beside them stay."""
    bpy, old = clean_blender, path.read_bytes()
    bpy.data.batch_remove([node("/Moved#nested"), *node("/Moved#nested").children_recursive])
    bpy.data.batch_remove([node("/Window")])  # its model and its collider stay behind, without a place
    found = plan()
    assert {line[0] for line in diff(old, found.patched.data)} == {"-"}
    found.write()
    assert not plan().edits
    assert b"// the building" in path.read_bytes() and b"// the walls" in path.read_bytes()


def test_all_refusals_at_once(path: Path, clean_blender: Any) -> None:
    bpy, old = clean_blender, path.read_bytes()
    node("/Door").parent = node("/Roof")
    node("/Roof").constraints.new("COPY_LOCATION")
    node("/Walls").location.x = 7.0
    node("/Plain#nested/Children/Post").location.x = 1.0
    node("/BoxColliders/0").rotation_euler.x = 0.5
    node("/CapsuleColliders/0").scale.x = 3.0
    node("/BlockObjectSpec/Entrance").location.x = 3.0
    node("/BlockObjectSpec").location.x = 3.0
    bpy.data.batch_remove([node("/Stage"), *node("/Stage").children_recursive])
    cube = bpy.data.objects.new("cube", bpy.data.meshes.new("cube"))
    node("/Walls").users_collection[0].objects.link(cube)
    text = refusal()
    for name in (
        "Door",
        "'Roof'",
        "'Post'",
        "BoxCollider",
        "CapsuleCollider",
        "Entrance",
        "Footprint",
        "Stage",
        "'cube'",
    ):
        assert name in text, (name, text)
    assert path.read_bytes() == old


def test_removed_parts_of_models_are_reported(path: Path, clean_blender: Any) -> None:
    """Who clicks on a model and deletes it has not removed the child; a copy of a child alone has no model yet."""
    bpy = clean_blender
    select(bpy, node("/Walls"))
    bpy.ops.object.duplicate()
    assert not plan().messages
    select(bpy, next(one for one in node("/Roof").children_recursive if one.type == "MESH"))
    bpy.ops.object.delete()
    (message,) = plan().messages
    assert message.code == "model-parts-missing" and "'Roof'" in message


@pytest.mark.parametrize("name", ["#Underground", "Window", "Roof"])
def test_findings(path: Path, name: str) -> None:
    if name == "#Underground":
        node("/#Underground").location.z = -1.0
    elif name == "Window":
        node("/Window").scale.x = -1.0
    else:
        part = next(one for one in node("/Roof").children_recursive if one.type == "MESH")
        part.location.x += 1.0
    code = {"#Underground": "underground-height", "Window": "negative-scale", "Roof": "model-part-not-written"}
    found = plan()
    assert [message.code for message in found.messages] == [code[name]]
    assert len(found.edits) == (name != "Roof") and (name != "Roof" or "Windmill.timbermesh" in found.messages[0])


def test_model_path(path: Path) -> None:
    old = path.read_bytes()
    node("/Door")["Model"] = 'Parts/Wind"mill'
    assert diff(old, plan().patched.data) == [
        '-"TimbermeshSpec": { "Model": "Parts/Missing" }',
        '+"TimbermeshSpec": { "Model": "Parts/Wind\\"mill" }',
    ]
    del node("/Door")["Model"]
    assert "Door: only the path of the model can be changed, and not to nothing" in refusal()


def test_two_imports_saved_and_opened(path: Path, clean_blender: Any) -> None:
    """Each import writes its own changes; the other one has to be reloaded first."""
    bpy = clean_blender
    imported(bpy, path)
    first, second = (one for one in bpy.data.collections if one.meshferry.from_file)
    bpy.ops.wm.save_as_mainfile(filepath=str(path.with_name("house.blend")))
    bpy.ops.wm.open_mainfile(filepath=str(path.with_name("house.blend")))
    first, second = (one for one in bpy.data.collections if one.meshferry.from_file)
    roof = next(one for one in first.all_objects if one.meshferry.node_key.endswith("/Roof"))
    roof.location.z = 4.0
    assert not plan(second).edits
    found = plan(first)
    assert [edit.title for edit in found.edits] == [roof.name]
    found.write()
    from meshferry.io_formats.core.errors import ExportError

    with pytest.raises(ExportError, match="changed since"):
        plan(second)
    assert not plan(first).edits


def test_operators(path: Path, clean_blender: Any) -> None:
    """Re-export and File > Export write the same; a copy leaves the file, and files of the game are never written."""
    bpy, old = clean_blender, path.read_bytes()
    again, export = bpy.ops.export_scene.meshferry_again, bpy.ops.export_scene.timbermesh_blueprint
    bpy.context.view_layer.objects.active = node("/Roof")
    node("/Roof").location.z = 1.5
    assert again(is_dry_run=True) == {"FINISHED"} and path.read_bytes() == old
    other = path.with_name("Copy.blueprint.json")
    assert export(filepath=str(other)) == {"FINISHED"}
    assert path.read_bytes() == old and diff(old, other.read_bytes())[1].startswith('+"Position": { "X": 0.0, "Y": 1.5')
    game = path.parent / "Timberborn_Data" / "Copy.blueprint.json"
    game.parent.mkdir()
    with pytest.raises(RuntimeError, match="belongs to the game"):
        export(filepath=str(game))
    assert not game.exists()
    assert export(filepath=str(path)) == {"FINISHED"}
    assert path.read_bytes() == other.read_bytes()
    assert path.with_name(path.name + ".bak").read_bytes() == old
    node("/Roof").location.z = 2.5
    assert again(is_confirmed=True) == {"FINISHED"}
    assert b'"Y": 2.5' in path.read_bytes()
    path.write_bytes(old)
    node("/Roof").location.z = 3.5
    with pytest.raises(RuntimeError, match="Reload"):
        again(is_confirmed=True)
    assert path.read_bytes() == old


def test_undo_after_export(path: Path) -> None:
    """Undo takes back places and keys, but not the file: an export then writes the old places again."""
    old = path.read_bytes()
    home = node("/").users_collection[0]
    before = home.meshferry.file.digest
    node("/Roof").location.z = 4.0
    plan().write()
    home.meshferry.file.digest, node("/Roof").location.z = before, 1.0
    found = plan()
    assert [edit.title for edit in found.edits] == ["Roof"]
    found.write()
    assert path.read_bytes() == old and not plan().edits


def test_reload_shows_what_a_copy_brought_along(path: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    select(bpy, node("/Window"))
    bpy.ops.object.duplicate()
    bpy.context.object.location.x = 1.0
    plan().write()
    number = len(path.read_bytes())
    bpy.context.view_layer.objects.active = node("/Window (1)")
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert node("/Window (1)/CollidersSpec/BoxColliders/0").parent == node("/Window (1)")
    assert any(one.type == "MESH" for one in node("/Window (1)").children_recursive)
    assert not plan().edits and len(path.read_bytes()) == number
    bpy.data.objects.remove(node("/Window (1)/CollidersSpec/BoxColliders/0"))
    assert "BoxCollider" in refusal()


def test_animated_children_keep_their_place(path: Path) -> None:
    roof = node("/Roof")
    roof.keyframe_insert("location", frame=1)
    roof.location.z = 9.0
    assert [message.code for message in plan().messages] == ["animated-place-kept"] and not plan().edits


def test_samples_are_unchanged(samples: Path, clean_blender: Any) -> None:
    bpy = clean_blender
    paths = sorted((samples / "timberborn_blueprints").rglob("*.blueprint.json"))
    for path in paths:
        collection = imported(bpy, path)
        home = next(one for one in bpy.data.collections if one.meshferry.source_path == str(path))
        assert collection is not None and not plan(home).edits and plan(home).patched.data == path.read_bytes()
        bpy.data.batch_remove([*home.all_objects])
