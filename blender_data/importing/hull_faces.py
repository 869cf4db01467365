"""Points of a convex hull -> its faces, which files leave out."""

from __future__ import annotations

import bmesh
import bpy


def add(built: bpy.types.Mesh) -> None:
    """Add the faces of the convex hull to a mesh of points; all points are kept in order.

    Coplanar points get a flat polygon, points on a line or at one position nothing.
    """
    made = bmesh.new()
    try:
        made.from_mesh(built)
        bmesh.ops.convex_hull(made, input=made.verts[:], use_existing_faces=False)
        made.to_mesh(built)
    finally:
        made.free()
    built.meshferry.file_corners = len(built.loops)
