"""Align Bones to Avatar Axes: turn the bones of older avatars as body shapes require, and keep all poses."""

from typing import Any

import bpy
import numpy as np

from ....blender_data.rigging import body_shapes
from ....blender_data.rigging.turning import armature_turning
from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Report, counted
from ....io_formats.core.scene import Joint, Skeleton
from ....io_formats.second_life.avatar import bone_axes
from ....io_formats.second_life.avatar.avatar_fit import joint_ends
from ....io_formats.second_life.avatar.avatar_space import facing_of
from ....io_formats.second_life.avatar.rig_joints import tilt
from ...importing.import_base import leave_edit_mode
from ...layouts import requires
from ...reporting import Messages, conclude
from .avatar_joints import HAS_AVATAR, chosen_avatar, is_avatar, known_bones

_LEANS = np.radians(1.0)
"""Angle above which an avatar does not stand upright; up to 10° count as 0."""


class OBJECT_OT_second_life_align_bones(bpy.types.Operator):
    """Turn the bones of an avatar."""

    bl_idname = "object.second_life_align_bones"
    bl_label = "Align Bones to Avatar Axes"
    bl_description = (
        "Turn the bones that body shapes scale to the avatar's axes. Joints, meshes and exported files do not change; "
        "actions, constraints and objects parented to bones are converted so that poses look the same"
    )
    bl_options = {"REGISTER", "UNDO"}
    poll = requires(
        HAS_AVATAR,
        (lambda context: is_local(chosen_avatar(context).data), "The armature is linked from another file"),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Turn the bones of the avatar and of all selected avatars."""
        leave_edit_mode(context)
        active: Any = chosen_avatar(context)
        avatars = [obj for obj in context.view_layer.objects.selected if is_avatar(obj)]
        chosen = {obj.data: obj for obj in (*avatars, active) if is_local(obj.data)}
        messages = Messages()
        parts: tuple[str, ...] = ()
        with messages.outcome("", active.name):
            wanted = {data: directions(obj) for data, obj in chosen.items()}
            alone = {data: known_bones(obj) for data, obj in chosen.items()}
            report = armature_turning.turn_bones(context, wanted, alone, bone_axes.AXES)
            for obj in chosen.values():
                report_unfit(obj, report)
            messages.warn("", report.messages)
            parts = (counted(sum(map(len, wanted.values())), "bone along the axes", "bones along the axes"),)
        return conclude(self, messages, parts, "Aligned")


def is_local(data: Any) -> bool:
    """Return whether an armature can be edited."""
    return data.library is None and data.override_library is None


def is_older(armature: Any) -> bool:
    """Return whether the bones of an avatar's armature object do not lie by the rule for body shapes."""
    return bool(armature.data.meshferry.bone_axes != bone_axes.AXES)


def directions(armature: Any) -> dict[str, Any]:
    """Return the directions that the bones of an armature object shall have, for :func:`armature_turning.turn_bones`.

    Raises
    ------
    MeshferryError
        The avatar does not stand upright in the space of the armature.
    """
    known = known_bones(armature)
    bones = armature.data.bones
    heads = {joint: np.array(bones[name].head_local, np.float64) for name, joint in reversed(known.items())}
    leaning = tilt(Skeleton("", [Joint(joint, translation=head.tolist()) for joint, head in heads.items()]))
    if leaning > _LEANS:
        raise MeshferryError(
            "'{}' leans by {:.0f}° in its own axes; turn its bones upright in edit mode",
            armature.name,
            np.degrees(leaning),
        )
    turn, ends = facing_of(heads)[:3, :3], joint_ends(heads)
    found = {}
    for name, joint in known.items():
        vector, up = bone_axes.drawn(joint, turn @ (ends[joint] - heads[joint]))
        if up is not None:
            found[name] = (turn.T @ vector, turn.T @ up)
    return found


def report_unfit(armature: Any, report: Report) -> None:
    """Report bones that shapes still cannot scale exactly."""
    unfit = body_shapes.unfit_bones(armature)
    report.loss_of("unfit-bones", "Shapes are not exact on {}: {}", unfit, "bone")
