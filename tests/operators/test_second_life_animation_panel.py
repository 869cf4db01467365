"""The section "Animation" of the sidebar: settings of the action, priorities, loop check, checks."""

from __future__ import annotations

import math

import pytest
from meshferry.io_formats.registry import SECOND_LIFE_ANIMATION

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def avatar(clean_blender):
    """Add the avatar with an action of one second at 24 fps that turns the head by 30 degrees and moves the pelvis."""
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    rig.animation_data_create()
    rig.animation_data.action = bpy.data.actions.new("turn")
    for frame, angle, x in ((1, 0.0, 0.0), (13, math.radians(30), 0.0), (25, math.radians(30), 0.05)):
        for bone in ("mHead", "mPelvis"):
            rig.pose.bones[bone].rotation_mode = "QUATERNION"
        rig.pose.bones["mHead"].rotation_quaternion = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
        rig.pose.bones["mHead"].keyframe_insert("rotation_quaternion", frame=frame)
        rig.pose.bones["mPelvis"].location = (x, 0, 0)
        rig.pose.bones["mPelvis"].keyframe_insert("location", frame=frame)
    return rig


def exported(bpy, tmp_path):
    path = tmp_path / "turn.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    return SECOND_LIFE_ANIMATION.read(path.read_bytes())


def test_settings_are_exported(clean_blender, avatar, tmp_path):
    bpy = clean_blender
    kept = avatar.animation_data.action.meshferry.playback
    assert bpy.ops.action.second_life_playback_add() == {"FINISHED"}
    assert (kept.use_loop, kept.loop_out, kept.priority) == (False, 1.0, 3)
    for frame, point in ((7, "IN"), (19, "OUT")):
        bpy.context.scene.frame_set(frame)
        bpy.ops.action.second_life_loop_point(point=point)
    bpy.ops.action.second_life_hand_pose(hand_pose="3")
    bpy.ops.action.second_life_emote(emote="express_smile")
    kept.priority, kept.ease_in, kept.ease_out = 5, 0.25, 0.5
    document = exported(bpy, tmp_path)
    assert (document.loop, document.loop_in, document.loop_out) == (1, 0.25, 0.75)
    assert (document.hand_pose, document.emote, document.base_priority) == (3, b"express_smile", 5)
    assert (document.ease_in, document.ease_out) == (0.25, 0.5)


@pytest.mark.parametrize("is_known", [False, True])
def test_markers_are_the_loop(clean_blender, avatar, tmp_path, is_known):
    action = avatar.animation_data.action
    if is_known:
        clean_blender.ops.action.second_life_playback_add()
        action.meshferry.playback.use_loop = True
    for name, frame in (("Loop In", 13), ("Loop Out", 25)):
        action.pose_markers.new(name).frame = frame
    document = exported(clean_blender, tmp_path)
    assert (document.loop, document.loop_in, document.loop_out) == (1, 0.5, 1.0)


def test_priorities_of_bones(clean_blender, avatar, tmp_path):
    """Priorities are exported, shown as colours, and the old colours come back."""
    bpy = clean_blender
    avatar.pose.bones["mHead"].color.palette = "THEME11"
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    bones = avatar.pose.bones
    target = bones["mHead"].bone if hasattr(bones["mHead"].bone, "select") else bones["mHead"]
    target.select = True
    assert bpy.ops.pose.second_life_priority(priority="6") == {"FINISHED"}
    document = exported(bpy, tmp_path)
    assert {joint.name: joint.priority for joint in document.joints} == {b"mHead": 6, b"mPelvis": 3}
    bpy.ops.pose.second_life_priority_colors()
    assert bones["mHead"].color.palette == "THEME06"
    assert bones["mPelvis"].color.palette == "THEME09"
    assert bones["mTorso"].color.palette == "DEFAULT"
    bpy.ops.pose.second_life_priority(priority="2")
    assert bones["mHead"].color.palette == "THEME03"
    bpy.ops.pose.second_life_priority_colors()
    assert (bones["mHead"].color.palette, bones["mPelvis"].color.palette) == ("THEME11", "DEFAULT")
    bpy.ops.pose.second_life_priority(priority="ACTION")
    assert not avatar.animation_data.action.meshferry.playback.joint_priorities


def test_loop_check_and_preview(clean_blender, avatar):
    bpy = clean_blender
    assert bpy.ops.action.second_life_loop_check() == {"FINISHED"}
    shown = bpy.context.window_manager.meshferry_loop_check
    assert {joint.name: joint.is_closed for joint in shown.joints} == {"mHead": False, "mPelvis": False}
    jumps = {joint.name: (joint.degrees, joint.millimetres) for joint in shown.joints}
    assert jumps["mHead"] == (pytest.approx(30, abs=0.2), 0)
    assert jumps["mPelvis"][1] == pytest.approx(50, abs=1)
    before = bpy.context.scene.use_preview_range
    bpy.ops.action.second_life_loop_preview()
    scene = bpy.context.scene
    assert (scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end) == (True, 1, 25)
    bpy.ops.action.second_life_loop_preview()
    assert scene.use_preview_range == before
    head = [joint.name for joint in shown.joints].index("mHead")
    bpy.ops.pose.second_life_jump_select(index=head)
    assert [bone.name for bone in bpy.context.selected_pose_bones] == ["mHead"]
    assert scene.frame_current == 25


def test_a_closed_loop(clean_blender, avatar):
    bpy = clean_blender
    bpy.ops.action.second_life_playback_add()
    kept = avatar.animation_data.action.meshferry.playback
    kept.use_loop, kept.loop_in, kept.loop_out = True, 0.5, 0.75
    bpy.ops.action.second_life_loop_check()
    shown = bpy.context.window_manager.meshferry_loop_check
    assert {joint.name for joint in shown.joints if joint.is_closed} == {"mHead"}


def test_checks_select_bones_and_frames(clean_blender, avatar):
    bpy = clean_blender
    action = avatar.animation_data.action
    action.use_frame_range = action.use_cyclic = True
    action.frame_start, action.frame_end = 1, 25
    bpy.context.scene.frame_set(1)
    avatar.pose.bones["mPelvis"].location = (9, 0, 0)
    avatar.pose.bones["mPelvis"].keyframe_insert("location", frame=19)
    assert bpy.ops.export_scene.second_life_anim_check() == {"FINISHED"}
    findings = bpy.context.window_manager.meshferry_check.findings
    kinds = {finding.kind: number for number, finding in enumerate(findings)}
    assert {"bones", "milliseconds"} <= set(kinds)
    bpy.ops.object.meshferry_finding_select(index=kinds["bones"])
    assert {bone.name for bone in bpy.context.selected_pose_bones} == {"mHead", "mPelvis"}
    bpy.ops.object.meshferry_finding_select(index=kinds["milliseconds"])
    assert 13 < bpy.context.scene.frame_current <= 19
