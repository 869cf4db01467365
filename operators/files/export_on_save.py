"""Re-export on save: export the files of a .blend file again after each save, where the user allowed it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import bpy
from bpy.props import StringProperty

from ...blender_data import file_records
from ...blender_data.exporting import object_selection
from ...blender_data.file_records import BACKUP, FileRecord, file_key
from ...blender_data.steps import Step, Steps, scaled
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.messages import Text, counted, joined, listed
from ...io_formats.disk.rooted_files import is_network_path
from ...io_formats.registry import by_name
from ..format_operators import EXPORTERS
from ..preferences import exports_on_save_enabled
from ..progress import DIALOG_WIDTH, LongWork
from ..reports import Messages, keep_report, readable, report, warn
from ..sidebar import draw_wrapped
from ..translations import iface_, rpt_
from . import save_queue
from .patched_export import is_patched
from .reexport import EncodedAgain, FoundFile, encode_again, refuse_changed, shown_file
from .session_projects import session_projects

if TYPE_CHECKING:
    from ...blender_data.exporting.placements.placement_patch import PlannedPatch

Encoded: TypeAlias = "EncodedAgain | PlannedPatch"

_MOST_SHOWN = 12
"""Largest number of files in the question."""


class EXPORT_SCENE_OT_meshferry_on_save(LongWork, bpy.types.Operator):
    """Export the allowed files of the .blend file again; the timer of ``save_queue`` starts it."""

    bl_idname = "export_scene.meshferry_on_save"
    bl_label = "Re-export on Save"
    bl_description = "Export again all files of this .blend file for which Re-export on Save is allowed"
    bl_options = {"INTERNAL"}

    is_again = True
    """Modal after the first step: Blender shows no report of an operator that a timer started and that is not modal."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Return whether there are allowed files, in any scene."""
        return any(_split(scene)[0] for scene in context.blend_data.scenes)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Encode all files, then write those whose content changed; report in one line."""
        yield Step("Reading", 0.0)  # so that it is modal; see ``is_again``
        messages = Messages()
        blend = bpy.data.filepath
        ready: list[Encoded] = []
        done: list[Encoded] = []
        allowed = _split(context.scene)[0]
        elsewhere = {path for scene in bpy.data.scenes for path in _split(scene)[0]} - {*allowed}
        for number, (path, found) in enumerate(allowed.items()):
            with messages.attempt(str(path)):
                start, end = number / len(allowed), (number + 1) / len(allowed)
                encoded = yield from scaled(_encode(context, found), start, end, path.name)
                if encoded.is_changed():
                    _refuse_unknown(encoded)
                    ready.append(encoded)
                else:
                    done.append(encoded)
        if not save_queue.session().is_trusted() or bpy.data.filepath != blend:
            return {"CANCELLED"}  # saved meanwhile under another path, about which the user is asked first
        unchanged = len(done)
        for encoded in ready:
            with messages.outcome(str(encoded.record.path)) as name:
                encoded.write(use_blend=False)
                messages.warn(name, encoded.messages)
                done.append(encoded)
        with messages.attempt(blend):
            _store_digests(allowed, done, done[unchanged:])
        save_queue.done()
        _conclude(self, messages, unchanged, len(elsewhere))
        return {"FINISHED"}


def _encode(context: bpy.types.Context, found: list[FoundFile]) -> Steps[Encoded]:
    """Encode a file without changing data blocks.

    Raises
    ------
    MeshferryError
        The file cannot be exported.
    """
    from ...blender_data.exporting.placements.placement_patch import plan_patch

    if len(found) > 1:
        names = listed([found_file.owners[0].name for found_file in found])
        raise ExportError("Several imports or exports belong to this file: {}; choose Re-export for one of them", names)
    record, _owners, source = found[0]
    if is_patched(record):
        return (yield from plan_patch(source.collection, session_projects()))
    refuse_changed(record)
    return (yield from encode_again(context, found[0], baking="REFUSE"))


def _refuse_unknown(encoded: Encoded) -> None:
    """Raise ExportError if a companion file would be replaced that is not known to be from this .blend file.

    Raises
    ------
    ExportError
        There is such a file. The user allowed only the chosen file of the set.
    """
    if isinstance(encoded, EncodedAgain):
        known = file_records.exports_of_blend(bpy.data.filepath).companions
        unknown = []
        for place in encoded.changed_companions():
            entry = file_records.session_file(place) or file_records.SessionFile()
            digests = {entry.digest, known.get(file_key(place), "")} - {""}
            if place.exists() and file_records.digest_of(place) not in digests:
                unknown.append(place.name)
        if unknown:
            text = "{} exists already and was not written on save; choose Re-export to replace it"
            raise ExportError(text, listed(unknown, 3))


def _store_digests(paths: Iterable[Path], done: Iterable[Encoded], written: Iterable[Encoded]) -> None:
    """Store the digests of written files and of companion files, and new files in folders that the user allowed."""
    allowed = file_records.exports_of_blend(bpy.data.filepath)
    for path in paths:
        allowed.allow(path)
    sets = [encoded for encoded in done if isinstance(encoded, EncodedAgain)]
    beside = [place for encoded in sets for place in encoded.companions()]
    allowed.digests.update({file_key(one.record.path): file_records.digest_of(one.record.path) for one in written})
    allowed.companions.update({file_key(place): file_records.digest_of(place) for place in beside})
    if allowed != file_records.exports_of_blend(bpy.data.filepath):
        allowed.store()


def _is_stored(operator: Any, allowed: file_records.AllowedExports) -> bool:
    """Store a list, or warn; return whether it is stored."""
    try:
        allowed.store()
    except MeshferryError as problem:
        warn(operator, "{}", problem.sentence())
        return False
    return True


def _conclude(operator: Any, messages: Messages, unchanged: int, elsewhere: int) -> None:
    """Report the result in one line; the sidebar has the warnings and all causes of failures.

    ``unchanged`` and ``elsewhere`` are the numbers of unchanged files and of files of other scenes.
    """
    warnings = messages.lines(messages.warnings)
    failures = [Text("{}: {}", *failure) for failure in messages.failures]
    parts = [Text("{} written", listed(messages.done, 3, quote=""))] if messages.done else []
    if unchanged:
        parts.append(Text("{} unchanged", counted(unchanged, "file")))
    if elsewhere:
        parts.append(Text("{} of other scenes left out", counted(elsewhere, "file")))
    if warnings:
        parts.append(counted(len(warnings), "warning"))
    if len(failures) > 1:
        parts.append(Text("{} failed", counted(len(failures), "file")))
    line = rpt_(Text("Re-export on save: {}", joined([*parts, *failures[:1]], ", ")))
    is_problem = bool(warnings or failures)
    others = [*(rpt_(failure) for failure in failures[1:]), *warnings, *messages.lines(messages.notes)]
    keep_report(readable(line), [readable(other) for other in others], is_problem=is_problem)
    report(operator, "WARNING" if is_problem else "INFO", line)


def files_in(scene: bpy.types.Scene) -> dict[Path, list[FoundFile]]:
    """Return the files of a scene that can be exported again, each with the objects or collections that belong to it.

    No file is accessed: a path in a .blend file of another user may lead to another machine.
    """
    found: dict[Path, list[FoundFile]] = defaultdict(list)
    for collection in scene.collection.children_recursive:
        for record in _exportable(collection):
            found[record.path].append(
                FoundFile(record, [collection], object_selection.Source("COLLECTION", collection))
            )
    objects: dict[Path, list[Any]] = defaultdict(list)
    records: dict[Path, FileRecord] = {}
    for obj in scene.objects:
        for record in _exportable(obj):
            objects[record.path].append(obj)
            records[record.path] = record
    for path, owners in objects.items():
        # Objects exported over the file of their import belong to it by themselves, as for Re-export.
        found[path] = [one for one in found[path] if not {*owners} <= {*one.source.collection.all_objects}]
        found[path].append(FoundFile(records[path], owners, object_selection.Source("OBJECTS", objects=tuple(owners))))
    return dict(found)


def _exportable(owner: Any) -> list[FileRecord]:
    return [record for record in file_records.records(owner) if _is_exportable(record)]


def _is_exportable(record: FileRecord) -> bool:
    """Return whether a file can be exported again and its name is of its format: the user allowed no other content."""
    if not record.path.is_absolute() or (record.format not in EXPORTERS and not is_patched(record)):
        return False
    return record.path.name.lower().endswith(by_name(record.format).extensions)


def _split(scene: bpy.types.Scene) -> tuple[dict[Path, list[FoundFile]], list[Path]]:
    """Return the allowed files of a scene, and those about which the user is asked.

    The user is asked about files that were exported from this .blend file, and that the list does not have. A file that
    the user exported since the .blend file was opened, beside an allowed one, needs no question.
    """
    session = save_queue.session()
    listed_files = file_records.exports_of_blend(bpy.data.filepath)
    allowed: dict[Path, list[FoundFile]] = {}
    asked: list[Path] = []
    for path, found in files_in(scene).items():
        if file_key(path) in session.declined:
            continue
        entry = file_records.session_file(path)
        is_chosen = entry is not None and entry.is_confirmed
        is_known = listed_files.allows(path) or (is_chosen and listed_files.has_folder_of(path))
        if is_known and session.is_trusted():
            allowed[path] = found
        elif is_known or is_chosen or any(one.record.options is not None for one in found):
            asked.append(path)
    return allowed, asked


class WM_OT_meshferry_allow_on_save(bpy.types.Operator):
    """Ask which files are exported again on each save of the open .blend file."""

    bl_idname = "wm.meshferry_allow_on_save"
    bl_label = "Re-export on Save"
    bl_description = "Allow to export files of this .blend file again on each save"
    bl_options = {"INTERNAL"}

    paths: Sequence[Path] = ()
    """The files in the question; only these are allowed. About further files there is another question."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Return whether there are files to ask about."""
        return bool(bpy.data.filepath and _split(context.scene)[1])

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the question."""
        self.paths = _split(context.scene)[1][:_MOST_SHOWN]
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(self, width=DIALOG_WIDTH, title=self.bl_label, confirm_text=iface_("Allow"))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the question and the files."""
        column = self.layout.column(align=True)
        name = Path(bpy.data.filepath).name
        question = Text("Export these files again on each save of {}?", name)
        draw_wrapped(column, context, rpt_(question), "QUESTION", width=DIALOG_WIDTH)
        for path in self.paths:
            icon = "URL" if is_network_path(str(path)) else "FILE"
            draw_wrapped(column, context, readable(str(path)), icon, width=DIALOG_WIDTH)
        note = Text("Content that Meshferry did not write is kept as {}. The preferences list them.", f"*{BACKUP}")
        draw_wrapped(column, context, rpt_(note), width=DIALOG_WIDTH)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the files to the user's list, and export them."""
        if not allow(self, self.paths or _split(context.scene)[1][:_MOST_SHOWN]):
            return {"CANCELLED"}
        save_queue.queue()  # the question is about the save before it
        return {"FINISHED"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Do not ask again until the .blend file is opened again."""
        save_queue.session().declined.update(file_key(path) for path in _split(context.scene)[1])


def allow(operator: Any, paths: Sequence[Path]) -> bool:
    """Add files to the list of the open .blend file, from its next save on; return whether the list is stored."""
    allowed = file_records.exports_of_blend(bpy.data.filepath)
    session = save_queue.session()
    if not session.is_trusted():  # the list was for another content: only the files of this question apply
        allowed.digests = {key: allowed.digests.get(key, "") for key in map(file_key, paths)}
        allowed.companions = {}
    for path in paths:
        allowed.allow(path)
        session.declined.discard(file_key(path))
    allowed.stamp = session.stamp
    if not _is_stored(operator, allowed):
        return False
    session.trusted = bpy.data.filepath
    return True


class WM_OT_meshferry_missed_on_save(LongWork, bpy.types.Operator):
    """Report that the last save of the open .blend file was not exported: Blender was closed, or Esc pressed."""

    bl_idname = "wm.meshferry_missed_on_save"
    bl_label = "Re-export on Save"
    bl_options = {"INTERNAL"}

    is_again = True

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Report the files."""
        yield Step("Reading", 0.0)  # so that it is modal; see ``is_again``
        allowed = file_records.exports_of_blend(bpy.data.filepath)
        names = listed([Path(path).name for path in allowed.paths()], 3, quote="")
        line = Text("Not re-exported after the last save: {}. Save again", names)
        keep_report(readable(rpt_(line)), [], is_problem=True)
        report(self, "WARNING", rpt_(line))
        save_queue.done()
        return {"FINISHED"}


class WM_OT_meshferry_switch_on_save(bpy.types.Operator):
    """Allow or forbid to export a file again on each save."""

    bl_idname = "wm.meshferry_switch_on_save"
    bl_label = "Re-export on Save"
    bl_description = "Export this file again on each save of the .blend file, if its content changed"
    bl_options = {"INTERNAL"}

    path: StringProperty(name="Path", options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Add the file to the user's list, or remove it; no file is written."""
        path = Path(self.path)
        if not is_allowed(path):
            return {"FINISHED"} if allow(self, [path]) else {"CANCELLED"}
        allowed = file_records.exports_of_blend(bpy.data.filepath)
        allowed.forbid(path)
        save_queue.session().declined.add(file_key(path))
        return {"FINISHED"} if _is_stored(self, allowed) else {"CANCELLED"}


def is_allowed(path: Path) -> bool:
    """Return whether a file of the open .blend file is exported again on save."""
    session = save_queue.session()
    is_listed = file_records.exports_of_blend(bpy.data.filepath).allows(path)
    return is_listed and session.is_trusted() and file_key(path) not in session.declined


def draw_switch(layout: Any, context: bpy.types.Context) -> None:
    """Draw the switch of the file of the Re-export button, if the preference is on and the .blend file was saved."""
    if not exports_on_save_enabled() or not bpy.data.filepath:
        return
    record = shown_file(context)
    if record is None or not _is_exportable(record):
        return
    is_on = is_allowed(record.path)
    icon = "CHECKBOX_HLT" if is_on else "CHECKBOX_DEHLT"
    layout.operator(WM_OT_meshferry_switch_on_save.bl_idname, icon=icon, depress=is_on).path = str(record.path)
