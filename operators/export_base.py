"""What every export operator does: what to export, the file's name, options, and the summary at the end."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import EnumProperty, StringProperty
from bpy_extras.io_utils import ExportHelper

from ..blender_data import exporter
from ..blender_data.compat import BLEND_RELATIVE_PATHS
from ..blender_data.export_options import EXPORT_OPTIONS
from ..io_formats.errors import ExportError
from ..io_formats.files import scene_name, write_scene
from ..io_formats.formats import Format
from ..io_formats.options import Option
from .option_properties import draw_options, option_values
from .progress import progress
from .reporting import Messages, conclude, counted

SCOPES = (
    ("COLLECTION", "Active Collection", "The active collection with the collections inside it"),
    ("SELECTION", "Selected Objects", "The selected objects"),
    ("SCENE", "Scene", "Everything in the scene"),
)


@dataclass(frozen=True)
class Exported:
    """What a written file holds, and what to tell about it."""

    nodes: int
    triangles: int
    said: list[str]


class ExportScene(ExportHelper):
    """Mixin of export operators that write one file.

    A subclass is decorated with ``with_options`` of the general and the format's own options, and sets ``format``,
    ``filename_ext``, ``panel_prefix`` and, where its files are named so by custom, ``name_suffix``.
    """

    bl_options = {"PRESET"}

    format: Format
    panel_prefix = ""
    """Name of the format in the names of its panels."""
    name_suffix = ""
    """What the format's users put between a collection's name and the extension."""

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
    scope: EnumProperty(name="Export", description="What is written to the file", items=SCOPES, default="COLLECTION")
    suggested_name: StringProperty(options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Ask for the file, with a name after what is exported."""
        if not self.properties.is_property_set("filepath"):
            self.suggested_name = self.suggest_name(context)
            self.filepath = str(self.suggest_folder(context) / self.suggested_name)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def check(self, context: Any) -> bool:
        """Keep the file's extension, and its name after what is exported as long as nobody typed another."""
        before = self.filepath
        path = Path(before)
        if self.suggested_name and path.name == self.suggested_name:
            self.suggested_name = self.suggest_name(context)
            self.filepath = str(path.with_name(self.suggested_name))
        elif path.name:
            self.filepath = with_extension(before, self.format)
        return self.filepath != before

    def draw(self, context: Any) -> None:
        """Draw what to export and the options in sections; a collection's own exporter exports that collection."""
        layout = self.layout
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            if self.collection:
                layout.label(text=self.collection, icon="OUTLINER_COLLECTION", translate=False)
            else:
                column = layout.column()
                column.use_property_split = True
                column.use_property_decorate = False
                column.prop(self, "scope")
        draw_options(layout, self, all_options(self.format), f"{self.panel_prefix}_export")

    def execute(self, context: Any) -> set[str]:
        """Write the file; the checks of the format run before anything is written."""
        messages = Messages()
        parts: tuple[str, ...] = ()
        given = bpy.path.abspath(self.filepath)
        with progress(context, 1) as advance, messages.outcome(given or "?"):
            path = self.target_path(given)
            source, name = self.source(context, path)
            exported = export_file(context, source, name, path, self.format, all_values(self, self.format))
            messages.warn(Path(path).name, exported.said)
            parts = (
                counted(exported.nodes, "{} node", "{} nodes"),
                counted(exported.triangles, "{} triangle", "{} triangles"),
            )
            advance(1)
        return conclude(self, messages, parts, "Exported")

    def source(self, context: Any, path: str) -> tuple[Any, str]:
        """Return what to export and what to call it in the file."""
        if self.collection:
            chosen = named_collection(context, self.collection)
            return exporter.Source("COLLECTION", chosen), chosen.name
        if self.scope == "COLLECTION":
            chosen = context.collection
            if chosen != context.scene.collection:
                return exporter.Source("COLLECTION", chosen), chosen.name
        stem = Path(path).name.removesuffix(self.filename_ext)
        kind = "SELECTION" if self.scope == "SELECTION" else "SCENE"
        return exporter.Source(kind, None), stem.removesuffix(self.name_suffix) or stem

    def suggest_name(self, context: Any) -> str:
        """Return a file name after the collection or the .blend file."""
        root = context.scene.collection
        name = self.collection or (context.collection.name if self.scope == "COLLECTION" else root.name)
        if name == root.name:
            name = Path(context.blend_data.filepath).stem or "Untitled"
        elif name in context.blend_data.collections:
            name = name_in_file(context.blend_data.collections[name])
        return file_name(name, self.format, self.name_suffix)

    def suggest_folder(self, context: Any) -> Path:
        """Return the folder of the last export, of the .blend file, or of the file that the collection came from."""
        collection = context.blend_data.collections.get(self.collection) or context.collection
        for known in (self.filepath, context.blend_data.filepath, bpy.path.abspath(collection.meshferry.source_path)):
            if known:
                return Path(known).parent
        return Path()

    def target_path(self, given: str) -> str:
        """Return the path to write; the file browser has seen to its extension, a script may have left it out.

        Raises
        ------
        ExportError
            There is no name, or the name with its extension is that of a file nobody was asked about.
        """
        if not Path(given).name or Path(given).is_dir():
            raise ExportError(rpt_("No file name was given"))
        path = with_extension(given, self.format)
        if path != given and Path(path).exists():
            text = rpt_("'{}' exists already; give the name with its extension to replace it")
            raise ExportError(text.format(Path(path).name))
        return path


def export_file(context: Any, source: Any, name: str, path: str, target: Format, values: Mapping[str, Any]) -> Exported:
    """Export to one file, whole or not at all.

    Parameters
    ----------
    source:
        An ``exporter.Source``.
    name:
        What the scene is called in the file.
    values:
        Values of :func:`all_options` for the target format.

    Raises
    ------
    MeshferryError
        Nothing was written.
    """
    scene = exporter.export_scene(context, source, _part(values, EXPORT_OPTIONS), name, target.capabilities)
    said = write_scene(scene, path, target, _part(values, target.export_options))
    return Exported(len(scene.nodes), scene.triangle_count, said)


def all_options(target: Format) -> tuple[Option, ...]:
    """Return the general options and the format's own."""
    return (*EXPORT_OPTIONS, *target.export_options)


def all_values(owner: Any, target: Format) -> dict[str, Any]:
    """Return the values of :func:`all_options` of an operator."""
    return option_values(owner, all_options(target))


def _part(values: Mapping[str, Any], table: tuple[Option, ...]) -> dict[str, Any]:
    return {option.name: values[option.name] for option in table}


def named_collection(context: Any, name: str) -> Any:
    """Return the collection of that name, the scene's own included.

    Raises
    ------
    ExportError
        There is none.
    """
    root = context.scene.collection
    found = root if name == root.name else context.blend_data.collections.get(name)
    if found is None:
        raise ExportError(rpt_("There is no collection '{}'").format(name))
    return found


def name_in_file(collection: Any) -> str:
    """Return the collection's name, without the number that Blender gave it because its file was imported before."""
    name: str = collection.name
    plain = re.sub(r"\.\d{3,}$", "", name)
    source = collection.meshferry.source_path
    return plain if source and plain == scene_name(Path(source)) else name


def file_name(name: str, target: Format, suffix: str = "") -> str:
    """Return a collection's file name: the suffix and the extension once each, no forbidden characters."""
    stem = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", name).strip(" .") or "Untitled"
    for extension in target.extensions:
        stem = stem.removesuffix(extension)
    return stem.removesuffix(suffix) + suffix + target.extensions[0]


def with_extension(path: str, target: Format) -> str:
    """Return the path with the format's extension; what stands before it, dots and all, is kept."""
    lower = path.lower()
    for extension in target.extensions:
        if lower.endswith(extension) and Path(path).name.lower() != extension:
            return path[: -len(extension)] + target.extensions[0]
    return path + target.extensions[0]
