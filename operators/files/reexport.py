"""File > Export > Re-export: write the file that the active object was last exported to or imported from again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import bpy
from bpy.props import BoolProperty, StringProperty

from ...blender_data import file_records, import_marks
from ...blender_data.animation.clip_sources import clip_name
from ...blender_data.exporting import object_selection
from ...blender_data.file_records import BACKUP, FileRecord, SessionFile
from ...blender_data.steps import Steps, scaled, without_bpy
from ...io_formats.api import EncodedFile, load_set, scene_name
from ...io_formats.core.errors import ExportError, FormatError, MeshferryError
from ...io_formats.core.format import Format, OutputFile
from ...io_formats.core.messages import Message, Text, counted
from ...io_formats.core.options import EMBED_ANIMATION, resolve
from ...io_formats.core.scene import Scene
from ...io_formats.disk.file_sets import companions_of, obsolete_files, would_change
from ...io_formats.partner_files import file_set, part_of, suffixes_of
from ..format_operators import EXPORTERS
from ..layouts import WRITES_STORED_PATH, requires
from ..option_properties import to_export_options
from ..progress import DIALOG_WIDTH, LongWork
from ..registration import MenuEntry
from ..reports import Messages, conclude, refuse
from ..sidebar import draw_wrapped, import_homes_of
from ..translations import iface_
from .export_base import (
    clip_files_of,
    clips_left_out,
    encode_steps,
    facts_in,
    file_clips_of,
    file_steps,
    without_needless_clips,
)
from .export_base import clips_note as note_of_clips
from .export_base import clips_question as question_of_clips
from .patched_export import is_patched, patch_steps, question_of_patch, question_of_path, refuse_unknown


class FoundFile(NamedTuple):
    """A file that can be exported again."""

    record: FileRecord
    owners: list[Any]
    """The objects or the collection with this record."""
    source: object_selection.Source


@dataclass
class EncodedAgain:
    """The new content of a file, ready to be written."""

    found: FoundFile
    objects: list[Any]
    """The objects that may be in the file."""
    target: Format
    values: dict[str, Any]
    """Values of the options of the export."""
    scene: Scene
    encoded: EncodedFile
    others: list[Any]
    """Actions from other files that concern this file."""
    left_out: list[Any]
    """Those of them that are not in the new content."""
    messages: list[Message]
    """Messages of the export."""

    @property
    def record(self) -> FileRecord:
        """The record of the file."""
        return self.found.record

    def is_changed(self) -> bool:
        """Return whether the content differs from the files on disk."""
        obsolete, _unknown = obsolete_files(self.record.path, self.encoded.outputs)
        return self._is_chosen_changed() or bool(self.changed_companions() or obsolete)

    def _is_chosen_changed(self) -> bool:
        return is_new(self.record.path, self.encoded.outputs[-1])

    def companions(self) -> dict[Path, OutputFile]:
        """Return the files beside the chosen one, by their paths."""
        return dict(companions_of(self.record.path, self.encoded.outputs))

    def changed_companions(self) -> dict[Path, OutputFile]:
        """Return those of the files beside the chosen one that do not exist or have other content."""
        return {place: output for place, output in self.companions().items() if is_new(place, output)}

    def _changed_outputs(self) -> list[OutputFile]:
        companions, chosen = self.changed_companions().values(), self.encoded.outputs[-1]
        if companions and not (chosen.delay or self._is_chosen_changed()):
            chosen = chosen._replace(data=b"", copy_of=self.record.path)  # thus left alone
        return [*companions, chosen]

    def note(self, objects: Iterable[Any], *, is_stored: bool = True) -> None:
        """Note that the file has these objects; see :func:`.agreement.note_export`."""
        from ...blender_data.reloading.agreement import note_export

        note_export(objects, self.record.path, self.scene, self.target, self.values, is_stored=is_stored)

    def write(self, *, use_blend: bool = True) -> None:
        """Replace the file.

        Parameters
        ----------
        use_blend:
            Whether data blocks may be changed. Otherwise the export is noted only in the session, and files whose
            content stays the same are left alone, except the chosen one of a set in which it must be newer.

        Raises
        ------
        ExportError
            The file was changed since it was last read or written, or cannot be written.
        """
        refuse_changed(self.record)  # check again: the file may have been changed meanwhile
        outputs = self.encoded.outputs if use_blend else self._changed_outputs()
        self.messages += file_records.write_files(self.record.path, outputs)
        self.messages += note_of_clips(self.left_out, self.record)
        file_records.session_files()[str(self.record.path)].is_confirmed = True
        if not use_blend:
            self.note(self.objects, is_stored=False)


class EXPORT_SCENE_OT_meshferry_again(LongWork, bpy.types.Operator):
    """Export again to the file of the active object."""

    bl_idname = "export_scene.meshferry_again"
    bl_label = "Re-export"
    bl_description = (
        "Export to the file that the active object came from, or last went to in the same format, with the same "
        f"options. Content that Meshferry did not write is kept beside it as {BACKUP}. Of an imported scene, only the "
        "changes are written"
    )

    is_confirmed: WRITES_STORED_PATH
    is_dry_run: BoolProperty(
        name="Dry Run",
        description="Scripts: report what would be changed in the file of an imported scene, but write nothing",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    file_format: StringProperty(
        name="Format",
        description="Name of the format of an export in another format, which is written in place of the target",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    use_other_animations: BoolProperty(
        name="Include Animations of Other Files",
        description="Also write animations that were imported from other files and that the file does not hold",
        options={"SKIP_SAVE"},
    )

    confirm_text = "Replace"
    has_others = False
    """Whether there are animations of other files, for which the dialog has a checkbox."""

    poll = requires(
        (
            lambda context: found_file(context) is not None,
            "The active object neither came from a file nor was exported to one",
        )
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Start without a file browser."""
        found = found_file(context, self.file_format)
        if found is not None and not file_records.unasked_paths(stored_values(found.record, found.source)):
            record, _owners, source = found
            self.has_others = not is_patched(record) and bool(others_of(context, record, source))
            self.confirm_text = "Replace" if record.path.exists() else "Export"
        return self.execute(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Refuse a format to which nothing was exported, otherwise start."""
        if found_file(context, self.file_format) is None:
            return refuse(self, "The active object was not exported as '{}'", self.file_format)
        return super().execute(context)

    def stored_paths(self, context: bpy.types.Context) -> list[Any]:
        """Return the path of the file and the values of its options."""
        record, _owners, source = _file(self, context)
        return stored_values(record, source)

    def question(self, context: bpy.types.Context) -> str:
        """Return a question before a file is replaced for the first time, and about animations of other files."""
        record, owners, source = _file(self, context)
        if file_records.unasked_paths(stored_values(record, source)):
            return question_of_path(record)
        if is_patched(record):
            return question_of_patch(context, record, source.collection)
        others = others_of(context, record, source)
        session = file_records.session_file(record.path) or SessionFile()
        is_asked_again = not {clip_name(action) for action in others} <= session.left_out
        texts = [question_of_path(record, owners[0]), question_of_clips(others, record) if is_asked_again else ""]
        return "\n".join(text for text in texts if text)

    def bakes(self, context: bpy.types.Context) -> tuple[int, Text]:
        """Return the largest number of sets of pictures that the export bakes, and a text about them."""
        from ...blender_data.exporting.models.material_bakes import bake_price

        record, _owners, source = _file(self, context)
        if is_patched(record) or file_records.unasked_paths(stored_values(record, source)):
            return super().bakes(context)
        values = values_of(record)
        can = EXPORTERS[record.format].format.capabilities_with(values)
        return bake_price(context, source, to_export_options(values), can)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the question, and the choice that it is about."""
        column = self.layout.column(align=True)
        for text in self.asked.splitlines():
            draw_wrapped(column, context, text, "QUESTION", width=DIALOG_WIDTH)
            column.separator()
        if self.has_others:
            column.prop(self, "use_other_animations")

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the file, and report its differences from the previous version."""
        messages = Messages()
        changes: list[str] = []
        found = _file(self, context)
        record, owners, source = found
        if is_patched(record):
            is_agreed = bool(self.asked or self.is_confirmed or self.is_dry_run)
            patching = patch_steps(self, context, source.collection, is_agreed=is_agreed, is_dry_run=self.is_dry_run)
            return (yield from patching)
        path = record.path
        ready = None
        with messages.attempt(str(path)):
            refuse_changed(record)
            if not (self.asked or self.is_confirmed):
                refuse_unknown(record)
            encoding = encode_again(context, found, use_other_animations=self.use_other_animations)
            ready = yield from scaled(encoding, 0.0, 0.9)
            outputs = ready.encoded.outputs
            comparing = without_bpy("Comparing", changes_of, path, ready.target, outputs)
            changes = yield from scaled(comparing, 0.9, 1.0)
        if ready is not None:
            with messages.outcome(str(path)) as name:
                ready.write()
                messages.warn(name, ready.messages)
                record = replace(record, digest=file_records.digest_of(path))
                if not ready.left_out:
                    record = replace(record, clip_files=clip_files_of(context, source, ready.values))
                    if ready.others:
                        record = replace(record, options=ready.values)  # the next re-export includes them, too
                file_records.write(owners, record, is_confirmed=True, is_target=not self.file_format)
                ready.note(ready.objects)
                names = frozenset(clip_name(action) for action in ready.others)
                file_records.session_files()[str(path)].left_out |= names
        usage = ready.encoded.usage if ready is not None and messages.done else ""
        return conclude(self, messages, [*changes, usage], "Exported")


def encode_again(
    context: bpy.types.Context, found: FoundFile, *, use_other_animations: bool = False, baking: str = "BAKE"
) -> Steps[EncodedAgain]:
    """Encode the objects of a file as on its last export, for its path; ``baking`` is that of the request.

    Raises
    ------
    MeshferryError
        The objects cannot be exported, or would become several files.
    """
    record, _owners, source = found
    path = record.path
    target = EXPORTERS[record.format].format
    values = yield from scaled(without_bpy("Reading", values_of, record), 0.0, 0.1)
    others = clips_left_out(context, record, source, lambda _record: values)
    left_out = [] if use_other_animations else others
    own = file_clips_of(context, record, source) if left_out else None
    name = source.collection.name if source.collection is not None else scene_name(path)
    files = yield from scaled(file_steps(context, source, name, target, values, own, baking), 0.1, 0.8)
    if len(files.parts) != 1:
        raise ExportError("{} files would be written; choose File > Export", len(files.parts))
    (scene,) = files.parts
    encoded = yield from scaled(encode_steps(scene, path, target, values, given=record.given), 0.8, 1.0)
    objects, messages = object_selection.candidates_of(context, source), [*files.messages, *encoded.messages]
    return EncodedAgain(found, objects, target, values, scene, encoded, others, left_out, messages)


def is_new(place: Path, output: OutputFile) -> bool:
    """Return whether a file does not exist or has other content."""
    return not place.exists() or would_change(place, output)


def others_of(context: bpy.types.Context, record: FileRecord, source: object_selection.Source) -> list[Any]:
    """Return the actions from other files that stay out of a file unless the user asks."""
    try:
        return clips_left_out(context, record, source, values_of)
    except MeshferryError:
        return []  # the export reports it


def stored_values(record: FileRecord, source: object_selection.Source) -> list[Any]:
    """Return the path of a file, and the values of the options of its import and its last export."""
    imported = import_marks.stored_options(source.collection) if source.collection is not None else {}
    return [str(record.path), *imported.values(), *(record.options or {}).values()]


def _file(operator: Any, context: bpy.types.Context) -> FoundFile:
    """Return the file to write; ``execute`` refuses contexts without one."""
    return cast(FoundFile, found_file(context, getattr(operator, "file_format", "")))


def found_file(context: bpy.types.Context, file_format: str = "") -> FoundFile | None:
    """Return the record of the active object or its collection, the data blocks with that record, and the source.

    Return None if neither has a record; the operator is then disabled. The record is that of the target, or with a
    format, of the last export in that other format.
    """
    obj = context.object
    if obj is not None:
        record = file_records.read(obj, file_format)
        if record is not None and record.format in EXPORTERS:
            path = file_records.stored_file(obj, file_format).path
            stored = [(other, file_records.stored_file(other, file_format)) for other in context.scene.objects]
            others = [other for other, found in stored if found is not None and found.path == path]
            objects = [other for other in others if file_records.read(other, file_format) is not None]
            return FoundFile(record, objects, object_selection.Source("OBJECTS", objects=tuple(objects)))
    for collection in import_homes_of(obj) if obj is not None else [context.collection]:
        record = file_records.read(collection, file_format)
        if record is not None and (record.format in EXPORTERS or is_patched(record)):
            return FoundFile(record, [collection], object_selection.Source("COLLECTION", collection))
    return None


def shown_file(context: bpy.types.Context) -> FileRecord | None:
    """Return the record of the file in menu and sidebar, or None."""
    found = found_file(context)
    return found.record if found is not None else None


def values_of(record: FileRecord) -> dict[str, Any]:
    """Return the options of the last export to a file. After an import, return the defaults of the export dialog."""
    cls = EXPORTERS[record.format]
    if record.options is not None:
        return dict(record.options)
    values: dict[str, Any] = resolve(cls.option_table, headless=False)
    return without_needless_clips({**values, **values_in_file(record.path, cls.format)})


def values_in_file(path: Path, target: Format) -> dict[str, Any]:
    """Return the options that keep the version of an existing file, and whether it contains animations."""
    facts = facts_in(path)
    version = str(facts["version"]).upper()
    found: dict[str, Any] = {
        option.name: version
        for option in target.export_options.table()
        if version in {choice.key for choice in option.choices or ()}
    }
    if facts["clips"] and hasattr(target.export_options, EMBED_ANIMATION):
        found[EMBED_ANIMATION] = True
    return found


def refuse_changed(record: FileRecord) -> None:
    """Raise ExportError if the file was changed since it was last read or written.

    Raises
    ------
    ExportError
        The file was changed, or its folder does not exist.
    """
    if not record.path.parent.is_dir():
        raise ExportError("The folder '{}' does not exist", record.path.parent)
    if not file_records.is_unchanged(record):
        raise ExportError(
            "The file was changed since Blender last read or wrote it; choose File > Export to replace it"
        )


def changes_of(path: Path, target: Format, outputs: Sequence[OutputFile]) -> list[str]:
    """Return the differences between the new and the old file as phrases for the summary."""
    from ...io_formats.passes.compare_scenes import differences

    if not path.exists():
        return [Text("new file")]
    if target.capabilities.placement:
        changed = sum(would_change(path.parent / output.name, output) for output in outputs)
        return [Text("{} changed", counted(changed, "file")) if changed else Text("nothing changed")]
    scenes = decoded(path, target, outputs)
    if scenes is None:
        return [Text("replaced")]  # files of this format cannot be read for comparing
    return differences(*scenes) or [Text("nothing changed")]


def decoded(path: Path, target: Format, outputs: Sequence[OutputFile]) -> tuple[Scene, Scene] | None:
    """Return the scenes of the old and the new file; None if one cannot be read."""
    try:
        old = load_set(file_set(path))
        kind = old.format if old.format.rewritten_as == target.name else target
        if not kind.is_read:
            return None
        new = kind.read(outputs[-1].data)
        if kind.partner_suffixes:
            written = {part_of(output.name)[1]: output.data for output in outputs[:-1] if suffixes_of(output.name)}
            new = kind.join(new, {part: kind.read(data) for part, data in written.items()})
        stem = scene_name(path)
        return old.format.to_scene(old.document, stem), kind.to_scene(new, stem)
    except FormatError:
        return None


def exports_of(context: bpy.types.Context) -> list[FileRecord]:
    """Return the last exports of the active object and its collections in other formats."""
    obj = context.object
    owners = [obj, *import_homes_of(obj)] if obj is not None else [context.collection]
    names = dict.fromkeys(stored.format for owner in owners for stored in owner.meshferry.exports)
    return [found.record for name in names if (found := found_file(context, name)) is not None]


def draw_button(layout: Any, context: bpy.types.Context) -> bool:
    """Draw a button or menu entry with the name of each file, the target first; return whether there is a target."""
    record = shown_file(context)
    files = {"": record} if record is not None else {}
    for name, found in (files | {found.format: found for found in exports_of(context)}).items():
        text = iface_("Re-export to {}").format(found.path.name)
        operator = EXPORT_SCENE_OT_meshferry_again.bl_idname
        layout.operator(operator, text=text, icon="FILE_TICK", translate=False).file_format = name
    return record is not None


def draw_export_entry(self: Any, context: bpy.types.Context) -> None:
    """Draw the entry at the top of File > Export."""
    if draw_button(self.layout, context):
        self.layout.separator()


ENTRIES = (MenuEntry("TOPBAR_MT_file_export", draw_export_entry, is_first=True),)
