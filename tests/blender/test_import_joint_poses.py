"""The pose formula of scaled rigs, against plain products of the file's own matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("bpy", reason="the module is in a package that needs Blender")

PARENTS = [2, 0, -1, 2, -1, 4, 3]
"""Two roots; joint 0 stands before its parent."""


def random_transforms(rng: np.random.Generator, count: int, scales: tuple[float, float]) -> tuple[Any, Any, Any]:
    place = rng.normal(size=(count, 3))
    turn = rng.normal(size=(count, 4))
    size = np.exp(rng.uniform(*np.log(scales), count))[:, None].repeat(3, 1)
    return place, turn / np.linalg.norm(turn, axis=1, keepdims=True), size


def chain(local: np.ndarray, parents: list[int], joint: int) -> np.ndarray:
    """Multiply down to a joint, by definition."""
    return local[joint] if parents[joint] < 0 else chain(local, parents, parents[joint]) @ local[joint]


@pytest.mark.parametrize("seed", range(3))
def test_posed_bones_deform_as_the_files_matrices_do(seed: int) -> None:
    from meshferry.blender_data.rigging import joint_poses

    rng = np.random.default_rng(seed)
    bind = joint_poses.matrices(*random_transforms(rng, 7, (0.1, 39.0)))
    frame = joint_poses.matrices(*random_transforms(rng, 7, (0.1, 39.0)))
    # Rest matrices that have nothing to do with the joints' axes.
    rest = joint_poses.matrices(*random_transforms(rng, 7, (1.0, 1.0)))
    space = joint_poses.PoseSpace.of(bind, PARENTS, rest)
    basis = space.left @ frame @ space.right
    np.testing.assert_allclose(space.to_local(np.arange(7), basis[:, None])[:, 0], frame, atol=1e-9, rtol=1e-9)
    for joint in range(7):
        # How Blender chains bones: the parent's pose, the relative rest transform, then the basis.
        pose, above = basis[joint], joint
        while above >= 0:
            over = PARENTS[above]
            between = np.linalg.inv(rest[over]) @ rest[above] if over >= 0 else rest[above]
            pose = between @ pose if above == joint else between @ basis[above] @ pose
            above = over
        wanted = chain(frame, PARENTS, joint) @ np.linalg.inv(chain(bind, PARENTS, joint))
        got = pose @ np.linalg.inv(rest[joint])
        np.testing.assert_allclose(got, wanted, atol=1e-7 * np.abs(wanted).max())


def test_parents_come_first_whatever_their_order() -> None:
    from meshferry.io_formats.geometry.hierarchy import parents_first

    order = parents_first(PARENTS)
    assert sorted(order) == list(range(7))
    assert all(parent < 0 or order.index(parent) < order.index(joint) for joint, parent in enumerate(PARENTS))


def test_matrices_come_apart() -> None:
    from meshferry.blender_data.rigging import joint_poses

    rng = np.random.default_rng(5)
    place, turn, size = random_transforms(rng, 50, (0.1, 39.0))
    size = size * rng.uniform(0.5, 2, (50, 3))
    found = joint_poses.decompose(joint_poses.matrices(place, turn, size))
    np.testing.assert_allclose(found[0], place)
    np.testing.assert_allclose(np.abs(np.einsum("ni,ni->n", found[1], turn)), 1, atol=1e-12)
    np.testing.assert_allclose(found[2], size)
    assert found[3].max() < 1e-12


def test_mirrored_flat_and_sheared_matrices_come_apart() -> None:
    from meshferry.blender_data.rigging import joint_poses

    mirrored = joint_poses.matrices((1, 2, 3), (1, 0.5, 0, 0), (-1, 2, 3))
    flat = joint_poses.matrices((0, 0, 0), (1, 0, 0, 0), (1, 0, 1))
    sheared = np.eye(4)
    sheared[0, 1] = 0.2
    place, turn, size, shear = joint_poses.decompose(np.stack((mirrored, flat, sheared)))
    again = joint_poses.matrices(place, turn, size)
    np.testing.assert_allclose(again[0], mirrored, atol=1e-12)
    np.testing.assert_allclose(again[1], flat, atol=1e-12)
    assert shear[0] < 1e-12 and shear[2] == pytest.approx(0.2 / np.hypot(0.2, 1))
    # The nearest rotation of a shear by s in the plane turns halfway between its axes.
    assert np.linalg.norm(again[2] - sheared) < 0.2
    rest = joint_poses.rest_matrix(np.stack((mirrored, flat, sheared)))
    np.testing.assert_allclose(np.linalg.det(rest), 1)
    np.testing.assert_allclose(rest[0, :3, 1], mirrored[:3, 1] / 2, atol=1e-12)
    np.testing.assert_allclose(rest[:, :3, 3], np.stack((mirrored, flat, sheared))[:, :3, 3])


def test_channels_of_several_bones_rebuild_their_matrices() -> None:
    """Bones 0 to 4 have uniform scales; 5 is mirrored, 6 sheared by a bind pose of unequal scales."""
    from meshferry.blender_data.rigging import joint_poses

    rng = np.random.default_rng(11)
    size = np.exp(rng.uniform(-2, 2, 7))[:, None].repeat(3, 1)
    size[6] = (1, 2, 0.5)
    bind = joint_poses.matrices(rng.normal(size=(7, 3)), rng.normal(size=(7, 4)), size)
    rest = joint_poses.matrices(*random_transforms(rng, 7, (1.0, 1.0)))
    space = joint_poses.PoseSpace.of(bind, [-1] * 7, rest)
    joints = np.array([5, 6, 0, 3, 1])
    place, turn = rng.normal(size=(5, 40, 3)), np.cumsum(rng.normal(size=(5, 40, 4)) * 0.3, axis=1)
    turn[:, ::3] *= -2  # the same rotations
    scale = np.full((5, 40, 3), 1.5)
    scale[0] *= -1
    channels = joint_poses.bone_channels(space, joints, place, turn, scale)
    basis = space.left[joints, None] @ joint_poses.matrices(place, turn, scale) @ space.right[joints, None]
    parts = [values.transpose(0, 2, 1) for values in (channels.location, channels.rotation, channels.scale)]
    # A sheared bone keeps its place alone.
    np.testing.assert_allclose(joint_poses.matrices(*parts)[[0, 2, 3, 4]], basis[[0, 2, 3, 4]], atol=1e-12, rtol=1e-12)
    np.testing.assert_allclose(parts[0], basis[..., :3, 3], atol=1e-12)
    assert (parts[2][0] < 0).all() and (parts[2][1:] > 0).all()
    assert channels.shear[1] > 0.1 and channels.shear[[0, 2, 3, 4]].max() < 1e-12
    assert (np.einsum("bfi,bfi->bf", parts[1][:, 1:], parts[1][:, :-1]) > 0).all()
