"""Keys of bones, converted to other axes.

Location, quaternions, and axes with angles are linear in the change of axes, so their keys are converted with
interpolation and handles if the components are keyed alike. Other keys, and Euler angles, are baked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np

from ....io_formats.geometry.quaternions import continuous_angles, euler_angles
from ... import arrays
from ...exporting.clips import pose_curves
from ..joint_poses import Array
from .turns import VECTORS, BoneTurn, Turns

_CONSTANT, _LINEAR, _BEZIER, _FREE = 0, 1, 2, 0
"""Values of the interpolation and of the type of handles of keys."""
_ELASTIC = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items["ELASTIC"].value
"""The interpolation that is not linear in the values of the keys."""
_SAME_FRAME = 1e-4
"""Difference in frames up to which keys of different components count as keyed together."""
_SAME_TIME = 1e-5
"""Difference in frames up to which keys are merged; the precision of times near frame 100."""
_SAME_VALUE = 1e-7
_COPIED = (
    ("interpolation", np.int32),
    ("easing", np.int32),
    ("type", np.int32),
    ("handle_left_type", np.int32),
    ("handle_right_type", np.int32),
    ("back", np.float32),
    ("period", np.float32),
    ("amplitude", np.float32),
)
_LINEAR_MODIFIERS = {"CYCLES", "STEPPED"}
"""Modifiers of f-curves that commute with linear combinations of these."""

Curves = Mapping[int, bpy.types.FCurve]
"""Existing f-curves of the three components of a vector."""


@dataclass
class KeyTurner:
    """Converts the bones' keys in the f-curves of an action or, from Blender 4.4 on, of one of its slots."""

    bag: Any
    """Owner of the collection ``fcurves``."""
    players: Sequence[bpy.types.Object]
    """Armature objects that play the f-curves; channels without keys keep their values in the pose."""
    times: Array
    """(n,) times of the action at which NLA strips play it in frames of the scene."""
    scene_frames: Array
    """(n,) all frames of the scene, for curves that change outside their keys."""
    turns: Turns
    baked: list[str] = field(default_factory=list)
    """Bones that have a key in each frame now."""
    sheared: list[str] = field(default_factory=list)
    """Bones that are scaled along other axes than before."""
    ambiguous: list[str] = field(default_factory=list)
    """Bones whose keys have no single equivalent, since the poses or rotation modes of several armatures differ."""

    def turn(self) -> None:
        """Convert all keys."""
        found: dict[tuple[str, str], dict[int, bpy.types.FCurve]] = {}
        for curve in self.bag.fcurves:
            bone, channel = pose_curves.bone_and_channel(curve.data_path)
            if bone in self.turns and channel in pose_curves.CHANNELS:
                found.setdefault((bone, channel), {})[curve.array_index] = curve
        for (bone, channel), curves in found.items():
            turn = self.turns[bone]
            first = VECTORS.get(channel, 0)
            vector = {index - first: curve for index, curve in curves.items() if index >= first}
            if channel == "rotation_euler":
                self._turn_angles(bone, turn, vector)
            elif vector:
                self._turn_vector(bone, channel, turn, vector)

    def _still(self, bone: str, channel: str, live: Curves) -> Array:
        """Return the values in the pose of a vector, (3,), which components without keys keep."""
        first = VECTORS.get(channel, 0)
        values = np.array([getattr(player.pose.bones[bone], channel)[first : first + 3] for player in self.players])
        lacking = [component for component in range(3) if component not in live]
        if lacking and np.ptp(values[:, lacking], axis=0).max() > 1e-6:
            self.ambiguous.append(bone)
        return np.asarray(values[0], np.float64)

    def _turn_vector(self, bone: str, channel: str, turn: BoneTurn, curves: Curves) -> None:
        live = _live(curves)
        if not live:
            return
        matrix, still = turn.matrix(channel), self._still(bone, channel, live)
        path = next(iter(curves.values())).data_path
        if _are_alike(list(live.values())):
            like = next(iter(live.values()))
            names = ("co", "handle_left", "handle_right")
            rows = {name: self._rows(live, like, name, still) for name in names}
            self._note_shear(bone, channel, turn, rows["co"][..., 1].T)
            for values in rows.values():
                values[..., 1] = matrix @ values[..., 1]
            for component in range(3):
                values = np.stack([rows[name][component, :, 1] for name in names])
                curve = self._curve(curves, component, path, VECTORS[channel], values, (matrix @ still)[component])
                if curve is not None:
                    if component not in live:
                        _copy_keys(like, curve)
                    _write_keys(curve, {name: rows[name][component] for name in names})
            return
        frames = self._frames(live.values())
        values = self._sampled(live, frames, still)
        self._note_shear(bone, channel, turn, values)
        self.baked.append(bone)
        self._bake(curves, path, VECTORS[channel], frames, values @ matrix.T, matrix @ still)

    def _turn_angles(self, bone: str, turn: BoneTurn, curves: Curves) -> None:
        """Convert Euler angles, which are not linear in the change of axes."""
        modes = {player.pose.bones[bone].rotation_mode for player in self.players}
        mode = self.players[0].pose.bones[bone].rotation_mode
        live = _live(curves)
        if pose_curves.rotation_channel(mode) != "rotation_euler" or not live or not turn.is_turned:
            return
        if len(modes) > 1:
            self.ambiguous.append(bone)
        still = self._still(bone, "rotation_euler", live)
        path = next(iter(curves.values())).data_path
        holds = _are_alike(list(live.values())) and _holds(next(iter(live.values())))
        frames = _key_frames(live.values()) if holds else self._frames(live.values())
        values = turned_angles(turn, mode, self._sampled(live, frames, still))
        self._bake(curves, path, 0, frames, values, turned_angles(turn, mode, still[None])[0], is_constant=holds)
        if not holds:
            self.baked.append(bone)

    def _note_shear(self, bone: str, channel: str, turn: BoneTurn, values: Array) -> None:
        if channel == "scale" and turn.shears(values):
            self.sheared.append(bone)

    def _rows(self, live: Curves, like: bpy.types.FCurve, name: str, still: Array) -> Array:
        """Return keys or handles of the three components, (3, n, 2) float64; those without keys are constant."""
        rows = np.array([_points(live.get(component, like), name) for component in range(3)])
        for component in range(3):
            if component not in live:
                rows[component, :, 1] = still[component]
        return rows

    def _sampled(self, live: Curves, frames: Array, still: Array) -> Array:
        """Return the values of the three components in frames, (n, 3)."""
        values = np.tile(still, (len(frames), 1))
        for component, curve in live.items():
            values[:, component] = pose_curves.evaluated(curve, frames)
        return values

    def _frames(self, curves: Any) -> Array:
        """Return the frames to bake: those of the keys, and all frames that Blender shows between them."""
        keys = _key_frames(curves)
        shown = np.concatenate((np.arange(np.ceil(keys[0]), np.floor(keys[-1]) + 1), self.times))
        if any(curve.extrapolation == "LINEAR" or len(curve.modifiers) for curve in curves):
            shown = np.concatenate((shown, self.scene_frames))
        else:
            shown = shown[(shown > keys[0]) & (shown < keys[-1])]
        frames = np.unique(np.concatenate((keys, shown)))
        return frames[np.diff(frames, prepend=-np.inf) > _SAME_TIME]

    def _bake(
        self,
        curves: Curves,
        path: str,
        first: int,
        frames: Array,
        values: Array,
        still: Array,
        *,
        is_constant: bool = False,
    ) -> None:
        is_muted = all(curve.mute for curve in curves.values())
        for component in range(3):
            curve = self._curve(curves, component, path, first, values[:, component], still[component])
            if curve is None:
                continue
            for modifier in list(curve.modifiers):
                curve.modifiers.remove(modifier)
            curve.mute, curve.extrapolation = is_muted, "CONSTANT"
            keys = curve.keyframe_points
            keys.clear()
            keys.add(len(frames))
            keys.foreach_set("co", arrays.flat(np.column_stack((frames, values[:, component]))))
            kind = _CONSTANT if is_constant else _LINEAR
            keys.foreach_set("interpolation", np.full(len(frames), kind, np.int32))
            curve.update()

    def _curve(
        self, curves: Curves, component: int, path: str, first: int, values: Array, still: float
    ) -> bpy.types.FCurve | None:
        """Return the f-curve of a component, a new one if necessary; None if it would hold the value of the pose."""
        found = curves.get(component)
        if found is not None or np.abs(values - still).max() <= _SAME_VALUE:
            return found
        like = next(iter(curves.values()))
        made: bpy.types.FCurve = self.bag.fcurves.new(path, index=first + component)
        made.group, made.color_mode = like.group, like.color_mode
        return made


def turned_angles(turn: BoneTurn, mode: str, values: Array) -> Array:
    """Convert Euler angles (n, 3) in the order ``mode``; they are continuous, and the first is near the old one."""
    matrices = turn.axes.T @ pose_curves.rotations(mode, values) @ turn.axes
    return continuous_angles(euler_angles(matrices, mode), mode, values[0])


def _live(curves: Curves) -> dict[int, bpy.types.FCurve]:
    """Return the f-curves with keys that set their channels; all with keys if all are muted."""
    keyed = {component: curve for component, curve in curves.items() if len(curve.keyframe_points)}
    return {component: curve for component, curve in keyed.items() if not curve.mute} or keyed


def _points(curve: bpy.types.FCurve, name: str) -> Array:
    return arrays.read(curve.keyframe_points, name, 2).astype(np.float64)


def _key_frames(curves: Any) -> Array:
    return np.unique(np.concatenate([_points(curve, "co")[:, 0] for curve in curves]))


def _are_alike(curves: Sequence[bpy.types.FCurve]) -> bool:
    """Return whether f-curves differ in the values of their keys only, and are linear in these."""
    first, *others = curves
    kinds = _kinds(first)
    if (kinds == _ELASTIC).any() or any(modifier.type not in _LINEAR_MODIFIERS for modifier in first.modifiers):
        return False
    is_curved = bool((kinds == _BEZIER).any())
    for other in others:
        if len(other.keyframe_points) != len(kinds) or not np.array_equal(_kinds(other), kinds):
            return False
        for name in ("co", "handle_left", "handle_right") if is_curved else ("co",):
            if np.abs(_points(other, name)[:, 0] - _points(first, name)[:, 0]).max() > _SAME_FRAME:
                return False
        for name, kind in (("easing", np.int32), ("back", np.float32)):
            if not np.array_equal(_values(other, name, kind), _values(first, name, kind)):
                return False
        if other.extrapolation != first.extrapolation or _modifiers(other) != _modifiers(first):
            return False
    return True


def _holds(curve: bpy.types.FCurve) -> bool:
    """Return whether an f-curve is constant between and outside its keys."""
    kinds = _kinds(curve)
    return not len(curve.modifiers) and curve.extrapolation == "CONSTANT" and bool((kinds[:-1] == _CONSTANT).all())


def _values(curve: bpy.types.FCurve, name: str, kind: type[np.generic]) -> Any:
    return arrays.read(curve.keyframe_points, name, dtype=kind)


def _kinds(curve: bpy.types.FCurve) -> Any:
    return _values(curve, "interpolation", np.int32)


def _settings(modifier: Any) -> dict[str, Any]:
    return {
        found.identifier: getattr(modifier, found.identifier)
        for found in modifier.bl_rna.properties
        if not found.is_readonly and found.identifier not in {"active", "show_expanded", "name"}
    }


def _modifiers(curve: bpy.types.FCurve) -> list[Any]:
    return [(modifier.type, _settings(modifier)) for modifier in curve.modifiers]


def _copy_keys(source: bpy.types.FCurve, target: bpy.types.FCurve) -> None:
    """Fill an empty f-curve with keys of the same times and kinds."""
    target.keyframe_points.clear()
    target.keyframe_points.add(len(source.keyframe_points))
    target.keyframe_points.foreach_set("co", arrays.flat(_points(source, "co")))  # first: keys at one time are merged
    for name, kind in _COPIED:
        target.keyframe_points.foreach_set(name, _values(source, name, kind))
    target.extrapolation, target.mute = source.extrapolation, source.mute
    for modifier in source.modifiers:
        made = target.modifiers.new(modifier.type)
        for name, value in _settings(modifier).items():
            setattr(made, name, value)


def _write_keys(curve: bpy.types.FCurve, rows: Mapping[str, Array]) -> None:
    """Write keys and handles, (n, 2) each. Automatic handles become free, since they are not linear in the keys."""
    keys = curve.keyframe_points
    if (_kinds(curve) == _BEZIER).any():
        for name in ("handle_left_type", "handle_right_type"):
            keys.foreach_set(name, np.full(len(keys), _FREE, np.int32))
    for name, values in rows.items():
        keys.foreach_set(name, arrays.flat(values))
    curve.update()
