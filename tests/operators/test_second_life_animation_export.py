"""Export of Second Life animations: what is chosen, control rigs, poses, reports."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from meshferry.io_formats.registry import SECOND_LIFE_ANIMATION, SECOND_LIFE_BVH
from meshferry.io_formats.second_life.animation import codes

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def avatar(clean_blender):
    """Add the avatar with an action of one second in which the left elbow bends by 60 degrees about Blender's Z."""
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    bend(rig, "wave", "mElbowLeft", 60)
    return rig


def bend(rig, name, bone, degrees):
    import bpy

    rig.animation_data_create()
    rig.animation_data.action = bpy.data.actions.new(name)
    rig.animation_data.action.use_fake_user = True
    posed = rig.pose.bones[bone]
    posed.rotation_mode = "QUATERNION"
    axes = posed.bone.matrix_local.to_3x3()
    x, y, z = axes.transposed() @ (axes @ posed.bone.matrix_local.to_3x3().transposed()).col[2]
    for frame, angle in ((1, 0.0), (25, math.radians(degrees))):
        half = math.sin(angle / 2)
        posed.rotation_quaternion = (math.cos(angle / 2), half * x, half * y, half * z)
        posed.keyframe_insert("rotation_quaternion", frame=frame)


def written(path: Path):
    return SECOND_LIFE_ANIMATION.read(path.read_bytes())


def test_the_active_action_and_its_report(clean_blender, avatar, tmp_path, capfd):
    path = tmp_path / "wave.anim"
    assert clean_blender.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    document = written(path)
    (joint,) = document.joints
    assert (joint.name, document.duration) == (b"mElbowLeft", 1.0)
    last = codes.rotations_of(joint.rotation[-1:, 1:])[0]
    assert np.allclose(np.abs(last), (math.cos(math.radians(30)), 0, 0, 0.5), atol=1e-3)
    said = capfd.readouterr().out
    assert f"25 keys reduced to {len(joint.rotation)} within 0.1° and 1 mm, {path.stat().st_size:,} bytes" in said


def test_chosen_actions(clean_blender, avatar, tmp_path):
    bend(avatar, "nod", "mHead", 10)
    bend(avatar, "unwanted", "mHead", 20)
    clean_blender.data.actions["unwanted"].meshferry.use_export = False
    clean_blender.ops.export_scene.second_life_anim(filepath=str(tmp_path / "any.anim"), clips="ACTIONS")
    assert {path.name for path in tmp_path.iterdir()} == {"nod.anim", "wave.anim"}


@pytest.mark.parametrize("has_action", [True, False])
def test_a_static_pose(clean_blender, avatar, tmp_path, has_action):
    if has_action:
        clean_blender.context.scene.frame_set(13)
    else:
        avatar.animation_data_clear()
        clean_blender.context.view_layer.objects.active = avatar
    path = tmp_path / "pose.anim"
    clean_blender.ops.export_scene.second_life_anim(filepath=str(path), clips="POSE")
    document = written(path)
    joints = {joint.name: joint for joint in document.joints}
    assert {b"mPelvis", b"mElbowLeft", b"mKneeRight"} <= set(joints)
    assert b"mFaceJaw" not in joints
    assert b"mHandIndex1Left" not in joints
    assert all(len(joint.rotation) == 1 for joint in document.joints)
    assert document.loop == 1
    assert document.loop_out == document.duration > 0
    (rotation,) = codes.rotations_of(joints[b"mElbowLeft"].rotation[:, 1:])
    assert (2 * math.acos(rotation[0]) > 0.2) == has_action or not has_action


def test_a_cyclic_action_loops_and_keeps_its_last_pose(clean_blender, avatar, tmp_path):
    action = avatar.animation_data.action
    action.use_frame_range = action.use_cyclic = True
    action.frame_start, action.frame_end = 1, 25
    path = tmp_path / "wave.anim"
    clean_blender.ops.export_scene.second_life_anim(filepath=str(path))
    document = written(path)
    assert (document.loop, document.loop_in, document.loop_out, document.duration) == (1, 0, 1, 1)


def test_a_control_rig_moves_the_joints(clean_blender, avatar, tmp_path):
    """Joints that follow bones without keys of their own, by inverse kinematics."""
    bpy = clean_blender
    avatar.animation_data_clear()
    bpy.ops.object.mode_set(mode="EDIT")
    control = avatar.data.edit_bones.new("HandControl")
    control.head = avatar.data.edit_bones["mWristLeft"].head
    control.tail = control.head + avatar.data.edit_bones["mWristLeft"].vector
    control.use_deform = False
    bpy.ops.object.mode_set(mode="OBJECT")
    follow = avatar.pose.bones["mElbowLeft"].constraints.new("IK")
    follow.target, follow.subtarget, follow.chain_count = avatar, "HandControl", 2
    posed = avatar.pose.bones["HandControl"]
    for frame, z in ((1, 0.0), (25, -0.2)):
        posed.location = posed.bone.matrix_local.to_3x3().transposed() @ posed.bone.head_local.__class__((0, 0, z))
        posed.keyframe_insert("location", frame=frame)
    path = tmp_path / "reach.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    document = written(path)
    assert {joint.name for joint in document.joints} == {b"mShoulderLeft", b"mElbowLeft"}
    assert all(len(joint.rotation) > 1 for joint in document.joints)


def test_bvh(clean_blender, avatar, tmp_path, capfd):
    avatar.animation_data.action.meshferry.playback.is_known = True
    path = tmp_path / "wave.bvh"
    assert clean_blender.ops.export_scene.second_life_bvh(filepath=str(path)) == {"FINISHED"}
    document = SECOND_LIFE_BVH.read(path.read_bytes())
    assert len(document.frames) == 26
    assert capfd.readouterr().out.count("BVH holds no priorities") == 1


def test_positions_of_a_larger_avatar_come_back(clean_blender, samples, tmp_path):
    bpy = clean_blender
    from mathutils import Matrix

    bpy.ops.object.second_life_avatar_add()
    bpy.context.object.data.transform(Matrix.Scale(2, 4))
    source = samples / "secondlife_animation" / "opensim_1a2bd58e.anim"
    bpy.ops.import_scene.second_life(filepath=str(source))
    path = tmp_path / "back.anim"
    bpy.ops.export_scene.second_life_anim(filepath=str(path))
    assert path.read_bytes() == source.read_bytes()


def test_what_is_lost_or_repaired(clean_blender, avatar, tmp_path, capfd):
    bpy = clean_blender
    kept = avatar.animation_data.action.meshferry.playback
    kept.is_known, kept.use_loop, kept.ease_in, kept.ease_out = True, False, 1.5, 0.5
    kept.loop_in, kept.loop_out = 4.0, 0.5
    bpy.ops.object.mode_set(mode="EDIT")
    bone = avatar.data.edit_bones.new("mShoulderleft")
    bone.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    for name, channel in (("mShoulderleft", "location"), ("mElbowLeft", "scale")):
        avatar.pose.bones[name].location = avatar.pose.bones[name].scale = (2, 2, 2)
        avatar.pose.bones[name].keyframe_insert(channel, frame=1)
    path = tmp_path / "wave.anim"
    bpy.ops.export_scene.second_life_anim(filepath=str(path))
    document = written(path)
    assert (document.loop_in, document.loop_out) == (0.5, 1.0)
    assert (document.ease_in, document.ease_out) == (0.75, 0.25)
    said = capfd.readouterr().out
    assert "'mShoulderleft' has almost the name of the joint 'mShoulderLeft'" in said
    assert "1 bone is scaled, which an animation cannot hold: 'mElbowLeft'" in said


ODD_NAMES = {
    "mPelvis": "Becken",
    "mTorso": "Bauch",
    "mChest": "Brust",
    "mHead": "Kopf",
    "mShoulderLeft": "Oberarm.L",
    "mElbowLeft": "Unterarm.L",
    "mWristLeft": "Hand.L",
    "mShoulderRight": "Oberarm.R",
    "mElbowRight": "Unterarm.R",
    "mWristRight": "Hand.R",
}


def test_a_rig_with_odd_names_and_a_table_of_its_own(clean_blender, avatar, tmp_path):
    """The table of Retarget Names is used, also after the file was saved and opened again."""
    bpy = clean_blender
    bpy.ops.export_scene.second_life_anim(filepath=str(tmp_path / "wave.anim"))
    for number, bone in enumerate(avatar.data.bones):
        bone.use_deform = bone.name in ODD_NAMES
        bone.name = ODD_NAMES.get(bone.name, f"Knochen {number}")
    with pytest.raises(RuntimeError, match="animates no joint of the avatar"):
        bpy.ops.export_scene.second_life_anim(filepath=str(tmp_path / "none.anim"))
    bpy.ops.object.second_life_bone_table_fill()
    for joint, bone in ODD_NAMES.items():
        bpy.ops.object.second_life_bone_joint(bone=bone, joint=joint)
    blend = str(tmp_path / "odd.blend")
    bpy.ops.wm.save_as_mainfile(filepath=blend)
    bpy.ops.wm.open_mainfile(filepath=blend)
    path = tmp_path / "odd.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    (wanted,), (joint,) = written(tmp_path / "wave.anim").joints, written(path).joints
    assert joint.name == wanted.name
    last, wanted_last = (codes.rotations_of(keys.rotation[-1:, 1:])[0] for keys in (joint, wanted))
    assert 2 * math.degrees(math.acos(min(1.0, abs(float(last @ wanted_last))))) < 0.3


@pytest.mark.slow
def test_limbs_of_a_rigify_rig(clean_blender, tmp_path):
    """Rigify's generated rig, out of reach of its hands so that it stretches, and the avatar with the export of it."""
    bpy = clean_blender
    from mathutils import Vector

    bpy.ops.preferences.addon_enable(module="rigify")
    try:
        bpy.ops.object.armature_human_metarig_add()
        bpy.ops.pose.rigify_generate()
    finally:
        bpy.ops.preferences.addon_disable(module="rigify")
    rig = bpy.context.object
    rig.rotation_euler = (0, 0, 0.7)
    rig.animation_data_create()
    rig.animation_data.action = bpy.data.actions.new("reach")
    moved = {"hand_ik.L": (0.1, -0.3, 0.35), "hand_ik.R": (-0.2, -0.2, -0.3), "foot_ik.L": (0.1, -0.3, 0.25)}
    for frame, share in ((1, 0), (9, 1)):
        for name, offset in moved.items():
            bone = rig.pose.bones[name]
            bone.location = bone.bone.matrix_local.to_3x3().transposed() @ Vector(offset) * share
            bone.keyframe_insert("location", frame=frame)
    path = tmp_path / "reach.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    bpy.ops.import_scene.second_life(filepath=str(path))
    chains = (
        (("upper_arm", "Shoulder"), ("forearm", "Elbow"), ("hand", "Wrist")),
        (("thigh", "Hip"), ("shin", "Knee"), ("foot", "Ankle")),
        (("f_index.01", "HandIndex1"), ("f_index.02", "HandIndex2")),
    )
    for frame in (1, 5, 9):
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        theirs, ours = (item.evaluated_get(graph).pose.bones for item in (rig, avatar))
        for chain in chains:
            for (bone, joint), (next_bone, next_joint) in itertools.pairwise(chain):
                for end, side in (("L", "Left"), ("R", "Right")):
                    wanted = theirs[f"DEF-{next_bone}.{end}"].head - theirs[f"DEF-{bone}.{end}"].head
                    found = ours[f"m{next_joint}{side}"].head - ours[f"m{joint}{side}"].head
                    assert math.degrees(wanted.angle(found)) < 0.3, (frame, joint, side)
