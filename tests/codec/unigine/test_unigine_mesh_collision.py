"""Collision blocks: edges judged by geometry, trees by their own rules and by those that the engine made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import unigine_oracle as oracle
from meshferry.io_formats.unigine import values
from meshferry.io_formats.unigine.mesh import collision
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

# A cube, each side cut in two: 12 triangles whose diagonals are flat and whose 12 edges are convex.
CUBE = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], np.float32)
CUBE_TRIANGLES = np.array(
    [
        *((0, 2, 3), (0, 3, 1)),  # z = 0, seen from below
        *((4, 5, 7), (4, 7, 6)),  # z = 1
        *((0, 1, 5), (0, 5, 4)),  # y = 0
        *((2, 6, 7), (2, 7, 3)),  # y = 1
        *((0, 4, 6), (0, 6, 2)),  # x = 0
        *((1, 3, 7), (1, 7, 5)),  # x = 1
    ]
)


def flags_of(points: np.ndarray, triangles: np.ndarray) -> list[int]:
    return collision.edge_flags(np.asarray(points, np.float32), np.asarray(triangles, np.intp)).tolist()


def test_the_edges_of_a_cube_count_and_its_diagonals_do_not() -> None:
    # The diagonal is opposite to corner 1 in the first triangle of a side, and to corner 2 in the second.
    assert flags_of(CUBE, CUBE_TRIANGLES) == [0b101, 0b011] * 6


def test_the_edges_of_a_cube_seen_from_inside_are_concave() -> None:
    assert flags_of(CUBE, CUBE_TRIANGLES[:, ::-1]) == [0] * 12


def test_borders_count_and_bends_count_one_way() -> None:
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    triangles = [[0, 1, 2], [0, 2, 3]]
    assert flags_of(square, triangles) == [0b101, 0b011]
    for height, wanted in ((0.1, [0b101, 0b011]), (-0.1, [0b111, 0b111]), (-0.0005, [0b101, 0b011])):
        bent = square.copy()
        bent[3, 2] = height  # down: the diagonal becomes a ridge; the last by less than a twentieth of a degree
        assert flags_of(bent, triangles) == wanted


def test_edges_of_three_triangles_count() -> None:
    points = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 0]]
    assert flags_of(points, [[0, 1, 2], [0, 1, 3], [0, 1, 4]]) == [7, 7, 7]


def test_triangles_without_area_do_no_harm() -> None:
    points = np.zeros((4, 3), np.float32)
    block = collision.build(points, np.array([0, 0, 1, 1, 2, 3, 3, 3, 3, 0, 1, 2, 0, 1, 3], np.uint8))
    assert decoded(block).nodes == [(0, -1, -1, 0, 5)]
    assert decoded(collision.build(points, np.empty(0, np.uint8))).nodes == []


def decoded(block: bytes) -> oracle.Collision:
    return oracle.collision(oracle.Stream(block))


def check_tree(points: np.ndarray, triangles: np.ndarray, block: oracle.Collision) -> int:
    """Check what section 6.4 says of a tree, node by node; return the size of its largest leaf."""
    assert sorted(block.order) == [3 * number for number in range(len(triangles))]
    corners = points[triangles[np.array(block.order) // 3]]
    lows, highs = corners.min(1), corners.max(1)
    ranges: dict[int, tuple[int, int]] = {}
    largest = 0
    for number in range(len(block.nodes) - 1, -1, -1):
        axis, left, right, begin, end = block.nodes[number]
        if left < 0:
            assert (axis, right, block.splits[number]) == (0, -1, 0)
            largest = max(largest, end - begin)
        else:
            assert left == number + 1 < right
            assert (begin, end) == (0, 0)
            (begin, middle), (other, end) = ranges[left], ranges[right]
            assert middle == other
            low, high = block.boxes[number, axis], block.boxes[number, axis + 3]
            assert block.splits[number] == pytest.approx((float(low) + float(high)) / 2, abs=1e-6)
        ranges[number] = begin, end
        assert block.boxes[number, :3].tolist() == lows[begin:end].min(0).tolist()
        assert block.boxes[number, 3:].tolist() == highs[begin:end].max(0).tolist()
    assert ranges[0] == (0, len(triangles))
    return largest


def wavy(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a wavy square of 2 n² triangles."""
    grid = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2)
    points = np.c_[grid, np.sin(grid[:, 0] * 0.2) * np.cos(grid[:, 1] * 0.3)].astype(np.float32)
    first = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1)
    corners = (first, first + n + 1, first + n + 2, first, first + n + 2, first + 1)
    return points, np.stack(corners, 1).reshape(-1, 3)


@pytest.mark.parametrize("case", ["cube", "wavy", "random", "heap"])
def test_trees_keep_the_rules(case: str) -> None:
    random = np.random.default_rng(3)
    if case == "cube":
        points, triangles = CUBE, CUBE_TRIANGLES
    elif case == "wavy":
        points, triangles = wavy(40)
    else:
        points = random.normal(size=(6000, 3)).astype(np.float32)
        points[2000:] = points[:2000].repeat(2, axis=0) + random.normal(size=(4000, 3)) * 0.01
        triangles = np.arange(6000).reshape(3, 2000).T.copy()
        triangles[:, 1:] = 2000 + 2 * np.arange(2000)[:, None] + (0, 1)  # small and anywhere
    if case == "heap":  # half of it in one place: a leaf that cannot be divided
        triangles[::2] = (1, 2, 3)
    block = decoded(collision.build(points, triangles.reshape(-1)))
    largest = check_tree(points, triangles, block)
    assert 1000 <= largest < 1010 if case == "heap" else largest < 6


def test_leaves_are_as_small_as_asked() -> None:
    points, triangles = wavy(20)
    block = decoded(collision.build(points, triangles.reshape(-1), leaf_size=50))
    assert 4 <= check_tree(points, triangles, block) < 50


def test_blocks_of_real_files_are_rebuilt(samples: Path) -> None:
    """The tree to the byte; of the edges all but a few that lie at the limit of what is flat."""
    same = edges = surfaces = 0
    for path in sorted((samples / "unigine").glob("ms1[45]*.mesh")):
        for surface in UNIGINE_MESH.read(path.read_bytes()).surfaces:
            points, triangles = surface.targets[0].positions, surface.c_indices.astype(np.intp).reshape(-1, 3)
            theirs = decoded(surface.collision)
            if surfaces < 5:
                check_tree(points, triangles, theirs)
            rebuilt = collision.build(points, surface.c_indices)
            ours = decoded(rebuilt)
            skipped = len(values.encode_integer(len(triangles))) + len(triangles)
            assert rebuilt[skipped:] == surface.collision[skipped:], (path.name, surface.name)
            different = np.unpackbits(np.array(ours.edges, np.uint8) ^ np.array(theirs.edges, np.uint8))
            same += 3 * len(triangles) - int(different.sum())
            edges += 3 * len(triangles)
            surfaces += 1
    assert surfaces == 32
    assert edges == 60_564
    assert same >= 60_556
