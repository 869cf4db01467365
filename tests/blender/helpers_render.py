"""Pictures of materials by Cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def plane_with(material: Any) -> Any:
    """Return a plane of 2 m in the scene."""
    import bpy

    mesh = bpy.data.meshes.new("Plane")
    mesh.from_pydata([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], [], [(0, 1, 2, 3)])
    mesh.uv_layers.new(name="UV0").uv.foreach_set("vector", np.array([0, 0, 1, 0, 1, 1, 0, 1], np.float32))
    mesh.materials.append(material)
    plane = bpy.data.objects.new("Plane", mesh)
    bpy.context.scene.collection.objects.link(plane)
    return plane


def render(material: Any, folder: Path, size: int, samples: int) -> npt.NDArray[np.float32]:
    """Render a plane of 2 m with a material from above; return linear RGB (H, W, 3), the lowest row first."""
    import bpy

    plane = plane_with(material)
    pixels = render_from_above(folder, size, samples)
    bpy.data.objects.remove(plane)
    return pixels


def render_from_above(folder: Path, size: int, samples: int) -> npt.NDArray[np.float32]:
    """Render the 2 m around the origin from above; return linear RGB (H, W, 3), the lowest row first."""
    import bpy

    scene = bpy.context.scene
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.type, camera.data.ortho_scale, camera.location = "ORTHO", 2.0, (0.0, 0.0, 5.0)
    scene.collection.objects.link(camera)
    scene.camera = camera
    scene.render.engine = "CYCLES"
    scene.cycles.samples, scene.cycles.use_denoising, scene.cycles.device = samples, False, "CPU"
    scene.render.resolution_x = scene.render.resolution_y = size
    scene.view_settings.view_transform = "Raw"
    settings = scene.render.image_settings
    settings.file_format, settings.color_mode, settings.color_depth = "OPEN_EXR", "RGB", "32"
    scene.render.filepath = str(folder / "picture.exr")
    bpy.ops.render.render(write_still=True)
    picture = bpy.data.images.load(scene.render.filepath)
    pixels = np.empty(size * size * picture.channels, np.float32)
    picture.pixels.foreach_get(pixels)
    bpy.data.objects.remove(camera)
    bpy.data.images.remove(picture)
    return pixels.reshape(size, size, -1)[..., :3]
