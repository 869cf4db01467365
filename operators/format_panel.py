"""The panel of a family in the sidebar of the 3D view: buttons to check and export the active object."""

from typing import Any

import bpy

from ..io_formats.core.format import Family
from .finding_list import draw_findings
from .mesh_normals import has_free_normals
from .sidebar import Sidebar, concerns
from .translations import CONTEXT


def family_sidebar(family: Family, exporter: Any, check: Any) -> type:
    """Return the panel of a family."""
    types = {"MESH", "ARMATURE"} if any(known.capabilities.skeletons for known in family.formats) else {"MESH"}

    def poll(_cls: type, context: Any) -> bool:
        return context.object is not None and context.object.type in types and concerns(context, family.name)

    def draw(self: Any, context: Any) -> None:
        layout = self.layout
        item = context.object
        layout.label(text=item.name, icon=f"OUTLINER_OB_{item.type}", translate=False)
        if item.type != "MESH":
            return
        if has_free_normals(item.data):
            layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")
        row = layout.row(align=True)
        row.operator(check.bl_idname, text="Check", text_ctxt=CONTEXT, icon="CHECKMARK")
        row.operator(exporter.bl_idname, text="Export…", text_ctxt=CONTEXT, icon="EXPORT")
        draw_findings(layout, context, exporter.format, item.name)

    body = {"bl_label": family.label, "poll": classmethod(poll), "draw": draw, "__module__": __name__}
    return type(f"{family.name.upper()}_PT_sidebar", (Sidebar, bpy.types.Panel), body)
