"""Animations of bones: keys, rates, and which armature they go onto."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_import_skinned import figure, run, walk

pytestmark = pytest.mark.needs_bpy


def only_clip(scene: Any, **changes: Any) -> Any:
    """Return the same bones and animations without the mesh, as an animation file holds them."""
    from dataclasses import replace

    return replace(scene, nodes=[], name="clip file", warnings=[], **changes)


def curves_of(armature: Any, action: Any = None) -> dict[tuple[str, int], Any]:
    from meshferry.blender_data import animated_blocks

    animation = armature.animation_data
    slot = animation.action_slot if action is None else None
    return {(c.data_path, c.array_index): c for c in animated_blocks.action_curves(action or animation.action, slot)}


def still_clip(frames: int = 6, **changes: Any) -> Any:
    """One joint of one bone: turns, while place and scale stay what they are in the bind pose."""
    from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack

    angle = np.linspace(0, 3, frames)
    turn = np.zeros((frames, 4), np.float32)
    turn[:, 0], turn[:, 3] = np.cos(angle), np.sin(angle)
    turn[2::3] *= -1  # the same rotations
    place = np.tile(np.float32([1, 2, 3]), (frames, 1))
    track = TransformTrack(0, place, turn, np.full((frames, 3), 2, np.float32), skeleton=0)
    joint = Joint("bone", -1, (1.0, 2.0, 3.0), scale=(2.0, 2.0, 2.0))
    clip = Clip(**{"name": "turn", "fps": 0.0, "frame_count": frames, "transforms": [track], **changes})
    return Scene("turning", [], [Skeleton("turning", [joint])], [clip])


def test_channels_that_stay_have_one_key_and_quaternions_do_not_jump() -> None:
    armature = run(still_clip(), frame_start=7).armatures[0]
    curves = curves_of(armature)
    assert len(curves) == 10
    for (path, index), curve in curves.items():
        assert curve.group.name == "bone"
        places = [tuple(key.co) for key in curve.keyframe_points]
        if path.endswith("rotation_quaternion"):
            assert [place[0] for place in places] == [7, 8, 9, 10, 11, 12]
            assert np.abs(np.diff([place[1] for place in places])).max() < 0.61
            assert {key.interpolation for key in curve.keyframe_points} == {"LINEAR"}
        else:
            assert places == [(7, 1 if path.endswith("scale") else 0)], (path, index)


def test_keys_have_the_handles_that_blender_calculates() -> None:
    """Handles left at the origin would bend the curve once a key is Bezier, and View All would show frame 0."""
    armature = run(still_clip(30), frame_start=500).armatures[0]
    turned = curves_of(armature)['pose.bones["bone"].rotation_quaternion', 0]
    before = np.array([(*key.handle_left, *key.handle_right) for key in turned.keyframe_points])
    assert before[:, ::2].min() > 499
    turned.update()
    after = np.array([(*key.handle_left, *key.handle_right) for key in turned.keyframe_points])
    np.testing.assert_allclose(before, after, atol=1e-5)


def test_bones_that_are_converted_apart_get_the_keys_of_those_converted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from meshferry.blender_data.importing import actions

    def keys() -> dict[tuple[str, int], Any]:
        found = curves_of(run(figure()[0]).armatures[0])
        return {path: [tuple(key.co) for key in curve.keyframe_points] for path, curve in found.items()}

    together = keys()
    monkeypatch.setattr(actions, "_VALUES_AT_ONCE", 1)
    assert keys() == together and max(map(len, together.values())) > 1


def test_the_slightest_movement_is_kept() -> None:
    scene = still_clip()
    track = scene.clips[0].transforms[0]
    track.translation[3, 1] += 1e-5
    track.scale[4, 2] += 1e-5
    track.rotation[:] = track.rotation[0]
    curves = curves_of(run(scene).armatures[0])
    moving = {path.rpartition(".")[2] for (path, _), curve in curves.items() if len(curve.keyframe_points) > 1}
    assert moving == {"location", "scale"}


def test_movement_below_a_joint_of_a_small_scale_is_kept() -> None:
    from meshferry.io_formats.core.scene import Joint

    scene = still_clip()
    joints, track = scene.skeletons[0].joints, scene.clips[0].transforms[0]
    joints += [Joint("small", -1, scale=(1e-4,) * 3), Joint("far", -1, (0.0, 0.0, 9.0))]
    joints[0].parent = 1
    track.translation[3, 1] += 1e-2
    track.rotation[:] = track.rotation[0]
    curves = curves_of(run(scene).armatures[0])
    assert {path for (path, _), curve in curves.items() if len(curve.keyframe_points) > 1} == {
        'pose.bones["bone"].location'
    }


@pytest.mark.parametrize(("file_rate", "step"), [(0.0, 1.0), (24.0, 1.0), (12.0, 2.0), (48.0, 0.5)])
def test_a_clip_without_rate_has_a_key_a_frame(file_rate: float, step: float) -> None:
    import bpy

    bpy.context.scene.render.fps = 24
    armature = run(still_clip(fps=file_rate), frame_start=1).armatures[0]
    keys = curves_of(armature)['pose.bones["bone"].rotation_quaternion', 0].keyframe_points
    assert [key.co.x for key in keys] == [1 + step * number for number in range(6)]
    kept = armature.animation_data.action.meshferry
    assert (kept.clip_name, kept.fps, kept.frame_count) == ("turn", file_rate, 6)
    assert tuple(armature.animation_data.action.frame_range) == (1, 1 + step * 5)


def test_the_scenes_rate_stays_where_the_file_says_none() -> None:
    import bpy

    render = bpy.context.scene.render
    render.fps = 25
    run(still_clip(), use_file_frame_rate=True, frame_start=5)
    assert (render.fps, bpy.context.scene.frame_start, bpy.context.scene.frame_end) == (25, 5, 10)
    run(still_clip(fps=50.0), use_file_frame_rate=True)
    assert render.fps == 50


def test_no_frames_make_an_action_without_keys() -> None:
    import bpy

    made = run(still_clip(frames=0, root_motion=True))
    assert ["no frames" in text for text in made.warnings] == [True]
    action = made.armatures[0].animation_data.action
    assert action.meshferry.clip_name == "turn" and action.meshferry.frame_count == 0 and action.meshferry.root_motion
    curves = curves_of(made.armatures[0])
    assert len(curves) == 10 and not any(len(curve.keyframe_points) for curve in curves.values())
    bpy.context.scene.frame_set(3)
    assert tuple(made.armatures[0].pose.bones[0].rotation_quaternion) == (1, 0, 0, 0)


def test_animations_of_bones_can_be_left_out() -> None:
    import bpy

    made = run(still_clip(), use_joint_animation=False)
    assert made.armatures and made.actions == 0 and not bpy.data.actions
    left = run(still_clip(), armature="NONE")
    assert not left.armatures and left.collection is bpy.context.scene.collection


def test_the_first_clip_plays_and_the_others_wait() -> None:
    scene, _ = figure()
    scene.clips.append(walk(np.random.default_rng(9), name="run", frames=9))
    armature = run(scene).armatures[0]
    assert armature.animation_data.action.meshferry.clip_name == "walk"
    assert [track.strips[0].action.meshferry.clip_name for track in armature.animation_data.nla_tracks] == ["run"]


def poses(armature: Any, frames: int = 4) -> np.ndarray:
    import bpy

    found = []
    for frame in range(frames):
        bpy.context.scene.frame_set(1 + frame)
        found.append([np.array(bone.matrix) for bone in armature.pose.bones])
    return np.array(found)


@pytest.mark.parametrize("is_local", [True, False])
def test_a_clip_goes_onto_the_bones_of_its_mesh(is_local: bool) -> None:
    """Also without Local Location."""
    import bpy

    scene, _ = figure()
    own = run(scene)
    wanted = poses(own.armatures[0])
    scene.clips, clips = [], scene.clips
    mesh = run(scene)
    scene.clips = clips
    for bone in mesh.armatures[0].data.bones:
        bone.use_local_location = is_local
    again = run(only_clip(scene), onto=mesh.armatures[0])
    assert again.armatures == mesh.armatures and not again.objects and not again.warnings and again.bones == 0
    assert again.collection in list(mesh.armatures[0].users_collection)
    assert [child.name for child in bpy.context.scene.collection.children] == ["figure", "figure.001"]
    np.testing.assert_allclose(poses(mesh.armatures[0]), wanted, rtol=1e-6, atol=1e-5)


def test_another_order_of_joints_and_missing_bones() -> None:
    """Bones are matched by name; missing bones are reported once."""
    from dataclasses import replace

    scene, _ = figure()
    scene.skeletons[0].joints[3].name = "j3"  # makes the names unique
    own = run(scene)
    wanted = poses(own.armatures[0])
    joints = scene.skeletons[0].joints
    order = [6, 3, 5, 0, 4, 2, 1]
    shuffled = [
        replace(joints[old], parent=order.index(joints[old].parent) if joints[old].parent >= 0 else -1) for old in order
    ]
    tracks = [replace(track, target=order.index(track.target)) for track in scene.clips[0].transforms]
    for extra in range(5):
        shuffled.append(replace(joints[0], name=f"tail {extra}", parent=0))
        tracks.append(replace(tracks[0], target=len(shuffled) - 1))
    clip = replace(scene.clips[0], transforms=tracks)
    moved = only_clip(scene, skeletons=[replace(scene.skeletons[0], joints=shuffled)], clips=[clip])
    own.armatures[0].animation_data_clear()
    made = run(moved, onto=own.armatures[0])
    assert len(made.warnings) == 1
    assert made.warnings[0] == f"Not in '{own.armatures[0].name}': 5 bones ('tail 0', 'tail 1', 'tail 2', …) of 'rig'"
    np.testing.assert_allclose(poses(own.armatures[0]), wanted, rtol=1e-6, atol=1e-5)


def test_another_bind_pose_is_said_and_the_armatures_holds() -> None:
    scene, _ = figure()
    own = run(scene)
    wanted = poses(own.armatures[0])
    own.armatures[0].animation_data_clear()
    moved, _ = figure(seed=2)
    other = only_clip(scene, skeletons=moved.skeletons)
    made = run(other, onto=own.armatures[0])
    assert ["bind pose" in text for text in made.warnings] == [True]
    np.testing.assert_allclose(poses(own.armatures[0]), wanted, rtol=1e-6, atol=1e-5)
    other.skeletons[0].has_bind = False
    assert not run(other, onto=own.armatures[0]).warnings


def test_an_armature_of_another_origin_takes_the_clips_own_bind_pose() -> None:
    """An armature that no import of ours made has no scales; places and frames tell the rest."""
    scene, _ = figure()
    own = run(scene)
    wanted = poses(own.armatures[0])
    for bone in own.armatures[0].data.bones:
        kept = bone.meshferry.source_name, bone.meshferry.given_name
        bone.property_unset("meshferry")
        bone.meshferry.source_name, bone.meshferry.given_name = kept
        assert bone.meshferry.order == -1
    own.armatures[0].animation_data_clear()
    run(only_clip(scene), onto=own.armatures[0])
    np.testing.assert_allclose(poses(own.armatures[0]), wanted, rtol=1e-5, atol=1e-4)


def test_a_moving_clip_takes_over_from_what_played_and_a_still_one_waits() -> None:
    scene, _ = figure()
    armature = run(scene).armatures[0]
    for name, frames, plays, stashed in (
        ("run", 5, "run", ["walk"]),
        ("still", 1, "run", ["walk", "still"]),
        ("jump", 3, "jump", ["walk", "still", "run"]),
    ):
        run(only_clip(scene, clips=[walk(np.random.default_rng(1), frames, name=name)]), onto=armature)
        animation = armature.animation_data
        assert animation.action.meshferry.clip_name == plays
        assert [track.strips[0].action.meshferry.clip_name for track in animation.nla_tracks] == stashed


def test_a_strip_that_is_edited_stays_in_hand() -> None:
    scene, _ = figure()
    scene.clips.append(walk(np.random.default_rng(9), name="run", frames=9))
    armature = run(scene).armatures[0]
    animation = armature.animation_data
    track = animation.nla_tracks[0]
    track.mute, track.strips[0].select, track.select, animation.action = False, True, True, None
    animation.nla_tracks.active = track
    animation.use_tweak_mode = True
    if not animation.use_tweak_mode:
        pytest.skip("this Blender enters tweak mode through its window only")
    run(only_clip(scene), onto=armature)
    assert animation.use_tweak_mode and animation.action.meshferry.clip_name == "run"
    assert len(animation.nla_tracks) == 3


def test_what_bones_cannot_show_is_said_once() -> None:
    """A joint that turns below one of unequal scale is sheared."""
    from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack

    joints = [Joint("wide", scale=(1.0, 3.0, 1.0)), Joint("turning", 0, (0.0, 1.0, 0.0))]
    turn = np.array([[np.cos(a), 0, 0, np.sin(a)] for a in (0, 0.2, 0.4)], np.float32)
    track = TransformTrack(1, np.tile(np.float32([0, 1, 0]), (3, 1)), turn, np.ones((3, 3), np.float32), skeleton=0)
    made = run(Scene("plank", [], [Skeleton("plank", joints)], [Clip("roll", 0.0, 3, [track])]))
    assert ["Animation 'roll' shears bone 'turning'" in text for text in made.warnings] == [True]
    assert not run(still_clip()).warnings


@pytest.mark.parametrize("played", [False, True])
def test_a_failure_gives_the_armature_back(monkeypatch: pytest.MonkeyPatch, played: bool) -> None:
    import bpy
    from meshferry.blender_data.importing import actions

    scene, _ = figure()
    armature = run(scene).armatures[0]
    if not played:
        armature.animation_data_clear()
    armature.pose.bones[0].rotation_mode = "XYZ"
    before = armature.animation_data.action if played else None
    count = len(bpy.data.actions)
    attach = actions.ClipActions.attach

    def fail(self: Any, *others: Any) -> None:
        attach(self, *others)
        raise RuntimeError("halfway")

    monkeypatch.setattr(actions.ClipActions, "attach", fail)
    with pytest.raises(RuntimeError, match="halfway"):
        run(only_clip(scene), onto=armature)
    assert armature.pose.bones[0].rotation_mode == "XYZ" and len(bpy.data.actions) == count
    animation = armature.animation_data
    assert (animation is not None) == played
    if played:
        assert animation.action is before and not animation.nla_tracks


def test_a_linked_armature_is_left_alone(tmp_path: Any) -> None:
    import bpy
    from meshferry.blender_data.importing.armature_matching import choose_for_scene
    from meshferry.io_formats.core.errors import MeshferryError

    scene, _ = figure()
    name = run(scene).armatures[0].name
    library = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library, check_existing=False)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(library, link=True) as (_, target):
        target.objects = [name]
    linked = target.objects[0]
    bpy.context.scene.collection.objects.link(linked)
    bpy.context.view_layer.objects.active = linked
    assert choose_for_scene(bpy.context, only_clip(scene), [linked], "AUTO") is None
    with pytest.raises(MeshferryError, match="library override"):
        choose_for_scene(bpy.context, only_clip(scene), [], "ACTIVE")


def test_no_frames_onto_what_plays() -> None:
    scene, _ = figure()
    armature = run(scene).armatures[0]
    run(only_clip(scene, clips=[walk(np.random.default_rng(1), 0, name="none")]), onto=armature)
    animation = armature.animation_data
    assert animation.action.meshferry.clip_name == "walk"
    assert animation.nla_tracks[0].strips[0].action.meshferry.clip_name == "none"


def test_a_mesh_can_go_onto_the_active_armature() -> None:
    import bpy

    scene, _ = figure()
    armature = run(scene).armatures[0]
    scene.clips = []
    scene.skeletons[0].joints[2].name = "hump"
    made = run(scene, onto=armature)
    (body,) = made.objects
    assert body.parent is armature and body.modifiers[0].object is armature
    assert made.warnings[0] == f"Not in '{armature.name}': bone 'hump' of 'rig'"
    groups = {group.name for group in body.vertex_groups}
    assert "hump" in groups and groups - {"hump"} <= {bone.name for bone in armature.data.bones}
    assert len(bpy.data.armatures) == 1


def test_the_skeleton_file_is_remembered() -> None:
    scene, _ = figure()
    armature = run(scene).armatures[0]
    for guid, kept in (("", ""), ("abc", "abc"), ("def", "abc")):
        scene.skeletons[0].guid, scene.skeletons[0].path = guid, f"guid://{guid}" if guid else ""
        run(only_clip(scene), onto=armature)
        assert armature.meshferry.skeleton_guid == kept
    own = run(only_clip(scene)).armatures[0]
    assert (own.meshferry.skeleton_guid, own.meshferry.skeleton_path) == ("def", "guid://def")


def test_which_armature_is_chosen() -> None:
    import bpy
    from meshferry.blender_data.importing.armature_matching import choose_for_scene
    from meshferry.io_formats.core.errors import MeshferryError
    from meshferry.io_formats.core.scene import Joint, Scene, Skeleton

    def choice(mode: str, *candidates: Any, skeleton: Any = None) -> Any:
        wanted = Scene("rig", skeletons=[skeleton or scene.skeletons[0]])
        return choose_for_scene(bpy.context, wanted, candidates, mode)

    scene, _ = figure()
    with pytest.raises(MeshferryError, match="No armature is active"):
        choice("ACTIVE")
    assert choice("AUTO") is None
    first, other = run(scene).armatures[0], run(figure(seed=2)[0]).armatures[0]
    stranger = run(still_clip()).armatures[0]
    assert choice("AUTO", first, other, stranger) is first
    assert choice("AUTO", stranger, other, first) is first  # the same bind pose
    assert choice("AUTO", stranger) is None and choice("NEW", first) is None and choice("NONE", first) is None
    bpy.context.view_layer.objects.active = first.children[0]
    assert choice("AUTO") is first and choice("ACTIVE", stranger) is first and choice("AUTO", other) is other
    assert choose_for_scene(bpy.context, scene, [first], "AUTO") is None  # a mesh gets its own
    assert choose_for_scene(bpy.context, only_clip(scene), [first], "AUTO") is first
    half = Skeleton("half", [Joint(name) for name in ("j1", "j2", "x", "y", "z")])
    assert choice("AUTO", first, skeleton=half) is None
