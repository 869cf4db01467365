"""Levels of detail that Decimate makes: what stays of materials, borders, seams, UVs, normals and weights."""

from __future__ import annotations

import numpy as np
import pytest
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.geometry.normals import face_normals, unit, vertex_normals

pytestmark = pytest.mark.needs_bpy


def sheet(cells: int = 40, *, slots: int = 2) -> sc.Mesh:
    """Return a wavy square sheet: UVs are x and y, joint 5 weighs x and joint 2 the rest, slots are stripes along x."""
    u, v = np.meshgrid(np.arange(cells + 1), np.arange(cells + 1), indexing="ij")
    points = np.stack([u / cells, v / cells, 0.1 * np.sin(u / cells * 6) * np.cos(v / cells * 5)], -1)
    points = points.reshape(-1, 3).astype(np.float32)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    above = first + cells + 1
    triangles = np.concatenate([np.c_[first, above, above + 1], np.c_[first, above + 1, first + 1]])
    corner_point = triangles.astype(np.int32).reshape(-1)
    middle = points[triangles].mean(axis=1)[:, 0]
    return sc.Mesh(
        points,
        corner_point,
        np.minimum((middle * slots).astype(np.int32), slots - 1),
        [f"M{number}" for number in range(slots)],
        normal=sc.Layer("normal", vertex_normals(points, corner_point)),
        uvs=[sc.Layer("UVMap", points[:, :2].copy())],
        joint_indices=np.tile(np.int32([5, 2]), (len(points), 1)),
        joint_weights=np.stack([points[:, 0], 1 - points[:, 0]], axis=1),
    )


def torn_apart(mesh: sc.Mesh) -> sc.Mesh:
    """Return a mesh with points of its own for each triangle, as a file has them whose vertices are all split."""
    corners = mesh.corner_point
    assert mesh.normal is not None
    assert mesh.joint_indices is not None
    assert mesh.joint_weights is not None
    return sc.Mesh(
        mesh.points[corners],
        np.arange(len(corners), dtype=np.int32),
        mesh.material_index,
        mesh.materials,
        normal=sc.Layer("normal", mesh.normal.values[corners]),
        uvs=[sc.Layer(uv.name, uv.values[corners]) for uv in mesh.uvs],
        joint_indices=mesh.joint_indices[corners],
        joint_weights=mesh.joint_weights[corners],
    )


def made(mesh: sc.Mesh, ratio: float, *, keep_borders: bool = True) -> sc.Mesh:
    from meshferry.blender_data.exporting.models.generated_lods import make_level

    return make_level(mesh, ratio, keep_borders=keep_borders)


def border_places(points: np.ndarray, corner_point: np.ndarray) -> set[tuple[float, ...]]:
    """Return the places of points on edges of a single triangle; counted here, edge by edge."""
    uses: dict[tuple[int, int], int] = {}
    for a, b, c in corner_point.reshape(-1, 3).tolist():
        for edge in ((a, b), (b, c), (c, a)):
            key = (min(edge), max(edge))
            uses[key] = uses.get(key, 0) + 1
    return {tuple(points[point].tolist()) for edge, count in uses.items() if count == 1 for point in edge}


def places(mesh: sc.Mesh) -> set[tuple[float, ...]]:
    return {tuple(point) for point in mesh.points.tolist()}


def blocks() -> dict[str, list[str]]:
    import bpy

    kinds = ("scenes", "objects", "meshes", "materials", "collections", "worlds", "node_groups")
    return {kind: [block.name for block in getattr(bpy.data, kind)] for kind in kinds}


@pytest.mark.parametrize("ratio", [0.6, 0.4, 0.15])
@pytest.mark.parametrize("apart", [False, True])
def test_the_share_of_triangles_is_met_and_borders_stay(ratio: float, apart: bool) -> None:
    source = sheet()
    level = made(torn_apart(source) if apart else source, ratio)
    assert level.triangle_count == pytest.approx(ratio * source.triangle_count, abs=2)
    border = border_places(source.points, source.corner_point)
    assert len(border) == 160
    assert border <= places(level)
    assert border_places(level.points, level.corner_point) == border


def test_borders_may_go_where_nobody_needs_them() -> None:
    source = sheet()
    level = made(source, 0.01, keep_borders=False)
    assert level.triangle_count == pytest.approx(32, abs=2)
    assert not border_places(source.points, source.corner_point) <= places(level)


def test_uvs_and_weights_are_those_of_the_places_where_points_come_to_lie() -> None:
    level = made(sheet(), 0.2)
    assert level.joint_indices is not None
    assert level.joint_weights is not None
    corners = level.points[level.corner_point]
    assert np.abs(level.uvs[0].at_corners(level.corner_point) - corners[:, :2]).max() < 0.02
    assert level.uvs[0].name == "UVMap"
    heavy = np.where(level.joint_indices == 5, level.joint_weights, 0).sum(axis=1)
    assert np.abs(heavy - level.points[:, 0]).max() < 0.02
    assert set(np.unique(level.joint_indices[level.joint_weights > 0]).tolist()) == {2, 5}
    assert np.abs(level.joint_weights.sum(axis=1) - 1).max() < 1e-5
    assert (np.diff(level.joint_weights, axis=1) <= 0).all(), "the strongest first"


def test_materials_keep_their_places() -> None:
    source = sheet(slots=4)
    level = made(source, 0.2)
    assert level.materials == source.materials
    middle = level.points[level.corner_point].reshape(-1, 3, 3).mean(axis=1)[:, 0]
    stripe = np.minimum((middle * 4).astype(int), 3)
    assert (np.abs(stripe - level.material_index) <= 1).all()
    assert (stripe == level.material_index).mean() > 0.85


def tube(rings: tuple[float, ...], around: int = 96) -> sc.Mesh:
    """Return an open, wavy tube with points at the heights ``rings``; the lowest band and the last are of slot 1."""
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)
    height = np.array(rings)[:, None]
    radius = 0.3 + 0.02 * np.sin(5 * angle) * np.cos(4 * height)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), height + 0 * angle], -1).reshape(-1, 3)
    ring, step = np.meshgrid(np.arange(len(rings) - 1), np.arange(around), indexing="ij")
    first, second = ring * around + step, ring * around + (step + 1) % around
    quads = np.stack([first, second, second + around, first, second + around, first + around], -1)
    trim = np.zeros((len(rings) - 1, around, 2), np.int32)
    trim[[0, -1]] = 1
    return sc.Mesh(
        points.astype(np.float32), quads.reshape(-1).astype(np.int32), trim.reshape(-1), ["cloth", "trim", "unused"]
    )


def trim_heights(mesh: sc.Mesh) -> np.ndarray:
    """Return the heights of the ends of edges between the slots; counted here, edge by edge."""
    slots: dict[tuple[int, int], set[int]] = {}
    triangles = mesh.corner_point.reshape(-1, 3).tolist()
    for (a, b, c), slot in zip(triangles, mesh.material_index.tolist(), strict=True):
        for edge in ((a, b), (b, c), (c, a)):
            slots.setdefault((min(edge), max(edge)), set()).add(slot)
    ends = [point for edge, found in slots.items() if len(found) > 1 for point in edge]
    return mesh.points[ends, 2]


@pytest.mark.parametrize("keep_borders", [False, True])
@pytest.mark.parametrize("ratio", [0.4, 0.15, 0.08])
def test_borders_between_materials_stay_where_they_are(ratio: float, keep_borders: bool) -> None:
    source = tube((0.0, 0.03, *np.linspace(0.06, 0.64, 25), 0.67, 0.7))
    assert {round(float(height), 4) for height in trim_heights(source)} == {0.03, 0.67}
    level = made(source, ratio, keep_borders=keep_borders)
    assert level.triangle_count == pytest.approx(ratio * source.triangle_count, abs=3)
    assert level.materials == source.materials
    assert set(level.material_index.tolist()) == {0, 1}
    heights = trim_heights(level)
    off = np.minimum(np.abs(heights - 0.03), np.abs(heights - 0.67))
    assert off.max() < 0.006
    assert {round(float(height), 1) for height in heights} == {0.0, 0.7}, "both trims are there"
    used = np.unique(level.corner_point)
    assert len(used) == len(level.points), "nothing is left of what held the borders"
    assert np.abs(np.hypot(*level.points[:, :2].T) - 0.3).max() < 0.03


def test_materials_that_change_with_each_triangle_let_a_mesh_be_thinned() -> None:
    source = sheet(30, slots=1)
    source.materials = ["a", "b", "c"]
    source.material_index = np.random.default_rng(3).integers(0, 3, source.triangle_count).astype(np.int32)
    for ratio in (0.4, 0.15, 0.05):
        level = made(source, ratio, keep_borders=False)
        assert level.triangle_count == pytest.approx(ratio * source.triangle_count, abs=2)
        assert set(level.material_index.tolist()) == {0, 1, 2}


def test_normals_follow_the_surface_and_stay_smooth() -> None:
    level = made(sheet(), 0.3)
    assert level.normal is not None
    normals = level.normal.at_corners(level.corner_point)
    assert np.abs(np.linalg.norm(normals, axis=1) - 1).max() < 1e-5
    of_faces = np.repeat(unit(face_normals(level.points, level.corner_point)), 3, axis=0)
    assert np.einsum("ij,ij->i", normals, of_faces).min() > 0.8
    x, y, z = level.points[level.corner_point].astype(np.float64).T
    inside = (np.minimum(x, y) > 0.05) & (np.maximum(x, y) < 0.95)
    exact = np.stack([-0.6 * np.cos(6 * x) * np.cos(5 * y), 0.5 * np.sin(6 * x) * np.sin(5 * y), np.ones_like(z)], 1)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", normals, exact)[inside].min() > 0.97
    spread = np.zeros((len(level.points), 2, 3)) + np.array([[np.inf], [-np.inf]])
    np.minimum.at(spread[:, 0], level.corner_point, normals)
    np.maximum.at(spread[:, 1], level.corner_point, normals)
    assert (spread[:, 1] - spread[:, 0]).max() < 1e-4, "each point has one normal, as in the smooth source"


@pytest.mark.parametrize("keep_borders", [False, True])
def test_levels_fill_the_box_of_the_finest(keep_borders: bool) -> None:
    import bpy
    from meshferry.blender_data.export_options import ExportOptions
    from meshferry.blender_data.exporting.reading.mesh_reading import MeshReader
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    bpy.ops.mesh.primitive_ico_sphere_add(subdivisions=4, radius=2)
    bpy.context.object.data.vertices[7].co *= 1.5
    depsgraph = bpy.context.evaluated_depsgraph_get()
    source = MeshReader(depsgraph, ExportOptions.of(), TIMBERMESH.capabilities).read(bpy.context.object)
    assert source is not None
    for ratio in (0.4, 0.05, 0.01):
        level = made(source, ratio, keep_borders=keep_borders)
        assert level.triangle_count == pytest.approx(ratio * source.triangle_count, abs=2)
        assert np.array_equal(level.points.min(axis=0), source.points.min(axis=0))
        assert np.array_equal(level.points.max(axis=0), source.points.max(axis=0))
        if level.triangle_count > 48:  # otherwise the points of the box are not fixed while edges are collapsed
            common = np.array(sorted(places(level) & places(source)), np.float32)
            assert np.array_equal(common.min(axis=0), source.points.min(axis=0))
            assert np.array_equal(common.max(axis=0), source.points.max(axis=0))


def test_made_levels_in_upload_sets_need_no_triangles_for_their_box() -> None:
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

    source = sheet(20)
    source.points[30] += (0.3, 0.1, 0.9)
    levels = [source, *(made(source, ratio, keep_borders=False) for ratio in (0.4, 0.1, 0.02))]
    nodes = [sc.Node("sheet", mesh=mesh, lod=lod, lod_of=0 if lod else None) for lod, mesh in enumerate(levels)]
    scene = sc.Scene("sheet", nodes)
    files = SECOND_LIFE_UPLOAD.from_scene(scene).files
    counts = [sum(len(face.corners) for face in file.instances[0].geometry.faces) // 3 for file in files]
    assert counts == [level.triangle_count for level in levels]
    assert scene.warnings == []


def box_of_grids(cells: int = 12) -> sc.Mesh:
    """Return a box with hard edges, each side a grid of points of its own and a UV island of its own."""
    u, v = np.meshgrid(np.linspace(-1, 1, cells + 1), np.linspace(-1, 1, cells + 1), indexing="ij")
    flat = np.stack([u, v, np.ones_like(u)], -1).reshape(-1, 3)
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    above = first + cells + 1
    triangles = np.concatenate([np.c_[first, above, above + 1], np.c_[first, above + 1, first + 1]])
    points, normals, uvs, corners = [], [], [], []
    for side in range(6):
        axis, sign = side % 3, 1 if side < 3 else -1
        turned = np.roll(flat, axis + 1, axis=1) * sign
        corners.append((triangles if sign > 0 else triangles[:, ::-1]) + side * len(flat))
        points.append(turned)
        normals.append(np.tile(np.roll([0.0, 0.0, 1.0], axis + 1) * sign, (len(flat), 1)))
        uvs.append((flat[:, :2] + 1) / 2 + side)
    return sc.Mesh(
        np.concatenate(points).astype(np.float32),
        np.concatenate(corners).astype(np.int32).reshape(-1),
        np.repeat(np.arange(6, dtype=np.int32), len(triangles)),
        list("abcdef"),
        normal=sc.Layer("normal", np.concatenate(normals).astype(np.float32)),
        uvs=[sc.Layer("UV", np.concatenate(uvs).astype(np.float32))],
    )


def test_hard_edges_stay_hard_and_the_box_stays_closed() -> None:
    level = made(box_of_grids(), 0.05)
    assert level.triangle_count <= 88
    assert not border_places(level.points, level.corner_point), "sides that met in place are sewn together"
    assert np.abs(np.abs(level.points).max(axis=1) - 1).max() < 1e-3
    assert level.normal is not None
    assert set(level.material_index.tolist()) == set(range(6))
    normals = level.normal.at_corners(level.corner_point)
    assert np.abs(np.abs(normals).max(axis=1) - 1).max() < 1e-3
    uv = level.uvs[0].at_corners(level.corner_point).reshape(-1, 3, 2).mean(axis=1)
    assert (np.floor(uv[:, 0]) == level.material_index).all(), "each side keeps its UV island"


def test_both_sides_of_a_cloth_are_thinned_and_stay_apart() -> None:
    front = sheet(slots=1)
    assert front.normal is not None
    count = len(front.points)
    cloth = sc.Mesh(
        np.concatenate([front.points, front.points]),
        np.concatenate([front.corner_point, front.corner_point.reshape(-1, 3)[:, ::-1].reshape(-1) + count]).astype(
            np.int32
        ),
        np.zeros(2 * front.triangle_count, np.int32),
        ["cloth"],
        normal=sc.Layer("normal", np.concatenate([front.normal.values, -front.normal.values])),
    )
    level = made(cloth, 0.3)
    assert level.triangle_count == pytest.approx(0.3 * cloth.triangle_count, abs=2)
    assert level.normal is not None
    up = level.normal.at_corners(level.corner_point)[:, 2] > 0
    assert 0.3 < up.mean() < 0.7
    assert border_places(front.points, front.corner_point) <= places(level)


def test_a_small_material_keeps_a_triangle_while_there_is_room() -> None:
    source = sheet(slots=1)
    source.materials = ["M", "dot"]
    source.material_index[source.triangle_count // 3] = 1
    for ratio in (0.3, 0.06):
        level = made(source, ratio, keep_borders=False)
        assert np.count_nonzero(level.material_index == 1) >= 1
        assert level.triangle_count <= source.triangle_count * ratio + 12


@pytest.mark.parametrize("ratio", [0.0, 1e-6])
@pytest.mark.parametrize("keep_borders", [False, True])
def test_a_triangle_stays_at_any_ratio(ratio: float, keep_borders: bool) -> None:
    for source in (sheet(), box_of_grids(3), made(box_of_grids(1), 1.0)):
        level = made(source, ratio, keep_borders=keep_borders)
        assert 1 <= level.triangle_count <= source.triangle_count


def test_what_is_no_number_and_what_needs_no_thinning_comes_back() -> None:
    source = sheet(4)
    assert made(source, 1.0) is source
    source.points[3, 0] = np.nan
    assert made(source, 0.5) is source


def test_the_source_and_the_scene_are_as_before() -> None:
    import bpy

    bpy.ops.mesh.primitive_cube_add()
    source = sheet()
    copies = [source.points.copy(), source.corner_point.copy(), source.uvs[0].values.copy()]
    before = (blocks(), bpy.context.scene.name, bpy.context.object.name, bpy.context.object.select_get())
    level = made(source, 0.3)
    after = (blocks(), bpy.context.scene.name, bpy.context.object.name, bpy.context.object.select_get())
    assert before == after
    for kept, now in zip(copies, (source.points, source.corner_point, source.uvs[0].values), strict=True):
        np.testing.assert_array_equal(kept, now)
    assert level.points.flags["C_CONTIGUOUS"]


def test_nothing_stays_behind_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.blender_data.exporting.models import generated_lods

    before = blocks()

    def broken(*_arguments: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(generated_lods, "_read", broken)
    with pytest.raises(RuntimeError):
        made(sheet(), 0.3)
    assert blocks() == before


def test_ranges_of_the_file_stay_with_the_level_they_are_of() -> None:
    source = sheet(slots=1)
    source.surfaces = [sc.Surface("M0", position_domain=(0.0,) * 6, lightmap_channel=1)]
    assert made(source, 0.3).surfaces == [sc.Surface("M0", lightmap_channel=1)]
    assert source.surfaces[0].position_domain is not None
