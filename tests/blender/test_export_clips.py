"""Which clips an export has: names, ranges, rates and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from helpers_export import (
    Exported,
    active,
    add,
    armature,
    assert_plays_as_shown,
    bpy,
    drive,
    export,
    key,
    new_action,
    push_down,
    tetra,
)

pytestmark = pytest.mark.needs_bpy


def _positions(made: Exported, node: str = "#Thing", clip: str = "Default") -> list[float]:
    """Return Blender's x of each frame."""
    return [-frame.position.x for frame in made.clip(node, clip).frames]


def _mover(keys: Mapping[float, float], name: str = "#Thing") -> Any:
    obj = tetra(name)
    key(obj, "location", keys, 0)
    return obj


# ------------------------------------------------------------------------------------------ ranges and rates


def test_the_range_is_the_actions_own_and_both_ends_are_kept() -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 250
    _mover({10: 0, 14: 4})
    made = export()
    assert made.clip_names == {"Default"}
    assert _positions(made) == pytest.approx([0, 1, 2, 3, 4])


def test_the_range_covers_all_that_plays() -> None:
    _mover({10: 0, 14: 4}, "#One")
    _mover({12: 0, 17: 5}, "#Two")
    made = export()
    assert _positions(made, "#One") == pytest.approx([0, 1, 2, 3, 4, 4, 4, 4])
    assert _positions(made, "#Two") == pytest.approx([0, 0, 0, 1, 2, 3, 4, 5])


def test_a_manual_range_of_the_action_counts() -> None:
    action = _mover({10: 0, 14: 4}).animation_data.action
    action.use_frame_range, action.frame_start, action.frame_end = True, 11, 13
    assert _positions(export()) == pytest.approx([1, 2, 3])


def test_the_scene_range_is_an_option() -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 9, 12
    _mover({10: 0, 14: 4})
    assert _positions(export(clips="SCENE")) == pytest.approx([0, 0, 1, 2])


def test_without_actions_the_scene_gives_the_range() -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 3, 6
    drive(tetra("#Thing"), "location", "frame", 0)
    assert _positions(export()) == pytest.approx([3, 4, 5, 6])


def test_keys_between_frames_are_sampled_from_the_first_key() -> None:
    _mover({0.5: 0, 4.5: 4})
    assert _positions(export()) == pytest.approx([0, 1, 2, 3, 4], abs=1e-4)


@pytest.mark.parametrize("frame", [0, 1, 37])
def test_an_action_of_one_key_has_one_frame_or_none(frame: int) -> None:
    obj = _mover({frame: 3})
    made = export()
    assert made.clip_names == set()
    assert made.node("#Thing").position.x == -3
    new_action(obj, "Move", "location", {1: 0, 3: 2}, 0)
    made = export(clips="ACTIONS")
    assert all(len(found.frames) > 0 for node in made.nodes for found in node.nodeAnimations)
    assert _positions(made, clip="Move") == pytest.approx([0, 1, 2])


@pytest.mark.parametrize(("fps", "base", "expected"), [(30, 1.001, 29.97003), (24, 1, 24), (25, 2, 12.5)])
def test_the_rate_is_the_scenes_base_included(fps: int, base: float, expected: float) -> None:
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = fps, base
    _mover({1: 0, 5: 4})
    clip = export().clip("#Thing")
    assert clip.framerate == pytest.approx(expected, rel=1e-6)
    assert len(clip.frames) == 5


@pytest.mark.parametrize(("rate", "expected"), [(48.0, np.arange(9) / 2), (12.0, [0, 2, 4])])
def test_another_rate_takes_samples_between_the_frames(rate: float, expected: Any) -> None:
    _mover({1: 0, 5: 4})
    made = export(frame_rate=rate)
    assert made.clip("#Thing").framerate == rate
    assert _positions(made) == pytest.approx(list(expected), abs=1e-5)


def test_the_rate_an_imported_action_had() -> None:
    action = _mover({1: 0, 5: 4}).animation_data.action
    action.meshferry.fps = 12
    made = export()
    assert made.clip("#Thing").framerate == 12
    assert _positions(made) == pytest.approx([0, 2, 4], abs=1e-5)


# ----------------------------------------------------------------------------------------------------- actions


def _two_actions() -> Any:
    obj = tetra("#Thing")
    new_action(obj, "Open", "location", {1: 0, 4: 3}, 0)
    push_down(obj, "Open strip", 50).mute = True
    new_action(obj, "Close", "location", {11: 5, 13: 1}, 0)
    return obj


def test_every_action_is_a_clip_with_its_last_frame() -> None:
    _two_actions()
    made = export(clips="ACTIONS")
    assert made.clip_names == {"Open", "Close"}
    assert _positions(made, clip="Open") == pytest.approx([0, 1, 2, 3])
    assert _positions(made, clip="Close") == pytest.approx([5, 3, 1])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("Open", {"Open"}),
        ("Cl*, nothing", {"Close"}),
        ("Open,Close", {"Open", "Close"}),
        ("open", set()),
        ("", {"Open", "Close"}),
    ],
)
def test_clips_are_chosen_by_name(names: str, expected: set[str]) -> None:
    _two_actions()
    assert export(clips="ACTIONS", clip_names=names).clip_names == expected


def test_an_action_that_is_not_to_be_exported_stays_out() -> None:
    _two_actions()
    bpy.data.actions["Open"].meshferry.use_export = False
    assert export(clips="ACTIONS").clip_names == {"Close"}


def test_the_active_action_alone_is_the_default() -> None:
    _two_actions()
    made = export()
    assert made.clip_names == {"Default"}
    assert _positions(made) == pytest.approx([5, 3, 1])


def test_no_clips_at_all() -> None:
    _two_actions()
    assert export(clips="NONE").clip_names == set()


def test_actions_of_others_are_no_clips() -> None:
    _two_actions()
    new_action(tetra("Other", bpy.context.scene.collection), "Foreign", "location", {1: 0, 9: 9}, 0)
    assert export(clips="ACTIONS").clip_names == {"Open", "Close"}


def test_clips_of_an_armature_move_what_hangs_on_it() -> None:
    rig = armature(collection=bpy.context.scene.collection)
    bone = rig.pose.bones["Bone"]
    obj = tetra("#Thing", parent=rig)
    obj.parent_type, obj.parent_bone = "BONE", "Bone"
    for name, height in (("Up", 4.0), ("Down", -2.0)):
        rig.animation_data_create().action = None
        bone.keyframe_insert("location", frame=1)
        key(bone, "location", {1: (0, 0, 0), 3: (0, height, 0)})
        rig.animation_data.action.name = name
    made = export(clips="ACTIONS")
    assert made.clip_names == {"Up", "Down"}
    heights = {name: [frame.position.y for frame in made.clip("#Thing", name).frames] for name in made.clip_names}
    assert np.diff(heights["Up"]) == pytest.approx([2, 2])
    assert np.diff(heights["Down"]) == pytest.approx([-1, -1])


def test_an_action_of_shape_keys_is_a_clip() -> None:
    obj = tetra("#Thing")
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="Tall").data[3].co = (0, 0, 9)
    keys = obj.data.shape_keys
    for name, value in (("Half", 0.5), ("Full", 1.0)):
        keys.animation_data_create().action = None
        key(keys.key_blocks["Tall"], "value", {1: 0.0, 3: value})
        keys.animation_data.action.name = name
    made = export(clips="ACTIONS")
    assert made.clip_names == {"Half", "Full"}
    assert made.triangles("Full", 2)[..., 2].max() == pytest.approx(9)
    assert made.triangles("Half", 2)[..., 2].max() == pytest.approx(6)
    assert made.triangles()[..., 2].max() == pytest.approx(3)


def test_actions_of_one_clip_name_play_together() -> None:
    for name, way in (("#One", 4), ("#Two", -4)):
        action = new_action(tetra(name), f"{name} opens", "location", {1: 0, 3: way}, 0)
        action.meshferry.clip_name = "Open"
    made = export(clips="ACTIONS")
    assert made.clip_names == {"Open"}
    assert _positions(made, "#One", "Open") == pytest.approx([0, 2, 4])
    assert _positions(made, "#Two", "Open") == pytest.approx([0, -2, -4])


def test_an_action_plays_alone_while_it_is_sampled() -> None:
    _two_actions()
    new_action(tetra("#Other"), "Swing", "location", {1: 0, 3: 2}, 0)
    made = export(clips="ACTIONS")
    assert [clip.name for clip in made.node("#Other").nodeAnimations] == ["Swing"]
    assert sorted(clip.name for clip in made.node("#Thing").nodeAnimations) == ["Close", "Open"]


def test_strips_do_not_play_into_the_clips_of_actions() -> None:
    obj = tetra("#Thing")
    new_action(obj, "Sway", "rotation_euler", {1: 0.5, 3: 1.0}, 2)
    push_down(obj, "Sway strip", 1)
    new_action(obj, "Open", "location", {1: 0, 3: 2}, 0)
    made = export(clips="ACTIONS")
    turned = {name: [frame.rotation.y for frame in made.clip("#Thing", name).frames] for name in ("Open", "Sway")}
    assert np.ptp(turned["Open"]) == pytest.approx(0, abs=1e-6)
    assert np.ptp(turned["Sway"]) > 0.2
    assert _positions(made, clip="Sway") == pytest.approx([0, 0, 0])


# --------------------------------------------------------------------------------------------------------- NLA


def test_strips_of_the_nla_are_clips_muted_or_not() -> None:
    obj = _two_actions()
    push_down(obj, "Close strip", 20)
    made = export(clips="NLA")
    assert made.clip_names == {"Open strip", "Close strip"}
    assert _positions(made, clip="Open strip") == pytest.approx([0, 1, 2, 3])
    assert _positions(made, clip="Close strip") == pytest.approx([5, 3, 1])


def test_a_strip_stretched_to_twice_its_length() -> None:
    obj = _mover({1: 0, 3: 2})
    strip = push_down(obj, "Slow", 10)
    strip.scale = 2
    assert _positions(export(clips="NLA"), clip="Slow") == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_what_the_nla_plays_is_the_default_clip_over_its_strips() -> None:
    bpy.context.scene.frame_end = 250
    obj = _mover({1: 0, 3: 2})
    push_down(obj, "First", 10)
    action = new_action(obj, "Then", "location", {1: 5, 3: 7}, 0)
    push_down(obj, "Second", 14)
    for track in obj.animation_data.nla_tracks:
        track.strips[0].extrapolation = "HOLD_FORWARD"
    assert action.name == "Then"
    made = export()
    assert_plays_as_shown(made, obj, frames=range(10, 17))
    assert _positions(made) == pytest.approx([0, 1, 2, 2, 5, 6, 7])


def test_a_solo_track_plays_alone() -> None:
    obj = _mover({1: 0, 3: 2})
    push_down(obj, "First", 10)
    new_action(obj, "Then", "location", {1: 5, 3: 7}, 0)
    push_down(obj, "Second", 30)
    obj.animation_data.nla_tracks[1].is_solo = True
    made = export()
    assert_plays_as_shown(made, obj, frames=range(30, 33))


# ------------------------------------------------------------------------------------------------------- loops


def _cycle(*, cyclic: bool, last: float = 0) -> Any:
    obj = _mover({1: 0, 3: 2, 5: last})
    action = obj.animation_data.action
    action.use_frame_range, action.frame_start, action.frame_end, action.use_cyclic = True, 1, 5, cyclic
    return obj


@pytest.mark.parametrize(
    ("cyclic", "loop", "expected"),
    [
        (True, "AUTO", [0, 1, 2, 1]),
        (False, "AUTO", [0, 1, 2, 1, 0]),
        (True, "KEEP", [0, 1, 2, 1, 0]),
        (False, "DROP", [0, 1, 2, 1]),
    ],
)
@pytest.mark.parametrize("clips", ["ACTIVE", "ACTIONS"])
def test_a_repeated_last_pose_is_left_out_of_loops(cyclic: bool, loop: str, expected: list[float], clips: str) -> None:
    name = _cycle(cyclic=cyclic).animation_data.action.name
    assert _positions(export(loop=loop, clips=clips), clip="Default" if clips == "ACTIVE" else name) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("loop", ["AUTO", "DROP"])
def test_a_last_pose_that_repeats_nothing_is_kept(loop: str) -> None:
    _cycle(cyclic=True, last=0.5)
    assert len(_positions(export(loop=loop))) == 5


def test_vertex_animation_loops_too() -> None:
    obj = tetra("#Thing")
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="Tall").data[3].co = (0, 0, 9)
    key(obj.data.shape_keys.key_blocks["Tall"], "value", {1: 0.0, 3: 1.0, 5: 0.0})
    assert [len(export(loop=loop).clip("#Thing").frames) for loop in ("KEEP", "AUTO", "DROP")] == [5, 5, 4]


def test_a_turn_of_360_degrees_is_a_loop() -> None:
    obj = add("#Thing")
    key(obj, "rotation_euler", {1: 0.0, 5: 2 * np.pi}, 2)
    assert [len(export(loop=loop).clip("#Thing").frames) for loop in ("KEEP", "DROP")] == [5, 4]


@pytest.mark.parametrize("keys", [{1: 5, 3: 5}, {1: 5}], ids=["still", "one key"])
def test_a_clip_that_stands_still_elsewhere_than_the_rest_is_no_loss(keys: Mapping[float, float]) -> None:
    obj = tetra("#Thing")
    for name, places in (("Closed", {1: 0, 3: 0}), ("Move", {1: 0, 3: 2}), ("Opened", keys)):
        new_action(obj, name, "location", places, 0)
        push_down(obj, name).mute = True
    made = export(clips="ACTIONS")
    rest = -made.node("#Thing").position.x
    for name, place in (("Closed", 0), ("Opened", 5)):
        poses = _positions(made, clip=name) if name in made.clip_names else [rest]
        assert poses == pytest.approx([place] * len(poses))
    assert _positions(made, clip="Move") == pytest.approx([0, 1, 2])


def test_what_a_clip_does_not_key_stands_as_at_rest_whatever_played_before() -> None:
    rig = armature(collection=bpy.context.scene.collection)
    with active(rig, mode="EDIT"):
        other = rig.data.edit_bones.new("Other")
        other.head, other.tail = (5, 0, 0), (5, 0, 1)
    for name, bone in (("#One", "Bone"), ("#Two", "Other")):
        obj = tetra(name, parent=rig)
        obj.parent_type, obj.parent_bone = "BONE", bone
        rig.animation_data_create().action = None
        key(rig.pose.bones[bone], "location", {1: (0, 0, 0), 3: (2, 0, 0)})
        rig.animation_data.action.name = f"Move {name}"
    made = export(clips="ACTIONS")
    clips = {node: [clip.name for clip in made.node(node).nodeAnimations] for node in ("#One", "#Two")}
    assert clips == {"#One": ["Move #One"], "#Two": ["Move #Two"]}
    assert [-made.node(node).position.x for node in clips] == pytest.approx([0, 5])
