"""The file that Re-export writes, what exports change about it, and backups of content that no export wrote."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import courtyard
import pytest
import timber_mod
from example_files import EXAMPLES, imported

pytestmark = pytest.mark.needs_bpy


def offered(bpy: Any) -> dict[str, str]:
    """Return the names of the files for which there are buttons, by the format that the button gives."""
    from meshferry.operators.files import reexport

    buttons: list[SimpleNamespace] = []

    def operator(_name: str, **options: Any) -> SimpleNamespace:
        buttons.append(SimpleNamespace(text=options["text"]))
        return buttons[-1]

    reexport.draw_button(SimpleNamespace(operator=operator), bpy.context)
    return {button.file_format: button.text.removeprefix("Re-export to ") for button in buttons}


def test_each_button_of_a_rigged_file_has_its_own_text_and_icon(clean_blender: Any, tmp_path: Path) -> None:
    """A mesh and its armature are shown together; *Reload* and *Re-export* stand one below the other."""
    bpy = clean_blender
    imported(bpy, tmp_path)
    layout = MagicMock()
    for name in ("column", "row", "box"):
        getattr(layout, name).return_value = layout
    for name in ("MESHFERRY_PT_file", "UNIGINE_PT_sidebar", "UNIGINE_PT_armature"):
        panel = getattr(bpy.types, name)
        assert panel.poll(bpy.context)
        panel.draw(SimpleNamespace(layout=layout), bpy.context)
    drawn = [call.kwargs for call in layout.operator.call_args_list]
    texts = [options["text"] for options in drawn]
    assert len(set(texts)) == len(texts) and {"Export…", "Export Animation…"} < set(texts)
    icons = {options["icon"] for options in drawn if options["text"].startswith("Re")}
    assert len(icons) == 2


def edit(bpy: Any) -> None:
    found = max((obj for obj in bpy.data.objects if obj.type == "MESH"), key=lambda obj: len(obj.data.vertices))
    bpy.context.view_layer.objects.active = found
    found.shape_key_clear()
    found.data.vertices[0].co.z += 0.25


@pytest.fixture
def lamp(clean_blender: Any, tmp_path: Path) -> Path:
    path = imported(clean_blender, tmp_path)
    edit(clean_blender)
    return path


@pytest.mark.parametrize("scope", ["COLLECTION", "SELECTION"])
def test_an_export_in_another_format_leaves_the_target(clean_blender, lamp, scope):
    bpy, old = clean_blender, lamp.read_bytes()
    bpy.ops.object.select_all(action="SELECT")
    other = lamp.with_name("other.timbermesh")
    assert bpy.ops.export_scene.timbermesh(filepath=str(other), scope=scope) == {"FINISHED"}
    assert offered(bpy) == {"": "lamp.mesh", "timbermesh": "other.timbermesh"}
    written = other.read_bytes()
    edit(bpy)
    assert bpy.ops.export_scene.meshferry_again(file_format="timbermesh") == {"FINISHED"}
    assert lamp.read_bytes() == old and other.read_bytes() != written
    written = other.read_bytes()
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert lamp.read_bytes() != old and other.read_bytes() == written
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert offered(bpy) == {"": "lamp.mesh", "timbermesh": "other.timbermesh"}
    with pytest.raises(RuntimeError, match="was not exported as 'mesh_serializer'"):
        bpy.ops.export_scene.meshferry_again(file_format="mesh_serializer")


@pytest.mark.parametrize("scope", ["COLLECTION", "SELECTION"])
def test_undo_past_an_export_in_another_format_keeps_its_record(clean_blender, lamp, scope):
    bpy = clean_blender
    bpy.ops.object.select_all(action="SELECT")
    for message in ("import", "move"):
        bpy.ops.ed.undo_push(message=message)
    other = lamp.with_name("other.timbermesh")
    assert bpy.ops.export_scene.timbermesh(filepath=str(other), scope=scope) == {"FINISHED"}
    bpy.ops.ed.undo_push(message="export")
    for change in (bpy.ops.ed.undo, bpy.ops.ed.undo, bpy.ops.ed.redo):
        change()
        assert offered(bpy) == {"": "lamp.mesh", "timbermesh": "other.timbermesh"}
    written = other.read_bytes()
    edit(bpy)
    assert bpy.ops.export_scene.meshferry_again(file_format="timbermesh") == {"FINISHED"}
    assert other.read_bytes() != written


@pytest.mark.parametrize("scope", ["COLLECTION", "SELECTION"])
def test_an_export_in_the_format_of_the_source_moves_the_target_alone(clean_blender, lamp, scope):
    bpy, old = clean_blender, lamp.read_bytes()
    bpy.ops.object.select_all(action="SELECT")
    mine = lamp.with_name("mine.mesh")
    assert bpy.ops.export_scene.unigine_mesh(filepath=str(mine), scope=scope, mesh_files="JOINED") == {"FINISHED"}
    assert offered(bpy) == {"": "mine.mesh"}
    written = mine.read_bytes()
    edit(bpy)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert lamp.read_bytes() == old and mine.read_bytes() != written
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert bpy.context.object.users_collection[0].meshferry.source_path == str(lamp)
    assert offered(bpy) == {"": "mine.mesh"}


def test_data_made_in_blender_follows_each_export(clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.mesh.primitive_cube_add()
    for name, operator in (("a.mesh", "unigine_mesh"), ("b.timbermesh", "timbermesh")):
        getattr(bpy.ops.export_scene, operator)(filepath=str(tmp_path / name), scope="SELECTION")
        assert offered(bpy) == {"": name}


@pytest.fixture
def blueprint(clean_blender: Any, tmp_path: Path) -> Path:
    path = timber_mod.make(tmp_path / "mod")
    assert clean_blender.ops.import_scene.timbermesh(filepath=str(path)) == {"FINISHED"}
    clean_blender.context.view_layer.objects.active = roof(clean_blender)
    return path


def roof(bpy: Any) -> Any:
    return next(obj for obj in bpy.data.objects if obj.meshferry.node_key.endswith("/Roof"))


@pytest.mark.slow
def test_a_blueprint_stays_one_after_exports_in_other_formats(clean_blender, blueprint):
    from meshferry.operators.families.timbermesh.blueprints import main_collection

    bpy = clean_blender
    main, _record = main_collection(bpy.context)
    other = blueprint.with_name("all.timbermesh")
    bpy.ops.export_scene.timbermesh(filepath=str(other), collection=main.name)
    bpy.ops.export_scene.timbermesh(filepath=str(other), collection=main.children[0].name)
    assert main_collection(bpy.context)[1].path == blueprint
    assert offered(bpy)[""] == blueprint.name
    roof(bpy).location.z = 1.5
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert b'"Y": 1.5' in blueprint.read_bytes()


def test_a_copy_of_a_blueprint_becomes_the_target(clean_blender, blueprint):
    bpy, old = clean_blender, blueprint.read_bytes()
    copy = blueprint.with_name("Copy.blueprint.json")
    roof(bpy).location.z = 1.5
    assert bpy.ops.export_scene.timbermesh_blueprint(filepath=str(copy)) == {"FINISHED"}
    roof(bpy).location.z = 2.5
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert blueprint.read_bytes() == old and b'"Y": 2.5' in copy.read_bytes()
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    roof(bpy).location.z = 3.5
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert blueprint.read_bytes() == old and b'"Y": 3.5' in copy.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("file", "is_moved"), [("nodes/planter.node", True), ("courtyard.world", False)])
def test_a_scene_moves_its_target_to_the_same_kind_of_file_only(clean_blender, tmp_path, file, is_moved):
    bpy = clean_blender
    path = courtyard.make(tmp_path / "courtyard") / file
    assert bpy.ops.import_scene.unigine(filepath=str(path)) == {"FINISHED"}
    home = bpy.context.view_layer.active_layer_collection.collection
    bpy.context.view_layer.objects.active = home.all_objects[0]
    new = tmp_path / "new.node"
    assert bpy.ops.export_scene.unigine_scene(filepath=str(new), collection=home.name) == {"FINISHED"}
    assert offered(bpy) == ({"": "new.node"} if is_moved else {"": path.name, "unigine_scene": "new.node"})


def test_no_export_proposes_the_model_of_a_child(clean_blender, blueprint):
    """A blueprint has *Export Model…* in place of the export of its collection."""
    from meshferry.operators.families.timbermesh import panel
    from meshferry.operators.families.timbermesh.blueprints import main_collection
    from meshferry.operators.files.export_targets import proposed

    bpy = clean_blender
    main, _record = main_collection(bpy.context)
    layout = MagicMock()
    context = SimpleNamespace(object=roof(bpy), collection=main, scene=bpy.context.scene)
    context.window_manager = bpy.context.window_manager
    panel.collection_panel.draw(SimpleNamespace(layout=layout), context)
    buttons = layout.row.return_value.operator.call_args_list
    assert [call.kwargs["text"] for call in buttons] == ["Check", "Export Model…"]
    model = blueprint.with_name(f"{main.name}.Model.timbermesh")
    for number in ("", "_2"):
        assert proposed(model, main) == model.with_name(f"{main.name}{number}.Model.timbermesh")
        model.write_bytes(b"of another program")
    assert bpy.ops.export_scene.timbermesh(filepath=str(model), collection=main.name) == {"FINISHED"}
    assert proposed(model, main) == model, "its own last export"


def test_a_model_of_a_blueprint_goes_to_a_file_of_its_own(clean_blender, blueprint):
    bpy = clean_blender
    bpy.ops.object.select_all(action="DESELECT")
    child = roof(bpy)
    child.select_set(True)
    name = child["Model"].rpartition("/")[2]
    vendors = next(blueprint.parents[2].rglob(f"{name}.timbermesh"))
    old = vendors.read_bytes()
    made = []
    for _again in range(2):
        options = {"parts": "OBJECTS", "append_model_to_name": False}
        assert bpy.ops.export_scene.timbermesh_batch(directory=str(vendors.parent), **options) == {"FINISHED"}
        made.append(child["Model"])
    assert made[0] == made[1] and made[0].endswith("_2")
    assert vendors.read_bytes() == old


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


EXPORTS = {
    "mesh": lambda bpy, path: bpy.ops.export_scene.unigine_mesh(filepath=str(path)),
    "again": lambda bpy, _path: bpy.ops.export_scene.meshferry_again(),
    "batch": lambda bpy, path: bpy.ops.export_scene.timbermesh_batch(
        directory=str(path.parent), collections=path.stem, append_model_to_name=False
    ),
}


@pytest.mark.parametrize("kind", EXPORTS)
def test_content_that_no_export_wrote_is_kept(clean_blender, tmp_path, kind):
    from meshferry.blender_data import file_records

    bpy, export = clean_blender, EXPORTS[kind]
    path = imported(bpy, tmp_path)
    if kind == "batch":
        path = path.with_suffix(".timbermesh")
        path.write_bytes((EXAMPLES / "windmill.timbermesh").read_bytes())
    old, backup = path.read_bytes(), path.with_name(f"{path.name}.bak")
    for number in range(3):
        edit(bpy)
        assert export(bpy, path) == {"FINISHED"}
        if number == 1:  # as after opening the file again
            file_records.session_file(path).own = ""
    assert {name: data for name, data in contents(tmp_path).items() if ".bak" in name} == {backup.name: old}
    for _again in range(2):
        path.write_bytes(old + b"\0")
        file_records.session_file(path).digest = file_records.digest_of(path)  # as if it had been read
        edit(bpy)
        assert export(bpy, path) == {"FINISHED"}
    kept = {name: data for name, data in contents(tmp_path).items() if ".bak" in name}
    assert kept == {backup.name: old, f"{backup.name}2": old + b"\0"}


def test_unchanged_content_is_not_taken_for_that_of_an_export(clean_blender, tmp_path):
    from meshferry.blender_data import file_records
    from meshferry.io_formats.core.format import OutputFile

    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    for data in (b"old", b"new"):
        file_records.write_files(path, [OutputFile("a.txt", data)])
    assert contents(tmp_path) == {"a.txt": b"new", "a.txt.bak": b"old"}


def test_content_of_a_killed_export_needs_no_backup(clean_blender, tmp_path, monkeypatch):
    from meshferry.blender_data import file_records
    from meshferry.io_formats.core.format import OutputFile

    class Killed(BaseException):
        """Ends the export at once, as the system does."""

    def write_and_die(*arguments: Any) -> None:
        written(*arguments)
        raise Killed

    written, files = file_records.write_outputs, [OutputFile("a_1.txt", b"1"), OutputFile("a.txt", b"2")]
    monkeypatch.setattr(file_records, "write_outputs", write_and_die)
    with pytest.raises(Killed):
        file_records.write_files(tmp_path / "a.txt", files)
    monkeypatch.setattr(file_records, "write_outputs", written)
    file_records.write_files(tmp_path / "a.txt", [file._replace(data=b"3") for file in files])
    assert contents(tmp_path) == {"a_1.txt": b"3", "a.txt": b"3"}


def test_a_copy_of_a_blueprint_keeps_what_it_replaces(clean_blender, blueprint):
    copy = blueprint.with_name("Copy.blueprint.json")
    copy.write_bytes(b"{}")
    assert clean_blender.ops.export_scene.timbermesh_blueprint(filepath=str(copy)) == {"FINISHED"}
    assert copy.with_name(f"{copy.name}.bak").read_bytes() == b"{}"


def test_a_failed_export_leaves_no_backup(clean_blender, lamp, monkeypatch):
    from meshferry.blender_data import file_records
    from meshferry.io_formats.core.errors import ExportError

    def fail(*_arguments: Any) -> None:
        raise ExportError("The disk is full")

    monkeypatch.setattr(file_records, "write_outputs", fail)
    with pytest.raises(RuntimeError, match="The disk is full"):
        clean_blender.ops.export_scene.meshferry_again()
    assert list(contents(lamp.parent)) == ["lamp.mesh"]


def test_a_moved_folder_keeps_its_links(clean_blender, lamp, tmp_path):
    """Paths are relative in the saved file, absolute while it is open, and no permission to write."""
    bpy = clean_blender
    home = bpy.context.object.users_collection[0]
    action = bpy.data.actions.new("Turn")
    action.use_fake_user, action.meshferry.source_path = True, str(lamp.with_name("turn.anim"))
    bpy.ops.export_scene.timbermesh(filepath=str(lamp.with_name("other.timbermesh")), collection=home.name)
    (tmp_path / "blends").mkdir()
    for name, is_copy in (("first.blend", False), ("blends/second.blend", False), ("copy.blend", True)):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / name), copy=is_copy)
        assert home.meshferry.file.path == home.meshferry.source_path == str(lamp)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("blends", "lamp.mesh", "other.timbermesh", "copy.blend"):
        shutil.move(tmp_path / name, moved / name)
    for name in ("blends/second.blend", "copy.blend"):
        bpy.ops.wm.open_mainfile(filepath=str(moved / name))
        edit(bpy)
        home = bpy.context.object.users_collection[0]
        assert home.meshferry.file.path == home.meshferry.source_path == str(moved / "lamp.mesh")
        assert home.meshferry.exports[0].path == str(moved / "other.timbermesh")
        assert bpy.data.actions["Turn"].meshferry.source_path == str(moved / "turn.anim")
        for file_format in ("", "timbermesh"):
            with pytest.raises(RuntimeError, match="neither read nor chosen since"):
                bpy.ops.export_scene.meshferry_again(file_format=file_format)
    assert bpy.ops.export_scene.meshferry_again(is_confirmed=True) == {"FINISHED"}
