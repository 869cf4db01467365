"""Export dialogs of formats whose imported files get only the changes."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.file_records import FileRecord
from ...blender_data.steps import Steps
from ...io_formats.core.errors import MeshferryError
from .export_dialog import ExportDialog
from .scene_changes import is_patched, patch_steps, question_of_patch


class PatchesImported(ExportDialog):
    """Mixin of export operators that write only changes into the file that the exported collection came from."""

    def own_file(self, context: bpy.types.Context) -> tuple[FileRecord, Any] | None:
        """Return the record of the file that the exported collection was imported from, and the collection."""
        try:
            collection = self.shown_source(context).collection
        except MeshferryError:
            return None
        record = file_records.read(collection) if collection is not None else None
        return (record, collection) if record is not None and is_patched(record) else None

    def patched(self, context: bpy.types.Context) -> tuple[FileRecord, Any] | None:
        """Return the same if the chosen path is that of the file, so that only changes are written."""
        own = self.own_file(context)
        if own is None or not self.filepath:
            return None
        chosen = Path(bpy.path.abspath(self.filepath))
        return own if chosen.absolute() == own[0].path.absolute() else None

    def suggest_name(self, context: bpy.types.Context) -> str:
        """Suggest the name of the imported file, otherwise a name as for other formats."""
        own = self.own_file(context)
        return own[0].path.name if own is not None else super().suggest_name(context)

    def suggest_folder(self, context: bpy.types.Context) -> Path:
        """Return the folder of the imported file, otherwise a folder as for other formats."""
        own = self.own_file(context)
        return own[0].path.parent if own is not None else super().suggest_folder(context)

    def question(self, context: bpy.types.Context) -> str:
        """Return the changes that would be written into an imported file, as a question."""
        own = self.patched(context)
        return question_of_patch(context, *own) if own is not None else ""

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write a new scene, or changes into an imported one."""
        own = self.patched(context)
        if own is not None:
            return (yield from patch_steps(self, context, own[1], is_agreed=True))
        return (yield from super().steps(context))
