"""Check objects against the rules of programs that read MeshSerializer2, without writing a file."""

import bpy

from ..io_formats.registry import MESH_SERIALIZER
from .checks import CheckObject
from .export_mesh_serializer import OPTIONS, EXPORT_SCENE_OT_mesh_serializer
from .translations import classes_factory


class EXPORT_SCENE_OT_mesh_serializer_check(CheckObject, bpy.types.Operator):
    """List what a file could not hold, or a program would not read."""

    bl_idname = "export_scene.mesh_serializer_check"
    bl_label = "Check Unity MeshSerializer2"
    bl_description = "Check what a file would lose of the active object, and what would be refused, without writing one"

    format = MESH_SERIALIZER
    option_table = OPTIONS
    export_operator = EXPORT_SCENE_OT_mesh_serializer.bl_idname


CLASSES = (EXPORT_SCENE_OT_mesh_serializer_check,)

register, unregister = classes_factory(CLASSES)
