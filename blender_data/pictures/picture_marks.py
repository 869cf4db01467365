"""Solids that represent objects without a surface in small pictures: bones, edges and points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bpy
import numpy as np
import numpy.typing as npt

from .. import arrays
from ..rigging.joint_weights import world_points

Array = npt.NDArray[np.float64]

_COLOR = (0.35, 0.5, 0.68, 1.0)
"""Linear colour of the solids, which differs from all colours that Blender uses."""
_GAP = 0.5
"""Thickness of the connections between bones, relative to that of points."""
_MOST = 20_000
"""Largest number of edges or points shown for each mesh; if there are more, only every n-th is shown."""
_DOT = 0.012
"""Radius of points and edges, relative to the largest side of the common bounding box."""
_THICKNESS = 0.1
"""Half width of a bone relative to its length, as Blender draws it."""
_THINNEST = 0.012
"""Smallest half width of bones, relative to the largest side of the common bounding box, so that short bones are
visible."""
_THICKEST = 0.03
"""Largest half width of bones, relative to the largest side of the common bounding box."""
_COLLAR = 0.12
"""Distance from a bone's head to its thickest point, relative to its length."""

_TRIANGLES = np.array(
    [(0, 2, 1), (0, 3, 2), (0, 4, 3), (0, 1, 4), (5, 1, 2), (5, 2, 3), (5, 3, 4), (5, 4, 1)], np.int32
)
"""Triangles of an octahedron: head (0), four points around the thickest part (1 to 4), tail (5)."""


def has_faces(objects: Iterable[bpy.types.Object]) -> bool:
    """Return whether one of the objects has a surface that can be rendered."""
    return any(
        (one.type == "MESH" and (len(one.data.polygons) or one.modifiers))
        or one.type in {"CURVE", "SURFACE", "META", "FONT", "CURVES", "POINTCLOUD", "VOLUME"}
        or (one.type == "EMPTY" and one.instance_type == "COLLECTION")
        for one in objects
    )


def marks_for(objects: Sequence[bpy.types.Object]) -> list[bpy.types.Object]:
    """Return objects that show the bones of armatures, or if there are none, the edges and points of meshes."""
    armatures = [one for one in objects if one.type == "ARMATURE" and len(one.data.bones)]
    if armatures:
        bones = _joined([_bones(one) for one in armatures])
        gaps = _joined([_gaps(one) for one in armatures])
        side = _largest_side(*bones)
        return [_solids("Bones", *bones, side, is_bone=True), _solids("Gaps", *gaps, side * _GAP, is_bone=False)]
    ends = _joined([_edges_and_points(one) for one in objects if one.type == "MESH"])
    return [_solids("Points", *ends, _largest_side(*ends), is_bone=False)] if len(ends[0]) else []


def _joined(some: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Concatenate pairs of arrays, without rows that contain NaN or infinite values."""
    heads = np.concatenate([np.zeros((0, 3)), *(one[0] for one in some)])
    tails = np.concatenate([np.zeros((0, 3)), *(one[1] for one in some)])
    finite = np.isfinite(heads).all(axis=1) & np.isfinite(tails).all(axis=1)
    return heads[finite], tails[finite]


def _largest_side(heads: Array, tails: Array) -> float:
    """Return the largest side of the bounding box of all ends; 1 if it is zero."""
    return (float(np.ptp(np.concatenate((heads, tails)), axis=0).max()) if len(heads) else 0.0) or 1.0


def _bones(armature: bpy.types.Object) -> tuple[Array, Array]:
    """Return the heads and tails of the bones of an armature in its pose, each (B, 3), in world space."""
    posed = armature.pose.bones
    matrix = np.array(armature.matrix_world, np.float64)
    ends = (arrays.read(posed, name, 3).astype(np.float64) for name in ("head", "tail"))
    heads, tails = (end @ matrix[:3, :3].T + matrix[:3, 3] for end in ends)
    return heads, tails


def _gaps(armature: bpy.types.Object) -> tuple[Array, Array]:
    """Return the ends of connections from bones to children that start neither at their head nor at their tail."""
    heads, tails = _bones(armature)
    numbers = {bone.name: number for number, bone in enumerate(armature.pose.bones)}
    pairs = [(numbers[bone.parent.name], number) for number, bone in enumerate(armature.pose.bones) if bone.parent]
    parents, children = np.array(pairs, np.intp).reshape(-1, 2).T
    apart = np.linalg.norm(heads[children] - tails[parents], axis=1)
    apart = np.minimum(apart, np.linalg.norm(heads[children] - heads[parents], axis=1))
    open_ = apart > _GAP * _DOT * _largest_side(heads, tails)
    return heads[parents[open_]], heads[children[open_]]


def _edges_and_points(owner: bpy.types.Object) -> tuple[Array, Array]:
    """Return the ends of a mesh's edges, each (E, 3), in world space; without edges, each point twice."""
    mesh: bpy.types.Mesh = owner.data
    points = world_points(owner)
    edges = arrays.read(mesh.edges, "vertices", 2, np.int32)
    pairs = edges if len(edges) else np.arange(len(points), dtype=np.int32)[:, None].repeat(2, axis=1)
    pairs = pairs[:: max(1, -(-len(pairs) // _MOST))]
    return points[pairs[:, 0]], points[pairs[:, 1]]


def _solids(name: str, heads: Array, tails: Array, side: float, *, is_bone: bool) -> bpy.types.Object:
    """Return an object with an octahedron from each head to its tail, (N, 3) each: bones, edges or points.

    The thickness depends on ``side``, the largest side of the common bounding box.
    """
    along = tails - heads
    lengths = np.linalg.norm(along, axis=1)
    least = side * (_THINNEST if is_bone else _DOT)
    axis = np.where(lengths[:, None] > least * 1e-3, along, (0.0, 0.0, 1.0))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    short = lengths < 2 * least
    heads = heads - np.where(short[:, None], axis * least, 0.0)
    lengths = np.where(short, 2 * least, lengths)
    width = np.clip(lengths * _THICKNESS, least, side * _THICKEST) if is_bone else np.full(len(lengths), least)
    collar = np.where(short, 0.5, _COLLAR if is_bone else 0.5)

    other = np.where(np.abs(axis[:, 2:]) < 0.9, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
    sideways = np.cross(axis, other)
    sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
    upwards = np.cross(axis, sideways)
    middle = heads + axis * (lengths * collar)[:, None]
    ring = [middle + part * width[:, None] for part in (sideways, upwards, -sideways, -upwards)]
    points = np.stack((heads, *ring, heads + axis * lengths[:, None]), axis=1)
    triangles = _TRIANGLES[None] + 6 * np.arange(len(heads), dtype=np.int32)[:, None, None]

    mesh = bpy.data.meshes.new(name)
    arrays.fill_triangles(mesh, points.reshape(-1, 3), triangles)
    material = bpy.data.materials.new(name)
    material.diffuse_color = _COLOR
    mesh.materials.append(material)
    mesh.shade_flat()
    mesh.update(calc_edges=True)
    return bpy.data.objects.new(name, mesh)
