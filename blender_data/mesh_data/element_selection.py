"""Select elements of a mesh or an armature, given by their indices or names in the exported data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from .. import arrays, compat

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Triangulation:
    """Triangulation of the polygons of a mesh."""

    vertex_of_loop: IntArray
    corner_point: IntArray
    """(C,) int32: the vertex of each corner of the triangles."""
    polygon: IntArray | None = None
    """(T,) int32: the polygon of each triangle; None if all polygons are triangles."""
    loops: IntArray | None = None
    """(C,) int32: the loop of each corner; None if all polygons are triangles."""

    @classmethod
    def of(cls, data: bpy.types.Mesh) -> Triangulation:
        vertex_of_loop = arrays.corner_vertices(data)
        # in this case all polygons are triangles, since none has fewer than 3 corners
        if len(data.loops) == 3 * len(data.polygons):
            return cls(vertex_of_loop, vertex_of_loop)
        data.calc_loop_triangles()
        loops = arrays.read(data.loop_triangles, "loops", 3, np.int32).reshape(-1)
        polygon = arrays.read(data.loop_triangles, "polygon_index", dtype=np.int32)
        return cls(vertex_of_loop, vertex_of_loop[loops], polygon, loops)

    def fits(self, data: bpy.types.Mesh, points: int) -> bool:
        """Return whether a mesh has the topology for which this triangulation was made."""
        if len(data.vertices) != points or len(data.loops) != len(self.vertex_of_loop):
            return False
        return np.array_equal(Triangulation.of(data).vertex_of_loop, self.vertex_of_loop)


_Flags = npt.NDArray[np.bool_]


def is_as_read(context: bpy.types.Context, obj: bpy.types.Object, *, most: int, triangles: bool) -> bool:
    """Return whether exported indices of points (or triangles), up to ``most``, are valid in the object's own mesh.

    They are valid if no modifier adds or removes elements. The object must not be in edit mode.
    """
    if obj.type != "MESH":
        return False
    data = obj.data
    evaluated = obj.evaluated_get(context.evaluated_depsgraph_get()).data
    for name in ("vertices", "polygons", "loops"):
        if len(getattr(evaluated, name)) != len(getattr(data, name)):
            return False
    count = len(Triangulation.of(data).corner_point) // 3 if triangles else len(data.vertices)
    return most < count


def select_points(obj: bpy.types.Object, numbers: Sequence[int]) -> None:
    """Select only these vertices of a mesh object, for edit mode with vertex selection; reveal them if hidden."""
    data = obj.data
    chosen = np.zeros(len(data.vertices), np.bool_)
    chosen[np.asarray(numbers, np.intp)] = True
    _select(data, chosen)


def select_triangles(obj: bpy.types.Object, numbers: Sequence[int]) -> None:
    """Select only the faces of a mesh object that contain these triangles, for edit mode with face selection."""
    data = obj.data
    triangles = np.asarray(numbers, np.intp)
    polygon = Triangulation.of(data).polygon
    faces = np.zeros(len(data.polygons), np.bool_)
    faces[triangles if polygon is None else polygon[triangles]] = True
    corners = np.repeat(faces, arrays.read(data.polygons, "loop_total", dtype=np.int32))
    points = np.zeros(len(data.vertices), np.bool_)
    points[arrays.read(data.loops, "vertex_index", dtype=np.int32)[corners]] = True
    edges = np.zeros(len(data.edges), np.bool_)
    edges[arrays.read(data.loops, "edge_index", dtype=np.int32)[corners]] = True
    _select(data, points, edges, faces)


def _select(data: bpy.types.Mesh, points: _Flags, edges: _Flags | None = None, faces: _Flags | None = None) -> None:
    """Set the selection of vertices, edges and faces, and reveal hidden ones.

    If edges or faces are None, those are selected whose vertices are all selected.
    """
    if edges is None:
        edges = points[arrays.read(data.edges, "vertices", 2, dtype=np.int32)].all(axis=1)
    if faces is None:
        of_corners = points[arrays.read(data.loops, "vertex_index", dtype=np.int32)]
        totals = arrays.read(data.polygons, "loop_total", dtype=np.int32)
        of_face = np.repeat(np.arange(len(data.polygons)), totals)
        faces = np.bincount(of_face[~of_corners], minlength=len(data.polygons)) == 0
    parts: tuple[tuple[Any, _Flags], ...] = ((data.vertices, points), (data.edges, edges), (data.polygons, faces))
    hidden = any(bool((arrays.read(part, "hide", dtype=np.bool_) & chosen).any()) for part, chosen in parts)
    for part, chosen in parts:
        part.foreach_set("select", chosen)
        if hidden:
            part.foreach_set("hide", np.zeros(len(part), np.bool_))
    data.update()


def select_bones(obj: bpy.types.Object, names: Sequence[str]) -> list[str]:
    """Select only these bones of an armature object and make the first one active; return the existing ones.

    Hidden bones and bone collections are revealed.
    """
    bones = obj.data.bones
    found = [name for name in names if name in bones]
    for bone in obj.pose.bones:
        compat.select_bone(bone, chosen=bone.name in found)
    for name in found:
        compat.show_bone(obj.pose.bones[name])
        collections = bones[name].collections
        if len(collections) and not any(collection.is_visible_effectively for collection in collections):
            shown = collections[0]
            while shown is not None:
                shown.is_visible = True
                shown = shown.parent
    if found:
        bones.active = bones[found[0]]
    return found
