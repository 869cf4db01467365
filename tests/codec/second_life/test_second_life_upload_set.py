"""Upload sets, judged by an XML parser of the tests' own and by the table of joints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import avatar_rest
import collada_oracle
import glb_oracle
import numpy as np
import numpy.typing as npt
import pytest
import second_life_oracle
import upload_scenes
import viewer_matching
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core import shading
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.format import OutputFile
from meshferry.io_formats.core.glb_materials import GltfMaterial
from meshferry.io_formats.core.messages import Kind
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.second_life.models import faces
from meshferry.io_formats.second_life.upload_set import codec, levels
from meshferry.io_formats.second_life.upload_set import document as upload_set_document
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
from python_steps import python_steps

FILES = ("hut_LOD2.dae", "hut_LOD1.dae", "hut_LOD0.dae", "hut_PHYS.dae", "hut.dae")
LEVELS = ("hut.dae", "hut_LOD2.dae", "hut_LOD1.dae", "hut_LOD0.dae")


def written(scene: sc.Scene, **options: Any) -> list[OutputFile]:
    document = SECOND_LIFE_UPLOAD.from_scene(scene, options)
    return SECOND_LIFE_UPLOAD.write_files(document, "hut")


def parsed(scene: sc.Scene, **options: Any) -> dict[str, collada_oracle.Document]:
    """Return the files of a scene by their names, parsed by the oracle."""
    return {
        output.name: collada_oracle.parse(output.data)
        for output in written(scene, **options)
        if output.name.endswith(".dae")
    }


def corners(mesh: sc.Mesh, place: npt.NDArray[np.float64], slots: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return position and normal in the world, and UV, of all corners of some slots of a mesh: (C, 8)."""
    assert mesh.normal is not None
    normals = mesh.normal.at_corners(mesh.corner_point).astype(np.float64) @ np.linalg.inv(place[:3, :3])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    if np.linalg.det(place[:3, :3]) < 0:
        normals = normals.reshape(-1, 3, 3)[:, ::-1].reshape(-1, 3)
    points = mesh.points[mesh.corner_point].astype(np.float64) @ place[:3, :3].T + place[:3, 3]
    uvs = mesh.uvs[0].at_corners(mesh.corner_point)
    if np.linalg.det(place[:3, :3]) < 0:  # a mirrored triangle counts the other way round
        points = points.reshape(-1, 3, 3)[:, ::-1].reshape(-1, 3)
        uvs = uvs.reshape(-1, 3, 2)[:, ::-1].reshape(-1, 2)
    of_slots = np.repeat(np.isin(mesh.material_index, slots), 3)
    return np.hstack((points, normals, uvs))[of_slots]


def in_world(face: npt.NDArray[np.float64], world: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    points = face[:, :3] @ world[:3, :3].T + world[:3, 3]
    normals = face[:, 3:6] @ np.linalg.inv(world[:3, :3])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return np.hstack((points, normals, face[:, 6:]))


def same_triangles(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], tolerance: float = 2e-6) -> None:
    """Assert that corners (C, k) are the same, triangle by triangle; each may begin at another corner."""
    assert one.shape == other.shape
    sides = (one.reshape(-1, 3, one.shape[1]), other.reshape(-1, 3, other.shape[1]))
    turns = [np.abs(sides[0] - np.roll(sides[1], turn, axis=1)).max(axis=(1, 2)) for turn in range(3)]
    assert float(np.min(turns, axis=0).max()) <= tolerance


def shown(scene: sc.Scene) -> str:
    return "\n".join(scene.warnings)


# -- files --------------------------------------------------------------------------------------


def test_files_of_a_set_and_what_stands_at_their_head() -> None:
    outputs = written(upload_scenes.static_scene())
    assert tuple(output.name for output in outputs) == FILES
    for output in outputs:
        document = collada_oracle.parse(output.data)
        assert (document.meter, document.up_axis, document.version) == (1.0, "Z_UP", "1.4.1")
        assert output.data.startswith(b'<?xml version="1.0" encoding="utf-8"?>\n')


def test_a_scene_is_one_set_and_nothing_is_none() -> None:
    scene = upload_scenes.static_scene()
    assert api.files_of(scene, SECOND_LIFE_UPLOAD) == [scene]
    with pytest.raises(ExportError, match="There is nothing in 'empty'"):
        api.files_of(sc.Scene("empty", [sc.Node("Empty")]), SECOND_LIFE_UPLOAD)


def test_the_same_scene_gives_the_same_bytes() -> None:
    assert written(upload_scenes.rigged_scene()) == written(upload_scenes.rigged_scene())


def test_every_file_holds_every_object_by_the_same_name_the_root_first() -> None:
    scene = upload_scenes.static_scene()
    documents = parsed(scene)
    assert [found.geometry.name for found in documents.pop("hut_PHYS.dae").instances] == ["garden_hut"]
    for document in documents.values():
        assert [found.geometry.name for found in document.instances] == ["garden_hut", "door"]
    assert scene.warnings == []


@pytest.mark.parametrize("suffix", ["", "_rest"])
def test_through_the_file_system(tmp_path: Path, suffix: str) -> None:
    scene = upload_scenes.static_scene()
    api.write_scene(scene, tmp_path / f"my hut{suffix}.dae", SECOND_LIFE_UPLOAD)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == sorted(name.replace("hut", f"my hut{suffix}") for name in FILES)


# -- static -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale", [(2.0, 1.0, 3.0), (-2.0, 1.0, 3.0), (-2.0, -1.0, 3.0), (-2.0, -1.0, -3.0), (1e-3, 50.0, 1.0)]
)
def test_static_objects_are_where_they_were(scale: tuple[float, float, float]) -> None:
    scene = upload_scenes.static_scene(scale=scale)
    node = scene.nodes[0]
    place = upload_scenes.matrix(node.translation, node.rotation, node.scale)
    documents = parsed(scene)
    for name, level, slots in zip(
        LEVELS, scene.nodes, ({"wood": 0, "stone": 1},) * 2 + ({"stone": 0}, {"wood": 0}), strict=False
    ):
        instance = documents[name].instances[0]
        assert instance.skin is None
        assert np.linalg.det(instance.world[:3, :3]) > 0, "a mirrored matrix is an error in the viewer"
        assert instance.geometry.faces.keys() == {"wood", "stone"}
        assert level.mesh is not None
        for symbol, slot in slots.items():
            face = in_world(instance.geometry.faces[symbol], instance.world)
            same_triangles(corners(level.mesh, place, [slot]), face, 1e-5)
            a, b, c = face[:, :3].reshape(-1, 3, 3).transpose(1, 0, 2)
            assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), face[::3, 3:6]) > 0).all(), "inside out"


def test_positions_are_shared_and_numbers_are_exact() -> None:
    scene = upload_scenes.static_scene()
    assert scene.nodes[0].mesh is not None
    scene.nodes[0].mesh.points += np.float32(1) / 3
    geometry = parsed(scene)["hut.dae"].instances[0].geometry
    assert len(geometry.positions) == 8
    assert np.array_equal(geometry.positions.astype(np.float32), scene.nodes[0].mesh.points)


def test_missing_normals_and_uvs() -> None:
    scene = upload_scenes.static_scene()
    mesh = scene.nodes[-1].mesh
    assert mesh is not None
    mesh.normal, mesh.uvs = None, []
    instance = parsed(scene)["hut.dae"].instances[1]
    assert not instance.geometry.has_uvs
    face = instance.geometry.faces["wood"]
    assert np.allclose(np.linalg.norm(face[:, 3:6], axis=1), 1)
    assert (np.einsum("ij,ij->i", face[:, :3], face[:, 3:6]) > 0).all()


def test_normals_without_direction_come_from_their_triangles() -> None:
    scene = upload_scenes.static_scene()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.normal is not None
    wanted = mesh.normal.values.copy()
    mesh.normal.values[[0, 7]] = (0, np.nan, 0), (0, 0, 0)
    face = parsed(scene)["hut.dae"].instances[0].geometry.faces
    found = np.vstack([face["wood"], face["stone"]])[:, 3:6]
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, wanted.tolist()))
    assert "2 normals have no direction; computed from the triangles" in shown(scene)


def test_triangles_that_use_a_point_twice_are_left_out_and_said() -> None:
    scene = upload_scenes.static_scene()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    mesh.corner_point[4] = mesh.corner_point[3]
    assert parsed(scene)["hut.dae"].instances[0].geometry.triangle_count == 11
    assert "garden hut: 1 triangle uses a vertex twice; left out" in scene.warnings


@pytest.mark.parametrize("what", ["points", "uvs"])
def test_what_is_no_number_is_refused(what: str) -> None:
    scene = upload_scenes.static_scene()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    (mesh.points if what == "points" else mesh.uvs[0].values)[1] = np.nan
    with pytest.raises(ExportError, match=r"garden hut: (\d corners have|1 UV is) NaN or infinite"):
        written(scene)


def test_an_object_without_triangles_is_refused() -> None:
    empty = np.zeros(0, np.int32)
    scene = sc.Scene("x", [sc.Node("dot", mesh=sc.Mesh(np.zeros((1, 3), np.float32), empty, empty))])
    with pytest.raises(ExportError, match="dot: it has no triangles"):
        written(scene)


# -- levels and physics -------------------------------------------------------------------------


def test_missing_and_empty_levels_are_the_next_finer_one() -> None:
    scene = upload_scenes.static_scene()
    empty = np.zeros(0, np.int32)
    scene.nodes[1].mesh = upload_scenes.box(materials=["stone"])
    scene.nodes[2].mesh = sc.Mesh(np.zeros((0, 3), np.float32), empty, empty, ["wood"])
    documents = parsed(scene)
    counts = [
        {symbol: len(found) // 3 for symbol, found in documents[name].instances[0].geometry.corners.items()}
        for name in LEVELS
    ]
    assert counts == [{"wood": 6, "stone": 6}, *[{"wood": 1, "stone": 12}] * 2, {"wood": 12, "stone": 1}]
    assert [documents[name].instances[1].geometry.triangle_count for name in LEVELS] == [12] * 4
    assert "garden hut: its low level has no triangles; the next finer one is used instead" in scene.warnings


@pytest.mark.parametrize("materials", [["stone"], [""], ["other", "stone"], []])
def test_physics_meshes_stand_where_the_object_does(materials: list[str]) -> None:
    scene = upload_scenes.static_scene()
    scene.nodes[4].mesh = upload_scenes.box(materials=materials)
    (hut,) = parsed(scene)["hut_PHYS.dae"].instances
    assert np.array_equal(hut.world, parsed(scene)["hut.dae"].instances[0].world)
    assert hut.geometry.triangle_count == 12
    assert set(hut.geometry.faces) <= {"wood", "stone"}, "materials must be among those of the finest level"


def test_without_physics_shapes_there_is_no_physics_file() -> None:
    """The viewer uses the convex hull of such objects; any mesh in the file would become triangle physics."""
    scene = upload_scenes.static_scene()
    scene.nodes = [node for node in scene.nodes if node.role is sc.Role.RENDER]
    base = replace(scene.nodes[0], role=sc.Role.HULL, shape_of=0, is_base_hull=True)
    scene.nodes.append(base)
    outputs = written(scene)
    assert tuple(output.name for output in outputs) == tuple(name for name in FILES if "PHYS" not in name)
    assert outputs[-1].obsolete == ("hut_PHYS.dae",)
    assert outputs[-1].own_mark in outputs[-1].data[:1000]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_boxes_for_flat_hulls_have_no_triangles_without_area(axis: int) -> None:
    size = np.array([2.0, 3.0, 4.0])
    size[axis] = 0
    leaf = sc.Node("leaf", mesh=upload_scenes.box(size.tolist(), ["wood"]))
    points = sc.Mesh(np.float32([size / -2, size / 2]), np.zeros(0, np.int32), np.zeros(0, np.int32))
    scene = sc.Scene("leaf", [leaf, sc.Node("hull", mesh=points, role=sc.Role.HULL, shape_of=0)])
    geometry = parsed(scene)["hut_PHYS.dae"].instances[0].geometry
    a, b, c = geometry.faces["wood"][:, :3].reshape(-1, 3, 3).transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    assert len(area) == 4
    assert (area > 1).all()


def test_hulls_go_as_one_mesh() -> None:
    scene = upload_scenes.static_scene()
    scene.nodes = scene.nodes[:1]
    for number in range(2):
        hull = upload_scenes.box((0.5, 1, 1), [])
        hull.points += np.float32((0.25 - 0.5 * number, 0, 0))
        node = sc.Node(f"hull {number}", mesh=hull, role=sc.Role.HULL, shape_of=0)
        scene.nodes.append(replace(scene.nodes[0], **{key: getattr(node, key) for key in ("name", "mesh", "role")}))
        scene.nodes[-1].shape_of = 0
    points = sc.Mesh(np.float32([(0, 0, 0), (0.5, 0.5, 0.5)]), np.zeros(0, np.int32), np.zeros(0, np.int32))
    scene.nodes.append(replace(scene.nodes[1], mesh=points))
    geometry = parsed(scene)["hut_PHYS.dae"].instances[0].geometry
    assert geometry.triangle_count == 36
    assert len(geometry.faces) == 1
    assert "3 hulls go into the file as one mesh and act as triangles; 'Analyze'" in shown(scene)
    assert "set 'Num Hulls' to 3 or more" in shown(scene)
    assert "1 hull is stored as points only, and written as boxes" in shown(scene)


# -- names and materials ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_names", "expected", "said"),
    [
        (["hut one", "hut\tone"], ["hut_one", "hut_one_2"], 1),
        (["hut_LOD3", "hut_PHYS"], ["hut", "hut_2"], 2),
        (["my_LODGE", "x_PHYSICS_LOD"], ["my-LODGE", "x-PHYSICS"], 2),
        (["Hut", "hut"], ["Hut", "hut_2"], 1),
        (["<&\">'", ""], ["<&\">'", "object"], 1),
        (["хата", "小屋\x07"], ["хата", "小屋_"], 1),
    ],
)
def test_names_of_objects(given_names: list[str], expected: list[str], said: int) -> None:
    nodes = [sc.Node(name, mesh=upload_scenes.box((1, 1, 1 + place))) for place, name in enumerate(given_names)]
    scene = sc.Scene("x", nodes)
    for document in parsed(scene).values():
        assert [found.geometry.name for found in document.instances] == expected
    assert len([text for text in scene.warnings if "in the files" in text]) == said


def test_materials_keep_their_names_in_all_files_and_slots_of_one_name_join() -> None:
    mesh = upload_scenes.box(materials=["red wall", "red_wall", "red wall", "", "3/4 €", "grün"])
    coarse = upload_scenes.box(materials=["grün", "red wall"])
    nodes = [sc.Node("hut", mesh=mesh), sc.Node("hut", mesh=coarse, lod=1, lod_of=0)]
    documents = parsed(sc.Scene("hut", nodes))
    finest = documents["hut.dae"].instances[0]
    counts = {symbol: len(found) // 3 for symbol, found in finest.geometry.corners.items()}
    assert counts == {"red_wall": 4, "red_wall_2": 2, "hut_plain": 2, "_3_4__": 2, "grün": 2}
    named = {symbol: look.name for symbol, look in finest.looks.items()}
    assert named == {
        "red_wall": "red wall",
        "red_wall_2": "red_wall",
        "hut_plain": "hut_plain",
        "_3_4__": "3/4 €",
        "grün": "grün",
    }
    counts = {
        symbol: len(found) // 3 for symbol, found in documents["hut_LOD2.dae"].instances[0].geometry.corners.items()
    }
    assert counts == {"red_wall": 6, "red_wall_2": 1, "hut_plain": 1, "_3_4__": 1, "grün": 6}


def test_slots_without_a_material_belong_together_in_their_order() -> None:
    finest = upload_scenes.box(materials=["wood", "", ""])
    coarse = upload_scenes.box(materials=["", "wood", ""])
    nodes = [sc.Node("hut", mesh=finest), sc.Node("hut", mesh=coarse, lod=1, lod_of=0)]
    documents = parsed(sc.Scene("hut", nodes))
    for name in ("hut.dae", "hut_LOD2.dae"):
        assert set(documents[name].instances[0].looks) == {"wood", "hut_plain", "hut_plain_2"}


def test_looks() -> None:
    looks = parsed(upload_scenes.static_scene())["hut.dae"].instances[0].looks
    assert looks["wood"].color == pytest.approx((0.735357, 0.537099, 0.388573, 1.0), abs=1e-5)  # sRGB of 1/2, 1/4, 1/8
    assert looks["stone"].color == pytest.approx((0.484529, 0.484529, 0.484529, 0.5), abs=1e-5)
    assert looks["stone"].emission == pytest.approx(0.75)
    assert looks["wood"].emission == 0


def test_a_material_of_which_nothing_is_known_is_white() -> None:
    scene = upload_scenes.static_scene()
    scene.materials = []
    assert parsed(scene)["hut.dae"].instances[0].looks["wood"].color == (1, 1, 1, 1)


@pytest.mark.parametrize("count", [8, 9, 17])
def test_many_materials_are_left_to_the_viewer_or_refused(count: int) -> None:
    mesh = sc.Mesh(
        np.random.default_rng(1).random((3 * count, 3)).astype(np.float32),
        np.arange(3 * count, dtype=np.int32),
        np.arange(count, dtype=np.int32),
        [f"m{number}" for number in range(count)],
    )
    scene = sc.Scene("x", [sc.Node("quilt", mesh=mesh)])
    assert len(parsed(scene)["hut.dae"].instances[0].geometry.faces) == count
    if count > 8:
        with pytest.raises(ExportError, match=f"quilt: it has {count} materials, at most 8"):
            written(scene, many_materials="REFUSE")
    else:
        written(scene, many_materials="REFUSE")


def test_levels_of_many_materials_are_split_by_the_viewer_as_the_finest_is() -> None:
    """The viewer sorts the faces of each file by material and cuts them behind every eighth."""
    count = 12
    names_of = [f"m{number:02d}" for number in range(count)]
    finest = sc.Mesh(
        np.random.default_rng(1).random((6 * count, 3)).astype(np.float32),
        np.arange(6 * count, dtype=np.int32),
        np.repeat(np.arange(count, dtype=np.int32), 2),
        names_of,
    )
    few = replace(
        finest, corner_point=finest.corner_point[:18], material_index=np.array([0, 4, 10, 10, 10, 4], np.int32)
    )
    scene = sc.Scene("x", [sc.Node("quilt", mesh=finest), sc.Node("", mesh=few, lod=2, lod_of=0)])
    found = parsed(scene, use_keep_level_size=False)
    for name in LEVELS:
        assert sorted(found[name].instances[0].geometry.faces) == names_of
    low = found["hut_LOD1.dae"].instances[0].geometry.faces
    assert [len(low[name]) // 3 for name in names_of] == [1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 3, 1]
    viewer_matching.check_levels([found[name] for name in LEVELS])


@pytest.mark.parametrize("size", [(1.0, 1.0, 1.0), (0.3, 0.02, 4.0), (0.0, 0.5, 0.5), (0.5, 0.5, 0.0)])
def test_levels_get_a_small_triangle_of_each_material_that_they_lack(size: tuple[float, float, float]) -> None:
    scene = upload_scenes.static_scene()
    coarse = upload_scenes.box(size, materials=["stone"])
    coarse.points += np.float32((0.1, 0.1, 0.0))
    scene.nodes[2].mesh = coarse
    found = parsed(scene, use_keep_level_size=False)
    viewer_matching.check_levels([found[name] for name in LEVELS])
    low = found["hut_LOD1.dae"].instances[0].geometry
    positions = low.positions.astype(np.float32)
    assert np.array_equal(positions.min(axis=0), coarse.points.min(axis=0)), "the box grows"
    assert np.array_equal(positions.max(axis=0), coarse.points.max(axis=0)), "the box grows"
    (triangle,) = low.faces["wood"].reshape(-1, 3, 8)
    assert not np.isnan(triangle).any()
    assert (np.ptp(triangle[:, :3], axis=0) <= 0.03 * np.array(size)).all(), "it would be seen"
    normal = np.cross(triangle[1, :3] - triangle[0, :3], triangle[2, :3] - triangle[0, :3])
    assert np.allclose(normal / np.linalg.norm(normal), triangle[:, 3:6])
    assert set(found["hut_PHYS.dae"].instances[0].geometry.faces) == {"stone"}
    assert scene.warnings == []


def test_added_triangles_of_rigged_levels_have_the_weights_of_the_finest_level() -> None:
    scene = upload_scenes.rigged_scene()
    mesh = scene.nodes[2].mesh
    assert mesh is not None
    mesh.material_index[:] = mesh.materials.index("trousers")
    found = parsed(scene)
    viewer_matching.check_levels([found[name] for name in LEVELS])
    finest, low = (found[name].instances[0] for name in ("hut.dae", "hut_LOD1.dae"))
    assert finest.skin is not None
    assert low.skin is not None
    assert len(low.skin.weights) == len(low.geometry.positions)
    weights = low.skin.weights[low.geometry.corners["skin"]]
    triangles = finest.skin.weights[finest.geometry.corners["skin"].reshape(-1, 3)]
    assert (np.abs(triangles - weights).max(axis=(1, 2)) == 0).any()


def test_added_triangles_are_not_at_vertices() -> None:
    """The viewer looks up weights by position, so a triangle in the corner of a box would change those of the box."""
    finest, low = upload_scenes.box(), upload_scenes.box(materials=["wood"])
    of_stone = np.repeat(finest.material_index == 1, 3)
    finest.points = np.concatenate((finest.points, finest.points / 8 - 1))
    finest.corner_point[of_stone] += len(low.points)
    nodes = [sc.Node("hut", mesh=finest, lod=0), sc.Node("hut", mesh=low, lod=2, lod_of=0)]
    geometry = parsed(sc.Scene("hut", nodes))["hut_LOD1.dae"].instances[0].geometry
    added, others = geometry.faces["stone"][:, :3], geometry.faces["wood"][:, :3]
    assert len(added) == 3
    assert np.linalg.norm(added[:, None] - others, axis=2).min() > 1e-3


@pytest.mark.parametrize(("crowded", "side"), [(0, 20), (2, 20), pytest.param(2, 260, marks=pytest.mark.slow)])
def test_crowded_materials_are_split_alike_in_all_levels(
    monkeypatch: pytest.MonkeyPatch, crowded: int, side: int
) -> None:
    """One level has more vertices of a material than a face may have; the viewer would split it there alone."""
    if side == 20:
        monkeypatch.setattr(faces, "MOST_VERTICES", 300)
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    corners = np.stack((first, first + 1, first + side + 1, first, first + side + 1, first + side), axis=1)
    points = np.stack((x, y, x * y), axis=2).reshape(-1, 3).astype(np.float32)
    grid = sc.Mesh(points, corners.reshape(-1).astype(np.int32), np.zeros(2 * len(first), np.int32), ["wood", "stone"])
    grid.material_index[:2] = 1
    box = upload_scenes.box()
    nodes = [
        sc.Node("hut", mesh=grid if level == crowded else box, lod=level, lod_of=0 if level else None)
        for level in range(3)
    ]
    scene = sc.Scene("hut", nodes)
    found = parsed(scene, use_keep_level_size=False)
    viewer_matching.check_levels([found[name] for name in LEVELS])
    for name in LEVELS:
        looks = found[name].instances[0].looks
        assert sorted(looks) == ["stone", "wood", "wood_part_2"]
        assert looks["wood_part_2"].color == looks["wood"].color
    whole = found[LEVELS[crowded]].instances[0].geometry
    assert whole.triangle_count == grid.triangle_count
    assert max(len(np.unique(numbers)) for numbers in whole.corners.values()) <= faces.MOST_VERTICES
    assert "vertices; split into 2 faces" in shown(scene)


# -- textures -----------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def textured(texture: shading.Texture, other: shading.Texture | None = None) -> sc.Scene:
    scene = upload_scenes.static_scene()
    scene.materials[0].texture = texture
    scene.materials[1].texture = other
    return scene


def images(scene: sc.Scene, stem: str = "hut", **options: Any) -> tuple[list[OutputFile], dict[str, str | None]]:
    """Return the textures that a set brings, and what each material's face points to in the finest level's file."""
    outputs = SECOND_LIFE_UPLOAD.write_files(SECOND_LIFE_UPLOAD.from_scene(scene, options), stem)
    finest = collada_oracle.parse(outputs[-1].data).instances[0]
    return outputs[4:-1], {symbol: look.image for symbol, look in finest.looks.items()}


def test_textures_are_copied_beside_the_files(tmp_path: Path) -> None:
    path = tmp_path / "Planks old.PNG"
    path.write_bytes(PNG)
    scene = textured(shading.Texture("Planks old.PNG", str(path)), shading.Texture("again", str(path)))
    copies, found = images(scene)
    assert copies == [OutputFile("hut_Planks_old.png", copy_of=path)]
    assert found == {"wood": "hut_Planks_old.png", "stone": "hut_Planks_old.png"}
    assert scene.warnings == []
    api.write_scene(scene, tmp_path / "hut.dae", SECOND_LIFE_UPLOAD)
    assert (tmp_path / "hut_Planks_old.png").read_bytes() == PNG


def test_packed_textures_are_written_out_with_the_extension_of_their_content() -> None:
    copies, found = images(textured(shading.Texture("a/b:c", data=PNG), shading.Texture("a_b_c.png", data=PNG + b"2")))
    assert found["wood"] == copies[0].name
    assert found["stone"] == copies[1].name
    assert [copy.data for copy in copies] == [PNG, PNG + b"2"]
    assert all(copy.name.startswith("hut_a_b_c") and copy.name.endswith(".png") for copy in copies)
    assert len({copy.name for copy in copies}) == 2


def test_two_textures_of_one_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "wood.png").write_bytes(PNG + folder.encode())
    textures = [shading.Texture("wood", str(tmp_path / folder / "wood.png")) for folder in ("one", "two")]
    copies, found = images(textured(*textures))
    assert [copy.name for copy in copies] == ["hut_wood.png", "hut_wood_2.png"]
    assert found == {"wood": "hut_wood.png", "stone": "hut_wood_2.png"}


@pytest.mark.parametrize("stem", ["小屋", "小島", "my hut", "x" * 180])
def test_names_of_textures_need_no_encoding(stem: str) -> None:
    copies, found = images(textured(shading.Texture("木.png", data=PNG)), stem)
    assert copies[0].name == found["wood"]
    assert copies[0].name.isascii()
    assert " " not in copies[0].name
    assert len(copies[0].name) < 250


def test_other_alphabets_do_not_meet() -> None:
    first, second = (
        images(textured(shading.Texture("木.png", data=PNG)), stem)[0][0].name for stem in ("小屋", "小島")
    )
    assert first != second


@pytest.mark.parametrize(
    ("texture", "said"),
    [
        (
            shading.Texture("gone", "/nowhere/gone.png"),
            "texture 'gone' of material 'wood' is missing: there is no file",
        ),
        (shading.Texture("new"), "was never saved, nor is it packed; left out"),
        (shading.Texture("odd", "a\0b"), "is missing"),
    ],
)
def test_textures_that_are_not_there_are_named(texture: shading.Texture, said: str) -> None:
    scene = textured(texture)
    copies, found = images(scene)
    assert copies == []
    assert found["wood"] is None
    assert said in shown(scene)


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"RIFF....WEBP", "x.png", "is a .webp file, which the viewer does not read"),
        (b"nothing known", "x", "is of a kind that the viewer does not read"),
    ],
)
def test_kinds_of_textures_that_the_viewer_does_not_read(data: bytes, name: str, said: str) -> None:
    scene = textured(shading.Texture(name, data=data))
    assert len(images(scene)[0]) == 1
    assert said in shown(scene)


def test_large_textures_are_named() -> None:
    scene = textured(shading.Texture("x.png", data=PNG, width=4096, height=2048))
    images(scene)
    assert "4096 × 2048 pixels; the viewer scales it down to 2048 × 2048" in shown(scene)
    scene = textured(shading.Texture("x.png", data=PNG, width=2048, height=2048))
    images(scene)
    assert scene.warnings == []


def test_textures_that_are_not_to_be_copied(tmp_path: Path) -> None:
    path = tmp_path / "wood.png"
    path.write_bytes(PNG)
    scene = textured(shading.Texture("wood", str(path)), shading.Texture("packed", data=PNG))
    copies, found = images(scene, use_textures=False)
    assert copies == []
    assert found == {"wood": path.as_uri(), "stone": None}
    assert "'packed' of material 'stone' is packed in the .blend file" in shown(scene)


def test_notes_of_pbr_materials_name_faces_as_the_viewer_numbers_them() -> None:
    """By the names of the materials, ignoring case, in parts of 8."""
    materials = ["b", "A", "c", "D", "e", "F", "g", "H", "i"]
    wall, roof = upload_scenes.box(materials=materials), upload_scenes.box(materials=["A"])
    wall = join([wall, upload_scenes.box((0.5, 0.5, 0.5), [*materials[6:], *materials[:3]])])
    scene = sc.Scene("hut", [sc.Node("wall", mesh=wall), sc.Node("roof", mesh=roof)])
    scene.materials = [sc.Material(name, gltf=GltfMaterial(name, {"name": name})) for name in ("A", "b", "i")]
    encoded = api.encode_part(scene, SECOND_LIFE_UPLOAD, path="hut.dae")
    assert [text for text in encoded.messages if text.is_note] == [
        "'b' on face 1 of 'wall' → hut_b.glb",
        "'A' on face 0 of 'wall', face 0 of 'roof' → hut_A.glb",
        "'i' on face 0 of part 2 of 'wall' → hut_i.glb",
    ]
    assert all(glb_oracle.read_glb(output.data) for output in encoded.outputs if output.name.endswith(".glb"))


def test_files_of_pbr_materials_have_names_of_their_own() -> None:
    """The name of the set is in front once; letters that URLs and some file systems lack are replaced."""
    found = codec.pbr_names(["Wood", "wood", "hut_roof", "Glas/Öl"], "hut")
    assert found[:3] == ["hut_Wood.glb", "hut_wood_2.glb", "hut_roof.glb"]
    assert re.fullmatch(r"hut_Glas_+l_[0-9a-f]{8}\.glb", found[3])


def test_physics_has_no_textures() -> None:
    scene = textured(shading.Texture("x.png", data=PNG))
    scene.nodes.append(replace(scene.nodes[0], role=sc.Role.PHYSICS, shape_of=0))
    document = parsed(scene)["hut_PHYS.dae"]
    assert all(look.image is None for found in document.instances for look in found.looks.values())


# -- rigs ---------------------------------------------------------------------------------------


def in_avatar_space(instance: collada_oracle.Instance) -> npt.NDArray[np.float64]:
    assert instance.skin is not None
    shape = instance.skin.bind_shape
    return instance.geometry.positions @ shape[:3, :3].T + shape[:3, 3]


@pytest.mark.parametrize("facing", upload_scenes.FACING)
@pytest.mark.parametrize("rolled", [False, True])
def test_rigs_agree_with_the_table_whichever_way_they_face(facing: str, rolled: bool) -> None:
    scene = upload_scenes.rigged_scene(facing, rolled=rolled)
    shape = replace(scene.nodes[0], role=sc.Role.PHYSICS, shape_of=0, skeleton=None, skin=None)
    scene.nodes.append(shape)
    documents = parsed(scene)
    for name, rings in zip(LEVELS, (9, 7, 5, 3), strict=True):
        instance = documents[name].instances[0]
        collada_oracle.check_rig(instance)
        wanted = upload_scenes.tube(rings)
        assert np.allclose(in_avatar_space(instance), wanted.points, atol=1e-6)
        for slot, symbol in enumerate(wanted.materials):
            same_triangles(corners(wanted, np.identity(4), [slot]), instance.geometry.faces[symbol], 2e-6)
        assert np.array_equal(instance.world, np.identity(4))
    physics = documents["hut_PHYS.dae"].instances[0]
    assert physics.skin is None
    points = upload_scenes.tube().points
    assert np.allclose(physics.geometry.positions.min(axis=0), points.min(axis=0), atol=1e-6)
    assert scene.warnings == []


def test_weights_are_the_four_strongest_of_each_position() -> None:
    scene = upload_scenes.rigged_scene(heights={**upload_scenes.TRUNK, "mHead": 1.7})
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.joint_weights is not None
    assert mesh.joint_indices is not None
    assert mesh.joint_weights.shape[1] == 5
    skin = parsed(scene)["hut.dae"].instances[0].skin
    assert skin is not None
    wanted = np.zeros((len(mesh.points), len(skin.joints)))
    for point in range(len(mesh.points)):
        strongest = np.argsort(-mesh.joint_weights[point])[:4]
        total = mesh.joint_weights[point, strongest].sum()
        for slot in strongest:
            joint = scene.skeletons[0].joints[mesh.joint_indices[point, slot]].name
            wanted[point, skin.joints.index(joint)] = mesh.joint_weights[point, slot] / total
    assert np.allclose(skin.weights, wanted, atol=8e-5)  # sums as near to 1 as a file's stay as they are
    assert "more than 4 weights; the strongest are kept" in shown(scene)


def test_collision_volumes_bring_rotation_and_scale() -> None:
    instance = parsed(upload_scenes.rigged_scene(heights=upload_scenes.VOLUMES))["hut.dae"].instances[0]
    collada_oracle.check_rig(instance)
    assert instance.skin is not None
    assert {"PELVIS", "BELLY", "CHEST"} <= set(instance.skin.joints)


@pytest.mark.parametrize(
    "transform",
    [
        {"translation": (0.5, 1.0, -2.0)},
        {"rotation": (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0), "scale": (0.01, 0.01, 0.01)},
        {"scale": (-1.0, 1.0, 1.0)},
        {"translation": (1.0, 0.0, 0.0), "rotation": (0.5, 0.5, -0.5, 0.5), "scale": (1.0, 2.0, 4.0)},
    ],
)
def test_bind_shapes_are_not_turned_whatever_the_object_is(transform: dict[str, Any]) -> None:
    scene = upload_scenes.rigged_scene(**transform)
    if min(transform.get("scale", (1,))) < 0:
        scene.nodes[0].mesh = scene.nodes[0].mesh and turned_around(scene.nodes[0].mesh)
    instance = parsed(scene)["hut.dae"].instances[0]
    collada_oracle.check_rig(instance)
    wanted = upload_scenes.tube()
    assert np.allclose(in_avatar_space(instance), wanted.points, atol=2e-6)
    for slot, symbol in enumerate(wanted.materials):
        same_triangles(corners(wanted, np.identity(4), [slot]), instance.geometry.faces[symbol], 1e-5)


def turned_around(mesh: sc.Mesh) -> sc.Mesh:
    """Return a mesh whose triangles count the other way round."""
    order = np.arange(len(mesh.corner_point)).reshape(-1, 3)[:, ::-1].reshape(-1)
    uvs = [sc.Layer(layer.name, layer.values[order], per_corner=True) for layer in mesh.uvs]
    return replace(mesh, corner_point=mesh.corner_point[order], uvs=uvs)


MOVED = {"mTorso": (0.0, 0.0, 0.1), "mCollarLeft": (-0.02, 0.1, 0.17)}


def test_joint_positions_where_the_armature_has_them() -> None:
    scene = upload_scenes.rigged_scene(moved=MOVED)
    instance = parsed(scene)["hut.dae"].instances[0]
    collada_oracle.check_rig(instance, moved={"mTorso": np.array(MOVED["mTorso"])})
    assert "body: tick 'Include joint positions' in the upload window" in shown(scene)
    assert "Lock scale" not in shown(scene)
    scene = upload_scenes.rigged_scene(moved=MOVED)
    parsed(scene, use_lock_scale=True)
    assert "'Lock scale if joint position defined'" in shown(scene)


@pytest.mark.parametrize(
    ("scene", "options", "boxes"),
    [
        (upload_scenes.static_scene(), {}, ""),
        (upload_scenes.rigged_scene(), {}, "tick 'Include skin weight' when you "),
        (
            upload_scenes.rigged_scene(moved=MOVED),
            {"use_lock_scale": True},
            (
                "tick 'Include skin weight' and 'Include joint positions' and "
                "'Lock scale if joint position defined' when you "
            ),
        ),
    ],
)
def test_files_and_boxes_of_the_upload_window_are_named(scene: sc.Scene, options: dict[str, Any], boxes: str) -> None:
    usage = written(scene, **options)[-1].usage
    assert usage.startswith(f"{boxes}upload hut.dae; the viewer finds hut_LOD2.dae, hut_LOD1.dae, hut_LOD0.dae")
    assert usage.endswith(" beside it")


@pytest.mark.parametrize(("millimetres", "advice"), [(3, "is not needed"), (8, "tick")])
def test_joint_positions_are_advised_from_five_millimetres_on(millimetres: int, advice: str) -> None:
    chest = upload_scenes.rigged_scene(moved={"mTorso": (millimetres / 1000, 0.0, 0.084)})
    parsed(chest)
    assert f"'mTorso' by {millimetres}.0 mm" in shown(chest)
    assert f"{advice} 'Include joint positions'" in shown(chest) or f"positions' {advice}" in shown(chest)
    assert ("tick" in shown(chest)) == (millimetres == 8)


def test_the_height_of_the_pelvis_is_left_to_the_upload_window() -> None:
    for moved in (MOVED, {}):
        scene = upload_scenes.rigged_scene(moved=moved)
        scene.nodes[0].skin = sc.Skin([], np.empty((0, 4, 4)), np.identity(4), pelvis_offset=0.05)
        parsed(scene)
        assert ("'Z offset' in the upload window to 0.05" in shown(scene)) == bool(moved)


def test_joint_positions_that_are_not_wanted() -> None:
    scene = upload_scenes.rigged_scene(moved=MOVED)
    instance = parsed(scene, joint_positions="NEVER")["hut.dae"].instances[0]
    assert np.allclose(instance.joints["mTorso"].local[:3, 3], collada_oracle.avatar()["mTorso"].position)
    assert "tick" not in shown(scene)


def test_a_rig_that_is_as_the_table_asks_for_nothing() -> None:
    scene = upload_scenes.rigged_scene()
    parsed(scene)
    assert "tick" not in shown(scene)
    scene = upload_scenes.rigged_scene()
    parsed(scene, joint_positions="ALWAYS")
    assert "tick" in shown(scene)


def test_vertices_without_weights_follow_the_first_joint() -> None:
    scene = upload_scenes.rigged_scene()
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.joint_weights is not None
    mesh.joint_weights[[3, 5]] = 0
    skin = parsed(scene)["hut.dae"].instances[0].skin
    assert skin is not None
    assert np.array_equal(skin.weights[[3, 5], 0], (1, 1))


def test_levels_without_weights_of_a_rigged_object() -> None:
    scene = upload_scenes.rigged_scene()
    mesh = scene.nodes[1].mesh
    assert mesh is not None
    mesh.joint_weights = mesh.joint_indices = None
    skin = parsed(scene)["hut_LOD2.dae"].instances[0].skin
    assert skin is not None
    assert (skin.weights[:, 0] == 1).all()


def test_two_bodies_on_one_armature_share_its_joints() -> None:
    scene = upload_scenes.rigged_scene(levels=[9])
    other = upload_scenes.rigged_scene(levels=[5], heights={"mHead": 1.7, "mNeck": 1.6}).nodes[0]
    other.name = "head"
    scene.nodes.append(other)
    body, head = parsed(scene)["hut.dae"].instances
    assert set(body.joints) == set(head.joints) >= {"mHead", "mPelvis"}
    for instance in (body, head):
        assert instance.skin is not None
        needed = {name for name in instance.joints if name != "mHead" and name != "mNeck"}
        assert needed <= set(collada_oracle.avatar())
    assert head.skin is not None
    assert sorted(head.skin.joints) == ["mHead", "mNeck"]


def test_two_armatures_have_joints_of_their_own() -> None:
    scene = upload_scenes.rigged_scene(levels=[9])
    other = upload_scenes.rigged_scene("+Y", levels=[5], moved={"mTorso": (0, 0, 0.1)})
    other.nodes[0].name, other.nodes[0].skeleton = "second", 1
    scene.nodes.append(other.nodes[0])
    scene.skeletons += other.skeletons
    first, second = parsed(scene)["hut.dae"].instances
    collada_oracle.check_rig(first)
    collada_oracle.check_rig(second, moved={"mTorso": np.array([0, 0, 0.1])})


def test_static_and_rigged_objects_together() -> None:
    scene = upload_scenes.static_scene()
    body = upload_scenes.rigged_scene(levels=[9])
    scene.nodes.append(body.nodes[0])
    scene.skeletons = body.skeletons
    for name, document in parsed(scene).items():
        rigged = [found.skin is not None for found in document.instances]
        assert rigged == ([False] if name == "hut_PHYS.dae" else [False, False, True])


def test_unknown_bones_are_written_as_they_are_called() -> None:
    """The rules stop such an export; who exports all the same gets a file that can be parsed."""
    scene = upload_scenes.rigged_scene(levels=[9])
    number = next(number for number, joint in enumerate(scene.skeletons[0].joints) if joint.name == "mNeck")
    scene.skeletons[0].joints[number].name = "My Neck"
    instance = parsed(scene)["hut.dae"].instances[0]
    assert instance.skin is not None
    assert "My_Neck" in instance.skin.joints
    assert "My_Neck" in instance.joints


def test_bones_that_the_armature_does_not_have_are_refused() -> None:
    scene = upload_scenes.rigged_scene(levels=[9])
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.joint_indices is not None
    mesh.joint_indices[0, 0] = 999
    with pytest.raises(ExportError, match="body: vertices are weighted to bones that its armature does not have"):
        written(scene)


# -- samples ------------------------------------------------------------------------------------


def _samples() -> list[str]:
    from load_package import SAMPLES

    folder = SAMPLES / "secondlife"
    found = [*folder.glob("*.llmesh"), *folder.glob("*.mesh"), *folder.glob("synthetic/*.llmesh")]
    return sorted(str(path.relative_to(folder)) for path in found)


@pytest.mark.parametrize("name", _samples())
def test_sample_assets_become_sets(samples: Path, name: str) -> None:
    scene = api.read_scene(samples / "secondlife" / name)
    finest = scene.nodes[0]
    assert finest.mesh is not None
    documents = parsed(scene)
    has_shape = any(node.role is not sc.Role.RENDER and not node.is_base_hull for node in scene.nodes)
    assert ("hut_PHYS.dae" in documents, len(documents)) == (has_shape, 4 + has_shape)
    instance = documents["hut.dae"].instances[0]
    whole = finest.mesh
    sound = (np.diff(np.sort(whole.corner_point.reshape(-1, 3), axis=1), axis=1) > 0).all(axis=1)
    assert instance.geometry.triangle_count == int(sound.sum())
    if finest.skin is None:
        return
    assert instance.skin is not None
    heads = {
        name: np.linalg.inv(inverse)[:3, 3]
        for name, inverse in zip(instance.skin.joints, instance.skin.inverse_bind, strict=True)
    }
    table = avatar_rest.worlds()
    for joint, head in heads.items():
        # Without joint positions in the file, the tree has exactly those of the avatar, wherever the file binds joints.
        moves = finest.skin.joint_positions is not None
        wanted, close = (head, 0.006) if moves else (table[joint][3, :3], 1e-9)
        assert np.allclose(instance.joints[joint].world[:3, 3], wanted, rtol=0, atol=close), joint
    points = in_avatar_space(instance)
    for number, joint in enumerate(instance.skin.joints):
        held = instance.skin.weights[:, number] > 0.5
        if held.any():
            assert np.linalg.norm(points[held] - heads[joint], axis=1).min() < 0.5, joint


@pytest.mark.parametrize("name", ["benthic_rigged22.mesh", "synthetic/synth_rig_cv.llmesh"])
def test_a_pose_of_an_unchanged_rig_is_that_of_its_file(samples: Path, name: str) -> None:
    """By the viewer's formula, with the avatar's own joints: the files have no joint positions."""
    path = samples / "secondlife" / name
    given = second_life_oracle.decode(path.read_bytes())
    scene = api.read_scene(path)
    scene.warnings.clear()
    instance = parsed(scene)["hut.dae"].instances[0]
    assert "joint positions" not in shown(scene)
    skin = instance.skin
    assert skin is not None
    worlds = avatar_rest.posed_worlds(7)
    moving = np.stack(
        [worlds[joint].T @ inverse for joint, inverse in zip(skin.joints, skin.inverse_bind, strict=True)]
    )
    points = np.column_stack((in_avatar_space(instance), np.ones(len(instance.geometry.positions))))
    posed = np.einsum("vj,jab,vb->va", skin.weights, moving, points)[:, :3]
    expected = avatar_rest.skinned(given, worlds)
    apart = np.linalg.norm(posed[:, None] - expected[None], axis=2)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 2e-4


# -- checks -------------------------------------------------------------------------------------


def test_a_good_scene_has_no_findings_of_its_own() -> None:
    found = SECOND_LIFE_UPLOAD.check_scene(upload_scenes.rigged_scene())
    assert [finding for finding in found if finding.kind is Kind.ERROR] == []


def test_levels_that_lack_a_material_are_named_unless_they_are_generated() -> None:
    scene = upload_scenes.static_scene()
    scene.nodes[2].generated_from = "garden hut"
    found = [str(finding) for finding in SECOND_LIFE_UPLOAD.check_scene(scene) if "small one" in finding.message]
    assert len(found) == 1
    assert found[0].startswith("Object 'garden hut_LOD0': no triangles with 'stone', so the files get a small one")


def test_textures_of_rigged_objects_are_told() -> None:
    scene = upload_scenes.rigged_scene()
    scene.materials[0].texture = shading.Texture("x.png", data=PNG)
    said = "The uploader takes no textures from rigged objects, only their faces: 'body'"
    assert any(finding.message.startswith(said) for finding in SECOND_LIFE_UPLOAD.check_scene(scene))
    assert any(text.startswith(said) for text in api.encode_part(scene, SECOND_LIFE_UPLOAD).messages)


def test_materials_that_differ_in_case_alone_are_named() -> None:
    scene = upload_scenes.static_scene()
    assert not [finding for finding in SECOND_LIFE_UPLOAD.check_scene(scene) if "case" in finding.message]
    for node in scene.nodes:
        if node.name.startswith("door") and node.mesh is not None:
            node.mesh.materials = ["Wood"]
    found = [finding.message for finding in SECOND_LIFE_UPLOAD.check_scene(scene) if "case" in finding.message]
    assert len(found) == 1
    assert "'wood', 'Wood'" in found[0]
    assert set(parsed(scene)["hut.dae"].instances[1].looks) == {"Wood_2"}


@pytest.mark.parametrize("count", [8, 9])
def test_further_parts_without_physics_are_named(count: int) -> None:
    mesh = upload_scenes.tube(2 * count)
    mesh.materials = [f"m{number}" for number in range(count)]
    mesh.material_index = np.arange(mesh.triangle_count, dtype=np.int32) % count
    found = SECOND_LIFE_UPLOAD.check_scene(sc.Scene("x", [sc.Node("quilt", mesh=mesh)]))
    said = "Only the first 8 faces have physics, since the viewer gives further parts none: 'quilt'"
    assert (said in [finding.message for finding in found]) == (count == 9)


def test_numbers_of_faces_are_those_of_the_viewer() -> None:
    slots = ["zinc", "Brass", "", "_old", "apple", "Wood", "wood", *(f"m{number}" for number in range(4))]
    mesh = upload_scenes.tube(2 * len(slots))
    mesh.materials = slots
    mesh.material_index = np.arange(mesh.triangle_count, dtype=np.int32) % len(slots)
    instance = parsed(sc.Scene("x", [sc.Node("my quilt", mesh=mesh)]))["hut.dae"].instances[0]
    found = viewer_matching.parts(instance.geometry)
    wanted = [
        (instance.looks[face.material].name.replace("my_quilt_plain", ""), part, number)
        for part, faces in enumerate(found)
        for number, face in enumerate(faces)
    ]
    assert levels.faces_of_slots(slots, "my quilt") == wanted
    assert [name for name, _part, _number in wanted][:3] == ["apple", "Brass", "m0"]


# -- numbers ------------------------------------------------------------------------------------


@given(hnp.arrays(np.float32, st.integers(0, 50), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_reals_come_back_to_the_bit(values: npt.NDArray[np.float32]) -> None:
    text = codec.real_words(values)
    assert np.array_equal(np.array(text.split(), np.float32), values)
    assert "-0 " not in f"{text} "


@given(hnp.arrays(np.int32, st.integers(0, 50), elements=st.integers(0, 2**31 - 1)))
def test_integers(values: npt.NDArray[np.int32]) -> None:
    assert codec.integer_words(values) == " ".join(map(str, values.tolist()))


def test_long_rows() -> None:
    values = np.arange(200_000, dtype=np.int32)
    assert codec.integer_words(values) == " ".join(map(str, values.tolist()))
    assert codec.real_words(values.astype(np.float32)) == " ".join(map(str, values.tolist()))


@pytest.mark.slow
@given(st.text(max_size=20))
def test_any_name_is_made_one_that_xml_holds(name: str) -> None:
    from xml.etree import ElementTree as ET

    for made in (
        upload_set_document.model_name(name, set()),
        upload_set_document.material_symbol(name, set()),
        upload_set_document.unique_identifier(name, set()),
    ):
        assert made
        assert not any(character.isspace() for character in made)
        assert ET.fromstring(ET.tostring(ET.Element("x", name=made), encoding="utf-8")).get("name") == made
    assert "_LOD" not in upload_set_document.model_name(name, set())
    assert "_PHYS" not in upload_set_document.model_name(name, set())
    assert upload_set_document.unique_identifier(name, set()).isascii()


@pytest.mark.slow
def test_triangles_take_no_step_each() -> None:
    """60,000 triangles, rigged, become text in well under a second."""
    skeleton = upload_scenes.armature()
    joints = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    mesh = upload_scenes.tube(151, 200)
    upload_scenes.weigh(mesh, joints, upload_scenes.TRUNK)
    upload_scenes.turned(mesh, upload_scenes.FACING["-Y"])
    assert mesh.triangle_count == 60_000
    scene = sc.Scene("body", [sc.Node("body", mesh=mesh, skeleton=0)], [skeleton])
    steps = python_steps(lambda: written(scene))
    assert steps < 140_000, steps
