"""Check objects against the rules of the UNIGINE engine without writing a file."""

from typing import Any

import bpy

from ..io_formats.registry import UNIGINE_MESH
from .checks import CheckObject
from .export_unigine import MESH_OPTIONS, EXPORT_SCENE_OT_unigine_mesh, without_needless_clips
from .translations import classes_factory


class EXPORT_SCENE_OT_unigine_mesh_check(CheckObject, bpy.types.Operator):
    """List problems for the engine."""

    bl_idname = "export_scene.unigine_mesh_check"
    bl_label = "Check UNIGINE Mesh"
    bl_description = "Check the active object against the rules of the engine, without writing a file"

    format = UNIGINE_MESH
    option_table = MESH_OPTIONS
    export_operator = EXPORT_SCENE_OT_unigine_mesh.bl_idname

    def last_values(self, context: Any) -> dict[str, Any]:
        """Return the options of the last export; animations only if they are embedded in the mesh."""
        return without_needless_clips(super().last_values(context))


CLASSES = (EXPORT_SCENE_OT_unigine_mesh_check,)

register, unregister = classes_factory(CLASSES)
