"""Re-export: to the file that an object last went to or came from."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from example_files import EXAMPLES, FORMATS, imported

pytestmark = pytest.mark.needs_bpy


def mesh_of(bpy: Any) -> Any:
    """Make the largest mesh of the scene active; return it."""
    found = max((obj for obj in bpy.data.objects if obj.type == "MESH"), key=lambda obj: len(obj.data.vertices))
    bpy.context.view_layer.objects.active = found
    return found


@pytest.mark.parametrize(("name", "operator"), FORMATS)
def test_an_untouched_import_goes_back_to_its_file(clean_blender, tmp_path, capfd, name, operator):
    path = imported(clean_blender, tmp_path, name, operator)
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert f"{name}: nothing changed" in capfd.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.bak"}
    assert path.with_name(f"{name}.bak").read_bytes() == (EXAMPLES / name).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_backup_is_not_written_through_a_planted_link(clean_blender, tmp_path):
    (tmp_path / "in").mkdir()
    path = imported(clean_blender, tmp_path / "in")
    backup, victim = path.with_name(f"{path.name}.bak"), tmp_path / "victim"
    backup.symlink_to(victim)
    with pytest.raises(RuntimeError, match=r"\.bak is a link that leads out of"):
        clean_blender.ops.export_scene.meshferry_again()
    assert path.read_bytes() == (EXAMPLES / path.name).read_bytes() and not victim.exists()


@pytest.mark.parametrize(
    "name",
    [
        *("ms12_robot_12bones.mesh", "ms14_capsule_4bones.mesh", "an13_jump.anim", "an10_gun_4bones.anim"),
        "sk10_minimal.mesh_skinned",
    ],
)
def test_the_version_and_animations_inside_a_file_stay(clean_blender, samples, tmp_path, capfd, name):
    from meshferry.io_formats import api

    source = samples / "unigine" / name
    if name.startswith("sk10"):
        source = samples / "unigine_characters" / "fixtures" / name.removeprefix("sk10_")
    path = Path(shutil.copyfile(source, tmp_path / name))
    clean_blender.ops.import_scene.unigine(filepath=str(path), use_file_frame_rate=True)
    before = api.load(path).document.version
    for _ in range(2):
        assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
        assert f"{name}: nothing changed" in capfd.readouterr().out
        assert api.load(path).document.version == before == name[:4]


@pytest.mark.parametrize(
    "name", ["unigine/ms13_cyrillic_name.mesh", "timbermesh/CordialGnom__BeaverBucks.Folktails.Model.timbermesh"]
)
def test_files_with_triangles_without_area_are_unchanged(clean_blender, samples, tmp_path, capfd, name):
    family, _, file = name.partition("/")
    path = Path(shutil.copyfile(samples / name, tmp_path / file))
    getattr(clean_blender.ops.import_scene, family)(filepath=str(path))
    assert "2 triangles without area were left out" in capfd.readouterr().out
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert f"{file}: nothing changed" in capfd.readouterr().out


def test_the_summary_says_what_is_different_in_the_file(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    imported(bpy, tmp_path)
    lamp = mesh_of(bpy)
    lamp.shape_key_clear()
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "shape key" in capfd.readouterr().out
    for vertex in list(lamp.data.vertices)[:12]:
        vertex.co.z += 0.5
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "lamp.mesh: 12 vertices moved" in capfd.readouterr().out
    lamp.data.materials.append(bpy.data.materials.new("Glass"))
    for polygon in list(lamp.data.polygons)[:5]:
        polygon.material_index = len(lamp.data.materials) - 1
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "lamp.mesh: 1 surface added ('Glass')" in capfd.readouterr().out


def test_a_file_that_another_program_changed_stays(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path)
    changed = path.read_bytes() + b"\0"
    path.write_bytes(changed)
    with pytest.raises(RuntimeError, match=r"lamp\.mesh: The file was changed since Blender last read or wrote it"):
        bpy.ops.export_scene.meshferry_again()
    assert path.read_bytes() == changed
    assert [path.name for path in tmp_path.iterdir()] == ["lamp.mesh"]


def test_a_file_whose_folder_is_an_archive_or_gone_is_refused(clean_blender, tmp_path):
    from meshferry.blender_data import file_records

    bpy = clean_blender
    imported(bpy, tmp_path)
    (tmp_path / "pack.zip").write_bytes(b"PK")
    collection = mesh_of(bpy).users_collection[0]
    collection.meshferry.file.path = str(tmp_path / "pack.zip" / "lamp.mesh")
    assert file_records.read(collection) is not None
    with pytest.raises(RuntimeError, match="does not exist"):
        bpy.ops.export_scene.meshferry_again()
    assert (tmp_path / "pack.zip").read_bytes() == b"PK"


def test_the_options_of_the_last_export_are_used_again(clean_blender, tmp_path, capfd):
    from meshferry.io_formats.api import read_scene

    bpy = clean_blender
    bpy.ops.mesh.primitive_cube_add()
    cube = bpy.context.object
    cube.modifiers.new("Subdivision", "SUBSURF").levels = 1
    path = tmp_path / "box.mesh"
    assert not bpy.ops.export_scene.meshferry_again.poll()
    bpy.ops.export_scene.unigine_mesh(filepath=str(path), use_modifiers=False, scope="SELECTION")
    bpy.ops.mesh.primitive_cube_add()  # another object, which did not go to the file
    assert not bpy.ops.export_scene.meshferry_again.poll()
    bpy.context.view_layer.objects.active = cube
    bpy.ops.object.select_all(action="DESELECT")
    cube.data.vertices[0].co.z -= 1
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert read_scene(path).triangle_count == 12
    assert "box.mesh: 1 vertex moved" in capfd.readouterr().out


def test_a_copy_of_an_object_does_not_replace_its_file(clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.mesh.primitive_cube_add()
    cube = bpy.context.object
    bpy.ops.export_scene.unigine_mesh(filepath=str(tmp_path / "box.mesh"), scope="SELECTION")
    bpy.ops.object.duplicate()
    assert not bpy.ops.export_scene.meshferry_again.poll()
    bpy.context.view_layer.objects.active = cube
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    cube.name = "Box"
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}


def test_the_user_is_asked_once_for_each_file(clean_blender, tmp_path):
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator

    bpy = clean_blender
    path = imported(bpy, tmp_path)
    question = operator.question(None, bpy.context)
    assert str(path) in question
    assert "lamp.mesh.bak" in question
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert operator.question(None, bpy.context) == ""


@pytest.fixture
def robot(clean_blender, samples, tmp_path) -> Path:
    """Return a mesh with an animation of its own, imported together with an animation file."""
    names = ["ms12_robot_12bones.mesh", "an10_robot_idle.anim"]
    for name in names:
        shutil.copyfile(samples / "unigine" / name, tmp_path / name)
    clean_blender.ops.import_scene.unigine(files=[{"name": name} for name in names], directory=str(tmp_path))
    return tmp_path / names[0]


def clips_in(path: Path) -> list[str]:
    from meshferry.io_formats import api

    return [clip.name for clip in api.read_scene(path).clips]


def test_animations_of_other_files_stay_out_unless_asked_for(clean_blender, robot, capfd):
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator

    bpy = clean_blender
    question = "The animation 'robot_idle' of an10_robot_idle.anim is not in ms12_robot_12bones.mesh."
    assert f"{question} It is left out, and 'scene' stays, unless" in operator.question(None, bpy.context)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    said = capfd.readouterr().out
    assert f"{robot.name}: animation of another file left out: 'robot_idle'" in said
    assert f"{robot.name}: nothing changed" in said
    assert operator.question(None, bpy.context) == ""
    bpy.ops.export_scene.meshferry_again(use_other_animations=True)
    assert clips_in(robot) == ["robot_idle"]
    bpy.ops.export_scene.meshferry_again()
    assert f"{robot.name}: nothing changed" in capfd.readouterr().out


def test_animations_made_in_blender_replace_those_of_the_file(clean_blender, robot):
    bpy = clean_blender
    armature = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    armature.animation_data.action = None
    armature.pose.bones[0].keyframe_insert("location", frame=1)
    armature.animation_data.action.name = "own"
    bpy.ops.export_scene.meshferry_again()
    assert clips_in(robot) == ["own"]


def test_an_exported_mesh_keeps_the_animation_that_it_was_given(clean_blender, robot, samples, tmp_path):
    """It came from another file than the mesh; a later import stays out."""
    bpy = clean_blender
    path = tmp_path / "idle.mesh"
    bpy.ops.export_scene.unigine_mesh(
        filepath=str(path), scope="SCENE", mesh_version="MS12", use_embedded_animation=True
    )
    bpy.context.view_layer.objects.active = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    assert clips_in(path) == ["robot_idle"]
    shutil.copyfile(samples / "unigine" / "an10_robot_idle.anim", tmp_path / "later.anim")
    bpy.ops.import_scene.unigine(filepath=str(tmp_path / "later.anim"))
    active = bpy.context.object.animation_data.action
    active.meshferry.clip_name = "later"
    assert active.meshferry.source_path.endswith("later.anim")
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert clips_in(path) == ["robot_idle"]


@pytest.mark.parametrize(
    ("names", "operator"),
    [(("lamp.mesh", "lamp_nod.anim"), "unigine"), (("tunic.llmesh", "dance.anim"), "second_life")],
)
def test_an_exported_animation_is_replaced_by_itself(clean_blender, tmp_path, capfd, names, operator):
    """It came from another file, and the format names it after the exported one."""
    bpy = clean_blender
    for name in names:
        imported(bpy, tmp_path, name, operator)
    armature = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    bpy.context.view_layer.objects.active = armature
    path = tmp_path / "new.anim"
    assert getattr(bpy.ops.export_scene, f"{operator}_anim")(filepath=str(path)) == {"FINISHED"}
    before = path.read_bytes()
    armature.animation_data.action.meshferry.clip_name = "renamed"
    assert bpy.ops.export_scene.meshferry_again(file_format=f"{operator}_animation") == {"FINISHED"}
    assert "new.anim: nothing changed" in capfd.readouterr().out
    assert path.read_bytes() == before


def test_a_renamed_animation_stays_in_a_file_that_was_exported(clean_blender, tmp_path):
    """It came from another file than the exported one, but together with the objects."""
    bpy = clean_blender
    imported(bpy, tmp_path, "windmill.timbermesh", "timbermesh")
    path = tmp_path / "mill.timbermesh"
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection.children[0]
    bpy.ops.object.select_all(action="DESELECT")
    bpy.ops.export_scene.timbermesh(filepath=str(path))
    for action in bpy.data.actions:
        action.meshferry.clip_name = "Turning"
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert path.exists() and clips_in(path) == ["Turning"]


def saved_elsewhere(bpy: Any, folder: Path) -> Path:
    """Open a .blend file that stores a path; return the path."""
    path = imported(bpy, folder)
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "lamp.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(folder / "lamp.blend"))
    return path


@pytest.mark.parametrize("exists", [True, False], ids=["file", "no file"])
def test_paths_of_a_blend_file_are_asked_about(clean_blender, tmp_path, exists):
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator

    bpy = clean_blender
    path = saved_elsewhere(bpy, tmp_path)
    if not exists:
        path.unlink()
    question = operator.question(None, bpy.context)
    assert question.startswith("The path is stored in this .blend file. " + ("Replace" if exists else "Write"))
    assert str(path) in question
    before = path.read_bytes() if exists else None
    with pytest.raises(RuntimeError, match="neither read nor chosen since"):
        bpy.ops.export_scene.meshferry_again()
    assert (path.read_bytes() if path.exists() else None) == before
    assert bpy.ops.export_scene.meshferry_again(is_confirmed=True) == {"FINISHED"}
    assert operator.question(None, bpy.context) == ""
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}


@pytest.mark.parametrize("stored", ["path", "option"])
def test_stored_paths_to_other_machines_are_opened_after_the_question(clean_blender, tmp_path, share, stored):
    """Windows would log in to the machine."""
    from meshferry.blender_data import file_records
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator
    from meshferry.operators.progress import question_of_network

    bpy, (folder, touched) = clean_blender, share
    path = saved_elsewhere(bpy, folder if stored == "path" else tmp_path)
    options = bpy.data.collections["lamp"].meshferry
    options.import_options = json.dumps({"material_library": f"{folder}/library.blend"}) if stored == "option" else "{"
    before = len(touched())
    question = operator.question(None, bpy.context)
    assert question.startswith("The path is stored in this .blend file. Replace") and str(path) in question
    unasked = file_records.unasked_paths(operator.stored_paths(None, bpy.context))
    assert len(unasked) == 1 and unasked[0].startswith(str(folder)) and unasked[0] in question_of_network(unasked)
    for is_dry_run in (False, True):
        with pytest.raises(RuntimeError, match="need your consent in a window: '"):
            bpy.ops.export_scene.meshferry_again(is_dry_run=is_dry_run)
    assert len(touched()) == before
    assert bpy.ops.export_scene.meshferry_again(is_confirmed=True) == {"FINISHED"}
    assert operator.question(None, bpy.context) == ""


@pytest.mark.parametrize("load_ui", [True, False])
def test_opening_a_file_brings_and_keeps_no_confirmation(clean_blender, tmp_path, load_ui):
    from meshferry.blender_data.file_records import session_files
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator

    bpy = clean_blender
    imported(bpy, tmp_path)
    bpy.ops.export_scene.meshferry_again()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "lamp.blend"))
    assert operator.question(None, bpy.context) == ""
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "lamp.blend"), load_ui=load_ui)
    assert session_files() == {}
    assert operator.question(None, bpy.context)


def test_a_file_of_this_session_that_was_deleted_is_written_again(clean_blender, tmp_path):
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as operator

    bpy = clean_blender
    imported(bpy, tmp_path).unlink()
    assert operator.question(None, bpy.context) == ""
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}


def test_undo_takes_nothing_from_what_is_known_of_files(clean_blender, tmp_path):
    bpy = clean_blender
    imported(bpy, tmp_path)
    bpy.ops.ed.undo_push(message="import")
    mesh_of(bpy).data.vertices[0].co.z += 1
    bpy.ops.export_scene.meshferry_again()
    bpy.ops.ed.undo_push(message="move")
    bpy.ops.ed.undo()
    mesh_of(bpy)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}


@pytest.mark.parametrize(("name", "operator"), [("lamp.mesh", "unigine"), ("windmill.timbermesh", "timbermesh")])
def test_the_user_is_asked_before_another_import_of_the_file_is_replaced(clean_blender, tmp_path, name, operator):
    from meshferry.operators.files.reexport import EXPORT_SCENE_OT_meshferry_again as again

    bpy = clean_blender
    path = imported(bpy, tmp_path, name, operator)
    first = set(bpy.data.objects)
    assert getattr(bpy.ops.import_scene, operator)(filepath=str(path)) == {"FINISHED"}
    meshes = [next(obj for obj in objects if obj.type == "MESH") for objects in (first, {*bpy.data.objects} - first)]
    for round_number in range(2):
        for number, obj in enumerate(meshes):
            bpy.context.view_layer.objects.active = obj
            obj.data.uv_layers[0].uv[number].vector.x += 0.25
            asked = again.question(None, bpy.context)
            assert ("Another import of the file wrote it last" in asked) == bool(number or round_number)
            assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
            assert again.question(None, bpy.context) == ""
    bpy.context.view_layer.objects.active = meshes[0]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert again.question(None, bpy.context) == ""
