"""Sample clips whose tracks have keys at arbitrary times, for targets that need frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError
from ..core.scene import Clip, FloatArray, Joint, Keys, KeyTrack, Scene, TransformTrack

Floats = npt.NDArray[np.float64]

DEFAULT_RATE = 30.0
"""Frames per second of clips whose file has no frame rate."""
MOST_FRAMES = 120_000
"""Maximum number of frames of a sampled clip, over an hour at 30 frames per second: a few bytes of a damaged file may
state a length of years. The programs that use keys play one minute at most."""


def with_frames(scene: Scene) -> Scene:
    """Return a scene in which all clips have frames; the scene itself if they already have."""
    if not any(clip.keys for clip in scene.clips):
        return scene
    clips = [
        sample_clip(clip, scene, clip.fps or clip.key_rate or DEFAULT_RATE) if clip.keys else clip
        for clip in scene.clips
    ]
    return replace(scene, clips=clips)


def sample_clip(clip: Clip, scene: Scene, fps: float, times: Floats | None = None) -> Clip:
    """Return a clip with frames instead of keys.

    Parameters
    ----------
    fps:
        Frames per second.
    times:
        (F,) seconds of the frames; default: all frames up to the end of the clip.

    Raises
    ------
    ExportError
        The clip is too long.
    """
    if times is None:
        if not clip.duration * fps < MOST_FRAMES:
            raise ExportError(
                "The animation '{}' is {:,.0f} s long; with a key for each frame, animations "
                "have at most {:,} frames, {:,.0f} s",
                clip.name,
                clip.duration,
                MOST_FRAMES,
                MOST_FRAMES / fps,
            )
        times = np.arange(max(round(clip.duration * fps), 0) + 1) / fps
    tracks = [_track(track, scene.skeletons[track.skeleton].joints, times) for track in clip.keys]
    return replace(clip, fps=fps, frame_count=len(times), transforms=[*clip.transforms, *tracks], keys=[])


def _track(track: KeyTrack, joints: Sequence[Joint], times: Floats) -> TransformTrack:
    joint = joints[track.target]
    shape = (len(times), 1)
    translation = np.tile(np.array(joint.translation, np.float32), shape)
    if track.translation is not None:
        moved = values_at(track.translation, times).astype(np.float32)
        translation = translation + moved if track.is_offset else moved
    rotation: FloatArray = np.tile(np.array(joint.rotation, np.float32), shape)
    if track.rotation is not None:
        rotation = values_at(track.rotation, times).astype(np.float32)
    scale = np.tile(np.array(joint.scale, np.float32), shape)
    return TransformTrack(track.target, translation, rotation, scale, track.skeleton)


def values_at(keys: Keys, times: Floats) -> Floats:
    """Return the values of keys at times (n,): held outside the keys, linear between, quaternions normalised, (n, k).

    Each quaternion must have the sign nearest to the one before.
    """
    after = np.searchsorted(keys.times, times, side="right")
    low = np.clip(after - 1, 0, len(keys.times) - 1)
    high = np.clip(after, 0, len(keys.times) - 1)
    width = keys.times[high] - keys.times[low]
    share = np.where(width > 0, (times - keys.times[low]) / np.where(width > 0, width, 1), 0.0)
    a, b = keys.values[low], keys.values[high]
    mixed: Floats = a + share[:, None] * (b - a)
    if mixed.shape[1] == 4:
        length = np.linalg.norm(mixed, axis=1, keepdims=True)
        mixed = mixed / np.where(length > 0, length, 1.0)
    return mixed
