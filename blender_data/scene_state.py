"""The user's scene, put back exactly as it was after an export has played its animations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from . import compat


@contextlib.contextmanager
def kept(context: bpy.types.Context, animated: Iterable[bpy.types.ID]) -> Iterator[None]:
    """Keep frame, actions, NLA tracks and animated values of a scene through a block of code."""
    scene = context.scene
    frame, subframe = scene.frame_current, scene.frame_subframe
    blocks = list(animated)
    plays = [(block, _animation_state(block)) for block in blocks]
    channels = [(owner, _channel_state(owner)) for owner in _channel_owners(blocks)]
    try:
        yield
    finally:
        for block, state in plays:
            _restore_animation(block, state)
        scene.frame_set(frame, subframe=subframe)
        # Setting the frame plays the animation again; what the user had changed without keying comes back here.
        for owner, state in channels:
            _restore_channels(owner, state)
        context.view_layer.update()


def _animation_state(block: bpy.types.ID) -> dict[str, Any]:
    data = block.animation_data
    return {
        "action": data.action,
        "slot": data.action_slot if compat.HAS_SLOTS else None,
        "use_nla": data.use_nla,
        "tracks": [
            (track, track.mute, track.is_solo, [(strip, strip.mute) for strip in track.strips])
            for track in data.nla_tracks
        ],
    }


def _restore_animation(block: bpy.types.ID, state: dict[str, Any]) -> None:
    data = block.animation_data
    if data.action != state["action"]:
        data.action = state["action"]
    if compat.HAS_SLOTS and state["action"] is not None and data.action_slot != state["slot"]:
        data.action_slot = state["slot"]
    if data.use_nla != state["use_nla"]:
        data.use_nla = state["use_nla"]
    for track, mute, solo, strips in state["tracks"]:
        if track.mute != mute:
            track.mute = mute
        if track.is_solo != solo:
            track.is_solo = solo
        for strip, strip_mute in strips:
            if strip.mute != strip_mute:
                strip.mute = strip_mute


_TRANSFORM = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")


def _channel_owners(blocks: list[bpy.types.ID]) -> Iterator[Any]:
    for block in blocks:
        if isinstance(block, bpy.types.Object):
            yield block
            if block.pose is not None:
                yield from block.pose.bones
        elif isinstance(block, bpy.types.Key):
            yield from block.key_blocks


def _channel_state(owner: Any) -> dict[str, Any]:
    if isinstance(owner, bpy.types.ShapeKey):
        return {"value": owner.value}
    return {path: tuple(getattr(owner, path)) for path in _TRANSFORM}


def _restore_channels(owner: Any, state: dict[str, Any]) -> None:
    for path, value in state.items():
        now = getattr(owner, path)
        if (tuple(now) if isinstance(value, tuple) else now) != value:
            setattr(owner, path, value)


@contextlib.contextmanager
def resting(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Show objects in their Basis shape and without mesh caches through a block of code."""
    pinned = []
    caches = []
    for thing in objects:
        if getattr(thing.data, "shape_keys", None) is not None:
            pinned.append((thing, thing.show_only_shape_key, thing.active_shape_key_index))
            thing.show_only_shape_key = True
            thing.active_shape_key_index = 0
        for modifier in thing.modifiers:
            if modifier.type == "MESH_CACHE" and modifier.show_viewport:
                caches.append(modifier)
                modifier.show_viewport = False
    try:
        if pinned or caches:
            context.view_layer.update()
        yield
    finally:
        for thing, only, index in pinned:
            thing.show_only_shape_key = only
            thing.active_shape_key_index = index
        for modifier in caches:
            modifier.show_viewport = True
        if pinned or caches:
            context.view_layer.update()
