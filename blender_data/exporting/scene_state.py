"""Restore the user's scene exactly after an export has played its animations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import bpy

from .. import compat
from .object_selection import enabled_objects

Played = Mapping[bpy.types.ID, Iterable[bpy.types.Action]]
"""Actions that an export temporarily assigns to data blocks."""


@contextlib.contextmanager
def kept(context: bpy.types.Context, animated: Iterable[bpy.types.ID], played: Played) -> Iterator[None]:
    """Restore frame, actions, NLA tracks and animated values of a scene after a ``with`` block.

    The block may change the actions and tracks of ``animated`` data blocks and assign the actions ``played``. As
    setting a frame plays all animation in the file, the values of all other animated blocks are restored, too.
    """
    scene = context.scene
    frame, camera = (scene.frame_current, scene.frame_subframe), scene.camera
    plays = [(block, _animation_state(block)) for block in animated]
    channels = animated_values(_blocks(), played)
    try:
        yield
    finally:
        for block, state in plays:
            _restore_animation(block, state)
        set_frame(scene, *frame)
        # Setting the frame applies the animation again, so restore values that the user changed without keys.
        for channel in channels:
            channel.restore()
        if scene.camera != camera:
            scene.camera = camera
        context.view_layer.update()


def set_frame(scene: bpy.types.Scene, frame: int, subframe: float) -> None:
    """Set a frame and subframe; Blender reports negative subframes before frame 0, but does not accept them."""
    if subframe < 0:
        frame, subframe = frame - 1, subframe + 1
    scene.frame_set(frame, subframe=subframe)


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


@dataclass(frozen=True)
class Channel:
    """One animated value."""

    owner: Any
    name: str
    index: int
    value: Any

    def now(self) -> Any:
        return _value(self.owner, self.name, self.index)

    def restore(self) -> None:
        if self.now() == self.value:
            return
        if self.index >= 0:
            array = _value(self.owner, self.name, -1)
            array[self.index] = self.value
        elif self.name.startswith("["):
            self.owner[bpy.utils.unescape_identifier(self.name[2:-2])] = self.value
        else:
            setattr(self.owner, self.name, self.value)


def animated_values(blocks: Iterable[bpy.types.ID], played: Played) -> list[Channel]:
    """Return the current values of channels that the actions of data blocks can change."""
    return [channel for block in blocks for channel in _channels(block, played)]


def _value(owner: Any, name: str, index: int) -> Any:
    value = owner.path_resolve(name)
    return value[index] if index >= 0 else value


def _blocks() -> Iterator[bpy.types.ID]:
    """Yield every data block of the .blend file that has animation, including node trees of other data blocks."""
    for description in bpy.data.bl_rna.properties:
        if description.type != "COLLECTION":
            continue
        for block in getattr(bpy.data, description.identifier):
            for owner in (block, getattr(block, "node_tree", None)):
                if getattr(owner, "animation_data", None) is not None:
                    yield owner


def _channels(block: bpy.types.ID, played: Played) -> Iterator[Channel]:
    """Yield the values that the actions of a data block may change."""
    data = block.animation_data
    strips = (strip.action for track in data.nla_tracks for strip in track.strips)
    actions = dict.fromkeys([data.action, *strips, *played.get(block, ())])
    paths = {
        (curve.data_path, curve.array_index)
        for action in actions
        if action
        for curve in compat.action_curves(action, None)
    }
    for path, index in sorted(paths):
        place = path.rindex('["') if path.endswith('"]') else path.rfind(".")
        name = path[place:].removeprefix(".") if place >= 0 else path
        with contextlib.suppress(ValueError, TypeError, IndexError):  # the property no longer exists
            owner = block.path_resolve(path[:place]) if place > 0 else block
            value = owner.path_resolve(name)
            which = index if hasattr(value, "__setitem__") else -1
            yield Channel(owner, name, which, _value(owner, name, which))


@contextlib.contextmanager
def undeformed(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Temporarily disable the deformation of objects by armatures."""
    shown = []
    hung = []
    try:
        for obj in objects:
            for modifier in obj.modifiers:
                if modifier.type == "ARMATURE" and modifier.show_viewport:
                    shown.append(modifier)
                    modifier.show_viewport = False
            if obj.parent_type == "ARMATURE":  # an "Armature Deform" parent deforms without a modifier
                hung.append(obj)
                obj.parent_type = "OBJECT"
                obj.update_tag(refresh={"DATA"})
        if shown or hung:
            context.view_layer.update()
        yield
    finally:
        for modifier in shown:
            modifier.show_viewport = True
        for obj in hung:
            obj.parent_type = "ARMATURE"
            obj.update_tag(refresh={"DATA"})
        if shown or hung:
            context.view_layer.update()


@contextlib.contextmanager
def shape_shown(obj: bpy.types.Object) -> Iterator[None]:
    """Restore the active shape key, Shape Key Lock and muted keys of an object after a ``with`` block."""
    keys = obj.data.shape_keys
    before = (obj.show_only_shape_key, obj.active_shape_key_index)
    mutes = [(key, key.mute) for key in keys.key_blocks] if keys is not None else []
    try:
        yield
    finally:
        obj.show_only_shape_key, obj.active_shape_key_index = before
        for key, mute in mutes:
            if key.mute != mute:
                key.mute = mute


@contextlib.contextmanager
def posed(context: bpy.types.Context, armatures: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Temporarily show armatures in pose position."""
    resting = [obj.data for obj in armatures if obj.data.pose_position == "REST"]
    try:
        for data in resting:
            data.pose_position = "POSE"
        if resting:
            context.view_layer.update()
        yield
    finally:
        for data in resting:
            data.pose_position = "REST"
        if resting:
            context.view_layer.update()


@contextlib.contextmanager
def resting(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Temporarily show objects in their Basis shape and without mesh caches."""
    pinned = []
    caches = []
    for obj in objects:
        if getattr(obj.data, "shape_keys", None) is not None:
            pinned.append((obj, obj.show_only_shape_key, obj.active_shape_key_index))
            obj.show_only_shape_key = True
            obj.active_shape_key_index = 0
        for modifier in obj.modifiers:
            if modifier.type == "MESH_CACHE" and modifier.show_viewport:
                caches.append(modifier)
                modifier.show_viewport = False
    try:
        if pinned or caches:
            context.view_layer.update()
        yield
    finally:
        for obj, only, index in pinned:
            obj.show_only_shape_key = only
            obj.active_shape_key_index = index
        for modifier in caches:
            modifier.show_viewport = True
        if pinned or caches:
            context.view_layer.update()


@contextlib.contextmanager
def stand_ins(
    context: bpy.types.Context, objects: Iterable[bpy.types.Object]
) -> Iterator[dict[bpy.types.Object, bpy.types.Object]]:
    """Temporarily add copies of objects that Blender does not evaluate; yield the copy of each.

    These are disabled in viewports, or only in collections that are excluded or belong to another scene. Without
    evaluation their modifiers are not applied and their transforms are outdated.
    """
    copies: dict[bpy.types.Object, bpy.types.Object] = {}
    try:
        for obj in objects:
            copies[obj] = obj.copy()
            copies[obj].hide_viewport = False
            context.scene.collection.objects.link(copies[obj])
        if copies:
            context.view_layer.update()
        yield copies
    finally:
        for copy in copies.values():
            bpy.data.objects.remove(copy)
        if copies:
            context.view_layer.update()


def update_worlds(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> None:
    """Update the world matrices of objects, including those that Blender does not evaluate (see :func:`stand_ins`)."""
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    unseen = [obj for obj in dict.fromkeys(objects) if obj not in enabled]
    home = context.scene.collection.objects
    linked = [obj for obj in unseen if home.get(obj.name) != obj]
    disabled = [obj for obj in unseen if obj.hide_viewport]
    try:
        for obj in linked:
            home.link(obj)
        for obj in disabled:
            obj.hide_viewport = False
        context.view_layer.update()
    finally:
        for obj in disabled:
            obj.hide_viewport = True
        for obj in linked:
            home.unlink(obj)
