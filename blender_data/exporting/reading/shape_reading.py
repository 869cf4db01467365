"""Shape keys of objects, as stored or with modifiers and vertex group masks applied."""

from __future__ import annotations

from collections.abc import Iterator

import bpy
import numpy as np

from ....io_formats.core.scene import FloatArray
from ... import arrays, scene_state
from ...rigging import joint_weights


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
    """Move the points of a copied mesh to the Basis shape key, from which the original's points may differ."""
    keys = getattr(obj.data, "shape_keys", None)
    if keys is None:
        return
    points = arrays.read(keys.reference_key.points, "co", 3)
    if not np.array_equal(points, arrays.points_of(data)):
        set_points(data, points)


def set_points(data: bpy.types.Mesh, points: FloatArray) -> None:
    """Move the points of a mesh."""
    data.attributes["position"].data.foreach_set("vector", arrays.flat(points))
    data.update()


def stored_shapes(obj: bpy.types.Object) -> Iterator[tuple[bpy.types.ShapeKey, FloatArray]]:
    """Yield each shape key, including muted ones, and the points (P, 3) of the mesh with only this key applied.

    If a vertex group masks the key, it is applied.
    """
    keys = shape_keys(obj)
    basis = arrays.read(obj.data.shape_keys.reference_key.points, "co", 3)
    masks: dict[str, FloatArray] = {}
    if masked := {key.vertex_group for key in keys} - {""}:
        weights = joint_weights.read(obj, masked)
        masks = dict(zip(weights.joints, weights.values.T, strict=True))
    for key in keys:
        points = arrays.read(key.points, "co", 3)
        mask = masks.get(key.vertex_group)
        yield key, points if mask is None else (basis + mask[:, None] * (points - basis)).astype(np.float32)


def shown_alone(context: bpy.types.Context, obj: bpy.types.Object) -> Iterator[bpy.types.ShapeKey]:
    """Show and yield the shape keys of an object one at a time."""
    keys = shape_keys(obj)
    shown = ((obj, "show_only_shape_key"), (obj, "active_shape_key_index"), *((key, "mute") for key in keys))
    with scene_state.restored(shown):
        obj.show_only_shape_key = True
        for key in keys:
            key.mute = False  # a muted key would show the Basis
            obj.active_shape_key_index = obj.data.shape_keys.key_blocks.find(key.name)
            context.view_layer.update()
            yield key
