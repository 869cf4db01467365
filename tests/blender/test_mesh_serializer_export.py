"""What Blender shows is what a MeshSerializer2 file holds: axes, transforms, normals, tangents; glTF is a witness."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import numpy as np
import pytest
import round_trips
from mesh_serializer_ways import corners_of, exported, to_file
from meshfuzz.mesh_serializer_seeds import directions, pack

pytestmark = pytest.mark.needs_bpy

TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], np.float64)
"""Its legs point along Blender's axes, each of another length."""
FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


def add_mesh(name: str = "legs", points: Any = TETRAHEDRON, faces: Any = FACES) -> Any:
    """Add an object of a mesh to the scene."""
    import bpy

    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([tuple(point) for point in points], [], faces)
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def add_ball() -> Any:
    """Add a smooth monkey with UVs, whose quads MikkTSpace gets as they are."""
    import bpy

    bpy.ops.mesh.primitive_monkey_add(calc_uvs=True)
    bpy.ops.object.shade_smooth()
    return bpy.context.object


def same_place(stored: made.Stored, points: Any, faces: Any = FACES) -> None:
    """See that a file holds just the triangles of points in Blender's axes, seen from outside, whatever their order."""
    wanted = to_file(points)[np.array(faces)[:, ::-1]]  # a mirrored space is wound the other way round
    found = corners_of(stored)
    assert len(found) == len(wanted)
    for triangle in wanted:
        turns = np.stack([np.roll(triangle, turn, axis=0) for turn in range(3)])
        away = np.abs(found[:, None] - turns[None]) / stored.step
        assert away.max(axis=(2, 3)).min() <= 0.505, triangle


# -- space --------------------------------------------------------------------------------------------------------


def test_axes_lie_as_the_page_says() -> None:
    """Section 3: Blender's x is Unity's -x, its y Unity's -z, its z Unity's y; faces look outwards in Unity."""
    stored = exported(add_mesh()).stored
    np.testing.assert_allclose(stored.bounds, [[-1, 0], [0, 3], [-2, 0]], atol=1e-6)
    same_place(stored, TETRAHEDRON)
    centre = corners_of(stored).reshape(-1, 3).mean(axis=0)
    for triangle, normals in zip(corners_of(stored), directions(stored.normals)[stored.triangles], strict=True):
        outwards = triangle.mean(axis=0) - centre
        assert np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0]) @ outwards > 0
        assert (normals @ outwards > 0).all()


def test_swapped_axes_are_turned_about_the_vertical() -> None:
    stored = exported(add_mesh(), file_options={"axes": "SWAP_YZ"}).stored
    np.testing.assert_allclose(stored.bounds, [[0, 1], [0, 3], [0, 2]], atol=1e-6)
    flipped = TETRAHEDRON * (-1, -1, 1)
    same_place(stored, flipped)


@pytest.mark.parametrize("negative", [False, True], ids=["plain", "mirrored"])
@pytest.mark.parametrize("space", ["TURNED_AND_SCALED", "OWN", "WORLD"])
def test_transforms_that_nobody_applied(space: str, negative: bool) -> None:
    """An object that is moved, turned, scaled, mirrored, and hangs on another that is, too."""
    import bpy
    from mathutils import Euler, Matrix

    parent = bpy.data.objects.new("parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.matrix_world = Matrix.Translation((5, 0, 0)) @ Euler((0, 0, 1)).to_matrix().to_4x4()
    obj = add_mesh()
    obj.parent = parent
    obj.location, obj.rotation_euler = (1, 2, 3), (0.3, 0.2, 0.1)
    obj.scale = (-1.5, 1, 2) if negative else (1.5, 1, 2)
    bpy.context.view_layer.update()
    matrix = np.array(obj.matrix_world, np.float64)
    if space == "OWN":
        matrix = np.identity(4)
    if space == "TURNED_AND_SCALED":
        matrix[:3, 3] = 0
    stored = exported(obj, space=space).stored
    mirrored = negative and space != "OWN"
    faces = [face[::-1] for face in FACES] if mirrored else FACES
    same_place(stored, TETRAHEDRON @ matrix[:3, :3].T + matrix[:3, 3], faces)
    centre = corners_of(stored).reshape(-1, 3).mean(axis=0)
    outwards = corners_of(stored).mean(axis=1) - centre
    assert (np.einsum("tcj,tj->tc", directions(stored.normals)[stored.triangles], outwards) > 0).all()


def test_modifiers_and_instances_are_exported_as_they_look() -> None:
    import bpy

    arrayed = add_mesh("arrayed")
    modifier = arrayed.modifiers.new("Array", "ARRAY")
    modifier.use_relative_offset, modifier.use_constant_offset = False, True
    modifier.constant_offset_displace = (10, 0, 0)
    points = np.concatenate((TETRAHEDRON, TETRAHEDRON + np.array((10, 0, 0))))
    faces = (*FACES, *(tuple(corner + 4 for corner in face) for face in FACES))
    same_place(exported(arrayed).stored, points, faces)
    same_place(exported(arrayed, use_modifiers=False).stored, TETRAHEDRON)

    shown = bpy.data.collections.new("Shown")
    shown.objects.link(arrayed)
    bpy.context.scene.collection.objects.unlink(arrayed)
    instancer = bpy.data.objects.new("instancer", None)
    instancer.instance_type, instancer.instance_collection = "COLLECTION", shown
    bpy.context.scene.collection.objects.link(instancer)
    same_place(exported(instancer).stored, points, faces)


def test_what_has_the_same_normal_and_uv_is_one_vertex() -> None:
    import bpy

    bpy.ops.mesh.primitive_cube_add(calc_uvs=True)
    flat_sided = exported(bpy.context.object).stored
    assert (len(flat_sided.positions), len(flat_sided.triangles)) == (24, 12)
    bpy.ops.object.shade_smooth()
    assert len(exported(bpy.context.object).stored.positions) == 14, "a cross of six squares has 14 corners"
    assert len(exported(bpy.context.object, file_options={"use_stored_uvs": False}).stored.positions) == 8


def test_what_moves_is_exported_as_it_looks_and_said() -> None:
    """An armature's pose, shape keys, an action: no file of one static mesh holds them."""
    import bpy

    obj = add_mesh()
    assert not exported(obj).said
    bpy.ops.object.armature_add()
    rig = bpy.context.object
    rig.name = "rig"
    obj.modifiers.new("Armature", "ARMATURE").object = rig
    obj.vertex_groups.new(name=rig.data.bones[0].name).add(range(4), 1.0, "REPLACE")
    rig.pose.bones[0].location = (0, 4, 0)  # bones point along their y, this one upwards
    posed = exported(obj)
    same_place(posed.stored, TETRAHEDRON + np.array((0, 0, 4)))
    assert posed.said == ["'legs': exported as the armature poses it; the file holds no bones"]
    unposed = exported(obj, use_modifiers=False)
    same_place(unposed.stored, TETRAHEDRON)
    assert unposed.said == ["'legs': exported without its armature; the file holds no bones"]
    obj.modifiers.clear()

    obj.shape_key_add(name="Basis")
    long = obj.shape_key_add(name="Long")
    long.data[1].co.x, long.value = 5, 0.5
    shaped = exported(obj)
    same_place(shaped.stored, TETRAHEDRON * np.array((3, 1, 1)))
    assert shaped.said == ["'legs': exported as its shape keys make it look; the file holds none"]
    obj.shape_key_clear()

    obj.keyframe_insert("location", frame=1)
    assert not exported(obj).said
    obj.keyframe_insert("location", frame=1)
    obj.location.x = 2
    obj.keyframe_insert("location", frame=2)
    (said,) = exported(obj).said
    assert said == "'legs': exported as it looks at the current frame; the file holds no animation"


# -- tangents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["UNITY", "SWAP_YZ"])
def test_tangents_are_those_of_blender(axes: str) -> None:
    """Each corner's tangent is what MikkTSpace in Blender says, rounded to a byte, with the side of the bitangent."""
    ball = add_ball()
    mesh = ball.data
    mesh.calc_loop_triangles()
    loops = np.empty(len(mesh.loop_triangles) * 3, np.int32)
    mesh.loop_triangles.foreach_get("loops", loops)
    mesh.calc_tangents(uvmap=mesh.uv_layers[0].name)
    tangents, sides = np.empty(len(mesh.loops) * 3, np.float32), np.empty(len(mesh.loops), np.float32)
    mesh.loops.foreach_get("tangent", tangents)
    mesh.loops.foreach_get("bitangent_sign", sides)
    mesh.free_tangents()
    stored = exported(ball, file_options={"mesh_tangents": "ALWAYS", "axes": axes}).stored
    assert exported(ball, file_options={"axes": axes}).stored.tangents is None, "only when asked for"

    wanted = to_file(tangents.reshape(-1, 3)[loops]).reshape(-1, 3, 3)[:, ::-1]
    if axes == "SWAP_YZ":
        wanted = wanted * (-1, 1, -1)
    found = stored.tangents[stored.triangles]
    away = np.abs(found[..., :3] - (wanted * 127 + 128)).max(axis=-1)
    assert np.quantile(away, 0.99) <= 0.51
    assert away.max() <= 1, "corners that are one vertex have one tangent"
    np.testing.assert_array_equal(found[..., 3], np.where(-sides[loops].reshape(-1, 3)[:, ::-1] < 0, 1, 255))


def test_bitangents_follow_the_uv_map() -> None:
    """Section 3: w * cross(normal, tangent) points the way in which v grows, in the file's own axes."""
    ball = add_ball()
    ball.data.uv_layers[0].uv[0].vector.x += 0  # the map is the monkey's own, one half of it mirrored
    stored = exported(ball, file_options={"mesh_tangents": "ALWAYS"}).stored
    corners, uv = corners_of(stored), stored.uv[stored.triangles]
    edges, changes = corners[:, 1:] - corners[:, :1], uv[:, 1:] - uv[:, :1]
    area = changes[:, 0, 0] * changes[:, 1, 1] - changes[:, 0, 1] * changes[:, 1, 0]
    along_v = (edges[:, 1] * changes[:, 0, :1] - edges[:, 0] * changes[:, 1, :1]) * np.sign(area)[:, None]
    along_u = (edges[:, 0] * changes[:, 1, 1:] - edges[:, 1] * changes[:, 0, 1:]) * np.sign(area)[:, None]
    normals = directions(stored.normals)[stored.triangles].mean(axis=1)
    tangents = directions(stored.tangents)[stored.triangles]
    bitangents = tangents[:, 0, 3:] * np.cross(normals, tangents[..., :3].mean(axis=1))
    assert np.mean(np.einsum("ij,ij->i", bitangents, along_v) > 0) > 0.99
    assert np.mean(np.einsum("ij,ij->i", tangents[..., :3].mean(axis=1), along_u) > 0) > 0.99


@pytest.mark.parametrize(
    ("choice", "has_stored", "computed"),
    [("AUTO", False, 0), ("AUTO", True, 1), ("ALWAYS", False, 1), ("ALWAYS", True, 1), ("NEVER", True, 0)],
)
def test_only_tangents_for_the_file_are_computed(monkeypatch, choice: str, has_stored: bool, computed: int) -> None:
    """A seam of mirrored UVs is in each of the files, which are the same as if tangents were always computed."""
    from meshferry.blender_data.exporting.reading import mesh_reading
    from meshferry.io_formats.core.format import FileFormat

    obj = add_ball()
    if has_stored:
        (obj,) = round_trips.imported(exported(obj, file_options={"mesh_tangents": "ALWAYS"}).data).made.objects
    calls = []
    compute = mesh_reading._tangents
    monkeypatch.setattr(mesh_reading, "_tangents", lambda *args: calls.append(1) or compute(*args))
    data = exported(obj, file_options={"mesh_tangents": choice}).data
    assert len(calls) == computed
    monkeypatch.setattr(FileFormat, "capabilities_with", lambda self, _options: self.capabilities)
    assert exported(obj, file_options={"mesh_tangents": choice}).data == data


# -- a witness ----------------------------------------------------------------------------------------------------


def gltf_triangles(path: Path) -> Any:
    """Return positions, normals and UVs, (T, 3, 8) of the corners of all triangles of a .glb with one mesh."""
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    about, binary = json.loads(data[20 : 20 + length]), data[20 + length + 8 :]
    kinds = {5126: "<f4", 5123: "<u2", 5125: "<u4"}
    widths = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}

    def values(number: int) -> Any:
        accessor = about["accessors"][number]
        view = about["bufferViews"][accessor["bufferView"]]
        start, width = view.get("byteOffset", 0) + accessor.get("byteOffset", 0), widths[accessor["type"]]
        count = accessor["count"] * width
        return np.frombuffer(binary, kinds[accessor["componentType"]], count, start).reshape(-1, width)

    (primitive,) = about["meshes"][0]["primitives"]
    held = [values(primitive["attributes"][name]) for name in ("POSITION", "NORMAL", "TEXCOORD_0")]
    return np.concatenate(held, axis=1)[values(primitive["indices"])[:, 0]].reshape(-1, 3, 8).astype(np.float64)


def test_gltf_says_the_same(tmp_path: Path) -> None:
    """Blender's own glTF exporter writes the same object right-handed, Y up, and v down: mirror it at x."""
    import bpy

    ball = add_ball()
    path = tmp_path / "ball.glb"
    bpy.ops.export_scene.gltf(filepath=str(path), use_selection=True, export_materials="NONE", export_yup=True)
    witness = gltf_triangles(path)[:, ::-1] * (-1, 1, 1, -1, 1, 1, 1, -1) + (0, 0, 0, 0, 0, 0, 0, 1)
    stored = exported(ball).stored
    ours = np.concatenate((stored.points, directions(stored.normals), stored.uv), axis=1)[stored.triangles]
    assert ours.shape == witness.shape, "both write Blender's triangles in Blender's order"
    assert np.abs(ours - witness)[..., :3].max() <= 0.505 * stored.step.max() + 1e-6
    assert np.abs(ours - witness)[..., 6:].max() <= 0.505 * stored.uv_step.max() + 1e-6
    assert np.abs(ours - witness)[..., 3:6].max() <= 0.51 / 127


def test_tangents_of_a_file_stay_until_it_is_changed() -> None:
    before = made.crate(tangents=True)
    before.tangents[:, :3] = np.roll(before.tangents[:, :3], 1, axis=1)  # such as no MikkTSpace makes
    (obj,) = round_trips.imported(pack(before)).made.objects
    np.testing.assert_array_equal(exported(obj).stored.tangents, before.tangents)
    obj.data.uv_layers[0].uv[0].vector.x += 0.25
    changed = exported(obj).stored
    assert changed.tangents is not None, "a file with tangents gets new ones"
    assert len(changed.positions) == 25, "one corner has a UV of its own"
    assert not np.array_equal(changed.tangents[:24], before.tangents)
    assert exported(obj, file_options={"mesh_tangents": "NEVER"}).stored.tangents is None
