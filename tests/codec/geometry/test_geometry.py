"""Axes, quantization, normals, tangents and quaternions against plain matrices and brute force."""

from __future__ import annotations

import itertools
from typing import Any

import models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.blender_data.importing import clips
from meshferry.io_formats.encodings.quantization import from_unorm, to_unorm
from meshferry.io_formats.geometry import normals
from meshferry.io_formats.geometry.normals import any_perpendicular, vertex_tangents
from meshferry.io_formats.geometry.transforms import (
    Basis,
    continuous_rotations,
    flip_winding,
    matrices_to_quaternions,
    rotated_xyzw,
    unit_quaternions,
)
from meshferry.io_formats.timbermesh.model.codec import BLENDER_TO_FILE, FILE_TO_BLENDER

# The page, section 3: "the map A has rows (-1,0,0), (0,0,1), (0,-1,0)".
A = np.array([[-1.0, 0, 0], [0, 0, 1], [0, -1, 0]])


def random_quaternions(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    q = np.random.default_rng(seed).normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def matrix(q: Any) -> np.ndarray[Any, Any]:
    """Return the rotation matrix of (w, x, y, z), written down from the definition q v q*."""
    w, x, y, z = q
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * k + 2 * k @ k


# -- axes ---------------------------------------------------------------------------------------


def test_timbermesh_space_is_the_matrix_of_the_page() -> None:
    assert np.linalg.det(A) == pytest.approx(-1)
    assert BLENDER_TO_FILE.mirrors
    assert FILE_TO_BLENDER.mirrors
    points = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(BLENDER_TO_FILE.vectors(points), points @ A.T, rtol=1e-6)
    np.testing.assert_allclose(FILE_TO_BLENDER.vectors(points), points @ A, rtol=1e-6)
    np.testing.assert_array_equal(BLENDER_TO_FILE.vectors(np.float32([[1, 2, 3]])), [[-1, 3, -2]])
    np.testing.assert_array_equal(FILE_TO_BLENDER.vectors(np.float32([[1, 2, 3]])), [[-1, -3, 2]])
    np.testing.assert_array_equal(BLENDER_TO_FILE.scales(np.float32([[1, 2, 3]])), [[1, 3, 2]])
    # "Blender -Y (front view) becomes file +Z (Unity forward), Blender +X becomes file -X"
    np.testing.assert_array_equal(BLENDER_TO_FILE.vectors(np.float32([[0, -1, 0], [1, 0, 0]])), [[0, 0, 1], [-1, 0, 0]])


def test_quaternions_are_those_of_the_page() -> None:
    for q in random_quaternions(50):
        w, x, y, z = q
        stored = BLENDER_TO_FILE.quaternions_to_xyzw(q[None])[0]
        np.testing.assert_allclose(stored, [x, -z, y, w], rtol=1e-6)
        # and they are the rotation A R A^-1
        fx, fy, fz, fw = stored
        np.testing.assert_allclose(matrix((fw, fx, fy, fz)), A @ matrix(q) @ A.T, atol=1e-6)
        np.testing.assert_allclose(FILE_TO_BLENDER.quaternions_from_xyzw(stored[None])[0], q, rtol=1e-6)


ALL_BASES = [
    Basis(order, signs)  # type: ignore[arg-type]
    for order in itertools.permutations(range(3))
    for signs in itertools.product((-1, 1), repeat=3)
]


@pytest.mark.parametrize("basis", ALL_BASES, ids=lambda b: f"{b.order}{b.signs}")
def test_every_basis_is_its_matrix(basis: Basis) -> None:
    m = np.zeros((3, 3))
    for row, (column, sign) in enumerate(zip(basis.order, basis.signs, strict=True)):
        m[row, column] = sign
    points = np.random.default_rng(1).normal(size=(4, 5, 3)).astype(np.float32)
    np.testing.assert_allclose(basis.vectors(points), points @ m.T, rtol=1e-6)
    np.testing.assert_array_equal(basis.inverse.vectors(basis.vectors(points)), points)
    assert basis.inverse.inverse == basis
    assert basis.mirrors == (np.linalg.det(m) < 0)
    np.testing.assert_allclose(basis.scales(points), points @ np.abs(m).T, rtol=1e-6)
    q = random_quaternions(1, 5)[0]
    turned = basis.quaternions_from_xyzw(np.array([[q[1], q[2], q[3], q[0]]]))[0]
    np.testing.assert_allclose(matrix(turned), m @ matrix(q) @ m.T, atol=1e-6)
    back = basis.inverse.quaternions_to_xyzw(turned[None])[0]
    np.testing.assert_allclose(back, [q[1], q[2], q[3], q[0]], atol=1e-6)


def test_vectors_keep_further_columns_and_their_input() -> None:
    tangents = np.float32([[1, 2, 3, -1], [4, 5, 6, 1]])
    before = tangents.copy()
    assert BLENDER_TO_FILE.vectors(tangents).tolist() == [[-1, 3, -2, -1], [-4, 6, -5, 1]]
    np.testing.assert_array_equal(tangents, before)
    for dtype in (np.float64, np.int32, np.int64):
        assert BLENDER_TO_FILE.vectors(np.array([1, 2, 3], dtype)).tolist() == [-1, 3, -2]
    assert BLENDER_TO_FILE.vectors(np.empty((0, 3), np.float32)).shape == (0, 3)


def test_winding() -> None:
    corners = np.arange(9, dtype=np.int32)
    assert flip_winding(corners).tolist() == [2, 1, 0, 5, 4, 3, 8, 7, 6]
    assert flip_winding(np.empty(0, np.int32)).tolist() == []
    np.testing.assert_array_equal(flip_winding(flip_winding(corners)), corners)
    assert flip_winding(corners).flags["C_CONTIGUOUS"]


# -- quantization -------------------------------------------------------------------------------


def test_every_integer_comes_back() -> None:
    every = np.arange(256, dtype=np.uint8)
    there = from_unorm(every)
    assert there.dtype == np.float32
    assert (there[0], there[-1]) == (0, 1)
    np.testing.assert_array_equal(to_unorm(there), every)
    np.testing.assert_array_equal(to_unorm(there.astype(np.float64)), every)


@settings(max_examples=300)
@given(st.floats(allow_nan=True, allow_infinity=True, width=32))
def test_rounding_is_to_nearest(value: float) -> None:
    found = int(to_unorm(np.float32([value]))[0])
    if np.isnan(value):
        assert found == 0
    else:
        assert abs(found - min(max(value, 0), 1) * 255) <= 0.5 + 1e-4


def test_quantization_leaves_its_input() -> None:
    values = np.float32([[-1, 0.5, 2, np.nan]])
    before = values.copy()
    assert to_unorm(values).tolist() == [[0, 128, 255, 0]]
    np.testing.assert_array_equal(values, before)


# -- normals and tangents -----------------------------------------------------------------------


def test_vertex_normals_against_a_loop() -> None:
    mesh = models.grid_mesh(5, seed=3)
    total = np.zeros((len(mesh.points), 3))
    for a, b, c in mesh.corner_point.reshape(-1, 3):
        pa, pb, pc = (mesh.points[i].astype(float) for i in (a, b, c))
        for vertex in (a, b, c):
            total[vertex] += np.cross(pb - pa, pc - pa)
    expected = total / np.linalg.norm(total, axis=1, keepdims=True)
    np.testing.assert_allclose(normals.vertex_normals(mesh.points, mesh.corner_point), expected, atol=1e-5)
    faces = normals.face_normals(mesh.points, mesh.corner_point)
    assert faces.shape == (50, 3)
    assert faces.dtype == np.float32


def test_normals_where_no_area_meets() -> None:
    points = np.float32([[0, 0, 0], [1, 0, 0], [2, 0, 0], [9, 9, 9]])
    found = normals.vertex_normals(points, np.array([0, 1, 2], np.int32))
    assert found.tolist() == [[0, 0, 1]] * 4
    assert normals.vertex_normals(points[:0], np.empty(0, np.int32)).shape == (0, 3)
    huge = np.float32([[0, 0, 0], [3e38, 0, 0], [0, 3e38, 0]])
    np.testing.assert_allclose(np.linalg.norm(normals.vertex_normals(huge, np.arange(3, dtype=np.int32)), axis=1), 1)


def test_unit_vectors() -> None:
    vectors = np.float32([[3, 0, 4], [0, 0, 0], [0, 0, 1], [1e-10, 0, 0]])
    np.testing.assert_allclose(normals.unit(vectors), [[0.6, 0, 0.8], [0, 0, 0], [0, 0, 1], [1, 0, 0]], atol=1e-6)
    exact = np.float32([[1, 0, 0], [0, 1, 0]])
    assert normals.unit(exact) is exact


def test_repair_counts_and_leaves_good_ones() -> None:
    mesh = models.grid_mesh()
    good = normals.vertex_normals(mesh.points, mesh.corner_point)
    same, count = normals.repair(good, mesh.points, mesh.corner_point)
    assert count == 0
    np.testing.assert_array_equal(same, good)
    for bad in (0.0, np.nan, np.inf, -np.inf, 1e30, 3e-39, 1e-7):
        broken = good.copy()
        broken[4] = bad
        mended, count = normals.repair(broken, mesh.points, mesh.corner_point)
        assert count == 1, bad
        np.testing.assert_allclose(mended, good, atol=1e-6)
        assert not np.array_equal(broken[4], good[4])  # the given array is left alone


def test_tangents_of_a_plane() -> None:
    """On a plane with one linear UV map, tangents and bitangents are its gradients; four maps, two of them mirrored."""
    mesh = models.grid_mesh()
    points = mesh.points.copy()
    points[:, 2] = 0
    up = np.tile(np.float32([0, 0, 1]), (len(points), 1))
    for u, v in (((1, 0), (0, 1)), ((0, 1), (-1, 0)), ((-1, 0), (0, 1)), ((2, 1), (1, 3))):
        uv = np.column_stack((points[:, :2] @ np.float32(u), points[:, :2] @ np.float32(v))).astype(np.float32)
        found = vertex_tangents(points, up, uv, mesh.corner_point)
        along_u, along_v = np.linalg.inv(np.array([u, v], float)).T
        expected = np.append(along_u / np.linalg.norm(along_u), 0)
        np.testing.assert_allclose(found[:, :3], np.tile(expected, (len(points), 1)), atol=1e-5)
        bitangent = found[:, 3:] * np.cross(up, found[:, :3])
        assert (bitangent[:, :2] @ along_v > 0).all()


def test_tangents_without_area_are_any_perpendicular() -> None:
    mesh = models.grid_mesh()
    assert mesh.normal is not None
    for uv in (np.zeros((len(mesh.points), 2)), np.full((len(mesh.points), 2), np.nan), mesh.points[:, [0, 0]]):
        found = vertex_tangents(mesh.points, mesh.normal.values, uv.astype(np.float32), mesh.corner_point)
        np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(np.einsum("ij,ij->i", found[:, :3], mesh.normal.values), 0, atol=1e-5)
        assert set(found[:, 3].tolist()) <= {-1.0, 1.0}


def test_any_perpendicular() -> None:
    for seed in range(3):
        vectors = random_quaternions(30, seed)[:, 1:]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        found = any_perpendicular(np.vstack((vectors, np.eye(3), -np.eye(3))))
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
        np.testing.assert_allclose(np.einsum("ij,ij->i", found[:30], vectors), 0, atol=1e-12)
    assert any_perpendicular(np.empty((0, 3))).shape == (0, 3)
    assert np.isfinite(any_perpendicular(np.zeros((1, 3)))).all()


# -- quaternions --------------------------------------------------------------------------------


def test_matrices_come_back() -> None:
    axis_turns = [np.eye(4)[i] for i in range(4)] + [np.array(q) for q in itertools.product((-0.5, 0.5), repeat=4)]
    quaternions = np.vstack((random_quaternions(200), axis_turns, -random_quaternions(20, 3)))
    found = matrices_to_quaternions(np.stack([matrix(q) for q in quaternions]))
    assert (found[:, 0] >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", found, quaternions)), 1, atol=1e-12)
    assert matrices_to_quaternions(np.empty((0, 3, 3))).shape == (0, 4)


def test_rotated_vectors() -> None:
    turns = random_quaternions(24, 8).reshape(4, 6, 4)
    found = rotated_xyzw(turns[..., [1, 2, 3, 0]].astype(np.float32), (0.5, -2.0, 1.0))
    assert found.dtype == np.float32
    assert found.shape == (4, 6, 3)
    for row, turn in zip(found.reshape(-1, 3), turns.reshape(-1, 4), strict=True):
        np.testing.assert_allclose(row, matrix(turn) @ [0.5, -2.0, 1.0], atol=1e-5)


def test_unit_quaternions() -> None:
    values = np.float32([[1, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0], [np.nan, 0, 0, 1], [np.inf, 0, 0, 0], [3e38] * 4])
    found, odd = unit_quaternions(values)
    assert odd == 5
    np.testing.assert_allclose(found, [[1, 0, 0, 0]] * 5 + [[0.5] * 4], atol=1e-6)
    nearly = np.float32([[1.0005, 0, 0, 0]])
    assert unit_quaternions(nearly)[1] == 0
    assert unit_quaternions(nearly)[0].tolist() == [[1, 0, 0, 0]]
    assert unit_quaternions(np.empty((0, 4), np.float32))[1] == 0


@given(st.lists(st.booleans(), max_size=30))
def test_continuous_rotations(signs: list[bool]) -> None:
    angle = np.linspace(0, 4, len(signs))
    smooth = np.column_stack((np.cos(angle), np.sin(angle), 0 * angle, 0 * angle)).astype(np.float32)
    jumping = smooth * np.where(signs, 1, -1).astype(np.float32).reshape(-1, 1)
    found = continuous_rotations(jumping)
    assert (np.einsum("ij,ij->i", found[1:], found[:-1]) >= 0).all()
    np.testing.assert_array_equal(np.abs(found), np.abs(smooth))
    assert not len(signs) or found[0].tolist() == jumping[0].tolist()


# -- point caches -------------------------------------------------------------------------------


def test_point_cache_layout() -> None:
    points = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    data = clips.encode_point_cache(points)
    assert data[:12] == b"POINTCACHE2\0"
    assert np.frombuffer(data, "<i4", 2, 12).tolist() == [1, 4]
    assert np.frombuffer(data, "<f4", 2, 20).tolist() == [0, 1]
    assert np.frombuffer(data, "<i4", 1, 28).tolist() == [2]
    assert np.frombuffer(data, "<f4", -1, 32).tolist() == list(range(24))
