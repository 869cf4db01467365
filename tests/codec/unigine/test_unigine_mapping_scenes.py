"""UNIGINE meshes and scenes made by hand: surfaces that differ, weights, shapes, refusals, files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import unigine_documents as made
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.capabilities import losses
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.unigine.mesh import document as doc
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.space import decode_frames
from python_steps import python_steps


def mapped(document: doc.MeshFile, **options: Any) -> sc.Scene:
    return UNIGINE_MESH.to_scene(document, "file", options)


def written(scene: sc.Scene, version: str = "ms13", **options: Any) -> doc.MeshFile:
    document: doc.MeshFile = UNIGINE_MESH.from_scene(scene, {"mesh_version": version.upper(), **options})
    return document


def mesh_of(scene: sc.Scene) -> sc.Mesh:
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    return mesh


def content(document: doc.MeshFile) -> bytes:
    encoded: bytes = UNIGINE_MESH.write(document)
    return encoded


# -- to the scene -------------------------------------------------------------------------------


def test_surfaces_stand_in_a_row_over_one_index() -> None:
    one = made.fan("same", 4, seed=1, colors=np.full((9, 4), 7, np.uint8), lightmap_channel=0, lightmap_resolution=6)
    other = made.fan("same", 3, seed=2, uv0=None, uv1=np.full((7, 2), 0.25, np.float32))
    scene = mapped(made.mesh_file(one, other))
    mesh = mesh_of(scene)
    assert scene.nodes[0].name == "file"
    assert mesh.materials == ["same", "same"]
    np.testing.assert_array_equal(mesh.points, np.concatenate([s.targets[0].positions for s in (one, other)]))
    np.testing.assert_array_equal(mesh.corner_point, [*one.c_indices, *(other.c_indices.astype(int) + 6)])
    np.testing.assert_array_equal(mesh.material_index, [0] * 4 + [1] * 3)
    layers = list(mesh.layers())
    assert [layer.name for layer in layers] == ["normal", "tangent", "UV0", "UV1", "Color"]
    assert all(layer.index is layers[0].index for layer in layers)
    np.testing.assert_array_equal(layers[0].index, [*one.t_indices, *(other.t_indices.astype(int) + 9)])
    assert one.uv0 is not None
    np.testing.assert_array_equal(mesh.uvs[0].values[:9], np.column_stack((one.uv0[:, 0], 1 - one.uv0[:, 1])))
    assert not mesh.uvs[0].values[9:].any()
    assert mesh.uvs[1].values[9:].tolist() == [[0.25, 0.75]] * 7
    assert mesh.colors[0].values.tolist() == [[7] * 4] * 9 + [[255] * 4] * 7
    assert [(s.name, s.uvs, s.has_colors, s.has_weights, s.shape_keys) for s in mesh.surfaces] == [
        ("same", (True, False), True, False, {}),
        ("same", (False, True), False, False, {}),
    ]
    assert (mesh.surfaces[0].lightmap_channel, mesh.surfaces[0].lightmap_resolution, mesh.surfaces[0].base_name) == (
        0,
        6,
        "",
    )
    assert mesh.points.flags.c_contiguous and mesh.points.flags.aligned
    assert mesh.joint_weights is None
    again = written(scene)
    for before, after in zip((one, other), again.surfaces, strict=True):
        after.bounds = before.bounds
    assert content(made.mesh_file(one, other))[44:] == content(again)[44:]


def test_frames_without_length_take_the_normal_of_their_triangle() -> None:
    surface = made.fan("a", 2)
    surface.targets[0].tangents[0] = 0
    surface.targets[0].tangents[1] = (0, 0, 16384, 16384)
    scene = mapped(made.mesh_file(surface))
    mesh = mesh_of(scene)
    a, b, c = mesh.points[mesh.corner_point[:3]].astype(np.float64)
    face = np.cross(b - a, c - a)
    assert mesh.normal is not None and mesh.tangent is not None
    np.testing.assert_allclose(mesh.normal.values[0], face / np.linalg.norm(face), atol=1e-6)
    assert mesh.tangent.values[0].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(np.linalg.norm(mesh.normal.values, axis=1), 1, atol=1e-6)
    assert scene.warnings == ["1 tangent frame has no length; computed from the triangles"]
    frame = written(scene).surfaces[0].targets[0].tangents[0]
    np.testing.assert_allclose(decode_frames(frame[None])[0][0], face / np.linalg.norm(face), atol=1e-3)


def test_names_of_objects() -> None:
    document = made.mesh_file(made.fan("bark_lod_0"), made.fan("leaf_lod_0"))
    assert mapped(document).nodes[0].name == "file"
    assert mapped(document, use_surface_name=True).nodes[0].name == "bark"
    assert mapped(made.mesh_file(made.fan("")), use_surface_name=True).nodes[0].name == "file"
    assert mapped(made.mesh_file(), use_surface_name=True).nodes[0].name == "file"


def test_coordinates_that_are_no_numbers() -> None:
    surface = made.fan("a")
    assert surface.uv0 is not None
    surface.uv0[2, 1] = np.nan
    scene = mapped(made.mesh_file(surface))
    assert mesh_of(scene).uvs[0].values[2, 1] == 0
    assert len(scene.warnings) == 1


def test_weights_fill_four_slots() -> None:
    surface = made.with_weights(made.fan("a", 2))
    mesh = mesh_of(mapped(made.mesh_file(surface, made.fan("b", 2), bones=2)))
    assert mesh.joint_indices is not None and mesh.joint_weights is not None
    assert mesh.joint_indices.tolist() == [[0] * 4, [1, 0, 0, 0]] * 2 + [[0] * 4] * 4
    expected = np.float32([[1, 0, 0, 0], [40000 / 65535, 25534 / 65535, 0, 0]] * 2 + [[0] * 4] * 4)
    np.testing.assert_allclose(mesh.joint_weights, expected, atol=1e-7)
    assert [surface.has_weights for surface in mesh.surfaces] == [True, False]


def test_shapes_of_several_surfaces_are_one_key_a_name() -> None:
    one = made.with_target(made.with_target(made.fan("a"), "smile", seed=3), "", seed=4)
    other = made.with_target(made.with_target(made.fan("b"), "frown", seed=5), "smile", seed=6)
    one.targets[0].name = "rest"
    document = made.mesh_file(one, other)
    mesh = mesh_of(mapped(document))
    assert [key.name for key in mesh.shape_keys] == ["smile", "Target 2", "frown"]
    assert [surface.shape_keys for surface in mesh.surfaces] == [
        {"smile": "smile", "Target 2": ""},
        {"frown": "frown", "smile": "smile"},
    ]
    assert [surface.base_name for surface in mesh.surfaces] == ["rest", ""]
    smile, second, frown = mesh.shape_keys
    np.testing.assert_array_equal(smile.points, np.concatenate((one.targets[1].positions, other.targets[2].positions)))
    np.testing.assert_array_equal(second.points, np.concatenate((one.targets[2].positions, other.targets[0].positions)))
    np.testing.assert_array_equal(frown.points[:6], mesh.points[:6])
    assert mesh.normal is not None and smile.normal is not None and second.normal is not None
    np.testing.assert_array_equal(smile.normal.values[:9], decode_frames(one.targets[1].tangents)[0])
    np.testing.assert_array_equal(second.normal.values[9:], mesh.normal.values[9:])
    for version in ("ms12", "ms13", "ms14"):
        again = written(mapped(document), version)
        for before, after in zip(document.surfaces, again.surfaces, strict=True):
            assert [target.name for target in after.targets] == [target.name for target in before.targets]
            for first, second_target in zip(before.targets, after.targets, strict=True):
                np.testing.assert_array_equal(first.positions, second_target.positions)
                np.testing.assert_array_equal(first.tangents, second_target.tangents)


def test_frames_of_shapes_without_length_are_those_at_rest() -> None:
    surface = made.with_target(made.fan("a"), "x")
    surface.targets[1].tangents[2] = 0
    mesh = mesh_of(mapped(made.mesh_file(surface)))
    assert mesh.normal is not None and mesh.shape_keys[0].normal is not None
    np.testing.assert_array_equal(mesh.shape_keys[0].normal.values[2], mesh.normal.values[2])


def test_two_targets_of_one_name_in_one_surface() -> None:
    surface = made.with_target(made.with_target(made.fan("a"), "x", seed=3), "x", seed=4)
    mesh = mesh_of(mapped(made.mesh_file(surface)))
    assert mesh.surfaces[0].shape_keys == {"x": "x", "x 2": "x"}
    again = written(mapped(made.mesh_file(surface)))
    assert [target.name for target in again.surfaces[0].targets] == ["", "x", "x"]


def test_soup_is_welded_within_its_surfaces() -> None:
    corner = np.float32([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    rows = np.zeros((6, 8), np.float32)
    rows[:, :3], rows[:, 5] = corner, 1
    rows[:, 6:] = np.arange(12).reshape(6, 2) / 16
    surfaces = [doc.SoupSurface(name.encode().ljust(128, b"\0"), rows.copy()) for name in ("left", "right")]
    document = doc.MeshFile("mr02", soup=surfaces)
    mesh = mesh_of(mapped(document))
    assert len(mesh.points) == 8
    assert mesh.corner_point.tolist() == [0, 1, 2, 1, 3, 2, 4, 5, 6, 5, 7, 6]
    assert mesh.materials == ["left", "right"]
    assert mesh.uvs[0].per_corner
    np.testing.assert_array_equal(mesh.uvs[0].values, np.tile(rows[:, 6:], (2, 1)))  # v is not flipped here
    again = written(mapped(document), "mr02")
    for before, after in zip(document.soup, again.soup, strict=True):
        assert before.name == after.name
        np.testing.assert_array_equal(before.vertices, after.vertices)


# -- from the scene -----------------------------------------------------------------------------


def test_a_plain_quad() -> None:
    document = written(made.scene_of(made.quad()))
    (surface,) = document.surfaces
    assert (document.version, surface.name, document.bones) == ("ms13", "Floor", [])
    assert (surface.lightmap_channel, surface.lightmap_resolution) == (1, 3)
    assert surface.c_indices.tolist() == [0, 1, 2, 0, 2, 3]
    assert surface.t_indices.tolist() == [0, 1, 2, 0, 2, 3]
    assert surface.c_indices.dtype == surface.t_indices.dtype == np.uint8
    assert surface.uv0 is not None
    assert surface.uv0.tolist() == [[0, 1], [1, 1], [1, 0], [0, 0]]
    assert surface.uv1 is None and surface.colors is None and surface.weights is None
    # u along x and v, from the top, along -y: no rotation, the binormal turned round.
    assert surface.targets[0].tangents.tolist() == [[0, 0, 0, -32767]] * 4
    assert surface.bounds.tolist() == [-1, -1, 0, 1, 1, 0, 0, 0, 0, np.float32(np.sqrt(2))]
    assert document.bounds.tolist() == surface.bounds.tolist()


@pytest.mark.parametrize(("count", "size"), [(255, 1), (256, 2), (65535, 2), (65536, 4)])
def test_width_of_indices(count: int, size: int) -> None:
    points = np.random.default_rng(0).uniform(size=(count, 3)).astype(np.float32)
    corners = np.arange(count + 2, dtype=np.int32) % count
    corners = corners[: len(corners) // 3 * 3] if count % 3 == 1 else np.resize(corners, (count + 5) // 3 * 3)
    mesh = made.quad(points=points, corner_point=corners, normal=None, uvs=[])
    mesh.material_index = np.zeros(mesh.triangle_count, np.int32)
    (surface,) = written(made.scene_of(mesh)).surfaces
    assert len(surface.targets[0].positions) == count
    assert surface.c_indices.dtype.itemsize == size
    assert surface.t_indices.dtype.itemsize == size


def test_slots_become_surfaces_with_pools_of_their_own() -> None:
    mesh = made.quad(materials=["Unused", "B", "", "A"], material_index=np.array([3, 1], np.int32))
    scene = made.scene_of(mesh)
    document = written(scene)
    assert [surface.name for surface in document.surfaces] == ["B", "A"]
    first, second = document.surfaces
    # The second triangle, 0 2 3, comes first; points in their order, its first corner first.
    np.testing.assert_array_equal(first.targets[0].positions, mesh.points[[0, 2, 3]])
    assert first.c_indices.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(second.targets[0].positions, mesh.points[[0, 1, 2]])
    assert scene.warnings == ["Thing: 2 material slots without triangles were left out: 'Unused', ''"]
    mesh.surfaces = [sc.Surface(f"s{n}") for n in range(4)]
    assert [surface.name for surface in written(made.scene_of(mesh)).surfaces] == ["s1", "s3"]
    mesh.surfaces[0].is_empty = True  # as it was in its file
    document = written(made.scene_of(mesh))
    assert [surface.name for surface in document.surfaces] == ["s0", "s1", "s3"]
    assert len(document.surfaces[0].targets[0].positions) == 0
    assert document.surfaces[0].bounds[9] == -1
    again = mapped(UNIGINE_MESH.read(content(document)))
    assert mesh_of(again).surfaces[0].is_empty
    assert len(written(again).surfaces) == 3


def test_an_object_without_materials_names_its_surface() -> None:
    assert [s.name for s in written(made.scene_of(made.quad(materials=[]), name="Thing")).surfaces] == ["Thing"]
    nothing = made.quad(
        materials=[],
        corner_point=np.empty(0, np.int32),
        material_index=np.empty(0, np.int32),
        points=np.empty((0, 3), "f4"),
    )
    nothing.normal, nothing.uvs = None, []
    assert written(made.scene_of(nothing)).surfaces == []


def test_values_without_triangles_are_nothing() -> None:
    none = np.empty(0, np.int32)
    mesh = made.quad(corner_point=none, material_index=none, normal=None)
    mesh.uvs = [sc.Layer("UV0", np.ones((3, 2), np.float32), none)]
    assert written(made.scene_of(mesh)).surfaces == []


def test_uv_layers_go_by_name_and_then_by_place() -> None:
    layers = {
        name: sc.Layer(name, np.full((4, 2), number / 8, np.float32))
        for number, name in enumerate(("UV0", "UV1", "a", "b"))
    }

    def stored(*names: str) -> list[float | None]:
        (surface,) = written(made.scene_of(made.quad(uvs=[layers[name] for name in names]))).surfaces
        return [None if uv is None else float(uv[0, 0]) for uv in (surface.uv0, surface.uv1)]

    assert stored("UV1", "UV0") == [0, 0.125]
    assert stored("UV1") == [None, 0.125]
    assert stored("a") == [0.25, None]
    assert stored("a", "b", "UV0") == [0, 0.25]
    assert stored("b", "UV1") == [0.375, 0.125]
    assert stored() == [None, None]


def test_a_surface_holds_what_it_held_or_what_now_moves_it() -> None:
    mesh = made.quad(materials=["a", "b"], material_index=np.array([0, 1], np.int32))
    mesh.colors = [sc.Layer("Color", np.full((4, 4), 9, np.uint8))]
    mesh.surfaces = [
        sc.Surface("a", uvs=(False,), has_colors=False, has_weights=False, shape_keys={"still": "Old"}),
        sc.Surface("b", has_weights=True),
    ]
    made.weighted(mesh, [0], [0])
    assert mesh.joint_weights is not None
    mesh.joint_weights[1] = 1  # a point of the first triangle only
    still, moved = mesh.points.copy(), mesh.points.copy()
    moved[3, 2] = 1  # a point of the second triangle only
    mesh.shape_keys = [sc.ShapeKey("moved", moved), sc.ShapeKey("still", still)]
    scene = made.scene_of(mesh, joints=1)
    first, second = written(scene).surfaces
    assert first.uv0 is None and second.uv0 is not None
    assert first.colors is None and second.colors is not None
    assert first.weights is not None and first.weights.counts.tolist() == [0, 1, 0]
    assert second.weights is not None and second.weights.counts.tolist() == [0, 0, 0]
    assert [target.name for target in first.targets] == ["", "Old"]
    assert [target.name for target in second.targets] == ["", "moved"]
    np.testing.assert_array_equal(second.targets[1].positions[2], [-1, 1, 1])
    assert [message.code for message in scene.warnings] == ["unused-layers"] * 2
    loose = [str(finding) for finding in UNIGINE_MESH.check(written(scene)) if "no bone moves" in str(finding)]
    assert loose == [
        "Surface 'a': 2 vertices have no weights; no bone moves them",
        "Surface 'b': 3 vertices have no weights; no bone moves them",
    ]


def test_shape_keys_without_normals_turn_as_their_triangles() -> None:
    mesh = made.quad()
    tilted = mesh.points.copy()
    tilted[:, 2] = tilted[:, 0]  # by 45°
    mesh.shape_keys = [sc.ShapeKey("tilted", tilted)]
    target = written(made.scene_of(mesh)).surfaces[0].targets[1]
    normals, tangents, _ = decode_frames(target.tangents)
    np.testing.assert_allclose(normals, np.tile([-(0.5**0.5), 0, 0.5**0.5], (4, 1)), atol=1e-3)
    np.testing.assert_allclose(tangents[:, :3], np.tile([0.5**0.5, 0, 0.5**0.5], (4, 1)), atol=1e-3)
    # Given ones win.
    mesh.shape_keys[0].normal = sc.Layer("normal", np.tile(np.float32([0, 1, 0]), (4, 1)))
    target = written(made.scene_of(mesh)).surfaces[0].targets[1]
    np.testing.assert_allclose(decode_frames(target.tangents)[0], np.tile([0, 1, 0], (4, 1)), atol=1e-3)


def test_damaged_layers_are_mended() -> None:
    mesh = made.at_corners(made.quad())
    assert mesh.normal is not None
    mesh.normal.values[0] = 0
    mesh.normal.values[1] = np.nan
    mesh.tangent = sc.Layer("tangent", np.tile(np.float32([1, 0, 0, 1]), (6, 1)), per_corner=True)
    mesh.tangent.values[2] = np.inf
    mesh.tangent.values[3] = (0, 1e30, 0, 1)
    mesh.uvs[0].values[4, 0] = np.nan
    scene = made.scene_of(mesh)
    (surface,) = written(scene).surfaces
    normals, tangents, _ = decode_frames(surface.targets[0].tangents[surface.t_indices])
    np.testing.assert_allclose(normals, np.tile([0, 0, 1], (6, 1)), atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(tangents[:, :3], axis=1), 1, atol=1e-5)
    assert surface.uv0 is not None and np.isfinite(surface.uv0).all()
    assert scene.warnings == ["Thing: 1 coordinate of 'UVMap' NaN or infinite; written as 0"]


def test_colours_are_bytes() -> None:
    given = np.float32([[0, 0.5, 1, 0.5]] * 4)
    (surface,) = written(made.scene_of(made.quad(colors=[sc.Layer("c", given)]))).surfaces
    assert surface.colors is not None
    assert surface.colors[0].tolist() == [0, 188, 255, 128]  # 0.5 linear is 188 / 255 in sRGB
    raw = np.arange(16, dtype=np.uint8).reshape(4, 4)
    (surface,) = written(made.scene_of(made.quad(colors=[sc.Layer("c", raw)]))).surfaces
    np.testing.assert_array_equal(surface.colors, raw)


@pytest.mark.parametrize("color", [0, 255])
def test_values_that_a_surface_does_not_hold_are_told(color: int) -> None:
    mesh = made.quad(colors=[sc.Layer("Color", np.full((4, 4), color, np.uint8))])
    mesh.surfaces = [sc.Surface("a", uvs=(False,), has_colors=False)]
    scene = made.scene_of(mesh)
    (surface,) = written(scene).surfaces
    assert surface.uv0 is None and surface.colors is None
    lost = ["UVMap"] + ["Color"] * (color != 255)  # white stands for no colour
    assert scene.warnings == [
        f"Thing: left out '{name}' of 'a', where it is turned off; turn it on in the list of surfaces" for name in lost
    ]


def test_new_layers_on_what_came_from_a_file_are_written() -> None:
    for document in (
        made.mesh_file(made.fan("a", uv0=None)),
        doc.MeshFile(
            "mr02",
            soup=[doc.SoupSurface(b"a".ljust(128, b"\0"), np.random.default_rng(0).uniform(size=(6, 8)).astype("f4"))],
        ),
    ):
        scene = mapped(document)
        mesh = mesh_of(scene)
        count = len(mesh.points)
        mesh.colors = [sc.Layer("painted", np.full((count, 4), 5, np.uint8))]
        mesh.uvs = [sc.Layer("new", np.full((count, 2), 0.5, np.float32)), *mesh.uvs]
        (surface,) = written(scene).surfaces
        assert surface.colors is not None and surface.uv0 is not None
        assert scene.warnings == []


def test_points_of_no_triangle_are_told() -> None:
    mesh = made.quad()
    mesh.corner_point = mesh.corner_point[:3]
    mesh.material_index = mesh.material_index[:1]
    scene = made.scene_of(mesh)
    assert len(written(scene).surfaces[0].targets[0].positions) == 3
    assert scene.warnings == ["Thing: 1 vertex belongs to no triangle; left out"]


# -- weights ------------------------------------------------------------------------------------


def stored_weights(indices: Any, weights: Any, joints: int = 6) -> tuple[list[int], list[int], list[str]]:
    """Return the bones and weights of the first vertex, and the warnings."""
    scene = made.scene_of(made.weighted(made.quad(), indices, weights), joints=joints)
    (surface,) = written(scene).surfaces
    if surface.weights is None:
        return [], [], scene.warnings
    count = int(surface.weights.counts[0])
    return surface.weights.bones[:count].tolist(), surface.weights.values[:count].tolist(), scene.warnings


def test_weights_are_truncated_in_their_order() -> None:
    assert stored_weights([5, 2, 0, 0], [0.25, 0.75, 0, 0]) == ([5, 2], [16383, 49151], [])
    assert stored_weights([3], [1]) == ([3], [65535], [])
    third = 1 / 3
    assert stored_weights([0, 1, 2], [third] * 3) == ([0, 1, 2], [21845] * 3, [])
    # What a file held comes back to the bit, though float32 may have rounded it down.
    for value in range(0, 65535, 97):
        _, values, said = stored_weights(
            [0, 1], [np.float32(value) / np.float32(65535), np.float32(65535 - value) / np.float32(65535)]
        )
        assert values == [v for v in (value, 65535 - value) if v], value
        assert not said


def test_weights_that_do_not_sum_to_one() -> None:
    bones, values, said = stored_weights([0, 1], [1, 3])
    assert (bones, values) == ([0, 1], [16383, 49151])
    assert said == ["Thing: the weights of 4 vertices did not add up to 1; normalised"]
    # One such vertex changes nothing of the others.
    mesh = made.weighted(made.quad(), [0, 1], [0, 0])
    assert mesh.joint_weights is not None
    mesh.joint_weights[:3, 0] = np.float32([1003, 25001, 43211]) / np.float32(65535)
    mesh.joint_weights[:3, 1] = np.float32([64532, 40534, 22324]) / np.float32(65535)
    mesh.joint_weights[3] = 3
    (surface,) = written(made.scene_of(mesh, joints=2)).surfaces
    assert surface.weights is not None
    assert surface.weights.values.tolist() == [1003, 64532, 25001, 40534, 43211, 22324, 32767, 32767]
    # Four truncated weights of a file miss 1 by 3 steps.
    assert stored_weights([0, 1], [32767 / 65535, 32765 / 65535]) == ([0, 1], [32767, 32765], [])


def test_the_strongest_four_stay() -> None:
    bones, values, _ = stored_weights([0, 1, 2, 3, 4, 5], [0.05, 0.3, 0.2, 0.1, 0.3, 0.05])
    assert bones == [1, 2, 3, 4]
    np.testing.assert_allclose(values, np.array([0.3, 0.2, 0.1, 0.3]) / 0.9 * 65535, atol=1)


def test_weights_that_are_nothing() -> None:
    assert stored_weights([0, 1], [0, 1])[:2] == ([1], [65535])
    bones, values, said = stored_weights([0, 1], [np.nan, 1])
    assert (bones, values) == ([1], [65535])
    assert said == ["Thing: 4 vertices had weights that are negative, NaN or infinite; left out"]
    assert stored_weights([0, 9], [1, 0])[:2] == ([0], [65535])  # an unused slot may name anything


def test_weights_of_bones_that_do_not_exist() -> None:
    with pytest.raises(ExportError, match="4 vertices are weighted to bones that the armature does not have"):
        stored_weights([0, 9], [0.5, 0.5])


def test_weights_without_bones_are_told() -> None:
    scene = made.scene_of(made.weighted(made.quad(), [0], [1]))
    assert written(scene).surfaces[0].weights is None
    assert losses(scene, UNIGINE_MESH.capabilities) == ["1 weighted mesh not carried over: 'Thing'"]


# -- skeletons and animations -------------------------------------------------------------------


def animated_scene() -> sc.Scene:
    scene = made.scene_of(made.weighted(made.quad(), [1], [1]), joints=2)
    track = sc.TransformTrack(
        1, np.float32([[0, 0, 1], [0, 0, 2]]), np.tile(np.float32([1, 0, 0, 0]), (2, 1)), np.ones((2, 3), "f4"), 0
    )
    scene.clips = [sc.Clip("Walk", 30.0, 2, [track])]
    return scene


@pytest.mark.parametrize("version", ["ms10", "ms11", "ms12"])
def test_animations_go_inside_where_the_version_has_them(version: str) -> None:
    scene = animated_scene()
    document = UNIGINE_MESH.read(content(written(scene, version, use_embedded_animation=True)))
    assert [animation.name for animation in document.animations] == ["Walk"]
    again = mapped(document, assumed_frame_rate=24.0)
    (clip,) = again.clips
    assert (clip.name, clip.fps, clip.frame_count) == ("Walk", 24.0, 2)
    assert [(track.target, track.skeleton) for track in clip.transforms] == [(1, 0)]
    np.testing.assert_array_equal(clip.transforms[0].translation, [[0, 0, 1], [0, 0, 2]])
    assert mapped(document).clips[0].fps == 0


def test_animations_left_out_are_told() -> None:
    for version in ("ms12", "ms13", "ms14"):
        scene = animated_scene()
        assert written(scene, version).animations == []
        assert scene.warnings == ["Thing: 1 animation is not in the mesh file: 'Walk'. Write .anim files for them"]


def test_bind_transforms_pass_to_the_bit() -> None:
    document = made.mesh_file(made.with_weights(made.fan("a")), bones=2)
    document.bones[0].parent = 1  # a parent behind its child
    document.bones[1].parent = -1
    document.transforms = np.random.default_rng(0).normal(size=(2, 10)).astype(np.float32)
    for turn in (False, True):
        again = written(mapped(document, use_turn=turn), use_turn=turn)
        assert [(bone.name, bone.parent) for bone in again.bones] == [("bone 0", 1), ("bone 1", -1)]
        np.testing.assert_array_equal(again.transforms.view(np.uint32), document.transforms.view(np.uint32))


# -- refusals -----------------------------------------------------------------------------------


def with_shape_key(scene: sc.Scene) -> sc.Scene:
    mesh_of(scene).shape_keys = [sc.ShapeKey("Key", mesh_of(scene).points)]
    return scene


def with_nan(scene: sc.Scene) -> sc.Scene:
    mesh_of(scene).points[1, 1] = np.nan
    return scene


def with_infinite_key(scene: sc.Scene) -> sc.Scene:
    with_shape_key(scene)
    mesh_of(scene).shape_keys[0].points = mesh_of(scene).points + np.float32(np.inf)
    return scene


def with_far_point(scene: sc.Scene) -> sc.Scene:
    mesh_of(scene).points[1, 1] = -1e30
    return scene


def with_long_name(scene: sc.Scene) -> sc.Scene:
    mesh_of(scene).materials = ["ж" * 2048]
    return scene


def with_many_slots(scene: sc.Scene) -> sc.Scene:
    mesh_of(scene).materials = ["m"] * 32768
    return scene


def with_two_objects(scene: sc.Scene) -> sc.Scene:
    scene.nodes.append(sc.Node("Other", mesh=made.quad()))
    return scene


def without_mesh(scene: sc.Scene) -> sc.Scene:
    scene.nodes = [sc.Node("Empty")]
    return scene


STATIC_SCENE = lambda: made.scene_of(made.quad())  # noqa: E731
RIGGED_SCENE = lambda: made.scene_of(made.weighted(made.quad(), [0], [1]), joints=1)  # noqa: E731


@pytest.mark.parametrize(
    ("scene", "version", "said"),
    [
        (RIGGED_SCENE, "ms15", "has an armature, which ms15 cannot hold; choose sk10, ms14 or ms13, or remove it"),
        (RIGGED_SCENE, "mr02", "has an armature, which mr02 cannot hold"),
        (lambda: with_shape_key(STATIC_SCENE()), "ms15", "has shape keys, which ms15 cannot hold"),
        (lambda: with_shape_key(RIGGED_SCENE()), "mr02", "an armature and shape keys, .* or remove them"),
        (lambda: with_nan(STATIC_SCENE()), "ms13", "with NaN or infinite coordinates; delete them"),
        (lambda: with_infinite_key(STATIC_SCENE()), "ms13", "with NaN or infinite coordinates; delete them"),
        (lambda: with_far_point(STATIC_SCENE()), "ms13", "too far away to have bounds; delete them"),
        (lambda: with_long_name(STATIC_SCENE()), "ms13", "too long for the file; 4,095 bytes at most"),
        (lambda: with_many_slots(STATIC_SCENE()), "ms13", "32,768 material slots; UNIGINE allows 32,767"),
        (lambda: with_two_objects(STATIC_SCENE()), "ms13", r"one object, not 2 \('Thing', 'Other'\); join them"),
        (lambda: without_mesh(STATIC_SCENE()), "ms13", "no mesh to write; select a mesh object"),
    ],
)
def test_refused_with_the_way_out(scene: Callable[[], sc.Scene], version: str, said: str) -> None:
    with pytest.raises(ExportError, match=said):
        written(scene(), version)


@pytest.mark.parametrize("version", ["ms13", "ms14"])
def test_animations_inside_later_versions_are_refused(version: str) -> None:
    with pytest.raises(ExportError, match=f"{version} holds no animations; choose ms12 or write"):
        written(animated_scene(), version, use_embedded_animation=True)
    static = made.scene_of(made.quad())
    assert written(static, version, use_embedded_animation=True).animations == []


def test_what_a_version_leaves_out_is_told() -> None:
    mesh = made.quad(colors=[sc.Layer("c", np.zeros((4, 4), np.uint8))])
    scene = made.scene_of(mesh, name="ж" * 70)
    mesh.materials = [""]
    (soup,) = written(scene, "mr02").soup
    assert soup.name == ("ж" * 63).encode().ljust(128, b"\0")
    assert len(scene.warnings) == 2
    mesh.surfaces = [sc.Surface("a", lightmap_channel=0, lightmap_resolution=7)]
    scene = made.scene_of(mesh)
    written(scene, "ms11")
    assert scene.warnings == ["Thing: ms11 holds no lightmap settings; left out those of 1 surface"]
    (surface,) = written(made.scene_of(mesh), "ms12").surfaces
    assert (surface.lightmap_channel, surface.lightmap_resolution) == (0, 7)


# -- files --------------------------------------------------------------------------------------


def files(scene: sc.Scene, **options: Any) -> list[sc.Scene]:
    return UNIGINE_MESH.files_of(scene, options)


def two_rigs() -> sc.Scene:
    scene = animated_scene()
    scene.skeletons.append(sc.Skeleton("Other rig", [sc.Joint("x")]))
    scene.nodes.append(sc.Node("Second", mesh=made.weighted(made.quad(materials=["Wall"]), [0], [1]), skeleton=1))
    scene.nodes.append(sc.Node("Empty"))
    scene.nodes.append(sc.Node("Third", mesh=made.quad()))
    track = replace(scene.clips[0].transforms[0], target=0, skeleton=1)
    scene.clips.append(sc.Clip("Wave", 30.0, 2, [track]))
    scene.clips.append(sc.Clip("Both", 30.0, 2, [scene.clips[0].transforms[0], track]))
    return scene


def test_each_object_is_a_file_with_its_own_skeleton_and_clips() -> None:
    scene = two_rigs()
    found = files(scene)
    assert [part.name for part in found] == ["Thing", "Second", "Third"]
    assert [len(part.nodes) for part in found] == [1, 1, 1]
    assert [[skeleton.name for skeleton in part.skeletons] for part in found] == [["Rig"], ["Other rig"], []]
    assert [[clip.name for clip in part.clips] for part in found] == [["Walk", "Both"], ["Wave", "Both"], []]
    assert [part.nodes[0].skeleton for part in found] == [0, 0, None]
    assert all(track.skeleton == 0 for part in found for clip in part.clips for track in clip.transforms)
    assert [track.target for track in found[1].clips[1].transforms] == [0]
    assert found[0].warnings is scene.warnings
    for part in found:
        content(written(part))
    assert scene.nodes[1].skeleton == 1 and scene.clips[1].transforms[0].skeleton == 1
    assert files(sc.Scene("nothing", [sc.Node("Empty")])) == []


def test_joined_objects_need_one_armature() -> None:
    scene = two_rigs()
    with pytest.raises(ExportError, match="'Thing' on 'Rig' and 'Second' on 'Other rig'"):
        files(scene, mesh_files="JOINED")
    scene.nodes[1].skeleton = 0
    (part,) = files(scene, mesh_files="JOINED")
    assert part.name == "Thing"  # of the scene
    assert [skeleton.name for skeleton in part.skeletons] == ["Rig"]
    document = written(part)
    assert [(surface.name, len(surface.c_indices)) for surface in document.surfaces] == [("Floor", 12), ("Wall", 6)]
    first = document.surfaces[0].weights
    assert first is not None and first.counts.tolist() == [1] * 4 + [0] * 4


def test_joined_objects_keep_their_places() -> None:
    scene = made.scene_of(made.quad())
    away = np.eye(4)
    away[:3, 3] = (5, 0, 2)
    scene.nodes[0].world = np.eye(4)
    scene.nodes.append(sc.Node("Other", mesh=made.quad(), world=away))
    (part,) = files(scene, mesh_files="JOINED")
    np.testing.assert_allclose(mesh_of(part).points[4:] - mesh_of(part).points[:4], np.tile([5, 0, 2], (4, 1)))
    scene.nodes.reverse()
    (part,) = files(scene, mesh_files="JOINED")
    np.testing.assert_allclose(mesh_of(part).points[4:] - mesh_of(part).points[:4], np.tile([-5, 0, -2], (4, 1)))
    assert [part.name for part in files(scene)] == ["Other", "Thing"]


# -- checks and facts ---------------------------------------------------------------------------


def found_by_check(document: doc.MeshFile) -> str:
    return "; ".join(str(finding) for finding in UNIGINE_MESH.check(document))


def sound() -> doc.MeshFile:
    return written(mapped(made.mesh_file(made.with_weights(made.fan("a")), made.fan("b"), bones=2)))


def test_nothing_is_said_of_what_is_sound() -> None:
    assert found_by_check(sound()) == ""


def _fewer_weights(document: doc.MeshFile) -> None:
    weights = document.surfaces[0].weights
    assert weights is not None
    weights.values = weights.values.copy()
    weights.values[1] = 1


def _many_bones(document: doc.MeshFile) -> None:
    document.bones = [replace(document.bones[0], name=str(number)) for number in range(200)]
    document.surfaces[0].weights = doc.Weights(
        np.full(50, 4, np.uint8), np.arange(200, dtype="i2"), np.full(200, 16383, "u2")
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: setattr(d.surfaces[1], "name", "a"), "surface name is used twice"),
        (lambda d: setattr(d.surfaces[1], "name", ""), "1 surface has no name"),
        (lambda d: setattr(d.bones[1], "name", "bone 0"), "bone name is used twice"),
        (lambda d: setattr(d.bones[1], "name", "BONE 0"), "2 bone names differ in upper and lower case only"),
        (lambda d: setattr(d, "surfaces", []), "no surfaces"),
        (lambda d: setattr(d.surfaces[0], "uv0", None), "no first UV map.*'a'"),
        (lambda d: setattr(d.surfaces[0], "bounds", d.surfaces[0].bounds * 2), "bounds disagree"),
        (lambda d: d.surfaces[0].targets[0].tangents.__setitem__(0, (0, 0, 0, 30000)), "1 tangent is not of unit"),
        (lambda d: d.surfaces[0].c_indices.__setitem__(1, d.surfaces[0].c_indices[0]), "1 triangle has a corner twice"),
        (lambda d: setattr(d.surfaces[1], "c_indices", np.empty(0, "u1")), "1 surface has no triangles: 'b'"),
        (_fewer_weights, "1 vertex has weights that do not sum to 1"),
        (lambda d: d.surfaces[0].weights.counts.__setitem__(0, 0), "1 vertex has no weights"),
        (_many_bones, "200 bones move it; SDKs before 2.20 allow 128"),
        (lambda d: d.surfaces[0].targets.extend(d.surfaces[0].targets * 8), "8 morph targets.*play 7"),
    ],
)
def test_each_surprise_is_said(change: Callable[[doc.MeshFile], Any], said: str) -> None:
    document = sound()
    change(document)
    with np.errstate(all="raise"):
        text = found_by_check(document)
    assert re.search(said, text), text
    assert all(finding.kind.value == "warning" for finding in UNIGINE_MESH.check(document))


def test_large_surfaces_of_ms14_are_unproven() -> None:
    document = sound()
    document.version = "ms14"
    assert found_by_check(document) == ""
    base = document.surfaces[1].targets[0]
    base.tangents = np.tile(base.tangents[:1], (65536, 1))
    assert "no file of ms14 with 65,536 vertices" in found_by_check(document)


def test_facts_of_a_document() -> None:
    one = made.with_target(made.with_weights(made.fan("a")), "smile")
    facts = UNIGINE_MESH.facts(made.mesh_file(one, made.fan("b", uv0=None), bones=2))
    assert facts == {
        "version": "ms13",
        "nodes": 1,
        "vertices": 12,
        "triangles": 8,
        "surfaces": 2,
        "materials": 2,
        "uv_layers": 1,
        "color_layers": 0,
        "bones": 2,
        "shape_keys": 1,
        "clips": [],
        "warnings": [],
    }


# -- files that ask for more than they hold -----------------------------------------------------


@pytest.mark.slow
def test_scattered_shapes_do_not_fill_the_memory() -> None:
    large = made.fan("large")
    large.targets[0].positions = np.zeros((500_000, 3), np.float32)
    many = [made.with_target(made.fan(str(number)), f"shape {number}") for number in range(400)]
    with pytest.raises(FormatError, match=r"400 morph targets of different names would take [0-9,]+ MiB"):
        mapped(made.mesh_file(large, *many))
    for surface in many:
        surface.targets[1].name = "shape"
    assert len(mesh_of(mapped(made.mesh_file(large, *many))).shape_keys) == 1


@pytest.mark.slow
def test_crowds_of_targets_of_one_name_are_numbered_quickly() -> None:
    surface = made.fan("a", 1)
    surface.targets += [replace(surface.targets[0], name="x") for _ in range(20_000)]
    document = made.mesh_file(surface)
    names: list[str] = []
    steps = python_steps(lambda: names.extend(key.name for key in mesh_of(mapped(document)).shape_keys))
    assert steps < 100 * 20_000, steps
    assert names[:3] == ["x", "x 2", "x 3"] and names[-1] == "x 20000"
