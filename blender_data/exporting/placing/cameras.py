"""Cameras of Blender as content of placed nodes."""

from __future__ import annotations

import math

import bpy

from ....io_formats.core.placement import Camera


def read_camera(obj: bpy.types.Object, scene: bpy.types.Scene) -> Camera:
    """Return a camera with its vertical extent at the resolution of the scene."""
    data = obj.data
    corners = data.view_frame(scene=scene)
    heights = [corner.y for corner in corners]
    height = max(heights) - min(heights)
    is_main = scene.camera == obj
    if data.type == "ORTHO":
        return Camera(0.0, height, data.clip_start, data.clip_end, is_main)
    angle = 2.0 * math.atan2(height / 2.0, -corners[0].z)
    return Camera(angle, 0.0, data.clip_start, data.clip_end, is_main)
