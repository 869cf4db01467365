r"""Clips of a scene -> actions, shape keys and mesh caches; frame rate and frame range of Blender's scene.

Little-endian: ``POINTCACHE2\0``, int32 version 1, int32 points, float32 first frame, float32 frames
per sample, int32 samples; then float32 (samples, points, 3).
"""

import struct
from collections.abc import Sequence
from pathlib import Path

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named
from ...io_formats.core.scene import Clip, KeyTrack, Skeleton, TransformTrack, VertexTrack
from ...io_formats.disk.atomic_write import replace_file
from ...io_formats.passes import clips
from .. import import_marks, names
from ..animation.scene_time import SceneTime, scene_rate
from ..rigging import body_shapes, helper_bones
from ..rigging.joint_poses import BoneMap
from ..steps import Step, Steps
from . import armature_matching, armatures, meshes, objects
from .actions import ClipActions, ClipTiming
from .import_context import ImportContext

Range = tuple[float, float]
"""First and last key frame of a range."""


def ranges_of_actions() -> list[Range]:
    """Return the ranges of all actions that are in use."""
    return [(action.frame_range[0], action.frame_range[1]) for action in bpy.data.actions if action.users]


def fit_range(scene: bpy.types.Scene, existing: Sequence[Range], added: Sequence[Range]) -> None:
    """Set the frame range of a scene so that it covers its existing and the added animations.

    A range that differs from that of the existing animations was chosen by the user and stays unchanged. So does the
    range if all animations have a single frame.
    """
    time = SceneTime.of(scene)
    if existing and (scene.frame_start, scene.frame_end) != _whole(existing, time):
        return
    start, end = _whole([*existing, *added], time)
    if end > start:
        scene.frame_start, scene.frame_end = start, end


def _whole(ranges: Sequence[Range], time: SceneTime) -> tuple[int, int]:
    """Return the whole frames of the scene nearest to the ends of all ranges of key frames."""
    first, last = min(start for start, _ in ranges), max(end for _, end in ranges)
    return round(time.scene_frame(first)), round(time.scene_frame(last))


def encode_point_cache(points: npt.NDArray[np.float32]) -> bytes:
    """Encode sampled points, (F, P, 3) float32, with one sample for each frame from frame 0 on."""
    head = struct.pack("<12siiffi", b"POINTCACHE2\0", 1, points.shape[1], 0.0, 1.0, points.shape[0])
    return head + np.ascontiguousarray(points, "<f4").tobytes()


_RATE_ROUNDING = 1e-3
"""Tolerance within which a frame rate is rounded to a whole number."""


class ClipBuilder:
    """Creates the animations of an import after its objects have been created."""

    def __init__(self, job: ImportContext) -> None:
        self.job = job
        self.clips = job.scene.clips
        self.options = job.options
        self.blender_scene = job.request.context.scene

    def build(self) -> Steps[int]:
        """Create actions, shape keys and caches for the scene's clips; return the number of actions."""
        leading = self.clips[0] if self.clips and self.options.use_file_frame_rate else None
        if leading and leading.fps and not 0.01 <= leading.fps <= 32767:
            template = "Animation '{}' has {:g} frames a second, which a Blender scene cannot have"
            raise MeshferryError(template, Named("animation", leading.name), leading.fps)
        made = 0
        time = SceneTime.of(self.blender_scene, _rate_of(leading) if leading else 0.0)
        existing, added = ranges_of_actions(), []
        for number, clip in enumerate(self.clips):
            yield Step("Building actions", number / len(self.clips))
            timing = ClipTiming(clip, time, self.options.frame_start)
            actions = ClipActions(clip, timing, self._name_action(clip), self.job.keep)
            self._add_tracks(number, clip, actions)
            actions.attach(self.job.played.make_way(clip) if number == 0 else ())
            action = actions.curves.action
            if action is not None:
                import_marks.write_origin(action, self.job.request)
                action.meshferry.file_format = self.job.scene.format
                action.meshferry.bone_axes = actions.bone_axes
                action.meshferry.imported_range = action.frame_range
                action.meshferry.fingerprint = repr(actions.checksums.get(action, 0.0))
                made += 1
                added.append(timing.range)
            for owner in dict.fromkeys(owner for owner, _action, _slot in actions.assigned):
                if isinstance(owner, bpy.types.Object) and owner.type == "ARMATURE":
                    body_shapes.adjust_actions(owner)
        if leading:
            self._set_scene_rate(leading, has_others=bool(existing))
        elif added:
            fit_range(self.blender_scene, existing, added)
        return made

    def _name_action(self, clip: Clip) -> str:
        plain = names.fit(clip.name)
        # the names of a second import get numbers from Blender
        if plain not in bpy.data.actions or clip.name == self.job.scene.name:
            return plain
        return names.fit(f"{clip.name} {self.job.scene.name}")

    def _add_tracks(self, number: int, clip: Clip, actions: ClipActions) -> None:
        if self.options.use_joint_animation:
            self._add_joint_tracks(clip, actions)
        if self.options.use_node_animation:
            for track in clip.transforms:
                if track.skeleton is None:
                    owner = self.job.objects[track.target]
                    actions.add_transforms(owner, track)
                    objects.remember_rest(owner, self.job.scene.nodes[track.target])
        self._add_vertex_tracks(number, clip, actions)

    def _add_joint_tracks(self, clip: Clip, actions: ClipActions) -> None:
        """Key the bones that a clip moves."""
        for number, bones in enumerate(self.job.bones):
            keys = [track for track in clip.keys if track.skeleton == number]
            tracks = [track for track in clip.transforms if track.skeleton == number]
            if bones is None or not (keys or tracks):
                continue
            if keys:
                self._add_keys(bones, self.job.scene.skeletons[number], keys, actions)
            if tracks:
                self._add_samples(bones, tracks, clip, actions)
            self._report_bones(bones, [*keys, *tracks])

    def _add_samples(self, bones: BoneMap, tracks: Sequence[TransformTrack], clip: Clip, actions: ClipActions) -> None:
        """Add tracks with a value for each frame to the actions of an armature; report what its bones cannot show."""
        if not clip.frame_count:
            self.job.report.loss("no-frames", "Animation '{}' has no frames", Named("animation", clip.name))
        self.job.played.note(bones, tracks)
        sheared = actions.add_joints(bones, tracks)
        helper_bones.hide_scaled(bones.armature, actions.first_scales)
        if sheared:
            self.job.report.change(
                "sheared-bones",
                "Animation '{}' shears {} by unequal scales of the bones above, which Blender's bones cannot show; "
                "they take the nearest pose",
                Named("animation", clip.name),
                armature_matching.named(sheared),
            )

    def _report_bones(self, bones: BoneMap, tracks: Sequence[TransformTrack | KeyTrack]) -> None:
        """Report keys of an existing armature that have no effect: older keys, or those of the clip."""
        report, name = self.job.report, bones.armature.name
        silenced = self.job.played.bones_with_unused_keys()
        if silenced:
            report.change(
                "unused-rotation-keys",
                "'{}': quaternions turn {} now; Euler angles or axes in its other actions "
                "have no effect until Rotation Mode is set back",
                name,
                armature_matching.named(silenced),
            )
        posed = bones.armature.pose.bones
        names_of = [bone for track in tracks if (bone := bones.bones[track.target]) is not None]
        held = [bone for bone in names_of if any(not found.mute for found in posed[bone].constraints)]
        if held:
            text = "'{}': constraints of {} may override the animation; disable them to see it as in the file"
            report.loss("bone-constraints", text, name, armature_matching.named(held))
        data = bones.armature.data.bones
        loose = [bone for bone in names_of if data[bone].parent is not None and not data[bone].use_inherit_rotation]
        if loose:
            text = "'{}': without Inherit Rotation, bones move otherwise than in the file: {}"
            report.loss("bones-without-inheritance", text, name, armature_matching.named(loose))
        if bones.armature.data.pose_position == "REST":
            report.change("rest-position", "'{}' is in Rest Position, so the animation is not shown", name)

    def _add_keys(self, bones: BoneMap, skeleton: Skeleton, keys: list[KeyTrack], actions: ClipActions) -> None:
        """Key bones at the times of the tracks.

        Keys of joints that the armature lacks are applied to the bones below them.
        """
        keys, missing = clips.without_missing(keys, skeleton, [name is not None for name in bones.bones])
        if missing:
            text = "'{}': the bones below move for the missing {}"
            self.job.report.change(
                "missing-bones-replaced", text, bones.armature.name, armature_matching.named(missing)
            )
        self.job.played.note(bones, keys)
        self._disconnect(bones, keys)
        actions.add_keys(bones, skeleton, keys)

    def _disconnect(self, bones: BoneMap, tracks: Sequence[KeyTrack]) -> None:
        """Disconnect bones with location keys from their parents."""
        armature = bones.armature
        located = [bones.bones[track.target] for track in tracks if track.translation is not None]
        found = [name for name in located if name is not None and armature.data.bones[name].use_connect]
        if not found:
            return
        if armature.data.library is not None or armature.data.override_library is not None:
            self.job.report.loss(
                "linked-connected-bones",
                "'{}': its bones are linked from another file and connected to their parents, so these only rotate: {}",
                armature.name,
                armature_matching.named(found),
            )
            return
        armatures.connect(self.job.request.context, armature, found, is_connected=False)
        if armature not in self.job.armatures:
            self.job.disconnected.append((armature, found))
            text = "'{}': disconnected from their parents, as the animation moves them: {}"
            self.job.report.change("bones-disconnected", text, armature.name, armature_matching.named(found))

    def _add_vertex_tracks(self, number: int, clip: Clip, actions: ClipActions) -> None:
        """Add the vertex animation of a clip as shape keys or cache files, as the options choose."""
        mode = self.options.vertex_animation
        for index in dict.fromkeys(track.target for track in clip.vertices):
            owner = self.job.objects[index]
            for of_clip, moved in self.job.tracks.get(index, []):
                if of_clip != number or owner.data is None:
                    continue
                owner.meshferry.rest_is_basis = mode != "NONE"
                if mode == "SHAPE_KEYS":
                    meshes.add_shape_keys(owner, actions, moved)
                elif mode == "CACHE":
                    self._write_cache(owner, clip, actions.timing, moved)

    def _write_cache(self, owner: bpy.types.Object, clip: Clip, timing: ClipTiming, track: VertexTrack) -> None:
        """Write a point cache beside the source file and play it."""
        if not self.job.request.source_path:
            raise MeshferryError("A mesh cache is written beside the imported file, and there is none")
        if any(modifier.type == "MESH_CACHE" for modifier in owner.modifiers):
            text = "only one vertex animation can play from a cache; '{}' is left out"
            self.job.report.loss("second-vertex-animation", text, clip.name, item=owner.name)
            return
        source = Path(self.job.request.source_path)
        label = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in f"{owner.name}-{clip.name}")
        path = source.with_name(f"{source.name}.{label}.pc2")
        replaced = path.read_bytes() if path.exists() else None
        replace_file(path, encode_point_cache(track.points), within=path.parent)
        self.job.caches.append((path, replaced))
        meshes.add_mesh_cache(owner, str(path), float(timing.frames[0]), timing.step)

    def _set_scene_rate(self, clip: Clip, *, has_others: bool) -> None:
        """Set the frame range of the Blender scene to that of a clip and, if the file states it, the frame rate."""
        rate = _rate_of(clip)
        before = scene_rate(self.blender_scene)
        if rate:
            render = self.blender_scene.render
            whole = max(1, round(rate))
            if abs(rate - whole) > _RATE_ROUNDING:
                whole += rate > whole
            render.fps = whole
            render.fps_base = whole / rate
        now = scene_rate(self.blender_scene)
        if has_others and abs(now - before) > _RATE_ROUNDING:
            text = "The scene has {:g} frames a second now, {:g} before; its other animations play at another speed"
            self.job.report.change("frame-rate-changed", text, now, before)
        start = self.options.frame_start
        self.blender_scene.frame_start = start
        length = clip.duration * scene_rate(self.blender_scene) if clip.keys else clip.frame_count - 1
        self.blender_scene.frame_end = max(start, round(start + length))


def _rate_of(clip: Clip) -> float:
    """Return the frame rate that a clip states, or else the one that its keys suggest; 0 if there is none."""
    return clip.fps or clip.key_rate
