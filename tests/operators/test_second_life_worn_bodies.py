"""Bodies that exports leave out in any way, panels and refusals around bodies, and files of clothes bound as shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import avatar_rest
import numpy as np
import pytest
import second_life_oracle
import slow_shape

pytestmark = pytest.mark.needs_bpy

SHAPE = {33: 1.2, 80: 1.0, 637: 0.6, 157: 0.4, 693: 0.6}


def select(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def add_tube(bpy: Any, name: str, radius: float = 0.25, rows: int = 12) -> Any:
    """Return a tube around the torso with a material and UVs."""
    angles, heights = np.linspace(0, 2 * np.pi, 24, endpoint=False), np.linspace(0.95, 1.5, rows)
    points = [(radius * np.cos(a), radius * np.sin(a), z) for z in heights for a in angles]
    faces = [
        (24 * row + i, 24 * row + (i + 1) % 24, 24 * row + 24 + (i + 1) % 24, 24 * row + 24 + i)
        for row in range(rows - 1)
        for i in range(24)
    ]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points, [], faces)
    mesh.uv_layers.new(name="UVMap")
    mesh.materials.append(bpy.data.materials.get("Cloth") or bpy.data.materials.new("Cloth"))
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.update()
    return obj


def dressed(bpy: Any) -> tuple[Any, Any, Any]:
    """Return an avatar, its mannequin and a shirt with the mannequin's weights."""
    bpy.ops.object.second_life_add_mannequin()
    avatar, shirt = bpy.context.object, add_tube(bpy, "Shirt")
    select(bpy, shirt, avatar)
    assert bpy.ops.object.second_life_transfer_weights(source="Mannequin") == {"FINISHED"}
    return avatar, bpy.data.objects["Mannequin"], shirt


def labels(path: Path) -> list[str]:
    return sorted(one.label for one in second_life_oracle.decode_bundle(path.read_bytes()).instances)


def test_exporters_of_collections_leave_bodies_out(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    _avatar, body, shirt = dressed(bpy)
    outfit = bpy.data.collections.new("Outfit")
    bpy.context.scene.collection.children.link(outfit)
    for obj in (body, shirt):
        outfit.objects.link(obj)
    bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection.children["Outfit"]
    bpy.ops.collection.exporter_add(name="IO_FH_second_life_bundle")
    exporter, path = outfit.exporters[0], tmp_path / "Outfit.slm"
    (exporter if hasattr(exporter, "filepath") else exporter.export_properties).filepath = str(path)
    bpy.ops.collection.export_all()
    assert labels(path) == ["Shirt"]


def test_copies_for_other_joints_keep_the_body_a_body(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    avatar, body, shirt = dressed(bpy)
    for obj in (body, shirt):
        obj.vertex_groups["mTorso"].name = "Waist"
    avatar.data.bones["mTorso"].name = "Waist"  # so that the rig is not the avatar's
    avatar.meshferry.use_bone_table = True
    for bone in avatar.data.bones:
        bone.meshferry.target_joint = "mTorso" if bone.name == "Waist" else bone.name if bone.use_deform else ""
    select(bpy, avatar)
    assert bpy.ops.object.second_life_retarget() == {"FINISHED"}
    assert {obj.name for obj in bpy.data.objects if obj.meshferry.body} == {"Mannequin", "SL Mannequin"}
    path = tmp_path / "all.slm"
    assert bpy.ops.export_scene.second_life_bundle(filepath=str(path), scope="SCENE") == {"FINISHED"}
    assert labels(path) == ["SL Shirt"]


def test_the_panel_of_an_avatar_shows_its_clothes_alone(clean_blender: Any) -> None:
    from meshferry.operators.families.second_life.exporters import chosen_models

    bpy = clean_blender
    avatar, _body, shirt = dressed(bpy)
    select(bpy, avatar)
    assert [model.finest for model in chosen_models(bpy.context)] == [shirt]


def test_factors_are_kept_in_presets(clean_blender: Any) -> None:
    from meshferry.operators.families.second_life.binding_tools import FACTORS

    kind = clean_blender.types.OBJECT_OT_second_life_fitted_mesh
    assert "PRESET" in kind.bl_options and len(FACTORS) == 17
    properties = clean_blender.ops.object.second_life_fitted_mesh.get_rna_type().properties
    assert not any(properties[name].is_skip_save for name in ("factor", *FACTORS))


def test_avatars_without_size_are_refused(clean_blender: Any) -> None:
    bpy = clean_blender
    avatar, _body, shirt = dressed(bpy)
    box = add_tube(bpy, "Belt")
    select(bpy, avatar)
    bpy.ops.object.second_life_add_attachment_points()
    select(bpy, box, avatar)
    bpy.ops.object.second_life_attach(point="Chest")
    avatar.scale = (1.0, 0.0, 1.0)
    bpy.context.view_layer.update()
    select(bpy, shirt, avatar)
    operators = bpy.ops.object
    for operator in (operators.second_life_bind, operators.second_life_fitted_mesh, operators.second_life_check_fit):
        with pytest.raises(RuntimeError, match="Error: Avatar: it has a scale of zero; correct the scale first"):
            operator()

    from meshferry.operators.families.second_life import attachments

    assert np.isfinite(attachments.offset_of(box)).all()


def test_only_the_root_of_several_objects_is_attached(clean_blender: Any) -> None:
    from meshferry.operators.families.second_life import attachments

    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add(use_attachments=True)
    avatar = bpy.context.object
    root, child = add_tube(bpy, "Root"), add_tube(bpy, "Child", 0.1)
    child.parent, child.location = root, (0.1, 0.2, 0.3)
    bpy.context.view_layer.update()
    before = np.array(child.matrix_world)
    select(bpy, child, root, avatar)
    assert bpy.ops.object.second_life_attach(point="Skull") == {"FINISHED"}
    assert (child.parent, root.parent_bone) == (root, "Skull")
    np.testing.assert_allclose(np.array(child.matrix_world), before, atol=2e-6)
    assert (attachments.point_of(root), attachments.point_of(child)) == ("Skull", "")


def test_own_bodies_of_a_linked_avatar_can_be_released(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_add_mannequin()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "avatar.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "avatar.blend"), link=True) as (_there, wanted):
        wanted.objects = ["Avatar", "Mannequin"]
    avatar, mannequin = wanted.objects
    kit = add_tube(bpy, "Kit")
    for obj in (avatar, mannequin):
        bpy.context.scene.collection.objects.link(obj)
    kit.parent = avatar
    kit.modifiers.new("Armature", "ARMATURE").object = avatar
    bpy.context.view_layer.update()
    select(bpy, kit, avatar)
    assert bpy.ops.object.second_life_use_as_body() == {"FINISHED"}
    for operator in ("activate", "show", "release"):
        with pytest.raises(RuntimeError, match="'Mannequin': linked from another file; make a library override"):
            getattr(bpy.ops.object, f"second_life_{operator}_body")(body="Mannequin")
    assert bpy.ops.object.second_life_release_body(body="Kit") == {"FINISHED"}
    assert not kit.meshferry.body and mannequin.meshferry.body


def worlds_of(avatar: Any, values: dict[int, float]) -> tuple[dict[str, Any], Any]:
    """Return each joint's matrix by the page (section 3.4), for row vectors, and how far the pelvis is from its rest.

    Only the directions of the posed bones are Blender's.
    """
    flat = slow_shape.joints(values)
    to_avatar = np.array(((0, -1, 0), (1, 0, 0), (0, 0, 1)), float)
    made: dict[str, Any] = {}
    turns: dict[str, Any] = {"": np.identity(3)}
    rests = avatar_rest.worlds()
    origins = {"": np.zeros(3)}
    for name, row in avatar_rest.rows().items():
        if name not in flat:
            continue
        above = row["parent"] if row["parent"] in flat else ""
        size = np.array(flat[above][3:]) if above else np.ones(3)
        place = (np.array(flat[name][:3]) - (flat[above][:3] if above else 0)) / size
        bone = avatar.pose.bones[name]
        posed = np.array((bone.matrix @ bone.bone.matrix_local.inverted()).to_quaternion().to_matrix())
        turns[name] = turns[above] if row["kind"] == "collision_volume" else to_avatar @ posed @ to_avatar.T
        origins[name] = origins[above] + turns[above] @ (size * place)
        axes = rests[name][:3, :3] / np.linalg.norm(rests[name][:3, :3], axis=1)[:, None]
        made[name] = np.identity(4)
        made[name][:3, :3] = np.diag(flat[name][3:]) @ axes @ turns[name].T
        made[name][3, :3] = origins[name]
    return made, np.array(avatar.pose.bones["mPelvis"].head) - (0, 0, 1.067)


@pytest.mark.parametrize("source", ["", "Mannequin"])
def test_files_of_clothes_bound_as_shown_have_the_shown_form(clean_blender: Any, tmp_path: Path, source: str) -> None:
    """By the page's formula for skins, each coordinate is within a step of the file, 1/65,535 of the box's side."""
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    bpy = clean_blender
    bpy.ops.object.second_life_add_mannequin()
    avatar = bpy.context.object
    body_shapes.set_percents(avatar, armature_sliders.percents_of(SHAPE))
    for name, angles in (("mTorso", (0.1, 0.2, -0.1)), ("mChest", (0.15, -0.1, 0.1)), ("mHipLeft", (0.3, 0, 0))):
        avatar.pose.bones[name].rotation_mode = "XYZ"
        avatar.pose.bones[name].rotation_euler = angles
    shirt = add_tube(bpy, "Shirt", 0.3)
    select(bpy, shirt, avatar)
    if source:
        assert bpy.ops.object.second_life_transfer_weights(source=source) == {"FINISHED"}
    else:
        assert bpy.ops.object.second_life_bind() == {"FINISHED"}
    seen = shirt.evaluated_get(bpy.context.evaluated_depsgraph_get())
    shown = np.array([tuple(seen.matrix_world @ vertex.co) for vertex in seen.data.vertices])
    path = tmp_path / "shirt.llmesh"
    select(bpy, shirt)
    assert bpy.ops.export_scene.second_life_mesh(filepath=str(path), scope="SELECTION") == {"FINISHED"}
    asset = second_life_oracle.decode(path.read_bytes())
    assert asset.skin is not None and asset.skin.overrides is None  # no joint positions
    worlds, pelvis = worlds_of(avatar, SHAPE)
    found = avatar_rest.in_blender(avatar_rest.skinned(asset, worlds)) + pelvis
    nearest = np.linalg.norm(found[:, None] - shown, axis=2).argmin(axis=1)
    assert set(nearest) == set(range(len(shown)))
    steps = np.abs(found - shown[nearest]) / np.ptp(shown, axis=0) * 65_535
    assert steps.max() < 1.0
