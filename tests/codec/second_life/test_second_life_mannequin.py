"""The mannequin: a closed mirrored mesh of quads with the proportions of an adult, around its joints."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import avatar_rest
import numpy as np
import pytest
import slow_shape
from meshferry.io_formats.second_life.avatar import joints as avatar_joints

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("make_mannequin", ROOT / "scripts" / "make_mannequin.py")
assert spec is not None and spec.loader is not None
mannequin = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = mannequin
spec.loader.exec_module(mannequin)

HEADS = {name: matrix[:3, 3] for name, matrix in avatar_joints.rest_matrices().items()}


@pytest.fixture(scope="module")
def figure() -> Any:
    return mannequin.figure()


def test_the_file_holds_the_figure(figure: Any, tmp_path: Path) -> None:
    """Other processors may round otherwise."""
    mannequin.main(tmp_path / "made.npz")
    for path in (mannequin.PATH, tmp_path / "made.npz"):
        with np.load(path) as stored:
            dense = np.zeros(figure.weights.shape)
            np.put_along_axis(dense, stored["joint_indices"].astype(int), stored["joint_weights"], axis=1)
            np.testing.assert_allclose(dense, figure.weights, atol=1e-6)
            np.testing.assert_allclose(stored["points"], figure.points, atol=1e-6)
            np.testing.assert_array_equal(stored["quads"], figure.quads)
            assert tuple(stored["joints"].tolist()) == figure.joints


def extent(points: Any, axis: int, at: float, along: int = 2) -> tuple[float, float]:
    """Return the least and the largest coordinate where the figure is cut, within 12 mm."""
    cut = points[np.abs(points[:, along] - at) < 0.012, axis]
    return float(cut.min()), float(cut.max())


def test_the_mesh_is_closed_and_mirrored(figure: Any) -> None:
    assert 6_000 < len(figure.points) <= 12_000 and 1_500 < len(figure.quads) / 4 < 3_000
    directed = np.stack([figure.quads, np.roll(figure.quads, -1, axis=1)], axis=-1).reshape(-1, 2)
    once = {tuple(edge) for edge in directed.tolist()}
    assert len(once) == len(directed) and all((b, a) in once for a, b in once)
    assert len(np.unique(figure.quads)) == len(figure.points) == len(figure.quads) + 2  # one piece, without handles
    corners = figure.points[figure.quads]
    assert (np.linalg.norm(np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]), axis=1) > 1e-7).all()
    a, b, c, d = np.moveaxis(corners, 1, 0)
    volume = ((a * np.cross(b, c)).sum() + (a * np.cross(c, d)).sum()) / 6
    assert 0.045 < volume < 0.075  # cubic metres, positive: the faces point outwards

    def rows(values: Any) -> Any:
        return sorted(map(tuple, np.round(values, 6).tolist()))

    names = [avatar_joints.other_side(name) or name for name in figure.joints]
    swapped = figure.weights[:, [figure.joints.index(name) for name in names]]
    ours, mirrored = (np.column_stack([figure.points * (1, y, 1) + 0.0, weights]) for y, weights in
                      ((1, figure.weights), (-1, swapped)))  # fmt: skip
    assert np.allclose(rows(ours), rows(mirrored), atol=2e-6)


def test_proportions_are_those_of_an_adult(figure: Any) -> None:
    low, high = figure.points.min(axis=0), figure.points.max(axis=0)
    height = high[2] - low[2]
    assert -0.01 < low[2] < 0 and abs(high[2] - 1.87) < 0.01
    middle = figure.points[np.abs(figure.points[:, 1]) < 1e-6]
    front = middle[(middle[:, 0] > 0.05) & (middle[:, 2] > HEADS["mNeck"][2])]
    assert 7.2 < height / (high[2] - front[:, 2].min()) < 7.8  # heads
    crotch = middle[:, 2].min() - low[2]
    assert 0.45 < crotch / height < 0.5
    waist = min(np.arange(1.0, 1.4, 0.01), key=lambda z: extent(figure.points, 1, z)[1])
    elbow = HEADS["mShoulderLeft"][2] - np.linalg.norm(HEADS["mElbowLeft"] - HEADS["mShoulderLeft"])
    assert abs(waist - elbow) < 0.08
    widths = {z: 2 * extent(figure.points[figure.points[:, 0] > -0.2], 1, z)[1] for z in (0.95, waist, 1.36, 1.74)}
    hips, narrowest, chest, head = widths.values()
    assert 0.32 < hips < 0.37 and 0.22 < narrowest < 0.27 and 0.27 < chest < 0.32 and 0.14 < head < 0.17
    assert abs(high[1] - HEADS["mHandMiddle3Left"][1]) < 0.03  # fingertips
    assert abs(high[0] - HEADS["mToeLeft"][0]) < 0.02  # toes


BONES = (
    ("mPelvis", "mTorso", "mChest", "mNeck", "mHead", "mSkull"),
    ("mCollarLeft", "mShoulderLeft", "mElbowLeft", "mWristLeft", "mHandMiddle1Left"),
    ("mHipLeft", "mKneeLeft", "mAnkleLeft", "mFootLeft"),
)


def test_limbs_enclose_their_bones(figure: Any) -> None:
    """Points on the bones, but near the surface of hand and foot, have solid angles of 4 pi."""
    corners = figure.points[figure.quads[:, [0, 1, 2, 0, 2, 3]]].reshape(-1, 3, 3)
    for chain in BONES:
        for first, second in itertools.pairwise(chain):
            for share in (0.0, 0.25, 0.5, 0.75, 1.0):
                to = corners - (HEADS[first] + share * (HEADS[second] - HEADS[first]))
                a, b, c = np.moveaxis(to, 1, 0)
                la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
                part = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
                angle = 2 * np.arctan2((a * np.cross(b, c)).sum(1), part).sum()
                assert abs(angle - 4 * np.pi) < 0.01, (first, second, share)


def test_weights_follow_the_bones(figure: Any) -> None:
    assert np.allclose(figure.weights.sum(axis=1), 1.0) and (figure.weights >= 0).all()
    volumes = [name for name in figure.joints if avatar_joints.table()[name].is_collision_volume]
    assert len(volumes) == 7 + 2 * 8
    joints = dict(zip(figure.joints, figure.weights.T, strict=True))
    for bone, volume in (("mElbowLeft", "L_LOWER_ARM"), ("mKneeLeft", "L_LOWER_LEG"), ("mHead", "HEAD")):
        centre = HEADS[volume]
        near = np.linalg.norm(figure.points - centre, axis=1).argsort()[:30]
        assert (joints[bone] + joints[volume])[near].min() > 0.6, bone
        share = joints[volume][near] / (joints[bone] + joints[volume])[near]
        assert np.allclose(share, mannequin.VOLUMES[volume][1], atol=0.01), volume
    edges = mannequin.edges_of(figure.quads)[0]
    assert np.abs(figure.weights[edges[:, 0]] - figure.weights[edges[:, 1]]).max() < 0.2


def test_subdivision_is_that_of_catmull_and_clark() -> None:
    """A cube: corners go to 5/9, middles of edges to 3/4 on both axes, centres of faces stay."""
    points = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    quads = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    found, faces = mannequin.subdivided(points, quads)
    assert (len(found), len(faces)) == (26, 24)
    kinds = sorted({tuple(sorted(np.abs(point).round(6).tolist())) for point in found})
    assert kinds == [(0.0, 0.0, 1.0), (0.0, 0.75, 0.75), (0.555556, 0.555556, 0.555556)]


HEAVY = {34: 0.68, 105: 0.8, 157: 0.6, 637: 0.6, 649: 0.6, 652: 0.7, 676: 1.0, 753: 0.5, 795: 0.75}


def test_a_heavy_belly_has_no_fold(figure: Any) -> None:
    """The middle of the front is convex from the lower belly to the waist."""
    joints = {name: np.array(six) for name, six in slow_shape.joints(HEAVY).items()}
    middle = (np.abs(figure.points[:, 1]) < 1e-6) & (figure.points[:, 0] > 0.03) & (figure.points[:, 2] > 0.85)
    points, moved = figure.points[middle], np.zeros((int(middle.sum()), 3))
    for name, weight in zip(figure.joints, figure.weights[middle].T, strict=True):
        rest, scale = avatar_rest.worlds()[name], joints[name][3:]
        size = np.linalg.norm(rest[:3, :3], axis=1)
        at_rest = (points - rest[3, :3]) @ np.linalg.inv(rest[:3, :3])
        moved += weight[:, None] * (at_rest * scale @ (rest[:3, :3] / size[:, None]) + joints[name][:3])
    order = np.argsort(moved[:, 2])
    front = np.interp(np.arange(0.88, 1.14, 0.02), moved[order, 2], moved[order, 0])
    assert front.max() > 0.15
    assert np.diff(front, 2).max() < 0.0006  # metres, over 2 cm
