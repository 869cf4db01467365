"""Rotation and size of a skeleton relative to another, from the positions of their joints."""

from __future__ import annotations

import numpy as np
import pytest
from meshferry.io_formats.geometry.transforms import axis_rotations, similarity

BODY = np.array([(0, 0, 1), (0, 0, 1.5), (0.2, 0, 1.4), (0.7, 0, 1.4), (0.1, 0, 0.9), (0.1, 0.1, 0.0)], np.float64)
PARENTS = (-1, 0, 1, 2, 0, 4)


def turned(axis: int, degrees: float) -> np.ndarray:
    return axis_rotations(axis, np.radians([degrees]))[0]


@pytest.mark.parametrize(("axis", "degrees", "exact"), [(0, 90, 90), (2, 181, 180), (2, 30, 30), (1, 40, 40)])
def test_rotation_and_size(axis: int, degrees: float, exact: float) -> None:
    turn, scale = similarity(BODY, 100 * BODY @ turned(axis, degrees).T + 3, PARENTS)
    assert np.allclose(turn, turned(axis, exact), atol=1e-9)
    assert scale == pytest.approx(100)


def test_a_slight_tilt_is_no_rotation_but_the_facing_is() -> None:
    turn, _scale = similarity(BODY, BODY @ (turned(0, 1) @ turned(2, 30)).T, PARENTS)
    assert np.allclose(turn[:, 2], (0, 0, 1), atol=1e-12)
    assert np.allclose(turn, turned(2, 30), atol=0.02)


def test_a_spine_does_not_show_its_facing() -> None:
    spine = np.array([(0, 0.02, 1), (0, -0.02, 1.2), (0, -0.02, 1.4), (0, 0.02, 1.6)])
    other = spine * (1, -1, 1)
    turn, scale = similarity(spine, other, (-1, 0, 1, 2))
    assert np.allclose(turn, np.identity(3))
    assert scale == 1


def test_the_pose_at_rest_and_a_few_bones_are_not_the_size() -> None:
    lowered = BODY.copy()
    lowered[3] = BODY[2] + (0, 0, -0.5)
    lowered[5] += (0, 0.05, -0.03)
    assert similarity(BODY, lowered, PARENTS)[1] == 1
