"""Exports of placements: nodes, models and parts, compared with Blender's own picture of the scene."""

from __future__ import annotations

import math
from typing import Any

import bpy
import numpy as np
import pytest
from helpers_export import (
    add,
    add_nodes,
    assert_same_triangles,
    grid,
    key,
    materials,
    model_collection,
    node_group,
    square,
    tetra,
)
from helpers_models import rig, scene_of, skinned
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.placement import Camera, ModelUse, PartUse

pytestmark = pytest.mark.needs_bpy


def placed(source: Any = None, **options: Any) -> Any:
    return scene_of("UNIGINE_SCENE", source, **options)


def texts(scene: Any) -> str:
    return "\n".join(str(message) for message in scene.warnings)


def nodes_of(scene: Any, part: int = 0) -> dict[str, Any]:
    return {node.name: node for node in scene.placement.parts[part].nodes}


def world_of(part: Any, node: Any) -> np.ndarray:
    return node.matrix if node.parent < 0 else world_of(part, part.nodes[node.parent]) @ node.matrix


def triangles(scene: Any, part: int = 0, before: Any = None) -> np.ndarray:
    """Return all triangles (T, 3, 3) of a placement in the world, with those of its parts where they stand."""
    runs = [np.empty((0, 3, 3))]
    home = scene.placement.parts[part]
    for node in home.nodes:
        world = (np.identity(4) if before is None else before) @ world_of(home, node)
        if isinstance(node.content, PartUse):
            runs.append(triangles(scene, node.content.part, world))
        elif isinstance(node.content, ModelUse):
            (model,) = scene.placement.models[node.content.model].read().nodes
            points = model.mesh.points.astype(float) @ world[:3, :3].T + world[:3, 3]
            corners = model.mesh.corner_point.reshape(-1, 3)
            runs.append(points[corners if np.linalg.det(world[:3, :3]) > 0 else corners[:, ::-1]])
    return np.concatenate(runs)


def pictured() -> np.ndarray:
    """Return all triangles that Blender renders, (T, 3, 3), with all instances."""
    runs = [np.empty((0, 3, 3))]
    for instance in bpy.context.evaluated_depsgraph_get().object_instances:
        above = instance.object.parent
        is_original = not instance.is_instance and above is not None and above.instance_type == "VERTS"
        if instance.object.type != "MESH" or is_original:
            continue
        mesh = instance.object.to_mesh()
        mesh.calc_loop_triangles()
        world = np.array(instance.matrix_world, float)
        if len(mesh.loop_triangles):
            points = np.array([vertex.co for vertex in mesh.vertices], float) @ world[:3, :3].T + world[:3, 3]
            corners = np.array([triangle.vertices[:] for triangle in mesh.loop_triangles], int)
            runs.append(points[corners if np.linalg.det(world[:3, :3]) > 0 else corners[:, ::-1]])
        instance.object.to_mesh_clear()
    return np.concatenate(runs)


def assert_as_pictured(scene: Any, tolerance: float = 1e-5) -> None:
    found = pictured()
    assert len(found)
    assert_same_triangles(triangles(scene), found, tolerance)


def hidden_home(name: str) -> Any:
    """Return a new collection that is excluded from the view layer, as the originals of instances often are."""
    home = model_collection(name)
    bpy.context.view_layer.layer_collection.children[name].exclude = True
    return home


@pytest.mark.slow
def test_every_object_is_a_node_with_its_exact_matrix(clean_blender):
    top = add("Top", location=(1, 2, 3), rotation_euler=(0.3, 0.4, 0.5), scale=(-1, 2, 0.5))
    middle = tetra("Middle", parent=top, location=(1, 0, 0), rotation_euler=(1, 0, 0), scale=(1, 3, 1))
    middle.matrix_parent_inverse = top.matrix_world.inverted()
    low = square("Low", parent=middle, delta_location=(0, 0, 2), delta_scale=(2, 1, 1), rotation_euler=(0, 0.7, 0.2))
    text = add("Sign", bpy.data.curves.new("Sign", "FONT"), parent=low, location=(0, 5, 0))
    text.data.body, text.data.extrude = "ab", 0.1
    far = tetra("Far", location=(123456.789, -0.1, 0.0))
    bpy.context.view_layer.update()

    scene = placed()

    found = nodes_of(scene)
    assert list(found) == ["Top", "Middle", "Low", "Sign", "Far"]
    assert [node.parent for node in found.values()] == [-1, 0, 1, 2, -1]
    assert found["Top"].content is None
    (part,) = scene.placement.parts
    for obj in (top, middle, low, text):
        np.testing.assert_allclose(world_of(part, found[obj.name]), np.array(obj.matrix_world), atol=2e-5)
    assert found["Far"].matrix[0, 3] == far.location.x
    assert_as_pictured(scene, 0.01)
    assert texts(scene) == ""


def test_objects_share_the_model_of_their_mesh_data_unless_modifiers_change_it(clean_blender):
    tree = tetra("Tree.001", location=(0, 0, 0))
    materials(tree, "Bark", "Leaf")
    tree.data.polygons[1].material_index = 1
    twin = add("Tree", tree.data, location=(5, 0, 0))
    red = add("Tree.002", tree.data, location=(9, 0, 0))
    red.material_slots[1].link = "OBJECT"
    red.material_slots[1].material = bpy.data.materials.new("Red")
    for name, count in (("Row", 3), ("Row.001", 3), ("Long", 4)):
        row = add(name, tree.data, location=(0, 9, 0))
        row.modifiers.new("Array", "ARRAY").count = count
    lone = tetra("Lone")

    scene = placed()

    found = nodes_of(scene)
    models = scene.placement.models
    shown = {name: models[node.content.model].name for name, node in found.items()}
    assert shown == {
        **dict.fromkeys(("Tree.001", "Tree", "Tree.002"), "Tree"),
        **dict.fromkeys(("Row", "Row.001"), "Row"),
        "Long": "Long",
        "Lone": "Lone",
    }
    slots = [(slot.name, slot.material) for slot in found["Tree.002"].content.slots]
    assert slots == [("Bark", "Bark"), ("Leaf", "Red")]
    assert found[twin.name].content.slots == ()
    assert [material.name for material in scene.materials] == ["Bark", "Leaf", "Red"]
    assert lone.name in found
    assert_as_pictured(scene)


def test_collection_instances_become_parts_that_instances_share(clean_blender):
    lamp = hidden_home("Lamp")
    lamp.instance_offset = (0, 0, 1)
    outside = add("Outside", None, model_collection("Other"), location=(0, 1, 0), scale=(1, -2, 1))
    foot = tetra("Foot", lamp, parent=outside, location=(1, 0, 0))
    bulb = tetra("Bulb", lamp, parent=foot, location=(0, 0, 2))
    bulb.modifiers.new("Array", "ARRAY").count = 2
    tetra("Unseen", lamp).hide_viewport = True
    street = hidden_home("Street")
    for number in range(2):
        of_lamp = {"instance_type": "COLLECTION", "instance_collection": lamp}
        add(f"Post {number}", None, street, location=(number, 0, 0), **of_lamp)
    for number in range(2):
        turned = {"rotation_euler": (0, 0, number + 1), "scale": (1, 1, 1 + number)}
        add(f"Way {number}", None, instance_type="COLLECTION", instance_collection=street, **turned)

    scene = placed()

    assert [part.name for part in scene.placement.parts] == ["Model", "Street", "Lamp"]
    assert [node.content for node in scene.placement.parts[0].nodes] == [PartUse(1)] * 2
    assert [node.content for node in scene.placement.parts[1].nodes] == [PartUse(2)] * 2
    assert list(nodes_of(scene, 2)) == ["Foot", "Bulb"]
    assert_as_pictured(scene)
    assert texts(scene) == ""
    assert not placed(use_instances=False).placement.models
    assert not bpy.context.scene.collection.objects
    assert bulb.users_collection == (lamp,)


def scattered(points: Any, shown: Any) -> None:
    """Show an object, by Geometry Nodes, at the points of another one, beside a generated cube at each."""
    group, given, result = node_group()
    at, info, cube = (group.nodes.new(f"GeometryNode{kind}") for kind in ("InstanceOnPoints", "ObjectInfo", "MeshCube"))
    cubes, joined = group.nodes.new("GeometryNodeInstanceOnPoints"), group.nodes.new("GeometryNodeJoinGeometry")
    info.inputs["Object"].default_value, info.inputs["As Instance"].default_value = shown, True
    at.inputs["Scale"].default_value = (1, 2, 0.5)
    for source, target in (
        (given.outputs[0], at.inputs["Points"]),
        (info.outputs["Geometry"], at.inputs["Instance"]),
        (given.outputs[0], cubes.inputs["Points"]),
        (cube.outputs["Mesh"], cubes.inputs["Instance"]),
        (at.outputs[0], joined.inputs[0]),
        (cubes.outputs[0], joined.inputs[0]),
        (joined.outputs[0], result.inputs[0]),
    ):
        group.links.new(source, target)
    add_nodes(points, group)


def test_other_instances_are_nodes_below_their_owner_with_shared_models(clean_blender):
    leaf = tetra("Leaf", hidden_home("Originals"))
    leaf.modifiers.new("Array", "ARRAY").count = 2
    ground = grid("Ground", 2, location=(3, 0, 0), scale=(1, -1, 2), rotation_euler=(0.2, 0, 0))
    scattered(ground, leaf)
    board = square("Board", location=(0, 9, 0), scale=(2, 1, 1))
    board.instance_type = "VERTS"
    tetra("Nail", parent=board, location=(0, 0, 1))

    scene = placed()

    models = scene.placement.models
    below = [node for node in scene.placement.parts[0].nodes if node.parent >= 0]
    assert sorted((node.name, models[node.content.model].name) for node in below) == sorted(
        [("Leaf", "Leaf")] * 9 + [("Ground", "Ground")] * 9 + [("Nail", "Nail")] * 4
    )
    assert len(models) == 4
    assert_as_pictured(scene)
    assert "no faces" not in texts(scene)


def test_deformed_objects_are_models_with_a_skeleton_at_their_armature(clean_blender):
    armature = rig(location=(1, 2, 3), scale=(2, 2, 2), rotation_euler=(0, 0, 1))
    tube = skinned(armature)
    tube.location = (0.5, 0, 0)
    other = rig("Spare", location=(0, 0, -5))
    for name in ("Left", "Right"):
        skinned(other, name)
    held = tetra("Held", parent=other, parent_type="BONE", parent_bone="Upper", location=(0, 0, 1))
    bpy.context.view_layer.update()
    expected = np.array(held.matrix_world)
    before = pictured()
    for one in (armature, other):
        one.pose.bones["Lower"].rotation_mode = "XYZ"
        one.pose.bones["Lower"].rotation_euler = (1, 0, 0)
    bpy.context.view_layer.update()

    scene = placed()

    found = nodes_of(scene)
    assert "Rig" not in found
    assert [found[name].parent for name in ("Left", "Right", "Held")] == [list(found).index("Spare")] * 3
    np.testing.assert_allclose(found["Tube"].matrix, np.array(armature.matrix_world), atol=1e-6)
    part = scene.placement.parts[0]
    np.testing.assert_allclose(world_of(part, found["Held"]), expected, atol=1e-6)
    model = scene.placement.models[found["Tube"].content.model].read()
    assert [joint.name for joint in model.skeletons[0].joints] == ["Lower", "Upper"]
    assert model.nodes[0].mesh.joint_weights is not None
    assert_same_triangles(triangles(scene), before)
    assert "bone" in texts(scene)


def test_driven_objects_stand_where_blender_shows_them(clean_blender):
    goal = add("Goal", location=(4, 5, 6))
    follower = tetra("Follower", location=(1, 0, 0))
    follower.constraints.new("COPY_LOCATION").target = goal
    child = tetra("Child", parent=follower, location=(0, 0, 1))
    key(goal, "location", {1: (0, 0, 0), 9: (9, 0, 0)})
    bpy.context.scene.frame_set(5)

    scene = placed()

    part = scene.placement.parts[0]
    found = nodes_of(scene)
    for obj in (follower, child):
        np.testing.assert_allclose(world_of(part, found[obj.name]), np.array(obj.matrix_world), atol=1e-6)
    assert "looks at the current frame" in texts(scene)
    bpy.context.scene.frame_set(1)


def test_hidden_objects_are_left_out_or_hidden_nodes(clean_blender):
    parent = tetra("Hidden Parent")
    tetra("Child", parent=parent)
    lone = tetra("Lone")
    tetra("Below", parent=lone).hide_set(True)
    for obj in (parent, lone):
        obj.hide_set(True)

    assert list(nodes_of(placed())) == ["Child"]
    scene = placed(use_hidden=True)
    found = nodes_of(scene)
    assert {name for name, node in found.items() if node.is_hidden} == {"Lone"}
    assert {name for name, node in found.items() if node.content is None} == {"Hidden Parent"}
    assert "Hidden Parent" in texts(scene)
    with pytest.raises(ExportError, match="hidden"):
        placed([lone])


def test_cameras_stand_at_nodes_and_lights_are_named(clean_blender):
    camera = add("Eye", bpy.data.cameras.new("Eye"))
    bpy.context.scene.camera = camera
    camera.data.sensor_fit, camera.data.angle = "VERTICAL", 0.7
    wide = add("Wide", bpy.data.cameras.new("Wide"))
    wide.data.angle = 1.2  # horizontal in a wide picture
    spot = add("Spot", bpy.data.lights.new("Spot", "SPOT"))
    add("Below", parent=spot)
    bpy.context.scene.render.resolution_x, bpy.context.scene.render.resolution_y = 200, 100

    scene = placed()

    found = {name: node.content for name, node in nodes_of(scene).items()}
    assert isinstance(found["Eye"], Camera)
    assert found["Eye"].is_main
    assert found["Eye"].field_of_view == pytest.approx(0.7)
    assert found["Wide"].field_of_view == pytest.approx(2 * math.atan(math.tan(0.6) / 2))
    assert found["Spot"] is None and nodes_of(scene)["Below"].parent >= 0
    assert "Spot: lights cannot be exported" in texts(scene)


def test_materials_of_one_name_stay_apart_and_keep_their_identity(clean_blender):
    names = ("Wood", "Stone")
    for name in names:
        materials(tetra(name), name)
    for name in names:
        kept = bpy.data.materials[name].meshferry
        kept.source_name, kept.given_name, kept.identity = "lamp", name, f"id of {name}"

    found = {material.name: material.identity for material in placed().materials}

    assert found == {"lamp": "id of Wood", "Stone": "id of Stone"}


def test_objects_of_no_size_are_refused_by_name(clean_blender):
    tetra("Flat", scale=(1, 0, 1))
    with pytest.raises(ExportError, match="'Flat' has zero scale on Y"):
        placed()
