"""Settings of how a program plays a clip <-> the properties of its action."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.scene import Clip, Playback
from . import action_ranges
from .scene_time import SceneTime

LOOP_IN = "Loop In"
LOOP_OUT = "Loop Out"
"""Name of the pose marker at the end of the part of an action that repeats."""
_SAME_TIME = 1e-4
"""Largest difference in seconds at which a loop counts as ending with its animation."""

_SAME_FRAME = 0.75
"""Largest distance in frames between a marker, which is on a whole frame, and the exact time from the file."""

Frames = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""Function that converts times, in seconds from the start of a clip, to frames."""


def write(action: bpy.types.Action, clip: Clip, frames_of: Frames) -> None:
    """Store the playback of a clip, and the file that it came from, on its action.

    An action that repeats as a whole is cyclic; one that repeats in part gets pose markers at the ends of that part.
    """
    playback, kept = clip.playback, action.meshferry.playback
    if playback is None:
        return
    kept.is_known = True
    kept.use_loop, kept.loop_in, kept.loop_out = playback.is_looped, playback.loop_in, playback.loop_out
    kept.ease_in, kept.ease_out = playback.ease_in, playback.ease_out
    kept.priority, kept.hand_pose, kept.emote = playback.priority, min(playback.hand_pose, 2**31 - 1), playback.emote
    for name, priority in playback.joint_priorities.items():
        entry = kept.joint_priorities.add()
        entry.name, entry.priority = name, priority
    if playback.is_looped:
        _show_loop(action, playback, clip.duration, frames_of)
    if clip.original:
        kept.original = base64.b64encode(zlib.compress(clip.original, 1)).decode("ascii")


def _show_loop(action: bpy.types.Action, playback: Playback, duration: float, frames_of: Frames) -> None:
    if playback.loop_in <= 0 and playback.loop_out >= duration - _SAME_TIME:
        action.use_cyclic = True
        return
    frames = frames_of(np.clip([playback.loop_in, playback.loop_out], 0.0, duration))
    for name, frame in zip((LOOP_IN, LOOP_OUT), frames.tolist(), strict=True):
        action.pose_markers.new(name).frame = round(frame)


def loop_of(action: bpy.types.Action, time: SceneTime) -> tuple[float, float] | None:
    """Return start and end of the repeated part, in seconds from the start of the action.

    The stored settings apply, unless the user moved the loop markers. Return None if the action has no settings and
    lacks one of the markers.
    """
    kept, start, fps = action.meshferry.playback, action.frame_range[0], time.key_rate
    ends = [kept.loop_in, kept.loop_out]
    marked = [action.pose_markers.get(name) for name in (LOOP_IN, LOOP_OUT)]
    if not kept.is_known and None in marked:
        return None
    longest = max((action.frame_range[1] - start) / fps, 0.0)
    exported = action_ranges.exported_range(action, time)
    if exported != tuple(action.frame_range) and ends[0] <= 0 and ends[1] >= longest - _SAME_TIME:
        # keys outside the range extend an animation that repeats as a whole
        ends = [(frame - start) / fps for frame in exported]
        longest = ends[1]
    for number, marker in enumerate(marked):
        if marker is not None:
            seconds = (marker.frame - start) / fps
            stored = min(max(ends[number], 0.0), longest)  # the frame where the import puts the marker
            if not kept.is_known or abs(seconds - stored) * fps > _SAME_FRAME:
                ends[number] = max(seconds, 0.0)
    return ends[0], ends[1]


@dataclass(frozen=True)
class ActionTime:
    """Conversion from the time of an action, in seconds from its start, to the time of a clip."""

    start: float = 0.0
    """Time in the clip, in seconds, at which the action starts."""
    scale: float = 1.0
    """Duration in the clip of one second of the action; negative if the action is played backwards."""

    @classmethod
    def of_strip(cls, strip: bpy.types.NlaStrip, start: float, key_rate: float) -> ActionTime:
        """Return the conversion for the first repetition of an NLA strip, in a clip that starts at frame ``start``."""
        scale = -strip.scale if strip.use_reverse else strip.scale
        first = strip.action_frame_end if strip.use_reverse else strip.action_frame_start
        frames = strip.frame_start - start + (strip.action.frame_range[0] - first) * scale
        return cls(frames / key_rate, scale)

    def in_clip(self, loop: tuple[float, float]) -> tuple[float, float]:
        """Convert the ends of a part of the action to seconds of the clip."""
        first, last = (self.start + self.scale * end for end in loop)
        return (last, first) if self.scale < 0 else (first, last)


def read(
    action: bpy.types.Action,
    clip: Clip,
    time: SceneTime,
    in_clip: ActionTime = ActionTime(),
    *,
    is_cyclic: bool = False,
) -> None:
    """Set the playback of an exported clip from the settings that :func:`write` stored and from the action's loop."""
    kept = action.meshferry.playback
    loop = loop_of(action, time)
    if loop is not None:
        loop = in_clip.in_clip(loop)
    if not kept.is_known:
        clip.loop = loop or ((0.0, clip.duration) if is_cyclic else None)
        return
    loop_in, loop_out = loop or (kept.loop_in, kept.loop_out)
    clip.playback = Playback(
        kept.use_loop,
        loop_in,
        loop_out,
        kept.ease_in,
        kept.ease_out,
        kept.priority,
        {entry.name: entry.priority for entry in kept.joint_priorities},
        kept.hand_pose,
        kept.emote,
    )
    if kept.original:
        clip.original = zlib.decompress(base64.b64decode(kept.original))
