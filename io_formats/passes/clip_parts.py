"""Split a scene into one scene for each clip of a skeleton."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..core.scene import Clip, Scene


def clip_parts(scene: Scene) -> list[Scene]:
    """Return a scene for each clip and each skeleton that it animates, named after the clip.

    A clip without tracks is assigned to the only skeleton, if there is exactly one; clips that only animate nodes are
    left out. Clips that animate several skeletons, and clips of one name on several skeletons, become scenes named
    after both.
    """
    parts = []
    names = Counter((clip.name or scene.name) for clip in scene.clips if _skeletons_of(clip))
    for clip in scene.clips:
        moved = _skeletons_of(clip)
        if not clip.transforms and not clip.keys and not clip.vertices and len(scene.skeletons) == 1:
            moved = [0]
        for index in moved:
            skeleton = scene.skeletons[index]
            name = clip.name or scene.name
            if len(moved) > 1 or names[name] > 1:
                name = f"{name}_{skeleton.name}"
            part = replace(
                clip,
                transforms=[replace(track, skeleton=0) for track in clip.transforms if track.skeleton == index],
                keys=[replace(track, skeleton=0) for track in clip.keys if track.skeleton == index],
                vertices=[],
            )
            parts.append(scene.part(name, skeletons=[skeleton], clips=[part]))
    return parts


def _skeletons_of(clip: Clip) -> list[int]:
    """Return the indices of the skeletons that a clip animates."""
    sampled = [track.skeleton for track in clip.transforms if track.skeleton is not None]
    return list(dict.fromkeys([*sampled, *(track.skeleton for track in clip.keys)]))
