"""The list of actions in the export dialog for animations. A checkbox sets whether the action is exported."""

import json
from collections.abc import Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ..layouts import Rows, button


class MESHFERRY_UL_actions(Rows, bpy.types.UIList):
    """List of actions, each with the checkbox *Export as a Clip*, with Blender's search field."""

    @staticmethod
    def draw_row(layout: Any, item: Any) -> None:
        """Draw one action."""
        action = bpy.data.actions.get(item.name)
        if action is not None:
            row = layout.row()
            row.active = action.meshferry.use_export
            row.prop(action.meshferry, "use_export", text=item.name, translate=False)


class ACTION_OT_meshferry_choose(bpy.types.Operator):
    """Switch the export of several actions on or off."""

    bl_idname = "action.meshferry_choose"
    bl_label = "Choose Actions"
    bl_description = "Export all of the listed actions, or none"
    bl_options = {"INTERNAL"}

    use_export: BoolProperty(name="Export", description="Export them", default=True)
    names: StringProperty(name="Actions", description="Names of the actions, as JSON")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Set ``use_export`` of each named action that can be edited."""
        for name in json.loads(self.names or "[]"):
            action = bpy.data.actions.get(name)
            if action is not None and action.is_editable:
                action.meshferry.use_export = self.use_export
        return {"FINISHED"}


def fill_clip_list(owner: Any, actions: Sequence[Any]) -> None:
    """Fill the collection property ``listed_actions`` of an operator with actions."""
    owner.listed_actions.clear()
    for name in sorted(action.name for action in actions):
        owner.listed_actions.add().name = name


def draw_actions_list(layout: Any, owner: Any) -> None:
    """Draw the list with a search, and buttons for all and none."""
    listed = owner.listed_actions
    names = json.dumps([item.name for item in listed])
    layout = layout.column()
    layout.use_property_split = False
    row = layout.row(align=True)
    for text, use_export in (("All", True), ("None", False)):
        button(row, ACTION_OT_meshferry_choose, text=text, use_export=use_export, names=names)
    rows = min(max(3, len(listed)), 8)
    layout.template_list("MESHFERRY_UL_actions", "", owner, "listed_actions", owner, "active_listed_action", rows=rows)
