"""Timbermesh in the user interface: collections as files, names that the game knows."""

from typing import Any

import bpy
from bpy.props import StringProperty

from ....blender_data.exporting import object_selection
from ....io_formats.core.messages import Message
from ....io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT
from ....io_formats.timbermesh.model.format import TIMBERMESH
from ...files.check_operators import CheckScene
from ...files.export_dialog import named_collection
from ...files.import_base import ImportFiles
from ...hooks import Hooks
from ...layouts import file_patterns
from . import buildings, exporters
from .blueprint_exporter import ExportBlueprint
from .blueprints import blueprint_panel, findings_of, main_collection
from .panel import PANELS, main_panel


class Importer(ImportFiles):
    """Import of Timbermesh files and blueprints."""

    bl_description = (
        "Import models of the game Timberborn, and blueprints, which place them as buildings, each into a collection "
        "of its own"
    )

    # .prefab files are text files with the same content, extracted from the game.
    usual_names = file_patterns((*TIMBERMESH.extensions, ".prefab", *TIMBERBORN_BLUEPRINT.extensions))


class Check(CheckScene):
    """Check of a collection."""

    bl_description = "Check the collection against the rules of the game, without writing a file"

    collection: StringProperty(
        name="Collection",
        description="Name of the collection to check; by default the active one",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def subject(self, context: bpy.types.Context) -> str:
        """Return the name of the collection."""
        blueprint = self.blueprint(context)
        return str(blueprint[0].name) if blueprint is not None else self.collection or context.collection.name

    def blueprint(self, context: bpy.types.Context) -> Any:
        """Return the collection and the record of the blueprint of the active object or collection, or None."""
        return None if self.collection else main_collection(context)

    def find(self, context: bpy.types.Context, findings: list[Message]) -> None:
        """Check the collection as a model, or a blueprint with its changes."""
        blueprint = self.blueprint(context)
        if blueprint is None:
            super().find(context, findings)
            buildings.check(context, self.source(context)[0].collection, findings)
        else:
            findings += findings_of(*blueprint)

    def source(self, context: bpy.types.Context) -> tuple[Any, str]:
        """Return the collection, or the whole scene for the scene's own collection."""
        name = self.subject(context)
        collection = named_collection(context, name)
        if collection == context.scene.collection:
            return object_selection.Source("SCENE", None), name
        return object_selection.Source("COLLECTION", collection), name


HOOKS = Hooks(
    importer=Importer,
    exporters={TIMBERMESH.name: exporters.ExportModel, TIMBERBORN_BLUEPRINT.name: ExportBlueprint},
    check=Check,
    draw_collection_entries=exporters.draw_collection_entries,
    sidebar=main_panel,
    panels=(blueprint_panel, *PANELS),
)
