"""Joined meshes: weights, shape keys, surfaces and shared layers; parts of meshes. (Layers: test_vertices.)"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import models
import numpy as np
import pytest
import unigine_documents as made
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.geometry.triangles import part_of_slots, pool_rows, shared_index
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH


def from_file(*surfaces: Any, bones: int = 0) -> sc.Mesh:
    mesh = UNIGINE_MESH.to_scene(made.mesh_file(*surfaces, bones=bones), "x").nodes[0].mesh
    assert mesh is not None
    return mesh


def corner_values(mesh: sc.Mesh) -> dict[str, np.ndarray[Any, Any]]:
    """Return what each corner carries, by the name of the layer."""
    found = {f"layer {layer.name}": layer.at_corners(mesh.corner_point) for layer in mesh.layers()}
    found["points"] = mesh.points[mesh.corner_point]
    for key in mesh.shape_keys:
        found[f"key {key.name}"] = key.points[mesh.corner_point]
        if key.normal is not None:
            found[f"key normal {key.name}"] = key.normal.at_corners(mesh.corner_point)
    if mesh.joint_weights is not None and mesh.joint_indices is not None:
        dense = np.zeros((len(mesh.points), 64))
        np.add.at(dense, (np.arange(len(dense))[:, None], mesh.joint_indices), mesh.joint_weights)
        found["weights"] = dense[mesh.corner_point]
    return found


# -- weights ------------------------------------------------------------------------------------


def test_weights_are_joined_and_missing_ones_are_none() -> None:
    two, three = made.weighted(made.quad(), [4, 1], [0.25, 0.75]), made.weighted(made.quad(), [1, 2, 3], [0.5, 0.5, 0])
    joined = join([two, made.quad(), three])
    assert joined.joint_indices is not None and joined.joint_weights is not None
    assert joined.joint_indices.dtype == np.int32
    assert joined.joint_indices.tolist() == [[4, 1, 0]] * 4 + [[0, 0, 0]] * 4 + [[1, 2, 3]] * 4
    assert joined.joint_weights.tolist() == [[0.25, 0.75, 0]] * 4 + [[0, 0, 0]] * 4 + [[0.5, 0.5, 0]] * 4
    assert join([made.quad(), made.quad()]).joint_weights is None


# -- shape keys ---------------------------------------------------------------------------------


def key(mesh: sc.Mesh, name: str, lift: float, **fields: Any) -> sc.ShapeKey:
    return sc.ShapeKey(name, mesh.points + np.float32([0, 0, lift]), **fields)


def test_shape_keys_join_by_name_and_rest_elsewhere() -> None:
    one, other = made.quad(), made.quad()
    one.shape_keys = [key(one, "up", 1), key(one, "down", -1)]
    other.shape_keys = [key(other, "away", 5), key(other, "up", 2)]
    joined = join([one, other])
    assert [found.name for found in joined.shape_keys] == ["up", "down", "away"]
    assert [found.points[:, 2].tolist() for found in joined.shape_keys] == [
        [1] * 4 + [2] * 4,
        [-1] * 4 + [0] * 4,
        [0] * 4 + [5] * 4,
    ]
    assert all(found.normal is None for found in joined.shape_keys)


def test_normals_of_shape_keys() -> None:
    tilted = sc.Layer("normal", np.tile(np.float32([1, 0, 0]), (4, 1)))
    one, other, bare = made.quad(), made.quad(), made.quad()
    one.shape_keys = [key(one, "both", 1, normal=tilted), key(one, "mine", 1, normal=tilted)]
    other.shape_keys = [key(other, "both", 1)]
    both, mine = join([one, other, bare]).shape_keys
    assert both.normal is None  # one of them does not know its own
    assert mine.normal is not None
    assert mine.normal.values[:, 0].tolist() == [1] * 4 + [0] * 8  # the others rest, and so do their normals


# -- surfaces -----------------------------------------------------------------------------------


def test_slots_of_one_name_become_one_surface_but_not_within_a_mesh() -> None:
    one = made.quad(materials=["m1", "m2"], material_index=np.array([1, 0], np.int32))
    one.surfaces = [
        sc.Surface("same", uvs=(True,), has_colors=False, has_weights=None, shape_keys={"a": ""}, order=1),
        sc.Surface("same", uvs=(False,), has_colors=True, has_weights=False, shape_keys=None),
    ]
    one.colors = [sc.Layer("c", np.zeros((4, 4), np.uint8))]
    other = made.quad(materials=["m3", "m4"], material_index=np.array([1, 0], np.int32))
    other.surfaces = [
        sc.Surface("new"),
        sc.Surface("same", uvs=(True,), has_weights=True, shape_keys={"b": "B", "a": "other"}, order=2),
    ]
    joined = join([one, other, made.quad(materials=["new"])])
    assert joined.materials == ["m1", "m2", "m3"]
    assert joined.material_index.tolist() == [1, 0, 0, 2, 2, 2]
    assert joined.surfaces == [
        sc.Surface("same", (True,), has_colors=False, has_weights=True, shape_keys={"b": "B", "a": ""}, order=1),
        sc.Surface("same", (False,), has_colors=True, has_weights=False, shape_keys=None),
        sc.Surface("new", None, has_colors=False, has_weights=None),
    ]
    apart = join([one, other], merge_slots=False)
    assert apart.materials == ["m1", "m2", "m3", "m4"]
    assert [surface.name for surface in apart.surfaces] == ["same", "same", "new", "same"]
    assert apart.material_index.tolist() == [1, 0, 3, 2]


def test_a_layer_that_only_another_mesh_has_is_not_held() -> None:
    uv = made.quad().uvs[0]
    one, other = made.quad(uvs=[uv, replace(uv, name="second")]), made.quad(materials=["Wall"])
    one.surfaces = [sc.Surface("a", uvs=(True, True))]
    other.surfaces = [sc.Surface("b", uvs=None)]
    assert [surface.uvs for surface in join([one, other]).surfaces] == [(True, True), (True, False)]
    assert [surface.uvs for surface in join([other, one]).surfaces] == [(True, False), (True, True)]


def test_meshes_without_surfaces_have_none_joined() -> None:
    joined = join([models.grid_mesh(2), models.grid_mesh(3)])
    assert joined.surfaces == []
    assert joined.materials == ["Material0.Folktails", "Material1.Folktails"]


# -- shared layers ------------------------------------------------------------------------------


def test_layers_that_share_an_index_go_on_sharing_one() -> None:
    one = from_file(made.with_target(made.with_weights(made.fan("a", seed=1)), "k"), bones=2)
    other = from_file(made.fan("b", 3, seed=2, colors=np.full((7, 4), 9, np.uint8)))
    joined = join([one, other])
    layers = [*joined.layers(), *(layer for k in joined.shape_keys for layer in (k.normal, k.tangent) if layer)]
    assert len(layers) == 6
    assert all(layer.index is layers[0].index for layer in layers)
    assert all(len(layer.values) == 16 for layer in layers)
    got, first, second = corner_values(joined), corner_values(one), corner_values(other)
    for label, values in got.items():
        mine = first.get(label, np.full_like(values[:12], 255 if "Color" in label else 0))
        rest = {"key k": second["points"], "key normal k": second["layer normal"]}
        theirs = second.get(label, rest.get(label, np.zeros_like(values[12:])))
        np.testing.assert_array_equal(values, np.concatenate((mine, theirs)), err_msg=label)
    # One that does not share makes values a corner of all.
    plain = join([one, made.at_corners(other)])
    assert all(layer.per_corner for layer in plain.layers())
    for label, values in corner_values(plain).items():
        np.testing.assert_array_equal(values, got[label], err_msg=label)


def test_shared_index() -> None:
    index, same = np.array([0, 1, 0], np.int32), np.array([0, 1, 0], np.int32)
    two = np.zeros((2, 3), np.float32)
    assert shared_index([sc.Layer("a", two, index), sc.Layer("b", two, same)]) is index
    assert shared_index([]) is None
    assert shared_index([sc.Layer("a", two, index), sc.Layer("b", two, np.array([0, 1, 1], np.int32))]) is None
    assert shared_index([sc.Layer("a", two, index), sc.Layer("b", np.zeros((3, 3), "f4"), index)]) is None
    assert shared_index([sc.Layer("a", two, index), sc.Layer("b", two)]) is None


# -- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index", [[3, 1, 3], [0, 1, 2], [5, 6, 7], [0, 1000000, 5], [7], [], [2, 2, 2, 9, 9, 9, 4, 4, 4]]
)
def test_pools(index: list[int]) -> None:
    found = pool_rows(np.array(index, np.int32))
    rows = np.arange(1000001)[found.chosen]
    assert rows.tolist() == sorted(set(index))
    assert found.count == len(rows)
    assert rows[found.index].tolist() == index
    assert found.index.dtype == np.int32


def test_pools_against_unique() -> None:
    rng = np.random.default_rng(0)
    for size, most in ((50, 20), (50, 5000), (3, 100), (1000, 1000)):
        index = rng.integers(10, 10 + most, size).astype(np.int32)
        found = pool_rows(index)
        used, place = np.unique(index, return_inverse=True)
        np.testing.assert_array_equal(np.arange(10 + most)[found.chosen], used)
        np.testing.assert_array_equal(found.index, place.reshape(-1))


@pytest.mark.parametrize("spread", [False, True])
def test_part_of_slots(spread: bool) -> None:
    surfaces = [made.with_target(made.fan(name, seed=seed), "k") for seed, name in enumerate("abc")]
    mesh = from_file(made.with_weights(surfaces[0]), *surfaces[1:], bones=2)
    if spread:
        mesh = made.at_corners(mesh)
    part = part_of_slots(mesh, [2, 0])
    assert part.materials == ["c", "a"]
    assert [surface.name for surface in part.surfaces] == ["c", "a"]
    assert part.material_index.tolist() == [1] * 4 + [0] * 4  # triangles stay in their order
    assert len(part.points) == 12
    kept = np.repeat(np.isin(mesh.material_index, [0, 2]), 3)
    whole = corner_values(mesh)
    for label, values in corner_values(part).items():
        np.testing.assert_array_equal(values, whole[label][kept], err_msg=label)
    if not spread:
        assert len({id(layer.index) for layer in part.layers()}) == 1
        assert all(len(layer.values) == 18 for layer in part.layers())
