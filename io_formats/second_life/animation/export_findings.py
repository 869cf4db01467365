"""Warnings and notes of an animation export; each names the bones or the time that a report can select."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Elements, Named, Text, counted, error, listed
from ...core.scene import Clip, Scene, Skeleton
from ...passes.clips import DEFAULT_RATE
from ..avatar import joints as avatar_joints
from ..avatar.avatar_motion import AvatarMotion
from .document import JointKeys, SecondLifeAnimation, decode_text
from .keys import codes, curves, looping, reduction

_LIKE = 0.85
"""Similarity (of ``difflib``) from which an unknown name is taken for a misspelt joint name."""
_SCALED = 1e-3
"""Change of a bone's scale, relative to its rest pose, above which it is reported."""
_BEYOND_WINDOW = (5, 6)
"""Priorities that animations from the upload window of BVH files cannot have."""
_REST: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
_MOST_BONES = 10
"""Number of bones that are selected for a file that is too large."""


def bone_items(names: Sequence[str]) -> Elements:
    """Return bones or joints of the animation's armature as elements that a report can select."""
    return Elements("bones", "", tuple(names))


def moment_item(seconds: float) -> Elements:
    """Return a time of the animation, in seconds, as an element that a report can go to."""
    return Elements("milliseconds", "", (round(seconds * 1000),))


def warn_of_unknown_bones(clip: Clip, skeleton: Skeleton, motion: AvatarMotion, scene: Scene) -> None:
    """Warn about animated deforming bones that are not joints of the avatar.

    Bones at the ends of chains whose names end in ``_end``, as FBX importers add them, are ignored.
    """
    joints = skeleton.joints
    numbers = sorted({track.target for track in clip.transforms}.difference(motion.mapped))
    parents = {joint.parent for joint in joints}
    ends = {number for number in numbers if number not in parents and joints[number].name.lower().endswith("_end")}
    names = [joints[number].name for number in numbers if joints[number].deforms and number not in ends]
    if names:
        number = counted(len(names), "animated bone is", "animated bones are")
        template = "{} no joint of the avatar and left out: {}"
        scene.report.loss("unknown-bones-left-out", template, number, listed(names), elements=bone_items(names))
        for name in names:
            near = difflib.get_close_matches(name, avatar_joints.table(), n=1, cutoff=_LIKE)
            if near:
                template = "bone '{}' has almost the name of the joint '{}'"
                scene.report.loss("bone-almost-a-joint", template, name, near[0], elements=bone_items([name]))


def warn_of_moved_joints(joints: Sequence[str], scene: Scene) -> None:
    """Warn about joints that leave their rest positions in an animation that stores no positions."""
    moved = [joint for joint in joints if joint != avatar_joints.ROOT]
    if moved:
        number = counted(len(moved), "joint moves", "joints move")
        template = "{} from its place, which is left out (option Positions): {}"
        scene.report.loss("joint-positions-left-out", template, number, listed(moved), elements=bone_items(moved))


def warn_of_scale(clip: Clip, skeleton: Skeleton, motion: AvatarMotion, scene: Scene) -> None:
    """Warn about bones whose scale changes, since files cannot store scale."""
    scaled = [
        skeleton.joints[track.target].name
        for track in clip.transforms
        if track.target in motion.mapped
        and len(track.scale)
        and (track.is_scaled or np.abs(track.scale - skeleton.joints[track.target].scale).max() > _SCALED)
    ]
    if scaled and not motion.is_other_rig:
        number = counted(len(scaled), "bone is", "bones are")
        template = "{} scaled, which an animation cannot hold: {}"
        scene.report.loss("bone-scale-left-out", template, number, listed(scaled), elements=bone_items(scaled))


def refuse_far(motion: AvatarMotion, positioned: Sequence[bool], clip: Clip) -> None:
    """Raise ExportError for the first joint whose position is too far from its parent for a file.

    For the root, the distance is that from its rest position.
    """
    for number in np.flatnonzero(positioned):
        far = np.abs(motion.position[number]).max(axis=1) > codes.FARTHEST
        if far.any():
            seconds = float(motion.times[far.argmax()])
            raise ExportError.of(
                error(
                    "far-positions",
                    "'{}': '{}' is more than {:.0f} m from its place at {:.2f} s, which a file cannot hold; move the "
                    "animation to the origin",
                    Named("animation", clip.name),
                    Named("bone", motion.bones[motion.names[number]]),
                    codes.FARTHEST,
                    seconds,
                    elements=moment_item(seconds),
                )
            )


def largest_joints(joints: Sequence[JointKeys]) -> Elements:
    """Return the joints with the most keys."""
    counts = {decode_text(joint.name): joint.key_count for joint in joints}
    return bone_items(sorted(counts, key=lambda name: -counts[name])[:_MOST_BONES])


def add_notes(document: SecondLifeAnimation, motion: AvatarMotion, clip: Clip, scene: Scene) -> None:
    """Add notes about properties of an animation whose effect in Second Life users may not expect."""
    report = scene.report.about(Text("'{}'", Named("animation", clip.name)))
    if document.base_priority in _BEYOND_WINDOW:
        own = [decode_text(joint.name) for joint in document.joints if joint.priority in (-1, *_BEYOND_WINDOW)]
        report.note(
            "high-priority",
            "its priority is {}, above those of the upload window (0 to 4), so that few animations replace it",
            document.base_priority,
            elements=bone_items(own),
        )
    if motion.replaced:
        report.note(
            "rig-with-moved-joints",
            "{} elsewhere than those of the standard avatar; the animation looks as here only on avatars with the same "
            "joint positions: {}",
            counted(len(motion.replaced), "joint rests", "joints rest"),
            listed(motion.replaced),
            elements=bone_items([motion.bones[name] for name in motion.replaced]),
        )
    left = [decode_text(joint.name) for joint in document.joints if _stays_posed(document, joint)]
    if left:
        number = counted(len(left), "joint stays", "joints stay")
        template = "{} posed after it has stopped, since standing animations do not move them: {}"
        report.note("joints-stay-posed", template, number, listed(left), elements=bone_items(left))
    steps = reduction.distances(motion.rotation[:, :-1], motion.rotation[:, 1:])
    if steps.size and steps.max() > np.radians(90):
        joint, frame = np.unravel_index(steps.argmax(), steps.shape)
        when = float(motion.times[frame])
        report.note(
            "large-turn-within-frame",
            "'{}' turns by {:.0f}° within a frame at {:.2f} s, and viewers turn it the short way",
            motion.bones[motion.names[joint]],
            np.degrees(steps.max()),
            when,
            elements=moment_item(when),
        )
    step = 1.5 / (clip.fps or 30.0)
    if document.loop and 0 < document.loop_out < document.duration - step:
        template = "the loop ends at {:.2f} s, so that the rest, up to {:.2f} s, is seen only when it stops"
        loop_out = document.loop_out
        report.note("rest-after-loop", template, loop_out, document.duration, elements=moment_item(loop_out))


def note_keys_between_frames(original: SecondLifeAnimation | None, edited: set[str], clip: Clip, scene: Scene) -> None:
    """Note edited joints whose keys in the imported file were between frames; an export moves these keys to frames."""
    if original is None:
        return
    fps, step = clip.fps or DEFAULT_RATE, curves.time_tolerance(original.duration)
    moved = []
    for joint in original.joints:
        found = [keys(original, joint).times for keys in (curves.rotation_keys, curves.position_keys)]
        times = np.concatenate(found)
        if joint.known in edited and (np.abs(np.rint(times * fps) / fps - times) > step).any():
            moved.append(decode_text(joint.name))
    if moved:
        rate = curves.frame_rate(original)
        scene.report.note(
            "keys-moved-to-frames",
            "keys of edited joints lay between frames in the imported file and are on frames now: {}{}",
            listed(moved),
            Text("; with a scene of {:g} frames per second they stay", rate) if rate else "",
            item=Text("'{}'", Named("animation", clip.name)),
            elements=bone_items(moved),
        )


def _stays_posed(document: SecondLifeAnimation, joint: JointKeys) -> bool:
    """Return whether a joint stays posed when the animation ends.

    Standing animations move only the original joints. So another joint stays as it is if its last rotation differs from
    the rest pose.
    """
    known = avatar_joints.table().get(joint.known)
    if known is None or not known.is_bone or known.is_base or not len(joint.rotation):
        return False
    last = curves.rotation_keys(document, joint).values[-1]
    return bool(np.degrees(reduction.distances(last, np.array(_REST))) > looping.MOST_DEGREES)
