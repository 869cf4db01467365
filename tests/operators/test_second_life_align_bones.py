"""Align Bones to Avatar Axes: all that poses the bones of an older avatar is converted, so that nothing moves.

What a joint does is the matrix of its pose bone relative to the bone's rest, which does not depend on the axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import older_avatar
import pytest

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


def joints(bpy: Any, avatar: Any) -> Any:
    """Return head and rotation relative to the rest of each joint in the world, (joints, 4, 4), in this frame."""
    from meshferry.blender_data.rigging.joint_poses import rest_matrix

    bones = avatar.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    found = rest_matrix(np.array([avatar.matrix_world @ bone.matrix for bone in bones], np.float64))
    rests = rest_matrix(np.array([bone.bone.matrix_local for bone in bones], np.float64))
    found[:, :3, :3] = found[:, :3, :3] @ rests[:, :3, :3].transpose(0, 2, 1)
    return found


def skews(avatar: Any) -> Any:
    """Return how far the rest matrices of each bone or of a bone above are from rotations, (joints,).

    Blender's matrices of legs that point downwards are not exact; poses of the bones below depend on it.
    """
    found = {}
    for bone in avatar.data.bones:  # parents first
        axes = np.array(bone.matrix_local, np.float64)[:3, :3]
        own = np.abs(axes.T @ axes - np.identity(3)).max()
        found[bone.name] = max(own, found[bone.parent.name]) if bone.parent else own
    return np.array(list(found.values()))


def shown(bpy: Any, avatars: Any, others: Any = ()) -> Any:
    """Return what all joints do, and the matrices of other objects, on all frames."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found += [joints(bpy, avatar) for avatar in avatars]
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
    bones = avatar.pose.bones
    for owner, target, kind in (
        ("mKneeLeft", "mKneeLeft", "LIMIT_DISTANCE"),
        ("R_UPPER_LEG", "L_UPPER_LEG", "COPY_ROTATION"),
        ("mFaceLipLowerRight", "mFaceLipLowerRight", "COPY_LOCATION"),
        ("mSpine4", "mSpine3", "COPY_ROTATION"),
        ("mAnkleLeft", "mAnkleRight", "COPY_ROTATION"),
    ):
        constraint = bones[owner].constraints.new(kind)
        constraint.target, constraint.subtarget = avatar, target
        if kind == "COPY_ROTATION":
            constraint.owner_space = constraint.target_space = "LOCAL"


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
    *(posed, scaled_evenly, strips, constrained, child_of, parented, moved_avatar),
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
    allowed = np.append(skews(avatar), np.repeat(skews(avatar).max(), len(others))) + 1e-5
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
    apart = np.abs(after - before).reshape(len(FRAMES), -1, 16).max(axis=(0, 2))
    assert (apart < allowed).all(), sorted(zip(apart.tolist(), avatar.data.bones.keys(), strict=False))[-5:]
    assert np.ptp(before, axis=0).max() > 0.1 or set_up in {posed, locations}
