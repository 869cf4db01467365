"""What the tests of models with a place share: exports to a scene, and its nodes as they stand in the world."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from helpers_export import bpy
from helpers_models import local_matrix, scene_of

Array = npt.NDArray[np.float64]


def placed(source: Any = None, **options: Any) -> Any:
    """Export a source (the collection Model unless given) as models with a place, nothing made unless asked for."""
    return scene_of("SECOND_LIFE_MESH", source, **{"missing_levels": "COPY", **options})


def world_of(node: Any) -> Array:
    return local_matrix(node.translation, node.rotation, node.scale)


def placed_points(node: Any) -> Array:
    """Return a node's points (P, 3) where they stand."""
    world = world_of(node)
    return np.asarray(node.mesh.points @ world[:3, :3].T + world[:3, 3], float)


def placed_triangles(node: Any) -> Array:
    """Return a node's triangles (T, 3, 3) where they stand."""
    return placed_points(node)[node.mesh.corner_point.reshape(-1, 3)]


def placed_normals(node: Any) -> Array:
    """Return position and normal of each corner, (C, 6), where they stand."""
    turned = node.mesh.normal.at_corners(node.mesh.corner_point) @ np.linalg.inv(world_of(node)[:3, :3])
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    return np.concatenate([placed_points(node)[node.mesh.corner_point], turned], axis=1)


def shown_normals(obj: Any) -> Array:
    """Return position and normal of each corner (C, 6) of an evaluated object in the world."""
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = seen.to_mesh()
    mesh.calc_loop_triangles()
    world = np.array(seen.matrix_world, float)
    loops = [loop for triangle in mesh.loop_triangles for loop in triangle.loops]
    points = np.array([mesh.vertices[mesh.loops[loop].vertex_index].co for loop in loops], float)
    normals = np.array([mesh.corner_normals[loop].vector for loop in loops], float)
    seen.to_mesh_clear()
    turned = normals @ np.linalg.inv(world[:3, :3])  # stays outward where a scale mirrors
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    return np.concatenate([points @ world[:3, :3].T + world[:3, 3], turned], axis=1)


def parts_of(scene: Any, name: str) -> dict[str, Any]:
    """Return the nodes that belong to a model by what they are: ``lod 1``, ``physics``, ``hull``, ``base``."""
    number = next(at for at, node in enumerate(scene.nodes) if node.name == name)
    found: dict[str, Any] = {}
    for node in scene.nodes:
        if node.lod_of == number:
            found[f"lod {node.lod}"] = node
        if node.shape_of == number:
            kind = "base" if node.is_base_hull else node.role.value
            found.setdefault(kind, node)
    return found
