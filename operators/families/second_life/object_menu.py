"""Object > Second Life: the tools of the sidebar, where the menu search (F3) finds them."""

from typing import Any

import bpy

from ...menus import MenuEntry, registration
from ...preferences import drawn_for
from ...translations import CONTEXT
from . import avatar_joints, binding, levels, loop_check, retarget, weights
from .exporters import UPLOAD_OPERATOR

_CHECK = "export_scene.second_life_check"

_BINDING = (
    binding.OBJECT_OT_second_life_bind,
    binding.OBJECT_OT_second_life_transfer_weights,
    binding.OBJECT_OT_second_life_fitted_mesh,
    binding.OBJECT_OT_second_life_clean_weights,
)


class SECOND_LIFE_MT_object(bpy.types.Menu):
    """Tools for the selected models, the avatar's armature and other rigs."""

    bl_idname = "SECOND_LIFE_MT_object"
    bl_label = "Second Life"

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the entries in the order of the sidebar's sections."""
        layout = self.layout
        layout.operator_menu_enum(levels.OBJECT_OT_second_life_level_make.bl_idname, "part", text_ctxt=CONTEXT)
        layout.operator_menu_enum(levels.OBJECT_OT_second_life_level_show.bl_idname, "part", text_ctxt=CONTEXT)
        layout.separator()
        layout.operator_context = "INVOKE_DEFAULT"  # otherwise Transfer Weights does not ask for the source
        for operator in _BINDING:
            layout.operator(operator.bl_idname, text_ctxt=CONTEXT)
        layout.separator()
        layout.operator_menu_enum(
            avatar_joints.OBJECT_OT_second_life_automatic_weights.bl_idname, "weighted", text_ctxt=CONTEXT
        )
        layout.operator(avatar_joints.OBJECT_OT_second_life_snap_joints.bl_idname, text_ctxt=CONTEXT)
        layout.operator_menu_enum(retarget.OBJECT_OT_second_life_retarget.bl_idname, "proportions", text_ctxt=CONTEXT)
        layout.separator()
        layout.operator(weights.OBJECT_OT_second_life_weigh.bl_idname, text_ctxt=CONTEXT)
        layout.operator(_CHECK, text_ctxt=CONTEXT)
        layout.operator(loop_check.Check.bl_idname, text_ctxt=CONTEXT)
        layout.operator(UPLOAD_OPERATOR, text="Export Upload Set…", text_ctxt=CONTEXT).scope = "SELECTION"


@drawn_for("second_life")
def draw_object_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the submenu in the Object menu of the 3D view."""
    self.layout.separator()
    self.layout.menu(SECOND_LIFE_MT_object.bl_idname, text_ctxt=CONTEXT)


CLASSES = (SECOND_LIFE_MT_object,)
ENTRIES = (MenuEntry("VIEW3D_MT_object", draw_object_entry),)

register, unregister = registration(CLASSES, ENTRIES)
