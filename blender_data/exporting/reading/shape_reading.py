"""Shape keys of objects, as stored or with modifiers and vertex group masks applied."""

from __future__ import annotations

from collections.abc import Iterator

import bpy
import numpy as np

from ....io_formats.core.scene import FloatArray
from ...mesh_data import vertex_weights
from .mesh_reading import points_of


def shape_keys(obj: bpy.types.Object) -> list[bpy.types.ShapeKey]:
    """Return the shape keys of an object except its Basis."""
    keys = getattr(obj.data, "shape_keys", None)
    return [key for key in keys.key_blocks if key != keys.reference_key] if keys is not None else []


def is_reshaped(obj: bpy.types.Object) -> bool:
    """Return whether the values of shape keys change the shape of an object."""
    keys = shape_keys(obj)
    if not keys:
        return False
    if obj.show_only_shape_key or not obj.data.shape_keys.use_relative:
        return True
    return any(key.value and not key.mute for key in keys)


def show_basis(obj: bpy.types.Object, data: bpy.types.Mesh) -> None:
    """Move the points of a mesh copy to the Basis shape key, which the points of the original may not match."""
    keys = getattr(obj.data, "shape_keys", None)
    if keys is None:
        return
    points = _points_of_key(keys.reference_key, len(data.vertices))
    if not np.array_equal(points, points_of(data)):
        set_points(data, points)


def set_points(data: bpy.types.Mesh, points: FloatArray) -> None:
    """Move the points of a mesh."""
    data.attributes["position"].data.foreach_set("vector", np.ascontiguousarray(points).reshape(-1))
    data.update()


def stored_shapes(obj: bpy.types.Object, data: bpy.types.Mesh) -> Iterator[tuple[bpy.types.ShapeKey, FloatArray]]:
    """Yield each shape key, including muted ones, and the points (P, 3) of the mesh with only this key applied.

    The vertex group that masks a key is applied.
    """
    keys = shape_keys(obj)
    count = len(data.vertices)
    basis = _points_of_key(obj.data.shape_keys.reference_key, count)
    masks = _masks(obj, data) if any(key.vertex_group for key in keys) else {}
    for key in keys:
        points = _points_of_key(key, count)
        mask = masks.get(key.vertex_group)
        yield key, points if mask is None else (basis + mask[:, None] * (points - basis)).astype(np.float32)


def _points_of_key(key: bpy.types.ShapeKey, count: int) -> FloatArray:
    points = np.empty(count * 3, np.float32)
    key.points.foreach_get("co", points)
    return points.reshape(-1, 3)


def _masks(obj: bpy.types.Object, data: bpy.types.Mesh) -> dict[str, FloatArray]:
    """Return the weight of each point, (P,), in each vertex group that masks a shape key."""
    counts, groups, weights = vertex_weights.read(data)
    vertex = np.repeat(np.arange(len(counts)), counts)
    masks = {}
    for name in {key.vertex_group for key in shape_keys(obj)} & set(obj.vertex_groups.keys()):
        of_group = groups == obj.vertex_groups[name].index
        masks[name] = np.zeros(len(counts), np.float32)
        masks[name][vertex[of_group]] = weights[of_group]
    return masks


def shown_alone(context: bpy.types.Context, obj: bpy.types.Object) -> Iterator[bpy.types.ShapeKey]:
    """Show and yield the shape keys of an object one at a time; the caller restores the original state."""
    obj.show_only_shape_key = True
    for key in shape_keys(obj):
        key.mute = False  # a muted key shows the Basis
        obj.active_shape_key_index = obj.data.shape_keys.key_blocks.find(key.name)
        context.view_layer.update()
        yield key
