"""The frames of an action that an export writes, keys outside them, and the actions that belong to a file.

An import switches on *Manual Frame Range*, since a file may be longer than its keys. While the range is unchanged,
keys before or after it extend the export. A range that the user set is respected.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import Message, Named, Report, Text, listed
from .. import animated_blocks, arrays
from .scene_time import SceneTime

_MOST_SAMPLES = 20_000
"""Largest number of samples to which keys extend an imported range: damaged files have keys at frame 24,000,000."""
_SAME_FRAME = 1e-2
"""Largest distance in frames between a key and the end of a range at which both count as the same frame."""

Range = tuple[float, float]


def exported_range(action: Any, time: SceneTime) -> Range:
    """Return the first and the last key frame to export.

    An imported range is extended in whole steps of the file's sampling, so that samples coincide with imported keys.
    """
    start, end = action.frame_range
    if action.use_frame_range and is_imported_range(action):
        frames = [start, *_frames_outside(action).tolist(), end]
        first, last = min(frames), max(frames)
        step = 1.0
        if action.meshferry.frame_count:
            step = time.key_rate / (action.meshferry.fps or time.rate)
            first = start - step * math.ceil((start - first - _SAME_FRAME) / step)
            last = end + step * math.ceil((last - end - _SAME_FRAME) / step)
        if max(last - end, start - first) <= _MOST_SAMPLES * step:
            return float(min(start, first)), float(max(end, last))
    return float(start), float(end)


def is_imported_range(action: Any) -> bool:
    """Return whether an action was imported, and its manual range is unchanged since."""
    kept = action.meshferry
    apart = np.abs(np.subtract(kept.imported_range, action.frame_range)).max()
    return kept.is_property_set("imported_range") and bool(apart <= _SAME_FRAME)


def messages(action: Any, time: SceneTime) -> list[Message]:
    """Return messages for an export about keys outside the imported range of an action."""
    (first, last), (start, end) = exported_range(action, time), action.frame_range
    report = Report(item=Text("Animation '{}'", Named("animation", action.name)))
    if (first, last) != (start, end):
        text = "exported from frame {:g} to {:g}, since keys are outside the imported frames {:g} to {:g}"
        report.note("range-extended", text, *(first, last, start, end))
        return report.messages
    if not is_imported_range(action):
        return []  # the user chose this range
    lost = keys_lost(action, time)
    return [lost] if lost is not None else []


def keys_lost(action: Any, time: SceneTime) -> Message | None:
    """Return a message about keys that are not exported, since they are outside the manual range.

    None without such keys.
    """
    start, end = action.frame_range
    if not action.use_frame_range or exported_range(action, time) != (start, end):
        return None
    outside = _frames_outside(action)
    if not len(outside):
        return None
    report = Report(item=Text("Animation '{}'", Named("animation", action.name)))
    report.loss(
        "keys-outside-range",
        "keys at {} are outside its Manual Frame Range ({:g} to {:g}), so they are not exported; extend the range in "
        "the Action Editor, or switch it off",
        listed([f"{frame:g}" for frame in outside], quote=""),
        start,
        end,
    )
    return report.messages[0]


def _frames_outside(action: Any) -> npt.NDArray[np.float64]:
    """Return the frames of keys outside the manual range, each once; muted curves are ignored."""
    start, end = action.frame_range
    first, last = action.curve_frame_range
    found = [np.empty(0)]
    if first < start - _SAME_FRAME or last > end + _SAME_FRAME:  # Read all keys only if needed, since this takes long.
        for curve in animated_blocks.action_curves(action, None):
            if not curve.mute and not (curve.group is not None and curve.group.mute):
                found.append(arrays.read(curve.keyframe_points, "co", 2)[:, 0].astype(np.float64))
    frames = np.unique(np.concatenate(found))
    return frames[(frames < start - _SAME_FRAME) | (frames > end + _SAME_FRAME)]


@dataclass(frozen=True)
class FileClips:
    """The animations that belong to a file."""

    origins: frozenset[str]
    """Paths of the files from which the animations were imported."""

    def holds(self, action: bpy.types.Action) -> bool:
        """Return whether an action was imported from the same file as the animations in this set."""
        return any(same_path(action.meshferry.source_path, path) for path in self.origins)

    def allows(self, action: bpy.types.Action) -> bool:
        """Return whether an action belongs to the file or was made in Blender."""
        return not action.meshferry.source_path or self.holds(action)


def same_path(one: str, other: str) -> bool:
    """Return whether two paths of files are equal after resolving ``//``."""
    return Path(bpy.path.abspath(one)) == Path(bpy.path.abspath(other))
