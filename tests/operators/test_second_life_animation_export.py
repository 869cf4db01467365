"""Export of Second Life animations: what is chosen, control rigs, poses, reports."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import second_life_player as player
from meshferry.io_formats.second_life.animation import codec
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from meshferry.operators.families.second_life.animation import draw_animation
from second_life_models import Drawn, panel_context
from test_second_life_retarget import mixamo

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
    last = codec.rotations_of(joint.rotation[-1:, 1:])[0]
    assert np.allclose(np.abs(last), (math.cos(math.radians(30)), 0, 0, 0.5), atol=1e-3)
    said = capfd.readouterr().out
    assert f"25 keys reduced to {len(joint.rotation)} within 0.1° and 1 mm, {path.stat().st_size:,} bytes" in said


@pytest.mark.parametrize("axes", ["AVATAR", ""])
def test_actions_for_other_axes_are_named(clean_blender, avatar, tmp_path, capfd, axes):
    kept = avatar.animation_data.action.meshferry
    kept.clip_name, kept.bone_axes = "wave", axes
    layout = Drawn()
    draw_animation(layout, panel_context(clean_blender), ())
    assert ("Made for bones with other" in layout.lines) == (not axes)
    clean_blender.ops.export_scene.second_life_anim(filepath=str(tmp_path / "wave.anim"))
    text = "action 'wave' was made for bones with other axes, so poses differ; import its file again"
    assert (text in capfd.readouterr().out) == (not axes)


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
    (rotation,) = codec.rotations_of(joints[b"mElbowLeft"].rotation[:, 1:])
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


def test_an_fbx_of_mixamo(clean_blender, tmp_path, capfd):
    """Such files have constant keys of the armature object, and bones at the ends of chains."""
    bpy = clean_blender
    rig = mixamo(bpy)
    rig.animation_data_create()
    rig.animation_data.action = bpy.data.actions.new("dance")
    for frame, angle in ((1, 0.0), (20, 0.6)):
        rig.pose.bones["mixamorig:LeftArm"].rotation_quaternion = (math.cos(angle), math.sin(angle), 0, 0)
        for bone in rig.pose.bones:
            bone.keyframe_insert("rotation_quaternion", frame=frame)
        for channel in ("location", "rotation_euler", "scale"):
            rig.keyframe_insert(channel, frame=frame)
    path = tmp_path / "dance.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    assert "Warning" not in capfd.readouterr().out
    rig.location.x += 1
    rig.keyframe_insert("location", frame=20)
    bpy.ops.export_scene.second_life_anim(filepath=str(path))
    assert "the armature object itself is animated" in capfd.readouterr().out


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
    assert (document.loop_in, document.loop_out) == (0.0, 1.0)
    assert (document.ease_in, document.ease_out) == (0.75, 0.25)
    said = capfd.readouterr().out
    assert "'mShoulderleft' has almost the name of the joint 'mShoulderLeft'" in said
    assert "1 bone is scaled, which an animation cannot hold: 'mElbowLeft'" in said


def strip_of(rig, action, start, **settings):
    strip = rig.animation_data.nla_tracks.new().strips.new(action.name, start, action)
    for name, value in settings.items():
        setattr(strip, name, value)
    return strip


@pytest.mark.parametrize(
    ("settings", "duration", "loop"),
    [({}, 1.0, (0.25, 0.5)), ({"scale": 2.0}, 2.0, (0.5, 1.0)), ({"use_reverse": True}, 1.0, (0.5, 0.75))],
)
def test_strips_have_the_settings_of_their_actions(clean_blender, avatar, tmp_path, settings, duration, loop):
    bpy = clean_blender
    wave = avatar.animation_data.action
    kept = wave.meshferry.playback
    kept.is_known, kept.use_loop, kept.loop_in, kept.loop_out, kept.priority = True, True, 0.25, 0.5, 5
    avatar.pose.bones["mHead"].keyframe_insert("rotation_quaternion", frame=1)
    for curve in curves_of(wave):
        curve.mute = "mHead" in curve.data_path
    bend(avatar, "nod", "mHead", 10)
    strip_of(avatar, wave, 10, **settings)
    path = tmp_path / "wave.anim"
    bpy.ops.export_scene.second_life_anim(filepath=str(path), clips="NLA")
    document = written(path)
    assert [joint.name for joint in document.joints] == [b"mElbowLeft"]  # the curves of the head are muted
    assert (document.base_priority, document.loop, document.duration) == (5, 1, duration)
    assert (document.loop_in, document.loop_out) == pytest.approx(loop)


def test_strips_of_imported_actions_come_back(clean_blender, tmp_path):
    bpy = clean_blender
    source = Path(__file__).parents[2] / "examples" / "dance.anim"
    bpy.ops.import_scene.second_life(filepath=str(source))
    rig = bpy.context.object
    strip_of(rig, rig.animation_data.action, 40)
    rig.animation_data.action = None
    bpy.ops.export_scene.second_life_anim(filepath=str(tmp_path / "dance.anim"), clips="NLA")
    assert (tmp_path / "dance.anim").read_bytes() == source.read_bytes()


def test_the_loop_of_the_scene_range_is_that_of_the_action(clean_blender, avatar, tmp_path):
    bpy = clean_blender
    kept = avatar.animation_data.action.meshferry.playback
    kept.is_known, kept.use_loop, kept.loop_in, kept.loop_out = True, True, 0.25, 0.75
    for curve in curves_of(avatar.animation_data.action):
        for key in curve.keyframe_points:
            key.co_ui.x += 24
    bpy.context.scene.frame_end = 73
    path = tmp_path / "wave.anim"
    bpy.ops.export_scene.second_life_anim(filepath=str(path), clips="SCENE")
    document = written(path)
    assert (document.loop_in, document.loop_out, document.duration) == (1.25, 1.75, 3.0)


@pytest.mark.parametrize("clips", ["ACTIVE", "NLA"])
def test_one_key_is_a_pose(clean_blender, avatar, tmp_path, clips):
    avatar.animation_data.action = clean_blender.data.actions.new("one")
    avatar.pose.bones["mHead"].keyframe_insert("rotation_quaternion", frame=-7.5)
    if clips == "NLA":
        strip_of(avatar, avatar.animation_data.action, 3)
    path = tmp_path / "one.anim"
    clean_blender.ops.export_scene.second_life_anim(filepath=str(path), clips=clips)
    document = written(path)
    assert document.loop == 1
    assert document.duration == document.loop_out == pytest.approx(1 / 24)


def test_only_moved_joints_are_sampled(clean_blender, avatar, tmp_path):
    """A constraint makes Blender evaluate the pose in single precision; joints at the head of their parent stay out."""
    limit = avatar.pose.bones["mWristLeft"].constraints.new("LIMIT_ROTATION")
    limit.influence = 0.0
    bend(avatar, "nod", "mHead", 10)
    path = tmp_path / "nod.anim"
    clean_blender.ops.export_scene.second_life_anim(filepath=str(path))
    assert {joint.name for joint in written(path).joints} == {b"mHead", b"mElbowLeft", b"mWristLeft"}


def test_an_unkeyed_pose_is_exported_and_kept(clean_blender, avatar, tmp_path):
    bpy = clean_blender
    bpy.context.scene.frame_set(25)
    posed = avatar.pose.bones["mElbowLeft"]
    posed.rotation_quaternion = (0.8, 0.6, 0, 0)
    bpy.context.view_layer.update()
    path = tmp_path / "pose.anim"
    bpy.ops.export_scene.second_life_anim(filepath=str(path), clips="POSE")
    (codes_of,) = (joint.rotation for joint in written(path).joints if joint.name == b"mElbowLeft")
    assert np.allclose(codec.rotations_of(codes_of[:, 1:])[0, 0], 0.8, atol=1e-4)
    assert tuple(posed.rotation_quaternion) == pytest.approx((0.8, 0.6, 0, 0))


@pytest.mark.parametrize("has_action", [True, False])
def test_poses_do_not_replace_the_animation(clean_blender, avatar, has_action):
    from meshferry.blender_data.export_options import ExportOptions
    from meshferry.blender_data.exporting.joint_sampling import clips_by_armature

    bpy = clean_blender
    bpy.context.scene.frame_set(13)
    if not has_action:
        avatar.animation_data_clear()
    options = ExportOptions.of({"clips": "POSE"})
    ((pose,),) = clips_by_armature(bpy.context.scene, [avatar], options)
    assert pose.name == ("wave_pose_13" if has_action else "Avatar_pose_13")


def test_a_linked_armature(clean_blender, avatar, tmp_path):
    bpy = clean_blender
    strip_of(avatar, avatar.animation_data.action, 1)
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(library), link=True) as (_there, linked):
        linked.objects = ["Avatar"]
    bpy.context.scene.collection.objects.link(linked.objects[0])
    bpy.context.view_layer.objects.active = linked.objects[0]
    for clips in ("NLA", "ACTIONS"):
        path = tmp_path / f"{clips}.anim"
        assert bpy.ops.export_scene.second_life_anim(filepath=str(path), clips=clips) == {"FINISHED"}
        assert path.exists()
    bpy.ops.action.second_life_loop_check()
    assert bpy.ops.pose.second_life_jump_select(index=0) == {"FINISHED"}
    assert not bpy.ops.pose.second_life_priority_colors.poll()


def spun(rig, frames):
    """Key all joints in each frame: turns of up to 200 degrees about axes of their own, at many speeds."""
    import bpy

    rng = np.random.default_rng(7)
    rig.animation_data_create()
    rig.animation_data.action = bpy.data.actions.new("spin")
    for number, bone in enumerate(joints_of(rig)):
        bone.rotation_mode = "QUATERNION"
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        half = np.radians(rng.uniform(20, 200)) / 2 * np.sin(np.arange(frames) * rng.uniform(0.02, 0.5))
        values = np.column_stack((np.cos(half), np.sin(half)[:, None] * axis))
        bone.keyframe_insert("rotation_quaternion", frame=1)
        for curve in curves_of(rig.animation_data.action)[4 * number : 4 * number + 4]:
            curve.keyframe_points.add(frames - 1)
            points = np.column_stack((np.arange(1, frames + 1), values[:, curve.array_index])).astype(np.float32)
            curve.keyframe_points.foreach_set("co", points.ravel())
            curve.update()


def joints_of(rig):
    """Return the bones that are not collision volumes, which have rotations at rest."""
    return [bone for bone in rig.pose.bones if bone.name.startswith("m")]


def curves_of(action):
    return list(action.fcurves if hasattr(action, "fcurves") else action.layers[0].strips[0].channelbags[0].fcurves)


@pytest.mark.slow
def test_joints_stay_within_the_reported_tolerance(clean_blender, tmp_path, capfd):
    """Forward check of an export that is too large at first: the file as the viewer plays it, and Blender's pose."""
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    spun(rig, 300)
    bpy.context.scene.render.fps = 30
    path = tmp_path / "spin.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    tolerance = float(re.search(r"within ([\d.]+)° and", capfd.readouterr().out)[1])
    assert tolerance > 0.1
    duration, joints = player.curves_of(path.read_bytes())
    assert len(joints) == len(joints_of(rig)) == 133
    curves = {
        name: (codes[:, 0] / 65535 * duration, player.rotations_of(codes[:, 1:])) for name, (codes, _) in joints.items()
    }
    wanted = {frame: local_rotations(bpy, rig, 1 + frame) for frame in range(300)}
    rounding = {
        name: max(
            player.degrees_between(value, wanted[round(time * 30)][name]) for time, value in zip(*keys, strict=True)
        )
        for name, keys in curves.items()
    }
    assert max(rounding.values()) < 0.4
    for frame, rotations in wanted.items():
        time = round(frame / 30 / duration * 65535) / 65535 * duration  # times are rounded, too
        for name, keys in curves.items():
            shown = player.played(*keys, time, player.nlerp_or_slerp)
            off = player.degrees_between(shown, rotations[name])
            assert off < tolerance + rounding[name] + 0.01, (name, frame)


def local_rotations(bpy, rig, frame):
    """Return the rotation of each joint relative to its parent in the axes of the avatar, (w, x, y, z)."""
    from mathutils import Matrix

    bpy.context.scene.frame_set(frame)
    axes = Matrix(((0, 1, 0), (-1, 0, 0), (0, 0, 1)))
    worlds = {
        bone.name: axes.transposed() @ bone.matrix.to_3x3() @ bone.bone.matrix_local.to_3x3().transposed() @ axes
        for bone in joints_of(rig)
    }
    return {
        bone.name: np.array(
            (worlds[bone.parent.name].transposed() @ worlds[bone.name] if bone.parent else worlds[bone.name])
            .to_quaternion()
            .normalized()
        )
        for bone in joints_of(rig)
    }


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
    last, wanted_last = (codec.rotations_of(keys.rotation[-1:, 1:])[0] for keys in (joint, wanted))
    assert 2 * math.degrees(math.acos(min(1.0, abs(float(last @ wanted_last))))) < 0.3


@pytest.mark.slow
@pytest.mark.any_version
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
        theirs, ours = (obj.evaluated_get(graph).pose.bones for obj in (rig, avatar))
        for chain in chains:
            for (bone, joint), (next_bone, next_joint) in itertools.pairwise(chain):
                for end, side in (("L", "Left"), ("R", "Right")):
                    wanted = theirs[f"DEF-{next_bone}.{end}"].head - theirs[f"DEF-{bone}.{end}"].head
                    found = ours[f"m{next_joint}{side}"].head - ours[f"m{joint}{side}"].head
                    assert math.degrees(wanted.angle(found)) < 0.3, (frame, joint, side)
