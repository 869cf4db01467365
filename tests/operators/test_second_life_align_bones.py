"""Align Bones to Avatar Axes: all that poses the bones of an older avatar is converted, so that nothing moves.

What a joint does is the matrix of its pose bone relative to the bone's rest, which does not depend on the axes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import older_avatar
import pytest
from example_files import imported
from second_life_models import Drawn, panel_context
from test_second_life_joints import avatar as new_avatar
from test_second_life_shaped_exports import EXPORTERS, dressed, pose

pytestmark = pytest.mark.needs_bpy

FRAMES = range(28)
ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
TURNED = (
    "mTorso",
    "mChest",
    "mHindLimb2Left",
    "mHindLimb1Left",
    "mHipRight",
    "mKneeRight",
    "mFaceChin",
    "mFaceCheekUpperLeft",
)
"""Bones whose axes change, four of them along one chain; one turns by a right angle and more."""
OTHERS = ("mPelvis", "mHead", "mWristLeft", "mHandIndex1Left")

Report = list[str]
SetUp = Callable[[Any, Any], Any]


def shown(bpy: Any, avatars: Any, others: Any = ()) -> Any:
    """Return what all joints do, and the matrices of other objects, on all frames."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found += [older_avatar.joints(avatar) for avatar in avatars]
        found.append(
            np.array([obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world for obj in others]).reshape(
                -1, 4, 4
            )
        )
    return np.concatenate(found)


def align(bpy: Any, capfd: Any) -> str:
    capfd.readouterr()
    assert bpy.ops.object.second_life_align_bones() == {"FINISHED"}
    return str(capfd.readouterr().out)


def curves_of(obj: Any) -> list[Any]:
    from meshferry.blender_data import compat

    data = obj.animation_data
    return list(compat.action_curves(data.action, compat.slot_of(data)))


def key(
    avatar: Any,
    channel: str,
    frames: Any = (1, 7, 12, 20),
    seed: int = 1,
    bones: Any = (*TURNED, *OTHERS),
    **given: Any,
) -> None:
    """Key a channel of bones with values at random."""
    rng = np.random.default_rng(seed)
    for name in bones:
        bone = avatar.pose.bones[name]
        for frame in frames:
            values = rng.normal(size=len(getattr(bone, channel))) * (0.05 if channel == "location" else 0.6)
            if channel == "rotation_quaternion":
                values[0] = 1.5
            setattr(bone, channel, values)
            bone.keyframe_insert(channel, frame=frame, **given)


def remove_curves(avatar: Any, component: int) -> None:
    from meshferry.blender_data import compat

    removed = [curve for curve in curves_of(avatar) if curve.array_index == component]
    compat.remove_curves(avatar.animation_data.action, removed)
    assert removed


def quaternions(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion")


def axis_angles(bpy: Any, avatar: Any) -> None:
    for bone in avatar.pose.bones:
        bone.rotation_mode = "AXIS_ANGLE"
    key(avatar, "rotation_axis_angle")


def angles(order: str) -> SetUp:
    def set_up(bpy: Any, avatar: Any) -> None:
        for bone in avatar.pose.bones:
            bone.rotation_mode = order
        key(avatar, "rotation_euler")

    set_up.__name__ = order
    return set_up


def held_angles(bpy: Any, avatar: Any) -> None:
    angles("XZY")(bpy, avatar)
    for curve in curves_of(avatar):
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"


def locations(bpy: Any, avatar: Any) -> None:
    key(avatar, "location")  # without effect on connected bones


def locations_of_loose_bones(bpy: Any, avatar: Any) -> None:
    connected = [bone.name for bone in avatar.data.bones if bone.use_connect]
    older_avatar.disconnect(avatar, connected)
    key(avatar, "location")
    key(avatar, "rotation_quaternion", seed=2)


def locations_along_other_axes(bpy: Any, avatar: Any) -> None:
    locations_of_loose_bones(bpy, avatar)
    for name in ("mChest", "mHindLimb2Left", "mHandIndex1Left", "mPelvis", "mKneeRight"):
        avatar.data.bones[name].use_local_location = False
    for name in ("mWristLeft", "mHipRight"):
        avatar.data.bones[name].use_inherit_rotation = False


def single_components(bpy: Any, avatar: Any) -> None:
    """Only some components have keys; the others keep what the pose has."""
    locations_of_loose_bones(bpy, avatar)
    remove_curves(avatar, 2)


def different_times(bpy: Any, avatar: Any) -> None:
    for number in range(4):
        key(avatar, "rotation_quaternion", frames=(1 + number, 9.5, 20 - number), seed=number, index=number)


def interpolations(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion", frames=(1, 4, 7, 10, 13, 16, 19, 22, 24, 26))
    kinds = ("LINEAR", "CONSTANT", "SINE", "BACK", "BOUNCE", "EXPO", "BEZIER", "QUAD", "BEZIER", "LINEAR")
    for number, curve in enumerate(curves_of(avatar)):
        for point, kind in zip(curve.keyframe_points, kinds, strict=True):
            point.interpolation = kind
            point.handle_left_type = point.handle_right_type = "FREE"
            point.handle_right[1] += 0.3
        curve.extrapolation = "LINEAR" if number % 8 < 4 else "CONSTANT"


def elastic(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion")
    for curve in curves_of(avatar):
        for point in curve.keyframe_points:
            point.interpolation = "ELASTIC"


def cycles(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion", frames=(5, 8, 11))
    for curve in curves_of(avatar):
        curve.modifiers.new("CYCLES").mode_after = "MIRROR"
    remove_curves(avatar, 3)


def noise(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion")
    for number, curve in enumerate(curves_of(avatar)):
        curve.modifiers.new("NOISE").phase = number * 10.0


def muted(bpy: Any, avatar: Any) -> None:
    key(avatar, "rotation_quaternion")
    for number, curve in enumerate(curves_of(avatar)):
        curve.mute = number % 3 == 0


def posed(bpy: Any, avatar: Any) -> None:
    rng = np.random.default_rng(4)
    for number, bone in enumerate(avatar.pose.bones):
        bone.rotation_mode = (*ORDERS, "QUATERNION", "AXIS_ANGLE")[number % 8]
        bone.rotation_euler = rng.normal(size=3)
        bone.rotation_quaternion = (1.0, *rng.normal(size=3) * 0.4)
        bone.rotation_axis_angle = rng.normal(size=4)


def scaled_evenly(bpy: Any, avatar: Any) -> None:
    quaternions(bpy, avatar)
    ends = [bone.name for bone in avatar.data.bones if not bone.children]
    for name in ends:
        avatar.pose.bones[name].scale = (1.3, 1.3, 1.3)
        avatar.pose.bones[name].keyframe_insert("scale", frame=1)


def strips(bpy: Any, avatar: Any) -> None:
    """NLA strips: scaled, repeated and reversed, one over another, of two actions."""
    from meshferry.blender_data import compat

    data = avatar.animation_data_create()
    for number, channel in enumerate(("rotation_quaternion", "rotation_euler")):
        bones = TURNED[number::2]
        for name in bones:
            avatar.pose.bones[name].rotation_mode = ("QUATERNION", "YXZ")[number]
        key(avatar, channel, frames=(0, 5, 9), seed=number, bones=bones)
        action, slot = data.action, compat.slot_of(data)
        data.action = None
        track = data.nla_tracks.new()
        strip = track.strips.new("plain", 1, action)
        compat.set_slot(strip, slot)
        strip.scale, strip.repeat, strip.use_reverse = 0.7 + number, 2.0, bool(number)
    key(avatar, "location", bones=("mPelvis",))


def constrained(bpy: Any, avatar: Any) -> None:
    """Constraints that are converted exactly, and those that do not depend on axes."""
    quaternions(bpy, avatar)
    twin = bpy.data.objects.new("Twin", avatar.data)
    bpy.context.scene.collection.objects.link(twin)
    bpy.context.view_layer.update()
    key(twin, "rotation_quaternion", seed=5)
    key(twin, "location", seed=6)
    older_avatar.disconnect(avatar, ["mChest", "mHipRight"])
    for bone, kind, space in (
        ("mTorso", "COPY_ROTATION", "LOCAL"),
        ("mChest", "COPY_LOCATION", "LOCAL"),
        ("mHipRight", "COPY_TRANSFORMS", "LOCAL"),
        ("mKneeRight", "COPY_ROTATION", "WORLD"),
        ("mHindLimb1Left", "COPY_LOCATION", "WORLD"),
        ("mHindLimb2Left", "LIMIT_DISTANCE", "WORLD"),
        ("mFaceChin", "ARMATURE", "WORLD"),
    ):
        constraint = avatar.pose.bones[bone].constraints.new(kind)
        target = constraint.targets.new() if kind == "ARMATURE" else constraint
        target.target, target.subtarget = twin, bone
        if kind == "LIMIT_DISTANCE":
            constraint.distance, constraint.subtarget = 0.3, "mChest"
        if kind.startswith("COPY"):
            constraint.owner_space = constraint.target_space = space


def roll(bpy: Any, avatar: Any, degrees: dict[str, float]) -> None:
    """Roll bones that lie along the axes already, so that they turn by right angles."""
    bpy.ops.object.mode_set(mode="EDIT")
    for name, angle in degrees.items():
        avatar.data.edit_bones[name].roll += np.radians(angle)
    bpy.ops.object.mode_set(mode="OBJECT")


def settings_by_axis(order: str, invert: str) -> SetUp:
    """Constraints with a value for each axis, on bones that turn by right angles."""

    def set_up(bpy: Any, avatar: Any) -> None:
        degrees = {"mElbowLeft": 180.0, "mShoulderLeft": 180.0, "mElbowRight": 90.0, "mShoulderRight": -90.0}
        roll(bpy, avatar, degrees)
        bones = avatar.pose.bones
        for name in degrees:
            bones[name].rotation_mode = order
        key(avatar, "rotation_euler", bones=degrees)
        key(avatar, "rotation_quaternion")
        limit = bones["mShoulderRight"].constraints.new("LIMIT_ROTATION")
        limit.owner_space, limit.use_limit_x, limit.use_limit_z = "LOCAL", True, True
        limit.min_x, limit.max_x, limit.min_z, limit.max_z = -0.3, 0.5, 0.1, 0.2
        for kind, owner, target in (
            ("COPY_ROTATION", "mElbowRight", "mShoulderRight"),
            ("COPY_ROTATION", "mElbowLeft", "mShoulderLeft"),
            ("COPY_LOCATION", "mElbowRight", "mShoulderRight"),
        ):
            constraint = bones[owner].constraints.new(kind)
            constraint.target, constraint.subtarget = avatar, target
            constraint.owner_space = constraint.target_space = "LOCAL"
            constraint.use_y = False
            setattr(constraint, f"invert_{invert}", True)
        older_avatar.disconnect(avatar, ["mShoulderRight"])
        bones["mShoulderRight"].location = (0.1, 0.2, 0.3)

    set_up.__name__ = f"settings_by_axis_{order}"
    return set_up


def driven_channels(bpy: Any, avatar: Any) -> None:
    posed(bpy, avatar)
    older_avatar.disconnect(avatar, ["mChest", "mFaceChin"])
    for name, mode, channel, components in (
        ("mTorso", "QUATERNION", "rotation_quaternion", (0, 1, 3)),
        ("mHipRight", "AXIS_ANGLE", "rotation_axis_angle", (0, 2)),
        ("mChest", "XYZ", "location", (0, 1, 2)),
        ("mFaceChin", "XYZ", "location", (1,)),
        ("mHead", "XYZ", "rotation_euler", (1,)),
    ):
        bone = avatar.pose.bones[name]
        bone.rotation_mode = mode
        for component in components:
            driver = bone.driver_add(channel, component).driver
            driver.expression = f"sin(frame * {0.05 * (component + 1)}) * {0.3 if 'rotation' in channel else 0.1}"


def child_of(bpy: Any, avatar: Any) -> None:
    quaternions(bpy, avatar)
    ball = bpy.data.objects["Ball"]
    constraint = ball.constraints.new("CHILD_OF")
    constraint.target, constraint.subtarget = avatar, "mChest"
    constraint.set_inverse_pending = False
    constraint.inverse_matrix = np.linalg.inv(np.array(avatar.data.bones["mChest"].matrix_local)).tolist()


def parented(bpy: Any, avatar: Any) -> None:
    quaternions(bpy, avatar)
    for number, name in enumerate((*TURNED, *OTHERS)):
        obj = bpy.data.objects.new(f"Hung {name}", None)
        bpy.context.scene.collection.objects.link(obj)
        obj.parent, obj.parent_type, obj.parent_bone = avatar, "BONE", name
        obj.location = (0.1 * number, 0.2, -0.1)
        avatar.data.bones[name].use_relative_parent = number % 4 == 3


def moved_avatar(bpy: Any, avatar: Any) -> None:
    """The armature faces +X, and its object is moved, rotated and scaled."""
    from mathutils import Matrix

    avatar.data.transform(Matrix.Rotation(np.radians(90.0), 4, "Z"))
    avatar.location, avatar.rotation_euler, avatar.scale = (1, 2, 3), (0.1, 0.2, 0.3), (2, 2, 2)
    quaternions(bpy, avatar)


EXACT = (
    *(quaternions, axis_angles, *map(angles, ORDERS), held_angles, locations, locations_of_loose_bones),
    *(locations_along_other_axes, single_components, different_times, interpolations, elastic, cycles, noise, muted),
    *(posed, scaled_evenly, strips, constrained, driven_channels, child_of, parented, moved_avatar),
    *(settings_by_axis("XYZ", "x"), settings_by_axis("ZXY", "z"), settings_by_axis("YXZ", "x")),
)


@pytest.mark.parametrize("set_up", EXACT, ids=lambda set_up: set_up.__name__)
def test_nothing_moves(clean_blender: Any, capfd: Any, set_up: SetUp) -> None:
    bpy = clean_blender
    avatar = older_avatar.add()
    ball = bpy.data.objects.new("Ball", None)
    bpy.context.scene.collection.objects.link(ball)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    set_up(bpy, avatar)
    others = [obj for obj in bpy.data.objects if obj != avatar]
    before = shown(bpy, [avatar], others)
    allowed = np.append(older_avatar.skews(avatar), np.repeat(older_avatar.skews(avatar).max(), len(others))) + 1e-5
    rests = {bone.name: np.array(bone.matrix_local) for bone in avatar.data.bones}
    bpy.context.scene.frame_set(3)
    told = align(bpy, capfd)
    assert "not converted" not in told and "converted for" not in told, told
    after = shown(bpy, [avatar], others)
    after[..., 3] /= max(avatar.scale)
    before[..., 3] /= max(avatar.scale)
    assert avatar.data.meshferry.bone_axes == "AVATAR"
    turned = {
        name
        for name, rest in rests.items()
        if np.abs(rest - np.array(avatar.data.bones[name].matrix_local)).max() > 1e-3
    }
    assert turned > set(TURNED) and not turned & set(OTHERS)
    assert "nearest axes" not in told, told
    apart = np.abs(after - before).reshape(len(FRAMES), -1, 16).max(axis=(0, 2))
    assert (apart < allowed).all(), sorted(zip(apart.tolist(), avatar.data.bones.keys(), strict=False))[-5:]
    assert np.ptp(before, axis=0).max() > 0.1 or set_up in {posed, locations}


def world_copy(bpy: Any, avatar: Any) -> None:
    constraint = avatar.pose.bones["mTorso"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = avatar, "mChest"


def tail_target(bpy: Any, avatar: Any) -> None:
    constraint = bpy.data.objects["Ball"].constraints.new("COPY_LOCATION")
    constraint.target, constraint.subtarget, constraint.head_tail = avatar, "mHipLeft", 1.0


def goal(bpy: Any, avatar: Any) -> None:
    constraint = avatar.pose.bones["mKneeLeft"].constraints.new("IK")
    constraint.target, constraint.chain_count = bpy.data.objects["Ball"], 2


def limits(bpy: Any, avatar: Any) -> None:
    bone = avatar.pose.bones["mKneeLeft"]
    bone.use_ik_limit_x = True
    constraint = avatar.pose.bones["mChest"].constraints.new("LIMIT_ROTATION")
    constraint.owner_space, constraint.use_limit_x = "LOCAL", True


def driven(bpy: Any, avatar: Any) -> None:
    avatar.pose.bones["mTorso"].rotation_mode = "XYZ"
    avatar.pose.bones["mTorso"].driver_add("rotation_euler", 1).driver.expression = "0.1"


def driving(bpy: Any, avatar: Any) -> None:
    driver = bpy.data.objects["Ball"].driver_add("location", 1).driver
    variable = driver.variables.new()
    variable.type = "TRANSFORMS"
    target = variable.targets[0]
    target.id, target.bone_target, target.transform_type = avatar, "mTorso", "ROT_X"
    target.transform_space = "LOCAL_SPACE"


def stretched(bpy: Any, avatar: Any) -> None:
    key(avatar, "scale", bones=("mFaceChin",))


def scaling(bpy: Any, avatar: Any) -> None:
    avatar.pose.bones["mTorso"].scale = (2.0, 2.0, 2.0)


def blended(bpy: Any, avatar: Any) -> None:
    from meshferry.blender_data import compat

    avatar.pose.bones["mTorso"].rotation_mode = "XYZ"
    key(avatar, "rotation_euler", bones=("mTorso",))
    data = avatar.animation_data
    compat.stash_action(avatar, data.action, compat.slot_of(data), "Sway")
    data.nla_tracks["Sway"].strips[0].blend_type = "ADD"
    data.action = None


NAMED = (
    (world_copy, "Avatar: mTorso (Copy Rotation)' "),
    (tail_target, "'Ball (Copy Location)'"),
    (goal, "'Avatar: mKneeLeft (IK)'"),
    (limits, "nearest axes of 2 bones: 'Avatar: mChest (Limit Rotation)', 'Avatar: mKneeLeft'"),
    (driven, """'Avatar: pose.bones["mTorso"].rotation_euler[1]'"""),
    (driving, "'Ball: location[1]'"),
    (stretched, "cannot be scaled along its former axes, only along the nearest ones: 'AvatarAction: mFaceChin'"),
    (scaling, "1 scaled bone no longer scales the bones below: 'Avatar: mTorso'"),
    (blended, "depend on the axes: 'Sway'"),
)


@pytest.mark.parametrize(("set_up", "text"), NAMED, ids=lambda value: getattr(value, "__name__", ""))
def test_the_rest_is_named(clean_blender: Any, capfd: Any, set_up: SetUp, text: str) -> None:
    older = older_avatar.add()
    clean_blender.context.scene.collection.objects.link(clean_blender.data.objects.new("Ball", None))
    set_up(clean_blender, older)
    assert align(clean_blender, capfd).count(text.strip()) == 1


def test_limits_of_inverse_kinematics_turn_with_the_bone(clean_blender: Any, capfd: Any) -> None:
    older = older_avatar.add()
    roll(clean_blender, older, {"mElbowLeft": 90.0, "mElbowRight": 180.0})
    for name in ("mElbowLeft", "mElbowRight"):
        bone = older.pose.bones[name]
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.2, 1.0
        bone.lock_ik_z, bone.ik_stiffness_z, bone.ik_stiffness_y = True, 0.5, 0.25
    before = {bone.name: np.array(bone.matrix_local)[:3, :3] for bone in older.data.bones}
    assert "nearest axes" not in align(clean_blender, capfd)
    for name, letter, other in (("mElbowLeft", "z", "x"), ("mElbowRight", "x", "z")):
        bone = older.pose.bones[name]
        sign = before[name][:, 0] @ np.array(bone.bone.matrix_local)[:3, "xyz".index(letter)]
        assert abs(sign) == pytest.approx(1.0, abs=1e-4)
        limits = (getattr(bone, f"ik_min_{letter}"), getattr(bone, f"ik_max_{letter}"))
        assert limits == pytest.approx((-0.2, 1.0) if sign > 0 else (-1.0, 0.2))
        assert getattr(bone, f"use_ik_limit_{letter}") and not getattr(bone, f"use_ik_limit_{other}")
        assert getattr(bone, f"lock_ik_{other}") and not getattr(bone, f"lock_ik_{letter}")
        assert getattr(bone, f"ik_stiffness_{other}") == 0.5 and bone.ik_stiffness_y == 0.25


def test_aligning_is_one_undo_step(clean_blender: Any) -> None:
    bpy = clean_blender
    strips(bpy, older_avatar.add())
    bpy.ops.ed.undo_push(message="pose")
    before = shown(bpy, [bpy.data.objects["Avatar"]])
    rests = {bone.name: np.array(bone.matrix_local) for bone in bpy.data.objects["Avatar"].data.bones}
    assert bpy.ops.object.second_life_align_bones("EXEC_DEFAULT", True) == {"FINISHED"}  # one step
    bpy.ops.ed.undo()
    older = bpy.data.objects["Avatar"]
    assert older.data.meshferry.bone_axes == "" and len(bpy.data.objects) == 1
    for bone in older.data.bones:
        np.testing.assert_array_equal(bone.matrix_local, rests[bone.name])
    np.testing.assert_array_equal(shown(bpy, [older]), before)


# -- actions of several armatures -----------------------------------------------------------------------------------


def act(rig: Any, action: Any, slot: Any) -> None:
    from meshferry.blender_data import compat

    compat.assign_action(rig, action, slot)


def two_avatars(bpy: Any, *, is_linked: bool) -> tuple[Any, Any]:
    """Return two older avatars with one action, and the second selected and active; they share their data or not."""
    from meshferry.blender_data import compat

    first = older_avatar.add()
    if is_linked:
        second = bpy.data.objects.new("Second", first.data)
        bpy.context.scene.collection.objects.link(second)
    else:
        second = older_avatar.add()
    bpy.context.view_layer.update()
    key(first, "rotation_quaternion")
    act(second, first.animation_data.action, compat.slot_of(first.animation_data))
    first.select_set(False)
    second.select_set(True)
    bpy.context.view_layer.objects.active = second
    second.pose.bones["mFaceLipUpperLeft"].rotation_quaternion = (1.0, 0.3, 0.2, 0.1)
    return first, second


@pytest.mark.parametrize("is_linked", [True, False])
def test_an_action_of_two_avatars_is_converted_once(clean_blender: Any, capfd: Any, is_linked: bool) -> None:
    bpy = clean_blender
    avatars = two_avatars(bpy, is_linked=is_linked)
    avatars[0].select_set(not is_linked)
    before = shown(bpy, avatars)
    allowed = np.tile(older_avatar.skews(avatars[0]), 2) + 1e-5
    align(bpy, capfd)
    apart = np.abs(shown(bpy, avatars) - before).reshape(len(FRAMES), -1, 16).max(axis=(0, 2))
    assert (apart < allowed).all()
    assert all(rig.data.meshferry.bone_axes == "AVATAR" for rig in avatars)


@pytest.mark.parametrize("is_aligned", [False, True])
def test_an_action_of_another_avatar_is_refused(clean_blender: Any, is_aligned: bool) -> None:
    bpy = clean_blender
    first, second = two_avatars(bpy, is_linked=False)
    if is_aligned:
        first.data.meshferry.bone_axes = "AVATAR"
    before = shown(bpy, (first, second))
    with pytest.raises(RuntimeError, match="Action 'AvatarAction' also animates 'Avatar', which is not changed"):
        bpy.ops.object.second_life_align_bones()
    np.testing.assert_array_equal(shown(bpy, (first, second)), before)
    assert second.data.meshferry.bone_axes == second.animation_data.action.meshferry.bone_axes == ""
    first.animation_data.action.meshferry.clip_name = "sway"  # keyed for the axes of older avatars
    if is_aligned:
        assert bpy.ops.object.second_life_align_bones() == {"FINISHED"}
        assert first.animation_data.action.meshferry.bone_axes == "AVATAR"


@pytest.mark.parametrize("others", [0, 1])
def test_actions_that_nothing_plays_are_converted_if_their_armature_is_clear(
    clean_blender: Any, capfd: Any, others: int
) -> None:
    from meshferry.blender_data import compat

    bpy = clean_blender
    other = older_avatar.add() if others else None
    rig = older_avatar.add()
    key(rig, "rotation_quaternion")
    action, slot = rig.animation_data.action, compat.slot_of(rig.animation_data)
    before, allowed = shown(bpy, [rig]), 1e-5 + older_avatar.skews(rig)
    rig.animation_data.action = None
    if other is not None:
        other.select_set(False)
    told = align(bpy, capfd)
    assert told.count("may be for another armature: 'Avatar") == others
    assert action.meshferry.bone_axes == ("" if others else "AVATAR")
    act(rig, action, slot)
    apart = np.abs(shown(bpy, [rig]) - before).reshape(len(FRAMES), -1, 16).max(axis=(0, 2))
    assert (apart < allowed).all() == (not others)


def test_actions_for_the_new_axes_are_not_converted(clean_blender: Any, capfd: Any) -> None:
    bpy = clean_blender
    rig, newer = older_avatar.add(), new_avatar(bpy)
    key(newer, "rotation_quaternion")
    action = newer.animation_data.action
    action.meshferry.bone_axes = "AVATAR"
    from meshferry.blender_data import compat

    act(rig, action, compat.slot_of(newer.animation_data))
    newer.select_set(False)
    rig.select_set(True)
    bpy.context.view_layer.objects.active = rig
    before = shown(bpy, [newer])
    align(bpy, capfd)
    np.testing.assert_array_equal(shown(bpy, [newer]), before)
    np.testing.assert_allclose(shown(bpy, [rig]), before, atol=1e-5)


@pytest.mark.parametrize("is_older", [True, False])
def test_an_action_for_other_axes_is_named_when_it_is_used(
    clean_blender: Any, capfd: Any, tmp_path: Path, is_older: bool
) -> None:
    from meshferry.blender_data import compat
    from meshferry.operators.families.second_life.animation import draw_animation

    bpy = clean_blender
    first = new_avatar(bpy) if is_older else older_avatar.add()
    key(first, "rotation_quaternion")
    action = first.animation_data.action
    action.meshferry.bone_axes, action.meshferry.clip_name = first.data.meshferry.bone_axes, "sway"
    rig = older_avatar.add() if is_older else new_avatar(bpy)
    wanted = shown(bpy, [first])
    act(rig, action, compat.slot_of(first.animation_data))
    layout = Drawn()
    draw_animation(layout, panel_context(bpy), ())
    assert "Made for bones with other axes" in " ".join(layout.lines)
    text = "Avatar.001: action 'AvatarAction' was made for bones " + (
        "along the avatar's axes, so poses differ; align the bones"
        if is_older
        else "that point elsewhere, so poses differ; import its file again"
    )
    capfd.readouterr()
    bpy.ops.export_scene.second_life_anim(filepath=str(tmp_path / "sway.anim"), scope="ACTIVE", clips="ACTIVE")
    assert capfd.readouterr().out.count(text) == 1
    assert said_by_check(bpy, capfd).count(text) == 1
    findings = bpy.context.window_manager.meshferry_check.findings
    assert [finding.fix for finding in findings if "made for bones" in finding.message] == ["align_bones" * is_older]
    if is_older:
        assert bpy.ops.object.meshferry_finding_fix() == {"FINISHED"}
        np.testing.assert_allclose(shown(bpy, [rig]), wanted, atol=1e-5)
        assert text not in said_by_check(bpy, capfd)


def said_by_check(bpy: Any, capfd: Any) -> str:
    capfd.readouterr()
    bpy.ops.export_scene.second_life_anim_check()
    return str(capfd.readouterr().out)


# -- files ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def earlier_version() -> Iterator[None]:
    """Make armatures of avatars as versions 0.1 and 0.2 did."""
    from meshferry.io_formats.second_life.avatar import skeletons

    now = skeletons.skeleton_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skeletons, "skeleton_of", lambda *a, **k: older_avatar.without_axes(now(*a, **k)))
        yield


@pytest.mark.parametrize("kind", ["upload set", "mesh", "bundle"])
def test_models_are_written_alike(clean_blender: Any, capfd: Any, tmp_path: Path, kind: str) -> None:
    bpy, files = clean_blender, {}
    for age in ("old", "aligned", "new"):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        with earlier_version() if age != "new" else contextlib.nullcontext():
            rig = dressed(bpy)
        assert rig.data.meshferry.bone_axes == ("AVATAR" if age == "new" else "")
        older_avatar.connect(rig) if age != "new" else None
        if age == "aligned":
            pose(rig)
            align(bpy, capfd)
        folder = tmp_path / age
        folder.mkdir()
        files[age] = EXPORTERS[kind](bpy, folder)
        # The hat hangs on a bone whose matrix Blender rounds anew, so its own place may be rounded, too.
        files[age] = {name: data for name, data in files[age].items() if not name.startswith("hat")}
    assert files["old"]
    assert files["aligned"] == files["old"]
    assert files["new"] == files["old"]


@pytest.mark.slow
def test_rigs_of_models_are_written_as_they_were_read(clean_blender: Any, capfd: Any, samples: Path) -> None:
    from meshferry.io_formats.second_life.formats import SECOND_LIFE_MESH

    count = 0
    for path in sorted([*(samples / "secondlife").glob("*.mesh"), *(samples / "collada").rglob("[!b]*.dae")]):
        clean_blender.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        with earlier_version():
            assert clean_blender.ops.import_scene.second_life(filepath=str(path)) == {"FINISHED"}
        rig = next((obj for obj in clean_blender.data.objects if obj.type == "ARMATURE"), None)
        clean_blender.context.view_layer.objects.active = rig
        if rig is None or not clean_blender.ops.object.second_life_align_bones.poll():
            continue
        count += 1
        older_avatar.connect(rig)
        before = written(SECOND_LIFE_MESH, rig)
        align(clean_blender, capfd)
        assert written(SECOND_LIFE_MESH, rig) == before, path.name
    assert count > 10


def written(target: Any, rig: Any) -> bytes:
    import bpy
    from meshferry.blender_data.exporting import exporter
    from meshferry.blender_data.exporting.export_options import ExportOptions
    from meshferry.io_formats import api

    source = exporter.Source("OBJECTS", objects=tuple(rig.children_recursive))
    request = exporter.ExportRequest(bpy.context, source, ExportOptions.of({}), "model", target.capabilities)
    parts = api.files_of(exporter.export_scene(request), target, {})
    return b"".join(target.write(target.from_scene(part, {})) for part in parts)


@pytest.mark.parametrize("name", ["tunic.llmesh", "dance.anim"])
def test_an_aligned_avatar_is_reloaded_as_it_is(clean_blender: Any, capfd: Any, tmp_path: Path, name: str) -> None:
    from meshferry.blender_data.mesh_data.mesh_edits import edited_actions

    bpy = clean_blender
    with earlier_version():
        imported(bpy, tmp_path, name, "second_life")
    rig = next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")
    older_avatar.connect(rig)
    if name == "tunic.llmesh":
        key(rig, "rotation_quaternion", bones=("mTorso", "mChest", "mNeck"))
    bpy.context.view_layer.objects.active = rig
    before, allowed = shown(bpy, [rig]), 1e-5 + older_avatar.skews(rig)
    align(bpy, capfd)
    assert edited_actions(rig) == []
    rests = [np.array(bone.matrix_local) for bone in rig.data.bones]
    assert bpy.ops.import_scene.meshferry_reload() == {"FINISHED"}
    assert "edited" not in capfd.readouterr().out
    np.testing.assert_array_equal([np.array(bone.matrix_local) for bone in rig.data.bones], rests)
    assert rig.data.meshferry.bone_axes == rig.animation_data.action.meshferry.bone_axes == "AVATAR"
    assert {bone.inherit_scale for bone in rig.data.bones} == {"NONE"}
    apart = np.abs(shown(bpy, [rig]) - before).reshape(len(FRAMES), -1, 16).max(axis=(0, 2))
    assert (apart < allowed).all()


def test_an_aligned_avatar_is_a_new_one_and_has_its_shape(clean_blender: Any, capfd: Any) -> None:
    from meshferry.blender_data.rigging import body_shapes

    bpy = clean_blender
    older, newer = older_avatar.add(), new_avatar(bpy)
    shape = {slider.number: 20.0 + slider.number % 50 for slider in body_shapes.sliders()}
    for rig in (older, newer):
        body_shapes.set_percents(rig, shape)
    assert body_shapes.unfit_bones(older)
    newer.select_set(False)
    bpy.context.view_layer.objects.active = older
    align(bpy, capfd)
    assert body_shapes.unfit_bones(older) == []
    for bone in newer.data.bones:
        same = older.data.bones[bone.name]
        np.testing.assert_allclose(same.matrix_local, bone.matrix_local, atol=2e-6, err_msg=bone.name)
        assert (same.use_connect, same.inherit_scale) == (False, "NONE")
        assert same.length == pytest.approx(bone.length, abs=1e-6)
        posed = (older.pose.bones[bone.name], newer.pose.bones[bone.name])
        np.testing.assert_allclose(posed[0].matrix, posed[1].matrix, atol=1e-5)
