"""Document <-> Scene (animation format page, sections 5 and 10): the avatar and one clip of keys on it, no nodes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.capabilities import length_refusal
from ...core.errors import ExportError
from ...core.messages import Named, Text, counted, listed, of_kind
from ...core.options import Options
from ...core.scene import Clip, Keys, KeyTrack, Playback, Scene, Skeleton
from ...passes.clips import DEFAULT_RATE, clip_parts, only_part, values_at, with_frames
from ..avatar import joints as avatar_joints
from ..avatar import skeletons
from ..models import space
from . import codec, document_builder
from . import keys as animation_keys
from .checks import unusable_constraints
from .codec import FORMAT, MOST_CONSTRAINTS, JointKeys, SecondLifeAnimation, decode_text
from .format import LONGEST, WriteOptions
from .keys import edited_joints
from .motion import AvatarMotion, motion_of


def facts(document: SecondLifeAnimation) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    priorities = sorted({joint.priority for joint in document.joints})
    return {
        "version": ".".join(map(str, document.version)),
        "bones": len(document.joints),
        "clips": [
            {
                "name": "",
                "kind": "bone",
                "frames": 0,
                "fps": animation_keys.frame_rate(document),
                "seconds": round(document.duration, 6),
                "rotation_keys": sum(len(joint.rotation) for joint in document.joints),
                "position_keys": sum(len(joint.position) for joint in document.joints),
            }
        ],
        "priority": document.base_priority,
        "joint_priorities": priorities,
        "loop": [round(document.loop_in, 6), round(document.loop_out, 6)] if document.loop else None,
        "ease": [round(document.ease_in, 6), round(document.ease_out, 6)],
        "hand_pose": document.hand_pose,
        "emote": decode_text(document.emote),
        "constraints": len(document.constraints),
        "warnings": list(document.warnings),
    }


def scene_of(document: SecondLifeAnimation, name: str) -> Scene:
    """Map an animation to Blender's space: the standard avatar, and a clip with keys for each joint that has some."""
    scene = Scene(name, warnings=list(document.warnings))
    joints = document.known_joints()
    unknown = list(dict.fromkeys(decode_text(joint.name) for joint in document.joints if not joint.known))
    on_screen = [name for name in unknown if name in avatar_joints.screen_attachments()]
    scene.report.loss_of(
        "screen-attachments-not-shown",
        "{} kept for the export, but not shown: {}",
        on_screen,
        "attachment point on the screen is",
        "attachment points on the screen are",
    )
    unknown = [name for name in unknown if name not in on_screen]
    template = "{} not in the avatar and left out: {}"
    scene.report.loss_of("unknown-joints-left-out", template, of_kind("bone", unknown), "joint is", "joints are")
    kinds = {avatar_joints.table()[joint].kind for joint in joints}
    skeleton = skeletons.avatar_skeleton(
        with_collision_volumes="collision_volume" in kinds, with_attachments="attachment" in kinds, used=joints
    )
    scene.skeletons.append(skeleton)
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    clip = Clip(name, 0.0, 0, duration=document.duration, playback=_playback(document, joints))
    clip.time_step = animation_keys.time_tolerance(document.duration)
    clip.key_rate = animation_keys.frame_rate(document)
    clip.original = codec.write(document)
    for joint, keys in joints.items():
        track = KeyTrack(place[joint], 0, _positions(document, keys), _rotations(document, keys))
        track.is_offset = joint == avatar_joints.ROOT
        if track.translation is not None or track.rotation is not None:
            clip.keys.append(track)
    scene.clips.append(clip)
    if not clip.keys:
        scene.report.loss("no-action", "It has no keys of joints of the avatar, so there is no action")
    if len(document.constraints):
        number = counted(len(document.constraints), "constraint is", "constraints are")
        scene.report.loss("constraints-not-shown", "{} kept for the export, but not shown", number)
    return scene


def _rotations(document: SecondLifeAnimation, keys: JointKeys) -> Keys | None:
    if not len(keys.rotation):
        return None
    curve = animation_keys.rotation_keys(document, keys)
    values = curve.values.copy()
    values[:, 1:] = values[:, 1:] @ space.TO_BLENDER[:3, :3].T
    return Keys(curve.times, values)


def _positions(document: SecondLifeAnimation, keys: JointKeys) -> Keys | None:
    if not len(keys.position):
        return None
    curve = animation_keys.position_keys(document, keys)
    return Keys(curve.times, curve.values @ space.TO_BLENDER[:3, :3].T)


def _playback(document: SecondLifeAnimation, joints: dict[str, JointKeys]) -> Playback:
    return Playback(
        bool(document.loop),
        document.loop_in,
        document.loop_out,
        document.ease_in,
        document.ease_out,
        document.base_priority,
        {name: keys.priority for name, keys in joints.items() if keys.priority != document.base_priority},
        document.hand_pose,
        decode_text(document.emote),
    )


_DEFAULT = Playback(priority=3, ease_in=0.3, ease_out=0.3, hand_pose=1)


def to_scene(document: SecondLifeAnimation, name: str, options: Options) -> Scene:
    """Map an animation to Blender's space; ``options`` are not used."""
    return scene_of(document, name)


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each clip and each skeleton that it animates, named after the clip."""
    return clip_parts(scene)


def from_scene(scene: Scene, options: WriteOptions) -> SecondLifeAnimation:
    """Map a scene of one skeleton and one clip to a document.

    ``scene.warnings`` reports what a file cannot hold, and the number of keys.

    Raises
    ------
    ExportError
        No animation or several, no joint of the avatar is animated, or the file would be too large or too long.
    """
    part = only_part(scene)
    skeleton, clip = part.skeletons[0], part.clips[0]
    original = codec.read(clip.original) if clip.original else None
    if clip.keys and original is not None:
        return _as_read(original, options)
    if clip.keys:
        clip = with_frames(part).clips[0]
    document = _from_samples(clip, skeleton, original, options, scene)
    if clip.original and codec.write(document) == clip.original:
        scene.format = FORMAT  # an imported file may break rules and still be written again
    elif original is not None:
        _drop_unknown_joints(document, scene)
        _drop_constraints(document, scene)
    return document


def _drop_unknown_joints(document: SecondLifeAnimation, scene: Scene) -> None:
    """Remove joints of the imported file that the avatar does not have, since the viewer would refuse the upload."""
    names = [name for joint in document.joints if not avatar_joints.is_animatable(name := decode_text(joint.name))]
    if names:
        document.joints = [joint for joint in document.joints if decode_text(joint.name) not in names]
        number = counted(len(names), "joint of the imported file is", "joints of the imported file are")
        template = "{} not in the avatar and left out: {}"
        scene.report.loss("unknown-joints-left-out", template, number, listed(of_kind("bone", names)))


def _drop_constraints(document: SecondLifeAnimation, scene: Scene) -> None:
    """Remove constraints that viewers refuse (see :func:`.checks.unusable_constraints`) and those beyond the limit."""
    usable = np.ones(len(document.constraints), bool)
    usable[unusable_constraints(document)] = False
    usable[MOST_CONSTRAINTS:] = False
    lost = int((~usable).sum())
    if lost:
        document.constraints = document.constraints[usable]
        number = counted(lost, "constraint of the imported file is", "constraints of the imported file are")
        template = "{} left out, since viewers cannot follow it with the joints that are animated"
        scene.report.loss("constraints-left-out", template, number)


def _default_playback(clip: Clip, duration: float) -> Playback:
    """Return the playback settings for a clip that has none.

    Poses, clips of a single frame, and clips that repeat in Blender loop.
    """
    loop_in, loop_out = clip.loop or (0.0, duration)
    is_looped = clip.is_pose or clip.frame_count == 1 or clip.loop is not None
    loop_in, loop_out = sorted(min(max(time, 0.0), duration) for time in (loop_in, loop_out))
    return replace(_DEFAULT, is_looped=is_looped, loop_in=loop_in, loop_out=loop_out)


def _header(clip: Clip, duration: float, options: WriteOptions) -> SecondLifeAnimation:
    """Return a document without joints that has the playback settings of a clip."""
    playback = clip.playback or _default_playback(clip, duration)
    priority = options.animation_priority
    return SecondLifeAnimation(
        base_priority=playback.priority if priority == "ACTION" else int(priority),
        duration=float(np.float32(duration)),
        emote=playback.emote.encode("utf-8"),
        loop_in=playback.loop_in,
        loop_out=playback.loop_out,
        loop=int(playback.is_looped),
        ease_in=playback.ease_in,
        ease_out=playback.ease_out,
        hand_pose=playback.hand_pose,
    )


def _as_read(original: SecondLifeAnimation, options: WriteOptions) -> SecondLifeAnimation:
    """Return an animation as it was read, in version 1.0, with the chosen priority."""
    if options.animation_priority != "ACTION":
        base = int(options.animation_priority)
        _update_priorities(original.joints, original.base_priority, base, None)
        original.base_priority = base
    return original if original.has_codes else _with_codes(original)


def _repair_times(document: SecondLifeAnimation) -> None:
    """Clamp loop times to the length of the animation, and shorten ease times that together exceed it."""
    ends = sorted(min(max(time, 0.0), document.duration) for time in (document.loop_in, document.loop_out))
    document.loop_in, document.loop_out = ends if document.loop else (0.0, document.duration)
    total = document.ease_in + document.ease_out
    if not document.loop and total > document.duration:
        document.ease_in *= document.duration / total
        document.ease_out *= document.duration / total


def _coded(curve: Keys, duration: float) -> npt.NDArray[np.uint16]:
    """Return the codes of a curve's keys, (n, 4)."""
    time_codes = codec.time_codes_of(curve.times, duration)
    return np.column_stack((time_codes, codec.encode_values(curve.values))).astype(np.uint16)


def _with_codes(document: SecondLifeAnimation) -> SecondLifeAnimation:
    """Convert an animation of version 0.1 to version 1.0."""
    joints = [
        JointKeys(
            joint.name,
            joint.priority,
            _coded(animation_keys.rotation_keys(document, joint), document.duration),
            _coded(animation_keys.position_keys(document, joint), document.duration),
        )
        for joint in document.joints
    ]
    return replace(document, version=(1, 0), joints=joints, trailing=b"")


def _from_samples(
    clip: Clip, skeleton: Skeleton, original: SecondLifeAnimation | None, options: WriteOptions, scene: Scene
) -> SecondLifeAnimation:
    """Encode samples with as few keys as possible; joints unchanged since the import keep the keys of their file."""
    motion = motion_of(skeleton, clip, fit=options.use_avatar_proportions)
    if not clip.is_pose:
        document_builder.warn_of_unknown_bones(clip, skeleton, motion, scene)
    document_builder.warn_of_scale(clip, skeleton, motion, scene)
    if not motion.names or not len(motion.times):
        raise ExportError("'{}' animates no joint of the avatar", clip.name)
    duration = _duration(clip, motion, original)
    document = _header(clip, duration, options)
    if original is None or abs(original.duration - duration) > animation_keys.time_tolerance(original.duration):
        _repair_times(document)
    kept: list[JointKeys] = []
    if original is not None:
        original = original if original.has_codes else _with_codes(original)
        _keep_header(document, original)
        motion = animation_keys.restore_missing_parents(motion, original, skeleton, clip.fps)
        kept = _kept_joints(original, document, motion, skeleton, clip.fps)
        _update_priorities(kept, original.base_priority, document.base_priority, clip.playback)
    known = {joint.known for joint in kept if joint.key_count}
    changed = [number for number, name in enumerate(motion.names) if name not in known]
    with_positions = _with_positions(motion, original, options)
    moved = [motion.names[number] for number in changed if motion.has_position[number]]
    positioned = [motion.names[number] in with_positions.intersection(moved) for number in changed]
    if not motion.is_other_rig:
        document_builder.warn_of_moved_joints([name for name in moved if name not in with_positions], scene)
    if not changed:
        document.joints = kept
        document_builder.add_notes(document, motion, clip, scene)
        return document
    some = motion.part(changed)
    document_builder.refuse_far(some, positioned, clip)
    document_builder.note_keys_between_frames(original, set(some.names), clip, scene)
    given = (clip.playback or _DEFAULT).joint_priorities
    names = {name: (name, bone) for name, bone in motion.bones.items()}
    priorities = {name: given[key] for name, keys in names.items() for key in keys if key in given}
    edited = edited_joints(original, document.duration, motion, changed, clip.fps)
    settings = document_builder.KeySettings(positioned, kept, priorities, edited, reduce=options.use_key_reduction)
    result = document_builder.add_reduced_joints(document, some, settings)
    scene.report.note("keys-reduced", "{}", result, item=Text("'{}'", Named("animation", clip.name)))
    document_builder.add_notes(document, motion, clip, scene)
    return document


def _keep_header(document: SecondLifeAnimation, original: SecondLifeAnimation) -> None:
    """Copy values from an imported file that Blender cannot hold, or only in another form."""
    document.constraints, document.trailing = original.constraints, original.trailing
    if decode_text(original.emote).encode("utf-8") == document.emote:
        document.emote = original.emote
    if original.loop and document.loop:
        document.loop = original.loop


def _duration(clip: Clip, motion: AvatarMotion, original: SecondLifeAnimation | None) -> float:
    """Return the length of a clip in seconds.

    ExportError is raised if viewers refuse this length, unless the imported file already had it. A single frame gets
    the length of a frame, since viewers end an animation without length at once.
    """
    duration = clip.duration or (float(motion.times[-1]) if len(motion.times) else 0.0)
    if original is not None and abs(duration - original.duration) <= animation_keys.time_tolerance(original.duration):
        return original.duration
    duration = duration or 1 / (clip.fps or DEFAULT_RATE)
    if duration > LONGEST:
        raise length_refusal(clip.name, duration, LONGEST)
    return duration


def _with_positions(motion: AvatarMotion, original: SecondLifeAnimation | None, options: WriteOptions) -> set[str]:
    """Return the joints whose positions are stored.

    These are the root, joints with positions in an imported file, and on request all joints.
    """
    if options.use_positions:
        return set(motion.names)
    joints = original.joints if original is not None else ()
    return {avatar_joints.ROOT, *(joint.known for joint in joints if len(joint.position))}


def _update_priorities(joints: Sequence[JointKeys], file_base: int, base: int, playback: Playback | None) -> None:
    """Set the priorities of imported joints to those of the settings: their own, otherwise that of the animation."""
    given = playback.joint_priorities if playback is not None else {}
    seen = {""}
    for joint in joints:
        is_shown = playback is not None and joint.known not in seen
        if is_shown or joint.priority == file_base:
            joint.priority = given.get(joint.known, base) if is_shown else base
        seen.add(joint.known)


def _kept_joints(
    original: SecondLifeAnimation, document: SecondLifeAnimation, motion: AvatarMotion, skeleton: Skeleton, fps: float
) -> list[JointKeys]:
    """Return the joints of the original file in its order; a changed joint becomes a placeholder without keys.

    Joints that the skeleton has but that are no longer animated are left out.
    """
    there = {avatar_joints.canonical(joint.name) for joint in skeleton.joints}
    place = {name: number for number, name in enumerate(motion.names)}
    is_same_length = abs(original.duration - document.duration) <= max(
        1e-4, animation_keys.time_tolerance(original.duration)
    )
    if is_same_length:
        document.duration = original.duration
    kept = []
    seen: set[str] = set()
    for joint in original.joints:
        if joint.known not in there or joint.known in seen:
            kept.append(joint)
            continue
        seen.add(joint.known)
        if joint.known in place:
            same = is_same_length and _is_unchanged(original, joint, motion, place[joint.known], fps)
            kept.append(joint if same else JointKeys(joint.name, joint.priority))
        elif not joint.key_count:
            kept.append(joint)
    return kept


def _is_unchanged(
    original: SecondLifeAnimation, joint: JointKeys, motion: AvatarMotion, number: int, fps: float
) -> bool:
    """Return whether the samples of a joint are those of the original keys, as Blender shows them."""
    if len(joint.rotation):
        wanted = values_at(
            animation_keys.snap_to_frames(animation_keys.rotation_keys(original, joint), original, fps), motion.times
        )
        if animation_keys.distances(wanted, motion.rotation[number]).max() > animation_keys.UNCHANGED:
            return False
    if len(joint.position):
        wanted = values_at(
            animation_keys.snap_to_frames(animation_keys.position_keys(original, joint), original, fps), motion.times
        )
        return bool(animation_keys.distances(wanted, motion.position[number]).max() <= animation_keys.UNCHANGED)
    return not motion.has_position[number]
