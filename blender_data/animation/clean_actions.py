"""Keys of actions that hold the shape of a figure, as keying whole characters makes them."""

import bpy

from .. import animated_blocks
from ..rigging import body_shapes
from . import pose_curves


def shape_curves(armature: bpy.types.Object) -> list[bpy.types.FCurve]:
    """Return the f-curves of an armature's active action that hold its shape, or one that it had.

    These are all scales of bones that follow sliders, and their constant locations, except that of the root bone.
    """
    data, shape = armature.animation_data, body_shapes.shape_channels(armature)
    if data is None or data.action is None or shape is None:
        return []
    by_path: dict[str, list[bpy.types.FCurve]] = {}
    for curve in animated_blocks.action_curves(data.action, data.action_slot):
        by_path.setdefault(curve.data_path, []).append(curve)
    shaped = set(shape.names)
    found = []
    for path, curves in by_path.items():
        bone, channel = pose_curves.bone_and_channel(path)
        is_constant = channel == "location" and bone != shape.root and not any(map(pose_curves.varies, curves))
        if bone in shaped and (channel == "scale" or is_constant):
            found += curves
    return found


def clean(armature: bpy.types.Object) -> int:
    """Remove the keys that hold a shape from an armature's active action, and show its shape.

    Return the number of bones whose keys were removed.
    """
    curves = shape_curves(armature)
    bones = {pose_curves.bone_and_channel(curve.data_path)[0] for curve in curves}
    if curves:
        animated_blocks.remove_curves(armature.animation_data.action, curves)
        body_shapes.apply(armature)
    return len(bones)
