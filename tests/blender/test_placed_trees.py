"""Placements of whole models: channels, parts of models, groups of nodes, wires, markers, locks, reload, undo."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from meshferry.blender_data import import_marks, names
from meshferry.blender_data.importing import importer, objects
from meshferry.blender_data.importing.import_context import ImportResult
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.blender_data.reloading.placement_update import replace_placed
from meshferry.io_formats.core.placement import (
    Channels,
    Marker,
    MarkerShape,
    ModelUse,
    PlacedCollection,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
    Wire,
)
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

pytestmark = pytest.mark.needs_bpy

WINDMILL = Path(__file__).parents[2] / "examples" / "windmill.timbermesh"
TURNED = Channels((1.0, -2.0, 0.5), (math.radians(270), 0.25, math.radians(-450)), (1.0, 2.0, 0.5), "YXZ")
GROUPS = [
    PlacedCollection("Finished"),
    PlacedCollection("Unfinished", is_hidden=True),
    PlacedCollection("Stage 0", 1),
    PlacedCollection("Stage 1", 1, is_hidden=True),
    PlacedCollection("Colliders", is_hidden=True),
]
BOX = Wire("Box", np.array([[0, 0, 0], [1, 1, 1]], np.float32), np.array([[0, 1]], np.int32))
CELLS = replace(BOX, name="Cells", is_selectable=False)


def windmill() -> Scene:
    return TIMBERMESH.to_scene(TIMBERMESH.read(WINDMILL.read_bytes()), "windmill")


def node(key: str, parent: int, content: Any = None, group: int = -1, channels: Channels = TURNED, **more: Any) -> Any:
    name = key.rpartition("/")[2]
    return PlacedNode(name, parent, channels.matrix(), content, key=key, channels=channels, collection=group, **more)


def building() -> Placement:
    """Return a building with a model at two nodes of different states, of which one is nested and missing a part."""
    use = ModelUse(0)
    nodes = [
        node("/", -1, channels=Channels(order="YXZ"), is_unplaced=True),
        node("/#Finished", 0, use, 0, properties={"Model": "Buildings/Mill.Model"}),
        node("/#Finished/Arm", 1, use, 0, Channels((5.0, 0.0, 0.0), order="YXZ")),
        node("/#Unfinished", 0, None, 1),
        node("/#Unfinished/Base", 3, use, 2, owner="Base.blueprint"),
        node("/#Unfinished/Missing", 3, Marker(MarkerShape.CUBE, 0.5), 3, properties={"Model": "Gone"}),
        node("/#Finished/Box/0", 1, BOX, 4),
        node("/#Finished/Box/1", 2, BOX, 4),
        node("/Cells", 0, CELLS),
        node("/Entrance", 0, Marker(MarkerShape.ARROW)),
    ]
    model = PlacedModel("Mill", windmill, is_tree=True, file=str(WINDMILL))
    part = PlacementPart("Mill.Folktails", nodes, collections=GROUPS)
    return Placement([part], [model])


def build(placement: Placement) -> ImportResult:
    scene = Scene("Mill.Folktails", placement=placement)
    return importer.import_scene(ImportRequest(bpy.context, scene, ImportOptions.of(), "/mod/Mill.blueprint.json"))


def by_key(objects: Any) -> dict[str, Any]:
    return {obj.meshferry.node_key: obj for obj in objects if obj.meshferry.node_key}


def parts_of(result: ImportResult | None, node_object: Any) -> dict[str, Any]:
    """Return the parts of the model at a node by their names in the file."""
    found = {}
    for obj in bpy.data.objects if result is None else result.objects:
        above = obj
        while above is not None and above.meshferry.is_model_part:
            above = above.parent
        if obj.meshferry.is_model_part and above == node_object:
            found[names.without_number(names.name_in_file(obj))] = obj
    return found


def layer_of(name: str) -> Any:
    waiting = [bpy.context.view_layer.layer_collection]
    for layer in waiting:
        if layer.name == name:
            return layer
        waiting.extend(layer.children)
    raise KeyError(name)


def test_nodes_have_their_channels_and_models_hang_below(clean_blender: Any) -> None:
    alone = importer.import_scene(ImportRequest(bpy.context, windmill(), ImportOptions.of()))
    result = build(building())
    found = by_key(result.objects)
    for placed, (key, obj) in zip(building().parts[0].nodes, found.items(), strict=True):
        assert key == placed.key and (obj.type == "MESH") == isinstance(placed.content, Wire)
        assert obj.rotation_mode == "YXZ"
        now = (*obj.location, *obj.rotation_euler, *obj.scale)
        wanted = placed.channels
        assert now == tuple(np.float32([*wanted.location, *wanted.rotation, *wanted.scale]).tolist()), key
        assert np.allclose(np.array(obj.matrix_basis), wanted.matrix(), atol=1e-6)
        assert not import_marks.is_moved(obj)
        assert all((*obj.lock_location, *obj.lock_rotation, *obj.lock_scale)) == bool(placed.owner)
    others = {obj.name: obj for obj in alone.objects}
    of_places = [parts_of(result, found[key]) for key in ("/#Finished", "/#Finished/Arm", "/#Unfinished/Base")]
    for parts in of_places:
        assert parts.keys() == others.keys()
        for name, part in parts.items():
            other = others[name]
            assert part.type == other.type and np.allclose(part.matrix_basis, other.matrix_basis)
            assert part.parent.meshferry.source_name or part.parent in found.values() or part.parent in parts.values()
            assert [slot.name for slot in part.material_slots] == [slot.name for slot in other.material_slots]
            assert part.data == of_places[0][name].data
            assert all((*part.lock_location, *part.lock_rotation, *part.lock_scale, part.lock_rotation_w))
            assert import_marks.has_given_parent(part)
    assert found["/#Unfinished/Base"]["belongs to"] == "Base.blueprint"
    assert found["/#Finished"]["Model"] == "Buildings/Mill.Model"
    assert not [obj for obj in bpy.data.objects if "Unplaced" in obj.name]


def test_each_place_plays_the_animations_of_the_model(clean_blender: Any) -> None:
    result = build(building())
    scene = bpy.context.scene
    found = by_key(result.objects)
    sails = [parts_of(result, found[key])["#Sails"] for key in ("/#Finished", "/#Finished/Arm")]
    flag = parts_of(result, found["/#Finished"])["#Flag"]
    assert sails[0].animation_data.action == sails[1].animation_data.action
    assert sails[0].animation_data.action.meshferry.source_path == str(WINDMILL)
    turns, shapes = [], []
    for frame in (scene.frame_start, scene.frame_start + 7):
        scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        turns.append([tuple(obj.evaluated_get(graph).rotation_quaternion) for obj in sails])
        shapes.append([tuple(point.co) for point in flag.evaluated_get(graph).data.vertices])
    assert turns[0] != turns[1] and turns[1][0] == turns[1][1]
    assert shapes[0] != shapes[1]
    assert not import_marks.is_moved(sails[0])  # wherever its animation puts it now
    sails[0].meshferry.rest_location.x += 1.0
    assert import_marks.is_moved(sails[0])


def test_groups_are_shown_and_hidden_by_the_eye(clean_blender: Any) -> None:
    result = build(building())
    main = result.collection
    assert [child.name for child in main.children] == ["Finished", "Unfinished", "Colliders"]
    unfinished = main.children["Unfinished"]
    assert [child.name for child in unfinished.children] == ["Stage 0", "Stage 1"]
    hidden = {name: (layer_of(name).hide_viewport, bpy.data.collections[name].hide_render) for name in (
        "Finished", "Unfinished", "Stage 0", "Stage 1", "Colliders")}  # fmt: skip
    assert {name for name, (eye, _) in hidden.items() if eye} == {"Unfinished", "Stage 1", "Colliders"}
    assert all(eye == render for eye, render in hidden.values())
    found = by_key(result.objects)
    shown = {key for key, obj in found.items() if obj.visible_get()}
    assert shown == {"/", "/#Finished", "/#Finished/Arm", "/Cells", "/Entrance"}
    layer_of("Unfinished").hide_viewport = False
    bpy.context.view_layer.update()
    shown = {key for key, obj in found.items() if obj.visible_get()} - shown
    assert shown == {"/#Unfinished", "/#Unfinished/Base"}
    second = build(building())
    assert [child.name for child in second.collection.children] == [
        "Finished Mill.Folktails.001",
        "Unfinished Mill.Folktails.001",
        "Colliders Mill.Folktails.001",
    ]


def test_wires_and_markers(clean_blender: Any) -> None:
    found = by_key(build(building()).objects)
    box, other, cells = found["/#Finished/Box/0"], found["/#Finished/Box/1"], found["/Cells"]
    assert box.data == other.data and len(box.data.vertices) == 2 and len(box.data.edges) == 1
    assert [tuple(point.co) for point in box.data.vertices] == [(0, 0, 0), (1, 1, 1)]
    assert (box.display_type, box.hide_render, box.hide_select, cells.hide_select) == ("WIRE", True, False, True)
    missing, arrow = found["/#Unfinished/Missing"], found["/Entrance"]
    assert (missing.empty_display_type, missing.empty_display_size) == ("CUBE", 0.5)
    assert arrow.empty_display_type == "SINGLE_ARROW"


def test_a_cancelled_import_leaves_nothing(clean_blender: Any) -> None:
    scene = bpy.context.scene
    before = (scene.render.fps, scene.frame_end)
    request = ImportRequest(bpy.context, Scene("Mill", placement=building()), ImportOptions.of())
    total = sum(1 for _ in importer.import_steps(request))
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    for stop in range(1, total):
        request = ImportRequest(bpy.context, Scene("Mill", placement=building()), ImportOptions.of())
        steps = importer.import_steps(request)
        for _ in range(stop):
            next(steps)
        steps.close()
        kinds = (bpy.data.objects, bpy.data.meshes, bpy.data.collections, bpy.data.actions, bpy.data.materials)
        assert not any(len(kind) for kind in kinds), stop
    assert (bpy.context.scene.render.fps, bpy.context.scene.frame_end) == before


def test_side_by_side_moves_the_topmost_object_only(clean_blender: Any) -> None:
    first, second = build(building()), build(building())
    bpy.context.view_layer.update()
    objects.place_side_by_side([first.objects, second.objects])
    moved = [obj for obj in second.objects if obj.delta_location.length]
    assert moved == [by_key(second.objects)["/"]] and moved[0].location.length == 0.0
    assert not any(map(import_marks.is_moved, second.objects))
    bpy.context.view_layer.update()
    ends = [objects._range(result.objects) for result in (first, second)]
    assert ends[0][1] < ends[1][0]


def reloaded(result: ImportResult, placement: Placement) -> Any:
    return replace_placed(bpy.context, result.collection, build(placement), {})


def test_reload_keeps_what_the_user_moved_and_takes_over_the_file(clean_blender: Any) -> None:
    result = build(building())
    found = by_key(result.objects)
    arm, finished, base = (found[key] for key in ("/#Finished/Arm", "/#Finished", "/#Unfinished/Base"))
    arm.location.x = 9.0
    finished["Model"] = "Mine"
    copy = arm.copy()
    arm.users_collection[0].objects.link(copy)
    sails = parts_of(None, finished)["#Sails"]
    changed = building()
    nodes = changed.parts[0].nodes
    where = Channels((7.0, 7.0, 7.0), (1.0, 2.0, 3.0), (2.0, 1.0, 1.0), "YXZ")
    for index in (1, 2, 4):
        nodes[index] = replace(nodes[index], channels=where, matrix=where.matrix())
    nodes[4] = replace(nodes[4], collection=3)
    nodes[5] = replace(nodes[5], content=ModelUse(0), properties={"Model": "Found"})
    nodes[6] = replace(nodes[6], content=replace(BOX, points=BOX.points * 3))
    nodes.append(node("/#Finished/New", 1, ModelUse(0), 5))
    changed.parts[0].collections.append(PlacedCollection("Underground", is_hidden=True))
    scene = windmill()
    scene.nodes[2].name = "#Banner"
    scene.clips[0].transforms[0].rotation[3:] = scene.clips[0].transforms[0].rotation[:1]
    changed.models[0].read = lambda: scene
    report = reloaded(result, changed)
    now = by_key(result.collection.all_objects) | {"/#Finished/Arm": arm}
    assert len(bpy.data.collections) == 7 and len(now) == 11
    assert arm.location.x == 9.0 and tuple(finished.location) == tuple(base.location) == (7.0, 7.0, 7.0)
    assert np.allclose(base.rotation_euler, (1.0, 2.0, 3.0)) and base.rotation_mode == "YXZ"
    assert finished["Model"] == "Mine" and now["/#Unfinished/Missing"]["Model"] == "Found"
    assert base.users_collection == (bpy.data.collections["Stage 1"],)
    assert now["/#Finished/New"].users_collection == (bpy.data.collections["Underground"],)
    assert layer_of("Underground").hide_viewport
    for key in ("/#Finished", "/#Finished/Arm", "/#Unfinished/Base", "/#Unfinished/Missing", "/#Finished/New"):
        assert parts_of(None, now[key]).keys() == {
            "Windmill.Folktails", "#Sails", "#Banner", "#Slot#Entrance", "#MiscStart"}  # fmt: skip
    assert parts_of(None, finished)["#Sails"] == sails
    assert len(bpy.data.meshes) == 6 and len(bpy.data.actions) == len({*bpy.data.actions.keys()})
    bpy.context.scene.frame_set(bpy.context.scene.frame_start + 20)
    quiet = tuple(sails.rotation_quaternion)
    bpy.context.scene.frame_set(bpy.context.scene.frame_start + 5)
    assert tuple(sails.rotation_quaternion) == quiet
    assert now["/#Finished/Box/0"].data.vertices[1].co.x == 3.0 and now["/#Finished/Box/1"].data.vertices[1].co.x == 1.0
    assert copy.name in bpy.data.objects and not report.missing
    assert not [obj for obj in bpy.data.objects if "Replaced" in obj.name]


def test_a_saved_file_reloads(clean_blender: Any, tmp_path: Path) -> None:
    build(building())
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "mill.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "mill.blend"))
    collection = bpy.data.collections["Mill.Folktails"]
    before = {obj.name for obj in bpy.data.objects}
    found = by_key(bpy.data.objects)
    assert not any(map(import_marks.is_moved, bpy.data.objects))
    assert layer_of("Unfinished").hide_viewport and not layer_of("Finished").hide_viewport
    changed = building()
    nodes = changed.parts[0].nodes
    where = Channels((7.0, 7.0, 7.0), order="YXZ")
    nodes[1] = replace(nodes[1], channels=where, matrix=where.matrix())
    replace_placed(bpy.context, collection, build(changed), {})
    assert {obj.name for obj in bpy.data.objects} == before
    assert by_key(bpy.data.objects) == found and tuple(found["/#Finished"].location) == (7.0, 7.0, 7.0)
