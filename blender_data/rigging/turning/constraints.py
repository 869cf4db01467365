"""Constraints and limits that depend on the axes of bones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from mathutils import Matrix

from ..joint_poses import Array
from .turns import ArmatureTurns, BoneTurn, is_same, nearest_right_angles, turn_in

_AXES = "xyz"
_LOCAL = {"LOCAL", "LOCAL_WITH_PARENT", "LOCAL_OWNER_ORIENT"}
_BY_POSITION = {"LIMIT_DISTANCE", "DAMPED_TRACK", "LOCKED_TRACK", "TRACK_TO", "STRETCH_TO", "IK", "SPLINE_IK"}
"""Constraints that use the position of their target only."""
_FREE = {"ARMATURE", "LIMIT_DISTANCE", "CLAMP_TO"}
"""Constraints that do not depend on the axes of their owner."""
_MOVES_ONLY = {"COPY_LOCATION", "LIMIT_LOCATION", "LIMIT_DISTANCE", "CLAMP_TO", "FLOOR"}
"""Constraints that only move the head of their owner."""
_MOVES = {"COPY_TRANSFORMS", "CHILD_OF", "ARMATURE", "TRANSFORM", "FOLLOW_PATH", "PIVOT", "SHRINKWRAP", "ACTION"}
"""Constraints that move the head of their owner and turn it."""
_COPIES = {"COPY_LOCATION", "COPY_ROTATION", "COPY_TRANSFORMS"}
_EULER = {"XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"}
_UNTURNED = BoneTurn(np.identity(3), np.identity(3), (1.0, 1.0))
_LOOKED_AT = 1e-6
"""Change of a bone's tail in metres up to which constraints that aim at it are not affected."""


@dataclass
class ConstraintTurner:
    """Converts the constraints of all objects and bones."""

    turns: ArmatureTurns
    loose: Mapping[bpy.types.Armature, set[str]]
    """Bones that were connected to their parents before. Constraints did not move their heads."""
    unconverted: list[str] = field(default_factory=list)
    """Constraints that have another result than before."""
    muted: list[str] = field(default_factory=list)
    """Constraints that had no effect, since they only moved connected bones."""
    approximate: list[str] = field(default_factory=list)
    """Limits and constraints that hold one value for each axis, of bones that are not turned by right angles."""

    def turn(self) -> None:
        """Convert all constraints, and the limits of bones in chains of inverse kinematics."""
        for obj in bpy.data.objects:
            for constraint in obj.constraints:
                self._turn(obj, None, constraint, obj.name)
            for bone in obj.pose.bones if obj.pose is not None else ():
                name = f"{obj.name}: {bone.name}"
                for constraint in bone.constraints:
                    self._turn(obj, bone, constraint, name)
                turn = turn_in(self.turns, obj, bone.name)
                if turn is not None and turn.is_turned:
                    self._turn_chain_limits(bone, turn, name)

    def _turn(self, obj: bpy.types.Object, bone: Any, constraint: Any, name: str) -> None:
        owners = [bone.name] if bone is not None else []
        if constraint.type in {"IK", "SPLINE_IK"} and bone is not None:
            chain = [bone, *bone.parent_recursive]
            owners = [member.name for member in chain[: constraint.chain_count or None]]
        changed = [turn for member in owners if (turn := turn_in(self.turns, obj, member)) is not None]
        owner = max(changed, key=lambda turn: turn.is_turned, default=_UNTURNED)
        if bone is not None and not constraint.mute and bone.name in self.loose.get(obj.data, ()):
            if constraint.type in _MOVES_ONLY:
                constraint.mute = True
                self.muted.append(f"{name} ({constraint.name})")
                return
            if constraint.type in _MOVES:
                self.unconverted.append(f"{name} ({constraint.name})")
                return
        targets = [turn for target in _targets(constraint) if (turn := turn_in(self.turns, *target)) is not None]
        target = targets[0] if targets else _UNTURNED
        if owner is _UNTURNED and not targets:
            return
        name = f"{name} ({constraint.name})"
        is_linked = not obj.is_editable or (obj.override_library is not None and not constraint.is_override_data)
        looks_at = getattr(constraint, "head_tail", 0.0) > 0 and np.abs(target.tail[:3, 3]).max() > _LOOKED_AT
        is_free = _is_free(constraint, owner, target) and not looks_at
        if not is_free and (is_linked or looks_at or not self._is_converted(constraint, bone, owner, target, name)):
            self.unconverted.append(name)

    def _is_converted(self, constraint: Any, bone: Any, owner: BoneTurn, target: BoneTurn, name: str) -> bool:
        """Convert a constraint that depends on axes; return whether that is possible."""
        if constraint.type == "CHILD_OF":
            parts = [f"use_{part}_{axis}" for part in ("location", "rotation", "scale") for axis in _AXES]
            constraint.inverse_matrix = Matrix(target.axes.T.tolist()).to_4x4() @ constraint.inverse_matrix
            return all(getattr(constraint, part) for part in parts)
        is_local = constraint.owner_space in _LOCAL
        if constraint.type == "LIMIT_ROTATION" and is_local:
            turned = nearest_right_angles(owner.axes)
            constraint.euler_order = _turned_order(constraint, bone, turned)
            _permute(constraint, turned, ("use_limit_{}",), ("min_{}", "max_{}"))
            self._note(owner.axes, turned, name)
            return True
        if constraint.type not in _COPIES or is_local != (constraint.target_space in _LOCAL):
            return False
        source = owner if constraint.target_space == "LOCAL_OWNER_ORIENT" else target
        if is_same(owner.axes, source.axes) and _copies_whole(constraint):
            return "CUSTOM" not in {constraint.owner_space, constraint.target_space}
        may_convert = is_local and constraint.type != "COPY_TRANSFORMS"
        return may_convert and self._is_copy_converted(constraint, bone, owner, source, name)

    def _is_copy_converted(self, constraint: Any, bone: Any, owner: BoneTurn, source: BoneTurn, name: str) -> bool:
        """Convert a constraint that copies some axes of a location or rotation in local space."""
        turned, turned_source = nearest_right_angles(owner.axes), nearest_right_angles(source.axes)
        signs = (turned * turned_source).sum(axis=0)
        if not np.abs(signs).all():  # the axes of the target are exchanged otherwise than those of the owner
            return False
        _permute(constraint, turned, ("use_{}", "invert_{}"), ())
        for axis, sign in zip(_AXES, signs, strict=True):
            if sign < 0:
                setattr(constraint, f"invert_{axis}", not getattr(constraint, f"invert_{axis}"))
        if constraint.type == "COPY_ROTATION":
            constraint.euler_order = _turned_order(constraint, bone, turned)
        self._note(owner.axes, turned, name)
        self._note(source.axes, turned_source, name)
        return True

    def _turn_chain_limits(self, bone: bpy.types.PoseBone, turn: BoneTurn, name: str) -> None:
        """Convert limits, locks and stiffness of a bone in chains of inverse kinematics."""
        flags = [getattr(bone, flag.format(axis)) for flag in ("lock_ik_{}", "use_ik_limit_{}") for axis in _AXES]
        if not any(flags) and not any(getattr(bone, f"ik_stiffness_{axis}") for axis in _AXES):
            return
        turned = nearest_right_angles(turn.axes)
        _permute(bone, turned, ("lock_ik_{}", "use_ik_limit_{}", "ik_stiffness_{}"), ("ik_min_{}", "ik_max_{}"))
        self._note(turn.axes, turned, name)

    def _note(self, axes: Array, turned: Array, name: str) -> None:
        if not is_same(axes, turned) and name not in self.approximate:
            self.approximate.append(name)


def _targets(constraint: Any) -> Iterator[tuple[bpy.types.Object, str]]:
    """Yield the objects and bones to which a constraint refers."""
    for holder in (constraint, *getattr(constraint, "targets", ())):
        for obj, bone in (
            ("target", "subtarget"),
            ("pole_target", "pole_subtarget"),
            ("space_object", "space_subtarget"),
        ):
            if getattr(holder, obj, None) is not None:
                yield getattr(holder, obj), getattr(holder, bone, "")


def _is_free(constraint: Any, owner: BoneTurn, target: BoneTurn) -> bool:
    """Return whether a constraint has the same result with other axes and tails."""
    kind, spaces = constraint.type, {constraint.owner_space, constraint.target_space}
    if kind in {"COPY_LOCATION", "LIMIT_LOCATION"}:
        return not spaces & {*_LOCAL, "CUSTOM"} or not (owner.is_turned or target.is_turned)
    if kind in {"IK", "SPLINE_IK", "STRETCH_TO"}:  # they aim with the tail of their owner
        return owner is _UNTURNED
    if kind in _FREE:
        return True
    return (
        not target.is_turned and kind == "CHILD_OF" if owner.is_turned else kind in _BY_POSITION or not target.is_turned
    )


def _copies_whole(constraint: Any) -> bool:
    """Return whether a constraint copies all axes as they are."""
    return (
        all(
            getattr(constraint, f"use_{axis}", True) and not getattr(constraint, f"invert_{axis}", False)
            for axis in _AXES
        )
        and getattr(constraint, "mix_mode", "REPLACE") != "ADD"
    )


def _permute(owner: Any, turned: Array, plain: tuple[str, ...], limits: tuple[str, ...]) -> None:
    """Give settings of the old axes to the new ones.

    Parameters
    ----------
    turned:
        Rotation by right angles: columns are the new axes in the old ones.
    plain:
        Names of settings without sign, with a field for the axis.
    limits:
        Names of the minimum and the maximum; those of a reversed axis are exchanged and negated.
    """
    before = {name: [getattr(owner, name.format(axis)) for axis in _AXES] for name in (*plain, *limits)}
    for new, axis in enumerate(_AXES):
        old = int(np.abs(turned[:, new]).argmax())
        for name in plain:
            setattr(owner, name.format(axis), before[name][old])
        if limits:
            low, high = (before[name][old] for name in limits)
            low, high = (low, high) if turned[old, new] > 0 else (-high, -low)
            for name, value in zip(limits, (low, high), strict=True):
                setattr(owner, name.format(axis), value)


def _turned_order(constraint: Any, bone: Any, turned: Array) -> str:
    """Return the order of Euler angles about the new axes that is that of a constraint about the old ones."""
    given = constraint.euler_order
    if given == "AUTO":
        given = bone.rotation_mode if bone is not None and bone.rotation_mode in _EULER else "XYZ"
    order = "".join("XYZ"[int(np.abs(turned["XYZ".index(axis)]).argmax())] for axis in given)
    return constraint.euler_order if order == given else order
