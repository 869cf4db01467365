"""Exports, tools and animations of shaped avatars: the shape of an avatar in Blender gets into no file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pointing_bones
import pytest
import second_life_player as player
from second_life_models import Drawn
from shirts import make_shirt, weights_of

pytestmark = pytest.mark.needs_bpy

ENDS = {"low": 0.0, "high": 100.0}


def set_shape(rig: Any, shape: str) -> None:
    """Set all sliders: to the standard avatar, to an end, or at random; a number is the seed."""
    from meshferry.blender_data.rigging import body_shapes

    sliders = body_shapes.shapes().sliders()
    if shape == "standard":
        percents = {slider.number: slider.standard for slider in sliders}
    elif shape in ENDS:
        percents = {slider.number: ENDS[shape] for slider in sliders}
    else:
        rng = np.random.default_rng(int(shape))
        percents = {slider.number: float(rng.uniform(0, 100)) for slider in sliders}
    body_shapes.set_percents(rig, percents)


def pose(rig: Any) -> None:
    """Turn all bones at random, and move the pelvis."""
    rng = np.random.default_rng(4)
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1.0, *rng.normal(size=3) * 0.1)
    rig.pose.bones["mPelvis"].location += type(rig.pose.bones["mPelvis"].location)((0.1, 0.2, 0.3))


def state_of(rig: Any) -> Any:
    channels = [
        (*bone.location, *bone.rotation_quaternion, *bone.scale, *np.ravel(bone.matrix)) for bone in rig.pose.bones
    ]
    return rig.data.pose_position, channels


def dressed(bpy: Any, avatar: Any = None) -> Any:
    """Dress an avatar in a fitted shirt and a belt with a modifier after that of the armature; add one by default."""
    if avatar is None:
        bpy.ops.object.second_life_avatar_add()
    rig = avatar or bpy.context.object
    shirt = make_shirt(cloth="single")
    bpy.ops.mesh.primitive_cylinder_add(radius=0.2, depth=0.1, location=(0, 0, 1.05), vertices=12)
    belt = bpy.context.object
    belt.name = "belt"
    choose(bpy, belt, shirt)
    assert bpy.ops.object.second_life_bind() == {"FINISHED"}
    assert bpy.ops.object.second_life_fitted_mesh(factor=0.7) == {"FINISHED"}
    belt.modifiers.new("Smooth", "SUBSURF")
    bpy.ops.mesh.primitive_cube_add(size=0.2, location=(0, 0, 1.9))
    hat = bpy.context.object
    hat.name = "hat"
    hat.parent, hat.parent_type, hat.parent_bone = rig, "BONE", "mHead"
    bpy.context.view_layer.update()
    hat.matrix_world.translation = (0, 0, 1.9)
    choose(bpy, hat, belt, shirt)
    bpy.context.view_layer.update()
    return rig


def choose(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[-1]


def exporter(operator: str, suffix: str, *chosen: tuple[str, ...], **options: Any) -> Callable[[Any, Path], Any]:
    """Return a function that exports each set of objects by itself and returns the files."""

    def export(bpy: Any, folder: Path) -> Any:
        for names in chosen or (("belt", "shirt"), ("hat",)):
            choose(bpy, *(bpy.data.objects[name] for name in names))
            path = folder / f"{names[0]}{suffix}"
            assert getattr(bpy.ops.export_scene, operator)(filepath=str(path), scope="SELECTION", **options)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    return export


def figures(bpy: Any, _folder: Path) -> Any:
    from meshferry.operators.families.second_life.exporters import chosen_models
    from meshferry.operators.families.second_life.land_impact import draw_weight

    assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
    layout = Drawn()
    draw_weight(layout, bpy.context, chosen_models(bpy.context))
    return layout.lines


def made_levels(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
    found = [obj for obj in bpy.data.objects if obj.name.endswith("_LOD1")]
    assert len(found) == 3
    return [([tuple(vertex.co) for vertex in obj.data.vertices], weights_of(obj)) for obj in found]


def bound(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_bind(use_as_shown=False) == {"FINISHED"}
    return [weights_of(obj) for obj in bpy.context.selected_objects]


def fitted(bpy: Any, _folder: Path) -> Any:
    assert bpy.ops.object.second_life_fitted_mesh(factor=0.2, use_as_shown=False) == {"FINISHED"}
    return [weights_of(obj) for obj in bpy.context.selected_objects]


def transferred(bpy: Any, _folder: Path) -> Any:
    other = make_shirt("other", cloth="thick")
    choose(bpy, other)
    assert bpy.ops.object.second_life_transfer_weights(source="shirt", use_mirror=True, use_as_shown=False) == {
        "FINISHED"
    }
    return weights_of(other)


MADE = {"missing_levels": "MAKE", "physics_shape": "PARTS"}
EXPORTERS: dict[str, Callable[[Any, Path], Any]] = {
    "upload set": exporter("second_life_upload", ".dae", **MADE),
    "mesh": exporter("second_life_mesh", ".llmesh", **MADE),
    "bundle": exporter("second_life_bundle", ".slm", **MADE),
    "request": exporter("second_life_request", ".llsd", **MADE),
    "unigine": exporter("unigine_mesh", ".mesh", ("belt", "shirt")),
    "figures": figures,
    # These change the scene.
    "automatic weights": bound,
    "fitted mesh": fitted,
    "transfer": transferred,
    "levels": made_levels,
}


def all_exports(bpy: Any, folder: Path, shape: str, *, is_posed: bool) -> dict[str, Any]:
    """Return what all exporters and tools make of one avatar, which keeps its shape and pose."""
    rig = dressed(bpy)
    set_shape(rig, shape)
    if is_posed:
        pose(rig)
    bpy.context.view_layer.update()
    before, found = state_of(rig), {}
    for kind, export in EXPORTERS.items():
        choose(bpy, *(bpy.data.objects[name] for name in ("hat", "belt", "shirt")))
        (folder / kind).mkdir()
        found[kind] = export(bpy, folder / kind)
        bpy.context.view_layer.update()
        assert state_of(rig) == before, kind
    return found


@pytest.fixture(scope="module")
def unshaped(empty_file: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    import bpy

    bpy.ops.wm.read_homefile(filepath=empty_file, use_empty=True)
    return all_exports(bpy, tmp_path_factory.mktemp("unshaped"), "standard", is_posed=False)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "is_posed"), [("low", False), ("high", True), ("1", True)])
def test_no_shape_and_no_pose_changes_an_export(unshaped, clean_blender, tmp_path, shape, is_posed) -> None:
    found = all_exports(clean_blender, tmp_path, shape, is_posed=is_posed)
    for kind, made in unshaped.items():
        assert made and found[kind] == made, kind


# -- animations ---------------------------------------------------------------------------------------------------


def imported(bpy: Any, path: Path, shape: str = "") -> Any:
    """Add an avatar, of a shape if one is given, and import an animation onto it; return the armature."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    if shape:
        set_shape(rig, shape)
    assert bpy.ops.import_scene.second_life(filepath=str(path)) == {"FINISHED"}
    assert rig.animation_data.action is not None
    return rig


def exported(bpy: Any, folder: Path, name: str = "second_life_anim", **options: Any) -> bytes:
    path = folder / f"any.{name[12:]}"
    options = {"clips": "ACTIVE", **options}
    assert getattr(bpy.ops.export_scene, name)(filepath=str(path), **options) == {"FINISHED"}
    return path.read_bytes()


def frames(bpy: Any, folder: Path) -> Any:
    """Return the values of a .bvh file: inches and degrees."""
    from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH

    return SECOND_LIFE_BVH.read(exported(bpy, folder, "second_life_bvh")).frames


def curves(data: bytes) -> dict[str, Any]:
    return dict(player.curves_of(data)[1])


def require_same_codes(found: bytes, wanted: bytes, about: str) -> None:
    """Require the same joints with the same keys, whose codes differ by 1 at most."""
    found_joints, wanted_joints = curves(found), curves(wanted)
    assert list(found_joints) == list(wanted_joints), about
    for joint, (rotations, positions) in wanted_joints.items():
        for one, other in zip(found_joints[joint], (rotations, positions), strict=True):
            assert one.shape == other.shape, (about, joint)
            assert np.abs(one - other).max(initial=0.0) <= 1.0, (about, joint)


SHAPES = ("low", "high", "1", "2")
EVERY_KEY = {"use_key_reduction": False, "use_positions": True}


@pytest.fixture(params=["by keys", "sampled"])
def way(request, monkeypatch) -> str:
    """Read poses from the keys, or sample them frame by frame."""
    from meshferry.blender_data.animation import pose_curves

    if request.param == "sampled":
        monkeypatch.setattr(pose_curves, "keys_suffice", lambda *_: False)
    return request.param


def forget_file(rig: Any) -> str:
    """Let the export compute all keys; return the stored file, with which it takes keys from there."""
    kept = rig.animation_data.action.meshferry.playback
    original, kept.original = kept.original, ""
    return original


def pelvis_height(bpy: Any, rig: Any) -> float:
    bpy.context.scene.frame_set(bpy.context.scene.frame_end)
    return rig.pose.bones["mPelvis"].matrix.translation.z


@pytest.mark.slow
@pytest.mark.any_version
def test_animations_are_exported_as_from_the_standard_avatar(clean_blender, samples, tmp_path, way) -> None:
    """With the keys of the file, computed anew with all positions, and as .bvh; imported before and after the shape."""
    from meshferry.blender_data.mesh_data import checksums

    bpy, folder = clean_blender, samples / "secondlife_animation"
    paths = sorted((*folder.glob("*.anim"), *folder.glob("bvh/*.bvh")))
    for number, path in enumerate(paths[way == "sampled" :: 4]):
        rig = imported(bpy, path)
        kept_bytes, height = exported(bpy, tmp_path), pelvis_height(bpy, rig)
        original = forget_file(rig)
        wanted, as_bvh = exported(bpy, tmp_path, **EVERY_KEY), frames(bpy, tmp_path)
        for is_first in (False, True):
            shape = SHAPES[(number + is_first) % len(SHAPES)]
            about = f"{path.name} {shape} {is_first}"
            rig = imported(bpy, path, shape if is_first else "")
            set_shape(rig, shape)
            assert pelvis_height(bpy, rig) == pytest.approx(height + rig.meshferry_shape_root[2], abs=1e-5), about
            assert checksums.edited_actions(rig) == []
            assert not original or exported(bpy, tmp_path) == kept_bytes, about
            forget_file(rig)
            require_same_codes(exported(bpy, tmp_path, **EVERY_KEY), wanted, about)
            np.testing.assert_allclose(frames(bpy, tmp_path), as_bvh, atol=2e-3, err_msg=about)


def test_movements_of_users_are_exported_without_the_shape(clean_blender, tmp_path, way) -> None:
    """The pelvis and a bone of the face are moved; the floor of the shape is left out, and so are other locations."""
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    rig = bpy.context.object
    set_shape(rig, "high")
    vector = rig.pose.bones["mPelvis"].location.__class__
    for name, move in (("mPelvis", (0.1, -0.2, 0.3)), ("mFaceChin", (0.01, 0.0, 0.0)), ("mFaceNoseBase", (0, 0, 0))):
        bone = rig.pose.bones[name]
        for frame, share in ((1, 0.0), (11, 1.0)):
            before = bone.location.copy()
            bone.location = before + bone.bone.matrix_local.to_3x3().inverted() @ vector(move) * share
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
            bone.location = before
    for shape, wanted in (("high", ["mPelvis", "mFaceChin"]), ("low", ["mPelvis", "mFaceChin", "mFaceNoseBase"])):
        set_shape(rig, shape)
        found = curves(exported(bpy, tmp_path, **EVERY_KEY))
        moved = {name: player.decoded(keys[-1, 1:], 5.0) for name, (_turns, keys) in found.items() if len(keys)}
        # What was keyed at another shape moves the joint in the target, too, if positions are wanted.
        assert list(moved) == wanted
        np.testing.assert_allclose(moved["mPelvis"], (0.2, 0.1, 0.3), atol=2e-4)


def test_static_poses_are_exported_as_from_the_standard_avatar(clean_blender, samples, tmp_path) -> None:
    """The pose of an action, and the one that is left without an action."""
    bpy, found = clean_blender, {}
    for shape in ("", "1"):
        rig = imported(bpy, samples / "secondlife_animation" / "opensim_1a2bd58e.anim", shape)
        bpy.context.scene.frame_set(7)
        found[shape] = [exported(bpy, tmp_path, clips="POSE")]
        rig.animation_data_clear()
        found[shape].append(exported(bpy, tmp_path, clips="POSE"))
    for one, other in zip(found["1"], found[""], strict=True):
        require_same_codes(one, other, "pose")


def test_avatars_with_other_axes_are_exported_without_a_shape(clean_blender, samples, tmp_path, way) -> None:
    """Their bones inherit scale and do not lie along the axes, so that shapes are not exact."""
    bpy, found = clean_blender, {}
    for shape in ("standard", "1"):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        rig = pointing_bones.add()
        path = samples / "secondlife_animation" / "opensim_1a2bd58e.anim"
        assert bpy.ops.import_scene.second_life(filepath=str(path)) == {"FINISHED"}
        forget_file(rig)
        set_shape(rig, shape)
        found[shape] = exported(bpy, tmp_path, **EVERY_KEY)
    require_same_codes(found["1"], found["standard"], "other axes")


def key_whole_characters(bpy: Any, rig: Any) -> None:
    """Key all channels of all bones at the ends of the scene, as the keying set of this name does."""
    for frame in (bpy.context.scene.frame_start, bpy.context.scene.frame_end):
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            for channel in ("location", "rotation_quaternion", "scale"):
                bone.keyframe_insert(channel, frame=frame)


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("opensim_1a2bd58e.anim", ("1", "2")),
        ("ruth_bento_random.anim", ("high", "low")),
        ("opensim_1a2bd58e.anim", ("1", "standard")),
        ("opensim_1a2bd58e.anim", ("standard", "1")),
    ],
)
def test_keys_of_another_shape_are_not_exported(clean_blender, samples, tmp_path, way, name, shapes) -> None:
    """Keying whole characters keys the shape of that time, too."""
    bpy, path = clean_blender, samples / "secondlife_animation" / name
    rig = imported(bpy, path)
    key_whole_characters(bpy, rig)
    forget_file(rig)
    wanted = exported(bpy, tmp_path, **EVERY_KEY)
    rig = imported(bpy, path)
    forget_file(rig)
    for shape in shapes:
        set_shape(rig, shape)
        if shape == shapes[0]:
            key_whole_characters(bpy, rig)
    require_same_codes(exported(bpy, tmp_path, **EVERY_KEY), wanted, name)


@pytest.mark.parametrize("cleaning", ["operator", "fix"])
def test_clean_action_removes_what_holds_a_shape(clean_blender, samples, tmp_path, cleaning) -> None:
    """The file is then as if nothing but rotations and the pelvis had been keyed; the bones show the shape."""
    from meshferry.blender_data import animated_blocks

    bpy, path = clean_blender, samples / "secondlife_animation" / "opensim_1a2bd58e.anim"
    rig = imported(bpy, path)
    before = exported(bpy, tmp_path)
    set_shape(rig, "1")
    bpy.ops.export_scene.second_life_anim_check()
    assert [finding.fix for finding in bpy.context.window_manager.meshferry_check.findings if finding.fix] == []
    key_whole_characters(bpy, rig)
    set_shape(rig, "2")
    wanted = [(tuple(bone.scale), tuple(bone.location)) for bone in rig.pose.bones if bone.name != "mPelvis"]
    bpy.context.scene.frame_set(2)
    bpy.ops.export_scene.second_life_anim_check()
    findings = bpy.context.window_manager.meshferry_check.findings
    (index,) = (number for number, finding in enumerate(findings) if finding.fix == "keys-of-a-shape")
    assert "keys of 159 bones hold a shape" in findings[index].message
    if cleaning == "fix":
        assert bpy.ops.object.meshferry_finding_fix(index=index) == {"FINISHED"}
    else:
        assert bpy.ops.object.second_life_clean_action() == {"FINISHED"}
        assert bpy.ops.object.second_life_clean_action() == {"CANCELLED"}
    paths = {curve.data_path for curve in animated_blocks.action_curves(rig.animation_data.action, None)}
    assert {path for path in paths if not path.endswith("quaternion")} == {'pose.bones["mPelvis"].location'}
    bpy.context.scene.frame_set(3)
    shown = [(tuple(bone.scale), tuple(bone.location)) for bone in rig.pose.bones if bone.name != "mPelvis"]
    np.testing.assert_allclose(np.ravel(shown), np.ravel(wanted), atol=1e-6)
    joints = curves(exported(bpy, tmp_path))
    for joint, (rotations, _positions) in curves(before).items():
        assert np.abs(joints[joint][0] - rotations).max(initial=0.0) <= 1.0, joint
    assert [joint for joint, (_rotations, positions) in joints.items() if len(positions)] == ["mPelvis"]
