"""The section "Animation" of the sidebar: settings of the action, priorities, loop check, checks."""

from __future__ import annotations

import math

import pytest
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION

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


@pytest.mark.parametrize(
    ("operator", "options", "field", "value"),
    [
        ("second_life_hand_pose", {"hand_pose": "3"}, "hand_pose", 3),
        ("second_life_emote", {"emote": "express_smile"}, "emote", b"express_smile"),
        ("second_life_loop_point", {"point": "IN"}, "loop_in", 0.5),
    ],
)
def test_the_first_setting_keeps_the_loop(clean_blender, avatar, tmp_path, operator, options, field, value):
    action = avatar.animation_data.action
    action.use_frame_range = action.use_cyclic = True
    action.frame_start, action.frame_end = 1, 25
    clean_blender.context.scene.frame_set(13)
    assert getattr(clean_blender.ops.action, operator)(**options) == {"FINISHED"}
    document = exported(clean_blender, tmp_path)
    assert (document.loop, document.loop_out, getattr(document, field)) == (1, 1.0, value)


@pytest.mark.parametrize("frames", [(13, 25), (25, 13)])
@pytest.mark.parametrize("is_known", [False, True])
def test_markers_are_the_loop(clean_blender, avatar, tmp_path, is_known, frames):
    action = avatar.animation_data.action
    if is_known:
        clean_blender.ops.action.second_life_playback_add()
        action.meshferry.playback.use_loop = True
    for name, frame in zip(("Loop In", "Loop Out"), frames, strict=True):
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
    assert avatar.meshferry.bone_palettes == ""
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
    assert (scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end) == (True, 1, 24)
    bpy.ops.action.second_life_loop_preview()
    assert scene.use_preview_range == before
    head = [joint.name for joint in shown.joints].index("mHead")
    bpy.ops.pose.second_life_jump_select(index=head)
    assert [bone.name for bone in bpy.context.selected_pose_bones] == ["mHead"]
    assert scene.frame_current == 25


def test_colors_of_odd_bones_come_back_without_an_action(clean_blender, avatar):
    bpy = clean_blender
    bpy.ops.object.mode_set(mode="EDIT")
    avatar.data.edit_bones.new('odd"name').tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    bone = avatar.pose.bones['odd"name']
    bone.keyframe_insert("location", frame=1)
    bone.color.palette = "THEME11"
    assert bpy.ops.pose.second_life_priority_colors() == {"FINISHED"}
    assert bone.color.palette == "THEME09"
    avatar.animation_data.action = None
    assert bpy.ops.pose.second_life_priority_colors() == {"FINISHED"}
    assert (bone.color.palette, avatar.meshferry.bone_palettes) == ("THEME11", "")
    assert not bpy.ops.pose.second_life_priority_colors.poll()


def test_the_loop_starts_with_what_plays_first(clean_blender, avatar):
    """A strip that starts before the active action is part of the animation."""
    early = avatar.animation_data.action.copy()
    avatar.animation_data.nla_tracks.new().strips.new("early", -11, early)
    clean_blender.ops.action.second_life_loop_check()
    shown = clean_blender.context.window_manager.meshferry_loop_check
    assert (shown.frame_in, shown.frame_out) == (-11, 25)


def test_a_closed_loop(clean_blender, avatar, capfd, monkeypatch):
    from meshferry.io_formats.second_life.animation import keys

    bpy = clean_blender
    bpy.ops.action.second_life_playback_add()
    kept = avatar.animation_data.action.meshferry.playback
    kept.use_loop, kept.loop_in, kept.loop_out = True, 0.5, 0.75
    bpy.ops.action.second_life_loop_check()
    shown = bpy.context.window_manager.meshferry_loop_check
    assert {joint.name for joint in shown.joints if joint.is_closed} == {"mHead"}
    monkeypatch.setattr(keys, "loop_jumps", lambda _document: [])
    bpy.ops.action.second_life_loop_check()
    assert "turn: the loop is closed: no bone jumps from its end to its start" in capfd.readouterr().out


def selected_findings(bpy, rig):
    """Run the check and select each finding; return the selected bones, or the frame gone to, by its text."""
    assert bpy.ops.export_scene.second_life_anim_check() == {"FINISHED"}
    found = {}
    for number, finding in enumerate(bpy.context.window_manager.meshferry_check.findings):
        bpy.context.scene.frame_set(-100)
        assert bpy.ops.object.meshferry_finding_select(index=number) == {"FINISHED"}, finding.message
        frame = bpy.context.scene.frame_current
        found[finding.message] = frame if frame > -100 else {bone.name for bone in bpy.context.selected_pose_bones}
    return found


def of_text(found, text):
    (value,) = [value for message, value in found.items() if text in message]
    return value


def test_checks_select_bones_and_frames(clean_blender, avatar):
    bpy = clean_blender
    action = avatar.animation_data.action
    bpy.ops.action.second_life_playback_add()
    kept = action.meshferry.playback
    kept.use_loop, kept.loop_out, kept.priority = True, 0.75, 5
    bpy.ops.object.mode_set(mode="EDIT")
    avatar.data.edit_bones["mElbowLeft"].head.z += 0.05
    avatar.data.edit_bones.new("mWristleft").tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    posed = avatar.pose.bones
    for name in ("mHandIndex1Left", "mElbowRight"):
        posed[name].rotation_mode = "XYZ"
    for frame, angle in ((1, 0), (24, 0), (25, math.radians(100))):
        posed["mHandIndex1Left"].rotation_euler = (angle, 0, 0)
        posed["mHandIndex1Left"].keyframe_insert("rotation_euler", frame=frame)
    posed["mWristleft"].keyframe_insert("location", frame=1)
    posed["mElbowRight"].scale = (2, 2, 2)
    posed["mElbowRight"].location = (0.1, 0, 0)
    for channel in ("scale", "location"):
        posed["mElbowRight"].keyframe_insert(channel, frame=1)
    found = selected_findings(bpy, avatar)
    assert of_text(found, "the loop jumps by up to 30.0° and 25 mm") == {"mHead", "mPelvis"}
    assert of_text(found, "elsewhere than those of the standard avatar") >= {"mElbowLeft"}
    assert of_text(found, "stays posed") == {"mHandIndex1Left"}
    assert of_text(found, "turns by 100° within a frame") == 24
    assert of_text(found, "the loop ends at 0.75 s") == 19
    assert of_text(found, "is 5, above") == {"mHead", "mPelvis", "mHandIndex1Left", "mElbowRight"}
    assert of_text(found, "no joint of the avatar") == of_text(found, "almost the name") == {"mWristleft"}
    assert of_text(found, "is scaled") == of_text(found, "moves from its place") == {"mElbowRight"}


def test_refusals_select_bones_and_frames(clean_blender, avatar):
    bpy = clean_blender
    bpy.context.scene.frame_set(1)
    avatar.pose.bones["mPelvis"].location = (9, 0, 0)
    avatar.pose.bones["mPelvis"].keyframe_insert("location", frame=19)
    ((text, frame),) = selected_findings(bpy, avatar).items()
    assert "'mPelvis' is more than 5 m from its place at" in text and 13 < frame <= 19
    action = avatar.animation_data.action
    action.use_frame_range, action.frame_start, action.frame_end = True, 1, 24 * 70
    ((text, frame),) = selected_findings(bpy, avatar).items()
    assert "is 70.0 s long" in text and frame == 1 + 24 * 60
    avatar.pose.bones["mHead"].constraints.new("LIMIT_ROTATION")
    action.frame_end = 24 * 86400  # setting each frame of a day would take a day
    assert "is 86400.0 s long" in next(iter(selected_findings(bpy, avatar)))
