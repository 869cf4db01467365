"""Number of triangles that objects will have in a file, counted before the export."""

from __future__ import annotations

import bpy


def triangle_count(context: bpy.types.Context, obj: bpy.types.Object, *, use_modifiers: bool) -> int:
    """Return the number of triangles of a mesh object without its instances.

    It is 0 for other types of objects, and in edit mode.
    """
    if obj.type != "MESH" or obj.mode == "EDIT":
        return 0
    data = obj.evaluated_get(context.evaluated_depsgraph_get()).data if use_modifiers else obj.data
    return len(data.loops) - 2 * len(data.polygons)
