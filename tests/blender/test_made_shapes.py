"""Boxes and convex hulls: closed, outward, around all points, of few enough points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from meshferry.io_formats.core import scene as sc

pytestmark = pytest.mark.needs_bpy

Points = npt.NDArray[np.float32]
CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float32)


def hull(points: object) -> sc.Mesh:
    from meshferry.blender_data.exporting.models.physics_hulls import convex_hull

    return convex_hull(np.asarray(points, np.float32))


def box(points: object) -> sc.Mesh:
    from meshferry.blender_data.exporting.models.physics_hulls import box

    return box(np.asarray(points, np.float32))


def triangles_of(mesh: sc.Mesh) -> npt.NDArray[np.float64]:
    return mesh.points.astype(np.float64)[mesh.corner_point].reshape(-1, 3, 3)


def volume(mesh: sc.Mesh) -> float:
    """Return the volume that the triangles enclose; negative where they look inward."""
    a, b, c = triangles_of(mesh).transpose(1, 0, 2)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def farthest_out(mesh: sc.Mesh, points: Points) -> float:
    """Return the distance of a point in front of one of the triangles."""
    a, b, c = triangles_of(mesh).transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return float((points.astype(np.float64) @ normals.T - np.einsum("ij,ij->i", normals, a)).max())


def is_closed(mesh: sc.Mesh) -> bool:
    """Tell whether each edge has two triangles that pass it in opposite ways."""
    edges = np.stack([mesh.corner_point, np.roll(mesh.corner_point.reshape(-1, 3), -1, axis=1).reshape(-1)], axis=1)
    one = [(start, end) for start, end in edges.tolist()]
    return len(set(one)) == len(one) and {(b, a) for a, b in one} == set(one)


def sphere(count: int) -> Points:
    away = np.random.default_rng(3).normal(size=(count, 3))
    return (away / np.linalg.norm(away, axis=1, keepdims=True)).astype(np.float32)


CLOUDS = {
    "cube": CUBE,
    "cube with points inside": np.concatenate([CUBE, CUBE * 0.4, np.zeros((3, 3))]),
    "tetrahedron": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "cloud": np.random.default_rng(1).random((3000, 3)),
    "needle": sphere(200) * [10, 0.01, 0.01],
    "far away": np.random.default_rng(2).random((60, 3)) * 0.02 + 500,
    "tiny": sphere(100) * 1e-5,
    "huge": sphere(100) * 1e15,
    "grid": np.stack(np.meshgrid(*[np.linspace(0, 1, 8)] * 3), -1).reshape(-1, 3),
    "doubled": np.repeat(CUBE, 50, axis=0),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_hulls_are_closed_and_around_all_points(name: str) -> None:
    points = np.asarray(CLOUDS[name], np.float32)
    made = hull(points)
    size = float(np.ptp(points.astype(np.float64), axis=0).max())
    assert is_closed(made)
    assert volume(made) > 0
    assert farthest_out(made, points) < 1e-3 * size
    assert {tuple(point) for point in made.points.tolist()} <= {tuple(point) for point in points.tolist()}
    assert len(made.points) <= 256
    assert made.material_index.shape == (made.triangle_count,)
    assert made.materials == [""]


def test_volumes_are_right() -> None:
    assert volume(hull(CUBE)) == pytest.approx(8)
    assert volume(hull(CLOUDS["tetrahedron"])) == pytest.approx(1 / 6)


def test_round_things_keep_256_points_and_nearly_all_of_their_body() -> None:
    points = sphere(20_000)
    made = hull(points)
    assert 200 < len(made.points) <= 256
    assert is_closed(made)
    assert farthest_out(made, points) < 0.02
    assert volume(made) > 0.97 * 4 / 3 * np.pi
    np.testing.assert_allclose(made.points.min(axis=0), points.min(axis=0), atol=5e-5)
    np.testing.assert_allclose(made.points.max(axis=0), points.max(axis=0), atol=5e-5)


def test_long_round_things_are_as_exact_across() -> None:
    points = sphere(5000) * np.float32([10, 0.01, 0.01])
    made = hull(points)
    assert volume(made) > 0.97 * 4 / 3 * np.pi * 1e-3
    made.points, points = made.points * np.float32([0.1, 100, 100]), points * np.float32([0.1, 100, 100])
    assert farthest_out(made, points) < 0.02


@pytest.mark.parametrize("tilt", [False, True])
def test_flat_points_give_a_polygon_with_both_sides(tilt: bool) -> None:
    plane = np.random.default_rng(4).random((300, 2))
    corners = np.array([[-1, -1], [2, -1], [2, 2], [-1, 2]])
    points = np.concatenate([plane, corners]) @ (np.array([[1, 0, 0.5], [0, 1, -0.25]]) if tilt else np.eye(2, 3))
    made = hull(points)
    assert len(made.points) == 4
    assert made.triangle_count == 4
    assert is_closed(made) or volume(made) == pytest.approx(0, abs=1e-6)
    a, b, c = triangles_of(made).transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    assert np.abs(normals.sum(axis=0)).max() < 1e-5, "as much to one side as to the other"
    assert np.linalg.norm(normals, axis=1).sum() / 2 == pytest.approx(
        2 * 9 * (np.hypot(1, np.hypot(0.5, 0.25)) if tilt else 1)
    )


def test_points_in_a_triangle_give_that_triangle() -> None:
    made = hull([[0, 0, 0], [2, 0, 0], [0, 2, 0], [0.5, 0.5, 0]])
    assert sorted(map(tuple, made.points.tolist())) == [(0, 0, 0), (0, 2, 0), (2, 0, 0)]
    assert made.triangle_count == 2


def test_a_disc_of_many_points_keeps_256() -> None:
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    made = hull(np.stack([np.cos(angle), np.sin(angle), np.zeros(1000)], axis=1))
    assert 100 < len(made.points) <= 256
    area = np.linalg.norm(np.cross(*(triangles_of(made)[:, 1:] - triangles_of(made)[:, :1]).transpose(1, 0, 2)), axis=1)
    assert area.sum() / 2 == pytest.approx(2 * np.pi, rel=0.01)


@pytest.mark.parametrize(
    "points",
    [np.zeros((0, 3)), np.full((5, 3), np.nan), [[1, 2, 3]], [[1, 2, 3]] * 9, [[0, 0, 0], [1, 2, 3]],
     np.outer(np.linspace(0, 1, 20), [0, 0, 1]), np.outer(np.linspace(0, 1, 20), [1, 2, 3])],
)  # fmt: skip
def test_points_without_a_body_are_no_crash(points: object) -> None:
    for made in (hull(points), box(points)):
        assert np.isfinite(made.points).all()
        assert len(made.corner_point) == 3 * made.triangle_count
        assert made.triangle_count in (0, 12)


def test_points_that_are_no_numbers_do_not_count() -> None:
    points = np.concatenate([CUBE, [[np.nan, 0, 0], [np.inf, 0, 0]]])
    assert volume(hull(points)) == pytest.approx(8)
    assert volume(box(points)) == pytest.approx(8)


def test_boxes() -> None:
    points = np.random.default_rng(6).random((50, 3)) * [1, 2, 3]
    made = box(points)
    extent = np.ptp(points, axis=0)
    assert (len(made.points), made.triangle_count) == (8, 12)
    assert is_closed(made)
    assert volume(made) == pytest.approx(extent.prod(), rel=1e-5)


@pytest.mark.parametrize("axis", range(3))
def test_flat_boxes_have_no_triangles_on_edge(axis: int) -> None:
    points = CUBE.copy()
    points[:, axis] = 7
    made = box(points)
    assert (len(made.points), made.triangle_count) == (4, 4)
    a, b, c = triangles_of(made).transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    assert (np.linalg.norm(normals, axis=1) == 4).all()
    assert sorted(normals[:, axis].tolist()) == [-4, -4, 4, 4]


def test_each_loose_part_gets_a_hull_in_the_order_of_the_mesh() -> None:
    from meshferry.blender_data.exporting.models.physics_hulls import hulls_of_parts

    one = box(CUBE)
    count = 5
    points = np.concatenate([one.points + np.float32([3 * number, 0, 0]) for number in range(count)])
    corners = np.concatenate([one.corner_point + 8 * number for number in range(count)])
    apart = points[corners]  # each triangle with points of its own: places hold a part together
    for whole, index in ((points, corners), (apart, np.arange(len(corners)))):
        mesh = sc.Mesh(whole, index.astype(np.int32), np.zeros(len(index) // 3, np.int32), ["a"])
        made = hulls_of_parts(mesh)
        assert [round(float(part.points[:, 0].mean())) for part in made] == [0, 3, 6, 9, 12]
        assert [volume(part) for part in made] == pytest.approx([8] * count)
    touching = sc.Mesh(
        np.concatenate([one.points, one.points + 2]),
        np.concatenate([one.corner_point, one.corner_point + 8]).astype(np.int32),
        np.zeros(24, np.int32),
        ["a"],
    )
    assert len(hulls_of_parts(touching)) == 1, "they share a corner"
    assert hulls_of_parts(sc.Mesh(points, np.empty(0, np.int32), np.empty(0, np.int32))) == []


def test_nothing_stays_behind() -> None:
    import bpy
    from meshferry.blender_data.exporting.models import physics_hulls

    hull(sphere(500))
    hull(np.eye(3))
    assert not bpy.data.meshes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(physics_hulls.bmesh, "new", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            hull(CUBE)
    assert not bpy.data.meshes
