"""The sidebar of the 3D view: what UNIGINE files hold of an object that Blender has no place of its own for."""

from typing import Any

import bpy

from ..io_formats.formats import UNIGINE_ANIMATION, UNIGINE_MESH, UNIGINE_SKELETON
from .checks import draw_findings
from .export_unigine import rig_of
from .mesh_normals import has_free_normals
from .sidebar import Sidebar, actions_of, concerns, draw_actions


class UNIGINE_UL_surfaces(bpy.types.UIList):
    """Surfaces: name and size of the lightmap."""

    def draw_item(
        self, context: Any, layout: Any, data: Any, item: Any, icon: int, active_data: Any, active_property: str
    ) -> None:
        """Draw one surface."""
        split = layout.split(factor=0.72, align=True)
        split.prop(item, "name", text="", emboss=False, icon="MATERIAL" if item.material is not None else "BLANK1")
        split.prop(item, "lightmap_resolution", text="", emboss=False)


class UNIGINE_PT_sidebar(Sidebar, bpy.types.Panel):
    """The active object as a UNIGINE file."""

    bl_label = "UNIGINE"

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need something that such a file can hold, and that came from no file of another format."""
        can_hold = context.object is not None and context.object.type in {"MESH", "ARMATURE"}
        return can_hold and concerns(context, UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON)

    def draw(self, context: Any) -> None:
        """Draw the buttons to check and export."""
        layout = self.layout
        item = context.object
        layout.label(text=item.name, icon=f"OUTLINER_OB_{item.type}", translate=False)
        if item.type == "MESH":
            if has_free_normals(item.data):
                layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")
            row = layout.row(align=True)
            row.operator("export_scene.unigine_mesh_check", text="Check", icon="CHECKMARK")
            row.operator("export_scene.unigine_mesh", text="Export…", icon="EXPORT")
            draw_findings(layout, context, UNIGINE_MESH, item.name)


class UNIGINE_PT_surfaces(Sidebar, bpy.types.Panel):
    """The surfaces that the active object's material slots are."""

    bl_parent_id = "UNIGINE_PT_sidebar"
    bl_label = "Surfaces"

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a mesh object."""
        return context.object is not None and context.object.type == "MESH"

    def draw(self, context: Any) -> None:
        """Draw the list and the settings of the surface chosen in it."""
        layout = self.layout
        kept = context.object.meshferry
        row = layout.row()
        row.template_list(
            "UNIGINE_UL_surfaces", "", kept, "surfaces", kept, "active_surface", rows=4 if len(kept.surfaces) else 3
        )
        buttons = row.column(align=True)
        buttons.operator("object.meshferry_surface_add", text="", icon="ADD")
        buttons.operator("object.meshferry_surface_remove", text="", icon="REMOVE")
        buttons.separator()
        buttons.operator("object.meshferry_surfaces_match", text="", icon="FILE_REFRESH")
        if kept.active_surface < len(kept.surfaces):
            draw_surface(layout, kept.surfaces[kept.active_surface], context.object)
        elif len(context.object.material_slots):
            layout.label(text="Slots are exported with defaults", icon="INFO")


class UNIGINE_PT_level_of_detail(Sidebar, bpy.types.Panel):
    """The active object as a coarser version of another."""

    bl_parent_id = "UNIGINE_PT_sidebar"
    bl_label = "Level of Detail"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a mesh object."""
        return context.object is not None and context.object.type == "MESH"

    def draw(self, context: Any) -> None:
        """Draw of which object it is a coarser version, and how coarse."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        kept = context.object.meshferry
        layout.prop(kept, "lod_of", text="Coarser Than")
        row = layout.row()
        row.active = kept.lod_of is not None
        row.prop(kept, "lod", text="Level")


class UNIGINE_PT_armature(Sidebar, bpy.types.Panel):
    """What animation files say of the active armature, or the one that deforms the active object."""

    bl_parent_id = "UNIGINE_PT_sidebar"
    bl_label = "Animation"

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need an armature."""
        return rig_of(context.object) is not None

    def draw(self, context: Any) -> None:
        """Draw the action's name, rate, root motion and whether it is exported, and the skeleton file."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        rig = rig_of(context.object)
        if rig != context.object:
            layout.label(text=rig.name, icon="OUTLINER_OB_ARMATURE", translate=False)
        layout.operator("export_scene.unigine_anim", text="Export…", icon="EXPORT")
        draw_actions(layout, actions_of(rig), root_motion=True)
        column = layout.column()
        column.prop(rig.meshferry, "skeleton_guid")
        column.prop(rig.meshferry, "skeleton_path")


def draw_surface(layout: Any, surface: Any, item: Any) -> None:
    """Draw the settings of one surface; what the object has nothing of is pale."""
    column = layout.column()
    column.use_property_split = True
    column.use_property_decorate = False
    column.prop(surface, "material")
    column.prop(surface, "lightmap_channel")
    column.prop(surface, "lightmap_resolution")
    holds = layout.column(align=True)
    holds.label(text="Holds")
    uv_layers = len(item.data.uv_layers)
    has_colors, has_weights = len(item.data.color_attributes) > 0, len(item.vertex_groups) > 0
    for pair in (
        (("has_uv0", uv_layers > 0), ("has_uv1", uv_layers > 1)),
        (("has_colors", has_colors), ("has_weights", has_weights)),
    ):
        row = holds.row(align=True)
        for name, is_there in pair:
            button = row.row(align=True)
            button.active = is_there
            button.prop(surface, name, toggle=True)
    if len(surface.shapes):
        shapes = layout.column(align=True)
        shapes.label(text="Shapes")
        for shape in surface.shapes:
            shapes.label(text=shape.name, icon="SHAPEKEY_DATA", translate=False)


CLASSES = (
    UNIGINE_UL_surfaces,
    UNIGINE_PT_sidebar,
    UNIGINE_PT_surfaces,
    UNIGINE_PT_level_of_detail,
    UNIGINE_PT_armature,
)

register, unregister = bpy.utils.register_classes_factory(CLASSES)
