"""Actions with slots, by which one action animates several data blocks, and the owners that play them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bpy


class ActionCurves:
    """Builder of an action with f-curves for several data blocks, each in a slot of its own."""

    def __init__(
        self, name: str, frame_range: tuple[float, float], keep: Callable[[Any], Any] = lambda block: block
    ) -> None:
        """Store the settings; the action is created on demand.

        ``keep`` is called with it, so that a failed import can remove it.
        """
        self.name = name
        self.frame_range = frame_range
        self.keep = keep
        self.action: bpy.types.Action | None = None
        self._strip: Any = None

    def curves_for(self, owner: bpy.types.ID) -> tuple[Any, bpy.types.Action, Any]:
        """Return the f-curve collection for a data block, its action, and its slot."""
        if self.action is None:
            self.action = self.keep(bpy.data.actions.new(self.name))
            self.action.use_frame_range = True
            self.action.frame_start, self.action.frame_end = self.frame_range
            self._strip = self.action.layers.new("Layer").strips.new(type="KEYFRAME")
        slot = self.action.slots.new(owner.id_type, owner.name)
        return self._strip.channelbag(slot, ensure=True).fcurves, self.action, slot


def curve_groups(action: bpy.types.Action, slot: Any) -> Any:
    """Return the f-curve groups of one slot of an action that :class:`ActionCurves` made."""
    return action.layers[0].strips[0].channelbag(slot, ensure=True).groups


def set_slot(player: Any, slot: Any) -> None:
    """Set the action slot of animation data or of an NLA strip, unless the slot is None."""
    if slot is not None:
        player.action_slot = slot


def assign_action(owner: bpy.types.ID, action: bpy.types.Action | None, slot: Any) -> None:
    """Make an action and its slot active on a data block.

    The slot is set explicitly, since Blender does not always choose it itself.
    """
    animation = owner.animation_data or owner.animation_data_create()
    animation.action = action
    if action is not None:
        set_slot(animation, slot)


def curve_bags(action: bpy.types.Action, slot: Any) -> list[Any]:
    """Return the owners of ``fcurves`` of an action: those of ``slot``, or of all slots if it is None."""
    bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
    return [bag for bag in bags if slot is None or bag.slot_handle == slot.handle]


def action_curves(action: bpy.types.Action, slot: Any) -> list[bpy.types.FCurve]:
    """Return the f-curves of an action: those of ``slot``, or of all slots if it is None."""
    return [curve for bag in curve_bags(action, slot) for curve in bag.fcurves]


def curves_at(action: bpy.types.Action, slot: Any, path: str) -> list[bpy.types.FCurve]:
    """Return the f-curves of a vector (3,) by its data path; see :func:`action_curves`."""
    found = (bag.fcurves.find(path, index=index) for bag in curve_bags(action, slot) for index in range(3))
    return [curve for curve in found if curve is not None]


def remove_curves(action: bpy.types.Action, curves: list[bpy.types.FCurve]) -> None:
    """Remove f-curves from all slots of an action."""
    removed = set(curves)
    for bag in curve_bags(action, None):
        for curve in [one for one in bag.fcurves if one in removed]:
            bag.fcurves.remove(curve)


def stash_action(owner: bpy.types.ID, action: bpy.types.Action, slot: Any, name: str) -> None:
    """Keep an action with its owner without playing it, in a separate muted NLA track."""
    animation = owner.animation_data or owner.animation_data_create()
    track = animation.nla_tracks.new()
    track.name = name
    strip = track.strips.new(name, int(action.frame_range[0]), action)
    set_slot(strip, slot)
    track.mute = True


def action_holders(owner: Any) -> list[Any]:
    """Return the animation data of a data block and its NLA strips, also in meta strips, each only with an action."""
    animation = owner.animation_data
    if animation is None:
        return []
    strips = [strip for track in animation.nla_tracks for strip in track.strips]
    for strip in strips:
        strips += strip.strips  # The loop reaches them, too, since meta strips may contain meta strips.
    return [holder for holder in (animation, *strips) if holder.action is not None]
