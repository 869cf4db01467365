"""Snapshot of selection, active object and mode, to restore them."""

from __future__ import annotations

import bpy


class Selection:
    """Snapshot of the selected objects of a view layer, the active object and its mode."""

    def __init__(self, context: bpy.types.Context) -> None:
        self.layer = context.view_layer
        self.active = self.layer.objects.active
        self.mode = _mode(self.active)
        self.selected = list(self.layer.objects.selected)

    def give_way_to(self, obj: bpy.types.Object) -> None:
        """Make another object active, in object mode, with nothing else selected."""
        if self.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        for other in self.selected:
            other.select_set(False, view_layer=self.layer)
        self.layer.objects.active = obj

    def restore(self) -> None:
        """Restore selection, active object and mode."""
        now = self.layer.objects.active
        if now is not None and now != self.active and _mode(now) != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        self.layer.objects.active = self.active
        for other in self.selected:
            other.select_set(True, view_layer=self.layer)
        if _mode(self.active) != self.mode:
            bpy.ops.object.mode_set(mode=self.mode)


def _mode(obj: bpy.types.Object | None) -> str:
    return obj.mode if obj is not None else "OBJECT"
