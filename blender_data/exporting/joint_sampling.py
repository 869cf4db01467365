"""Poses of armatures -> tracks of joints, computed from the keys if nothing else moves the bones, otherwise sampled.

A bone's transform relative to its rest follows from its channels, so it can be computed from its f-curves, all frames
at once. Constraints, drivers, NLA strips and bones that do not inherit the rotation of their parents require Blender to
evaluate each frame; then the same transform is N_j^-1 N_p P_p^-1 P_j with P the matrices of the pose and N those of the
rest. ``joint_poses`` converts both to the joint's local transform. Bones that do not inherit scale are scaled alone, as
joints of formats with keyed clips are; for other formats, their poses are converted to transforms that inherit it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.capabilities import Capabilities, length_refusal
from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Report, Text, listed
from ...io_formats.core.scene import Clip, TransformTrack
from ...io_formats.geometry import hierarchy
from ...io_formats.geometry.transforms import continuous_rotations
from .. import names, scene_state
from ..animated_blocks import Dependencies, dependencies
from ..animation import cycles, playback, pose_curves
from ..animation.action_ranges import FileClips
from ..animation.clip_sources import ClipSource, actions_of, find_clips, has_keys, played
from ..animation.scene_time import SceneTime
from ..armature_modifiers import MESHABLE, armature_of
from ..export_options import ExportOptions
from ..rigging import joint_poses
from ..rigging.armature_reading import ReadSkeleton, SkeletonSpace
from ..scene_state import set_frame
from ..steps import Step, Steps, scaled
from .clip_sampling import drop_repeated_pose
from .left_out import Movements
from .reading.rest_meshes import shape_keys
from .shapeless_poses import FigureShape, ShapeRemoval, shape_of

Array = npt.NDArray[np.float64]

_STILL = 2e-6
"""Relative difference from the bind transform that is ignored as rounding to single precision."""

_STILL_AS_SAMPLED = 5e-5
"""Tolerance for matrices of sampled poses in single precision. A joint that stays within it is not animated: an
animated joint would override animations of lower priority."""

_AT_GOAL = 0.035
"""Tolerance for rotation matrices, 2°, up to which a joint rests that only follows a goal without keys: goals do not
straighten limbs fully."""

_SAME_LENGTH = 1e-3
"""Seconds by which a clip may be longer than the target accepts, since files store lengths in single precision."""

_CHUNK = 16
"""Number of joints computed at a time, so that the arrays fit the processor's cache."""


@dataclass
class _Rig:
    """An exported armature: index of its skeleton, joints, space of the file, data blocks that its bones depend on."""

    number: int
    read: ReadSkeleton
    space: SkeletonSpace
    found: Dependencies
    shape: FigureShape | None = None
    """The shape of a figure; None if nothing in its clips can depend on one."""

    @functools.cached_property
    def scales_alone(self) -> bool:
        """Whether no bone inherits the scale of its parent."""
        return pose_curves.scale_inheritance(self.obj) == {"NONE"}

    @functools.cached_property
    def rest_values(self) -> pose_curves.RestValues:
        """The values of channels that show the shape."""
        return self.shape.rest_values() if self.shape is not None else {}

    @property
    def obj(self) -> bpy.types.Object:
        return self.read.obj


def clips_by_armature(
    scene: bpy.types.Scene,
    armatures: Sequence[bpy.types.Object],
    options: ExportOptions,
    file_clips: FileClips | None = None,
) -> list[list[ClipSource]]:
    """Return the clips that the options select for each armature.

    An action fits every armature with the same bones. If some of these armatures play it, it is left out for the
    others. Poses are named after the action or the armature, with the number of the frame, so that their files do not
    replace that of the animation.
    """
    found = [
        [
            source
            for source in find_clips(scene, dependencies([obj]), options, file_clips, for_joints=True)
            if source.actions is None or source.actions.get(obj, (None, None))[0] not in foreign
        ]
        for obj, foreign in zip(armatures, _foreign_actions(armatures), strict=True)
    ]
    for obj, sources in zip(armatures, found, strict=True):
        for source in (source for source in sources if source.is_pose):
            name = names.name_in_file(obj) if pose_curves.action_of(obj, source)[0] is None else source.name
            source.name = f"{name}_pose_{SceneTime.of(scene).scene_frame(source.start):g}"
    return found


def actions_of_armatures(armatures: Sequence[bpy.types.Object]) -> list[bpy.types.Action]:
    """Return the actions that could be exported as clips of the armatures, each once, whatever options are set."""
    return list(
        dict.fromkeys(
            action
            for obj, foreign in zip(armatures, _foreign_actions(armatures), strict=True)
            if obj.animation_data is not None
            for action, _ in actions_of(obj)
            if action not in foreign and has_keys(action)
        )
    )


def _foreign_actions(armatures: Sequence[bpy.types.Object]) -> list[set[bpy.types.Action]]:
    """Return, for each armature, the actions that only other armatures play."""
    own = [pose_curves.own_actions(obj) for obj in armatures]
    return [set().union(*(actions for actions in own if actions is not mine)) - mine for mine in own]


class JointSampler:
    """Read the clips of the armatures of one export."""

    def __init__(
        self,
        context: bpy.types.Context,
        options: ExportOptions,
        capabilities: Capabilities,
        report: Report,
        file_clips: FileClips | None = None,
    ) -> None:
        self.context = context
        self.time = SceneTime.of(context.scene)
        self.options = options
        self.file_clips = file_clips
        self.to_end = capabilities.keyed_clips
        """Whether clips end exactly where their actions end, even between two frames."""
        self.longest = capabilities.longest_clip
        self.report = report
        self.owners: list[tuple[bpy.types.Object, ClipSource]] = []
        """All clips in the order of reading, with their armatures."""

    @property
    def sources(self) -> list[ClipSource]:
        return [source for _, source in self.owners]

    def clips(self, skeletons: Iterable[tuple[ReadSkeleton, SkeletonSpace]]) -> Steps[list[Clip]]:
        """Return the clips of all skeletons. Tracks refer to skeletons by index."""
        rigs = [_Rig(number, *both, dependencies([both[0].obj])) for number, both in enumerate(skeletons)]
        found = clips_by_armature(self.context.scene, [rig.obj for rig in rigs], self.options, self.file_clips)
        self.owners = [(rig.obj, source) for rig, sources in zip(rigs, found, strict=True) for source in sources]
        clips: list[Clip] = []
        for number, (rig, sources) in enumerate(zip(rigs, found, strict=True)):
            reading = self._clips_of(rig, sources)
            clips += yield from scaled(reading, number / len(rigs), (number + 1) / len(rigs), rig.obj.name)
        return clips

    def _clips_of(self, rig: _Rig, sources: list[ClipSource]) -> Steps[list[Clip]]:
        """Read the clips of one armature.

        Clips that depend on keys alone are computed without changing the scene.
        """
        moves = any(pose_curves.moves_object(rig.obj, source) for source in sources)
        if moves or (sources and Movements().moves(rig.obj)):
            text = "the armature object itself is animated; only its bones are exported"
            self.report.loss("armature-object-animated", text, item=rig.obj.name)
        pose_curves.report_other_axes(rig.obj, sources, self.report)
        rig.shape = shape_of(rig.obj, rig.read.bones, sources)
        if rig.shape is not None and self.to_end:
            for source in sources:
                rig.shape.report_keys(rig.obj, source, self.report)
        by_keys = [source.is_empty or pose_curves.keys_suffice(rig.obj, rig.found, source) for source in sources]
        sampled = [source for source, direct in zip(sources, by_keys, strict=True) if not direct]
        clips: dict[int, Clip] = {}
        reset_channels = self._channels_to_reset(rig, sources)
        for place, (source, direct) in enumerate(zip(sources, by_keys, strict=True)):
            if direct:
                yield Step("Reading animation", len(clips) / len(sources))
                clips[place] = self._read(rig, source, reset_channels)
        if sampled:
            self._require_evaluated(rig, sampled)
            if len(sources) == 1:  # with several clips, the others are still exported
                self._require_length(sampled[0])
            blocks = rig.found.animated
            posed = [(rig.obj.data, "pose_position", "POSE")]
            with scene_state.kept(self.context, blocks, played(sampled)), scene_state.changed(self.context, posed):
                rest = scene_state.animated_values(blocks, played(sampled))
                for source in sampled:
                    # Restore the original values first, so that channels without keys do not keep the values of the
                    # previous clip.
                    source.play(blocks)
                    if not source.is_pose:
                        for channel in rest:
                            channel.restore()
                        pose_curves.rest_channels(rig.obj, reset_channels, rig.rest_values)
                    start, end = (done / len(sources) for done in (len(clips), len(clips) + 1))
                    clips[sources.index(source)] = yield from scaled(self._sample(rig, source), start, end)
        return [clips[place] for place in sorted(clips)]

    def _require_evaluated(self, rig: _Rig, sampled: list[ClipSource]) -> None:
        """Raise an error for an armature that Blender does not evaluate, since its bones would not move."""
        if not rig.obj.evaluated_get(self.context.evaluated_depsgraph_get()).is_evaluated:
            raise ExportError(
                "'{}' is disabled in viewports or in an excluded collection, where constraints, drivers "
                "and NLA strips move nothing; enable it to export {}",
                rig.obj.name,
                listed([source.name for source in sampled]),
            )

    def _require_length(self, source: ClipSource) -> None:
        """Raise an error for a clip that is too long for the target, before its frames are sampled."""
        seconds = (source.end - source.start) / self.time.key_rate
        if 0 < self.longest < seconds - _SAME_LENGTH:
            raise length_refusal(source.name, seconds, self.longest)

    def _channels_to_reset(self, rig: _Rig, sources: list[ClipSource]) -> set[tuple[str, str]]:
        """Return the channels of bones that are reset to rest in clips that do not key them.

        Unkeyed channels keep their value, as in Blender. But if another exported action keys the channel, its value
        would depend on the action that the user last played.
        """
        if all(source.actions is None and not source.strips for source in sources):
            return set()
        actions = {action for source in sources for action, _ in (source.actions or {}).values()}
        actions |= pose_curves.own_actions(rig.obj)
        return {channel for action in actions for channel in pose_curves.keyed_channels(action, None)}

    # -- from keys ------------------------------------------------------------------------------

    def _read(self, rig: _Rig, source: ClipSource, reset_channels: set[tuple[str, str]]) -> Clip:
        """Compute a clip from the f-curves of an action, without evaluating the scene."""
        frames = source.frames(self.time, to_end=self.to_end)
        read = rig.read
        curves = pose_curves.curves_of(rig.obj, source)
        poses = pose_curves.PoseChannels(rig.obj, read.bones, reset_channels, rig.rest_values)
        keyed = np.array([name in curves for name in read.bones], bool)
        removal = self._shape_removal(rig, source, frames, poses)
        if removal is None and rig.scales_alone and len(frames) and pose_curves.scales_bones(rig.obj, source):
            return self._of_poses(rig, source, self._computed_poses(rig, frames, poses, curves), keyed, _STILL)
        tracks = _Tracks(rig, len(frames), removal=removal)
        for chunk in _chunks(np.flatnonzero(keyed)):
            tracks.add(chunk, poses.matrices(chunk, frames, [curves[read.bones[joint]] for joint in chunk]))
        still = np.flatnonzero(~keyed)
        if len(frames):
            tracks.add_still(still, poses.matrices(still, frames[:1], [{} for _ in still]))
        return self._finished(rig, source, tracks, keyed)

    def _shape_removal(
        self, rig: _Rig, source: ClipSource, frames: Array, poses: pose_curves.PoseChannels
    ) -> ShapeRemoval | None:
        """Return what removes the shape of a figure from the poses of a clip; None for other armatures and targets."""
        if rig.shape is None or not self.to_end or not len(frames):
            return None
        curves = pose_curves.curves_of(rig.obj, source)
        every = [{} if source.is_pose else curves.get(name, {}) for name in rig.read.bones]
        scales = poses.scales(np.arange(len(every)), frames, every)
        return rig.shape.removal(rig.obj, source, scales)

    def _computed_poses(
        self, rig: _Rig, frames: Array, poses: pose_curves.PoseChannels, curves: Mapping[str, pose_curves.Curves]
    ) -> Array:
        """Return the poses of bones that do not inherit scale, (F, J, 4, 4), from their channels."""
        read = rig.read
        basis = poses.matrices(np.arange(len(read.bones)), frames, [curves.get(name, {}) for name in read.bones])
        return joint_poses.pose_matrices(read.rest, read.parents, basis).swapaxes(0, 1)

    # -- frame by frame -------------------------------------------------------------------------

    def _sample(self, rig: _Rig, source: ClipSource) -> Steps[Clip]:
        """Make a clip by setting each of its frames."""
        frames = source.frames(self.time, to_end=self.to_end)
        poses = yield from self._pose_matrices(rig, frames, as_shown=source.is_pose)
        curves = pose_curves.curves_of(rig.obj, source)
        driven = pose_curves.bones_moved_otherwise(rig.obj)
        keyed = np.array([name in curves or name in driven for name in rig.read.bones], bool)
        channels = pose_curves.PoseChannels(rig.obj, rig.read.bones, set(), {})
        removal = self._shape_removal(rig, source, frames, channels)
        clip = self._of_poses(rig, source, poses, keyed, _STILL_AS_SAMPLED if self.to_end else _STILL, removal)
        unkeyed = pose_curves.bones_of_unkeyed_goals(rig.obj, curves)
        if unkeyed and not source.is_pose and self.options.animated_bones != "ALL":
            resting = self._joints_at_rest(rig, poses, unkeyed)
            clip.transforms = [track for track in clip.transforms if track.target not in resting]
        return clip

    def _joints_at_rest(self, rig: _Rig, poses: Array, bones: set[str]) -> set[int]:
        """Return the joints of those bones that rest in the poses of all joints, (F, J, 4, 4)."""
        found = set()
        for joint, (name, parent) in enumerate(zip(rig.read.bones, rig.read.parents, strict=True)):
            if name in bones and parent >= 0:
                own = joint_poses.own_transform(
                    rig.read.rest[joint], poses[:, parent], rig.read.rest[parent], poses[:, joint]
                )
                turns = joint_poses.unscaled(own)[:, :3, :3]
                is_still = np.ptp(turns, axis=0).max() <= _STILL_AS_SAMPLED
                if is_still and np.abs(turns[0] - np.identity(3)).max() <= _AT_GOAL:
                    found.add(joint)
        return found

    def _of_poses(
        self,
        rig: _Rig,
        source: ClipSource,
        poses: Array,
        keyed: npt.NDArray[np.bool_],
        tolerance: float,
        removal: ShapeRemoval | None = None,
    ) -> Clip:
        """Make a clip from the poses of all joints in its frames, (F, J, 4, 4)."""
        read = rig.read
        tracks = _Tracks(rig, len(poses), tolerance, removal)
        for chunk in _chunks(np.arange(len(read.bones))):
            basis = np.empty((len(chunk), len(poses), 4, 4))
            for place, joint in enumerate(chunk):
                parent = read.parents[joint]
                if self.to_end and rig.scales_alone and parent >= 0:
                    basis[place] = joint_poses.own_transform(
                        read.rest[joint], poses[:, parent], read.rest[parent], poses[:, joint]
                    )
                    continue
                basis[place] = joint_poses.inverse(read.rest[joint]) @ (
                    poses[:, joint]
                    if parent < 0
                    else read.rest[parent] @ joint_poses.inverse(poses[:, parent]) @ poses[:, joint]
                )
            tracks.add(chunk, basis)
        if self.to_end:
            tracks.sheared.clear()
        clip = self._finished(rig, source, tracks, keyed)
        # A stretched bone shears the bones below it, which their local transforms cannot store.
        if self.to_end and removal is None:
            bind = hierarchy.world_matrices(read.local, read.parents)
            clip.worlds = rig.space.matrix @ poses @ (joint_poses.inverse(read.rest) @ bind)
        return clip

    def _pose_matrices(self, rig: _Rig, frames: Array, *, as_shown: bool) -> Steps[Array]:
        """Return the pose matrices of all joints at each frame, (F, J, 4, 4), in the space of the armature.

        With ``as_shown`` the current frame is not set again, since that would discard changes of the pose that have no
        keys.
        """
        bones = rig.obj.pose.bones
        order = np.array([bones.find(name) for name in rig.read.bones], np.intp)
        poses = np.empty((len(frames), len(order), 4, 4), np.float32)
        flat = np.empty(len(bones) * 16, np.float32)
        for place, frame in enumerate(frames):
            yield Step("Sampling animation", place / len(frames))
            if not as_shown:
                set_frame(self.context.scene, self.time.scene_frame(frame))
            depsgraph = self.context.evaluated_depsgraph_get()
            rig.obj.evaluated_get(depsgraph).pose.bones.foreach_get("matrix", flat)
            # Blender stores matrices column by column.
            poses[place] = flat.reshape(-1, 4, 4)[order].transpose(0, 2, 1)
        return poses.astype(np.float64)

    # -- used by both -----------------------------------------------------------------------------

    def _finished(self, rig: _Rig, source: ClipSource, tracks: _Tracks, keyed: npt.NDArray[np.bool_]) -> Clip:
        """Return the clip of the sampled tracks, with the times and playback that the options and the action ask for.

        ``keyed`` (J,) marks the bones that the clip animates.
        """
        every = self.options.animated_bones == "ALL" or source.is_pose or (source.is_empty and not keyed.any())
        clip = Clip(source.name, source.fps, tracks.frame_count, has_own_rate=source.has_own_rate)
        clip.root_motion = source.root_motion
        if self.to_end:
            clip.times = (source.frames(self.time, to_end=True) - source.start) / self.time.key_rate
            clip.duration = (source.end - source.start) / self.time.key_rate
        action, _slot = pose_curves.action_of(rig.obj, source)
        if action is not None:
            strip = next(pose_curves.strips_of(rig.obj, source), None)
            in_clip = playback.ActionTime((action.frame_range[0] - source.start) / self.time.key_rate)
            if strip is not None:
                in_clip = playback.ActionTime.of_strip(strip, source.start, self.time.key_rate)
            playback.read(action, clip, self.time, in_clip, is_cyclic=source.is_cyclic)
            if self.to_end and not source.is_pose and clip.playback is None and clip.loop is None:
                period = (source.end - source.start) / abs(in_clip.scale)
                cycles.loop(clip, pose_curves.exported_curves(rig.obj, rig.found, source), period, self.report)
        if source.is_pose:
            clip.is_pose, clip.duration, clip.original = True, 1 / source.fps, b""
            if clip.playback is not None:
                clip.playback = replace(clip.playback, is_looped=True, loop_in=0.0, loop_out=clip.duration)
        clip.transforms = tracks.made(np.ones(len(keyed), bool) if every else keyed)
        if tracks.sheared:
            self.report.change(
                "sheared-bones",
                "scaled bones shear {} others, such as '{}', which a file cannot hold; the nearest without shear was "
                "exported",
                len(tracks.sheared),
                tracks.sheared[0],
                item=rig.obj.name,
            )
        if not self.to_end:
            drop_repeated_pose(clip, self.options.loop, is_cyclic=source.is_cyclic)
        return clip


def _chunks(joints: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    return [joints[start : start + _CHUNK] for start in range(0, len(joints), _CHUNK)]


class _Tracks:
    """The tracks of one clip, in the space of the file."""

    def __init__(
        self, rig: _Rig, frame_count: int, tolerance: float = _STILL, removal: ShapeRemoval | None = None
    ) -> None:
        self.rig = rig
        self.removal = removal
        self.bone_space = joint_poses.PoseSpace.of(rig.read.local, rig.read.parents, rig.read.rest)
        self.tolerance = tolerance
        self.frame_count = frame_count
        self.size, self.before = rig.space.parts()
        self.tracks: dict[int, TransformTrack] = {}
        self.moving: set[int] = set()
        self.sheared: list[str] = []
        self.bind = rig.space.moved(rig.read).joints
        # Sampled matrices have an absolute error proportional to the largest coordinate, even for a joint at the head
        # of its parent.
        extent = float(np.abs(rig.read.rest[:, :3, 3]).max(initial=0.0)) * self.size
        self.least_size = extent if tolerance == _STILL_AS_SAMPLED else 1e-6

    def add(self, joints: npt.NDArray[np.intp], basis: Array) -> None:
        """Add the tracks of joints from the transforms of their bones relative to the rest, (n, F, 4, 4)."""
        if not len(joints) or not self.frame_count:
            return
        is_scaled = np.zeros(len(joints), bool)
        if self.removal is not None:
            basis, is_scaled = self.removal.without_shape(joints, basis)
        local = self.bone_space.to_local(joints, basis)
        if not self.rig.space.is_identity:
            local[..., :3, 3] *= self.size
            roots = np.array([self.rig.read.parents[joint] < 0 for joint in joints])
            local[roots] = self.before @ local[roots]
        count, frames = local.shape[:2]
        translation, rotation, scale, shear = joint_poses.decompose(local.reshape(-1, 4, 4))
        skewed = shear.reshape(count, frames).max(axis=1) > 1e-4
        self.sheared += [self.rig.read.bones[joint] for joint in joints[skewed]]
        for place, joint in enumerate(joints.tolist()):
            of_joint = slice(place * frames, (place + 1) * frames)
            self._add_one(joint, translation[of_joint], rotation[of_joint], scale[of_joint])
            self.tracks[joint].is_scaled = bool(is_scaled[place])

    def add_still(self, joints: npt.NDArray[np.intp], basis: Array) -> None:
        """Add the tracks of joints that do not move, given by one frame, (n, 1, 4, 4)."""
        self.add(joints, basis)
        for joint in joints.tolist():
            track = self.tracks[joint]
            for name in ("translation", "rotation", "scale"):
                setattr(track, name, np.repeat(getattr(track, name), self.frame_count, axis=0))

    def _add_one(self, joint: int, translation: Array, rotation: Array, scale: Array) -> None:
        """Add the track of a joint.

        Channels that stay within the tolerance of the bind transform get exactly its values.
        """
        bind = self.bind[joint]
        place, turn, extent = (np.asarray(value, np.float64) for value in (bind.translation, bind.rotation, bind.scale))
        turn = turn / (np.linalg.norm(turn) or 1.0)
        if float(np.dot(rotation[0], turn)) < 0:
            rotation = -rotation
        rotation = continuous_rotations(rotation.astype(np.float32))
        size = max(float(np.abs(translation).max()), float(np.abs(place).max()), self.least_size)
        stands = np.abs(translation - place).max() <= self.tolerance * size
        holds = np.abs(rotation - turn).max() <= self.tolerance
        keeps = np.abs(scale - extent).max() <= self.tolerance * max(1e-6, float(np.abs(extent).max()))
        if not (stands and holds and keeps):
            self.moving.add(joint)
        shape = (len(translation), 1)
        self.tracks[joint] = TransformTrack(
            joint,
            np.tile(np.float32(place), shape) if stands else translation.astype(np.float32),
            np.tile(np.float32(turn), shape) if holds else rotation,
            np.tile(np.float32(extent), shape) if keeps else scale.astype(np.float32),
            skeleton=self.rig.number,
        )

    def made(self, wanted: npt.NDArray[np.bool_]) -> list[TransformTrack]:
        """Return the tracks of joints in ``wanted``, and of all that differ from the bind transform."""
        if not self.frame_count:
            return [
                TransformTrack(joint, _none(3), _none(4), _none(3), self.rig.number)
                for joint in np.flatnonzero(wanted).tolist()
            ]
        return [self.tracks[joint] for joint in sorted(self.tracks) if wanted[joint] or joint in self.moving]


def _none(width: int) -> npt.NDArray[np.float32]:
    return np.empty((0, width), np.float32)


def report_baked(
    objects: Sequence[bpy.types.Object], options: ExportOptions, capabilities: Capabilities, report: Report
) -> None:
    """Report, with the objects' names, each kind of deformation that the format cannot hold.

    Parameters
    ----------
    options:
        Without ``use_modifiers``, meshes are exported undeformed.
    """
    shown = [obj for obj in objects if obj.type in MESHABLE]
    bound = listed([obj.name for obj in shown if armature_of(obj) is not None])
    if bound and not capabilities.skeletons:
        how = Text("as the armature poses it") if options.use_modifiers else Text("without its armature")
        report.loss("baked-armature", "exported {}; the file holds no bones", how, item=bound)
    shaped = listed([obj.name for obj in shown if shape_keys(obj)])
    if shaped and not capabilities.shape_keys:
        how = Text("as its shape keys make it look") if options.use_modifiers else Text("without its shape keys")
        report.loss("baked-shape-keys", "exported {}; the file holds none", how, item=shaped)
