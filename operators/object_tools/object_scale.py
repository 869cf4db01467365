"""Apply the scale of mesh objects where this changes nothing but their mesh."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np

from ...io_formats.core.messages import Text

_EVEN = 1e-3
"""Share of the largest factor by which the factors of an even scale may differ."""


def has_even_scale(scale: Any) -> bool:
    """Return whether a scale is positive and the same along all axes."""
    factors = np.array(scale, np.float64)
    return bool((factors > 0).all() and np.ptp(factors) <= _EVEN * factors.max())


def scale_refusal(obj: Any) -> Text | None:
    """Return why applying the scale of a mesh object would change more than its mesh, or None."""
    if obj.data.users - obj.data.use_fake_user > 1:
        return Text("its mesh is shared with other objects; make it a single user first")
    keys = obj.data.shape_keys
    if obj.animation_data is not None or (keys is not None and keys.animation_data is not None):
        return Text("it is animated; apply the scale by hand")
    if obj.children or len(obj.constraints) or not _is_free(obj):
        return Text("it has a parent, children or constraints; apply the scale by hand")
    if any(modifier.type != "ARMATURE" for modifier in obj.modifiers):
        return Text("its modifiers depend on the scale; apply the scale by hand")
    return None


def _is_free(obj: Any) -> bool:
    """Return whether an object has no parent, or an armature that does not scale it unevenly."""
    if obj.parent is None:
        return True
    if obj.parent.type != "ARMATURE" or obj.parent_type not in {"OBJECT", "ARMATURE"}:
        return False
    above = obj.parent.matrix_world @ obj.matrix_parent_inverse
    return has_even_scale(above.to_scale()) and above.determinant() > 0


def apply_scale(obj: Any) -> None:
    """Apply the scale so that faces keep their front side; Blender before 5 flips the faces of mirrored objects."""
    scale = np.array(obj.scale)
    data = obj.data
    before = _first_normal(data) * np.sign(scale)
    context = {"object": obj, "active_object": obj, "selected_objects": [obj], "selected_editable_objects": [obj]}
    with bpy.context.temp_override(**context):
        bpy.ops.object.transform_apply(location=False, rotation=False, scale=True)
    if scale.prod() < 0 and float(before @ _first_normal(data)) < 0:
        data.flip_normals()


def _first_normal(data: Any) -> Any:
    return np.array(data.polygons[0].normal) if len(data.polygons) else np.zeros(3)
