"""The avatar's skeleton and the skeletons of files against the table, read by the tests themselves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import avatar_rest
import numpy as np
import pytest
import second_life_oracle as oracle
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.avatar import joints as avatar_joints
from meshferry.io_formats.second_life.avatar import skeletons

RIGGED = (
    "benthic_rigged22.mesh",
    "hippolyzer_testslm.mesh",
    "synthetic/synth_rig_cv.llmesh",
    "synthetic/synth_rig_overrides.llmesh",
)
ARMS = [f"m{joint}{side}" for joint in ("Collar", "Shoulder", "Elbow", "Wrist") for side in ("Left", "Right")]
ELSEWHERE = {
    "benthic_rigged22.mesh": {"mSkull", *ARMS},
    "synthetic/synth_rig_overrides.llmesh": {"mTorso", "mChest", "BELLY", "mHandThumb1Left"},
}
"""Joints that files bind elsewhere than the table has them: the one has other arms, the other moves joints, and with
them what hangs on those."""
Array = np.ndarray[Any, Any]


def kinds(*wanted: str) -> list[str]:
    return [name for name, row in avatar_rest.rows().items() if row["kind"] in wanted]


def heads_of(skeleton: sc.Skeleton) -> dict[str, Array]:
    """Return where joints lie; what joints hang on is neither turned nor scaled."""
    found: dict[int, Array] = {}
    for number, joint in enumerate(skeleton.joints):
        if joint.parent >= 0:
            above = skeleton.joints[joint.parent]
            assert (above.rotation, above.scale) == ((1, 0, 0, 0), (1, 1, 1))
        found[number] = found.get(joint.parent, np.zeros(3)) + np.array(joint.translation)
    return {joint.name: found[number] for number, joint in enumerate(skeleton.joints)}


def turned_by(rotation: tuple[float, float, float, float], vector: Array) -> Array:
    """Return a vector turned by a unit quaternion (w, x, y, z), by Rodrigues' formula."""
    w, axis = rotation[0], np.array(rotation[1:])
    turned: Array = vector + 2 * np.cross(axis, np.cross(axis, vector) + w * vector)
    return turned


def rigged(samples: Path, name: str, **options: Any) -> sc.Scene:
    data = (samples / "secondlife" / name).read_bytes()
    return SECOND_LIFE_MESH.to_scene(SECOND_LIFE_MESH.read(data), "thing", options)


# -- the avatar ---------------------------------------------------------------------------------


def test_the_avatar_has_all_bones_and_collision_volumes_where_the_table_has_them() -> None:
    skeleton = skeletons.avatar_skeleton()
    assert [joint.name for joint in skeleton.joints] == kinds("bone", "collision_volume")
    assert (len(kinds("bone")), len(kinds("collision_volume"))) == (133, 26)
    heads = avatar_rest.heads()
    for name, head in heads_of(skeleton).items():
        np.testing.assert_allclose(head, avatar_rest.in_blender(heads[name]), atol=1e-12, err_msg=name)
    rows, aligned = avatar_rest.rows(), skeletons.aligned_joints()
    for joint in skeleton.joints:
        parent = skeleton.joints[joint.parent].name if joint.parent >= 0 else ""
        assert parent == rows[joint.name]["parent"]
        x, y, z = avatar_rest.three(rows[joint.name], "pos").tolist()
        assert joint.translation == (y, -x, z), "to the last digit"
        assert joint.tail is not None
        assert (joint.up is not None) == (joint.name in aligned)
        if joint.up is None:
            expected = avatar_rest.in_blender(avatar_rest.three(rows[joint.name], "end"))
            np.testing.assert_allclose(joint.tail, expected, atol=1e-12, err_msg=joint.name)
    assert (skeleton.bone_axes, skeleton.inherits_scale) == ("AVATAR", False)


def test_bones_along_the_axes_do_not_depend_on_the_rests_of_a_file() -> None:
    """Actions fit all avatars, so a knee that a file moves does not turn the thigh; its length may change."""
    rests = {name: np.array(avatar_joints.rest_matrices()[name]) for name in ("mHipLeft", "mKneeLeft")}
    rests["mKneeLeft"][:3, 3] += (0.3, 0.0, 0.1)
    joints = {joint.name: joint for joint in skeletons.skeleton_of("", list(avatar_rest.rows()), rests).joints}
    np.testing.assert_allclose(joints["mHipLeft"].tail, (0.0, 0.0, -0.391), atol=1e-9)
    np.testing.assert_allclose(joints["mHipLeft"].up, (0.0, -1.0, 0.0), atol=1e-9)
    rests["mKneeLeft"][:3, 3] = rests["mHipLeft"][:3, 3] + (0.3, 0.0, 0.4)
    joints = {joint.name: joint for joint in skeletons.skeleton_of("", list(avatar_rest.rows()), rests).joints}
    np.testing.assert_allclose(joints["mHipLeft"].tail, (0.0, 0.0, -0.5), atol=1e-9)


def test_the_avatar_may_have_fewer_or_more_joints() -> None:
    assert len(skeletons.avatar_skeleton(with_collision_volumes=False).joints) == 133
    everything = skeletons.avatar_skeleton(with_attachments=True)
    assert [joint.name for joint in everything.joints] == kinds("bone", "collision_volume", "attachment")
    assert {joint.group for joint in everything.joints} >= {"Collision Volumes", "Attachment Points", "Torso", "Legs"}


@pytest.mark.parametrize(
    ("used", "shown"),
    [
        ((), set()),
        (("mPelvis", "mTail1"), {"Tail"}),
        (("mWing1Left", "mHindLimb1Right", "BELLY"), {"Wing", "Limb", "Collision Volumes"}),
    ],
)
def test_groups_of_few_models_are_hidden_unless_they_are_used(used: tuple[str, ...], shown: set[str]) -> None:
    hidden = {"Wing", "Tail", "Limb", "Collision Volumes"} - shown
    assert skeletons.avatar_skeleton(used=used).hidden_groups == hidden
    rests = np.tile(np.identity(4), (len(used), 1, 1))
    bound, _places = skeletons.bound_skeleton("rig", used, rests, whole_avatar=True, rest_of_file=False)
    assert bound.hidden_groups == hidden


def test_collision_volumes_are_turned_and_scaled_as_the_table_says() -> None:
    """The three axes of each, as the rest matrix has them, in Blender's space."""
    worlds = avatar_rest.worlds()
    volumes = set(kinds("collision_volume"))
    seen = 0
    for joint in skeletons.avatar_skeleton().joints:
        if joint.name not in volumes:
            assert (joint.rotation, joint.scale) == ((1, 0, 0, 0), (1, 1, 1))
            continue
        seen += 1
        assert math.isclose(np.linalg.norm(joint.rotation), 1.0)
        for axis in np.identity(3):
            # A point of the volume's own space, which is turned as the avatar is.
            expected = avatar_rest.in_blender(axis @ worlds[joint.name][:3, :3])
            own = avatar_rest.in_blender(axis)
            found = turned_by(joint.rotation, own * np.array(joint.scale))
            np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=joint.name)
    assert seen == 26


def test_the_avatar_faces_the_front_view_with_its_left_to_the_right() -> None:
    heads = heads_of(skeletons.avatar_skeleton())
    assert heads["mWristLeft"][0] > 0.5
    assert heads["mWristRight"][0] < -0.5
    assert heads["mToeLeft"][1] < heads["mAnkleLeft"][1] - 0.1


def test_every_name_and_alias_of_the_table_is_known() -> None:
    for name, row in avatar_rest.rows().items():
        for spelled in (name, name.replace(" ", "_"), *row["aliases"].split()):
            known = avatar_joints.canonical(spelled)
            assert known == name or spelled in avatar_rest.rows(), spelled
    assert avatar_joints.canonical("mNothing") is None


# -- rigs of files ------------------------------------------------------------------------------


def common_shift(asset: oracle.Asset) -> Array:
    """Return the offset of a file's whole rig from the avatar: that of its pelvis."""
    assert asset.skin is not None
    place: Array = np.linalg.inv(asset.skin.inverse_bind[asset.skin.joints.index("mPelvis")])[3, :3]
    away = place - avatar_rest.heads()["mPelvis"]
    return away if np.linalg.norm(away) > 0.01 else np.zeros(3)


@pytest.mark.parametrize("whole", ["AVATAR", "USED"])
@pytest.mark.parametrize("name", RIGGED)
def test_joints_rest_where_the_file_binds_them(samples: Path, name: str, whole: str) -> None:
    asset = oracle.decode((samples / "secondlife" / name).read_bytes())
    assert asset.skin is not None
    heads = heads_of(rigged(samples, name, skeleton_joints=whole).skeletons[0])
    table = avatar_rest.heads()
    shift = common_shift(asset)
    for joint, inverse in zip(asset.skin.joints, asset.skin.inverse_bind, strict=True):
        bound = np.linalg.inv(inverse)[3, :3] - shift
        np.testing.assert_allclose(heads[joint], avatar_rest.in_blender(bound), atol=5e-4, err_msg=joint)
        off = np.linalg.norm(heads[joint] - avatar_rest.in_blender(table[joint]))
        assert (off < 0.005) == (joint not in ELSEWHERE.get(name, ())), joint


@pytest.mark.parametrize("name", RIGGED)
def test_joints_rest_where_the_table_has_them_when_asked(samples: Path, name: str) -> None:
    table = avatar_rest.heads()
    for joint, head in heads_of(rigged(samples, name, skeleton_rest="TABLE").skeletons[0]).items():
        np.testing.assert_allclose(head, avatar_rest.in_blender(table[joint]), atol=1e-9, err_msg=joint)


def test_joints_that_a_file_moves_take_others_along(samples: Path) -> None:
    moved = {"mTorso": (0.0, 0.0, 0.12), "mChest": (-0.015, 0.0, 0.26)}
    expected = avatar_rest.heads(moved)
    heads = heads_of(rigged(samples, "synthetic/synth_rig_overrides.llmesh").skeletons[0])
    for joint in ("mTorso", "mChest", "mNeck", "mWristLeft", "BELLY", "mHandThumb1Left", "mKneeLeft"):
        np.testing.assert_allclose(heads[joint], avatar_rest.in_blender(expected[joint]), atol=1e-6, err_msg=joint)


def test_bones_are_all_or_those_the_file_uses(samples: Path) -> None:
    name = "synthetic/synth_rig_cv.llmesh"
    everything = {joint.name for joint in rigged(samples, name).skeletons[0].joints}
    assert everything == {*kinds("bone"), "BELLY"}
    used = {joint.name for joint in rigged(samples, name, skeleton_joints="USED").skeletons[0].joints}
    assert {"mPelvis", "mTorso", "mChest", "BELLY", "mHandThumb1Left", "mWristLeft"} < used
    assert "mKneeLeft" not in used
    assert "mHandThumb2Left" not in used


@pytest.mark.parametrize("rest", ["FILE", "TABLE"])
@pytest.mark.parametrize("name", RIGGED)
def test_what_a_joint_moves_lies_near_it(samples: Path, name: str, rest: str) -> None:
    scene = rigged(samples, name, skeleton_rest=rest)
    skeleton = scene.skeletons[0]
    heads = list(heads_of(skeleton).values())
    node = scene.nodes[0]
    mesh = node.mesh
    assert mesh is not None and mesh.joint_weights is not None and mesh.joint_indices is not None
    assert node.rotation == (1.0, 0.0, 0.0, 0.0)
    points = mesh.points * np.array(node.scale) + np.array(node.translation)
    for number in np.unique(mesh.joint_indices[mesh.joint_weights > 0]):
        moved = ((mesh.joint_indices == number) & (mesh.joint_weights > 0.5)).any(axis=1)
        if moved.any():
            nearest = np.linalg.norm(points[moved] - heads[number], axis=1).min()
            assert nearest < 0.5, skeleton.joints[number].name


@pytest.mark.parametrize("name", RIGGED)
def test_left_is_where_blender_has_it(samples: Path, name: str) -> None:
    """The mean of the points that left joints move is at +X of the mean for right joints."""
    scene = rigged(samples, name)
    sides: dict[str, list[Array]] = {"Left": [], "Right": []}
    node = scene.nodes[0]
    mesh = node.mesh
    assert mesh is not None and mesh.joint_weights is not None and mesh.joint_indices is not None
    for number, joint in enumerate(scene.skeletons[0].joints):
        for side, points in sides.items():
            if joint.name.endswith(side):
                share = np.where(mesh.joint_indices == number, mesh.joint_weights, 0).max(axis=1)
                points.append(mesh.points[share > 0.5])
    left, right = (np.concatenate(points) for points in sides.values())
    if len(left) and len(right):
        assert (left.mean(axis=0) - right.mean(axis=0))[0] > 0.1
    heads = heads_of(scene.skeletons[0])
    pairs = [heads[joint] - heads[joint.replace("Left", "Right")] for joint in heads if joint.endswith("Left")]
    mean = np.mean(pairs, axis=0)
    np.testing.assert_allclose(mean / np.linalg.norm(mean), (1, 0, 0), atol=0.01)
