"""Objects, surfaces and shape keys as artists leave them: nothing goes missing without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers_export import bpy, model_collection, tetra
from helpers_models import scene_of

pytestmark = pytest.mark.needs_bpy


@pytest.mark.parametrize("how", ["DISABLED", "EXCLUDED", "COLLECTION", "OTHER_SCENE"])
def test_a_level_of_detail_that_cannot_come_is_named(clean_blender: Any, how: str) -> None:
    fine, coarse = tetra("Fine"), tetra("Coarse")
    coarse.meshferry.lod_of, coarse.meshferry.lod = fine, 1
    away = bpy.data.collections.new("Away")
    away.objects.link(coarse)
    model_collection().objects.unlink(coarse)
    if how == "OTHER_SCENE":
        bpy.data.scenes.new("Other").collection.children.link(away)
    else:
        bpy.context.scene.collection.children.link(away)
    if how == "EXCLUDED":
        bpy.context.view_layer.layer_collection.children["Away"].exclude = True
    away.hide_viewport = how == "COLLECTION"
    coarse.hide_viewport = how == "DISABLED"
    scene = scene_of(source=[fine])
    assert [node.name for node in scene.nodes] == ["Fine"]
    assert [text for text in scene.warnings if "'Coarse'" in text and "left out" in text]


def test_a_level_of_detail_that_nobody_uses_any_more_is_no_loss(clean_blender: Any) -> None:
    fine, coarse = tetra("Fine"), tetra("Coarse")
    coarse.meshferry.lod_of, coarse.meshferry.lod = fine, 1
    model_collection().objects.unlink(coarse)
    assert not scene_of(source=[fine]).warnings


def test_a_collection_that_a_modifier_uses_is_followed_to_its_objects(clean_blender: Any) -> None:
    from meshferry.blender_data.animated_blocks import dependencies

    whole, cutter = tetra("Whole"), tetra("Cutter")
    cutters = bpy.data.collections.new("Cutters")
    cutters.objects.link(cutter)
    modifier = whole.modifiers.new("Boolean", "BOOLEAN")
    modifier.operand_type, modifier.collection = "COLLECTION", cutters
    cutter.keyframe_insert("location", frame=1)
    assert dependencies([whole]).animated == [cutter]


def test_a_moved_mesh_keeps_the_range_of_its_uvs(clean_blender: Any) -> None:
    from meshferry.blender_data.exporting.reading.mesh_reading import transformed
    from meshferry.io_formats.core.scene import Mesh, Surface

    surface = Surface("", position_domain=(0, 0, 0, 1, 1, 1), uv_domain=(0, 0, 1, 1))
    mesh = Mesh(np.eye(3, dtype=np.float32), np.arange(3, dtype=np.int32), np.zeros(1, np.int32), surfaces=[surface])
    (moved,) = transformed(mesh, np.diag([2.0, 2, 2, 1])).surfaces
    assert (moved.position_domain, moved.uv_domain) == (None, (0, 0, 1, 1))


def shaped(*names: str) -> Any:
    """Add a tetrahedron with a shape key for each name, each of which lifts another point by one."""
    obj = tetra("Face")
    obj.shape_key_add(name="Basis", from_mix=False)
    for place, name in enumerate(names):
        key = obj.shape_key_add(name=name, from_mix=False)
        key.data[place].co.z += 1
    return obj


def targets_of(scene: Any) -> list[str]:
    """Return the names of the targets that an export writes, the base left out."""
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH

    (surface,) = UNIGINE_MESH.from_scene(scene, {"mesh_version": "MS12"}).surfaces
    return [target.name for target in surface.targets[1:]]


def test_a_renamed_or_new_shape_key_stands_where_it_does_in_blender(clean_blender: Any) -> None:
    from meshferry.blender_data.mesh_data import surfaces
    from meshferry.io_formats.core.scene import Surface

    obj = shaped("One", "Two", "Three")
    obj.data.materials.append(bpy.data.materials.new("Skin"))
    kept = Surface("Skin", shape_keys={"One": "", "Three": "", "Two": "second"}, order=0)
    surfaces.write(obj, [kept], [], {})
    assert targets_of(scene_of()) == ["", "", "second"]
    keys = obj.data.shape_keys.key_blocks
    keys["One"].name = "First"
    assert targets_of(scene_of()) == ["First", "", "second"]
    new = obj.shape_key_add(name="New", from_mix=False)
    new.data[3].co.z += 1
    assert targets_of(scene_of()) == ["First", "", "New", "second"]  # after Three, as in Blender


def test_a_shape_key_that_moves_nothing_is_told(clean_blender: Any) -> None:
    obj = shaped("One")
    obj.shape_key_add(name="Still", from_mix=False)
    scene = scene_of()
    assert targets_of(scene) == ["One"]
    assert "Face: 1 shape key moves nothing, left out: 'Still'" in scene.warnings


@pytest.mark.parametrize("modifier", [None, "MIRROR"])
def test_a_shape_key_relative_to_another_is_named(clean_blender: Any, modifier: str | None) -> None:
    obj = shaped("One", "Two")
    one, two = obj.data.shape_keys.key_blocks[1:]
    if modifier:
        obj.modifiers.new("Modifier", modifier)
    assert not scene_of().warnings
    two.relative_key = one
    (said,) = scene_of().warnings
    assert said.startswith("Face: in a file all shape keys are relative to the Basis, 'Two' too")
