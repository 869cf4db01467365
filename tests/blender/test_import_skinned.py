"""Armatures, weights, shape keys, surfaces and levels of detail of scenes made by hand.

Expectations are what was put in, products of the matrices that were put in, and Blender's evaluated data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

PARENTS = [2, 0, -1, 2, -1, 4, 3]
"""Two roots; joint 0 stands before its parent."""
LONG = "ж" * 40
NAMES = ["j0", "j1", "j2", "j0", "", LONG + "a", LONG + "b"]


def run(scene: Any, *, onto: Any = None, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer

    return importer.import_scene(
        import_options.ImportRequest(bpy.context, scene, import_options.ImportOptions.of(options), "", armature=onto)
    )


def transforms(rng: np.random.Generator, count: int, scales: tuple[float, float]) -> tuple[np.ndarray, ...]:
    """Return random places, rotations and scales, each the same in all directions."""
    turn = rng.normal(size=(count, 4))
    size = np.exp(rng.uniform(*np.log(scales), count))[:, None].repeat(3, 1)
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    return tuple(part.astype(np.float32) for part in (rng.normal(size=(count, 3)), turn, size))


def matrix(place: Any, turn: Any, size: Any) -> np.ndarray:
    from mathutils import Matrix, Quaternion

    made = np.array(Matrix.Identity(4), np.float64)
    made[:3, :3] = np.array(Quaternion([float(x) for x in turn]).to_matrix()) * np.asarray(size, np.float64)
    made[:3, 3] = place
    return made


def chain(local: Any, joint: int) -> np.ndarray:
    return local[joint] if PARENTS[joint] < 0 else chain(local, PARENTS[joint]) @ local[joint]


def skeleton(rng: np.random.Generator, scales: tuple[float, float] = (0.1, 39.0)) -> tuple[Any, list[np.ndarray]]:
    from meshferry.io_formats.core.scene import Joint, Skeleton

    parts = transforms(rng, 7, scales)
    joints = [
        Joint(name, parent, *(tuple(part[number].tolist()) for part in parts))
        for number, (name, parent) in enumerate(zip(NAMES, PARENTS, strict=True))
    ]
    return Skeleton("rig", joints), [matrix(*row) for row in zip(*parts, strict=True)]


def walk(rng: np.random.Generator, frames: int = 4, joints: Any = range(7), **changes: Any) -> Any:
    from meshferry.io_formats.core.scene import Clip, TransformTrack

    tracks = [TransformTrack(joint, *transforms(rng, frames, (0.1, 39.0)), skeleton=0) for joint in joints]
    return Clip(**{"name": "walk", "fps": 0.0, "frame_count": frames, "transforms": tracks, **changes})


def skin(rng: np.random.Generator, joints: int = 7) -> Any:
    from meshferry.io_formats.core.scene import Mesh, ShapeKey, Surface

    points = rng.normal(size=(60, 3)).astype(np.float32)
    corners = np.arange(60, dtype=np.int32)
    mesh = Mesh(points, corners, np.arange(20, dtype=np.int32) % 3, ["Skin", "Skin", "Eyes"])
    mesh.joint_indices = rng.integers(0, joints, (60, 4)).astype(np.int32)
    mesh.joint_indices[mesh.joint_indices == 1] = 2  # joint 1 weighs nothing
    mesh.joint_weights = rng.random((60, 4)).astype(np.float32)
    mesh.joint_weights[::3, 2:] = 0
    mesh.joint_weights /= mesh.joint_weights.sum(axis=1, keepdims=True)
    mesh.shape_keys = [ShapeKey("Basis", points + 1), ShapeKey("x" * 70, points * 2), ShapeKey("x" * 71, points * 3)]
    mesh.surfaces = [
        Surface("Skin", has_colors=False, shape_keys={"Basis": "base", "x" * 71: ""}),
        Surface("Skin", has_weights=True, lightmap_channel=0, lightmap_resolution=5),
        Surface("Eyes", shape_keys={}, base_name="rest"),
    ]
    return mesh


def figure(seed: int = 1, **changes: Any) -> tuple[Any, list[np.ndarray]]:
    from meshferry.io_formats.core.scene import Node, Scene

    rng = np.random.default_rng(seed)
    bones, bind = skeleton(rng)
    return Scene("figure", [Node("Body", mesh=skin(rng), skeleton=0)], [bones], [walk(rng)], **changes), bind


def points_of(obj: Any) -> np.ndarray:
    import bpy

    mesh = obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    found = np.empty(len(mesh.vertices) * 3, np.float32)
    mesh.vertices.foreach_get("co", found)
    return found.reshape(-1, 3)


def test_the_test_can_turn() -> None:
    np.testing.assert_allclose(matrix((0, 0, 0), (0.5**0.5, 0, 0, 0.5**0.5), (2, 1, 1))[:3, 0], (0, 2, 0), atol=1e-6)


@pytest.mark.parametrize("direction", ["FILE", "CHILDREN"])
def test_a_scaled_rig_deforms_as_its_matrices_do(direction: str) -> None:
    import bpy

    scene, bind = figure()
    mesh, clip = scene.nodes[0].mesh, scene.clips[0]
    armature, body = run(scene, bone_direction=direction, use_weld=False).objects
    assert body.parent is armature and body.modifiers[0].object is armature
    homogeneous = np.concatenate((mesh.points, np.ones((60, 1))), axis=1)
    for frame in range(clip.frame_count):
        bpy.context.scene.frame_set(1 + frame)
        posed = [matrix(t.translation[frame], t.rotation[frame], t.scale[frame]) for t in clip.transforms]
        deform = np.stack([chain(posed, joint) @ np.linalg.inv(chain(bind, joint)) for joint in range(7)])
        wanted = np.einsum("pk,pkij,pj->pi", mesh.joint_weights, deform[mesh.joint_indices], homogeneous)[:, :3]
        assert np.abs(points_of(body) - wanted).max() < 2e-6 * np.ptp(wanted, axis=0).max()


def test_bones_keep_names_places_and_bits() -> None:
    from meshferry.blender_data import names

    scene, bind = figure()
    armature = run(scene).armatures[0]
    bones = sorted(armature.data.bones, key=lambda bone: bone.meshferry.order)
    assert [names.name_in_file(bone) for bone in bones] == NAMES
    assert len({bone.name for bone in bones}) == 7 and all(len(bone.name.encode()) <= 63 for bone in bones)
    assert [bones.index(bone.parent) if bone.parent else -1 for bone in bones] == PARENTS
    for number, (bone, joint) in enumerate(zip(bones, scene.skeletons[0].joints, strict=True)):
        kept = bone.meshferry
        for stored, given in (
            (kept.bind_location, joint.translation),
            (kept.bind_rotation, joint.rotation),
            (kept.bind_scale, joint.scale),
        ):
            np.testing.assert_array_equal(np.float32(stored), np.float32(given))
        np.testing.assert_array_equal(np.reshape(kept.rest_matrix, (4, 4)), np.array(bone.matrix_local))
        assert kept.parent_order == joint.parent
        np.testing.assert_allclose(np.reshape(kept.bind_matrix, (4, 4)), chain(bind, number), rtol=1e-6, atol=1e-6)
        world = chain(bind, number)
        np.testing.assert_allclose(bone.head_local, world[:3, 3], atol=1e-5 * np.abs(world[:3, 3]).max())
        axis = world[:3, 1] / np.linalg.norm(world[:3, 1])
        np.testing.assert_allclose((bone.tail_local - bone.head_local).normalized(), axis, atol=1e-5)
        assert bone.length > 1e-3
    bones[0].name = "Renamed"
    assert names.name_in_file(bones[0]) == "Renamed"


def test_names_are_cut_and_made_unique_without_touching_those_that_fit() -> None:
    from meshferry.blender_data.names import fit_all

    wanted = ["a", "a", "a.001", "", "ж" * 31 + "x", "ж" * 32, "b" * 63, "b" * 63, "b" * 62 + "c", "b" * 62 + "c"]
    given = fit_all(wanted, "Bone")
    assert len(set(given)) == len(given) and all(0 < len(name.encode()) <= 63 for name in given)
    kept = [number for number, (one, other) in enumerate(zip(wanted, given, strict=True)) if one == other]
    assert kept == [0, 2, 4, 6, 8] and given[3] == "Bone"


def test_bones_can_point_to_their_children() -> None:
    from meshferry.io_formats.core.scene import Joint, Scene, Skeleton

    joints = [Joint("hip"), Joint("knee", 0, (0, 0, -2)), Joint("foot", 1, (0, 0.5, -1)), Joint("end", 2, (0, 0, 0))]
    armature = run(Scene("leg", [], [Skeleton("leg", joints)]), bone_direction="CHILDREN").armatures[0]
    ends = {bone.name: tuple(bone.tail_local) for bone in armature.data.bones}
    assert ends["hip"] == pytest.approx((0, 0, -2), abs=1e-6)
    assert ends["knee"] == pytest.approx((0, 0.5, -3), abs=1e-6)
    assert all(bone.length > 0.1 and not bone.use_connect for bone in armature.data.bones)


def test_groups_are_the_bones_that_weigh() -> None:
    scene, _ = figure()
    mesh = scene.nodes[0].mesh
    armature, body = run(scene, use_weld=False).objects
    bones = sorted(armature.data.bones, key=lambda bone: bone.meshferry.order)
    assert [group.name for group in body.vertex_groups] == [bone.name for bone in bones if bone.meshferry.order != 1]
    for vertex in body.data.vertices:
        wanted: dict[str, float] = {}
        for joint, weight in zip(mesh.joint_indices[vertex.index], mesh.joint_weights[vertex.index], strict=True):
            if weight:
                wanted[bones[joint].name] = wanted.get(bones[joint].name, 0.0) + float(weight)
        found = {body.vertex_groups[entry.group].name: entry.weight for entry in vertex.groups}
        assert found == pytest.approx(wanted, abs=1e-7)


def test_weights_come_back_in_their_slots_and_the_strongest_stay() -> None:
    import bpy
    from meshferry.blender_data.mesh_data import vertex_weights

    groups = np.array([[5, 1, 3, 0], [2, 2, 7, 1], [0, 1, 2, 3]], np.int32)
    weights = np.array([[0.25, 0.5, 0, 0.125], [0.25, 0.25, 0.5, 0], [0, 0, 0, 0]], np.float32)
    mesh = bpy.data.meshes.new("points")
    mesh.vertices.add(3)
    vertex_weights.write(mesh, groups, weights)
    counts, found, values = vertex_weights.read(mesh)
    assert counts.tolist() == [3, 2, 0] and found.tolist() == [5, 1, 0, 2, 7]
    assert values.tolist() == [0.25, 0.5, 0.125, 0.5, 0.5]
    joints = np.arange(10, dtype=np.int32)
    joints[7] = -1
    arranged = vertex_weights.strongest(counts, found, values, joints, 2)
    assert arranged[2] == 1
    np.testing.assert_array_equal(arranged[0], [[5, 1], [2, 0], [0, 0]])
    np.testing.assert_allclose(arranged[1], [[0.875 / 3, 1.75 / 3], [0.5, 0], [0, 0]], rtol=1e-6)


def test_shapes_become_keys_at_rest() -> None:
    import bpy

    scene, _ = figure()
    mesh = scene.nodes[0].mesh
    body = run(scene, armature="NONE").objects[0]
    assert not body.vertex_groups and not body.modifiers
    keys = body.data.shape_keys.key_blocks
    assert len(keys) == 4 and keys[0].name == "Basis" and all(key.value == 0 for key in keys)
    np.testing.assert_array_equal(points_of(body), mesh.points)
    for key, shape in zip(keys[1:], mesh.shape_keys, strict=True):
        key.value = 1
        bpy.context.view_layer.update()
        np.testing.assert_allclose(points_of(body), shape.points, atol=1e-5)
        key.value = 0
    assert run(scene, armature="NONE", use_shape_keys=False).objects[0].data.shape_keys is None


def read_surfaces(obj: Any) -> list[Any]:
    from meshferry.blender_data.mesh_data import surfaces

    keys = obj.data.shape_keys.key_blocks if obj.data.shape_keys else []
    return surfaces.read(obj, [layer.name for layer in obj.data.uv_layers], [key.name for key in keys[1:]])


def test_surfaces_keep_what_they_had() -> None:
    scene, _ = figure()
    body = run(scene).objects[1]
    materials = [slot.material for slot in body.material_slots]
    assert materials[0] is materials[1] and [material.name for material in materials] == ["Skin", "Skin", "Eyes"]
    keys = [key.name for key in body.data.shape_keys.key_blocks]
    first, second, third = read_surfaces(body)
    assert [surface.name for surface in (first, second, third)] == ["Skin", "Skin", "Eyes"]
    assert (first.has_colors, second.has_colors) == (False, True)
    assert (first.has_weights, second.has_weights) == (None, True)
    assert first.shape_keys == {keys[1]: "base", keys[3]: ""} and third.shape_keys == {}
    assert (second.lightmap_channel, second.lightmap_resolution) == (0, 5)
    assert first.lightmap_channel is first.lightmap_resolution is None, "the file gave it none"
    assert third.base_name == "rest"


def test_surfaces_follow_their_materials() -> None:
    import bpy

    scene, _ = figure()
    body = run(scene).objects[1]
    skin_material, eyes = body.data.materials[0], body.data.materials[2]
    body.data.materials.clear()
    for material in (eyes, skin_material, bpy.data.materials.new("New"), skin_material, None):
        body.data.materials.append(material)
    found = read_surfaces(body)
    assert [surface.name for surface in found] == ["Eyes", "Skin", "New", "Skin", ""]
    assert found[0].base_name == "rest"
    assert [surface.has_colors for surface in found] == [True, False, True, True, True]
    skin_material.name = "Hide"
    assert [surface.name for surface in read_surfaces(body)] == ["Eyes", "Hide", "New", "Hide", ""]
    # Another material in the place of one that no slot has any more: the same surface in new paint.
    body.data.materials.clear()
    for name in ("A", "B", "C"):
        body.data.materials.append(bpy.data.materials.new(name))
    found = read_surfaces(body)
    assert [surface.name for surface in found] == ["A", "B", "C"] and found[1].lightmap_resolution == 5


def test_which_uv_maps_a_surface_holds() -> None:
    from meshferry.io_formats.core.scene import Layer, Node, Scene, Surface

    mesh = skin(np.random.default_rng(0))
    mesh.joint_indices = mesh.joint_weights = None
    mesh.uvs = [Layer("UV1", np.zeros((60, 2), np.float32))]
    mesh.surfaces = [Surface("Skin", uvs=(True,)), Surface("Skin", uvs=(False,)), Surface("Eyes")]
    (body,) = run(Scene("flat", [Node("Body", mesh=mesh)])).objects
    assert [entry.has_uv1 for entry in body.meshferry.surfaces] == [True, False, True]
    assert all(entry.has_uv0 for entry in body.meshferry.surfaces)
    assert [surface.uvs for surface in read_surfaces(body)] == [(True,), (False,), (True,)]


def test_levels_of_detail_lie_in_collections_with_closed_eyes() -> None:
    import bpy
    from meshferry.io_formats.core.scene import Node

    scene, _ = figure()
    rng = np.random.default_rng(3)
    for level in (1, 2):
        scene.nodes.append(Node(f"Body {level}", mesh=skin(rng), skeleton=0, lod=level, lod_of=0))
    made = run(scene)
    armature, *bodies = made.objects
    assert [child.name for child in made.collection.children] == ["LOD 0", "LOD 1", "LOD 2"]
    assert [body.users_collection[0].name for body in bodies] == ["LOD 0", "LOD 1", "LOD 2"]
    assert list(made.collection.objects) == [armature]
    assert [body.visible_get() for body in bodies] == [True, False, False]
    assert [body.meshferry.lod for body in bodies] == [0, 1, 2]
    assert [body.meshferry.lod_of for body in bodies] == [None, bodies[0], bodies[0]]
    assert not any(body.hide_viewport or body.hide_render for body in bodies)
    assert bpy.context.view_layer.layer_collection.children[0].children[1].hide_viewport


def test_an_absurd_skeleton_is_refused_and_leaves_nothing() -> None:
    import bpy
    from meshferry.io_formats.core.errors import MeshferryError

    scene, _ = figure()
    scene.skeletons[0].joints[4].scale = (1e30, 1e30, 1e30)
    scene.clips = []
    with pytest.raises(MeshferryError, match="too large to use"):
        run(scene)
    assert not bpy.data.objects and not bpy.data.armatures and not bpy.data.collections and not bpy.data.actions


STAGES = [
    ("importing.armatures", "_remember"),
    ("mesh_data.vertex_weights", "_set"),
    ("importing.objects", "hang_on_armature"),
    ("mesh_data.surfaces", "write"),
    ("importing.objects", "set_role"),
    ("importing.actions", "add_keys"),
    ("importing.objects", "hide_levels"),
]


@pytest.mark.parametrize(("module", "function"), STAGES)
def test_a_failure_leaves_nothing(monkeypatch: pytest.MonkeyPatch, module: str, function: str) -> None:
    import importlib

    import bpy

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("halfway")

    kinds = [p.identifier for p in bpy.data.bl_rna.properties if p.type == "COLLECTION"]
    before = {kind: len(getattr(bpy.data, kind)) for kind in kinds}
    monkeypatch.setattr(importlib.import_module(f"meshferry.blender_data.{module}"), function, fail)
    with pytest.raises(RuntimeError, match="halfway"):
        run(figure()[0])
    assert {kind: len(getattr(bpy.data, kind)) for kind in kinds} == before
    assert bpy.context.mode == "OBJECT"


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT", "POSE"])
def test_what_the_user_was_doing_goes_on(mode: str) -> None:
    import bpy

    mine = bpy.data.objects.new("Mine", bpy.data.armatures.new("Mine"))
    other = bpy.data.objects.new("Other", None)
    hidden = bpy.data.collections.new("Hidden")
    bpy.context.scene.collection.children.link(hidden)
    for obj in (mine, other):
        bpy.context.scene.collection.objects.link(obj)
        obj.select_set(True)
    bpy.context.view_layer.objects.active = mine
    bpy.ops.object.mode_set(mode=mode)
    layer = bpy.context.view_layer.layer_collection.children["Hidden"]
    bpy.context.view_layer.active_layer_collection = layer
    layer.exclude = True
    made = run(figure()[0])
    assert bpy.context.view_layer.objects.active is mine and mine.mode == mode
    assert {obj.name for obj in bpy.context.view_layer.objects.selected} == {"Mine", "Other"}
    assert len(made.armatures[0].data.bones) == 7
    assert [home.name for home in made.armatures[0].users_collection] == [made.collection.name]


@pytest.mark.parametrize("crease", [0.0, 0.5])
def test_normals_of_a_skinned_mesh_keep_creases_over_seams(crease: float) -> None:
    """Two triangles over four points, six shared triangle vertices: a UV seam with or without a crease."""
    from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene

    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    corners, index = np.array([0, 1, 2, 0, 2, 3], np.int32), np.array([2, 1, 0, 4, 3, 5], np.int32)
    mesh = Mesh(points, corners, np.zeros(2, np.int32), ["Cloth"])
    tilt = np.array([[crease, 0, 1]] * 3 + [[-crease, 0, 1]] * 3, np.float32)
    tilt[:, 1] += np.float32([0.3, 0.2, 0.1, 0.3, 0.1, 0.4])  # those of one point agree
    tilt /= np.linalg.norm(tilt, axis=1, keepdims=True)
    mesh.normal = Layer("normal", tilt, index)
    mesh.uvs = [Layer("UV0", np.arange(12, dtype=np.float32).reshape(6, 2), index)]
    mesh.joint_indices, mesh.joint_weights = np.zeros((4, 1), np.int32), np.ones((4, 1), np.float32)
    bones, _ = skeleton(np.random.default_rng(0))
    body = run(Scene("cloth", [Node("Cloth", mesh=mesh, skeleton=0)], [bones])).objects[1]
    found = np.empty(18, np.float32)
    body.data.corner_normals.foreach_get("vector", found)
    np.testing.assert_allclose(found.reshape(-1, 3), tilt[index], atol=2e-3)
    uv = np.empty(12, np.float32)
    body.data.uv_layers["UV0"].uv.foreach_get("vector", uv)
    np.testing.assert_array_equal(uv.reshape(-1, 2), mesh.uvs[0].values[index])
