"""Evaluate an action's f-curves for the bones of an armature, and test whether they alone determine the pose."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.messages import Named, Report
from ...io_formats.geometry.transforms import axis_rotations
from .. import animated_blocks, arrays
from ..animated_blocks import Dependencies, action_curves
from ..rigging import joint_poses
from ..rigging.bones import location_axes
from .clip_sources import ClipSource

Array = npt.NDArray[np.float64]
Curves = Mapping[tuple[str, int], bpy.types.FCurve]
"""The f-curves of one bone by name of the channel and index of the component."""

CHANNELS = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "rotation_axis_angle": 4, "scale": 3}
"""Channels that move a bone, with their numbers of components."""
_DEFAULTS = {
    "location": (0.0, 0.0, 0.0),
    "rotation_quaternion": (1.0, 0.0, 0.0, 0.0),
    "rotation_euler": (0.0, 0.0, 0.0),
    "rotation_axis_angle": (0.0, 0.0, 1.0, 0.0),
    "scale": (1.0, 1.0, 1.0),
}
_OBJECT_CHANNELS = frozenset({*CHANNELS, *(f"delta_{name}" for name in CHANNELS)})
_BONE_PATH = 'pose.bones["'
_CONSTANT, _LINEAR = 0, 1
STILL = 1e-5
"""Change of a value up to which keys count as constant, relative to the value if that is over 1."""
_NEAR = 1e-4
"""Blender's tolerance, in frames, for a frame that coincides with a key."""


def action_of(obj: bpy.types.Object, source: ClipSource) -> tuple[bpy.types.Action | None, Any]:
    """Return the action and the slot that an object plays in a clip; if it plays strips, those of the first strip."""
    if source.actions is not None:
        return source.actions.get(obj, (None, None))
    if source.strips:
        strip = next(strips_of(obj, source), None)
        return (strip.action, strip.action_slot) if strip is not None else (None, None)
    data = obj.animation_data
    if data is None or data.action is None:
        return None, None
    return data.action, data.action_slot


def strips_of(obj: bpy.types.Object, source: ClipSource) -> Iterator[bpy.types.NlaStrip]:
    """Yield the NLA strips of an object that a clip plays and that have an action, in their order in time."""
    data = obj.animation_data
    strips = [strip for track in (data.nla_tracks if data is not None else ()) for strip in track.strips]
    for strip in sorted(strips, key=lambda strip: strip.frame_start):
        if strip.name in source.strips and strip.action is not None:
            yield strip


def own_actions(obj: bpy.types.Object) -> set[bpy.types.Action]:
    """Return the actions that an object plays: the active one, and those of its NLA strips."""
    return {holder.action for holder in animated_blocks.action_holders(obj)}


def played_actions(obj: bpy.types.Object, sources: Iterable[ClipSource]) -> Iterator[tuple[bpy.types.Action, Any]]:
    """Yield the actions and slots that an object plays in clips. Nothing plays without a slot."""
    for source in sources:
        if source.strips:
            players = [(strip.action, strip.action_slot) for strip in strips_of(obj, source)]
        else:
            players = [action_of(obj, source)]
        for action, slot in players:
            if action is not None and slot is not None:
                yield action, slot


def playing_curves(obj: bpy.types.Object, source: ClipSource) -> Iterator[bpy.types.FCurve]:
    """Yield the f-curves that a clip plays on an object, without muted ones."""
    for action, slot in played_actions(obj, [source]):
        for curve in action_curves(action, slot):
            if not curve.mute and not (curve.group is not None and curve.group.mute):
                yield curve


def exported_curves(obj: bpy.types.Object, found: Dependencies, source: ClipSource) -> list[bpy.types.FCurve]:
    """Return the f-curves of a clip that may move the bones of an armature object, without muted ones."""
    return [
        curve
        for block in found.animated
        for curve in playing_curves(block, source)
        if block != obj or curve.data_path not in _OBJECT_CHANNELS
    ]


def bone_and_channel(path: str) -> tuple[str, str]:
    """Split ``pose.bones["Arm"].location`` into bone name and channel; return empty strings for any other path."""
    if not path.startswith(_BONE_PATH):
        return "", ""
    end = path.rfind('"]')
    if end < len(_BONE_PATH) or not path.startswith(".", end + 2):
        return "", ""
    return bpy.utils.unescape_identifier(path[len(_BONE_PATH) : end]), path[end + 3 :]


def keyed_channels(action: bpy.types.Action, slot: Any) -> set[tuple[str, str]]:
    """Return the bones and channels that an action keys."""
    parted = (bone_and_channel(curve.data_path) for curve in action_curves(action, slot))
    return {(bone, channel) for bone, channel in parted if channel in CHANNELS}


def is_for_other_axes(action: bpy.types.Action, slot: Any, armature: Any) -> bool:
    """Return whether an imported action keys bones of an armature object whose axes follow another rule."""
    stored = action.meshferry
    if stored.bone_axes == armature.data.meshferry.bone_axes or not (stored.bone_axes or stored.clip_name):
        return False
    return any(bone in armature.data.bones for bone, _channel in keyed_channels(action, slot))


def report_other_axes(armature: bpy.types.Object, sources: Iterable[ClipSource], report: Report) -> None:
    """Warn of actions of clips that were imported for bones with other axes than those of an armature object."""
    played = played_actions(armature, sources)
    for action in dict.fromkeys(action for action, slot in played if is_for_other_axes(action, slot, armature)):
        text = "action '{}' was made for bones with other axes, so poses differ; import its file again"
        report.warning("action-for-other-bones", text, Named("animation", action.name), item=armature.name)


def curves_of(obj: bpy.types.Object, source: ClipSource) -> dict[str, dict[tuple[str, int], bpy.types.FCurve]]:
    """Return the f-curves of a clip that move bones, by bone name.

    For an empty clip, these are f-curves without keys.
    """
    found: dict[str, dict[tuple[str, int], bpy.types.FCurve]] = {}
    for curve in playing_curves(obj, source):
        bone, channel = bone_and_channel(curve.data_path)
        if channel in CHANNELS and curve.array_index < CHANNELS[channel] and curve.is_empty == source.is_empty:
            found.setdefault(bone, {}).setdefault((channel, curve.array_index), curve)
    return found


def keys_suffice(obj: bpy.types.Object, found: Dependencies, source: ClipSource) -> bool:
    """Return whether only the f-curves of the clip's action move the bones of an armature."""
    data = obj.animation_data
    if source.strips or source.is_pose or found.moves_by_itself:  # the displayed pose may differ from the keys
        return False
    mixed = data is not None and source.actions is None and _is_mixed(data)
    if mixed or (data is not None and (data.use_tweak_mode or len(data.drivers))):
        return False
    if obj.data.animation_data is not None:
        return False  # the armature data may animate settings of its bones
    played = [curve for action, slot in played_actions(obj, [source]) for curve in action_curves(action, slot)]
    if any(curve.group is not None and curve.group.mute for curve in played):
        return False  # Blender 4.5 plays such curves outside of strips
    paths = [curve.data_path for curve in playing_curves(obj, source)]
    if any(path.endswith("].rotation_mode") or "].constraints[" in path for path in paths):
        return False
    if len(scale_inheritance(obj)) > 1 and scales_bones(obj, source):
        return False  # bones that inherit shear and others that do not
    return all(_is_simple(bone) for bone in obj.pose.bones)


def scale_inheritance(obj: bpy.types.Object) -> set[str]:
    """Return the ways in which the bones of an armature inherit the scale of their parents."""
    return {bone.inherit_scale for bone in obj.data.bones if bone.parent is not None}


def scales_bones(obj: bpy.types.Object, source: ClipSource) -> bool:
    """Return whether bones are scaled, by their current channels or by f-curves of a clip."""
    return bool((arrays.read(obj.pose.bones, "scale", 3) != 1.0).any() or scaled_bones(playing_curves(obj, source)))


def scaled_bones(curves: Iterable[bpy.types.FCurve]) -> set[str]:
    """Return the bones that f-curves scale."""
    parted = ((curve, *bone_and_channel(curve.data_path)) for curve in curves)
    return {
        bone
        for curve, bone, channel in parted
        if channel == "scale"
        and (len(curve.modifiers) or (arrays.read(curve.keyframe_points, "co", 2)[:, 1] != 1.0).any())
    }


def _is_mixed(data: bpy.types.AnimData) -> bool:
    """Return whether NLA strips are blended with the active action."""
    if not data.use_nla or not len(data.nla_tracks):
        return False
    whole = (data.action_blend_type, data.action_extrapolation, data.action_influence) == ("REPLACE", "HOLD", 1.0)
    return not whole or any(track.is_solo or not track.mute for track in data.nla_tracks)


def _is_simple(bone: bpy.types.PoseBone) -> bool:
    """Return whether a bone follows its own channels and its parent, and nothing else."""
    if any(not constraint.mute for constraint in bone.constraints):
        return False
    rest = bone.bone
    return rest.parent is None or (rest.inherit_scale in {"FULL", "NONE"} and rest.use_inherit_rotation)


def bones_moved_otherwise(obj: bpy.types.Object) -> set[str]:
    """Return the bones that constraints or drivers move, including all bones of inverse kinematics chains."""
    moved = set()
    for bone in obj.pose.bones:
        for constraint in bone.constraints:
            if not constraint.mute:
                moved |= _moved_by(constraint, bone)
    data = obj.animation_data
    for driver in data.drivers if data is not None else ():
        bone, channel = bone_and_channel(driver.data_path)
        if channel in CHANNELS:
            moved.add(bone)
    return moved


def _moved_by(constraint: Any, bone: bpy.types.PoseBone) -> set[str]:
    length = getattr(constraint, "chain_count", 1)
    chain = [bone, *bone.parent_recursive]
    return {member.name for member in (chain if length == 0 else chain[:length])}


def bones_of_unkeyed_goals(obj: bpy.types.Object, keyed: Container[str]) -> set[str]:
    """Return the bones without keys that follow control bones without keys, and nothing else by constraints.

    ``keyed`` are the names of bones with keys.
    """
    found: set[str] = set()
    others: set[str] = set()
    for bone in obj.pose.bones:
        for constraint in bone.constraints:
            if constraint.mute or not hasattr(constraint, "target"):
                continue
            goal = obj.data.bones.get(constraint.subtarget) if constraint.target == obj else None
            is_unkeyed = goal is not None and goal.meshferry.is_control and goal.name not in keyed
            (found if is_unkeyed else others).update(_moved_by(constraint, bone))
    return {name for name in found - others if name not in keyed}


def moves_object(obj: bpy.types.Object, source: ClipSource) -> bool:
    """Return whether a clip moves the armature object itself.

    Constant keys, which Blender's importers add, do not count.
    """
    return any(curve.data_path in _OBJECT_CHANNELS and varies(curve) for curve in playing_curves(obj, source))


def varies(curve: bpy.types.FCurve) -> bool:
    """Return whether the values of an f-curve change."""
    heights = arrays.read(curve.keyframe_points, "co", 2)[:, 1]
    if not len(heights):
        return False
    is_modified = any(not modifier.mute and modifier.type != "CYCLES" for modifier in curve.modifiers)
    return is_modified or bool(np.ptp(heights) > STILL * max(1.0, np.abs(heights).max()))


RestValues = Mapping[tuple[str, str], Sequence[float]]
"""Values of channels, by names of bone and channel, that show the shape of a figure; others have Blender's defaults."""


def rest_channels(obj: bpy.types.Object, channels: Iterable[tuple[str, str]], shaped: RestValues) -> None:
    """Set channels of bones to their rest values, in the shape of a figure; the caller restores them."""
    for name, channel in channels:
        bone = obj.pose.bones.get(name)
        if bone is not None:
            setattr(bone, channel, shaped.get((name, channel), _DEFAULTS[channel]))


class PoseChannels:
    """The current channel values of bones, overridden by f-curves."""

    def __init__(
        self, obj: bpy.types.Object, bones: Sequence[str], forgotten: set[tuple[str, str]], shaped: RestValues
    ) -> None:
        posed = obj.pose.bones
        self.modes = [posed[name].rotation_mode for name in bones]
        used = [posed[name].bone for name in bones]
        self.location_axes = [location_axes(bone) * (not bone.use_connect) for bone in used]
        """Connected bones ignore their location."""
        self.values = {
            channel: np.array(
                [
                    tuple(shaped.get((name, channel), _DEFAULTS[channel]))
                    if (name, channel) in forgotten
                    else tuple(getattr(posed[name], channel))
                    for name in bones
                ],
                np.float64,
            ).reshape(-1, width)
            for channel, width in CHANNELS.items()
        }

    def matrices(self, joints: npt.NDArray[np.intp], frames: Array, curves: Sequence[Curves]) -> Array:
        """Return the transforms of bones relative to their rest pose at the given frames, (n, F, 4, 4)."""
        made = np.zeros((len(joints), len(frames), 4, 4))
        made[..., 3, 3] = 1.0
        for place, joint in enumerate(joints.tolist()):
            values = {
                channel: self._channel(channel, joint, frames, curves[place])
                for channel in ("location", rotation_channel(self.modes[joint]), "scale")
            }
            location, rotation, scale = values.values()
            made[place, :, :3, :3] = rotations(self.modes[joint], rotation) * scale[:, None, :]
            made[place, :, :3, 3] = location @ self.location_axes[joint].T
        return made

    def scales(self, joints: npt.NDArray[np.intp], frames: Array, curves: Sequence[Curves]) -> Array:
        """Return the scales of bones at the given frames, (n, F, 3)."""
        made = [self._channel("scale", joint, frames, curves[row]) for row, joint in enumerate(joints.tolist())]
        return np.array(made).reshape(len(joints), len(frames), 3)

    def _channel(self, channel: str, joint: int, frames: Array, curves: Curves) -> Array:
        values = np.empty((len(frames), CHANNELS[channel]))
        values[:] = self.values[channel][joint]
        for component in range(values.shape[1]):
            curve = curves.get((channel, component))
            if curve is not None:
                values[:, component] = evaluated(curve, frames)
        return values


def rotation_channel(mode: str) -> str:
    """Return the name of the channel that a rotation mode uses."""
    return {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")


def rotations(mode: str, values: Array) -> Array:
    """Convert the values of a rotation channel to matrices (F, 3, 3) with Blender's conventions."""
    if mode == "QUATERNION":
        return _of_quaternions(values)
    if mode == "AXIS_ANGLE":
        angle, axis = values[:, 0] / 2, values[:, 1:]
        length = np.linalg.norm(axis, axis=1, keepdims=True)
        axis = axis / np.where(length > 0, length, 1.0)
        angle = np.where(length[:, 0] > 0, angle, 0.0)
        return _of_quaternions(np.column_stack((np.cos(angle), np.sin(angle)[:, None] * axis)))
    made = np.broadcast_to(np.eye(3), (len(values), 3, 3))
    for axis_name in mode:  # in the mode XYZ, X is applied first
        made = axis_rotations("XYZ".index(axis_name), values[:, "XYZ".index(axis_name)]) @ made
    return made


def _of_quaternions(values: Array) -> Array:
    given = values.any(axis=1, keepdims=True)
    if not given.all():  # Blender normalises a quaternion of zeros to a half turn about X.
        values = np.where(given, values, (0.0, 1.0, 0.0, 0.0))
    return joint_poses.matrices(np.zeros((len(values), 3)), values, np.ones((1, 3)))[:, :3, :3]


def evaluated(curve: bpy.types.FCurve, frames: Array) -> Array:
    """Return the values of an f-curve at frames: computed from its keys if possible, otherwise evaluated by Blender."""
    keys = curve.keyframe_points
    count = len(keys)
    if count and all(modifier.mute for modifier in curve.modifiers):
        places, values = arrays.read(keys, "co", 2).astype(np.float64).T
        if count == len(frames) and np.abs(places - frames).max(initial=0) <= _NEAR:
            return values
        simple = _between_keys(curve, places, values, frames)
        if simple is not None:
            return simple
    return np.fromiter((curve.evaluate(float(frame)) for frame in frames), np.float64, len(frames))


def _between_keys(curve: bpy.types.FCurve, places: Array, values: Array, frames: Array) -> Array | None:
    """Return the values at frames that are on keys, or between keys with linear or constant interpolation.

    Return None if any frame is at another place.
    """
    if np.any(np.diff(places) <= 0):
        return None
    before = np.searchsorted(places, frames + _NEAR, side="right") - 1
    nearest = np.clip(before, 0, len(places) - 1)
    on_key = np.abs(places[nearest] - frames) <= _NEAR
    if on_key.all():
        return values[nearest]
    inside = (before >= 0) & (before < len(places) - 1)
    if curve.extrapolation != "CONSTANT" and not (inside | on_key).all():
        return None
    kind = arrays.read(curve.keyframe_points, "interpolation", dtype=np.int32)[nearest]
    if not (on_key | ~inside | (kind == _CONSTANT) | (kind == _LINEAR)).all():
        return None
    following = np.minimum(nearest + 1, len(places) - 1)
    span = places[following] - places[nearest]
    share = np.where(inside & ~on_key & (kind == _LINEAR), (frames - places[nearest]) / np.where(span > 0, span, 1), 0)
    return values[nearest] + share * (values[following] - values[nearest])
