"""Node trees made flat: where points, normals and tangents end up, by arithmetic of this file's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.flattening import flatten
from meshferry.io_formats.scene import Clip, Layer, Mesh, Node, Scene, TransformTrack, VertexTrack

HALF = math.sqrt(0.5)
TURNED = (HALF, 0.0, 0.0, HALF)
"""A quarter turn about Z: X goes to Y."""


def triangle(**more: Any) -> Mesh:
    """Return a triangle in the XY plane that looks up, with tangents along X."""
    return Mesh(
        points=np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32),
        corner_point=np.array([0, 1, 2], np.int32),
        material_index=np.zeros(1, np.int32),
        materials=["Steel"],
        normal=Layer("normal", np.array([[0, 0, 1]] * 3, np.float32)),
        tangent=Layer("tangent", np.array([[1, 0, 0, 1]] * 3, np.float32)),
        uvs=[Layer("UV0", np.array([[0, 0], [1, 0], [0, 1]], np.float32), per_corner=True)],
        **more,
    )


def flat(*nodes: Node) -> Scene:
    scene = Scene("tree", list(nodes))
    flatten(scene)
    return scene


def face_normal(mesh: Mesh) -> Any:
    one, two, three = mesh.points[mesh.corner_point]
    across = np.cross(two - one, three - one)
    return across / np.linalg.norm(across)


def test_children_stand_where_their_parents_put_them() -> None:
    scene = flat(
        Node("child", parent=1, translation=(1, 0, 0), scale=(2, 2, 2), mesh=triangle()),
        Node("empty", translation=(0, 0, 5), rotation=TURNED),
    )
    (node,) = scene.nodes
    assert (node.name, node.parent, node.translation, node.scale) == ("child", -1, (0, 0, 0), (1, 1, 1))
    assert node.mesh is not None
    assert np.allclose(node.mesh.points, [[0, 1, 5], [0, 3, 5], [-2, 1, 5]], atol=1e-6)
    assert node.mesh.tangent is not None
    assert np.allclose(node.mesh.tangent.values, [[0, 1, 0, 1]] * 3, atol=1e-6)


@pytest.mark.parametrize("scale", [(1, 1, 3), (-1, 1, 1), (2, -3, 0.5), (-1, -2, -3)])
def test_normals_look_where_faces_do(scale: tuple[float, float, float]) -> None:
    leaning = (math.cos(0.3), math.sin(0.3), 0.0, 0.0)
    (node,) = flat(
        Node("a", parent=1, rotation=leaning, mesh=triangle()),
        Node("b", scale=scale),
    ).nodes
    mesh = node.mesh
    assert mesh is not None
    assert mesh.normal is not None
    assert mesh.tangent is not None
    assert np.allclose(mesh.normal.values, face_normal(mesh), atol=1e-5)
    assert mesh.corner_point[0] == 0, "the first corner stays the first"
    # The bitangent that the sign gives is the way in which v grows on the face.
    bitangent = mesh.tangent.values[0, 3] * np.cross(mesh.normal.values[0], mesh.tangent.values[0, :3])
    corner_of = {tuple(uv): mesh.points[point] for uv, point in zip(mesh.uvs[0].values, mesh.corner_point, strict=True)}
    assert np.dot(bitangent, corner_of[0, 1] - corner_of[0, 0]) > 0
    assert np.dot(mesh.tangent.values[0, :3], corner_of[1, 0] - corner_of[0, 0]) > 0


def test_a_scene_without_a_tree_stays_to_the_bit() -> None:
    mesh = triangle()
    clip = Clip("spin", 24, 1, vertices=[VertexTrack(0, mesh.points[None])])
    scene = Scene("flat", [Node("a", mesh=mesh), Node("empty")], clips=[clip])
    flatten(scene)
    assert [node.mesh for node in scene.nodes] == [mesh, None]
    assert scene.clips == [clip]


def test_tracks_of_nodes_go_and_those_of_joints_stay() -> None:
    one, unit = np.zeros((1, 3), np.float32), np.array([[1, 0, 0, 0]], np.float32)
    tracks = [TransformTrack(0, one, unit, one + 1), TransformTrack(0, one, unit, one + 1, skeleton=0)]
    scene = Scene("tree", [Node("a", translation=(1, 0, 0), mesh=triangle())])
    scene.clips = [Clip("spin", 24, 1, transforms=tracks), Clip("turn", 24, 1, transforms=tracks[:1])]
    flatten(scene)
    assert [(clip.name, clip.transforms) for clip in scene.clips] == [("spin", tracks[1:])]


def test_skinned_meshes_lie_in_the_space_of_their_skeleton() -> None:
    (node,) = flat(Node("a", translation=(1, 0, 0), mesh=triangle(), skeleton=0)).nodes
    assert node.mesh is not None
    assert np.array_equal(node.mesh.points, triangle().points)


def test_levels_of_detail_find_their_finest() -> None:
    scene = flat(
        Node("empty", translation=(1, 0, 0)),
        Node("fine", mesh=triangle()),
        Node("coarse", mesh=triangle(), lod=1, properties={"lod_of": 1}),
    )
    assert [(node.name, node.lod, node.properties) for node in scene.nodes] == [
        ("fine", 0, {}),
        ("coarse", 1, {"lod_of": 0}),
    ]
