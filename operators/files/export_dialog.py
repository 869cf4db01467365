"""Dialog of the export operators: choice of the objects, names of the files, options."""

import contextlib
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty
from bpy_extras.io_utils import ExportHelper

from ...blender_data import file_records
from ...blender_data.exporting import object_selection
from ...blender_data.exporting.object_selection import automatic_source, has_surface, select, source_objects
from ...blender_data.names import name_in_file
from ...io_formats import api
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.format import Format
from ...io_formats.core.import_choices import imported_texts
from ...io_formats.core.messages import Text, counted, listed
from ...io_formats.core.options import IMPORT_CHOICES, Option
from ...io_formats.disk.file_names import file_name
from ..layouts import path_property, property_column
from ..option_properties import draw_options, to_export_options
from ..progress import DIALOG_WIDTH, LongWork
from ..sidebar import draw_wrapped
from ..translations import iface_, rpt_
from .export_targets import proposed


def plain_name(collection: Any) -> str:
    """Return the collection's name, without the number that Blender added because the file had been imported before."""
    name: str = collection.name
    plain = re.sub(r"\.\d{3,}$", "", name)
    source = collection.meshferry.source_path
    return plain if source and plain == api.scene_name(Path(source)) else name


def suggested_file_name(name: str, target: Format, suffix: str = "", extension: str = "") -> str:
    """Return a collection's file name with suffix and extension and without forbidden characters.

    ``extension`` is one of the format's extensions, by default the first.
    """
    stem = file_name(name.strip(" .") or "Untitled")
    for known in target.extensions:
        stem = stem.removesuffix(known)
    return stem.removesuffix(suffix) + suffix + (extension or target.extensions[0])


def with_extension(path: str, target: Format, extension: str = "") -> str:
    """Return the path with the format's extension; dots before the extension are kept.

    ``extension`` is one of the format's extensions, by default the first.
    """
    lower = path.lower()
    ends = (known for known in target.extensions if lower.endswith(known) and Path(lower).name != known)
    return path[: len(path) - len(next(ends, ""))] + (extension or target.extensions[0])


_AUTOMATIC = (
    "AUTO",
    "Automatic",
    (
        "The selected meshes; if only armatures or empties are selected, the meshes below them; if nothing is "
        "selected, the active collection"
    ),
    "NONE",
)
_COLLECTION = ("COLLECTION", "Active Collection", "The active collection with the collections inside it", "NONE")
_SELECTION = ("SELECTION", "Selected Objects", "The selected objects", "NONE")
_SCENE = ("SCENE", "Scene", "Everything in the scene", "NONE")
SCOPES = [(*_AUTOMATIC, 3), (*_COLLECTION, 0), (*_SELECTION, 1), (*_SCENE, 2)]
"""Items of a scope property. Their numbers are stored in .blend files; the automatic scope was added later."""
OBJECT_SCOPES = [(*_AUTOMATIC, 3), (*_SELECTION, 0), (*_COLLECTION, 1), (*_SCENE, 2)]
"""Scopes of formats that write one object to each file; the selection comes before the collection."""


class ExportDialog(LongWork, ExportHelper):
    """The dialog of export operators: choice of the objects, suggested file name, options."""

    bl_options = {"PRESET"}

    format: Format
    option_table: tuple[Option, ...] = ()
    """The general options that apply to the format, and its own options."""
    usual_names = ""
    """Patterns of the file names that the file browser lists."""
    entry_text = ""
    """Text of the entry in File > Export."""
    panel_prefix = ""
    """Name of the format in the names of its panels."""
    name_suffix = ""
    """Suffix between the name of a collection and the extension, by convention of the format."""

    filepath: path_property("File Path", "File to write", "FILE_PATH", {"SKIP_PRESET"})
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

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser; suggest a name taken from the exported objects."""
        self.given_options = ",".join(self.given())
        if not self.properties.is_property_set("filepath"):
            self.filepath = str(self.suggest_path(context, self.suggest_folder(context)))
        path = Path(self.filepath)
        if path.suffix and not any(fnmatch(path.name.lower(), pattern) for pattern in self.usual_names.split(";")):
            self.filter_glob = f"{self.usual_names};*{path.suffix}"  # the browser lists the file that is replaced
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def check(self, context: bpy.types.Context) -> bool:
        """Keep the file's extension, and name the file after the exported objects until the user types a name."""
        before = self.filepath
        path = Path(before)
        if self.suggested_name and path.name == self.suggested_name:
            self.filepath = str(self.suggest_path(context, path.parent))
        elif path.name:
            self.filepath = with_extension(before, self.format, self.filename_ext)
        return self.filepath != before

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the scope (in the file browser only), the files to write and the options in sections."""
        layout = self.layout
        if self.asked:
            draw_wrapped(layout.column(align=True), context, self.asked, "QUESTION", width=DIALOG_WIDTH)
            return
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            self.draw_scope(context)
        self.draw_files(context)
        with contextlib.suppress(MeshferryError):  # the export will report it
            sets, text = self.bakes(context)
            if sets:
                layout.label(text=iface_(Text("Bakes {}", text)), icon="RENDER_STILL", translate=False)
        imported = self.imported_texts(context)
        prefix = f"{self.panel_prefix}_export"
        draw_options(layout, self, self.shown_options(context), prefix, imported=imported)

    def shown_options(self, context: bpy.types.Context) -> tuple[Option, ...]:
        """Return the options that have an effect on the chosen file."""
        return self.option_table

    def draw_scope(self, context: bpy.types.Context) -> None:
        """Draw the scope and a description of the exported objects, except on errors, which `draw_files` shows."""
        if not self.collection:
            property_column(self.layout).prop(self, "scope")
        try:
            source = self.shown_source(context)
            text = rpt_(Text("Exports: {}", self.scope_text(context, source)))
        except MeshferryError:
            return
        draw_wrapped(
            self.layout.column(align=True), context, text, "OUTLINER_COLLECTION" if source.collection else "EXPORT"
        )

    def scope_text(self, context: bpy.types.Context, source: Any) -> Text:
        """Return a description of the exported objects.

        Raises
        ------
        MeshferryError
            There is nothing to export.
        """
        return scope_text(source, self.mesh_count(context, source))

    def mesh_count(self, context: bpy.types.Context, source: Any) -> int:
        """Return the number of meshes that are exported, without coarser levels of detail."""
        can = self.format.capabilities
        use_hidden = self.use_hidden
        chosen = set(select(context, source, use_hidden=use_hidden, with_empties=can.node_hierarchy))
        return sum(has_surface(obj) and obj.meshferry.lod_of not in chosen for obj in chosen)

    def chosen_source(self, context: bpy.types.Context) -> Any:
        """Return the source of the export, or the whole scene if nothing can be exported."""
        try:
            return self.source(context, "")[0]
        except MeshferryError:
            return object_selection.Source("SCENE")

    def shown_source(self, context: bpy.types.Context) -> Any:
        """Return the source that the dialog shows. In the *Exporters* panel of a collection, this is the collection.

        Raises
        ------
        ExportError
            There is nothing to export.
        """
        if context.space_data is not None and context.space_data.type == "PROPERTIES":
            return object_selection.Source("COLLECTION", context.collection)
        return self.source(context, "")[0]

    def imported_texts(self, context: bpy.types.Context) -> dict[str, str]:
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
        texts = imported_texts(remembered, [file_records.read_choices(obj) for obj in objects])
        return texts if getattr(self, IMPORT_CHOICES.name) else dict.fromkeys(texts, "")

    def bakes(self, context: bpy.types.Context) -> tuple[int, Text]:
        """Return the largest number of sets of pictures that the export bakes, and a text about them."""
        from ...blender_data.exporting.models.material_bakes import bake_price

        if not self.shown_options(context):
            return super().bakes(context)
        values, source = self.values(), self.shown_source(context)
        return bake_price(context, source, to_export_options(values), self.format.capabilities_with(values))

    def draw_files(self, context: bpy.types.Context) -> None:
        """Draw information about the files to write. The default, for a single file, draws nothing."""

    def given(self) -> list[str]:
        """Return the names of the options that override the values stored on import."""
        if self.properties.is_property_set("given_options"):
            return [name for name in self.given_options.split(",") if name]
        return [
            option.name
            for option in self.option_table
            if option.is_remembered and self.properties.is_property_set(option.name)
        ]

    def source(self, context: bpy.types.Context, path: str) -> tuple[Any, str]:
        """Return the source of the export and the name of its scene in the file."""
        if self.collection:
            chosen = named_collection(context, self.collection)
            return object_selection.Source("COLLECTION", chosen), chosen.name
        source = object_selection.Source("SELECTION" if self.scope == "SELECTION" else "SCENE")
        if self.scope == "AUTO":
            source = automatic_source(context, with_tree=self.format.capabilities.node_hierarchy)
        elif self.scope == "COLLECTION" and context.collection != context.scene.collection:
            source = object_selection.Source("COLLECTION", context.collection)
        if source.collection is not None:
            return source, source.collection.name
        stem = Path(path).name.removesuffix(self.filename_ext)
        return source, stem.removesuffix(self.name_suffix) or stem

    def suggest_path(self, context: bpy.types.Context, folder: Path) -> Path:
        """Return the path that the dialog proposes in a folder, and store its name as the suggested one."""
        owner = context.blend_data.collections.get(self.collection) or context.object or context.collection
        path = proposed(folder / self.suggest_name(context), owner)
        self.suggested_name = path.name
        return path

    def suggest_name(self, context: bpy.types.Context) -> str:
        """Suggest the name of the collection, of the only object or of the .blend file as the file name."""
        root = context.scene.collection
        name = self.collection
        if not name:
            source = self.chosen_source(context)
            name = (source.collection or root).name
            if source.kind in {"SELECTION", "OBJECTS"} and context.object is not None:
                return suggested_file_name(
                    name_in_file(context.object), self.format, self.name_suffix, self.filename_ext
                )
        if name == root.name:
            name = Path(context.blend_data.filepath).stem or "Untitled"
        elif name in context.blend_data.collections:
            name = plain_name(context.blend_data.collections[name])
        return suggested_file_name(name, self.format, self.name_suffix, self.filename_ext)

    def suggest_folder(self, context: bpy.types.Context) -> Path:
        """Return the folder of the last export, of the .blend file, or of the file that the collection came from."""
        collection = context.blend_data.collections.get(self.collection) or context.collection
        source = bpy.path.abspath(collection.meshferry.source_path)
        return Path(self.filepath or context.blend_data.filepath or source).parent


def scope_text(source: Any, count: int) -> Text:
    """Return a description of the source of an export, with its number of meshes."""
    meshes = counted(count, "mesh", "meshes")
    if source.collection is not None:
        return Text("collection '{}' ({})", source.collection.name, meshes)
    if source.roots:
        return Text("{} below {}", meshes, listed([obj.name for obj in source.roots], most=3))
    if source.kind == "SCENE":
        return Text("the scene ({})", meshes)
    return counted(count, "selected mesh", "selected meshes")


def named_collection(context: bpy.types.Context, name: str) -> Any:
    """Return the collection of that name, which may be the scene's own.

    Raises
    ------
    ExportError
        There is no such collection.
    """
    root = context.scene.collection
    found = root if name == root.name else context.blend_data.collections.get(name)
    if found is None:
        raise ExportError("There is no collection '{}'", name)
    return found
