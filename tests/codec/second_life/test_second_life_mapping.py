"""Second Life assets <-> scenes: samples against their list of facts and an oracle, made models against geometry."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_life_judge as judge
import second_life_oracle as oracle
from load_package import SAMPLES
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.second_life.asset import mapping
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.models.models import models_of
from meshferry.io_formats.second_life.options import LEVELS, ModelWriteOptions

FOLDER = SAMPLES / "secondlife"
FACTS: dict[str, Any] = (
    json.loads((FOLDER / "expected.json").read_text(encoding="utf-8")) if (FOLDER / "expected.json").is_file() else {}
)
NAMES = sorted(name for name in FACTS if not name.endswith(".slm"))
Array = np.ndarray[Any, Any]


def data_of(samples: Path, name: str) -> bytes:
    return (samples / "secondlife" / name).read_bytes()


def scene_of(data: bytes, **options: Any) -> sc.Scene:
    return SECOND_LIFE_MESH.to_scene(SECOND_LIFE_MESH.read(data), "thing", options)


def written(scene: sc.Scene, **options: Any) -> oracle.Asset:
    return oracle.decode(SECOND_LIFE_MESH.write(SECOND_LIFE_MESH.from_scene(scene, options)))


def mesh_of(node: sc.Node) -> sc.Mesh:
    assert node.mesh is not None
    return node.mesh


def matrix_of(node: sc.Node) -> Array:
    """Return a node's matrix, (4, 4), written out from the quaternion's definition."""
    w, x, y, z = node.rotation
    q = np.array(((w, -x, -y, -z), (x, w, -z, y), (y, z, w, -x), (z, -y, x, w)))
    p = np.array(((w, x, y, z), (-x, w, -z, y), (-y, z, w, -x), (-z, -y, x, w)))
    matrix = np.identity(4)
    matrix[:3, :3] = (q @ p)[1:, 1:] @ np.diag(node.scale)
    matrix[:3, 3] = node.translation
    return matrix


def through(matrix: Array, points: Array) -> Array:
    moved: Array = points @ matrix[:3, :3].T + matrix[:3, 3]
    return moved


# -- samples: what is in them -------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_face_of_every_level_is_as_the_facts_say(samples: Path, name: str) -> None:
    facts = FACTS[name]
    scene = scene_of(data_of(samples, name))
    (model,) = models_of(scene)
    is_rigged = "skin" in facts
    nodes = dict(zip(LEVELS, model.levels, strict=True)) | {"physics_mesh": model.physics}
    assert {key for key, node in nodes.items() if node is not None} == set(facts["lods"])
    for key, faces in facts["lods"].items():
        node = nodes[key]
        assert node is not None
        assert (node.translation, node.rotation, node.scale) == (
            model.finest.translation,
            model.finest.rotation,
            model.finest.scale,
        )
        mesh = mesh_of(node)
        assert len(mesh.materials) == len(mesh.surfaces) == len(faces)
        start = 0
        for slot, fact in enumerate(faces):
            triangles = mesh.corner_point.reshape(-1, 3)[mesh.material_index == slot]
            if fact.get("no_geometry"):
                assert not len(triangles)
                continue
            end = start + fact["vertices"]
            check_face(mesh, slice(start, end), triangles - start, fact, is_rigged=is_rigged)
            start = end
        assert start == len(mesh.points)


def check_face(mesh: sc.Mesh, rows: slice, triangles: Array, fact: dict[str, Any], *, is_rigged: bool) -> None:
    points = mesh.points[rows].astype(np.float64)
    normals = None if mesh.normal is None else mesh.normal.values[rows].astype(np.float64)
    if is_rigged:  # from -Y forward to +X forward: (x, y) becomes (-y, x)
        points = np.stack((-points[:, 1], points[:, 0], points[:, 2]), axis=1)
        normals = None if normals is None else np.stack((-normals[:, 1], normals[:, 0], normals[:, 2]), axis=1)
    assert len(triangles) == fact["triangles"]
    for found, key in (
        (points.min(axis=0), "aabb_min"),
        (points.max(axis=0), "aabb_max"),
        (points.mean(axis=0), "centroid"),
    ):
        np.testing.assert_allclose(found, fact[key], rtol=2e-6, atol=2e-6)
    assert triangles[0].tolist() == fact["first_triangle"]
    assert triangles[-1].tolist() == fact["last_triangle"]
    if "normal0" in fact:
        assert normals is not None
        expected = np.array(fact["normal0"])
        np.testing.assert_allclose(normals[0], expected / np.linalg.norm(expected), atol=4e-5)
    if "uv0" in fact:
        uvs = mesh.uvs[0].values[rows]
        for found, key in ((uvs[0], "uv0"), (uvs.min(axis=0), "uv_min"), (uvs.max(axis=0), "uv_max")):
            np.testing.assert_allclose(found, fact[key], rtol=2e-5, atol=2e-5)
    if "first_vertex_weights" in fact and mesh.joint_weights is not None:
        weights = sorted(mesh.joint_weights[rows][0].tolist(), reverse=True)
        expected_weights = sorted((weight / 65535 for _, weight in fact["first_vertex_weights"]), reverse=True)
        np.testing.assert_allclose(weights[: len(expected_weights)], expected_weights, atol=1e-6)
        assert not any(weights[len(expected_weights) :])
    if "influences" in fact and mesh.joint_weights is not None:
        assert np.count_nonzero(mesh.joint_weights[rows]) <= fact["influences"]


@pytest.mark.parametrize("name", NAMES)
def test_hulls_keep_their_points(samples: Path, name: str) -> None:
    data = data_of(samples, name)
    (model,) = models_of(scene_of(data))
    found = oracle.decode(data).hulls
    assert found is not None
    assert [len(mesh_of(node).points) for node in model.hulls] == FACTS[name]["physics_convex"]["hulls"]
    assert model.base_hull is not None
    points = mesh_of(model.base_hull).points
    if "skin" in FACTS[name]:
        points = np.stack((-points[:, 1], points[:, 0], points[:, 2]), axis=1)
    np.testing.assert_array_equal(points, found.base_points)


def test_sizes_come_from_the_file_or_the_option(samples: Path) -> None:
    box = data_of(samples, "synthetic/synth_box_1face.llmesh")
    assert scene_of(box, assumed_size=7.0).nodes[0].scale == (2.0, 1.0, 0.5)
    plain = data_of(samples, "elfears_98a6e63e.llmesh")
    assert scene_of(plain, assumed_size=7.0).nodes[0].scale == (7.0, 7.0, 7.0)
    assert scene_of(plain).nodes[0].scale == (1.0, 1.0, 1.0)


def test_materials_have_the_names_of_the_file_or_of_the_face(samples: Path) -> None:
    named = scene_of(data_of(samples, "hippolyzer_testslm.mesh"))
    assert mesh_of(named.nodes[0]).materials == ["TestMaterial-material"]
    other = scene_of(data_of(samples, "synthetic/synth_8face_nogeo_hulls.llmesh"))
    assert mesh_of(other.nodes[0]).materials == [f"thing_face_{number}" for number in range(1, 9)]


def test_what_a_server_adds_is_named_as_lost(samples: Path) -> None:
    said = " ".join(scene_of(data_of(samples, "synthetic/synth_server_header.llmesh")).warnings)
    for key in ("creator", "date", "physics_cost_data", "physics_havok", "version", "hash"):
        assert f"'{key}'" in said
    assert scene_of(data_of(samples, "synthetic/synth_box_1face.llmesh")).warnings == []


# -- samples: kept as imported ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_asset_kept_as_imported_is_the_same_again(samples: Path, name: str) -> None:
    data = data_of(samples, name)
    scene = scene_of(data)
    scene.as_imported = True
    scene.warnings.clear()
    (part,) = SECOND_LIFE_MESH.files_of(scene, {})
    again = written(part)
    before = oracle.decode(data)
    verdict = judge.same_asset(before, again, normals=judge.EXACT, weights=1.0)
    assert verdict.triangles == sum(
        len(face.triangles) for faces in (*before.levels.values(), before.physics_mesh or []) for face in faces
    )
    assert part.warnings == []
    assert list(again.values) == list(before.values), "order of the blocks"


@pytest.mark.parametrize("name", NAMES)
def test_sizes_of_real_meshes_stay_near_those_stored(samples: Path, name: str) -> None:
    """Within 5 %, or within the 40 bytes that a size in metres takes, which old files do not have."""
    data = data_of(samples, name)
    scene = scene_of(data)
    (model,) = models_of(scene)
    for node in model.levels:
        if node is not None:
            for surface in mesh_of(node).surfaces:
                surface.position_domain = surface.uv_domain = None
    before, after = oracle.decode(data).sizes, written(scene).sizes
    for level in set(LEVELS) & set(before):
        assert after[level] <= 1.05 * before[level] + 40
        assert after[level] >= 0.95 * before[level] - 20


# -- made models --------------------------------------------------------------------------------

CORNERS = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], np.float32)
QUADS = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))


def box(least: tuple[float, float, float], most: tuple[float, float, float], materials: int = 1) -> sc.Mesh:
    """Return a box with flat normals and a UV map on its corners, its sides dealt out to materials."""
    points = np.array(least, np.float32) + CORNERS * (np.array(most, np.float32) - np.array(least, np.float32))
    triangles = [corner for a, b, c, d in QUADS for corner in ((a, b, c), (a, c, d))]
    sides = [np.cross(CORNERS[b] - CORNERS[a], CORNERS[c] - CORNERS[a]) for a, b, c, _ in QUADS]
    return sc.Mesh(
        points,
        np.array(triangles, np.int32).reshape(-1),
        (np.arange(12, dtype=np.int32) // 2) % materials,
        [f"m{number}" for number in range(materials)],
        normal=sc.Layer("normal", np.repeat(np.array(sides, np.float32), 6, axis=0), per_corner=True),
        uvs=[
            sc.Layer(
                "UVMap",
                np.tile(np.array(((0, 0), (2, 0), (2, 3), (0, 0), (2, 3), (0, 3)), np.float32), (6, 1)),
                per_corner=True,
            )
        ],
    )


def model(mesh: sc.Mesh, **node: Any) -> sc.Scene:
    return sc.Scene("made", [sc.Node("Crate", mesh=mesh, **node)])


def with_level(scene: sc.Scene, lod: int, mesh: sc.Mesh) -> sc.Scene:
    finest = scene.nodes[0]
    scene.nodes.append(replace(finest, name=f"Crate_{lod}", lod=lod, mesh=mesh, lod_of=0))
    return scene


def with_shape(scene: sc.Scene, role: sc.Role, mesh: sc.Mesh, **changes: Any) -> sc.Scene:
    node = replace(scene.nodes[0], name="Shape", role=role, mesh=mesh, shape_of=0, **changes)
    scene.nodes.append(node)
    return scene


def soup(faces: list[oracle.Face]) -> Array:
    """Return the places of all corners of all triangles, (n, 3), in the unit cube."""
    return np.concatenate([face.positions[face.triangles.reshape(-1)] for face in faces if not face.no_geometry])


def test_a_box_fills_the_unit_cube_and_comes_back_to_its_place() -> None:
    half = 0.5**0.5
    scene = model(
        box((1, 2, 3), (5, 4, 4)),
        translation=(10.0, 20.0, 30.0),
        rotation=(half, 0.0, 0.0, half),
        scale=(2.0, 3.0, 4.0),
    )
    mesh = mesh_of(scene.nodes[0])
    ((built,),) = mapping.assets_of(models_of(scene), scene, ModelWriteOptions())
    asset, unit_cube = built.asset, built.unit_cube
    stored = oracle.decode(SECOND_LIFE_MESH.write(asset))
    (face,) = stored.levels["high_lod"]
    assert (face.stored.min(), face.stored.max()) == (0, 65535)
    np.testing.assert_array_equal(face.domain, ((-0.5,) * 3, (0.5,) * 3))
    np.testing.assert_allclose(stored.scale, (8.0, 6.0, 4.0))
    np.testing.assert_allclose(unit_cube.metres, (8.0, 6.0, 4.0))
    expected = through(matrix_of(scene.nodes[0]), mesh.points[mesh.corner_point])
    corners = through(unit_cube.transform, soup([face]))
    np.testing.assert_allclose(corners, expected, atol=1e-3)
    assert len(face.stored) == 24, "each side keeps its normals"
    np.testing.assert_allclose(
        face.normals[face.triangles.reshape(-1)], mesh.normal.values if mesh.normal else None, atol=2e-5
    )
    np.testing.assert_allclose(face.uvs[face.triangles.reshape(-1)], mesh.uvs[0].values, atol=1e-6)
    np.testing.assert_array_equal(face.uv_domain, ((0, 0), (2, 3)))


def test_slanted_normals_go_through_the_size_of_the_box() -> None:
    """A slope in a long box: the normal of its triangle in the unit cube is the stored one."""
    points = np.array(((0, 0, 0), (8, 0, 2), (0, 1, 0), (8, 1, 2)), np.float32)
    mesh = sc.Mesh(points, np.array((0, 1, 3, 0, 3, 2), np.int32), np.zeros(2, np.int32), ["m"])
    (face,) = written(model(mesh)).levels["high_lod"]
    a, b, c = face.positions[face.triangles[0]].astype(np.float64)
    normal = np.cross(b - a, c - a)
    np.testing.assert_allclose(face.normals, np.tile(normal / np.linalg.norm(normal), (4, 1)), atol=3e-5)


def test_a_mirrored_object_is_written_as_it_looks() -> None:
    scene = model(box((0, 0, 0), (4, 2, 1)), scale=(-1.0, 2.0, 1.0), translation=(1.0, 0.0, 0.0))
    mesh = mesh_of(scene.nodes[0])
    ((built,),) = mapping.assets_of(models_of(scene), scene, ModelWriteOptions())
    asset, unit_cube = built.asset, built.unit_cube
    (face,) = oracle.decode(SECOND_LIFE_MESH.write(asset)).levels["high_lod"]
    assert np.linalg.det(unit_cube.transform[:3, :3]) > 0
    corners = through(unit_cube.transform, soup([face])).reshape(-1, 3, 3)
    seen = through(matrix_of(scene.nodes[0]), mesh.points[mesh.corner_point]).reshape(-1, 3, 3)
    np.testing.assert_allclose(corners.mean(axis=1), seen.mean(axis=1), atol=1e-3)
    outward = corners.mean(axis=1) - corners.reshape(-1, 3).mean(axis=0)
    wound = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("ij,ij->i", outward, wound) > 0).all(), "triangles look outwards"
    stored = face.normals[face.triangles[:, 0]]
    assert (np.einsum("ij,ij->i", stored, wound) > 0).all(), "normals, too"


def test_a_flat_object_is_one_metre_thick() -> None:
    mesh = sc.Mesh(
        np.array(((0, 0, 5), (3, 0, 5), (3, 3, 5), (0, 3, 5)), np.float32),
        np.array((0, 1, 2, 0, 2, 3), np.int32),
        np.zeros(2, np.int32),
        ["m"],
    )
    stored = written(model(mesh))
    np.testing.assert_allclose(stored.scale, (3.0, 3.0, 1.0))
    (face,) = stored.levels["high_lod"]
    np.testing.assert_array_equal(face.stored[:, 2], 0)
    np.testing.assert_array_equal(face.domain[:, 2], 0)


def test_missing_levels_are_the_next_finer_one() -> None:
    coarse = box((0, 0, 0), (4, 2, 1))
    coarse = replace(coarse, corner_point=coarse.corner_point[:18], material_index=coarse.material_index[:6])
    assert coarse.normal is not None
    coarse.normal = replace(coarse.normal, values=coarse.normal.values[:18])
    coarse.uvs = [replace(coarse.uvs[0], values=coarse.uvs[0].values[:18])]
    stored = written(with_level(model(box((0, 0, 0), (4, 2, 1))), 2, coarse))
    assert list(stored.values) == ["physics_convex", *reversed(LEVELS)]
    counts = {level: sum(len(face.triangles) for face in faces) for level, faces in stored.levels.items()}
    assert counts == {"high_lod": 12, "medium_lod": 12, "low_lod": 6, "lowest_lod": 6}


def test_levels_share_the_box_and_its_faces() -> None:
    """A coarse level within the box keeps its place in it; a face that it lacks has no geometry."""
    scene = with_level(model(box((0, 0, 0), (4, 2, 1), 3)), 1, box((1, 0, 0), (3, 2, 1), 2))
    stored = written(scene)
    faces = stored.levels["medium_lod"]
    assert [face.no_geometry for face in faces] == [False, False, True]
    assert len(stored.levels["high_lod"]) == 3
    corners = soup(faces)
    np.testing.assert_allclose(corners.min(axis=0), (-0.25, -0.5, -0.5), atol=1e-5)
    np.testing.assert_allclose(corners.max(axis=0), (0.25, 0.5, 0.5), atol=1e-5)
    first, second, _ = faces
    np.testing.assert_array_equal(first.domain, second.domain)
    assert not scene.warnings


def test_what_sticks_out_enlarges_the_box_and_is_told() -> None:
    scene = with_level(model(box((0, 0, 0), (4, 2, 1))), 1, box((0, 0, 0), (8, 2, 1)))
    stored = written(scene)
    np.testing.assert_allclose(stored.scale, (8.0, 2.0, 1.0))
    np.testing.assert_allclose(soup(stored.levels["high_lod"]).max(axis=0), (0.0, 0.5, 0.5), atol=1e-5)
    assert any("medium level sticks out" in text and "4 m" in text for text in scene.warnings)


def test_slots_of_levels_belong_together_by_name() -> None:
    coarse = box((0, 0, 0), (4, 2, 1), 2)
    coarse.materials = ["m1", "m0"]
    scene = with_level(model(box((0, 0, 0), (4, 2, 1), 2)), 1, coarse)
    stored = written(scene)
    for level, first in (("high_lod", -0.5), ("medium_lod", 0.5)):
        lowest = soup([stored.levels[level][0]])[:3, 2]
        np.testing.assert_allclose(lowest, first, atol=1e-5, err_msg=level)


def test_a_material_that_the_highest_level_lacks_is_refused() -> None:
    coarse = box((0, 0, 0), (4, 2, 1))
    coarse.materials = ["another"]
    with pytest.raises(ExportError, match=r"Crate_1: its material 'another' is not on 'Crate'"):
        written(with_level(model(box((0, 0, 0), (4, 2, 1))), 1, coarse))


def test_unused_slots_are_no_faces() -> None:
    mesh = box((0, 0, 0), (4, 2, 1), 2)
    mesh.materials = ["m0", "m1", "nothing"]
    assert len(written(model(mesh)).levels["high_lod"]) == 2


def test_models_of_many_materials_are_split_as_the_viewer_does() -> None:
    mesh = box((0, 0, 0), (4, 2, 1), 6)
    other = box((1, 1, 1), (2, 2, 9), 6)
    whole = sc.Mesh(
        np.concatenate((mesh.points, other.points)),
        np.concatenate((mesh.corner_point, other.corner_point + 8)),
        np.concatenate((mesh.material_index, other.material_index + 6)),
        [f"{name}" for name in "lkjihgfedcba"],
    )
    scene = with_shape(model(whole), sc.Role.HULL, mesh)
    parts = SECOND_LIFE_MESH.files_of(scene, {})
    assert [part.name for part in parts] == ["Crate", "Crate_b"]
    first, second = (written(part) for part in parts)
    assert [len(part.levels["high_lod"]) for part in (first, second)] == [8, 4]
    assert ("submodel_id" in first.header, second.header["submodel_id"]) == (False, 1)
    assert first.hulls is not None and second.hulls is not None
    assert (len(first.hulls.hulls), len(second.hulls.hulls)) == (1, 0)
    assert second.hulls.base is not None
    np.testing.assert_allclose(first.scale, (4.0, 2.0, 9.0))
    np.testing.assert_allclose(second.scale, (4.0, 2.0, 9.0))
    # Faces go by name: the first eight are a to h, of which a to f are the second box.
    assert soup(first.levels["high_lod"][:6])[:, 2].max() == 0.5
    np.testing.assert_allclose(soup(second.levels["high_lod"])[:, 2].max(), 1 / 9 - 0.5, atol=1e-4)
    for refuse in (SECOND_LIFE_MESH.files_of, SECOND_LIFE_MESH.from_scene):
        with pytest.raises(ExportError, match=r"Crate: it has 12 faces"):
            refuse(scene, {"many_materials": "REFUSE"})


def grid(across: int) -> sc.Mesh:
    """Return a square of ``across`` by ``across`` points."""
    x, y = np.meshgrid(np.arange(across, dtype=np.float32), np.arange(across, dtype=np.float32))
    points = np.stack((x.reshape(-1), y.reshape(-1), (x * y).reshape(-1) / across), axis=1)
    corner = (np.arange(across - 1)[:, None] * across + np.arange(across - 1)).reshape(-1)
    low = np.stack((corner, corner + 1, corner + across), axis=1)
    high = np.stack((corner + 1, corner + across + 1, corner + across), axis=1)
    triangles = np.stack((low, high), axis=1).reshape(-1).astype(np.int32)
    return sc.Mesh(points, triangles, np.zeros(len(triangles) // 3, np.int32), ["m"])


def test_faces_of_many_vertices_become_further_faces() -> None:
    mesh = grid(300)
    scene = with_level(model(mesh), 1, grid(20))
    scene.nodes[1].mesh = replace(mesh_of(scene.nodes[1]), points=mesh_of(scene.nodes[1]).points * np.float32(15))
    stored = written(scene)
    faces = stored.levels["high_lod"]
    assert [len(face.stored) <= 65_500 for face in faces] == [True, True]
    assert sum(len(face.triangles) for face in faces) == mesh.triangle_count
    np.testing.assert_allclose(
        soup(faces) * stored.scale + np.array((149.5, 149.5, mesh.points[:, 2].max() / 2)),
        mesh.points[mesh.corner_point],
        atol=0.01,
    )
    assert [face.no_geometry for face in stored.levels["medium_lod"]] == [False, True]
    assert any("65,500" in text for text in scene.warnings)


def test_unwelded_vertices_stay_apart_and_in_order() -> None:
    mesh = box((0, 0, 0), (4, 2, 1))
    corners = mesh.corner_point[::-1].copy()
    assert mesh.normal is not None
    apart = replace(
        mesh,
        points=mesh.points[corners],
        corner_point=np.arange(36, dtype=np.int32)[::-1].copy(),
        normal=sc.Layer("normal", mesh.normal.values[::-1].copy()),
        uvs=[sc.Layer("UVMap", mesh.uvs[0].values[::-1].copy())],
    )
    (face,) = written(model(apart)).levels["high_lod"]
    assert len(face.stored) == 36
    np.testing.assert_array_equal(face.triangles.reshape(-1), apart.corner_point)


def test_triangles_with_a_repeated_corner_are_dropped_and_counted() -> None:
    mesh = box((0, 0, 0), (4, 2, 1))
    mesh.corner_point[1] = mesh.corner_point[0]
    scene = model(mesh)
    assert sum(len(face.triangles) for face in written(scene).levels["high_lod"]) == 11
    assert any(text.startswith("Crate: 1 triangle uses a vertex twice") for text in scene.warnings)


@pytest.mark.parametrize("what", ["points", "uvs"])
def test_what_is_no_number_is_refused(what: str) -> None:
    mesh = box((0, 0, 0), (4, 2, 1))
    (mesh.points if what == "points" else mesh.uvs[0].values)[3, 1] = np.nan
    with pytest.raises(ExportError, match=r"Crate: .* NaN or infinite"):
        written(model(mesh))


def test_an_object_without_size_is_refused() -> None:
    with pytest.raises(ExportError, match=r"Crate: its scale is 0"):
        written(model(box((0, 0, 0), (1, 1, 1)), scale=(1.0, 0.0, 1.0)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [0.0, 3e38, float("inf"), float("nan")])
def test_objects_without_usable_size_are_checked_without_numpy_warnings(scale: float) -> None:
    scene = model(box((0, 0, 0), (1, 0, 1)), scale=(1.0, scale, 1.0))
    scene.nodes.append(replace(scene.nodes[0], name="Shape", role=sc.Role.PHYSICS, shape_of=0))
    assert SECOND_LIFE_MESH.check_scene(scene)


def test_an_asset_is_one_model() -> None:
    scene = model(box((0, 0, 0), (1, 1, 1)))
    scene.nodes.append(replace(scene.nodes[0], name="Second"))
    with pytest.raises(ExportError, match=r"holds one object, not 2 \('Crate', 'Second'\)"):
        written(scene)
    assert [part.name for part in SECOND_LIFE_MESH.files_of(scene, {})] == ["Crate", "Second"]
    with pytest.raises(ExportError, match="no mesh to write"):
        written(sc.Scene("empty"))


def test_the_parts_of_a_scene_keep_what_belongs_to_them() -> None:
    scene = model(box((0, 0, 0), (1, 1, 1)))
    scene.nodes.append(replace(scene.nodes[0], name="Second"))
    scene.nodes.append(replace(scene.nodes[0], name="Level", lod=1, lod_of=1))
    scene.nodes.append(replace(scene.nodes[0], name="Shape", role=sc.Role.PHYSICS, shape_of=1))
    first, second = SECOND_LIFE_MESH.files_of(scene, {})
    assert [node.name for node in first.nodes] == ["Crate"]
    assert [node.name for node in second.nodes] == ["Second", "Level", "Shape"]
    assert (second.nodes[1].lod_of, second.nodes[2].shape_of) == (0, 0)


def test_levels_and_shapes_beyond_those_of_a_model_reach_the_checks() -> None:
    scene = with_level(model(box((0, 0, 0), (1, 1, 1))), 1, box((0, 0, 0), (1, 1, 1)))
    with_level(with_level(scene, 1, box((0, 0, 0), (1, 1, 0.5))), 4, box((0, 0, 0), (1, 1, 1)))
    with_shape(with_shape(scene, sc.Role.PHYSICS, box((0, 0, 0), (1, 1, 1))), sc.Role.PHYSICS, plate())
    (part,) = SECOND_LIFE_MESH.files_of(scene, {})
    said = [str(finding) for finding in SECOND_LIFE_MESH.check_scene(part)]
    assert sum("left out" in text for text in said) == 3, said
    stored = written(part)
    assert len(stored.levels["medium_lod"][0].triangles) == 12
    assert stored.physics_mesh is not None
    assert len(stored.physics_mesh[0].triangles) == 12


def plate() -> sc.Mesh:
    points = np.array(((0, 0, 0), (1, 0, 0), (0, 1, 0)), np.float32)
    return sc.Mesh(points, np.array((0, 1, 2), np.int32), np.zeros(1, np.int32), ["m"])


# -- physics ------------------------------------------------------------------------------------


def test_a_hull_around_everything_is_always_there() -> None:
    stored = written(model(box((0, 0, 0), (4, 2, 1))))
    assert stored.hulls is not None and stored.hulls.base is not None
    assert not stored.hulls.hulls
    expected = np.unique(CORNERS - 0.5, axis=0)
    np.testing.assert_allclose(np.unique(stored.hulls.base_points, axis=0), expected, atol=1e-5)


def test_the_hull_around_a_ball_has_few_points_all_on_the_ball() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(3000, 3))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    mesh = sc.Mesh(points, np.arange(3000, dtype=np.int32), np.zeros(1000, np.int32), ["m"])
    hulls = written(model(mesh)).hulls
    assert hulls is not None and hulls.base is not None
    assert 40 <= len(hulls.base) <= 64
    np.testing.assert_allclose(np.linalg.norm(hulls.base_points, axis=1), 0.5, atol=2e-3)
    for axis in range(3):
        assert hulls.base_points[:, axis].min() == pytest.approx(-0.5, abs=1e-4)
        assert hulls.base_points[:, axis].max() == pytest.approx(0.5, abs=1e-4)


def test_the_base_hull_is_made_of_physics_then_low_then_medium_then_high() -> None:
    small = box((1, 0.5, 0), (3, 1.5, 1))
    physics = with_shape(model(box((0, 0, 0), (4, 2, 1))), sc.Role.PHYSICS, small)
    low = with_level(with_level(model(box((0, 0, 0), (4, 2, 1))), 2, small), 1, box((0, 0, 0), (4, 2, 1)))
    medium = with_level(model(box((0, 0, 0), (4, 2, 1))), 1, small)
    for scene in (physics, low, medium):
        hulls = written(scene).hulls
        assert hulls is not None
        np.testing.assert_allclose(hulls.base_points.max(axis=0), (0.25, 0.25, 0.5), atol=1e-5)


def test_a_physics_mesh_has_the_faces_of_the_model_and_positions_alone() -> None:
    mesh = box((0, 0, 0), (4, 2, 1))
    mesh.materials = ["physics"]
    scene = with_shape(model(box((0, 0, 0), (4, 2, 1), 3)), sc.Role.PHYSICS, mesh)
    stored = written(scene)
    assert stored.physics_mesh is not None
    assert [face.no_geometry for face in stored.physics_mesh] == [False, True, True]
    face = stored.physics_mesh[0]
    assert (face.stored_normals, face.stored_uvs, face.weights) == (None, None, None)
    assert len(face.triangles) == 12


def test_hulls_take_the_place_of_the_physics_mesh() -> None:
    scene = with_shape(model(box((0, 0, 0), (4, 2, 1))), sc.Role.PHYSICS, box((0, 0, 0), (4, 2, 1)))
    with_shape(scene, sc.Role.HULL, box((0, 0, 0), (2, 2, 1)))
    with_shape(scene, sc.Role.HULL, box((2, 0, 0), (4, 2, 1)))
    stored = written(scene)
    assert stored.physics_mesh is None
    assert stored.hulls is not None
    assert [len(hull) for hull in stored.hulls.hulls] == [8, 8]
    np.testing.assert_allclose(
        oracle.spread(stored.hulls.hulls[1], stored.hulls.domain).min(axis=0), (0, -0.5, -0.5), atol=1e-5
    )


def test_a_hull_of_too_many_points_keeps_the_outermost() -> None:
    points = np.random.default_rng(2).random((5000, 3), np.float32)
    points = np.concatenate((points, CORNERS))
    scene = with_shape(
        model(box((0, 0, 0), (1, 1, 1))),
        sc.Role.HULL,
        sc.Mesh(points, np.empty(0, np.int32), np.empty(0, np.int32), []),
    )
    hulls = written(scene).hulls
    assert hulls is not None
    assert len(hulls.hulls[0]) <= 256
    found = {tuple(point) for point in oracle.spread(hulls.hulls[0], hulls.domain).round(4).tolist()}
    assert {tuple(point) for point in (CORNERS - 0.5).tolist()} <= found
    assert any("5,008 points" in text for text in scene.warnings)


# -- kept as imported ---------------------------------------------------------------------------


def test_nothing_is_filled_in_for_what_came_from_a_file(samples: Path) -> None:
    data = data_of(samples, "synthetic/synth_flat_z.llmesh")
    scene = scene_of(data)
    assert set(written(scene).levels) == set(LEVELS)
    scene.as_imported = True
    assert list(written(scene).levels) == ["high_lod"]


def test_what_was_added_to_an_import_is_written_as_new(samples: Path) -> None:
    """Only models that came from a file are kept as they are."""
    scene = model(box((0, 0, 0), (4, 2, 1)))
    scene.as_imported = True
    stored = written(scene)
    np.testing.assert_allclose(stored.scale, (4.0, 2.0, 1.0))
    assert set(stored.levels) == set(LEVELS)


def test_points_moved_out_of_the_range_of_the_file_are_written_where_they_are(samples: Path) -> None:
    scene = scene_of(data_of(samples, "synthetic/synth_box_1face.llmesh"))
    scene.as_imported = True
    mesh_of(scene.nodes[0]).points[0] = (-0.75, 0.0, 0.0)
    (face,) = written(scene).levels["high_lod"]
    np.testing.assert_allclose(face.positions[0], (-0.75, 0.0, 0.0), atol=1e-5)


def test_a_file_without_triangles_is_refused(samples: Path) -> None:
    asset = SECOND_LIFE_MESH.read(data_of(samples, "synthetic/synth_box_1face.llmesh"))
    for level in LEVELS:
        asset.blocks[level] = [{"NoGeometry": True}]
    with pytest.raises(FormatError, match="no geometry"):
        SECOND_LIFE_MESH.to_scene(asset, "thing")


def test_a_high_level_without_triangles_is_told(samples: Path) -> None:
    asset = SECOND_LIFE_MESH.read(data_of(samples, "synthetic/synth_box_1face.llmesh"))
    assert SECOND_LIFE_MESH.to_scene(asset, "thing").warnings == []
    asset.blocks["high_lod"] = [{"NoGeometry": True}]
    scene = SECOND_LIFE_MESH.to_scene(asset, "thing")
    assert [node.lod for node in scene.nodes if node.mesh is not None and node.mesh.triangle_count] == [1, 2, 3]
    (said,) = scene.warnings
    assert said == "thing: its high level has no triangles, only coarser ones do; it is invisible from near"


def test_triangles_that_physics_refuses_are_told_and_kept(samples: Path) -> None:
    scene = scene_of(data_of(samples, "franz_66f2a0fb.llmesh"))
    (said,) = scene.warnings
    assert said == "thing: 2 triangles of its physics mesh are too thin or too small; an upload would be refused"
    (physics,) = (node for node in scene.nodes if node.role is sc.Role.PHYSICS)
    assert mesh_of(physics).triangle_count == 78
    asset = SECOND_LIFE_MESH.read(data_of(samples, "franz_66f2a0fb.llmesh"))
    hulls = SECOND_LIFE_MESH.read(data_of(samples, "elfears_98a6e63e.llmesh"))
    asset.blocks["physics_convex"] = hulls.blocks["physics_convex"]
    assert SECOND_LIFE_MESH.to_scene(asset, "thing").warnings == []
