"""Lights and cameras of Blender as content of placed nodes."""

from __future__ import annotations

import math

import bpy

from ....io_formats.core.placement import Camera, Light, LightKind
from ...importing.placing.node_objects import WATTS

_KINDS = {"POINT": LightKind.POINT, "SPOT": LightKind.SPOT, "SUN": LightKind.SUN}


def read_light(data: bpy.types.Light) -> Light | None:
    """Return a light with the values that an import makes the same light of, or None for area lights."""
    kind = _KINDS.get(data.type)
    if kind is None:
        return None
    color = (data.color[0], data.color[1], data.color[2])
    if kind is LightKind.SUN:
        return Light(kind, color, data.energy)
    is_spot = kind is LightKind.SPOT
    return Light(
        kind,
        color,
        data.energy / WATTS,
        data.shadow_soft_size,
        cone=data.spot_size if is_spot else 0.0,
        softness=data.spot_blend if is_spot else 0.0,
    )


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
