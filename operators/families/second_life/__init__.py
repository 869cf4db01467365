"""Second Life in the user interface: models of levels of detail and physics, weights, uploads."""

from typing import Any

import bpy

from ....blender_data.export_options import HIDDEN
from ....blender_data.exporting import object_selection
from ....blender_data.importing.import_options import BONE_DIRECTION
from ....io_formats.core.messages import Message
from ....io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from ....io_formats.second_life.asset.format import SECOND_LIFE_MESH
from ....io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from ....io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from ....io_formats.second_life.collada.format import SECOND_LIFE_COLLADA
from ....io_formats.second_life.opensim.format import OPENSIM_ARCHIVE
from ....io_formats.second_life.shape_file.format import SECOND_LIFE_SHAPE
from ...files.check_operators import CheckScene
from ...files.import_base import ImportAnyName
from ...hooks import Hooks
from ...layouts import requires
from ...option_properties import import_table
from .bodies import shape_findings
from .exporters import EXPORTERS, HAS_MODEL, chosen_models, subject_of
from .panel import main_panel

FORMATS = (
    SECOND_LIFE_MESH,
    SECOND_LIFE_BUNDLE,
    SECOND_LIFE_COLLADA,
    SECOND_LIFE_ANIMATION,
    SECOND_LIFE_BVH,
    SECOND_LIFE_SHAPE,
    OPENSIM_ARCHIVE,
)

UUID = "*-????-????-*"
"""Pattern for asset files named by their UUID alone. Blender matches the whole path and allows 15 characters."""


class Importer(ImportAnyName):
    """Import of mesh assets, bundles, Collada files, animations and body shapes in any combination."""

    bl_description = (
        "Import mesh assets and model bundles of Second Life and OpenSim and Collada files of uploads, with levels of "
        "detail, physics and rig; animations and body shapes, onto the active avatar if there is one; and whole "
        "regions and inventories from archives of OpenSim"
    )
    # The direction of bones is not an option, since the avatar skeleton defines it.
    option_table = tuple(option for option in import_table(*FORMATS) if option is not BONE_DIRECTION)
    usual_names = ";".join(
        [*dict.fromkeys(f"*{extension}" for known in FORMATS for extension in known.extensions), UUID]
    )


class Check(CheckScene):
    """Check for an upload."""

    bl_idname = "export_scene.second_life_check"
    bl_label = "Check Second Life Upload"
    bl_description = (
        "Check the selected models against the rules of the viewer's uploader and the grid, without writing a file"
    )
    poll = requires(HAS_MODEL)

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name of the model, and the number of further models."""
        return subject_of(chosen_models(context))

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the models."""
        models = tuple(model.finest for model in chosen_models(context))
        return object_selection.Source("OBJECTS", objects=models), models[0].name

    def last_values(self, context: bpy.types.Context) -> dict[str, Any]:
        """Return the options of the last export. Hidden models are checked, too: a coarser level may be shown."""
        return {**super().last_values(context), HIDDEN.name: True}

    def find(self, context: bpy.types.Context, findings: list[Message]) -> None:
        """Apply the rules, and compare the models with the body of the avatar."""
        super().find(context, findings)
        findings += shape_findings((model.finest for model in chosen_models(context)), context.scene.objects)


HOOKS = Hooks(importer=Importer, exporters=EXPORTERS, check=Check, sidebar=main_panel, has_closed_copies=False)
