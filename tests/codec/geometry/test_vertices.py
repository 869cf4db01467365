"""Corners <-> unique vertices: splitting, welding and joining against brute force."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.geometry import vertices
from meshferry.io_formats.geometry.vertices import Split, SplitKey, points_first, split, split_mesh, weld, weld_map
from meshferry.io_formats.passes.join_meshes import join


@st.composite
def cornered(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], int, list[np.ndarray[Any, Any]]]:
    """Corners over few points with few different values, so that many agree."""
    points = draw(st.integers(1, 6))
    corners = draw(st.integers(0, 60))
    seed = draw(st.integers(0, 2**32 - 1))
    source = np.random.default_rng(seed)
    corner_point = source.integers(0, points, corners, dtype=np.int32)
    layers = [source.integers(0, draw(st.integers(1, 40)), (corners, width)).astype(np.float32) for width in (2, 3)]
    if draw(st.booleans()):
        layers.append(source.integers(0, 3, (corners, 4)).astype(np.uint8))
    return corner_point, points, layers


def check_split(found: Split, corner_point: Any, keys: list[SplitKey]) -> None:
    count = len(found.vertex_corner)
    assert found.corner_vertex.dtype == np.int32
    assert found.corner_vertex.shape == corner_point.shape
    assert len(np.unique(found.corner_vertex)) == count <= len(corner_point)
    assert not len(corner_point) or (found.corner_vertex.min() == 0 and found.corner_vertex.max() == count - 1)
    # each vertex' own corner belongs to it
    np.testing.assert_array_equal(found.corner_vertex[found.vertex_corner], np.arange(count))
    leader = found.vertex_corner[found.corner_vertex]
    np.testing.assert_array_equal(corner_point[leader], corner_point)
    for key in keys:
        values = key.values.astype(np.float64)
        near = (np.abs(values[leader] - values) <= key.tolerance).all(axis=1)
        if key.is_wildcard is not None:
            near |= key.is_wildcard
        assert near.all()


@settings(max_examples=300, deadline=None)
@given(cornered())
def test_split_is_what_unique_rows_give(given_corners: Any) -> None:
    corner_point, points, layers = given_corners
    keys = [SplitKey(values) for values in layers]
    found = split(corner_point, points, keys)
    check_split(found, corner_point, keys)
    rows = np.column_stack([corner_point, *layers])
    assert len(found.vertex_corner) == len(np.unique(rows, axis=0))
    again = split(corner_point, points, keys)
    np.testing.assert_array_equal(found.corner_vertex, again.corner_vertex)
    np.testing.assert_array_equal(found.vertex_corner, again.vertex_corner)
    # the first vertices follow the order of the points in use, one each
    used = np.unique(corner_point)
    np.testing.assert_array_equal(corner_point[found.vertex_corner][: len(used)], used)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("differing", [1, 3, 30, 60])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_nearly_equal_corners_are_one_vertex(width: int, differing: int, tolerance: float) -> None:
    """Few of them or many, and in the last of several blocks: bits that differ are compared as numbers."""
    count = 20_000
    values = np.zeros((60, width), np.float32)
    values[-differing:, -1] = 9e-4 if tolerance else -0.0
    values = np.concatenate((np.zeros((count - 60, width), np.float32), values))
    values[-1, -1] = 0
    found = split(np.arange(count, dtype=np.int32) // 10, count // 10, [SplitKey(values, tolerance)])
    assert len(found.vertex_corner) == count // 10
    values[-2, -1] = 3e-3
    found = split(np.arange(count, dtype=np.int32) // 10, count // 10, [SplitKey(values, tolerance)])
    assert len(found.vertex_corner) == count // 10 + 1


@settings(max_examples=300, deadline=None)
@given(cornered(), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.integers(0, 2**32 - 1))
def test_split_with_tolerance_and_wild_corners(given_corners: Any, tolerance: float, seed: int) -> None:
    corner_point, points, layers = given_corners
    wild = np.random.default_rng(seed).random(len(corner_point)) < 0.4
    keys = [SplitKey(layers[0], tolerance), SplitKey(layers[1], 0.0, wild)]
    check_split(split(corner_point, points, keys), corner_point, keys)


@settings(max_examples=200, deadline=None)
@given(cornered(), st.integers(0, 2**32 - 1))
def test_wild_corners_never_make_a_vertex_of_their_own(given_corners: Any, seed: int) -> None:
    """As many vertices as there are different rows among corners that mean something, or one where none does."""
    corner_point, points, layers = given_corners
    wild = np.random.default_rng(seed).random(len(corner_point)) < 0.5
    found = split(corner_point, points, [SplitKey(layers[0]), SplitKey(layers[1], 0.0, wild)])
    groups: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for corner, point in enumerate(corner_point.tolist()):
        meant = groups.setdefault((point, *layers[0][corner].tolist()), set())
        if not wild[corner]:
            meant.add(tuple(layers[1][corner].tolist()))
    expected = sum(max(1, len(meant)) for meant in groups.values())
    assert len(found.vertex_corner) == expected


def test_a_fan_of_more_values_than_passes() -> None:
    """Beyond the passes the rest is sorted; the result is the same."""
    count = 10 * vertices._PASSES
    corner_point = np.zeros(count * 2, np.int32)
    values = np.tile(np.arange(count, dtype=np.float32), 2)[:, None]
    for tolerance in (0.0, 1e-4):
        found = split(corner_point, 1, [SplitKey(values, tolerance)])
        check_split(found, corner_point, [SplitKey(values, tolerance)])
        assert len(found.vertex_corner) == count


def test_the_centre_of_a_huge_fan_takes_no_time() -> None:
    """Pass after pass over what is left would take minutes here."""
    count = 100_000
    values = np.random.default_rng(0).permutation(count).astype(np.float32)[:, None]
    start = time.perf_counter()
    found = split(np.zeros(count, np.int32), 1, [SplitKey(values)])
    assert len(found.vertex_corner) == count
    assert time.perf_counter() - start < 15


def test_wild_corners_of_a_huge_fan_find_a_place() -> None:
    count = 10 * vertices._PASSES
    corner_point = np.zeros(count * 2, np.int32)
    values = np.tile(np.arange(count, dtype=np.float32), 2)[:, None]
    wild = np.arange(count * 2) >= count
    tangents = np.random.default_rng(0).normal(size=(count * 2, 4)).astype(np.float32)
    for order in (slice(None), slice(None, None, -1)):
        keys = [SplitKey(tangents[order], 0.5, wild[order]), SplitKey(values[order])]
        found = split(corner_point, 1, keys)
        check_split(found, corner_point, keys)
        assert len(found.vertex_corner) == count


def test_zeros_of_both_signs_agree_and_numbers_that_are_none_stay_apart_or_together_but_end() -> None:
    corner_point = np.zeros(4, np.int32)
    signed = np.float32([[0.0], [-0.0], [0.0], [-0.0]])
    assert len(split(corner_point, 1, [SplitKey(signed)]).vertex_corner) == 1
    for tolerance in (0.0, 0.1):
        nothing = np.full((4, 1), np.nan, np.float32)
        nothing[2] = np.inf
        found = split(corner_point, 1, [SplitKey(nothing, tolerance)])
        assert 2 <= len(found.vertex_corner) <= 4


def test_unused_points_and_no_corners() -> None:
    none = split(np.empty(0, np.int32), 5, [SplitKey(np.empty((0, 2), np.float32))])
    assert (len(none.corner_vertex), len(none.vertex_corner)) == (0, 0)
    found = split(np.array([4, 2, 4], np.int32), 6, [])
    assert found.corner_vertex.tolist() == [1, 0, 1]
    assert found.vertex_corner.tolist() == [1, 0]
    empty_layer = split(np.array([1, 1], np.int32), 2, [SplitKey(np.empty((2, 0), np.float32))])
    assert empty_layer.corner_vertex.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["u1", "i1", "<u2", "<f2", "<f4", "<i4", "<f8", "<i8", "?"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_values_of_any_type(dtype: str, width: int) -> None:
    source = np.random.default_rng(width)
    corner_point = source.integers(0, 9, 200, dtype=np.int32)
    values = source.integers(0, 2, (200, width)).astype(dtype)
    found = split(corner_point, 9, [SplitKey(values)])
    rows = np.column_stack((corner_point, values.astype(np.int64)))
    assert len(found.vertex_corner) == len(np.unique(rows, axis=0))
    strided = np.repeat(values, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(split(corner_point, 9, [SplitKey(strided)]).corner_vertex, found.corner_vertex)


def test_points_first_reorders_by_point() -> None:
    mesh = models.grid_mesh()
    found = split(mesh.corner_point, len(mesh.points), vertices.layer_keys(mesh, 0.0))
    ordered = points_first(found, mesh.corner_point)
    check_split(ordered, mesh.corner_point, vertices.layer_keys(mesh, 0.0))
    point = mesh.corner_point[ordered.vertex_corner]
    assert (np.diff(point) >= 0).all()


def test_split_mesh_keeps_every_corner() -> None:
    mesh = models.grid_mesh()
    mesh.shape_keys = [sc.ShapeKey("Up", mesh.points + np.float32([0, 0, 1]))]
    mesh.joint_indices = np.tile(np.arange(4, dtype=np.int32), (len(mesh.points), 1))
    mesh.joint_weights = np.random.default_rng(0).random((len(mesh.points), 4), np.float32)
    flat, found = split_mesh(mesh, 0.0)
    assert len(flat.points) == len(found.vertex_corner)
    np.testing.assert_array_equal(flat.points[flat.corner_point], mesh.points[mesh.corner_point])
    np.testing.assert_array_equal(
        flat.shape_keys[0].points[flat.corner_point], mesh.shape_keys[0].points[mesh.corner_point]
    )
    assert flat.joint_weights is not None
    np.testing.assert_array_equal(flat.joint_weights[flat.corner_point], mesh.joint_weights[mesh.corner_point])
    for layer, before in zip(flat.layers(), mesh.layers(), strict=True):
        assert layer.index is None
        assert not layer.per_corner
        assert len(layer.values) == len(flat.points)
        np.testing.assert_array_equal(layer.at_corners(flat.corner_point), before.at_corners(mesh.corner_point))


# -- welding ------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_weld_map_is_what_unique_rows_give(count: int, seed: int, arrays: int) -> None:
    source = np.random.default_rng(seed)
    rows = [source.choice(np.float32([0.0, -0.0, 1.0, 1e-30]), (count, 3)) for _ in range(arrays)]
    new_point, first = weld_map(rows)
    expected: dict[tuple[float, ...], int] = {}
    for row in np.column_stack(rows).tolist() if count else []:
        expected.setdefault(tuple(value + 0.0 for value in row), len(expected))
    table = [tuple(value + 0.0 for value in row) for row in np.column_stack(rows).tolist()] if count else []
    assert new_point.tolist() == [expected[row] for row in table]
    assert first.tolist() == [table.index(row) for row in expected]


def test_welding_joins_places_and_moves_differing_values_to_corners() -> None:
    mesh = models.grid_mesh()
    mesh.shape_keys = [sc.ShapeKey("Up", mesh.points + np.float32([0, 0, 1]))]
    flat, _ = split_mesh(mesh, 0.0)
    assert len(flat.points) > len(mesh.points)
    welded, first = weld(flat)
    assert len(welded.points) == len(mesh.points) == len(first)
    np.testing.assert_array_equal(flat.points[first], welded.points)
    np.testing.assert_array_equal(welded.points[welded.corner_point], flat.points[flat.corner_point])
    for layer, before in zip(welded.layers(), flat.layers(), strict=True):
        np.testing.assert_array_equal(layer.at_corners(welded.corner_point), before.at_corners(flat.corner_point))
    assert welded.normal is not None
    assert welded.normal.index is None  # equal at joined points, so it stays on them
    assert len(welded.shape_keys[0].points) == len(welded.points)


def test_points_that_part_later_are_not_welded() -> None:
    points = np.zeros((4, 3), np.float32)
    points[2:] = 1
    corner_point = np.array([0, 1, 2], np.int32)
    mesh = sc.Mesh(points, corner_point, np.zeros(1, np.int32))
    assert len(weld(mesh)[0].points) == 2
    track = np.stack([points, points + np.float32([[0], [1], [0], [0]])])
    assert len(weld(mesh, [track])[0].points) == 3
    keyed = replace(mesh, shape_keys=[sc.ShapeKey("k", track[1])])
    assert len(weld(keyed)[0].points) == 3
    weighted = replace(
        mesh, joint_indices=np.array([[0], [1], [0], [0]], np.int32), joint_weights=np.ones((4, 1), np.float32)
    )
    assert len(weld(weighted)[0].points) == 3


def test_nothing_to_weld() -> None:
    mesh = models.grid_mesh()
    welded, first = weld(mesh)
    assert welded is mesh
    assert first.tolist() == list(range(len(mesh.points)))
    empty = sc.Mesh(np.zeros((0, 3), np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
    assert weld(empty)[0] is empty


def test_turned_triangles() -> None:
    mesh = models.grid_mesh()
    mesh.custom = [sc.Layer("shared", np.arange(4).reshape(4, 1), np.arange(96, dtype=np.int32) % 4)]
    turned = vertices.turn_triangles(mesh)
    order = np.arange(96).reshape(-1, 3)[:, ::-1].ravel()
    np.testing.assert_array_equal(turned.corner_point, mesh.corner_point[order])
    for layer, before in zip(turned.layers(), mesh.layers(), strict=True):
        np.testing.assert_array_equal(
            layer.at_corners(turned.corner_point), before.at_corners(mesh.corner_point)[order]
        )
    twice = vertices.turn_triangles(turned)
    np.testing.assert_array_equal(twice.corner_point, mesh.corner_point)


# -- joining ------------------------------------------------------------------------------------


def test_joined_meshes_keep_their_corners() -> None:
    one, other = models.grid_mesh(2, seed=1), models.grid_mesh(3, seed=2, materials=3)
    other.materials = ["New", "Material1.Folktails", ""]
    joined = join([one, other])
    assert joined.materials == ["Material0.Folktails", "Material1.Folktails", "New", ""]
    assert joined.triangle_count == one.triangle_count + other.triangle_count
    np.testing.assert_array_equal(
        joined.points[joined.corner_point],
        np.concatenate([one.points[one.corner_point], other.points[other.corner_point]]),
    )
    names = [joined.materials[i] for i in joined.material_index]
    assert names == [m.materials[i] for m in (one, other) for i in m.material_index]
    for layer, first, second in zip(joined.layers(), one.layers(), other.layers(), strict=True):
        np.testing.assert_array_equal(
            layer.at_corners(joined.corner_point),
            np.concatenate([first.at_corners(one.corner_point), second.at_corners(other.corner_point)]),
        )
    assert joined.normal is not None
    assert not joined.normal.per_corner
    assert join([one]) is one


def triangle(**layers: Any) -> sc.Mesh:
    points = np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    return sc.Mesh(points, np.arange(3, dtype=np.int32), np.zeros(1, np.int32), **layers)


def test_missing_layers_are_filled() -> None:
    uv = sc.Layer("UV", np.ones((3, 2), np.float32))
    shared = sc.Layer("UV2", np.float32([[5, 6]]), np.zeros(3, np.int32))
    custom = sc.Layer("c", np.full((3, 1), 7, np.int32))
    full = triangle(
        uvs=[uv, shared], custom=[custom], normal=sc.Layer("normal", np.tile(np.float32([0, 0, 1]), (3, 1)))
    )
    bare = triangle()
    for meshes, own in (([full, bare], slice(0, 3)), ([bare, full], slice(3, 6))):
        joined = join(meshes)
        assert joined.materials == [""]
        for layer, value in (
            (joined.uvs[0], [1, 1]),
            (joined.uvs[1], [5, 6]),
            (joined.custom[0], [7]),
            (joined.normal, [0, 0, 1]),
        ):
            assert layer is not None
            found = layer.at_corners(joined.corner_point)
            rest = np.delete(found, np.r_[own], axis=0)
            assert found[own].tolist() == [value] * 3
            assert not rest.any()
        assert joined.custom[0].values.dtype == np.int32
        assert joined.tangent is None


def test_missing_colours_are_white_and_mixed_kinds_become_bytes() -> None:
    as_bytes = triangle(colors=[sc.Layer("C", np.full((3, 4), 10, np.uint8))])
    as_floats = triangle(colors=[sc.Layer("C", np.full((3, 4), 0.5, np.float32))])
    bare = triangle()
    joined = join([bare, as_bytes]).colors[0].values
    assert joined.dtype == np.uint8
    assert joined.tolist() == [[255] * 4] * 3 + [[10] * 4] * 3
    joined = join([as_floats, bare]).colors[0].values
    assert joined.dtype == np.float32
    assert joined.tolist() == [[0.5] * 4] * 3 + [[1] * 4] * 3
    for meshes in ([as_bytes, as_floats], [as_floats, as_bytes]):
        joined = join(meshes).colors[0].values
        assert joined.dtype == np.uint8
        assert sorted(map(tuple, np.unique(joined, axis=0).tolist())) == [(10,) * 4, (188, 188, 188, 128)]
