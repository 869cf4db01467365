"""Clips of a scene: transfer to another skeleton, division into scenes, missing joints, sampling of keys."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.errors import ExportError
from ..core.messages import Message, Named, Report, counted, listed
from ..core.scene import Clip, FloatArray, Joint, Keys, KeyTrack, Scene, Skeleton, TransformTrack
from ..geometry.transforms import continuous_rotations, rotate, rotation_product

_SAME_BIND = 1e-4
"""Tolerance for comparing bind transforms."""


def adopt_clips(scene: Scene, other: Scene) -> list[Message]:
    """Add the bone animations of another scene to a scene; return the messages.

    Transforms of joints are absolute and local to their parents, so they are used unchanged. Tracks of bones that the
    scene's skeleton lacks are left out with a warning, and so are clips whose names the scene already has.

    Raises
    ------
    ExportError
        The scene has no bones, the other scene has no bone animation, or they have no bones in common.
    """
    clips = [clip for clip in other.clips if clip.transforms or not clip.frame_count]
    if not clips or not other.skeletons:
        raise ExportError("There is no animation of bones in '{}'", other.name)
    if not scene.skeletons:
        raise ExportError("'{}' has no bones that '{}' could animate", scene.name, other.name)
    report = Report()
    for number, skeleton in enumerate(other.skeletons):
        mine = [clip for clip in clips if next(iter(_skeletons_of(clip)), 0) == number]
        if mine:
            _adopt(scene, mine, skeleton, number, report)
    return report.messages


def _adopt(scene: Scene, clips: Sequence[Clip], skeleton: Skeleton, number: int, report: Report) -> None:
    """Add clips of skeleton ``number`` to the scene, for its skeleton that has the most joints of the same names."""
    maps = [joint_map(skeleton.joints, known.joints) for known in scene.skeletons]
    best = max(range(len(maps)), key=lambda index: len(maps[index]))
    owner, where = scene.skeletons[best], maps[best]
    if not where:
        raise ExportError("'{}' has no bone of '{}'", owner.name, skeleton.name)
    if skeleton.has_bind and _differ(skeleton, owner, where):
        template = "its rest pose differs from that of '{}'; the frames were not changed"
        report.change("other-rest-pose", template, owner.name, item=skeleton.name)
    taken = {clip.name for clip in scene.clips}
    for clip in clips:
        if clip.name in taken:
            report.change(
                "repeated-animation", "there is another animation of this name", item=Named("animation", clip.name)
            )
        taken.add(clip.name)
        tracks = [track for track in _tracks(clip) if track.skeleton == number]
        lost = [skeleton.joints[track.target].name for track in tracks if track.target not in where]
        if lost:
            bones, template = counted(len(lost), "bone"), "{} not in '{}' left out: {}"
            report.loss("unknown-bones", template, bones, owner.name, listed(lost), item=Named("animation", clip.name))
        kept = [replace(track, target=where[track.target], skeleton=best) for track in tracks if track.target in where]
        transforms = [track for track in kept if isinstance(track, TransformTrack)]
        keys = [track for track in kept if isinstance(track, KeyTrack)]
        scene.clips.append(replace(clip, transforms=transforms, keys=keys, vertices=[]))


def joint_map(joints: Sequence[Joint], known: Sequence[Joint]) -> dict[int, int]:
    """Return, by index, the joint with the same name in another table for each joint.

    Repeated names are matched in order.
    """
    places: dict[str, list[int]] = {}
    for index, joint in enumerate(known):
        places.setdefault(joint.name, []).append(index)
    found = {}
    for index, joint in enumerate(joints):
        if places.get(joint.name):
            found[index] = places[joint.name].pop(0)
    return found


def _tracks(clip: Clip) -> list[TransformTrack | KeyTrack]:
    return [*clip.transforms, *clip.keys]


def _differ(skeleton: Skeleton, owner: Skeleton, where: dict[int, int]) -> bool:
    """Return whether bind transforms of common joints differ by more than rounding."""
    pairs = ((skeleton.joints[mine], owner.joints[other]) for mine, other in where.items())
    numbers = np.array([[(*joint.translation, *joint.rotation, *joint.scale) for joint in pair] for pair in pairs])
    return not (np.abs(numbers[:, 0] - numbers[:, 1]) <= _SAME_BIND * np.maximum(1.0, np.abs(numbers[:, 0]))).all()


def clip_parts(scene: Scene) -> list[Scene]:
    """Return a scene for each clip and each skeleton that it animates, named after the clip.

    A clip without tracks is assigned to the only skeleton, if there is exactly one; clips that only animate nodes are
    left out. Clips that animate several skeletons, and clips of one name on several skeletons, become scenes named
    after both.
    """
    parts = []
    names = Counter((clip.name or scene.name) for clip in scene.clips if _skeletons_of(clip))
    for clip in scene.clips:
        moved = _skeletons_of(clip)
        if not clip.transforms and not clip.keys and not clip.vertices and len(scene.skeletons) == 1:
            moved = [0]
        for index in moved:
            skeleton = scene.skeletons[index]
            name = clip.name or scene.name
            if len(moved) > 1 or names[name] > 1:
                name = f"{name}_{skeleton.name}"
            part = replace(
                clip,
                transforms=[replace(track, skeleton=0) for track in clip.transforms if track.skeleton == index],
                keys=[replace(track, skeleton=0) for track in clip.keys if track.skeleton == index],
                vertices=[],
            )
            parts.append(scene.part(name, skeletons=[skeleton], clips=[part]))
    return parts


def only_part(scene: Scene) -> Scene:
    """Return the only scene of :func:`clip_parts`.

    Raises
    ------
    ExportError
        There is none, or there are several.
    """
    parts = clip_parts(scene)
    if not parts:
        raise ExportError("'{}' has no animation of an armature; give its armature an action", scene.name)
    if len(parts) > 1:
        template = "'{}' has {} animations of armatures, but a file holds one; choose one of them"
        raise ExportError(template, scene.name, len(parts))
    return parts[0]


def _skeletons_of(clip: Clip) -> list[int]:
    """Return the indices of the skeletons that a clip animates."""
    return list(dict.fromkeys(track.skeleton for track in _tracks(clip) if track.skeleton is not None))


Floats = npt.NDArray[np.float64]

DEFAULT_RATE = 30.0
"""Frames per second of clips whose file has no frame rate."""
MOST_FRAMES = 120_000
"""Maximum number of frames of a sampled clip, over an hour at 30 frames per second: a few bytes of a damaged file may
state a length of years. The programs that use keys play one minute at most."""


def with_frames(scene: Scene) -> Scene:
    """Return a scene in which all clips have frames; the scene itself if they already have."""
    if not any(clip.keys for clip in scene.clips):
        return scene
    clips = [
        sample_clip(clip, scene, clip.fps or clip.key_rate or DEFAULT_RATE) if clip.keys else clip
        for clip in scene.clips
    ]
    return replace(scene, clips=clips)


def sample_clip(clip: Clip, scene: Scene, fps: float, times: Floats | None = None) -> Clip:
    """Return a clip with frames instead of keys.

    Parameters
    ----------
    fps:
        Frames per second.
    times:
        (F,) seconds of the frames; default: all frames up to the end of the clip. Existing frames are sampled, too.

    Raises
    ------
    ExportError
        The clip is too long.
    """
    if times is None:
        if not clip.duration * fps < MOST_FRAMES:
            raise ExportError(
                "The animation '{}' is {:,.0f} s long; with a key for each frame, animations "
                "have at most {:,} frames, {:,.0f} s",
                Named("animation", clip.name),
                clip.duration,
                MOST_FRAMES,
                MOST_FRAMES / fps,
            )
        times = np.arange(max(round(clip.duration * fps), 0) + 1) / fps
    else:
        clip = resampled(clip, times)
    tracks = [*clip.transforms, *(_track(key, scene.skeletons[key.skeleton].joints, times) for key in clip.keys)]
    return replace(clip, fps=fps, has_own_rate=True, frame_count=len(times), transforms=tracks, keys=[])


def resampled(clip: Clip, times: Floats) -> Clip:
    """Return a clip with its frames sampled at other times, (n,) in seconds."""
    own = np.arange(clip.frame_count) / (clip.fps or DEFAULT_RATE) if clip.times is None else clip.times

    def sampled(values: FloatArray) -> FloatArray:
        found = values_at(Keys(own, values.reshape(len(own), -1).astype(np.float64)), times)
        return found.reshape(-1, *values.shape[1:]).astype(np.float32)

    transforms = [
        replace(
            track,
            translation=sampled(track.translation),
            rotation=sampled(continuous_rotations(track.rotation)),
            scale=sampled(track.scale),
        )
        for track in clip.transforms
    ]
    vertices = [replace(track, points=sampled(track.points)) for track in clip.vertices]
    return replace(clip, frame_count=len(times), times=None, transforms=transforms, vertices=vertices)


def _track(track: KeyTrack, joints: Sequence[Joint], times: Floats) -> TransformTrack:
    """Return a track with keys at any times as samples at ``times``; channels without keys are at rest."""
    joint = joints[track.target]
    shape = (len(times), 1)
    translation = np.tile(np.array(joint.translation, np.float32), shape)
    if track.translation is not None:
        moved = values_at(track.translation, times).astype(np.float32)
        translation = translation + moved if track.is_offset else moved
    rotation: FloatArray = np.tile(np.array(joint.rotation, np.float32), shape)
    if track.rotation is not None:
        rotation = values_at(track.rotation, times).astype(np.float32)
    scale = np.tile(np.array(joint.scale, np.float32), shape)
    return TransformTrack(track.target, translation, rotation, scale, track.skeleton)


def values_at(keys: Keys, times: Floats) -> Floats:
    """Return the values of keys at times (n,): held outside the keys, linear between, quaternions normalised, (n, k).

    Each quaternion must have the sign nearest to the one before.
    """
    after = np.searchsorted(keys.times, times, side="right")
    low = np.clip(after - 1, 0, len(keys.times) - 1)
    high = np.clip(after, 0, len(keys.times) - 1)
    width = keys.times[high] - keys.times[low]
    share = np.where(width > 0, (times - keys.times[low]) / np.where(width > 0, width, 1), 0.0)
    a, b = keys.values[low], keys.values[high]
    mixed: Floats = a + share[:, None] * (b - a)
    if mixed.shape[1] == 4:
        length = np.linalg.norm(mixed, axis=1, keepdims=True)
        mixed = mixed / np.where(length > 0, length, 1.0)
    return mixed


_MOVED = 1e-6
"""Distance in metres below which a joint counts as unmoved by the joints above it."""


def without_missing(
    tracks: Sequence[KeyTrack], skeleton: Skeleton, is_there: Sequence[bool]
) -> tuple[list[KeyTrack], list[str]]:
    """Return tracks of joints that exist, which move as if the missing ones above them existed.

    Parameters
    ----------
    is_there:
        Whether the target has each joint.

    Returns
    -------
    tuple[list[KeyTrack], list[str]]
        The tracks, and the names of the missing joints whose keys went into others.
    """
    by_joint = {track.target: track for track in tracks}
    missing = {joint for joint in by_joint if not is_there[joint]}
    found: list[KeyTrack] = []
    used: dict[int, None] = {}
    for joint in range(len(skeleton.joints)) if missing else ():
        chain = _missing_above(joint, skeleton.joints, is_there) if is_there[joint] else []
        if not missing.isdisjoint(chain):
            used.update((above, None) for above in chain if above in missing)
            by_joint[joint] = _joined([*chain, joint], by_joint, skeleton.joints, tracks[0].skeleton)
    found = [track for joint, track in by_joint.items() if is_there[joint]]
    return found, [skeleton.joints[joint].name for joint in used]


def _missing_above(joint: int, joints: Sequence[Joint], is_there: Sequence[bool]) -> list[int]:
    """Return the missing joints between a joint and the nearest existing one above it, the topmost first."""
    chain = []
    above = joints[joint].parent
    while above >= 0 and not is_there[above]:
        chain.append(above)
        above = joints[above].parent
    return chain[::-1]


def _joined(chain: Sequence[int], tracks: Mapping[int, KeyTrack], joints: Sequence[Joint], skeleton: int) -> KeyTrack:
    """Return the track of the last joint of a chain relative to the parent of the first one."""
    own = [tracks[joint] for joint in chain if joint in tracks]
    times = np.unique(
        np.concatenate([keys.times for track in own for keys in (track.rotation, track.translation) if keys])
    )
    place, rest = np.zeros((len(times), 3)), np.zeros((len(times), 3))
    turn = rest_turn = np.tile((1.0, 0.0, 0.0, 0.0), (len(times), 1))
    for number in chain:
        joint, track = joints[number], tracks.get(number)
        still = np.tile(joint.translation, (len(times), 1))
        rest = rest + rotate(rest_turn, still)
        rest_turn = rotation_product(rest_turn, np.tile(joint.rotation, (len(times), 1)))
        moved = still
        if track is not None and track.translation is not None:
            moved = values_at(track.translation, times) + (still if track.is_offset else 0.0)
        place = place + rotate(turn, moved)
        turned = np.tile(joint.rotation, (len(times), 1))
        if track is not None and track.rotation is not None:
            turned = values_at(track.rotation, times)
        turn = rotation_product(turn, turned)
    last = tracks.get(chain[-1])
    found = KeyTrack(chain[-1], skeleton, rotation=Keys(times, continuous_rotations(turn)))
    if last is not None and last.translation is not None and not last.is_offset:
        found.translation = Keys(times, place)
    elif np.abs(place - rest).max() > _MOVED:
        found.translation, found.is_offset = Keys(times, place - rest), True
    return found
