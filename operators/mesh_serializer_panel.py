"""The sidebar of the 3D view: what came from MeshSerializer2 files, its check and export."""

from typing import Any

import bpy

from ..io_formats.registry import MESH_SERIALIZER
from .finding_list import draw_findings
from .mesh_normals import has_free_normals
from .preferences import FAMILIES
from .sidebar import Sidebar, concerns, with_closed_copies
from .translations import CONTEXT, classes_factory


class MESH_SERIALIZER_PT_sidebar(Sidebar, bpy.types.Panel):
    """The active object as a MeshSerializer2 file."""

    bl_label = FAMILIES["mesh_serializer"].label

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need a mesh that came from no file of another format."""
        return context.object is not None and context.object.type == "MESH" and concerns(context, "mesh_serializer")

    def draw(self, context: Any) -> None:
        """Draw the buttons to check and export."""
        layout = self.layout
        item = context.object
        layout.label(text=item.name, icon="OUTLINER_OB_MESH", translate=False)
        if has_free_normals(item.data):
            layout.operator("mesh.meshferry_editable_normals", icon="NORMALS_VERTEX_FACE")
        row = layout.row(align=True)
        row.operator("export_scene.mesh_serializer_check", text="Check", text_ctxt=CONTEXT, icon="CHECKMARK")
        row.operator("export_scene.mesh_serializer", text="Export…", text_ctxt=CONTEXT, icon="EXPORT")
        draw_findings(layout, context, MESH_SERIALIZER, item.name)


class MESH_SERIALIZER_PT_kept(Sidebar, bpy.types.Panel):
    """The ranges that the file stored positions and UVs between."""

    bl_parent_id = "MESH_SERIALIZER_PT_sidebar"
    bl_label = "File Data"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: Any) -> bool:
        """Need an object that keeps some."""
        return kept_of(context.object) is not None

    def draw(self, context: Any) -> None:
        """Draw the ranges; an export uses them while all values lie on their steps."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        kept = kept_of(context.object)
        layout.prop(kept, "has_domains", text="Use Ranges", text_ctxt=CONTEXT)
        column = layout.column()
        column.active = kept.has_domains
        column.prop(kept, "position_domain")
        column.prop(kept, "uv_domain")


def kept_of(item: Any) -> Any | None:
    """Return what an object keeps of its file's ranges, switched off or not; None: it came from no such file."""
    surfaces = item.meshferry.surfaces if item is not None else ()
    return next((kept for kept in surfaces if kept.has_domains or any(kept.position_domain)), None)


CLASSES = with_closed_copies((MESH_SERIALIZER_PT_sidebar, MESH_SERIALIZER_PT_kept))

register, unregister = classes_factory(CLASSES)
