"""Check objects against the rules of programs that read MeshSerializer2, without writing a file."""

import bpy

from ..io_formats.registry import MESH_SERIALIZER
from .checks import CheckObject
from .export_mesh_serializer import OPTIONS, EXPORT_SCENE_OT_mesh_serializer
from .translations import classes_factory


class EXPORT_SCENE_OT_mesh_serializer_check(CheckObject, bpy.types.Operator):
    """List what a file cannot hold and what programs reject."""

    bl_idname = "export_scene.mesh_serializer_check"
    bl_label = "Check Unity MeshSerializer2"
    bl_description = (
        "Check which data of the active object a file would lose, and what the export would reject, "
        "without writing a file"
    )

    format = MESH_SERIALIZER
    option_table = OPTIONS
    export_operator = EXPORT_SCENE_OT_mesh_serializer.bl_idname


CLASSES = (EXPORT_SCENE_OT_mesh_serializer_check,)

register, unregister = classes_factory(CLASSES)
