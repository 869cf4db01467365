"""What reading rejects, mends and tells (the format page's sections 1, 4, 6, 9 and 13)."""

from __future__ import annotations

import tracemalloc
from typing import Any

import models
import numpy as np
import oracle
import pytest
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.timbermesh.model import codec
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from models import mesh_node, model, node, node_animation, replaced, vertex_animation, with_values
from oracle import chunk, scalar

NAN = float("nan")


def to_scene(*nodes: codec.Node, name: str = "File") -> sc.Scene:
    """Map a model to a scene the whole way: through bytes."""
    return TIMBERMESH.to_scene(TIMBERMESH.read(TIMBERMESH.write(model(*nodes))), name)


def one_warning(*nodes: codec.Node) -> str:
    warnings = to_scene(*nodes).warnings
    assert len(warnings) == 1, warnings
    return warnings[0]


def mesh_of(*nodes: codec.Node) -> sc.Mesh:
    mesh = to_scene(*nodes).nodes[-1].mesh
    assert mesh is not None
    return mesh


def test_nothing_odd_nothing_told() -> None:
    scene = to_scene(
        node("Lodge"), mesh_node("Body", 0, node_animations=[node_animation()], vertex_animations=[vertex_animation()])
    )
    assert scene.warnings == []
    assert scene.name == "File"
    assert [found.name for found in scene.nodes] == ["Lodge", "Body"]
    assert scene.nodes[0].mesh is None


# -- the tree -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parents", "said"),
    [
        ((0,), "node 0 'n0': The node is its own ancestor"),
        ((1, 0), "its own ancestor"),
        ((-1, 2, 3, 1), "its own ancestor"),
        ((-1, 0, 4, 2, 3), "its own ancestor"),
        ((-2,), "node 0 'n0': The parent is node -2, but only nodes 0 to 0"),
        ((-1, 2), "node 1 'n1': The parent is node 2, but only nodes 0 to 1"),
        ((1, 99), "node 1 'n1': The parent is node 99"),
        ((1, -9), "node 1 'n1': The parent is node -9"),
        ((2, 1, -1), "node 1 'n1': The node is its own ancestor"),
    ],
)
def test_parents_that_make_no_tree(parents: tuple[int, ...], said: str) -> None:
    data = TIMBERMESH.write(model(*(node(f"n{i}", parent) for i, parent in enumerate(parents))))
    with pytest.raises(FormatError) as caught:
        TIMBERMESH.read(data)
    assert said in str(caught.value)


def test_forward_references_are_read() -> None:
    scene = to_scene(node("Child", 2), node("Grandchild", 0), node("Root", -1))
    assert [found.parent for found in scene.nodes] == [2, 0, -1]
    assert [found.is_root for found in scene.nodes] == [False, False, True]


@pytest.mark.slow
def test_deep_chains_take_no_time() -> None:
    count = 8_000
    for parents in (range(-1, count - 1), [*range(1, count), -1]):
        scene = to_scene(*(node("n", parent) for parent in parents))
        assert len(scene.nodes) == count


def test_roots_names_and_model_name() -> None:
    scene = to_scene(node("Twice"), node("Twice"), node("", 0))
    assert [found.name for found in scene.nodes] == ["Twice", "Twice", "Node 2"]
    assert sum(found.is_root for found in scene.nodes) == 2
    document = model(node())
    document.name = "Crane"
    assert TIMBERMESH.to_scene(document, "File").source_name == "Crane"
    assert not TIMBERMESH.to_scene(document, "Crane").source_name
    assert TIMBERMESH.to_scene(codec.Model(), "Empty").nodes == []


# -- transforms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"position": (NAN, 0.0, 0.0)}, "position holds NaN or infinite values"),
        ({"position": (0.0, np.inf, 0.0)}, "position holds NaN or infinite values"),
        ({"scale": (1.0, NAN, 1.0)}, "scale holds NaN or infinite values"),
        ({"scale": None}, "no scale; replaced by 1"),
        ({"scale": (1.0, 0.0, 1.0)}, "scale is zero"),
        ({"rotation": (0.0, 0.0, 0.0, 0.0)}, "not a unit quaternion"),
        ({"rotation": (0.0, 1.0, 0.0, 1.0)}, "not a unit quaternion"),
        ({"rotation": (NAN, 0.0, 0.0, 1.0)}, "not a unit quaternion"),
    ],
)
def test_odd_transforms_are_mended_and_told(fields: dict[str, Any], said: str) -> None:
    assert said in one_warning(node(**fields))
    found = to_scene(node(**fields)).nodes[0]
    assert np.isfinite([*found.translation, *found.rotation, *found.scale]).all()
    assert np.linalg.norm(found.rotation) == pytest.approx(1)


def test_absent_transforms() -> None:
    found = to_scene(node(position=None, rotation=None, scale=None)).nodes[0]
    assert (found.translation, found.rotation, found.scale) == ((0, 0, 0), (1, 0, 0, 0), (1, 1, 1))


def test_quaternion_of_a_real_file() -> None:
    """One file of 964 stores (0, 1, 0, 1): a quarter turn about the up axis, not normalised."""
    found = to_scene(node(rotation=(0.0, 1.0, 0.0, 1.0))).nodes[0]
    np.testing.assert_allclose(found.rotation, [np.sqrt(0.5), 0, 0, -np.sqrt(0.5)], atol=1e-6)


def test_negative_scale_is_nothing_odd() -> None:
    scene = to_scene(node(scale=(-1.0, -2.0, 3.0)))
    assert scene.warnings == []
    assert scene.nodes[0].scale == (-1.0, 3.0, -2.0)


# -- meshes -------------------------------------------------------------------------------------


def change(name: str, /, **fields: Any) -> codec.Node:
    def changed(found: codec.VertexProperty) -> codec.VertexProperty:
        for field, value in fields.items():
            setattr(found, field, value)
        return found

    return replaced(mesh_node(), name, changed)


@pytest.mark.parametrize(
    "broken",
    [
        replaced(mesh_node(), "position", lambda _: None),
        change("position", data=b""),
        change("position", data=bytes(47)),
        change("position", data=bytes(60)),
    ],
)
def test_a_mesh_without_usable_positions_is_left_out_and_its_node_kept(broken: codec.Node) -> None:
    scene = to_scene(broken)
    assert scene.nodes[0].mesh is None
    assert any("its mesh is left out" in text for text in scene.warnings)


def test_triangles_without_vertices() -> None:
    assert "triangles but no vertices" in one_warning(mesh_node(vertex_count=0, properties=[]))
    assert to_scene(node(vertex_count=-3)).nodes[0].mesh is None


@pytest.mark.parametrize(
    ("indices", "said"),
    [
        ([0, 1], "2 indices, not a multiple of 3; left out"),
        ([0, 1, 4], "refers to vertices that do not exist; left out"),
        ([0, 1, 2**31 - 1], "refers to vertices that do not exist; left out"),
    ],
)
def test_a_broken_submesh_is_left_out_and_the_others_kept(indices: list[int], said: str) -> None:
    broken = mesh_node()
    broken.meshes.insert(0, codec.Mesh(np.array(indices, np.int32), "Broken"))
    assert said in one_warning(broken)
    mesh = mesh_of(broken)
    assert mesh.materials == ["BaseWood_Brown.Folktails"]
    assert mesh.corner_point.tolist() == [2, 1, 0, 3, 2, 0]


def test_a_negative_index_leaves_the_submesh_out() -> None:
    body = oracle.inflate(TIMBERMESH.write(model(mesh_node(meshes=[]))))
    inner = oracle.parse(body).nodes[0].SerializeToString()
    message = chunk(3, inner + chunk(8, chunk(1, oracle.packed([0, -1, 2])) + chunk(2, "Dirt")))
    scene = TIMBERMESH.to_scene(TIMBERMESH.read(oracle.deflate(message)), "x")
    assert any("'Dirt' refers to vertices that do not exist" in text for text in scene.warnings)
    assert scene.triangle_count == 0


def test_winding_and_materials_of_submeshes() -> None:
    parts = [
        codec.Mesh(np.array([0, 1, 2], np.int32), "A"),
        codec.Mesh(np.empty(0, np.int32), "None"),
        codec.Mesh(np.array([0, 2, 3], np.int32), ""),
        codec.Mesh(np.array([1, 2, 3], np.int32), "A"),
    ]
    mesh = mesh_of(mesh_node(meshes=parts))
    assert mesh.materials == ["A", "None", ""]
    assert mesh.corner_point.tolist() == [2, 1, 0, 3, 2, 0, 3, 2, 1]
    assert mesh.material_index.tolist() == [0, 2, 0]


def test_positions_that_are_no_numbers() -> None:
    values = np.frombuffer(models.vertex_properties()[0].data, "<f4").reshape(4, 3).copy()
    values[1, 2] = NAN
    values[3] = np.inf
    scene = to_scene(with_values(mesh_node(), "position", values))
    assert any("2 vertices have NaN or infinite coordinates" in text for text in scene.warnings)
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.points[[1, 3]].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert np.isfinite(mesh.points).all()


def test_normals_that_are_zero_or_no_numbers_are_computed() -> None:
    normals = np.tile(np.float32([0, 1, 0]), (4, 1))
    normals[0] = 0
    normals[1] = (NAN, 1, 0)
    normals[2] = (0, 3e-39, 0)
    normals[3] = (3.4e38, -1.46, 0)
    scene = to_scene(with_values(mesh_node(), "normal", normals))
    assert scene.warnings == ["Root: 4 normals were zero, NaN or infinite; computed from the faces"]
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert mesh.normal is not None
    np.testing.assert_allclose(mesh.normal.values, np.tile([0, 0, 1], (4, 1)), atol=1e-6)


def test_whole_objects_with_zero_normals_get_right_ones() -> None:
    mesh = mesh_of(with_values(mesh_node(), "normal", np.zeros((4, 3))))
    assert mesh.normal is not None
    np.testing.assert_allclose(mesh.normal.values, np.tile([0, 0, 1], (4, 1)), atol=1e-6)


def test_normals_of_other_length_are_scaled_silently() -> None:
    scene = to_scene(with_values(mesh_node(), "normal", np.tile([0, 92.6, 0], (4, 1))))
    assert scene.warnings == []
    assert scene.nodes[0].mesh is not None
    assert scene.nodes[0].mesh.normal is not None
    np.testing.assert_allclose(scene.nodes[0].mesh.normal.values, np.tile([0, 0, 1], (4, 1)), atol=1e-6)


@pytest.mark.parametrize("name", ["normal", "tangent", "uv0"])
def test_other_properties_of_wrong_length_are_dropped(name: str) -> None:
    for data in (bytes(7), bytes(15 * 4), bytes(40 * 4)):
        assert f"'{name}' does not fit its 4 vertices; left out" in one_warning(change(name, data=data))
    mesh = mesh_of(change(name, data=bytes(7)))
    assert (mesh.normal is None, mesh.tangent is None, mesh.uvs == []) == (
        name == "normal",
        name == "tangent",
        name == "uv0",
    )


def test_missing_properties_are_nothing_odd() -> None:
    bare = mesh_node(properties=models.vertex_properties()[:1])
    scene = to_scene(bare)
    assert scene.warnings == []
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    assert (mesh.normal, mesh.tangent, mesh.uvs, mesh.colors, mesh.custom) == (None, None, [], [], [])


@pytest.mark.parametrize(("kind", "dtype"), [(5, "<f8"), (3, "<i4"), (2, "<u4"), (1, "u1")])
def test_other_scalar_types_are_converted(kind: int, dtype: str) -> None:
    values = np.array([[0, 1], [2, 3], [4, 5], [6, 7]], dtype)
    broken = change("uv0", scalar_type=kind, data=values.tobytes())
    said = one_warning(broken)
    assert "'uv0' is" in said
    assert "read as float32" in said
    uv = mesh_of(broken).uvs[0].values
    assert uv.dtype == np.float32
    assert uv.tolist() == values.tolist()


@pytest.mark.parametrize("fields", [{"scalar_type": 0}, {"dimension": 9}, {"dimension": 0}, {"scalar_type": 88}])
def test_what_a_property_says_of_itself_is_ignored_as_in_the_game(fields: dict[str, int]) -> None:
    clean = mesh_of(mesh_node())
    scene = to_scene(change("position", **fields))
    assert scene.warnings == []
    assert scene.nodes[0].mesh is not None
    np.testing.assert_array_equal(scene.nodes[0].mesh.points, clean.points)


def test_the_first_property_of_a_name_wins() -> None:
    doubled = mesh_node()
    doubled.properties.append(codec.VertexProperty.of("position", np.zeros((4, 3), np.float32)))
    assert "vertex property 'position' occurs 2 times; only the first is kept" in one_warning(doubled)
    np.testing.assert_array_equal(mesh_of(doubled).points, mesh_of(mesh_node()).points)


def test_names_of_properties_are_case_sensitive() -> None:
    mesh = mesh_of(change("uv0", name="UV0"))
    assert mesh.uvs == []
    assert [layer.name for layer in mesh.custom] == ["UV0"]


def test_other_properties_are_carried_in_their_own_type() -> None:
    values: dict[str, np.ndarray[Any, Any]] = {
        "uv3": np.arange(8, dtype="<f4").reshape(4, 2),
        "weight": np.arange(4, dtype="u1").reshape(4, 1),
        "id": np.arange(4, dtype="<u4").reshape(4, 1) + 3_000_000_000,
        "delta": -np.arange(12, dtype="<i4").reshape(4, 3),
        "exact": np.arange(20, dtype="<f8").reshape(4, 5) / 3,
    }
    kinds = {"f4": 4, "u1": 1, "u4": 2, "i4": 3, "f8": 5}
    odd = mesh_node()
    odd.properties += [
        codec.VertexProperty.of(name, rows, kinds[rows.dtype.str.lstrip("<|")]) for name, rows in values.items()
    ]
    scene = to_scene(odd)
    assert scene.warnings == []
    custom = scene.nodes[0].mesh.custom  # type: ignore[union-attr]
    assert [layer.name for layer in custom] == list(values)
    for layer, rows in zip(custom, values.values(), strict=True):
        assert layer.values.dtype == rows.dtype
        np.testing.assert_array_equal(layer.values, rows)
    again = TIMBERMESH.from_scene(scene)
    for name, rows in values.items():
        found = again.nodes[0].find(name)
        assert found is not None
        assert found.data == rows[[0, 1, 2, 3]].tobytes()


@pytest.mark.parametrize("fields", [{"data": b"abc"}, {"dimension": -1}, {"scalar_type": 42}])
def test_other_properties_that_do_not_fit_are_told(fields: dict[str, Any]) -> None:
    custom = codec.VertexProperty.of("mine", np.zeros((4, 2), np.float32))
    for name, value in fields.items():
        setattr(custom, name, value)
    odd = mesh_node()
    odd.properties.append(custom)
    assert "'mine' does not fit" in one_warning(odd)


def test_uvs_that_are_no_numbers() -> None:
    values = np.array([[0, NAN], [np.inf, 1], [150, -150], [0.5, 0.5]])
    scene = to_scene(with_values(mesh_node(), "uv0", values))
    assert scene.warnings == ["Root: its UV layer 'uv0' holds NaN or infinite values; replaced by 0"]
    assert scene.nodes[0].mesh is not None
    assert scene.nodes[0].mesh.uvs[0].values.tolist() == [[0, 0], [0, 1], [150, -150], [0.5, 0.5]]


def test_colours_are_bytes() -> None:
    values = np.array([[0, 1, 188 / 255, 0.5 * 256 / 255], [1, 1, 1, 1], [0, 0, 0, 0], [3 / 255, 0, 0, 1]])
    mesh = mesh_of(with_values(mesh_node(), "color", np.float32(values)))
    assert mesh.colors[0].values.dtype == np.uint8
    assert mesh.colors[0].values.tolist() == [[0, 255, 188, 128], [255] * 4, [0] * 4, [3, 0, 0, 255]]


def test_other_colours_are_linear_floats() -> None:
    values = np.float32([[0.5, 2, -1, 0.3]] + [[1, 1, 1, 1]] * 3)
    scene = to_scene(with_values(mesh_node(), "color", values))
    assert scene.warnings == []
    assert scene.nodes[0].mesh is not None
    (layer,) = scene.nodes[0].mesh.colors
    linear = [((0.5 + 0.055) / 1.055) ** 2.4, ((2 + 0.055) / 1.055) ** 2.4, -1 / 12.92, np.float32(0.3)]
    assert layer.values[0].tolist() == pytest.approx(linear, rel=1e-6)
    assert layer.values[1:].tolist() == [[1, 1, 1, 1]] * 3
    broken = np.float32([[0.5, np.inf, -1, NAN]] + [[1, 1, 1, 1]] * 3)
    scene = to_scene(with_values(mesh_node(), "color", broken))
    assert scene.warnings == ["Root: 2 colour values are NaN or infinite; replaced by 0"]


def test_tangents_keep_their_sign() -> None:
    mesh = mesh_of(mesh_node())
    assert mesh.tangent is not None
    # file (1, 0, 0, -1): Blender -X, sign turned with the handedness
    assert mesh.tangent.values.tolist() == [[-1, 0, 0, 1]] * 4
    odd = with_values(mesh_node(), "tangent", [[0, 0, 0, -0.0], [1, 0, 0, 0.99999], [0] * 4, [1, 0, 0, 1]])
    assert to_scene(odd).warnings == []


def test_twins_and_unreferenced_vertices_are_kept() -> None:
    twins = mesh_node(meshes=[codec.Mesh(np.array([0, 1, 2, 2, 1, 0, 0, 1, 1], np.int32), "Dirt")])
    mesh = mesh_of(twins)
    assert mesh.triangle_count == 3
    assert len(mesh.points) == 4


def test_mesh_without_triangles() -> None:
    mesh = mesh_of(mesh_node(meshes=[]))
    assert (len(mesh.points), mesh.triangle_count, mesh.materials) == (4, 0, [])
    assert mesh.corner_point.dtype == mesh.material_index.dtype == np.int32


# -- animations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("animations", "said"),
    [
        ([node_animation(0)], "has no frames; left out"),
        ([node_animation(framerate=0.0)], "frame rate of 0; left out"),
        ([node_animation(framerate=NAN)], "frame rate of nan; left out"),
        ([node_animation(framerate=-24.0)], "frame rate of -24; left out"),
        ([node_animation(), node_animation(5)], "a second animation 'Default' is left out"),
        ([node_animation(present=np.array([[True, False, True]] * 3))], "without position, rotation or scale"),
        ([node_animation(rotations=np.full((3, 4), 0.1, np.float32))], "3 rotations not of unit length"),
        (
            [node_animation(scales=np.array([[1, 1, 1], [NAN, 1, 1], [1, 1, 1]], np.float32))],
            "holds NaN or infinite values; replaced by the rest pose",
        ),
    ],
)
def test_odd_node_animations(animations: list[codec.NodeAnimation], said: str) -> None:
    scene = to_scene(node(position=(7.0, 8.0, 9.0), node_animations=animations))
    assert len(scene.warnings) == 1
    assert said in scene.warnings[0]
    for clip in scene.clips:
        for track in clip.transforms:
            for values in (track.translation, track.rotation, track.scale):
                assert np.isfinite(values).all()
                assert len(values) == clip.frame_count
            np.testing.assert_allclose(np.linalg.norm(track.rotation, axis=1), 1, atol=1e-6)


def test_frames_that_lack_a_part_rest() -> None:
    present = np.array([[True, True, True], [False, False, False], [True, True, True]])
    half = np.float32(np.sqrt(0.5))
    animated = node(
        position=(7.0, 8.0, 9.0),
        rotation=(0.0, float(half), 0.0, float(half)),
        scale=(2.0, 3.0, 4.0),
        node_animations=[node_animation(present=present)],
    )
    scene = to_scene(animated)
    track, rest = scene.clips[0].transforms[0], scene.nodes[0]
    np.testing.assert_array_equal(track.translation[1], rest.translation)
    np.testing.assert_array_equal(np.abs(track.rotation[1]), np.abs(rest.rotation))
    np.testing.assert_array_equal(track.scale[1], rest.scale)
    assert track.scale[0].tolist() == [1, 1, 1]


def test_frames_are_whole_transforms() -> None:
    """The rest transform is not multiplied in; frame 0 may differ from it."""
    animated = node(position=(100.0, 0.0, 0.0), scale=(5.0, 5.0, 5.0), node_animations=[node_animation()])
    clip = to_scene(animated).clips[0]
    assert (clip.name, clip.fps, clip.frame_count) == ("Default", 24.0, 3)
    assert clip.transforms[0].translation.tolist() == [[0, -2, 1], [-3, -5, 4], [-6, -8, 7]]
    assert clip.transforms[0].scale.tolist() == [[1, 1, 1]] * 3


def test_rotations_do_not_jump() -> None:
    rotations = np.tile(np.float32([0, 0, 0, 1]), (4, 1)) * np.float32([[1], [-1], [1], [-1]])
    track = to_scene(node(node_animations=[node_animation(4, rotations=rotations)])).clips[0].transforms[0]
    assert (np.einsum("ij,ij->i", track.rotation[1:], track.rotation[:-1]) > 0).all()


def test_animations_of_one_name_make_one_clip() -> None:
    scene = to_scene(
        node("Root", node_animations=[node_animation(name="A"), node_animation(name="B")]),
        node("One", 0, node_animations=[node_animation(name="B")]),
        mesh_node("Two", 0, vertex_animations=[vertex_animation(name="A")]),
    )
    assert scene.warnings == []
    assert [(clip.name, [t.target for t in clip.transforms], [v.target for v in clip.vertices]) for clip in scene.clips]
    assert {clip.name: [t.target for t in clip.transforms] for clip in scene.clips} == {"A": [0], "B": [0, 1]}
    assert {clip.name: [v.target for v in clip.vertices] for clip in scene.clips} == {"A": [2], "B": []}


def test_other_lengths_make_a_clip_of_their_own() -> None:
    scene = to_scene(
        node("Root", node_animations=[node_animation(3)]), node("One", 0, node_animations=[node_animation(4)])
    )
    assert [clip.frame_count for clip in scene.clips] == [3, 4]
    assert scene.warnings == [
        "Animation 'Default' has different lengths or rates on some nodes; imported as separate clips"
    ]


def test_unnamed_animations_get_a_name() -> None:
    assert [clip.name for clip in to_scene(node(node_animations=[node_animation(name="")])).clips] == ["Unnamed"]


@pytest.mark.parametrize(
    ("animation", "said"),
    [
        (vertex_animation(0), "has no frames"),
        (vertex_animation(framerate=0.0), "frame rate of 0"),
        (vertex_animation(moving=0), "moves 0 vertices, which do not exist"),
        (vertex_animation(moving=-1), "moves -1 vertices, which do not exist"),
        (vertex_animation(moving=5, vertices=5), "moves 5 vertices, which do not exist"),
        (vertex_animation(vertices=3), "a frame without its 4 offsets"),
    ],
)
def test_odd_vertex_animations_are_left_out(animation: codec.VertexAnimation, said: str) -> None:
    scene = to_scene(mesh_node(vertex_animations=[animation]))
    assert len(scene.warnings) == 1
    assert said in scene.warnings[0]
    assert scene.clips == []
    assert scene.nodes[0].mesh is not None


@pytest.mark.parametrize(("moving", "stored"), [(2, 2), (2, 3), (2, 4), (2, 72), (4, 4)])
def test_offsets_of_any_length_not_below_k(moving: int, stored: int) -> None:
    scene = to_scene(mesh_node(vertex_animations=[vertex_animation(moving=moving, vertices=stored)]))
    assert scene.warnings == []
    mesh = scene.nodes[0].mesh
    assert mesh is not None
    points = scene.clips[0].vertices[0].points
    assert points.shape == (3, moving, 3)
    for frame in range(3):
        step = frame * 0.25
        np.testing.assert_allclose(points[frame] - mesh.points[:moving], [[-step, -step, step]] * moving)


@pytest.mark.parametrize("rotations", [np.zeros((3, 4)), np.full((4, 4), NAN), np.zeros((0, 4))])
def test_frames_without_usable_rotations_keep_their_offsets(rotations: Any) -> None:
    animation = vertex_animation()
    animation.frames[2].properties[1] = codec.VertexProperty.of("rotation", rotations.astype(np.float32))
    scene = to_scene(mesh_node(vertex_animations=[animation]))
    assert len(scene.warnings) == 1
    assert "a frame without its 4 rotations" in scene.warnings[0]
    track = scene.clips[0].vertices[0]
    assert (track.normals, track.tangents) == (None, None)
    assert track.points.shape == (3, 4, 3)


@pytest.mark.parametrize("offset", [NAN, 3e38], ids=["NaN", "infinite sum"])
def test_vertices_with_unusable_offsets_do_not_move(offset: float) -> None:
    """Two finite numbers may have an infinite sum."""
    animation = vertex_animation()
    offsets = np.full((4, 3), offset, np.float32)
    animation.frames[1].properties[0] = codec.VertexProperty.of("offset", offsets)
    large = np.full((4, 3), 3e38, np.float32)
    scene = to_scene(
        node(
            vertex_count=4,
            properties=[codec.VertexProperty.of("position", large)],
            meshes=[codec.Mesh(np.array([0, 1, 2], np.int32), "")],
            vertex_animations=[animation],
        )
    )
    assert "NaN or infinite coordinates; those vertices do not move" in " ".join(scene.warnings)
    mesh = scene.nodes[0].mesh
    assert mesh is not None and np.isfinite(mesh.points).all()
    np.testing.assert_array_equal(scene.clips[0].vertices[0].points[1], mesh.points)


def test_few_moving_vertices_on_a_huge_mesh_do_not_fill_the_memory() -> None:
    count = 500_000
    huge = node(
        vertex_count=count,
        properties=[codec.VertexProperty("position", 4, 3, bytes(12 * count))],
        meshes=[codec.Mesh(np.array([0, 1, 2], np.int32), "")],
        vertex_animations=[vertex_animation(2000, 1, 1)],
    )
    data = TIMBERMESH.write(model(huge))
    assert len(data) < 200_000
    document = TIMBERMESH.read(data)
    tracemalloc.start()
    try:
        scene = TIMBERMESH.to_scene(document, "x")
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    assert "more than fit in memory" in scene.warnings[-1]
    assert scene.clips == []


@pytest.mark.slow
def test_crowds_of_names_take_no_time() -> None:
    """Each of these took minutes while names were searched in lists."""
    count = 16_000
    empty = np.zeros((1, 1), np.float32)
    crowd = node(vertex_count=1, properties=[codec.VertexProperty.of("position", np.zeros((1, 3), np.float32))])
    crowd.properties += [codec.VertexProperty.of(f"p{i}", empty) for i in range(count)]
    crowd.properties += [codec.VertexProperty.of(f"p{count - 1}", empty) for _ in range(count)]
    crowd.meshes = [codec.Mesh(np.zeros(3, np.int32), f"m{i}") for i in range(count)]
    crowd.node_animations = [node_animation(1, f"a{i}") for i in range(8_000)]
    mesh = mesh_of(crowd)
    assert len(mesh.materials) == count
    assert len(mesh.custom) == count


def test_millions_of_triangles_over_next_to_no_vertices_are_refused() -> None:
    crowd = codec.Mesh(np.zeros(3_000_000, np.int32), "Dirt")
    data = TIMBERMESH.write(model(mesh_node(meshes=[crowd, crowd])))
    assert len(data) < 20_000
    with pytest.raises(FormatError, match="2,000,000 triangles over 4 vertices"):
        TIMBERMESH.read(data)


def test_facts_count_what_is_stored() -> None:
    document = model(
        mesh_node(node_animations=[node_animation()], vertex_animations=[vertex_animation(framerate=25.0)]),
        with_values(mesh_node("Child", 0), "color", np.ones((4, 4))),
        node("#Slot#Entrance", 0),
    )
    facts = TIMBERMESH.facts(document)
    assert facts == {
        "version": 0,
        "nodes": 3,
        "vertices": 8,
        "triangles": 4,
        "surfaces": 2,
        "materials": 1,
        "uv_layers": 1,
        "color_layers": 1,
        "bones": 0,
        "shape_keys": 0,
        "clips": [
            {"name": "Default", "kind": "node", "frames": 3, "fps": 24.0},
            {"name": "Default", "kind": "vertex", "frames": 3, "fps": 25.0},
        ],
        "warnings": [facts["warnings"][0]],
    }
    assert "different lengths or rates" in facts["warnings"][0]


def test_bytes_in_scalar_fields_of_a_node() -> None:
    """As in protobuf, a known field with another wire type is skipped without an error."""
    message = chunk(3, scalar(1, -1) + chunk(6, b"abc") + scalar(2, 5))
    found = TIMBERMESH.read(oracle.deflate(message)).nodes[0]
    assert (found.name, found.vertex_count) == ("", 0)
