"""Animations of rigs with other bone names, rest poses, sizes and axes, decoded and posed on the standard avatar."""

from __future__ import annotations

import csv
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack
from meshferry.io_formats.second_life.animation.codec import SecondLifeAnimation
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION

Array = Any

ROOT = Path(__file__).parents[3] / "io_formats" / "second_life"
FRAMES = 12

LIMBS = {
    "Mixamo": {
        "Hips": ("", (0, 0, 1.0)),
        "Spine": ("Hips", (0, 0, 0.1)),
        "Spine1": ("Spine", (0, 0, 0.12)),
        "Spine2": ("Spine1", (0, 0, 0.12)),
        "Neck": ("Spine2", (0, 0, 0.15)),
        "Head": ("Neck", (0, 0, 0.1)),
        **{
            name: (parent, (sign * x, y, z))
            for side, sign in (("Left", 1), ("Right", -1))
            for name, parent, (x, y, z) in (
                (f"{side}Shoulder", "Spine2", (0.05, 0, 0.1)),
                (f"{side}Arm", f"{side}Shoulder", (0.12, 0, 0)),
                (f"{side}ForeArm", f"{side}Arm", (0.2, 0.02, -0.2)),
                (f"{side}Hand", f"{side}ForeArm", (0.18, -0.02, -0.18)),
                (f"{side}UpLeg", "Hips", (0.1, 0, -0.05)),
                (f"{side}Leg", f"{side}UpLeg", (0.03, -0.02, -0.45)),
                (f"{side}Foot", f"{side}Leg", (0, 0.03, -0.42)),
            )
        },
    }
}
"""Bones of a rig in an A-pose that faces -Y: parent, and position of the head relative to it in metres."""
CHAINS = [
    [(f"{side}{bone}", f"m{joint}{side}") for bone, joint in chain]
    for side in ("Left", "Right")
    for chain in (
        (("Arm", "Shoulder"), ("ForeArm", "Elbow"), ("Hand", "Wrist")),
        (("UpLeg", "Hip"), ("Leg", "Knee"), ("Foot", "Ankle")),
    )
]


def quaternion_matrix(values: Array) -> Array:
    w, x, y, z = values
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_rotations(rng: np.random.Generator, degrees: float, count: int) -> Array:
    axis = rng.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    half = np.radians(rng.uniform(-degrees, degrees, (count, 1))) / 2
    return np.concatenate((np.cos(half), np.sin(half) * axis), axis=1)


def rotation_of(matrix: Array) -> tuple[float, ...]:
    """Return the quaternion of a rotation matrix whose angle is below 180 degrees."""
    w = math.sqrt(max(1 + np.trace(matrix), 1e-12)) / 2
    x, y, z = matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]
    return (w, x / (4 * w), y / (4 * w), z / (4 * w))


def moving_rig(turn: Array, size: float, prefix: str) -> tuple[Scene, list[dict[str, Array]]]:
    """Return a rig with random bone axes and motion, and the heads of its bones in each frame, as if it faced -Y."""
    rng = np.random.default_rng(5)
    skeleton = Skeleton("rig", [Joint("Control")])
    names = ["Control", *LIMBS["Mixamo"]]
    axes = {"Control": np.identity(3)}
    tracks, rotations = [], {"Control": np.tile(np.identity(3), (FRAMES, 1, 1))}
    for number, (name, (parent, offset)) in enumerate(LIMBS["Mixamo"].items(), 1):
        above = parent or "Control"
        axes[name] = quaternion_matrix(random_rotations(rng, 80, 1)[0])
        place = axes[above].T @ turn @ np.array(offset) * size
        local = axes[above].T @ axes[name]
        skeleton.joints.append(Joint(prefix + name, names.index(above), tuple(place), rotation_of(local)))
        moved = random_rotations(rng, 60 if parent else 25, FRAMES)
        posed = np.array([local @ quaternion_matrix(value) for value in moved])
        rotations[name] = posed
        shift = place + (rng.normal(0, 0.1, (FRAMES, 3)) * size if not parent else 0)
        tracks.append(
            TransformTrack(
                number,
                np.broadcast_to(shift, (FRAMES, 3)).astype(np.float32),
                np.array([rotation_of(matrix) for matrix in posed], np.float32),
                np.ones((FRAMES, 3), np.float32),
                0,
            )
        )
    heads: list[dict[str, Array]] = []
    for frame in range(FRAMES):
        worlds = {"Control": (np.identity(3), np.zeros(3))}
        for track, (name, (parent, _offset)) in zip(tracks, LIMBS["Mixamo"].items(), strict=True):
            above, start = worlds[parent or "Control"]
            worlds[name] = (above @ rotations[name][frame], start + above @ track.translation[frame])
        heads.append({name: turn.T @ head / size for name, (_axes, head) in worlds.items()})
    clip = Clip("dance", 30.0, FRAMES, tracks)
    return Scene("dance", skeletons=[skeleton], clips=[clip]), heads


def avatar_heads(document: SecondLifeAnimation, frame: int) -> dict[str, Array]:
    """Return the heads of the joints in a frame, facing -Y, as the format page says, from the codes of a file."""
    rows = list(csv.DictReader((ROOT / "avatar" / "skeleton.csv").read_text("utf-8").splitlines()))
    keys = {joint.name.decode(): joint for joint in document.joints}
    time = frame / 30
    worlds: dict[str, Any] = {"": (np.identity(3), np.zeros(3))}
    for row in rows:
        if row["kind"] != "bone":
            continue
        position = np.array([float(row[f"pos_{axis}"]) for axis in "xyz"])
        rotation = np.identity(3)
        joint = keys.get(row["name"])
        if joint is not None:
            rotation = quaternion_matrix(at(joint.rotation, document.duration, time, 1.0))
            if len(joint.position):
                moved = at(joint.position, document.duration, time, 5.0)[1:]
                position = position + moved if row["name"] == "mPelvis" else moved
        above, start = worlds[row["parent"]]
        worlds[row["name"]] = (above @ rotation, start + above @ position)
    return {name: np.array((head[1], -head[0], head[2])) for name, (_axes, head) in worlds.items()}


def at(keys: Array, duration: float, time: float, reach: float) -> Array:
    """Return the value of decoded keys: w x y z for rotations, 0 x y z for positions."""
    times = keys[:, 0] / 65535 * duration
    vectors = keys[:, 1:] / 65535 * 2 * reach - reach
    w = np.sqrt(np.maximum(1 - (vectors**2).sum(axis=1), 0)) if reach == 1 else np.zeros(len(keys))
    values = np.column_stack((w, vectors))
    after = int(np.clip(np.searchsorted(times, time), 1, max(len(times) - 1, 1)))
    if len(times) == 1:
        return values[0]
    a, b = values[after - 1], values[after]
    b = -b if reach == 1 and a @ b < 0 else b
    mixed = a + np.clip((time - times[after - 1]) / (times[after] - times[after - 1]), 0, 1) * (b - a)
    return mixed / np.linalg.norm(mixed) if reach == 1 else mixed


FACES_X = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], float)
Y_UP = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float)


@pytest.mark.parametrize(
    ("turn", "size", "prefix"), [(np.identity(3), 1.0, "mixamorig:"), (FACES_X, 1.3, ""), (Y_UP, 100.0, "mixamorig1:")]
)
def test_limbs_point_the_same_way(turn: Array, size: float, prefix: str) -> None:
    scene, rig = moving_rig(turn, size, prefix)
    document = SECOND_LIFE_ANIMATION.from_scene(scene, {"use_key_reduction": False})
    assert not [text for text in scene.warnings if "left out" in text]
    ratio = leg_length(avatar_heads(SecondLifeAnimation(duration=1.0), 0), 1) / leg_length(rig[0], 0)
    for frame in range(FRAMES):
        heads = avatar_heads(document, frame)
        for chain in CHAINS:
            for (bone, joint), (next_bone, next_joint) in pairwise(chain):
                ours, theirs = heads[next_joint] - heads[joint], rig[frame][next_bone] - rig[frame][bone]
                sine = np.linalg.norm(np.cross(ours, theirs)) / np.linalg.norm(ours) / np.linalg.norm(theirs)
                assert ours @ theirs > 0
                assert math.degrees(math.asin(min(sine, 1))) < 0.6, (frame, joint)
        moved = (rig[frame]["Hips"] - (0, 0, 1.0)) * ratio
        assert np.allclose(heads["mPelvis"] - (0, 0, 1.067), moved, atol=2e-4)
    assert not any(len(joint.position) for joint in document.joints if joint.name != b"mPelvis")


def leg_length(heads: dict[str, Array], which: int) -> float:
    names = [[pair[which] for pair in chain] for chain in CHAINS if chain[0][0].endswith("UpLeg")]
    return float(sum(np.linalg.norm(heads[b] - heads[a]) for chain in names for a, b in pairwise(chain)))


def test_options_for_other_rigs() -> None:
    scene, rig = moving_rig(np.identity(3), 1.0, "")
    document = SECOND_LIFE_ANIMATION.from_scene(scene, {"use_avatar_proportions": False, "use_positions": True})
    heads = avatar_heads(document, 3)
    for bone, joint in (pair for chain in CHAINS for pair in chain):
        offset = np.array((0, 0, 1.067)) - (0, 0, 1.0)
        assert np.allclose(heads[joint], rig[3][bone] + offset, atol=2e-2), joint


def test_bvh_of_another_rig() -> None:
    scene, _heads = moving_rig(np.identity(3), 1.0, "mixamorig:")
    document = SECOND_LIFE_BVH.from_scene(scene)
    assert {"mShoulderLeft", "mKneeRight", "mPelvis"} <= {joint.name for joint in document.joints}


@pytest.mark.parametrize("child", ["Spine1", "LeftHand"])
def test_a_bone_with_the_name_of_its_ancestor(child: str) -> None:
    """Names alone would make a cycle; the bone nearer to the root is the joint."""
    usual, _heads = moving_rig(np.identity(3), 1.0, "mixamorig:")
    scene, _heads = moving_rig(np.identity(3), 1.0, "mixamorig:")
    named = {joint.name.partition(":")[2]: joint for joint in scene.skeletons[0].joints}
    above = named["Hips" if child == "Spine1" else "LeftArm"]
    named[child].name = above.name
    scene = UNIGINE_ANIMATION.to_scene(
        UNIGINE_ANIMATION.read(UNIGINE_ANIMATION.write(UNIGINE_ANIMATION.from_scene(scene))), "dance"
    )
    joints, wanted = (
        {joint.name: joint for joint in SECOND_LIFE_BVH.from_scene(each).joints} for each in (scene, usual)
    )
    assert wanted.keys() - joints.keys() <= {"mTorso", "mSpine1", "mSpine2", "mChest", "mWristLeft"}
    assert {"mPelvis", "mShoulderLeft", "mElbowLeft"} <= joints.keys()


def test_a_pose_has_the_body_and_the_groups_that_are_posed() -> None:
    scene, _heads = moving_rig(np.identity(3), 1.0, "")
    clip = scene.clips[0]
    clip.is_pose, clip.frame_count, clip.duration = True, 1, 1 / 30
    for track in clip.transforms:
        joint = scene.skeletons[0].joints[track.target]
        moves = joint.name == "LeftArm"
        track.rotation = track.rotation[:1] if moves else np.array([joint.rotation], np.float32)
        track.translation, track.scale = np.array([joint.translation], np.float32), track.scale[:1]
    document = SECOND_LIFE_ANIMATION.from_scene(scene)
    assert {joint.name for joint in document.joints} >= {b"mKneeLeft", b"mShoulderLeft", b"mHead"}
    assert (document.loop, document.loop_in) == (1, 0)
    assert document.loop_out == pytest.approx(document.duration)
    assert all(len(joint.rotation) == 1 for joint in document.joints)
