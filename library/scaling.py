"""Scaling of scenes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import Clip, Scene

_Array = TypeVar("_Array", bound="npt.NDArray[Any] | None")


def scale(scene: Scene, factor: float) -> None:
    """Multiply all lengths of a scene by a factor; arrays are replaced, not changed."""
    for node in scene.nodes:
        node.translation, node.file_matrix = _scaled(node.translation, factor), None
    for mesh in {id(node.mesh): node.mesh for node in scene.nodes if node.mesh is not None}.values():
        mesh.points = _times(mesh.points, factor)
        mesh.shape_keys = [replace(key, points=_times(key.points, factor)) for key in mesh.shape_keys]
    for skin in {id(node.skin): node.skin for node in scene.nodes if node.skin is not None}.values():
        skin.inverse_bind, skin.bind_shape = _moved(skin.inverse_bind, factor), _moved(skin.bind_shape, factor)
        skin.alt_inverse_bind = _moved(skin.alt_inverse_bind, factor)
        skin.joint_positions = _times(skin.joint_positions, factor)
        skin.pelvis_offset = None if skin.pelvis_offset is None else skin.pelvis_offset * factor
    for skeleton in scene.skeletons:
        for joint in skeleton.joints:
            joint.translation = _scaled(joint.translation, factor)
            joint.tail = None if joint.tail is None else _scaled(joint.tail, factor)
            joint.inverse_bind = _moved(joint.inverse_bind, factor)
    for clip in scene.clips:
        _scale_clip(clip, factor)


def _scale_clip(clip: Clip, factor: float) -> None:
    clip.transforms = [replace(track, translation=_times(track.translation, factor)) for track in clip.transforms]
    clip.vertices = [replace(track, points=_times(track.points, factor)) for track in clip.vertices]
    for track in clip.keys:
        if track.translation is not None:
            track.translation = replace(track.translation, values=_times(track.translation.values, factor))
    clip.worlds, clip.original = _moved(clip.worlds, factor), b""


def _scaled(vector: tuple[float, float, float], factor: float) -> tuple[float, float, float]:
    x, y, z = vector
    return (x * factor, y * factor, z * factor)


def _times(values: _Array, factor: float) -> _Array:
    return values if values is None else values * values.dtype.type(factor)  # type: ignore[return-value]


def _moved(matrices: _Array, factor: float) -> _Array:
    """Return matrices (…, 4, 4) with their translations scaled."""
    if matrices is None:
        return matrices
    moved = np.array(matrices)
    moved[..., :3, 3] *= factor
    return moved  # type: ignore[return-value]
