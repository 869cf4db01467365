"""Settings of how a program plays a clip <-> the properties of its action."""

from __future__ import annotations

import base64
import zlib

import bpy

from ..io_formats.core.scene import Clip, OriginalFile, Playback


def write(action: bpy.types.Action, clip: Clip) -> None:
    """Store the playback of a clip, and the file that it came from, on its action."""
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
    if isinstance(clip.pass_through, OriginalFile):
        kept.original = base64.b85encode(zlib.compress(clip.pass_through.data, 6)).decode("ascii")


def read(action: bpy.types.Action, clip: Clip) -> None:
    """Restore what :func:`write` stored in a clip that is exported."""
    kept = action.meshferry.playback
    if not kept.is_known:
        return
    clip.playback = Playback(
        kept.use_loop,
        kept.loop_in,
        kept.loop_out,
        kept.ease_in,
        kept.ease_out,
        kept.priority,
        {entry.name: entry.priority for entry in kept.joint_priorities},
        kept.hand_pose,
        kept.emote,
    )
    if kept.original:
        clip.pass_through = OriginalFile(zlib.decompress(base64.b85decode(kept.original)))
