"""File > Import > Second Life, and the handlers that let Second Life files be dropped into a window."""

from typing import Any

import bpy
from bpy.props import StringProperty
from bpy_extras.io_utils import poll_file_object_drop

from ..blender_data.importing.import_options import BONE_DIRECTION
from ..io_formats.registry import SECOND_LIFE_BUNDLE, SECOND_LIFE_MESH
from .import_base import ImportAnyName
from .menus import MenuEntry, registration
from .option_properties import import_table, with_options
from .preferences import drawn_for

FORMATS = (SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE)
OPTIONS = tuple(option for option in import_table(*FORMATS) if option is not BONE_DIRECTION)
"""The skeleton says where its bones point."""

UUID = "*-????-????-*"
"""Assets are often kept under their identity alone. Blender wants a pattern that fits the whole path, in 15 letters."""

USUAL_NAMES = ";".join([*dict.fromkeys(f"*{extension}" for known in FORMATS for extension in known.extensions), UUID])


@with_options(OPTIONS)
class IMPORT_SCENE_OT_second_life(ImportAnyName, bpy.types.Operator):
    """Read Second Life and OpenSim mesh assets and model bundles, in any mixture."""

    bl_idname = "import_scene.second_life"
    bl_label = "Import SL Mesh"
    bl_description = (
        "Import mesh assets and model bundles of Second Life and OpenSim, with levels of detail, physics and rig"
    )

    panel_prefix = "SECOND_LIFE"
    option_table = OPTIONS
    usual_names = USUAL_NAMES

    filter_glob: StringProperty(default=USUAL_NAMES, options={"HIDDEN", "SKIP_SAVE"})


class IO_FH_second_life(bpy.types.FileHandler):
    """Drops of assets, and the exporter of collections.

    An asset that is called ``.mesh`` comes by the handler of that extension, whose operator goes by the content.
    """

    bl_idname = "IO_FH_second_life"
    bl_label = SECOND_LIFE_MESH.label
    bl_import_operator = "import_scene.second_life"
    bl_export_operator = "export_scene.second_life_mesh"
    bl_file_extensions = SECOND_LIFE_MESH.extensions[0]

    @classmethod
    def poll_drop(cls, context: Any) -> bool:
        """Take drops into the 3D view and the Outliner."""
        return poll_file_object_drop(context)


class IO_FH_second_life_bundle(bpy.types.FileHandler):
    """Drops of model bundles, and the exporter of collections."""

    bl_idname = "IO_FH_second_life_bundle"
    bl_label = SECOND_LIFE_BUNDLE.label
    bl_import_operator = "import_scene.second_life"
    bl_export_operator = "export_scene.second_life_bundle"
    bl_file_extensions = SECOND_LIFE_BUNDLE.extensions[0]

    @classmethod
    def poll_drop(cls, context: Any) -> bool:
        """Take drops into the 3D view and the Outliner."""
        return poll_file_object_drop(context)


@drawn_for("second_life")
def draw_import_entry(self: Any, _context: Any) -> None:
    """Draw the entry in File > Import."""
    shown = ", ".join(known.extensions[0] for known in FORMATS)
    self.layout.operator(IMPORT_SCENE_OT_second_life.bl_idname, text=f"{SECOND_LIFE_MESH.label} ({shown})")


CLASSES = (IMPORT_SCENE_OT_second_life, IO_FH_second_life, IO_FH_second_life_bundle)
ENTRIES = (MenuEntry("TOPBAR_MT_file_import", draw_import_entry),)

register, unregister = registration(CLASSES, ENTRIES)
