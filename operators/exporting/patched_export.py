"""Export dialogs of formats that write only changes into imported files."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.file_records import FileRecord
from ...blender_data.steps import Steps
from ...io_formats.core.errors import MeshferryError
from ..sidebar import import_homes_of
from .export_dialog import ExportDialog
from .scene_changes import is_patched, patch_steps, question_of_patch


class PatchesImported(ExportDialog):
    """Mixin of export operators that write only changes into the file that the exported collection came from."""

    def own_file(self, context: bpy.types.Context) -> tuple[FileRecord, Any] | None:
        """Return the record of the file that the exported collection was imported from, and the collection.

        If the scope is automatic and objects are selected, that is the collection of the active object.
        """
        try:
            source = self.shown_source(context)
        except MeshferryError:
            return None
        is_of_active = source.kind == "OBJECTS" and context.object in source.objects
        for collection in import_homes_of(context.object) if is_of_active else [source.collection]:
            record = file_records.read(collection) if collection is not None else None
            if record is not None and record.format == self.format.name and is_patched(record):
                return record, collection
        return None

    def patched(self, context: bpy.types.Context) -> tuple[FileRecord, Any] | None:
        """Return the result of ``own_file`` if that file is chosen, so that only changes are written, or None."""
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
