"""Node trees made flat: where points, normals and tangents end up, by arithmetic of this file's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.capabilities import Capabilities
from meshferry.io_formats.core.scene import (
    Clip,
    Layer,
    Mesh,
    Node,
    Role,
    Scene,
    Skeleton,
    Skin,
    Surface,
    TransformTrack,
    VertexTrack,
)
from meshferry.io_formats.passes.flatten import fit, flatten, place

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
    (node,) = flat(Node("a", parent=1, rotation=leaning, mesh=triangle()), Node("b", scale=scale)).nodes
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
        Node("coarse", mesh=triangle(), lod=1, lod_of=1),
    )
    assert [(node.name, node.lod, node.lod_of) for node in scene.nodes] == [("fine", 0, None), ("coarse", 1, 0)]


def world_points(node: Node) -> Any:
    """Turn by the quaternion as Rodrigues says, after scaling, before moving."""
    assert node.mesh is not None
    w, axis = node.rotation[0], np.array(node.rotation[1:])
    points = node.mesh.points.astype(float) * node.scale
    return points + 2 * np.cross(axis, np.cross(axis, points) + w * points) + node.translation


def test_a_bound_mesh_goes_where_its_binding_puts_it() -> None:
    skin = Skin(["hip"], np.eye(4)[None], np.diag([2.0, 2.0, 3.0, 1.0]))
    tree = Scene("rig", [Node("a", translation=(0, 0, 1), scale=(2, 2, 3), mesh=triangle(), skeleton=0, skin=skin)])
    tree.skeletons = [Skeleton("rig")]
    flatten(tree)
    (node,) = tree.nodes
    assert (node.scale, node.translation, node.skeleton, node.skin) == ((1, 1, 1), (0, 0, 0), 0, None)
    assert node.mesh is not None
    assert node.mesh.points.tolist() == [[0, 0, 1], [2, 0, 1], [0, 2, 1]]


def test_what_moves_forgets_the_ranges_of_its_file() -> None:
    mesh = triangle(surfaces=[Surface("Steel", position_domain=(0,) * 6, uv_domain=(0,) * 4, order=1)])
    (node,) = flat(Node("a", scale=(1, 1, 2), mesh=mesh)).nodes
    assert node.mesh is not None
    assert node.mesh.surfaces[0] == Surface("Steel", order=1)
    assert mesh.surfaces[0].position_domain is not None, "the scene that was given keeps them"


def test_placed_objects_stand_where_their_parents_put_them() -> None:
    scene = Scene(
        "tree",
        [
            Node("child", parent=1, translation=(1, 0, 0), rotation=TURNED, scale=(2, 2, 2), mesh=triangle()),
            Node("empty", translation=(0, 0, 5), rotation=TURNED, scale=(3, 3, 3)),
            Node("root", translation=(1, 2, 3), rotation=TURNED, scale=(1, 2, 3), mesh=triangle()),
        ],
    )
    root = scene.nodes[2]
    place(scene)
    child, same = scene.nodes
    assert vars(same) == vars(root), "what is a root already stays to the bit"
    assert (child.parent, child.name) == (-1, "child")
    np.testing.assert_allclose(child.scale, (6, 6, 6), atol=1e-12)
    # (x, y) turned twice is (-x, -y); the child's own place is turned once.
    np.testing.assert_allclose(world_points(child), [[0, 3, 5], [-6, 3, 5], [0, -3, 5]], atol=1e-6)
    assert child.mesh is not None
    np.testing.assert_array_equal(child.mesh.points, triangle().points)


@pytest.mark.parametrize("scale", [(1, 1, 3), (-1, 1, 1), (2, -3, 0.5), (-1, -2, -3), (1, 1, 0)])
def test_shear_and_mirroring_go_into_the_points(scale: tuple[float, float, float]) -> None:
    leaning = (math.cos(0.3), math.sin(0.3), 0.0, 0.0)
    tree = Scene("tree", [Node("a", parent=1, rotation=leaning, mesh=triangle()), Node("b", (-1), scale=scale)])
    w, x = leaning[:2]
    cosine, sine = w * w - x * x, 2 * w * x
    expected = triangle().points @ np.array([[1, 0, 0], [0, cosine, -sine], [0, sine, cosine]]).T * scale
    place(tree)
    (node,) = tree.nodes
    assert min(node.scale) > 0
    assert sorted(map(tuple, world_points(node).round(5) + 0.0)) == sorted(map(tuple, expected.round(5) + 0.0))
    assert node.mesh is not None
    assert node.mesh.normal is not None
    if 0 not in scale:
        np.testing.assert_allclose(node.mesh.normal.values, [face_normal(node.mesh)] * 3, atol=1e-5)


def test_mirrored_instances_have_equal_points() -> None:
    scales = [(-1, 1, 1), (1, -2, 3), (-0.3, -1, -1)]
    empties = [Node(f"e{number}", rotation=TURNED, scale=(0.7,) * 3, translation=(number, 0, 0)) for number in range(3)]
    tree = Scene(
        "tree",
        [*empties, *(Node(f"m{number}", number, scale=scale, mesh=triangle()) for number, scale in enumerate(scales))],
    )
    expected = [
        [[-0.7 * y * sy + number, 0.7 * x * sx, 0.7 * z * sz] for x, y, z in triangle().points.tolist()]
        for number, (sx, sy, sz) in enumerate(scales)
    ]
    place(tree)
    for node, points in zip(tree.nodes, expected, strict=True):
        assert node.mesh is not None and tree.nodes[0].mesh is not None
        np.testing.assert_array_equal(node.mesh.points, tree.nodes[0].mesh.points)
        apart = np.linalg.norm(world_points(node)[:, None] - np.array(points), axis=2)
        assert apart.min(axis=1).max() < 1e-5


def test_levels_and_shapes_come_into_the_space_of_their_finest() -> None:
    tree = Scene(
        "tree",
        [
            Node("empty", translation=(0, 0, 5)),
            Node("coarse", parent=0, scale=(4, 4, 4), mesh=triangle(), lod=1, lod_of=2),
            Node("fine", parent=0, scale=(2, 2, 2), mesh=triangle()),
            Node("hull", parent=0, scale=(2, 2, 2), mesh=triangle(), role=Role.HULL, shape_of=2),
        ],
    )
    place(tree)
    coarse, fine, hull = tree.nodes
    assert (coarse.lod_of, coarse.shape_of) == (1, None)
    assert (hull.lod_of, hull.shape_of) == (None, 1)
    for node in tree.nodes:
        assert (node.translation, node.scale) == ((0, 0, 5), (2, 2, 2))
    assert coarse.mesh is not None
    assert fine.mesh is not None
    np.testing.assert_allclose(coarse.mesh.points, 2 * fine.mesh.points)
    assert hull.mesh is not None
    np.testing.assert_array_equal(hull.mesh.points, fine.mesh.points)


MODELS = Capabilities(normals=True, lod_models=True, levels_of_detail=True, physics=True)


def model() -> Scene:
    moving = VertexTrack(2, triangle().points[None])
    return Scene(
        "model",
        [
            Node("hull", scale=(2, 2, 2), mesh=triangle(), role=Role.HULL, shape_of=2),
            Node("coarse", scale=(2, 2, 2), mesh=triangle(), lod=1, lod_of=2),
            Node("fine", scale=(2, 2, 2), mesh=triangle()),
        ],
        clips=[Clip("spin", 24, 1, vertices=[moving])],
    )


def test_what_a_format_does_not_hold_goes() -> None:
    scene = model()
    fit(scene, Capabilities(normals=True, node_hierarchy=True), MODELS)
    assert [(node.name, node.scale) for node in scene.nodes] == [("fine", (2, 2, 2))]
    assert scene.clips[0].vertices[0].target == 0
    scene = model()
    fit(scene, Capabilities(normals=True, levels_of_detail=True), MODELS)
    assert [(node.name, node.scale, node.lod_of) for node in scene.nodes] == [
        ("coarse", (1, 1, 1), 1),
        ("fine", (1, 1, 1), None),
    ]
    scene = model()
    before = list(scene.nodes)
    fit(scene, MODELS, MODELS)
    assert scene.nodes == before


def test_a_node_on_which_others_hang_stays_without_its_mesh() -> None:
    scene = Scene(
        "tree",
        [
            Node("hull", translation=(0, 0, 1), mesh=triangle(), role=Role.HULL),
            Node("coarse", mesh=triangle(), lod=1),
            Node("child", parent=0, mesh=triangle()),
        ],
    )
    fit(scene, Capabilities(normals=True, node_hierarchy=True), Capabilities(node_hierarchy=True))
    assert [(node.name, node.parent, node.mesh is None) for node in scene.nodes] == [
        ("hull", -1, True),
        ("child", 0, False),
    ]


def test_levels_named_by_surfaces_become_objects_where_each_level_is_one() -> None:
    def levels() -> Scene:
        mesh = triangle()
        mesh.corner_point = np.array([0, 1, 2, 0, 1, 2], np.int32)
        mesh.material_index = np.array([0, 1], np.int32)
        mesh.uvs = []
        mesh.materials = ["body_lod_0", "body_lod_1"]
        mesh.surfaces = [Surface("body_lod_0"), Surface("body_lod_1")]
        return Scene("gun", [Node("gun", mesh=mesh)])

    scene = levels()
    fit(scene, MODELS, Capabilities(normals=True, surfaces=True))
    assert [(node.lod, node.mesh and node.mesh.triangle_count) for node in scene.nodes] == [(0, 1), (1, 1)]
    assert scene.nodes[1].lod_of == 0
    assert [node.mesh and node.mesh.materials for node in scene.nodes] == [["body"], ["body"]]
    for came_from in (MODELS, None):
        scene = levels()
        fit(scene, MODELS, came_from)
        assert len(scene.nodes) == 1


def test_levels_that_become_objects_have_the_slots_of_the_finest_in_its_order() -> None:
    mesh = triangle()
    order = ["wood_lod_0", "iron_lod_0", "iron_lod_1", "glass_lod_1", "wood_lod_1"]
    mesh.corner_point = np.tile(np.array([0, 1, 2], np.int32), 5)
    mesh.material_index = np.arange(5, dtype=np.int32)
    mesh.uvs = []
    mesh.materials = list(order)
    mesh.surfaces = [Surface(name) for name in order]
    scene = Scene("gun", [Node("gun", mesh=mesh), Node("other_lod_1", mesh=triangle())])
    fit(scene, MODELS, Capabilities(normals=True, surfaces=True))
    gun, other, coarse = scene.nodes
    assert gun.mesh is not None
    assert coarse.mesh is not None
    assert other.mesh is not None
    assert (gun.mesh.materials, gun.mesh.material_index.tolist()) == (["wood", "iron"], [0, 1])
    assert (coarse.mesh.materials, coarse.mesh.material_index.tolist()) == (["wood", "iron", "glass"], [1, 2, 0])
    assert other.mesh.materials == ["Steel"]
