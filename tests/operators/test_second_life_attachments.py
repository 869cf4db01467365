"""Attachment points: added to an avatar, objects attached without moving, and the offsets that the viewer shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import avatar_rest
import numpy as np
import pytest
import slow_shape

pytestmark = pytest.mark.needs_bpy

SHAPES = ({}, {80: 1.0, 33: 1.2, 38: 0.7}, {33: -1.5, 34: 1.0, 682: 0.2})


def select(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def add_box(bpy: Any, name: str) -> Any:
    """Return a box whose origin is not its centre."""
    mesh = bpy.data.meshes.new(name)
    points = [(x, y, z) for x in (0.1, 0.3) for y in (-0.2, 0.3) for z in (0.0, 0.1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    mesh.from_pydata(points, [], faces)
    mesh.materials.append(bpy.data.materials.new("Wood"))
    mesh.uv_layers.new(name="UVMap")
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    obj.rotation_euler = (0.3, -0.5, 0.8)
    obj.location = (0.2, -0.4, 1.3)
    bpy.context.view_layer.update()
    return obj


def around(axis: str, degrees: float) -> Any:
    """Return the rotation about an axis, (3, 3)."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    one, other = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    made = np.identity(3)
    made[one, one] = made[other, other] = cosine
    made[other, one], made[one, other] = sine, -sine
    return made


def by_hand(point: str, values: dict[int, float], centre: Any, turn: Any) -> tuple[Any, Any]:
    """Return position and rotation matrix in the axes of a point without pose, from the page (section 3.4)."""
    row = avatar_rest.rows()[point]
    above = np.array(slow_shape.joints(values)[row["parent"]])
    place = np.array([float(row[f"pos_{axis}"] or 0) for axis in "xyz"])
    origin = above[:3] + above[3:] * place
    angles = [float(row[f"rot_{axis}"] or 0) for axis in "xyz"]
    axes = around("z", angles[2]) @ around("y", angles[1]) @ around("x", angles[0])
    to_avatar = np.array(((0, -1, 0), (1, 0, 0), (0, 0, 1)), float)
    return axes.T @ (to_avatar @ centre - origin), axes.T @ to_avatar @ turn


@pytest.mark.parametrize("point", ["Chest", "Right Hand", "Skull", "Left Hip"])
@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_offsets_are_those_of_the_page(clean_blender: Any, point: str, shape: int) -> None:
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats.second_life.avatar import armature_sliders
    from meshferry.operators.families.second_life import attachments

    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar, box = bpy.context.object, add_box(bpy, "Badge")
    if point == "Skull":
        box.parent = bpy.data.objects.new("Above", None)
        bpy.context.scene.collection.objects.link(box.parent)
        box.parent.scale, box.parent.rotation_euler = (1.0, 1.5, 1.0), (0.3, 0.2, 0.1)  # shears the box
        bpy.context.view_layer.update()
    select(bpy, avatar)
    assert bpy.ops.object.second_life_add_attachment_points() == {"FINISHED"}
    body_shapes.set_percents(avatar, armature_sliders.percents_of(SHAPES[shape]))
    bpy.context.view_layer.update()
    before = np.array(box.matrix_world)
    select(bpy, box, avatar)
    assert bpy.ops.object.second_life_attach(point=point) == {"FINISHED"}
    np.testing.assert_allclose(np.array(box.matrix_world), before, atol=2e-6)
    if point == "Skull":
        return
    position, degrees = attachments.offset_of(box)
    floor = np.array(avatar.pose.bones["mPelvis"].head) - (0, 0, 1.067)
    centre = np.array(before[:3, :3] @ (0.2, 0.05, 0.05) + before[:3, 3]) - floor
    wanted, turn = by_hand(point, SHAPES[shape], centre, before[:3, :3])
    np.testing.assert_allclose(position, wanted, atol=1e-5)
    x, y, z = degrees
    np.testing.assert_allclose(around("x", x) @ around("y", y) @ around("z", z), turn, atol=1e-5)


def test_points_are_added_once_as_a_new_avatar_has_them(clean_blender: Any) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add(use_attachments=True)
    whole = {bone.name: np.array(bone.matrix_local) for bone in bpy.context.object.data.bones}
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    avatar.location.x = 2.0
    assert bpy.ops.object.second_life_add_attachment_points() == {"FINISHED"}
    assert {bone.name for bone in avatar.data.bones} == set(whole)
    for bone in avatar.data.bones:
        np.testing.assert_allclose(np.array(bone.matrix_local), whole[bone.name], atol=2e-6, err_msg=bone.name)
        assert bone.inherit_scale == "NONE"
    assert not avatar.data.bones["Chest"].use_deform
    assert bpy.ops.object.second_life_add_attachment_points() == {"CANCELLED"}


def test_attached_objects_are_exported_as_at_rest(clean_blender: Any, tmp_path: Path, capfd: Any) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add(use_attachments=True)
    avatar, box = bpy.context.object, add_box(bpy, "Badge")
    select(bpy, box, avatar)
    assert bpy.ops.object.second_life_attach(point="Chest") == {"FINISHED"}

    def exported(name: str) -> bytes:
        select(bpy, box)
        path = tmp_path / name / "badge.slm"
        path.parent.mkdir()
        capfd.readouterr()
        assert bpy.ops.export_scene.second_life_bundle(filepath=str(path), scope="SELECTION") == {"FINISHED"}
        assert "parent bone" not in capfd.readouterr().out
        return path.read_bytes()

    worn = add_box(bpy, "Worn")
    worn.modifiers.new("Armature", "ARMATURE").object = avatar
    select(bpy, worn, avatar)
    with pytest.raises(RuntimeError, match="'Worn': an armature deforms it"):
        bpy.ops.object.second_life_attach(point="Chest")
    first = exported("rest")
    avatar.meshferry_shape_33 = 90.0
    avatar.pose.bones["mTorso"].rotation_quaternion = (0.9, 0.1, 0.3, 0.2)
    bpy.context.view_layer.update()
    assert exported("posed") == first
