"""File > Import > MeshSerializer2, and the handler that lets such files be dropped into a window."""

from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..io_formats.registry import MESH_SERIALIZER
from .import_base import ImportAnyName, are_all_of
from .menus import MenuEntry, registration
from .option_properties import import_table, with_options
from .preferences import FAMILIES, drawn_for
from .translations import CONTEXT

OPTIONS = import_table(MESH_SERIALIZER)
USUAL_NAMES = ";".join(f"*{extension}" for extension in MESH_SERIALIZER.extensions)


@with_options(OPTIONS)
class IMPORT_SCENE_OT_mesh_serializer(ImportAnyName, bpy.types.Operator):
    """Read MeshSerializer2 files and their relatives."""

    bl_idname = "import_scene.mesh_serializer"
    bl_label = "Import Unity Mesh"
    bl_description = "Import meshes that Unity projects keep in files of MeshSerializer2 and its relatives"

    panel_prefix = "MESH_SERIALIZER"
    option_table = OPTIONS
    usual_names = USUAL_NAMES

    filter_glob: StringProperty(default=USUAL_NAMES, options={"HIDDEN", "SKIP_SAVE"})

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Fail immediately for files that are not models, as most files with these extensions are not."""
        if are_all_of(self.paths(), (None,)):
            return self.execute(context)
        return ImportAnyName.invoke(self, context, event)


class IO_FH_mesh_serializer(bpy.types.FileHandler):
    """Drops of MeshSerializer2 files, and the exporter of collections.

    A file that is called ``.mesh`` comes by the handler of that extension, whose operator goes by the content.
    """

    bl_idname = "IO_FH_mesh_serializer"
    bl_label = FAMILIES["mesh_serializer"].label
    bl_import_operator = "import_scene.mesh_serializer"
    bl_export_operator = "export_scene.mesh_serializer"
    bl_file_extensions = ";".join(MESH_SERIALIZER.written_extensions)

    @classmethod
    def poll_drop(cls, context: Any) -> bool:
        """Take drops into the 3D view and the Outliner."""
        return poll_file_object_drop(context)


@drawn_for("mesh_serializer")
def draw_import_entry(self: Any, _context: Any) -> None:
    """Draw the entry in File > Import."""
    text = f"{FAMILIES['mesh_serializer'].label} ({MESH_SERIALIZER.extensions[0]})"
    self.layout.operator(IMPORT_SCENE_OT_mesh_serializer.bl_idname, text=text, text_ctxt=CONTEXT)


CLASSES = (IMPORT_SCENE_OT_mesh_serializer, IO_FH_mesh_serializer)
ENTRIES = (MenuEntry("TOPBAR_MT_file_import", draw_import_entry),)

register, unregister = registration(CLASSES, ENTRIES)
