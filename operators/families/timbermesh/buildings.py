"""New buildings of Timberborn from collections, and their re-export."""

import json
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender_data import file_records
from ....blender_data.steps import Steps, finish
from ....io_formats.core.errors import ExportError, MeshferryError
from ....io_formats.core.messages import Message, Text, counted
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from ....io_formats.timbermesh.building.options import BLOCKS, OPTIONS, BuildingOptions
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ... import layouts
from ...files.export_dialog import named_collection
from ...files.patched_export import question_of_path, refuse_unknown
from ...findings.finding_fixes import FIXES, Fix
from ...findings.finding_list import keep_findings
from ...option_properties import chosen_options, draw_options, option_values, with_options
from ...preferences import drawn_for
from ...progress import DIALOG_WIDTH, LongWork
from ...registration import MenuEntry
from ...reports import Messages, conclude, refuse
from ...sidebar import draw_wrapped
from ...translations import rpt_

_HIDDEN = {"HIDDEN", "SKIP_SAVE"}
CELLS = "cells of"
"""Custom property of lattices that show cells: the collection of the building."""


def record_of(collection: Any) -> dict[str, Any] | None:
    """Return what a collection remembers of its building; None for others, also for copies of such collections."""
    try:
        record = json.loads(collection.meshferry.written_set or "{}")
        texts = [record["blueprint"], record["options"]["mod"], record["values"][BLOCKS][-1]["Stackable"]]
        texts += dict(record["digests"]).values()
        is_own = record["collection"] == collection.name and all(isinstance(text, str) for text in texts)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return dict(record) if is_own else None


def check(context: bpy.types.Context, collection: Any, findings: list[Message]) -> None:
    """Add what an export of a collection as a building again would report; nothing if it was not exported as one.

    Raises
    ------
    MeshferryError
        It would be refused.
    """
    from .building.plan import plan_steps

    record = record_of(collection) if collection is not None else None
    if record is not None:
        options = chosen_options(BuildingOptions, {**record["options"], "use_replace": True})
        findings += finish(plan_steps(context, [collection], options, has_icon=False)).report.messages


@with_options(OPTIONS)
class EXPORT_SCENE_OT_timbermesh_building(LongWork, bpy.types.Operator):
    """Write collections as new buildings into a mod, or a written one again."""

    bl_idname = "export_scene.timbermesh_building"
    bl_label = "New Timberborn Building"
    bl_description = "Write a collection as a building of Timberborn into a mod: models, blueprint, icon, texts"
    bl_options = {"REGISTER"}

    collections: StringProperty(name="Collections", description="Names, one a line", options=_HIDDEN)
    """Without names, the collections that are selected in the Outliner, or the active one."""
    use_written: BoolProperty(name="Again", description="Write models and changes of the cells", options=_HIDDEN)
    """Only of a collection that was written as a building."""
    is_confirmed: layouts.WRITES_STORED_PATH

    confirm_text = "Write"

    def chosen(self, context: bpy.types.Context) -> list[Any]:
        """Return the collections."""
        names = [line for line in self.collections.splitlines() if line]
        found = [named_collection(context, name) for name in names] or layouts.selected_collections(context)
        return found or [context.collection]

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the dialog with the values that the collection remembers."""
        if self.use_written:
            return self.execute(context)
        stored = (record_of(self.chosen(context)[0]) or {}).get("options", {})
        for option in OPTIONS:
            if option.name in stored and option.name != "use_replace":
                setattr(self, option.name, stored[option.name])
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, width=DIALOG_WIDTH, title=self.bl_label, confirm_text="Continue")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options, or what will be written."""
        for line in self.asked.splitlines():
            draw_wrapped(self.layout.column(align=True), context, line, "DOT", width=DIALOG_WIDTH)
        if not self.asked:
            draw_options(self.layout, self, OPTIONS, "TIMBERMESH_building")

    def stored_paths(self, context: bpy.types.Context) -> list[Any]:
        """Return the stored path of the blueprint that is written again."""
        is_there = all(name in context.blend_data.collections for name in self.collections.splitlines())
        record = record_of(self.chosen(context)[0]) if self.use_written and is_there else None
        return [record["blueprint"], record["options"]["mod"]] if record is not None else []

    def question(self, context: bpy.types.Context) -> str:
        """Return what would be written, or a question about the stored path of a file."""
        if self.use_written:
            paths = self.stored_paths(context)
            return question_of_path(_file(paths[0])) if paths else ""
        try:
            plan = finish(self.plan(context, has_icon=False))
        except MeshferryError:
            return ""  # the export reports it
        return "\n".join(map(rpt_, plan.lines())) if plan.files else ""

    def plan(self, context: bpy.types.Context, *, has_icon: bool = True) -> Steps[Any]:
        """Plan the files."""
        from .building.plan import plan_steps

        collections, values = self.chosen(context), option_values(self, OPTIONS)
        record = record_of(collections[0]) if self.use_written else None
        if record is not None:
            if not (self.asked or self.is_confirmed):
                refuse_unknown(_file(record["blueprint"]))
            collections, values = collections[:1], record["options"]
        elif self.use_written:
            raise ExportError("The collection was not written as a building")
        options = chosen_options(BuildingOptions, values)
        return (yield from plan_steps(context, collections, options, record, has_icon=has_icon))

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the buildings, or nothing."""
        messages, phrases = Messages(), [Text("nothing changed")]
        name = ", ".join(self.collections.splitlines() or [context.collection.name])
        with messages.outcome(name, name):
            plan = yield from self.plan(context)
            messages.warn("", plan.write())
            for _collection, record in plan.records:
                file_records.write([], _file(record["blueprint"]), is_confirmed=True)
            triangles = sum(fact["triangles"] for fact in plan.facts)
            phrases = [counted(triangles, "triangle"), counted(len(plan.files), "file")] if plan.files else phrases
        if messages.findings:
            keep_findings(context, TIMBERMESH, self.chosen(context)[0].name, messages.findings)
        return conclude(self, messages, phrases, "Exported")


class OBJECT_OT_timbermesh_cells(bpy.types.Operator):
    """Show or hide the cells of a building."""

    bl_idname = "object.timbermesh_cells"
    bl_label = "Show Cells"
    bl_description = "Show the cells of the collection as a building and the cell before its door, or hide them"
    bl_options = {"REGISTER", "UNDO"}

    collection: StringProperty(name="Collection", description="Its name", options=_HIDDEN)

    poll = layouts.requires(layouts.IN_EDITABLE_SCENE)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Remove the cells that are shown, or add them."""
        from .building.plan import show_cells

        try:
            collection = named_collection(context, self.collection or context.collection.name)
            shown = cells_of(collection)
            bpy.data.batch_remove(shown)  # with their objects
            if not shown:
                stored = (record_of(collection) or {}).get("options", {})
                show_cells(context, collection, chosen_options(BuildingOptions, stored))
        except MeshferryError as problem:
            return refuse(self, problem.sentence())
        return {"FINISHED"}


def cells_of(collection: Any) -> list[Any]:
    """Return the lattices that show the cells of a collection."""
    return [lattice for lattice in bpy.data.lattices if lattice.get(CELLS) == collection]


def _move_origin(_target: Any, collection: Any) -> None:
    from .building.plan import move_origin

    move_origin(collection)


FIXES["model-outside"] = Fix("Put the empty #Origin at the corner of the model", _move_origin, is_of_collection=True)


def _file(path: str) -> file_records.FileRecord:
    return file_records.FileRecord(Path(path), TIMBERBORN_BLUEPRINT.name, file_records.digest_of(Path(path)))


def draw_buttons(layout: Any, context: bpy.types.Context) -> None:
    """Draw buttons for a new building and, of one that was written, for its re-export."""
    collection, build = layouts.collection_under_pointer(context), EXPORT_SCENE_OT_timbermesh_building
    names = "\n".join(one.name for one in layouts.selected_collections(context)) or collection.name
    layouts.button(layout, build, text="New Timberborn Building…", icon="HOME", collections=names)
    icon = "CHECKBOX_HLT" if cells_of(collection) else "CHECKBOX_DEHLT"
    layouts.button(layout, OBJECT_OT_timbermesh_cells, text="Show Cells", icon=icon, collection=collection.name)
    if record_of(collection) is not None:
        again = layouts.button(layout, build, text="Re-export Building", icon="FILE_TICK", collections=collection.name)
        again.use_written = True


@drawn_for("timbermesh")
def draw_entries(self: Any, context: bpy.types.Context) -> None:
    """Draw the entries in menus of objects and collections."""
    self.layout.separator()
    self.layout.operator_context = "INVOKE_DEFAULT"
    draw_buttons(self.layout, context)


ENTRIES = tuple(MenuEntry(menu, draw_entries) for menu in ("VIEW3D_MT_object", "OUTLINER_MT_collection"))
