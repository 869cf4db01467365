"""Shape keys leave Blender as absolute shapes, whatever modifiers, masks and values stand on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_export import SQUARE, active, add, add_uv, bpy, grid, square, tetra
from helpers_models import TUBE, rig, scene_of, shown_points, skinned

pytestmark = pytest.mark.needs_bpy


def add_key(obj: Any, name: str, point: int, by: tuple[float, float, float], **attributes: Any) -> Any:
    if obj.data.shape_keys is None:
        obj.shape_key_add(name="Basis", from_mix=False)
    made = obj.shape_key_add(name=name, from_mix=False)
    made.points[point].co = np.array(made.points[point].co) + by
    made.value = 0.0
    for attribute, value in attributes.items():
        setattr(made, attribute, value)
    bpy.context.view_layer.update()
    return made


def mesh_in(scene: Any) -> Any:
    (node,) = scene.nodes
    return node.mesh


def keys_of(mesh: Any) -> dict[str, Any]:
    return {key.name: key.points - mesh.points for key in mesh.shape_keys}


def test_keys_are_absolute_and_the_basis_is_the_mesh(clean_blender: Any) -> None:
    obj = square()
    add_key(obj, "Up", 1, (0, 0, 1), value=0.5)
    add_key(obj, "Muted", 2, (1, 0, 0), mute=True)
    mesh = mesh_in(scene_of())
    np.testing.assert_array_equal(mesh.points, np.float32(SQUARE))
    moved = keys_of(mesh)
    assert list(moved) == ["Up", "Muted"]
    np.testing.assert_array_equal(moved["Up"], np.float32([(0, 0, 0), (0, 0, 1), (0, 0, 0), (0, 0, 0)]))
    np.testing.assert_array_equal(moved["Muted"], np.float32([(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 0, 0)]))
    assert obj.data.shape_keys.key_blocks["Up"].value == 0.5


def test_mesh_as_it_looks_without_keys(clean_blender: Any) -> None:
    obj = square()
    add_key(obj, "Up", 1, (0, 0, 1), value=0.5)
    mesh = mesh_in(scene_of(use_shape_keys=False))
    assert not mesh.shape_keys
    np.testing.assert_allclose(mesh.points, np.add(SQUARE, [(0, 0, 0), (0, 0, 0.5), (0, 0, 0), (0, 0, 0)]))


def test_key_relative_to_another_is_its_own_shape(clean_blender: Any) -> None:
    obj = square()
    first = add_key(obj, "First", 1, (0, 0, 1))
    add_key(obj, "Second", 2, (0, 1, 0), relative_key=first)
    moved = keys_of(mesh_in(scene_of()))
    np.testing.assert_array_equal(moved["Second"], np.float32([(0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 0)]))


@pytest.mark.parametrize("modifier", [None, "EDGE_SPLIT"])
def test_mask_of_a_key_is_applied(clean_blender: Any, modifier: str | None) -> None:
    obj = square()
    add_key(obj, "Up", 1, (0, 0, 1), vertex_group="Mask")
    obj.vertex_groups.new(name="Other")
    obj.vertex_groups.new(name="Mask").add((1,), 0.25, "REPLACE")
    if modifier:
        obj.modifiers.new("Modifier", modifier)
    moved = keys_of(mesh_in(scene_of()))
    np.testing.assert_allclose(moved["Up"], [(0, 0, 0), (0, 0, 0.25), (0, 0, 0), (0, 0, 0)], atol=1e-6)


@pytest.mark.parametrize("kind", ["MIRROR", "SUBSURF", "CAST"])
def test_keys_survive_modifiers_that_make_the_same_faces(clean_blender: Any, kind: str) -> None:
    """Each shape is what Blender shows with that key alone; muted ones too."""
    obj = tetra()
    add_key(obj, "Long", 3, (0, 0, 2), value=0.3)
    add_key(obj, "Muted", 1, (1, 0, 0), mute=True)
    modifier = obj.modifiers.new("Modifier", kind)
    if kind == "MIRROR":
        modifier.use_mirror_merge = False
    mesh = mesh_in(scene_of())
    blocks = obj.data.shape_keys.key_blocks
    assert (blocks["Long"].value, blocks["Muted"].mute, obj.show_only_shape_key) == (pytest.approx(0.3), True, False)
    blocks["Muted"].mute = False
    for name, found in {"Basis": mesh.points, **{key.name: key.points for key in mesh.shape_keys}}.items():
        for block in blocks:
            block.value = float(block.name == name)
        bpy.context.view_layer.update()
        np.testing.assert_allclose(found, shown_points(obj), atol=1e-6, err_msg=name)
    assert [key.name for key in mesh.shape_keys] == ["Long", "Muted"]


def test_keys_go_where_modifiers_make_other_faces_and_it_is_said(clean_blender: Any) -> None:
    obj = grid(side=6)
    add_key(obj, "Hill", 24, (0, 0, 1))
    modifier = obj.modifiers.new("Decimate", "DECIMATE")
    modifier.ratio = 0.4
    add_key(obj, "Other", 10, (0, 0, -1))
    scene = scene_of()
    assert not mesh_in(scene).shape_keys
    assert any(text.startswith("Grid: its shape keys were left out") for text in scene.warnings)
    scene = scene_of(use_modifiers=False)
    assert list(keys_of(mesh_in(scene))) == ["Hill", "Other"]
    assert len(mesh_in(scene).points) == 49


def test_keys_and_armature_together(clean_blender: Any) -> None:
    """A posed armature with another modifier behind it: shapes rest."""
    armature = rig()
    obj = skinned(armature)
    add_key(obj, "Wide", 5, (1, 0, 0))
    obj.modifiers.new("Cast", "CAST").factor = 0.0
    armature.pose.bones["Upper"].location = (1, 2, 3)
    bpy.context.view_layer.update()
    mesh = mesh_in(scene_of())
    np.testing.assert_allclose(mesh.points, np.float32(TUBE), atol=1e-6)
    assert np.abs(keys_of(mesh)["Wide"][5] - (1, 0, 0)).max() < 1e-6
    assert all(modifier.show_viewport for modifier in obj.modifiers)


@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_normals_of_keys_are_those_of_the_shape(clean_blender: Any, angle: float) -> None:
    """A square that a key stands on its edge: its normals turn with it, tangents too, and with the object."""
    obj = square(rotation_euler=(0, 0, angle))
    x, y = np.cos(angle), np.sin(angle)
    add_uv(obj.data, "UV0")
    obj.shape_key_add(name="Basis", from_mix=False)
    key = obj.shape_key_add(name="Stand", from_mix=False)
    for point, (along, up, _) in zip(key.points, SQUARE, strict=True):
        point.co = (along, 0, up)
    mesh = mesh_in(scene_of())
    (stand,) = mesh.shape_keys
    corners = mesh.corner_point
    np.testing.assert_allclose(mesh.normal.at_corners(corners), np.tile((0, 0, 1), (6, 1)), atol=1e-6)
    np.testing.assert_allclose(stand.normal.at_corners(corners), np.tile((y, -x, 0), (6, 1)), atol=1e-6)
    np.testing.assert_allclose(stand.tangent.at_corners(corners)[:, :3], np.tile((x, y, 0), (6, 1)), atol=1e-6)
    assert (stand.normal.per_corner, len(stand.normal.values)) == (mesh.normal.per_corner, len(mesh.normal.values))


def test_keys_move_with_the_space(clean_blender: Any) -> None:
    obj = square(scale=(-2, 2, 2), location=(1, 0, 0))
    add_key(obj, "Up", 1, (1, 0, 1))
    mesh = mesh_in(scene_of())
    np.testing.assert_allclose(mesh.points, np.float32(SQUARE) * (-2, 2, 2), atol=1e-6)
    np.testing.assert_allclose(keys_of(mesh)["Up"][1], (-2, 0, 2), atol=1e-6)
    # Mirrored: corners are turned so that the square still faces up.
    triangle = mesh.points[mesh.corner_point[:3]]
    assert np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])[2] > 0


def test_edited_basis_counts(clean_blender: Any) -> None:
    """The Basis is what its key says, also where a script moved it and not the mesh."""
    obj = square()
    add_key(obj, "Up", 1, (0, 0, 1))
    obj.data.shape_keys.key_blocks["Basis"].points[0].co = (-1, -1, 0)
    mesh = mesh_in(scene_of())
    np.testing.assert_array_equal(mesh.points[0], (-1, -1, 0))


def test_key_made_in_edit_mode(clean_blender: Any) -> None:
    obj = square()
    add_key(obj, "Up", 1, (0, 0, 1))
    with active(obj, mode="EDIT"):
        mesh = mesh_in(scene_of())
        assert bpy.context.mode == "EDIT_MESH"
    assert list(keys_of(mesh)) == ["Up"]


def test_objects_that_share_a_mesh_with_keys(clean_blender: Any) -> None:
    """One of them has a modifier."""
    obj = square("One")
    add_key(obj, "Up", 1, (0, 0, 1))
    other = add("Two", obj.data)
    other.modifiers.new("Subdivision", "SUBSURF")
    found = {node.name: node.mesh for node in scene_of().nodes}
    assert len(found["One"].points) == 4
    assert len(found["Two"].points) > 4
    assert [len(mesh.shape_keys) for mesh in found.values()] == [1, 1]
