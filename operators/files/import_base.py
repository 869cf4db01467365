"""Base of the import operators: several files, options and progress. An invalid file does not stop the others."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, StringProperty
from bpy_extras.io_utils import ImportHelper

from ...blender_data import file_records
from ...blender_data.file_records import FileRecord
from ...blender_data.importing import import_options
from ...blender_data.importing.import_options import ImportOptions
from ...blender_data.operator_calls import Selection
from ...blender_data.steps import Steps, scaled, without_collection
from ...io_formats.api import format_of, scene_of
from ...io_formats.core.format import Format
from ...io_formats.core.import_choices import differs_from_choices
from ...io_formats.core.messages import counted
from ...io_formats.core.options import FILES_AS_LEVELS, Option
from ...io_formats.partner_files import FileSet, file_sets
from ...io_formats.registry import find
from ..layouts import path_property, property_column
from ..option_properties import (
    chosen_options,
    draw_options,
    import_table,
    in_sections,
    option_values,
    preferred_import_values,
)
from ..progress import LongWork
from ..reports import Messages, conclude, refuse
from ..selection import frame_imported, leave_edit_mode, select_only
from .session_projects import project_steps, reading_steps

UNIT = 20
"""Pixels of a unit of the user interface at a resolution scale of 1."""

PARTNERS = "partners"
"""Key of stored options for the names of the other files by their part, if files were imported as levels."""

OTHER_ROWS = 6.5
"""Height of a dialog without its sections: title, presets, *Side by Side*, buttons; see ``draw_options``."""


class ImportFiles(LongWork, ImportHelper):
    """Mixin of import operators. The format of a file is recognised by its content, whatever the operator.

    :mod:`..format_operators` derives an operator for each family of formats.
    """

    bl_options = {"UNDO", "PRESET"}

    option_table: tuple[Option, ...] = ()
    """Options in the dialog. Files of another family's format are imported with the defaults of its own options."""
    panel_prefix = ""
    """Name of the format in the names of its panels."""
    entry_text = ""
    """Text of the entry in File > Import."""
    usual_names = ""
    """Patterns of the file names that the file browser lists."""
    formats: tuple[Format, ...] = ()
    """The formats of the family that are read."""
    file_formats: StringProperty(
        name="Formats",
        description="Names of the formats of the files, one on each line; empty if the files have not been opened yet",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    shown_options: tuple[Option, ...] = ()
    """The options of ``option_table`` that concern the given files; empty means all options."""
    places_models: bool = True
    """Whether a dropped file may have a model, which *Side by Side* places."""

    filepath: path_property("File Path", "File to import", "FILE_PATH", {"HIDDEN", "SKIP_PRESET"})
    directory: path_property("Folder", "Folder of the files to import", "DIR_PATH", {"HIDDEN", "SKIP_SAVE"})
    files: CollectionProperty(
        name="Files",
        description="Names of the files to import",
        type=bpy.types.OperatorFileListElement,
        options={"HIDDEN", "SKIP_SAVE"},
    )
    use_side_by_side: BoolProperty(
        name="Side by Side",
        description="Place the models of several files next to each other along X, by their delta locations. "
        "Formats that store where objects stand export them so",
        default=False,
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """For given files, open a dialog with the options, or report that no format is recognised; without, browse."""
        # The path of the last import, which Blender proposes again, does not count as set.
        known = self.known_formats() if self.properties.is_property_set("filepath") else []
        if known and not any(known):
            return self.execute(context)
        self.shown_options = self.options_for(known)
        self.places_models = any(map(may_hold_meshes, known))
        return self.invoke_popup(context)

    def known_formats(self) -> list[Format | None]:
        """Return the formats of the chosen files by their content, None for unknown ones; open each file only once."""
        if not self.file_formats:
            found = [format_of(path) for path in self.paths()]
            self.file_formats = "\n".join(known.name if known is not None else "?" for known in found)
        return [find(name) for name in self.file_formats.splitlines()]

    def options_for(self, known: Sequence[Format | None]) -> tuple[Option, ...]:
        """Return the options that concern files of these formats."""
        return options_of(known, self.option_table)

    def values(self) -> dict[str, Any]:
        """Return the values of the options."""
        return option_values(self, self.option_table)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options in sections; for a single dropped file, without options that concern several files."""
        is_browser = context.space_data is not None and context.space_data.type == "FILE_BROWSER"
        if is_browser or (len(self.files) > 1 and self.places_models):
            property_column(self.layout).prop(self, "use_side_by_side")
        table = self.option_table if is_browser else self.shown_options or self.option_table
        if not is_browser and len(self.files) < 2:
            table = tuple(option for option in table if option.name != FILES_AS_LEVELS.name)
        height = math.inf if is_browser else dialog_height(context) - OTHER_ROWS
        draw_options(self.layout, self, table, f"{self.panel_prefix}_import", height=height)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Import every chosen file into a collection of its own."""
        from ...blender_data.importing import objects as importing_objects

        paths = self.paths()
        if not paths:
            return refuse(self, "No file was chosen")
        before = Selection(context)
        leave_edit_mode(context)
        try:
            if len(paths) > 1:  # those with meshes first, so that animations find the armatures of the same run
                ordered = sorted(
                    zip(paths, self.known_formats(), strict=True), key=lambda one: not may_hold_meshes(one[1])
                )
                paths = [path for path, _known in ordered]
            messages, results = yield from import_steps(context, paths, self.values())
        except GeneratorExit:
            before.restore()
            raise
        if self.use_side_by_side:
            context.view_layer.update()  # computes the bounding boxes of new objects
            importing_objects.place_side_by_side([result.objects for result in results])
        objects = [obj for result in results for obj in result.objects]
        # Select meshes first: from a mesh its armature can be found, but not the reverse.
        select_only(context, sorted(objects, key=lambda obj: obj.type == "ARMATURE"))
        if results:
            make_active(context, results[0].collection)
        frame_imported(context, objects)
        if before.mode == "POSE" and context.view_layer.objects.active == before.active:
            bpy.ops.object.mode_set(mode="POSE")
        return conclude(self, messages, summary_parts(results), "Imported")

    def paths(self) -> list[str]:
        """Return the absolute paths of the chosen files, in the order they were chosen, each once."""
        names = [element.name for element in self.files if element.name]
        if not names:
            single = bpy.path.abspath(self.filepath)
            return [single] if Path(single).name and not Path(single).is_dir() else []
        folder = bpy.path.abspath(self.directory) or str(Path(bpy.path.abspath(self.filepath)).parent)
        return list(dict.fromkeys(str(Path(folder) / name) for name in names))


class ImportAnyName(ImportFiles):
    """Mixin of importers of formats without fixed extensions, with the option *Show All Files*."""

    use_all_files: BoolProperty(
        name="Show All Files",
        description="List files of any name, with or without an extension; what a file is, its content decides",
        default=False,
        options={"SKIP_PRESET"},
    )

    def check(self, context: bpy.types.Context) -> bool:
        """Apply the *Show All Files* option to the filter of the file browser."""
        parameters = getattr(context.space_data, "params", None)
        wanted = "" if self.use_all_files else self.usual_names
        if parameters is None or parameters.filter_glob == wanted:
            return False
        parameters.filter_glob = wanted
        parameters.use_filter = not self.use_all_files
        return True

    def draw(self, context: bpy.types.Context) -> None:
        """Draw *Show All Files*, if there is a file browser, and the options in sections."""
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            property_column(self.layout).prop(self, "use_all_files")
        super().draw(context)


class ImportDropped(ImportFiles):
    """Mixin of the operator that imports dropped files, of several families of formats at once."""

    bl_idname = "import_scene.meshferry"
    bl_label = "Import Files"
    bl_description = "Import files of all formats that Meshferry reads, in any combination"

    importers: Sequence[type[ImportFiles]] = ()
    """The import operators of the families. Each knows which options its formats have."""

    @property
    def panel_prefix(self) -> str:  # type: ignore[override]
        """The names of the families that take part: what is folded depends on the number of their options."""
        known = self.known_formats()
        return "_".join(one.panel_prefix for one in self.importers if any(kind in one.formats for kind in known))

    def options_for(self, known: Sequence[Format | None]) -> tuple[Option, ...]:
        """Return the options of the formats that take part, as their families show them."""
        found: dict[str, Option] = {}
        for one in self.importers:
            if own := [kind for kind in known if kind in one.formats]:
                found.update((option.name, option) for option in options_of(own, one.option_table))
        return in_sections(found.values())

    def values(self) -> dict[str, Any]:
        """Return the values of the shown options. Others may have values of an earlier drop of another format."""
        return option_values(self, self.options_for(self.known_formats()))


def dialog_height(context: bpy.types.Context) -> float:
    """Return the height of the window between its bars, in units of the user interface; see ``draw_options``."""
    if context.window is None:
        return math.inf
    # Like the scale, areas are in real pixels; on some screens the window's own size is not.
    areas = context.window.screen.areas
    pixels = max(area.y + area.height for area in areas) - min(area.y for area in areas)
    return float(pixels) / (UNIT * (context.preferences.system.ui_scale or 1.0))


def options_of(found: Sequence[Format | None], table: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return the options of a table that concern these formats; all if there is an unknown format."""
    known = {kind.name: kind for kind in found if kind is not None}
    if not known or None in found:
        return table
    names = {option.name for option in import_table(*known.values())}
    return tuple(option for option in table if option.name in names)


def import_steps(
    context: bpy.types.Context, paths: Sequence[str], options: dict[str, Any]
) -> Steps[tuple[Messages, list[Any]]]:
    """Import files one after the other; return the messages and the results of those that succeeded.

    Cancelling removes the data of all files.
    """
    general = chosen_options(ImportOptions, options)
    options = {**preferred_import_values(), **options}
    sets = file_sets(paths, options)
    messages = Messages()
    results: list[Any] = []
    armatures: list[Any] = []
    try:
        for number, files in enumerate(sets):
            with messages.outcome(str(files.path)) as name, without_collection():
                importing = import_file(context, files, options, general, armatures)
                result = yield from scaled(importing, number / len(sets), (number + 1) / len(sets), name)
                results.append(result)
                if result.actions:  # another rate would change the speed of these
                    general = general.with_values(use_file_frame_rate=False)
                armatures += [obj for obj in result.armatures if obj not in armatures]
                messages.warn(name, result.warnings)
    except GeneratorExit:
        for result in reversed(results):
            result.undo()
        raise
    return messages, results


def import_file(
    context: bpy.types.Context,
    files: FileSet,
    options: dict[str, Any],
    general: ImportOptions,
    candidates: Sequence[Any] = (),
    armature: Any = None,
) -> Steps[Any]:
    """Import one file with its partners; return its result.

    Parameters
    ----------
    candidates:
        Armature objects to which the content may be bound if there is no ``armature``.
    """
    from ...blender_data.importing import armature_matching, importer

    loaded, digest, scene = yield from scaled(reading_steps(files, options), 0.0, 0.3)
    path = str(loaded.path)
    if files.levels:
        options = {**options, PARTNERS: {part: one.name for part, one in loaded.partners.items()}}
    armature = armature or armature_matching.choose_for_scene(context, scene, candidates, general.armature)
    choices = file_records.read_choices(armature) if armature is not None else ()
    if differs_from_choices(scene, choices):
        mapping = project_steps(
            "Reading", lambda projects: scene_of(loaded, options, choices=choices, projects=projects)
        )
        scene = yield from scaled(mapping, 0.0, 0.3)
    del loaded  # memory use peaks later, when Blender's mesh is built
    if armature is None:
        scene.warnings += armature_matching.mismatches(context, scene, candidates, general.armature)
    request = import_options.ImportRequest(context, scene, general, path, armature, options)
    result = yield from scaled(importer.import_steps(request), 0.3, 1.0)
    try:
        if result.objects:
            record = FileRecord(Path(path).absolute(), scene.format, digest)
            file_records.write([result.collection], record)
    except BaseException:
        result.undo()
        raise
    return result


def may_hold_meshes(found: Format | None) -> bool:
    """Return whether a file may contain meshes. Unrecognised files count, since their import reports the error."""
    return found is None or found.capabilities.meshes


def summary_parts(results: Iterable[Any]) -> tuple[str, ...]:
    """Return the phrases of an import summary. Armatures are counted by their bones."""
    results = tuple(results)
    others = sum(obj.type != "ARMATURE" for result in results for obj in result.objects)
    triangles = sum(result.triangles for result in results)
    with_armature = [result for result in results if result.armatures]
    bones = sum(result.bones for result in with_armature)
    actions = sum(result.actions for result in with_armature)
    shapes = sum(result.shapes for result in with_armature)
    counts_meshes = bool(others) or not with_armature
    return (
        counted(others, "object") if counts_meshes else "",
        counted(triangles, "triangle") if counts_meshes else "",
        counted(bones, "bone") if bones else "",
        counted(actions, "action") if actions else "",
        counted(shapes, "body shape") if shapes else "",
    )


def make_active(context: bpy.types.Context, collection: Any) -> None:
    """Make a collection of the scene the active one, for new objects and for the next export."""
    waiting = [context.view_layer.layer_collection]
    while waiting:
        layer = waiting.pop()
        if layer.collection == collection:
            context.view_layer.active_layer_collection = layer
            return
        waiting.extend(layer.children)
