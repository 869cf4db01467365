"""Changes of an imported scene that go back into its own file: the questions before, the writing, the report."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.exporting.placements.placement_patch import BACKUP, plan_patch
from ...blender_data.file_records import FileRecord
from ...blender_data.steps import Steps, finish, without_collection
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.messages import Text, joined
from ...io_formats.registry import FORMATS, by_name
from ..importing.session_projects import session_projects
from ..reports import Messages, conclude
from ..translations import rpt_


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
        Path of a copy to write with the changes, if not the file itself gets them.
    """
    messages = Messages()
    lines: list[str] = []
    record = file_records.read(collection)
    with messages.outcome(str(target or record.path)) as name:
        if not is_agreed:
            refuse_unknown(record)
        leave_edited_modes(context)
        with without_collection():
            plan = yield from plan_patch(collection, session_projects())
        lines = [*plan.lines()] or [Text("nothing changed")]
        if is_dry_run:
            lines.insert(0, Text("nothing written"))
        elif target is not None:
            plan.write_copy(target)
        else:
            plan.write()
            if plan.patched.keys and not bpy.app.background:
                bpy.ops.ed.undo_push(message=operator.bl_label)  # Undo of later steps must keep the new keys
        messages.warn(name, plan.messages)
    return conclude(operator, messages, lines, "Compared" if is_dry_run else "Exported")


def question_of_path(record: FileRecord) -> str:
    """Return a question about a file that the user did not agree to write since the .blend file was opened."""
    session = file_records.session_file(record.path)
    exists = bool(file_records.unasked_paths([str(record.path)])) or record.path.exists()
    if session is not None and (session.is_confirmed or not exists):
        return ""
    label = by_name(record.format).label
    texts = [Text("The path is stored in this .blend file.")] if session is None else []
    if not exists:
        texts.append(Text("Write {} ({})? There is no such file yet.", record.path, label))
    else:
        backup = record.path.name + BACKUP
        text = Text(
            "Replace {} ({})? The old file is kept as {}. You are asked once for each file.", record.path, label, backup
        )
        texts.append(text)
    return rpt_(joined(texts, " "))


def question_of_patch(context: bpy.types.Context, record: FileRecord, collection: Any) -> str:
    """Return the changes that would be written, a line for each kind; an empty string if there are none."""
    leave_edited_modes(context)
    try:
        with without_collection():
            plan = finish(plan_patch(collection, session_projects()))
    except MeshferryError:
        return ""  # the export reports it
    if not plan.edits:
        return ""
    path = question_of_path(record) or rpt_(Text("Write these changes into {}?", record.path))
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
