"""The clips of an export: their actions, frame ranges and rates."""

import fnmatch
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.errors import ExportError
from ...io_formats.core.messages import Message
from .. import animated_blocks, arrays
from ..animated_blocks import Dependencies
from ..export_options import ExportOptions
from . import action_ranges
from .action_ranges import FileClips
from .scene_time import SceneTime

_SAME_FRAME = 1e-3
"""Distance in frames below which two samples count as one."""

_MOST_KEY_FRAMES = 8000
"""Largest number of frames with keys that are sampled: four times those of 60 seconds at 30 frames per second."""

ActionTest = Callable[[bpy.types.Action], bool]

DEFAULT_CLIP = "Default"
"""Name of a scene's clip if its actions do not provide one."""


@dataclass
class ClipSource:
    """A clip to sample: its name, first and last key frame (float), rate, and the actions or strips to play."""

    name: str
    start: float
    end: float
    fps: float
    is_cyclic: bool = False
    from_file: bool = False
    """Whether the actions were imported. If so, keyed channels are exported even if they are constant."""
    actions: dict[bpy.types.ID, tuple[bpy.types.Action, Any]] | None = None
    """The action and slot to play for each data block; None for the current actions."""
    strips: set[str] = field(default_factory=set)
    """Names of the NLA strips to play; all others are muted."""
    root_motion: bool = False
    has_own_rate: bool = False
    """Whether the frame rate came from a file."""
    is_empty: bool = False
    """Whether the clip was imported from a file without frames."""
    is_pose: bool = False
    """Whether the clip is a pose of a single frame."""
    key_frames: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """(n,) frames of keys, for a file that stores keys at arbitrary times instead of frames."""
    messages: list[Message] = field(default_factory=list)
    """Messages about keys outside the frame ranges of the actions."""

    def frame_count(self, time: SceneTime) -> int:
        """Return the number of samples, including the first and the last frame."""
        if self.is_empty:
            return 0
        return max(1, round((self.end - self.start) * self.fps / time.key_rate) + 1)

    def frames(self, time: SceneTime, *, to_end: bool = False) -> npt.NDArray[np.float64]:
        """Return the key frame of each sample, (F,), in ascending order.

        With ``to_end`` the last sample is exactly at the end of the clip, and there are samples at ``key_frames``.
        """
        frames = self.start + np.arange(self.frame_count(time)) * (time.key_rate / self.fps)
        if to_end and len(frames) > 1:
            inner = self.key_frames[(self.key_frames > self.start) & (self.key_frames < self.end - _SAME_FRAME)]
            frames = np.union1d(frames[frames < self.end - _SAME_FRAME], inner)
            frames = np.append(frames[np.diff(frames, append=self.end) > _SAME_FRAME], self.end)
        # Keys are stored in single precision, so round frames that are nearly whole numbers.
        nearest = np.rint(frames)
        return np.where(np.abs(frames - nearest) < 1e-4, nearest, frames)

    def play(self, animated: Iterable[bpy.types.ID]) -> None:
        """Assign only the actions and NLA strips of this clip; the caller restores the original ones."""
        if self.actions is None and not self.strips:
            return
        for block in animated:
            data = block.animation_data
            if self.strips:
                data.action = None
                data.use_nla = True
                for track in data.nla_tracks:
                    wanted = [strip for strip in track.strips if strip.name in self.strips]
                    track.is_solo = False
                    track.mute = not wanted
                    for strip in track.strips:
                        strip.mute = strip not in wanted
            else:
                action, slot = (self.actions or {}).get(block, (None, None))
                data.use_nla = False
                animated_blocks.assign_action(block, action, slot)


def find_clips(
    scene: bpy.types.Scene,
    found: Dependencies,
    options: ExportOptions,
    own: FileClips | None = None,
    *,
    for_joints: bool = False,
) -> list[ClipSource]:
    """Return the clips that the options select, in a stable order.

    If ``own`` is given, clips of other files are left out.

    With ``for_joints`` all clips belong to one armature; the current clip is then named after its action, and may be
    empty.

    Raises
    ------
    ExportError
        Several clips are to be exported while a strip is in tweak mode.
    """
    mode = options.clips
    if mode == "NONE" or not (found.any_change or (mode == "POSE" and for_joints)):
        return []
    allows = own.allows if own is not None else lambda _action: True
    plays_others = mode in {"ACTIVE", "SCENE"} and not all(map(allows, _playing(found)))
    if plays_others or mode in {"ACTIONS", "NLA"}:
        _refuse_tweaking(found)
    if own is not None and plays_others:
        held = _every_action(scene, found, own.holds, with_empty=for_joints)
        clips = held or _every_action(scene, found, allows, with_empty=for_joints)
    elif mode == "ACTIONS":
        clips = _every_action(scene, found, allows, with_empty=for_joints)
    elif mode == "NLA":
        clips = _nla_clips(scene, found, allows)
    else:
        clips = [_as_played(scene, found, over_scene=mode == "SCENE", for_joints=for_joints)]
    if mode == "POSE":
        clips[0].start = clips[0].end = scene.frame_current_final
        clips[0].is_pose, clips[0].is_empty, clips[0].messages = True, False, []
    wanted = [pattern.strip() for pattern in options.clip_names.split(",") if pattern.strip()]
    if wanted:
        clips = [clip for clip in clips if any(fnmatch.fnmatchcase(clip.name, pattern) for pattern in wanted)]
    for clip in clips:
        clip.is_empty &= for_joints
    if options.frame_rate:
        for clip in clips:
            clip.fps, clip.has_own_rate, clip.key_frames = options.frame_rate, False, np.empty(0)
    return clips


def _refuse_tweaking(found: Dependencies) -> None:
    """Raise an error while an NLA strip is in tweak mode, since Blender does not allow assigning actions then."""
    tweaked = next((block for block in found.animated if block.animation_data.use_tweak_mode), None)
    if tweaked is not None:
        raise ExportError(
            "'{}' is being edited in the NLA (tweak mode); leave that (Tab over the strip) to export its "
            "clips one by one, or export what plays",
            tweaked.name,
        )


def played(clips: Iterable[ClipSource]) -> dict[bpy.types.ID, list[bpy.types.Action]]:
    """Return the actions that clips assign to each data block."""
    given: dict[bpy.types.ID, list[bpy.types.Action]] = {}
    for clip in clips:
        for block, (action, _) in (clip.actions or {}).items():
            given.setdefault(block, []).append(action)
    return given


def _playing(found: Dependencies) -> list[bpy.types.Action]:
    actions = (block.animation_data.action for block in found.animated)
    return list(dict.fromkeys(action for action in actions if action is not None))


def _as_played(scene: bpy.types.Scene, found: Dependencies, *, over_scene: bool, for_joints: bool) -> ClipSource:
    """Describe the current animation as one clip, with the range of the scene or of its actions and NLA strips."""
    actions = _playing(found)
    clip = _clip_of(actions, scene)
    one_name = len({action.meshferry.clip_name for action in actions}) == 1 and clip.from_file
    if not (one_name or for_joints):
        clip.name = DEFAULT_CLIP
    time = SceneTime.of(scene)
    ranges = [action_ranges.exported_range(action, time) for action in actions if has_keys(action)]
    if not clip.from_file:
        ranges += [_extent(strips) for strips in _strips(found).values()]
    if over_scene or not ranges:
        clip.start, clip.end = time.key_frame(scene.frame_start), time.key_frame(scene.frame_end)
        clip.messages = []
    else:
        clip.start, clip.end = min(start for start, _ in ranges), max(end for _, end in ranges)
    return clip


def _clip_of(actions: list[bpy.types.Action], scene: bpy.types.Scene) -> ClipSource:
    """Describe the clip that consists of these actions."""
    first = actions[0] if actions else None
    time = SceneTime.of(scene)
    ranges = [action_ranges.exported_range(action, time) for action in actions]
    own_rate = next((action.meshferry.fps for action in actions if action.meshferry.fps > 0), 0.0)
    return ClipSource(
        name=clip_name(first) if first else DEFAULT_CLIP,
        start=min((start for start, _ in ranges), default=time.key_frame(scene.frame_start)),
        end=max((end for _, end in ranges), default=time.key_frame(scene.frame_end)),
        fps=own_rate or time.rate,
        has_own_rate=own_rate > 0,
        is_cyclic=bool(actions) and all(action.use_frame_range and action.use_cyclic for action in actions),
        from_file=any(action.meshferry.frame_count > 0 for action in actions),
        root_motion=any(action.meshferry.root_motion for action in actions),
        is_empty=bool(actions) and all(_is_still_empty(action) for action in actions),
        key_frames=_key_frames(action for action in actions if action.meshferry.playback.original),
        messages=[message for action in actions for message in action_ranges.messages(action, time)],
    )


def _key_frames(actions: Iterable[bpy.types.Action]) -> npt.NDArray[np.float64]:
    """Return the frames of the keys of actions, each once; empty if there are too many to sample.

    The import keys all components of a channel at the same frames, so the first one is enough.
    """
    found = [np.empty(0)]
    for curve in chain.from_iterable(animated_blocks.action_curves(action, None) for action in actions):
        if not curve.array_index:
            found.append(arrays.read(curve.keyframe_points, "co", 2)[:, 0].astype(np.float64))
    frames = np.unique(np.concatenate(found))
    return frames if len(frames) <= _MOST_KEY_FRAMES else frames[:0]


def clip_name(action: bpy.types.Action) -> str:
    """Return the name of the clip that an action belongs to."""
    return action.meshferry.clip_name or action.name


def has_keys(action: bpy.types.Action) -> bool:
    """Return whether an action has a key."""
    return not all(curve.is_empty for curve in animated_blocks.action_curves(action, None))


def _is_still_empty(action: bpy.types.Action) -> bool:
    """Return whether an action was imported as a clip without frames, and no keys were added since."""
    kept = action.meshferry
    return bool(kept.clip_name) and not kept.frame_count and not has_keys(action)


def _every_action(
    scene: bpy.types.Scene, found: Dependencies, is_wanted: ActionTest, *, with_empty: bool
) -> list[ClipSource]:
    """Return a clip for each clip name among the wanted actions of the exported objects."""
    groups: dict[str, dict[bpy.types.ID, tuple[bpy.types.Action, Any]]] = {}
    for block in found.animated:
        exported = {
            action: slot
            for action, slot in actions_of(block)
            if action.meshferry.use_export
            and is_wanted(action)
            and (has_keys(action) or (with_empty and _is_still_empty(action)))
        }
        names = _names_of_clips(exported)
        for action, slot in exported.items():
            groups.setdefault(names[action], {})[block] = (action, slot)
    clips = []
    for name, actions in groups.items():
        clip = _clip_of(list(dict.fromkeys(action for action, _ in actions.values())), scene)
        clip.name = name
        clip.actions = actions
        clips.append(clip)
    return clips


def _names_of_clips(actions: Iterable[bpy.types.Action]) -> dict[bpy.types.Action, str]:
    """Return a unique clip name for each action of one data block.

    If clips of several files have the same name ("Take 001"), one action keeps it; the others get the names of their
    actions.
    """
    given: dict[bpy.types.Action, str] = {}
    for action in sorted(actions, key=lambda action: action.name != clip_name(action)):
        wanted = chain((clip_name(action), action.name), (f"{action.name} {number}" for number in count(2)))
        taken = set(given.values())
        given[action] = next(name for name in wanted if name not in taken)
    return given


def actions_of(block: bpy.types.ID) -> list[tuple[bpy.types.Action, Any]]:
    """Return the actions of a data block with their slots: the active one, those in the NLA, fitting ones."""
    actions: dict[bpy.types.Action, Any] = {}
    for holder in animated_blocks.action_holders(block):
        actions.setdefault(holder.action, holder.action_slot)
    own = {clip_name(action) for action in actions}
    for action in bpy.data.actions:
        # If a file was imported twice, each copy of an object has its own action for this clip.
        is_of_another = clip_name(action) in own and action.users > int(action.use_fake_user)
        if action not in actions and not is_of_another:
            fits, slot = _fits(action, block)
            if fits:
                actions[action] = slot
    return list(actions.items())


def _fits(action: bpy.types.Action, block: bpy.types.ID) -> tuple[bool, Any]:
    """Return whether an unassigned action fits a data block, and its slot.

    It fits if its slot is named after the block, or if the block has all bones or shape keys that the action animates.
    """
    parts = {
        'pose.bones["': getattr(getattr(block, "pose", None), "bones", ()),
        'key_blocks["': getattr(block, "key_blocks", ()),
    }
    for slot in action.slots:
        if slot is not None and slot.identifier == f"{block.bl_rna.identifier[:2].upper()}{block.name}":
            return True, slot
        paths = {curve.data_path for curve in animated_blocks.action_curves(action, slot)}
        for start, own in parts.items():
            moved = {path.split('"')[1] for path in paths if path.startswith(start)}
            if moved and len(own) and all(name in own for name in moved):
                return True, slot
    return False, None


def _strips(found: Dependencies) -> dict[str, list[bpy.types.NlaStrip]]:
    """Return the NLA strips that are not muted, grouped by name."""
    strips: dict[str, list[bpy.types.NlaStrip]] = {}
    for block in found.animated:
        if not block.animation_data.use_nla:
            continue
        tracks = list(block.animation_data.nla_tracks)
        playing = [track for track in tracks if track.is_solo] or [track for track in tracks if not track.mute]
        for strip in (strip for track in playing for strip in track.strips if not strip.mute):
            strips.setdefault(strip.name, []).append(strip)
    return strips


def _extent(strips: list[bpy.types.NlaStrip]) -> tuple[float, float]:
    return min(strip.frame_start for strip in strips), max(strip.frame_end for strip in strips)


def other_actions(found: Dependencies, options: ExportOptions, own: FileClips) -> list[bpy.types.Action]:
    """Return the actions that are not exported because they come from other files than ``own``."""
    actions = _playing(found)
    if options.clips in {"ACTIONS", "NLA"}:
        actions = [action for block in found.animated for action, _ in actions_of(block)]
    exported = (action for action in dict.fromkeys(actions) if action.meshferry.use_export and has_keys(action))
    return [] if options.clips in {"NONE", "POSE"} else [action for action in exported if not own.allows(action)]


def keys_outside(scene: bpy.types.Scene, found: Dependencies) -> list[Message]:
    """Return messages about keys that are never exported, since they are outside a frame range that the user set."""
    actions = dict.fromkeys(action for block in found.animated for action, _ in actions_of(block))
    time = SceneTime.of(scene)
    findings = (action_ranges.keys_lost(action, time) for action in actions if action.meshferry.use_export)
    return [finding for finding in findings if finding is not None]


def _nla_clips(scene: bpy.types.Scene, found: Dependencies, is_wanted: ActionTest) -> list[ClipSource]:
    """Return a clip for each name of an NLA strip.

    Muted strips are included, since stashed actions are muted strips.
    """
    strips: dict[str, list[bpy.types.NlaStrip]] = {}
    for block in found.animated:
        for track in block.animation_data.nla_tracks:
            for strip in track.strips:
                if strip.action is None or is_wanted(strip.action):
                    strips.setdefault(strip.name, []).append(strip)
    clips = []
    for name, group in strips.items():
        actions = list(dict.fromkeys(strip.action for strip in group if strip.action))
        clip = _clip_of(actions, scene)
        clip.name = name
        clip.start, clip.end = _extent(group)
        if clip.end - clip.start <= 1 and not any(one.frame_range[1] > one.frame_range[0] for one in actions):
            clip.end = clip.start  # Blender's strips are at least one frame long, even for a single key
        clip.strips, clip.messages = {name}, []
        clips.append(clip)
    return clips
