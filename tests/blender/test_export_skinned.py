"""Skinned meshes leave Blender as they rest, with the bones that move them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_export import TETRA, active, add, add_uv, bpy, drive, key, materials, mesh_of, push_down, square, tetra
from helpers_models import TUBE, TUBE_FACES, joint_worlds, rig, scene_of, shown_points, skinned, skinned_points
from round_trips import imported
from scene_snapshot import changes, snapshot

pytestmark = pytest.mark.needs_bpy


def pose(armature: Any) -> None:
    armature.pose.bones["Upper"].rotation_mode = "XYZ"
    armature.pose.bones["Upper"].rotation_euler = (0.5, 0.2, 0.9)
    armature.pose.bones["Lower"].location = (0.1, 0.2, 0.3)
    bpy.context.view_layer.update()


def edit(armature: Any) -> active:
    return active(armature, mode="EDIT")


def only(scene: Any) -> tuple[Any, Any, Any]:
    (node,) = scene.nodes
    return node, node.mesh, scene.skeletons[node.skeleton]


def test_mesh_rests_while_its_armature_poses(clean_blender: Any) -> None:
    armature = rig()
    obj = skinned(armature)
    pose(armature)
    _, mesh, skeleton = only(scene_of())
    np.testing.assert_array_equal(mesh.points, np.float32(TUBE))
    assert [joint.name for joint in skeleton.joints] == ["Lower", "Upper"]
    assert [joint.parent for joint in skeleton.joints] == [-1, 0]
    # Joints lie where Blender's bones rest.
    for bone, world in zip(armature.data.bones, joint_worlds(skeleton), strict=True):
        np.testing.assert_allclose(world, np.array(bone.matrix_local), atol=1e-6)
    assert obj.modifiers[0].show_viewport
    np.testing.assert_allclose(mesh.joint_weights.sum(axis=1), 1)


def test_other_modifiers_are_applied_before_armatures_deform(clean_blender: Any) -> None:
    armature = rig()
    obj = skinned(armature)
    mirror = obj.modifiers.new("Mirror", "MIRROR")
    mirror.use_axis = (True, False, False)
    mirror.use_mirror_merge = False
    pose(armature)
    _, mesh, skeleton = only(scene_of())
    flipped = np.float32(TUBE) * np.float32((-1, 1, 1))
    np.testing.assert_allclose(np.sort(mesh.points, axis=0), np.sort([*np.float32(TUBE), *flipped], axis=0), atol=1e-7)
    assert mesh.joint_weights.shape == (24, 4)
    assert obj.modifiers[0].show_viewport
    assert [joint.name for joint in skeleton.joints] == ["Lower", "Upper"]


def test_deformed_by_a_parent_without_modifier(clean_blender: Any) -> None:
    armature = rig()
    obj = skinned(armature)
    obj.modifiers.clear()
    obj.parent_type = "ARMATURE"
    obj.modifiers.new("Triangulate", "TRIANGULATE")
    pose(armature)
    _, mesh, _ = only(scene_of())
    np.testing.assert_array_equal(mesh.points, np.float32(TUBE))
    assert obj.parent_type == "ARMATURE"
    assert mesh.joint_weights is not None


@pytest.mark.parametrize("kind", ["UNIGINE_MESH", "SECOND_LIFE_UPLOAD"])
def test_a_lattice_parent_deforms_the_rest_shape(clean_blender: Any, kind: str) -> None:
    obj = add("Tube", mesh_of("Tube", TUBE, TUBE_FACES))
    data = bpy.data.lattices.new("Cage")
    for point in data.points:
        point.co_deform.x += 0.5 * point.co_deform.z
    obj.parent = add("Parent", data, scale=(4, 4, 4))
    obj.parent_type = "LATTICE"
    obj.update_tag(refresh={"DATA"})
    bpy.context.view_layer.update()
    wanted = shown_points(obj)
    assert np.ptp(wanted, axis=0)[0] > 4 * 0.75  # of 4 * 0.5
    found = scene_of(kind, [obj], space="WORLD") if kind == "UNIGINE_MESH" else scene_of(kind, [obj])
    (node,) = [node for node in found.nodes if node.name == "Tube"]
    points = node.mesh.points * node.scale
    np.testing.assert_allclose(np.ptp(points, axis=0), np.ptp(wanted, axis=0), atol=1e-5)


def _key_pose(armature: Any) -> None:
    armature.pose.bones["Upper"].rotation_mode = "XYZ"
    key(armature.pose.bones["Upper"], "rotation_euler", {1: (0, 0, 0), 11: (0.5, 0.2, 0.9)})
    bpy.context.scene.frame_set(1)


def _mirror_after(obj: Any) -> None:
    obj.modifiers.new("Mirror", "MIRROR")


def _solidify_after(obj: Any) -> None:
    obj.modifiers.new("Solidify", "SOLIDIFY").thickness = 0.3


def _twice(obj: Any) -> None:
    obj.modifiers.new("Second", "ARMATURE").object = obj.modifiers[0].object


def _parent_and_modifier(obj: Any) -> None:
    obj.parent_type = "ARMATURE"


def _growing_array_after(obj: Any) -> None:
    key(obj.modifiers.new("Array", "ARRAY"), "count", {1: 1, 11: 3})


def _mirror_before(obj: Any) -> None:
    obj.modifiers.new("Mirror", "MIRROR").use_mirror_vertex_groups = False
    obj.modifiers.move(1, 0)


def _triangulate_after(obj: Any) -> None:
    obj.modifiers.new("Triangulate", "TRIANGULATE")
    obj.modifiers.new("Smooth", "WEIGHTED_NORMAL")


def _split_by_angles_after(obj: Any) -> None:
    obj.modifiers.new("Edge Split", "EDGE_SPLIT").split_angle = 0.02


def _switched_off(obj: Any) -> None:
    obj.modifiers.new("Mirror", "MIRROR").show_viewport = False


def _moving_shape_key(obj: Any) -> None:
    obj.modifiers.new("Triangulate", "TRIANGULATE")
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="Wide").data[3].co.x += 3
    key(obj.data.shape_keys.key_blocks["Wide"], "value", {1: 0.0, 11: 1.0})


STACKS = [
    *((make, True) for make in (_mirror_after, _solidify_after, _twice, _parent_and_modifier, _growing_array_after)),
    *((make, False) for make in (_mirror_before, _triangulate_after, _split_by_angles_after, _switched_off)),
    (_moving_shape_key, False),
]


@pytest.mark.parametrize("kind", ["UNIGINE_MESH", "SECOND_LIFE_UPLOAD"])
@pytest.mark.parametrize(("change", "is_said"), STACKS)
def test_a_skinned_result_other_than_shown_is_said(clean_blender: Any, kind: str, change: Any, is_said: bool) -> None:
    armature = rig(location=(1, 0, 0), rotation_euler=(0, 0, 1))
    obj = skinned(armature)
    _key_pose(armature)
    change(obj)
    bpy.context.scene.frame_set(1)
    before = snapshot()
    said = [text for text in scene_of(kind, [obj]).warnings if "modifiers follow its Armature" in str(text)]
    assert bool(said) == is_said
    assert not changes(before, snapshot())
    assert bpy.context.scene.frame_current == 1


@pytest.mark.parametrize("way", ["strip", "driver", "pose"])
def test_a_skinned_result_is_compared_wherever_something_moves(clean_blender: Any, way: str) -> None:
    armature = rig()
    obj = skinned(armature)
    bone = armature.pose.bones["Upper"]
    if way == "strip":
        _key_pose(armature)
        push_down(armature, "Late", start=500)
    elif way == "driver":
        drive(bone, "location", "frame / 100", 0)
    else:
        bone.location = (1, 0, 0)
    _mirror_after(obj)
    assert any("modifiers follow its Armature" in str(text) for text in scene_of("UNIGINE_MESH", [obj]).warnings)


@pytest.mark.parametrize("uses_groups", [True, False])
def test_weights_that_blender_does_not_use_are_said(clean_blender: Any, uses_groups: bool) -> None:
    obj = skinned(rig())
    obj.modifiers[0].use_vertex_groups = uses_groups
    assert any("Vertex Groups is off" in str(text) for text in scene_of().warnings) != uses_groups


def test_weights(clean_blender: Any) -> None:
    """Zero weights and weights of groups without a bone are dropped; the strongest four remain and are counted."""
    bones = {f"B{k}": ((0, 0, k), (0, 0, k + 1), f"B{k - 1}" if k else None) for k in range(6)}
    armature = rig(bones=bones)
    armature.data.bones["B5"].use_deform = False
    weights: dict[str, Any] = {f"B{k}": [0.1 + 0.05 * k] * 12 for k in range(6)}
    weights["B0"][:4] = [0.0, 0.0, 0.0, 0.0]
    weights["Foreign"] = [1.0] * 12
    skinned(armature, weights=weights)
    scene = scene_of()
    _, mesh, skeleton = only(scene)
    assert [joint.name for joint in skeleton.joints] == [f"B{k}" for k in range(6)]
    dense = np.zeros((12, 6))
    np.put_along_axis(dense, mesh.joint_indices, mesh.joint_weights, axis=1)
    held = np.float32([0.15, 0.2, 0.25, 0.3])
    np.testing.assert_allclose(dense[:4, 1:5], np.tile(held, (4, 1)), atol=1e-6)
    np.testing.assert_allclose(dense[4:, 1:5], np.tile(held / held.sum() * (held.sum() + 0.1), (8, 1)), atol=1e-6)
    assert not dense[:, [0, 5]].any()
    assert any("8 vertices have more than 4 weights" in text for text in scene.warnings)


def test_groups_without_bones_are_said(clean_blender: Any) -> None:
    skinned(rig(), weights={"Other": [1.0] * 12})
    scene = scene_of()
    node, mesh, _ = only(scene)
    assert mesh.joint_weights is None
    assert node.skeleton == 0
    assert any("none of its vertex groups" in text for text in scene.warnings)


@pytest.mark.parametrize("space", ["OWN", "TURNED_AND_SCALED", "WORLD"])
@pytest.mark.parametrize("scale", [(1, 1, 1), (0.01, 0.01, 0.01)])
def test_points_and_bones_agree_in_every_space(clean_blender: Any, space: str, scale: tuple[float, ...]) -> None:
    """Skinning with the file's own numbers shows what Blender shows, wherever the armature stands."""
    armature = rig(location=(3, 4, 5), rotation_euler=(0.3, 0.2, 1.0), scale=scale)
    obj = skinned(armature)
    obj.location = (0.2, 0, 0)
    obj.scale = (1, 2, 1)
    scene = scene_of(space=space)
    _, mesh, skeleton = only(scene)
    held = np.array(armature.matrix_world, float)
    place = np.identity(4) if space == "OWN" else held.copy()
    if space == "TURNED_AND_SCALED":
        place[:3, 3] = 0
    np.testing.assert_allclose(mesh.points, shown_points(obj, place @ np.linalg.inv(held)), atol=1e-6)
    for bone, world in zip(armature.data.bones, joint_worlds(skeleton), strict=True):
        expected = place @ np.array(bone.matrix_local)
        np.testing.assert_allclose(world[:3, 3], expected[:3, 3], atol=1e-6)
    # A scale of the object goes into the places of joints, which stay without scale of their own.
    np.testing.assert_allclose([joint.scale for joint in skeleton.joints], 1, atol=1e-6)
    key_pose(armature)
    clip = scene_of(space=space).clips[0]
    rounding = 2e-5 if space == "OWN" else 2e-6  # Blender's own points, enlarged again
    check_skinning(obj, mesh, skeleton, clip, place @ np.linalg.inv(held), rounding)


def key_pose(armature: Any) -> None:
    upper = armature.pose.bones["Upper"]
    upper.rotation_mode = "XYZ"
    upper.keyframe_insert("rotation_euler", frame=1)
    upper.rotation_euler = (0.5, 0.2, 0.9)
    upper.keyframe_insert("rotation_euler", frame=5)
    lower = armature.pose.bones["Lower"]
    lower.location = (0.1, 0.2, 0.3)
    lower.keyframe_insert("location", frame=3)
    bpy.context.view_layer.update()


def check_skinning(obj: Any, mesh: Any, skeleton: Any, clip: Any, place: Any, tolerance: float = 2e-6) -> None:
    from helpers_models import frame_worlds

    for number in range(clip.frame_count):
        bpy.context.scene.frame_set(1 + number)
        expected = shown_points(obj, place)
        found = skinned_points(mesh, skeleton, frame_worlds(skeleton, clip, number))
        np.testing.assert_allclose(found, expected, atol=tolerance * max(1.0, float(np.abs(expected).max())))


def test_armature_with_unequal_scale_is_said(clean_blender: Any) -> None:
    armature = rig(scale=(1, 2, 1), bones={"Lean": ((0, 0, 0), (0.5, 0.5, 0.7), None)})
    skinned(armature, weights={"Lean": [1.0] * 12})
    assert any("scaled unequally" in text for text in scene_of().warnings)


def test_one_armature_of_several_meshes_is_one_skeleton(clean_blender: Any) -> None:
    armature = rig()
    skinned(armature, "One")
    skinned(armature, "Two")
    tetra("Stone")
    scene = scene_of()
    assert {node.name: node.skeleton for node in scene.nodes} == {"One": 0, "Two": 0, "Stone": None}
    assert len(scene.skeletons) == 1


def test_deform_bones_only(clean_blender: Any) -> None:
    bones = {
        "Root": ((0, 0, 0), (0, 0, 1), None),
        "Spine": ((0, 0, 1), (0, 0, 2), "Root"),
        "Control": ((1, 0, 0), (1, 0, 1), "Root"),
    }
    armature = rig(bones=bones)
    armature.data.bones["Root"].use_deform = armature.data.bones["Control"].use_deform = False
    skinned(armature, weights={"Spine": [1.0] * 12})
    kept = [joint.name for joint in only(scene_of(use_deform_bones_only=True))[2].joints]
    assert kept == ["Root", "Spine"]
    assert len(only(scene_of())[2].joints) == 3


# ---------------------------------------------------------------------------------- bones that came from a file


def imported_rig() -> Any:
    """Import joints with scales, out of order, with two roots; return the armature."""
    from meshferry.blender_data.importing import import_options, importer
    from meshferry.io_formats.core.scene import Joint, Mesh, Node, Scene, Skeleton

    joints = [
        Joint("tip", 1, (0.0, 20.0, 0.1), (0.96, 0.28, 0.0, 0.0), (1.0, 1.0, 1.0)),
        Joint("arm", 2, (0.3, 1.0, 0.2), (0.8, 0.0, 0.6, 0.0), (0.05, 0.05, 0.05)),
        Joint("root", -1, (0.1, 0.2, 0.3), (0.6, 0.0, 0.0, 0.8), (2.5, 2.5, 2.5)),
        Joint("other", -1, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    ]
    mesh = Mesh(np.float32(TETRA), np.int32([0, 2, 1, 0, 1, 3]), np.zeros(2, np.int32), ["m"])
    mesh.joint_indices = np.int32([[0, 1], [1, 2], [2, 0], [3, 0]])
    mesh.joint_weights = np.float32([[0.5, 0.5], [1, 0], [1, 0], [1, 0]])
    scene = Scene("Model", [Node("Thing", mesh=mesh, skeleton=0)], [Skeleton("Bones", joints)])
    made = importer.import_scene(import_options.ImportRequest(bpy.context, scene, import_options.ImportOptions.of()))
    assert made.objects
    return next(obj for obj in bpy.data.objects if obj.type == "ARMATURE")


def joints_of(armature: Any) -> dict[str, Any]:
    (skeleton,) = scene_of(source=[obj for obj in bpy.data.objects if obj.type == "MESH"]).skeletons
    return {joint.name: (number, joint, skeleton) for number, joint in enumerate(skeleton.joints)}


def bits(joint: Any) -> bytes:
    return np.float32([*joint.translation, *joint.rotation, *joint.scale]).tobytes()


def test_untouched_bones_go_back_to_the_bit(clean_blender: Any) -> None:
    armature = imported_rig()
    with edit(armature):
        pass  # entering edit mode changes nothing
    found = joints_of(armature)
    assert list(found) == ["tip", "arm", "root", "other"]
    assert [entry[1].parent for entry in found.values()] == [1, 2, -1, -1]
    tip = found["tip"][1]
    assert bits(tip) == np.float32([0.0, 20.0, 0.1, 0.96, 0.28, 0.0, 0.0, 1.0, 1.0, 1.0]).tobytes()


def test_renamed_bone_keeps_its_transform(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    armature.data.bones["arm"].name = "upper arm"
    after = joints_of(armature)
    assert list(after) == ["tip", "upper arm", "root", "other"]
    for old, new in zip(before.values(), after.values(), strict=True):
        assert bits(old[1]) == bits(new[1])


def test_moved_bone_takes_its_joint_along(clean_blender: Any) -> None:
    """The joint moves as its bone does; those that hang on it stay where their bones are, with their scales."""
    armature = imported_rig()
    before = joints_of(armature)
    old_worlds = joint_worlds(before["tip"][2])
    with edit(armature):
        bone = armature.data.edit_bones["arm"]
        bone.head.x += 0.5
        bone.tail.x += 0.5
    after = joints_of(armature)
    new_worlds = joint_worlds(after["tip"][2])
    for name in ("root", "other"):
        assert bits(after[name][1]) == bits(before[name][1])
    number = after["arm"][0]
    moved = old_worlds[number].copy()
    moved[0, 3] += 0.5
    np.testing.assert_allclose(new_worlds[number], moved, atol=2e-6)
    tip = after["tip"][0]
    np.testing.assert_allclose(new_worlds[tip], old_worlds[tip], atol=3e-6)
    np.testing.assert_allclose(after["arm"][1].scale, before["arm"][1].scale, rtol=1e-5)


def test_new_bones_follow_and_others_stay(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    with edit(armature):
        bone = armature.data.edit_bones.new("added")
        bone.head, bone.tail = (0.5, 0.5, 0.5), (0.5, 1.0, 0.5)
        bone.parent = armature.data.edit_bones["root"]
    after = joints_of(armature)
    assert list(after) == ["tip", "arm", "root", "other", "added"]
    for name, entry in before.items():
        assert bits(after[name][1]) == bits(entry[1])
    world = joint_worlds(after["added"][2])[4]
    np.testing.assert_allclose(world, np.array(armature.data.bones["added"].matrix_local), atol=2e-6)


def test_duplicated_bone_is_a_new_one(clean_blender: Any) -> None:
    armature = imported_rig()
    with edit(armature):
        for bone in armature.data.edit_bones:
            bone.select = bone.select_head = bone.select_tail = bone.name == "arm"
        bpy.ops.armature.duplicate()
    found = joints_of(armature)
    assert list(found)[:4] == ["tip", "arm", "root", "other"]
    assert list(found)[4] == "arm.001"


def test_without_a_parent_that_had_scale(clean_blender: Any) -> None:
    armature = imported_rig()
    with edit(armature):
        bones = armature.data.edit_bones
        bones.remove(bones["root"])
    found = joints_of(armature)
    assert list(found) == ["tip", "arm", "other"]
    worlds = joint_worlds(found["tip"][2])
    for name in ("tip", "arm", "other"):
        place = np.array(armature.data.bones[name].matrix_local)[:3, 3]
        np.testing.assert_allclose(worlds[found[name][0]][:3, 3], place, atol=2e-6)


def test_bone_on_another_parent(clean_blender: Any) -> None:
    armature = imported_rig()
    before = joints_of(armature)
    with edit(armature):
        armature.data.edit_bones["tip"].parent = armature.data.edit_bones["other"]
    after = joints_of(armature)
    assert after["tip"][1].parent == after["other"][0]
    assert bits(after["arm"][1]) == bits(before["arm"][1])
    worlds = joint_worlds(after["tip"][2])
    place = np.array(armature.data.bones["tip"].matrix_local)[:3, 3]
    np.testing.assert_allclose(worlds[after["tip"][0]][:3, 3], place, atol=2e-6)


def test_added_vertex_group_and_shape_key_reach_the_file(clean_blender: Any, samples: Path) -> None:
    """A real skinned file, edited: what was edited is in the new file, the rest is as it was."""
    found = imported((samples / "unigine" / "ms13_cat_289bones.mesh").read_bytes(), normals="EXACT")
    before, made = found.document, found.made
    (obj,) = (obj for obj in made.objects if obj.type == "MESH")
    bone = before.bones[200].name
    point = int(np.asarray(before.surfaces[0].c_indices)[0])
    group = obj.vertex_groups.get(bone) or obj.vertex_groups.new(name=bone)
    for other in obj.vertex_groups:
        other.remove((point,))
    group.add((point,), 1.0, "REPLACE")
    obj.shape_key_add(name="Basis", from_mix=False)
    key = obj.shape_key_add(name="Grin", from_mix=False)
    key.points[point].co.z += 0.25
    (part,) = found.format.files_of(scene_of(source=made.objects), {"mesh_version": "MS13"})
    after = found.format.read(found.format.write(found.format.from_scene(part, {"mesh_version": "MS13"})))
    assert after.bones == before.bones
    np.testing.assert_array_equal(after.transforms, before.transforms)
    surface = after.surfaces[0]
    names = [target.name for target in surface.targets]
    assert names == [before.surfaces[0].targets[0].name, "Grin"]
    assert all(len(other.targets) == 1 for other in after.surfaces[1:])
    base, grin = (np.asarray(target.positions) for target in surface.targets)
    moved = np.flatnonzero(np.abs(grin - base).max(axis=1))
    assert len(moved) == 1
    np.testing.assert_allclose(grin[moved[0]] - base[moved[0]], (0, 0, 0.25), atol=1e-6)
    starts = np.cumsum(surface.weights.counts) - surface.weights.counts
    assert surface.weights.counts[moved[0]] == 1
    assert surface.weights.bones[starts[moved[0]]] == 200
    assert surface.weights.values[starts[moved[0]]] == 65535


# ---------------------------------------------------------------------------------- objects, slots, layers


def test_every_mesh_object_is_a_root(clean_blender: Any) -> None:
    above = add("Group", location=(1, 2, 3))
    tetra("Child", parent=above, location=(0, 0, 5), scale=(2, 2, 2))
    scene = scene_of()
    (node,) = scene.nodes
    assert (node.name, node.parent, node.translation) == ("Child", -1, (0.0, 0.0, 0.0))
    np.testing.assert_allclose(node.mesh.points, 2 * np.float32(TETRA), atol=1e-6)
    assert any("'Group'" in text for text in scene.warnings)
    (node,) = scene_of(space="WORLD").nodes
    np.testing.assert_allclose(node.mesh.points, 2 * np.float32(TETRA) + (1, 2, 8), atol=1e-5)
    (node,) = scene_of(space="OWN").nodes
    np.testing.assert_array_equal(node.mesh.points, np.float32(TETRA))


def test_lost_parents_are_said(clean_blender: Any) -> None:
    armature = rig()
    above = tetra("Above")
    tetra("Below", parent=above)
    held = tetra("Held", parent=armature)
    assert not any("not carried over" in text for text in scene_of(source=[held]).warnings)
    held.parent_type, held.parent_bone = "BONE", "Upper"
    said = [text for text in scene_of().warnings if "the parent" in text]
    assert said == ["'Below', 'Held': the parent (an object or a bone) is not carried over"]


def test_slots_of_one_material_stay_apart(clean_blender: Any) -> None:
    obj = tetra()
    materials(obj, "Red", "Red", None)
    obj.data.polygons[1].material_index = 1
    obj.data.polygons[2].material_index = 2
    mesh = scene_of().nodes[0].mesh
    assert mesh.materials == ["Red", "Red", ""]
    assert [surface.name for surface in mesh.surfaces] == ["Red", "Red", ""]
    assert sorted(mesh.material_index.tolist()) == [0, 0, 1, 2]


def test_uv_maps_go_where_their_names_say(clean_blender: Any) -> None:
    obj = square()
    for name in ("Light", "UV1", "UV0"):
        add_uv(obj.data, name)
    scene = scene_of()
    assert [layer.name for layer in scene.nodes[0].mesh.uvs] == ["UV0", "UV1"]
    assert any("'Light'" in text for text in scene.warnings)
    obj.data.uv_layers.remove(obj.data.uv_layers["UV0"])
    assert [layer.name for layer in scene_of().nodes[0].mesh.uvs] == ["Light", "UV1"]


def test_coarser_levels_come_with_the_finest(clean_blender: Any) -> None:
    fine, coarse = tetra("Fine"), tetra("Coarse")
    coarse.meshferry.lod_of, coarse.meshferry.lod = fine, 2
    coarse.hide_set(True)
    scene = scene_of(source=[fine])
    assert [(node.name, node.lod, node.lod_of) for node in scene.nodes] == [("Fine", 0, None), ("Coarse", 2, 0)]
    alone = scene_of(source=[coarse], use_hidden=True)
    assert [(node.name, node.lod) for node in alone.nodes] == [("Coarse", 0)]


def test_mesh_without_faces(clean_blender: Any) -> None:
    from meshferry.io_formats.core.errors import ExportError

    obj = add("Empty", mesh_of("Empty", [], []))
    with pytest.raises(ExportError, match="no faces"):
        scene_of()
    obj.users_collection[0].meshferry.from_file = True
    (node,) = scene_of().nodes
    assert (node.name, len(node.mesh.points), node.mesh.surfaces) == ("Empty", 0, [])


def test_instances_become_part_of_their_instancer(clean_blender: Any) -> None:
    hidden = bpy.data.collections.new("Hidden")
    inner = tetra("Inner", collection=hidden)
    add("Many", instance_type="COLLECTION", instance_collection=hidden, location=(5, 0, 0), scale=(3, 3, 3))
    (node,) = scene_of().nodes
    assert node.name == "Many"
    np.testing.assert_allclose(node.mesh.points, 3 * np.float32(TETRA), atol=1e-6)
    assert inner.users == 1
