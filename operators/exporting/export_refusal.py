"""The dialog after an export that findings prevented: it lists them with their fixes and can repeat the export."""

import json
from typing import Any

import bpy
from bpy.props import StringProperty

from ...blender_data.property_groups.translation_context import CONTEXT
from ...io_formats.core.messages import counted
from ..findings.finding_list import draw_list
from ..reports import refuse
from ..translations import iface_

_WIDTH = 500
"""Pixels of the dialog, at a resolution scale of 1."""


class WM_OT_meshferry_refused_export(bpy.types.Operator):
    """List the errors that prevented an export."""

    bl_idname = "wm.meshferry_refused_export"
    bl_label = "Export Stopped"
    bl_options = {"INTERNAL"}

    export: StringProperty(name="Export", description="Identifier of the operator", options={"SKIP_SAVE"})
    arguments: StringProperty(name="Arguments", description="Arguments of the operator, as JSON", options={"SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the dialog."""
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(
            self, width=_WIDTH, title=iface_("Nothing Was Written"), confirm_text=iface_("Export Again")
        )

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the findings."""
        findings = context.window_manager.meshferry_check.findings
        errors = sum(finding.is_error for finding in findings)
        if errors:
            self.layout.label(
                text=iface_(counted(errors, "error stops the export", "errors stop the export")), translate=False
            )
        else:
            self.layout.label(text="All errors are fixed", text_ctxt=CONTEXT, icon="CHECKMARK")
        draw_list(self.layout, context, _WIDTH)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run the export again."""
        module, _, name = self.export.partition("_OT_")  # ``bl_idname`` of an operator instance is the class name
        export = getattr(getattr(bpy.ops, module.lower()), name)
        try:
            export("EXEC_DEFAULT", **{**json.loads(self.arguments), "is_again": True})
        except RuntimeError as problem:  # raised only without a window; in one, the export is modal and reports it
            return refuse(self, "{}", str(problem).removeprefix("Error: ").strip())
        return {"FINISHED"}


def show_refusal(operator: Any) -> bool:
    """Open the dialog after the operator has ended, if a user started it in a window; return whether it opens."""
    if bpy.app.background or not operator.is_from_user():
        return False
    arguments = json.dumps(operator.as_keywords())
    export = operator.bl_idname

    def show() -> None:
        bpy.ops.wm.meshferry_refused_export("INVOKE_DEFAULT", export=export, arguments=arguments)

    bpy.app.timers.register(show, first_interval=0.05)
    return True
