"""Document -> Scene -> document: triangles, layers, transforms, clips; the file's space and the write rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import numpy as np
import oracle
import pytest
from encoding import encode_scene
from hypothesis import given, settings
from hypothesis import strategies as st
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import ExportError, MeshferryError
from meshferry.io_formats.encodings.quantization import linear_to_srgb
from meshferry.io_formats.geometry.vertices import drop_repeated_corners, weld
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.document_builder import frame_rotations
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

# The page, section 3: (X, Y, Z) = (-x, z, -y).
TO_FILE = np.array([[-1.0, 0, 0], [0, 0, 1], [0, -1, 0]])


def through(scene: sc.Scene, **options: Any) -> Any:
    """Write a scene and let protobuf read it."""
    return oracle.parse(oracle.inflate(TIMBERMESH.write(TIMBERMESH.from_scene(scene, options or None))))


def stored(node: Any, name: str) -> np.ndarray[Any, Any]:
    """Return a vertex property of a message of protobuf's, (n, k)."""
    found = next(prop for prop in node.vertexProperties if prop.name == name)
    assert found.scalarType == 4
    return np.frombuffer(found.data, "<f4").reshape(-1, found.scalarTypeDimension)


def scene_of(mesh: sc.Mesh | None = None, **fields: Any) -> sc.Scene:
    return sc.Scene("Lodge", [sc.Node("Lodge", mesh=mesh or models.grid_mesh(), **fields)])


def rotate(quaternion: np.ndarray[Any, Any], vector: Any) -> np.ndarray[Any, Any]:
    """Turn a vector by quaternions (n, 4; x, y, z, w)."""
    q = np.asarray(quaternion, np.float64)
    axis, w = q[:, :3], q[:, 3:]
    v = np.broadcast_to(np.asarray(vector, np.float64), axis.shape)
    twice = 2 * np.cross(axis, v)
    return v + w * twice + np.cross(axis, twice)


def corner_rows(mesh: sc.Mesh) -> np.ndarray[Any, Any]:
    """Return everything a triangle's corners carry, a row a triangle beginning at its smallest corner."""
    columns = [mesh.points[mesh.corner_point]]
    for layer in mesh.layers():
        columns.append(layer.at_corners(mesh.corner_point).astype(np.float32))
    corners = np.column_stack(columns).reshape(mesh.triangle_count, 3, -1)
    materials = np.array([mesh.materials[i] if mesh.materials else "" for i in mesh.material_index])
    _, numbers = np.unique(materials, return_inverse=True)
    rows = []
    for triangle, material in zip(corners, numbers.reshape(-1), strict=True):
        first = min(range(3), key=lambda k: tuple(triangle[k]))
        rows.append([*np.roll(triangle, -first, axis=0).reshape(-1), material])
    return np.array(sorted(map(tuple, rows)))


# -- samples ------------------------------------------------------------------------------------


def sample_documents(samples: Path) -> list[tuple[str, codec.Model]]:
    paths = sorted(path for path in (samples / "timbermesh").iterdir() if path.suffix != ".md")
    return [(path.name, TIMBERMESH.read(path.read_bytes())) for path in paths]


def referenced(node: codec.Node, name: str) -> np.ndarray[Any, Any]:
    """Return a property's values at the corners of all triangles, submesh after submesh of one material."""
    found = node.find(name)
    assert found is not None
    values = np.frombuffer(found.data, "<f4").reshape(node.vertex_count, found.dimension)
    materials = dict.fromkeys(mesh.material for mesh in node.meshes)
    corners = [mesh.indices for material in materials for mesh in node.meshes if mesh.material == material]
    return values[np.concatenate(corners)] if corners else values[:0]


@pytest.mark.parametrize("welded", [False, True])
def test_samples_come_back_through_a_scene(samples: Path, welded: bool) -> None:
    for name, before in sample_documents(samples):
        scene = TIMBERMESH.to_scene(before, name)
        if welded:
            for index, node in enumerate(scene.nodes):
                if node.mesh is not None and not any(v.target == index for clip in scene.clips for v in clip.vertices):
                    node.mesh = weld(node.mesh)[0]
        after = TIMBERMESH.from_scene(scene)
        assert len(after.nodes) == len(before.nodes)
        for old, new in zip(before.nodes, after.nodes, strict=True):
            assert (new.parent, new.name) == (old.parent, old.name)
            np.testing.assert_allclose(new.position, old.position, atol=1e-6)
            np.testing.assert_allclose(new.scale, old.scale, atol=1e-6)
            turned = np.array([old.rotation, new.rotation], np.float64)
            turned /= np.linalg.norm(turned, axis=1, keepdims=True)
            assert abs(turned[0] @ turned[1]) == pytest.approx(1, abs=1e-6)
            used = [mesh for mesh in old.meshes if len(mesh.indices)]
            assert {mesh.material for mesh in used} == {mesh.material for mesh in new.meshes if len(mesh.indices)}
            if not used:
                continue
            for property_name in ("position", "uv0", "uv1", "uv2"):
                if old.find(property_name) is not None:
                    np.testing.assert_array_equal(
                        referenced(new, property_name), referenced(old, property_name), err_msg=f"{name} {old.name}"
                    )
            if old.find("color") is not None:
                np.testing.assert_allclose(referenced(new, "color"), referenced(old, "color"), atol=0.5 / 255 + 1e-6)
            _same_directions(name, old, new)
        _same_clips(before, after)


def _same_directions(name: str, old: codec.Node, new: codec.Node) -> None:
    """Unit normals come back within the tolerance of splitting (0.0005), tangents of welded vertices within theirs."""
    before, after = referenced(old, "normal").astype(np.float64), referenced(new, "normal").astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(before, axis=1)
    fine = np.abs(length - 1) < 1e-3
    np.testing.assert_allclose(after[fine], before[fine], atol=5.1e-4, err_msg=name)
    assert np.isfinite(after).all()
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, atol=1e-5)
    tangent, again = referenced(old, "tangent"), referenced(new, "tangent")
    fine = np.isfinite(tangent).all(axis=1)
    np.testing.assert_allclose(again[fine], tangent[fine], atol=0.51, err_msg=name)


def _same_clips(before: codec.Model, after: codec.Model) -> None:
    for old, new in zip(before.nodes, after.nodes, strict=True):
        assert len(old.node_animations) == len(new.node_animations)
        for one, other in zip(old.node_animations, new.node_animations, strict=True):
            assert (one.name, one.framerate, one.frame_count) == (other.name, other.framerate, other.frame_count)
            np.testing.assert_allclose(other.positions, one.positions, atol=1e-6)
            np.testing.assert_allclose(other.scales, one.scales, atol=1e-6)
            agree = np.abs(np.einsum("ij,ij->i", one.rotations, other.rotations))
            np.testing.assert_allclose(agree, 1, atol=1e-5)
            assert other.present.all()
        for moved, again in zip(old.vertex_animations, new.vertex_animations, strict=True):
            assert (again.name, again.framerate) == (moved.name, moved.framerate)
            assert len(again.frames) == len(moved.frames)


def test_stored_triangles_face_their_normals(samples: Path) -> None:
    """Section 3's rule, on what we write, for a sample whose own file keeps it wholly."""
    path = next((samples / "timbermesh").glob("mechanistry__*"))
    scene = TIMBERMESH.to_scene(TIMBERMESH.read(path.read_bytes()), "x")
    message = through(scene)
    facing = np.concatenate([winding(node) for node in message.nodes if node.vertexCount])
    assert len(facing) == 248
    assert (facing > 0).mean() > 0.99


def winding(node: Any) -> np.ndarray[Any, Any]:
    """Return cross(p1 - p0, p2 - p0) . normal of every triangle of a stored node."""
    positions = stored(node, "position").astype(np.float64)
    normals = stored(node, "normal").astype(np.float64)
    triangles = np.concatenate([np.array(mesh.indices, int).reshape(-1, 3) for mesh in node.meshes])
    a, b, c = (positions[triangles[:, k]] for k in range(3))
    return np.einsum("ij,ij->i", np.cross(b - a, c - a), normals[triangles].sum(axis=1))


# -- the file's space ---------------------------------------------------------------------------


def test_points_normals_and_winding_of_a_generated_mesh() -> None:
    mesh = models.grid_mesh()
    message = through(scene_of(mesh))
    node = message.nodes[0]
    assert (winding(node) > 0).all()
    positions = stored(node, "position")
    expected = mesh.points.astype(np.float64) @ TO_FILE.T
    assert {tuple(row) for row in positions.tolist()} == {tuple(row) for row in expected.tolist()}
    np.testing.assert_allclose(np.linalg.norm(stored(node, "normal"), axis=1), 1, atol=1e-6)
    assert (stored(node, "normal")[:, 1] > 0).all()  # up stays up


def test_every_triangle_of_a_generated_mesh_comes_back() -> None:
    mesh = models.grid_mesh()
    mesh.normal = None
    scene = scene_of(mesh)
    again = TIMBERMESH.to_scene(TIMBERMESH.read(TIMBERMESH.write(TIMBERMESH.from_scene(scene))), "x")
    found = again.nodes[0].mesh
    assert found is not None
    found.normal = found.tangent = None
    np.testing.assert_allclose(corner_rows(found), corner_rows(mesh), atol=1e-6)
    assert len(found.points) <= len(mesh.corner_point)


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.floats(-100, 100, width=32)] * 3),
    st.tuples(*[st.floats(-1, 1, width=32)] * 4).filter(lambda q: sum(c * c for c in q) > 0.01),
    st.tuples(*[st.floats(0.125, 8, width=32)] * 3),
)
def test_transforms_place_points_where_blender_does(
    place: tuple[float, float, float], turn: tuple[float, float, float, float], scale: tuple[float, float, float]
) -> None:
    """A point put through the stored transform in file space is the Blender point, mapped."""
    q = np.array(turn) / np.linalg.norm(turn)
    scene = sc.Scene("x", [sc.Node("n", translation=place, rotation=tuple(q), scale=scale)])
    node = through(scene).nodes[0]
    point = np.array([0.3, -1.2, 2.5])
    in_blender = rotate(q[None, [1, 2, 3, 0]], point * scale)[0] + place
    in_file = TO_FILE @ point * [node.scale.x, node.scale.y, node.scale.z]
    rotation = np.array([[node.rotation.x, node.rotation.y, node.rotation.z, node.rotation.w]])
    in_file = rotate(rotation, in_file)[0] + [node.position.x, node.position.y, node.position.z]
    np.testing.assert_allclose(in_file, TO_FILE @ in_blender, atol=2e-4)
    # section 3's own line: file (X, Y, Z, W) = (qx, -qz, qy, qw)
    np.testing.assert_allclose(rotation[0], [q[1], -q[3], q[2], q[0]], atol=1e-6)
    back = TIMBERMESH.to_scene(TIMBERMESH.from_scene(scene), "x").nodes[0]
    np.testing.assert_allclose(back.translation, place, atol=1e-6)
    np.testing.assert_allclose(back.scale, scale, atol=1e-6)
    assert abs(np.dot(back.rotation, q)) == pytest.approx(1, abs=1e-6)


def test_tangents_follow_the_uv_map_in_file_space() -> None:
    """With bitangent = w * cross(n, t), tangents follow the gradient of u and bitangents that of v."""
    for mirrored in (False, True):
        mesh = models.grid_mesh()
        if mirrored:
            mesh.uvs[0].values[:, 0] *= -1
        node = through(scene_of(mesh)).nodes[0]
        positions, uv = stored(node, "position").astype(float), stored(node, "uv0").astype(float)
        normals, tangents = stored(node, "normal").astype(float), stored(node, "tangent").astype(float)
        np.testing.assert_allclose(np.linalg.norm(tangents[:, :3], axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(np.einsum("ij,ij->i", tangents[:, :3], normals), 0, atol=1e-5)
        bitangents = tangents[:, 3:] * np.cross(normals, tangents[:, :3])
        triangles = np.concatenate([np.array(submesh.indices).reshape(-1, 3) for submesh in node.meshes])
        for a, b, c in triangles:
            edges = np.stack((positions[b] - positions[a], positions[c] - positions[a]))
            change = np.stack((uv[b] - uv[a], uv[c] - uv[a]))
            along_u, along_v = np.linalg.inv(change) @ edges
            for vertex in (a, b, c):
                assert tangents[vertex, :3] @ along_u > 0.5 * np.linalg.norm(along_u)
                assert bitangents[vertex] @ along_v > 0.5 * np.linalg.norm(along_v)


def test_given_tangents_are_mapped_with_their_sign() -> None:
    mesh = models.grid_mesh()
    tangents = np.tile(np.float32([0, 1, 0, 1]), (len(mesh.corner_point), 1))
    mesh.tangent = sc.Layer("tangent", tangents, per_corner=True)
    np.testing.assert_array_equal(
        np.unique(stored(through(scene_of(mesh)).nodes[0], "tangent"), axis=0), [[0, 0, -1, -1]]
    )
    mesh.tangent.values[:, 3] = -1
    np.testing.assert_array_equal(
        np.unique(stored(through(scene_of(mesh)).nodes[0], "tangent"), axis=0), [[0, 0, -1, 1]]
    )


def test_without_uv_tangents_are_those_of_the_official_exporter() -> None:
    mesh = models.grid_mesh()
    mesh.uvs = []
    tangents = stored(through(scene_of(mesh)).nodes[0], "tangent")
    assert not tangents.any()
    assert np.signbit(tangents[:, 3]).all()


def test_float_colours_are_encoded() -> None:
    """Linear 0.5 is written 0.7373, the nearest byte of sRGB; alpha is linear."""
    mesh = models.grid_mesh()
    linear = np.tile(np.float32([0.5, 0.0, 1.0, 0.5]), (len(mesh.points), 1))
    mesh.colors = [sc.Layer("Color", linear)]
    found = np.unique(stored(through(scene_of(mesh)).nodes[0], "color"), axis=0)
    np.testing.assert_allclose(found, [[188 / 255, 0, 1, 128 / 255]], atol=1e-7)
    assert found[0, 0] == pytest.approx(0.7373, abs=1e-4)


def test_byte_colours_come_back_exactly() -> None:
    mesh = models.grid_mesh(8)
    again = TIMBERMESH.to_scene(TIMBERMESH.from_scene(scene_of(mesh)), "x").nodes[0].mesh
    assert again is not None
    given = Counter(map(tuple, mesh.colors[0].at_corners(mesh.corner_point).tolist()))
    assert Counter(map(tuple, again.colors[0].at_corners(again.corner_point).tolist())) == given


def test_linear_to_srgb_is_the_standard_curve() -> None:
    values = np.linspace(0, 1, 101, dtype=np.float32)
    rows = np.column_stack((values, values, values, values))
    encoded = linear_to_srgb(rows)
    expected = [12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055 for v in values.tolist()]
    np.testing.assert_allclose(encoded[:, 0], expected, atol=1e-6)
    np.testing.assert_array_equal(encoded[:, 3], values)


# -- write rules --------------------------------------------------------------------------------


def test_write_rules() -> None:
    scene = sc.Scene(
        "Lodge",
        [
            sc.Node("Lodge"),
            sc.Node("Body", 0, mesh=models.grid_mesh()),
            sc.Node("#Slot#Entrance", 0, translation=(1.0, 2.0, 3.0)),
        ],
    )
    content = codec.serialise(TIMBERMESH.from_scene(scene))
    message = oracle.parse(content)
    assert message.SerializeToString() == content  # ascending fields, packed indices
    assert (message.version, message.name) == (0, "")
    assert [node.parent for node in message.nodes] == [-1, 0, 0]
    for node in message.nodes:
        assert node.name
        assert node.HasField("position")
        assert node.HasField("rotation")
        assert node.HasField("scale")
    root, body, slot = message.nodes
    for empty in (root, slot):
        assert empty.vertexCount == 0
        assert [(p.name, p.scalarType, p.scalarTypeDimension, p.data) for p in empty.vertexProperties] == [
            ("position", 4, 3, b""),
            ("normal", 4, 3, b""),
            ("tangent", 4, 4, b""),
        ]
        assert not empty.meshes
    assert (root.rotation.w, root.scale.x, root.scale.y, root.scale.z) == (1, 1, 1, 1)
    assert [p.name for p in body.vertexProperties] == ["position", "normal", "tangent", "color", "uv0"]
    for prop, width in zip(body.vertexProperties, (3, 3, 4, 4, 2), strict=True):
        assert (prop.scalarType, prop.scalarTypeDimension) == (4, width)
        assert len(prop.data) == body.vertexCount * width * 4
    for mesh in body.meshes:
        assert len(mesh.indices) % 3 == 0
        assert 0 <= min(mesh.indices) <= max(mesh.indices) < body.vertexCount
    assert (slot.position.x, slot.position.y, slot.position.z) == (-1, 3, -2)


def test_one_submesh_for_each_material_name() -> None:
    mesh = models.grid_mesh(materials=4)
    mesh.materials = ["A", "B", "A", ""]
    found = {m.material: len(m.indices) // 3 for m in through(scene_of(mesh)).nodes[0].meshes}
    assert found == {"A": 16, "B": 8, "": 8}
    mesh.materials = []
    mesh.material_index[:] = 0
    assert [(m.material, len(m.indices) // 3) for m in through(scene_of(mesh)).nodes[0].meshes] == [("", 32)]
    mesh.materials = ["A", "Unused"]
    assert [m.material for m in through(scene_of(mesh)).nodes[0].meshes] == ["A"]


def test_suffixes_are_stripped_on_wish_alone() -> None:
    mesh = models.grid_mesh(materials=3)
    mesh.materials = ["Dirt", "Dirt.001", "Roof.Model.12"]
    names = [m.material for m in through(scene_of(mesh)).nodes[0].meshes]
    assert names == ["Dirt", "Dirt.001", "Roof.Model.12"]
    stripped = through(scene_of(mesh), use_strip_suffixes=True).nodes[0].meshes
    assert {m.material: len(m.indices) // 3 for m in stripped} == {"Dirt": 22, "Roof.Model.12": 10}


@pytest.mark.parametrize("name", ["Dirt.001", "Material", "Material.002"])
def test_blender_names_of_materials_stop_an_export_unless_allowed(name: str) -> None:
    mesh = models.grid_mesh()
    mesh.materials = [name]
    with pytest.raises(ExportError, match=f"Material '{name}': Blender's .* makes the game fail") as refused:
        encode_scene(scene_of(mesh), TIMBERMESH)
    assert [finding.allowed_by for finding in refused.value.findings] == ["use_blender_names"]
    data, said = encode_scene(scene_of(mesh), TIMBERMESH, {"use_blender_names": True})
    assert [m.material for m in TIMBERMESH.read(data).nodes[0].meshes] == [name]
    assert any("makes the game fail" in text for text in said)


def test_files_keep_the_blender_names_that_they_have() -> None:
    mesh = models.grid_mesh()
    mesh.materials = ["Dirt.001"]
    data, _ = encode_scene(scene_of(mesh), TIMBERMESH, {"use_blender_names": True})
    again = TIMBERMESH.to_scene(TIMBERMESH.read(data), "again")
    assert encode_scene(again, TIMBERMESH)[0]


def test_all_broken_names_are_reported_together() -> None:
    mesh = models.grid_mesh(materials=3)
    mesh.materials = ["Dirt.001", "Material", "Water.002"]
    with pytest.raises(ExportError) as refused:
        encode_scene(scene_of(mesh), TIMBERMESH)
    assert [finding.names for finding in refused.value.findings] == [("Dirt.001",), (), ("Water.002",)]


def test_unknown_options_are_refused() -> None:
    with pytest.raises(MeshferryError, match="no option 'nonsense'"):
        TIMBERMESH.from_scene(scene_of(), {"nonsense": 1})


def test_model_name_is_kept_where_the_file_had_its_own() -> None:
    document = models.model()
    document.name = "Crane"
    scene = TIMBERMESH.to_scene(document, "Crane.Folktails")
    assert TIMBERMESH.from_scene(scene).name == "Crane"


def test_more_layers_than_the_file_holds() -> None:
    mesh = models.grid_mesh()
    mesh.uvs = [replace(mesh.uvs[0], name=f"UV{i}", values=mesh.uvs[0].values + i) for i in range(5)]
    mesh.colors = mesh.colors * 2
    data, said = encode_scene(scene_of(mesh), TIMBERMESH)
    names = [p.name for p in oracle.parse(oracle.inflate(data)).nodes[0].vertexProperties]
    assert names == ["position", "normal", "tangent", "color", "uv0", "uv1", "uv2"]
    assert "2 UV layers not carried over: 'UV3', 'UV4' of 'Lodge'" in said
    assert "colour layer 'Color' of object 'Lodge' not carried over" in said


def test_attributes_of_types_the_file_has_not() -> None:
    mesh = models.grid_mesh()
    mesh.custom = [sc.Layer("half", np.zeros((len(mesh.points), 1), np.float16))]
    scene = scene_of(mesh)
    TIMBERMESH.from_scene(scene)
    assert scene.warnings == ["Lodge: the attribute 'half' has a type that the format does not support; left out"]


def test_normals_that_are_missing_or_broken_are_computed() -> None:
    mesh = models.grid_mesh()
    expected = stored(through(scene_of(mesh)).nodes[0], "normal")
    mesh.normal = None
    np.testing.assert_allclose(stored(through(scene_of(mesh)).nodes[0], "normal"), expected, atol=1e-6)
    broken = np.full((len(mesh.points), 3), np.nan, np.float32)
    broken[::2] = 0
    mesh.normal = sc.Layer("normal", broken)
    np.testing.assert_allclose(stored(through(scene_of(mesh)).nodes[0], "normal"), expected, atol=1e-6)


def test_coordinates_that_are_no_numbers_are_refused() -> None:
    for bad in (np.nan, np.inf):
        mesh = models.grid_mesh()
        mesh.points[3, 1] = bad
        with pytest.raises(ExportError, match=r"^'Lodge' has vertices with NaN or infinite coordinates"):
            TIMBERMESH.from_scene(scene_of(mesh))


def test_transforms_that_the_game_refuses_are_refused() -> None:
    for fields, said in (
        ({"translation": (np.nan, 0, 0)}, "position is NaN or infinite"),
        ({"scale": (0.0, 1.0, 1.0)}, "scale is zero"),
        ({"rotation": (0.0, 0.0, 0.0, 0.0)}, "rotation is all zero"),
    ):
        with pytest.raises(ExportError, match=said):
            encode_scene(scene_of(**fields), TIMBERMESH)  # type: ignore[arg-type]
        data, said_all = encode_scene(scene_of(**fields), TIMBERMESH, ignore_errors=True)  # type: ignore[arg-type]
        assert len(TIMBERMESH.read(data).nodes) == 1
        assert any(said in text for text in said_all)


def test_errors_are_counted() -> None:
    scene = sc.Scene("x", [sc.Node(f"n{i}", scale=(0.0, 1.0, 1.0)) for i in range(9)])
    with pytest.raises(ExportError, match=r"and 4 more$"):
        encode_scene(scene, TIMBERMESH)


def clip(**fields: Any) -> sc.Clip:
    return sc.Clip(**({"name": "Default", "fps": 24.0, "frame_count": 2} | fields))


def test_clips_that_the_game_refuses_are_refused() -> None:
    for broken, said in (
        (clip(name=""), "no name"),
        (clip(frame_count=0), "no frames"),
        (clip(frame_count=-1), "no frames"),
    ):
        with pytest.raises(ExportError, match=said):
            TIMBERMESH.from_scene(sc.Scene("x", [sc.Node("n")], clips=[broken]))


def test_node_clips_come_back() -> None:
    source = np.random.default_rng(1)
    rotations = source.normal(size=(5, 4)).astype(np.float32)
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    track = sc.TransformTrack(
        1, source.normal(size=(5, 3)).astype(np.float32), rotations, source.uniform(0.5, 2, (5, 3)).astype(np.float32)
    )
    scene = sc.Scene("x", [sc.Node("Root"), sc.Node("#Arm", 0)], clips=[clip(frame_count=5, transforms=[track])])
    node = through(scene).nodes[1]
    (animation,) = node.nodeAnimations
    assert (animation.name, animation.framerate, len(animation.frames)) == ("Default", 24, 5)
    for number, frame in enumerate(animation.frames):
        x, y, z = track.translation[number]
        assert (frame.position.x, frame.position.y, frame.position.z) == (-x, z, -y)
        qw, qx, qy, qz = track.rotation[number]
        stored_turn = (frame.rotation.x, frame.rotation.y, frame.rotation.z, frame.rotation.w)
        assert stored_turn == pytest.approx((qx, -qz, qy, qw))
        x, y, z = track.scale[number]
        assert (frame.scale.x, frame.scale.y, frame.scale.z) == (x, z, y)
    again = TIMBERMESH.to_scene(TIMBERMESH.from_scene(scene), "x").clips[0].transforms[0]
    assert again.target == 1
    np.testing.assert_array_equal(again.translation, track.translation)
    np.testing.assert_array_equal(again.scale, track.scale)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", again.rotation, rotations)), 1, atol=1e-6)


def test_same_input_same_bytes() -> None:
    scene = scene_of(models.grid_mesh(12, seed=4))
    one, other = (TIMBERMESH.write(TIMBERMESH.from_scene(scene)) for _ in range(2))
    assert one == other


def test_the_scene_is_not_changed_by_writing() -> None:
    scene = scene_of(models.grid_mesh())
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    arrays = [mesh.points, mesh.corner_point, mesh.material_index, *(layer.values for layer in mesh.layers())]
    copies = [array.copy() for array in arrays]
    TIMBERMESH.from_scene(scene)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_empty_meshes() -> None:
    none = np.empty(0, np.int32)
    for points in (np.zeros((0, 3), np.float32), np.zeros((2, 3), np.float32)):
        mesh = sc.Mesh(
            points, none, none, ["Dirt"], uvs=[sc.Layer("UV", np.zeros((0, 2), np.float32), per_corner=True)]
        )
        node = through(scene_of(mesh)).nodes[0]
        assert node.vertexCount == 0
        assert [m.material for m in node.meshes] == ["Dirt"]


# -- vertex animation ---------------------------------------------------------------------------


def frames_of(node: Any) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    found = []
    for frame in node.vertexAnimations[0].frames:
        values = {
            p.name: np.frombuffer(p.data, "<f4").reshape(-1, p.scalarTypeDimension) for p in frame.vertexProperties
        }
        assert list(values) == ["offset", "rotation"]
        found.append((values["offset"], values["rotation"]))
    return found


def assert_frame_is_stored_one(node: Any, rotation: np.ndarray[Any, Any], atol: float) -> None:
    """Section 7: normal = q * (-1, 0, 0) and tangent = q * (0, 0, -1)."""
    np.testing.assert_allclose(rotate(rotation, (-1, 0, 0)), stored(node, "normal"), atol=atol)
    np.testing.assert_allclose(rotate(rotation, (0, 0, -1)), stored(node, "tangent")[:, :3], atol=atol)


def test_the_real_file_keeps_the_rule_we_write_by(samples: Path) -> None:
    """The page's claim about frame 0, and that our quaternions of its normals and tangents are the stored ones."""
    path = next((samples / "timbermesh").glob("*KeystoneFish1*"))
    message = oracle.parse(oracle.inflate(path.read_bytes()))
    node = message.nodes[0]
    _, rotation = frames_of(node)[0]
    assert_frame_is_stored_one(node, rotation, 1e-6)
    normals = stored(node, "normal") @ TO_FILE
    tangents = stored(node, "tangent")[:, :3] @ TO_FILE
    ours = frame_rotations(normals.astype(np.float32), tangents.astype(np.float32))
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", ours, rotation)), 1, atol=1e-5)


def test_the_real_vertex_animation_comes_back(samples: Path) -> None:
    path = next((samples / "timbermesh").glob("*KeystoneFish1*"))
    before = oracle.parse(oracle.inflate(path.read_bytes())).nodes[0]
    scene = TIMBERMESH.to_scene(TIMBERMESH.read(path.read_bytes()), "Fish")
    assert scene.clips[0].vertices[0].points.shape == (30, 890, 3)
    after = through(scene).nodes[0]
    assert after.vertexAnimations[0].animatedVertexCount == 890
    np.testing.assert_array_equal(stored(after, "position"), stored(before, "position"))
    for (old, old_turn), (new, new_turn) in zip(frames_of(before), frames_of(after), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-6)
        np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", old_turn, new_turn)), 1, atol=1e-5)


def test_frames_of_the_real_file_reach_the_scene(samples: Path) -> None:
    """Frame 0 of the moving normals and tangents is the resting ones; all are unit vectors at right angles."""
    path = next((samples / "timbermesh").glob("*KeystoneFish1*"))
    scene = TIMBERMESH.to_scene(TIMBERMESH.read(path.read_bytes()), "Fish")
    mesh, track = scene.nodes[0].mesh, scene.clips[0].vertices[0]
    assert scene.warnings == []
    assert mesh is not None
    assert mesh.normal is not None
    assert mesh.tangent is not None
    assert track.normals is not None
    assert track.tangents is not None
    assert track.normals.shape == track.tangents.shape == track.points.shape
    np.testing.assert_allclose(track.normals[0], mesh.normal.values, atol=1e-6)
    np.testing.assert_allclose(track.tangents[0], mesh.tangent.values[:, :3], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(track.normals, axis=2), 1, atol=1e-5)
    np.testing.assert_allclose(np.einsum("fpi,fpi->fp", track.normals, track.tangents), 0, atol=1e-5)


def moving_scene(moving: int | None = None, *, frames: int = 3) -> sc.Scene:
    mesh = models.grid_mesh()
    count = len(mesh.points) if moving is None else moving
    rest = mesh.points[:count]
    points = np.stack([rest + np.float32([0, 0, frame]) * rest[:, :1] for frame in range(frames)])
    track = sc.VertexTrack(0, points.astype(np.float32))
    return (
        scene_of(mesh) if frames == 0 else replace(scene_of(mesh), clips=[clip(frame_count=frames, vertices=[track])])
    )


def test_generated_vertex_animation() -> None:
    scene = moving_scene()
    node = through(scene).nodes[0]
    animation = node.vertexAnimations[0]
    assert (animation.name, animation.framerate, animation.animatedVertexCount) == ("Default", 24, node.vertexCount)
    for number, (offset, rotation) in enumerate(frames_of(node)):
        assert len(offset) == len(rotation) == node.vertexCount
        expected = np.zeros_like(offset)
        expected[:, 1] = number * -stored(node, "position")[:, 0]
        np.testing.assert_allclose(offset, expected, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(rotation, axis=1), 1, atol=1e-6)
    assert_frame_is_stored_one(node, frames_of(node)[0][1], 1e-5)
    again = TIMBERMESH.to_scene(TIMBERMESH.from_scene(scene), "x")
    assert again.warnings == []
    assert again.clips[0].vertices[0].points.shape == (3, node.vertexCount, 3)


def test_moving_frames_are_those_given() -> None:
    scene = moving_scene()
    mesh, track = scene.nodes[0].mesh, scene.clips[0].vertices[0]
    assert mesh is not None
    source = np.random.default_rng(2)
    normals = source.normal(size=(3, len(mesh.points), 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    tangents = np.cross(normals, source.normal(size=normals.shape)).astype(np.float32)
    tangents /= np.linalg.norm(tangents, axis=2, keepdims=True)
    track.normals, track.tangents = normals, tangents
    node = through(scene).nodes[0]
    by_place = {tuple(row): number for number, row in enumerate((mesh.points @ TO_FILE.T).astype(np.float32).tolist())}
    point = [by_place[tuple(row)] for row in stored(node, "position").tolist()]
    for number, (_, rotation) in enumerate(frames_of(node)):
        np.testing.assert_allclose(rotate(rotation, (-1, 0, 0)), normals[number][point] @ TO_FILE.T, atol=1e-5)
        np.testing.assert_allclose(rotate(rotation, (0, 0, -1)), tangents[number][point] @ TO_FILE.T, atol=1e-5)


@pytest.mark.parametrize("moving", [1, 5, 12, 24])
def test_animated_vertices_come_first(moving: int) -> None:
    scene = moving_scene(moving)
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    node = through(scene).nodes[0]
    k = node.vertexAnimations[0].animatedVertexCount
    assert 0 < k < node.vertexCount
    of_moving = {tuple(row) for row in (mesh.points[:moving] @ TO_FILE.T).astype(np.float32).tolist()}
    places = [tuple(row) for row in stored(node, "position").tolist()]
    assert set(places[:k]) == of_moving
    assert not set(places[k:]) & of_moving
    offset, rotation = frames_of(node)[2]
    assert len(offset) == len(rotation) == node.vertexCount
    assert not offset[k:].any()
    np.testing.assert_allclose(offset[:k, 1], -2 * stored(node, "position")[:k, 0], atol=1e-5)
    assert (winding(node) > 0).all()


def test_clips_that_move_different_numbers_of_points() -> None:
    scene = moving_scene()
    whole = scene.clips[0]
    part = replace(moving_scene(5).clips[0], name="Part")
    for clips in ([whole, part], [part, whole]):
        node = through(replace(scene, clips=clips)).nodes[0]
        counts = {animation.name: animation.animatedVertexCount for animation in node.vertexAnimations}
        assert counts["Default"] == node.vertexCount
        assert 5 <= counts["Part"] < node.vertexCount


def test_vertex_tracks_of_nodes_without_triangles_are_nothing() -> None:
    scene = moving_scene()
    scene.nodes[0].mesh = None
    assert not through(scene).nodes[0].vertexAnimations


def test_zero_tangents_still_make_rotations() -> None:
    normals = np.float32([[0, 0, 1], [1, 0, 0], [0, -1, 0], [0.6, 0, 0.8]])
    rotations = frame_rotations(normals, np.zeros((4, 3), np.float32))
    np.testing.assert_allclose(np.linalg.norm(rotations, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rotate(rotations, (-1, 0, 0)), normals @ TO_FILE.T, atol=1e-6)


# -- what Blender must not see ------------------------------------------------------------------


def test_repeated_corners_go_and_everything_else_stays() -> None:
    mesh = models.grid_mesh()
    mesh.custom = [sc.Layer("shared", np.arange(4).reshape(4, 1), np.arange(96, dtype=np.int32) % 4)]
    clean, none = drop_repeated_corners(mesh)
    assert none == 0
    assert clean is mesh
    mesh.corner_point[[0, 1]] = 3
    mesh.corner_point[[10, 11]] = 4
    mesh.corner_point[[93, 95]] = 5
    thinned, count = drop_repeated_corners(mesh)
    assert count == 3
    kept = np.repeat(~np.isin(np.arange(32), [0, 3, 31]), 3)
    np.testing.assert_array_equal(thinned.corner_point, mesh.corner_point[kept])
    np.testing.assert_array_equal(thinned.material_index, mesh.material_index[kept[::3]])
    for layer, before in zip(thinned.layers(), mesh.layers(), strict=True):
        np.testing.assert_array_equal(
            layer.at_corners(thinned.corner_point), before.at_corners(mesh.corner_point)[kept]
        )
