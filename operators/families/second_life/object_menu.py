"""Object > Second Life: the tools of the sidebar, where the menu search (F3) finds them."""

from typing import Any

import bpy

from ....blender_data.property_groups.translation_context import CONTEXT
from ...layouts import button
from ...preferences import drawn_for
from ...registration import MenuEntry
from .exporters import UPLOAD_OPERATOR


class SECOND_LIFE_MT_object(bpy.types.Menu):
    """Tools for the selected models, the avatar's armature and other rigs."""

    bl_idname = "SECOND_LIFE_MT_object"
    bl_label = "Second Life"

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the entries in the order of the sidebar's sections."""
        layout = self.layout
        layout.operator_menu_enum("object.second_life_level_make", "part", text_ctxt=CONTEXT)
        layout.operator_menu_enum("object.second_life_level_show", "part", text_ctxt=CONTEXT)
        layout.separator()
        layout.operator_context = "INVOKE_DEFAULT"  # otherwise Transfer Weights does not ask for the source
        for name in ("bind", "transfer_weights", "fitted_mesh", "clean_weights", "match_seam"):
            layout.operator(f"object.second_life_{name}", text_ctxt=CONTEXT)
        layout.separator()
        layout.operator_menu_enum("object.second_life_automatic_weights", "weighted", text_ctxt=CONTEXT)
        for name in ("snap_joints", "ik_add", "ik_remove"):
            layout.operator(f"object.second_life_{name}", text_ctxt=CONTEXT)
        layout.operator_menu_enum("object.second_life_retarget", "proportions", text_ctxt=CONTEXT)
        layout.separator()
        layout.operator_menu_enum("object.second_life_shape_set", "shape", text_ctxt=CONTEXT)
        for name in ("shape_random", "shape_copy", "load_shape", "save_shape", "shape_apply", "shape_standard"):
            layout.operator(f"object.second_life_{name}", text_ctxt=CONTEXT)
        layout.separator()
        for name in ("use_as_body", "add_mannequin", "load_body", "check_fit", "add_attachment_points"):
            layout.operator(f"object.second_life_{name}", text_ctxt=CONTEXT)
        layout.operator_menu_enum("object.second_life_attach", "point", text_ctxt=CONTEXT)
        layout.separator()
        for name in (
            "object.second_life_weigh",
            "export_scene.second_life_check",
            "object.second_life_clean_action",
            "export_scene.second_life_anim_check",
        ):
            layout.operator(name, text_ctxt=CONTEXT)
        button(layout, UPLOAD_OPERATOR, text="Export Upload Set…", scope="SELECTION")


@drawn_for("second_life")
def draw_object_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the submenu in the Object menu of the 3D view."""
    self.layout.separator()
    self.layout.menu(SECOND_LIFE_MT_object.bl_idname, text_ctxt=CONTEXT)


ENTRIES = (MenuEntry("VIEW3D_MT_object", draw_object_entry),)
