"""Panels in the sidebar of the 3D view for models of the game Timberborn."""

from typing import Any

import bpy

from ....blender_data.node_marks import MARK
from ....io_formats.registry import TIMBERMESH
from ....io_formats.timbermesh.materials.game_folder import find_example_models
from ....io_formats.timbermesh.options import GAME
from ...findings.finding_list import draw_findings
from ...object_tools.mesh_normals import has_free_normals
from ...preferences import PACKAGE, preferences, preferred_path
from ...sidebar import Sidebar, actions_of, concerns, draw_actions, is_renamed
from ...translations import CONTEXT
from . import materials


class TIMBERMESH_PT_sidebar(Sidebar, bpy.types.Panel):
    """Main panel: buttons that add objects that the game finds by their names."""

    bl_label = TIMBERMESH.label

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Hide the panel for objects imported from other formats."""
        return concerns(context, "timbermesh")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons."""
        column = self.layout.column(align=True)
        column.operator(
            "object.timbermesh_attachment_add", text="Add Attachment Point…", text_ctxt=CONTEXT, icon="EMPTY_ARROWS"
        )
        column.operator_menu_enum(
            "object.timbermesh_slot_add", "keyword", text="Add Slot", text_ctxt=CONTEXT, icon="USER"
        )


class TIMBERMESH_PT_object(Sidebar, bpy.types.Panel):
    """Panel with the settings of the active object as a node of the file."""

    bl_parent_id = "TIMBERMESH_PT_sidebar"
    bl_label = "Object"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require an active object."""
        return context.object is not None

    def draw(self, context: bpy.types.Context) -> None:
        """Draw its name in the file and whether it becomes a node."""
        layout = self.layout
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


class TIMBERMESH_PT_kept(Sidebar, bpy.types.Panel):
    """Panel with the data of the active object's file that the next export writes again."""

    bl_parent_id = "TIMBERMESH_PT_object"
    bl_label = "File Data"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require an active object with data stored from its file."""
        obj = context.object
        return obj is not None and (is_renamed(obj) or obj.meshferry.has_rest or bool(custom_layers_of(obj)))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw its name in the file, its rest transform and the layers that are attributes."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        obj = context.object
        kept = obj.meshferry
        if is_renamed(obj):
            layout.prop(kept, "source_name")
        if kept.has_rest:
            layout.prop(kept, "has_rest")
            column = layout.column()
            column.prop(kept, "rest_location")
            column.prop(kept, "rest_rotation")
            column.prop(kept, "rest_scale")
        for layer in custom_layers_of(obj):
            layout.prop(layer, "name", text=layer.attribute, translate=False)


class TIMBERMESH_PT_materials(Sidebar, bpy.types.Panel):
    """Panel with the material slots of the active object and the names of the game."""

    bl_parent_id = "TIMBERMESH_PT_sidebar"
    bl_label = "Materials"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require an object with material slots."""
        return context.object is not None and hasattr(context.object.data, "materials")

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the slots, the choice of names, and the button for the example models or the preferences."""
        layout = self.layout
        obj = context.object
        layout.template_list("MATERIAL_UL_matslots", "", obj, "material_slots", obj, "active_material_index", rows=3)
        row = layout.row(align=True)
        row.operator(
            materials.OBJECT_OT_timbermesh_material_choose.bl_idname,
            text="Choose Name…",
            text_ctxt=CONTEXT,
            icon="VIEWZOOM",
        )
        row.menu(materials.TIMBERMESH_MT_materials.bl_idname, text="By Collection", text_ctxt=CONTEXT)
        folder = preferred_path(GAME)
        if folder and find_example_models(folder) is not None:
            layout.operator(
                materials.OBJECT_OT_timbermesh_materials_append.bl_idname,
                text="Append Materials",
                text_ctxt=CONTEXT,
                icon="APPEND_BLEND",
            )
        elif not folder and preferences() is not None:
            button = layout.operator(
                "preferences.addon_show", text="Set the Game's Folder…", text_ctxt=CONTEXT, icon="FILE_FOLDER"
            )
            button.module = PACKAGE


class TIMBERMESH_PT_clip(Sidebar, bpy.types.Panel):
    """Panel with the active object's actions as animation clips of the file."""

    bl_parent_id = "TIMBERMESH_PT_sidebar"
    bl_label = "Clip"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require an active object with an action."""
        return context.object is not None and bool(actions_of(context.object))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw each action's name, rate and whether it is exported."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        draw_actions(layout, actions_of(context.object))


class TIMBERMESH_PT_collection(Sidebar, bpy.types.Panel):
    """Panel with the settings of the active collection, which is exported as a file."""

    bl_parent_id = "TIMBERMESH_PT_sidebar"
    bl_label = "Collection"

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the merging option, the imported file, and the buttons to check and export the collection."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        collection = context.collection
        layout.label(text=collection.name, icon="OUTLINER_COLLECTION", translate=False)
        settings = collection.meshferry
        if collection != context.scene.collection:
            layout.prop(settings, "merging")
            if settings.from_file:
                layout.prop(settings, "source_path")
        row = layout.row(align=True)
        row.operator("export_scene.timbermesh_check", text="Check", text_ctxt=CONTEXT, icon="CHECKMARK")
        row.operator(
            "export_scene.timbermesh", text="Export…", text_ctxt=CONTEXT, icon="EXPORT"
        ).collection = collection.name
        draw_findings(layout, context, TIMBERMESH, collection.name)


def custom_layers_of(obj: Any) -> list[Any]:
    """Return the custom layers of an object's mesh, which have no equivalent in Blender."""
    return list(obj.data.meshferry.custom_layers) if obj.type == "MESH" else []


PANELS = (
    TIMBERMESH_PT_object,
    TIMBERMESH_PT_kept,
    TIMBERMESH_PT_materials,
    TIMBERMESH_PT_clip,
    TIMBERMESH_PT_collection,
)
