"""Make exactly imported normals editable.

Exact ("free") normals are an attribute ``custom_normal`` of vectors in object space, which does not follow edits or
deformation of the mesh. Editable normals are stored relative to the surface and follow them.
"""

from typing import Any

import bpy
import numpy as np

from ...blender_data import compat
from ...io_formats.core.messages import counted
from ..layouts import IN_OBJECT_MODE, requires
from ..reports import inform, warn

FREE_NORMALS = "custom_normal"


class MESH_OT_meshferry_editable_normals(bpy.types.Operator):
    """Convert free normals to tangent-space normals."""

    bl_idname = "mesh.meshferry_editable_normals"
    bl_label = "Make Normals Editable"
    bl_description = (
        "Convert exact normals of the selected meshes to normals that follow editing, mirroring and deformation. "
        "On nearly all corners they look the same"
    )
    bl_options = {"REGISTER", "UNDO"}

    poll = requires(
        IN_OBJECT_MODE,
        (
            lambda context: any(has_free_normals(obj.data) for obj in _meshes(context)),
            "No selected mesh has exact normals",
        ),
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Convert each mesh once, even if several objects share it."""
        meshes = dict.fromkeys(obj.data for obj in _meshes(context) if has_free_normals(obj.data))
        editable = [mesh for mesh in meshes if mesh.is_editable]
        for mesh in editable:
            make_normals_editable(mesh)
        if len(editable) < len(meshes):
            warn(self, "{} linked meshes were not changed", len(meshes) - len(editable))
        inform(self, "Normals of {} are editable", counted(len(editable), "mesh", "meshes"))
        return {"FINISHED"} if editable else {"CANCELLED"}


def has_free_normals(mesh: Any) -> bool:
    """Return whether a mesh has free normals, which Blender stores as vectors of corners or points."""
    attribute = mesh.attributes.get(FREE_NORMALS)
    return attribute is not None and attribute.data_type == "FLOAT_VECTOR" and attribute.domain in {"CORNER", "POINT"}


def make_normals_editable(mesh: Any) -> None:
    """Replace free normals, on corners or points, by tangent-space normals with nearly the same directions."""
    attribute = mesh.attributes[FREE_NORMALS]
    normals = np.empty(len(attribute.data) * 3, np.float32)
    attribute.data.foreach_get("vector", normals)
    normals = normals.reshape(-1, 3)
    setter = compat.set_point_normals if attribute.domain == "POINT" else compat.set_corner_normals
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    # Blender replaces a zero vector by its own normal, so use zero for NaN and infinite values.
    usable = np.isfinite(lengths) & (lengths > 0)
    normals = np.where(usable, normals / np.where(usable, lengths, 1), 0).astype(np.float32)
    mesh.attributes.remove(attribute)
    setter(mesh, normals)
    mesh.update()


def _meshes(context: bpy.types.Context) -> list[Any]:
    chosen = [*context.selected_objects, *([context.object] if context.object else [])]
    return [obj for obj in dict.fromkeys(chosen) if obj.type == "MESH"]
