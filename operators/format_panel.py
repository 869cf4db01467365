"""The panel of a family in the sidebar of the 3D view: buttons to check and export the active object."""

from typing import Any

import bpy

from ..io_formats.core.format import Family
from .findings.finding_list import draw_findings
from .layouts import button, sidebar_panel
from .object_tools.mesh_normals import has_free_normals
from .sidebar import concerns, origins_of

ICONS = {kind: f"OUTLINER_OB_{kind}" for kind in ("MESH", "ARMATURE", "EMPTY", "LIGHT", "CAMERA")}
"""Icons of the types of objects that imports make."""


def family_sidebar(family: Family, exporter: Any, check: Any) -> type:
    """Return the panel of a family. It is there for all imported objects, and without an active one for collections."""
    has_skeletons = any(known.capabilities.skeletons for known in family.formats)
    types = {"MESH", "EMPTY", "ARMATURE"} if has_skeletons else {"MESH", "EMPTY"}

    def is_shown(context: bpy.types.Context) -> bool:
        obj = context.object
        is_wanted = obj is None or obj.type in types or bool(origins_of(context))
        return is_wanted and concerns(context, family.name)

    @sidebar_panel(f"{family.name.upper()}_PT_sidebar", family.label, is_shown, parent="")
    def panel(layout: Any, context: bpy.types.Context) -> None:
        obj = context.object
        if obj is None:
            collection = context.collection
            layout.label(text=collection.name, icon="OUTLINER_COLLECTION", translate=False)
            draw_export(layout).collection = collection.name
            return
        layout.label(text=obj.name, icon=ICONS.get(obj.type, "OBJECT_DATA"), translate=False)
        if obj.type != "MESH":
            if obj.type in types:
                draw_export(layout)
            return
        if has_free_normals(obj.data):
            layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")
        row = layout.row(align=True)
        button(row, check, text="Check", icon="CHECKMARK")
        draw_export(row)
        draw_findings(layout, context, exporter.format, obj.name)

    def draw_export(layout: Any) -> Any:
        return button(layout, exporter, text="Export…", icon="EXPORT")

    return panel
