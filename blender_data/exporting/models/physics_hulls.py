"""Generation of missing physics shapes: boxes and convex hulls around points."""

import bmesh
import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.scene import FloatArray, IntArray, Mesh
from ....io_formats.geometry.connectivity import parts
from ....io_formats.geometry.triangles import pool_rows
from ....io_formats.geometry.vertices import weld_map
from ... import arrays

MOST_POINTS = 256
"""Largest number of points of one hull."""

_FLAT = 1e-5
"""Thickness relative to the largest extent below which points count as coplanar."""

_BOX = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], np.float32)
_BOX_CORNERS = np.array(
    (0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5),
    np.int32,
).reshape(-1, 3)


@np.errstate(over="ignore", invalid="ignore")  # points may have extreme coordinates
def convex_hull(points: FloatArray) -> Mesh:
    """Return the convex hull of points (P, 3), at most 256 of them, with outward triangles and without layers.

    A larger hull is reduced to the outermost points in 256 directions: the bounds stay the same except for rounding,
    and other points are outside of it by about a hundredth of the size. Coplanar points give a flat two-sided polygon.
    Points on a line, or at one position, give a box around them. Points that are not finite are ignored; if none is
    left,
    the mesh is empty.
    """
    points = _distinct(points)
    if not len(points):
        return _mesh(points, np.empty(0, np.int32))
    centre = points.mean(axis=0, dtype=np.float64)
    extents = np.ptp(points.astype(np.float64), axis=0)
    away = points - centre
    if not extents.max() > 0:
        return box(points)
    _, spread, axes = np.linalg.svd(away / extents.max(), full_matrices=False)
    width = np.ptp(away @ axes.T, axis=0) if len(spread) == 3 else np.zeros(3)
    flat = width < _FLAT * width.max()
    if len(points) < 3 or flat[1]:
        return box(points)
    if flat[2]:
        return _polygon(points, away, axes)
    # Thin objects are scaled to a similar thickness along all axes, so that their hull is as exact as that of others.
    scaled = (away @ axes.T / width).astype(np.float32)
    corner_point = _hull(scaled)
    if not len(corner_point):
        return box(points)
    used = np.unique(corner_point)
    if len(used) > MOST_POINTS:
        used = used[_outermost(scaled[used], points[used])]
        corner_point = _hull(scaled[used])
        points = points[used]
    return _outward(_mesh(points, corner_point))


def hulls_of_parts(mesh: Mesh) -> list[Mesh]:
    """Return the convex hull of each loose part of a mesh; triangles that share a position belong to one part.

    The writer enforces the format's limit on their number.
    """
    part = np.repeat(parts(mesh), 3)
    order = np.argsort(part, kind="stable")
    ends = np.flatnonzero(np.diff(part[order])) + 1
    return [
        convex_hull(mesh.points[np.unique(corners)])
        for corners in np.split(mesh.corner_point[order], ends)
        if len(corners)
    ]


def box(points: FloatArray) -> Mesh:
    """Return the box around points (P, 3) along the axes: 8 points, 12 triangles outward.

    If it is flat on one axis, return a two-sided rectangle of 4 points.
    """
    points = _distinct(points)
    if not len(points):
        return _mesh(points, np.empty(0, np.int32))
    low, high = points.min(axis=0), points.max(axis=0)
    corners, triangles = np.where(_BOX > 0, high, low), _BOX_CORNERS
    flat = high - low <= _FLAT * (high - low).max()
    if np.count_nonzero(flat) == 1:
        # The box is flat on this axis: drop the sides without area, and use the same four points for the other two.
        across = 1 << int(np.argmax(flat))
        kept = ((triangles & across) == (triangles[:, :1] & across)).all(axis=1)
        triangles = triangles[kept] & ~np.int32(across)
    return _mesh(corners, triangles.reshape(-1))


def _mesh(points: FloatArray, corner_point: IntArray) -> Mesh:
    """Return a mesh that contains only the points that triangles use, without layers."""
    used = pool_rows(np.ascontiguousarray(corner_point, np.int32))
    return Mesh(
        np.ascontiguousarray(points[used.chosen], np.float32),
        used.index,
        np.zeros(len(used.index) // 3, np.int32),
        [""],
    )


def _distinct(points: FloatArray) -> FloatArray:
    """Return the finite points, each once."""
    points = np.ascontiguousarray(points, np.float32).reshape(-1, 3)
    points = points[np.isfinite(points).all(axis=1)]
    return points[weld_map([points])[1]]


def _hull(points: FloatArray) -> IntArray:
    """Return the corners (C,) of the convex hull's triangles, as indices of the points (P, 3)."""
    data = bpy.data.meshes.new("hull")
    try:
        arrays.fill_triangles(data, points, np.empty(0, np.int32))
        with arrays.edited(data) as made:  # vertices inside the hull are kept, so that indices stay valid
            bmesh.ops.convex_hull(made, input=made.verts[:], use_existing_faces=False)
            bmesh.ops.triangulate(made, faces=made.faces[:])
        return arrays.corner_vertices(data)
    finally:
        bpy.data.meshes.remove(data)


def _outward(mesh: Mesh) -> Mesh:
    """Reverse the triangles of a convex mesh that face inward."""
    triangles = mesh.corner_point.reshape(-1, 3)
    points = mesh.points.astype(np.float64)
    normals = np.cross(
        points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    )
    inward = np.einsum("ij,ij->i", normals, points[triangles[:, 0]] - points.mean(axis=0)) < 0
    triangles[inward] = triangles[inward][:, ::-1]
    return mesh


def _polygon(points: FloatArray, away: npt.NDArray[np.float64], axes: npt.NDArray[np.float64]) -> Mesh:
    """Return the convex hull of points in a plane: a polygon with triangles on both sides."""
    plane = away @ axes[:2].T
    plane /= np.ptp(plane, axis=0)
    # Blender's convex hull needs a solid, so add an apex above the plane; the triangles at the apex give the outline.
    tip = len(points)
    raised = np.column_stack([plane, np.zeros(tip)])
    corner_point = _hull(np.vstack([raised, [[*plane.mean(axis=0), 1.0]]]).astype(np.float32)).reshape(-1, 3)
    at_tip = (corner_point == tip).any(axis=1)
    outline = np.unique(corner_point[at_tip])
    outline = outline[outline != tip]
    if len(outline) > MOST_POINTS:
        outline = outline[_outermost(raised[outline].astype(np.float32), points[outline])]
    if len(outline) < 3:
        return box(points)
    around = plane[outline] - plane[outline].mean(axis=0)
    outline = outline[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
    fan = np.column_stack([np.full(len(outline) - 2, outline[0]), outline[1:-1], outline[2:]])
    return _mesh(points, np.concatenate([fan, fan[:, ::-1]]).astype(np.int32).reshape(-1))


def _outermost(scaled: FloatArray, points: FloatArray) -> npt.NDArray[np.intp]:
    """Return at most 256 of the points (P, 3): the outermost ones in different directions.

    Directions are evenly distributed in the space of the ``scaled`` points; the six directions of the bounds are among
    them.
    """
    step = np.arange(MOST_POINTS - 6) + 0.5
    height = 1 - 2 * step / len(step)
    angle = step * np.pi * (1 + 5**0.5)  # golden angle: an even distribution
    ring = np.sqrt(1 - height**2)
    directions = np.column_stack([ring * np.cos(angle), ring * np.sin(angle), height]).astype(np.float32)
    bounds = np.concatenate([np.argmin(points, axis=0), np.argmax(points, axis=0)])
    return np.unique(np.concatenate([bounds, np.argmax(scaled @ directions.T, axis=0)]))
