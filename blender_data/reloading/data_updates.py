"""Replace meshes and actions by those of a new import, and update the bones of armatures.

Poses, constraints and bones that the user added are not changed.
"""

import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

import bpy
import numpy as np

from .. import animated_blocks, compat, names
from ..animation.clip_sources import clip_name
from ..operator_calls import edited
from ..properties import copy_group
from .matching import Pairs

Owner = bpy.types.Object | bpy.types.Key


def replace_actions(
    pairs: Pairs, paths: Mapping[str, str], unchanged: Pairs, added_names: list[str]
) -> list[bpy.types.Action]:
    """Replace actions of old objects and their shape keys by actions of new ones that have the same file and clip.

    Other new actions become active on the old owner if it has no action, and are stashed otherwise. Their names are
    added to ``added_names``. Return the replaced actions, which have no users any more.

    Parameters
    ----------
    paths:
        The earlier path of each moved file.
    unchanged:
        Further objects, which only take part in replaced actions that they share with the others.
    """
    owners = _with_shapes(pairs)
    touched = {holder.action for new in owners for holder in animated_blocks.action_holders(new)}
    replaced: dict[bpy.types.Action, bpy.types.Action] = {}
    slots: dict[bpy.types.Action, dict[int, Any]] = {}
    added: list[tuple[Owner, bpy.types.Action, Any]] = []
    for new, old in {**owners, **_with_shapes(unchanged)}.items():
        before, made = animated_blocks.action_holders(old), animated_blocks.action_holders(new)
        actions = [holder.action for holder in made]
        for holder in made:
            twin = _find_twin(holder.action, before, actions, paths) or _find_exported(holder.action, old, before)
            slot = holder.action_slot
            if new not in owners and (twin is None or holder.action not in touched):
                continue
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
    added_names += dict.fromkeys(action.name for _owner, action, _slot in added)
    return list(replaced)


def _with_shapes(pairs: Pairs) -> dict[Owner, Owner]:
    """Return pairs of objects, and those of their shape keys."""
    meshes = [(new.data, old.data) for new, old in pairs.items() if old.type == new.type == "MESH"]
    shapes = {new.shape_keys: old.shape_keys for new, old in meshes if new.shape_keys and old.shape_keys}
    return dict((*pairs.items(), *shapes.items()))


def remove(surplus: Iterable[bpy.types.ID], made: Iterable[bpy.types.ID]) -> None:
    """Remove data blocks that are not needed, and collections and data of new imports that have become unused."""
    gone = {*surplus}
    made = [block for block in made if block not in gone]
    bpy.data.batch_remove(gone)
    empty = [block for block in made if isinstance(block, bpy.types.Collection) and not block.all_objects]
    gone = {block for block in empty if not (block.children or block.meshferry.import_id)}
    made = [block for block in made if block not in gone]
    bpy.data.batch_remove(gone)
    while unused := [block for block in made if not block.users]:
        made = [block for block in made if block not in unused]
        bpy.data.batch_remove(unused)


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


def _find_exported(action: bpy.types.Action, owner: Owner, before: Iterable[Any]) -> Any | None:
    """Return the first animation data or NLA strip whose action was made here and exported as a clip, or None."""
    is_exported = isinstance(owner, bpy.types.Object) and owner.meshferry.given_space
    own = (one for one in before if is_exported and not one.action.meshferry.source_path)
    return next((one for one in own if clip_name(one.action) == action.meshferry.clip_name), None)


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


_SAME = 1e-6
"""Tolerance for equal positions, relative to the largest coordinate if that is above 1."""
_SAME_AXES = 1e-5
"""Tolerance for equal axes of bones."""

JointKey = tuple[str, int]
"""Name of a joint in the file, and its number among the joints of this name."""


def bones_by_joint(armature: bpy.types.Armature) -> dict[JointKey, bpy.types.Bone]:
    """Return the imported bones of an armature by their joints."""
    bones = sorted((bone for bone in armature.bones if bone.meshferry.order >= 0), key=lambda one: one.meshferry.order)
    counts: Counter[str] = Counter()
    found: dict[JointKey, bpy.types.Bone] = {}
    for bone in bones:
        name = bone.meshferry.joint_name
        found[name, counts[name]] = bone
        counts[name] += 1
    return found


def adopt_names(new: bpy.types.Armature, old: bpy.types.Armature) -> None:
    """Give the new bones the names that the user gave the old ones; Blender renames vertex groups and f-curves."""
    given, made = bones_by_joint(old), bones_by_joint(new)
    renamed = [(made[joint], given[joint].name) for joint in made if joint in given]
    renamed = [(bone, name) for bone, name in renamed if bone.name != name]
    for number, (bone, _name) in enumerate(renamed):  # Two passes are needed, since bones may have swapped their names.
        bone.name = f"Meshferry {number}"
    for bone, name in renamed:
        bone.name = name


def update_armature(context: bpy.types.Context, old: bpy.types.Armature, new: bpy.types.Armature) -> list[str]:
    """Move bones to their new rest poses and add new ones; return the names of bones that the file no longer has.

    Unchanged bones are left alone, so that their drawn lengths, rolls and parents stay as the user set them. The bones
    of both armatures have the same names, see :func:`adopt_names`.
    """
    moved = [bone for bone in new.bones if bone.name not in old.bones or not _is_same(old.bones[bone.name], bone)]
    hung = [bone for bone in new.bones if bone.name in old.bones and _is_hung_elsewhere(old.bones[bone.name], bone)]
    before = {bone.name for bone in old.bones}
    with edited(context, old):
        edit_bones = old.edit_bones
        connected = [bone for bone in edit_bones if bone.use_connect]
        for bone in connected:  # all at once: connected bones move each other
            bone.use_connect = False
        for bone in moved:
            _place(edit_bones.get(bone.name) or edit_bones.new(bone.name), bone)
        for bone in new.bones:
            if bone in hung or bone.name not in before:
                edit_bones[bone.name].parent = edit_bones[bone.parent.name] if bone.parent is not None else None
        for bone in connected:
            _connect(bone)
    old.meshferry.joint_names = new.meshferry.joint_names
    for bone in new.bones:
        kept = old.bones[bone.name]
        copy_group(bone.meshferry, kept.meshferry)
        kept.meshferry.rest_matrix = np.array(kept.matrix_local).reshape(-1)
        if bone.name not in before:
            kept.use_deform, kept.inherit_scale = bone.use_deform, bone.inherit_scale
            _show_as(old, kept, bone)
    return [bone.name for bone in old.bones if bone.meshferry.order >= 0 and bone.name not in new.bones]


def _place(edited: bpy.types.EditBone, bone: bpy.types.Bone) -> None:
    edited.head, edited.tail = (0.0, 0.0, 0.0), (0.0, bone.length, 0.0)
    edited.matrix = bone.matrix_local


def _connect(edited: bpy.types.EditBone) -> None:
    """Connect a bone to its parent, unless that would move it."""
    parent = edited.parent
    edited.use_connect = parent is not None and (parent.tail - edited.head).length <= _SAME * max(
        1.0, edited.head.length
    )


def _is_same(old: bpy.types.Bone, new: bpy.types.Bone) -> bool:
    now = np.array(new.matrix_local)
    apart = np.abs(now - np.array(old.matrix_local))
    return bool(apart[:3, :3].max() <= _SAME_AXES and apart[:3, 3].max() <= _SAME * max(1.0, np.abs(now).max()))


def _is_hung_elsewhere(old: bpy.types.Bone, new: bpy.types.Bone) -> bool:
    """Return whether the file now gives a bone another parent than before."""
    orders = {bone.meshferry.order: bone.name for bone in old.id_data.bones if bone.meshferry.order >= 0}
    before = orders.get(old.meshferry.parent_order, "")
    return before != (new.parent.name if new.parent is not None else "")


def _show_as(armature: bpy.types.Armature, bone: bpy.types.Bone, like: bpy.types.Bone) -> None:
    """Assign a new bone to bone collections with the names of those of another bone, which are created if necessary."""
    for group in like.collections:
        there = armature.collections_all.get(group.name)
        if there is None:
            there = armature.collections.new(group.name)
            there.is_visible = group.is_visible
        there.assign(bone)


def replace_mesh(
    old: bpy.types.Mesh, new: bpy.types.Mesh, users: Iterable[bpy.types.Object], *, stays: bool = False
) -> None:
    """Replace a mesh by a new one, which gets the old one's name, custom properties, and materials of equal surfaces.

    Shape keys of the same names keep their values, ranges, drivers and animation. Materials that the user linked to an
    object instead of the mesh stay in the slots of their surfaces.

    Parameters
    ----------
    users:
        The objects that get the new mesh.
    stays:
        Whether further objects keep the old mesh, and its name.
    """
    before = slot_names(old)
    _keep_materials(old, new, before)
    _keep_shape_keys(old, new)
    for label, value in compat.custom_properties(old).items():
        new[label] = value
    new.use_fake_user, old.use_fake_user = old.use_fake_user, False
    for obj in users:
        slots = zip(before, obj.material_slots, strict=False)
        own = [(name, slot.material) for name, slot in slots if slot.link == "OBJECT"]
        obj.data = new
        for slot in obj.material_slots:
            slot.link = "DATA"
        _link_materials(obj, own, slot_names(new))
    if stays:
        return
    if old.users:
        old.user_remap(new)  # for drivers and nodes; it searches all data blocks, 25 ms in a scene of 1,000 objects
    names.take_over(old, new)
    if old.shape_keys is not None and new.shape_keys is not None:
        names.take_over(old.shape_keys, new.shape_keys)


def slot_names(mesh: bpy.types.Mesh) -> list[str]:
    """Return, for each slot, the name of its material in the file; for a slot that the user added, the current name."""
    stored: list[str] = json.loads(mesh.meshferry.slot_names or "[]")
    current = current_slot_names(mesh)
    return [*stored[: len(current)], *current[len(stored) :]]


def current_slot_names(mesh: bpy.types.Mesh) -> list[str]:
    """Return the name with which an export writes the material of each slot now."""
    return [names.name_in_file(material) if material is not None else "" for material in mesh.materials]


def _keep_materials(old: bpy.types.Mesh, new: bpy.types.Mesh, before: list[str]) -> None:
    """Use the materials of old slots in the new slots that have the same material in the file."""
    waiting: dict[str, deque[Any]] = {}
    for name, material in zip(before, old.materials, strict=True):
        waiting.setdefault(name, deque()).append(material)
    for place, name in enumerate(slot_names(new)):
        found = waiting.get(name)
        if found:
            new.materials[place] = found.popleft()


def _link_materials(obj: bpy.types.Object, own: list[tuple[str, Any]], after: list[str]) -> None:
    """Link materials to the slots of an object whose names they have; each name in ``after`` is used once."""
    for name, material in own:
        if name in after:
            slot = obj.material_slots[after.index(name)]
            after[after.index(name)] = "\0"
            slot.link, slot.material = "OBJECT", material


def _keep_shape_keys(old: bpy.types.Mesh, new: bpy.types.Mesh) -> None:
    if old.shape_keys is None or new.shape_keys is None:
        return
    for key in new.shape_keys.key_blocks[1:]:
        before = old.shape_keys.key_blocks.get(key.name)
        if before is not None:
            key.slider_min, key.slider_max = before.slider_min, before.slider_max
            key.value, key.mute = before.value, before.mute
    copy_animation(old.shape_keys, new.shape_keys)
