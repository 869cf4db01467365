"""Base of the export operators: reading of the scene, encoding, writing, summary, and the dialog after a refusal."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
from bpy.props import StringProperty

from ...blender_data import export_options, file_records
from ...blender_data.animated_blocks import dependencies
from ...blender_data.animation.action_ranges import FileClips
from ...blender_data.animation.clip_sources import actions_of, clip_name, other_actions
from ...blender_data.export_options import CLIPS
from ...blender_data.exporting import object_selection
from ...blender_data.exporting.object_selection import candidates_of
from ...blender_data.file_records import FileRecord, digest_of, stored_file
from ...blender_data.names import name_in_file
from ...blender_data.property_groups.translation_context import CONTEXT
from ...blender_data.steps import Steps, finish, scaled, without_bpy
from ...io_formats.api import EncodedFile, SceneFiles, encode_part, file_names, load, split
from ...io_formats.core.errors import ExportError, FormatError
from ...io_formats.core.format import Format, OutputFile
from ...io_formats.core.messages import Message, Named, Report, Text, counted, distinct, joined, listed, of_kind
from ...io_formats.core.options import embeds_animation
from ...io_formats.core.scene import Scene
from ...io_formats.disk.file_sets import obsolete_files, would_change
from ..findings.finding_list import draw_list, keep_findings
from ..option_properties import chosen_options, option_values, to_export_options
from ..reports import Messages, conclude, refuse
from ..translations import iface_, rpt_
from .export_dialog import ExportDialog, with_extension
from .export_targets import moves_target


def facts_in(path: Path) -> Mapping[str, Any]:
    """Return the facts of a file; without version and animations if it cannot be read."""
    try:
        loaded = load(path)
    except (FormatError, OSError):
        return {"version": "", "clips": []}
    return loaded.format.facts(loaded.document)


def file_clips_of(context: bpy.types.Context, record: FileRecord, source: object_selection.Source) -> FileClips | None:
    """Return the animations that a file holds; None if that is not known.

    An imported file holds those that came with its objects, an exported one those that were exported to it. Names do
    not count: some formats name an animation after its file, and the user may rename it.
    """
    if record.options is not None:
        return FileClips(frozenset({str(record.path), *record.clip_files})) if record.clip_files is not None else None
    homes = {home for obj in candidates_of(context, source) for home in obj.users_collection}
    return FileClips(frozenset({str(record.path), *(home.meshferry.source_path for home in homes)} - {""}))


def clip_files_of(
    context: bpy.types.Context, source: object_selection.Source, values: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the files that the animations of an export with these options were imported from."""
    found = dependencies(candidates_of(context, source))
    imported = other_actions(found, to_export_options(values), FileClips(frozenset()))
    return tuple(sorted({action.meshferry.source_path for action in imported}))


def clips_left_out(
    context: bpy.types.Context,
    record: FileRecord,
    source: object_selection.Source,
    values_of: Callable[[FileRecord], dict[str, Any]],
) -> list[Any]:
    """Return the actions from other files that an export would write into a file.

    ``values_of`` returns the options of the export. It reads the file, and is only called if there are such actions.
    """
    found, own = dependencies(candidates_of(context, source)), file_clips_of(context, record, source)
    if own is None or all(own.allows(action) for block in found.animated for action, _ in actions_of(block)):
        return []
    values = values_of(record)
    return other_actions(found, to_export_options(values), own) if embeds_animation(values) else []


def clips_question(actions: list[Any], record: FileRecord) -> str:
    """Return a question that names the animations of other files, and the animations of the file that they replace."""
    if not actions:
        return ""
    names = [clip_name(action) for action in actions]
    files = dict.fromkeys(Path(bpy.path.abspath(action.meshferry.source_path)).name for action in actions)
    text = Text("The animation {} of {} is not in {}.", listed(names), ", ".join(files), record.path.name)
    there = sorted({clip["name"] for clip in facts_in(record.path)["clips"]})
    choice = Text("It is left out unless you include it below.")
    if there:
        choice = Text("It is left out, and {} stays, unless you include it below.", listed(there))
    return rpt_(joined((text, choice), " "))


def clips_note(actions: list[Any], record: FileRecord) -> list[Message]:
    """Return a message about the animations that were left out."""
    if not actions:
        return []
    report = Report(item=Named("file", record.path.name))
    report.note(
        "animation-of-another-file",
        "animation of another file left out: {}; choose File > Export to include it",
        listed(of_kind("animation", [clip_name(action) for action in actions])),
    )
    return report.messages


_WIDTH = 500
"""Pixels of the dialog, at a resolution scale of 1."""


class WM_OT_meshferry_refused_export(bpy.types.Operator):
    """List the errors that prevented an export."""

    bl_idname = "wm.meshferry_refused_export"
    bl_label = "Export Stopped"
    bl_options = {"INTERNAL"}

    export: StringProperty(name="Export", description="Identifier of the operator", options={"SKIP_SAVE"})
    arguments: StringProperty(name="Arguments", description="Arguments of the operator, as JSON", options={"SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the dialog."""
        manager: Any = context.window_manager
        return manager.invoke_props_dialog(
            self, width=_WIDTH, title=iface_("Nothing Was Written"), confirm_text=iface_("Export Again")
        )

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the findings."""
        findings = context.window_manager.meshferry_check.findings
        errors = sum(finding.is_error for finding in findings)
        if errors:
            self.layout.label(
                text=iface_(counted(errors, "error stops the export", "errors stop the export")), translate=False
            )
        else:
            self.layout.label(text="All errors are fixed", text_ctxt=CONTEXT, icon="CHECKMARK")
        draw_list(self.layout, context, _WIDTH)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run the export again."""
        module, _, name = self.export.partition("_OT_")  # ``bl_idname`` of an operator instance is the class name
        export = getattr(getattr(bpy.ops, module.lower()), name)
        try:
            export("EXEC_DEFAULT", **{**json.loads(self.arguments), "is_again": True})
        except RuntimeError as problem:  # raised only without a window; in one, the export is modal and reports it
            return refuse(self, "{}", str(problem).removeprefix("Error: ").strip())
        return {"FINISHED"}


def show_refusal(operator: Any) -> bool:
    """Open the dialog after the operator has ended, if a user started it in a window; return whether it opens."""
    if bpy.app.background or not operator.is_from_user():
        return False
    arguments = json.dumps(operator.as_keywords())
    export = operator.bl_idname

    def show() -> None:
        bpy.ops.wm.meshferry_refused_export("INVOKE_DEFAULT", export=export, arguments=arguments)

    bpy.app.timers.register(show, first_interval=0.05)
    return True


class ExportScene(ExportDialog):
    """Mixin of export operators. :mod:`..format_operators` derives an operator for each format."""

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the file, or the files; the checks of the format run before any is written.

        All files are encoded before the first is written, so that cancelling leaves no file behind. A failed file does
        not stop the others.
        """
        messages = Messages()
        given = bpy.path.abspath(self.filepath)
        values, given_options = self.values(), self.given()
        files = SceneFiles([], [])
        with messages.attempt(given, self.name_to_write(given)):
            path = Path(self.target_path(given))
            source, name = self.source(context, str(path))
            self.refuse_too_large(context, source)
            files = yield from scaled(file_steps(context, source, name, self.format, values), 0.0, 0.8)
        paths = self.paths(path, files.parts) if files.parts else []
        several = len(paths) > 1
        if several:
            messages.warn("", files.messages)
        ready: list[tuple[Path, Scene, EncodedFile]] = []
        for number, (scene, path) in enumerate(zip(files.parts, paths, strict=True)):
            with messages.attempt(str(path)) as name:
                if several:
                    refuse_existing(path, use_replace=bool(getattr(self, "use_replace", False)))
                encoding = encode_steps(
                    scene, path, self.format, values, given=given_options, use_replace=self.may_replace()
                )
                start, end = (0.8 + 0.2 * done / len(paths) for done in (number, number + 1))
                ready.append((path, scene, (yield from scaled(encoding, start, end, name))))
        written: list[tuple[Path, Scene]] = []
        usages: list[str] = []
        replaced = 0
        for path, scene, encoded in ready:
            with messages.outcome(str(path)) as name:
                existed = several and os.path.exists(path)
                said = [*encoded.messages, *file_records.write_files(path, encoded.outputs)]
                messages.warn(name, said if several else [*files.messages, *said])
                usages.append(self.usage(path, encoded))
                written.append((path, scene))
                replaced += existed
        if written:
            self.remember(context, source, written, values)
        phrases = (
            *self.summary_parts([scene for _path, scene in written]),
            counted(replaced, "file replaced", "files replaced") if replaced else "",
            *usages,
        )
        is_listed = False
        if messages.findings:
            found = distinct([*files.messages, *messages.findings, *messages.warnings])
            found = [message for message in found if message.is_listed]
            keep_findings(context, self.format, self.findings_subject(context), found)
            is_listed = show_refusal(self)
        return conclude(self, messages, phrases, "Exported", is_listed=is_listed)

    def refuse_too_large(self, context: bpy.types.Context, source: Any) -> None:
        """Check, before objects are read, whether the format can hold any of them; formats override this.

        Raises
        ------
        ExportError
            All objects are too large for the format.
        """

    def findings_subject(self, context: bpy.types.Context) -> str:
        """Return the name under which the sidebar shows the findings of a refused export."""
        return context.object.name if context.object is not None else ""

    def paths(self, path: Path, scenes: Sequence[Scene]) -> list[Path]:
        """Return a path for each scene: the chosen path for a single one, otherwise its name in the same folder."""
        if len(scenes) == 1:
            return [path]
        return [path.with_name(name + self.filename_ext) for name in file_names(scenes)]

    def may_replace(self) -> bool:
        """Return whether existing companion files of a new file may be replaced."""
        return True

    def values(self) -> dict[str, Any]:
        """Return the values of the options as the export uses them."""
        return without_needless_clips(option_values(self, self.option_table))

    def remember(
        self,
        context: bpy.types.Context,
        source: object_selection.Source,
        written: Sequence[tuple[Path, Scene]],
        values: dict[str, Any],
    ) -> None:
        """Store the file record on the exported objects or collection, for the next export to the file.

        Another target is an undo step: undoing a later edit must not lead back to the file of the import.
        """
        from ...blender_data.reloading.agreement import note_export

        objects = source.objects or candidates_of(context, source)
        clip_files = clip_files_of(context, source, values)
        has_new_target = False
        for path, scene in written:
            record = FileRecord(path, self.format.name, digest_of(path), values, tuple(self.given()), clip_files)
            owners: Sequence[Any] = objects
            if len(written) > 1:
                names = {node.name for node in scene.nodes}
                owners = [obj for obj in objects if name_in_file(obj) in names]
            elif source.collection is not None:
                owners = [source.collection]
            moved = [owner for owner in owners if moves_target(owner, record)]
            if source.collection in moved:
                file_records.clear(objects)
            has_new_target |= any(stored_file(owner).path not in {"", str(path)} for owner in moved)
            file_records.write(moved, record, is_confirmed=True)
            others = [owner for owner in owners if owner not in moved]
            file_records.write(others, record, is_confirmed=True, is_target=False)
            note_export(objects, path, scene, self.format, values)
        if has_new_target and not bpy.app.background:
            bpy.ops.ed.undo_push(message=self.bl_label)

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the parts of the summary text, such as "3 objects"."""
        written = tuple(written)
        return (
            counted(sum(len(scene.nodes) for scene in written), "node"),
            counted(sum(scene.triangle_count for scene in written), "triangle"),
        )

    def usage(self, path: Path, encoded: EncodedFile) -> str:
        """Return instructions for using the files in the target program, or an empty text."""
        return encoded.usage

    def name_to_write(self, given: str) -> str:
        """Return the name of the file with its extension, or an empty string if there is no name."""
        if not Path(given).name or os.path.isdir(given):  # unlike isdir, Path.is_dir raises for invalid names
            return ""
        return Path(with_extension(given, self.format, self.filename_ext)).name

    def target_path(self, given: str) -> str:
        """Return the path to write, with the extension, which scripts may leave out.

        Raises
        ------
        ExportError
            There is no name, or the extension was added and a file of the resulting name exists.
        """
        if not self.name_to_write(given):
            raise ExportError("No file name given")
        path = with_extension(given, self.format, self.filename_ext)
        if path != given and os.path.exists(path):
            raise ExportError("'{}' exists already; give the name with its extension to replace it", Path(path).name)
        return path


def without_needless_clips(values: dict[str, Any]) -> dict[str, Any]:
    """Set the option for clips to none if the file embeds no animation, so that none is sampled."""
    return values if embeds_animation(values) else {**values, CLIPS.name: "NONE"}


def read_files(
    context: bpy.types.Context, source: Any, name: str, target: Format, values: Mapping[str, Any]
) -> SceneFiles:
    """Read objects from Blender as a scene for each file that they become.

    Parameters
    ----------
    source:
        An ``exporter.Source``.
    name:
        Name of the scene in the file.
    values:
        Values of options; those not given take their defaults.

    Raises
    ------
    MeshferryError
        There is nothing to write.
    """
    return finish(file_steps(context, source, name, target, values))


def file_steps(
    context: bpy.types.Context,
    source: Any,
    name: str,
    target: Format,
    values: Mapping[str, Any],
    file_clips: FileClips | None = None,
    baking: str = "BAKE",
) -> Steps[SceneFiles]:
    """Do the same as :func:`read_files` in steps. ``file_clips`` and ``baking`` are those of the request."""
    from ...blender_data.exporting import exporter

    request = _request(context, source, name, target, values)
    scene = yield from exporter.export_steps(replace(request, file_clips=file_clips, baking=baking))
    return split(scene, target, chosen_options(target.export_options, values))


def read_blender_scene(
    context: bpy.types.Context, source: Any, name: str, target: Format, values: Mapping[str, Any]
) -> Scene:
    """Read a scene from Blender for a check, limited to the data a format can hold; see :func:`read_files`."""
    from ...blender_data.exporting import exporter

    return exporter.export_scene(replace(_request(context, source, name, target, values), baking="STATE"))


def _request(
    context: bpy.types.Context, source: Any, name: str, target: Format, values: Mapping[str, Any]
) -> export_options.ExportRequest:
    can = target.capabilities_with(values)
    return export_options.ExportRequest(context, source, to_export_options(values), name, can)


def encode_steps(
    scene: Scene,
    path: Path,
    target: Format,
    values: Mapping[str, Any],
    *,
    given: Collection[str] = (),
    use_replace: bool = True,
) -> Steps[EncodedFile]:
    """Encode one scene as a file or a set of files that is ready to be written.

    Parameters
    ----------
    given:
        Names of the options that override the values stored on import.
    use_replace:
        Whether a new set may replace existing companion files. Ignored if the chosen file exists, since the user
        then agreed to replace the whole set.

    Raises
    ------
    MeshferryError
        The format cannot hold the scene, or files would be replaced without permission.
    """
    options = chosen_options(target.export_options, values, given)
    encoded = yield from without_bpy("Encoding", encode_part, scene, target, options, path=path)
    if not use_replace and not os.path.exists(path):
        refuse_others(path, encoded.outputs)
    return encoded


def refuse_others(path: Path, outputs: Sequence[OutputFile]) -> None:
    """Raise ExportError if a set would change or remove existing files. The last file is not checked.

    Raises
    ------
    ExportError
        A companion file exists with other content, or a file of an earlier export does not belong to the set.
    """
    there = [output.name for output in outputs[:-1] if would_change(path.parent / output.name, output)]
    there += [place.name for place in obsolete_files(path, outputs)[0]]
    if there:
        names = listed(there, 1)
        raise ExportError("{} exists already; choose Replace Files to write over it, or another name", names)


def refuse_existing(path: Path, *, use_replace: bool) -> None:
    """Raise an error if a file exists and must not be replaced.

    Raises
    ------
    ExportError
        The file exists, and *Replace Files* is off.
    """
    if not use_replace and os.path.exists(path):
        raise ExportError("'{}' exists already; choose Replace Files to write over it", path.name)
