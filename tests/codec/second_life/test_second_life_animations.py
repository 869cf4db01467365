"""Every sample animation against facts that another decoder found, and back to bytes without a loss."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core import scene as core_scene
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.core.messages import Kind
from meshferry.io_formats.core.scene import Clip, Scene, Skeleton
from meshferry.io_formats.passes import clips
from meshferry.io_formats.second_life.animation import codec, document_builder
from meshferry.io_formats.second_life.animation import keys as animation_keys
from meshferry.io_formats.second_life.animation.codec import SecondLifeAnimation
from meshferry.io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from meshferry.io_formats.second_life.avatar import joints as avatar_joints
from meshferry.io_formats.second_life.bvh.codec import Bvh, BvhJoint
from meshferry.io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshfuzz import second_life_animation_seeds as made

Facts = dict[str, Any]
Array = Any


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "secondlife_animation"


@pytest.fixture(scope="module")
def expected(folder: Path) -> Facts:
    found: Facts = json.loads((folder / "expected.json").read_text("utf-8"))
    return found


def matrix(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def places(skeleton: Skeleton, clip: Clip, frame: int) -> dict[str, Array]:
    """Return where joints are in a frame of a sampled clip, in the axes of the avatar."""
    tracks = {track.target: track for track in clip.transforms}
    worlds: dict[int, Array] = {}
    for number, joint in enumerate(skeleton.joints):  # parents first
        track = tracks.get(number)
        local = np.identity(4)
        local[:3, :3] = matrix(joint.rotation if track is None else track.rotation[frame])
        local[:3, 3] = joint.translation if track is None else track.translation[frame]
        worlds[number] = worlds[joint.parent] @ local if joint.parent >= 0 else local
    return {
        joint.name: np.array((-worlds[number][1, 3], worlds[number][0, 3], worlds[number][2, 3]))
        for number, joint in enumerate(skeleton.joints)
    }


def test_samples_have_the_stated_content(folder: Path, expected: Facts) -> None:
    files = {
        **expected["files"],
        **{name: entry["facts"] for name, entry in expected["synthetic"].items() if "facts" in entry},
    }
    assert len(files) >= 16
    for name, facts in files.items():
        document = codec.read((folder / name).read_bytes())
        assert ".".join(map(str, document.version)) == facts["version"]
        for key in ("base_priority", "duration", "loop_in", "loop_out", "ease_in", "ease_out", "hand_pose", "loop"):
            assert getattr(document, key) == pytest.approx(facts[key], abs=1e-6), (name, key)
        assert document.emote.decode() == facts["emote"]
        assert len(document.trailing) == facts["trailing_bytes"]
        assert len(document.constraints) == len(facts["constraints"])
        assert len(document.joints) == len(facts["joints"])
        for joint, fact in zip(document.joints, facts["joints"], strict=True):
            assert (joint.name.decode(), joint.priority) == (fact["name"], fact["priority"])
            assert (len(joint.rotation), len(joint.position)) == (fact["rot"], fact["pos"])
            if "oddities" not in name:  # of unsorted and overlong keys the facts are the stored values
                check_values(document, joint, fact)


def sampled(scene: Scene, fps: float) -> Clip:
    """Return the clip as an export from Blender samples it: keys near a frame are on it, the last frame is the end."""
    clip = scene.clips[0]
    of_length = SecondLifeAnimation(duration=clip.duration)

    def on_frames(keys: Any) -> Any:
        return keys and animation_keys.snap_to_frames(keys, of_length, fps)

    tracks = [
        replace(track, rotation=on_frames(track.rotation), translation=on_frames(track.translation))
        for track in clip.keys
    ]
    times = np.append(np.arange(math.ceil(clip.duration * fps - 1e-6)) / fps, clip.duration)
    moved = clips.sample_clip(replace(clip, keys=tracks), scene, fps, times)
    return replace(moved, times=times)


def check_values(document: SecondLifeAnimation, joint: Any, fact: Facts) -> None:
    """Compare the first and the last keys."""
    for keys, which, place in (
        (animation_keys.rotation_keys(document, joint), "first_rot", 0),
        (animation_keys.rotation_keys(document, joint), "last_rot", -1),
        (animation_keys.position_keys(document, joint), "first_pos", 0),
        (animation_keys.position_keys(document, joint), "last_pos", -1),
    ):
        if which not in fact:
            continue
        value = keys.values[place]
        if len(value) == 4:
            w, x, y, z = value if value[0] >= 0 else -value
            value = np.array((x, y, z, w))
        assert np.allclose(value, fact[which]["value"], atol=2e-6), (joint.name, which)
        assert keys.times[place] == pytest.approx(fact[which]["time"], abs=1e-5)


def test_joints_stand_where_the_viewer_has_them(folder: Path, expected: Facts) -> None:
    for name, facts in expected["files"].items():
        document = codec.read((folder / name).read_bytes())
        scene = SECOND_LIFE_ANIMATION.to_scene(document, "motion")
        times = np.array([float(share) * document.duration for share in facts["pose"]])
        clip = clips.sample_clip(scene.clips[0], scene, 30, times)
        for frame, joints in enumerate(facts["pose"].values()):
            found = places(scene.skeletons[0], clip, frame)
            for joint, place in joints.items():
                assert np.allclose(found[joint], place, atol=1e-5), (name, frame, joint)


def test_bytes_come_back(folder: Path, expected: Facts) -> None:
    """Directly, through a scene, and through samples as an export from Blender has them."""
    for name in expected["files"]:
        data = (folder / name).read_bytes()
        assert codec.write(codec.read(data)) == data
        scene = registry.by_content(data[:4096], len(data)).to_scene(codec.read(data), "motion")
        assert codec.write(SECOND_LIFE_ANIMATION.from_scene(scene)) == data, name
        scene.clips[0] = sampled(scene, 24)
        assert codec.write(SECOND_LIFE_ANIMATION.from_scene(scene)) == data, name


def test_only_edited_joints_change(folder: Path) -> None:
    data = (folder / "opensim_1a2bd58e.anim").read_bytes()
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(data), "motion")
    scene.clips[0] = sampled(scene, 30)
    names = [joint.name for joint in scene.skeletons[0].joints]
    edited = next(track for track in scene.clips[0].transforms if names[track.target] == "mElbowLeft")
    half = math.sqrt(0.5)
    edited.rotation[:] = (half, 0, 0, half)
    scene.clips[0].transforms = [track for track in scene.clips[0].transforms if names[track.target] != "mHead"]
    before, after = codec.read(data), SECOND_LIFE_ANIMATION.from_scene(scene)
    assert len(after.constraints) == 9
    changed = {joint.name: joint for joint in after.joints}
    for joint in before.joints:
        if joint.name == b"mHead":
            assert joint.name not in changed
            continue
        same = np.array_equal(joint.rotation, changed[joint.name].rotation)
        assert same == (joint.name != b"mElbowLeft"), joint.name
    keys = animation_keys.rotation_keys(after, changed[b"mElbowLeft"])
    assert len(keys.times) == 1
    # half a turn about Blender's Z is one about the avatar's
    assert animation_keys.distances(keys.values[0], np.array((half, 0, 0, half))) < 1e-4


def test_what_cannot_be_read(folder: Path) -> None:
    for name, text in {
        "cut_off": "cut off",
        "bad_empty": "0 joints",
        "bad_nan": "ease-in time is nan",
        "bad_counts": "joints",
    }.items():
        with pytest.raises(FormatError, match=text):
            codec.read((folder / "synthetic" / f"{name}.anim").read_bytes())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"duration": 60.5}, "60.5 s long"),
        ({"base_priority": 7}, "priority is 7"),
        ({"hand_pose": 14}, "hand pose 14"),
        ({"joints": []}, "no keys"),
    ],
)
def test_rules_of_the_uploader(change: Facts, text: str) -> None:
    document = codec.read(made.ARMS)
    assert not [finding for finding in SECOND_LIFE_ANIMATION.check(document) if finding.kind.value == "error"]
    found = SECOND_LIFE_ANIMATION.check(replace(document, **change))
    assert [finding.kind.value for finding in found if text in finding.message] == ["error"]


def test_unknown_joints_are_errors(folder: Path) -> None:
    for name in ("bad_joint", "bad_root"):
        document = codec.read((folder / "synthetic" / f"{name}.anim").read_bytes())
        assert any(finding.kind.value == "error" for finding in SECOND_LIFE_ANIMATION.check(document))


def test_rotation_codes_are_the_best() -> None:
    """The error stays within that of the best of the eight codes around, as stated by the format page."""
    rng = np.random.default_rng(1)
    rotations = rng.normal(size=(20_000, 4))
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    decoded = codec.rotations_of(codec.rotation_codes_of(rotations))
    error = np.degrees(animation_keys.distances(decoded, rotations))
    assert np.median(error) < 0.003
    assert np.quantile(error, 0.99) < 0.06
    assert error.max() < 0.5


@pytest.mark.parametrize("degrees", [0.1, 1.0])
def test_key_reduction_keeps_its_promise(folder: Path, expected: Facts, degrees: float) -> None:
    """Measured on the decoded codes: each sample is within the tolerance plus the rounding of the keys."""
    for name in expected["files"]:
        document = codec.read((folder / name).read_bytes())
        scene = SECOND_LIFE_ANIMATION.to_scene(document, "motion")
        for joint in document.joints:
            keys = animation_keys.rotation_keys(document, joint)
            if len(keys.times) < 3:
                continue
            times = codec.times_of(
                codec.time_codes_of(np.linspace(0, document.duration, 60), document.duration), document.duration
            )
            exact = clips.values_at(keys, times)[None]
            stored = codec.rotations_of(codec.rotation_codes_of(exact[0]))[None]
            stored = np.where((stored * exact).sum(-1, keepdims=True) < 0, -stored, stored)
            finest = np.radians([0.1])
            kept = animation_keys.significances(exact, stored, times, finest)[0] > np.radians(degrees)
            shown = clips.values_at(core_scene.Keys(times[kept], stored[0][kept]), times)
            rounding = np.degrees(animation_keys.distances(exact[0], stored[0]).max())
            assert np.degrees(animation_keys.distances(shown, exact[0])).max() <= degrees + rounding + 1e-9
        assert scene.clips


def test_one_run_of_the_reduction_serves_all_tolerances() -> None:
    """The worst sample of a segment is its key, whatever the tolerance; two curves with limits of their own."""
    times = np.arange(7.0)
    exact = np.zeros((2, 7, 3))
    exact[:, :, 2] = (0, 1, 2, 9, 2, 1, 0), (0, 0, 0, 0, 0, 0, 6)
    need = animation_keys.significances(exact, exact, times, np.array([0.5, 0.5]))
    # 9 at the top; the samples beside it are then 4 below the line from 0 to 9, and the outer ones on theirs.
    assert need[0].tolist() == [np.inf, -np.inf, 4, 9, 4, -np.inf, 9]
    assert need[1].tolist() == [np.inf, -np.inf, -np.inf, -np.inf, -np.inf, 5, 6]
    coarse = animation_keys.significances(exact, exact, times, np.array([5.0, 5.5]))
    assert ((coarse > 5.5) == (need > 5.5)).all()


def test_too_large_files_are_reduced_or_refused() -> None:
    rng = np.random.default_rng(2)
    names = [joint.name for joint in _avatar().joints]
    scene = _noise(names, 300, rng, 0.01)
    document = SECOND_LIFE_ANIMATION.from_scene(scene)
    assert len(codec.write(document)) <= document_builder.MOST_BYTES
    assert any("reduced to" in text for text in scene.report.messages if text.is_note)
    with pytest.raises(ExportError, match="250,000"):
        SECOND_LIFE_ANIMATION.from_scene(_noise(names, 900, rng, 2.0))


def _avatar() -> Skeleton:
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.ARMS), "avatar")
    return scene.skeletons[0]


def _noise(names: list[str], frames: int, rng: np.random.Generator, amount: float) -> Scene:
    skeleton = _avatar()
    scene = Scene("noise", skeletons=[skeleton])
    clip = Clip("noise", 30.0, frames)
    for number, joint in enumerate(skeleton.joints):
        vector = (
            np.cumsum(rng.normal(0, amount, (frames, 3)), axis=0) if amount < 1 else rng.normal(0, amount, (frames, 3))
        )
        values = np.concatenate((np.ones((frames, 1)), vector), axis=1)
        values /= np.linalg.norm(values, axis=1, keepdims=True)
        clip.transforms.append(
            core_scene.TransformTrack(
                number,
                np.tile(np.array(joint.translation, np.float32), (frames, 1)),
                values.astype(np.float32),
                np.ones((frames, 3), np.float32),
                0,
            )
        )
    scene.clips.append(clip)
    return scene


def test_formats_with_frames() -> None:
    """A clip with keys gets frames for a format that needs them."""
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.ARMS), "arms")
    (part,) = UNIGINE_ANIMATION.files_of(clips.with_frames(scene))
    back = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.from_scene(part), "arms")
    assert len(back.clips[0].transforms) == 3


def test_bvh_as_the_uploader_reads_it(folder: Path, expected: Facts) -> None:
    for name, facts in expected["bvh"].items():
        document = SECOND_LIFE_BVH.read((folder / name).read_bytes())
        assert [joint.name for joint in document.joints] == facts["joints"]
        scene = SECOND_LIFE_BVH.to_scene(document, "motion")
        clip, joints = scene.clips[0], scene.skeletons[0].joints
        assert clip.duration == pytest.approx(facts["duration"], abs=1e-6)
        uploads = {entry["joint"]: entry for entry in facts["uploads"]}
        assert {joints[track.target].name for track in clip.keys} == set(uploads)
        for track in clip.keys:
            fact = uploads[joints[track.target].name]
            for keys, kind in ((track.rotation, "rot"), (track.translation, "pos")):
                for which, place in (("first", 0), ("last", -1)):
                    if keys is None or f"{which}_{kind}" not in fact:
                        continue
                    *start, x, y, z = keys.values[place]
                    value = np.array((-y, x, z, *start)) * (-1 if start and start[0] < 0 else 1)
                    assert np.allclose(value, fact[f"{which}_{kind}"]["value"], atol=2e-6)


def test_bvh_of_other_programs_is_refused() -> None:
    for old, new in ((b"ROOT hip", b"ROOT Hips"), (b"JOINT abdomen", b"JOINT tail_01")):
        document = SECOND_LIFE_BVH.read(made.BVH.replace(old, new))
        with pytest.raises(FormatError, match="Motion Capture"):
            SECOND_LIFE_BVH.to_scene(document, "other")


@pytest.mark.parametrize("fps", [24, 29.97, 30])
def test_bvh_of_sixty_seconds_is_not_longer_for_the_viewer(fps: float) -> None:
    """The viewer multiplies the frame time by the number of frames in single precision."""
    scene = SECOND_LIFE_ANIMATION.to_scene(codec.read(made.ARMS), "arms")
    frames = round(60 * fps)
    scene.clips[0] = clips.sample_clip(scene.clips[0], scene, fps, np.arange(frames + 1) / fps)
    scene.clips[0].times = np.linspace(0.0, 60.0, frames + 1)
    text = SECOND_LIFE_BVH.write(SECOND_LIFE_BVH.from_scene(scene)).decode()
    (count,) = re.findall(r"Frames: (\d+)", text)
    (length,) = re.findall(r"Frame Time: ([\d.]+)\n", text)
    total = np.float32(length) * np.float32(int(count) - 2)
    assert 59.999 < total <= 60


def test_bvh_rows_beyond_the_stated_number_are_named() -> None:
    rows = b"1 2 3 0 0 0\n" * 2
    found = SECOND_LIFE_BVH.to_scene(SECOND_LIFE_BVH.read(made.BVH.rstrip(b"\n") + b"\n" + rows + b"\n"), "x")
    assert ["2 frames after the 4" in str(message) for message in found.warnings if message.is_loss] == [True]
    whole = SECOND_LIFE_BVH.to_scene(SECOND_LIFE_BVH.read(made.BVH), "x")
    assert not [message for message in whole.warnings if message.is_loss]


def test_bvh_joints_beside_the_bones() -> None:
    """The uploader knows attachment points with ``_`` for spaces; of other names it does not turn the axes."""
    found = {}
    for name in (b"Left_Hand", b"LEFT_PEC", b"Chest"):
        scene = SECOND_LIFE_BVH.to_scene(SECOND_LIFE_BVH.read(made.BVH.replace(b"abdomen", name)), "motion")
        joints = scene.skeletons[0].joints
        found[name] = [joints[track.target].name for track in scene.clips[0].keys], scene.warnings
    assert found[b"Left_Hand"] == (["mPelvis", "Left Hand"], [])
    for name in ("LEFT_PEC", "Chest"):
        keyed, (warning,) = found[name.encode()]
        assert keyed == ["mPelvis"]
        assert name in warning


def test_bvh_joints_that_hold_the_first_pose_are_named() -> None:
    joints = [BvhJoint("hip", -1, (0, 0, 0), True), BvhJoint("chest", 0, (0, 9, 0), False)]
    joints += [BvhJoint("lShldr", 1, (3, 0, 0), False), BvhJoint("rShldr", 1, (-3, 0, 0), False)]
    frames = np.zeros((3, 15))
    frames[:, 9] = -60.0  # lShldr
    document = Bvh(joints, 1 / 30, frames)
    for read in (SECOND_LIFE_BVH.check, lambda document: SECOND_LIFE_BVH.to_scene(document, "held")):
        with pytest.raises(FormatError, match="Nothing moves in it"):
            read(document)
    frames[2, 6] = 5.0  # chest
    (message,) = SECOND_LIFE_BVH.check(document)
    assert message.kind is Kind.WARNING and "1 joint holds the pose of the first frame" in message
    assert "'lShldr'" in message and "rShldr" not in message
    assert SECOND_LIFE_BVH.to_scene(document, "held").warnings[0].is_loss


@pytest.mark.parametrize(
    ("axes", "turn"),
    [
        (np.identity(3), ""),
        (np.array(((1, 0, 0), (0, 0, -1), (0, 1, 0))), "-90° about X"),  # Blender, facing -Y: up is Z
        (np.array(((0, 0, 1), (1, 0, 0), (0, 1, 0))), "-90° about Y, then -90° about Z"),  # Blender, facing +X
        (np.diag((-1, 1, -1)), "180° about Y"),
    ],
)
def test_bvh_in_other_axes_names_the_turn_that_mends_it(axes: np.ndarray, turn: str) -> None:
    names = ("mPelvis", "mTorso", "mChest", "mNeck", "mShoulderLeft", "mElbowLeft", "mWristLeft", "mHipLeft")
    rests = avatar_joints.rest_matrices()
    joints = [BvhJoint("mPelvis", -1, (0, 0, 0), True)]
    for name in names[1:]:
        x, y, z = rests[name][:3, 3] - rests["mPelvis"][:3, 3]
        joints.append(BvhJoint(name, 0, tuple((axes @ (y, z, x)).tolist()), False))
    document = Bvh(joints, 1 / 30, np.zeros((3, 3 + 3 * len(joints))))
    document.frames[1, 3] = 5.0
    warnings = [message for message in SECOND_LIFE_BVH.check(document) if message.code == "bvh-in-other-axes"]
    assert bool(warnings) == bool(turn)
    if turn:
        wrist = ", ".join(f"{value:.3g}" for value in joints[names.index("mWristLeft")].offset)
        assert f"'mWristLeft' is at ({wrist})" in warnings[0] and f"turn the armature by {turn} and" in warnings[0]


@pytest.mark.parametrize(
    ("seconds", "fps"), [("0.0333333", 30), ("0.041667", 24), ("0.033367", 29.97), ("0.0371", 1 / 0.0371)]
)
def test_bvh_frame_rates(seconds: str, fps: float) -> None:
    """A frame time of six decimals would put keys beside the frames, the farther the later."""
    data = b"\xef\xbb\xbf" + made.BVH.replace(b"0.100000", seconds.encode())
    clip = SECOND_LIFE_BVH.to_scene(SECOND_LIFE_BVH.read(data), "motion").clips[0]
    assert clip.fps == pytest.approx(fps, rel=1e-12)
    rotation = clip.keys[0].rotation
    assert rotation is not None
    assert rotation.times == pytest.approx(np.arange(3) * float(seconds))
    assert rotation.times == pytest.approx(np.arange(3) / fps, abs=clip.time_step)


def test_bvh_positions_end_where_those_of_the_viewer_do() -> None:
    scene = SECOND_LIFE_BVH.to_scene(SECOND_LIFE_BVH.read(made.BVH.replace(b"0.0 2.5", b"0.0 250")), "motion")
    (pelvis,) = (track.translation for track in scene.clips[0].keys if track.translation is not None)
    assert pelvis.values.max() == 5
    assert "mPelvis" in scene.warnings[0]


def test_far_joints_are_refused_by_name_and_time() -> None:
    position = np.zeros((2, 3, 3))
    position[1, 2] = (0.0, 0.0, 6.0)
    motion: Any = SimpleNamespace(
        position=position, times=np.array((0.0, 0.5, 1.25)), names=["mPelvis", "mHead"], bones={"mHead": "Skull"}
    )
    with pytest.raises(ExportError, match=r"^'Fly': 'Skull' is more than 5 m from its place at 1\.25 s") as caught:
        document_builder.refuse_far(motion, [True, True], Clip("Fly", 30.0, 3))
    (found,) = caught.value.findings
    assert found.subjects() == [("Fly", "animation"), ("Skull", "bone")]


def test_bvh_of_other_figures_is_not_recognised() -> None:
    from meshferry.io_formats.second_life.avatar import joints
    from meshferry.io_formats.second_life.bvh import format as bvh_format

    assert set(bvh_format.ROOTS) == {joints.ROOT, *joints.table()[joints.ROOT].aliases}
    assert registry.by_content(made.BVH, len(made.BVH)) is SECOND_LIFE_BVH
    data = made.BVH.replace(b"ROOT hip", b"ROOT Hips")
    with pytest.raises(FormatError, match=r"its root is 'Hips', not 'hip'; .*Motion Capture"):
        registry.by_content(data, len(data))


def turned(degrees: float, axis: tuple[float, float, float]) -> Array:
    half = math.radians(degrees) / 2
    return np.array((math.cos(half), *(math.sin(half) * np.array(axis))))


def test_wide_turns_between_opposite_signs_keep_their_speed() -> None:
    """Viewers interpolate spherically between quaternions with a negative product."""
    a, b = turned(170, (0, 0, 1)), turned(170, (0, 0, -1))  # 20 degrees apart: no key is needed
    c = turned(140, (math.sqrt(0.5), math.sqrt(0.5), 0))
    d = turned(150, (-math.sqrt(0.9), math.sqrt(0.1), 0))
    for one, other, count in ((a, b, 2), (c, d, 3)):
        rows = [(time, *codec.rotation_codes_of(value[None])[0]) for time, value in ((0, one), (65535, other))]
        data = made.header() + made.joint(b"mHead", rotation=made.keys(*rows)) + made.ending()
        document = codec.read(data)
        keys = animation_keys.rotation_keys(document, document.joints[0])
        assert len(keys.times) == count
        cosine = -float(one @ other)
        angle = math.acos(cosine)
        shares = np.linspace(0, 1, 21)
        viewer = np.array(
            [(math.sin((1 - s) * angle) * one - math.sin(s * angle) * other) / math.sin(angle) for s in shares]
        )
        shown = clips.values_at(keys, shares * 2.0)
        assert np.degrees(animation_keys.distances(shown, viewer)).max() < 1.1


def test_attachment_points_on_the_screen_are_joints() -> None:
    turn = made.keys((0, made.ZERO, made.ZERO, made.ZERO))
    rows = made.joint(b"Center 2", rotation=turn) + made.joint(b"mHead", rotation=turn)
    document = codec.read(made.header(joints=2) + rows + made.ending())
    assert not SECOND_LIFE_ANIMATION.check(document)
    scene = SECOND_LIFE_ANIMATION.to_scene(document, "screen")
    assert [text for text in scene.warnings if "on the screen" in text and "Center 2" in text]


@pytest.mark.parametrize(
    ("frames", "rate"), [((0, 1, 4, 9), 10.0), ((0, 1.5, 4, 9), 20.0), ((0, 1.37, 4, 9), 0.0), ((0, 9), 0.0)]
)
def test_frame_rate_of_keys(frames: tuple[float, ...], rate: float) -> None:
    """Times in tenths of a second of an animation of 0.9 s."""
    rows = [(round(frame / 9 * 65535), made.ZERO, made.ZERO, made.ZERO) for frame in frames]
    data = made.header(duration=0.9) + made.joint(b"mHead", rotation=made.keys(*rows)) + made.ending()
    assert animation_keys.frame_rate(codec.read(data)) == rate


def test_times_of_the_old_version_have_a_limit() -> None:
    rows = made.keys((0, 0, 0, 0), (3e38, 0, 0, 90), kind="4f")
    document = codec.read(made.header(version=(0, 1)) + made.joint(b"mHead", rotation=rows) + made.ending())
    assert animation_keys.rotation_keys(document, document.joints[0]).times.tolist() == [0.0, 1e6]


@pytest.mark.parametrize("frames", [b"inf", b"nan", b"1e999", b"2.5", b"0", b"-1"])
def test_frame_counts_that_are_not_whole_numbers(frames: bytes) -> None:
    with pytest.raises(FormatError, match=r"Line \d+: the number of frames"):
        SECOND_LIFE_BVH.read(made.BVH.replace(b"Frames: 4", b"Frames: " + frames))


@pytest.mark.parametrize("names", [(b"mHead", b"mHead"), (b"head", b"mHead")])
def test_joints_listed_twice_are_reported(names: tuple[bytes, bytes]) -> None:
    turn = made.keys((0, 1000, 40000, made.ZERO))
    data = made.header(joints=2) + b"".join(made.joint(name, rotation=turn) for name in names) + made.ending()
    assert ["mHead" in warning for warning in SECOND_LIFE_ANIMATION.read(data).warnings] == [True]


@pytest.mark.parametrize(
    ("constraint", "is_refused"),
    [
        (made.constraint(chain=1), False),
        (made.constraint(chain=2), True),  # the shoulder is not in the file
        (made.constraint(source=b"HAND"), True),
        (made.constraint(source=b"mWristLeft"), True),
        (made.constraint(target=b"FLOOR"), True),
        (made.constraint(target=b"PELVIS\0old"), False),
    ],
)
def test_constraints_that_viewers_refuse(constraint: bytes, is_refused: bool) -> None:
    turn = made.keys((0, made.ZERO, made.ZERO, made.ZERO))
    rows = made.joint(b"mWristLeft", rotation=turn) + made.joint(b"mElbowLeft", rotation=turn)
    document = SECOND_LIFE_ANIMATION.read(made.header(joints=2) + rows + made.ending(constraint))
    messages = [finding.message for finding in SECOND_LIFE_ANIMATION.check(document)]
    assert any(message.startswith("viewers refuse 1 constraint") for message in messages) == is_refused
