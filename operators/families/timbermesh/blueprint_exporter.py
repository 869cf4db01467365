"""Export of blueprints: the changes of an imported one, into its own file or into a copy of it."""

from pathlib import Path
from typing import Any

import bpy

from ....blender_data.file_records import FileRecord
from ....blender_data.steps import Steps
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Text
from ....io_formats.core.options import Option
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from ...files.export_base import ExportScene
from ...files.export_dialog import named_collection
from ...files.patched_export import PatchesImported, is_patched, patch_steps
from ...layouts import file_patterns, requires
from ...reports import Messages, conclude
from ...sidebar import draw_wrapped
from ...translations import rpt_
from .blueprints import main_collection
from .parts import record_of


def own_blueprint(context: bpy.types.Context, collection: Any = None) -> tuple[FileRecord, Any] | None:
    """Return record and collection of a blueprint: this collection, or that of the active object or collection."""
    found = (collection, record_of(collection)) if collection is not None else main_collection(context)
    return (found[1], found[0]) if found is not None and found[1] is not None and is_patched(found[1]) else None


class ExportBlueprint(PatchesImported, ExportScene):
    """Write the changes of an imported blueprint."""

    bl_idname = "export_scene.timbermesh_blueprint"
    bl_label = "Export Blueprint"
    bl_description = (
        "Write moved, added and removed parts of an imported blueprint of the game Timberborn into its file, or into a "
        "copy under another name. All other text of the file stays as it is"
    )
    usual_names = file_patterns(TIMBERBORN_BLUEPRINT.extensions)
    poll = requires(
        (
            lambda context: own_blueprint(context) is not None,
            "Choose an object of an imported blueprint; new blueprints are not written",
        )
    )

    def own_file(self, context: bpy.types.Context) -> tuple[FileRecord, Any] | None:
        """Return the record and the collection of the blueprint of the active object, or else of the collection."""
        return own_blueprint(context, named_collection(context, self.collection) if self.collection else None)

    def shown_options(self, context: bpy.types.Context) -> tuple[Option, ...]:
        """Return no options: the file keeps everything that is not changed."""
        return ()

    def draw_scope(self, context: bpy.types.Context) -> None:
        """Draw nothing: the blueprint of the active object is written."""

    def draw_files(self, context: bpy.types.Context) -> None:
        """Draw a note on whether the chosen file gets only changes, or becomes a changed copy."""
        own = self.own_file(context)
        if own is None:
            text = Text("Choose an object of an imported blueprint; new blueprints are not written")
        elif self.is_chosen(own[0]):
            text = Text("Only the changes go into this file. Another name writes a copy with the changes")
        else:
            text = Text("Writes a copy of {} with the changes; Re-export then writes the copy", own[0].path)
        draw_wrapped(self.layout.column(align=True), context, rpt_(text), "INFO")

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the changes, into the file itself or into a copy."""
        own = self.own_file(context)
        messages = Messages()
        path = bpy.path.abspath(self.filepath)
        with messages.attempt(path):
            if own is None:
                raise ExportError(
                    "The active object does not belong to an imported blueprint; new blueprints are not written"
                )
            record, collection = own
            target = record.path if self.is_chosen(record) else Path(self.target_path(path))
            return (yield from patch_steps(self, context, collection, is_agreed=True, target=target))
        return conclude(self, messages, [], "Exported")
