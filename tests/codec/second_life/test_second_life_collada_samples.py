"""Scenes of Collada files, compared with values of an independent reader (``samples/collada/expected.json``)."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
from load_package import SAMPLES
from meshferry.io_formats.core.scene import Node, Scene
from meshferry.io_formats.geometry.transforms import matrix_of_transform
from meshferry.io_formats.second_life.avatar.joints import world_matrices
from meshferry.io_formats.second_life.collada import codec
from meshferry.io_formats.second_life.collada.format import SECOND_LIFE_COLLADA

FOLDER = SAMPLES / "collada"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text()) if FOLDER.is_dir() else {}
READABLE = [name for name in EXPECTED if "bad_" not in name]
FINITE = [name for name in READABLE if name != "synthetic/nan.dae"]
"""Vertices without coordinates are moved to the origin."""
RIGGED = [name for name in FINITE if "bind_space" in EXPECTED[name]]

pytestmark = pytest.mark.skipif(not EXPECTED, reason="no sample files")


@functools.cache
def scene_of(name: str, **options: Any) -> Scene:
    """Return the scene of a sample; tests do not change it."""
    return SECOND_LIFE_COLLADA.to_scene(codec.read((FOLDER / name).read_bytes()), "file", options)


def world_of(scene: Scene, node: Node) -> np.ndarray:
    matrix = matrix_of_transform(node.translation, node.rotation, node.scale)
    return matrix if node.parent < 0 else world_of(scene, scene.nodes[node.parent]) @ matrix


def world_points(scene: Scene, node: Node) -> np.ndarray:
    matrix = world_of(scene, node)
    assert node.mesh is not None
    return node.mesh.points @ matrix[:3, :3].T + matrix[:3, 3]


def avatar_axes(points: np.ndarray) -> np.ndarray:
    """Return points of Blender's space in the axes of the avatar."""
    x, y, z = np.asarray(points).T
    return np.stack((-y, x, z), axis=-1)


def objects(scene: Scene, name: str) -> list[tuple[Node, dict[str, Any]]]:
    """Return the nodes with a mesh, each with the expected object: both in the order of the file."""
    nodes = sorted((node for node in scene.nodes if node.mesh is not None), key=lambda node: node.skin is not None)
    wanted = sorted(EXPECTED[name]["objects"], key=lambda found: "skin" in found)
    assert [node.name for node in nodes] == [found["node"] or found["geometry"] for found in wanted]
    return list(zip(nodes, wanted, strict=True))


def bounds(points: np.ndarray) -> np.ndarray:
    return np.stack((points.min(axis=0), points.max(axis=0)))


@pytest.mark.parametrize("name", READABLE)
def test_objects_polygons_and_slots(name: str) -> None:
    for node, wanted in objects(scene_of(name), name):
        mesh = node.mesh
        assert mesh is not None and mesh.name == wanted["geometry"]
        assert (len(mesh.points), mesh.triangle_count) == (wanted["vertices"], wanted["triangles"])
        assert (mesh.triangle_count if mesh.polygon_sizes is None else len(mesh.polygon_sizes)) == wanted["polygons"]
        groups = wanted["groups"]
        symbols = list(dict.fromkeys(group["symbol"] or "" for group in groups))
        materials = {group["symbol"] or "": (group.get("material") or {}).get("name") for group in groups}
        assert mesh.materials == [materials[symbol] or symbol.removesuffix("-material") for symbol in symbols]
        counts = np.bincount(mesh.material_index, minlength=len(symbols)).tolist()
        assert counts == [sum(g["triangles"] for g in groups if (g["symbol"] or "") == symbol) for symbol in symbols]
        assert len(mesh.uvs) == max(group["uv_sets"] for group in groups)


@pytest.mark.parametrize("name", FINITE)
def test_places(name: str) -> None:
    for node, wanted in objects(scene_of(name), name):
        points = world_points(scene_of(name), node)
        if "skin" not in wanted:
            assert bounds(points) == pytest.approx(np.array(wanted["bounds_world"]), abs=1e-4)
            continue
        skin = wanted["skin"]
        assert bounds(avatar_axes(points)) == pytest.approx(np.array(skin["bounds_avatar_axes"]), abs=1e-4)
        for number, vertex in skin["vertices"].items():
            assert avatar_axes(points[int(number)]) == pytest.approx(np.array(vertex["avatar_axes"]), abs=1e-4)


@pytest.mark.parametrize("name", READABLE)
def test_unit_and_axis_on_objects_give_the_same_places(name: str) -> None:
    scene, other = scene_of(name), scene_of(name, use_unit_and_axis=False)
    for node, plain in zip(scene.nodes, other.nodes, strict=True):
        if node.mesh is not None:
            assert world_points(other, plain) == pytest.approx(world_points(scene, node), abs=1e-5)


@pytest.mark.parametrize("name", RIGGED)
def test_skins(name: str) -> None:
    scene = scene_of(name)
    skeleton = scene.skeletons[0]
    heads = {joint.name: world[:3, 3] for joint, world in zip(skeleton.joints, world_matrices(skeleton), strict=True)}
    for node, wanted in objects(scene, name):
        for joint, found in wanted["skin"]["heads"].items():
            if joint in heads:
                assert avatar_axes(heads[joint]) == pytest.approx(np.array(found["avatar_axes"]), abs=1e-4), joint
        mesh = node.mesh
        assert mesh is not None and mesh.joint_indices is not None and mesh.joint_weights is not None
        for number, vertex in wanted["skin"]["vertices"].items():
            rows = zip(mesh.joint_indices[int(number)], mesh.joint_weights[int(number)], strict=True)
            weights = {skeleton.joints[joint].name: float(weight) for joint, weight in rows if weight > 1e-6}
            assert weights == pytest.approx({joint: w for joint, w in vertex["file"] if w > 1e-6}, abs=1e-5)
        moved = wanted["skin"]["joints_moved_by_nodes"]
        if name != "fbx_male_skeleton.dae" and EXPECTED[name]["bind_space"]["found_by"] == "bind":
            assert node.skin is not None and (node.skin.joint_positions is not None) == bool(moved)


@pytest.mark.parametrize("name", RIGGED)
def test_standard_avatar(name: str) -> None:
    scene = scene_of(name, skeleton_rest="TABLE")
    for node, wanted in objects(scene, name):
        skin = wanted["skin"]
        if skin["unknown_joints"]:
            continue  # the viewer does not bind such a mesh
        points = avatar_axes(world_points(scene, node))
        weighted = {number: vertex for number, vertex in skin["vertices"].items() if vertex["viewer"]}
        for number, vertex in weighted.items():
            assert points[int(number)] == pytest.approx(np.array(vertex["standard_avatar"]), abs=1e-4)
        if not skin["unweighted_vertices"]:
            assert bounds(points) == pytest.approx(np.array(skin["bounds_standard_avatar"]), abs=1e-4)
