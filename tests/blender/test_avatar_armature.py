"""Armatures whose joints say where they end: places, directions, mirrored rolls, groups; several meshes on one.

The truth is the table of joints, summed up here, and what Blender itself does with the bones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import avatar_table
import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

LEGS = ("mHip", "mKnee", "mAnkle", "mFoot", "mToe", "UPPER_LEG", "LOWER_LEG", "FOOT")
"""The table has these a few millimetres apart from being mirrored."""


def added(skeleton: Any = None, **which: bool) -> Any:
    import bpy
    from meshferry.blender_data.importing import armatures
    from meshferry.io_formats.second_life.avatar import skeletons

    skeleton = skeleton or skeletons.avatar_skeleton(**which)
    return armatures.add_skeleton(bpy.context, skeleton, name="Avatar")


def mirrored(matrix: Any) -> Any:
    """Return a bone's matrix as its partner must have it: X is mirrored, and the bone stays right-handed."""
    mirror = np.diag((-1.0, 1.0, 1.0, 1.0))
    return mirror @ np.array(matrix, np.float64) @ mirror


def test_every_bone_lies_where_the_table_has_it() -> None:
    avatar = added()
    table, heads, aligned = avatar_table.rows(), avatar_table.heads(), avatar_table.aligned()
    assert [bone.name for bone in avatar.data.bones if bone.name not in table] == []
    assert sum(row["kind"] == "bone" for row in table.values()) == 133
    assert sum(row["kind"] == "collision_volume" for row in table.values()) == 26
    assert len(avatar.data.bones) == 159
    for bone in avatar.data.bones:
        np.testing.assert_allclose(bone.head_local, heads[bone.name], atol=1e-6, err_msg=bone.name)
        if bone.name not in aligned:
            end = heads[bone.name] + avatar_table.turned(avatar_table.three(table[bone.name], "end"))
            np.testing.assert_allclose(bone.tail_local, end, atol=2e-6, err_msg=bone.name)
        assert (bone.use_connect, bone.inherit_scale) == (False, "NONE")
        assert (bone.parent.name if bone.parent else "") == table[bone.name]["parent"]
    # Toes lie before the ankles, and before is -Y; left is +X.
    assert avatar.data.bones["mToeLeft"].head_local.y < avatar.data.bones["mAnkleLeft"].head_local.y - 0.05
    assert avatar.data.bones["mWristLeft"].head_local.x > 0.3


def test_bones_that_shapes_scale_unevenly_lie_along_the_axes() -> None:
    avatar = added()
    assert avatar.data.meshferry.bone_axes == "AVATAR"
    table, aligned = avatar_table.rows(), avatar_table.aligned()
    volumes = {name for name, row in table.items() if row["kind"] == "collision_volume"}
    assert len(volumes) == 26 and len(aligned - volumes) == 69
    for name in aligned:
        bone, own = avatar.data.bones[name], avatar_table.own_axes(table[name])
        turn = own.T @ np.array(bone.matrix_local)[:3, :3]
        np.testing.assert_allclose(np.abs(turn).max(axis=0), 1.0, atol=1e-6, err_msg=name)
        end = own.T @ avatar_table.turned(avatar_table.three(table[name], "end"))
        nearest = np.abs(end).argmax()
        if name in volumes:
            half = avatar_table.three(table[name], "scale")[nearest] / 2
            end[nearest] = np.clip(end[nearest], -half, half)
        along = own.T @ np.array(bone.tail_local - bone.head_local)
        np.testing.assert_allclose(along, np.where(np.arange(3) == nearest, end, 0.0), atol=2e-6, err_msg=name)


def test_scaled_poses_are_computed_as_blender_does() -> None:
    """Uneven scales, negative ones at the ends of chains, and locations on bones that do not inherit scale."""
    import bpy
    from meshferry.blender_data.animation import pose_curves
    from meshferry.blender_data.rigging import joint_poses
    from meshferry.blender_data.rigging.armature_reading import read_skeleton

    avatar, rng = added(), np.random.default_rng(3)
    for bone in avatar.pose.bones:
        bone.rotation_mode = "XYZ"
        bone.rotation_euler = rng.normal(size=3) * 0.4
        bone.location = rng.normal(size=3) * 0.05
        bone.scale = 1 + 0.4 * rng.uniform(-1, 1, 3)
    avatar.pose.bones["mFaceNoseCenter"].scale = (-0.3, 0.2, 1.1)
    bpy.context.view_layer.update()
    read = read_skeleton(avatar)
    channels = pose_curves.PoseChannels(avatar, read.bones, set(), {})
    basis = channels.matrices(np.arange(len(read.bones)), np.array([1.0]), [{} for _ in read.bones])
    posed = joint_poses.pose_matrices(read.rest, read.parents, basis)
    for number, name in enumerate(read.bones):
        np.testing.assert_allclose(posed[number, 0], avatar.pose.bones[name].matrix, atol=2e-6, err_msg=name)
        parent = read.parents[number]
        if parent >= 0:
            own = joint_poses.own_transform(read.rest[number], posed[parent], read.rest[parent], posed[number])
            np.testing.assert_allclose(own, basis[number], atol=1e-9)


def test_joints_that_end_where_they_begin_go_on_from_the_one_above() -> None:
    avatar = added(with_attachments=True)
    table = avatar_table.rows(attachments=True)
    assert len(avatar.data.bones) == len(table) > 190
    short = [name for name, row in table.items() if not avatar_table.three(row, "end").any() and row["parent"] in table]
    assert len(short) > 30
    for name in short:
        bone = avatar.data.bones[name]
        assert bone.length == pytest.approx(0.01, abs=1e-5)
        along, above = (one.tail_local - one.head_local for one in (bone, bone.parent))
        assert along.normalized().dot(above.normalized()) > 0.99999, name
        np.testing.assert_allclose(bone.head_local, avatar_table.heads(attachments=True)[name], atol=1e-6)


def test_joints_keep_their_own_axes_and_scale_beside_the_bones() -> None:
    from meshferry.blender_data.rigging.armature_reading import read_skeleton

    skeleton = avatar_table.skeleton()
    avatar, given = added(skeleton), skeleton.joints
    for one, other in zip(read_skeleton(avatar).skeleton.joints, given, strict=True):
        assert (one.name, one.parent) == (other.name, other.parent)
        np.testing.assert_allclose(one.translation, other.translation, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(one.scale, other.scale, rtol=1e-6)
        assert one.rotation == (1.0, 0.0, 0.0, 0.0)


def test_left_and_right_are_named_and_rolled_as_mirror_images() -> None:
    import bpy

    avatar = added()
    paired = 0
    for bone in avatar.data.bones:
        name = bpy.utils.flip_name(bone.name)
        words = ("Left", "Right", "LEFT", "RIGHT")
        assert (name != bone.name) == (any(word in bone.name for word in words) or bone.name[:2] in ("L_", "R_"))
        if name == bone.name:
            continue
        paired += 1
        partner = avatar.data.bones[name]
        close = 0.02 if any(part in bone.name for part in LEGS) else 1e-5
        np.testing.assert_allclose(mirrored(bone.matrix_local), partner.matrix_local, atol=close, err_msg=bone.name)
        if bone.name in avatar_table.aligned():
            found = mirrored(bone.matrix_local)[:3, :3]
            np.testing.assert_allclose(found, np.array(partner.matrix_local)[:3, :3], atol=5e-6, err_msg=bone.name)
    assert paired > 90


def test_paste_flipped_mirrors_every_pair() -> None:
    import bpy

    avatar, rng = added(), np.random.default_rng(2)
    pairs = {bone.name: bpy.utils.flip_name(bone.name) for bone in avatar.data.bones}
    pairs = {name: other for name, other in pairs.items() if name != other}
    wanted = {}
    for name, other in pairs.items():
        bone = avatar.pose.bones[name]
        bone.rotation_quaternion = (1.0, *rng.normal(size=3) * 0.3)
        bone.location = rng.normal(size=3) * 0.1
        bone.scale = 1 + 0.2 * rng.uniform(-1, 1, 3)
        wanted[other] = mirrored(change(bone))
    assert len(pairs) > 90
    paste_flipped()
    for name, matrix in wanted.items():
        close = 0.05 if any(part in name for part in LEGS) and name not in avatar_table.aligned() else 1e-5
        np.testing.assert_allclose(change(avatar.pose.bones[name]), matrix, atol=close, err_msg=name)


def pose_all() -> None:
    """Start Pose Mode with all bones shown: hidden ones are neither posed nor pasted."""
    import bpy

    for group in bpy.context.object.data.collections:
        group.is_visible = True
    bpy.ops.object.mode_set(mode="POSE")


def paste_flipped() -> None:
    """Copy the pose of all bones and paste it flipped."""
    import bpy

    pose_all()
    bpy.ops.pose.select_all(action="SELECT")
    assert bpy.ops.pose.copy() == {"FINISHED"}
    assert bpy.ops.pose.paste(flipped=True) == {"FINISHED"}
    bpy.ops.object.mode_set(mode="OBJECT")
    (Path(bpy.app.tempdir).parent / "copybuffer_pose.blend").unlink(missing_ok=True)
    bpy.context.view_layer.update()


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_pose_pasted_flipped_is_the_mirrored_one(seed: int) -> None:
    """The legs of the standard avatar are not mirror images: their joints are 1 to 3 mm off, which adds up."""
    import bpy

    avatar, rng = added(), np.random.default_rng(seed)
    for bone in avatar.pose.bones:
        bone.rotation_quaternion = (1.0, *rng.normal(size=3) * 0.3)
    bpy.context.view_layer.update()
    before = {bone.name: np.array(bone.head) for bone in avatar.pose.bones}
    paste_flipped()
    for name, head in before.items():
        close = 6e-3 if any(part in name for part in LEGS) else 1e-5
        other = avatar.pose.bones[bpy.utils.flip_name(name)]
        np.testing.assert_allclose(other.head, head * (-1.0, 1.0, 1.0), atol=close, err_msg=name)


def change(bone: Any) -> Any:
    """Return what a bone's channels do, in the axes of the armature, (4, 4)."""
    axes = np.array(bone.bone.matrix_local)
    axes[:3, 3] = 0.0
    return axes @ np.array(bone.matrix_basis) @ axes.T


@pytest.mark.parametrize("name", ["mElbowLeft", "mHandIndex1Right", "L_HAND", "mWing1Left", "mKneeLeft"])
def test_a_mirrored_pose_moves_the_partner_alike(name: str) -> None:
    import bpy

    avatar = added()
    avatar.pose.use_mirror_x = True
    pose_all()
    for posed in avatar.pose.bones:
        chosen = posed if hasattr(posed, "select") else posed.bone  # 5.0 moved it
        chosen.select = posed.name == name
    avatar.data.bones.active = avatar.data.bones[name]
    assert bpy.ops.transform.rotate(value=0.5, orient_axis="X", orient_type="GLOBAL") == {"FINISHED"}
    assert bpy.ops.transform.rotate(value=0.4, orient_axis="Z", orient_type="GLOBAL") == {"FINISHED"}
    bpy.context.view_layer.update()
    one, other = (avatar.pose.bones[which] for which in (name, bpy.utils.flip_name(name)))
    assert one.rotation_quaternion.angle > 0.3
    close = 0.005 if "Knee" in name else 1e-5
    np.testing.assert_allclose(mirrored(one.matrix), other.matrix, atol=close)


def test_groups_and_volumes() -> None:
    avatar = added()
    table = avatar_table.rows()
    groups = {group.name: {bone.name for bone in group.bones} for group in avatar.data.collections}
    assert groups["Collision Volumes"] == {name for name in table if table[name]["kind"] == "collision_volume"}
    assert groups["Hand"] == {name for name in table if table[name]["group"] == "Hand"}
    assert sum(len(members) for members in groups.values()) == len(avatar.data.bones)
    colored = {bone.name for bone in avatar.data.bones if bone.color.palette != "DEFAULT"}
    assert colored == groups["Collision Volumes"]


def test_add_is_at_the_cursor_selected_and_leaves_nothing_when_it_fails() -> None:
    import bpy
    from meshferry.io_formats.core.errors import MeshferryError

    other = bpy.data.objects.new("Other", None)
    bpy.context.scene.collection.objects.link(other)
    other.select_set(True)
    bpy.context.view_layer.objects.active = other
    home = bpy.data.collections.new("Home")
    bpy.context.scene.collection.children.link(home)
    bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection.children["Home"]
    bpy.context.scene.cursor.location = (1.0, 2.0, 3.0)
    far = avatar_table.skeleton()
    far.joints[5] = replace(far.joints[5], translation=(1e30, 0.0, 0.0))
    with pytest.raises(MeshferryError):
        added(far)
    assert not bpy.data.armatures and list(bpy.data.objects) == [other]
    assert bpy.context.view_layer.objects.active == other and other.select_get()
    avatar = added()
    assert list(avatar.location) == [1.0, 2.0, 3.0]
    assert list(home.objects) == [avatar] and avatar.users_collection == (home,)
    assert bpy.context.selected_objects == [avatar] and bpy.context.object == avatar
    assert avatar.name == "Avatar" and bpy.context.mode == "OBJECT"
    bpy.context.view_layer.layer_collection.children["Home"].exclude = True
    second = added()
    assert second.select_get() and second.name == "Avatar.001"
