"""The joints of the avatar: which of them take part in automatic weights, and what Deform means for a file."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import avatar_rest
import numpy as np
import pointing_bones
import pytest
import second_life_oracle
from second_life_models import Drawn, panel_context

pytestmark = pytest.mark.needs_bpy

CLASSIC = {
    *("mPelvis", "mTorso", "mChest", "mNeck", "mHead", "mSkull"),
    *(f"m{part}{side}" for part in ("Collar", "Shoulder", "Elbow", "Wrist") for side in ("Left", "Right")),
    *(f"m{part}{side}" for part in ("Hip", "Knee", "Ankle", "Foot", "Toe") for side in ("Left", "Right")),
}
"""The joints of the avatar of 2003 without its eyes."""


def avatar(bpy: Any, **options: Any) -> Any:
    assert bpy.ops.object.second_life_avatar_add(**options) == {"FINISHED"}
    return bpy.context.object


def deforming(armature: Any) -> set[str]:
    return {bone.name for bone in armature.data.bones if bone.use_deform}


def bound_tetra(bpy: Any, armature: Any, *joints: str) -> Any:
    """Return a selected tetrahedron with weights of some joints alike."""
    data = bpy.data.meshes.new("scarf")
    data.from_pydata(
        [(0, 0, 1.1), (0.2, 0, 1.1), (0, 0.2, 1.1), (0, 0, 1.5)], [], [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    )
    obj = bpy.data.objects.new("scarf", data)
    bpy.context.scene.collection.objects.link(obj)
    obj.parent = armature
    obj.modifiers.new("Armature", "ARMATURE").object = armature
    for joint in joints:
        obj.vertex_groups.new(name=joint).add(range(4), 1 / len(joints), "REPLACE")
    bpy.context.view_layer.update()
    for other in bpy.context.view_layer.objects:
        other.select_set(other == obj)
    bpy.context.view_layer.objects.active = obj
    return obj


def exported(bpy: Any, path: Any) -> Any:
    assert bpy.ops.export_scene.second_life_mesh(filepath=str(path), scope="SELECTION") == {"FINISHED"}
    return second_life_oracle.decode(path.read_bytes())


@pytest.mark.parametrize(
    ("options", "count", "others"),
    [
        ({}, len(CLASSIC), set()),
        ({"weighted": "HANDS_FACE"}, 24 + 2 + 30 + 46, {"mEyeLeft", "mHandThumb1Right", "mFaceLipCornerLeft"}),
        ({"weighted": "EVERYTHING"}, 159, {"mTail1", "mWing1Left", "BELLY", "mSpine1"}),
        ({"weighted": "EVERYTHING", "use_collision_volumes": False}, 133, {"mGroin"}),
    ],
)
def test_an_avatar_deforms_by_the_chosen_joints(
    clean_blender: Any, options: dict[str, Any], count: int, others: set[str]
) -> None:
    found = deforming(avatar(clean_blender, **options))
    assert len(found) == count
    assert found >= CLASSIC | others
    assert ("mTail1" in found) == (options.get("weighted") == "EVERYTHING")


def test_automatic_weights_of_a_shirt_are_on_the_body_alone(clean_blender: Any) -> None:
    bpy = clean_blender
    armature = avatar(bpy)
    bpy.ops.mesh.primitive_cylinder_add(vertices=16, radius=0.18, depth=0.5, location=(0, 0, 1.3))
    shirt = bpy.context.object
    armature.select_set(True)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.parent_set(type="ARMATURE_AUTO")
    weighted = {shirt.vertex_groups[entry.group].name for vertex in shirt.data.vertices for entry in vertex.groups}
    assert {"mTorso", "mChest"} <= weighted <= CLASSIC
    assert all(vertex.groups for vertex in shirt.data.vertices)


def test_the_joints_of_automatic_weights_are_changed_later(clean_blender: Any) -> None:
    bpy = clean_blender
    armature = avatar(bpy)
    own = bpy.data.armatures["Avatar"]
    bpy.ops.object.mode_set(mode="EDIT")
    control = own.edit_bones.new("Control")
    control.head, control.tail = (0, 0, 0), (0, 0, 1)
    assert bpy.ops.object.second_life_automatic_weights(weighted="EVERYTHING") == {"FINISHED"}
    assert bpy.context.mode == "OBJECT" and len(deforming(armature)) == 160
    bound_tetra(bpy, armature, "mChest", "mHindLimb1Left")
    bpy.ops.object.second_life_automatic_weights(weighted="BODY")
    assert deforming(armature) == CLASSIC | {"mHindLimb1Left", "Control"}
    bpy.ops.object.second_life_automatic_weights(weighted="BODY", use_weighted=False)
    assert deforming(armature) == CLASSIC | {"Control"}
    bpy.data.objects["scarf"].modifiers.clear()
    bpy.data.objects["scarf"].parent = None
    assert bpy.ops.object.second_life_automatic_weights.poll(), "the only avatar is meant"
    bpy.ops.object.second_life_avatar_add()
    bpy.context.object.select_set(False)
    bpy.context.view_layer.objects.active = bpy.data.objects["scarf"]
    assert not bpy.ops.object.second_life_automatic_weights.poll()


def test_the_sidebar_shows_the_joints_of_automatic_weights(clean_blender: Any) -> None:
    from meshferry.operators.families.second_life.panel import main_panel

    bpy = clean_blender

    def shown() -> str:
        layout = Drawn()
        main_panel.draw(type("Panel", (), {"layout": layout})(), panel_context(bpy))
        (text,) = (line[1] for line in layout.lines if line[0] == "object.second_life_automatic_weights")
        return text

    armature = avatar(bpy)
    assert shown() == "Body"
    armature.data.bones["mTail1"].use_deform = True
    assert shown() == "Body and 1 more bone"
    armature.data.bones["mChest"].use_deform = False
    assert shown() == "Custom"
    bpy.ops.object.second_life_automatic_weights(weighted="EVERYTHING")
    assert shown() == "Everything"


def test_weights_of_joints_that_do_not_deform_are_exported_and_reported_once(
    clean_blender: Any, tmp_path: Any, capfd: Any
) -> None:
    bpy = clean_blender
    armature = avatar(bpy)
    bound_tetra(bpy, armature, "mChest", "mTail1", "BELLY", "Loose")
    armature.data.bones["mPelvis"].name = "Loose"  # not a joint of the avatar any more
    armature.data.bones["Loose"].use_deform = False
    asset = exported(bpy, tmp_path / "scarf.llmesh")
    assert set(asset.skin.joints) == {"mChest", "mTail1", "BELLY"}
    for face in asset.levels["high_lod"]:
        np.testing.assert_allclose(asset.weights_of(face)[:, :3].sum(axis=1), 1.0, atol=1e-3)
    lines = [line for line in capfd.readouterr().out.splitlines() if "Deform is off" in line]
    assert len(lines) == 1
    assert "2 bones have weights although Deform is off in 'Avatar': 'BELLY', 'mTail1'" in lines[0]


@pytest.mark.parametrize("target", ["AUTO", "ACTIVE"])
def test_an_import_switches_deform_on_for_its_weights(clean_blender: Any, tmp_path: Any, target: str) -> None:
    bpy = clean_blender
    armature = avatar(bpy)
    bound_tetra(bpy, armature, "mChest", "mHindLimb1Left", "BELLY")
    path = tmp_path / "scarf.llmesh"
    exported(bpy, path)
    bpy.data.objects.remove(bpy.data.objects["scarf"])
    bpy.context.view_layer.objects.active = armature
    bpy.ops.import_scene.second_life(filepath=str(path), armature=target)
    scarf = bpy.data.objects["scarf"]
    assert (scarf.parent == armature) == (target == "ACTIVE")
    assert deforming(scarf.parent) == CLASSIC | {"mHindLimb1Left", "BELLY"}
    rest = np.array([vertex.co for vertex in scarf.data.vertices])
    posed = scarf.parent.pose.bones["mHindLimb1Left"]
    posed.rotation_mode, posed.rotation_euler = "XYZ", (1.0, 0.5, 0.0)
    bpy.context.view_layer.update()
    shown = scarf.evaluated_get(bpy.context.evaluated_depsgraph_get())
    assert np.abs(np.array([vertex.co for vertex in shown.data.vertices]) - rest).max() > 0.05


def test_the_weakest_weights_are_removed_among_those_that_are_exported(clean_blender: Any) -> None:
    """A joint without Deform counts, since the file holds its weights."""
    bpy = clean_blender
    armature = avatar(bpy)
    scarf = bound_tetra(bpy, armature, "mChest", "mTorso", "mNeck", "mHead", "mTail1")
    for group, weight in zip(scarf.vertex_groups, (0.3, 0.25, 0.2, 0.15, 0.1), strict=True):
        group.add(range(4), weight, "REPLACE")
    bpy.ops.export_scene.second_life_check()
    check = bpy.context.window_manager.meshferry_check
    number = next(number for number, one in enumerate(check.findings) if one.fix == "too-many-weights")
    bpy.ops.object.meshferry_finding_fix(index=number)
    left = {
        scarf.vertex_groups[entry.group].name for entry in itertools.chain(*(v.groups for v in scarf.data.vertices))
    }
    assert left == {"mChest", "mTorso", "mNeck", "mHead"}


# -- joint positions ----------------------------------------------------------------------------------------------


def sorted_points(points: Any) -> Any:
    """Return points in an order that does not depend on that of the vertices, which an export may change."""
    return points[np.lexsort(np.round(points, 3).T)]


@pytest.mark.parametrize("name", ["benthic_rigged22.mesh", "synthetic/synth_rig_cv.llmesh"])
def test_an_imported_rig_without_joint_positions_is_exported_without(
    clean_blender: Any, samples: Any, tmp_path: Any, name: str, capfd: Any
) -> None:
    """The first has joints up to 5 cm away from the avatar's; a pose moves both alike before and after."""
    bpy = clean_blender
    given = shutil.copy(samples / "secondlife" / name, tmp_path / "given.llmesh")
    before = second_life_oracle.decode(given.read_bytes())
    bpy.ops.import_scene.second_life(filepath=str(given), use_weld=False)
    capfd.readouterr()
    after = exported(bpy, tmp_path / "after.llmesh")
    assert after.skin.overrides is None
    assert "joint positions" not in capfd.readouterr().out
    for seed in (1, 2):
        worlds = avatar_rest.posed_worlds(seed)
        shown = [sorted_points(avatar_rest.skinned(asset, worlds)) for asset in (before, after)]
        np.testing.assert_allclose(shown[1].mean(axis=0), shown[0].mean(axis=0), atol=1e-4)
        apart = np.linalg.norm(shown[0][:, None] - shown[1][None], axis=2)
        assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 2e-4


def test_joint_positions_of_an_import_are_kept(clean_blender: Any, samples: Any, tmp_path: Any) -> None:
    bpy = clean_blender
    given = shutil.copy(samples / "secondlife" / "synthetic" / "synth_rig_overrides.llmesh", tmp_path / "given.llmesh")
    before = second_life_oracle.decode(given.read_bytes()).skin
    bpy.ops.import_scene.second_life(filepath=str(given))
    after = exported(bpy, tmp_path / "after.llmesh").skin
    wanted = dict(zip(before.joints, before.overrides[:, 3, :3], strict=True))
    assert set(after.joints) == set(wanted) - {"mHandThumb1Left"}, "no weights, and not moved by its position"
    for joint, override in zip(after.joints, after.overrides[:, 3, :3], strict=True):
        np.testing.assert_allclose(override, wanted[joint], atol=1e-6, err_msg=joint)


def world_points(bpy: Any, obj: Any) -> Any:
    shown = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([shown.matrix_world @ vertex.co for vertex in shown.data.vertices])


def heads_of(armature: Any, turn: Any) -> dict[str, Any]:
    """Return the heads of an armature's bones in avatar space, relative to the armature's origin."""
    place = np.array(armature.matrix_world)[:3, :3]
    return {bone.name: turn @ place @ np.array(bone.head_local) for bone in armature.data.bones}


TO_AVATAR = np.array(((0, -1, 0), (1, 0, 0), (0, 0, 1)), float)


def test_joints_snap_to_the_avatar_and_meshes_stay(clean_blender: Any) -> None:
    bpy = clean_blender
    armature = pointing_bones.add()
    connected = {bone.name for bone in armature.data.bones if bone.use_connect}
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    control = bones.new("Control")
    control.head, control.tail, control.parent = (0, 0, 2), (0, 0.1, 2), bones["mChest"]
    shifted = ("mChest", "mElbowLeft", "CHEST", "mAnkleRight")
    for number, name in enumerate(shifted):
        bones[name].use_connect = False
        bones[name].head = np.add(bones[name].head, (0.01 * number, 0.02, 0.05))
    bpy.ops.object.mode_set(mode="OBJECT")
    armature.rotation_mode, armature.rotation_euler.z, armature.scale = "XYZ", np.pi / 2, (0.5, 0.5, 0.5)
    armature.location = (3, 4, 5)
    bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    armature.scale = (2, 2, 2)
    scarf = bound_tetra(bpy, armature, "mChest", "mElbowLeft")
    hat = bpy.data.objects.new("hat", None)
    bpy.context.scene.collection.objects.link(hat)
    hat.parent, hat.parent_type, hat.parent_bone = armature, "BONE", "mChest"
    armature.hide_set(True)
    bpy.context.view_layer.update()
    before = world_points(bpy, scarf), np.array(hat.matrix_world), armature.data.bones["Control"].head_local.copy()
    assert bpy.ops.object.second_life_snap_joints() == {"FINISHED"}
    turn = TO_AVATAR @ np.array(((0, 1, 0), (-1, 0, 0), (0, 0, 1)), float)  # it was turned by 90 degrees
    heads, table = heads_of(armature, turn), avatar_rest.heads()
    for name in table.keys() & heads.keys():
        np.testing.assert_allclose(heads[name], table[name], atol=2e-6, err_msg=name)
    assert len(table.keys() & heads.keys()) == 159
    bpy.context.view_layer.update()
    np.testing.assert_allclose(world_points(bpy, scarf), before[0], atol=1e-6)
    np.testing.assert_allclose(np.array(hat.matrix_world), before[1], atol=1e-5)
    assert (armature.data.bones["Control"].head_local - before[2]).length > 0.02
    assert {bone.name for bone in armature.data.bones if bone.use_connect} == connected - set(shifted)
    assert len(bpy.data.objects) == 3
    assert (bpy.context.object, bpy.context.mode, scarf.select_get()) == (scarf, "OBJECT", True)
    assert bpy.ops.object.second_life_snap_joints() == {"CANCELLED"}


@pytest.mark.parametrize("where", ["excluded", "pose", "relative", "other object"])
def test_objects_on_snapped_bones_stay(clean_blender: Any, where: str) -> None:
    bpy = clean_blender
    armature = avatar(bpy)
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["mHead"].head.z += 0.05
    bpy.ops.object.mode_set(mode="OBJECT")
    owner = bpy.data.objects.new("Other", armature.data) if where == "other object" else armature
    home = bpy.data.collections.new("Hats")
    bpy.context.scene.collection.children.link(home)
    hat = bpy.data.objects.new("hat", None)
    for obj in {hat, owner} - {armature}:
        home.objects.link(obj)
    hat.parent, hat.parent_type, hat.parent_bone, hat.location = owner, "BONE", "mHead", (0.1, 0.2, 0)
    hat.keyframe_insert("location")
    armature.data.bones["mHead"].use_relative_parent = where == "relative"
    if where == "pose":
        armature.pose.bones["mHead"].rotation_quaternion = (0.8, 0.6, 0, 0)
    layer = bpy.context.view_layer.layer_collection.children["Hats"]
    layer.exclude = where == "excluded"
    bpy.context.view_layer.update()
    # Before its first evaluation, an object in an excluded collection has the identity as its matrix.
    before = np.array(hat.matrix_world)
    if where == "excluded":
        bone = armature.data.bones["mHead"]
        place = np.array(((1, 0, 0, 0.1), (0, 1, 0, 0.2 + bone.length), (0, 0, 1, 0), (0, 0, 0, 1)))
        before = np.array(bone.matrix_local) @ place
    assert bpy.ops.object.second_life_snap_joints() == {"FINISHED"}
    layer.exclude = False
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(hat.matrix_world), before, atol=1e-5)
    assert tuple(hat.location) == pytest.approx((0.1, 0.2, 0)), "animated values are not changed"


@pytest.mark.parametrize("name", ["benthic_rigged22.mesh", "synthetic/synth_rig_overrides.llmesh"])
def test_joints_that_a_file_moves_stay_when_others_snap(
    clean_blender: Any, samples: Any, tmp_path: Any, name: str
) -> None:
    bpy = clean_blender
    given = shutil.copy(samples / "secondlife" / name, tmp_path / "given.llmesh")
    bpy.ops.import_scene.second_life(filepath=str(given))
    mesh = bpy.context.object
    before = world_points(bpy, mesh)
    bpy.data.armatures[0].bones["mTail1"].use_deform = True
    bpy.ops.object.second_life_snap_joints()
    np.testing.assert_allclose(world_points(bpy, mesh), before, atol=1e-6)
    skin = second_life_oracle.decode(given.read_bytes()).skin
    moved = {} if skin.overrides is None else dict(zip(skin.joints, skin.overrides[:, 3, :3], strict=True))
    heads, wanted = heads_of(mesh.parent, TO_AVATAR), avatar_rest.heads(moved)
    for joint, head in heads.items():
        np.testing.assert_allclose(head, wanted[joint], atol=2e-6, err_msg=joint)
    after = exported(bpy, tmp_path / "after.llmesh").skin
    assert (after.overrides is None) == (not moved)
    for joint, inverse in zip(after.joints, after.inverse_bind, strict=True):
        np.testing.assert_allclose(np.linalg.inv(inverse)[3, :3], wanted[joint], atol=2e-6, err_msg=joint)
