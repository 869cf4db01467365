"""Document -> Scene: the avatar's skeleton and one clip of keys (animation format page, section 5)."""

from __future__ import annotations

from ...core.messages import counted
from ...core.scene import Clip, Keys, KeyTrack, Playback, Scene
from ..avatar import joints as avatar_joints
from ..avatar import skeletons
from ..models import space
from . import writer
from .document import JointKeys, SecondLifeAnimation, decode_text
from .keys import curves


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
    scene.report.loss_of("unknown-joints-left-out", template, unknown, "joint is", "joints are")
    kinds = {avatar_joints.table()[joint].kind for joint in joints}
    skeleton = skeletons.avatar_skeleton(
        with_collision_volumes="collision_volume" in kinds, with_attachments="attachment" in kinds
    )
    scene.skeletons.append(skeleton)
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    clip = Clip(name, 0.0, 0, duration=document.duration, playback=_playback(document, joints))
    clip.time_step = curves.time_tolerance(document.duration)
    clip.key_rate = curves.frame_rate(document)
    clip.original = writer.write(document)
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
    curve = curves.rotation_keys(document, keys)
    values = curve.values.copy()
    values[:, 1:] = values[:, 1:] @ space.TO_BLENDER[:3, :3].T
    return Keys(curve.times, values)


def _positions(document: SecondLifeAnimation, keys: JointKeys) -> Keys | None:
    if not len(keys.position):
        return None
    curve = curves.position_keys(document, keys)
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
