"""The scene after an export is what it was before: every property of every data block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers_export import (
    active,
    add,
    add_nodes,
    armature,
    bpy,
    drive,
    export,
    grid,
    key,
    new_action,
    node_group,
    push_down,
    square,
    tetra,
)
from scene_snapshot import changes, snapshot

pytestmark = pytest.mark.needs_bpy


def _assert_unchanged(**options: Any) -> None:
    bpy.context.view_layer.update()
    before = snapshot()
    assert len(before) > 1000
    made = export(**options)
    assert made.clip_names or options.get("clips") == "NONE"
    assert changes(before, snapshot()) == {}


def _rich_scene() -> None:
    """Make a scene with something of everything that an export touches, and with changes that are not keyed."""
    scene = bpy.context.scene
    scene.render.fps_base = 1.001
    body = grid("#Body")
    for n in range(2):
        new_action(body, f"Move {n}", "location", {1: (0, 0, n), 4: (3, n, 0)})
        if n == 0:
            push_down(body, "Stashed", 30).mute = True
            body.animation_data.nla_tracks[0].mute = True
    body.shape_key_add(name="Basis")
    tall = body.shape_key_add(name="Tall")
    tall.data[3].co = (0, 0, 9)
    key(tall, "value", {1: 0.0, 4: 1.0})
    rig = armature("Rig", bpy.context.scene.collection)
    key(rig.pose.bones["Bone"], "rotation_quaternion", {1: (1, 0, 0, 0), 4: (0.6, 0.8, 0, 0)})
    skinned = tetra("#Skinned", parent=rig)
    skinned.vertex_groups.new(name="Bone").add([2, 3], 1.0, "REPLACE")
    skinned.modifiers.new("Armature", "ARMATURE").object = rig
    twist = skinned.modifiers.new("Twist", "SIMPLE_DEFORM")
    key(twist, "angle", {1: 0.0, 4: 1.0})
    skinned.modifiers.new("Hidden", "ARRAY").show_viewport = False
    driven = tetra("#Driven")
    drive(driven, "location", "frame", 2)
    driven["custom"] = 1.0
    driven.keyframe_insert('["custom"]', frame=1)
    cached = square("#Cached")
    cached.modifiers.new("Cache", "MESH_CACHE")
    cached.meshferry.rest_is_basis = True
    body.meshferry.rest_is_basis = True
    body.active_shape_key_index, body.use_shape_key_edit_mode = 1, True
    group, _, _ = node_group()
    add_nodes(tetra("#Nodes"), group)
    add("Instance", instance_type="COLLECTION", instance_collection=bpy.data.collections.new("Library"))
    other = tetra("Not exported", scene.collection)
    key(other, "location", {1: (0, 0, 0), 4: (4, 0, 0)})
    lamp = bpy.data.lights.new("Lamp", "POINT")
    add("Lamp", lamp, scene.collection)
    key(lamp, "energy", {1: 10.0, 4: 20.0})
    wood = bpy.data.materials.new("Wood")
    key(wood, "roughness", {1: 0.0, 4: 1.0})
    body.data.materials.append(wood)
    tetra("Hidden one").hide_set(True)
    body.select_set(True)
    bpy.context.view_layer.objects.active = skinned
    scene.frame_set(2, subframe=0.25)


def _change_without_keys() -> None:
    bpy.data.objects["#Body"].location = (7, 8, 9)
    bpy.data.objects["#Body"].rotation_euler = (1, 0, 0)
    bpy.data.objects["#Body"].data.shape_keys.key_blocks["Tall"].value = 0.77
    bone = bpy.data.objects["Rig"].pose.bones["Bone"]
    bone.rotation_quaternion, bone.location = (0, 0, 1, 0), (1, 1, 1)
    bpy.data.objects["#Skinned"].modifiers["Twist"].angle = 2.5
    bpy.data.objects["#Driven"]["custom"] = 9.0
    bpy.data.objects["Not exported"].location = (5, 5, 5)
    bpy.data.lights["Lamp"].energy = 77
    bpy.data.materials["Wood"].roughness = 0.33


OPTIONS: list[dict[str, Any]] = [
    {"clips": "ACTIVE"},
    {"clips": "ACTIONS"},
    {"clips": "NLA"},
    {"clips": "SCENE", "merging": "MERGE", "animation_kind": "VERTEX"},
    {"clips": "ACTIONS", "merging": "KEEP", "use_modifiers": False},
    {"clips": "NONE"},
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: " ".join(options.values()) if len(options) == 1 else None
)
@pytest.mark.parametrize("prepare", [lambda: None, _change_without_keys], ids=["as keyed", "changed without keys"])
def test_an_export_leaves_the_scene_as_it_was(options: dict[str, Any], prepare: Callable[[], None]) -> None:
    _rich_scene()
    prepare()
    _assert_unchanged(**options)


@pytest.mark.parametrize(("frame", "subframe"), [(1, 0.0), (17, 0.0), (-3, 0.5), (3, 0.125)])
def test_the_frame_is_the_same_afterwards(frame: int, subframe: float) -> None:
    key(tetra("#Thing"), "location", {1: (0, 0, 0), 4: (3, 0, 0)})
    scene = bpy.context.scene
    scene.frame_set(frame, subframe=subframe)
    before = (scene.frame_current, scene.frame_subframe, scene.frame_float)
    assert export().clip_names == {"Default"}
    assert (scene.frame_current, scene.frame_subframe, scene.frame_float) == before


@pytest.mark.parametrize("mode", ["POSE", "EDIT"])
def test_the_mode_stays(mode: str) -> None:
    _rich_scene()
    with active(bpy.data.objects["Rig"], mode=mode):
        _assert_unchanged()


def test_a_failed_export_leaves_the_scene_as_it_was() -> None:
    from meshferry.io_formats.core.errors import ExportError

    _rich_scene()
    _change_without_keys()
    tetra("Flat", scale=(0, 1, 1))
    before = snapshot()
    with pytest.raises(ExportError, match="Flat"):
        export(clips="ACTIONS")
    assert snapshot() == before


@pytest.mark.parametrize("clips", ["ACTIVE", "ACTIONS"])
def test_an_action_with_several_slots_keeps_its_slot(clips: str) -> None:
    one, other = tetra("#One"), tetra("#Other")
    action = new_action(one, "Shared", "location", {1: (0, 0, 0), 4: (3, 0, 0)})
    other.animation_data_create().action = action
    slot = action.slots.new("OBJECT", "Other")
    other.animation_data.action_slot = slot
    key(other, "location", {1: (0, 0, 0), 4: (0, 3, 0)})
    assert len(action.slots) == 2
    one.animation_data.action_slot = None
    _assert_unchanged(clips=clips)
    assert other.animation_data.action_slot == slot
    assert one.animation_data.action_slot is None
