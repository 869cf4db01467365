"""Clips -> actions: sampled transforms become f-curves with one linear key a frame."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ..io_formats.scene import Clip, TransformTrack
from . import compat

_LINEAR = 1
_AUTO_CLAMPED = 4


class ClipTiming:
    """Where the frames of a clip lie on the scene's time line."""

    def __init__(self, clip: Clip, scene: bpy.types.Scene, frame_start: int) -> None:
        self.step = scene.render.fps / scene.render.fps_base / clip.fps
        self.frames = frame_start + np.arange(clip.frame_count, dtype=np.float64) * self.step

    @property
    def range(self) -> tuple[float, float]:
        return float(self.frames[0]), float(self.frames[-1])


class ClipActions:
    """The action (before 4.4: the actions) of one clip."""

    def __init__(self, clip: Clip, timing: ClipTiming, action_name: str) -> None:
        self.clip = clip
        self.timing = timing
        self.curves = compat.ActionCurves(action_name, timing.range)
        self.assigned: list[tuple[bpy.types.ID, bpy.types.Action, Any]] = []

    @property
    def actions(self) -> list[bpy.types.Action]:
        return self.curves.actions

    def add_transforms(self, owner: bpy.types.Object, track: TransformTrack) -> None:
        """Key the local transform of an object."""
        curves = self.curves_for(owner, owner.name)
        for path, values in (
            ("location", track.translation),
            ("rotation_quaternion", track.rotation),
            ("scale", track.scale),
        ):
            for index in range(values.shape[1]):
                set_keys(curves.new(path, index=index), self.timing.frames, values[:, index])

    def curves_for(self, owner: bpy.types.ID, label: str) -> Any:
        """Return the f-curves of this clip for a data block, and note that it plays them."""
        curves, action, slot = self.curves.curves_for(owner, label)
        action.meshferry.clip_name = self.clip.name
        action.meshferry.fps = self.clip.fps
        action.meshferry.frame_count = self.clip.frame_count
        self.assigned.append((owner, action, slot))
        return curves

    def attach(self) -> None:
        """Play the clip on data blocks that play none yet; stash it on the others."""
        for owner, action, slot in self.assigned:
            animation = owner.animation_data
            if animation is None or animation.action is None:
                compat.assign_action(owner, action, slot)
            else:
                compat.stash_action(owner, action, slot, self.clip.name)


def set_keys(curve: bpy.types.FCurve, frames: npt.NDArray[np.float64], values: npt.NDArray[np.floating]) -> None:
    """Fill an empty f-curve with linear keys, all at once."""
    count = len(frames)
    points = np.empty((count, 2), np.float32)
    points[:, 0] = frames
    points[:, 1] = values
    keys = curve.keyframe_points
    keys.add(count)
    keys.foreach_set("co", points.reshape(-1))
    keys.foreach_set("interpolation", np.full(count, _LINEAR, np.int32))
    for side in ("handle_left_type", "handle_right_type"):
        keys.foreach_set(side, np.full(count, _AUTO_CLAMPED, np.int32))
    curve.update()
