"""The measured model, built once in Blender's own data blocks.

A displaced grid with everything that Timbermesh, glTF and PLY hold alike: custom normals, one UV
layer cut into islands, byte colours and two materials. It is made with ``foreach_set`` so that
four million triangles take a moment, and it is the same for every exporter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

SEAM_EVERY = 20
"""Interval of point columns on a UV seam; files split 5 % of the vertices."""

OBJECT_NAME = "Model"
COLLECTION_NAME = "Bench"

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """Quads of the grid in both directions; each is two triangles."""

    columns: int
    rows: int

    @property
    def triangles(self) -> int:
        return 2 * self.columns * self.rows

    @property
    def points(self) -> int:
        return (self.columns + 1) * (self.rows + 1)


def grid_for(triangles: int) -> Grid:
    """Return a grid twice as wide as high with about that many triangles (exact for 1,000,000)."""
    rows = max(1, round(math.sqrt(triangles / 4)))
    return Grid(max(1, round(triangles / (2 * rows))), rows)


def empty_file() -> None:
    """Start from an empty scene, with the preferences as they are."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)


def build(triangles: int, *, uv_maps: int = 1, use_colors: bool = True) -> bpy.types.Object:
    """Build the model in a collection of its own, linked to the scene; return the object."""
    grid = grid_for(triangles)
    mesh = bpy.data.meshes.new(OBJECT_NAME)
    corners = _corners(grid)
    mesh.vertices.add(grid.points)
    mesh.loops.add(len(corners))
    mesh.polygons.add(grid.triangles)
    points, normals = _surface(grid)
    mesh.attributes["position"].data.foreach_set("vector", points.ravel())
    mesh.loops.foreach_set("vertex_index", corners)
    mesh.polygons.foreach_set("loop_start", np.arange(0, len(corners), 3, dtype=np.int32))
    for name in ("Clay", "Stone"):
        mesh.materials.append(bpy.data.materials.get(name) or bpy.data.materials.new(name))
    # Seven bands: an uneven split, so that no exporter can share one index list between the materials.
    bands = np.arange(grid.rows, dtype=np.int32) * 7 // grid.rows % 2
    mesh.polygons.foreach_set("material_index", np.repeat(bands, 2 * grid.columns))
    mesh.update(calc_edges=True)
    uvs = _uvs(grid)
    for number in range(uv_maps):  # the further ones as lightmaps have them: the same islands, squeezed
        name = "UVMap" if not number else f"UVMap {number + 1}"
        mesh.uv_layers.new(name=name).uv.foreach_set("vector", (uvs / np.float32(number + 1)).ravel())
    if use_colors:
        colors = mesh.color_attributes.new("Color", "BYTE_COLOR", "CORNER")
        colors.data.foreach_set("color_srgb", _colors(points)[corners].ravel())
    mesh.shade_smooth()
    mesh.normals_split_custom_set_from_vertices(normals)
    obj = bpy.data.objects.new(OBJECT_NAME, mesh)
    collection = bpy.data.collections.new(COLLECTION_NAME)
    collection.objects.link(obj)
    bpy.context.scene.collection.children.link(collection)
    bpy.context.view_layer.update()
    return obj


def surface_arrays(grid: Grid) -> tuple[Floats, Floats, Floats, Ints]:
    """Return points (P, 3), their normals (P, 3), the UV of all corners (C, 2), and the points of all corners (C,)."""
    return (*_surface(grid), _uvs(grid), _corners(grid))


def _corners(grid: Grid) -> Ints:
    """Return the points of all corners, (6 columns rows,), counter-clockwise seen from above."""
    width = grid.columns + 1
    first = (np.arange(grid.rows, dtype=np.int32)[:, None] * width + np.arange(grid.columns, dtype=np.int32)).ravel()
    quad = first[:, None] + np.array([0, 1, width + 1, 0, width + 1, width], np.int32)
    return np.ascontiguousarray(quad.ravel(), np.int32)


def _surface(grid: Grid) -> tuple[Floats, Floats]:
    """Return points and normals, (P, 3) each: rippled waves; normals lean a little, so that they are custom."""
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 20, grid.columns + 1), np.linspace(0, 10, grid.rows + 1)))
    z = np.sin(x) * np.cos(y) + 0.02 * np.sin(9 * x + 7 * y)
    slope_x = np.cos(x) * np.cos(y) + 0.18 * np.cos(9 * x + 7 * y)
    slope_y = -np.sin(x) * np.sin(y) + 0.14 * np.cos(9 * x + 7 * y)
    normals = np.stack([0.1 - slope_x, -slope_y, np.ones_like(z)], axis=1)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return np.stack([x, y, z], axis=1).astype(np.float32), normals.astype(np.float32)


def _uvs(grid: Grid) -> Floats:
    """Return the UV of all corners, (C, 2): strips of columns, each an island with its own offset."""
    column = np.tile(np.arange(grid.columns), grid.rows)[:, None]
    row = np.repeat(np.arange(grid.rows), grid.columns)[:, None]
    u = (column + np.array([0, 1, 1, 0, 1, 0])) / grid.columns + 0.01 * (column // SEAM_EVERY % 2)
    v = (row + np.array([0, 0, 1, 0, 1, 1])) / grid.rows
    return np.stack([u, v], axis=2).reshape(-1, 2).astype(np.float32)


def _colors(points: Floats) -> Floats:
    """Return an opaque 8-bit colour a point, (P, 4), as k / 255."""
    steps = np.floor((points - points.min(axis=0)) / np.ptp(points, axis=0) * 255)
    return np.concatenate([steps / 255, np.ones((len(points), 1))], axis=1).astype(np.float32)
