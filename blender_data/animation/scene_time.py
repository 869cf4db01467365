"""Frames of a scene <-> frames of its actions, which *Time Stretching* scales.

Blender evaluates f-curves, strips, the variable ``frame`` of drivers and the node Scene Time at the frame of the scene
times old / new. Keys, ranges and markers of actions, and those of clips, are in these *key frames*.
"""

from __future__ import annotations

from dataclasses import dataclass

import bpy

_SAME_FRAME = 1e-4
"""Distance up to which a frame counts as whole: drivers read whole frames, and factors are not exact."""


def scene_rate(scene: bpy.types.Scene) -> float:
    """Return the frames per second of a scene, including its base: 29.97 is 30 / 1.001."""
    return scene.render.fps / scene.render.fps_base


@dataclass(frozen=True)
class SceneTime:
    """The relation of seconds, frames of a scene and key frames."""

    rate: float
    """Frames of the scene per second."""
    stretch: float = 1.0
    """Frames of the scene per key frame."""

    @classmethod
    def of(cls, scene: bpy.types.Scene, rate: float = 0.0) -> SceneTime:
        """Return the relation in a scene, or in that scene at another frame rate."""
        return cls(rate or scene_rate(scene), scene.render.frame_map_new / scene.render.frame_map_old)

    @property
    def key_rate(self) -> float:
        """Key frames per second."""
        return self.rate / self.stretch

    def key_frame(self, frame: float) -> float:
        """Return the key frame that Blender evaluates at a frame of the scene."""
        return frame / self.stretch

    def scene_frame(self, key_frame: float) -> float:
        """Return the frame of the scene at which Blender evaluates a key frame."""
        frame = float(key_frame) * self.stretch
        return float(round(frame)) if self.stretch != 1.0 and abs(frame - round(frame)) <= _SAME_FRAME else frame
