"""Inverse kinematics of the avatar: goals at ankles and wrists."""

from typing import Any

import bpy
import numpy as np

from ....blender_data.animation import pose_curves
from ....blender_data.rigging import limb_goals
from ....blender_data.rigging.limb_goals import Limb
from ....io_formats.core.messages import Text, joined, listed
from ....io_formats.second_life.avatar.joints import facing_of
from ...layouts import button, requires
from ...reports import inform
from ...selection import enter_pose_mode, leave_edit_mode
from .avatar import HAS_AVATAR, chosen_avatar, known_bones

_LEG, _ARM = ("mHip", "mKnee", "mAnkle"), ("mShoulder", "mElbow", "mWrist")
_LIMBS = (
    ("IK Foot Left", _LEG, (0.0, 1.0, 0.0)),
    ("IK Foot Right", _LEG, (0.0, 1.0, 0.0)),
    ("IK Hand Left", _ARM, (0.0, 0.0, -1.0)),
    ("IK Hand Right", _ARM, (0.0, 0.0, 1.0)),
)
"""Names of goals, joints of the limbs without their side, and the axes about which knees and elbows bend, in the
avatar's space. Blender flips names that end in Left or Right."""


def limbs_of(avatar: Any) -> list[Limb]:
    """Return the limbs of an avatar's armature of which it has all joints."""
    bone_of = {joint: name for name, joint in reversed(known_bones(avatar).items())}
    heads = {joint: np.array(avatar.data.bones[name].head_local, np.float64) for joint, name in bone_of.items()}
    turn = facing_of(heads)[:3, :3].T
    found = []
    for goal, joints, hinge in _LIMBS:
        first, middle, last = (bone_of.get(f"{joint}{goal.rpartition(' ')[2]}", "") for joint in joints)
        if first and middle and last:
            x, y, z = (turn @ hinge).tolist()
            found.append(Limb((first, middle, last), goal, (x, y, z)))
    return found


def _keyed_bones(avatar: Any) -> set[str]:
    data = avatar.animation_data
    if data is None or data.action is None:
        return set()
    return {bone for bone, _channel in pose_curves.keyed_channels(data.action, data.action_slot)}


_IS_EDITABLE = (
    lambda context: chosen_avatar(context).is_editable and chosen_avatar(context).data.is_editable,
    "The armature is linked from another file",
)


class OBJECT_OT_second_life_ik_add(bpy.types.Operator):
    """Add goals to the limbs of an avatar."""

    bl_idname = "object.second_life_ik_add"
    bl_label = "Add IK"
    bl_description = (
        "Add a goal at each ankle and wrist, which moves the leg or arm by inverse kinematics and turns the foot or "
        "hand. Knees and elbows bend one way only. Exports leave the goals out"
    )
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        HAS_AVATAR,
        _IS_EDITABLE,
        (lambda context: not limb_goals.has_goals(chosen_avatar(context)), "The armature has goals; remove them first"),
        (lambda context: bool(limbs_of(chosen_avatar(context))), "The armature has no complete arm or leg"),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the goals where the limbs are; a mode of posing is not left."""
        avatar, was_posed = chosen_avatar(context), context.mode == "POSE"
        leave_edit_mode(context)
        limbs = limbs_of(avatar)
        limb_goals.add(context, avatar, limbs)
        if was_posed:
            enter_pose_mode()
        parts = [Text("{}: move the limbs by {}", avatar.name, listed([limb.goal for limb in limbs]))]
        if _keyed_bones(avatar).intersection(name for limb in limbs for name in limb.bones):
            parts.append(Text("keys of limbs have no effect until the goals are removed"))
        inform(self, joined(parts, "; "))
        return {"FINISHED"}


class OBJECT_OT_second_life_ik_remove(bpy.types.Operator):
    """Remove the goals of an avatar."""

    bl_idname = "object.second_life_ik_remove"
    bl_label = "Remove IK"
    bl_description = "Remove the goals of arms and legs. The limbs keep their pose, except for what is animated"
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        HAS_AVATAR,
        _IS_EDITABLE,
        (lambda context: limb_goals.has_goals(chosen_avatar(context)), "The armature has no goals"),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the goals; a mode of posing is not left."""
        avatar, was_posed = chosen_avatar(context), context.mode == "POSE"
        leave_edit_mode(context)
        limb_goals.remove(context, avatar)
        if was_posed:
            enter_pose_mode()
        return {"FINISHED"}


def draw_goals(layout: Any, avatar: Any) -> None:
    """Draw the button that adds or removes the goals."""
    has_goals = limb_goals.has_goals(avatar)
    operator = OBJECT_OT_second_life_ik_remove if has_goals else OBJECT_OT_second_life_ik_add
    button(layout, operator, text=operator.bl_label, icon="CON_KINEMATIC")
