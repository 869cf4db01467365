"""Base of the export operators: choice of the objects, file name, options and summary."""

import filecmp
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy_extras.io_utils import ExportHelper

from ..blender_data import file_records, import_choices
from ..blender_data.compat import BLEND_RELATIVE_PATHS
from ..blender_data.exporting import exporter
from ..blender_data.exporting.export_options import CLIPS, HIDDEN
from ..blender_data.exporting.object_selection import (
    automatic_source,
    candidates_of,
    has_surface,
    listed,
    select,
    source_objects,
)
from ..blender_data.file_records import FileRecord, digest_of
from ..blender_data.names import file_name as name_of
from ..blender_data.steps import Steps, finish, scaled, without_bpy
from ..io_formats.api import EncodedFile, encode_part, file_names, files_of, scene_name, write_outputs
from ..io_formats.core.capabilities import losses
from ..io_formats.core.errors import ExportError, MeshferryError
from ..io_formats.core.findings import Finding, warning
from ..io_formats.core.import_choices import imported_texts, with_import_choices
from ..io_formats.core.option_rules import embeds_animation
from ..io_formats.core.options import Option
from ..io_formats.core.output_file import OutputFile
from ..io_formats.core.scene import Scene
from ..io_formats.core.shared_options import IMPORT_CHOICES
from ..io_formats.registry import Format
from .export_refusal import show_refusal
from .file_names import file_name, name_in_file, with_extension
from .finding_list import keep_findings
from .option_properties import SECTIONS, draw_options, option_values, to_export_options, values_for
from .progress import DIALOG_WIDTH, LongWork
from .reporting import Messages, conclude, counted
from .sidebar import draw_wrapped
from .translations import rpt_

AUTOMATIC = (
    "AUTO",
    "Automatic",
    (
        "The selected meshes; if only armatures or empties are selected, the meshes below them; if nothing is "
        "selected, the active collection"
    ),
)
_COLLECTION = ("COLLECTION", "Active Collection", "The active collection with the collections inside it")
_SELECTION = ("SELECTION", "Selected Objects", "The selected objects")
_SCENE = ("SCENE", "Scene", "Everything in the scene")


def scope_items(*scopes: tuple[str, str, str]) -> list[tuple[str, str, str, str, int]]:
    """Return the items of a scope property with their numbers, which .blend files store.

    The automatic scope was added in a later version: it is first in the list, but has the highest number.
    """
    added = [scope for scope in scopes if scope == AUTOMATIC]
    numbered = [scope for scope in scopes if scope != AUTOMATIC]
    numbers = {scope[0]: number for number, scope in enumerate([*numbered, *added])}
    return [(*scope, "NONE", numbers[scope[0]]) for scope in [*added, *numbered]]


SCOPES = scope_items(AUTOMATIC, _COLLECTION, _SELECTION, _SCENE)
OBJECT_SCOPES = scope_items(AUTOMATIC, _SELECTION, _COLLECTION, _SCENE)
"""Scopes of formats that write one object to each file; the selection comes before the collection."""


@dataclass(frozen=True)
class Parts:
    """Data read from Blender for a format: a scene for each file, and messages about the whole export."""

    scenes: list[Scene]
    lost: list[str]
    findings: list[Finding] = field(default_factory=list)
    """The warnings of ``lost`` that name objects to select or offer a fix."""
    made: list[str] = field(default_factory=list)
    """Messages about generated data such as missing LODs; no action is needed."""


class ExportScene(LongWork, ExportHelper):
    """Mixin of export operators. :mod:`.format_operators` derives an operator for each format."""

    bl_options = {"PRESET"}

    format: Format
    option_table: tuple[Option, ...] = ()
    """The general options that apply to the format, and its own options."""
    section_order = SECTIONS
    entry_text = ""
    """Text of the entry in File > Export."""
    panel_prefix = ""
    """Name of the format in the names of its panels."""
    name_suffix = ""
    """Suffix between the name of a collection and the extension, by convention of the format."""

    filepath: StringProperty(
        name="File Path",
        description="File to write",
        maxlen=1024,
        subtype="FILE_PATH",
        options={"SKIP_PRESET"} | BLEND_RELATIVE_PATHS,
    )
    collection: StringProperty(
        name="Source Collection",
        description="Export this collection, whatever is selected",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    scope: EnumProperty(name="Export", description="What is written to the file", items=SCOPES, default="AUTO")
    suggested_name: StringProperty(options={"HIDDEN", "SKIP_SAVE"})
    given_options: StringProperty(options={"HIDDEN", "SKIP_SAVE"})
    """Names of the options that the caller set, stored before the dialog opens, since presets set options, too."""
    is_again: BoolProperty(options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Open the file browser; suggest a name taken from the exported objects."""
        self.given_options = ",".join(self.given())
        if not self.properties.is_property_set("filepath"):
            self.suggested_name = self.suggest_name(context)
            self.filepath = str(self.suggest_folder(context) / self.suggested_name)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def check(self, context: Any) -> bool:
        """Keep the file's extension, and name the file after the exported objects until the user types a name."""
        before = self.filepath
        path = Path(before)
        if self.suggested_name and path.name == self.suggested_name:
            self.suggested_name = self.suggest_name(context)
            self.filepath = str(path.with_name(self.suggested_name))
        elif path.name:
            self.filepath = with_extension(before, self.format, self.filename_ext)
        return self.filepath != before

    def draw(self, context: Any) -> None:
        """Draw the scope (in the file browser only), the files to write and the options in sections."""
        layout = self.layout
        if self.asked:
            draw_wrapped(layout.column(align=True), context, self.asked, "QUESTION", width=DIALOG_WIDTH)
            return
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            if not self.collection:
                column = layout.column()
                column.use_property_split = True
                column.use_property_decorate = False
                column.prop(self, "scope")
            self.draw_scope(context)
        self.draw_files(context)
        imported = self.imported_texts(context)
        prefix = f"{self.panel_prefix}_export"
        draw_options(layout, self, self.option_table, prefix, self.section_order, imported=imported)

    def draw_scope(self, context: Any) -> None:
        """Draw a description of the exported objects. Draw nothing on errors; `draw_files` shows them."""
        try:
            source = self.shown_source(context)
            text = rpt_("Exports: {}").format(self.scope_text(context, source))
        except MeshferryError:
            return
        draw_wrapped(
            self.layout.column(align=True), context, text, "OUTLINER_COLLECTION" if source.collection else "EXPORT"
        )

    def scope_text(self, context: Any, source: Any) -> str:
        """Return a description of the exported objects.

        Raises
        ------
        MeshferryError
            There is nothing to export.
        """
        return scope_text(source, self.mesh_count(context, source))

    def mesh_count(self, context: Any, source: Any) -> int:
        """Return the number of meshes that are exported, without coarser levels of detail."""
        can = self.format.capabilities
        use_hidden = bool(getattr(self, HIDDEN.name))
        chosen = set(select(context, source, use_hidden=use_hidden, with_empties=can.node_hierarchy).objects)
        return sum(has_surface(item) and item.meshferry.lod_of not in chosen for item in chosen)

    def chosen_source(self, context: Any) -> Any:
        """Return the source of the export, or the whole scene if nothing can be exported."""
        try:
            return self.source(context, "")[0]
        except MeshferryError:
            return exporter.Source("SCENE")

    def shown_source(self, context: Any) -> Any:
        """Return the source that the dialog shows. In the *Exporters* panel of a collection, this is the collection.

        Raises
        ------
        ExportError
            There is nothing to export.
        """
        if context.space_data is not None and context.space_data.type == "PROPERTIES":
            return exporter.Source("COLLECTION", context.collection)
        return self.source(context, "")[0]

    def imported_texts(self, context: Any) -> dict[str, str]:
        """Return a text for each option whose value some exported objects store from their import; see `draw_options`.

        The text is empty if other exported objects use the value in the dialog.
        """
        if IMPORT_CHOICES not in self.option_table:
            return {}
        try:
            objects = source_objects(context, self.shown_source(context))
        except MeshferryError:
            return {}
        given = self.given()
        remembered = [option for option in self.option_table if option.is_remembered and option.name not in given]
        texts = imported_texts(remembered, [import_choices.read(item) for item in objects])
        return texts if getattr(self, IMPORT_CHOICES.name) else dict.fromkeys(texts, "")

    def draw_files(self, context: Any) -> None:
        """Draw information about the files to write. The default, for a single file, draws nothing."""

    def steps(self, context: Any) -> Steps[set[str]]:
        """Write the file, or the files; the checks of the format run before any is written.

        All files are encoded before the first is written, so that cancelling leaves no file behind. A failed file does
        not stop the others.
        """
        messages = Messages()
        given = bpy.path.abspath(self.filepath)
        values, given_options = self.values(), self.given()
        parts = Parts([], [])
        with messages.attempt(given, self.name_to_write(given)):
            path = Path(self.target_path(given))
            source, name = self.source(context, str(path))
            self.refuse_too_large(context, source)
            parts = yield from scaled(part_steps(context, source, name, self.format, values), 0.0, 0.8)
        paths = self.paths(path, parts.scenes) if parts.scenes else []
        several = len(paths) > 1
        if several:
            messages.warnings.update((text, []) for text in parts.lost)
        ready: list[tuple[Path, Scene, EncodedFile]] = []
        for number, (scene, path) in enumerate(zip(parts.scenes, paths, strict=True)):
            with messages.attempt(str(path)) as name:
                if several:
                    refuse_existing(path, use_replace=bool(getattr(self, "use_replace", False)))
                encoding = encode_steps(
                    scene, path, self.format, values, given=given_options, use_replace=self.may_replace()
                )
                start, end = (0.8 + 0.2 * done / len(paths) for done in (number, number + 1))
                ready.append((path, scene, (yield from scaled(encoding, start, end, name))))
        written: list[Scene] = []
        places: list[tuple[Path, Scene]] = []
        replaced = 0
        for path, scene, encoded in ready:
            with messages.outcome(str(path)) as name:
                existed = several and os.path.exists(path)
                said = [*encoded.warnings, *write_outputs(path, encoded.outputs)]
                messages.warn(name, dict.fromkeys(said if several else parts.lost + said))
                written.append(scene)
                replaced += existed
                places.append((path, scene))
        if places:
            self.remember(context, source, places, values)
        messages.notes = parts.made if written else []
        phrases = (
            *self.summary_parts(written),
            counted(replaced, "{} file replaced", "{} files replaced") if replaced else "",
        )
        is_listed = False
        if messages.findings:
            unchecked = [warning("", text) for text in (*parts.lost, *messages.warnings)]
            found = {str(finding): finding for finding in (*unchecked, *parts.findings, *messages.findings)}
            keep_findings(context, self.format, self.findings_subject(context), found.values())
            is_listed = show_refusal(self)
        return conclude(self, messages, phrases, "Exported", is_listed=is_listed)

    def refuse_too_large(self, context: Any, source: Any) -> None:
        """Check, before objects are read, whether the format can hold any of them; formats override this.

        Raises
        ------
        ExportError
            All objects are too large for the format.
        """

    def findings_subject(self, context: Any) -> str:
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

    def given(self) -> list[str]:
        """Return the names of the options that override the values stored on import."""
        if self.properties.is_property_set("given_options"):
            return [name for name in self.given_options.split(",") if name]
        return [
            option.name
            for option in self.option_table
            if option.is_remembered and self.properties.is_property_set(option.name)
        ]

    def values(self) -> dict[str, Any]:
        """Return the values of the options as the export uses them."""
        return without_needless_clips(option_values(self, self.option_table))

    def remember(
        self, context: Any, source: exporter.Source, written: Sequence[tuple[Path, Scene]], values: dict[str, Any]
    ) -> None:
        """Store the file record on the exported objects or collection, for the next export to the file."""
        objects = source.objects or candidates_of(context, source)
        for path, scene in written:
            record = FileRecord(path, self.format.name, digest_of(path), values, tuple(self.given()), is_confirmed=True)
            if len(written) == 1 and source.collection is not None:
                file_records.clear(objects)
                file_records.write(context, [source.collection], record)
                continue
            names = {node.name for node in scene.nodes}
            owners = [item for item in objects if len(written) == 1 or name_of(item) in names]
            file_records.write(context, owners, record)

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the parts of the summary text, such as "3 objects"."""
        written = tuple(written)
        return (
            counted(sum(len(scene.nodes) for scene in written), "{} node", "{} nodes"),
            counted(sum(scene.triangle_count for scene in written), "{} triangle", "{} triangles"),
        )

    def source(self, context: Any, path: str) -> tuple[Any, str]:
        """Return what to export and what to call it in the file."""
        if self.collection:
            chosen = named_collection(context, self.collection)
            return exporter.Source("COLLECTION", chosen), chosen.name
        source = exporter.Source("SELECTION" if self.scope == "SELECTION" else "SCENE")
        if self.scope == "AUTO":
            source = automatic_source(context, with_tree=self.format.capabilities.node_hierarchy)
        elif self.scope == "COLLECTION" and context.collection != context.scene.collection:
            source = exporter.Source("COLLECTION", context.collection)
        if source.collection is not None:
            return source, source.collection.name
        stem = Path(path).name.removesuffix(self.filename_ext)
        return source, stem.removesuffix(self.name_suffix) or stem

    def suggest_name(self, context: Any) -> str:
        """Suggest the name of the collection, of the only object or of the .blend file as the file name."""
        root = context.scene.collection
        name = self.collection
        if not name:
            source = self.chosen_source(context)
            name = (source.collection or root).name
            if source.kind in {"SELECTION", "OBJECTS"} and context.object is not None:
                return file_name(name_of(context.object), self.format, self.name_suffix, self.filename_ext)
        if name == root.name:
            name = Path(context.blend_data.filepath).stem or "Untitled"
        elif name in context.blend_data.collections:
            name = name_in_file(context.blend_data.collections[name])
        return file_name(name, self.format, self.name_suffix, self.filename_ext)

    def suggest_folder(self, context: Any) -> Path:
        """Return the folder of the last export, of the .blend file, or of the file that the collection came from."""
        collection = context.blend_data.collections.get(self.collection) or context.collection
        for known in (self.filepath, context.blend_data.filepath, bpy.path.abspath(collection.meshferry.source_path)):
            if known:
                return Path(known).parent
        return Path()

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
            raise ExportError(rpt_("No file name given"))
        path = with_extension(given, self.format, self.filename_ext)
        if path != given and os.path.exists(path):
            text = rpt_("'{}' exists already; give the name with its extension to replace it")
            raise ExportError(text.format(Path(path).name))
        return path


def without_needless_clips(values: dict[str, Any]) -> dict[str, Any]:
    """Set the option for clips to none if the file embeds no animation, so that none is sampled."""
    return values if embeds_animation(values) else {**values, CLIPS.name: "NONE"}


def scope_text(source: Any, count: int) -> str:
    """Return a description of the source of an export, with its number of meshes."""
    meshes = counted(count, "{} mesh", "{} meshes")
    if source.collection is not None:
        return rpt_("collection '{}' ({})").format(source.collection.name, meshes)
    if source.roots:
        return rpt_("{} below {}").format(meshes, listed([item.name for item in source.roots], most=3))
    if source.kind == "SCENE":
        return rpt_("the scene ({})").format(meshes)
    return counted(count, "{} selected mesh", "{} selected meshes")


def read_parts(context: Any, source: Any, name: str, target: Format, values: Mapping[str, Any]) -> Parts:
    """Read objects from Blender and split the scene into one part for each file.

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
    return finish(part_steps(context, source, name, target, values))


def part_steps(context: Any, source: Any, name: str, target: Format, values: Mapping[str, Any]) -> Steps[Parts]:
    """Do the same as :func:`read_parts` in steps."""
    scene = yield from exporter.export_steps(_request(context, source, name, target, values))
    return parts_of(scene, target, values)


def read_blender_scene(context: Any, source: Any, name: str, target: Format, values: Mapping[str, Any]) -> Scene:
    """Read a scene from Blender, limited to the data a format can hold; see :func:`read_parts`."""
    return exporter.export_scene(_request(context, source, name, target, values))


def _request(context: Any, source: Any, name: str, target: Format, values: Mapping[str, Any]) -> exporter.ExportRequest:
    return exporter.ExportRequest(context, source, to_export_options(values), name, target.capabilities)


def parts_of(scene: Scene, target: Format, values: Mapping[str, Any]) -> Parts:
    """Split a scene into one part for each file; collect the messages of all parts.

    Raises
    ------
    ExportError
        The scene has no data that the format can hold.
    """
    scenes = files_of(scene, target, values_for(target.export_options, values))
    made = list(scene.notes)
    lost = [*losses(scene, target.capabilities), *(text for text in scene.warnings if text not in made)]
    for part in scenes:
        part.warnings = []  # a new list, since parts may share that of the scene
    return Parts(scenes, lost, scene.findings, made)


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
    options = with_import_choices(scene, target.export_options, values_for(target.export_options, values), given)
    encoded = yield from without_bpy("Encoding", encode_part, scene, target, options, stem=scene_name(path))
    if not use_replace and not os.path.exists(path):
        refuse_others(path, encoded.outputs)
    return encoded


def refuse_others(path: Path, outputs: Sequence[OutputFile]) -> None:
    """Raise ExportError if the companion files of a set would change existing files. The last file is not checked.

    Raises
    ------
    ExportError
        A companion file exists with other content.
    """
    there = [output.name for output in outputs[:-1] if would_change(path.with_name(output.name), output)]
    if there:
        more = rpt_(" and {} more").format(len(there) - 1) if len(there) > 1 else ""
        text = rpt_("'{}'{} exists already; choose Replace Files to write over it, or another name")
        raise ExportError(text.format(there[0], more))


def would_change(place: Path, output: OutputFile) -> bool:
    """Return whether writing a file would change an existing one."""
    try:
        if not place.exists():
            return False
        if output.copy_of is not None:
            return not filecmp.cmp(output.copy_of, place, shallow=False)
        return place.read_bytes() != output.data
    except OSError:
        return True


def refuse_existing(path: Path, *, use_replace: bool) -> None:
    """Raise an error if a file exists and must not be replaced.

    Raises
    ------
    ExportError
        The file exists, and *Replace Files* is off.
    """
    if not use_replace and os.path.exists(path):
        raise ExportError(rpt_("'{}' exists already; choose Replace Files to write over it").format(path.name))


def named_collection(context: Any, name: str) -> Any:
    """Return the collection of that name, which may be the scene's own.

    Raises
    ------
    ExportError
        There is no such collection.
    """
    root = context.scene.collection
    found = root if name == root.name else context.blend_data.collections.get(name)
    if found is None:
        raise ExportError(rpt_("There is no collection '{}'").format(name))
    return found
