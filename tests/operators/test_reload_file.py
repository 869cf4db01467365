"""Reload from File: new data in place of old, while objects keep what the user set."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from example_files import EXAMPLES, FORMATS, imported

pytestmark = pytest.mark.needs_bpy


def edit_file(path: Path, change: Any) -> None:
    """Rewrite a file after a change of its scene."""
    from meshferry.io_formats import api

    loaded = api.load(path)
    scene = loaded.format.to_scene(loaded.document, path.stem)
    change(scene)
    path.write_bytes(loaded.format.write(loaded.format.from_scene(scene)))


def raise_points(scene: Any) -> None:
    """Move all points up by a metre."""
    for node in scene.nodes:
        if node.mesh is not None:
            node.mesh.points = node.mesh.points + np.array([0, 0, 1], np.float32)


def double_length(scene: Any) -> None:
    """Repeat each frame of the first clip."""
    clip = scene.clips[0]
    clip.frame_count *= 2
    for track in clip.transforms:
        track.translation, track.rotation, track.scale = (
            np.repeat(values, 2, axis=0) for values in (track.translation, track.rotation, track.scale)
        )


def state(bpy: Any) -> dict[str, Any]:
    """Return names and users of all data blocks, to find leftovers."""
    kinds = ("objects", "meshes", "armatures", "actions", "materials", "images", "collections", "shape_keys")
    return {kind: sorted(block.name for block in getattr(bpy.data, kind)) for kind in kinds}


def reload(bpy: Any, active: Any = None, **options: Any) -> None:
    """Reload the collection of an object."""
    if active is not None:
        bpy.context.view_layer.objects.active = active
    assert bpy.ops.import_scene.meshferry_reload(**options) == {"FINISHED"}


def question(bpy: Any) -> str:
    """Return the text of the confirmation dialog."""
    from meshferry.operators.files.reload_file import find_source, replaced_edits

    return "\n".join(replaced_edits(find_source(bpy.context).objects()).values())


def heights(obj: Any) -> tuple[float, float]:
    """Return the lowest and highest point of a mesh."""
    values = [vertex.co.z for vertex in obj.data.vertices]
    return min(values), max(values)


@pytest.mark.parametrize(("name", "operator"), FORMATS)
def test_an_unchanged_file_changes_nothing(clean_blender, tmp_path, name, operator):
    bpy = clean_blender
    path = imported(bpy, tmp_path, name, operator)
    bpy.ops.export_scene.meshferry_again()
    expected = path.read_bytes()
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    imported(bpy, tmp_path, name, operator)
    before = state(bpy)
    places = {obj.name: (obj.matrix_basis.copy(), obj.parent, len(obj.modifiers)) for obj in bpy.data.objects}
    assert question(bpy) == ""
    reload(bpy)
    assert state(bpy) == before
    assert {obj.name: (obj.matrix_basis, obj.parent, len(obj.modifiers)) for obj in bpy.data.objects} == places
    assert question(bpy) == ""
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert path.read_bytes() == expected


def test_objects_keep_what_the_user_set(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    path = imported(bpy, tmp_path)
    lamp = bpy.data.objects["lamp"]
    before = heights(lamp)
    target = bpy.data.objects.new("Target", None)
    other = bpy.data.collections.new("Other")
    bpy.context.scene.collection.children.link(other)
    own, of_object = bpy.data.materials.new("Own"), bpy.data.materials.new("Of Object")
    lamp.name, lamp.location, lamp["note"], lamp.hide_render = "Big Lamp", (1, 2, 3), "mine", True
    lamp.data["price"] = 4
    lamp.parent = target
    lamp.modifiers.new("Bevel", "BEVEL")
    lamp.constraints.new("COPY_ROTATION").target = target
    lamp.material_slots[0].material = own
    lamp.material_slots[1].link, lamp.material_slots[1].material = "OBJECT", of_object
    driver = lamp.data.shape_keys.key_blocks["wide"].driver_add("value").driver
    driver.expression = "0.25"
    for collection in lamp.users_collection:
        collection.objects.unlink(lamp)
    other.objects.link(lamp)
    edit_file(path, raise_points)
    reload(bpy, lamp)
    assert heights(lamp) == pytest.approx([height + 1 for height in before], abs=1e-3)
    assert (lamp.name, lamp.location[:], lamp["note"], lamp.hide_render) == ("Big Lamp", (1, 2, 3), "mine", True)
    assert (lamp.parent, lamp.users_collection, lamp.data["price"]) == (target, (other,), 4)
    assert [modifier.type for modifier in lamp.modifiers] == ["ARMATURE", "BEVEL"]
    assert lamp.modifiers[0].object == bpy.data.objects["lamp Armature"]
    assert lamp.constraints[0].target == target
    assert [(slot.link, slot.material) for slot in lamp.material_slots][:2] == [("DATA", own), ("OBJECT", of_object)]
    bpy.context.view_layer.update()
    assert lamp.data.shape_keys.key_blocks["wide"].value == pytest.approx(0.25)
    assert {obj.name for obj in bpy.data.objects} == {"Big Lamp", "lamp Armature", "Target"}
    assert len(bpy.data.meshes) == len(bpy.data.armatures) == len(bpy.data.shape_keys) == 1
    assert path.name in capfd.readouterr().out


def test_only_objects_that_the_user_did_not_move_are_placed_as_in_the_file(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "windmill.timbermesh", "timbermesh")
    flag, start = bpy.data.objects["#Flag"], bpy.data.objects["#MiscStart"]
    flag.location.x += 5
    place = flag.location[:]
    (hung, *_) = [obj for obj in flag.parent.children if obj not in {flag, start} and obj.animation_data is None]
    hung.parent, hung_place = start, hung.location[:]

    def move(scene: Any) -> None:
        for node in scene.nodes:
            if node.name in {"#Flag", "#MiscStart", hung.name}:
                node.translation = (7.0, 8.0, 9.0)

    edit_file(path, move)
    reload(bpy, flag)
    assert flag.location[:] == place
    assert start.location[:] == pytest.approx((7, 8, 9), abs=1e-3)
    assert hung.location[:] == hung_place  # the location in the file counts only below its parent there


def test_edits_are_listed_before_they_are_replaced(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    imported(bpy, tmp_path)
    lamp, rig = bpy.data.objects["lamp"], bpy.data.objects["lamp Armature"]
    bpy.context.view_layer.objects.active = lamp
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.object.mode_set(mode="OBJECT")
    assert question(bpy) == ""
    lamp.data.vertices[0].co.z += 0.1
    lamp.data.uv_layers.new(name="Bake")
    lamp.vertex_groups[0].add([0], 0.5, "REPLACE")
    lamp.shape_key_add(name="narrow")
    lamp.data.materials.append(None)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones[-1].tail.x += 1
    name = rig.data.edit_bones[-1].name
    bpy.ops.object.mode_set(mode="OBJECT")
    listed = question(bpy)
    group = lamp.vertex_groups[0].name
    for text in ("vertices", "UV map 'Bake'", "shape key 'narrow'", f"vertex group '{group}'", "material slots"):
        assert text in listed
    assert f"'lamp Armature': bone '{name}'" in listed
    assert "faces" not in listed
    reload(bpy, lamp)
    assert "Edits replaced by the file: 'lamp': vertices" in capfd.readouterr().out
    assert "Bake" not in lamp.data.uv_layers
    assert question(bpy) == ""


def test_objects_are_added_kept_and_come_back(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "windmill.timbermesh", "timbermesh")
    collection = bpy.data.collections["windmill"]
    root = bpy.data.objects["Windmill.Folktails"]
    bpy.data.objects.remove(bpy.data.objects["#Flag"])

    def change(scene: Any) -> None:
        from dataclasses import replace

        sails = next(node for node in scene.nodes if node.name == "#Sails")
        sails.name = "#Wings"
        scene.nodes.append(replace(sails, name="#Door"))

    edit_file(path, change)
    reload(bpy, root)
    assert "Not in the file any more, but kept: '#Sails'" in capfd.readouterr().out
    assert {"#Flag", "#Sails", "#Wings", "#Door"} <= {obj.name for obj in collection.objects}
    assert bpy.data.objects["#Door"].parent == root
    assert [one.name for one in bpy.data.collections] == [collection.name]
    reload(bpy, root)
    assert "#Wings.001" not in bpy.data.objects


def test_bones_change_below_poses_constraints_and_bones_of_the_user(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path)
    lamp, rig = bpy.data.objects["lamp"], bpy.data.objects["lamp Armature"]
    bones = [bone.name for bone in rig.data.bones]
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    own = rig.data.edit_bones.new("Control")
    own.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="POSE")
    pose = rig.pose.bones
    pose[bones[1]].rotation_quaternion = (0.8, 0.6, 0, 0)
    pose[bones[2]].constraints.new("COPY_ROTATION").target = rig
    group = rig.data.collections.new("Mine")
    group.assign(rig.data.bones[bones[1]])
    rig.data.bones[bones[3]].name = "Renamed"
    was = {bone.name: bone.matrix_local.copy() for bone in rig.data.bones}

    def change(scene: Any) -> None:
        from dataclasses import replace

        joints = scene.skeletons[0].joints
        moved = next(joint for joint in joints if joint.name == bones[3])
        moved.translation = tuple(part + 0.5 for part in moved.translation)
        joints.append(replace(joints[1], name="Extra", parent=1))

    edit_file(path, change)
    reload(bpy, lamp)
    assert bpy.context.mode == "OBJECT" or bpy.context.object == lamp
    assert set(rig.data.bones.keys()) == {*(set(bones) - {bones[3]}), "Renamed", "Control", "Extra"}
    assert pose[bones[1]].rotation_quaternion[:] == pytest.approx((0.8, 0.6, 0, 0))
    assert pose[bones[2]].constraints[0].target == rig
    assert bones[1] in rig.data.collections["Mine"].bones
    assert "Renamed" in lamp.vertex_groups
    assert bones[3] not in lamp.vertex_groups
    assert rig.data.bones["Extra"].parent.name == bones[1]
    assert rig.data.bones[bones[1]].matrix_local == was[bones[1]]
    assert rig.data.bones["Control"].matrix_local == was["Control"]
    assert (rig.data.bones["Renamed"].matrix_local.translation - was["Renamed"].translation).length > 0.4
    assert question(bpy) == ""


def test_actions_are_replaced_where_they_are_used(clean_blender, tmp_path):
    from meshferry.blender_data import animated_blocks

    bpy = clean_blender
    path = imported(bpy, tmp_path)
    rig = bpy.data.objects["lamp Armature"]
    bpy.context.view_layer.objects.active = rig
    clip = imported(bpy, tmp_path, "lamp_nod.anim")
    action = rig.animation_data.action
    action.name, action["mood"] = "My Nod", "calm"
    rig.data.bones[rig.data.bones.keys()[1]].name = "Renamed"
    strip = rig.animation_data.nla_tracks.new().strips.new("Nod", 10, action)
    ghost = bpy.data.objects.new("Ghost", rig.data)
    bpy.context.scene.collection.objects.link(ghost)
    animated_blocks.assign_action(ghost, action, rig.animation_data.action_slot)
    length = action.frame_range[1] - action.frame_range[0]
    paths = {curve.data_path for curve in animated_blocks.action_curves(action, None)}

    edit_file(clip, double_length)
    reload(bpy, bpy.data.objects["lamp"])
    found = rig.animation_data.action
    assert [one.name for one in bpy.data.actions] == [found.name] == ["My Nod"]
    assert found["mood"] == "calm"
    assert found.frame_range[1] - found.frame_range[0] == pytest.approx(2 * length + 1, abs=1)
    assert {curve.data_path for curve in animated_blocks.action_curves(found, None)} == paths
    assert strip.action == ghost.animation_data.action == found
    assert (strip.action_frame_start, strip.action_frame_end) == tuple(found.frame_range)
    assert len(rig.animation_data.nla_tracks) == 1
    slots = [rig.animation_data.action_slot, strip.action_slot, ghost.animation_data.action_slot]
    assert [slot.name_display for slot in slots] == [rig.name] * 3
    assert path.exists()


def test_animations_on_an_armature_of_the_user_are_reloaded(clean_blender, tmp_path):
    bpy = clean_blender
    imported(bpy, tmp_path)
    rig = bpy.data.objects["lamp Armature"]
    for collection in list(rig.users_collection):  # an armature without an imported collection
        bpy.context.scene.collection.objects.link(rig)
        bpy.data.collections.remove(collection)
    rig.meshferry.import_id = ""
    bpy.context.view_layer.objects.active = rig
    clip = imported(bpy, tmp_path, "lamp_nod.anim")
    before = state(bpy)
    bones = {bone.name: bone.matrix_local.copy() for bone in rig.data.bones}
    frames = rig.animation_data.action.meshferry.frame_count
    edit_file(clip, double_length)
    reload(bpy, rig)
    assert state(bpy) == before
    assert rig.animation_data.action.meshferry.frame_count == 2 * frames
    clip.write_bytes(b"an13broken")
    with pytest.raises(RuntimeError, match=r"lamp_nod\.anim: "):
        bpy.ops.import_scene.meshferry_reload()
    assert state(bpy) == before
    assert {bone.name: bone.matrix_local for bone in rig.data.bones} == bones


def test_a_failed_reload_leaves_everything(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path)
    lamp = bpy.data.objects["lamp"]
    lamp.data.vertices[0].co.z += 1
    before, points = state(bpy), heights(lamp)
    bpy.context.view_layer.objects.active = bpy.data.objects["lamp Armature"]
    clip = imported(bpy, tmp_path, "lamp_nod.anim")
    before = state(bpy)
    clip.write_bytes(b"an13broken")
    with pytest.raises(RuntimeError):
        bpy.ops.import_scene.meshferry_reload()  # the mesh was imported, the animation fails
    assert (state(bpy), heights(lamp)) == (before, points)
    clip.unlink()
    for content, cause in (
        (path.read_bytes()[:200], r"lamp\.mesh: "),
        ((EXAMPLES / "windmill.timbermesh").read_bytes(), "is a Timbermesh.* now, but was a UNIGINE"),
    ):
        path.write_bytes(content)
        with pytest.raises(RuntimeError, match=cause):
            bpy.ops.import_scene.meshferry_reload()
        assert (state(bpy), heights(lamp)) == (before, points)
    path.unlink()
    with pytest.raises(RuntimeError, match=r"lamp\.mesh: The file does not exist"):
        bpy.ops.import_scene.meshferry_reload()
    moved = Path(shutil.copy(EXAMPLES / "lamp.mesh", tmp_path / "lamp_2.mesh"))
    reload(bpy, lamp, filepath=str(moved))
    assert state(bpy) == before
    assert heights(lamp) != points
    assert lamp.users_collection[0].meshferry.source_path == str(moved)


def test_each_import_of_a_file_is_reloaded_alone(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    bpy.ops.import_scene.mesh_serializer(filepath=str(path))
    first, second = bpy.data.objects["vase"], bpy.data.objects["vase.001"]
    linked = first.copy()
    bpy.data.collections["vase"].objects.link(linked)
    bpy.context.scene.collection.objects.link(instance := bpy.data.objects.new("Instance", None))
    instance.instance_collection = bpy.data.collections["vase"]
    before = heights(first)
    edit_file(path, raise_points)
    reload(bpy, first)
    raised = pytest.approx([height + 1 for height in before], abs=1e-2)
    assert heights(first) == heights(linked) == raised
    assert heights(second) == before
    assert instance.instance_collection == first.users_collection[0]
    assert len(bpy.data.objects) == 4


def test_other_meshes_are_named_before_they_are_replaced(clean_blender, tmp_path):
    bpy = clean_blender
    imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    vase = bpy.data.objects["vase"]
    vase.data = bpy.data.meshes.new("own")
    assert "'vase': it has another mesh than the import made" in question(bpy)


def test_a_reload_is_one_undo_step(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    before = heights(bpy.data.objects["vase"])
    bpy.ops.ed.undo_push(message="import")
    edit_file(path, raise_points)
    bpy.ops.import_scene.meshferry_reload("EXEC_DEFAULT", True)
    assert heights(bpy.data.objects["vase"]) != before
    bpy.ops.ed.undo()
    assert heights(bpy.data.objects["vase"]) == before


def test_levels_that_were_deleted_come_back_hidden(clean_blender, tmp_path):
    bpy = clean_blender
    imported(bpy, tmp_path, "tunic.llmesh", "second_life")
    level = bpy.data.objects["tunic_LOD1"]
    home = level.users_collection[0]
    name = home.name
    bpy.data.objects.remove(level)
    bpy.data.collections.remove(home)
    reload(bpy, bpy.data.objects["tunic"])
    level = bpy.data.objects["tunic_LOD1"]
    layer = bpy.context.view_layer.layer_collection.children["tunic"].children[name]
    assert layer.hide_viewport
    assert [*layer.collection.objects] == [level]
    assert level.parent == level.modifiers[0].object == bpy.data.objects["tunic Armature"]
    assert level.meshferry.lod_of == bpy.data.objects["tunic"]
    assert level in {
        getattr(bpy.data.objects["tunic"].meshferry, f"{part}_level") for part in ("medium", "low", "lowest")
    }


def test_copies_of_the_user_stay(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    vase = bpy.data.objects["vase"]
    copy = vase.copy()
    copy.data = vase.data.copy()
    vase.users_collection[0].objects.link(copy)
    vase.name = "wide vase"
    before = heights(copy)
    edit_file(path, raise_points)
    reload(bpy, copy)
    assert heights(copy) == before
    assert heights(vase)[1] > before[1]
    assert "Not in the file" not in capfd.readouterr().out


def test_data_of_other_blend_files_is_not_changed(clean_blender, tmp_path, capfd):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    library = tmp_path / "library.blend"
    bpy.data.libraries.write(str(library), {bpy.data.collections["vase"]})
    with bpy.data.libraries.load(str(library), link=True) as (_source, target):
        target.meshes = ["vase"]
    bpy.data.objects["vase"].data = target.meshes[0]
    edit_file(path, raise_points)
    reload(bpy)
    assert "Not changed, since their data is linked: 'vase'" in capfd.readouterr().out
    assert bpy.data.objects["vase"].data == target.meshes[0]
    assert [obj.name for obj in bpy.data.objects] == ["vase"]
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(library), link=True) as (_source, target):
        target.collections = ["vase"]
    bpy.context.scene.collection.children.link(target.collections[0])
    bpy.context.view_layer.objects.active = target.collections[0].objects[0]
    assert not bpy.ops.import_scene.meshferry_reload.poll()


def test_actions_of_strips_in_tweak_mode_are_replaced(clean_blender, tmp_path):
    from meshferry.blender_data import animated_blocks

    bpy = clean_blender
    imported(bpy, tmp_path)
    rig = bpy.data.objects["lamp Armature"]
    bpy.context.view_layer.objects.active = rig
    clip = imported(bpy, tmp_path, "lamp_nod.anim")
    animation = rig.animation_data
    strip = animation.nla_tracks.new().strips.new("Nod", 10, animation.action)
    animation.action, strip.select = None, True
    animation.nla_tracks.active = animation.nla_tracks[0]
    animation.use_tweak_mode = True
    assert animation.use_tweak_mode
    edit_file(clip, double_length)
    reload(bpy, rig)
    assert question(bpy) == ""
    curve = next(curve for curve in animated_blocks.action_curves(strip.action, None) if len(curve.keyframe_points) > 3)
    curve.keyframe_points[2].co.x += 0.25
    assert question(bpy) == "'lamp Armature': action 'lamp_nod'"
    reload(bpy, rig)
    assert question(bpy) == ""
    assert strip.action.name == "lamp_nod"
    assert strip.action.meshferry.frame_count == 120


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_painted_colors_are_listed(clean_blender, kind):
    from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
    from meshferry.blender_data.importing.importer import import_scene
    from meshferry.blender_data.mesh_data.checksums import edits_of
    from meshferry.io_formats.core import scene

    colors = scene.Layer("color", np.arange(12).reshape(3, 4).astype(kind))
    points = np.eye(3, dtype=np.float32)
    mesh = scene.Mesh(points, np.arange(3, dtype=np.int32), np.zeros(1, np.int32), [""], colors=[colors])
    made = scene.Scene("painted", [scene.Node("painted", mesh=mesh)])
    obj = import_scene(ImportRequest(clean_blender.context, made, ImportOptions.of())).objects[0]
    assert edits_of(obj) == []
    obj.data.color_attributes[0].data[1].color_srgb = (1, 0, 0, 1)
    assert edits_of(obj) == ["attribute 'Color'"]


def test_a_duplicate_of_the_collection_stays(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "vase.data", "mesh_serializer")
    collection, vase = bpy.data.collections["vase"], bpy.data.objects["vase"]
    other, copy = collection.copy(), vase.copy()
    copy.data = vase.data.copy()
    bpy.context.scene.collection.children.link(other)
    other.objects.unlink(vase)
    other.objects.link(copy)
    before = heights(vase)
    edit_file(path, raise_points)
    reload(bpy, copy)
    assert (heights(copy)[1] > before[1], heights(vase)) == (True, before)
    assert {obj.name for obj in bpy.data.objects} == {"vase", "vase.001"}


def test_edited_bones_get_their_place_back(clean_blender, tmp_path):
    bpy = clean_blender
    imported(bpy, tmp_path, "tunic.llmesh", "second_life")
    rig = bpy.data.objects["tunic Armature"]
    before = {bone.name: bone.matrix_local.copy() for bone in rig.data.bones}
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("mTorso", "mNeck", "mSpine1"):
        rig.data.edit_bones[name].head.x += 0.1
    bpy.ops.object.mode_set(mode="OBJECT")
    reload(bpy, rig)
    for bone in rig.data.bones:
        assert np.allclose(bone.matrix_local, before[bone.name], atol=1e-6)


def test_files_that_share_an_armature_are_reloaded_alone(clean_blender, tmp_path):
    bpy = clean_blender
    paths = [Path(shutil.copy(EXAMPLES / "tunic.llmesh", tmp_path / name)) for name in ("one.llmesh", "two.llmesh")]
    files = [{"name": path.name} for path in paths]
    bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files)
    rig = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    before = state(bpy)
    for name in ("one", "two"):
        obj = bpy.data.objects[name]
        reload(bpy, obj)
        assert obj.parent == obj.modifiers[0].object == rig
        assert state(bpy) == before


def test_the_options_of_the_import_are_used_again(clean_blender, tmp_path):
    bpy = clean_blender
    path = imported(bpy, tmp_path, "windmill.timbermesh", "timbermesh")
    bpy.ops.import_scene.timbermesh(filepath=str(path), use_weld=False, use_existing_materials=False)
    first, second = bpy.data.objects["#Flag"], bpy.data.objects["#Flag.001"]
    before, count = state(bpy), len(second.data.vertices)
    material = second.active_material
    assert count > len(first.data.vertices)
    assert material != first.active_material
    reload(bpy, second)
    assert (len(second.data.vertices), second.active_material, state(bpy)) == (count, material, before)


@pytest.mark.parametrize("stored", ["path", "option", "action"])
def test_stored_paths_to_other_machines_are_opened_after_the_question(clean_blender, tmp_path, share, stored):
    """Windows would log in to the machine."""
    from meshferry.blender_data import file_records
    from meshferry.operators.files.reload_file import IMPORT_SCENE_OT_meshferry_reload as operator

    bpy, (folder, touched) = clean_blender, share
    imported(bpy, folder if stored == "path" else tmp_path)
    imported(bpy, folder if stored == "action" else tmp_path, "lamp_nod.anim")
    kept = bpy.data.collections["lamp"].meshferry
    kept.import_options = json.dumps({"material_library": f"{folder}/library.blend"}) if stored == "option" else "{"
    bpy.data.libraries.write(str(folder / "library.blend"), set())
    file_records.session_files().clear()  # as after loading a .blend file
    before = len(touched())
    unasked = file_records.unasked_paths(operator.stored_paths(SimpleNamespace(filepath=""), bpy.context))
    assert len(unasked) == 1 and unasked[0].startswith(str(folder))
    with pytest.raises(RuntimeError, match="need your consent in a window: '"):
        bpy.ops.import_scene.meshferry_reload()
    assert len(touched()) == before
    file_records.session_files()[str(Path(unasked[0]))] = file_records.SessionFile()  # as after the user agreed
    reload(bpy)


def test_a_reload_without_a_source_is_refused(clean_blender):
    """Another object may become active while the file browser is open."""
    from meshferry.operators.files.reload_file import IMPORT_SCENE_OT_meshferry_reload as Operator

    reports: list[tuple[set[str], str]] = []

    class Reloading:
        report = staticmethod(lambda levels, text: reports.append((levels, text)))

    assert Operator.question(Reloading(), clean_blender.context) == ""
    with pytest.raises(StopIteration) as ended:
        next(Operator.steps(Reloading(), clean_blender.context))
    assert ended.value.value == {"CANCELLED"}
    assert reports[0][0] == {"ERROR"}
