"""Binding as shown: no button moves the mesh on a shaped and posed avatar, and the weights are what the file holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

SHAPES = ({}, {80: 1.0, 33: 1.0, 637: 0.5}, {33: -1.0, 682: 0.2, 795: 0.9, 693: 0.6, 34: 1.0})


def array(points: Any) -> Any:
    return np.array([tuple(one.co) for one in points], np.float64)


def shown(bpy: Any, obj: Any) -> Any:
    """Return the points that the user sees, in world space."""
    bpy.context.view_layer.update()
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    world = np.array(seen.matrix_world, np.float64)
    return array(seen.data.vertices) @ world[:3, :3].T + world[:3, 3]


def select(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[-1]


def make_avatar(bpy: Any, seed: int) -> Any:
    """Return an avatar with a shape and a pose, and a place of its own."""
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders

    bpy.ops.object.second_life_avatar_add()
    avatar, rng = bpy.context.object, np.random.default_rng(seed)
    avatar.location, avatar.rotation_euler = rng.normal(size=3) * 0.3, rng.normal(size=3) * 0.3
    body_shapes.set_percents(avatar, armature_sliders.percents_of(SHAPES[seed % len(SHAPES)]))
    for name in (
        "mTorso",
        "mChest",
        "mShoulderLeft",
        "mShoulderRight",
        "mElbowLeft",
        "mHipLeft",
        "mKneeRight",
        "mNeck",
    ):
        bone = avatar.pose.bones[name]
        bone.rotation_mode = "XYZ"
        bone.rotation_euler = rng.normal(size=3) * 0.25
    bpy.context.view_layer.update()
    return avatar


def make_tube(
    bpy: Any, avatar: Any, name: str, *, radius: float = 0.22, keys: bool = False, scale: Any = (1, 1, 1)
) -> Any:
    """Return a tube around the torso of the avatar as it is shown, in an object that is turned and scaled."""
    from mathutils import Euler, Matrix

    rings, around = 16, 24
    angles = np.linspace(0, 2 * np.pi, around, endpoint=False)
    heights = np.linspace(0.95, 1.6, rings)
    points = np.array([(0.22 * np.cos(a), 0.22 * np.sin(a), z) for z in heights for a in angles])
    root = np.array((avatar.matrix_world @ avatar.pose.bones["mPelvis"].head)[:]) - (0, 0, 1.067)
    faces = [
        (r * around + i, r * around + (i + 1) % around, (r + 1) * around + (i + 1) % around, (r + 1) * around + i)
        for r in range(rings - 1)
        for i in range(around)
    ]
    place = Matrix.LocRotScale((0.4, -0.2, 0.1), Euler((0.3, 0.2, -0.4)), scale)
    inverse = np.linalg.inv(np.array(place))
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([tuple(inverse[:3, :3] @ p + inverse[:3, 3]) for p in points + root], [], faces)
    if np.linalg.det(inverse[:3, :3]) < 0:
        mesh.flip_normals()
    mesh.uv_layers.new(name="UVMap")
    mesh.materials.append(bpy.data.materials.get("Cloth") or bpy.data.materials.new("Cloth"))
    obj = bpy.data.objects.new(name, mesh)
    obj.matrix_world = place
    bpy.context.scene.collection.objects.link(obj)
    if keys:
        obj.shape_key_add(name="Basis")
        wide = obj.shape_key_add(name="Wide")
        values = array(wide.data) * (1.1, 1.05, 1.0)
        wide.data.foreach_set("co", values.ravel())
        wide.value = 0.0
    bpy.context.view_layer.update()
    return obj


@pytest.mark.parametrize(
    ("seed", "scale"),
    [(0, (1, 1, 1)), (1, (1, 1, 1)), (2, (0.8, 0.8, 0.8)), (3, (0.8, 0.8, 0.8)), (4, (-1, 1, 1)), (5, (-1, 1, 1))],
)
def test_binding_does_not_move_the_mesh(clean_blender: Any, seed: int, scale: Any) -> None:
    bpy = clean_blender
    avatar = make_avatar(bpy, seed)
    tube = make_tube(bpy, avatar, "Tube", keys=bool(seed % 2), scale=scale)
    before = shown(bpy, tube)
    select(bpy, avatar, tube)
    for name, options in (
        ("bind", {}),
        ("fitted_mesh", {"factor": 0.7}),
        ("clean_weights", {"threshold": 0.05}),
        ("bind", {}),
    ):
        assert getattr(bpy.ops.object, f"second_life_{name}")(**options) == {"FINISHED"}
        assert np.abs(shown(bpy, tube) - before).max() < 1e-5, name
        counts = [sum(entry.weight > 0 for entry in vertex.groups) for vertex in tube.data.vertices]
        assert 0 < min(counts) <= max(counts) <= 4
    if seed % 2:
        tube.data.shape_keys.key_blocks["Wide"].value = 1.0
        wide = shown(bpy, tube)
        tube.data.shape_keys.key_blocks["Wide"].value = 0.0
        assert 0.01 < np.abs(wide - before).max() < 0.1


def test_objects_without_thickness_are_refused(clean_blender: Any) -> None:
    bpy = clean_blender
    avatar = make_avatar(bpy, 1)
    tube = make_tube(bpy, avatar, "Tube")
    rest = array(tube.data.vertices)
    tube.scale = (1.0, 1.0, 0.0)
    select(bpy, avatar, tube)
    with pytest.raises(RuntimeError, match="Error: Tube: it has a scale of zero"):
        bpy.ops.object.second_life_bind()
    assert not tube.modifiers and np.array_equal(array(tube.data.vertices), rest)


@pytest.mark.parametrize("kind", ["volume", "mask", "twice", "deform off", "hidden", "not bound"])
def test_meshes_that_are_shown_in_other_ways_are_taken_as_shown(clean_blender: Any, kind: str) -> None:
    bpy = clean_blender
    avatar = make_avatar(bpy, 1)
    tube = make_tube(bpy, avatar, "Tube", keys=True)
    select(bpy, avatar, tube)
    bpy.ops.object.second_life_bind()
    (modifier,) = tube.modifiers
    if kind == "volume":
        modifier.use_deform_preserve_volume = True
    elif kind == "mask":
        tube.vertex_groups.new(name="Mask").add(range(200), 0.6, "REPLACE")
        modifier.vertex_group = "Mask"
    elif kind == "twice":
        tube.modifiers.new("Second", "ARMATURE").object = avatar
    elif kind == "deform off":
        avatar.data.bones["mTorso"].use_deform = avatar.data.bones["mChest"].use_deform = False
    elif kind == "hidden":
        tube.data.shape_keys.key_blocks["Wide"].value = 0.6
        tube.hide_viewport = True
        level = make_tube(bpy, avatar, "Tube LOD")
        select(bpy, avatar, level)
        bpy.ops.object.second_life_bind()
        level.modifiers[0].use_deform_preserve_volume = True
        tube.meshferry.lod_of, tube.meshferry.lod, tube = level, 1, level
        tube.hide_viewport = False
    else:
        tube.modifiers.clear()
    before, rest = shown(bpy, tube), array(tube.data.vertices)
    for name, options in (("clean_weights", {"threshold": 0.05}), ("fitted_mesh", {"factor": 0.7})):
        select(bpy, avatar, tube)
        assert getattr(bpy.ops.object, f"second_life_{name}")(**options) == {"FINISHED"}
        assert np.abs(shown(bpy, tube) - before).max() < 1e-5, name
    assert np.array_equal(array(tube.data.vertices), rest) == (kind == "not bound")
    for one in avatar.pose.bones:
        assert one.bone.use_deform or one.name not in tube.vertex_groups or kind == "not bound"


def test_the_rest_is_worked_on_without_the_option(clean_blender: Any) -> None:
    bpy = clean_blender
    avatar = make_avatar(bpy, 1)
    tube = make_tube(bpy, avatar, "Tube")
    rest, before = array(tube.data.vertices), shown(bpy, tube)
    select(bpy, avatar, tube)
    assert bpy.ops.object.second_life_bind(use_as_shown=False) == {"FINISHED"}
    np.testing.assert_array_equal(array(tube.data.vertices), rest)
    assert np.abs(shown(bpy, tube) - before).max() > 0.01


@pytest.mark.slow
def test_a_garment_over_a_body_in_an_a_pose(clean_blender: Any) -> None:
    """A copy of a body that is 12 mm larger all around, modelled on the posed body, fits it at rest.

    The judge has the weights of the body itself, vertex by vertex. In the armpits, which are bent the most, its rest is
    not the body's plus 12 mm either. Edges there are shorter in the pose than in any garment that fits at rest.
    """
    from mathutils import Vector
    from meshferry.blender_data.rigging import as_shown, joint_weights, mesh_binding

    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    body = make_body(bpy, avatar)
    select(bpy, avatar, body)
    assert bpy.ops.object.second_life_bind() == {"FINISHED"}
    for side, sign in (("Left", 1), ("Right", -1)):
        bone = avatar.pose.bones[f"mShoulder{side}"]
        axis = bone.bone.matrix_local.to_3x3().inverted() @ Vector((0, 1, 0))
        bone.rotation_mode = "AXIS_ANGLE"
        bone.rotation_axis_angle = (sign * np.radians(45), *axis)
    rest_body = array(body.data.vertices)
    seen = shown(bpy, body)
    mesh = body.data.copy()
    mesh.vertices.foreach_set("co", seen.ravel())
    mesh.update()
    normals = np.array([tuple(one.vector) for one in mesh.vertex_normals])
    mesh.vertices.foreach_set("co", (seen + 0.012 * normals).ravel())
    garment = bpy.data.objects.new("Garment", mesh)
    bpy.context.scene.collection.objects.link(garment)
    bpy.context.view_layer.update()
    before = shown(bpy, garment)
    ends = np.array([tuple(edge.vertices) for edge in mesh.edges])

    def rest_of(obj: Any) -> Any:
        assert np.abs(shown(bpy, obj) - before).max() < 1e-5
        points = array(obj.data.vertices)
        return points, np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)

    exact = garment.copy()
    exact.data = mesh.copy()
    bpy.context.scene.collection.objects.link(exact)
    pose = as_shown.bone_transforms(avatar)
    weights = joint_weights.read(body, pose)
    weights.values = joint_weights.limited(weights.values, 4)
    with as_shown.kept_form(bpy.context, [exact], avatar):
        mesh_binding.apply({exact: weights}, avatar, set(pose))
    wanted, wanted_lengths = rest_of(exact)

    select(bpy, avatar, garment)
    assert bpy.ops.object.second_life_transfer_weights(source=body.name) == {"FINISHED"}
    found, lengths = rest_of(garment)
    assert np.linalg.norm(found - wanted, axis=1).max() < 0.006
    assert (lengths / wanted_lengths).max() < 2.0
    body.data.update()
    larger = rest_body + 0.012 * np.array([tuple(one.vector) for one in body.data.vertex_normals])
    apart = np.linalg.norm(found - larger, axis=1)
    assert np.quantile(apart, 0.99) < 0.004 and apart.max() < 0.009
    fitting_lengths = np.linalg.norm(larger[ends[:, 0]] - larger[ends[:, 1]], axis=1)
    assert (lengths / fitting_lengths).max() < 1.5


def test_both_sides_of_thick_cloth_get_the_weights_of_the_body(clean_blender: Any) -> None:
    bpy = clean_blender
    avatar = make_avatar(bpy, 1)
    body, cloth = make_tube(bpy, avatar, "Body"), make_tube(bpy, avatar, "Cloth")
    select(bpy, avatar, body)
    bpy.ops.object.second_life_bind()
    solid = cloth.modifiers.new("Solidify", "SOLIDIFY")
    solid.thickness, solid.offset = 0.004, 1.0
    with bpy.context.temp_override(object=cloth):
        bpy.ops.object.modifier_apply(modifier="Solidify")
    select(bpy, avatar, cloth)
    assert bpy.ops.object.second_life_transfer_weights(source="Body") == {"FINISHED"}
    with pytest.raises(RuntimeError, match="Error: Cloth: it has no vertex group 'None'"):
        bpy.ops.object.second_life_transfer_weights(source="Body", vertex_group="None")
    names = [group.name for group in avatar.data.bones]

    def weights(obj: Any) -> Any:
        found = np.zeros((len(obj.data.vertices), len(names)))
        for vertex in obj.data.vertices:
            for entry in vertex.groups:
                found[vertex.index, names.index(obj.vertex_groups[entry.group].name)] = entry.weight
        return found

    wanted, found = weights(body), weights(cloth)
    assert len(found) == 2 * len(wanted)
    apart = np.abs(found.reshape(2, 16, 24, -1) - wanted.reshape(16, 24, -1))[:, 1:-1]  # the border turns
    assert apart.max() < 0.05


def make_body(bpy: Any, avatar: Any) -> Any:
    """Return a closed body of a torso and two arms in the T-pose, made by voxels of capsules."""
    import bmesh
    from mathutils import Matrix

    made = bmesh.new()
    heads = {bone.name: np.array(bone.head_local) for bone in avatar.data.bones}
    limbs = [
        ("mPelvis", "mNeck", 0.13),
        ("mShoulderLeft", "mWristLeft", 0.05),
        ("mShoulderRight", "mWristRight", 0.05),
        ("mCollarLeft", "mCollarRight", 0.1),
    ]
    for first, last, radius in limbs:
        for share in np.linspace(0, 1, 24):
            place = Matrix.Translation(heads[first] + share * (heads[last] - heads[first]))
            bmesh.ops.create_icosphere(made, subdivisions=2, radius=radius, matrix=place)
    mesh = bpy.data.meshes.new("Body")
    made.to_mesh(mesh)
    made.free()
    obj = bpy.data.objects.new("Body", mesh)
    bpy.context.scene.collection.objects.link(obj)
    select(bpy, obj)
    mesh.remesh_voxel_size = 0.015
    bpy.ops.object.voxel_remesh()
    smooth = obj.modifiers.new("Smooth", "SMOOTH")
    smooth.iterations, smooth.factor = 30, 0.5
    bpy.ops.object.modifier_apply(modifier="Smooth")
    bpy.context.view_layer.update()
    return obj
