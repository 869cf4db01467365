"""Frame rate and frame range of a scene."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

Range = tuple[float, float]
"""First and last frame of a range."""


def ranges_of_actions() -> list[Range]:
    """Return the ranges of all actions that are in use."""
    return [(action.frame_range[0], action.frame_range[1]) for action in bpy.data.actions if action.users]


def fit_range(scene: bpy.types.Scene, existing: Sequence[Range], added: Sequence[Range]) -> None:
    """Set the frame range of a scene so that it covers its existing and the added animations.

    A range that differs from that of the existing animations was chosen by the user and stays unchanged. So does the
    range if all animations have a single frame.
    """
    if existing and (scene.frame_start, scene.frame_end) != _whole(existing):
        return
    start, end = _whole([*existing, *added])
    if end > start:
        scene.frame_start, scene.frame_end = start, end


def _whole(ranges: Sequence[Range]) -> tuple[int, int]:
    return round(min(start for start, _ in ranges)), round(max(end for _, end in ranges))
