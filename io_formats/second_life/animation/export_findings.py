"""Losses and notes of an export, with the bones or the time that each concerns (animation format page, section 10)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from ...core.errors import ExportError
from ...core.findings import Elements, error, warning
from ...core.messages import counted, listed
from ...core.scene import Clip, Scene, Skeleton
from ...passes.sample_keys import DEFAULT_RATE
from ..avatar import skeleton_table
from . import codes, curves, looping, reduction
from .avatar_motion import AvatarMotion
from .document import JointKeys, SecondLifeAnimation, text

_LIKE = 0.85
"""Similarity of names from which one is taken for a misspelt other."""
_SCALED = 1e-3
"""Change of a scale that is reported."""
_BEYOND_WINDOW = (5, 6)
"""Priorities that animations from the upload window of BVH files cannot have."""
_REST: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
_MOST_BONES = 10
"""Number of bones that are selected for a file that is too large."""


def bones(names: Sequence[str]) -> Elements:
    """Return bones or joints as elements that can be selected; the armature is that of the animation."""
    return Elements("bones", "", tuple(names))


def moment(seconds: float) -> Elements:
    """Return a time of the animation as an element that can be shown."""
    return Elements("milliseconds", "", (round(seconds * 1000),))


def refusal(message: str, elements: Elements) -> ExportError:
    """Return an error whose cause can be selected."""
    return ExportError(message, [error("", message, elements)])


def warn(scene: Scene, message: str, elements: Elements) -> None:
    """Add a loss to the warnings and findings of a scene."""
    scene.warnings.append(message)
    scene.findings.append(warning("", message, elements))


def note(scene: Scene, message: str, elements: Elements) -> None:
    """Add a text that reports no loss to the notes and findings of a scene."""
    scene.notes.append(message)
    scene.findings.append(warning("", message, elements))


def warn_of_unknown_bones(clip: Clip, skeleton: Skeleton, motion: AvatarMotion, scene: Scene) -> None:
    """Warn about animated deforming bones that are not joints of the avatar, without ends of chains in FBX files."""
    joints = skeleton.joints
    numbers = sorted({track.target for track in clip.transforms}.difference(motion.mapped))
    parents = {joint.parent for joint in joints}
    ends = {number for number in numbers if number not in parents and joints[number].name.lower().endswith("_end")}
    names = [joints[number].name for number in numbers if joints[number].deforms and number not in ends]
    if names:
        number = counted(len(names), "animated bone is", "animated bones are")
        warn(scene, f"{number} no joint of the avatar and left out: {listed(names)}", bones(names))
        for name in names:
            near = difflib.get_close_matches(name, skeleton_table.table(), n=1, cutoff=_LIKE)
            if near:
                warn(scene, f"bone '{name}' has almost the name of the joint '{near[0]}'", bones([name]))


def warn_of_moved_joints(joints: Sequence[str], scene: Scene) -> None:
    """Warn about joints that move from their places in an animation without positions."""
    moved = [joint for joint in joints if joint != skeleton_table.ROOT]
    if moved:
        number = counted(len(moved), "joint moves", "joints move")
        warn(scene, f"{number} from its place, which is left out (option Positions): {listed(moved)}", bones(moved))


def warn_of_scale(clip: Clip, skeleton: Skeleton, motion: AvatarMotion, scene: Scene) -> None:
    """Warn about scaled bones, whose scale is lost."""
    scaled = [
        skeleton.joints[track.target].name
        for track in clip.transforms
        if track.target in motion.mapped
        and len(track.scale)
        and np.abs(track.scale - skeleton.joints[track.target].scale).max() > _SCALED
    ]
    if scaled and not motion.is_other_rig:
        number = counted(len(scaled), "bone is", "bones are")
        warn(scene, f"{number} scaled, which an animation cannot hold: {listed(scaled)}", bones(scaled))


def refuse_far(motion: AvatarMotion, positioned: Sequence[bool], clip: Clip) -> None:
    """Raise an error for the first joint with positions that is farther from its place than a file can hold."""
    for number in np.flatnonzero(positioned):
        far = np.abs(motion.position[number]).max(axis=1) > codes.FARTHEST
        if far.any():
            seconds = float(motion.times[far.argmax()])
            raise refusal(
                f"'{clip.name}': '{motion.bones[motion.names[number]]}' is more than {codes.FARTHEST:.0f} m from its "
                f"place at {seconds:.2f} s, which a file cannot hold; move the animation to the origin",
                moment(seconds),
            )


def largest_joints(joints: Sequence[JointKeys]) -> Elements:
    """Return the joints with the most keys."""
    counts = {text(joint.name): len(joint.rotation) + len(joint.position) for joint in joints}
    return bones(sorted(counts, key=lambda name: -counts[name])[:_MOST_BONES])


def add_notes(document: SecondLifeAnimation, motion: AvatarMotion, clip: Clip, scene: Scene) -> None:
    """Note properties of an animation that surprise in world."""
    if document.base_priority in _BEYOND_WINDOW:
        own = [text(joint.name) for joint in document.joints if joint.priority in (-1, *_BEYOND_WINDOW)]
        said = f"its priority is {document.base_priority}, above those of the upload window (0 to 4)"
        note(scene, f"'{clip.name}': {said}, so that few animations replace it", bones(own))
    if motion.replaced:
        number = counted(len(motion.replaced), "joint rests", "joints rest")
        said = f"{number} elsewhere than those of the standard avatar; the animation looks as here only on avatars"
        note(scene, f"'{clip.name}': {said} with the same joint positions: {listed(motion.replaced)}", _all(motion))
    left = [text(joint.name) for joint in document.joints if _stays_posed(document, joint)]
    if left:
        number = counted(len(left), "joint stays", "joints stay")
        said = f"{number} posed after it has stopped, since standing animations do not move them: {listed(left)}"
        note(scene, f"'{clip.name}': {said}", bones(left))
    steps = reduction.angles(motion.rotation[:, :-1], motion.rotation[:, 1:])
    if steps.size and steps.max() > np.radians(90):
        place = np.unravel_index(steps.argmax(), steps.shape)
        said = f"'{motion.bones[motion.names[place[0]]]}' turns by {np.degrees(steps.max()):.0f}° within a frame"
        when = float(motion.times[place[1]])
        note(scene, f"'{clip.name}': {said} at {when:.2f} s, and viewers turn it the short way", moment(when))
    step = 1.5 / (clip.fps or 30.0)
    if document.loop and 0 < document.loop_out < document.duration - step:
        said = f"the loop ends at {document.loop_out:.2f} s, so that the rest, up to {document.duration:.2f} s,"
        note(scene, f"'{clip.name}': {said} is seen only when it stops", moment(document.loop_out))


def note_keys_between_frames(original: SecondLifeAnimation | None, edited: set[str], clip: Clip, scene: Scene) -> None:
    """Note edited joints whose keys in the imported file, if any, are not on frames, so that they move to frames."""
    if original is None:
        return
    fps, step = clip.fps or DEFAULT_RATE, curves.precision(original.duration)
    moved = []
    for joint in original.joints:
        found = [keys(original, joint).times for keys in (curves.rotation_keys, curves.position_keys)]
        times = np.concatenate(found)
        is_edited = skeleton_table.canonical(text(joint.name)) in edited
        if is_edited and (np.abs(np.rint(times * fps) / fps - times) > step).any():
            moved.append(text(joint.name))
    if moved:
        rate = curves.frame_rate(original)
        advice = f"; with a scene of {rate:g} frames per second they stay" if rate else ""
        said = f"keys of edited joints lay between frames in the imported file and are on frames now: {listed(moved)}"
        note(scene, f"'{clip.name}': {said}{advice}", bones(moved))


def _all(motion: AvatarMotion) -> Elements:
    return bones([motion.bones[name] for name in motion.replaced])


def _stays_posed(document: SecondLifeAnimation, joint: JointKeys) -> bool:
    """Return whether a joint that no standing animation moves ends in another rotation than at rest."""
    known = skeleton_table.table().get(skeleton_table.canonical(text(joint.name)) or "")
    if known is None or not known.is_bone or known.is_base or not len(joint.rotation):
        return False
    last = curves.rotation_keys(document, joint).values[-1]
    return bool(np.degrees(reduction.angles(last, np.array(_REST))) > looping.MOST_DEGREES)
