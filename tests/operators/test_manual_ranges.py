"""Keys outside the frame range that an import or the user gave an action."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CASES = {
    "windmill.timbermesh": ("timbermesh", "timbermesh_check"),
    "dance.anim": ("second_life", "second_life_anim_check"),
    "lamp_nod.anim": ("unigine", "unigine_mesh_check"),
}


@pytest.fixture(params=CASES)
def case(request: Any) -> Any:
    return (request.param, *CASES[request.param])


def imported(bpy: Any, folder: Path, name: str, operator: str) -> tuple[Path, Any]:
    """Import a copy of an example; return its path and an object with its action, which is active."""
    path = Path(shutil.copy(EXAMPLES / name, folder))
    assert getattr(bpy.ops.import_scene, operator)(filepath=str(path)) == {"FINISHED"}
    animated = next(obj for obj in bpy.data.objects if obj.animation_data and obj.animation_data.action)
    bpy.context.view_layer.objects.active = animated
    return path, animated


def add_key(animated: Any, frame: float) -> None:
    moved = animated.pose.bones[0] if animated.type == "ARMATURE" else animated
    moved.location.x += 0.1
    moved.keyframe_insert("location", frame=frame)


def length(path: Path) -> float:
    """Return the number of frames of the first animation of a file, or its duration in seconds."""
    from meshferry.io_formats import api

    clip = api.read_scene(path).clips[0]
    return clip.frame_count or clip.duration


def test_keys_outside_an_imported_range_are_exported(clean_blender, tmp_path, case, capfd):
    bpy = clean_blender
    path, animated = imported(bpy, tmp_path, *case[:2])
    before = length(path)
    step = 1 if before == int(before) > 10 else 1 / bpy.context.scene.render.fps
    action = animated.animation_data.action
    start, end = action.frame_range
    add_key(animated, end + 24)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    text = f"Animation '{action.name}': exported from frame {{:g}} to {end + 24:g}, since keys are outside the imported"
    assert text.format(start) in capfd.readouterr().out
    assert length(path) == pytest.approx(before + 24 * step, abs=1e-3)
    add_key(animated, start - 12)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert text.format(start - 12) in capfd.readouterr().out
    assert length(path) == pytest.approx(before + 36 * step, abs=1e-3)


@pytest.mark.parametrize("name", ["windmill.timbermesh", "lamp_nod.anim"])
def test_a_longer_range_keeps_the_samples_on_imported_keys(clean_blender, tmp_path, name):
    """The scene has another frame rate than the file, and the new keys are between samples."""
    from meshferry.io_formats import api

    bpy = clean_blender
    bpy.context.scene.render.fps = 30
    path, animated = imported(bpy, tmp_path, name, CASES[name][0])
    before = api.read_scene(path).clips[0]
    start, end = animated.animation_data.action.frame_range
    add_key(animated, start - 0.4)
    add_key(animated, end + 0.4)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    after = api.read_scene(path).clips[0]
    assert after.frame_count == before.frame_count + 2
    for old, new in zip(before.transforms, after.transforms, strict=True):
        assert np.abs(np.abs(new.rotation[1:-1]) - np.abs(old.rotation)).max() < 1e-4


def test_keys_of_muted_curves_extend_nothing(clean_blender, tmp_path, case, capfd):
    from meshferry.blender_data import animated_blocks

    path, animated = imported(clean_blender, tmp_path, *case[:2])
    before = length(path)
    action = animated.animation_data.action
    add_key(animated, action.frame_range[1] + 24)
    for curve in animated_blocks.action_curves(action, None):
        curve.mute = curve.keyframe_points[-1].co.x > action.frame_range[1] + 1
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "outside" not in capfd.readouterr().out
    assert length(path) == pytest.approx(before)


@pytest.mark.parametrize("clips", ["SCENE", "NLA", "POSE"])
def test_ranges_from_elsewhere_are_not_reported_as_extended(clean_blender, tmp_path, clips, capfd):
    bpy = clean_blender
    path, animated = imported(bpy, tmp_path, "lamp_nod.anim", "unigine")
    action = animated.animation_data.action
    add_key(animated, action.frame_range[1] + 24)
    if clips == "NLA":
        animated.animation_data.nla_tracks.new().strips.new("nod", 1, action)
        animated.animation_data.action = None
    bpy.ops.export_scene.unigine_anim(filepath=str(tmp_path / "new.anim"), clips=clips)
    assert "outside" not in capfd.readouterr().out
    assert length(tmp_path / "new.anim") == (1 if clips == "POSE" else length(path))


def test_a_range_of_the_user_is_respected_and_checked(clean_blender, tmp_path, case, capfd):
    bpy = clean_blender
    name, operator, check = case
    path, animated = imported(bpy, tmp_path, name, operator)
    before = length(path)
    action = animated.animation_data.action
    _, end = action.frame_range
    add_key(animated, end + 24)
    action.frame_end = end + 12
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "outside" not in capfd.readouterr().out
    assert before < length(path) < before + 24
    if name == "lamp_nod.anim":  # the check of the engine is about meshes
        bpy.ops.import_scene.unigine(filepath=str(EXAMPLES / "lamp.mesh"))
        lamp = next(obj for obj in bpy.data.objects if obj.type == "MESH")
        lamp.find_armature().animation_data_create().action = action
        bpy.context.view_layer.objects.active = lamp
    if operator == "timbermesh":
        layer = bpy.context.view_layer
        layer.active_layer_collection = layer.layer_collection.children[0]
    assert getattr(bpy.ops.export_scene, check)() == {"FINISHED"}
    findings = {(one.item, one.message) for one in bpy.context.window_manager.meshferry_check.findings}
    expected = (
        f"keys at {end + 24:g} are outside its Manual Frame Range (1 to {end + 12:g}), so they are not exported; "
    )
    assert [text for subject, text in findings if subject == f"Animation '{action.name}'" and text.startswith(expected)]


def test_a_loop_of_a_whole_animation_grows_with_it(clean_blender, tmp_path):
    from meshferry.io_formats import api

    path, animated = imported(clean_blender, tmp_path, "dance.anim", "second_life")
    action = animated.animation_data.action
    add_key(animated, action.frame_range[1] + 24)
    add_key(animated, action.frame_range[0] - 24)
    clean_blender.ops.export_scene.meshferry_again()
    clip = api.read_scene(path).clips[0]
    assert (clip.playback.loop_in, clip.playback.loop_out) == pytest.approx((0, clip.duration))


def test_unedited_imports_say_nothing(clean_blender, tmp_path, case, capfd):
    name, operator, _ = case
    imported(clean_blender, tmp_path, name, operator)
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    said = capfd.readouterr().out
    assert "outside" not in said and "nothing changed" in said


@pytest.mark.parametrize(("old", "new"), [(200, 100), (100, 300)])
def test_imports_into_stretched_time_come_back(clean_blender, tmp_path, case, old, new, capfd):
    """The scene shows each sample at the frame at which a scene without Time Stretching shows it."""
    bpy = clean_blender
    name, operator, _ = case
    shown, ranges, scene = [], [], bpy.context.scene
    for factors in ((100, 100), (old, new)):
        bpy.data.batch_remove([*bpy.data.objects, *bpy.data.actions, *bpy.data.collections])
        scene.frame_start, scene.frame_end = 1, 250
        scene.render.frame_map_old, scene.render.frame_map_new = factors
        path, animated = imported(bpy, tmp_path, name, operator)
        ranges.append((scene.frame_start, scene.frame_end))
        shown.append([])
        for frame in (1, 2, 5, 8):
            scene.frame_set(frame)
            moved = list(animated.pose.bones) if animated.type == "ARMATURE" else [animated]
            shown[-1].append([part.matrix_basis.copy() for part in moved])
    assert ranges[0] == ranges[1]
    assert np.abs(np.array(shown[0]) - np.array(shown[1])).max() < 1e-4
    assert np.ptp(shown[0], axis=0).max() > 0.01
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    said = capfd.readouterr().out
    assert "outside" not in said and "nothing changed" in said
    add_key(animated, animated.animation_data.action.frame_range[1] + 24 * old / new)
    before = length(path)
    assert clean_blender.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert length(path) == pytest.approx(before + 24 * (1 if before > 10 else 1 / scene.render.fps), abs=1e-3)


def test_keys_at_absurd_frames_extend_nothing_and_are_named(clean_blender, tmp_path, case, capfd):
    """A damaged file may have a key at such a frame, and a sample for each frame before it fills the memory."""
    bpy = clean_blender
    path, animated = imported(bpy, tmp_path, *case[:2])
    before = length(path)
    add_key(animated, 24_000_000)
    assert bpy.ops.export_scene.meshferry_again() == {"FINISHED"}
    assert "are outside its Manual Frame Range" in capfd.readouterr().out
    assert length(path) == pytest.approx(before, abs=1e-3)


def test_a_check_lists_keys_outside_the_range_once(clean_blender, tmp_path):
    bpy = clean_blender
    _path, animated = imported(bpy, tmp_path, "dance.anim", "second_life")
    action = animated.animation_data.action
    add_key(animated, action.frame_range[1] + 24)
    action.frame_end += 1
    assert bpy.ops.export_scene.second_life_anim_check() == {"FINISHED"}
    messages = [finding.message for finding in bpy.context.window_manager.meshferry_check.findings]
    assert len([text for text in messages if "Manual Frame Range" in text]) == 1
