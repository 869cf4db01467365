"""Loose parts, open edges and sewn seams, against ways that go edge by edge."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.geometry import connectivity


def merged(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    """Return the least member of each thing's group, found pair by pair."""
    least = list(range(count))
    for one, other in pairs * count:
        least[one] = least[other] = min(least[one], least[other])
    return least


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.just(count), st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=15)
        )
    )
)
def test_labels(given_: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = given_
    one, other = np.array(pairs, int).reshape(-1, 2).T
    assert connectivity.labels(count, one, other).tolist() == merged(count, pairs)


def test_labels_of_a_long_chain() -> None:
    order = np.random.default_rng(1).permutation(20_000)
    assert not connectivity.labels(20_000, order[:-1], order[1:]).any()


def grid(cells: int = 3) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    u, v = np.meshgrid(np.arange(cells + 1), np.arange(cells + 1), indexing="ij")
    points = np.stack([u, v, u * v * 0.1], axis=-1).reshape(-1, 3).astype(np.float32)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    above = first + cells + 1
    triangles = np.concatenate([np.c_[first, above, above + 1], np.c_[first, above + 1, first + 1]])
    return points, triangles.astype(np.int32)


def mesh_of(points: npt.NDArray[np.float32], triangles: npt.NDArray[np.int32]) -> sc.Mesh:
    return sc.Mesh(points, triangles.reshape(-1), np.zeros(len(triangles), np.int32), ["a"])


def outline(mesh: sc.Mesh) -> set[tuple[float, ...]]:
    found = connectivity.open_points(mesh.corner_point, len(mesh.points))
    return {tuple(point) for point in mesh.points[found].tolist()}


def test_open_points_are_those_at_the_rim() -> None:
    mesh = mesh_of(*grid())
    rim = {tuple(point) for point in mesh.points.tolist() if {point[0], point[1]} & {0.0, 3.0}}
    assert outline(mesh) == rim
    points, triangles = grid()
    closed = mesh_of(points, np.concatenate([triangles, triangles[:, ::-1]]))
    assert outline(closed) == set()


def test_seams_are_sewn_and_values_go_to_the_corners() -> None:
    points, triangles = grid()
    apart = mesh_of(points[triangles.reshape(-1)], np.arange(triangles.size, dtype=np.int32).reshape(-1, 3))
    apart.normal = sc.Layer("normal", np.tile(np.float32([0, 0, 1]), (len(apart.points), 1)))
    apart.uvs = [sc.Layer("UV", np.arange(2 * len(apart.points), dtype=np.float32).reshape(-1, 2))]
    apart.joint_indices = np.zeros((len(apart.points), 1), np.int32)
    apart.joint_weights = np.ones((len(apart.points), 1), np.float32)
    made = connectivity.sewn(apart)
    assert len(made.points) == len(points)
    np.testing.assert_array_equal(made.points[made.corner_point], apart.points)
    np.testing.assert_array_equal(made.uvs[0].at_corners(made.corner_point), apart.uvs[0].values)
    assert made.normal is not None
    assert made.normal.index is None, "the same at all corners of a point"
    assert len(made.normal.values) == len(points)
    assert made.joint_weights is not None
    assert len(made.joint_weights) == len(points)
    assert outline(made) == outline(mesh_of(points, triangles))


def test_both_sides_of_a_cloth_stay_apart() -> None:
    points, triangles = grid()
    cloth = mesh_of(np.concatenate([points, points]), np.concatenate([triangles, triangles[:, ::-1] + len(points)]))
    made = connectivity.sewn(cloth)
    assert len(made.points) == 2 * len(points)
    assert len(outline(made)) == 12


def test_parts_that_touch_in_a_corner_are_one_part_but_are_not_sewn() -> None:
    points, triangles = grid()
    two = mesh_of(np.concatenate([points, -points]), np.concatenate([triangles, triangles + len(points)]))
    assert set(connectivity.parts(two).tolist()) == {0}
    assert len(connectivity.sewn(two).points) == 2 * len(points)
    moved = mesh_of(np.concatenate([points, points + 9]), np.concatenate([triangles, triangles + len(points)]))
    assert connectivity.parts(moved).tolist() == [0] * len(triangles) + [1] * len(triangles)


def test_nothing_is_nothing() -> None:
    empty = mesh_of(np.empty((0, 3), np.float32), np.empty((0, 3), np.int32))
    assert connectivity.parts(empty).shape == (0,)
    assert connectivity.sewn(empty).triangle_count == 0
    assert connectivity.open_points(empty.corner_point, 0).shape == (0,)
