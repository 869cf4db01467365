"""BVH <-> Scene (animation format page, sections 7.2 and 7.3): the avatar and one clip on it; facts and checks."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.capabilities import length_refusal
from ...core.errors import ExportError, UnsupportedFormatError
from ...core.messages import Kind, Message, Named, Text, counted, error, listed, of_kind
from ...core.options import Options
from ...core.scene import Clip, Keys, KeyTrack, Playback, Scene
from ...geometry import transforms
from ...geometry.transforms import Floats
from ...passes.clips import DEFAULT_RATE, clip_parts, only_part, values_at, with_frames
from ..animation import document_builder as animation_document_builder
from ..animation.codec import FARTHEST
from ..animation.format import LONGEST
from ..animation.motion import AvatarMotion, motion_of
from ..avatar import joints as avatar_joints
from ..avatar import skeletons
from ..models import space
from .codec import Bvh, BvhJoint
from .format import ADVICE


def check(document: Bvh) -> list[Message]:
    """Return the messages of an import, and an error for a file that is too long. The reader checks the other rules.

    Raises
    ------
    UnsupportedFormatError
        The document cannot be imported.
    """
    messages = [replace(message, kind=Kind.WARNING) for message in to_scene(document, "", Options()).warnings]
    duration = max(len(document.frames) - 2, 1) * document.frame_time
    if duration > LONGEST:
        template = "it is {:.1f} s long; viewers take up to {:.0f} s"
        messages.append(error("animation-too-long", template, duration, LONGEST, item=Text("The animation")))
    return messages


def facts(document: Bvh) -> dict[str, Any]:
    """Count the stored data."""
    frames = len(document.frames)
    return {
        "bones": len(document.joints),
        "clips": [{"name": "", "kind": "bone", "frames": frames, "fps": round(1 / document.frame_time, 6)}],
    }


INCH = 0.02540005
"""Metres in an inch, with the viewer's rounded value."""
TO_AVATAR = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], np.float64)
"""From the axes of a BVH file (Y up, Z forward, X to the left) to those of the avatar."""


def joint_motion(document: Bvh, number: int) -> tuple[Floats, Floats | None]:
    """Return a joint's rotations (F, 4; w, x, y, z) in avatar axes and positions (F, 3) in metres, frame 0 included."""
    joint, values = document.joints[number], document.channels(number)
    turned = TO_AVATAR @ transforms.euler_matrices(values[:, -3:], joint.order) @ TO_AVATAR.T
    rotation = transforms.matrices_to_quaternions(turned)
    position = values[:, :3] @ TO_AVATAR.T * INCH if joint.has_position else None
    return rotation, position


def relative_to_first(rotation: Floats, position: Floats | None) -> tuple[Floats, Floats | None]:
    """Return the root's motion relative to its frame 0: R0^-1 R and R0^-1 (P - P0)."""
    back = transforms.inverse_rotations(rotation[:1])
    turned = transforms.rotation_product(back, rotation)
    turned[turned[:, 0] < 0] *= -1
    return turned, None if position is None else transforms.rotate(back, position - position[0])


def angles_of(rotation: Floats) -> Floats:
    """Return the angles (F, 3) in degrees, about Z, X and Y, of rotations (F, 4) in avatar axes."""
    m = TO_AVATAR.T @ transforms.rotation_matrices(rotation) @ TO_AVATAR
    about_x = np.arcsin(np.clip(m[:, 2, 1], -1, 1))
    locked = np.abs(m[:, 2, 1]) > 1 - 1e-9
    about_z = np.where(locked, np.arctan2(m[:, 1, 0], m[:, 0, 0]), np.arctan2(-m[:, 0, 1], m[:, 1, 1]))
    about_y = np.where(locked, 0.0, np.arctan2(-m[:, 2, 0], m[:, 2, 2]))
    return np.asarray(np.degrees(np.stack((about_z, about_x, about_y), axis=1)))


_TURNED = 1e-3
"""Tolerance for changes of a joint's axes, and of its position in inches. The viewer leaves out a joint that changes
less."""
_PRIORITY, _EASE, _HAND = 2, 0.3, 1
"""Initial settings of the viewer's upload window."""
_ROUNDED_TIME = 1e-6
"""Tolerance in seconds for frame times that are rounded to six decimals, as in many files."""
_PART_OF_FRAME = 0.01
"""Share of a frame: if less than this remains at the end of an animation, no further frame is written for it."""
_REFERENCE_TURN = (0.0, 1.0, 0.0)
"""Rotation about Z, X and Y, in degrees, by which the reference frame 0 differs from the first pose. The viewer leaves
out joints without such a difference."""
_REFERENCE_OFFSET = 0.002
"""Inches by which the root is lower in the reference frame 0 than at its first position."""


def to_scene(document: Bvh, name: str, options: Options) -> Scene:
    """Map a file to Blender's space as the viewer's uploader reads it; ``options`` are not used.

    Frame 0 is a reference and is not played. Joints that never differ from it are left out.

    Raises
    ------
    UnsupportedFormatError
        The root is not the avatar's pelvis, a joint that moves is not one of the avatar, or no joint moves.
    """
    scene = Scene(name)
    _report_axes(document, scene)
    if document.rows_left:
        text = "{} after the {:,} that the file states left out, as in the viewer"
        scene.report.loss("bvh-rows-left-out", text, counted(document.rows_left, "frame"), len(document.frames))
    played_joints = _played_joints(document, scene)
    has_attachments = any(not avatar_joints.table()[name].is_bone for name in played_joints.values())
    skeleton = skeletons.avatar_skeleton(
        with_collision_volumes=False, with_attachments=has_attachments, used=played_joints.values()
    )
    scene.skeletons.append(skeleton)
    place = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    count = len(document.frames)
    played = slice(1, count) if count > 1 else slice(0, 1)
    times: Floats = np.arange(max(count - 1, 1)).astype(np.float64) * document.frame_time
    duration = max(count - 2, 1) * document.frame_time
    clip = Clip(name, _frame_rate(document), 0, duration=duration, time_step=count * _ROUNDED_TIME)
    clip.playback = Playback(
        False, 0.0, duration, min(_EASE, duration / 2), min(_EASE, duration / 2), _PRIORITY, hand_pose=_HAND
    )
    clip.keys = []
    far = []
    for number, known in played_joints.items():
        rotation, position = joint_motion(document, number)
        is_root = document.joints[number].parent < 0
        if is_root:
            rotation, position = relative_to_first(rotation, position)
        track = KeyTrack(place[known], 0, is_offset=is_root)
        track.rotation = Keys(times, _to_blender(transforms.continuous_rotations(rotation[played])))
        if position is not None:
            if np.abs(position[played]).max() > FARTHEST:
                far.append(known)
            track.translation = Keys(times, _to_blender(np.clip(position[played], -FARTHEST, FARTHEST)))
        clip.keys.append(track)
    scene.clips.append(clip)
    if far:
        scene.report.change(
            "far-positions", "Positions end at {:.0f} m, as in the viewer: {}", FARTHEST, listed(of_kind("bone", far))
        )
    return scene


def _frame_rate(document: Bvh) -> float:
    """Return the frame rate.

    It is rounded if the frame time is a rounded number: 0.033333 s means 30 frames per second.
    """
    fps = 1 / document.frame_time
    rounded = round(fps, 2)
    return rounded if rounded and abs(1 / rounded - document.frame_time) <= _ROUNDED_TIME else fps


def _played_joints(document: Bvh, scene: Scene) -> dict[int, str]:
    """Return the names of the avatar's joints that move, by index; warn about joints that the uploader reads wrongly.

    The uploader converts the axes of a joint only if its table has the name: bones, and attachment points with ``_``
    for spaces.

    Raises
    ------
    UnsupportedFormatError
        The file is not made for the avatar, so the viewer's uploader refuses it.
    """
    root = document.joints[0].name
    if avatar_joints.canonical(root) != avatar_joints.ROOT:
        template = "Not an animation of Second Life: its root is '{}', not 'hip'; {}"
        raise UnsupportedFormatError(template, root, Text(ADVICE))
    found = {
        number: avatar_joints.canonical(joint.name)
        for number, joint in enumerate(document.joints)
        if _moves(document, number)
    }
    unknown = [document.joints[number].name for number, known in found.items() if known is None]
    if unknown:
        number = counted(len(unknown), "moving joint is", "moving joints are")
        template = "Not an animation of Second Life: {} not in the avatar: {}; {}"
        raise UnsupportedFormatError(template, number, listed(of_kind("bone", unknown)), Text(ADVICE))
    if not found:
        raise UnsupportedFormatError("Nothing moves in it: no joint differs from its first frame, which is not played")
    held = [
        joint.name
        for number, joint in enumerate(document.joints)
        if number not in found and _is_turned(document, number)
    ]
    template = "{} the pose of the first frame throughout, which viewers do not upload: {}"
    scene.report.loss_of("held-joints-left-out", template, of_kind("bone", held), "joint holds", "joints hold")
    table = avatar_joints.table()
    played = {number: name for number, name in found.items() if name and (table[name].is_bone or " " in name)}
    wrong = [document.joints[number].name for number in found if number not in played]
    template = "{} left out, since the viewer's upload window misreads them: {}"
    scene.report.loss_of("misread-joints-left-out", template, of_kind("bone", wrong), "joint is", "joints are")
    return played


def _to_blender(values: Floats) -> Floats:
    """Convert vectors (F, 3) or quaternions (F, 4) from the avatar's axes to Blender's."""
    turned: Floats = np.array(values, np.float64)
    turned[:, -3:] = values[:, -3:] @ space.TO_BLENDER[:3, :3].T
    return turned


def _moves(document: Bvh, number: int) -> bool:
    """Return whether a joint differs from its frame 0 in a later frame; in a file of one frame all joints do."""
    if len(document.frames) < 2:
        return True
    joint, values = document.joints[number], document.channels(number)
    turned = transforms.euler_matrices(values[:, -3:], joint.order)
    change = np.linalg.norm(turned - turned[0], axis=1)[:, :2].sum(axis=1)
    if change.max() > _TURNED:
        return True
    return joint.has_position and bool((np.abs(values[:, :3] - values[0, :3]) > _TURNED).any())


def _is_turned(document: Bvh, number: int) -> bool:
    """Return whether a joint is turned in frame 0."""
    joint, values = document.joints[number], document.channels(number)
    return bool(np.abs(transforms.euler_matrices(values[:1, -3:], joint.order) - np.identity(3)).max() > _TURNED)


_UPRIGHT = 0.8
"""Cosine of the angle between the offsets of a file and those of the avatar below which the axes are compared."""
_QUARTERS = np.array(sorted(itertools.product((0.0, 90.0, -90.0, 180.0), repeat=3), key=np.count_nonzero))
"""(64, 3) angles about X, Y and Z that turn by multiples of 90°, none first."""
_FEWEST = 4
"""Number of joints of the avatar that a comparison of axes needs."""
_SEEN = "mWristLeft"
"""Joint that a message names as an example."""


@np.errstate(all="ignore")  # files may contain extreme numbers
def _report_axes(document: Bvh, scene: Scene) -> None:
    """Report offsets in other axes than those of the viewer, which ignores them but plays the angles in its axes."""
    heads, rests = np.zeros((len(document.joints), 3)), avatar_joints.rest_matrices()
    own: dict[str, int] = {}
    for number, joint in enumerate(document.joints):
        heads[number] = np.array(joint.offset) + (heads[joint.parent] if joint.parent >= 0 else 0.0)
        own.setdefault(avatar_joints.canonical(joint.name) or "", number)
    own.pop("", None)
    if len(own) < _FEWEST:
        return
    given = heads[list(own.values())]
    wanted = np.array([rests[name][:3, 3] for name in own]) @ TO_AVATAR
    given, wanted = given - given[0], wanted - wanted[0]
    turns = transforms.euler_matrices(_QUARTERS[:, ::-1], "ZYX")
    alike = np.einsum("nij,kj,ki->n", turns, given, wanted) / (np.linalg.norm(given) * np.linalg.norm(wanted))
    best = int(np.argmax(alike.round(6)))
    if alike[0] < _UPRIGHT <= alike[best]:
        example = _SEEN if _SEEN in own else list(own)[-1]
        template = (
            "its offsets have other axes than the viewer takes (Y up, Z forward): '{}' is at ({}), so the animation "
            "plays turned; before the export, turn the armature by {} and apply that"
        )
        place = ", ".join(f"{value:.3g}" for value in heads[own[example]])
        turn = [f"{angle:.0f}° about {axis}" for axis, angle in zip("XYZ", _QUARTERS[best], strict=True) if angle]
        scene.report.change("bvh-in-other-axes", template, Named("bone", example), place, ", then ".join(turn))


def files_of(scene: Scene, options: Options) -> list[Scene]:
    """Return a scene for each clip and each skeleton that it animates, named after the clip."""
    return clip_parts(scene)


def from_scene(scene: Scene, options: Options) -> Bvh:
    """Map a scene of one skeleton and one sampled clip to a file that the viewer's uploader reads unchanged.

    ``scene.warnings`` reports what BVH cannot hold.

    Raises
    ------
    ExportError
        No animation or several, no joint of the avatar is animated, or the animation is too long.
    """
    part = with_frames(only_part(scene))
    skeleton, clip = part.skeletons[0], part.clips[0]
    moved = _at_even_times(motion_of(skeleton, clip), clip.fps or DEFAULT_RATE)
    bones = [name for name in moved.names if avatar_joints.table()[name].is_bone]
    count = len(moved.times)
    if not bones or not count:
        raise ExportError("'{}' animates no joint of the avatar", clip.name)
    duration = float(moved.times[-1]) if count > 1 else 1 / (clip.fps or DEFAULT_RATE)
    if duration > LONGEST:
        raise length_refusal(clip.name, duration, LONGEST)
    animation_document_builder.refuse_far(moved, [name == avatar_joints.ROOT for name in moved.names], clip)
    left_out = [name for name in moved.names if name not in bones]
    if left_out:
        template = "BVH holds no collision volumes and attachment points: {}"
        scene.report.loss("unknown-bones-left-out", template, listed(of_kind("bone", left_out)))
    has_position = dict(zip(moved.names, moved.has_position, strict=True))
    shifted = [name for name in bones if has_position[name] and name != avatar_joints.ROOT]
    if shifted and not moved.is_other_rig:
        template = "Only the pelvis has positions in a BVH file; left out of {}"
        scene.report.loss("joint-positions-left-out", template, listed(of_kind("bone", shifted)))
    if clip.playback is not None:
        scene.report.loss(
            "playback-left-out",
            "BVH holds no priorities, loop, ease, hand pose and expression; set them in the upload window, or write "
            ".anim",
        )
    return _document(moved, bones, _frame_time(duration, max(count - 1, 1)))


def _frame_time(duration: float, steps: int) -> float:
    """Return the length of a frame in seconds.

    It is rounded down if the viewer's single precision would make all frames together longer than 60 s.
    """
    found = np.float32(duration / steps)
    is_long = found * np.float32(steps) > np.float32(LONGEST)
    return float(np.nextafter(found, np.float32(0))) if is_long else duration / steps


def _at_even_times(moved: AvatarMotion, fps: float) -> AvatarMotion:
    """Return the motion at frames of equal length.

    An animation may end between two frames of the scene, and may have samples between frames, at the keys of the
    imported file.
    """
    if not len(moved.names) or not len(moved.times):
        return moved
    count = math.ceil((moved.times[-1] - moved.times[0]) * fps - _PART_OF_FRAME) + 1
    times = np.linspace(moved.times[0], moved.times[-1], count)
    if count == len(moved.times) and np.allclose(times, moved.times, rtol=0, atol=1e-6):
        return moved
    rotation = [values_at(Keys(moved.times, values), times) for values in moved.rotation]
    position = [values_at(Keys(moved.times, values), times) for values in moved.position]
    return replace(moved, times=times, rotation=np.array(rotation), position=np.array(position))


def _document(moved: AvatarMotion, bones: list[str], frame_time: float) -> Bvh:
    """Return a document with these bones and their ancestors, and a reference frame 0 that differs from every pose."""
    table = avatar_joints.table()
    wanted = {above for name in bones for above in avatar_joints.ancestors(name)}
    order = [name for name in _depth_first() if name in wanted]
    index = {name: number for number, name in enumerate(order)}
    count = max(len(moved.times), 2)
    joints, columns = [], []
    for name in order:
        is_root = name == avatar_joints.ROOT
        offset = tuple((np.array(table[name].position) @ TO_AVATAR / INCH).tolist())
        joints.append(BvhJoint(name, index.get(table[name].parent, -1), offset, is_root))
        number = moved.names.index(name) if name in bones else -1
        if is_root:
            columns.append(_root_position(moved, number, count))
        columns.append(_angles(moved, number, count, is_root=is_root))
    return Bvh(joints, frame_time, np.concatenate(columns, axis=1))


def _root_position(moved: AvatarMotion, number: int, count: int) -> Floats:
    """Return the root's position (F + 1, 3) in inches: 0 in the reference frame."""
    found = np.zeros((count + 1, 3))
    if number >= 0:
        found[1:] = moved.position[number] @ TO_AVATAR / INCH
        found[1:, 1] += 0.0 if np.abs(found).max() > _TURNED else _REFERENCE_OFFSET
    return found


def _angles(moved: AvatarMotion, number: int, count: int, *, is_root: bool) -> Floats:
    """Return a joint's angles (F + 1, 3).

    The reference frame is 0 for the root, and close to the first pose for others.
    """
    found = np.zeros((count + 1, 3))
    if number >= 0:
        found[1:] = angles_of(moved.rotation[number])
        if not is_root:
            found[0] = found[1] + _REFERENCE_TURN
    return found


def _depth_first() -> list[str]:
    """Return the bones of the avatar, each followed by all bones below it, as BVH lists them."""
    table = avatar_joints.table()

    def below(name: str) -> list[str]:
        children = [child.name for child in table.values() if child.parent == name and child.is_bone]
        return [name, *(found for child in children for found in below(child))]

    return below(avatar_joints.ROOT)
