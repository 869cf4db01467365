"""Blender's own Collada importer reads upload sets: same triangles, UVs, materials, weights and rest places.

It takes the rest pose from INV_BIND, ignores the joint nodes' matrices and drops the scale of collision volumes: those
are judged by ``collada_oracle`` in the codec's tests.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import collada_oracle
import numpy as np
import numpy.typing as npt
import pytest
import upload_scenes
from load_package import SAMPLES
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core import shading
from meshferry.io_formats.disk.file_sets import write_outputs
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

bpy = pytest.importorskip("bpy", reason="Blender is absent")

pytestmark = [
    pytest.mark.needs_bpy,
    pytest.mark.skipif(
        not getattr(bpy.app.build_options, "collada", False),
        reason=f"Blender {bpy.app.version_string} has no Collada importer",
    ),
]

SUFFIXES = ("", "_LOD2", "_LOD1", "_LOD0")


def png(size: int) -> bytes:
    """Return a grey square image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = size.to_bytes(4, "big") * 2 + bytes((8, 0, 0, 0, 0))
    rows = (b"\0" + b"\x80" * size) * size
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def imported(path: Path) -> dict[str, Any]:
    """Import a file into an empty scene; return its meshes' objects by their names in the file."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert bpy.ops.wm.collada_import(filepath=str(path)) == {"FINISHED"}
    return {obj.data.name: obj for obj in bpy.data.objects if obj.type == "MESH"}


def corners_of(obj: Any, slot: int) -> npt.NDArray[np.float64]:
    """Return position in the world, normal in the world and UV of the corners of one slot's triangles, (C, 8)."""
    mesh = obj.data
    count = len(mesh.polygons)
    sizes, index = np.empty(count, np.int32), np.empty(count, np.int32)
    mesh.polygons.foreach_get("loop_total", sizes)
    mesh.polygons.foreach_get("material_index", index)
    assert (sizes == 3).all()
    vertex = np.empty(3 * count, np.int32)
    mesh.loops.foreach_get("vertex_index", vertex)
    points = np.empty((len(mesh.vertices), 3), np.float32)
    mesh.vertices.foreach_get("co", points.reshape(-1))
    normals = np.empty((3 * count, 3), np.float32)
    mesh.corner_normals.foreach_get("vector", normals.reshape(-1))
    uvs = np.full((3 * count, 2), np.nan, np.float32)
    if mesh.uv_layers:
        mesh.uv_layers[0].data.foreach_get("uv", uvs.reshape(-1))
    world = np.array(obj.matrix_world)
    turned = normals.astype(np.float64) @ np.linalg.inv(world[:3, :3])
    turned /= np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
    placed = points[vertex].astype(np.float64) @ world[:3, :3].T + world[:3, 3]
    return np.hstack((placed, turned, uvs))[np.repeat(index == slot, 3)]


def wanted_corners(mesh: sc.Mesh, place: npt.NDArray[np.float64], slot: int) -> npt.NDArray[np.float64]:
    assert mesh.normal is not None
    normals = mesh.normal.at_corners(mesh.corner_point).astype(np.float64) @ np.linalg.inv(place[:3, :3])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points = mesh.points[mesh.corner_point].astype(np.float64) @ place[:3, :3].T + place[:3, 3]
    corners = np.hstack((points, normals, mesh.uvs[0].at_corners(mesh.corner_point)))
    return corners[np.repeat(mesh.material_index == slot, 3)]


def same_triangles(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64], normals: float = 2e-3, tolerance: float = 1e-5
) -> None:
    """Assert that corners are the same, triangle by triangle in their order; each may begin at another corner.

    Blender stores custom normals in 16 bits, so that they come back less exactly.
    """
    assert one.shape == other.shape
    wanted, found = one.reshape(-1, 3, 8), other.reshape(-1, 3, 8)
    allowed = np.array([tolerance] * 3 + [normals] * 3 + [1e-6] * 2)
    turns = [(np.abs(wanted - np.roll(found, turn, axis=1)) / allowed).max(axis=(1, 2)) for turn in range(3)]
    assert float(np.min(turns, axis=0).max()) <= 1


def dense_weights(obj: Any) -> dict[str, npt.NDArray[np.float64]]:
    """Return the weights of each vertex group, (P,)."""
    names = [group.name for group in obj.vertex_groups]
    found = {name: np.zeros(len(obj.data.vertices)) for name in names}
    for vertex in obj.data.vertices:
        for element in vertex.groups:
            found[names[element.group]][vertex.index] = element.weight
    return found


def test_static_objects(tmp_path: Path) -> None:
    scene = upload_scenes.static_scene()
    api.write_scene(scene, tmp_path / "hut.dae", SECOND_LIFE_UPLOAD)
    node = scene.nodes[0]
    place = upload_scenes.matrix(node.translation, node.rotation, node.scale)
    for suffix, level in zip(SUFFIXES, scene.nodes, strict=False):
        objects = imported(tmp_path / f"hut{suffix}.dae")
        assert set(objects) == {"garden_hut", "door"}
        assert level.mesh is not None
        hut = objects["garden_hut"]
        names = [material.name for material in hut.data.materials]
        assert sorted(names) == ["stone", "wood"]
        for slot, name in enumerate(names):
            if name not in level.mesh.materials:
                assert len(corners_of(hut, slot)) == 3, "one added triangle"
                continue
            mesh_slot = level.mesh.materials.index(name)
            same_triangles(wanted_corners(level.mesh, place, mesh_slot), corners_of(hut, slot))
        door = scene.nodes[-1]
        assert door.mesh is not None
        same_triangles(
            wanted_corners(door.mesh, upload_scenes.matrix(door.translation), 0), corners_of(objects["door"], 0)
        )


def test_physics(tmp_path: Path) -> None:
    scene = upload_scenes.static_scene()
    api.write_scene(scene, tmp_path / "hut.dae", SECOND_LIFE_UPLOAD)
    objects = imported(tmp_path / "hut_PHYS.dae")
    assert {name: len(obj.data.polygons) for name, obj in objects.items()} == {"garden_hut": 12}
    world = np.array(objects["garden_hut"].matrix_world)
    node = scene.nodes[0]
    assert np.allclose(world, upload_scenes.matrix(node.translation, node.rotation, node.scale), atol=1e-6)


def test_mirrored_objects(tmp_path: Path) -> None:
    scene = upload_scenes.static_scene(scale=(-2.0, 1.0, 3.0))
    api.write_scene(scene, tmp_path / "hut.dae", SECOND_LIFE_UPLOAD)
    obj = imported(tmp_path / "hut.dae")["garden_hut"]
    assert obj.matrix_world.determinant() > 0
    for polygon in obj.data.polygons:
        assert polygon.normal.dot(polygon.center) > 0, "inside out"


def test_materials(tmp_path: Path) -> None:
    (tmp_path / "planks.png").write_bytes(png(4))
    scene = upload_scenes.static_scene()
    scene.materials[0].texture = shading.Texture("planks.png", str(tmp_path / "planks.png"), width=4, height=4)
    folder = tmp_path / "out"
    folder.mkdir()
    api.write_scene(scene, folder / "hut.dae", SECOND_LIFE_UPLOAD)
    imported(folder / "hut.dae")
    wood, stone = (bpy.data.materials[name] for name in ("wood", "stone"))
    textures = [node.image for node in wood.node_tree.nodes if node.type == "TEX_IMAGE"]
    assert [Path(bpy.path.abspath(image.filepath)).resolve() for image in textures] == [folder / "hut_planks.png"]
    assert textures[0].size[:] == (4, 4)
    shader = next(node for node in stone.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    assert shader.inputs["Base Color"].default_value[:3] == pytest.approx([0.484529] * 3, abs=1e-5)
    assert shader.inputs["Emission Color"].default_value[:3] == pytest.approx([0.75] * 3, abs=1e-5)


@pytest.mark.parametrize("heights", [upload_scenes.TRUNK, upload_scenes.VOLUMES], ids=["bones", "volumes"])
@pytest.mark.parametrize("facing", ["-Y", "+X"])
def test_rigs(tmp_path: Path, facing: str, heights: dict[str, float]) -> None:
    scene = upload_scenes.rigged_scene(facing, heights=heights, rolled=True)
    api.write_scene(scene, tmp_path / "body.dae", SECOND_LIFE_UPLOAD)
    table = collada_oracle.avatar()
    for suffix, rings in zip(SUFFIXES, (9, 7, 5, 3), strict=True):
        obj = imported(tmp_path / f"body{suffix}.dae")["body"]
        wanted = upload_scenes.tube(rings)
        for slot, name in enumerate(material.name for material in obj.data.materials):
            mesh_slot = wanted.materials.index(name)
            same_triangles(wanted_corners(wanted, np.identity(4), mesh_slot), corners_of(obj, slot))
        armature = next(modifier.object for modifier in obj.modifiers if modifier.type == "ARMATURE")
        place = np.array(armature.matrix_world)
        for bone in armature.data.bones:
            head = (place @ np.array(bone.matrix_local))[:3, 3]
            assert np.allclose(head, table[bone.name].world[:3, 3], atol=1e-5), bone.name
        found = dense_weights(obj)
        mesh = scene.nodes[(9, 7, 5, 3).index(rings)].mesh
        assert mesh is not None
        assert mesh.joint_indices is not None
        assert mesh.joint_weights is not None
        assert set(found) <= set(heights)
        for name in heights:
            joint = next(number for number, joint in enumerate(scene.skeletons[0].joints) if joint.name == name)
            weights = np.where(mesh.joint_indices == joint, mesh.joint_weights, 0).sum(axis=1)
            assert np.allclose(found.get(name, 0), weights, atol=1e-5), name


def _samples() -> list[str]:
    folder = SAMPLES / "secondlife"
    found = [*folder.glob("*.llmesh"), *folder.glob("*.mesh"), *folder.glob("synthetic/*.llmesh")]
    return sorted(str(path.relative_to(folder)) for path in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", _samples())
def test_samples(samples: Path, tmp_path: Path, name: str) -> None:
    """The importer and the oracle, which share nothing, read the same of what real assets become."""
    scene = api.read_scene(samples / "secondlife" / name)
    document = SECOND_LIFE_UPLOAD.from_scene(scene)
    outputs = SECOND_LIFE_UPLOAD.write_files(document, "x")
    write_outputs(tmp_path / "x.dae", outputs)
    for output in (output for output in outputs if output.name in ("x.dae", "x_LOD1.dae")):
        instance = collada_oracle.parse(output.data).instances[0]
        obj = next(iter(imported(tmp_path / output.name).values()))
        assert len(obj.data.vertices) == len(instance.geometry.positions)
        symbols = {look.name: symbol for symbol, look in instance.looks.items()}
        for slot, material in enumerate(obj.data.materials):
            face = instance.geometry.faces[symbols[material.name]]
            expected = np.hstack((face[:, :3] @ instance.world[:3, :3].T + instance.world[:3, 3], face[:, 6:]))
            found = corners_of(obj, slot)[:, [0, 1, 2, 6, 7]]
            assert found.shape[0] <= expected.shape[0]
            if len(found) == len(expected):  # Blender drops twins: two triangles on the same vertices
                assert np.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)
        if instance.skin is not None:
            found_weights = dense_weights(obj)
            for number, joint in enumerate(instance.skin.joints):
                weights = instance.skin.weights[:, number]
                assert np.allclose(found_weights.get(joint, 0), weights, atol=1e-5), joint
