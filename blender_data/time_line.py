"""Rate and range of a scene."""

from __future__ import annotations

import bpy


class TimeLine:
    """Snapshot of the frame rate and range of a scene."""

    def __init__(self, scene: bpy.types.Scene) -> None:
        render = scene.render
        self._rate = (render.fps, render.fps_base)
        self._range = (scene.frame_start, scene.frame_end)

    def restore(self, scene: bpy.types.Scene) -> None:
        """Restore the frame rate and range of a scene."""
        scene.render.fps, scene.render.fps_base = self._rate
        scene.frame_start, scene.frame_end = self._range
