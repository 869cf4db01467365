"""Add the faces of convex hulls, of which files store only the points."""

from __future__ import annotations

import bmesh
import bpy


def add(built: bpy.types.Mesh) -> None:
    """Add the faces of the convex hull to a mesh of points; all points are kept in order.

    Coplanar points get a flat polygon. Points on a line or at one position get no faces.
    """
    made = bmesh.new()
    try:
        made.from_mesh(built)
        bmesh.ops.convex_hull(made, input=made.verts[:], use_existing_faces=False)
        made.to_mesh(built)
    finally:
        made.free()
    built.meshferry.file_corners = len(built.loops)
