"""Load Shape… and Save Shape…: the shape of an avatar from a file, and into one."""

from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ....blender_data.importing import import_options, importer
from ....blender_data.importing.import_options import ImportOptions
from ....blender_data.names import name_in_file
from ....blender_data.rigging import body_shapes
from ....io_formats import api
from ....io_formats.core.errors import FormatError
from ....io_formats.core.scene import Scene, Skeleton
from ....io_formats.disk.file_names import file_name
from ....io_formats.second_life.shape_file.format import AS_OTHERS_SEE, SECOND_LIFE_SHAPE
from ...files.import_base import summary_parts
from ...layouts import file_patterns, path_property, property_column, requires
from ...reports import Messages, conclude
from .avatar_joints import HAS_AVATAR, chosen_avatar
from .shape_panel import NeedsShape

OTHER_NAMES = "*.dat;*.txt;*.asset"
"""Patterns of further names of body part assets, which other files have, too."""


class OBJECT_OT_second_life_load_shape(NeedsShape, ImportHelper, bpy.types.Operator):
    """Set the sliders of an avatar's shape from a file."""

    bl_idname = "object.second_life_load_shape"
    bl_label = "Load Shape"
    bl_description = (
        "Set all sliders of the avatar from an appearance export of a viewer (.xml) or a body part asset. Sliders that "
        "the file lacks get their default"
    )

    filter_glob: StringProperty(
        default=f"{file_patterns(SECOND_LIFE_SHAPE.extensions)};{OTHER_NAMES}", options={"HIDDEN", "SKIP_SAVE"}
    )
    filepath: path_property("File Path", "File with the shape", "FILE_PATH", {"HIDDEN", "SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Load the file."""
        path = bpy.path.abspath(self.filepath)
        messages, results = Messages(), []
        with messages.outcome(path) as name:
            loaded = api.load(path)
            if loaded.format != SECOND_LIFE_SHAPE:
                raise FormatError("This is a {} file, not a shape", loaded.format.label)
            options = ImportOptions.of({"armature": "ACTIVE"})
            request = import_options.ImportRequest(context, api.scene_of(loaded), options, path, chosen_avatar(context))
            results.append(importer.import_scene(request))
            messages.warn(name, results[0].warnings)
        return conclude(self, messages, summary_parts(results), "Imported")


class OBJECT_OT_second_life_save_shape(ExportHelper, bpy.types.Operator):
    """Write the shape of an avatar to a file."""

    bl_idname = "object.second_life_save_shape"
    bl_label = "Save Shape"
    bl_description = "Write the sliders of the avatar to an .xml file like the appearance exports of viewers"
    bl_options = {"REGISTER"}
    poll = requires(HAS_AVATAR)

    filename_ext = SECOND_LIFE_SHAPE.extensions[0]
    filter_glob: StringProperty(
        default=file_patterns(SECOND_LIFE_SHAPE.written_extensions), options={"HIDDEN", "SKIP_SAVE"}
    )
    filepath: path_property("File Path", "File to write", "FILE_PATH", {"HIDDEN", "SKIP_SAVE"})
    use_as_others_see: BoolProperty(
        name=AS_OTHERS_SEE.label, description=AS_OTHERS_SEE.description, default=AS_OTHERS_SEE.default
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser with the name of the avatar."""
        if not self.filepath:
            self.filepath = file_name(name_in_file(chosen_avatar(context))) + self.filename_ext
        return super().invoke(context, event)

    def draw(self, _context: bpy.types.Context) -> None:
        """Draw the option."""
        property_column(self.layout).prop(self, AS_OTHERS_SEE.name)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Write the file, or leave an existing one as it was."""
        armature = chosen_avatar(context)
        path = bpy.path.abspath(self.filepath)
        messages = Messages()
        with messages.outcome(path) as name:
            skeleton = Skeleton(name_in_file(armature), slider_values=body_shapes.percents_of(armature))
            options = {AS_OTHERS_SEE.name: self.use_as_others_see}
            written = api.write_scene(Scene(Path(path).stem, skeletons=[skeleton]), path, SECOND_LIFE_SHAPE, options)
            messages.warn(name, written)
        return conclude(self, messages, ["1 body shape"], "Exported")
