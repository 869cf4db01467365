"""Check a collection against the game's rules without writing a file."""

from typing import Any

import bpy
from bpy.props import StringProperty

from ..blender_data.exporting import exporter
from ..io_formats.registry import TIMBERMESH
from .checks import CheckScene
from .export_base import named_collection
from .export_timbermesh import OPTIONS, EXPORT_SCENE_OT_timbermesh
from .translations import classes_factory


class EXPORT_SCENE_OT_timbermesh_check(CheckScene, bpy.types.Operator):
    """List what the game would reject."""

    bl_idname = "export_scene.timbermesh_check"
    bl_label = "Check Timbermesh"
    bl_description = "Check the collection against the rules of the game, without writing a file"

    format = TIMBERMESH
    option_table = OPTIONS
    export_operator = EXPORT_SCENE_OT_timbermesh.bl_idname

    collection: StringProperty(
        name="Collection",
        description="Name of the collection to check; by default the active one",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def subject(self, context: Any) -> str:
        """Return the name of the collection."""
        return self.collection or context.collection.name

    def source(self, context: Any) -> tuple[Any, str]:
        """Return the collection, or the whole scene for the scene's own collection."""
        name = self.subject(context)
        collection = named_collection(context, name)
        if collection == context.scene.collection:
            return exporter.Source("SCENE", None), name
        return exporter.Source("COLLECTION", collection), name


CLASSES = (EXPORT_SCENE_OT_timbermesh_check,)

register, unregister = classes_factory(CLASSES)
