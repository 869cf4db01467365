"""Selection of objects after an import, and their framing in a 3D view of the window."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import bpy

from .preferences import frames_imported

MARGIN = 1.25
"""Factor on the distance from which Blender frames objects. It fits the longest side of their bounding box, which cuts
off corners of ground and rooms.
"""


@dataclass(frozen=True)
class View:
    """A 3D view in a window."""

    window: Any
    area: Any

    @property
    def space(self) -> Any:
        """The settings of the view."""
        return self.area.spaces.active

    @property
    def is_free(self) -> bool:
        """Whether framing moves the view to any object: not in camera view, local view or locked to an object."""
        space = self.space
        is_locked = space.lock_object is not None or space.lock_cursor
        return space.local_view is None and space.region_3d.view_perspective != "CAMERA" and not is_locked

    def region(self, kind: str) -> Any:
        """Return the region of a type, such as WINDOW or UI (the sidebar)."""
        return next(region for region in self.area.regions if region.type == kind)

    def frame(self, *, only_selected: bool) -> None:
        """Frame the selected or all objects; extend the clip range if it would hide some of them."""
        with bpy.context.temp_override(window=self.window, area=self.area, region=self.region("WINDOW")):
            if only_selected:
                bpy.ops.view3d.view_selected(use_all_regions=True)
            else:
                bpy.ops.view3d.view_all(use_all_regions=True)
        space = self.space
        space.region_3d.view_distance *= MARGIN
        space.clip_start, space.clip_end = clip_range_for(
            space.clip_start, space.clip_end, space.region_3d.view_distance
        )


def views(context: bpy.types.Context) -> list[View]:
    """Return the 3D views of all windows: the view of the context, then the others of its window, then the rest.

    Within each of these groups, large views come first.
    """
    if bpy.app.background:  # its windows are not shown
        return []
    found = [
        View(window, area)
        for window in context.window_manager.windows
        for area in window.screen.areas
        if area.type == "VIEW_3D"
    ]

    def rank(view: View) -> tuple[bool, bool, int]:
        size = view.area.width * view.area.height
        return view.area == context.area, view.window == context.window, size

    return sorted(found, key=rank, reverse=True)


def frame_imported(context: bpy.types.Context, objects: Iterable[Any]) -> None:
    """Frame imported objects, which are selected, unless the preferences disable this or none of them is visible.

    The framed view is the view in which the import was started, or else the largest one. Camera and local views are not
    changed, nor views of windows with another scene or view layer.
    """
    shown_in = context.view_layer
    view = next((view for view in views(context) if view.is_free and view.window.view_layer == shown_in), None)
    if view is None or not frames_imported() or context.mode != "OBJECT":
        return
    if any(obj.select_get() and obj.visible_get() for obj in objects):
        view.frame(only_selected=True)


def clip_range_for(start: float, end: float, distance: float) -> tuple[float, float]:
    """Return a clip start and end that show everything that is framed from a distance; the present ones if they do.

    The framed objects are within three times the distance: without the margin, the farthest corner of a cube is at 2.0
    times the distance for a lens of 50 mm, at 2.5 times for one of 20 mm. A raised clip end leaves room for zooming out
    and is 1, 2 or 5 times a power of ten. The clip start is raised in proportion, since the depth buffer otherwise
    mixes up near and far surfaces: with a start of 1 cm and an end of 200 km, boxes of 400 m vanish in the ground below
    them.
    """
    if end >= 3.0 * distance:
        return start, end
    needed = 4.0 * distance
    power = 10.0 ** math.floor(math.log10(needed))
    raised = next(step * power for step in (1, 2, 5, 10) if step * power >= needed)
    return max(start, min(start * raised / end, distance / 1000)), raised


def leave_edit_mode(context: bpy.types.Context) -> None:
    """Switch to object mode. Changes in edit mode are applied."""
    if context.mode != "OBJECT" and bpy.ops.object.mode_set.poll():  # type: ignore[call-arg]  # wrong in the stubs
        bpy.ops.object.mode_set(mode="OBJECT")


def enter_pose_mode() -> None:
    """Switch the active armature to pose mode, unless it is linked from another file and cannot be posed."""
    if bpy.ops.object.mode_set.poll():  # type: ignore[call-arg]  # wrong in the stubs
        bpy.ops.object.mode_set(mode="POSE")


def select_only(context: bpy.types.Context, objects: Iterable[Any]) -> None:
    """Select only these objects and make the first of them active; if none is visible, keep the selection."""
    layer = context.view_layer
    # ``layer.objects`` has newly linked objects only after an update. Names are not unique among linked objects.
    layer.update()
    known = set(layer.objects)
    there = [obj for obj in objects if obj in known and obj.visible_get(view_layer=layer)]
    if not there:
        return
    for obj in tuple(layer.objects.selected):
        obj.select_set(False, view_layer=layer)
    for obj in there:
        obj.select_set(True, view_layer=layer)
    layer.objects.active = there[0]
