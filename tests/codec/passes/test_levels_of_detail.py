"""Levels of detail: surfaces grouped by name, split into separate nodes, and joined again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import unigine_documents as made
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.passes.lods import join_levels, level_of, separate, without_level
from meshferry.io_formats.unigine.mesh import document as doc
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH


@pytest.mark.parametrize(
    ("name", "level", "rest"),
    [
        ("bark_lod_0", 0, "bark"),
        ("bark_LOD_12", 12, "bark"),
        ("кора_lod_3", 3, "кора"),
        ("_lod_1", 1, ""),
        ("bark", None, "bark"),
        ("bark_lod_", None, "bark_lod_"),
        ("bark_lod_1_x", None, "bark_lod_1_x"),
        ("bark_lod1", None, "bark_lod1"),
        ("barklod_1", None, "barklod_1"),
        ("a_lod_1_lod_2", 2, "a_lod_1"),
    ],
)
def test_names(name: str, level: int | None, rest: str) -> None:
    assert level_of(name) == level
    assert without_level(name) == rest


def tree() -> doc.MeshFile:
    """Return a tree as its engine stores it: levels of each material side by side, and a surface of no level."""
    surfaces = [
        made.with_target(made.with_weights(made.fan("bark_lod_0", 9, seed=1)), "bend"),
        made.fan("bark_lod_1", 5, seed=2),
        made.fan("leaf_lod_0", 6, seed=3, colors=np.arange(52, dtype=np.uint8).reshape(13, 4)),
        made.fan("leaf_lod_2", 4, seed=4, uv0=None),
        made.fan("sign", 3, seed=5),
        made.with_target(made.fan("leaf_lod_1", 2, seed=6), "bend"),
    ]
    return made.mesh_file(*surfaces, bones=2)


def encoded(document: doc.MeshFile) -> bytes:
    data: bytes = UNIGINE_MESH.write(document)
    return data


def written(scene: sc.Scene) -> list[tuple[str, bytes]]:
    return [(part.name, encoded(UNIGINE_MESH.from_scene(part, {}))) for part in UNIGINE_MESH.files_of(scene, {})]


def scene_of_tree(**options: Any) -> sc.Scene:
    return UNIGINE_MESH.to_scene(tree(), "tree", options)


def surfaces_of(node: sc.Node) -> list[str]:
    return [surface.name for surface in node.mesh.surfaces] if node.mesh else []


def test_levels_become_nodes() -> None:
    scene = scene_of_tree(use_lod_objects=True)
    assert [(node.name, node.lod, node.lod_of, node.skeleton) for node in scene.nodes] == [
        ("tree", 0, None, 0),
        ("tree_lod_1", 1, 0, 0),
        ("tree_lod_2", 2, 0, 0),
    ]
    assert [surfaces_of(node) for node in scene.nodes] == [
        ["bark_lod_0", "leaf_lod_0", "sign"],
        ["bark_lod_1", "leaf_lod_1"],
        ["leaf_lod_2"],
    ]
    whole = scene_of_tree().nodes[0].mesh
    assert whole is not None
    # Every triangle is in one level, with its points; and no level holds points of another.
    meshes = [node.mesh for node in scene.nodes if node.mesh]
    assert sum(mesh.triangle_count for mesh in meshes) == whole.triangle_count == 29
    assert sum(len(mesh.points) for mesh in meshes) == len(whole.points)
    wanted = whole.points[whole.corner_point].reshape(-1, 9)
    found = np.concatenate([mesh.points[mesh.corner_point].reshape(-1, 9) for mesh in meshes])
    np.testing.assert_array_equal(found[np.lexsort(found.T)], wanted[np.lexsort(wanted.T)])
    assert [name for name, _ in written(scene)] == ["tree"]


@pytest.mark.parametrize("turn", [False, True])
def test_there_and_back_are_the_same_bytes(turn: bool) -> None:
    ((_, direct),) = written(scene_of_tree())
    ((_, parted),) = written(scene_of_tree(use_lod_objects=True))
    assert direct == parted
    document = tree()
    again = UNIGINE_MESH.read(direct)
    for before, after in zip(document.surfaces, again.surfaces, strict=True):
        before.bounds = after.bounds
    document.bounds = again.bounds
    assert encoded(document) == direct
    if turn:
        scene = scene_of_tree(use_lod_objects=True, use_turn=True)
        (part,) = UNIGINE_MESH.files_of(scene, {})
        assert encoded(UNIGINE_MESH.from_scene(part, {"use_turn": True})) == direct


def test_a_mesh_of_one_level_stays_one_node() -> None:
    for names in (["a", "b"], ["a_lod_1", "b_lod_1"], ["a_lod_0", "b"], []):
        document = made.mesh_file(*(made.fan(name) for name in names))
        scene = UNIGINE_MESH.to_scene(document, "x", {"use_lod_objects": True})
        assert [(node.name, node.lod) for node in scene.nodes] == [("x", 0)]


def test_moving_vertices_keep_their_node_whole() -> None:
    scene = scene_of_tree()
    scene.clips = [sc.Clip("c", 24.0, 1, vertices=[sc.VertexTrack(0, np.zeros((1, 1, 3), np.float32))])]
    assert len(separate(scene).nodes) == 1


# -- levels that an artist made -----------------------------------------------------------------


def level(name: str, lod: int, *surfaces: str) -> sc.Node:
    """Return an object with a triangle in each of its surfaces."""
    count = max(len(surfaces), 1)
    mesh = made.quad(
        corner_point=np.tile(np.int32([0, 1, 2]), count),
        material_index=np.arange(count, dtype=np.int32),
        materials=[f"material of {name}"] * len(surfaces),
        surfaces=[sc.Surface(surface) for surface in surfaces],
    )
    mesh.points = mesh.points[:3] * np.float32(lod + 1)
    assert mesh.normal is not None
    mesh.normal.values, mesh.uvs[0].values = mesh.normal.values[:3], mesh.uvs[0].values[:3]
    return sc.Node(name, mesh=mesh, lod=lod, lod_of=0 if lod else None)


def joined_names(*nodes: sc.Node) -> list[str]:
    return surfaces_of(join_levels(nodes[0], nodes[1:]))


def test_surfaces_get_the_levels_of_their_objects() -> None:
    assert joined_names(level("a", 0, "bark"), level("b", 1, "bark"), level("c", 2, "bark")) == [
        "bark_lod_0",
        "bark_lod_1",
        "bark_lod_2",
    ]
    # A copy of the finest still has its surfaces' names.
    assert joined_names(level("a", 0, "x_lod_0", "y"), level("b", 2, "x_lod_0", "z_lod_1")) == [
        "x_lod_0",
        "y",
        "x_lod_2",
        "z_lod_1",
    ]
    assert joined_names(level("a", 0, "x")) == ["x"]


def test_files_hold_all_levels_of_an_object() -> None:
    scene = sc.Scene("x", [level("a", 0, "s"), level("c", 2, "s"), sc.Node("empty"), level("b", 1, "s")])
    scene.nodes.append(replace(level("other", 1, "s"), lod_of=9))  # of nothing that is there
    parts = UNIGINE_MESH.files_of(scene, {})
    assert [(part.name, surfaces_of(part.nodes[0])) for part in parts] == [
        ("a", ["s_lod_0", "s_lod_1", "s_lod_2"]),
        ("other", ["s"]),
    ]
    document = UNIGINE_MESH.from_scene(parts[0], {})
    assert [float(surface.targets[0].positions[:, 0].max()) for surface in document.surfaces] == [1, 2, 3]
    assert parts[0].nodes[0].lod == 0 and parts[0].nodes[0].lod_of is None


def test_levels_on_different_armatures_are_refused() -> None:
    scene = sc.Scene("x", [level("a", 0, "s"), level("b", 1, "s")], [sc.Skeleton("One"), sc.Skeleton("Two")])
    scene.nodes[0].skeleton, scene.nodes[1].skeleton = 0, 1
    with pytest.raises(
        ExportError, match=r"levels of detail are deformed by different armatures .*'a' on 'One' and 'b' on 'Two'"
    ):
        UNIGINE_MESH.files_of(scene, {})
    scene.nodes[1].skeleton = None
    (part,) = UNIGINE_MESH.files_of(scene, {})
    assert part.nodes[0].skeleton == 0


def test_crowds_of_levels_stay_together() -> None:
    document = made.mesh_file(*(made.fan(f"a_lod_{number}", 1) for number in range(65)))
    scene = UNIGINE_MESH.to_scene(document, "x", {"use_lod_objects": True})
    assert [node.name for node in scene.nodes] == ["x"]
    assert scene.warnings == ["x: 65 levels of detail are too many; not separated"]
