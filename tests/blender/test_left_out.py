"""Each format names what moves and is not in its files, and nothing that stands still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers_export import add, armature, bpy, curves, drive, grid, key, model_collection, push_down, tetra
from test_export_animation import DEFORMING, MOVING

pytestmark = pytest.mark.needs_bpy

LOST, RIG, CHOSEN = "baked-animation", "armature-animation-left-out", "animation-left-out-as-chosen"
FORMATS = ("unigine_mesh", "mesh_serializer", "second_life_upload", "unigine_scene", "timbermesh")


@pytest.fixture(autouse=True)
def _short_scene(clean_blender: Any) -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 5


def named(target: str, **options: Any) -> dict[str, str]:
    """Return the codes of messages about movement and instances in an export of ``Model``, with their items."""
    from meshferry.blender_data.export_options import EXPORT_OPTIONS, ExportOptions, ExportRequest
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats.core.options import resolve
    from meshferry.io_formats.registry import by_name

    source = object_selection.Source("COLLECTION", model_collection())
    chosen = ExportOptions.of(resolve(EXPORT_OPTIONS, options))
    scene = exporter.export_scene(ExportRequest(bpy.context, source, chosen, "Model", by_name(target).capabilities))
    about = (LOST, RIG, CHOSEN, "instanced-metaballs", "moving-instances", "merged-animation")
    return {message.code: str(message) for message in scene.warnings if message.code in about}


def _rigid_body() -> Any:
    obj = tetra("#Thing")
    with bpy.context.temp_override(object=obj, active_object=obj, selected_objects=[obj]):
        bpy.ops.rigidbody.world_add()
        bpy.ops.rigidbody.object_add()
    return obj


def _simulated(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        obj = grid("#Thing")
        obj.modifiers.new("Simulation", kind)
        return obj

    make.__name__ = kind.lower()
    return make


def _hook_of_a_driver() -> Any:
    hook = add("Hook", None, bpy.context.scene.collection)
    drive(hook, "location", "frame", 2)
    obj = tetra("#Thing")
    obj.modifiers.new("Hook", "HOOK").object = hook
    return obj


def _instance() -> Any:
    shown = bpy.data.collections.new("Shown")
    key(tetra("Inner", shown), "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    return add("#Thing", instance_type="COLLECTION", instance_collection=shown)


def _influence() -> Any:
    obj, target = tetra("#Thing"), add("Target", None, bpy.context.scene.collection, location=(3, 0, 0))
    key(obj.constraints.new("COPY_LOCATION"), "influence", {1: 0.0, 5: 1.0})
    obj.constraints[0].target = target
    return obj


def _modifier_shown_later() -> Any:
    obj = grid("#Thing")
    modifier = obj.modifiers.new("Displace", "DISPLACE")
    key(modifier, "show_viewport", {4: True, 1: False})
    return obj


def _fading_strip() -> Any:
    """A strip of equal keys whose influence is animated."""
    obj = tetra("#Thing")
    key(obj, "location", {1: (3, 0, 0), 5: (3, 0, 0)})
    strip = push_down(obj, "Held")
    strip.use_animated_influence = True
    for frame in (1, 5):
        strip.influence = frame / 5
        strip.keyframe_insert("influence", frame=frame)
    return obj


def _child_on_vertices() -> Any:
    obj = tetra("#Thing", instance_type="VERTS")
    child = tetra("Child", bpy.context.scene.collection, parent=obj)
    key(child, "rotation_euler", {1: (0, 0, 0), 5: (1, 0, 0)})
    return obj


SIMULATED = [
    _rigid_body, *map(_simulated, ("CLOTH", "SOFT_BODY")), _hook_of_a_driver, _instance, _influence,
    _modifier_shown_later, _fading_strip,
]  # fmt: skip


@pytest.mark.parametrize("make", [*MOVING, *DEFORMING, *SIMULATED])
def test_what_moves_is_named_where_the_file_does_not_hold_it(make: Callable[[], Any]) -> None:
    obj = make()
    is_rigged = make.__name__ in {"_armature_modifier", "_armature_parent", "_armature_parent_alone"}
    for target in FORMATS:
        found = {code: text for code, text in named(target).items() if code != "moving-instances"}
        bones = {"mesh_serializer": {LOST: ""}, "second_life_upload": {RIG: ""}}.get(target, {})
        if target == "timbermesh":
            assert not found
            assert list(named(target, clips="NONE")) == [CHOSEN]
        else:
            if target == "unigine_scene" and "Rig" in model_collection().all_objects and not is_rigged:
                assert found.pop(RIG)  # the armature is a node itself
            assert found.keys() == (bones if is_rigged else {LOST: ""}).keys(), target
        assert is_rigged or target == "timbermesh" or f"'{obj.name}'" in found[LOST]


def _driven_by_a_setting() -> Any:
    obj = tetra("#Thing")
    obj["frame_height"] = 2.0
    curve = obj.driver_add("scale", 2)
    variable = curve.driver.variables.new()
    variable.name, variable.targets[0].id, variable.targets[0].data_path = "frame_height", obj, '["frame_height"]'
    curve.driver.expression = "frame_height * 2 if frame_height > 1 else sqrt(4)"
    return obj


def _constrained_to_a_still_one() -> Any:
    obj, still = tetra("#Thing"), add("Still", None, bpy.context.scene.collection)
    obj.constraints.new("COPY_LOCATION").target = still
    return obj


def _muted() -> Any:
    """A clip that is stored with the object but not played, and a hidden modifier."""
    obj = tetra("#Thing")
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    push_down(obj, "Strip")
    obj.animation_data.nla_tracks[0].mute = True
    obj.modifiers.new("Wave", "WAVE").show_viewport = False
    return obj


def _modified() -> Any:
    obj, still = tetra("#Thing"), add("Still", None, bpy.context.scene.collection)
    obj.modifiers.new("Subdivision", "SUBSURF")
    obj.modifiers.new("Mirror", "MIRROR").mirror_object = still
    return obj


def _driven_by_still_parts_of_moving_ones() -> Any:
    """A driver and a shape key that read still properties of an object and an armature, which move otherwise."""
    obj, rig = tetra("#Thing"), armature(collection=bpy.context.scene.collection)
    moving = add("Moving", None, bpy.context.scene.collection)
    rig["smile"] = 0.5
    key(rig.pose.bones[0], "location", {1: (0, 0, 0), 5: (1, 0, 0)})
    key(moving, "location", {1: (0, 0, 0), 5: (1, 0, 0)})
    for owner, path, source, read in (
        (obj, "delta_scale", moving, "scale.x"),
        (obj.shape_key_add(name="Basis") and obj.shape_key_add(name="Wide"), "value", rig, '["smile"]'),
    ):
        curve = owner.driver_add(path, *([2] if owner == obj else []))
        curve.driver.type = "SUM"
        target = curve.driver.variables.new().targets[0]
        target.id, target.data_path = source, read
    return obj


def _without_effect() -> Any:
    """Keys of a rotation that is not used, cycles of equal keys, and an object whose only playing strips are others."""
    obj, other = tetra("#Thing", rotation_mode="QUATERNION"), tetra("#Other")
    key(obj, "rotation_euler", {1: (0, 0, 0), 5: (1, 0, 0)})
    key(obj, "scale", {1: (2, 1, 1), 5: (2, 1, 1)})
    for curve in curves(obj.animation_data.action):
        if curve.data_path == "scale":
            curve.modifiers.new("CYCLES")
    key(other, "location", {1: (0, 0, 0), 5: (1, 0, 0)})
    push_down(other, "Strip")
    other.animation_data.nla_tracks.new().is_solo = True
    return obj


def _at_rest() -> Any:
    rig = armature(collection=bpy.context.scene.collection)
    rig.pose.bones[0].constraints.new("IK").target = add("Goal", None, bpy.context.scene.collection)
    obj = tetra("#Thing", parent=rig)
    obj.vertex_groups.new(name="Bone").add([2, 3], 1.0, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = rig
    return obj


STILL = [
    _driven_by_a_setting, _constrained_to_a_still_one, _muted, _modified, _at_rest,
    _driven_by_still_parts_of_moving_ones, _without_effect,
]  # fmt: skip


@pytest.mark.parametrize("make", STILL)
def test_what_stands_still_is_not_named(make: Callable[[], Any]) -> None:
    make()
    assert [named(target) for target in FORMATS] == [{}] * len(FORMATS)


def test_instances_on_vertices_that_turn_are_named() -> None:
    _child_on_vertices()
    assert [set(named(target)) for target in ("timbermesh", "unigine_mesh")] == [{"moving-instances"}, {LOST}]


@pytest.mark.parametrize(("end", "expected"), [(0, set()), (4, {"merged-animation"})])
def test_merged_objects_are_named_if_they_move(end: float, expected: set[str]) -> None:
    """Blender's importers add constant keys."""
    tetra("#Other")
    key(tetra("Thing"), "location", {1: (0, 0, 0), 5: (end, 0, 0)})
    assert set(named("timbermesh")) == expected


@pytest.mark.parametrize(("kind", "expected"), [("NODE", {CHOSEN}), ("VERTEX", {CHOSEN}), ("AUTO", set())])
def test_a_part_left_out_by_the_options_is_a_note(kind: str, expected: set[str]) -> None:
    obj = next(make for make in DEFORMING if make.__name__ == "_shape_key")()
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    assert named("timbermesh", animation_kind=kind).keys() == expected


def test_movement_without_actions_is_lost_where_every_action_is_asked_for() -> None:
    drive(tetra("#Thing"), "location", "frame", 0)
    assert named("timbermesh", clips="ACTIONS").keys() == {LOST}
    assert named("timbermesh", clips="SCENE").keys() == set()


@pytest.mark.parametrize("target", [target for target in FORMATS if target != "unigine_scene"])
def test_metaballs_in_instances_are_named(target: str) -> None:
    inner, outer = (bpy.data.collections.new(name) for name in ("Inner", "Outer"))
    data = bpy.data.metaballs.new("Ball")
    data.elements.new()
    add("Ball", data, inner)
    tetra("Solid", outer)
    add("Nested", None, outer, instance_type="COLLECTION", instance_collection=inner)
    add("#Thing", instance_type="COLLECTION", instance_collection=outer)
    tetra("Beside")
    assert "1 metaball in collection instances left out" in named(target)["instanced-metaballs"]
    assert "'Ball'" in named(target)["instanced-metaballs"]
    assert "instanced-metaballs" not in named(target, use_instances=False)
