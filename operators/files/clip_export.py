"""Base of the export operators of animations: one file for each clip of armatures, with a list of actions."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, IntProperty, StringProperty

from ...blender_data.armature_modifiers import armature_of
from ...blender_data.exporting import object_selection
from ...blender_data.exporting.object_selection import label_of, select_armatures
from ...blender_data.names import name_in_file
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.messages import Text, counted
from ...io_formats.core.scene import Scene
from ..layouts import Rows, button
from ..option_properties import section_body, to_export_options
from .export_dialog import OBJECT_SCOPES
from .export_files import ExportFiles, joint_count


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


ANIMATION_SCOPES = [
    ("ACTIVE", "Active Armature", "The active armature, or the one that moves the active object"),
    *(scope[:3] for scope in OBJECT_SCOPES if scope[0] != "AUTO"),
]


class ExportClips(ExportFiles):
    """Mixin of export operators that write a file for each clip of armatures."""

    scope: EnumProperty(
        name="Export", description="Whose animation is exported", items=ANIMATION_SCOPES, default="ACTIVE"
    )
    listed_actions: CollectionProperty(type=bpy.types.OperatorFileListElement, options={"HIDDEN", "SKIP_SAVE"})
    active_listed_action: IntProperty(options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser with the list of actions."""
        result: set[str] = super().invoke(context, event)
        fill_clip_list(self, self.actions(context))
        return result

    def check(self, context: bpy.types.Context) -> bool:
        """Update the list of actions for the exported objects, and the file name as in the base class."""
        fill_clip_list(self, self.actions(context))
        changed: bool = super().check(context)
        return changed

    def actions(self, context: bpy.types.Context) -> list[Any]:
        """Return the actions that *Every Action* could export, including those whose export is switched off."""
        from ...blender_data.exporting.joint_sampling import actions_of_armatures

        try:
            return actions_of_armatures(self.armatures(context, self.shown_source(context)))
        except MeshferryError:
            return []

    def armatures(self, context: bpy.types.Context, source: Any) -> list[Any]:
        """Return the armatures of an ``exporter.Source``."""
        return select_armatures(context, source, use_hidden=self.use_hidden)

    def draw_files(self, context: bpy.types.Context) -> None:
        """Draw the names of the files, and the list of actions to export."""
        super().draw_files(context)
        if self.clips != "ACTIONS" or not self.listed_actions:
            return
        body = section_body(self.layout, f"{self.panel_prefix}_export_actions", "Actions")
        if body is not None:
            draw_actions_list(body, self)

    def source(self, context: bpy.types.Context, path: str) -> tuple[Any, str]:
        """Return the source of the animation and its name."""
        if self.scope != "ACTIVE" or self.collection:
            return super().source(context, path)
        armature = rig_of(context.object)
        if armature is None:
            raise ExportError("The active object has no armature; choose one, or export the selected objects")
        return object_selection.Source("OBJECTS", objects=(armature,)), name_in_file(armature)

    def scope_text(self, context: bpy.types.Context, source: Any) -> Text:
        """Return a description of the exported animations and their armatures."""
        return Text("{} of {}", counted(len(self.names(context, source)), "animation"), label_of(source))

    def names(self, context: bpy.types.Context, source: Any) -> list[str]:
        """Return the names of the clips. A name that clips of several armatures have gets the name of the armature."""
        from ...blender_data.exporting.joint_sampling import clips_by_armature

        armatures = self.armatures(context, source)
        clips_of = clips_by_armature(context.scene, armatures, to_export_options(self.values()))
        found = [(clip.name, obj) for obj, clips in zip(armatures, clips_of, strict=True) for clip in clips]
        if not found:
            raise ExportError("There is no animation to export; give the armature an action")
        times = Counter(name for name, _ in found)
        return [name if times[name] == 1 else f"{name}_{name_in_file(obj)}" for name, obj in found]

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the parts of the summary text, such as "3 objects"."""
        written = tuple(written)
        return (
            counted(sum(len(scene.clips) for scene in written), "animation"),
            counted(sum(clip.frames_at_rate for scene in written for clip in scene.clips), "frame"),
            counted(joint_count(written), "bone"),
        )


def rig_of(obj: Any) -> Any | None:
    """Return an armature itself, or the one that deforms an object."""
    return obj if obj is None or obj.type == "ARMATURE" else armature_of(obj)


def active_action(context: bpy.types.Context) -> Any | None:
    """Return the active action of the armature of the active object."""
    rig = rig_of(context.object)
    return rig.animation_data.action if rig is not None and rig.animation_data is not None else None
