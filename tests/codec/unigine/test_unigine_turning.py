"""Half a turn about Z: what turns, and that the way back gives the very bits."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.scene import (
    Clip,
    Joint,
    Layer,
    Mesh,
    Node,
    Scene,
    ShapeKey,
    Skeleton,
    TransformTrack,
    VertexTrack,
)
from meshferry.io_formats.unigine.space import rotate_180
from numpy.testing import assert_array_equal

RANDOM = np.random.default_rng(3)


def numbers(*shape: int) -> Any:
    values = RANDOM.normal(size=shape).astype(np.float32)
    values.reshape(-1)[:2] = 0.0, -0.0
    return values


@pytest.fixture
def scene() -> Scene:
    mesh = Mesh(
        points=numbers(3, 3),
        corner_point=np.arange(3, dtype=np.int32),
        material_index=np.zeros(1, np.int32),
        normal=Layer("normal", numbers(3, 3)),
        tangent=Layer("tangent", numbers(3, 4)),
        uvs=[Layer("UV0", numbers(3, 2))],
        shape_keys=[ShapeKey("up", numbers(3, 3), Layer("normal", numbers(3, 3)))],
    )
    # The child stands before its parent.
    joints = [
        Joint("tip", 1, (1.0, 2.0, 3.0), (0.5, 0.5, -0.5, 0.5), (1.0, 2.0, 3.0)),
        Joint("base", -1, (0.0, -0.0, 3.0), (0.1, -0.7, 0.7, -0.0), inverse_bind=numbers(4, 4)),
    ]
    tracks = [
        TransformTrack(target, numbers(2, 3), numbers(2, 4), numbers(2, 3), skeleton)
        for target, skeleton in ((0, 0), (1, 0), (0, None))
    ]
    moved = VertexTrack(0, numbers(2, 3, 3), numbers(2, 3, 3), None)
    return Scene("x", [Node("a", mesh=mesh), Node("b")], [Skeleton("s", joints)], [Clip("c", 30, 2, tracks, [moved])])


def bits(scene: Scene) -> list[Any]:
    """Return all numbers of a scene as bytes."""
    mesh, skeleton, clip = scene.nodes[0].mesh, scene.skeletons[0], scene.clips[0]
    assert mesh is not None
    arrays = [mesh.points, *(layer.values for layer in mesh.layers()), *(key.points for key in mesh.shape_keys)]
    arrays += [layer.values for key in mesh.shape_keys for layer in (key.normal, key.tangent) if layer]
    for joint in skeleton.joints:
        arrays += [np.array(joint.translation), np.array(joint.rotation), np.array(joint.scale)]
        if joint.inverse_bind is not None:
            arrays.append(joint.inverse_bind)
    for track in clip.transforms:
        arrays += [track.translation, track.rotation, track.scale]
    for moved in clip.vertices:
        arrays += [array for array in (moved.points, moved.normals, moved.tangents) if array is not None]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


def test_there_and_back_gives_the_very_bits(scene: Scene) -> None:
    before = bits(copy.deepcopy(scene))
    there = rotate_180(scene)
    assert bits(scene) == before
    changed = [one != other for one, other in zip(bits(there), before, strict=True)]
    assert sum(changed) >= 8
    assert bits(rotate_180(there, back=True)) == before
    assert bits(rotate_180(rotate_180(scene, back=True))) == before


def test_what_turns_and_what_stays(scene: Scene) -> None:
    there = rotate_180(scene)
    mesh, was = there.nodes[0].mesh, scene.nodes[0].mesh
    assert mesh is not None and was is not None and mesh.normal and was.normal and mesh.tangent and was.tangent
    assert_array_equal(mesh.points, was.points * (-1, -1, 1))
    assert_array_equal(mesh.normal.values, was.normal.values * (-1, -1, 1))
    assert_array_equal(mesh.tangent.values, was.tangent.values * (-1, -1, 1, 1))
    assert_array_equal(mesh.uvs[0].values, was.uvs[0].values)
    assert_array_equal(mesh.shape_keys[0].points, was.shape_keys[0].points * (-1, -1, 1))
    tip, base = there.skeletons[0].joints
    assert tip == scene.skeletons[0].joints[0]
    assert base.translation == (0, 0, 3)
    child, root, node = there.clips[0].transforms
    assert child is scene.clips[0].transforms[0]
    assert node is scene.clips[0].transforms[2]
    assert_array_equal(root.translation, scene.clips[0].transforms[1].translation * (-1, -1, 1))
    assert_array_equal(root.scale, scene.clips[0].transforms[1].scale)


def rotated(quaternion: Any, vector: Any) -> Any:
    w, axis = quaternion[0], np.array(quaternion[1:])
    return vector + 2 * np.cross(axis, np.cross(axis, vector) + w * np.array(vector))


@pytest.mark.parametrize("back", [False, True])
def test_a_turned_rotation_is_the_rotation_and_then_half_a_turn(scene: Scene, back: bool) -> None:
    plain = np.array([0.1, -0.5, 0.7, 0.2])
    plain /= np.linalg.norm(plain)
    scene.skeletons[0].joints[1].rotation = tuple(plain.tolist())
    found = rotate_180(scene, back=back).skeletons[0].joints[1].rotation
    for vector in np.eye(3):
        np.testing.assert_allclose(rotated(found, vector), rotated(plain, vector) * (-1, -1, 1), atol=1e-12)
    track = scene.clips[0].transforms[1]
    track.rotation = np.array([plain, plain], np.float32)
    np.testing.assert_allclose(rotate_180(scene, back=back).clips[0].transforms[1].rotation[1], found, atol=1e-6)


def test_the_inverse_of_a_turned_bind(scene: Scene) -> None:
    joint = scene.skeletons[0].joints[1]
    assert joint.inverse_bind is not None
    turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    found = rotate_180(scene).skeletons[0].joints[1].inverse_bind
    assert found is not None
    np.testing.assert_allclose(np.linalg.inv(found), turn @ np.linalg.inv(joint.inverse_bind), rtol=1e-3, atol=1e-4)
