"""Meshes that an armature deforms out of Blender as models: bones' heads, places beside the armature, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_export import active, add, assert_same_triangles, bpy, mesh_of, shown, tetra
from helpers_models import TUBE, TUBE_FACES, joint_worlds, rig, skinned
from helpers_placed import parts_of, placed, placed_points, placed_triangles
from scene_snapshot import changes, snapshot

pytestmark = pytest.mark.needs_bpy


def turned(obj: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(obj, name, value)
    bpy.context.view_layer.update()
    return obj


def pose(armature: Any, bone: str = "Upper") -> None:
    armature.pose.bones[bone].rotation_mode = "XYZ"
    armature.pose.bones[bone].rotation_euler = (0.7, 0.2, 0.1)
    bpy.context.view_layer.update()


def beside(armature: Any, points: Any) -> Any:
    """Return points of the world as they stand beside an armature: not its location, but all else, counts."""
    return points - np.array(armature.matrix_world.translation)


def weights_of(scene: Any, node: Any) -> list[dict[str, float]]:
    """Return the weights of each point by the joint's name."""
    names = [joint.name for joint in scene.skeletons[node.skeleton].joints]
    rows = zip(node.mesh.joint_indices.tolist(), node.mesh.joint_weights.tolist(), strict=True)
    return [
        {names[joint]: weight for joint, weight in zip(joints, weights, strict=True) if weight > 0}
        for joints, weights in rows
    ]


CASES = {
    "plain": {},
    "elsewhere": {"location": (3, 4, 5)},
    "turned": {"rotation_euler": (0.3, -0.2, 1.5), "location": (3, 4, 5)},
    "small": {"scale": (0.01, 0.01, 0.01), "rotation_euler": (1.57, 0, 0)},
    "uneven": {"scale": (1, 2, 0.5), "rotation_euler": (0.3, -0.2, 1.5)},
}


@pytest.mark.parametrize("case", CASES)
def test_joints_and_points_stand_beside_the_armature(case: str) -> None:
    armature = turned(rig(), **CASES[case])
    obj = turned(skinned(armature), location=(0.1, 0.2, 0.3), rotation_euler=(0, 0, 0.4), scale=(2, 1, 1))
    rest = beside(armature, shown(obj).reshape(-1, 3)).reshape(-1, 3, 3)
    heads = {bone.name: np.array(armature.matrix_world @ bone.head_local) for bone in armature.data.bones}
    pose(armature)
    assert np.abs(beside(armature, shown(obj)) - rest).max() > 0.003
    scene = placed()
    node = scene.nodes[0]
    assert_same_triangles(placed_triangles(node), rest, 1e-5)
    skeleton = scene.skeletons[node.skeleton]
    for joint, world in zip(skeleton.joints, joint_worlds(skeleton), strict=True):
        assert world[:3, 3] == pytest.approx(beside(armature, heads[joint.name]), abs=1e-6)
        assert world[:3, :3] == pytest.approx(np.identity(3), abs=1e-6)
        bone = armature.data.bones[joint.name]
        tail = np.array(armature.matrix_world.to_3x3() @ (bone.tail_local - bone.head_local))
        assert joint.tail == pytest.approx(tail, abs=1e-6)
    assert weights_of(scene, node)[0] == {"Lower": 1.0}
    assert weights_of(scene, node)[5] == pytest.approx({"Lower": 0.6, "Upper": 0.4})


def test_an_object_without_parent_stands_where_the_world_has_it() -> None:
    armature = turned(rig(), location=(1000.3, -2000.7, 3.1))
    obj = turned(skinned(armature), parent=None, location=(1000.4, -2000.7, 3.1))
    (node, *_) = placed().nodes
    assert node.translation == pytest.approx((0.1, 0, 0), abs=2e-4) and node.scale == (1, 1, 1)
    assert np.array_equal(node.mesh.points, np.array(TUBE, np.float32))
    assert obj.parent is None


def test_a_mirrored_object_is_turned_inside_in() -> None:
    armature = rig()
    obj = turned(skinned(armature), scale=(-1, 1, 1))
    node = placed().nodes[0]
    assert node.scale == (1, 1, 1)
    assert_same_triangles(placed_triangles(node), shown(obj))
    assert len(weights_of(placed(), node)) == 12


def test_an_imported_volume_keeps_its_rotation_and_scale() -> None:
    """A joint on which none hangs, with a bind of its own: the bone shows less than the file said."""
    armature = rig(bones={"Base": ((0, 0, 0), (0, 0, 1), None), "Volume": ((0, 0, 1), (0, 0.1, 1), "Base")})
    for number, bone in enumerate(armature.data.bones):
        kept = bone.meshferry
        kept.order, kept.parent_order = number, number - 1
        kept.rest_matrix = [value for row in bone.matrix_local for value in row]
        kept.bind_location = (0, 0, number)
        kept.bind_matrix = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, number, 0, 0, 0, 1]
    volume = armature.data.bones["Volume"].meshferry
    volume.bind_rotation, volume.bind_scale = (0.8, 0.6, 0, 0), (0.1, 0.2, 0.3)
    armature.data.bones["Base"].meshferry.bind_rotation = (0.6, 0, 0, 0.8)  # which says nothing: others hang on it
    skinned(armature, weights={"Base": [1.0] * 12, "Volume": [0.5] * 12})
    base, last = placed().skeletons[0].joints
    assert base.rotation == (1, 0, 0, 0) and base.scale == (1, 1, 1)
    assert last.rotation == pytest.approx((0.48, 0.36, 0.48, 0.64), abs=1e-6)
    assert last.scale == pytest.approx((0.1, 0.2, 0.3), abs=1e-6) and last.translation == (0, 0, 1)


def test_levels_take_the_bones_of_the_finest() -> None:
    armature = rig()
    skinned(armature, "body")
    # Of a copy of the rig in another place, with its bones in another order; bare, and side by side with the finest.
    other = rig("Copy", {"Upper": ((0, 0.1, 1), (0.3, 0, 2), None), "Lower": ((0, 0, 0), (0, 0.1, 1), None)})
    turned(other, location=(0, 7, 0))
    skinned(other, "body_LOD2")
    bare = skinned(armature, "body_LOD1")
    bare.modifiers.clear()
    turned(bare, parent=None, location=(0, -9, 0))
    turned(skinned(armature, "body_LOD0"), location=(5, 0, 0))
    pose(other)
    scene = placed()
    assert [len(skeleton.joints) for skeleton in scene.skeletons] == [2]
    for node in scene.nodes[:4]:
        assert node.skeleton == 0 and np.array_equal(node.mesh.points, np.array(TUBE, np.float32))
        assert weights_of(scene, node) == weights_of(scene, scene.nodes[0])


def test_shapes_of_a_rigged_model_are_not_deformed() -> None:
    armature = turned(rig(), location=(0, 0, 3))
    skinned(armature, "body")
    shape = tetra("body_PHYS", location=(0, 0, 3))
    parts = parts_of(placed(), "body")
    assert parts["physics"].skeleton is None and parts["physics"].mesh.joint_weights is None
    assert_same_triangles(placed_triangles(parts["physics"]), shown(shape) - np.array([0, 0, 3]))
    assert parts["base"].skeleton is None


def test_a_mesh_without_weights_stands_in_the_world() -> None:
    armature = turned(rig(), location=(0, 0, 3))
    obj = skinned(armature, weights={"Elsewhere": [1.0] * 12})
    scene = placed()
    assert scene.nodes[0].skeleton is None
    assert_same_triangles(placed_triangles(scene.nodes[0]), shown(obj))
    assert any("Tube" in text and "vertex groups" in text for text in scene.warnings)


def test_hanging_on_a_bone_is_told() -> None:
    armature = rig()
    hat = tetra("Hat", parent=armature)
    hat.parent_type, hat.parent_bone = "BONE", "Upper"
    bpy.context.view_layer.update()
    scene = placed()
    assert scene.nodes[0].skeleton is None
    assert_same_triangles(placed_triangles(scene.nodes[0]), shown(hat), 1e-4)
    assert any("Hat" in text and "bone" in text for text in scene.warnings)


def test_models_share_the_skeleton_of_their_armature() -> None:
    armature = rig()
    skinned(armature, "a")
    skinned(armature, "b")
    scene = placed()
    assert len(scene.skeletons) == 1
    assert [node.skeleton for node in scene.nodes if node.role.value == "render"] == [0, 0]


def test_modifiers_but_the_armature_are_applied_before_the_pose() -> None:
    armature = rig()
    obj = skinned(armature, "body")
    obj.modifiers.new("Subdivision", "SUBSURF").subdivision_type = "SIMPLE"
    at_rest = shown(obj)
    pose(armature)
    scene = placed()
    assert scene.nodes[0].mesh.triangle_count == 2 * 4 * len(TUBE_FACES)
    assert_same_triangles(placed_triangles(scene.nodes[0]), at_rest)
    assert scene.nodes[0].mesh.joint_weights.sum(axis=1) == pytest.approx(1.0, abs=1e-6)


# -- what a file said of the binding ------------------------------------------------------------


def bound(armature: Any) -> Any:
    """Add a tube that keeps a binding as from a file."""
    obj = turned(skinned(armature, "body"), location=(0.5, 0, 0), scale=(2, 2, 2))
    kept = obj.meshferry.skin
    kept.bind_shape = np.diag([2.0, 2, 2, 1]).reshape(-1) + 0.0
    kept.bind_shape[3] = 0.5
    kept.given_matrix = [value for row in obj.matrix_basis for value in row]
    for number, name in enumerate(("Upper", "Lower", "Unused")):
        joint = kept.joints.add()
        joint.name = name
        joint.inverse_bind = np.identity(4).reshape(-1)
        joint.inverse_bind[11] = -number
        joint.alt_inverse_bind = joint.inverse_bind[:]
        joint.position = (number, 0, 0)
    return obj


def test_a_kept_binding_is_exported() -> None:
    armature = rig()
    obj = bound(armature)
    skin = placed(use_as_imported=True).nodes[0].skin
    assert skin.joint_names == ["Upper", "Lower", "Unused"]
    assert skin.bind_shape.tolist() == [[2, 0, 0, 0.5], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]]
    assert skin.inverse_bind[2].tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -2], [0, 0, 0, 1]]
    assert skin.joint_positions is skin.pelvis_offset is skin.alt_inverse_bind is None and not skin.lock_scale
    kept = obj.meshferry.skin
    kept.has_positions = kept.has_pelvis_offset = kept.lock_scale = True
    kept.pelvis_offset = 0.25
    skin = placed(use_as_imported=True).nodes[0].skin
    assert skin.joint_positions.tolist() == [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    assert skin.pelvis_offset == 0.25 and skin.lock_scale is True
    assert skin.alt_inverse_bind.shape == (3, 4, 4)


def test_a_kept_binding_goes_along_with_its_object() -> None:
    armature = rig()
    obj = turned(bound(armature), location=(0.5, 1, 0))
    scene = placed(use_as_imported=True)
    assert scene.nodes[0].skin.bind_shape[:3, 3] == pytest.approx((0.5, 1, 0))
    obj.location = (0.5, 0, 0)
    turned(armature, scale=(3, 3, 3), rotation_euler=(0, 0, 0.3), location=(1, 1, 1))
    skin = placed(use_as_imported=True).nodes[0].skin
    turn = np.array(armature.matrix_world.to_3x3())
    assert skin.bind_shape[:3, :3] == pytest.approx(turn * 2, abs=1e-5)
    before = np.array(obj.meshferry.skin.joints[1].inverse_bind).reshape(4, 4)
    whole = skin.inverse_bind[1] @ skin.bind_shape
    assert whole == pytest.approx(before @ np.array(obj.meshferry.skin.bind_shape).reshape(4, 4), abs=1e-5)


def test_a_binding_in_centimetres_goes_along_in_metres() -> None:
    armature = rig()
    obj = bound(armature)
    kept = obj.meshferry.skin
    to_centimetres = np.diag((100.0, 100.0, 100.0, 1.0))
    kept.bind_shape = (to_centimetres @ np.array(kept.bind_shape).reshape(4, 4)).reshape(-1)
    for joint in kept.joints:
        joint.inverse_bind = (np.array(joint.inverse_bind).reshape(4, 4) @ np.linalg.inv(to_centimetres)).reshape(-1)
    before = placed(use_as_imported=True).nodes[0].skin
    turned(obj, location=(0.5, 1, 0))
    after = placed(use_as_imported=True).nodes[0].skin
    moved = after.inverse_bind[1] @ after.bind_shape - before.inverse_bind[1] @ before.bind_shape
    assert moved[:3, 3] == pytest.approx((0, 1, 0), abs=1e-5)


# -- the scene ----------------------------------------------------------------------------------


def test_the_scene_is_as_it_was() -> None:
    armature = rig()
    body = skinned(armature, "body")
    body.modifiers.new("Subdivision", "SUBSURF")
    level = skinned(armature, "body_LOD1")
    level.modifiers.new("Subdivision", "SUBSURF")
    level.hide_viewport = True
    hung = add("hung", mesh_of("hung", TUBE, TUBE_FACES), parent=armature, parent_type="ARMATURE")
    hung.vertex_groups.new(name="Upper").add(range(12), 1.0, "REPLACE")
    hung.modifiers.new("Array", "ARRAY")
    pose(armature)
    armature.data.pose_position = "POSE"
    bpy.context.scene.frame_set(7)
    with active(armature, mode="POSE"):
        bpy.context.view_layer.update()
        before = snapshot()
        scene = placed()
        assert changes(before, snapshot()) == {}
    assert placed_points(scene.nodes[0]).max() > 1


def test_messages_about_a_disabled_level_name_the_level_itself() -> None:
    bones = {f"Bone{number}": ((0, number, 0), (0, number, 1), None) for number in range(5)}
    armature = rig(bones=bones)
    weights = {name: [0.2] * 12 for name in bones}
    skinned(armature, "tube", weights)
    skinned(armature, "tube_LOD1", weights).hide_viewport = True
    found = [message for message in placed().warnings if message.code == "too-many-weights"]
    assert {(message.item, message.names) for message in found} == {("tube", ("tube",)), ("tube_LOD1", ("tube_LOD1",))}
