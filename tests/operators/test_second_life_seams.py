"""Match Seam: borders that meet get one place, weight and normal; modifiers that make the border are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


def select(bpy: Any, *objects: Any) -> None:
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in objects)
    bpy.context.view_layer.objects.active = objects[0]


def strip(bpy: Any, avatar: Any, name: str, z: float, bone: str, **offset: float) -> Any:
    """Return a bound strip of two rows of eight quads whose lower border is at a height."""
    points = [(0.1 * x + offset.get("x", 0), -0.1 - 0.02 * row, z + 0.1 * row) for row in range(3) for x in range(9)]
    faces = [(9 * r + i, 9 * r + i + 1, 9 * r + i + 10, 9 * r + i + 9) for r in range(2) for i in range(8)]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points, [], faces)
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    obj.parent = avatar
    obj.vertex_groups.new(name=bone).add(range(27), 1.0, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = avatar
    bpy.context.view_layer.update()
    return obj


def places(obj: Any) -> Any:
    return np.array([tuple(obj.matrix_world @ vertex.co) for vertex in obj.data.vertices])


def bones(obj: Any, vertex: int) -> dict[str, float]:
    return {obj.vertex_groups[entry.group].name: entry.weight for entry in obj.data.vertices[vertex].groups}


def normal(obj: Any, vertex: int) -> Any:
    corners = [loop.index for loop in obj.data.loops if loop.vertex_index == vertex]
    return np.mean([tuple(obj.data.corner_normals[corner].vector) for corner in corners], axis=0)


@pytest.mark.parametrize("with_body", [True, False])
def test_borders_that_meet_agree(clean_blender: Any, capfd: Any, with_body: bool) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    upper = strip(bpy, avatar, "Upper", 1.2, "mChest", x=0.0006)
    lower = strip(bpy, avatar, "Lower", 1.0, "mTorso")
    upper.data.normals_split_custom_set([(0.6, -0.8, 0.0)] * len(upper.data.loops))
    for vertex in lower.data.vertices[18:]:
        vertex.co.y = -0.1002
    wide = lower.shape_key_add(name="Basis") and lower.shape_key_add(name="Wide")
    wide.data.foreach_set("co", (places(lower) * (1.2, 1, 1)).ravel())
    if with_body:
        select(bpy, upper, avatar)
        bpy.ops.object.second_life_use_as_body()
        select(bpy, lower, avatar)
    else:
        select(bpy, upper, lower, avatar)
    before = places(lower), np.array([tuple(point.co) for point in wide.data])
    assert bpy.ops.object.second_life_match_seam() == {"FINISHED"}
    assert "9 border vertices matched" in capfd.readouterr().out
    np.testing.assert_allclose(places(lower)[18:], places(upper)[:9], atol=1e-6)
    np.testing.assert_array_equal(places(lower)[:18], before[0][:18])
    after = np.array([tuple(point.co) for point in wide.data])
    np.testing.assert_allclose(after - before[1], places(lower) - before[0], atol=1e-6)
    assert [bones(lower, vertex) for vertex in (17, 18, 26)] == [{"mTorso": 1.0}, {"mChest": 1.0}, {"mChest": 1.0}]
    for vertex in (18, 22, 26):
        np.testing.assert_allclose(normal(lower, vertex), (0.6, -0.8, 0.0), atol=4e-3)  # 16 bits
    np.testing.assert_allclose(normal(lower, 4), (0.0, -0.98058, -0.19612), atol=1e-3)


def test_modifiers_that_make_the_border_are_refused(clean_blender: Any) -> None:
    bpy = clean_blender
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    upper, lower = strip(bpy, avatar, "Upper", 1.2, "mChest"), strip(bpy, avatar, "Lower", 1.0, "mTorso")
    lower.modifiers.new("Mirror", "MIRROR")
    select(bpy, upper, lower, avatar)
    with pytest.raises(RuntimeError, match="'Lower': modifiers change the border"):
        bpy.ops.object.second_life_match_seam()
    lower.modifiers.remove(lower.modifiers["Mirror"])
    copy = bpy.data.objects.new("Copy", lower.data)
    with pytest.raises(RuntimeError, match="Lower: its mesh is shared"):
        bpy.ops.object.second_life_match_seam()
    bpy.data.objects.remove(copy)
    assert bones(lower, 18) == {"mTorso": 1.0}
