"""Shapes of a file -> shape keys; sampled vertex animation -> shape keys played by an action, or a mesh cache."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np

from ...io_formats.core.scene import ShapeKey, VertexTrack
from .. import arrays, names
from .clips.actions import ClipActions, add_keys

BASIS = "Basis"


def add_file_shapes(owner: bpy.types.Object, shapes: Sequence[ShapeKey]) -> dict[str, str]:
    """Create a shape key with value 0 for each shape of a mesh.

    Return their names in Blender by the names in the file.
    """
    given: dict[str, str] = {}
    if not shapes:
        return given
    owner.shape_key_add(name=BASIS, from_mix=False).value = 0.0
    fitting = names.fit_all([BASIS, *(shape.name for shape in shapes)], "Key")[1:]
    for shape, name in zip(shapes, fitting, strict=True):
        key = owner.shape_key_add(name=name, from_mix=False)
        key.points.foreach_set("co", arrays.flat(shape.points))
        key.value = 0.0  # Blender 5.0 gives new keys the value 1
        given[shape.name] = key.name
    return given


def add_shape_keys(owner: bpy.types.Object, clip_actions: ClipActions, track: VertexTrack) -> None:
    """Create a shape key for each frame, and key their values so that they play one after the other.

    Values are interpolated linearly between two frames, like the frames of the file. Frames that equal the rest shape
    need no shape key.
    """
    mesh = owner.data
    rest = arrays.points_of(mesh).reshape(-1)
    if mesh.shape_keys is None:
        owner.shape_key_add(name=BASIS, from_mix=False)
    keys = mesh.shape_keys
    curves = clip_actions.curves_for(keys)
    frames = clip_actions.timing.frames
    last = len(frames) - 1
    for number, points in enumerate(track.points):
        flat = arrays.flat(points)
        if np.array_equal(flat, rest):
            continue
        key = owner.shape_key_add(name=names.fit(f"{clip_actions.clip.name} {number + 1:03d}"), from_mix=False)
        key.points.foreach_set("co", flat)
        key.value = 0.0  # Blender 5.0 gives new keys the value 1
        around = [frame for frame in (number - 1, number, number + 1) if 0 <= frame <= last]
        path = f'key_blocks["{bpy.utils.escape_identifier(key.name)}"].value'
        values = np.asarray([float(frame == number) for frame in around])
        add_keys(curves.new(path, index=0), frames[around], values, clip_actions.checksums)


def add_mesh_cache(owner: bpy.types.Object, path: str, frame_start: float, step: float) -> None:
    """Add a point cache modifier whose samples are ``step`` scene frames apart, starting at ``frame_start``."""
    modifier = owner.modifiers.new("Vertex Animation", "MESH_CACHE")
    modifier.cache_format = "PC2"
    modifier.filepath = path
    modifier.interpolation = "LINEAR"
    modifier.play_mode = "SCENE"
    modifier.time_mode = "FRAME"
    modifier.forward_axis = "POS_Y"
    modifier.up_axis = "POS_Z"
    # Blender evaluates sample  frame_scale * frame - frame_start.
    modifier.frame_scale = 1.0 / step
    modifier.frame_start = frame_start / step
