"""Levels of upload sets have the box of the highest one, judged by an XML parser of the tests' own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import collada_oracle
import numpy as np
import numpy.typing as npt
import pytest
import upload_scenes
import viewer_matching
from encoding import encode_with_errors
from load_package import SAMPLES
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.messages import Message
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

Array = npt.NDArray[np.float64]

LEVELS = ("hut.dae", "hut_LOD2.dae", "hut_LOD1.dae", "hut_LOD0.dae")
BOX, VERTICES = "level-box-triangles", "level-box-vertices"


def exported(scene: sc.Scene, **options: Any) -> tuple[list[collada_oracle.Document], list[Message]]:
    """Return the four levels of a set, parsed, and all messages of the export, findings included."""
    scene.warnings.clear()
    encoded = encode_with_errors(scene, SECOND_LIFE_UPLOAD, options, path="hut.dae")
    files = {output.name: output.data for output in encoded.outputs}
    return [collada_oracle.parse(files[name]) for name in LEVELS], encoded.messages


def geometries(documents: Sequence[collada_oracle.Document], number: int = 0) -> list[collada_oracle.Geometry]:
    return [document.instances[number].geometry for document in documents]


def codes(messages: Sequence[Message]) -> list[str]:
    """Return the codes of the messages about boxes."""
    return [found.code for found in messages if found.code in {BOX, VERTICES, "level-stretched"}]


def box(geometry: collada_oracle.Geometry) -> Array:
    """Return the bounds (2, 3) of all triangles."""
    points = np.concatenate(list(geometry.faces.values()))[:, :3]
    return np.stack((points.min(axis=0), points.max(axis=0)))


def vertex_count(geometry: collada_oracle.Geometry) -> int:
    return sum(len(np.unique(np.nan_to_num(corners), axis=0)) for corners in geometry.faces.values())


def added(level: collada_oracle.Geometry, count: int) -> Array:
    """Return the triangles of a level without those of its own, which the writer puts first: (n, 3, 8)."""
    triangles = np.concatenate([corners.reshape(-1, 3, 8) for corners in level.faces.values()])
    size = np.ptp(box(level), axis=0)
    legs = np.abs(triangles - triangles[:, :1])[:, :, :3].max(axis=1) / np.where(size > 0, size, 1)
    small = triangles[legs.max(axis=1) < 0.021]
    assert len(small) == count
    return small


def solid(points: npt.ArrayLike, triangles: npt.ArrayLike, *, slots: npt.ArrayLike | None = None) -> sc.Mesh:
    """Return a mesh with flat normals, UVs that differ at all corners, and the materials wood and stone."""
    points, corners = np.array(points, np.float32), np.array(triangles, np.int32).reshape(-1)
    a, b, c = points[corners].reshape(-1, 3, 3).transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    uvs = np.stack((np.arange(len(corners)), np.arange(len(corners)) % 7), axis=1) / 100
    return sc.Mesh(
        points,
        corners,
        np.zeros(len(corners) // 3, np.int32) if slots is None else np.array(slots, np.int32),
        ["wood", "stone"],
        normal=sc.Layer("", np.repeat(normals, 3, axis=0).astype(np.float32), per_corner=True),
        uvs=[sc.Layer("UVMap", uvs.astype(np.float32), per_corner=True)],
    )


SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def spiked(lengths: Sequence[float] = (1.0,) * 6, *, spikes_of: int = 0) -> sc.Mesh:
    """Return a box of ±0.5 with a pyramid on each side, whose tip alone reaches that side of the bounds.

    Parameters
    ----------
    lengths:
        Height of each pyramid; 0.5 for a flat one.
    spikes_of:
        Material slot of the pyramids that rise.
    """
    cube = [[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    tips, triangles, slots = [], [], []
    for number, ((a, b, c, d), length) in enumerate(zip(SIDES, lengths, strict=True)):
        tip = np.zeros(3)
        tip[number // 2] = length * (1 if number % 2 else -1)
        tips.append(tip.tolist())
        triangles += [(a, b, 8 + number), (b, c, 8 + number), (c, d, 8 + number), (d, a, 8 + number)]
        slots += [spikes_of if length > 0.5 else 0] * 4
    return solid(cube + tips, triangles, slots=slots)


def inner(size: Sequence[float] = (1.0, 1.0, 1.0)) -> sc.Mesh:
    """Return a box around the origin with 8 points and vertices of its own for each side."""
    cube = [[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
    triangles = [corners for a, b, c, d in SIDES for corners in ((a, b, c), (a, c, d))]
    return solid(np.array(cube) * size, triangles)


def scene_of(*meshes: sc.Mesh, **fields: Any) -> sc.Scene:
    nodes = [
        sc.Node("hut" if not level else f"hut {level}", mesh=mesh, lod=level, lod_of=0 if level else None, **fields)
        for level, mesh in enumerate(meshes)
    ]
    return sc.Scene("hut", nodes)


def check_triangles(finest: collada_oracle.Geometry, level: collada_oracle.Geometry, count: int) -> Array:
    """Assert that added triangles are where they belong; return them, (n, 3, 8)."""
    triangles = added(level, count)
    size = np.ptp(box(level), axis=0)
    size = np.where(size < 1e-5, 1, size)
    outer = np.concatenate(list(finest.faces.values())).reshape(-1, 3, 8)
    own = np.concatenate([corners.reshape(-1, 3, 8) for corners in level.faces.values()])
    for triangle in triangles:
        assert (triangle[:, 3:] == triangle[0, 3:]).all(), "one normal and one UV"
        same = (outer == triangle[0]).all(axis=2)
        assert same.any(), "the first corner is a vertex of the highest level, with its normal and UV"
        legs = np.linalg.norm((triangle[1:, :3] - triangle[0, :3]) / size, axis=1)
        assert legs == pytest.approx(legs[0], rel=1e-3)
        assert 0.00499 < legs[0] < 0.0201
        planes = outer[same.any(axis=1)][:, :, :3]
        normals = np.cross(planes[:, 1] - planes[:, 0], planes[:, 2] - planes[:, 0])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        off = np.abs(np.einsum("pk,ck->pc", normals, triangle[1:, :3] - triangle[0, :3])).max(axis=1)
        assert off.min() < 1e-6, "in a triangle of the vertex"
        others = own[(own != triangle).any(axis=(1, 2))].reshape(-1, 8)[:, :3]
        assert np.abs(others[:, None] - triangle[None, :, :3]).max(axis=2).min() > 1e-5, "on another vertex"
        assert not viewer_matching.degenerate(triangle, level.positions).any()
    return triangles


# -- where triangles are ------------------------------------------------------------------------


def test_a_triangle_for_each_side_at_the_tip_that_reaches_it() -> None:
    found, messages = exported(scene_of(spiked(), inner(), inner(), inner()))
    finest, medium, low, lowest = geometries(found)
    assert codes(messages) == [BOX]
    for level in (medium, low, lowest):
        assert np.array_equal(box(level), box(finest))
        check_triangles(finest, level, 6)
    legs = [np.abs(added(level, 6)[:, 1:, :3] - added(level, 6)[:, :1, :3]).max() for level in (medium, low, lowest)]
    assert legs == sorted(legs)
    assert legs[0] < 0.011, "the medium level is shown near by"
    (message,) = [str(found) for found in messages if found.code == BOX]
    assert message.startswith(
        "hut: 18 small triangles added to levels that end inside the box of the highest (medium 6"
    )


@pytest.mark.parametrize(("axis", "end"), [(axis, end) for axis in range(3) for end in range(2)])
def test_one_side_alone(axis: int, end: int) -> None:
    lengths = [0.5] * 6
    lengths[2 * axis + end] = 0.6
    found, messages = exported(scene_of(spiked(lengths), inner()))
    finest, level = geometries(found)[:2]
    assert np.array_equal(box(level), box(finest))
    (triangle,) = check_triangles(finest, level, 1)
    assert triangle[0, axis] == pytest.approx(0.6 if end else -0.6)
    assert codes(messages) == [BOX]


def test_one_triangle_in_a_corner_serves_three_sides() -> None:
    found, _ = exported(scene_of(spiked((0.5,) * 6), inner((0.5, 0.5, 0.25))))
    finest, level = geometries(found)[:2]
    check_triangles(finest, level, 2)
    assert np.array_equal(box(level), box(finest))


def test_a_triangle_of_a_missing_material_serves_the_box() -> None:
    lengths = (0.5, 0.9, 0.5, 0.5, 0.5, 0.5)
    found, messages = exported(scene_of(spiked(lengths, spikes_of=1), inner()))
    finest, level = geometries(found)[:2]
    check_triangles(finest, level, 1)
    assert {symbol: len(corners) for symbol, corners in level.faces.items()} == {"wood": 36, "stone": 3}
    assert np.array_equal(box(level), box(finest))
    viewer_matching.check_levels(found)
    assert codes(messages) == [BOX]


def test_rigged_levels_take_the_weights_of_the_vertex() -> None:
    scene = upload_scenes.rigged_scene()
    for node in scene.nodes[1:]:
        assert node.mesh is not None
        node.mesh.points = (node.mesh.points * (0.8, 0.8, 1.0) + (0, 0, 0.05)).astype(np.float32)
    found, messages = exported(scene)
    assert "level-box-triangles" in codes(messages)
    finest = found[0].instances[0]
    assert finest.skin is not None
    for document in found[1:]:
        level = document.instances[0]
        assert level.skin is not None
        assert len(level.skin.weights) == len(level.geometry.positions)
        lower = box(level.geometry)[0]
        assert lower == pytest.approx(box(finest.geometry)[0], abs=1e-7)
        corner = np.concatenate(list(level.geometry.corners.values()))
        at = {
            tuple(position): weights
            for position, weights in zip(finest.geometry.positions, finest.skin.weights, strict=True)
        }
        same = 0
        for triangle in corner.reshape(-1, 3):
            if np.ptp(level.geometry.positions[triangle], axis=0).max() < 0.02:
                weights = at[tuple(level.geometry.positions[triangle[0]])]
                assert np.allclose(level.skin.weights[triangle], weights, atol=1e-7)
                same += 1
        assert same >= 2


def test_parts_of_a_split_model_have_one_box() -> None:
    count = 12
    finest = sc.Mesh(
        np.random.default_rng(1).random((12 * count, 3)).astype(np.float32),
        np.arange(12 * count, dtype=np.int32),
        np.repeat(np.arange(count, dtype=np.int32), 4),
        [f"m{number:02d}" for number in range(count)],
    )
    level = replace(
        finest, corner_point=finest.corner_point[:18], material_index=np.array([0, 4, 10, 10, 10, 4], np.int32)
    )
    found, messages = exported(scene_of(finest, level))
    viewer_matching.check_levels(found)
    one, other = geometries(found)[:2]
    assert box(other) == pytest.approx(box(one), abs=1e-9)
    assert vertex_count(other) <= vertex_count(one)
    assert codes(messages) == [BOX]


def test_each_object_has_its_own_box() -> None:
    nodes = scene_of(spiked(), inner()).nodes
    nodes += [
        sc.Node("shed", mesh=spiked((2.0,) * 6), translation=(9.0, 0.0, 0.0)),
        sc.Node("shed 1", mesh=inner(), lod=1, lod_of=2),
        sc.Node("twin", mesh=spiked(), scale=(3.0, 1.0, 1.0)),
        sc.Node("twin 1", mesh=inner(), lod=1, lod_of=4),
    ]
    found, _ = exported(sc.Scene("hut", nodes))
    assert len(found[1].instances) == 3
    for number in range(3):
        one, other = geometries(found, number)[:2]
        assert np.array_equal(box(one), box(other))


# -- flat boxes ---------------------------------------------------------------------------------


def grid(cells: int, size: float, height: float = 0.0) -> sc.Mesh:
    x, y = np.meshgrid(np.linspace(-size, size, cells + 1), np.linspace(-size, size, cells + 1), indexing="ij")
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    corners = np.stack((first, first + cells + 1, first + cells + 2, first, first + cells + 2, first + 1), axis=1)
    return solid(np.stack((x, y, height * x * y), axis=2).reshape(-1, 3), corners)


def test_flat_models_stay_flat() -> None:
    found, messages = exported(scene_of(grid(6, 1.0), grid(2, 0.5)))
    finest, level = geometries(found)[:2]
    check_triangles(finest, level, 2)
    assert np.array_equal(box(level), box(finest))
    assert codes(messages) == [BOX]


@pytest.mark.parametrize(("height", "bulge"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.002)])
def test_levels_of_flat_models_stay_as_flat_as_they_are(height: float, bulge: float) -> None:
    """The viewer gives flat axes a size of 1 metre: a level with any other height would be as high."""
    level = grid(2, 0.5, bulge)
    level.points[:, 2] += np.float32(height)
    found, messages = exported(scene_of(grid(6, 1.0), level))
    one, other = (box(geometry) for geometry in geometries(found)[:2])
    assert np.array_equal(one[:, :2], other[:, :2])
    assert np.ptp(other[:, 2]) == pytest.approx(np.ptp(level.points[:, 2]), abs=1e-9)
    assert codes(messages) == [BOX]
    assert ["level-not-flat"] * (bulge > 0) == [found.code for found in messages if found.code == "level-not-flat"]


def test_flat_levels_of_solid_models() -> None:
    found, messages = exported(scene_of(grid(6, 1.0, 0.7), grid(2, 1.0), grid(1, 1.0)))
    finest, *levels = geometries(found)
    for level in levels:
        check_triangles(finest, level, 2)
        assert np.array_equal(box(level), box(finest))
    assert codes(messages) == [BOX]


def test_tips_without_width_get_triangles_along_the_axes() -> None:
    finest = spiked((0.5,) * 6)
    needle = np.array([[0.5, 0.0, 0.0], [0.5, 1e-6, 0.0], [3.0, 0.0, 0.0]], np.float32)
    finest = solid(np.concatenate((finest.points, needle)), [*finest.corner_point.reshape(-1, 3), (14, 15, 16)])
    found, messages = exported(scene_of(finest, inner()))
    one, other = geometries(found)[:2]
    assert np.array_equal(box(one), box(other))
    (triangle,) = added(other, 1)
    assert not viewer_matching.degenerate(triangle, other.positions).any()
    assert codes(messages) == [BOX]


# -- limits -------------------------------------------------------------------------------------


def test_sides_within_a_hundredth_are_moved() -> None:
    found, messages = exported(scene_of(spiked((0.5,) * 6), inner((0.985, 0.99, 1.0))))
    finest, level = geometries(found)[:2]
    assert np.array_equal(box(level), box(finest))
    assert level.triangle_count == 12
    assert codes(messages) == [VERTICES]
    assert "by 0.75%" in next(found for found in messages if found.code == VERTICES)


def test_rounding_errors_are_moved_without_a_note() -> None:
    found, messages = exported(scene_of(spiked((0.5,) * 6), inner((0.9999, 0.99999, 1.0))))
    finest, level = geometries(found)[:2]
    assert np.array_equal(box(level), box(finest))
    assert codes(messages) == []


@pytest.mark.parametrize(("sides", "triangles"), [(1, 1), (2, 2), (3, 2), (6, 2)])
def test_never_more_vertices_than_the_next_finer_level(sides: int, triangles: int) -> None:
    """The highest level has 14 vertices, the lower one 8 and three for each triangle."""
    finest, level = spiked((0.9,) * sides + (0.5,) * (6 - sides)), inner()
    found, messages = exported(scene_of(*(replace(mesh, normal=None, uvs=[]) for mesh in (finest, level))))
    one, other = geometries(found)[:2]
    assert (vertex_count(one), vertex_count(other)) == (14, 8 + 3 * triangles)
    assert codes(messages) == [BOX, *(["level-stretched"] if sides > triangles else [])]


def test_a_level_with_more_vertices_than_the_next_finer_one_is_not_stretched_either() -> None:
    """The triangles do not bring the level over the limit, which it exceeds anyway."""
    found, messages = exported(scene_of(spiked(), inner(), inner(), replace(spiked(), points=spiked().points / 2)))
    levels = geometries(found)
    assert [vertex_count(level) for level in levels] == [72, 54, 54, 90]
    assert all(np.array_equal(box(level), box(levels[0])) for level in levels)
    assert codes(messages) == [BOX]


def test_repeated_levels_and_levels_of_the_same_box_are_left_alone() -> None:
    found, messages = exported(scene_of(spiked(), spiked()))
    assert [level.triangle_count for level in geometries(found)] == [24] * 4
    assert codes(messages) == []


def test_larger_levels_and_physics_are_warned_of() -> None:
    scene = scene_of(spiked((0.5,) * 6), inner((1.1, 1.0, 0.8)))
    scene.nodes.append(sc.Node("hut physics", mesh=inner((1.0, 0.9, 1.0)), role=sc.Role.PHYSICS, shape_of=0))
    found, messages = exported(scene)
    finest, level = geometries(found)[:2]
    assert np.array_equal(box(level)[:, 1:], box(finest)[:, 1:]), "the other axes are right"
    larger, smaller = (str(found) for found in messages if found.code == "level-stretched")
    assert larger == (
        "Object 'hut': its medium level ends 5% of the size outside the box of its highest level; "
        "the viewer shrinks it to this box"
    )
    assert smaller == (
        "Object 'hut': its physics ends 5% of the size inside the box of its highest level; "
        "the viewer stretches it to this box, so that avatars collide elsewhere than they see"
    )


def test_without_the_option_levels_are_as_they_are_and_warned_of() -> None:
    found, messages = exported(scene_of(spiked(), inner()), use_keep_level_size=False)
    assert [level.triangle_count for level in geometries(found)] == [24, 12, 12, 12]
    assert codes(messages) == ["level-stretched"]


@pytest.mark.parametrize("target", [SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE, SECOND_LIFE_REQUEST])
def test_other_formats_get_no_triangles(target: Any) -> None:
    def encoded(scene: sc.Scene) -> list[bytes]:
        (part,) = api.files_of(scene, target)
        return [output.data for output in encode_with_errors(part, target).outputs]

    untouched = encoded(scene_of(spiked(), inner()))
    scene = scene_of(spiked(), inner())
    exported(scene)
    assert encoded(scene) == untouched
    assert not hasattr(target.export_options, "use_keep_level_size")


# -- samples ------------------------------------------------------------------------------------


def mesh_of(geometry: collada_oracle.Geometry) -> sc.Mesh:
    """Return a geometry as a mesh with points shared as in the file."""
    symbols = list(geometry.faces)
    corners = np.concatenate(list(geometry.faces.values())).astype(np.float32)
    return sc.Mesh(
        geometry.positions.astype(np.float32),
        np.concatenate(list(geometry.corners.values())).astype(np.int32),
        np.repeat(np.arange(len(symbols)), [len(found) // 3 for found in geometry.faces.values()]).astype(np.int32),
        symbols,
        normal=sc.Layer("", corners[:, 3:6], per_corner=True),
        uvs=[sc.Layer("UVMap", corners[:, 6:], per_corner=True)] if geometry.has_uvs else [],
    )


def _samples() -> list[str]:
    folder = SAMPLES / "secondlife"
    found = [*folder.glob("*.llmesh"), *folder.glob("*.mesh"), *folder.glob("synthetic/*.llmesh")]
    return sorted(str(path.relative_to(folder)) for path in found)


@pytest.mark.parametrize("name", _samples())
def test_levels_of_samples_have_the_box_of_the_highest(samples: Path, name: str) -> None:
    scene = api.read_scene(samples / "secondlife" / name)
    plain = geometries(exported(scene, use_keep_level_size=False)[0])
    found, messages = exported(scene)
    viewer_matching.check_levels(found)
    levels = geometries(found)
    finest = levels[0]
    size = np.ptp(box(finest), axis=0)
    for finer, level, before, finer_before in zip(levels, levels[1:], plain[1:], plain, strict=False):
        assert (np.abs(box(level) - box(finest)) <= 1e-5 * np.where(size > 0, size, 1)).all()
        if level.triangle_count > before.triangle_count and vertex_count(before) <= vertex_count(finer_before):
            assert vertex_count(level) <= vertex_count(finer)
    assert "level-stretched" not in [found.code for found in messages if "physics" not in found]
    again, messages = exported(scene_of(*map(mesh_of, levels)))
    assert BOX not in codes(messages)
    assert VERTICES not in codes(messages)
    assert [level.triangle_count for level in geometries(again)] == [level.triangle_count for level in levels]
