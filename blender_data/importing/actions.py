"""Clips -> actions: sampled transforms, or keys of joints, become f-curves of bones.

Rotations are relative to the parent, in the axes of the skeleton at rest. A bone whose rest axes are C in the axes of
the skeleton therefore rotates by C^-1 q D^-1 C, where q is the key and D the joint's own rotation at rest.

Every animated bone gets f-curves for all ten components of its channels, so that its pose does not depend on the
previous action. A constant channel has one key.
"""

import contextlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named, Report
from ...io_formats.core.scene import Clip, Keys, KeyTrack, Skeleton, TransformTrack
from ...io_formats.geometry import hierarchy
from ...io_formats.geometry.transforms import rotation_product, similarity
from .. import animated_blocks
from ..animation import clip_sources, playback, pose_curves
from ..animation.scene_time import SceneTime
from ..mesh_data import checksums as mesh_data_checksums
from ..properties import store_fields, stored_fields
from ..rigging import joint_poses
from ..rigging.bones import location_axes
from ..rigging.joint_poses import Array, BoneMap
from .armatures import bind_matrices, parents_of


@dataclass(frozen=True)
class BoneKeys:
    """Keys of one bone: times in seconds, and values of its channel by component."""

    bone: str
    channel: str
    times: Array
    """(n,) times in seconds."""
    values: Array
    """(k, n) values of the k components."""


class KeyMapping:
    """Converts keys of a skeleton's joints to keys of an armature's bones."""

    def __init__(self, bones: BoneMap, skeleton: Skeleton) -> None:
        self.bones = bones
        self.skeleton = skeleton
        self.bind = bind_matrices(skeleton)
        self.parents = parents_of(skeleton)
        data = bones.armature.data.bones
        found = [name for name in bones.bones if name is not None]
        self.rest = {name: np.array(data[name].matrix_local, np.float64) for name in found}
        self.turn, self.scale = self._placement()

    def _placement(self) -> tuple[Array, float]:
        """Return the rotation (3, 3) and scale from the skeleton to the armature that align the heads of joints."""
        pairs = [(number, name) for number, name in enumerate(self.bones.bones) if name is not None]
        if len(pairs) < 3:
            return np.identity(3), 1.0
        worlds = hierarchy.world_matrices(self.bind, self.parents)
        ours = np.array([worlds[number, :3, 3] for number, _ in pairs])
        theirs = np.array([self.rest[name][:3, 3] for _, name in pairs])
        index = {name: at for at, (_, name) in enumerate(pairs)}
        return similarity(ours, theirs, [index.get(self._parent_bone(number) or "", -1) for number, _ in pairs])

    def keys_of(self, track: KeyTrack) -> list[BoneKeys]:
        """Return the keys of the bone that corresponds to a joint; empty if the armature has no such bone."""
        name = self.bones.bones[track.target]
        if name is None:
            return []
        axes = self.turn.T @ self.rest[name][:3, :3]
        found = []
        if track.translation is not None:
            along = np.linalg.inv(location_axes(self.bones.armature.data.bones[name]))
            locations = along @ self._locations(track, name, axes).T
            found.append(BoneKeys(name, "location", track.translation.times, locations))
        if track.rotation is not None:
            rotations = self._rotations(track, track.rotation, axes).T
            found.append(BoneKeys(name, "rotation_quaternion", track.rotation.times, rotations))
        return found

    def _locations(self, track: KeyTrack, name: str, axes: Array) -> Array:
        values = track.translation.values * self.scale if track.translation is not None else np.empty((0, 3))
        if not track.is_offset:
            above = self._parent_bone(track.target)
            between = self.rest[name][:3, 3] - (self.rest[above][:3, 3] if above is not None else 0)
            values = values - self.turn.T @ between
        return np.asarray(values @ axes)

    def _parent_bone(self, joint: int) -> str | None:
        """Return the bone of the nearest ancestor of a joint that the armature has."""
        above = self.parents[joint]
        while above >= 0 and self.bones.bones[above] is None:
            above = self.parents[above]
        return self.bones.bones[above] if above >= 0 else None

    def _rotations(self, track: KeyTrack, keys: Keys, axes: Array) -> Array:
        w, x, y, z = self.skeleton.joints[track.target].rotation
        values = keys.values
        if (x, y, z) != (0.0, 0.0, 0.0):
            values = rotation_product(values, np.array([[w, -x, -y, -z]]))
        return np.concatenate((values[:, :1], values[:, 1:] @ axes), axis=1)


_LINEAR = 1
"""Value of ``Keyframe.interpolation`` for linear keys. Setting this property from bytes is 7 times as fast as from
32-bit integers."""

_STILL = 2e-7
"""Change of a channel that counts as rounding; for locations, see :meth:`ClipActions._still`."""

_VALUES_AT_ONCE = 8192
"""Number of bone poses (bones times frames) that are converted at a time, so that they fit the processor's cache."""

_MOST = 1e15
"""Limit of the values of a bone's pose, since Blender squares lengths in single precision."""

_SHEARED = 1e-4
"""Cosine between the axes of a bone's pose above which a warning reports shear."""


_CHANNELS = (("location", 3), ("rotation_quaternion", 4), ("scale", 3))
"""Channels of a bone or an object, with their numbers of components."""


class ClipTiming:
    """Converts frames of a clip to key frames. The clip starts at a frame of the scene.

    If the file states no rate, the frames are those of the scene.
    """

    def __init__(self, clip: Clip, time: SceneTime, frame_start: int) -> None:
        self.step = (time.key_rate / clip.fps) if clip.fps > 0 else time.key_frame(1.0)
        self.start = time.key_frame(frame_start)
        self.frames = self.start + np.arange(clip.frame_count, dtype=np.float64) * self.step
        self.time = time
        """Time of the Blender scene after the import."""
        self.time_step = clip.time_step
        self.end = float(self.frames_of(np.array([clip.duration]))[0]) if clip.keys else self.start
        """Key frame of the end of a clip with ``keys``."""

    def frames_of(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the key frames of times in seconds, snapped to frames of the scene within their precision."""
        frames = times * self.time.rate
        whole = np.rint(frames)
        frames = np.where(np.abs(whole - frames) <= self.time_step * self.time.rate, whole, frames)
        return self.start + frames / self.time.stretch

    @property
    def range(self) -> tuple[float, float]:
        if self.end > self.start:
            return self.start, self.end
        if not len(self.frames):
            return self.start, self.start
        return float(self.frames[0]), float(self.frames[-1])


class ClipActions:
    """The action of one clip.

    ``keep`` is called with a new action, so that it is removed if the import fails.
    """

    def __init__(self, clip: Clip, timing: ClipTiming, action_name: str, keep: Callable[[bpy.types.ID], Any]) -> None:
        self.clip = clip
        self.timing = timing
        self.curves = animated_blocks.ActionCurves(action_name, timing.range, keep)
        self.assigned: list[tuple[bpy.types.ID, bpy.types.Action, Any]] = []
        self.checksums: dict[bpy.types.Action, float] = {}
        """Sum over the keys of each action, see :func:`.mesh_edits.key_checksum`."""
        self.first_scales: dict[str, float] = {}
        """Largest scale of each keyed bone in the first frame, relative to its rest pose."""
        self.bone_axes = ""
        """Rule by which the keyed bones lie, see :mod:`...rigging.bone_axes`."""

    def add_transforms(self, owner: bpy.types.Object, track: TransformTrack) -> None:
        """Key the local transform of an object."""
        curves = self.curves_for(owner)
        for (path, width), values in zip(_CHANNELS, (track.translation, track.rotation, track.scale), strict=True):
            for index in range(width):
                add_keys(curves.new(path, index=index), self.timing.frames, values[:, index], self.checksums)

    def add_joints(self, bones: BoneMap, tracks: Sequence[TransformTrack]) -> list[str]:
        """Key the bones of an armature; return the names of bones that have shear in any frame, which is lost."""
        keyed = {name: track for track in tracks if (name := bones.bones[track.target]) is not None}
        curves = self._bone_curves(bones.armature, dict.fromkeys(keyed, _CHANNELS))
        at_once = max(1, _VALUES_AT_ONCE // max(1, self.clip.frame_count))
        sheared: list[str] = []
        for start in range(0, len(keyed) if self.clip.frame_count else 0, at_once):
            some = list(keyed)[start : start + at_once]
            channels = self._channels(bones, {name: keyed[name] for name in some})
            sheared += [name for name, shear in zip(some, channels.shear, strict=True) if shear > _SHEARED]
            self.first_scales.update(zip(some, np.abs(channels.scale[..., 0]).max(axis=1).tolist(), strict=True))
            still = self._still(bones, [keyed[name] for name in some])
            for first, values, rest, tolerance in (
                (0, channels.location, (0.0, 0.0, 0.0), still),
                (3, channels.rotation, (1.0, 0.0, 0.0, 0.0), np.array([_STILL])),
                (7, channels.scale, (1.0, 1.0, 1.0), np.array([_STILL])),
            ):
                moving = np.ptp(values, axis=2).max(axis=1) > tolerance
                constant = np.where(np.abs(values[..., 0] - rest) <= tolerance[:, None], rest, values[..., 0])
                for number, name in enumerate(some):
                    columns = values[number] if moving[number] else constant[number, :, None]
                    for curve, column in zip(curves[name][first:], columns, strict=False):
                        add_keys(curve, self.timing.frames, column, self.checksums)
        return sheared

    def _still(self, bones: BoneMap, tracks: Sequence[TransformTrack]) -> Array:
        """Return the change of location that counts as rounding, by bone; below joints of a small scale it is small."""
        scales = np.linalg.norm(bones.space.left[[track.target for track in tracks], :3, :3], axis=1).max(axis=1)
        sizes = [np.abs(track.translation).max(initial=bones.size) for track in tracks]
        return np.maximum(_STILL * np.minimum(bones.size, scales * sizes), np.finfo(np.float32).tiny)

    def add_keys(self, bones: BoneMap, skeleton: Skeleton, tracks: Sequence[KeyTrack]) -> None:
        """Key the bones of an armature at the times of the tracks; channels without keys get none."""
        mapping = KeyMapping(bones, skeleton)
        keyed = {channels[0].bone: channels for track in tracks if (channels := mapping.keys_of(track))}
        wanted = {name: [(keys.channel, len(keys.values)) for keys in channels] for name, channels in keyed.items()}
        curves = self._bone_curves(bones.armature, wanted)
        for name, channels in keyed.items():
            of_bone = iter(curves[name])
            for channel in channels:
                frames = self.timing.frames_of(channel.times)
                for values in channel.values:
                    add_keys(next(of_bone), frames, values, self.checksums)

    def _bone_curves(
        self, owner: bpy.types.Object, wanted: Mapping[str, Sequence[tuple[str, int]]]
    ) -> dict[str, list[bpy.types.FCurve]]:
        """Create the empty f-curves of bones, given their channels and numbers of components.

        When a curve is created, Blender compares its path with those of all others. This is four times as fast before
        keys are added, since the curves are then close together in memory.
        """
        curves = self.curves_for(owner)
        self.bone_axes = owner.data.meshferry.bone_axes
        _, action, slot = self.assigned[-1]
        groups = animated_blocks.curve_groups(action, slot)
        made: dict[str, list[bpy.types.FCurve]] = {}
        for name, channels in wanted.items():
            owner.pose.bones[name].rotation_mode = "QUATERNION"
            group = groups.new(name)
            path = f'pose.bones["{bpy.utils.escape_identifier(name)}"].'
            made[name] = [
                curves.new(path + channel, index=index) for channel, width in channels for index in range(width)
            ]
            for curve in made[name]:
                curve.group = group
        return made

    def _channels(self, bones: BoneMap, tracks: Mapping[str, TransformTrack]) -> joint_poses.Channels:
        """Compute the channels of some bones from their tracks."""
        channels = joint_poses.bone_channels(
            bones.space,
            np.array([track.target for track in tracks.values()], np.intp),
            np.stack([track.translation for track in tracks.values()]),
            np.stack([track.rotation for track in tracks.values()]),
            np.stack([track.scale for track in tracks.values()]),
        )
        for name, location, scale in zip(tracks, channels.location, channels.scale, strict=True):
            bone = bones.armature.data.bones[name]
            if not bone.use_local_location:
                location[:] = np.linalg.inv(location_axes(bone)) @ location
            if not max(location.max(), -location.min(), scale.max(), -scale.min()) < _MOST:
                template = "Animation '{}' moves or scales bone '{}' beyond any measure"
                raise MeshferryError(template, Named("animation", self.clip.name), Named("bone", name))
        return channels

    def curves_for(self, owner: bpy.types.ID) -> Any:
        """Return the f-curves of this clip for a data block, which :meth:`attach` will assign."""
        curves, action, slot = self.curves.curves_for(owner)
        store_fields(action.meshferry, self.clip)
        playback.write(action, self.clip, self.timing.frames_of)
        self.assigned.append((owner, action, slot))
        return curves

    def attach(self, instead: Collection[bpy.types.ID] = ()) -> None:
        """Assign the clip's action to data blocks that have no action or are in ``instead``; stash it on the others."""
        for owner, action, slot in self.assigned:
            animation = owner.animation_data
            if animation is None or animation.action is None or owner in instead:
                animated_blocks.assign_action(owner, action, slot)
            else:
                animated_blocks.stash_action(owner, action, slot, self.clip.name)


def add_keys(
    curve: bpy.types.FCurve,
    frames: npt.NDArray[np.float64],
    values: npt.NDArray[np.floating],
    checksums: dict[bpy.types.Action, float],
) -> None:
    """Fill an empty f-curve with a linear key for each value; handles are automatic, which is Blender's default.

    The checksum of the keys is added to ``checksums``, by action.
    """
    count = len(values)
    if not count:
        return
    points = np.empty((count, 2), np.float32)
    points[:, 0], points[:, 1] = frames[:count], values
    keys = curve.keyframe_points
    keys.add(count)
    keys.foreach_set("co", points.reshape(-1))
    action: Any = curve.id_data
    checksums[action] = checksums.get(action, 0.0) + mesh_data_checksums.key_checksum(points)
    keys.foreach_set("interpolation", np.full(count, _LINEAR, np.uint8))
    curve.update()


def _merged(new: str, old: str) -> tuple[str, bool]:
    """Return the data of two skeleton files, preferring the old one, and whether both are of the same bones."""
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        one, other = json.loads(new), json.loads(old)
        if one["joints"] == other["joints"]:
            return json.dumps({**one, **other}), True
    return old, False


class PlayedBefore:
    """Stashes the actions of an existing armature when animations are imported, and restores them on failure."""

    def __init__(self, armature: bpy.types.Object | None) -> None:
        self.armature = armature
        animation = armature.animation_data if armature is not None else None
        self.had_animation = animation is not None
        self.is_tweaked = animation is not None and animation.use_tweak_mode
        self.action = animation.action if animation is not None else None
        self.slot = animation.action_slot if self.action is not None else None
        self.tracks = list(animation.nla_tracks) if animation is not None else []
        self.rotation_modes: dict[str, str] = {}
        kept = armature.meshferry if armature is not None else None
        self.reference = stored_fields(kept, Skeleton) if kept is not None else {}

    def refer(self, skeleton: Skeleton, report: Report) -> None:
        """Store on the armature the skeleton file to which a file refers, and the data in it, unless it has them."""
        if self.armature is None:
            return
        kept = {field: value for field, value in self.reference.items() if value}
        if {"guid", "path"} & set(kept):
            kept = {"guid": "", "path": "", **kept}
        if skeleton.file_data and kept.get("file_data", skeleton.file_data) != skeleton.file_data:
            kept["file_data"], is_complete = _merged(skeleton.file_data, kept["file_data"])
            if not is_complete:
                text = "'{}' has skeleton data of other bones; that of '{}' was left out"
                report.loss("skeleton-data-left-out", text, self.armature.name, skeleton.name)
        store_fields(self.armature.meshferry, replace(skeleton, **kept))

    def note(self, bones: BoneMap, tracks: Sequence[TransformTrack | KeyTrack]) -> None:
        """Store the rotation modes of bones before they are keyed."""
        if self.armature is None or bones.armature != self.armature:
            return
        for track in tracks:
            name = bones.bones[track.target]
            if name is not None:
                self.rotation_modes.setdefault(name, self.armature.pose.bones[name].rotation_mode)

    def bones_with_unused_keys(self) -> list[str]:
        """Return the bones whose older rotation keys have no effect any more, since the bones now use quaternions."""
        strips = (strip.action for track in self.tracks for strip in track.strips)
        had = dict.fromkeys(action for action in (self.action, *strips) if action is not None)
        keyed = {channel for action in had for channel in pose_curves.keyed_channels(action, None)}
        return [
            name
            for name, mode in self.rotation_modes.items()
            if mode != "QUATERNION" and (name, pose_curves.rotation_channel(mode)) in keyed
        ]

    def make_way(self, clip: Clip) -> Collection[bpy.types.ID]:
        """Stash the active action of the armature; return the armature if the clip becomes its active action.

        A clip with one frame does not replace an action with several frames, and an action is not replaced while a
        strip is in tweak mode.
        """
        if self.armature is None or not self.rotation_modes or self.is_tweaked:
            return ()
        if self.action is None:
            return (self.armature,)
        moves = self.action.frame_range[1] > self.action.frame_range[0]
        if clip.frame_count < 2 and not clip.duration and moves:
            return ()
        animated_blocks.stash_action(self.armature, self.action, self.slot, clip_sources.clip_name(self.action))
        return (self.armature,)

    def restore(self) -> None:
        """Restore the original action of the armature."""
        if self.armature is None:
            return
        store_fields(self.armature.meshferry, Skeleton("", **self.reference))
        for name, mode in self.rotation_modes.items():
            self.armature.pose.bones[name].rotation_mode = mode
        animation = self.armature.animation_data
        if animation is None:
            return
        for track in [track for track in animation.nla_tracks if track not in self.tracks]:
            animation.nla_tracks.remove(track)
        if not self.had_animation:
            self.armature.animation_data_clear()
        elif self.action is not None and not self.is_tweaked:
            animated_blocks.assign_action(self.armature, self.action, self.slot)
