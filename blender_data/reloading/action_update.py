"""Replace actions by those of a new import, in all animation data and NLA strips that use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import bpy

from .. import animated_blocks, compat, names
from ..animation.clip_sources import clip_name

Owner = bpy.types.Object | bpy.types.Key


class ReplacedActions(NamedTuple):
    """Result of :func:`replace_actions`: old and additional actions."""

    old: list[bpy.types.Action]
    """The replaced actions, which have no users any more."""
    added: list[str]
    """Names of new actions that did not replace an old one."""


def replace_actions(owners: Iterable[tuple[Owner, Owner]], paths: Mapping[str, str]) -> ReplacedActions:
    """Replace actions of old owners by actions of new owners that have the same file and clip.

    Other new actions become active on the old owner if it has no action, and are stashed otherwise.

    Parameters
    ----------
    owners:
        Old and new data blocks.
    paths:
        The earlier path of each moved file.
    """
    replaced: dict[bpy.types.Action, bpy.types.Action] = {}
    slots: dict[bpy.types.Action, dict[int, Any]] = {}
    added: list[tuple[Owner, bpy.types.Action, Any]] = []
    for old, new in owners:
        before, made = animated_blocks.action_holders(old), animated_blocks.action_holders(new)
        actions = [holder.action for holder in made]
        for holder in made:
            twin = _find_twin(holder.action, before, actions, paths)
            slot = holder.action_slot
            if twin is None:
                added.append((old, holder.action, slot))
            else:
                replaced.setdefault(twin.action, holder.action)
                slots.setdefault(twin.action, {})[_handle(twin.action_slot)] = slot
    everything: list[Owner] = [*bpy.data.objects, *bpy.data.shape_keys] if replaced else []
    _leave_tweak_mode(everything)
    holders: dict[bpy.types.Action, list[Any]] = {action: [] for action in replaced}
    for holder in (holder for owner in everything for holder in animated_blocks.action_holders(owner)):
        if holder.action in holders:
            holders[holder.action].append(holder)
    for action, made in replaced.items():
        _replace(action, made, holders[action], slots[action])
    for owner, action, slot in added:
        if owner.animation_data is None or owner.animation_data.action is None:
            animated_blocks.assign_action(owner, action, slot)
        else:
            animated_blocks.stash_action(owner, action, slot, clip_name(action))
    return ReplacedActions(list(replaced), list(dict.fromkeys(action.name for _owner, action, _slot in added)))


def copy_animation(old: bpy.types.Key, new: bpy.types.Key) -> None:
    """Give new shape keys the action, NLA tracks and drivers of the old ones."""
    source = old.animation_data
    if source is None:
        return
    new.animation_data_clear()
    target = new.animation_data_create()
    for driver in source.drivers:
        target.drivers.from_existing(src_driver=driver)
    for track in source.nla_tracks:
        made = target.nla_tracks.new()
        made.name, made.mute = track.name, track.mute
        for strip in track.strips:
            if strip.action is not None:
                put = made.strips.new(strip.name, int(strip.frame_start), strip.action)
                animated_blocks.set_slot(put, strip.action_slot)
    animated_blocks.assign_action(new, source.action, source.action_slot)


def _find_twin(
    action: bpy.types.Action, before: list[Any], made: list[bpy.types.Action], paths: Mapping[str, str]
) -> Any | None:
    """Return the first animation data or NLA strip that holds the earlier action of a clip, or None.

    If the file had one clip before and has one now, their names may differ.
    """
    kept = action.meshferry
    path = paths.get(kept.source_path, kept.source_path)
    same_file = [holder for holder in before if holder.action.meshferry.source_path == path]
    twins = [holder for holder in same_file if holder.action.meshferry.clip_name == kept.clip_name]
    of_file = [other for other in made if other.meshferry.source_path == kept.source_path]
    if not twins and len(set(of_file)) == 1 and len({holder.action for holder in same_file}) == 1:
        twins = same_file
    return twins[0] if twins else None


def _replace(
    action: bpy.types.Action, made: bpy.types.Action, holders: Iterable[Any], slots: Mapping[int, Any]
) -> None:
    """Replace an action by a new one, which gets its name.

    ``slots`` has the new slots by the handles of the old ones.
    """
    before, after = tuple(action.frame_range[:]), tuple(made.frame_range[:])
    made.use_fake_user, action.use_fake_user = action.use_fake_user, False
    for holder in holders:
        is_strip = isinstance(holder, bpy.types.NlaStrip)
        is_whole = is_strip and (holder.action_frame_start, holder.action_frame_end) == before
        handle = _handle(holder.action_slot)
        holder.action = made
        animated_blocks.set_slot(holder, slots.get(handle))
        if is_whole:
            holder.action_frame_start, holder.action_frame_end = after
    if action.users:
        action.user_remap(made)  # for constraints and other users of the action
    for label, value in compat.custom_properties(action).items():
        made[label] = value
    made.meshferry.use_export = action.meshferry.use_export
    names.take_over(action, made)
    for old in action.slots:
        if old is not None and slots.get(old.handle) is not None:
            slots[old.handle].name_display = old.name_display


def _leave_tweak_mode(owners: Iterable[Owner]) -> None:
    """Leave the tweak mode of NLA strips, in which actions cannot be replaced."""
    for owner in owners:
        if owner.animation_data is not None and owner.animation_data.use_tweak_mode:
            owner.animation_data.use_tweak_mode = False


def _handle(slot: Any) -> int:
    return slot.handle if slot is not None else 0
