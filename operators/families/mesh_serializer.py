"""MeshSerializer2 in the user interface: file extensions, size limits, quantisation ranges."""

from pathlib import Path
from typing import Any

import bpy
from bpy.props import EnumProperty, StringProperty

from ...blender_data.armature_modifiers import MESHABLE
from ...blender_data.exporting.object_selection import select, triangle_count
from ...blender_data.property_groups.translation_context import CONTEXT
from ...io_formats.core.errors import ExportError
from ...io_formats.mesh_serializer.document import MOST
from ...io_formats.mesh_serializer.format import MESH_SERIALIZER
from ..files.check_operators import CheckObject
from ..files.export_dialog import with_extension
from ..files.export_files import ExportObjects
from ..files.import_base import ImportAnyName
from ..hooks import Hooks
from ..layouts import property_column, sidebar_panel
from ..option_properties import export_table, in_sections, to_export_options

EXTENSIONS = MESH_SERIALIZER.written_extensions


class ImportMeshSerializer(ImportAnyName):
    """Import of MeshSerializer2 files and related formats."""

    bl_label = "Import Unity Mesh"
    bl_description = "Import meshes that Unity projects keep in files of MeshSerializer2 and its relatives"


class ExportMeshSerializer(ExportObjects):
    """Export to MeshSerializer2 files, one for each object or one of all."""

    bl_label = "Export Unity Mesh"
    bl_description = "Export objects to files that scripts of Unity projects load with MeshSerializer2"
    # The options of the file content come first, since users change them more often.
    option_table = in_sections(
        sorted(export_table(MESH_SERIALIZER), key=lambda option: option not in MESH_SERIALIZER.options()),
        ("File", "Geometry", "Objects"),
    )

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
        """Extension of the files: the extension of the path if the format has it, otherwise the chosen one."""
        return extension_of(self.filepath) or self.file_extension

    def check(self, context: bpy.types.Context) -> bool:
        """Make the path's extension and the chosen extension agree."""
        before = self.filepath
        was_suggested = bool(self.suggested_name) and Path(before).name == self.suggested_name
        self.filepath, self.file_extension = agreed(before, self.file_extension, self.shown_extension)
        if was_suggested:
            self.suggested_name = Path(self.filepath).name
        self.shown_extension = self.file_extension
        return super().check(context) or self.filepath != before

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the options; the extension only in file browsers, since collection exporters have it in their path."""
        if context.space_data is not None and context.space_data.type == "FILE_BROWSER":
            property_column(self.layout).prop(self, "file_extension")
        super().draw(context)

    def refuse_too_large(self, context: bpy.types.Context, source: Any) -> None:
        """Raise ExportError for objects at least twice as large as the limit. Encoding finds smaller excesses."""
        from ...io_formats.mesh_serializer.document_builder import refusal_of_size

        if self.large_meshes == "SPLIT":
            return
        options = to_export_options(self.values())
        chosen = select(context, source, use_hidden=options.use_hidden, with_empties=False)
        finest = [obj for obj in chosen if obj.type in MESHABLE and obj.meshferry.lod_of not in chosen]
        counts = {obj.name: triangle_count(context, obj, use_modifiers=options.use_modifiers) for obj in finest}
        if self.mesh_files == "JOINED" and counts:
            counts = {next(iter(counts)): sum(counts.values())}
        if counts and min(counts.values()) > 2 * MOST:
            name, count = max(counts.items(), key=lambda item: item[1])
            raise ExportError(refusal_of_size(name, f"{count:,} triangles"))


def extension_of(path: str) -> str:
    """Return the extension of a path if the format has it, otherwise an empty string."""
    lower = path.lower()
    return next((known for known in EXTENSIONS if lower.endswith(known)), "")


def agreed(path: str, chosen: str, shown: str) -> tuple[str, str]:
    """Return a path and an extension that agree. Whichever differs from the extension last ``shown`` wins."""
    typed = extension_of(path)
    if not typed:
        return path, chosen
    if typed != shown:
        return path, typed
    return with_extension(path, MESH_SERIALIZER, chosen), chosen


class CheckMeshSerializer(CheckObject):
    """Check for an export to MeshSerializer2 files."""

    bl_description = (
        "Check which data of the active object a file would lose, and what the export would reject, "
        "without writing a file"
    )


@sidebar_panel(
    "MESH_SERIALIZER_PT_kept", "File Data", lambda context: kept_of(context.object) is not None, is_closed=True
)
def file_data_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the ranges of positions and UVs of the file, which an export uses while they represent all values."""
    layout = property_column(layout)
    kept = kept_of(context.object)
    layout.prop(kept, "has_domains", text="Use Ranges", text_ctxt=CONTEXT)
    column = layout.column()
    column.active = kept.has_domains
    column.prop(kept, "position_domain")
    column.prop(kept, "uv_domain")


def kept_of(obj: Any) -> Any | None:
    """Return the surface with the ranges stored from the object's file, or None if there are none."""
    surfaces = obj.meshferry.surfaces if obj is not None else ()
    return next((kept for kept in surfaces if kept.has_domains or any(kept.position_domain)), None)


HOOKS = Hooks(
    importer=ImportMeshSerializer,
    exporters={MESH_SERIALIZER.name: ExportMeshSerializer},
    check=CheckMeshSerializer,
    panels=(file_data_panel,),
)
