"""File > Export > MeshSerializer2, and the Outliner's entry for collections."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ..blender_data.exporting.export_options import EXPORT_OPTIONS, HIDDEN, MODIFIERS
from ..blender_data.exporting.object_selection import MESHABLE, select
from ..blender_data.exporting.triangle_counts import triangle_count
from ..io_formats.core.errors import ExportError
from ..io_formats.core.scene import Scene
from ..io_formats.mesh_serializer.document import MOST
from ..io_formats.mesh_serializer.vertex_arrays import refusal_of_size
from ..io_formats.registry import MESH_SERIALIZER
from .export_base import OBJECT_SCOPES
from .export_files import ExportFiles, object_names
from .file_names import with_extension
from .menus import MenuEntry, collection_under_pointer, registration
from .option_properties import export_table, values_for, with_options
from .preferences import FAMILIES, drawn_for
from .reporting import counted
from .translations import CONTEXT

OPTIONS = tuple(sorted(export_table(MESH_SERIALIZER), key=lambda option: option not in MESH_SERIALIZER.export_options))
"""What a file holds is asked more often than how objects are read."""
SECTION_ORDER = ("File", "Geometry", "Objects")

EXTENSIONS = MESH_SERIALIZER.written_extensions


@with_options(OPTIONS)
class EXPORT_SCENE_OT_mesh_serializer(ExportFiles, bpy.types.Operator):
    """Write MeshSerializer2 files, one for each object or one of all."""

    bl_idname = "export_scene.mesh_serializer"
    bl_label = "Export Unity Mesh"
    bl_description = "Export objects to files that scripts of Unity projects load with MeshSerializer2"

    format = MESH_SERIALIZER
    option_table = OPTIONS
    section_order = SECTION_ORDER
    panel_prefix = "MESH_SERIALIZER"

    filter_glob: StringProperty(default=";".join(f"*{known}" for known in EXTENSIONS), options={"HIDDEN", "SKIP_SAVE"})
    scope: EnumProperty(name="Export", description="Which objects are exported", items=OBJECT_SCOPES, default="AUTO")

    file_extension: EnumProperty(
        name="Extension",
        description="How the names of the files end; what is in them is the same",
        items=[
            (".data", ".data", "As most projects call them, for files that are read from a folder"),
            (".bytes", ".bytes", "Unity makes a text asset of the file, whose bytes a script takes"),
            (".bin", ".bin", "As some projects call them"),
            (".3d", ".3d", "As some projects call them"),
        ],
        default=EXTENSIONS[0],
    )
    shown_extension: StringProperty(options={"HIDDEN", "SKIP_SAVE"})

    @property
    def filename_ext(self) -> str:
        """The extension of the files: the path's where it is one of the format's, else the chosen one."""
        return extension_of(self.filepath) or self.file_extension

    def check(self, context: Any) -> bool:
        """Keep the path and the chosen extension at one."""
        before = self.filepath
        was_suggested = bool(self.suggested_name) and Path(before).name == self.suggested_name
        self.filepath, self.file_extension = agreed(before, self.file_extension, self.shown_extension)
        if was_suggested:
            self.suggested_name = Path(self.filepath).name
        self.shown_extension = self.file_extension
        return super().check(context) or self.filepath != before

    def draw(self, context: Any) -> None:
        """Draw the extension with the rest; collection exporters have it in their path."""
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            column = self.layout.column()
            column.use_property_split = True
            column.use_property_decorate = False
            column.prop(self, "file_extension")
        super().draw(context)

    def names(self, context: Any, source: Any) -> list[str]:
        """Return the names of the objects that become files."""
        return object_names(self, context, source)

    def refuse_too_large(self, context: Any, source: Any) -> None:
        """Refuse objects that are at least twice as large as a file can be; closer to that, reading them tells."""
        if self.large_meshes == "SPLIT":
            return
        values = values_for(EXPORT_OPTIONS, self.values())
        chosen = select(context, source, use_hidden=bool(values[HIDDEN.name]), with_empties=False).objects
        finest = [item for item in chosen if item.type in MESHABLE and item.meshferry.lod_of not in chosen]
        use_modifiers = bool(values[MODIFIERS.name])
        counts = {item.name: triangle_count(context, item, use_modifiers=use_modifiers) for item in finest}
        if self.mesh_files == "JOINED" and counts:
            counts = {next(iter(counts)): sum(counts.values())}
        if counts and min(counts.values()) > 2 * MOST:
            name, count = max(counts.items(), key=lambda item: item[1])
            raise ExportError(refusal_of_size(name, f"{count:,} triangles"))

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the phrases of the summary."""
        written = tuple(written)
        return (
            counted(sum(len(scene.nodes) for scene in written), "{} object", "{} objects"),
            counted(sum(scene.triangle_count for scene in written), "{} triangle", "{} triangles"),
        )


def extension_of(path: str) -> str:
    """Return the extension of the format that a path has; empty: none."""
    lower = path.lower()
    return next((known for known in EXTENSIONS if lower.endswith(known)), "")


def agreed(path: str, chosen: str, shown: str) -> tuple[str, str]:
    """Return a path and an extension that agree, of which one may have been changed since both were ``shown``."""
    typed = extension_of(path)
    if not typed:
        return path, chosen
    if typed != shown:
        return path, typed
    return with_extension(path, MESH_SERIALIZER, chosen), chosen


@drawn_for("mesh_serializer")
def draw_export_entry(self: Any, _context: Any) -> None:
    """Draw the entry in File > Export."""
    text = f"{FAMILIES['mesh_serializer'].label} ({MESH_SERIALIZER.extensions[0]})"
    self.layout.operator(EXPORT_SCENE_OT_mesh_serializer.bl_idname, text=text, text_ctxt=CONTEXT)


@drawn_for("mesh_serializer")
def draw_collection_entry(self: Any, context: Any) -> None:
    """Draw the entry in the context menu of collections."""
    collection = collection_under_pointer(context)
    if collection is not None:
        self.layout.operator_context = "INVOKE_DEFAULT"  # in this menu operators would run without asking
        entry = self.layout.operator(
            EXPORT_SCENE_OT_mesh_serializer.bl_idname, text="Export Unity MeshSerializer2…", text_ctxt=CONTEXT
        )
        entry.collection = collection.name


CLASSES = (EXPORT_SCENE_OT_mesh_serializer,)
ENTRIES = (
    MenuEntry("TOPBAR_MT_file_export", draw_export_entry),
    MenuEntry("OUTLINER_MT_collection", draw_collection_entry),
)

register, unregister = registration(CLASSES, ENTRIES)
