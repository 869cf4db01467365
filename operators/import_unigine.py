"""File > Import > UNIGINE, and the handler that lets UNIGINE files be dropped into a window."""

from pathlib import Path
from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..io_formats.registry import MESH_SERIALIZER, SECOND_LIFE, UNIGINE_ANIMATION, UNIGINE_MESH, UNIGINE_SKELETON
from .import_base import ImportFiles, are_all_of
from .menus import MenuEntry, registration
from .option_properties import import_table, with_options
from .preferences import drawn_for
from .translations import CONTEXT

FORMATS = (UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON)
OPTIONS = import_table(*FORMATS)
EXTENSIONS = tuple(dict.fromkeys(extension for known in FORMATS for extension in known.extensions))

OTHERS = {"second_life": SECOND_LIFE, "mesh_serializer": (MESH_SERIALIZER,)}
"""Importers whose files may have these extensions too, and what they read."""


@with_options(OPTIONS)
class IMPORT_SCENE_OT_unigine(ImportFiles, bpy.types.Operator):
    """Read UNIGINE meshes, animations and skeletons, in any mixture."""

    bl_idname = "import_scene.unigine"
    bl_label = "Import UNIGINE"
    bl_description = "Import meshes, skeletons and animations of the UNIGINE engine; those chosen together go together"

    panel_prefix = "UNIGINE"
    closed_sections = ("Geometry", "Materials")
    option_table = OPTIONS

    filter_glob: StringProperty(
        default=";".join(f"*{extension}" for extension in EXTENSIONS), options={"HIDDEN", "SKIP_SAVE"}
    )

    def invoke(self, context: Any, event: Any) -> set[str]:
        """Leave files of others, which may be called the same, to the operator that has the options for them."""
        paths = self.paths()
        for name, formats in OTHERS.items():
            if are_all_of(paths, formats):
                folder, files = str(Path(paths[0]).parent), [{"name": Path(path).name} for path in paths]
                operator = getattr(bpy.ops.import_scene, name)
                operator("INVOKE_DEFAULT", filepath=paths[0], directory=folder, files=files)
                return {"CANCELLED"}
        return super().invoke(context, event)


class IO_FH_unigine(bpy.types.FileHandler):
    """Drops of UNIGINE files, and the exporter of collections.

    Others use these extensions too. Two handlers of one extension would make Blender ask which is meant, so this
    one takes them all, and its operator goes by their content.
    """

    bl_idname = "IO_FH_unigine"
    bl_label = UNIGINE_MESH.label
    bl_import_operator = "import_scene.unigine"
    bl_export_operator = "export_scene.unigine_mesh"
    bl_file_extensions = ";".join(EXTENSIONS)

    @classmethod
    def poll_drop(cls, context: Any) -> bool:
        """Take drops into the 3D view and the Outliner."""
        return poll_file_object_drop(context)


@drawn_for("unigine")
def draw_import_entry(self: Any, _context: Any) -> None:
    """Draw the entry in File > Import."""
    self.layout.operator(IMPORT_SCENE_OT_unigine.bl_idname, text="UNIGINE (.mesh, .anim)", text_ctxt=CONTEXT)


CLASSES = (IMPORT_SCENE_OT_unigine, IO_FH_unigine)
ENTRIES = (MenuEntry("TOPBAR_MT_file_import", draw_import_entry),)

register, unregister = registration(CLASSES, ENTRIES)
