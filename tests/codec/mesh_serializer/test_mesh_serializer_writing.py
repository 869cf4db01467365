"""What becomes of scenes: refusals with the way out, files of their own or joined, numbered parts, tangents, losses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mesh_serializer_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from encoding import encode_scene
from meshferry.io_formats import api
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Role, Scene, Skeleton, Surface
from meshferry.io_formats.geometry.triangles import triangle_runs
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER

Floats = npt.NDArray[np.float32]


def grid(columns: int, rows: int, *, height: float = 0.1) -> Mesh:
    """Return a sheet of ``columns`` x ``rows`` points in the X-Y plane that looks up and waves a little."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    points = np.column_stack((x.ravel(), y.ravel(), height * np.sin(x.ravel() * 0.3 + y.ravel()))).astype(np.float32)
    a = (np.arange(columns - 1) + columns * np.arange(rows - 1)[:, None]).ravel()
    triangles = np.stack((a, a + 1, a + columns, a + 1, a + columns + 1, a + columns), axis=1).reshape(-1)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (len(points), 1))
    uv = (points[:, :2] / np.float32([columns - 1, rows - 1])).astype(np.float32)
    return Mesh(
        points,
        triangles.astype(np.int32),
        np.zeros(len(triangles) // 3, np.int32),
        [""],
        Layer("normal", normals),
        uvs=[Layer("UVMap", uv)],
    )


def scene_of(*meshes: Mesh, **settings: Any) -> Scene:
    nodes = [Node(f"Part{number}", mesh=mesh) for number, mesh in enumerate(meshes, 1)]
    return Scene("Whole", nodes, **settings)


def written(scene: Scene, **options: object) -> oracle.Plain:
    """Write a scene that is one file, as the command line does, and read it with the oracle."""
    (part,) = api.files_of(scene, MESH_SERIALIZER, options)
    return oracle.read(api.encode_part(part, MESH_SERIALIZER, options).outputs[-1].data)


def blender_points(plain: oracle.Plain) -> Floats:
    return np.array([oracle.to_blender(row) for row in plain.positions], np.float32)


# -- bounds -------------------------------------------------------------------------------------


def test_flat_meshes_get_some_thickness() -> None:
    """Section 6: half a millimetre on both sides, and a thousandth for UVs; the values stay in the middle."""
    mesh = grid(4, 4, height=0)
    mesh.uvs[0].values[:, 1] = 0.25
    plain = written(scene_of(mesh))
    assert plain.position_bounds[2:4] == tuple(np.float32([-0.0005, 0.0005]).tolist())
    assert plain.uv_bounds[2:] == tuple(np.float32([0.25 - 0.001, 0.25 + 0.001]).tolist())
    assert {row[1] for row in plain.position_steps} == {32768}
    assert max(abs(row[1]) for row in plain.positions) < 1e-8
    np.testing.assert_allclose([row[1] for row in plain.uvs], 0.25, atol=2e-8)


def test_flat_meshes_far_away_have_bounds_that_differ() -> None:
    mesh = grid(3, 3, height=0)
    mesh.points[:, 2] = 1e6
    least, most = written(scene_of(mesh)).position_bounds[2:4]
    assert least < 1e6 < most and most - least < 1


def test_one_triangle() -> None:
    mesh = grid(2, 2)
    mesh = replace(mesh, corner_point=mesh.corner_point[:3], material_index=np.zeros(1, np.int32))
    scene = scene_of(mesh)
    plain = written(scene)
    assert len(plain.triangles) == 1 and len(plain.positions) == 3
    assert scene.warnings == ["Part1: 1 vertex belongs to no triangle; left out"]
    a, b, c = np.array(plain.positions)[list(plain.triangles[0])]
    # Counter-clockwise from above in Blender, so that in the file, too, their product points up (section 3).
    assert np.cross(b - a, c - a)[1] > 0


# -- refusals -----------------------------------------------------------------------------------


def test_what_no_file_can_hold_is_refused() -> None:
    with pytest.raises(ExportError, match="There is nothing in 'Whole' that a MeshSerializer2 file can hold"):
        written(Scene("Whole"))
    bare = replace(grid(2, 2), corner_point=np.empty(0, np.int32), material_index=np.empty(0, np.int32))
    with pytest.raises(ExportError, match="'Part1' has no faces"):
        written(scene_of(bare))
    flat = grid(2, 2)
    flat.corner_point[:] = 1
    with pytest.raises(ExportError, match="'Part1' has no faces"):
        written(scene_of(flat))
    for value in (math.nan, math.inf):
        broken = grid(3, 3)
        broken.points[4, 1] = value
        with pytest.raises(ExportError, match="'Part1' has vertices with NaN or infinite coordinates; delete them"):
            written(scene_of(broken))
    endless = grid(3, 3)
    endless.points[:, 0] = np.linspace(-3e38, 3e38, 9)
    with pytest.raises(ExportError, match="Part1: it reaches beyond the numbers that the file can hold"):
        written(scene_of(endless))


@pytest.mark.filterwarnings("error")
def test_ranges_of_the_largest_numbers_give_no_numpy_warnings() -> None:
    most = float(np.finfo(np.float32).max)
    mesh = grid(3, 3)
    mesh.uvs[0].values[:] = np.resize((0, most), mesh.uvs[0].values.shape)
    mesh.surfaces = [Surface("", uv_domain=(0, 0, most, most))]
    assert list(written(scene_of(mesh)).uv_bounds) == [0, most, 0, most]


def test_broken_uvs_and_normals_are_mended() -> None:
    mesh = grid(3, 3)
    mesh.uvs[0].values[4] = (math.nan, 0.5)
    assert mesh.normal is not None
    mesh.normal.values[2:4] = (0, 0, 0), (math.inf, 0, 1)
    scene = scene_of(mesh)
    plain = written(scene)
    assert scene.warnings == [
        "Part1: 1 UV in 'UVMap' NaN or infinite; written as 0",
        "Part1: 2 normals have no direction; computed from the triangles",
    ]
    assert plain.uvs[4] == pytest.approx((0, 0), abs=2e-5)
    assert all(row[1] > 0.9 for row in plain.normals)


def test_too_many_vertices_are_refused_with_the_numbers() -> None:
    with pytest.raises(ExportError) as refusal:
        written(scene_of(grid(257, 256)))
    assert "'Part1' has 65,792 vertices" in str(refusal.value)
    assert "130,560 triangles; a file holds 65,535 vertices and 65,535 triangles" in str(refusal.value)
    many = grid(200, 200)
    with pytest.raises(ExportError, match=r"40,000 vertices, .* and 79,202 triangles"):
        written(scene_of(many))


def test_many_triangles_are_written_with_a_warning() -> None:
    (part,) = api.files_of(scene_of(grid(181, 179)), MESH_SERIALIZER)
    encoded = api.encode_part(part, MESH_SERIALIZER)
    assert len(oracle.read(encoded.outputs[-1].data).triangles) == 64_080
    assert not [message for message in encoded.messages if message.is_loss]
    assert encoded.messages[0] == (
        "32,399 vertices and 64,080 triangles; the original reader refuses more than 64,000 of either"
    )


# -- several files ------------------------------------------------------------------------------


def test_each_object_is_a_file() -> None:
    physics = Node("Shape", mesh=grid(2, 2), role=Role.PHYSICS)
    coarse = Node("Coarse", mesh=grid(2, 2), lod=1, lod_of=0)
    scene = scene_of(grid(3, 3), grid(4, 2))
    scene.nodes += [physics, coarse, Node("Empty")]
    parts = api.files_of(scene, MESH_SERIALIZER)
    assert [part.name for part in parts] == ["Part1", "Part2"]
    sizes = [len(oracle.read(api.encode_part(part, MESH_SERIALIZER).outputs[-1].data).positions) for part in parts]
    assert sizes == [9, 8]


def test_joined_objects_are_one_file() -> None:
    one, other = grid(3, 3), grid(4, 2)
    other.uvs = []
    scene = scene_of(one, other)
    shift = np.identity(4)
    shift[:3, 3] = (10, 20, 30)
    scene.nodes[1].world = shift
    plain = written(scene, mesh_files="JOINED")
    assert len(plain.positions) == 17 and len(plain.triangles) == 8 + 6
    wanted = np.concatenate((one.points, other.points + np.float32([10, 20, 30])))
    np.testing.assert_allclose(blender_points(plain), wanted, atol=3e-4)
    assert api.files_of(scene, MESH_SERIALIZER, {"mesh_files": "JOINED"})[0].name == "Whole"


@pytest.mark.parametrize(("columns", "rows"), [(257, 256), (200, 200)])
def test_large_meshes_become_numbered_files(columns: int, rows: int) -> None:
    """Parts are in order; no triangle is lost or doubled; none is larger than the original reader takes."""
    mesh = grid(columns, rows, height=0)
    scene = scene_of(mesh)
    options = {"large_meshes": "SPLIT"}
    parts = api.files_of(scene, MESH_SERIALIZER, options)
    assert [part.name for part in parts] == [f"Part1_{number}" for number in range(1, len(parts) + 1)]
    assert len(parts) == math.ceil(mesh.triangle_count / 64_000)
    (said,) = scene.warnings
    assert said.endswith(f"are more than 64,000; split into {len(parts)} files")
    assert [text for text in scene.report.messages if text.is_note] == [said], (
        "nothing is lost, so a strict run goes on"
    )
    found = []
    for part in parts:
        plain = oracle.read(api.encode_part(part, MESH_SERIALIZER, options).outputs[-1].data)
        assert max(len(plain.positions), len(plain.triangles)) <= 64_000
        x, _, z = np.rint(np.array(plain.positions)).astype(int).T
        numbers = -x - z * columns  # of the point in the sheet
        found.append(numbers[np.array(plain.triangles)[:, ::-1]])
    np.testing.assert_array_equal(np.concatenate(found), mesh.corner_point.reshape(-1, 3))


def test_small_meshes_are_not_split() -> None:
    scene = scene_of(grid(20, 20), grid(181, 170))
    assert [part.name for part in api.files_of(scene, MESH_SERIALIZER, {"large_meshes": "SPLIT"})] == ["Part1", "Part2"]
    assert scene.warnings == []


def test_parts_of_a_file_keep_its_steps() -> None:
    mesh = grid(200, 200)
    domain = (-1.0, -1.0, -1.0, 300.0, 300.0, 1.0)
    steps = np.random.default_rng(1).integers(0, 65536, (len(mesh.points), 3))
    low, high = np.array(domain[:3]), np.array(domain[3:])
    mesh.points[:] = steps / 65535 * (high - low) + low
    mesh.surfaces = [Surface("", position_domain=domain)]
    options = {"large_meshes": "SPLIT"}
    for part in api.files_of(scene_of(mesh), MESH_SERIALIZER, options):
        plain = oracle.read(api.encode_part(part, MESH_SERIALIZER, options).outputs[-1].data)
        assert plain.position_bounds == (-300.0, 1.0, -1.0, 1.0, -300.0, 1.0)


@pytest.mark.parametrize("most", [3, 4, 7, 50])
def test_runs_are_as_long_as_they_can_be(most: int) -> None:
    rng = np.random.default_rng(most)
    triangles = rng.integers(0, 60, (300, 3)).astype(np.int32)
    found = list(triangle_runs(triangles, most, 40))
    assert [row for cut in found for row in range(cut.start, cut.stop)] == list(range(300))
    for cut, following in zip(found, [*found[1:], slice(300, 300)], strict=True):
        assert len(np.unique(triangles[cut])) <= most and cut.stop - cut.start <= 40
        longer = triangles[cut.start : cut.stop + 1]
        assert following.start == 300 or len(np.unique(longer)) > most or len(longer) > 40


# -- layers -------------------------------------------------------------------------------------


def test_seams_split_vertices_and_only_seams() -> None:
    mesh = grid(3, 3)
    uv = mesh.uvs[0].at_corners(mesh.corner_point).copy()
    uv[:6] += 5
    mesh.uvs = [Layer("UVMap", uv, per_corner=True), Layer("Second", uv.copy(), per_corner=True)]
    mesh.colors = [
        Layer("Color", np.random.default_rng(0).integers(0, 255, (len(uv), 4)).astype(np.uint8), per_corner=True)
    ]
    plain = written(scene_of(mesh))
    shared = set(mesh.corner_point[:6].tolist()) & set(mesh.corner_point[6:].tolist())
    assert len(plain.positions) == 9 + len(shared)
    at_corners = np.array(plain.uvs)[np.array(plain.triangles)[:, ::-1].ravel()]
    np.testing.assert_allclose(at_corners, uv, atol=6 / 65535)


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({}, 11),
        ({"use_stored_normals": False}, 9),
        ({"use_stored_uvs": False}, 3),
        ({"use_stored_normals": False, "use_stored_uvs": False}, 1),
        ({"mesh_tangents": "ALWAYS"}, 15),
        ({"mesh_tangents": "ALWAYS", "use_stored_uvs": False}, 7),
        ({"mesh_tangents": "ALWAYS", "use_stored_normals": False}, 13),
        ({"mesh_tangents": "NEVER"}, 11),
    ],
)
def test_options_choose_what_is_written(options: dict[str, object], bits: int) -> None:
    assert written(scene_of(grid(3, 3)), **options).format == bits


def test_tangents_run_along_u() -> None:
    """bitangent = w * cross(normal, tangent) in the file's own space (section 2), where v grows."""
    mesh = grid(5, 5, height=0)
    for mirrored in (False, True):
        if mirrored:
            mesh.uvs[0].values[:, 0] *= -1
        plain = written(scene_of(mesh), mesh_tangents="ALWAYS")
        along_x = 1 if mirrored else -1
        normals, tangents = np.array(plain.normals), np.array(plain.tangents)
        np.testing.assert_allclose(tangents[:, :3], [(along_x, 0, 0)] * 25, atol=0.01)
        bitangents = np.cross(normals, tangents[:, :3]) * tangents[:, 3:]
        np.testing.assert_allclose(bitangents, [(0, 0, -1)] * 25, atol=0.01)
        assert {row[3] for row in plain.tangent_bytes} <= {1, 255}


def test_mirrored_uvs_have_tangents_of_their_own_on_both_sides() -> None:
    mesh = grid(5, 5, height=0)
    across = mesh.points[:, 0] - mesh.points[:, 0].mean()
    mesh.uvs[0].values[:, 0] = np.abs(across)
    seam = int(np.count_nonzero(across == 0))
    plain = written(scene_of(mesh), mesh_tangents="ALWAYS")
    assert seam == 5 and len(plain.positions) == 25 + seam
    for triangle in plain.triangles:
        middle = np.mean([plain.positions[corner][0] for corner in triangle])
        centre = np.mean([row[0] for row in plain.positions])
        for corner in triangle:
            along = (np.sign(middle - centre), 0, 0)
            np.testing.assert_allclose(plain.tangents[corner][:3], along, atol=0.01)
    assert len(written(scene_of(mesh)).positions) == 25, "without tangents nothing is in the way of one vertex"


def test_given_tangents_are_taken() -> None:
    mesh = grid(3, 3)
    given = np.tile(np.array([[0, 1, 0, -1]], np.float32), (9, 1))
    given[4] = 0
    mesh.tangent = Layer("tangent", given)
    plain = written(scene_of(mesh), mesh_tangents="ALWAYS")
    wanted = [(128, 128, 1, 255)] * 9
    assert plain.tangent_bytes[:4] + plain.tangent_bytes[5:] == wanted[:8]
    across = np.dot(plain.tangents[4][:3], plain.normals[4])
    assert abs(across) < 0.01 and np.linalg.norm(plain.tangents[4][:3]) == pytest.approx(1)
    assert written(scene_of(mesh)).format == 11, "tangents of other formats are not written unasked"


def test_tangents_need_a_uv_map() -> None:
    mesh = grid(3, 3)
    mesh.uvs = []
    scene = scene_of(mesh)
    assert written(scene, mesh_tangents="ALWAYS").format == 3
    assert scene.warnings == ["Part1: it has no UV map, so no tangents were written"]


def test_losses_are_named() -> None:
    mesh = grid(3, 3)
    mesh.materials = ["Bark", "Leaf"]
    mesh.uvs.append(Layer("Second", mesh.uvs[0].values))
    mesh.colors = [Layer("Color", np.zeros((9, 4), np.uint8))]
    mesh.joint_indices, mesh.joint_weights = np.zeros((9, 1), np.int32), np.ones((9, 1), np.float32)
    scene = scene_of(mesh)
    scene.skeletons = [Skeleton("Rig")]
    _, said = encode_scene(scene, MESH_SERIALIZER)
    assert {text for text in said if "not carried over" in text} >= {
        "2 materials not carried over: 'Bark', 'Leaf' of 'Part1'",
        "UV layer 'Second' of object 'Part1' not carried over",
        "colour layer 'Color' of object 'Part1' not carried over",
        "1 weighted mesh not carried over: 'Part1'",
    }


def test_written_files_are_the_same_again() -> None:
    mesh = grid(9, 7)
    assert written(scene_of(mesh)) == written(scene_of(mesh))
    first = MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(scene_of(mesh)))
    again = MESH_SERIALIZER.to_scene(MESH_SERIALIZER.read(first), "Part1")
    assert MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(again)) == first
