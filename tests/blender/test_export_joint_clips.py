"""Clips of joints say what Blender shows: read from keys, or sampled where more than keys moves the bones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers_export import active, add, bpy, curves, drive, push_down
from helpers_models import frame_worlds, joint_worlds, rig, scene_of, skinned

pytestmark = pytest.mark.needs_bpy

MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")
CHAIN = {
    "Root": ((0, 0, 0), (0, 0.2, 1), None),
    "Mid": ((0, 0.2, 1), (0.5, 0.1, 1.8), "Root"),
    "Tip": ((0.5, 0.3, 1.9), (0.9, 0, 2.5), "Mid"),
    "Side": ((1, 0, 0), (1, 1, 0), None),
}


def channel_of(mode: str) -> str:
    return {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")


def animate(armature: Any, mode: str = "QUATERNION", interpolation: str = "LINEAR", frames: Any = (1, 4, 9)) -> None:
    """Key rotation, location and scale of three bones with numbers of no pattern."""
    rng = np.random.default_rng(5)
    for name in ("Root", "Mid", "Tip"):
        bone = armature.pose.bones[name]
        bone.rotation_mode = mode
        channel = channel_of(mode)
        for frame in frames:
            setattr(bone, channel, rng.normal(size=len(getattr(bone, channel))))
            bone.location = rng.normal(size=3)
            bone.scale = 1 + 0.3 * rng.random(3) if name == "Tip" else (1.2, 1.2, 1.2)
            for path in (channel, "location", "scale"):
                bone.keyframe_insert(path, frame=frame)
    for curve in curves(armature.animation_data.action):
        for point in curve.keyframe_points:
            point.interpolation = interpolation
    bpy.context.view_layer.update()


def clip_of(armature: Any, **options: Any) -> tuple[Any, Any]:
    scene = scene_of("UNIGINE_ANIMATION", [armature], **options)
    (clip,) = scene.clips
    return clip, scene.skeletons[0]


def assert_plays(clip: Any, skeleton: Any, armature: Any, frames: Any, tolerance: float = 1e-5) -> None:
    """Require each frame to put every bone where Blender shows it; bones move at all."""
    frames = list(frames)
    assert clip.frame_count == len(frames)
    rests = joint_worlds(skeleton)
    moved = 0.0
    for number, frame in enumerate(frames):
        bpy.context.scene.frame_set(int(frame // 1), subframe=frame % 1)
        worlds = frame_worlds(skeleton, clip, number)
        seen = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for joint, world, rest in zip(skeleton.joints, worlds, rests, strict=True):
            bone = seen.pose.bones[joint.name]
            # What the joint does to its rest is what the pose does to the bone's.
            shown = np.array(bone.matrix) @ np.linalg.inv(np.array(bone.bone.matrix_local)) @ rest
            np.testing.assert_allclose(world, shown, atol=tolerance, err_msg=f"{joint.name} at {frame}")
            moved = max(moved, float(np.abs(world - rest).max()))
    assert moved > 0.1


@pytest.fixture
def sampled_instead(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function after which every clip is sampled frame by frame."""
    from meshferry.blender_data.animation import pose_curves

    return lambda: monkeypatch.setattr(pose_curves, "keys_suffice", lambda *_: False)


@pytest.fixture
def never_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where Blender has to set frames."""
    from meshferry.blender_data.exporting import joint_sampling

    def refuse(*_: Any) -> None:
        raise AssertionError("frames were set, though keys say all")

    monkeypatch.setattr(joint_sampling, "set_frame", refuse)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("interpolation", ["LINEAR", "CONSTANT", "BEZIER"])
def test_keys_are_read_as_blender_plays_them(
    clean_blender: Any, never_sampled: None, mode: str, interpolation: str
) -> None:
    armature = rig(bones=CHAIN)
    animate(armature, mode, interpolation)
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 10))


@pytest.mark.parametrize("mode", ["QUATERNION", "ZXY", "AXIS_ANGLE"])
@pytest.mark.parametrize("interpolation", ["LINEAR", "CONSTANT", "BEZIER"])
def test_reading_and_sampling_agree(clean_blender: Any, sampled_instead: Any, mode: str, interpolation: str) -> None:
    """Also between the frames of the scene."""
    armature = rig(bones=CHAIN)
    animate(armature, mode, interpolation)
    armature.pose.bones["Side"].location = (0.1, 0.2, 0.3)  # posed, but not keyed
    read, _ = clip_of(armature, frame_rate=60.0)
    sampled_instead()
    sampled, _ = clip_of(armature, frame_rate=60.0)
    assert [track.target for track in read.transforms] == [track.target for track in sampled.transforms] == [0, 1, 2, 3]
    assert read.frame_count == sampled.frame_count == 21
    for one, other in zip(read.transforms, sampled.transforms, strict=True):
        np.testing.assert_allclose(one.translation, other.translation, atol=2e-6)
        np.testing.assert_allclose(one.rotation, other.rotation, atol=2e-6)
        np.testing.assert_allclose(one.scale, other.scale, atol=2e-6)


def test_modifiers_of_curves_count(clean_blender: Any, never_sampled: None) -> None:
    armature = rig(bones=CHAIN)
    animate(armature, frames=(1, 3))
    action = armature.animation_data.action
    for curve in curves(action):
        curve.modifiers.new("CYCLES")
    action.use_frame_range, action.frame_start, action.frame_end = True, 1, 8
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 9))


def test_muted_curves_do_not_play(clean_blender: Any, never_sampled: None) -> None:
    armature = rig(bones=CHAIN)
    animate(armature)
    for curve in curves(armature.animation_data.action):
        curve.mute = "Mid" in curve.data_path
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 10))


def bend_by_constraint(armature: Any) -> None:
    armature.pose.bones["Mid"].constraints.new("LIMIT_LOCATION").use_min_x = True


def bend_by_ik(armature: Any) -> None:
    target = add("Target", location=(1, 0.5, 1))
    target.keyframe_insert("location", frame=1)
    target.location = (-1, 0.5, 1.5)
    target.keyframe_insert("location", frame=9)
    constraint = armature.pose.bones["Tip"].constraints.new("IK")
    constraint.target, constraint.chain_count = target, 2


def bend_by_driver(armature: Any) -> None:
    drive(armature.pose.bones["Side"], "location", "frame / 10", 0)


def bend_by_loose_inheritance(armature: Any) -> None:
    armature.data.bones["Mid"].use_inherit_rotation = False
    armature.data.bones["Tip"].inherit_scale = "NONE"


def test_bones_without_inherited_scale_are_read_as_blender_plays_them(clean_blender: Any, never_sampled: None) -> None:
    armature = rig(bones=CHAIN)
    animate(armature)
    for bone in armature.data.bones:
        bone.inherit_scale = "NONE"
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 10))


def mute_a_group(armature: Any) -> None:
    next(curve for curve in curves(armature.animation_data.action) if "Mid" in curve.data_path).group.mute = True


BENDS = [bend_by_constraint, bend_by_ik, bend_by_driver, bend_by_loose_inheritance, mute_a_group]


@pytest.mark.parametrize("bend", BENDS)
def test_what_keys_do_not_say_is_sampled(clean_blender: Any, bend: Any) -> None:
    armature = rig(bones=CHAIN)
    animate(armature)
    for name in ("Root", "Mid", "Tip"):
        armature.pose.bones[name].scale = (1.2, 1.2, 1.2)
    for curve in curves(armature.animation_data.action):
        if curve.data_path.endswith("scale"):
            curve.mute = True  # the shear of unequal scales is another test's
    bend(armature)
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 10), 2e-5)
    names = [skeleton.joints[track.target].name for track in clip.transforms]
    assert names == ["Root", "Mid", "Tip", *(["Side"] if bend is bend_by_driver else [])]


def key_constraint(armature: Any) -> None:
    """Switch a constraint on that is off at first."""
    constraint = armature.pose.bones["Mid"].constraints.new("LIMIT_ROTATION")
    constraint.use_limit_x = True
    for frame, influence in ((1, 0.0), (3, 1.0)):
        constraint.influence = influence
        constraint.keyframe_insert("influence", frame=frame)
    constraint.mute = True
    constraint.keyframe_insert("mute", frame=1)
    constraint.mute = False
    constraint.keyframe_insert("mute", frame=2)
    bpy.context.scene.frame_set(1)


def key_rotation_mode(armature: Any) -> None:
    bone = armature.pose.bones["Mid"]
    for frame, mode in ((1, "XYZ"), (2, "QUATERNION"), (3, "AXIS_ANGLE")):
        bone.rotation_mode = mode
        bone.keyframe_insert("rotation_mode", frame=frame)


def scale_quaternion(armature: Any, factor: float) -> None:
    armature.pose.bones["Mid"].rotation_mode = "QUATERNION"
    for curve in curves(armature.animation_data.action):
        if "Mid" in curve.data_path and curve.data_path.endswith("rotation_quaternion"):
            for point in curve.keyframe_points:
                point.co.y *= factor


def connect(armature: Any, name: str, parent: str) -> None:
    with active(armature, mode="EDIT"):
        bone = armature.data.edit_bones[name]
        bone.parent = armature.data.edit_bones.get(parent)
        bone.use_connect = True


def set_bone(name: str, **values: Any) -> Callable[[Any], None]:
    def change(armature: Any) -> None:
        for attribute, value in values.items():
            owner = armature.pose.bones[name] if attribute == "rotation_mode" else armature.data.bones[name]
            setattr(owner, attribute, value)

    return change


MATRIX_SETTINGS: dict[str, Callable[[Any], None]] = {
    "connected": lambda armature: connect(armature, "Mid", "Root"),
    "connected root": lambda armature: connect(armature, "Root", ""),
    "connected elsewhere": lambda armature: connect(armature, "Tip", "Side"),
    **{f"{name} not local": set_bone(name, use_local_location=False) for name in ("Root", "Mid", "Tip")},
    **{f"{name} without rotation": set_bone(name, use_inherit_rotation=False) for name in ("Root", "Mid", "Tip")},
    **{
        f"scale {way}": set_bone("Mid", inherit_scale=way)
        for way in ("FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY")
    },
    "constraint": bend_by_constraint,
    "keyed constraint": key_constraint,
    **{f"mode {mode}": set_bone("Mid", rotation_mode=mode) for mode in ("ZXY", "AXIS_ANGLE")},
    "keyed mode": key_rotation_mode,
    "zero quaternion": lambda armature: scale_quaternion(armature, 0.0),
    "long quaternion": lambda armature: scale_quaternion(armature, 7.0),
}
"""Settings that change ``PoseBone.matrix``, each of a rig whose bones have keys on every channel."""
READ_FROM_KEYS = {
    "connected",
    "connected root",
    "Root not local",
    "Mid not local",
    "mode ZXY",
    "zero quaternion",
    "long quaternion",
}


def moving_rig(*settings: str) -> Any:
    """Return a new rig with keys on every channel and these settings."""
    for armature in [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]:
        bpy.data.objects.remove(armature)
    armature = rig(bones=CHAIN)
    frames = (1, 2, 3)
    for mode in ("XYZ", "AXIS_ANGLE", "QUATERNION"):
        animate(armature, mode, frames=frames)
    for setting in settings:
        MATRIX_SETTINGS[setting](armature)
    bpy.context.view_layer.update()
    return armature


@pytest.mark.slow
@pytest.mark.parametrize("first", MATRIX_SETTINGS)
def test_settings_of_bones_play_as_shown_alone_and_in_pairs(clean_blender: Any, first: str) -> None:
    names = list(MATRIX_SETTINGS)
    for second in names[names.index(first) :]:
        armature = moving_rig(*dict.fromkeys((first, second)))
        size = max(max(bone.matrix_local.translation.length, bone.length) for bone in armature.data.bones)
        clip, skeleton = clip_of(armature)
        assert_plays(clip, skeleton, armature, range(1, 4), 1e-5 * size)


@pytest.mark.parametrize("setting", sorted(READ_FROM_KEYS))
def test_what_follows_from_a_rule_is_computed(clean_blender: Any, never_sampled: None, setting: str) -> None:
    armature = moving_rig(setting)
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 4), 2e-5)


CHANGES_THE_MATRIX = {
    "Bone": {"inherit_scale", "parent", "use_connect", "use_inherit_rotation", "use_local_location"},
    "PoseBone": {
        *("constraints", "location", "parent", "rotation_axis_angle", "rotation_euler", "rotation_mode"),
        *("rotation_quaternion", "scale"),
    },
}
"""Properties that the generated test sweeps, with the channels."""

_IN_BOTH = """
    bbone_curveinx bbone_curveinz bbone_curveoutx bbone_curveoutz bbone_custom_handle_end bbone_custom_handle_start
    bbone_easein bbone_easeout bbone_rollin bbone_rollout bbone_scalein bbone_scaleout color head hide length matrix
    name rna_type select tail
    """
KEEPS_THE_MATRIX = {
    "Bone": f"""{_IN_BOTH}
        bbone_handle_type_end bbone_handle_type_start bbone_handle_use_ease_end bbone_handle_use_ease_start
        bbone_handle_use_scale_end bbone_handle_use_scale_start bbone_mapping_mode bbone_segments bbone_x bbone_z
        children collections display_type envelope_distance envelope_weight head_local head_radius hide_select
        matrix_local select_head select_tail show_wire tail_local tail_radius use_cyclic_offset use_deform
        use_endroll_as_inroll use_envelope_multiply use_relative_parent use_scale_easing
        """.split(),
    "PoseBone": f"""{_IN_BOTH}
        bone child custom_shape custom_shape_rotation_euler custom_shape_scale_xyz custom_shape_transform
        custom_shape_translation custom_shape_wire_width ik_linear_weight ik_max_x ik_max_y ik_max_z ik_min_x
        ik_min_y ik_min_z ik_rotation_weight ik_stiffness_x ik_stiffness_y ik_stiffness_z ik_stretch is_in_ik_chain
        lock_ik_x lock_ik_y lock_ik_z lock_location lock_rotation lock_rotation_w lock_rotations_4d lock_scale
        matrix_basis matrix_channel motion_path use_custom_shape_bone_size use_ik_limit_x use_ik_limit_y
        use_ik_limit_z use_ik_linear_control use_ik_rotation_control use_transform_around_custom_shape
        use_transform_at_custom_shape
        """.split(),
}
"""Properties that place the bone at rest, follow from the matrix, bend the bone inside, or need a constraint; and those
for display and editing."""


@pytest.mark.parametrize("kind", CHANGES_THE_MATRIX)
def test_every_property_of_bones_is_classified(kind: str) -> None:
    """A new property of Blender must be added to one of the sets, and to the sweep if it changes the matrix."""
    known = {*CHANGES_THE_MATRIX[kind], *KEEPS_THE_MATRIX[kind], "meshferry"}
    assert {one.identifier for one in getattr(bpy.types, kind).bl_rna.properties} - known == set()


@pytest.mark.parametrize(("old", "new"), [(100, 200), (200, 100), (100, 300)])
def test_stretched_time_plays_as_shown(clean_blender: Any, sampled_instead: Any, old: int, new: int) -> None:
    armature = rig(bones=CHAIN)
    animate(armature, interpolation="BEZIER")
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = old, new
    frames = np.arange(8 * new // old + 1) + new / old
    for prepare in (lambda: None, sampled_instead):
        prepare()
        clip, skeleton = clip_of(armature)
        assert clip.fps == render.fps
        assert_plays(clip, skeleton, armature, frames, 2e-5)


def test_bones_moved_by_others_alone_are_animated(clean_blender: Any) -> None:
    """Inverse kinematics without a single key on a bone."""
    armature = rig(bones=CHAIN)
    bend_by_ik(armature)
    clip, skeleton = clip_of(armature)
    assert [skeleton.joints[track.target].name for track in clip.transforms] == ["Mid", "Tip"]
    assert_plays(clip, skeleton, armature, range(1, 10), 2e-5)


def test_every_bone_or_animated_ones(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    key_bone(armature, "Hold", "Mid", {1: (0, 0, 0), 3: (0, 0, 0)})
    clip, _ = clip_of(armature)
    assert [track.target for track in clip.transforms] == [1]  # keyed, though it stands still
    clip, skeleton = clip_of(armature, animated_bones="ALL")
    assert [track.target for track in clip.transforms] == [0, 1, 2, 3]
    for track in clip.transforms:
        joint = skeleton.joints[track.target]
        assert track.translation.tobytes() == np.tile(np.float32(joint.translation), (3, 1)).tobytes()
        assert track.scale.tobytes() == np.ones((3, 3), np.float32).tobytes()


def key_bone(armature: Any, action_name: str, bone: str, keys: Any, path: str = "location") -> Any:
    """Key a bone linearly in a new action that becomes the active one."""
    if armature.animation_data is not None:
        armature.animation_data.action = None
    posed = armature.pose.bones[bone]
    for frame, value in keys.items():
        setattr(posed, path, value)
        posed.keyframe_insert(path, frame=frame)
    action = armature.animation_data.action
    action.name = action_name
    for curve in curves(action):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    return action


def test_every_action_is_a_clip_of_its_own_range(clean_blender: Any, never_sampled: None) -> None:
    armature = rig(bones=CHAIN)
    walk = key_bone(armature, "Walk", "Root", {1: (0, 0, 0), 5: (1, 0, 0)})
    wave = key_bone(armature, "Wave", "Mid", {10: (0, 0, 0), 12: (0, 1, 0)})
    wave.use_frame_range, wave.frame_start, wave.frame_end = True, 10, 20
    wave.meshferry.root_motion = True
    walk.use_fake_user = True
    armature.pose.bones["Tip"].location = (0, 0, 0.5)  # a pose without keys
    scene = scene_of("UNIGINE_ANIMATION", [armature], clips="ACTIONS")
    found = {clip.name: clip for clip in scene.clips}
    assert {name: clip.frame_count for name, clip in found.items()} == {"Walk": 5, "Wave": 11}
    assert [found[name].root_motion for name in ("Walk", "Wave")] == [False, True]
    # Unkeyed channels stay as they are posed; what another action keys rests.
    assert [track.target for track in found["Walk"].transforms] == [0, 2]
    assert [track.target for track in found["Wave"].transforms] == [1, 2]
    (only,) = scene_of("UNIGINE_ANIMATION", [armature], clips="ACTIONS", clip_names="W*lk").clips
    assert only.name == "Walk"


def test_unkeyed_channels_rest_when_sampled_too(clean_blender: Any, sampled_instead: Any) -> None:
    armature = rig(bones=CHAIN)
    key_bone(armature, "Walk", "Root", {1: (0, 0, 0), 5: (1, 0, 0)}).use_fake_user = True
    key_bone(armature, "Wave", "Mid", {1: (0, 0, 0), 5: (0, 1, 0)})
    armature.pose.bones["Tip"].location = (0, 0, 0.5)
    bpy.context.scene.frame_set(4)
    sampled_instead()
    scene = scene_of("UNIGINE_ANIMATION", [armature], clips="ACTIONS")
    assert {clip.name: [track.target for track in clip.transforms] for clip in scene.clips} == {
        "Walk": [0, 2],
        "Wave": [1, 2],
    }
    assert armature.pose.bones["Tip"].location.z == 0.5


def test_two_armatures_of_the_same_bones_keep_their_actions(clean_blender: Any) -> None:
    """Each armature exports its own and unused actions; files of one name get different names."""
    from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

    rigs = [rig("One", bones=CHAIN), rig("Two", bones=CHAIN)]
    for armature, name in zip(rigs, ("Walk", "Run"), strict=True):
        key_bone(armature, "Idle " + name, "Root", {1: (0, 0, 0), 5: (1, 0, 0)}).meshferry.clip_name = "Idle"
        push_down(armature, "Idle")
        key_bone(armature, name, "Root", {1: (0, 0, 0), 5: (1, 0, 0)})
    scene = scene_of("UNIGINE_ANIMATION", rigs, clips="ACTIONS")
    found = {(clip.name, clip.transforms[0].skeleton) for clip in scene.clips}
    assert found == {("Idle", 0), ("Walk", 0), ("Idle", 1), ("Run", 1)}
    names = sorted(part.name for part in UNIGINE_ANIMATION.files_of(scene))
    assert names == ["Idle_One", "Idle_Two", "Run", "Walk"]


def test_nla_strips_are_clips(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    key_bone(armature, "Walk", "Root", {1: (0, 0, 0), 5: (1, 0, 0)})
    push_down(armature, "Slow", 11).scale = 2.0
    scene = scene_of("UNIGINE_ANIMATION", [armature], clips="NLA")
    (clip,) = scene.clips
    assert (clip.name, clip.frame_count) == ("Slow", 9)
    assert_plays(clip, scene.skeletons[0], armature, range(11, 20))


@pytest.mark.parametrize("change", [("action_influence", 0.5), ("action_blend_type", "ADD")])
def test_action_that_counts_in_part(clean_blender: Any, change: tuple[str, Any]) -> None:
    armature = rig(bones=CHAIN)
    key_bone(armature, "Stashed", "Root", {1: (0, 0, 0), 5: (0, 2, 0)})
    push_down(armature, "Stashed")
    armature.animation_data.nla_tracks[0].mute = change[0] == "action_influence"
    key_bone(armature, "Walk", "Root", {1: (0, 0, 0), 5: (1, 0, 0)})
    setattr(armature.animation_data, *change)
    clip, skeleton = clip_of(armature)
    assert_plays(clip, skeleton, armature, range(1, 6))


def test_what_plays_is_named_after_its_action(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    animate(armature)
    armature.animation_data.action.name = "Jump"
    clip, _ = clip_of(armature)
    assert (clip.name, clip.fps, clip.frame_count) == ("Jump", 24.0, 9)
    clip, _ = clip_of(armature, clips="SCENE")
    assert clip.frame_count == 250


def test_loop_is_stored_without_its_last_pose(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    action = key_bone(armature, "Loop", "Root", {1: (0, 0, 0), 3: (1, 0, 0), 5: (0, 0, 0)})
    assert clip_of(armature)[0].frame_count == 5
    action.use_frame_range, action.frame_start, action.frame_end = True, 1, 5
    action.use_cyclic = True
    assert clip_of(armature)[0].frame_count == 4
    assert clip_of(armature, loop="KEEP")[0].frame_count == 5


def test_armature_shown_at_rest_is_exported_posed(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    animate(armature)
    bend_by_constraint(armature)
    armature.data.pose_position = "REST"
    clip, skeleton = clip_of(armature)
    assert armature.data.pose_position == "REST"
    armature.data.pose_position = "POSE"
    assert_plays(clip, skeleton, armature, range(1, 10), 2e-5)


def test_armature_of_a_selected_mesh(clean_blender: Any) -> None:
    armature = rig()
    obj = skinned(armature)
    key_bone(armature, "Move", "Upper", {1: (0, 0, 0), 3: (1, 0, 0)})
    armature.hide_set(True)
    for other in bpy.context.view_layer.objects:
        other.select_set(other == obj)
    scene = scene_of("UNIGINE_ANIMATION", "SELECTION")
    assert ([clip.name for clip in scene.clips], scene.nodes) == (["Move"], [])


def test_nothing_to_export_is_said(clean_blender: Any) -> None:
    from meshferry.io_formats.core.errors import ExportError

    add("Empty")
    with pytest.raises(ExportError, match="no armature"):
        scene_of("UNIGINE_ANIMATION", "SCENE")
    armature = rig()
    with pytest.raises(ExportError, match="no animation"):
        scene_of("UNIGINE_ANIMATION", [armature])


def test_animation_of_the_object_is_said(clean_blender: Any) -> None:
    armature = rig(bones=CHAIN)
    armature.keyframe_insert("location", frame=1)
    armature.location.x = 1
    armature.keyframe_insert("location", frame=5)
    scene = scene_of("UNIGINE_ANIMATION", [armature])
    assert any("the armature object itself is animated" in text for text in scene.warnings)


def test_scaled_armature_object(clean_blender: Any) -> None:
    """A hundredth of the size: places shrink, no joint gets a scale."""
    armature = rig(bones=CHAIN, scale=(0.01, 0.01, 0.01), rotation_euler=(0.5, 0, 0))
    animate(armature)
    for curve in curves(armature.animation_data.action):
        if curve.data_path.endswith("scale"):
            curve.mute = True
    for bone in armature.pose.bones:
        bone.scale = (1, 1, 1)
    clip, skeleton = clip_of(armature)
    turn = np.array(armature.matrix_world, float)
    for number in range(9):
        bpy.context.scene.frame_set(1 + number)
        seen = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for joint, world in zip(skeleton.joints, frame_worlds(skeleton, clip, number), strict=True):
            shown = turn @ np.array(seen.pose.bones[joint.name].matrix)
            np.testing.assert_allclose(world[:3, 3], shown[:3, 3], atol=1e-6)
    assert all(np.abs(track.scale - 1).max() < 1e-6 for track in clip.transforms)


def test_scene_is_as_before(clean_blender: Any) -> None:
    """Every property of every data block, after exports that read, sample and fail."""
    from scene_snapshot import snapshot

    armature = rig(bones=CHAIN)
    animate(armature)
    bend_by_ik(armature)
    obj = skinned(armature, weights={"Root": [1.0] * 12})
    obj.modifiers.new("Cast", "CAST")
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="Key").value = 0.5
    armature.pose.bones["Side"].location = (1, 2, 3)
    armature.pose.bones["Tip"].location = (3, 2, 1)  # keyed, and changed since
    armature.data.pose_position = "REST"
    bpy.context.scene.frame_set(3)
    with active(armature, mode="POSE"):
        before = snapshot()
        for kind in ("UNIGINE_ANIMATION", "UNIGINE_MESH"):
            for clips in ("ACTIVE", "ACTIONS", "NLA", "SCENE"):
                if (kind, clips) != ("UNIGINE_ANIMATION", "NLA"):
                    scene_of(kind, "SCENE", clips=clips)
        after = snapshot()
    assert {path: (before.get(path), after.get(path)) for path in before if before[path] != after.get(path)} == {}


@pytest.mark.parametrize("kind", ["UNIGINE_ANIMATION", "UNIGINE_MESH"])
def test_scene_is_as_before_a_failure(clean_blender: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    from meshferry.blender_data import scene_state
    from meshferry.blender_data.exporting import joint_sampling
    from scene_snapshot import snapshot

    armature = rig(bones=CHAIN)
    animate(armature)
    bend_by_ik(armature)
    skinned(armature, weights={"Root": [1.0] * 12}).modifiers.new("Cast", "CAST")
    armature.pose.bones["Side"].location = (1, 2, 3)
    bpy.context.scene.frame_set(3)
    calls = []
    real = scene_state.set_frame

    def break_off(scene: Any, frame: float) -> None:
        calls.append(frame)
        if len(calls) > 4:
            raise RuntimeError("broken off")
        real(scene, frame)

    monkeypatch.setattr(joint_sampling, "set_frame", break_off)
    before = snapshot()
    with pytest.raises(RuntimeError, match="broken off"):
        scene_of(kind, "SCENE")
    after = snapshot()
    assert {path: (before.get(path), after.get(path)) for path in before if before[path] != after.get(path)} == {}
