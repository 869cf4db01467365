"""Rate and range of a scene."""

from __future__ import annotations

import bpy


class TimeLine:
    """The frames of a scene, and how many a second has, as they were when this was made, so that they can be again."""

    def __init__(self, scene: bpy.types.Scene) -> None:
        render = scene.render
        self._rate = (render.fps, render.fps_base)
        self._range = (scene.frame_start, scene.frame_end)

    def restore(self, scene: bpy.types.Scene) -> None:
        """Give a scene these frames."""
        scene.render.fps, scene.render.fps_base = self._rate
        scene.frame_start, scene.frame_end = self._range
