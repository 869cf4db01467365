"""Check models against the rules of the viewer's uploader and the simulator, without writing a file."""

from typing import Any

import bpy

from ..blender_data.exporting import exporter
from ..blender_data.exporting.export_options import HIDDEN
from ..io_formats.registry import SECOND_LIFE_UPLOAD
from .checks import CheckScene
from .export_second_life import UPLOAD_OPTIONS, EXPORT_SCENE_OT_second_life_upload
from .second_life_objects import chosen_models, subject_of
from .translations import classes_factory


class EXPORT_SCENE_OT_second_life_check(CheckScene, bpy.types.Operator):
    """List what an upload would stumble over."""

    bl_idname = "export_scene.second_life_check"
    bl_label = "Check Second Life Upload"
    bl_description = (
        "Check the selected models against the rules of the viewer's uploader and the grid, without writing a file"
    )

    format = SECOND_LIFE_UPLOAD
    option_table = UPLOAD_OPTIONS
    export_operator = EXPORT_SCENE_OT_second_life_upload.bl_idname

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a model."""
        if not chosen_models(context):
            cls.poll_message_set("Choose a mesh object")
            return False
        return True

    def subject(self, context: Any) -> str:
        """Return the name of the model, and the number of further models."""
        return subject_of(chosen_models(context))

    def source(self, context: Any) -> tuple[Any, str]:
        """Return the models."""
        models = tuple(model.finest for model in chosen_models(context))
        return exporter.Source("OBJECTS", objects=models), models[0].name

    def last_values(self, context: Any) -> dict[str, Any]:
        """Return the options of the last export; models are checked even while one of their coarser levels is shown."""
        return {**super().last_values(context), HIDDEN.name: True}


CLASSES = (EXPORT_SCENE_OT_second_life_check,)

register, unregister = classes_factory(CLASSES)
