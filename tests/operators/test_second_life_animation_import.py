"""Import of Second Life animations as an artist asks for it: the armature, the time line, and what is reported."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pointing_bones
import pytest
from meshfuzz import second_life_animation_seeds as made
from test_second_life_joints import avatar

pytestmark = pytest.mark.needs_bpy


def code(value: float, reach: float = 1.0) -> int:
    return round((value + reach) / (2 * reach) * 65535)


def about_z(degrees: float) -> tuple[int, int, int]:
    return made.ZERO, made.ZERO, code(math.sin(math.radians(degrees) / 2))


def bent(path: Path, *joints: bytes, **header: Any) -> Path:
    """Write an animation of two seconds in which joints turn by 30° about the vertical axis."""
    turn = made.keys((0, made.ZERO, made.ZERO, made.ZERO), (32768, *about_z(20)), (65535, *about_z(30)))
    rows = b"".join(made.joint(name, rotation=turn) for name in joints)
    path.write_bytes(made.header(joints=len(joints), **header) + rows + made.ending())
    return path


def active_action(armature: Any) -> Any:
    return armature.animation_data.action


def keyed_bones(action: Any) -> set[str]:
    from meshferry.blender_data import animated_blocks

    return {curve.data_path.split('"')[1] for curve in animated_blocks.action_curves(action, None)}


def armatures(bpy: Any) -> list[Any]:
    return [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]


def test_the_active_avatar_gets_the_animation(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    rig = avatar(bpy)
    path = bent(tmp_path / "wave.anim", b"mShoulderLeft", b"mElbowLeft")
    assert bpy.ops.import_scene.second_life(filepath=str(path)) == {"FINISHED"}
    assert armatures(bpy) == [rig]
    assert active_action(rig).name == "wave"
    assert keyed_bones(active_action(rig)) == {"mShoulderLeft", "mElbowLeft"}


@pytest.mark.parametrize("family", ["second_life", "unigine"])
def test_without_an_avatar_there_is_a_new_one(clean_blender: Any, tmp_path: Path, family: str) -> None:
    """Whichever menu entry is used: the content decides."""
    bpy = clean_blender
    getattr(bpy.ops.import_scene, family)(filepath=str(bent(tmp_path / "wave.anim", b"mShoulderLeft")))
    (rig,) = armatures(bpy)
    assert len(rig.data.bones) == 133
    assert active_action(rig).name == "wave"


def test_several_files_are_several_actions_of_one_avatar(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    rig = avatar(bpy)
    names = [bent(tmp_path / f"{name}.anim", b"mHead").name for name in ("one", "two", "three")]
    bpy.ops.import_scene.second_life(directory=str(tmp_path), files=[{"name": name} for name in names])
    assert armatures(bpy) == [rig]
    stashed = [strip.action.name for track in rig.animation_data.nla_tracks for strip in track.strips]
    assert sorted([*stashed, active_action(rig).name]) == ["one", "three", "two"]


def plain_rig(bpy: Any, names: dict[str, str]) -> Any:
    """Return an active armature with the heads of these joints of the avatar, under other names, as users build it."""
    model = avatar(bpy)
    heads = {name: model.data.bones[name].head_local.copy() for name in names}
    parents = {name: [above.name for above in model.data.bones[name].parent_recursive] for name in names}
    bpy.data.objects.remove(model)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for name, new in names.items():
        bone = rig.data.edit_bones.new(new)
        bone.head, bone.tail = heads[name], heads[name] + heads[name].__class__((0.0, 0.03, 0.1))
        above = next((above for above in parents[name] if above in names), None)
        if above is not None:
            bone.parent = rig.data.edit_bones[names[above]]
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def test_bones_with_other_accepted_names(clean_blender: Any, listener: Any, tmp_path: Path) -> None:
    from meshferry.blender_data.steps import finish
    from meshferry.operators.files.import_base import import_steps

    names = {"mPelvis": "hip", "mTorso": "abdomen", "mChest": "chest", "mShoulderLeft": "lShldr"}
    rig = plain_rig(clean_blender, names)
    path = bent(tmp_path / "wave.anim", b"mShoulderLeft", b"mTorso")
    messages, results = finish(import_steps(clean_blender.context, [str(path)], {}))
    assert (armatures(clean_blender), [result.armatures for result in results]) == ([rig], [[rig]])
    assert keyed_bones(active_action(rig)) == {"lShldr", "abdomen"}
    assert not messages.warnings  # neither bones without keys nor another bind pose matter


def test_the_share_of_animated_joints_chooses_the_armature(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    rig = plain_rig(bpy, {name: name for name in ("mPelvis", "mTorso")})
    bpy.ops.import_scene.second_life(
        filepath=str(bent(tmp_path / "hands.anim", b"mWristLeft", b"mWristRight", b"mTorso"))
    )
    assert len(armatures(bpy)) == 2  # a third is not enough
    assert rig.animation_data is None or active_action(rig) is None


def rotation(degrees: float) -> Any:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])


def test_missing_joints_between_move_the_bones_below(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    kept = ("mPelvis", "mChest", "mNeck", "mHead")
    rig = plain_rig(bpy, {name: name for name in kept})
    path = bent(tmp_path / "turn.anim", b"mTorso", b"mChest", b"mHead")
    data = path.read_bytes()
    with_report = bpy.ops.import_scene.second_life(filepath=str(path))
    assert with_report == {"FINISHED"}
    scene = bpy.context.scene
    scene.frame_set(1 + round(2 * scene.render.fps))
    # mTorso and mChest turn by 30° each about the axis that Blender's Z is, too; mNeck is between mChest and mHead.
    for name, degrees in (("mPelvis", 0), ("mChest", 60), ("mNeck", 60), ("mHead", 90)):
        bone = rig.pose.bones[name]
        turned = np.array(bone.matrix.to_3x3()) @ np.array(bone.bone.matrix_local.to_3x3()).T
        assert np.allclose(turned, rotation(degrees), atol=1e-3), name
    # The head of mChest goes around that of mTorso.
    rest = np.array(rig.data.bones["mChest"].head_local)
    torso = np.array(rig.data.bones["mPelvis"].head_local) + np.array((0.0, 0.0, 0.084073))  # mTorso in the table
    place = torso + rotation(30) @ (rest - torso)
    assert np.allclose(rig.pose.bones["mChest"].head, place, atol=1e-4)
    target = tmp_path / "again.anim"
    assert exported(bpy, rig, target) == data


def exported(bpy: Any, rig: Any, path: Path) -> bytes:
    from meshferry.blender_data import export_options
    from meshferry.blender_data.export_options import ExportOptions
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats import api
    from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION as KIND

    request = export_options.ExportRequest(
        bpy.context,
        object_selection.Source("OBJECTS", objects=(rig,)),
        ExportOptions.of({}),
        "motion",
        KIND.capabilities,
    )
    (part,) = api.files_of(exporter.export_scene(request), KIND, {})
    api.write_scene(part, path, KIND)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("loop", "is_cyclic", "markers"),
    [
        ((0.0, 2.0, 1), True, {}),
        ((0.5, 1.5, 1), False, {"Loop In": 13, "Loop Out": 37}),
        ((-46.0, 2.0, 1), True, {}),
        ((0.0, 2.0, 0), False, {}),
    ],
)
def test_range_and_loop_are_on_the_action(
    clean_blender: Any, tmp_path: Path, loop: tuple[float, float, int], is_cyclic: bool, markers: dict[str, int]
) -> None:
    bpy = clean_blender
    bpy.context.scene.render.fps = 24
    bpy.ops.import_scene.second_life(filepath=str(bent(tmp_path / "wave.anim", b"mHead", loop=loop)))
    action = active_action(armatures(bpy)[0])
    assert (action.use_frame_range, tuple(action.frame_range)) == (True, (1, 49))
    assert action.use_cyclic == is_cyclic
    assert {marker.name: marker.frame for marker in action.pose_markers} == markers


@pytest.mark.parametrize(("use_file_frame_rate", "fps", "frames"), [(True, 15, 31), (False, 24, 49)])
def test_frame_rate_of_the_keys(
    clean_blender: Any, tmp_path: Path, use_file_frame_rate: bool, fps: float, frames: int
) -> None:
    bpy = clean_blender
    bpy.context.scene.render.fps = 24
    times = [round(frame / 30 * 65535) for frame in (0, 1, 7, 16, 29, 30)]  # 15 frames a second
    turn = made.keys(*((time, *about_z(number)) for number, time in enumerate(times)))
    path = tmp_path / "steps.anim"
    path.write_bytes(made.header() + made.joint(b"mHead", rotation=turn) + made.ending())
    bpy.ops.import_scene.second_life(filepath=str(path), use_file_frame_rate=use_file_frame_rate)
    from meshferry.blender_data import animated_blocks

    action = active_action(armatures(bpy)[0])
    assert bpy.context.scene.render.fps == fps
    assert action.frame_range[1] == frames
    keys = [key.co.x for key in animated_blocks.action_curves(action, None)[0].keyframe_points]
    assert keys == pytest.approx([1 + frame / 15 * fps for frame in (0, 1, 7, 16, 29, 30)], abs=1e-3 * fps)
    if use_file_frame_rate:
        assert keys == [1, 2, 8, 17, 30, 31]


def test_keys_of_motion_text_are_on_frames(clean_blender: Any, tmp_path: Path) -> None:
    from meshferry.blender_data import animated_blocks

    bpy = clean_blender
    row = made.BVH.splitlines()[-1]
    lines = made.BVH.replace(b"Frames: 4", b"Frames: 304").replace(b"0.100000", b"0.033333").splitlines()
    path = tmp_path / "long.bvh"
    path.write_bytes(b"\n".join([*lines, *[row] * 300]))
    bpy.ops.import_scene.second_life(filepath=str(path), use_file_frame_rate=True)
    scene = bpy.context.scene
    assert (scene.render.fps, scene.render.fps_base, scene.frame_end) == (30, 1, 303)
    curve = animated_blocks.action_curves(active_action(armatures(bpy)[0]), None)[0]
    assert [key.co.x for key in curve.keyframe_points] == list(range(1, 304))


def test_the_scene_plays_the_imported_animations(clean_blender: Any, tmp_path: Path) -> None:
    """The range covers them as long as the user has not chosen another one."""
    bpy = clean_blender
    scene = bpy.context.scene
    scene.render.fps = 24
    rig = avatar(bpy)

    def imported(name: str, seconds: float) -> tuple[int, int]:
        bpy.context.view_layer.objects.active = rig
        path = bent(tmp_path / f"{name}.anim", b"mHead", duration=seconds)
        bpy.ops.import_scene.second_life(filepath=str(path))
        return scene.frame_start, scene.frame_end

    assert imported("two", 2.0) == (1, 49)
    assert imported("one", 1.0) == (1, 49)
    assert imported("three", 3.0) == (1, 73)
    scene.frame_end = 60
    assert imported("four", 4.0) == (1, 60)


def test_only_the_first_of_several_files_sets_the_frame_rate(clean_blender: Any, tmp_path: Path) -> None:
    """Others would change the speed of the files before them."""
    bpy = clean_blender
    rig = avatar(bpy)
    for name, rate in (("a", 15), ("b", 10)):
        times = [round(frame / (2 * rate) * 65535) for frame in (0, 1, 2 * rate - 1, 2 * rate)]
        turn = made.keys(*((time, *about_z(number)) for number, time in enumerate(times)))
        data = made.header() + made.joint(b"mHead", rotation=turn) + made.ending()
        (tmp_path / f"{name}.anim").write_bytes(data)
    files = [{"name": "a.anim"}, {"name": "b.anim"}]
    bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files, use_file_frame_rate=True)
    assert (bpy.context.scene.render.fps, bpy.context.scene.frame_end) == (15, 31)
    actions = [active_action(rig), *(strip.action for track in rig.animation_data.nla_tracks for strip in track.strips)]
    assert [tuple(action.frame_range) for action in actions] == [(1, 31), (1, 31)]


def test_a_new_frame_rate_warns_about_other_animations(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    bpy.context.scene.render.fps = 24
    path = str(bent(tmp_path / "turn.anim", b"mHead"))
    bpy.ops.import_scene.second_life(filepath=path)
    turn = made.keys(*((round(frame / 30 * 65535), *about_z(frame)) for frame in (0, 1, 7, 30)))
    Path(path).write_bytes(made.header() + made.joint(b"mHead", rotation=turn) + made.ending())
    bpy.ops.import_scene.second_life(filepath=path, use_file_frame_rate=True)
    assert "15 frames a second now, 24 before; its other animations play at another speed" in capfd.readouterr().out


def test_joints_that_no_avatar_has_are_dropped_from_edited_files(clean_blender: Any, tmp_path: Path) -> None:
    """Because of them viewers refuse an upload, and they are not in Blender, where they could be removed."""
    from meshferry.blender_data import animated_blocks
    from meshferry.io_formats.second_life.animation import codec

    bpy = clean_blender
    path = bent(tmp_path / "old.anim", b"lFoot_End", b"mHead", b"mNeck", loop=(0.0, 2.0, 2))
    bpy.ops.import_scene.second_life(filepath=str(path))
    rig = bpy.context.object
    target = tmp_path / "again.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(target)) == {"FINISHED"}
    assert target.read_bytes() == path.read_bytes()  # unchanged files are written as they were, with a warning
    for curve in animated_blocks.action_curves(active_action(rig), None):
        if "mHead" in curve.data_path and curve.array_index == 3:
            curve.keyframe_points[-1].co.y = 0.5
    assert bpy.ops.export_scene.second_life_anim(filepath=str(target)) == {"FINISHED"}
    before, after = (codec.read(file.read_bytes()) for file in (path, target))
    assert [joint.name for joint in after.joints] == [b"mHead", b"mNeck"]
    assert (before.loop, after.loop) == (2, 2)  # any number but 0 means the same
    assert np.array_equal(after.joints[1].rotation, before.joints[2].rotation)


@pytest.mark.parametrize(
    "header",
    [
        {"emote": b"Closed_Mouth"},
        {"emote": b"caf\xe9"},
        {"duration": 90.0, "loop": (0.0, 90.0, 1)},
        {"priority": -1},
        {"loop": (1.5, -0.5, 3)},
        {"ease": (3.0, 3.0), "loop": (0.5, 1.5, 0)},
    ],
)
def test_odd_headers_come_back(clean_blender: Any, tmp_path: Path, header: dict[str, Any]) -> None:
    path = bent(tmp_path / "odd.anim", b"mHead", **header)
    clean_blender.ops.import_scene.second_life(filepath=str(path))
    assert exported(clean_blender, armatures(clean_blender)[0], tmp_path / "again.anim") == path.read_bytes()


def moved(path: Path) -> Path:
    """Write an animation that moves a joint whose bone is connected to its parent."""
    shift = made.keys((0, 40000, made.ZERO, made.ZERO), (65535, 30000, made.ZERO, made.ZERO))
    path.write_bytes(made.header() + made.joint(b"mTorso", position=shift) + made.ending())
    return path


def test_bones_without_local_location_move_as_in_the_file(clean_blender: Any, tmp_path: Path) -> None:
    rig, path = avatar(clean_blender), moved(tmp_path / "shift.anim")
    clean_blender.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["mTorso"].roll += 1.0
    clean_blender.ops.object.mode_set(mode="OBJECT")
    bone, found = rig.data.bones["mTorso"], []
    for bone.use_local_location in (True, False):
        clean_blender.ops.import_scene.second_life(filepath=str(path))
        clean_blender.context.scene.frame_set(1)
        found.append(np.array(rig.pose.bones["mTorso"].matrix))
    np.testing.assert_allclose(*found, atol=1e-6)
    assert np.abs(found[0] - np.array(bone.matrix_local)).max() > 0.1


def test_what_overrides_an_animation_is_reported(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    rig = avatar(bpy)
    head, neck = rig.pose.bones["mHead"], rig.pose.bones["mNeck"]
    head.rotation_mode = "XYZ"
    head.keyframe_insert("rotation_euler", frame=1)
    neck.constraints.new("COPY_ROTATION").target = rig
    rig.data.bones["mTorso"].use_inherit_rotation = False
    rig.data.pose_position = "REST"
    bpy.ops.import_scene.second_life(filepath=str(bent(tmp_path / "turn.anim", b"mHead", b"mNeck", b"mTorso")))
    said = capfd.readouterr().out
    assert "quaternions turn bone 'mHead' now" in said
    assert "constraints of bone 'mNeck' may override the animation" in said
    assert "move otherwise than in the file: bone 'mTorso'" in said
    assert "'Avatar' is in Rest Position, so the animation is not shown" in said


def test_files_without_keys_say_so(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    path = bent(tmp_path / "foreign.anim", b"bow_and_arrow")
    clean_blender.ops.import_scene.second_life(filepath=str(path))
    assert not clean_blender.data.actions
    assert "It has no keys of joints of the avatar, so there is no action" in capfd.readouterr().out


def linked(bpy: Any, folder: Path, kind: str) -> Any:
    """Return an active armature of which the bones are in another file: the object itself, its data or an override."""
    names = {"objects": [pointing_bones.add().name], "armatures": [bpy.context.object.data.name]}
    library = str(folder / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library)
    bpy.ops.wm.read_homefile(use_empty=True)
    part = "armatures" if kind == "data" else "objects"
    with bpy.data.libraries.load(library, link=True) as (_there, wanted):
        setattr(wanted, part, names[part])
    obj = bpy.data.objects.new("Local", bpy.data.armatures[0]) if kind == "data" else bpy.data.objects[0]
    bpy.context.scene.collection.objects.link(obj)
    if kind == "override":
        obj = obj.override_create(remap_local_usages=True)
    bpy.context.view_layer.objects.active = obj
    return obj


@pytest.mark.parametrize("kind", ["object", "data", "override"])
def test_linked_armatures(clean_blender: Any, tmp_path: Path, capfd: Any, kind: str) -> None:
    """Bones of other files cannot be disconnected; objects of other files get no action, but their name is taken."""
    bpy = clean_blender
    rig = linked(bpy, tmp_path, kind)
    assert bpy.ops.import_scene.second_life(filepath=str(moved(tmp_path / "shift.anim"))) == {"FINISHED"}
    owner = next(obj for obj in armatures(bpy) if obj.animation_data and active_action(obj))
    said = capfd.readouterr().out
    assert (owner == rig) == (kind != "object")
    expected = "made a new armature" if kind == "object" else "so these only rotate: bone 'mTorso'"
    assert expected in said


def test_a_failed_import_connects_the_bones_again(clean_blender: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from meshferry.blender_data.importing import actions, import_options, importer
    from meshferry.io_formats.api import read_scene

    rig = pointing_bones.add()
    path = str(moved(tmp_path / "shift.anim"))
    request = import_options.ImportRequest(
        clean_blender.context, read_scene(path, {}), import_options.ImportOptions.of({}), path, rig
    )
    seen = []
    monkeypatch.setattr(
        actions.ClipActions, "attach", lambda *_: (seen.append(rig.data.bones["mTorso"].use_connect), 1 / 0)
    )
    with pytest.raises(ZeroDivisionError):
        importer.import_scene(request)
    assert (seen, rig.data.bones["mTorso"].use_connect) == ([False], True)


def test_pose_mode_stays(clean_blender: Any, tmp_path: Path) -> None:
    avatar(clean_blender)
    clean_blender.ops.object.mode_set(mode="POSE")
    clean_blender.ops.import_scene.second_life(filepath=str(moved(tmp_path / "shift.anim")))
    assert clean_blender.context.mode == "POSE"


def test_dropped_animations_have_no_options_of_meshes(clean_blender: Any) -> None:
    from bpy.types import IMPORT_SCENE_OT_second_life as operator
    from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION as KIND
    from meshferry.operators.files.import_base import options_of

    shown = [option.name for option in options_of([KIND], operator.option_table)]
    assert shown == ["armature", "use_joint_animation", "frame_start", "use_file_frame_rate"]
    assert options_of([KIND, None], operator.option_table) == operator.option_table


@pytest.mark.parametrize("has_model", [False, True])
def test_side_by_side_is_for_models(clean_blender: Any, tmp_path: Path, has_model: bool) -> None:
    from meshferry.io_formats.api import format_of
    from meshferry.operators.files.import_base import ImportFiles

    paths = [str(bent(tmp_path / f"{name}.anim", b"mHead")) for name in ("one", "two")]
    if has_model:
        paths.append(str(Path(__file__).parents[2] / "examples" / "windmill.timbermesh"))
    owner = MagicMock(files=paths, option_table=(), shown_options=())
    owner.paths.return_value = paths
    owner.known_formats.return_value = [format_of(path) for path in paths]
    ImportFiles.invoke(owner, clean_blender.context, None)
    ImportFiles.draw(owner, clean_blender.context)
    drawn = [call.args[1] for call in owner.layout.column.return_value.prop.call_args_list]
    assert ("use_side_by_side" in drawn) == has_model
