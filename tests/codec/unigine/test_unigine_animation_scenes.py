"""UNIGINE animations as scenes: where joints stand, and what is written when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unigine_bytes as made
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.messages import errors_of, warnings_of
from meshferry.io_formats.core.scene import Clip, Joint, Scene, Skeleton, TransformTrack
from meshferry.io_formats.unigine import frames, joint_tracks
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from numpy.testing import assert_allclose, assert_array_equal

TURNED = {"use_turn": True}
HALF = np.sqrt(0.5)


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "unigine"


def read_scene(path: Path, **options: Any) -> Scene:
    return UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(path.read_bytes()), path.stem, options)


def matrix(translation: Any, rotation: Any, scale: Any) -> Any:
    """Return T R S of one transform; the quaternion is (w, x, y, z) and of unit length."""
    w, x, y, z = (float(value) for value in rotation)
    turned = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    whole = np.eye(4)
    whole[:3, :3] = np.array(turned) @ np.diag(np.asarray(scale, float))
    whole[:3, 3] = translation
    return whole


def heads(skeleton: Skeleton, clip: Clip | None = None, frame: int = 0) -> dict[str, Any]:
    """Return where the joints stand, at rest or in a frame, by multiplying matrices down the chains."""
    local = [matrix(joint.translation, joint.rotation, joint.scale) for joint in skeleton.joints]
    for track in clip.transforms if clip else ():
        local[track.target] = matrix(track.translation[frame], track.rotation[frame], track.scale[frame])
    found = {}
    for number, joint in enumerate(skeleton.joints):
        world, parent = local[number], joint.parent
        while parent >= 0:
            world, parent = local[parent] @ world, skeleton.joints[parent].parent
        found[joint.name] = world[:3, 3]
    return found


def farthest(found: dict[str, Any], truth: dict[str, Any]) -> float:
    assert found.keys() == truth.keys()
    return max(float(np.linalg.norm(found[name] - np.array(truth[name]))) for name in truth)


def test_the_robot_stands_where_its_fbx_says(folder: Path) -> None:
    truth = json.loads((folder / "ms12_robot_truth.json").read_text())
    scene = read_scene(folder / "an10_robot_idle.anim")
    skeleton, clip = scene.skeletons[0], scene.clips[0]
    assert farthest(heads(skeleton), truth["rest_heads"]) < truth["tolerance"]["rest"]
    for frame, pose in truth["pose_heads"].items():
        apart = farthest(heads(skeleton, clip, int(frame)), pose)
        assert apart < truth["tolerance"]["pose"]
        assert apart < 2e-4  # what an exact decode reaches; the tolerance would let some slips pass


def test_the_robot_turned_stands_turned(folder: Path) -> None:
    plain, turned = (read_scene(folder / "an10_robot_idle.anim", **options) for options in ({}, TURNED))
    for frame in (None, 0, 77):
        clips = (plain.clips[0], turned.clips[0]) if frame is not None else (None, None)
        there = heads(plain.skeletons[0], clips[0], frame or 0)
        found = heads(turned.skeletons[0], clips[1], frame or 0)
        assert farthest(found, {name: head * (-1, -1, 1) for name, head in there.items()}) < 1e-6


def test_what_a_scene_says(folder: Path) -> None:
    scene = read_scene(folder / "an10_robot_idle.anim")
    assert (scene.name, scene.nodes, scene.warnings) == ("an10_robot_idle", [], [])
    (skeleton,), (clip,) = scene.skeletons, scene.clips
    assert (skeleton.has_bind, len(skeleton.joints)) == (True, 12)
    assert (clip.name, clip.fps, clip.frame_count) == ("robot_idle", 0, 120)
    assert [(track.skeleton, track.target) for track in clip.transforms] == [(0, number) for number in range(12)]
    for track in clip.transforms:
        for values, width in ((track.translation, 3), (track.rotation, 4), (track.scale, 3)):
            assert (values.shape, values.dtype, values.flags.c_contiguous) == ((120, width), np.float32, True)
        assert_allclose(np.linalg.norm(track.rotation, axis=1), 1, rtol=0, atol=3e-7)
    assert read_scene(folder / "an10_robot_idle.anim", assumed_frame_rate=25.0).clips[0].fps == 25


def test_a_file_without_bind_pose_stands_as_its_first_frame(folder: Path) -> None:
    scene = read_scene(folder / "an13_jump.anim", assumed_frame_rate=25.0)
    (skeleton,), (clip,) = scene.skeletons, scene.clips
    assert (skeleton.has_bind, len(skeleton.joints), len(clip.transforms)) == (False, 25, 20)
    assert skeleton.path == "guid://" + skeleton.guid
    assert (clip.name, clip.fps, clip.frame_count, clip.root_motion) == ("an13_jump", 30, 27, False)
    moved = {track.target for track in clip.transforms}
    for track in clip.transforms:
        assert skeleton.joints[track.target].translation == tuple(track.translation[0].tolist())
        assert skeleton.joints[track.target].rotation == tuple(track.rotation[0].tolist())
    for number in set(range(25)) - moved:
        assert skeleton.joints[number] == Joint(skeleton.joints[number].name, skeleton.joints[number].parent)


def test_without_frames(folder: Path) -> None:
    scene = read_scene(folder / "an11_zero_frames.anim")
    assert (scene.clips[0].frame_count, len(scene.clips[0].transforms)) == (0, 52)
    assert scene.clips[0].transforms[0].rotation.shape == (0, 4)
    document = UNIGINE_ANIMATION.read((folder / "an11_zero_frames.anim").read_bytes())
    assert "no frames" in str(warnings_of(UNIGINE_ANIMATION.check(document))[0])


@pytest.mark.parametrize("options", [{}, TURNED])
def test_later_files_come_back_to_the_byte_through_a_scene(folder: Path, options: dict[str, Any]) -> None:
    names = sorted(path.name for path in folder.glob("an1[13]_*.anim"))
    assert len(names) == 6
    for name in names:
        scene = read_scene(folder / name, **options)
        version = UNIGINE_ANIMATION.read((folder / name).read_bytes()).version.upper()
        (part,) = UNIGINE_ANIMATION.files_of(scene)
        document = UNIGINE_ANIMATION.from_scene(part, {"animation_version": version, **options})
        assert UNIGINE_ANIMATION.write(document) == (folder / name).read_bytes(), name
        assert part.warnings == []


def test_an10_comes_back_within_its_steps_through_a_scene(folder: Path) -> None:
    for path in sorted(folder.glob("an10_*.anim")):
        ours = UNIGINE_ANIMATION.from_scene(read_scene(path, **TURNED), {"animation_version": "AN10", **TURNED})
        theirs = UNIGINE_ANIMATION.read(path.read_bytes())
        assert (ours.name, ours.frames.mask) == (theirs.name, theirs.frames.mask)
        assert ours.bones == theirs.bones
        assert_array_equal(ours.transforms, theirs.transforms)
        assert_array_equal(ours.frames.flags, theirs.frames.flags)
        assert_array_equal(ours.frames.translation, theirs.frames.translation)
        assert_array_equal(ours.frames.scale, theirs.frames.scale)
        assert np.abs(ours.frames.rotation.astype(int) - theirs.frames.rotation).max() <= 1
        assert_array_equal(ours.frames.translation_range[0], theirs.frames.translation_range[0])
        step = theirs.frames.translation_range[1] / 65535
        assert (np.abs(ours.frames.translation_range[1] - theirs.frames.translation_range[1]) <= step).all()


def test_frames_inside_meshes_come_back_through_tracks(folder: Path) -> None:
    masks = []
    for path in sorted(folder.glob("ms1*.mesh")):
        document = UNIGINE_MESH.read(path.read_bytes())
        for animation in document.animations:
            stored = animation.frames
            joints = [Joint(bone.name, bone.parent) for bone in document.bones]
            tracks = joint_tracks.to_tracks(stored, joints)
            ours = joint_tracks.delta_frames(Clip("x", 0, stored.frame_count, tracks), Skeleton("x", joints))
            # Scale that is some millionths off is left out: the arms, whose mask is 7f, have no other.
            scaled = np.abs(stored.scale - 1).max() > 1e-5
            masks.append((stored.mask, ours.mask))
            kept = stored.mask if scaled else stored.mask & 0x0F
            assert ours.mask == kept
            assert_array_equal(ours.flags, stored.flags & kept)
            assert_array_equal(ours.translation, stored.translation)
            assert_allclose(ours.scale, stored.scale, rtol=0, atol=0 if scaled else 1e-5)
            assert np.abs(ours.rotation.astype(int) - stored.rotation).max() <= 1
    assert sorted(masks) == [(7, 7), (7, 7), (15, 15), (15, 15), (0x7F, 0x0F), (0x7F, 0x7F)]


# -- from scenes made by hand ---------------------------------------------------------------------


def track(target: int, translation: Any, rotation: Any, scale: Any) -> TransformTrack:
    values = [np.array(rows, np.float32) for rows in (translation, rotation, scale)]
    return TransformTrack(target, *values, skeleton=0)


def scene_of(*tracks: TransformTrack, joints: list[Joint] | None = None, fps: float = 30, **clip: Any) -> Scene:
    joints = joints or [Joint("root"), Joint("arm", 0), Joint("hand", 1)]
    count = len(tracks[0].translation) if tracks else 0
    return Scene("x", [], [Skeleton("rig", joints)], [Clip("move", fps, count, list(tracks), **clip)])


def document_of(scene: Scene, version: str, **options: Any) -> Any:
    return UNIGINE_ANIMATION.from_scene(scene, {"animation_version": version, **options})


REST = (1, 0, 0, 0)
TURN_X = (HALF, HALF, 0, 0)


def test_a_flag_stands_for_what_is_not_default() -> None:
    scene = scene_of(
        track(
            2,
            [(0, 0, 0), (0, 0, 5e-7), (0, 0, 2e-6), (0, 0, 0)],
            [REST, TURN_X, REST, (-1, 0, 0, 0)],
            [(1, 1, 1), (1, 1, 1), (1, 1, 1.0000005), (1, 0.5, 1)],
        )
    )
    for version in ("AN11", "AN13"):
        stored = document_of(scene, version).frames
        assert stored.bone_indices.tolist() == [2]
        # Changes below 1e-6 are not stored. The quaternion (-1, 0, 0, 0) rotates nothing, but is not the default.
        assert stored.flags.tolist() == [[0], [2], [1], [6]]
        assert stored.translation[1, 0].tolist() == [0, 0, 0]
        assert stored.scale[3, 0].tolist() == [1, 0.5, 1]
        assert_allclose(stored.rotation[1, 0], (HALF, 0, 0, HALF), rtol=1e-7)


def test_a_delta_stands_for_what_changed() -> None:
    scene = scene_of(
        track(0, [(1, 2, 3), (1, 2, 3), (1, 4, 3)], [REST, REST, TURN_X], np.ones((3, 3))),
        track(1, [(0, 0, 0), (0, 0, 1), (0, 0, 1)], [TURN_X, TURN_X, TURN_X], np.ones((3, 3))),
    )
    clip, skeleton = scene.clips[0], scene.skeletons[0]
    for stored in (joint_tracks.delta_frames(clip, skeleton), document_of(scene, "AN10").frames):
        assert stored.mask == 0x0F
        assert stored.flags.tolist() == [[0x0F, 0x0F], [0, 4], [0x0A, 0]]
        assert stored.rotation[0, 1].tolist() == [23169, 0, 0, 23169]  # truncated, not rounded
        assert stored.rotation[0, 0].tolist() == [0, 0, 0, 32767]
    size = len(frames.write_embedded_frames(joint_tracks.delta_frames(clip, skeleton)))
    assert size == 1 + 4 + 1 + 1 + 2 * (1 + 12 + 8) + (1 + 1 + 4) + (1 + 4 + 8 + 1)


@pytest.mark.parametrize(
    ("change", "mask"),
    [
        ({}, 0),
        ({"translation": (0, 1e-3, 0)}, 0x07),
        ({"rotation": TURN_X}, 0x08),
        ({"rotation": (-1, 0, 0, 0)}, 0),
        ({"scale": (1, 1, 1.001)}, 0x70),
        ({"translation": (0, 5e-7, 0), "rotation": (1, 1e-5, 0, 0), "scale": (1, 1, 1.000005)}, 0),
    ],
)
def test_the_mask_names_what_anything_uses(change: dict[str, Any], mask: int) -> None:
    used = {"translation": (0, 0, 0), "rotation": REST, "scale": (1, 1, 1), **change}
    scene = scene_of(track(0, [(0, 0, 0), used["translation"]], [REST, used["rotation"]], [(1, 1, 1), used["scale"]]))
    assert document_of(scene, "AN10").frames.mask == mask
    # The channel is written even at rest: whether the engine fills an absent one with the rest value is unknown.
    still = scene_of(track(0, [(0, 0, 0)], [REST], [(1, 1, 1)]), joints=[Joint("root", -1, **used)])
    assert document_of(still, "AN10").frames.mask == mask


def test_an10_is_rounded_as_the_engine_does() -> None:
    scene = scene_of(track(0, [(-1, 5, 0), (2, 5, 0), (0.5, 5, 0)], [REST] * 3, np.ones((3, 3))))
    stored = document_of(scene, "AN10").frames
    assert stored.translation_range.tolist() == [[-1, 5, 0], [4, 1, 1]]  # the largest range and 1
    assert stored.translation[:, 0, 0].tolist() == [0, 49151, 24575]  # 49151.25 and 24575.6 truncated
    assert stored.scale_range.tolist() == [[1e9] * 3, [-2e9] * 3]
    document = document_of(scene, "AN10")
    back = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(UNIGINE_ANIMATION.write(document)), "x")
    assert_allclose(back.clips[0].transforms[0].translation[:, 0], [-1, 2, 0.5], rtol=0, atol=4 / 65535)


def test_versions_hold_what_they_can() -> None:
    scene = scene_of(track(1, [(1, 2, 3)], [TURN_X], [(1, 1, 1)]), root_motion=True, fps=24)
    scene.skeletons[0].guid, scene.skeletons[0].path = made.GUID, "guid://" + made.GUID
    document = document_of(scene, "AN13")
    assert scene.warnings == []
    assert (document.fps, document.root_motion) == (24, True)
    assert (document.skeleton_guid, document.skeleton_path) == (made.GUID, "guid://" + made.GUID)
    assert [bone.name for bone in document.bones] == ["root", "arm", "hand"]
    assert document.frames.bone_indices.tolist() == [1]
    again = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(UNIGINE_ANIMATION.write(document)), "y")
    assert (again.clips[0].fps, again.clips[0].root_motion) == (24, True)
    assert (again.skeletons[0].guid, again.skeletons[0].path) == (made.GUID, "guid://" + made.GUID)
    document_of(scene, "AN11")
    assert len(scene.warnings) == 1
    assert "root motion" in scene.warnings[0]


def test_rates_become_whole_and_that_is_said() -> None:
    rest = track(0, [(0, 0, 0)], [REST], [(1, 1, 1)])
    for given, written, said in ((0, 30, "no frame rate"), (23.976, 24, "23.976 frames"), (0.2, 1, "0.2 frames")):
        scene = scene_of(rest, fps=given)
        assert document_of(scene, "AN13").fps == written
        assert said in scene.warnings[0]
        quiet = scene_of(rest, fps=given)
        document_of(quiet, "AN11")
        assert quiet.warnings == []


def test_a_missing_bind_pose_is_said() -> None:
    scene = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(made.AN12), "x")
    assert scene.skeletons[0].joints[1].translation == (1, 2, 3)
    document = document_of(scene, "AN11")
    assert "without a bind pose" in scene.warnings[0]
    assert document.transforms[1, :3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("version", ["AN10", "AN11"])
def test_a_rate_that_the_source_states_is_not_lost_silently(version: str) -> None:
    scene = UNIGINE_ANIMATION.to_scene(UNIGINE_ANIMATION.read(made.AN12), "walk")
    document_of(scene, version)
    assert f"Animation 'walk' has 24 frames a second, which {version.lower()} cannot store; an13 can" in scene.warnings


def test_a_file_for_each_clip_and_skeleton() -> None:
    rows = ([(0, 0, 0)], [REST], [(1, 1, 1)])
    moves = [TransformTrack(0, *(np.array(row, np.float32) for row in rows), skeleton=index) for index in (0, 1, None)]
    scene = Scene("all", [], [Skeleton("a", [Joint("j")]), Skeleton("b", [Joint("k")])])
    scene.clips = [Clip("one", 30, 1, moves[:1]), Clip("two", 30, 1, moves), Clip("nodes", 30, 1, moves[2:])]
    scene.format = "mine"
    parts = UNIGINE_ANIMATION.files_of(scene)
    assert [part.name for part in parts] == ["one", "two_a", "two_b"]
    assert [(part.format, part.materials) for part in parts] == [("mine", [])] * 3
    assert [UNIGINE_ANIMATION.from_scene(part).bones[0].name for part in parts] == ["j", "j", "k"]
    for broken, reason in ((scene, "3 animations"), (Scene("none"), "no animation")):
        with pytest.raises(ExportError, match=reason):
            UNIGINE_ANIMATION.from_scene(broken)
    still = Scene("still", [], [Skeleton("a", [Joint("j")])], [Clip("none", 30, 0)])
    document = UNIGINE_ANIMATION.from_scene(still)
    assert (document.frames.frame_count, len(document.frames.bone_indices)) == (0, 0)


@pytest.mark.parametrize("version", ["AN10", "AN11", "AN13"])
def test_what_cannot_be_written_is_refused(version: str) -> None:
    rest = track(0, [(0, 0, 0)], [REST], [(1, 1, 1)])
    cases = [
        (scene_of(track(0, [(0, float("nan"), 0)], [REST], [(1, 1, 1)])), "NaN or infinite"),
        (scene_of(rest, rest), "twice"),
        (scene_of(rest, track(1, [(0, 0, 0)] * 2, [REST] * 2, [(1, 1, 1)] * 2)), "2 frames instead of 1"),
        (scene_of(track(9, [(0, 0, 0)], [REST], [(1, 1, 1)])), "lacks"),
        (scene_of(rest, joints=[Joint("bad", -1, (float("inf"), 0, 0))]), "Bone 'bad'"),
        (scene_of(rest, joints=[Joint(str(number)) for number in range(32769)]), "32,769 bones"),
    ]
    for scene, reason in cases:
        with pytest.raises(ExportError, match=reason):
            UNIGINE_ANIMATION.write(document_of(scene, version))


def test_checks() -> None:
    document = document_of(scene_of(track(0, [(0, 0, 0)], [REST], [(1, 1, 1)])), "AN13")
    assert ["no skeleton" in str(found) for found in UNIGINE_ANIMATION.check(document)] == [True]
    document.fps = 0
    assert "frame rate is 0" in str(errors_of(UNIGINE_ANIMATION.check(document))[0])
    empty = document_of(Scene("x", [], [Skeleton("a")], [Clip("c", 30, 0)]), "AN11")
    assert "no bones" in str(errors_of(UNIGINE_ANIMATION.check(empty))[0])
    twice = document_of(scene_of(track(0, [(0, 0, 0)], [REST], [(1, 1, 1)]), joints=[Joint("a"), Joint("a")]), "AN11")
    assert "used twice" in str(warnings_of(UNIGINE_ANIMATION.check(twice))[0])
