"""Second Life animations on armatures in Blender, against the facts of the samples, and back to the same bytes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshfuzz import second_life_animation_seeds as made

pytestmark = pytest.mark.needs_bpy

Array = Any


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "secondlife_animation"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))["files"]
    return found


def imported(path: Path, onto: Any = None) -> Any:
    """Import a file onto an armature, or onto one of its own; return the armature."""
    import bpy
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.api import read_scene

    options = import_options.ImportOptions.of({})
    request = import_options.ImportRequest(bpy.context, read_scene(str(path), {}), options, str(path), onto)
    assert importer.import_scene(request).actions
    return next(obj for obj in bpy.data.objects if obj.animation_data and obj.animation_data.action)


def exported(armature: Any) -> bytes:
    import bpy
    from meshferry.blender_data import export_options
    from meshferry.blender_data.export_options import ExportOptions
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats import api
    from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION

    source = object_selection.Source("OBJECTS", objects=(armature,))
    can = SECOND_LIFE_ANIMATION.capabilities
    scene = exporter.export_scene(
        export_options.ExportRequest(bpy.context, source, ExportOptions.of({}), "motion", can)
    )
    (part,) = api.files_of(scene, SECOND_LIFE_ANIMATION, {})
    written: bytes = SECOND_LIFE_ANIMATION.write(SECOND_LIFE_ANIMATION.from_scene(part, {}))
    return written


def heads_at(armature: Any, share: float, duration: float) -> dict[str, Array]:
    """Return the heads of the posed bones in the axes of the avatar, in metres from the armature's origin."""
    import bpy

    scene = bpy.context.scene
    frame = 1 + share * duration * scene.render.fps / scene.render.fps_base
    scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
    found = {}
    for bone in armature.pose.bones:
        x, y, z = bone.matrix.translation
        found[bone.name] = np.array((-y, x, z))
    return found


@pytest.mark.slow
def test_poses_and_bytes_of_every_sample(folder: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    import bpy

    for name, facts in expected.items():
        bpy.ops.wm.read_homefile(use_empty=True)
        armature = imported(folder / name)
        for share, joints in facts["pose"].items():
            heads = heads_at(armature, float(share), facts["duration"])
            for joint, place in joints.items():
                # Keys within two codes of a frame are on it, which moves fast joints by up to a tenth of a millimetre.
                assert np.allclose(heads[joint], place, atol=2e-4), (name, share, joint)
        data = (folder / name).read_bytes()
        assert exported(armature) == data, name
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "kept.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "kept.blend"))
        again = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
        assert exported(again) == data, name


def test_onto_an_armature_of_other_size_facing_and_rolls(folder: Path, expected: dict[str, Any]) -> None:
    import bpy
    from mathutils import Matrix

    bpy.ops.object.second_life_avatar_add()
    armature = bpy.context.object
    armature.data.transform(Matrix.Rotation(math.pi / 2, 4, "Z") @ Matrix.Scale(100, 4))  # faces +X, in centimetres
    bpy.ops.object.mode_set(mode="EDIT")
    for number, bone in enumerate(armature.data.edit_bones):
        bone.roll += number
    bpy.ops.object.mode_set(mode="OBJECT")
    armature.scale = (0.01, 0.01, 0.01)
    armature.rotation_euler = (0.0, 0.0, 1.0)
    name = "opensim_1a2bd58e.anim"
    imported(folder / name, onto=armature)
    for share, joints in expected[name]["pose"].items():
        heads = heads_at(armature, float(share), expected[name]["duration"])
        for joint, place in joints.items():
            y, x, z = heads[joint] / 100
            assert np.allclose((x, -y, z), place, atol=2e-4), (share, joint)
    assert exported(armature) == (folder / name).read_bytes()


def lower_arms(bones: Any) -> None:
    """Turn the rest of the arms down by 45° and move the wings: neither changes the size of the body."""
    from mathutils import Matrix, Vector

    for bone in bones:
        bone.use_connect = False
    for side, degrees in (("Left", 45), ("Right", -45)):
        shoulder = bones[f"mShoulder{side}"]
        start = Matrix.Translation(shoulder.head)
        turn = start @ Matrix.Rotation(math.radians(degrees), 4, "Y") @ start.inverted()
        for bone in (shoulder, *shoulder.children_recursive):
            bone.head, bone.tail = turn @ bone.head, turn @ bone.tail
    for bone in bones["mWingsRoot"].children_recursive:
        bone.head, bone.tail = bone.head + Vector((0, 0.5, 0.5)), bone.tail + Vector((0, 0.5, 0.5))


@pytest.mark.parametrize("rig", ["Y up", "arms lowered"])
def test_onto_armatures_of_other_programs(folder: Path, expected: dict[str, Any], rig: str) -> None:
    """Blender's FBX importer leaves armatures with Y up, and rigs of bodies rest in other poses."""
    import bpy
    from mathutils import Matrix

    bpy.ops.object.second_life_avatar_add()
    armature = bpy.context.object
    to_blender = np.identity(3)
    if rig == "Y up":
        turn = Matrix.Rotation(math.radians(-90), 4, "X")
        armature.data.transform(turn)
        to_blender = np.array(turn.inverted())[:3, :3]
    else:
        bpy.ops.object.mode_set(mode="EDIT")
        lower_arms(armature.data.edit_bones)
        bpy.ops.object.mode_set(mode="OBJECT")
    name = "opensim_1a2bd58e.anim"
    imported(folder / name, onto=armature)
    for share, joints in expected[name]["pose"].items():
        heads_at(armature, float(share), expected[name]["duration"])
        for joint in joints.keys() - ({"mWristLeft", "mWristRight", "mHandMiddle3Left"} if rig != "Y up" else set()):
            x, y, z = to_blender @ np.array(armature.pose.bones[joint].head)
            assert np.allclose((-y, x, z), joints[joint], atol=2e-4), (share, joint)
    assert exported(armature) == (folder / name).read_bytes()


def rotation_curves(action: Any, bone: str) -> list[Any]:
    from meshferry.blender_data import animated_blocks

    path = f'pose.bones["{bone}"].rotation_quaternion'
    found = [curve for curve in animated_blocks.action_curves(action, None) if curve.data_path == path]
    return sorted(found, key=lambda curve: curve.array_index)


def turned_degrees(codes: Array, quaternion: Any) -> float:
    """Return the angle between a key (x, y, z codes) and a unit quaternion."""
    x, y, z = np.asarray(codes, np.float64) / 65535 * 2 - 1
    stored = np.array((math.sqrt(max(1 - x * x - y * y - z * z, 0)), x, y, z))
    wanted = np.array(quaternion) / np.linalg.norm(quaternion)
    chord = min(np.linalg.norm(stored - wanted), np.linalg.norm(stored + wanted))
    return math.degrees(4 * math.asin(chord / 2))


@pytest.mark.parametrize("fps", [24, 30, 17])
@pytest.mark.parametrize("name", ["franz_c1597b61.anim", "franz_1fde2da0.anim"])
def test_an_edit_changes_only_its_key(folder: Path, name: str, fps: int) -> None:
    """Keys of a file need not be on frames of the scene. The key that is turned is within a step of its codes."""
    import bpy
    from mathutils import Quaternion
    from meshferry.io_formats.second_life.animation import codec

    bpy.context.scene.render.fps = fps
    before = codec.read((folder / name).read_bytes())
    bone = next(joint for joint in before.joints if len(joint.rotation) > 6).name.decode()
    armature = imported(folder / name)
    curves = rotation_curves(armature.animation_data.action, bone)
    number = len(curves[0].keyframe_points) // 2
    keys = [curve.keyframe_points[number] for curve in curves]
    turned = Quaternion([key.co.y for key in keys]) @ Quaternion((0, 1, 0), math.radians(5))
    for key, value in zip(keys, turned, strict=True):
        key.co.y = value
    after = codec.read(exported(armature))
    joints = {joint.name: joint for joint in after.joints}
    for joint in before.joints:
        if joint.name not in joints:
            assert joint.name == b"lPinky1"  # which no avatar has
            continue
        other = joints[joint.name]
        assert np.array_equal(joint.position, other.position)
        assert len(joint.rotation) == len(other.rotation)
        rows = np.flatnonzero((joint.rotation != other.rotation).any(axis=1)).tolist()
        assert rows == ([number] if joint.name.decode() == bone else [])
    row = joints[bone.encode()].rotation[number]
    rest = np.array(armature.data.bones[bone].matrix_local.to_3x3())
    x, y, z = rest @ np.array(turned)[1:]
    assert turned_degrees(row[1:], (turned[0], -y, x, z)) < 0.01
    assert (after.base_priority, after.duration) == (before.base_priority, before.duration)


@pytest.mark.parametrize(("kind", "lost", "most"), [("added", 0, 1), ("deleted", 1, 0), ("curved", 0, 60)])
def test_an_edit_adds_and_leaves_out_keys_where_it_must(folder: Path, kind: str, lost: int, most: int) -> None:
    from mathutils import Quaternion
    from meshferry.io_formats.second_life.animation import codec

    path, bone = folder / "franz_1fde2da0.anim", "mNeck"
    armature = imported(path)
    curves = rotation_curves(armature.animation_data.action, bone)
    start, end = (curves[0].keyframe_points[number].co.x for number in (4, 5))
    middle = (start + end) // 2
    turned = Quaternion([curve.evaluate(middle) for curve in curves]).normalized() @ Quaternion((0, 0, 1), 0.1)
    for curve, value in zip(curves, turned, strict=True):
        keys = curve.keyframe_points
        if kind == "added":
            keys.insert(middle, value).interpolation = "LINEAR"
        elif kind == "deleted":
            keys.remove(keys[4])
        else:
            keys[4].interpolation = "SINE"
            keys[4].easing = "EASE_IN_OUT"
        curve.update()
    joints = (codec.read(data).joints for data in (path.read_bytes(), exported(armature)))
    old, new = (
        {tuple(row) for joint in found for row in joint.rotation.tolist() if joint.name == bone.encode()}
        for found in joints
    )
    assert len(old - new) == lost
    assert min(most, 1) <= len(new - old) <= most


@pytest.mark.parametrize("share", [1.0, 0.0])
def test_rotations_of_collision_volumes_replace_their_own(tmp_path: Path, share: float) -> None:
    """A hand volume has a rotation at rest of -3° about X, then -10° about Z; a key of this is the rest pose."""
    import bpy
    from mathutils import Euler

    rest = Euler((math.radians(-3), 0, math.radians(-10)), "XYZ").to_quaternion()
    codes = [round((share * value + 1) / 2 * 65535) for value in rest[1:]]
    keys = made.joint(b"L_HAND", rotation=made.keys((0, *codes)))
    path = tmp_path / "hand.anim"
    path.write_bytes(made.header() + keys + made.ending())
    armature = imported(path)
    bpy.context.view_layer.update()
    turned = armature.pose.bones["L_HAND"].matrix_basis.to_quaternion()
    assert math.degrees(turned.angle) == pytest.approx(0 if share else math.degrees(rest.angle), abs=0.02)
    assert exported(armature) == path.read_bytes()
