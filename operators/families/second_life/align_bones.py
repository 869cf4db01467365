"""Align Bones to Avatar Axes: turn the bones of older avatars as body shapes require, and keep all poses."""

from typing import Any

import bpy

from ....blender_data.rigging.turning.alignment import align, is_local
from ....io_formats.core.messages import counted
from ...importing.import_base import leave_edit_mode
from ...layouts import requires
from ...reporting import Messages, conclude
from .avatar_joints import HAS_AVATAR, chosen_avatar, is_avatar


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
        chosen = [obj for obj in (*context.view_layer.objects.selected, active) if is_avatar(obj)]
        armatures = {obj.data: obj for obj in chosen if is_local(obj.data)}.values()
        messages = Messages()
        with messages.outcome("", active.name):
            messages.warn("", align(context, armatures).messages)
        return conclude(self, messages, (counted(len(armatures), "armature"),), "Aligned")
