"""Exports that write only changes into imported files: dialogs, questions before, the writing, the report."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.file_records import BACKUP, FileRecord
from ...blender_data.property_groups.ledger import is_of_other_import
from ...blender_data.steps import Steps, finish, without_collection
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.messages import Text, joined
from ...io_formats.registry import FORMATS, by_name
from ..reports import Messages, conclude
from ..sidebar import import_homes_of
from ..translations import rpt_
from .export_dialog import ExportDialog
from .session_projects import session_projects


def is_patched(record: FileRecord) -> bool:
    """Return whether an export writes only changes into a file: it was imported, and its format allows this."""
    return record.options is None and any(known.name == record.format and known.is_patched for known in FORMATS)


def patch_steps(
    operator: Any,
    context: bpy.types.Context,
    collection: Any,
    *,
    is_agreed: bool,
    is_dry_run: bool = False,
    target: Path | None = None,
) -> Steps[set[str]]:
    """Write the changes of an imported collection into its file, and report; return the operator's result.

    Parameters
    ----------
    is_agreed:
        Whether the user chose the path or confirmed it.
    target:
        Path to write, by default that of the file. Another path gets a copy of the file with the changes, and becomes
        the target.
    """
    from ...blender_data.exporting.placements.placement_patch import plan_patch

    messages = Messages()
    lines: list[str] = []
    record = file_records.read(collection)
    target = target or record.path
    with messages.outcome(str(target)) as name:
        if not is_agreed:
            refuse_unknown(record)
        leave_edited_modes(context)
        with without_collection():
            plan = yield from plan_patch(collection, session_projects(), target)
        lines = [*plan.lines()] or [Text("nothing changed")]
        if is_dry_run:
            lines.insert(0, Text("nothing written"))
        else:
            plan.write(target)
            if target != record.path and not bpy.app.background:  # Undo of later steps must keep the new target
                bpy.ops.ed.undo_push(message=operator.bl_label)
        messages.warn(name, plan.messages)
    return conclude(operator, messages, lines, "Compared" if is_dry_run else "Exported")


def question_of_path(record: FileRecord, owner: Any = None) -> str:
    """Return a question about a file that the user did not agree to write since the .blend file was opened.

    It is asked again if another import than that of ``owner`` wrote the file since.
    """
    session = file_records.session_file(record.path)
    exists = bool(file_records.unasked_paths([str(record.path)])) or record.path.exists()
    is_of_other = session is not None and owner is not None and is_of_other_import(owner, session.digest)
    if session is not None and (session.is_confirmed or not exists) and not (is_of_other and exists):
        return ""
    label = by_name(record.format).label
    texts = [Text("The path is stored in this .blend file.")] if session is None else []
    if is_of_other:
        texts.append(Text("Another import of the file wrote it last; changes made there are lost."))
    if not exists:
        texts.append(Text("Write {} ({})? There is no such file yet.", record.path, label))
    else:
        values = record.path, label, record.path.name + BACKUP
        text = Text(
            "Replace {} ({})? Content that Meshferry did not write is kept as {}. You are asked once for each file.",
            *values,
        )
        texts.append(text)
    return rpt_(joined(texts, " "))


def question_of_patch(context: bpy.types.Context, record: FileRecord, collection: Any) -> str:
    """Return the changes that would be written, a line for each kind; an empty string if there are none."""
    from ...blender_data.exporting.placements.placement_patch import plan_patch

    leave_edited_modes(context)
    try:
        with without_collection():
            plan = finish(plan_patch(collection, session_projects(), record.path))
    except MeshferryError:
        return ""  # the export reports it
    if not plan.is_changed():
        return ""
    path = question_of_path(record, collection) or rpt_(Text("Write these changes into {}?", record.path))
    return "\n".join([path, *(rpt_(line) for line in (*plan.lines(), *plan.messages))])


def leave_edited_modes(context: bpy.types.Context) -> None:
    """Apply changes of edit mode to the data of the objects."""
    for obj in context.objects_in_mode if context.mode.startswith("EDIT") else ():
        obj.update_from_editmode()


def refuse_unknown(record: FileRecord) -> None:
    """Raise ExportError for a path that was neither read nor chosen since the .blend file was opened.

    Raises
    ------
    ExportError
        The path is only stored in the .blend file, which may come from another user.
    """
    if file_records.session_file(record.path) is None:
        raise ExportError(
            "The path is stored in the .blend file, and was neither read nor chosen since; choose File > Export, or "
            "set is_confirmed in a script"
        )


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
        return own if own is not None and self.is_chosen(own[0]) else None

    def is_chosen(self, record: FileRecord) -> bool:
        """Return whether the user chose the path of an imported file, so that only changes are written into it."""
        return bool(self.filepath) and Path(bpy.path.abspath(self.filepath)).absolute() == record.path.absolute()

    def suggest_path(self, context: bpy.types.Context, folder: Path) -> Path:
        """Propose the name of the imported file, otherwise a name as for other formats."""
        own = self.own_file(context)
        if own is None:
            return super().suggest_path(context, folder)
        self.suggested_name = own[0].path.name
        return folder / self.suggested_name

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
