"""Build a Blender scene for rendering a small picture of objects.

Workbench draws it: colours of materials and vertices under a fixed studio light, with cavity and outlines, so that
shapes are recognisable at thumbnail size. The front of a model is towards -Y, seen from slightly right and above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt
from mathutils import Matrix

from .. import arrays
from ..exporting.reading.material_reading import pixels_of
from . import picture_marks
from .picture_colors import show_colors

Array = npt.NDArray[np.float64]

_AZIMUTH = math.radians(32)
_ELEVATION = math.radians(22)
_HALF_VIEW = math.tan(math.radians(11))
"""Tangent of half the camera's angle of view; small, for little perspective."""
_MARGIN = 0.94
"""Share of the picture's width that the model takes up."""
_EXPOSURE = 0.6
"""Exposure in stops, since many materials of real models are dark."""
_LARGE = 200_000
"""Number of points from which edges are smoothed in the finished picture, instead of rendering eight samples."""
_SEEN = 0.1
"""Alpha above which a pixel counts as visible."""
_LEAST_CLIP = 1e-6
"""Smallest near clipping distance of Blender's cameras, in metres."""
_NO_SURFACE = frozenset({"ARMATURE", "CAMERA", "LATTICE", "LIGHT", "LIGHT_PROBE", "SPEAKER"})
_BOX = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], bool)


def make_scene(objects: Sequence[bpy.types.Object], size: int, *, surfaces: bool = True) -> bpy.types.Scene | None:
    """Return a scene with a camera in front of objects, or None if they have nothing visible.

    Colours of meshes are changed, so it is only used if the .blend file is not saved afterwards.

    Parameters
    ----------
    objects:
        Objects of the open file. Coarser levels of detail and physics shapes are shown only if there is nothing else,
        armatures only if there is no surface.
    size:
        Width and height of the picture, in pixels.
    surfaces:
        If false, show edges and points instead, since surfaces may have no area.
    """
    scene = bpy.data.scenes.new("Picture")
    solid = [one for one in objects if one.type not in _NO_SURFACE]
    finest = [one for one in solid if one.data is None or (one.meshferry.lod == 0 and one.meshferry.role == "RENDER")]
    shown = [one for one in finest if not one.hide_render]
    solid = next((some for some in (shown, finest) if any(_may_show(one) for one in some)), solid)
    for one in solid:
        scene.collection.objects.link(one)
        one.hide_render = False
    points = _points(scene)
    if not surfaces or not picture_marks.has_faces(solid):
        for mark in picture_marks.marks_for(objects):
            scene.collection.objects.link(mark)
        points = _points(scene)
    if not len(points):
        return None
    _set_camera(scene, points)
    _set_look(scene, size, is_large=len(points) > _LARGE)
    scene.display.shading.color_type = show_colors(list(scene.objects))
    return scene


def _may_show(one: bpy.types.Object) -> bool:
    """Return whether an object can be visible: it has a visible type, or is an instance of a collection."""
    return one.data is not None or one.instance_type == "COLLECTION"


def _points(scene: bpy.types.Scene) -> Array:
    """Return the points of all visible objects, (P, 3), in world space.

    For instances, only the corners of their bounding boxes are used.
    """
    layer = scene.view_layers[0]
    layer.update()
    found: list[Array] = [np.zeros((0, 3))]
    for instance in layer.depsgraph.object_instances:
        shown = instance.object
        if instance.is_instance or shown.type != "MESH":
            low, high = np.array(shown.bound_box)[[0, 6]]
            points = np.where(_BOX, high, low)
            if shown.type == "EMPTY" or (low > high).any():
                continue
        else:
            points = arrays.read(shown.data.vertices, "co", 3).astype(np.float64)
        matrix = np.array(instance.matrix_world, np.float64)
        placed = points @ matrix[:3, :3].T + matrix[:3, 3]
        found.append(placed[np.isfinite(placed).all(axis=1)])
    return np.concatenate(found)


def _set_camera(scene: bpy.types.Scene, points: Array) -> None:
    """Add a camera to a scene at the nearest location from which all points (P, 3) are visible.

    In the axes of the camera, z points towards the viewer, and t is the tangent of half the angle of view. A camera at
    (a, b, c) sees a point if abs(x - a) <= t (c - z), and the same for y. The extreme values of x + t z and x - t z
    therefore give the smallest c and its a without a search.
    """
    back = np.array(
        (
            math.sin(_AZIMUTH) * math.cos(_ELEVATION),
            -math.cos(_AZIMUTH) * math.cos(_ELEVATION),
            math.sin(_ELEVATION),
        )
    )
    right = np.array((math.cos(_AZIMUTH), math.sin(_AZIMUTH), 0.0))
    axes = np.stack((right, np.cross(back, right), back))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    seen = (points - middle) @ axes.T
    tangent = _HALF_VIEW * _MARGIN
    depth = seen[:, 2:] * tangent
    highest, lowest = (seen[:, :2] + depth).max(axis=0), (seen[:, :2] - depth).min(axis=0)
    distance = float((highest - lowest).max()) / (2 * tangent)
    nearest, farthest = float(seen[:, 2].max()), float(seen[:, 2].min())
    across = max(nearest - farthest, distance * _HALF_VIEW, 10 * _LEAST_CLIP)
    distance = max(distance, nearest + across * 0.1)
    place = axes.T @ np.array((*((highest + lowest) / 2), distance)) + middle

    data = bpy.data.cameras.new("Picture")
    data.angle = 2 * math.atan(_HALF_VIEW)
    data.clip_start = max((distance - nearest) * 0.5, _LEAST_CLIP)
    data.clip_end = distance - farthest + across
    camera = bpy.data.objects.new("Picture", data)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = axes.T, place
    camera.matrix_world = Matrix(matrix.tolist())
    scene.collection.objects.link(camera)
    scene.camera = camera


def is_blank(picture: str) -> bool:
    """Return whether all pixels of a picture file are transparent."""
    image: Any = bpy.data.images.load(picture)
    pixels = pixels_of(image)
    bpy.data.images.remove(image)
    return not bool((pixels[..., 3] > _SEEN).any())


def _set_look(scene: bpy.types.Scene, size: int, *, is_large: bool) -> None:
    """Set the render and shading settings of a new scene that differ from Blender's defaults."""
    render = scene.render
    render.engine = "BLENDER_WORKBENCH"
    render.resolution_x = render.resolution_y = size
    render.film_transparent = True
    render.use_simplify, render.simplify_subdivision_render = True, 1
    render.use_compositing = render.use_sequencer = False
    scene.view_settings.view_transform = "Standard"
    scene.view_settings.exposure = _EXPOSURE
    scene.display.render_aa = "FXAA" if is_large else "8"
    shading = scene.display.shading
    shading.show_cavity = True
    shading.show_object_outline = True
    shading.object_outline_color = (0.02, 0.02, 0.02)
