"""Levels of detail of Second Life models: show one of them, or generate a missing one as an object."""

from dataclasses import replace
from typing import Any

import bpy
from bpy.props import EnumProperty

from ....blender_data import export_options, level_objects
from ....blender_data.exporting import object_selection
from ....blender_data.exporting.models.model_objects import is_deleted
from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Text, counted
from ....io_formats.passes import lod_names
from ....io_formats.second_life.options import LEVEL_LABELS
from ....io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
from ...layouts import IN_EDITABLE_SCENE, requires
from ...option_properties import to_export_options
from ...reports import Messages, inform, report_lines, warn
from ...selection import leave_edit_mode, select_only
from ...translations import rpt_
from .exporters import HAS_MODEL, LEVELS, PHYSICS, PICKERS, chosen_models, last_upload_values, objects_by_part

LEVEL_ITEMS = tuple(
    (key, label, f"The {label.lower()} level of detail") for key, label in zip(LEVELS, LEVEL_LABELS, strict=True)
)
PART_ITEMS = (*LEVEL_ITEMS, (PHYSICS, "Physics", "What others collide with"))


class OBJECT_OT_second_life_level_show(bpy.types.Operator):
    """Show one level of detail, or the physics, of the chosen models."""

    bl_idname = "object.second_life_level_show"
    bl_label = "Show Level of Detail"
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(HAS_MODEL)

    part: EnumProperty(name="Show", description="Level or shape to show", items=PART_ITEMS)

    @classmethod
    def description(cls, _context: bpy.types.Context, properties: Any) -> str:
        """Return the tooltip for the part of the button."""
        if properties.part == PHYSICS:
            return rpt_("Show the physics over the model, or hide it again")
        return rpt_("Show only this level of detail, as it is seen from the corresponding distance")

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Show the part; models without it are not changed."""
        leave_edit_mode(context)
        shown: list[Any] = []
        hidden: list[Any] = []
        for model in chosen_models(context):
            parts = objects_by_part(model)
            if self.part not in parts:
                continue
            if self.part == PHYSICS:
                seen = all(obj.visible_get() for obj in parts[PHYSICS])
                (hidden if seen else shown).extend(parts[PHYSICS])
            else:
                levels = [obj for key, items in parts.items() if key != PHYSICS for obj in items]
                shown += parts[self.part]
                hidden += [obj for obj in levels if obj not in parts[self.part]]
        unseen = level_objects.show_only(context, shown, hidden)
        if unseen:
            warn(self, "'{}' cannot be shown: disabled in viewports, or in an excluded collection", unseen[0])
        elif not shown and not hidden:
            inform(self, "There is no object for this level; the export generates it")
            return {"CANCELLED"}
        if self.part != PHYSICS:
            select_only(context, shown)
        return {"FINISHED"}


class OBJECT_OT_second_life_level_make(bpy.types.Operator):
    """Make objects of levels of detail that are missing, as the export would make them."""

    bl_idname = "object.second_life_level_make"
    bl_label = "Make Level of Detail"
    bl_description = (
        "Generate an object for this level as the export would, so that it can be inspected and edited; from "
        "then on this object is exported. Delete it to generate the level again"
    )
    bl_options = {"REGISTER", "UNDO"}

    part: EnumProperty(name="Level", description="Level to generate", items=LEVEL_ITEMS[1:])

    poll = requires(IN_EDITABLE_SCENE, HAS_MODEL)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Generate the level for each chosen model without it, and show it."""
        leave_edit_mode(context)
        messages = Messages()
        made: list[Any] = []
        for model in chosen_models(context):
            if self.part in objects_by_part(model):
                continue
            with messages.outcome("", model.finest.name):
                made.append(make_level(context, model.finest, LEVELS.index(self.part)))
        report_lines(self, [rpt_(Text("{}: {}", *failure)) for failure in messages.failures])
        if not made:
            if not messages.failures:
                inform(self, "There is already an object for this level")
            return {"CANCELLED"}
        bpy.ops.object.second_life_level_show(part=self.part)
        triangles = sum(len(obj.data.polygons) for obj in made)
        inform(self, "{}: {}", made[0].name, counted(triangles, "triangle"))
        return {"FINISHED"}


def make_level(context: bpy.types.Context, finest: Any, level: int) -> Any:
    """Generate an object for a level of detail of a model; return it.

    Raises
    ------
    ExportError
        The model cannot be exported, or the level would equal a finer one.
    """
    from ....blender_data.exporting import exporter
    from ....io_formats.second_life.models.models import models_of

    chosen = to_export_options(last_upload_values(context))
    options = chosen.with_values(missing_levels="MAKE", use_as_imported=False, use_hidden=True)
    source = object_selection.Source("OBJECTS", objects=(finest,))
    can = replace(SECOND_LIFE_UPLOAD.capabilities, bakes_materials=False)
    request = export_options.ExportRequest(context, source, options, finest.name, can)
    scene = exporter.export_scene(request)
    found = models_of(scene)
    node = found[0].levels[level] if found else None
    if node is None or node.mesh is None or not node.mesh.triangle_count:
        raise ExportError("there is no finer level to generate the level from")
    before = getattr(finest.meshferry, PICKERS[LEVELS[level]])
    if before is not None and is_deleted(before) and before.library is None:
        context.blend_data.objects.remove(before)  # the deleted object still uses the name
    made = level_objects.add_level(context, finest, lod_names.of_level(finest.name, level), node, scene)
    if finest.is_editable:  # on linked objects the reference would be lost; the level refers to ``finest`` anyway
        setattr(finest.meshferry, PICKERS[LEVELS[level]], made)
    return made
