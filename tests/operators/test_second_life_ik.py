"""Goals of the avatar's limbs: reached at any shape, bent as limbs do, absent from files, removed without traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

SHAPES = {
    "standard": {},
    "tall": {80: 100.0, 33: 100.0, 692: 100.0, 693: 100.0},
    "small": {33: 0.0, 692: 0.0, 693: 0.0, 34: 100.0},
}
"""Sliders in percent: sex, height, and lengths of legs and arms; the small one has thick legs."""
LIMBS = {
    f"IK {name} {side}": [f"m{joint}{side}" for joint in joints]
    for name, joints in {"Foot": ("Hip", "Knee", "Ankle"), "Hand": ("Shoulder", "Elbow", "Wrist")}.items()
    for side in ("Left", "Right")
}
IK_SETTINGS = [f"{name}_{axis}" for name in ("lock_ik", "use_ik_limit") for axis in "xyz"]


@pytest.fixture
def avatar(clean_blender: Any) -> Any:
    """Return a new avatar, active and selected."""
    clean_blender.ops.object.second_life_avatar_add()
    return clean_blender.context.object


def add(avatar: Any) -> None:
    import bpy

    assert bpy.ops.object.second_life_ik_add() == {"FINISHED"}
    bpy.context.view_layer.update()


def heads(avatar: Any, names: Any) -> Any:
    return np.array([avatar.pose.bones[name].head for name in names])


def matrices(avatar: Any) -> dict[str, Any]:
    import bpy

    bpy.context.view_layer.update()
    return {bone.name: np.array(bone.matrix) for bone in avatar.pose.bones if bone.name[:2] != "IK"}


def rotation(matrix: Any) -> Any:
    return matrix[:3, :3] / np.linalg.norm(matrix[:3, :3], axis=0)


def move(avatar: Any, goal: str, place: Any, degrees: float = 0.0) -> None:
    from mathutils import Matrix

    rest = avatar.pose.bones[goal].bone.matrix_local
    matrix = Matrix.Rotation(np.radians(degrees), 4, "Z") @ rest
    matrix.translation = tuple(place)
    avatar.pose.bones[goal].matrix_basis = rest.inverted() @ matrix


@pytest.mark.parametrize(("bones", "shape"), [*(("new", shape) for shape in SHAPES), ("pointing", "standard")])
def test_limbs_reach_their_goals_and_bend_naturally(clean_blender: Any, bones: str, shape: str) -> None:
    import pointing_bones
    from meshferry.blender_data.rigging import body_shapes

    if bones == "new":
        clean_blender.ops.object.second_life_avatar_add()
    else:
        pointing_bones.add()
    avatar = clean_blender.context.object
    # Turned, so that nothing depends on the axes of the world; shaped before and after the goals are there.
    avatar.rotation_euler = (0.1, 0.2, 0.7)
    if bones == "new":
        body_shapes.set_percents(avatar, dict.fromkeys(SHAPES[shape], 50.0))
    before = matrices(avatar)
    avatar.data.use_mirror_x = True
    add(avatar)
    for name, matrix in matrices(avatar).items():
        np.testing.assert_allclose(matrix[:3, 3], before[name][:3, 3], atol=4e-3, err_msg=name)
    body_shapes.set_percents(avatar, SHAPES[shape])
    clean_blender.context.view_layer.update()
    scales = {name: tuple(avatar.pose.bones[name].scale) for limb in LIMBS.values() for name in limb}
    rng = np.random.default_rng(3)
    for _turn in range(25):
        wanted = {}
        for goal, limb in LIMBS.items():
            first, middle, last = heads(avatar, limb)
            side = 1.0 if goal.endswith("Left") else -1.0
            away = np.array((0.0, -0.3, -1.0) if "Foot" in goal else (0.8 * side, -0.6, 0.0))
            away += 0.5 * rng.normal(size=3)
            length = np.linalg.norm(middle - first) + np.linalg.norm(last - middle)
            wanted[goal] = first + away / np.linalg.norm(away) * length * rng.uniform(0.35, 0.998)
            move(avatar, goal, wanted[goal], rng.uniform(-60, 60))
        clean_blender.context.view_layer.update()
        for goal, limb in LIMBS.items():
            first, middle, last = heads(avatar, limb)
            assert np.linalg.norm(last - wanted[goal]) < 1e-3, goal
            # In the axes of the upper bone, shins bend backwards, and forearms forwards.
            bone = avatar.pose.bones[limb[0]]
            turn = rotation(np.array(bone.matrix)) @ np.array(bone.bone.matrix_local)[:3, :3].T
            upper, lower = (part / np.linalg.norm(part) for part in (middle - first, last - middle))
            across = turn.T @ np.cross(upper, lower)
            bend = across[0] if "Foot" in goal else across[2] * (-1.0 if goal.endswith("Left") else 1.0)
            assert bend > -0.02, goal
            turned, as_goal = (rotation(np.array(avatar.pose.bones[name].matrix)) for name in (limb[2], goal))
            np.testing.assert_allclose(turned, as_goal, atol=1e-5, err_msg=goal)
    for name, scale in scales.items():
        assert avatar.pose.bones[name].matrix.to_scale()[:] == pytest.approx(scale, abs=2e-4)


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_goals_are_added_once_and_removed_without_traces(clean_blender: Any, avatar: Any, mode: str) -> None:
    bpy = clean_blender

    def traces() -> Any:
        bones = [
            (bone.name, bone.use_deform, *(getattr(posed, name) for name in IK_SETTINGS), len(posed.constraints))
            for bone, posed in zip(avatar.data.bones, avatar.pose.bones, strict=True)
        ]
        return bones, avatar.data.collections_all.keys(), sorted(bpy.data.objects.keys()), bpy.context.mode

    avatar.pose.bones["mHipLeft"].rotation_mode = "XYZ"
    avatar.pose.bones["mKneeLeft"].scale = (1.0, 1.2, 1.0)
    scale = tuple(avatar.pose.bones["mKneeLeft"].scale)
    bpy.ops.object.mode_set(mode=mode)
    before = traces()
    add(avatar)
    assert bpy.context.mode == mode
    goals = avatar.data.collections_all["Goals"]
    assert {bone.name for bone in goals.bones} == set(LIMBS)
    for bone in goals.bones:
        posed = avatar.pose.bones[bone.name]
        assert bone.color.palette == ("THEME09" if bone.name.endswith("Left") else "THEME02")
        assert bpy.utils.flip_name(bone.name) in goals.bones
        assert posed.custom_shape is not None and not posed.custom_shape.users_scene
    visible = {bone.name for bone in avatar.data.bones if any(group.is_visible for group in bone.collections)}
    assert {name for name in visible if name.startswith("IK")} == set(LIMBS)
    bones = len(avatar.data.bones)
    assert not bpy.ops.object.second_life_ik_add.poll()
    with pytest.raises(RuntimeError, match="remove them first"):
        bpy.ops.object.second_life_ik_add()
    assert len(avatar.data.bones) == bones
    move(avatar, "IK Foot Left", (0.1, -0.4, 0.3), 20)
    shown = matrices(avatar)
    assert bpy.ops.object.second_life_ik_remove() == {"FINISHED"}
    for name, matrix in matrices(avatar).items():
        np.testing.assert_allclose(matrix, shown[name], atol=1e-5, err_msg=name)
    assert tuple(avatar.pose.bones["mKneeLeft"].scale) == scale
    # Without a user, the cube is not saved.
    cubes = [obj for obj in bpy.data.objects if obj.type == "MESH"]
    assert [obj.users for obj in cubes] == [0]
    bpy.data.objects.remove(cubes[0])
    assert traces() == before
    assert not bpy.ops.object.second_life_ik_remove.poll()
    add(avatar)
    for name, matrix in matrices(avatar).items():
        np.testing.assert_allclose(matrix[:3, 3], shown[name][:3, 3], atol=4e-3, err_msg=name)


def test_animations_of_goals_are_those_of_the_joints(clean_blender: Any, avatar: Any, tmp_path: Any) -> None:
    from second_life_player import curves_of, degrees_between, rotations_of
    from test_second_life_animation_export import local_rotations

    bpy = clean_blender
    add(avatar)
    for frame, height in ((1, 0.1), (13, 0.4)):
        move(avatar, "IK Foot Left", (0.1, -0.3, height), height * 50)
        for channel in ("location", "rotation_quaternion"):
            avatar.pose.bones["IK Foot Left"].keyframe_insert(channel, frame=frame)
    path = tmp_path / "kick.anim"
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    duration, joints = curves_of(path.read_bytes())
    # Limbs that do not move are left to other animations.
    assert duration == 0.5 and set(joints) == {"mHipLeft", "mKneeLeft", "mAnkleLeft"}
    for name, (codes, positions) in joints.items():
        assert not len(positions)
        for time, rotation in zip(codes[:, 0] / 65535 * duration, rotations_of(codes[:, 1:]), strict=True):
            wanted = local_rotations(bpy, avatar, 1 + round(time * 24))[name]
            assert degrees_between(rotation, wanted) < 0.02, name
    assert len(joints["mKneeLeft"][0]) > 2
    # Limbs with goals that have no keys move if the body does.
    avatar.animation_data_clear()
    for frame, height in ((1, 0.0), (13, -0.2)):
        avatar.pose.bones["mPelvis"].location = (0.0, height, 0.0)
        avatar.pose.bones["mPelvis"].keyframe_insert("location", frame=frame)
    assert bpy.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
    assert set(curves_of(path.read_bytes())[1]) == {"mPelvis", *(name for limb in LIMBS.values() for name in limb)}


def test_muted_goals_do_not_change_an_animation(clean_blender: Any, avatar: Any, tmp_path: Any, capfd: Any) -> None:
    """Keys of joints are exported as they are, since nothing else moves the joints."""
    from test_second_life_animation_export import bend

    bend(avatar, "wave", "mElbowLeft", 60)
    found = []
    for _time in range(2):
        path = tmp_path / "wave.anim"
        assert clean_blender.ops.export_scene.second_life_anim(filepath=str(path)) == {"FINISHED"}
        found.append(path.read_bytes())
        if not avatar.data.collections_all.get("Goals"):
            add(avatar)
            assert "keys of limbs have no effect until the goals are removed" in capfd.readouterr().out
            for bone in avatar.pose.bones:
                for constraint in bone.constraints:
                    constraint.mute = True
    assert found[0] == found[1]
