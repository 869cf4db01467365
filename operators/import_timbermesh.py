"""File > Import > Timbermesh, and the handler that lets Timbermesh files be dropped into a window."""

from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..io_formats.registry import TIMBERMESH
from .import_base import ImportFiles
from .menus import MenuEntry, registration
from .option_properties import import_table, with_options
from .preferences import drawn_for

OPTIONS = import_table(TIMBERMESH)


@with_options(OPTIONS)
class IMPORT_SCENE_OT_timbermesh(ImportFiles, bpy.types.Operator):
    """Read Timbermesh files."""

    bl_idname = "import_scene.timbermesh"
    bl_label = "Import Timbermesh"
    bl_description = "Import models of the game Timberborn, each into a collection of its own"

    panel_prefix = "TIMBERMESH"
    option_table = OPTIONS

    # A .prefab is what a tool makes of the game's own models; its text holds the same content.
    filter_glob: StringProperty(
        default=";".join(f"*{extension}" for extension in (*TIMBERMESH.extensions, ".prefab")),
        options={"HIDDEN", "SKIP_SAVE"},
    )


class IO_FH_timbermesh(bpy.types.FileHandler):
    """Drops of Timbermesh files, and the exporter of collections."""

    bl_idname = "IO_FH_timbermesh"
    bl_label = TIMBERMESH.label
    bl_import_operator = "import_scene.timbermesh"
    bl_export_operator = "export_scene.timbermesh"
    bl_file_extensions = ";".join(TIMBERMESH.extensions)

    @classmethod
    def poll_drop(cls, context: Any) -> bool:
        """Take drops into the 3D view and the Outliner."""
        return poll_file_object_drop(context)


@drawn_for("timbermesh")
def draw_import_entry(self: Any, _context: Any) -> None:
    """Draw the entry in File > Import."""
    self.layout.operator(IMPORT_SCENE_OT_timbermesh.bl_idname, text=f"{TIMBERMESH.label} ({TIMBERMESH.extensions[0]})")


CLASSES = (IMPORT_SCENE_OT_timbermesh, IO_FH_timbermesh)
ENTRIES = (MenuEntry("TOPBAR_MT_file_import", draw_import_entry),)

register, unregister = registration(CLASSES, ENTRIES)
