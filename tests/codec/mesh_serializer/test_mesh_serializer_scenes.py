"""Real files compared with an independent oracle; unchanged values are written exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mesh_serializer_oracle as oracle
import numpy as np
import numpy.typing as npt
import pytest
from meshferry.io_formats.core.scene import Layer, Mesh, Scene
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshfuzz import mesh_serializer_seeds as made

AXES = ("UNITY", "SWAP_YZ")
FAMILY = made.family()

Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def real(samples: Path) -> dict[str, bytes]:
    folder = samples / "unity_meshserializer"
    found = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.suffix in (".data", ".bin")}
    if not found:
        pytest.skip(f"no real MeshSerializer2 files in {samples}")
    assert len(found) == 6
    return found


def scene_of(data: bytes, axes: str = "UNITY") -> Scene:
    return MESH_SERIALIZER.to_scene(MESH_SERIALIZER.read(data), "Thing", {"axes": axes})


def mesh_of(scene: Scene) -> Mesh:
    (node,) = scene.nodes
    assert node.mesh is not None
    assert (node.translation, node.rotation, node.scale) == ((0, 0, 0), (1, 0, 0, 0), (1, 1, 1))
    return node.mesh


def values(layer: Layer | None) -> npt.NDArray[np.float32]:
    assert layer is not None and layer.index is None and not layer.per_corner
    found: npt.NDArray[np.float32] = layer.values
    return found


def back(scene: Scene, **options: object) -> bytes:
    (part,) = MESH_SERIALIZER.files_of(scene, options)
    return MESH_SERIALIZER.write(MESH_SERIALIZER.from_scene(part, options))


def blender_rows(rows: list[oracle.Row], axes: str) -> Floats:
    return np.array([oracle.to_blender(row, axes) for row in rows])


@pytest.mark.parametrize("axes", AXES)
def test_values_are_those_of_the_oracle(real: dict[str, bytes], axes: str) -> None:
    for name, data in real.items():
        plain = oracle.read(data)
        mesh = mesh_of(scene_of(data, axes))
        points = blender_rows(plain.positions, axes)
        far = np.abs(points).max()
        np.testing.assert_allclose(mesh.points, points, rtol=0, atol=far * 2**-23, err_msg=name)
        wanted_uvs = np.array(plain.uvs)
        np.testing.assert_allclose(values(mesh.uvs[0]), wanted_uvs, rtol=0, atol=np.abs(wanted_uvs).max() * 2**-23)
        normals = blender_rows(plain.normals, axes)
        whole = normals.any(axis=1)
        np.testing.assert_allclose(values(mesh.normal)[whole], normals[whole], rtol=0, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(np.linalg.norm(values(mesh.normal), axis=1), 1, atol=1e-6)
        wanted = [row[::-1] for row in plain.triangles]
        assert mesh.corner_point.reshape(-1, 3).tolist() == [list(row) for row in wanted]
        assert mesh.materials == [""] and not mesh.material_index.any()


def test_zero_normals_are_computed_from_the_triangles(real: dict[str, bytes]) -> None:
    data = real["nickwelp__NameThisTrack_InsideWall.data"]
    plain = oracle.read(data)
    zero = [number for number, row in enumerate(plain.normal_bytes) if row == (128, 128, 128)]
    assert zero
    scene = scene_of(data)
    assert scene.warnings == [f"Thing: {len(zero)} normals have no direction; computed from the triangles"]
    mesh = mesh_of(scene)
    around = areas(mesh)
    for vertex in zero:
        faces = around[(mesh.corner_point.reshape(-1, 3) == vertex).any(axis=1)]
        total = faces.sum(axis=0)
        length = np.linalg.norm(total)
        wanted = total / length if length else (0, 0, 1)  # triangles back to back have no direction together
        np.testing.assert_allclose(values(mesh.normal)[vertex], wanted, atol=1e-4)


def areas(mesh: Mesh) -> Floats:
    """Return the triangles' normals, as long as twice their area."""
    corners = mesh.points[mesh.corner_point].reshape(-1, 3, 3).astype(np.float64)
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])


@pytest.mark.parametrize("axes", AXES)
def test_faces_look_where_their_normals_do(real: dict[str, bytes], axes: str) -> None:
    """Blender's faces look to where their corners run counter-clockwise (section 3)."""
    for name, data in real.items():
        mesh = mesh_of(scene_of(data, axes))
        normals = values(mesh.normal)[mesh.corner_point].reshape(-1, 3, 3).sum(axis=1)
        along = np.einsum("ij,ij->i", areas(mesh), normals)
        backwards = np.count_nonzero(along < 0)
        assert backwards <= 0.02 * len(along), f"{name}: {backwards} of {len(along)} look backwards"


def bitangents_along_v(mesh: Mesh) -> tuple[int, int]:
    """Count triangles whose bitangents go the way in which v grows, and all that have an area in the UV map."""
    triangles = mesh.corner_point.reshape(-1, 3)
    corners = mesh.points[triangles].astype(np.float64)
    uv = values(mesh.uvs[0])[triangles].astype(np.float64)
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    first, second = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    area = first[:, 0] * second[:, 1] - second[:, 0] * first[:, 1]
    along_v = (other * first[:, :1] - one * second[:, :1]) * np.sign(area)[:, None]
    tangents = values(mesh.tangent)
    bitangents = np.cross(values(mesh.normal), tangents[:, :3]) * tangents[:, 3:]
    right = np.einsum("ij,ij->i", bitangents[triangles].sum(axis=1), along_v) > 0
    return int(np.count_nonzero(right & (area != 0))), int(np.count_nonzero(area))


@pytest.mark.parametrize("axes", AXES)
def test_bitangents_follow_v(real: dict[str, bytes], axes: str) -> None:
    mesh = mesh_of(scene_of(real["3dify__model.bin"], axes))
    signs = values(mesh.tangent)[:, 3]
    # Section 2: 39,835 vertices have -1 in the file, which is 1 in a space of the other hand.
    assert (np.count_nonzero(signs == 1), np.count_nonzero(signs == -1)) == (39_835, 1_732)
    right, all_triangles = bitangents_along_v(mesh)
    assert right > 0.995 * all_triangles, f"{right} of {all_triangles}"


@pytest.mark.parametrize("axes", AXES)
def test_untouched_files_come_back(real: dict[str, bytes], axes: str) -> None:
    for name, data in real.items():
        assert back(scene_of(data, axes), axes=axes) == data, name


@pytest.mark.parametrize("name", [name for name in FAMILY if name.startswith("2, format")])
def test_untouched_made_files_come_back(name: str) -> None:
    assert back(scene_of(FAMILY[name])) == FAMILY[name]


@pytest.mark.parametrize("name", ["submeshes, format 11", "cache"])
def test_variants_become_ordinary_meshes(name: str) -> None:
    """Values and triangles stay; what only the variant has is dropped."""
    assert back(scene_of(FAMILY[name])) == made.current()


def test_version_one_is_quantised() -> None:
    data = made.first()
    first, plain = MESH_SERIALIZER.read(data), oracle.read(back(scene_of(data), mesh_tangents="ALWAYS"))
    assert plain.format == 15
    steps = np.diff(np.reshape(plain.position_bounds, (3, 2)))[:, 0] / 65535
    assert (np.abs(np.array(plain.positions) - first.positions) <= 0.501 * steps + 1e-7).all()
    assert plain.triangles == [(0, 1, 2), (2, 3, 4)]
    assert [row[3] for row in plain.tangents] == [1, -1, 1, -1, 1]


def test_bounds_are_kept_only_for_their_own_values(real: dict[str, bytes]) -> None:
    """A mesh that was moved by less than a step gets bounds of its own, and is right to half a step."""
    data = real["tedmx__SerializedMesh.data"]
    scene = scene_of(data)
    mesh = mesh_of(scene)
    before = oracle.read(data)
    step = min(np.diff(np.reshape(before.position_bounds, (3, 2)))[:, 0]) / 65535
    scene.nodes[0].mesh = replace(mesh, points=mesh.points + np.float32(0.4 * step))
    plain = oracle.read(back(scene))
    assert plain.position_bounds != before.position_bounds
    assert plain.uv_bounds == before.uv_bounds and plain.uv_steps == before.uv_steps
    wanted = mesh.points.astype(np.float64) + 0.4 * step
    assert np.abs(blender_rows(plain.positions, "UNITY") - wanted).max() < 0.51 * step * 1.2


def test_a_mesh_with_less_of_its_file_keeps_the_bounds(real: dict[str, bytes]) -> None:
    scene = scene_of(real["zootyducky__SerializedMesh.data"])
    mesh = mesh_of(scene)
    before = oracle.read(real["zootyducky__SerializedMesh.data"])
    half = len(mesh.corner_point) // 6 * 3
    scene.nodes[0].mesh = replace(
        mesh, corner_point=mesh.corner_point[:half], material_index=mesh.material_index[: half // 3]
    )
    plain = oracle.read(back(scene))
    assert plain.position_bounds == before.position_bounds
    assert len(plain.triangles) == half // 3
    assert set(plain.position_steps) < set(before.position_steps)
    assert any("to no triangle; left out" in text for text in scene.warnings)


def test_turned_normals_are_rounded_anew(real: dict[str, bytes]) -> None:
    """Stored bytes count only where they still mean the same."""
    scene = scene_of(real["3dify__model.bin"])
    mesh = mesh_of(scene)
    normals = values(mesh.normal).copy()
    normals[::2] = normals[::2, [1, 2, 0]]
    assert mesh.normal is not None
    scene.nodes[0].mesh = replace(mesh, normal=replace(mesh.normal, values=normals))
    before, plain = oracle.read(real["3dify__model.bin"]), oracle.read(back(scene))
    assert plain.normal_bytes[1::2] == before.normal_bytes[1::2]
    off = np.abs(blender_rows(plain.normals, "UNITY")[::2] - normals[::2])
    assert off.max() < 1.01 / 127
    assert plain.tangent_bytes[1::2] == before.tangent_bytes[1::2]


def test_tangents_of_other_uvs_are_not_the_old_ones() -> None:
    """Blender recomputes tangents; unchanged vertices keep the bytes of the file."""
    scene = scene_of(made.current(bits=15))
    mesh = mesh_of(scene)
    assert mesh.tangent is not None
    anew = replace(mesh.tangent, values=np.tile(np.array([[0, 0, 1, 1]], np.float32), (7, 1)))
    scene.nodes[0].mesh = replace(mesh, tangent=anew)
    before = oracle.read(made.current(bits=15))
    assert oracle.read(back(scene)).tangent_bytes == before.tangent_bytes
    turned = replace(mesh.uvs[0], values=mesh.uvs[0].values[:, ::-1] * np.float32(0.37))
    scene.nodes[0].mesh = replace(mesh, tangent=anew, uvs=[turned])
    assert oracle.read(back(scene)).tangent_bytes == [(128, 255, 128, 1)] * 7
