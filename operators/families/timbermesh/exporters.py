"""Export of Timbermesh files, also of several collections or objects at once."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from ....blender_data import file_records
from ....blender_data.steps import Steps, scaled
from ....io_formats.api import EncodedFile
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Report, Text, counted, listed
from ....io_formats.disk.file_names import cautious_key
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ...files.export_base import ExportScene, encode_steps, file_steps, refuse_existing
from ...files.export_dialog import named_collection, suggested_file_name
from ...files.export_files import draw_file_names
from ...layouts import button, collection_under_pointer, path_property, property_column, selected_collections
from ...option_properties import draw_options, export_table, option_values, section_body, with_options
from ...preferences import drawn_for
from ...progress import LongWork
from ...registration import MenuEntry
from ...reports import Messages, conclude, refuse
from ...translations import iface_
from . import blueprints
from .parts import Part, collection_part, object_parts

OPTIONS = export_table(TIMBERMESH)

PARTS = (
    ("COLLECTIONS", "Collections", "The collections that are selected in the Outliner, or the active one"),
    (
        "OBJECTS",
        "Objects",
        "The selected objects, each with what is below it; those below another selected one belong to that one",
    ),
)
AROUND = (
    (
        "ORIGIN",
        "Origin",
        (
            "An empty named #Origin in the part, with its rotation; without one, the location of the object (its "
            "rotation and scale belong to the model), or the offset of the collection, which is zero unless set"
        ),
    ),
    ("WORLD", "World", "The world's origin: each model keeps its distance to it"),
)

MODEL_SUFFIX = ".Model"
"""Suffix of file names by convention of the game's mods: ``Lodge.Folktails.Model.timbermesh``."""


class ExportModel(ExportScene):
    """Export to one Timbermesh file."""

    bl_description = "Export a model for the game Timberborn"
    name_suffix = MODEL_SUFFIX

    def findings_subject(self, context: bpy.types.Context) -> str:
        """Return the name of the collection, under which the sidebar shows the findings."""
        return self.collection or str(context.collection.name)


@with_options(OPTIONS)
class EXPORT_SCENE_OT_timbermesh_batch(LongWork, bpy.types.Operator):
    """Write a Timbermesh file for each of several collections or objects."""

    bl_idname = "export_scene.timbermesh_batch"
    bl_label = "Batch Timbermesh"
    bl_description = (
        "Export each of several collections, or each selected object with what is below it, to a Timbermesh file of "
        "its own; objects that share their meshes become one file"
    )
    bl_options = {"PRESET"}

    option_table = OPTIONS

    directory: path_property("Folder", "Folder to write the files to", "DIR_PATH", {"SKIP_PRESET"})
    collections: StringProperty(
        name="Collections",
        description="Names of the collections to export, one a line; none: those selected in the Outliner, "
        "or the active collection",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    parts: EnumProperty(name="Parts", description="What becomes a file each", items=PARTS, default="COLLECTIONS")
    around: EnumProperty(name="Around", description="Where the origin of each file is", items=AROUND, default="ORIGIN")
    append_model_to_name: BoolProperty(
        name=f"Append {MODEL_SUFFIX}",
        description=f"Name the files <Name>{MODEL_SUFFIX}{TIMBERMESH.extensions[0]}, as the game's mods do",
        default=True,
    )
    use_replace: BoolProperty(
        name="Replace Files",
        description="Write over files that are there already; otherwise their parts are left out with a warning",
        default=True,
    )
    filter_glob: StringProperty(default=f"*{TIMBERMESH.extensions[0]}", options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Store which collections are selected, then open the file browser for the folder."""
        self.collections = "\n".join(self.names(context))
        if not self.directory and context.blend_data.filepath:
            self.directory = str(Path(context.blend_data.filepath).parent)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the files that will be written, and the options."""
        layout = self.layout
        column = property_column(layout)
        column.prop(self, "parts")
        column.prop(self, "around")
        folder = self.folder() or Path()
        parts = self.named_parts(context, Messages())
        names = [self.target_path(folder, name, part).name for name, part in parts]
        body = section_body(layout, "TIMBERMESH_batch_files", iface_(counted(len(names), "File")))
        if body is not None:
            draw_file_names(body, context, names)
            body.prop(self, "append_model_to_name")
            body.prop(self, "use_replace")
        draw_options(layout, self, OPTIONS, "TIMBERMESH_export")

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Export the parts one after the other. If one fails, the others are still exported.

        All files are encoded before the first is written, so that cancelling leaves no file behind.
        """
        folder = self.folder()
        if folder is None or not folder.is_dir():
            text = Text("The folder does not exist: {}", self.directory) if self.directory else Text("No folder given")
            return refuse(self, text)
        messages = Messages()
        parts = self.named_parts(context, messages)
        ready: dict[Path, tuple[str, EncodedFile]] = {}
        planned: dict[Path, list[tuple[Any, str]]] = {}
        for number, (name, part) in enumerate(parts):
            path = self.target_path(folder, name, part)
            with messages.attempt(str(path), name):
                self.claim(path, ready)
                start, end = number / len(parts), (number + 1) / len(parts)
                planned[path] = blueprints.planned_models(part, path)
                encoding = scaled(self.encode(context, part, path, messages), start, end, name)
                ready[path] = name, (yield from encoding)
        triangles = replaced = 0
        for path, (name, encoded) in ready.items():
            with messages.outcome(str(path), name):
                existed = os.path.exists(path)
                messages.warn(name, [*encoded.messages, *file_records.write_files(path, encoded.outputs)])
                report = Report()
                blueprints.use_models(planned[path], report)
                messages.warn(name, report.messages)
                triangles += encoded.scene.triangle_count
                replaced += existed
        phrases = (
            counted(triangles, "triangle"),
            counted(replaced, "file replaced", "files replaced") if replaced else "",
        )
        return conclude(self, messages, phrases, "Exported")

    def encode(self, context: bpy.types.Context, part: Part, path: Path, messages: Messages) -> Steps[EncodedFile]:
        """Encode one part; return the file."""
        values = option_values(self, OPTIONS)
        if part.is_placed and values["merging"] == "AUTO":
            values["merging"] = "KEEP"  # attachments of a blueprint name nodes of its models
        files = yield from scaled(file_steps(context, part.source, part.name, TIMBERMESH, values), 0.0, 0.8)
        encoded = yield from scaled(encode_steps(files.parts[0], path, TIMBERMESH, values), 0.8, 1.0)
        messages.warn(part.name, files.messages)
        if part.others:
            report = Report()
            text = "same meshes, but another rotation or scale than '{}', which the file has"
            report.change("turned-part", text, part.places[0].name, item=listed(part.others))
            messages.warn(part.name, report.messages)
        return encoded

    def named_parts(self, context: bpy.types.Context, messages: Messages) -> list[tuple[str, Part]]:
        """Return the parts to export with their names; add a failure to ``messages`` for other parts."""
        is_moved = self.around == "ORIGIN"
        if self.parts == "OBJECTS":
            found: list[tuple[str, Part]] = []
            with messages.attempt("", ""):
                chosen = [obj for obj in context.view_layer.objects.selected if obj.visible_get()]
                found = [(part.name, part) for part in object_parts(chosen, is_moved=is_moved)]
                if not found:
                    raise ExportError("Select the objects to export")
            return found
        found = []
        for name in self.names(context):
            with messages.attempt(name):
                found.append((name, collection_part(named_collection(context, name), is_moved=is_moved)))
        return found

    def names(self, context: bpy.types.Context) -> list[str]:
        """Return the names of the collections to export, each once."""
        named = [line for line in self.collections.splitlines() if line]
        selected = [collection.name for collection in selected_collections(context)]
        return list(dict.fromkeys(named or selected or [context.collection.name]))

    def folder(self) -> Path | None:
        """Return the folder to write to, or None if none is given."""
        return Path(bpy.path.abspath(self.directory)) if self.directory else None

    def target_path(self, folder: Path, name: str, part: Part) -> Path:
        """Return the path of a part's file: for models of a blueprint, not that of a file that no export wrote."""
        path = folder / suggested_file_name(name, TIMBERMESH, MODEL_SUFFIX if self.append_model_to_name else "")
        return file_records.free_path(path, file_records.is_own) if part.is_placed else path

    def claim(self, path: Path, ready: Iterable[Path]) -> None:
        """Raise ExportError if a path must not be written.

        Raises
        ------
        ExportError
            Another collection was written to the path, or it exists and *Replace Files* is off.
        """
        if any(cautious_key(path.name) == cautious_key(other.name) for other in ready):
            raise ExportError("another collection was just written to '{}'; rename one", path.name)
        refuse_existing(path, use_replace=self.use_replace)


def draw_collection_entries(self: Any, context: bpy.types.Context) -> None:
    """Draw the entries in the context menu of collections."""
    layout = self.layout
    layout.separator()
    layout.operator_context = "INVOKE_DEFAULT"  # by default this menu calls ``execute``
    collection = collection_under_pointer(context)
    if collection is not None:
        button(layout, "export_scene.timbermesh", text="Export Timbermesh…", collection=collection.name)
    if len(selected_collections(context)) > 1:
        button(layout, EXPORT_SCENE_OT_timbermesh_batch, text="Batch Export Timbermesh…", parts="COLLECTIONS")


@drawn_for("timbermesh")
def draw_object_entry(self: Any, _context: bpy.types.Context) -> None:
    """Draw the entry in the context menus of objects."""
    self.layout.separator()
    self.layout.operator_context = "INVOKE_DEFAULT"
    button(self.layout, EXPORT_SCENE_OT_timbermesh_batch, text="Export Timbermesh Parts…", parts="OBJECTS")


ENTRIES = tuple(MenuEntry(menu, draw_object_entry) for menu in ("VIEW3D_MT_object_context_menu", "OUTLINER_MT_object"))
