"""Calls of operators of Blender and of add-ons: error messages, and selection, active object and mode around them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..io_formats.core.errors import MeshferryError

if TYPE_CHECKING:  # the command line uses ``operator_error`` where there is no Blender
    import bpy


def operator_error(problem: Exception) -> str:
    """Return an operator's error message in one line; of a traceback only the last line, which names the exception."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    if any(line.startswith("Traceback ") or line.endswith("Traceback (most recent call last):") for line in lines):
        raised = [line for line in lines if not line.startswith(("Location:", "File ")) and ": " in line]
        lines = raised[-1:] or lines
    text = " ".join(" ".join(line.removeprefix("Error: ") for line in lines).split())
    return text.removesuffix(".") or "no reason given"


class Selection:
    """Snapshot of the selected objects of a view layer, the active object and its mode."""

    def __init__(self, context: bpy.types.Context) -> None:
        self.layer = context.view_layer
        self.active = self.layer.objects.active
        self.mode = _mode(self.active)
        self.selected = list(self.layer.objects.selected)

    def give_way_to(self, obj: bpy.types.Object) -> None:
        """Make another object active, in object mode, with nothing else selected."""
        import bpy

        if self.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        for other in self.selected:
            other.select_set(False, view_layer=self.layer)
        self.layer.objects.active = obj

    def restore(self) -> None:
        """Restore selection, active object and mode."""
        import bpy

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


def require_own_scene(context: bpy.types.Context) -> None:
    """Raise an error if the scene is linked from another file, so that no object can be added to it."""
    scene = context.scene
    if scene.library is not None:
        raise MeshferryError(
            "The scene '{}' is linked from {}, so nothing can be added to it; switch to a scene of this file",
            scene.name,
            scene.library.filepath,
        )


@contextlib.contextmanager
def edit_mode(context: bpy.types.Context, obj: bpy.types.Object) -> Iterator[None]:
    """Put an armature object into edit mode without X mirroring, even one that is in no collection.

    Afterwards restore mode, selection and active object.
    """
    import bpy

    before, mirrors = Selection(context), obj.data.use_mirror_x
    # Link it to the scene's own collection, which cannot be hidden or excluded.
    home = context.scene.collection
    is_there = home in obj.users_collection  # linked objects may have the same name, so compare objects
    if not is_there:
        require_own_scene(context)
        home.objects.link(obj)
    try:
        before.give_way_to(obj)
        bpy.ops.object.mode_set(mode="EDIT")
        obj.data.use_mirror_x = False
        yield
    finally:
        obj.data.use_mirror_x = mirrors
        if obj.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        if not is_there:
            home.objects.unlink(obj)
        before.restore()


@contextlib.contextmanager
def edited(context: bpy.types.Context, data: bpy.types.Armature) -> Iterator[None]:
    """Put armature data into edit mode by a temporary object, since the user's object may be hidden."""
    import bpy

    stand_in = bpy.data.objects.new("Meshferry", data)
    try:
        with edit_mode(context, stand_in):
            yield
    finally:
        bpy.data.objects.remove(stand_in)
