"""Document <-> Scene (docs/formats/unigine.md, sections 8 and 10): one skeleton and one clip; facts, checks."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Message, Named, Report, Text, of_kind
from ...core.scene import Clip, Joint, Scene, Skeleton
from ...passes.clips import MOST_FRAMES, clip_parts, only_part, resampled
from ...projects import Projects
from .. import space
from ..bones import IDENTITY, check_bones, from_skeleton, to_skeleton, with_parents_first
from ..frames import DeltaFrames
from ..joint_tracks import flagged_frames, quantized_frames, report_playback, to_tracks
from ..project.new_assets import TargetFolder
from ..skeleton.references import DROPPED, check_reference, for_animation, missing_joints
from ..space import rotate_180
from .codec import AnimationFile
from .format import SKELETON_VERSIONS, ReadOptions, WriteOptions


def check(document: AnimationFile) -> list[Message]:
    """Return errors for an animation that cannot be played and warnings for suspicious data."""
    found = Report()
    check_bones(document.bones, found)
    named = Text("Animation '{}'", Named("animation", document.name))
    report = found.about(named if document.name else Text("The animation"))
    if not document.bones:
        report.error("no-bones", "it has no bones, so it moves nothing")
    frame_count = document.frames.frame_count if document.frames else 0
    animated = document.frames.bone_indices if document.frames else np.empty(0, np.int16)
    if not frame_count:
        report.warning("no-frames", "it has no frames; the mesh stays in its bind pose")
    elif document.bones and not len(animated):
        report.warning("animates-no-bone", "it animates no bone")
    twice = [document.bones[index].name for index, times in Counter(animated.tolist()).items() if times > 1]
    report.warning_of("bone-animated-twice", "{} animated twice: {}", of_kind("bone", twice), "bone is", "bones are")
    if document.version in SKELETON_VERSIONS:
        if document.fps <= 0:
            report.error("invalid-frame-rate", "its frame rate is {}, so it never plays", document.fps)
        if not document.skeleton_guid and not document.skeleton_path:
            advice = Text("enter its GUID or path in the sidebar of the armature")
            report.warning(
                "names-no-skeleton", "it names no skeleton, which {} refers to; {}", document.version, advice
            )
    found.messages += document.findings
    if isinstance(document.frames, DeltaFrames) and frame_count and not document.frames.mask:
        report.warning("animates-no-channel", "it animates no channel: nothing moves")
    return found.messages


def check_links(document: AnimationFile, path: Path, projects: Projects, options: ReadOptions) -> list[Message]:
    """Return warnings about the skeleton file to which an animation refers."""
    guid, stated = document.skeleton_guid, document.skeleton_path
    return check_reference(document.bones, guid, stated, path, projects, DROPPED)


DEFAULT_RATE = 30
"""Frames per second in all files that state a rate, and the engine's default sampling rate."""
_HIGHEST_RATE = 2**31 - 1


def to_scene(document: AnimationFile, name: str, options: ReadOptions) -> Scene:
    """Map an animation to Blender's space.

    The clip has the name of the animation in an10, otherwise ``name``. Its ``fps`` is that of the file in an12 and
    an13, and that of the option in an10 and an11 (0 if not set). an12 and an13 hold no bind transforms: ``has_bind`` is
    false, animated joints rest in their first frame, and other joints have the identity transform.
    """
    scene = Scene(name, warnings=list(document.warnings))
    has_bind = document.version not in SKELETON_VERSIONS
    transforms = document.transforms if has_bind else np.tile(np.array(IDENTITY, np.float32), (len(document.bones), 1))
    skeleton = to_skeleton(name, document.bones, transforms)
    clip = Clip(document.name or name, options.assumed_frame_rate, 0)
    if document.frames is not None:
        clip.frame_count = document.frames.frame_count
        clip.transforms = to_tracks(document.frames, skeleton.joints, report=scene.report)
    if not has_bind:
        _stand_as_first_frame(skeleton, clip)
        clip.root_motion = document.root_motion
        skeleton.guid, skeleton.path = document.skeleton_guid, document.skeleton_path
        if document.fps > 0:
            clip.fps, clip.has_own_rate = float(document.fps), True
        else:
            scene.report.change("invalid-frame-rate", "Its frame rate is {}, which is invalid; ignored", document.fps)
    scene.skeletons.append(skeleton)
    scene.clips.append(clip)
    return rotate_180(scene) if options.use_turn else scene


def _stand_as_first_frame(skeleton: Skeleton, clip: Clip) -> None:
    """Set the rest pose of animated joints to their first frame, for a file without bind transforms."""
    skeleton.has_bind = False
    for track in clip.transforms if clip.frame_count else ():
        (tx, ty, tz), (w, x, y, z), (sx, sy, sz) = (
            values[0].tolist() for values in (track.translation, track.rotation, track.scale)
        )
        joint = skeleton.joints[track.target]
        skeleton.joints[track.target] = Joint(joint.name, joint.parent, (tx, ty, tz), (w, x, y, z), (sx, sy, sz))


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each clip and each skeleton that it animates, named after the clip."""
    return clip_parts(scene)


def from_scene(scene: Scene, options: WriteOptions) -> AnimationFile:
    """Map a scene of one skeleton and one clip to a file whose folder is not known."""
    return from_scene_at(scene, options, None, None)


def from_scene_at(scene: Scene, options: WriteOptions, path: Path | None, projects: Projects | None) -> AnimationFile:
    """Map a scene of one skeleton and one clip to a document for a file at a path.

    The bone table is the whole skeleton; only joints with tracks are animated. ``scene.warnings`` reports what the
    version cannot hold.

    Raises
    ------
    ExportError
        No animation or several, too many bones, NaN or infinite values, or no skeleton file for an13.
    """
    version = options.animation_version.lower()
    part = rotate_180(only_part(scene), back=True) if options.use_turn else only_part(scene)
    if version in SKELETON_VERSIONS:
        part = with_parents_first(part)
    skeleton, clip = part.skeletons[0], part.clips[0]
    table, transforms = from_skeleton(skeleton)
    document = AnimationFile(version, table)
    if version in SKELETON_VERSIONS:
        use = for_animation(skeleton, table, options.skeleton, TargetFolder(path, "", projects or Projects()))
        if use is not None:
            document.skeleton_guid, document.skeleton_path = use.guid, use.path
            document.findings = missing_joints(table, use, DROPPED)
        clip = with_whole_rate(clip, scene.report)
        document.fps = round(clip.fps)
        document.root_motion = clip.root_motion
    else:
        document.transforms = transforms
        if not skeleton.has_bind:
            template = "'{}' was imported without a bind pose; the first frame becomes the bind pose"
            scene.report.change("no-bind-pose", template, skeleton.name)
        report_playback(clip, version, scene.report)
    if version == "an10":
        document.name = clip.name
        document.bounds = space.empty_bounds()
        document.frames = quantized_frames(clip, skeleton)
    else:
        document.frames = flagged_frames(clip, skeleton)
    return document


def with_whole_rate(clip: Clip, report: Report) -> Clip:
    """Return a clip with an integer frame rate, resampled so that it keeps its speed."""
    if not math.isfinite(clip.fps) or clip.fps <= 0:
        template = "Animation '{}' has no frame rate; written with {} frames a second"
        report.change("no-frame-rate", template, Named("animation", clip.name), DEFAULT_RATE)
        return replace(clip, fps=float(DEFAULT_RATE))
    rate = min(max(1, round(clip.fps)), _HIGHEST_RATE)
    if rate == clip.fps:
        return clip
    template = "Animation '{}' has {:g} frames a second; resampled to {}, since the file holds whole numbers"
    report.change("frame-rate-rounded", template, Named("animation", clip.name), clip.fps, rate)
    last = max(clip.frame_count - 1, 0) / clip.fps
    if not last * rate < MOST_FRAMES:
        template = "The animation '{}' is {:,.0f} s long; at {} frames a second it has more than {:,} frames"
        raise ExportError(template, Named("animation", clip.name), last, rate, MOST_FRAMES)
    if clip.frame_count < 2:
        return replace(clip, fps=float(rate))
    return replace(resampled(clip, np.arange(round(last * rate) + 1) / rate), fps=float(rate))


def facts(document: AnimationFile) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    frame_count = document.frames.frame_count if document.frames else 0
    return {
        "version": document.version,
        "bones": len(document.bones),
        "clips": [{"name": document.name, "kind": "bone", "frames": frame_count, "fps": float(document.fps)}],
        "warnings": to_scene(document, document.name, ReadOptions()).warnings,
    }
