"""What every import operator does: several files, options, progress, and a bad file that never stops the rest."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import CollectionProperty, StringProperty
from bpy_extras.io_utils import ImportHelper

from ..blender_data import importer
from ..blender_data.compat import BLEND_RELATIVE_PATHS
from ..blender_data.import_options import IMPORT_OPTIONS
from ..io_formats.files import read_scene
from .option_properties import draw_options, option_values
from .progress import progress
from .reporting import Messages, conclude, counted


class ImportFiles(ImportHelper):
    """Mixin of import operators; the content of each file, not the operator, decides what format it is.

    A subclass is decorated with ``with_options(IMPORT_OPTIONS)``, sets ``panel_prefix`` and declares
    its ``filter_glob``.
    """

    bl_options = {"UNDO", "PRESET"}

    panel_prefix = ""
    """Name of the format in the names of its panels."""

    filepath: StringProperty(
        name="File Path",
        description="File to import",
        maxlen=1024,
        subtype="FILE_PATH",
        options={"HIDDEN", "SKIP_PRESET"} | BLEND_RELATIVE_PATHS,
    )
    directory: StringProperty(
        name="Folder",
        description="Folder of the files to import",
        subtype="DIR_PATH",
        options={"HIDDEN", "SKIP_SAVE"} | BLEND_RELATIVE_PATHS,
    )
    files: CollectionProperty(
        name="Files",
        description="Names of the files to import",
        type=bpy.types.OperatorFileListElement,
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Ask for options where files were dropped, for files otherwise."""
        return self.invoke_popup(context)

    def draw(self, context: Any) -> None:
        """Draw the options in sections."""
        draw_options(self.layout, self, IMPORT_OPTIONS, f"{self.panel_prefix}_import")

    def execute(self, context: Any) -> set[str]:
        """Import every chosen file into a collection of its own."""
        paths = self.paths()
        if not paths:
            self.report({"ERROR"}, "No file was chosen")
            return {"CANCELLED"}
        leave_edit_mode(context)
        messages, results = import_files(context, paths, option_values(self, IMPORT_OPTIONS))
        objects = [item for result in results for item in result.objects]
        select_only(context, objects)
        if results:
            make_active(context, results[0].collection)
        parts = (
            counted(len(objects), "{} object", "{} objects"),
            counted(sum(result.triangles for result in results), "{} triangle", "{} triangles"),
        )
        return conclude(self, messages, parts, "Imported")

    def paths(self) -> list[str]:
        """Return the absolute paths of the chosen files, in the order they were chosen, each once."""
        names = [element.name for element in self.files if element.name]
        if not names:
            single = bpy.path.abspath(self.filepath)
            return [single] if Path(single).name and not Path(single).is_dir() else []
        folder = bpy.path.abspath(self.directory) or str(Path(bpy.path.abspath(self.filepath)).parent)
        return list(dict.fromkeys(str(Path(folder) / name) for name in names))


def import_files(context: Any, paths: Iterable[str], options: dict[str, Any]) -> tuple[Messages, list[Any]]:
    """Import files one after the other; return what to tell and the results of those that succeeded."""
    paths = tuple(paths)
    messages = Messages()
    results = []
    with progress(context, 2 * len(paths)) as advance:
        for number, path in enumerate(paths):
            with messages.outcome(path) as name:
                scene = read_scene(path)
                advance(2 * number + 1)
                result = importer.import_scene(context, scene, options, path)
                results.append(result)
                messages.warn(name, dict.fromkeys(result.warnings))
            advance(2 * number + 2)
    return messages, results


def leave_edit_mode(context: Any) -> None:
    """Go to object mode; what is being edited is kept."""
    if context.mode != "OBJECT" and bpy.ops.object.mode_set.poll():  # type: ignore[call-arg]  # wrong in the stubs
        bpy.ops.object.mode_set(mode="OBJECT")


def select_only(context: Any, objects: Iterable[Any]) -> None:
    """Select these objects alone, and make the first of them active; with none, leave the selection as it is."""
    layer = context.view_layer
    layer.update()  # otherwise what was just linked is not there yet
    there = [item for item in objects if item.name in layer.objects and item.visible_get(view_layer=layer)]
    if not there:
        return
    for item in tuple(layer.objects.selected):
        item.select_set(False, view_layer=layer)
    for item in there:
        item.select_set(True, view_layer=layer)
    layer.objects.active = there[0]


def make_active(context: Any, collection: Any) -> None:
    """Make a collection of the scene the active one, so that the next export and what is added are about it."""
    waiting = [context.view_layer.layer_collection]
    while waiting:
        layer = waiting.pop()
        if layer.collection == collection:
            context.view_layer.active_layer_collection = layer
            return
        waiting.extend(layer.children)
