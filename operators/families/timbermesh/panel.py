"""Panels in the sidebar of the 3D view for models of the game Timberborn."""

from typing import Any

import bpy

from ....blender_data.names import MARK
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.timbermesh.game_files import find_example_models
from ....io_formats.timbermesh.model.format import GAME, TIMBERMESH
from ...findings.finding_list import draw_findings
from ...findings.mesh_tools import has_free_normals
from ...layouts import button, property_column, sidebar_panel
from ...preferences import PACKAGE, preferences, preferred_path
from ...sidebar import actions_of, concerns, draw_actions, is_renamed
from . import materials


@sidebar_panel("TIMBERMESH_PT_sidebar", TIMBERMESH.label, lambda context: concerns(context, "timbermesh"), parent="")
def main_panel(layout: Any, _context: bpy.types.Context) -> None:
    """Draw buttons that add objects with names that the game recognises."""
    column = layout.column(align=True)
    button(column, "object.timbermesh_attachment_add", text="Add Attachment Point…", icon="EMPTY_ARROWS")
    column.operator_menu_enum("object.timbermesh_slot_add", "keyword", text="Add Slot", text_ctxt=CONTEXT, icon="USER")


@sidebar_panel("TIMBERMESH_PT_object", "Object", lambda context: context.object is not None)
def object_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the name of the active object in the file and whether it becomes a node."""
    obj = context.object
    layout.prop(obj, "name", text="", icon="OBJECT_DATA")
    is_own = obj.name.startswith(MARK)
    layout.operator(
        "object.timbermesh_own_node",
        text="Node of Its Own (#)",
        text_ctxt=CONTEXT,
        icon="CHECKBOX_HLT" if is_own else "CHECKBOX_DEHLT",
        depress=is_own,
    )
    layout.prop(obj.meshferry, "is_root")
    if obj.type == "MESH" and has_free_normals(obj.data):
        layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")


def has_file_data(context: bpy.types.Context) -> bool:
    """Return whether the active object has data stored from its file."""
    obj = context.object
    return obj is not None and (is_renamed(obj) or obj.meshferry.has_rest or bool(custom_layers_of(obj)))


@sidebar_panel("TIMBERMESH_PT_kept", "File Data", has_file_data, parent="object", is_closed=True)
def file_data_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw data that the next export writes again: name, rest transform, and layers that are attributes."""
    column = property_column(layout)
    obj = context.object
    kept = obj.meshferry
    if is_renamed(obj):
        column.prop(kept, "source_name")
    if kept.has_rest:
        for name in ("has_rest", "rest_location", "rest_rotation", "rest_scale"):
            column.prop(kept, name)
    for layer in custom_layers_of(obj):
        column.prop(layer, "name", text=layer.attribute, translate=False)


def has_materials(context: bpy.types.Context) -> bool:
    """Return whether the active object can have material slots."""
    return context.object is not None and hasattr(context.object.data, "materials")


@sidebar_panel("TIMBERMESH_PT_materials", "Materials", has_materials, is_closed=True)
def materials_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the slots, the choice of names, and the button for the example models or the preferences."""
    obj = context.object
    layout.template_list("MATERIAL_UL_matslots", "", obj, "material_slots", obj, "active_material_index", rows=3)
    row = layout.row(align=True)
    button(row, materials.OBJECT_OT_timbermesh_material_choose, text="Choose Name…", icon="VIEWZOOM")
    row.menu(materials.TIMBERMESH_MT_materials.bl_idname, text="By Collection", text_ctxt=CONTEXT)
    folder = preferred_path(GAME)
    if folder and find_example_models(folder) is not None:
        button(layout, materials.OBJECT_OT_timbermesh_materials_append, text="Append Materials", icon="APPEND_BLEND")
    elif not folder and preferences() is not None:
        button(layout, "preferences.addon_show", text="Set the Game's Folder…", icon="FILE_FOLDER", module=PACKAGE)


@sidebar_panel(
    "TIMBERMESH_PT_clip", "Clip", lambda context: context.object is not None and bool(actions_of(context.object))
)
def clip_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the name of each action, its rate and whether it is exported."""
    draw_actions(property_column(layout), actions_of(context.object))


@sidebar_panel("TIMBERMESH_PT_collection", "Collection", lambda _context: True)
def collection_panel(layout: Any, context: bpy.types.Context) -> None:
    """Draw the active collection: merging, the imported file, and the buttons to check and export it."""
    column = property_column(layout)
    collection = context.collection
    column.label(text=collection.name, icon="OUTLINER_COLLECTION", translate=False)
    settings = collection.meshferry
    if collection != context.scene.collection:
        column.prop(settings, "merging")
        if settings.from_file:
            column.prop(settings, "source_path")
    row = layout.row(align=True)
    button(row, "export_scene.timbermesh_check", text="Check", icon="CHECKMARK")
    button(row, "export_scene.timbermesh", text="Export…", icon="EXPORT", collection=collection.name)
    draw_findings(layout, context, TIMBERMESH, collection.name)


def custom_layers_of(obj: Any) -> list[Any]:
    """Return the custom layers of an object's mesh, which have no equivalent in Blender."""
    return list(obj.data.meshferry.custom_layers) if obj.type == "MESH" else []


PANELS = (object_panel, file_data_panel, materials_panel, clip_panel, collection_panel)
