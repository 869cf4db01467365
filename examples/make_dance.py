"""Generate ``dance.anim``: a dance of Second Life's avatar for trying Meshferry out.

    .venv/bin/python examples/make_dance.py [folder]

A step touch of eight beats that repeats without a jump: the avatar steps to the left and back, twice, swings its arms,
and raises them in between. The knees follow from the feet, which stand on the ground.

Everything is computed in the avatar's space (metres, X forward, Y to the left, origin on the ground between the feet).
Values are rounded, so that runs on different machines agree but for single keys.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import Clip, Keys, KeyTrack, Playback, Scene
from meshferry.io_formats.geometry.transforms import continuous_rotations, matrices_to_quaternions
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.avatar import joints, skeletons
from meshferry.io_formats.second_life.models import space

Floats = npt.NDArray[np.float64]

BEATS = 8
BEATS_PER_SECOND = 2.0
KEYS_PER_SECOND = 15
STRIDE = 0.24
"""Length of a step to the side, in metres."""
LIFT = 0.07
"""Height of a foot in the middle of its step, in metres."""
CROUCH = 0.045
"""Mean distance by which the pelvis is lower than at rest, so that the knees are bent."""

PLAYBACK = Playback(
    is_looped=True, loop_out=BEATS / BEATS_PER_SECOND, ease_in=0.5, ease_out=0.5, priority=4, hand_pose=1
)


def about(axis: int, degrees: Floats) -> Floats:
    """Return rotations (n, 3, 3) about an axis."""
    angle = np.radians(degrees)
    made = np.zeros((len(angle), 3, 3))
    one, other = (axis + 1) % 3, (axis + 2) % 3
    made[:, axis, axis] = 1
    made[:, one, one] = made[:, other, other] = np.cos(angle)
    made[:, other, one] = np.sin(angle)
    made[:, one, other] = -made[:, other, one]
    return made


def step(beat: Floats, start: float) -> Floats:
    """Return how much of a step that takes the beat after ``start`` is done, 0 to 1."""
    share = np.clip((beat % (BEATS / 2)) - start, 0, 1)
    return np.asarray(share * share * (3 - 2 * share))


def feet(beat: Floats) -> dict[str, Floats]:
    """Return the distance of each foot from its place at rest, (n, 3): left, right beside it, right back, left."""
    moved = {}
    for side, (out, back) in {"Left": (0, 3), "Right": (1, 2)}.items():
        offset = np.zeros((len(beat), 3))
        offset[:, 1] = STRIDE * (step(beat, out) - step(beat, back) - 0.5)
        for start in (out, back):
            offset[:, 2] += LIFT * np.sin(np.pi * step(beat, start)) ** 2
        moved[side] = offset
    return moved


def rest(name: str) -> Floats:
    """Return the position of a joint at rest, relative to its parent."""
    return np.array(joints.table()[name].position)


def height(*names: str) -> Floats:
    """Return the position of the last joint of a chain from the pelvis, at rest."""
    return np.sum([rest(name) for name in names], axis=0)


def limb(offset: Floats, direction: Floats) -> Floats:
    """Return rotations (n, 3, 3) that turn a limb from ``offset`` (3,) to directions (n, 3), its front to the front."""
    before, after = _frames(offset[None]), _frames(direction)
    return after @ before.transpose(0, 2, 1)


def _frames(along: Floats) -> Floats:
    z = along / np.linalg.norm(along, axis=1, keepdims=True)
    x = np.array((1.0, 0, 0)) - z[:, :1] * z
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack((x, np.cross(z, x), z), axis=2)


def leg(side: str, pelvis: Floats, turn: Floats, foot: Floats) -> dict[str, Floats]:
    """Return the rotations of a leg whose ankle is at ``foot``, below a pelvis at ``pelvis`` with rotation ``turn``."""
    thigh, shin = rest(f"mKnee{side}"), rest(f"mAnkle{side}")
    hip = pelvis + turn @ rest(f"mHip{side}")
    reach = foot - hip
    upper, lower, distance = np.linalg.norm(thigh), np.linalg.norm(shin), np.linalg.norm(reach, axis=1)
    straight = reach / distance[:, None]
    forward = np.array((1.0, 0, 0)) - straight[:, :1] * straight
    forward /= np.linalg.norm(forward, axis=1, keepdims=True)
    cosine = (upper**2 + distance**2 - lower**2) / (2 * upper * distance)
    knee = upper * (cosine[:, None] * straight + np.sqrt(1 - cosine**2)[:, None] * forward)
    worlds = [turn, limb(thigh, knee), limb(shin, reach - knee), np.broadcast_to(np.identity(3), turn.shape)]
    names = (f"mHip{side}", f"mKnee{side}", f"mAnkle{side}")
    return {
        name: above.transpose(0, 2, 1) @ own for name, above, own in zip(names, worlds[:-1], worlds[1:], strict=True)
    }


def arms(beat: Floats) -> dict[str, Floats]:
    """Return the rotations of the arms: they swing at the sides, and are raised in the middle of the dance."""
    raised = 0.5 - 0.5 * np.cos(2 * np.pi * beat / BEATS)
    raised = raised * raised * (3 - 2 * raised)
    swing = np.sin(np.pi * beat)
    turns = {}
    for side, sign in (("Left", 1.0), ("Right", -1.0)):
        bounce = 8 * np.cos(2 * np.pi * beat)
        lowered = (1 - raised) * 68 + raised * (-38 + bounce)
        forward = (1 - raised) * (12 + 22 * sign * swing)
        bent = (1 - raised) * 75 + raised * 42
        turns[f"mCollar{side}"] = about(0, sign * (raised * 12 - 2))
        turns[f"mShoulder{side}"] = about(1, -forward) @ about(0, -sign * lowered)
        turns[f"mElbow{side}"] = about(2, -sign * bent * (1 - raised)) @ about(0, sign * bent * raised)
        turns[f"mWrist{side}"] = about(0, sign * 12 * np.sin(2 * np.pi * beat - 0.8))
    return turns


def motion(beat: Floats) -> tuple[dict[str, Floats], Floats]:
    """Return the rotation of each joint relative to its parent, (n, 3, 3), and the movement of the pelvis, (n, 3)."""
    steps = feet(beat)
    middle = (steps["Left"] + steps["Right"]) / 2
    sway = np.sin(np.pi * beat / 2 - 0.6)
    pelvis = np.zeros((len(beat), 3))
    pelvis[:, 1] = middle[:, 1] + 0.015 * np.sin(np.pi * beat)
    pelvis[:, 2] = -CROUCH - 0.018 * np.cos(2 * np.pi * beat)
    turn = about(2, 9 * sway) @ about(0, 4 * np.sin(np.pi * beat))
    turns = {"mPelvis": turn}
    turns["mTorso"] = about(2, -7 * sway) @ about(0, -5 * np.sin(np.pi * beat)) @ about(1, 3 + 0 * beat)
    turns["mChest"] = about(2, -6 * sway) @ about(0, -3 * np.sin(np.pi * beat)) @ about(1, 2 * np.cos(2 * np.pi * beat))
    turns["mNeck"] = about(2, 3 * sway) @ about(0, 2 * np.sin(np.pi * beat))
    turns["mHead"] = about(2, 5 * sway) @ about(1, 5 * np.cos(2 * np.pi * beat - 0.5)) @ about(0, 3 * sway)
    for side, moved in steps.items():
        ankle = rest("mPelvis") + height(f"mHip{side}", f"mKnee{side}", f"mAnkle{side}") + moved
        turns |= leg(side, rest("mPelvis") + pelvis, turn, ankle)
    return turns | arms(beat), pelvis


def _rounded(values: Floats) -> Floats:
    return np.asarray(np.rint(values * 65536) / 65536)


def dance() -> Scene:
    """Return the avatar and its animation."""
    skeleton = skeletons.avatar_skeleton()
    names = [joint.name for joint in skeleton.joints]
    duration = PLAYBACK.loop_out
    times = np.linspace(0, duration, round(duration * KEYS_PER_SECOND) + 1)
    turns, pelvis = motion(times * BEATS_PER_SECOND)
    to_blender = space.TO_BLENDER[:3, :3]
    clip = Clip("dance", 0.0, 0, duration=duration, playback=PLAYBACK)
    for name in sorted(turns, key=names.index):
        rotations = continuous_rotations(matrices_to_quaternions(to_blender @ turns[name] @ to_blender.T))
        track = KeyTrack(names.index(name), 0, rotation=Keys(times, _rounded(rotations)))
        if name == joints.ROOT:
            track.translation, track.is_offset = Keys(times, _rounded(pelvis @ to_blender.T)), True
        clip.keys.append(track)
    return Scene("dance", skeletons=[skeleton], clips=[clip])


def main(folder: Path) -> None:
    """Write the file."""
    for text in write_scene(dance(), folder / "dance.anim", SECOND_LIFE_ANIMATION):
        print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
