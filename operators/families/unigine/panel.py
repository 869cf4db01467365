"""Sidebar panels of the 3D view: data of UNIGINE files that has no equivalent in Blender."""

from typing import Any

import bpy

from ....blender_data.mesh_data import surfaces
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.core.messages import Text, listed
from ...files.clip_export import rig_of
from ...layouts import Rows, button, property_column, sidebar_panel
from ...sidebar import actions_of, draw_actions, draw_wrapped
from ...translations import iface_, rpt_
from .project_materials import OBJECT_OT_meshferry_project_materials, draw_search, missing_textures


class UNIGINE_UL_surfaces(Rows, bpy.types.UIList):
    """List of material slots as surfaces of the file: name and lightmap size."""

    @staticmethod
    def draw_row(layout: Any, item: Any) -> None:
        """Draw the surface of one slot."""
        draw_written(layout, surfaces.written(item.id_data)[item.slot_index], item.id_data, item.material)


def is_mesh(context: bpy.types.Context) -> bool:
    """Return whether the active object is a mesh."""
    return context.object is not None and context.object.type == "MESH"


@sidebar_panel("UNIGINE_PT_surfaces", "Surfaces", is_mesh)
def surfaces_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the list of surfaces, one for each material slot, and the settings of the selected surface."""
    obj: Any = context.object
    listed = surfaces.written(obj)
    slot_count = len(obj.material_slots)
    row = layout.row()
    if slot_count:
        rows = 4 if slot_count > 1 else 3
        row.template_list("UNIGINE_UL_surfaces", "", obj, "material_slots", obj, "active_material_index", rows=rows)
    else:
        box = row.box()
        for surface in listed:
            draw_written(box, surface, obj, None)
        if not listed:
            box.label(text="No faces", text_ctxt=CONTEXT)
    buttons = row.column(align=True)
    buttons.operator("object.meshferry_surface_add", text="", icon="ADD")
    buttons.operator("object.meshferry_surface_remove", text="", icon="REMOVE")
    buttons.separator()
    buttons.operator("object.meshferry_surfaces_match", text="", icon="FILE_REFRESH")
    layout.operator(OBJECT_OT_meshferry_project_materials.bl_idname, icon="MATERIAL")
    draw_unused(layout, context, surfaces.unused(obj))
    active = obj.active_material_index if slot_count else 0
    if active < len(listed):
        draw_surface(layout, listed[active], obj)


@sidebar_panel("UNIGINE_PT_level_of_detail", "Level of Detail", is_mesh, is_closed=True)
def level_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the finest object, of which the active one is a coarser level of detail, and the number of the level."""
    column = property_column(layout)
    kept = context.object.meshferry
    column.prop(kept, "lod_of", text="LOD of", text_ctxt=CONTEXT)
    row = column.row()
    row.active = kept.lod_of is not None
    row.prop(kept, "lod", text="Level", text_ctxt=CONTEXT)


@sidebar_panel("UNIGINE_PT_armature", "Animation", lambda context: rig_of(context.object) is not None)
def armature_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the actions and the skeleton file of the active armature or the one that deforms the active object."""
    column = property_column(layout)
    rig = rig_of(context.object)
    if rig != context.object:
        column.label(text=rig.name, icon="OUTLINER_OB_ARMATURE", translate=False)
    button(column, "export_scene.unigine_anim", text="Export Animation…", icon="EXPORT")
    draw_actions(column, actions_of(rig), root_motion=True)
    column.prop(rig.meshferry, "skeleton_guid")
    column.prop(rig.meshferry, "skeleton_path")
    if rig.meshferry.skeleton_data:
        column.prop(rig.meshferry, "skeleton_data")


def draw_written(layout: Any, surface: surfaces.WrittenSurface, obj: Any, material: Any) -> None:
    """Draw the exported name, as the property that determines it, and the lightmap size."""
    split = layout.split(factor=0.72, align=True)
    if surface.has_own_name:
        split.prop(
            surface.entry,
            "name",
            text="",
            emboss=False,
            icon="FILE_TEXT",
            placeholder=surface.name or name_in_file(obj),
        )
    elif material is None:
        split.label(text=surface.name or name_in_file(obj), icon="OBJECT_DATA", translate=False)
    elif surface.name == material.name:
        split.prop(material, "name", text="", emboss=False, icon="MATERIAL")
    else:
        split.prop(material.meshferry, "source_name", text="", emboss=False, icon="MATERIAL")
    if surface.entry is not None:
        split.prop(surface.entry, "lightmap_resolution", text="", emboss=False)


def draw_unused(layout: Any, context: bpy.types.Context, entries: list[Any]) -> None:
    """Draw the names of settings without a material slot, and the operator that removes them."""
    if not entries:
        return
    names = listed([entry.name for entry in entries], len(entries))
    column = layout.box().column(align=True)
    draw_wrapped(column, context, rpt_(Text("Not exported, no material slot: {}", names)), "ERROR")
    column.operator("object.meshferry_surfaces_match", icon="FILE_REFRESH")


def draw_surface(layout: Any, surface: surfaces.WrittenSurface, obj: Any) -> None:
    """Draw the settings of one surface. Settings for data that the object lacks are greyed out."""
    column = property_column(layout)
    if len(obj.material_slots):
        column.prop(obj.material_slots[obj.active_material_index], "material", text="Material", text_ctxt=CONTEXT)
    entry = surface.entry
    if entry is None:
        column.label(text="Exported with defaults", text_ctxt=CONTEXT, icon="INFO")
        column.operator("object.meshferry_surface_add", icon="ADD")
        return
    column.prop(entry, "lightmap_channel")
    column.prop(entry, "lightmap_resolution")
    holds = layout.column(align=True)
    holds.label(text="Stored Data", text_ctxt=CONTEXT)
    uv_layers = len(obj.data.uv_layers)
    has_colors, has_weights = len(obj.data.color_attributes) > 0, len(obj.vertex_groups) > 0
    for pair in (
        (("has_uv0", uv_layers > 0), ("has_uv1", uv_layers > 1)),
        (("has_colors", has_colors), ("has_weights", has_weights)),
    ):
        row = holds.row(align=True)
        for name, is_there in pair:
            button = row.row(align=True)
            button.active = is_there
            button.prop(entry, name, toggle=True)
    if len(entry.shapes):
        shapes = layout.column(align=True)
        shapes.label(text="Shapes", text_ctxt=CONTEXT)
        for shape in entry.shapes:
            shapes.label(text=shape.name, icon="SHAPEKEY_DATA", translate=False)


class MATERIAL_PT_meshferry(bpy.types.Panel):
    """Panel of a material: the file that it was imported from, and its settings that Blender does not show."""

    bl_label = "Imported Material"
    bl_space_type = "PROPERTIES"
    bl_region_type = "WINDOW"
    bl_context = "material"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a material with data of a project."""
        kept = context.material.meshferry if context.material is not None else None
        return kept is not None and bool(kept.identity or len(kept.file_properties))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the values as texts that can be copied."""
        from ....io_formats.unigine.project.material_shading import PARAMETER

        layout = property_column(self.layout)
        kept = context.material.meshferry
        start = f"{PARAMETER} ("
        column = layout.column()
        for value in kept.file_properties:
            if not value.name.startswith(start):
                column.prop(value, "value", text=iface_(value.name), translate=False, emboss=False)
        if kept.identity:
            column.prop(kept, "identity", emboss=False)
        stated = [value for value in kept.file_properties if value.name.startswith(start)]
        if stated:
            column = layout.column()
            column.label(text="Parameters in the Project", text_ctxt=CONTEXT)
            for value in stated:
                name = value.name.removeprefix(start).removesuffix(")")
                column.prop(value, "value", text=name, translate=False, emboss=False)
        if missing_textures(context.material):
            draw_search(layout)


PANELS = (surfaces_panel, level_panel, armature_panel)
