"""Models with levels, physics, hulls, materials, textures and bindings: scenes made by hand -> Blender.

Expectations are what was put in, products of the matrices that were put in, and Blender's evaluated data.
"""

from __future__ import annotations

import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import avatar_table
import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

FORMAT = "second_life_mesh"
SIZE = (0.5, 0.25, 1.5)
"""Of the unit cube that meshes are squeezed into."""
PLACE = (0.1, -0.2, 1.0)
CUBE = np.array([(x, y, z) for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)], np.float32)


def run(scene: Any, source_path: str = "", *, onto: Any = None, **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer

    return importer.import_scene(
        import_options.ImportRequest(
            bpy.context, scene, import_options.ImportOptions.of(options), source_path, armature=onto
        )
    )


def triangles(count: int, slots: tuple[str, ...] = ("Skin", "Gone", "Cloth"), **changes: Any) -> Any:
    """Return a mesh of loose triangles in the unit cube; its second slot has none."""
    from meshferry.io_formats.core.scene import Layer, Mesh, Surface

    rng = np.random.default_rng(count)
    points = rng.uniform(-0.5, 0.5, (3 * count, 3)).astype(np.float32)
    of_slot = (np.arange(count, dtype=np.int32) % 2) * 2 if len(slots) == 3 else np.zeros(count, np.int32)
    mesh = Mesh(points, np.arange(3 * count, dtype=np.int32), of_slot, list(slots))
    mesh.uvs = [Layer("UVMap", rng.random((3 * count, 2)).astype(np.float32))]
    mesh.surfaces = [
        Surface(name, position_domain=(-0.5, -0.4, -0.3, 0.5, 0.4, 0.3 + place)) for place, name in enumerate(slots)
    ]
    mesh.surfaces[0].uv_domain = (-1.0, 0.25, 8e27, 1e300)
    mesh.surfaces[-1].position_domain = None
    return replace(mesh, **changes)


def points_only(points: Any) -> Any:
    from meshferry.io_formats.core.scene import Mesh

    return Mesh(np.asarray(points, np.float32), np.zeros(0, np.int32), np.zeros(0, np.int32))


def rig_joints(volume_scale: tuple[float, float, float] = (0.2, 0.3, 0.4)) -> Any:
    from meshferry.io_formats.core.scene import Joint, Skeleton

    return Skeleton(
        "Rig",
        [
            Joint("mPelvis", -1, (0.0, 0.0, 1.0), tail=(0.0, 0.0, 0.1), group="Torso"),
            Joint("mChest", 0, (0.0, 0.02, 0.25), tail=(0.0, 0.0, 0.2), group="Torso"),
            Joint("BELLY", 1, (0.0, -0.05, 0.1), (0.9689124, 0.0, 0.2474040, 0.0), volume_scale, tail=(0.0, 0.1, 0.0)),
            Joint("mHead", 1, (0.0, 0.0, 0.3), tail=(0.0, 0.0, 0.0), group="Head"),
        ],
    )


def rest_world() -> np.ndarray:
    """Return the rest matrices of those joints, multiplied by hand."""
    belly = np.identity(4)
    w, y = 0.9689124, 0.2474040
    about_y = [(1 - 2 * y * y, 0, 2 * w * y), (0, 1, 0), (-2 * w * y, 0, 1 - 2 * y * y)]
    belly[:3, :3] = np.array(about_y) @ np.diag((0.2, 0.3, 0.4))
    worlds = np.tile(np.identity(4), (4, 1, 1))
    worlds[2] = belly
    worlds[:, :3, 3] = [(0, 0, 1), (0, 0.02, 1.25), (0, -0.03, 1.35), (0, 0.02, 1.55)]
    return worlds


def bind_shape() -> np.ndarray:
    made = np.diag((*SIZE, 1.0))
    made[:3, 3] = PLACE
    return made


def binding(names: tuple[str, ...] = ("mPelvis", "mChest", "BELLY", "mHead"), **changes: Any) -> Any:
    from meshferry.io_formats.core.scene import Skin

    return Skin(list(names), np.linalg.inv(rest_world()), bind_shape(), **changes)


def weighted(mesh: Any, *, joints: int = 4) -> Any:
    rng = np.random.default_rng(len(mesh.points))
    indices = rng.integers(0, joints, (len(mesh.points), 2)).astype(np.int32)
    weights = rng.random((len(mesh.points), 2)).astype(np.float32)
    weights[indices[:, 0] == indices[:, 1], 1] = 0.0
    return replace(mesh, joint_indices=indices, joint_weights=weights / weights.sum(axis=1, keepdims=True))


def model(*, rigged: bool = False, name: str = "Body", **changes: Any) -> Any:
    """Return a scene of a model: four levels, a physics mesh, two hulls and the one around everything."""
    from meshferry.io_formats.core.scene import Node, Role, Scene

    placed: dict[str, Any] = {"translation": PLACE if rigged else (0.0, 0.0, 0.0), "scale": SIZE}
    shown = {**placed, "skeleton": 0, "skin": binding()} if rigged else placed
    nodes = []
    for level, count in enumerate((40, 20, 10, 6)):
        mesh = weighted(triangles(count)) if rigged else triangles(count)
        label = name + ("", "_LOD2", "_LOD1", "_LOD0")[level]
        nodes.append(Node(label, mesh=mesh, lod=level, lod_of=0 if level else None, **shown))
    placed["shape_of"] = 0
    nodes.append(Node(f"{name}_PHYS", mesh=triangles(8), role=Role.PHYSICS, **placed))
    nodes.append(Node(f"{name} Hull 1", mesh=points_only(CUBE / 2), role=Role.HULL, **placed))
    flat = [(0, 0, 0), (0.5, 0, 0), (0, 0.5, 0), (0.5, 0.5, 0), (0.25, 0.25, 0)]
    nodes.append(Node(f"{name} Hull 2", mesh=points_only(flat), role=Role.HULL, **placed))
    inside = np.vstack((CUBE, [(0, 0, 0), CUBE[3]]))
    nodes.append(Node(f"{name} Base Hull", mesh=points_only(inside), role=Role.HULL, is_base_hull=True, **placed))
    scene = Scene(name, nodes, [rig_joints()] if rigged else [], format=FORMAT)
    scene.level_names = ("High", "Medium", "Low", "Lowest")
    return replace(scene, **changes)


def matrix_of(obj: Any) -> np.ndarray:
    return np.array(obj.matrix_world, np.float64)


def points_of(obj: Any) -> np.ndarray:
    found = np.empty(len(obj.data.vertices) * 3, np.float32)
    obj.data.vertices.foreach_get("co", found)
    return found.reshape(-1, 3)


def test_levels_and_shapes_get_collections_and_only_the_finest_is_seen() -> None:
    import bpy

    made = run(model())
    home = bpy.data.collections["Body"]
    members = {part.name: [obj.name for obj in part.objects] for part in home.children}
    assert members == {
        "LOD High": ["Body"],
        "LOD Medium": ["Body_LOD2"],
        "LOD Low": ["Body_LOD1"],
        "LOD Lowest": ["Body_LOD0"],
        "Body Physics": ["Body_PHYS", "Body Hull 1", "Body Hull 2", "Body Base Hull"],
    }
    assert [obj.name for obj in bpy.context.view_layer.objects if obj.visible_get()] == ["Body"]
    assert [part.name for part in home.children if not part.hide_render] == ["LOD High"]
    assert made.triangles == 40 + 20 + 10 + 6
    for obj in made.objects:
        np.testing.assert_allclose(obj.scale, SIZE)
        assert obj.parent is None


def test_parts_know_what_they_belong_to() -> None:
    import bpy

    run(model())
    objects = bpy.data.objects
    body = objects["Body"].meshferry
    assert (body.medium_level, body.low_level, body.lowest_level) == (
        objects["Body_LOD2"],
        objects["Body_LOD1"],
        objects["Body_LOD0"],
    )
    assert body.physics_object == objects["Body_PHYS"]
    assert [obj.meshferry.role for obj in objects if obj.meshferry.shape_of == objects["Body"]] == [
        "BASE_HULL",
        "HULL",
        "HULL",
        "PHYSICS",
    ]
    assert [objects[name].meshferry.lod for name in ("Body", "Body_LOD2", "Body_LOD1", "Body_LOD0")] == [0, 1, 2, 3]
    assert objects["Body_LOD1"].meshferry.lod_of == objects["Body"] and body.lod_of is None
    for obj in objects:
        is_shape = obj.meshferry.role != "RENDER"
        assert (obj.display_type == "WIRE") == obj.hide_render == is_shape


def test_other_formats_keep_their_levels_as_numbers() -> None:
    import bpy

    run(model(format="unigine_mesh", level_names=()))
    assert [part.name for part in bpy.data.collections["Body"].children][:2] == ["LOD 0", "LOD 1"]
    assert bpy.data.objects["Body"].meshferry.medium_level is None


@pytest.mark.parametrize("use_weld", [False, True])
def test_hulls_are_spanned_and_keep_their_points(use_weld: bool) -> None:
    import bpy

    run(model(), use_weld=use_weld)
    box, flat, base = (bpy.data.objects[f"Body {name}"] for name in ("Hull 1", "Hull 2", "Base Hull"))
    np.testing.assert_array_equal(points_of(box), CUBE / 2)
    np.testing.assert_array_equal(points_of(base)[:8], CUBE)
    assert len(base.data.vertices) == 10
    for obj in (box, base):
        corners = np.array([tuple(face.vertices) for face in obj.data.polygons])
        assert corners.shape == (12, 3)
        a, b, c = np.moveaxis(points_of(obj)[corners], 1, 0)
        outward = np.cross(b - a, c - a)
        assert ((outward * (a + b + c)).sum(axis=1) > 0).all()
        size = np.abs(CUBE).max() if obj is base else 0.25
        assert np.linalg.norm(outward, axis=1).sum() / 2 == pytest.approx(6 * (2 * size) ** 2)
    assert sum(face.area for face in flat.data.polygons) == pytest.approx(0.25)


def test_slots_without_triangles_and_ranges_are_kept() -> None:
    import bpy

    run(model())
    for name in ("Body", "Body_LOD0", "Body_PHYS"):
        obj = bpy.data.objects[name]
        assert [slot.name for slot in obj.material_slots] == ["Skin", "Gone", "Cloth"]
        assert {face.material_index for face in obj.data.polygons} == {0, 2}
        skin, gone, cloth = obj.meshferry.surfaces
        assert skin.has_domains and gone.has_domains and not cloth.has_domains
        np.testing.assert_allclose(skin.position_domain, (-0.5, -0.4, -0.3, 0.5, 0.4, 0.3), rtol=1e-7)
        np.testing.assert_allclose(gone.position_domain[5], 1.3, rtol=1e-7)
        np.testing.assert_allclose(skin.uv_domain[:3], (-1.0, 0.25, 8e27), rtol=1e-7)
        assert np.isfinite(skin.uv_domain[3])


def test_a_rigged_model_hangs_on_its_armature_where_the_file_binds_it() -> None:
    import bpy

    made = run(model(rigged=True))
    armature = made.objects[0]
    assert made.bones == 4 and armature.type == "ARMATURE"
    bpy.context.view_layer.update()
    for obj in made.objects[1:]:
        assert obj.parent == armature
        np.testing.assert_allclose(matrix_of(obj), bind_shape(), atol=1e-7)
        kinds = [modifier.type for modifier in obj.modifiers]
        deforms = obj.meshferry.role == "RENDER"
        assert kinds == (["ARMATURE"] if deforms else []), obj.name
        # What all levels share is kept with the finest alone.
        assert len(obj.meshferry.skin.joints) == (4 if obj.name == "Body" else 0)
    heads = {bone.name: tuple(bone.head_local) for bone in armature.data.bones}
    for name, world in zip(("mPelvis", "mChest", "BELLY", "mHead"), rest_world(), strict=True):
        np.testing.assert_allclose(heads[name], world[:3, 3], atol=1e-6)


def test_without_an_armature_a_rigged_model_stands_where_it_is_bound() -> None:
    import bpy

    made = run(model(rigged=True), armature="NONE")
    bpy.context.view_layer.update()
    assert not bpy.data.armatures and not made.bones
    for obj in made.objects:
        np.testing.assert_allclose(matrix_of(obj), bind_shape(), atol=1e-7)
        assert not obj.vertex_groups and len(obj.meshferry.skin.joints) == 0


def test_the_binding_is_kept_to_the_bit_of_single_precision() -> None:
    import bpy

    rng = np.random.default_rng(5)
    wanted, others = rng.normal(size=(4, 3)), rng.normal(size=(4, 4, 4))
    others[0, 0, 0] = 1e200
    skin = binding(joint_positions=wanted, pelvis_offset=0.05, lock_scale=True, alt_inverse_bind=others)
    scene = model(rigged=True)
    scene.nodes[0].skin = skin
    run(scene)
    kept = bpy.data.objects["Body"].meshferry.skin
    np.testing.assert_array_equal(kept.bind_shape, bind_shape().reshape(-1).astype(np.float32))
    np.testing.assert_array_equal(kept.given_matrix, np.array(bpy.data.objects["Body"].matrix_local).reshape(-1))
    assert [joint.name for joint in kept.joints] == ["mPelvis", "mChest", "BELLY", "mHead"]
    assert kept.has_positions and kept.lock_scale and kept.has_pelvis_offset
    assert kept.pelvis_offset == pytest.approx(0.05)
    for joint, inverse, other, place in zip(kept.joints, skin.inverse_bind, others, wanted, strict=True):
        np.testing.assert_array_equal(joint.inverse_bind, inverse.reshape(-1).astype(np.float32))
        given = np.clip(other, -3.4028234663852886e38, 3.4028234663852886e38).reshape(-1).astype(np.float32)
        np.testing.assert_array_equal(joint.alt_inverse_bind, given)
        np.testing.assert_array_equal(joint.position, place.astype(np.float32))
    plain = bpy.data.objects["Body_LOD2"].meshferry.skin
    assert not plain.has_positions and not plain.lock_scale and not plain.has_pelvis_offset


def test_levels_that_are_bound_alike_keep_their_binding_once() -> None:
    import bpy

    scene = model(rigged=True)
    scene.nodes[2].skin = binding()
    run(scene)
    kept = {name: len(bpy.data.objects[name].meshferry.skin.joints) for name in ("Body", "Body_LOD2", "Body_LOD1")}
    assert kept == {"Body": 4, "Body_LOD2": 0, "Body_LOD1": 4}


def rotation(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    from mathutils import Matrix

    return np.array(Matrix.Rotation(angle, 4, axis), np.float64)


@pytest.mark.parametrize("use_weld", [False, True])
def test_a_pose_deforms_as_the_matrices_of_the_file_do(use_weld: bool) -> None:
    import bpy

    scene = model(rigged=True)
    armature = run(scene, use_weld=use_weld).objects[0]
    rest = rest_world()
    turns = {"mPelvis": rotation((0, 0, 1), 0.4), "mChest": rotation((1, 0, 0), 0.7), "BELLY": rotation((0, 1, 0), 0.9)}
    # Each joint turns about its place, in the axes of the armature, and takes those that hang on it along.
    moved = {}
    for number, (name, parent) in enumerate(
        (("mPelvis", ""), ("mChest", "mPelvis"), ("BELLY", "mChest"), ("mHead", "mChest"))
    ):
        about = np.identity(4)
        about[:3, 3] = rest[number, :3, 3]
        own = about @ turns.get(name, np.identity(4)) @ np.linalg.inv(about)
        moved[name] = moved.get(parent, np.identity(4)) @ own
        bone = armature.data.bones[name]
        frame = np.array(bone.matrix_local, np.float64)[:3, :3]
        local = np.identity(4)
        local[:3, :3] = frame.T @ turns.get(name, np.identity(4))[:3, :3] @ frame
        from mathutils import Matrix

        armature.pose.bones[name].rotation_quaternion = Matrix(local.tolist()).to_quaternion()
    posed = np.array([moved[name] for name in moved]) @ rest
    skinning = posed @ np.linalg.inv(rest) @ bind_shape()
    for index, name in enumerate(("Body", "Body_LOD2", "Body_LOD1", "Body_LOD0")):
        mesh = scene.nodes[index].mesh
        local = np.column_stack((mesh.points, np.ones(len(mesh.points))))
        of_joint = np.einsum("jab,pb->pja", skinning, local)[:, :, :3]
        share = np.zeros((len(local), 4))
        np.add.at(share, (np.arange(len(local))[:, None], mesh.joint_indices), mesh.joint_weights)
        expected = np.einsum("pj,pja->pa", share, of_joint)
        obj = bpy.data.objects[name]
        bpy.context.view_layer.layer_collection.children["Body"].children[index].hide_viewport = False
        bpy.context.view_layer.update()
        deformed = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found = np.array([deformed.matrix_world @ vertex.co for vertex in deformed.data.vertices])
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def own_armatures() -> list[Any]:
    """Return the armature objects, without those that only show how files bind meshes."""
    import bpy

    return [obj for obj in bpy.data.objects if obj.type == "ARMATURE" and not obj.meshferry.is_binding]


def test_meshes_bound_alike_share_an_armature_of_the_same_run() -> None:
    import bpy
    from meshferry.blender_data.importing.armature_matching import choose_for_scene

    context = bpy.context
    first = run(model(rigged=True)).armatures[0]
    shirt = model(rigged=True, name="Shirt")
    del shirt.skeletons[0].joints[2:]  # fewer joints
    for node in shirt.nodes[:4]:
        node.mesh = weighted(node.mesh, joints=2)
    assert choose_for_scene(context, shirt, [], "AUTO") is None
    assert choose_for_scene(context, shirt, [first], "NEW") is None
    assert choose_for_scene(context, shirt, [first], "AUTO") == first
    made = run(shirt, onto=first)
    assert made.armatures == [first] and not made.bones and not made.warnings
    assert bpy.data.objects["Shirt"].parent == bpy.data.objects["Shirt_LOD0"].parent == first
    assert own_armatures() == [first]

    def changed(number: int, **joint: Any) -> Any:
        other = model(rigged=True)
        other.skeletons[0].joints[number] = replace(other.skeletons[0].joints[number], **joint)
        return choose_for_scene(context, other, [first], "AUTO")

    assert changed(1, translation=(0.0, 0.02, 0.25005)) == first
    assert changed(1, translation=(0.0, 0.02, 0.2502)) is None
    assert changed(1, name="mNeck") is None
    assert changed(3, parent=0, translation=(0.0, 0.02, 0.55)) is None
    assert changed(2, scale=(0.2, 0.3, 0.5)) is None
    assert changed(0) == first
    # A file that says nothing of its binding gets an armature of its own, as ever.
    unbound = model(rigged=True)
    for node in unbound.nodes:
        node.skin = None
    assert choose_for_scene(context, unbound, [first], "AUTO") is None


def test_joints_on_other_parents_are_others_though_they_lie_alike() -> None:
    import bpy
    from meshferry.blender_data.importing.armature_matching import choose_for_scene
    from meshferry.io_formats.core.scene import Joint

    def standing(parent: int) -> Any:
        scene = model(rigged=True)
        joints = scene.skeletons[0].joints
        joints.append(Joint("mOrigin"))
        joints[0] = replace(joints[0], parent=parent)
        return scene

    first = run(standing(4)).armatures[0]
    assert choose_for_scene(bpy.context, standing(4), [first], "AUTO") == first
    assert choose_for_scene(bpy.context, standing(-1), [first], "AUTO") is None


def test_the_models_of_one_file_share_where_they_lie_alike() -> None:
    import bpy

    scene = model(rigged=True)
    for number, shift in enumerate((0.0, 0.5), 1):
        other = model(rigged=True, name=f"Other {number}")
        other.skeletons[0].joints[0] = replace(other.skeletons[0].joints[0], translation=(shift, 0.0, 1.0))
        scene.skeletons.append(other.skeletons[0])
        scene.nodes.append(replace(other.nodes[0], skeleton=number))
    made = run(scene)
    assert len(bpy.data.armatures) == 2
    parents = [bpy.data.objects[name].parent for name in ("Body", "Other 1", "Other 2")]
    assert parents[0] == parents[1] != parents[2]
    assert made.bones == 8


def test_onto_the_active_armature_when_asked() -> None:

    first = run(model(rigged=True)).armatures[0]
    other = model(rigged=True, name="Shirt")
    other.skeletons[0].joints[0] = replace(other.skeletons[0].joints[0], translation=(0.5, 0.0, 1.0))
    made = run(other, onto=first, armature="ACTIVE")
    assert made.armatures == [first] and any("bind pose" in text for text in made.warnings)
    assert own_armatures() == [first]


# ---------------------------------------------------------------------------------- materials and textures

WHITE = (1.0, 1.0, 1.0, 1.0)


def png(*, alpha: bool, size: tuple[int, int] = (4, 2)) -> bytes:
    """Return a picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    width, height = size
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 6 if alpha else 2, 0, 0, 0))
    row = b"\0" + bytes((200, 100, 50, 128) if alpha else (200, 100, 50)) * width
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")
    )


def with_material(material: Any) -> Any:
    return model(materials=[material])


def shader_of(name: str = "Skin") -> Any:
    import bpy

    return next(node for node in bpy.data.materials[name].node_tree.nodes if node.type == "BSDF_PRINCIPLED")


def texture_of(socket: Any) -> Any:
    """Return the image node upstream of a socket."""
    waiting = [link.from_node for link in socket.links]
    while waiting:
        node = waiting.pop()
        if node.type == "TEX_IMAGE":
            return node
        waiting += [link.from_node for one in node.inputs for link in one.links]
    return None


def test_new_materials_look_as_the_file_says() -> None:
    import bpy
    from meshferry.io_formats.core.scene import Material

    made = run(with_material(Material("Skin", (0.5, 0.25, 0.125, 0.5), 0.6)))
    shader = shader_of()
    np.testing.assert_allclose(shader.inputs["Base Color"].default_value[:3], (0.5, 0.25, 0.125))
    assert shader.inputs["Alpha"].default_value == 0.5
    np.testing.assert_allclose(bpy.data.materials["Skin"].diffuse_color, (0.5, 0.25, 0.125, 0.5))
    emitted = np.mean(shader.inputs["Emission Color"].default_value[:3])
    assert emitted * shader.inputs["Emission Strength"].default_value == pytest.approx(0.6)
    assert shader_of("Cloth").inputs["Emission Strength"].default_value == 0.0
    assert not made.warnings


def test_materials_that_are_there_stay_as_they_are() -> None:
    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    there = bpy.data.materials.new("Skin")
    there.diffuse_color = (0.1, 0.2, 0.3, 1.0)
    run(with_material(Material("Skin", WHITE, 1.0, Texture("t.png", data=png(alpha=False)))))
    assert bpy.data.objects["Body"].material_slots[0].material == there
    np.testing.assert_allclose(there.diffuse_color, (0.1, 0.2, 0.3, 1.0))
    assert not bpy.data.images
    run(with_material(Material("Skin", (0.5, 0.25, 0.125, 1.0))), use_existing_materials=False)
    np.testing.assert_allclose(bpy.data.materials["Skin.001"].diffuse_color, (0.5, 0.25, 0.125, 1.0))


@pytest.mark.parametrize("given", ["ABSOLUTE", "RELATIVE", "WINDOWS", "MOVED", "PACKED"])
@pytest.mark.parametrize("alpha", [False, True])
def test_textures_come_from_their_file_or_from_packed_data(tmp_path: Path, given: str, alpha: bool) -> None:
    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    (tmp_path / "maps").mkdir()
    name = "wool.png"
    place = tmp_path / ("maps/wool.png" if given in ("ABSOLUTE", "RELATIVE") else name)
    if given != "PACKED":
        place.write_bytes(png(alpha=alpha))
    path = {
        "ABSOLUTE": str(place),
        "RELATIVE": "maps/wool.png",
        "WINDOWS": "C:\\Users\\me\\wool.png",
        "MOVED": str(tmp_path / "gone" / name),
        "PACKED": "",
    }[given]
    texture = Texture(name, path, png(alpha=alpha) if given == "PACKED" else None)
    scene = with_material(Material("Skin", (0.5, 0.25, 1.0, 1.0), texture=texture))
    scene.materials.append(Material("Cloth", WHITE, 1.0, texture=texture))
    made = run(scene, str(tmp_path / "body.file"))
    assert not made.warnings
    assert len(bpy.data.images) == 1
    image = bpy.data.images[0]
    assert tuple(image.size) == (4, 2)
    assert (image.packed_file is not None) == (given == "PACKED")
    if given != "PACKED":
        assert Path(bpy.path.abspath(image.filepath)) == place
    for material in ("Skin", "Cloth"):
        shader = shader_of(material)
        assert texture_of(shader.inputs["Base Color"]).image == image
        assert (texture_of(shader.inputs["Alpha"]) is not None) == alpha
    assert texture_of(shader_of("Cloth").inputs["Emission Color"]).image == image
    direct = shader_of("Cloth").inputs["Base Color"].links[0].from_node
    assert direct.type == "TEX_IMAGE"  # white times a picture is the picture
    mixed = shader_of().inputs["Base Color"].links[0].from_node
    colors = [tuple(one.default_value) for one in mixed.inputs if one.identifier == "B_Color"]
    np.testing.assert_allclose(colors, [(0.5, 0.25, 1.0, 1.0)])


@pytest.mark.parametrize(
    "path", ["/nowhere/a.png", "//server/share/a.png", "\\\\server\\share\\a.png", os.devnull, "x" * 5000, "a\0b"]
)
def test_missing_textures_are_named_and_their_path_is_kept(tmp_path: Path, path: str) -> None:
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    made = run(with_material(Material("Skin", texture=Texture("a.png", path))), str(tmp_path / "body.file"))
    (said,) = made.warnings
    assert "'Skin'" in said and path in said
    image = texture_of(shader_of().inputs["Base Color"]).image
    assert image.source == "FILE" and image.name == "a.png"
    if len(path) < 100 and "\0" not in path:
        is_opened = path != os.devnull and not path.startswith("\\")  # Blender would open a device, or ask a machine
        assert image.filepath_raw == (path if is_opened else "//a.png")


def test_textures_of_the_network_are_not_asked_for(tmp_path: Path) -> None:
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.png").write_bytes(png(alpha=False))
    texture = Texture("a.png", f"/{tmp_path}/far/a.png")
    assert Path(texture.path).is_file() == (Path(tmp_path).drive == "")  # elsewhere than on Windows two slashes are one
    (said,) = run(with_material(Material("Skin", texture=texture)), str(tmp_path / "body.file")).warnings
    assert texture.path in said


@pytest.mark.parametrize("how", ["PACKED", "BROKEN", "REFUSED"])
def test_a_broken_texture_is_named(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.blender_data.importing import textures
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    (tmp_path / "a.png").write_bytes(b"no picture")
    texture = Texture("a.png", str(tmp_path / "a.png"), b"no picture" if how == "PACKED" else None)
    if how == "REFUSED":  # as where the file goes away, or may not be read
        monkeypatch.setattr(textures, "_exists", lambda _place: True)
        (tmp_path / "a.png").unlink()
    (said,) = run(with_material(Material("Skin", texture=texture))).warnings
    assert "'Skin'" in said and "'a.png'" in said


def test_a_picture_that_is_there_is_used_again(tmp_path: Path) -> None:
    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    (tmp_path / "a.png").write_bytes(png(alpha=False))
    there = bpy.data.images.load(str(tmp_path / "a.png"))
    material = Material("Skin", texture=Texture("a.png", str(tmp_path / "a.png")))
    run(with_material(material))
    assert texture_of(shader_of().inputs["Base Color"]).image == there and len(bpy.data.images) == 1


@pytest.mark.parametrize(
    "place",
    [
        ("importing.objects", "set_role"),
        ("importing.objects", "point_to_parts"),
        ("importing.objects", "hide_levels"),
        ("importing.meshes", "add_hull_faces"),
        ("importing.nodes", "store_binding"),
        ("importing.armatures", "sort_bones"),
        ("importing.armatures", "draw_bone"),
        ("shading.shaders", "arrange_nodes"),
        ("importing.textures", "TextureLoader._checked"),
        ("mesh_data.surfaces", "store_fields"),
    ],
)
def test_an_import_that_fails_on_the_way_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: tuple[str, str]
) -> None:
    import importlib

    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("broken off")

    module, path = place
    owner: Any = importlib.import_module(f"meshferry.blender_data.{module}")
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, name, fail)
    (tmp_path / "a.png").write_bytes(png(alpha=False))
    scene = model(rigged=True)
    scene.materials = [
        Material("Skin", (0.5, 0.5, 0.5, 1.0), texture=Texture("a.png", str(tmp_path / "a.png"))),
        Material("Cloth", texture=Texture("b.png", data=png(alpha=True))),
        Material("Gone", texture=Texture("c.png", "/nowhere/c.png")),
    ]
    kinds = ("objects", "meshes", "armatures", "materials", "images", "collections")
    before = {kind: list(getattr(bpy.data, kind)) for kind in kinds}
    with pytest.raises(RuntimeError, match="broken off"):
        run(scene)
    assert {kind: list(getattr(bpy.data, kind)) for kind in kinds} == before


def test_an_avatar_of_the_table_can_be_worn() -> None:
    """All joints of the table, and one mesh on all of them."""
    import bpy
    from meshferry.io_formats.core.scene import Node, Scene

    skeleton = avatar_table.skeleton()
    heads = avatar_table.heads()
    points = np.array([heads[joint.name] for joint in skeleton.joints], np.float32)
    mesh = weighted(triangles(53, ("Skin",)))
    mesh = replace(mesh, points=points[:159], joint_indices=np.arange(159, dtype=np.int32)[:, None])
    mesh.joint_weights = np.ones((159, 1), np.float32)
    made = run(Scene("Body", [Node("Body", mesh=mesh, skeleton=0)], [skeleton]))
    armature, body = made.objects
    assert len(body.vertex_groups) == 159
    for name, place in heads.items():
        np.testing.assert_allclose(armature.data.bones[name].head_local, place, atol=1e-6)
    bpy.context.view_layer.update()


def test_names_that_are_no_letters_come_in_with_question_marks(tmp_path: Path) -> None:
    """Names in files may be invalid UTF-8, which Python decodes to lone surrogates."""
    import bpy
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    scene = model(rigged=True, name=odd)
    scene.nodes[0].mesh.surfaces[0].name = odd
    scene.nodes[0].mesh.materials[0] = odd
    scene.nodes[0].skin.joint_names[0] = odd
    scene.skeletons[0].name = odd
    scene.skeletons[0].joints[0].name = scene.skeletons[0].joints[1].group = odd
    scene.source_name = odd
    scene.materials = [Material(odd, texture=Texture(odd, f"/nowhere/{odd}")), Material("Cloth", texture=Texture(odd))]
    made = run(scene, str(tmp_path / odd))
    body = bpy.data.objects["caf?"]
    assert body.material_slots[0].name == "caf?" and "caf?" in bpy.data.images
    assert {bone.name for bone in made.armatures[0].data.bones} == {"caf?", "mChest", "BELLY", "mHead"}
    assert body.vertex_groups[0].name == "caf?" and body.meshferry.skin.joints[0].name == "caf?"
    assert "caf?" in made.armatures[0].data.collections
    assert made.warnings and all(isinstance(text, str) for text in made.warnings)
