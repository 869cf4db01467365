"""Motion of the avatar's joints -> document, with as few keys as the tolerance allows (animation format page, 10)."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Elements, Named, Text, counted, error, listed, of_kind
from ...core.scene import Clip, Scene, Skeleton
from ...geometry.transforms import Floats
from ...passes.clips import DEFAULT_RATE
from ..avatar import joints as avatar_joints
from . import codec, keys
from .codec import Codes, JointKeys, SecondLifeAnimation, decode_text
from .motion import AvatarMotion

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
    deforming = (joints[number] for number in numbers if joints[number].deforms and number not in ends)
    names = of_kind("bone", (joint.name for joint in deforming))
    if names:
        number = counted(len(names), "animated bone is", "animated bones are")
        template = "{} no joint of the avatar and left out: {}"
        scene.report.loss("unknown-bones-left-out", template, number, listed(names), elements=bone_items(names))
        for name in names:
            near = difflib.get_close_matches(name, avatar_joints.table(), n=1, cutoff=_LIKE)
            if near:
                template = "bone '{}' has almost the name of the joint '{}'"
                joint = Named("bone", near[0])
                scene.report.loss("bone-almost-a-joint", template, name, joint, elements=bone_items([name]))


def warn_of_moved_joints(joints: Sequence[str], scene: Scene) -> None:
    """Warn about joints that leave their rest positions in an animation that stores no positions."""
    moved = of_kind("bone", (joint for joint in joints if joint != avatar_joints.ROOT))
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
        names = listed(of_kind("bone", scaled))
        scene.report.loss("bone-scale-left-out", template, number, names, elements=bone_items(scaled))


def refuse_far(motion: AvatarMotion, positioned: Sequence[bool], clip: Clip) -> None:
    """Raise ExportError for the first joint whose position is too far from its parent for a file.

    For the root, the distance is that from its rest position.
    """
    for number in np.flatnonzero(positioned):
        far = np.abs(motion.position[number]).max(axis=1) > codec.FARTHEST
        if far.any():
            seconds = float(motion.times[far.argmax()])
            raise ExportError.of(
                error(
                    "far-positions",
                    "'{}': '{}' is more than {:.0f} m from its place at {:.2f} s, which a file cannot hold; move the "
                    "animation to the origin",
                    Named("animation", clip.name),
                    Named("bone", motion.bones[motion.names[number]]),
                    codec.FARTHEST,
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
            listed(of_kind("bone", motion.replaced)),
            elements=bone_items([motion.bones[name] for name in motion.replaced]),
        )
    left = [decode_text(joint.name) for joint in document.joints if _stays_posed(document, joint)]
    if left:
        number = counted(len(left), "joint stays", "joints stay")
        template = "{} posed after it has stopped, since standing animations do not move them: {}"
        report.note("joints-stay-posed", template, number, listed(of_kind("bone", left)), elements=bone_items(left))
    steps = keys.distances(motion.rotation[:, :-1], motion.rotation[:, 1:])
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
    fps, step = clip.fps or DEFAULT_RATE, keys.time_tolerance(original.duration)
    moved = []
    for joint in original.joints:
        found = [keys(original, joint).times for keys in (keys.rotation_keys, keys.position_keys)]
        times = np.concatenate(found)
        if joint.known in edited and (np.abs(np.rint(times * fps) / fps - times) > step).any():
            moved.append(decode_text(joint.name))
    if moved:
        rate = keys.frame_rate(original)
        scene.report.note(
            "keys-moved-to-frames",
            "keys of edited joints lay between frames in the imported file and are on frames now: {}{}",
            listed(of_kind("bone", moved)),
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
    last = keys.rotation_keys(document, joint).values[-1]
    return bool(np.degrees(keys.distances(last, np.array(_REST))) > keys.MOST_DEGREES)


MOST_BYTES = 250_000
"""Size in bytes above which the grid refuses an upload."""
TOLERANCES = (0.1, 0.15, 0.25, 0.4, 0.6, 1.0)
"""Tolerances in degrees, tried in order until the file is small enough."""
_METRES_PER_DEGREE = 0.01
"""Tolerance of positions in metres for each degree of the tolerance of rotations: 1 mm at 0.1 degrees."""
_DEPTH_SHARE = 0.33
"""Factor by which the length of the longest chain of bones below a joint is multiplied. The joint's tolerance is
divided by the result, if that is above 1, since errors add up along a chain."""


@dataclass
class KeySettings:
    """Settings for turning a motion into keys."""

    positioned: Sequence[bool]
    """Whether each joint gets position keys."""
    kept: Sequence[JointKeys] = ()
    """Imported joints in the order of the file. A joint with keys is written unchanged; one without keys is replaced by
    the joint of the motion with the same name."""
    priorities: Mapping[str, int] = field(default_factory=dict)
    """Priority of each joint that differs from that of the animation."""
    edited: Mapping[str, JointKeys] = field(default_factory=dict)
    """Keys of edited joints, by joint name, which match the motion at least as well as the smallest tolerance requires.
    They are written instead of sampled keys if the file is small enough."""
    reduce: bool = True
    """Whether keys are left out that interpolation between the others restores within the tolerance."""


def add_reduced_joints(document: SecondLifeAnimation, motion: AvatarMotion, settings: KeySettings) -> Text:
    """Add the joints of a motion to a document that has a duration; return a text about the number of keys.

    Raises
    ------
    ExportError
        The file would be too large at the largest tolerance.
    """
    sampled = _SampledMotion(document, motion, settings)
    size = 0
    for degrees in TOLERANCES if settings.reduce else (0.0,):
        document.joints = _merged(settings.kept, sampled.joints(degrees))
        size = len(codec.write(document))
        if size <= MOST_BYTES:
            samples = motion.rotation.shape[1] * (len(motion.names) + sum(settings.positioned))
            samples += sum(joint.key_count for joint in settings.kept)
            keys = sum(joint.key_count for joint in document.joints)
            within = Text(" within {:g}° and {:g} mm", degrees, degrees * _METRES_PER_DEGREE * 1000) if degrees else ""
            return Text("{} reduced to {:,}{}, {:,} bytes", counted(samples, "key"), keys, within, size)
    raise ExportError.of(
        error(
            "animation-too-large",
            "The animation has {:,} bytes, more than the {:,} that an upload may have; {}shorten it, animate "
            "fewer joints, or lower its frame rate",
            size,
            MOST_BYTES,
            "" if settings.reduce else Text("switch Reduce Keys on, "),
            elements=largest_joints(document.joints),
        )
    )


class _SampledMotion:
    """The samples of a motion, encoded as keys of joints."""

    def __init__(self, document: SecondLifeAnimation, motion: AvatarMotion, settings: KeySettings) -> None:
        self._names = motion.names
        self._base_priority = document.base_priority
        self._settings = settings
        # Several samples can have the same time code, and a reader uses only one of them.
        time_codes, first = np.unique(codec.time_codes_of(motion.times, document.duration), return_index=True)

        def sampled(values: Floats, finest: Floats) -> _Sampled:
            return _Sampled.of(values[:, first], time_codes, document.duration, finest if settings.reduce else None)

        rows = np.flatnonzero(settings.positioned)
        degrees = TOLERANCES[0] / np.array([_divisor(name) for name in motion.names])
        self._rotation = sampled(motion.rotation, np.radians(degrees))
        self._position = sampled(motion.position[rows], _METRES_PER_DEGREE * degrees[rows])
        self._position_rows = {number: row for row, number in enumerate(rows.tolist())}

    def joints(self, degrees: float) -> list[JointKeys]:
        """Return the joints with the keys that a tolerance in degrees requires.

        Edited keys are used at the smallest.
        """
        made = []
        for number, name in enumerate(self._names):
            joint = JointKeys(name.encode("utf-8"), self._settings.priorities.get(name, self._base_priority))
            joint.rotation = self._rotation.joint_keys(number, degrees)
            if number in self._position_rows:
                joint.position = self._position.joint_keys(self._position_rows[number], degrees)
            edited = self._settings.edited.get(name) if degrees == TOLERANCES[0] else None
            made.append(_edited(joint, edited))
        return made


def _edited(joint: JointKeys, edited: JointKeys | None) -> JointKeys:
    """Replace the keys of a joint by those of its edited curves, if there are any."""
    if edited is None:
        return joint
    rotation = edited.rotation if len(edited.rotation) else joint.rotation
    position = edited.position if len(edited.position) and len(joint.position) else joint.position
    return replace(joint, rotation=rotation, position=position)


def _merged(kept: Sequence[JointKeys], made: Sequence[JointKeys]) -> list[JointKeys]:
    """Return the joints in the order of ``kept``, followed by the others in ``made``.

    A joint of ``kept`` without keys is replaced by the joint in ``made`` with the same name.
    """
    waiting = {decode_text(joint.name): joint for joint in made}
    found = [joint if joint.key_count else waiting.pop(joint.known, joint) for joint in kept]
    return [*found, *waiting.values()]


@dataclass
class _Sampled:
    """Samples of n curves, encoded as keys, and the tolerance above which each sample can be left out."""

    keys: Codes
    """(n, F, 4) codes of time and value of each sample."""
    need: Floats
    """(n, F) tolerance in degrees from which on each sample can be left out."""

    @classmethod
    def of(cls, values: Floats, time_codes: Codes, duration: float, finest: Floats | None) -> _Sampled:
        """Encode samples, (n, F, 4) or (n, F, 3).

        Parameters
        ----------
        finest:
            (n,) smallest tolerance of each curve; None to keep all samples.
        """
        encoded = codec.encode_values(values)
        need = np.full(values.shape[:2], np.inf)
        if finest is not None:
            stored = codec.decode_values(encoded, is_rotation=values.shape[2] == 4)
            found = keys.significances(values, stored, codec.times_of(time_codes, duration), finest)
            need = found * (TOLERANCES[0] / finest[:, None])
        times = np.broadcast_to(time_codes[:, None], (*encoded.shape[:2], 1))
        return cls(np.concatenate((times, encoded), axis=2, dtype=np.uint16), need)

    def joint_keys(self, number: int, degrees: float) -> Codes:
        """Return the keys of one curve that a tolerance in degrees requires, (k, 4)."""
        return np.asarray(self.keys[number][self.need[number] > degrees])


@functools.cache
def _divisor(name: str) -> float:
    """Return the number by which the tolerance of a joint is divided."""
    return max(1.0, _DEPTH_SHARE * _depth_below(name))


@functools.cache
def _depth_below(name: str) -> int:
    """Return the length of the longest chain of bones below a joint."""
    children = [child.name for child in avatar_joints.table().values() if child.parent == name and child.is_bone]
    return max((1 + _depth_below(child) for child in children), default=0)
