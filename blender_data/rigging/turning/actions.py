"""Actions that animate turned bones: which are converted, and which refuse the change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.messages import Report
from ... import compat
from ...exporting.clips import pose_curves
from ...mesh_data import mesh_edits
from ..joint_poses import Array
from .keys import KeyTurner
from .turns import ArmatureTurns, Turns, is_same

_PLAIN_BLENDING = {"REPLACE", "COMBINE", "ADD", "SUBTRACT"}
"""Ways of blending NLA strips that are linear in vectors, or multiply rotations."""


@dataclass
class PlannedAction:
    """An action, or from Blender 4.4 on one of its slots, whose keys are converted."""

    action: bpy.types.Action
    slot: Any
    turns: Turns
    holders: list[tuple[Any, Any]] = field(default_factory=list)
    """Armature objects that play it, each with its animation data, NLA strip or constraint; empty if unused."""


def is_made_for_others(action: bpy.types.Action, armature: bpy.types.Armature) -> bool:
    """Return whether an action was made for bones that lie by another rule than those of an armature.

    The rule is known for imported and converted actions only.
    """
    kept = action.meshferry
    return kept.bone_axes != armature.meshferry.bone_axes and bool(kept.bone_axes or kept.clip_name)


def keyed_bones(action: bpy.types.Action, slot: Any) -> set[str]:
    """Return the bones that an action keys. From 4.4 on, nothing plays without a slot."""
    if compat.HAS_SLOTS and slot is None:
        return set()
    return {bone for bone, _channel in pose_curves.keyed_channels(action, slot)}


def plan(turns: ArmatureTurns, axes: str, report: Report) -> list[PlannedAction]:
    """Return the actions to convert when bones are turned.

    Actions that nothing plays are converted, too, if no other armature has the bones that they key.

    Parameters
    ----------
    turns:
        Changes by armature.
    axes:
        Rule by which the bones lie afterwards. Actions that were keyed for it are not converted.
    report:
        Gets the names of actions that are not converted.

    Raises
    ------
    MeshferryError
        An action cannot be changed, or other armatures play it, too.
    """
    planned: dict[tuple[bpy.types.Action, int], PlannedAction] = {}
    others: list[tuple[Any, Any]] = []
    played: set[tuple[bpy.types.Action, int]] = set()
    for obj in bpy.data.objects:
        for holder in _holders(obj):
            slot = compat.slot_of(holder)
            key = (holder.action, slot.handle if slot is not None else 0)
            played.add(key)
            own = turns.get(obj.data) if obj.type == "ARMATURE" else None
            if own is None:
                others.append((obj, holder))
            elif holder.action.meshferry.bone_axes != axes:
                found = planned.setdefault(key, PlannedAction(holder.action, slot, own))
                _require_equal(found, own, obj)
                found.holders.append((obj, holder))
    shared = {holder.action for _obj, holder in others}
    for key, found in list(planned.items()):
        if keyed_bones(found.action, found.slot) & set(found.turns):
            _require_editable(found.action)
        elif found.action in shared or not found.action.is_editable:
            del planned[key]
    _require_single(planned.values(), others, axes)
    unused = _unused(turns, axes, played, report)
    return [*planned.values(), *unused]


def convert(planned: Sequence[PlannedAction], connected: Mapping[bpy.types.Armature, set[str]], axes: str) -> _Results:
    """Convert actions; return the names of bones that are not converted exactly, each with its action.

    Location keys of bones that were connected to their parents are removed, since they had no effect.
    """
    results = _Results()
    scene_frames = _scene_frames()
    edited = {found.action for found in planned if _is_edited(found.action)}
    for found in planned:
        players = list(dict.fromkeys(obj for obj, _holder in found.holders))
        fixed = set().union(*(connected[obj.data] for obj in players))
        times = np.concatenate([np.zeros(0), *(_shown_times(holder) for _obj, holder in found.holders)])
        for bag in compat.curve_bags(found.action, found.slot):
            for curve in list(bag.fcurves):
                bone, channel = pose_curves.bone_and_channel(curve.data_path)
                if channel == "location" and bone in fixed:
                    bag.fcurves.remove(curve)
            turner = KeyTurner(bag, players, times, scene_frames, found.turns)
            turner.turn()
            results.add(found, turner)
        found.action.meshferry.bone_axes = axes
    for action in {found.action for found in planned if found.action.meshferry.fingerprint} - edited:
        action.meshferry.fingerprint = repr(mesh_edits.action_checksum(action))
    return results


@dataclass
class _Results:
    baked: list[str] = field(default_factory=list)
    sheared: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    blended: list[str] = field(default_factory=list)
    """NLA strips that are blended in a way that depends on the axes of the bones."""

    def add(self, found: PlannedAction, turner: KeyTurner) -> None:
        for name in ("baked", "sheared", "ambiguous"):
            named = (f"{found.action.name}: {bone}" for bone in dict.fromkeys(getattr(turner, name)))
            getattr(self, name).extend(named)
        for _obj, holder in found.holders:
            if isinstance(holder, bpy.types.NlaStrip) and _blends_axes(holder, has_angles=bool(turner.baked)):
                self.blended.append(holder.name)

    def report_to(self, report: Report) -> None:
        """Report the names."""
        report.change_of(
            "keys-baked",
            "{} got a key in each frame, since Euler angles and components that are keyed at different times cannot be "
            "converted key by key: {}",
            self.baked,
            "animated bone",
        )
        report.loss_of(
            "scale-of-turned-bones",
            "{} former axes, only along the nearest ones: {}",
            self.sheared,
            "animated bone cannot be scaled along its",
            "animated bones cannot be scaled along their",
        )
        report.loss_of(
            "different-poses",
            "Several armatures play an action that keys only some components of {}, or have other rotation modes; "
            "converted for the first armature: {}",
            self.ambiguous,
            "bone",
        )
        report.loss_of(
            "blended-strips",
            "{} components of rotations, which depend on the axes: {}",
            self.blended,
            "NLA strip blends",
            "NLA strips blend",
        )


def _holders(obj: bpy.types.Object) -> list[Any]:
    """Return the animation data, the NLA strips and the constraints of an object that have an action."""
    bones = obj.pose.bones if obj.pose is not None else ()
    constraints = [constraint for bone in bones for constraint in bone.constraints if constraint.type == "ACTION"]
    return [*compat.action_holders(obj), *(constraint for constraint in constraints if constraint.action is not None)]


def _require_editable(action: bpy.types.Action) -> None:
    if not action.is_editable:
        raise MeshferryError("Action '{}' is linked from another file; make it local", action.name)


def _require_equal(found: PlannedAction, turns: Turns, obj: Any) -> None:
    """Raise an error if two armatures that play an action turn its bones differently."""
    for bone in keyed_bones(found.action, found.slot):
        a, b = found.turns.get(bone), turns.get(bone)
        if (a is None) != (b is None) or (
            a is not None and b is not None and not (is_same(a.axes, b.axes) and is_same(a.location, b.location))
        ):
            raise MeshferryError(
                "Action '{}' animates '{}' and '{}', whose bones have different axes; give each its own copy",
                *(found.action.name, found.holders[0][0].name, obj.name),
            )


def _require_single(planned: Iterable[PlannedAction], others: Iterable[tuple[Any, Any]], axes: str) -> None:
    """Raise an error if an armature that is not changed plays one of the actions, too."""
    turned: dict[bpy.types.Action, set[str]] = {}
    for found in planned:
        turned.setdefault(found.action, set()).update(found.turns)
    for obj, holder in others:
        bones = turned.get(holder.action)
        if bones is None or obj.type != "ARMATURE":
            continue
        waits = obj.data.meshferry.bone_axes == axes and is_made_for_others(holder.action, obj.data)
        if not waits and keyed_bones(holder.action, compat.slot_of(holder)) & bones & set(obj.data.bones.keys()):
            raise MeshferryError(
                "Action '{}' also animates '{}', which is not changed; select both armatures, or give each its own "
                "copy of the action",
                *(holder.action.name, obj.name),
            )


def _unused(
    turns: ArmatureTurns, axes: str, played: set[tuple[bpy.types.Action, int]], report: Report
) -> list[PlannedAction]:
    """Return actions that nothing plays and that key turned bones, if the armature for which they were keyed is clear.

    Otherwise report their names.
    """
    found, unclear = [], []
    for action in bpy.data.actions:
        for slot in compat.slots_of(action):
            keyed = keyed_bones(action, slot)
            if action.meshferry.bone_axes == axes or (action, slot.handle if slot is not None else 0) in played:
                continue
            having = [data for data in bpy.data.armatures if keyed & set(data.bones.keys())]
            own = [data for data in having if data in turns and keyed & set(turns[data])]
            if not own:
                continue
            player = next((obj for obj in bpy.data.objects if obj.data == own[0]), None)
            if len(having) == 1 and action.is_editable and player is not None:
                found.append(PlannedAction(action, slot, turns[own[0]], [(player, None)]))
            else:
                unclear.append(action.name)
    report.loss_of(
        "unused-actions",
        "{} be for another armature: {}",
        list(dict.fromkeys(unclear)),
        "action without user not converted, since it may",
        "actions without users not converted, since they may",
    )
    return found


def _is_edited(action: bpy.types.Action) -> bool:
    return bool(action.meshferry.fingerprint) and mesh_edits.is_action_edited(action)


def _shown_times(holder: Any) -> Array:
    """Return the times of its action at which an NLA strip plays it in frames of the scene."""
    if not isinstance(holder, bpy.types.NlaStrip) or holder.use_animated_time:
        return np.zeros(0)
    length = holder.action_frame_end - holder.action_frame_start
    if length <= 0 or holder.scale <= 0:
        return np.zeros(0)
    frames = np.arange(np.ceil(holder.frame_start), np.floor(holder.frame_end) + 1)
    times = ((frames - holder.frame_start) / holder.scale) % length
    return np.asarray(holder.action_frame_end - times if holder.use_reverse else holder.action_frame_start + times)


def _blends_axes(strip: bpy.types.NlaStrip, *, has_angles: bool) -> bool:
    if strip.blend_type not in _PLAIN_BLENDING:
        return True
    is_partial = strip.blend_in > 0 or strip.blend_out > 0 or strip.influence < 1 or strip.use_animated_influence
    return has_angles and (is_partial or strip.blend_type != "REPLACE")


def _scene_frames() -> Array:
    start = min((scene.frame_start for scene in bpy.data.scenes), default=0)
    return np.arange(start, max((scene.frame_end for scene in bpy.data.scenes), default=0) + 1, dtype=np.float64)
