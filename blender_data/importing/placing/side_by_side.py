"""Arrange the models of several files next to each other."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
from mathutils import Vector

_GAP = 0.1
"""Gap between two models, relative to the width of the widest."""


def place_side_by_side(models: Sequence[Sequence[bpy.types.Object]]) -> None:
    """Move all models but the first along X, so that their bounding boxes are in a row with gaps.

    The delta location is set, which also works for objects with an animated location.

    Parameters
    ----------
    models:
        The objects of each file, in the order along X; files without new objects are skipped.
    """
    ranges = [(model, found) for model in models if (found := _range(model)) is not None]
    gap = _GAP * max((end - start for _, (start, end) in ranges), default=0.0)
    reached = ranges[0][1][0] - gap if ranges else 0.0
    for model, (start, end) in ranges:
        shift = reached + gap - start
        reached = end + shift
        own = set(model)
        for obj in model:
            if obj.parent not in own:
                obj.delta_location.x += shift


def _range(model: Sequence[bpy.types.Object]) -> tuple[float, float] | None:
    """Return the smallest and largest X of a model's visible bounding boxes, or None if it has no objects.

    Blender does not evaluate hidden objects, so they are used only if no object is visible.
    """
    shown = [obj for obj in model if obj.visible_get()] or model
    places = [
        (obj.matrix_world @ Vector(corner)).x if obj.type != "EMPTY" else obj.matrix_world.translation.x
        for obj in shown
        for corner in obj.bound_box
    ]
    return (min(places), max(places)) if places else None
