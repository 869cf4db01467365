"""Scenes of Collada documents that are put together by hand: rigs at other heights, polygons, shared meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.geometry.triangles import fan_corners, with_polygons
from meshferry.io_formats.geometry.vertices import drop_repeated_corners
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.avatar import joints
from meshferry.io_formats.second_life.avatar.joints import world_matrices
from meshferry.io_formats.second_life.collada.document import (
    Collada,
    Geometry,
    Group,
    Instance,
    Material,
    Node,
    Skin,
    Values,
)
from meshferry.io_formats.second_life.collada.format import SECOND_LIFE_COLLADA
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

BODY = ("mPelvis", "mTorso", "mChest", "mNeck", "mHead", "mShoulderLeft", "mShoulderRight", "mHipLeft", "mHipRight")
QUAD = np.array(((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)), np.float32)


def moved_by(*offset: float) -> np.ndarray:
    matrix = np.identity(4)
    matrix[:3, 3] = offset
    return matrix


def geometry(*groups: tuple[str, Sequence[int], Sequence[int]], points: np.ndarray = QUAD) -> Geometry:
    """Return a geometry of groups, each a symbol, points of the corners, and sizes of the polygons."""
    made = [
        Group("polylist", symbol, np.array(corners, np.int32), np.array(sizes, np.int32))
        for symbol, corners, sizes in groups
    ]
    return Geometry("mesh", points, made)


def static(*matrices: np.ndarray, shape: Geometry | None = None) -> Collada:
    shape = shape or geometry(("a", (0, 1, 2, 3), (4,)))
    nodes = [Node(f"n{at}", -1, matrix, instances=[Instance(0)]) for at, matrix in enumerate(matrices)]
    return Collada(up_axis="Z_UP", nodes=nodes, geometries=[shape])


def rigged(
    binds: Mapping[str, np.ndarray], parts: Sequence[Sequence[str]] = (), positions: Mapping[str, np.ndarray] = {}
) -> Collada:
    """Return a rig whose joints are bound by these matrices and whose nodes have the standard positions.

    ``parts`` are the joints of each mesh; a mesh for all joints by default.
    """
    document = Collada(up_axis="Z_UP")
    table = joints.table()
    for joint in table:
        if table[joint].is_bone:
            above = next((at for at, node in enumerate(document.nodes) if node.name == table[joint].parent), -1)
            position = np.array(positions.get(joint, table[joint].position))
            document.nodes.append(Node(joint, above, moved_by(*position), joint, joint, True, position))
    for number, names in enumerate(parts or [list(binds)]):
        heads = np.array([binds[joint][:3, 3] for joint in names])
        points = np.concatenate([heads + np.array(away) for away in np.identity(3) / 100]).astype(np.float32)
        count = len(names)
        corners = np.arange(count)[:, None] + np.array((0, count, 2 * count))
        document.geometries.append(geometry(("a", corners.reshape(-1).tolist(), [3] * count), points=points))
        document.skins.append(
            Skin(
                number,
                np.identity(4),
                list(names),
                np.linalg.inv([binds[joint] for joint in names]),
                np.ones(count, bool),
                np.ones(3 * count, np.int32),
                np.tile(np.arange(count, dtype=np.int32), 3),
                np.ones(3 * count, np.float32),
            )
        )
        document.nodes.append(Node(f"part {number}", -1, np.identity(4), instances=[Instance(number, number)]))
    return document


def shaped(height: float, *, spine: float = 0.0, scale: float = 1.0) -> dict[str, np.ndarray]:
    """Return the binds of an avatar of another height, with a longer spine and the scale of a shape."""
    binds = {}
    for joint in BODY:
        binds[joint] = moved_by(0, 0, height + (0.0 if "Pelvis" in joint or "Hip" in joint else spine))
        binds[joint] = binds[joint] @ joints.rest_matrices()[joint] @ np.diag((scale, scale, 1.0, 1.0))
    return binds


def stored_positions(scene: Scene) -> list[object]:
    """Return what exports with default options write of joint positions."""
    asset = [SECOND_LIFE_MESH.from_scene(part) for part in SECOND_LIFE_MESH.files_of(scene)]
    skins = [found.blocks["skin"] for found in asset]
    written = [skin.get("alt_inverse_bind_matrix") for skin in skins] + [skin.get("pelvis_offset") for skin in skins]
    upload = SECOND_LIFE_UPLOAD.from_scene(scene)
    table = joints.table()
    moved = [
        node.name
        for tree in upload.files[0].trees
        for node in tree.joints
        if np.abs(node.local[:3, 3] - table[node.name].position).max() > 1e-6
    ]
    return [value for value in written if value is not None] + moved + upload.boxes[1:]


@pytest.mark.parametrize("parts", [(), (BODY[:3], BODY[3:5], BODY[5:])])
@pytest.mark.parametrize(("height", "spine", "scale"), [(0.151, 0.0, 1.0), (0.151, 0.08, 1.0), (0.1, 0.05, 0.9)])
def test_a_bind_at_another_height_moves_no_joint(
    height: float, spine: float, scale: float, parts: Sequence[Sequence[str]]
) -> None:
    binds = shaped(height, spine=spine, scale=scale)
    scene = SECOND_LIFE_COLLADA.to_scene(rigged(binds, parts), "file")
    skeleton = scene.skeletons[0]
    heads = {joint.name: world[:3, 3] for joint, world in zip(skeleton.joints, world_matrices(skeleton), strict=True)}
    for joint, bind in binds.items():
        x, y, z = bind[:3, 3]
        assert heads[joint] == pytest.approx((y, -x, z), abs=1e-6)
    for node in scene.nodes:
        assert node.skin is not None and node.skin.joint_positions is None and not node.skin.pelvis_offset
    assert stored_positions(scene) == []
    codes = {message.code for message in scene.warnings if message.is_loss}
    assert not codes & {"rig-moved-to-avatar", "joint-positions-stored"}


def test_nodes_that_move_joints_are_joint_positions() -> None:
    moved = {"mTorso": np.array((0.0, 0.0, 0.2))}
    scene = SECOND_LIFE_COLLADA.to_scene(rigged(shaped(0.1), positions=moved), "file")
    assert scene.nodes[0].skin is not None and scene.nodes[0].skin.joint_positions is not None
    assert stored_positions(scene)
    assert "joint-positions-in-file" in {message.code for message in scene.warnings}


def test_inverse_binds_with_the_scale_of_a_shape_are_written_again() -> None:
    binds = shaped(0.1, scale=0.9)
    scene = SECOND_LIFE_COLLADA.to_scene(rigged(binds), "file")
    skin = SECOND_LIFE_UPLOAD.from_scene(scene).files[0].instances[0].skin
    assert skin is not None
    for joint, matrix in zip(skin.joint_names, skin.inverse_bind, strict=True):
        assert matrix == pytest.approx(np.linalg.inv(binds[joint]), abs=1e-6)


def test_polygons_are_fans_and_come_back() -> None:
    around = np.arange(12) / 2
    points = np.stack((np.cos(around), np.sin(around), np.zeros(12)), axis=1).astype(np.float32)
    corners = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 5)
    shape = geometry(("a", corners[:12], (3, 5, 4)), ("b", (0, 5, 7), (3,)), points=points)
    uvs = np.arange(24, dtype=np.float32).reshape(12, 2)
    shape.groups[0].uvs = [Values(uvs, np.arange(12, dtype=np.int32)[::-1].copy(), stride=2)]
    mesh = SECOND_LIFE_COLLADA.to_scene(static(np.identity(4), shape=shape), "f").nodes[0].mesh
    assert mesh is not None and mesh.triangle_count == 7
    assert mesh.corner_point.reshape(-1, 3).tolist()[1:4] == [[3, 4, 5], [3, 5, 6], [3, 6, 7]]
    again, sizes = with_polygons(mesh)
    assert sizes is not None and sizes.tolist() == [3, 5, 4, 3]
    assert again.corner_point.tolist() == [*corners[:12], 0, 5, 7]
    assert again.material_index.tolist() == [0, 0, 0, 1]
    assert again.uvs[0].at_corners(again.corner_point)[:12].tolist() == uvs[::-1].tolist()
    assert again.uvs[0].at_corners(again.corner_point)[12:].tolist() == [[0, 0]] * 3


@pytest.mark.parametrize(("corners", "is_told"), [((0, 3, 2, 1), True), ((3, 2, 1, 0), False), ((0, 4, 2, 1), False)])
def test_concave_polygons_that_the_viewer_fills_wrongly_are_told(corners: tuple[int, ...], is_told: bool) -> None:
    """Seen from the notch, point 3, a chevron is filled rightly; from its neighbour, it is not. With 4 it is a kite."""
    points = np.array(((-1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0.5, 0), (0, -0.5, 0)), np.float32)
    document = static(np.identity(4), shape=geometry(("a", corners, (4,)), points=points))
    scene = SECOND_LIFE_COLLADA.to_scene(document, "chevron")
    assert ("concave-polygons" in [message.code for message in scene.warnings]) == is_told
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    sides = np.diff(mesh.points[mesh.corner_point.reshape(-1, 3)], axis=1)[:, :, :2]
    assert len(set(np.sign(np.linalg.det(sides)))) == 1  # triangles face the same side
    assert mesh.corner_point[[0, 1, 2, 5]].tolist() == ([3, 2, 1, 0] if is_told else list(corners))


def test_concave_polygons_of_many_corners_are_filled_from_another_corner() -> None:
    outline = ((0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2))
    points = np.array([(x, y, 0) for x, y in outline] * 2, np.float32)
    corners = (2, 3, 4, 5, 0, 1, 0, 1, 2, 8, 9, 10, 11, 6, 7)
    mesh = (
        SECOND_LIFE_COLLADA.to_scene(
            static(np.identity(4), shape=geometry(("a", corners, (6, 3, 6)), points=points)), "f"
        )
        .nodes[0]
        .mesh
    )
    assert mesh is not None
    sides = np.diff(mesh.points[mesh.corner_point.reshape(-1, 3)], axis=1)[:, :, :2]
    assert np.allclose(np.linalg.det(sides) / 2, (0.5, 1, 1, 0.5, 1, 0.5, 1, 1, 0.5))
    polygons, sizes = with_polygons(mesh)
    assert sizes is not None and sizes.tolist() == [6, 3, 6]
    assert polygons.corner_point.tolist() == [3, 4, 5, 0, 1, 2, 0, 1, 2, 9, 10, 11, 6, 7, 8]


@pytest.mark.parametrize("sizes", [[4], [3], [5, 3], [4, 4, 4], [2, 6], [6, -2, 4]])
def test_sizes_that_are_not_those_of_the_triangles_do_no_harm(sizes: list[int]) -> None:
    mesh = (
        SECOND_LIFE_COLLADA.to_scene(
            static(np.identity(4), shape=geometry(("a", (0, 1, 2, 3, 3, 2, 1, 0), (4, 4)))), "f"
        )
        .nodes[0]
        .mesh
    )
    assert mesh is not None
    mesh.polygon_sizes = np.array(sizes, np.int32)
    polygons, found = with_polygons(mesh)
    corners = None if found is None else fan_corners(found)
    again = polygons.corner_point if corners is None else polygons.corner_point[corners]
    assert again.tolist() == mesh.corner_point.tolist()


def test_polygons_that_repeat_a_point_become_triangles() -> None:
    shape = geometry(("a", (0, 1, 2, 1, 0, 1, 2, 3, 0, 1, 1, 3), (4, 4, 4)))
    mesh, dropped = drop_repeated_corners(
        SECOND_LIFE_COLLADA.to_scene(static(np.identity(4), shape=shape), "f").nodes[0].mesh
    )  # type: ignore[arg-type]
    polygons, sizes = with_polygons(mesh)
    assert dropped == 1 and sizes is not None and sizes.tolist() == [3, 3, 4, 3]
    assert polygons.corner_point.tolist() == [0, 1, 2, 0, 2, 1, 0, 1, 2, 3, 0, 1, 3]


def test_objects_of_one_geometry_share_a_mesh_unless_it_is_sheared() -> None:
    shear = np.identity(4)
    shear[0, 1] = 0.5
    mirrored = np.diag((-2.0, 1.0, 1.0, 1.0))
    scene = SECOND_LIFE_COLLADA.to_scene(static(np.identity(4), moved_by(1, 2, 3), mirrored, shear), "f")
    first, second, third, last = scene.nodes
    assert first.mesh is second.mesh is third.mesh is not last.mesh
    assert (second.translation, third.scale) == ((1, 2, 3), (-2, 1, 1))
    assert last.mesh is not None and last.mesh.points[2] == pytest.approx((1.5, 1, 0))
    assert {"mirrored-objects", "shear-applied"} <= {message.code for message in scene.warnings}


def test_groups_become_empties_only_where_they_hold_several_objects() -> None:
    document = static(np.identity(4), np.identity(4), np.identity(4))
    one, two, three = document.nodes
    document.nodes = [Node("outer", -1, moved_by(1, 0, 0)), Node("inner", 0, moved_by(0, 1, 0)), one, two]
    document.nodes += [Node("single", -1, moved_by(0, 0, 5)), three]
    one.parent, two.parent, three.parent = 1, 1, 4
    scene = SECOND_LIFE_COLLADA.to_scene(document, "f")
    assert [(node.name, node.parent) for node in scene.nodes] == [("inner", -1), ("n0", 0), ("n1", 0), ("n2", -1)]
    assert scene.nodes[0].translation == (1, 1, 0) and scene.nodes[3].translation == (0, 0, 5)


def test_materials_of_one_name_stay_apart_and_full_bright_shows_the_colour() -> None:
    document = static(*[np.identity(4)] * 4)
    dark = Material("m", (0, 0, 0, 1), 0.2)
    document.materials = [Material("m", (1, 1, 1, 1), 0.9), dark, Material("m.001"), replace(dark)]
    for number, node in enumerate(document.nodes):
        node.instances[0].materials = {"a": number}
    scene = SECOND_LIFE_COLLADA.to_scene(document, "f")
    assert [(found.name, found.emission) for found in scene.materials] == [("m", 1.0), ("m.001", 0.0), ("m.001.001", 0)]
    assert [node.mesh and node.mesh.materials[0] for node in scene.nodes] == ["m", "m.001", "m.001.001", "m.001"]


def test_symbols_that_sort_in_another_order_number_the_faces_of_an_upload() -> None:
    points = np.concatenate((QUAD, QUAD + 1)).astype(np.float32)
    shape = geometry(("z", (0, 1, 2, 3), (4,)), ("a", (4, 5, 6, 7), (4,)), points=points)
    document = static(np.identity(4), shape=shape)
    document.materials = [Material("Apple"), Material("Pear")]
    document.nodes[0].instances[0].materials = {"z": 0, "a": 1}
    scene = SECOND_LIFE_COLLADA.to_scene(document, "f")
    assert scene.nodes[0].mesh is not None and scene.nodes[0].mesh.materials == ["Apple", "Pear"]
    written = SECOND_LIFE_UPLOAD.from_scene(scene)
    assert {found.symbol: found.name for found in written.materials} == {"z": "Apple", "a": "Pear"}
    document.nodes[0].instances[0].materials = {"z": 1, "a": 0}
    written = SECOND_LIFE_UPLOAD.from_scene(SECOND_LIFE_COLLADA.to_scene(document, "f"))
    assert {found.symbol for found in written.materials} == {"Apple", "Pear"}
