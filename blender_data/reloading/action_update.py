"""Actions of a new import in place of the earlier ones, in all animation data and NLA strips that use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import bpy

from .. import compat

Owner = bpy.types.Object | bpy.types.Key


def replace_actions(owners: Iterable[tuple[Owner, Owner]], paths: Mapping[str, str]) -> list[str]:
    """Replace actions of old owners by those of new ones from the same file with the same clip.

    Further new actions become active on the old owner if it has none, and are stashed otherwise.

    Parameters
    ----------
    owners:
        Old and new data blocks.
    paths:
        The earlier path of each moved file.

    Returns
    -------
    list
        Names of the further new actions.
    """
    replaced: dict[bpy.types.Action, bpy.types.Action] = {}
    slots: dict[tuple[bpy.types.Action, int], Any] = {}
    added: list[tuple[Owner, bpy.types.Action, Any]] = []
    for old, new in owners:
        before = _holders(old)
        for holder in _holders(new):
            twin = _find_twin(holder.action, before, [found.action for found in _holders(new)], paths)
            slot = _slot_of(holder)
            if twin is None:
                added.append((old, holder.action, slot))
            else:
                replaced.setdefault(twin.action, holder.action)
                slots[twin.action, _handle(_slot_of(twin))] = slot
    for action, made in replaced.items():
        _replace(action, made, {handle: slot for (of, handle), slot in slots.items() if of == action})
    for owner, action, slot in added:
        if owner.animation_data is None or owner.animation_data.action is None:
            compat.assign_action(owner, action, slot)
        else:
            compat.stash_action(owner, action, slot, action.meshferry.clip_name or action.name)
    return list(dict.fromkeys(action.name for _owner, action, _slot in added))


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
                _set_slot(put, _slot_of(strip))
    compat.assign_action(new, source.action, _slot_of(source))


def _holders(owner: Any) -> list[Any]:
    """Return the animation data of a data block and its NLA strips, as far as they have actions."""
    animation = owner.animation_data
    if animation is None:
        return []
    strips = [strip for track in animation.nla_tracks for strip in track.strips]
    return [holder for holder in (animation, *strips) if holder.action is not None]


def _find_twin(
    action: bpy.types.Action, before: list[Any], made: list[bpy.types.Action], paths: Mapping[str, str]
) -> Any | None:
    """Return the first holder of the earlier action of a clip. A file with one clip before and after may rename it."""
    kept = action.meshferry
    path = paths.get(kept.source_path, kept.source_path)
    same_file = [holder for holder in before if holder.action.meshferry.source_path == path]
    twins = [holder for holder in same_file if holder.action.meshferry.clip_name == kept.clip_name]
    of_file = [other for other in made if other.meshferry.source_path == kept.source_path]
    if not twins and len(set(of_file)) == 1 and len({holder.action for holder in same_file}) == 1:
        twins = same_file
    return twins[0] if twins else None


def _replace(action: bpy.types.Action, made: bpy.types.Action, slots: Mapping[int, Any]) -> None:
    """Replace an action everywhere, and remove it; ``slots`` are the new slots by handles of the old ones."""
    owners = [*bpy.data.objects, *bpy.data.shape_keys]
    holders = [holder for owner in owners for holder in _holders(owner) if holder.action == action]
    handles = [_handle(_slot_of(holder)) for holder in holders]
    before, after = tuple(action.frame_range[:]), tuple(made.frame_range[:])
    labels = {slot.handle: slot.name_display for slot in action.slots} if compat.HAS_SLOTS else {}
    is_whole = [
        isinstance(holder, bpy.types.NlaStrip) and (holder.action_frame_start, holder.action_frame_end) == before
        for holder in holders
    ]
    action.user_remap(made)
    for holder, handle, whole in zip(holders, handles, is_whole, strict=True):
        if handle in slots:
            _set_slot(holder, slots[handle])
        if whole:
            holder.action_frame_start, holder.action_frame_end = after
    for label, value in compat.custom_properties(action).items():
        made[label] = value
    made.use_fake_user = action.use_fake_user
    made.meshferry.use_export = action.meshferry.use_export
    name = action.name
    bpy.data.actions.remove(action)
    made.name = name
    for handle, slot in slots.items():
        if slot is not None and handle in labels:
            slot.name_display = labels[handle]


def _slot_of(holder: Any) -> Any:
    return holder.action_slot if compat.HAS_SLOTS else None


def _set_slot(holder: Any, slot: Any) -> None:
    if compat.HAS_SLOTS and slot is not None:
        holder.action_slot = slot


def _handle(slot: Any) -> int:
    return slot.handle if slot is not None else 0
