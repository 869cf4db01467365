"""Keys of Second Life animations: codes at their limits, order of keys, and what the reduction of keys promises."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import second_life_player as player
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.passes import clips
from meshferry.io_formats.second_life.animation import codec, document_builder
from meshferry.io_formats.second_life.animation import keys as animation_keys
from meshferry.io_formats.second_life.animation.codec import JointKeys, SecondLifeAnimation
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.animation.motion import AvatarMotion
from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from meshfuzz import second_life_animation_seeds as made

Array = Any

DIVISORS = {"mPelvis": 0.33 * 13, "mTorso": 0.33 * 10, "mWristLeft": 1.0}
"""The bones of the longest chains below these joints: 13, 10 and 3."""


def test_times_of_an_animation_without_duration() -> None:
    assert codec.time_codes_of(np.array([0.0, 0.5]), 0.0).tolist() == [0, 0]


def test_angles_of_the_old_version() -> None:
    """Rx Ry Rz for column vectors: z is applied first. Each turn here maps one axis onto another."""
    w, x, y, z = codec.euler_rotations(np.array([(90.0, 0.0, 90.0), (0.0, 90.0, 90.0), (90.0, 90.0, 0.0)])).T
    first_axis = np.column_stack((1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)))
    last_axis = np.column_stack((2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)))
    assert np.allclose(first_axis, ((0, 0, 1), (0, 1, 0), (0, 1, 0)), atol=1e-12)
    assert np.allclose(last_axis, ((0, -1, 0), (1, 0, 0), (1, 0, 0)), atol=1e-12)


def test_keys_are_sorted_and_the_last_of_one_time_counts() -> None:
    middle = 32768
    rows = [(60000, 65535, middle, middle), (60000, middle, middle, 0), (0, 0, middle, middle)]
    joint = JointKeys(b"mPelvis", 3, position=np.array(rows, np.uint16))
    keys = animation_keys.position_keys(SecondLifeAnimation(duration=2.0), joint)
    assert np.allclose(keys.times, (0, 2 * 60000 / 65535))
    assert keys.values.tolist() == [[-5, 0, 0], [0, 0, -5]]


@pytest.mark.parametrize("duration", [3e9, 3e38])
def test_a_length_of_years_has_no_frames(duration: float) -> None:
    rows = np.array([(0, 0, 0, 0), (65535, 1, 1, 1)], np.uint16)
    document = SecondLifeAnimation(duration=duration, joints=[JointKeys(b"mPelvis", 3, position=rows)])
    scene = SECOND_LIFE_ANIMATION.to_scene(document, "years")
    with pytest.raises(ExportError, match=r"'years' is .* long; with a key for each frame"):
        clips.with_frames(scene)


def motion(times: Array, degrees: float) -> AvatarMotion:
    """Return joints that swing by the same angles about Z, and a pelvis that moves along Y."""
    angle = np.radians(degrees) / 2 * np.sin(3 * times)
    rotation = np.column_stack((np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)))
    position = np.column_stack((0 * times, 0.2 * np.sin(2 * times), 0 * times))
    joints = len(DIVISORS)
    return AvatarMotion(
        list(DIVISORS), times, np.tile(rotation, (joints, 1, 1)), np.tile(position, (joints, 1, 1)), [True] * joints
    )


def reduced(given: AvatarMotion, duration: float, **options: Any) -> SecondLifeAnimation:
    document = SecondLifeAnimation(base_priority=3, duration=duration)
    settings = document_builder.KeySettings([True, False, False], priorities={"mTorso": 5}, **options)
    document_builder.add_reduced_joints(document, given, settings)
    return document


def angles_between(keys: Array, times: Array, wanted: Array) -> Array:
    """Return the angles in degrees by which the decoded keys, as a viewer plays them, are off."""
    values = codec.rotations_of(keys[:, 1:])
    shown = np.stack([np.interp(times, codec.times_of(keys[:, 0], 4.0), column) for column in values.T], axis=1)
    shown /= np.linalg.norm(shown, axis=1, keepdims=True)
    half = np.linalg.norm(np.cross(shown[:, 1:], wanted[:, 1:]) + shown[:, :1] * wanted[:, 1:]
                          - wanted[:, :1] * shown[:, 1:], axis=1)  # fmt: skip
    return np.degrees(2 * np.arcsin(np.minimum(half, 1)))


def test_joints_stay_within_their_share_of_the_tolerance() -> None:
    """Errors add up along a chain, so joints with long chains below them get more keys."""
    times = np.arange(121) / 30
    given = motion(times, 60)
    document = reduced(given, 4.0)
    for joint, exact, (name, divisor) in zip(document.joints, given.rotation, DIVISORS.items(), strict=True):
        assert joint.name.decode() == name
        assert joint.priority == (5 if name == "mTorso" else 3)
        assert joint.rotation[[0, -1], 0].tolist() == [0, 65535]
        off = angles_between(joint.rotation, times, exact).max()
        # Codes are 0.0035 degrees apart and times 0.06 ms, in which the joints turn by up to 0.01 degrees.
        assert 0.3 * 0.1 / divisor < off < 0.1 / divisor + 0.015, name
    pelvis = document.joints[0]
    assert not any(len(joint.position) for joint in document.joints[1:])
    shown = np.interp(times, codec.times_of(pelvis.position[:, 0], 4.0), codec.values_of(pelvis.position[:, 2], 5.0))
    off = np.abs(shown - given.position[0, :, 1]).max()
    assert 0.0002 * 0.3 < off < 0.001 / DIVISORS["mPelvis"] + 0.0002
    assert len(pelvis.position) < 121


@pytest.mark.parametrize("reduce", [True, False])
def test_samples_of_one_time_code_become_one_key(reduce: bool) -> None:
    """Blender can sample more often than the 65,536 times of a file."""
    times = np.array([0.0, 1e-6, 0.5, 0.5 + 1e-6, 1.0])
    for joint in reduced(motion(times, 40), 1.0, reduce=reduce).joints:
        assert joint.rotation[:, 0].tolist() == [0, 32768, 65535], joint.name
    assert math.isclose(float(codec.times_of(np.array([32768]), 1.0)[0]), 0.5, abs_tol=1e-5)


@pytest.mark.parametrize("has_positions", [True, False])
def test_a_joint_that_was_only_moved_is_changed(has_positions: bool) -> None:
    """Its rotations are as imported, and the file has no positions of it."""
    before = codec.read(made.ARMS)
    scene = SECOND_LIFE_ANIMATION.to_scene(before, "arms")
    names = [joint.name for joint in scene.skeletons[0].joints]
    scene.clips[0] = clip = clips.sample_clip(scene.clips[0], scene, 30)
    elbow = next(track for track in clip.transforms if names[track.target] == "mElbowLeft")
    elbow.translation[:, 2] += 0.02
    after = SECOND_LIFE_ANIMATION.from_scene(scene, {"use_positions": has_positions})
    assert [joint.name for joint in after.joints] == [joint.name for joint in before.joints]
    moved = {joint.name: joint.position for joint in after.joints}
    assert np.array_equal(moved[b"mPelvis"], before.joints[0].position)
    assert len(moved[b"mElbowLeft"]) == has_positions
    if has_positions:
        # the place of the elbow in the avatar's table is 0, 0.248, 0
        assert np.allclose(codec.values_of(moved[b"mElbowLeft"][0, 1:], 5.0), (0, 0.248, 0.02), atol=1e-4)
    else:
        assert any("mElbowLeft" in text and "Positions" in text for text in scene.warnings)


@pytest.mark.parametrize(
    ("joint", "amount", "is_changed"),
    [
        ("mShoulderLeft", 0.002, True),
        ("mPelvis", 0.001, True),
        ("mShoulderLeft", 0.00002, False),
        ("mPelvis", 0.00005, False),
    ],
)
def test_edits_of_one_frame_are_found(joint: str, amount: float, is_changed: bool) -> None:
    """A tenth of a degree and a millimetre count; the rounding of Blender's matrices does not."""
    data = made.ARMS + b"bytes after the end"
    before = codec.read(data)
    scene = SECOND_LIFE_ANIMATION.to_scene(before, "arms")
    names = [known.name for known in scene.skeletons[0].joints]
    scene.clips[0] = clip = clips.sample_clip(scene.clips[0], scene, 30)
    track = next(track for track in clip.transforms if names[track.target] == joint)
    if joint == "mPelvis":
        track.translation[20, 0] += amount
    else:
        rotation = track.rotation[20] + np.array((0, 0, 0, amount / 2), np.float32)
        track.rotation[20] = rotation / np.linalg.norm(rotation)
    written = codec.write(SECOND_LIFE_ANIMATION.from_scene(scene))
    assert (written != data) == is_changed
    for one, other in zip(before.joints, codec.read(written).joints, strict=True):
        same = np.array_equal(one.rotation, other.rotation) and np.array_equal(one.position, other.position)
        assert same == (one.name.decode() != joint or not is_changed), one.name
    assert written.endswith(b"bytes after the end")
    if joint == "mShoulderLeft" and is_changed:
        # 61 samples of the shoulder, and the 4 keys of the other joints
        assert any("65 keys reduced to" in note for note in scene.report.messages if note.is_note), (
            scene.report.messages
        )


@pytest.mark.parametrize("channel", ["rotation", "translation"])
def test_values_that_are_not_finite_are_refused(channel: str) -> None:
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.ARMS), "arms")
    scene.clips[0] = clip = clips.sample_clip(scene.clips[0], scene, 30)
    getattr(clip.transforms[0], channel)[15, 0] = np.nan
    with pytest.raises(ExportError, match=r"'arms': 'mPelvis' has NaN or infinite values at 0\.50 s"):
        SECOND_LIFE_ANIMATION.from_scene(scene)


@pytest.mark.parametrize("name", ["mWristLeft", "mTorso"])
def test_opposite_signs_stay_within_the_tolerance(name: str) -> None:
    """Viewers turn at a constant speed between keys whose quaternions, with w >= 0, are of opposite sign."""
    times = np.arange(61) / 30
    a, b = np.radians((110.0, 250.0))
    share = times / times[-1]
    wide = np.stack([(1 - part) * half(a) + part * half(b) for part in share])
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    given = AvatarMotion([name], times, wide[None], np.zeros((1, 61, 3)), [False])
    document = SecondLifeAnimation(base_priority=3, duration=2.0)
    document_builder.add_reduced_joints(document, given, document_builder.KeySettings([False]))
    (joint,) = document.joints
    keys = joint.rotation.astype(np.float64)
    shown = [
        player.played(keys[:, 0] / 65535 * 2, player.rotations_of(keys[:, 1:]), time, player.nlerp_or_slerp)
        for time in times
    ]
    off = max(player.degrees_between(one, other) for one, other in zip(shown, wide, strict=True))
    assert off < 0.1 / DIVISORS[name] + 0.3  # near half turns a step of a code is up to 0.3 degrees


def half(angle: float) -> Array:
    return np.array((math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0))


@pytest.mark.parametrize(
    ("chain", "source", "number", "kept"),
    [(2, b"L_HAND", 1, 1), (4, b"L_HAND", 1, 0), (1, b"R_HAND", 1, 0), (1, b"NOTHING", 1, 0), (0, b"L_HAND", 12, 10)],
)
def test_constraints_of_edited_animations(chain: int, source: bytes, number: int, kept: int) -> None:
    """They need joints with keys for the bone of their volume and for all above it in the chain."""
    arm = b"".join(
        made.joint(name, rotation=made.keys((0, made.ZERO, made.ZERO, made.ZERO)))
        for name in (b"mShoulderLeft", b"mElbowLeft", b"mWristLeft")
    )
    ending = made.ending(*[made.constraint(chain=chain, source=source)] * number)
    data = made.header(joints=3) + arm + ending
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(data), "arm")
    scene.clips[0] = clip = clips.sample_clip(scene.clips[0], scene, 30)
    unchanged = SECOND_LIFE_ANIMATION.from_scene(scene)
    assert codec.write(unchanged) == data
    clip.transforms[0].rotation[:] = (0.8, 0.6, 0, 0)
    scene.warnings.clear()
    after = SECOND_LIFE_ANIMATION.from_scene(scene)
    assert len(after.constraints) == kept
    assert any("left out, since viewers cannot follow" in said for said in scene.warnings) == (kept < number)


@pytest.mark.parametrize(
    ("fps", "said"), [(24, "'mElbowLeft'; with a scene of 30 frames per second they stay"), (30, "")]
)
def test_edited_keys_between_frames_are_noted(fps: float, said: str) -> None:
    rows = [(round(frame / 60 * 65535), made.ZERO, made.ZERO, 30000 + 100 * frame) for frame in (0, 7, 31, 60)]
    elbow = made.joint(b"mElbowLeft", rotation=made.keys(*rows))
    still = made.joint(b"mWristLeft", rotation=made.keys(*rows))
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.header(joints=2) + elbow + still + made.ending()), "arm")
    scene.clips[0] = clip = clips.sample_clip(scene.clips[0], scene, fps)
    clip.transforms[0].rotation[:] = clip.transforms[0].rotation[::-1].copy()
    SECOND_LIFE_ANIMATION.from_scene(scene)
    found = [note for note in scene.report.messages if note.is_note and "lay between frames" in note]
    assert len(found) == bool(said) and all(note.endswith(said) for note in found)


@pytest.mark.parametrize("target", [SECOND_LIFE_ANIMATION, SECOND_LIFE_BVH])
def test_clips_without_frames_are_refused(target: Any) -> None:
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.ARMS), "arms")
    scene.clips[0] = replace(clips.sample_clip(scene.clips[0], scene, 30, np.empty(0)), original=b"")
    with pytest.raises(ExportError, match="'arms' animates no joint of the avatar"):
        target.from_scene(scene)
