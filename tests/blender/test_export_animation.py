"""Movement by every means Blender has, compared frame by frame with what Blender shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers_export import (
    TO_BLENDER,
    add,
    add_nodes,
    armature,
    assert_plays_as_shown,
    assert_same_triangles,
    bpy,
    drive,
    export,
    grid,
    key,
    model_collection,
    node_group,
    push_down,
    rotation_matrices,
    shown,
    shown_corners,
    square,
    tetra,
    values,
    values_of,
)

pytestmark = pytest.mark.needs_bpy

KINDS = pytest.mark.parametrize("merging", ["MERGE", "KEEP"])
FRAMES = range(1, 6)


@pytest.fixture(autouse=True)
def _short_scene(clean_blender: Any) -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 5


# ------------------------------------------------------------------ what moves: each returns the object that is seen


def _location() -> Any:
    obj = tetra("#Thing", scale=(2, 1, 1))
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    return obj


def _everything() -> Any:
    obj = tetra("#Thing")
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    key(obj, "rotation_euler", {1: (0, 0, 0), 5: (1, 2, 3)})
    key(obj, "scale", {1: (1, 1, 1), 5: (3, 2, 0.5)})
    return obj


def _parent() -> Any:
    above = add("#Above")
    key(above, "rotation_euler", {1: (0, 0, 0), 5: (0, 0, 3)})
    return tetra("#Thing", parent=add("Between", parent=above, location=(1, 0, 0)), location=(0, 1, 0))


def _parent_outside() -> Any:
    above = add("Above", None, bpy.context.scene.collection)
    key(above, "location", {1: (0, 0, 0), 5: (0, 0, 3)})
    return tetra("#Thing", parent=above)


def _nla() -> Any:
    obj = _location()
    push_down(obj, "Strip")
    return obj


def _driver() -> Any:
    obj = tetra("#Thing")
    drive(obj, "location", "frame / 2", 0)
    return obj


def _driver_of_another() -> Any:
    obj, moving = tetra("#Thing"), add("Moving", None, bpy.context.scene.collection)
    key(moving, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    curve = obj.driver_add("rotation_euler", 2)
    variable = curve.driver.variables.new()
    variable.name, variable.type = "x", "TRANSFORMS"
    variable.targets[0].id, variable.targets[0].transform_type = moving, "LOC_X"
    curve.driver.expression = "x"
    return obj


def _constraint() -> Any:
    obj, moving = tetra("#Thing"), add("Moving", None, bpy.context.scene.collection)
    key(moving, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    obj.constraints.new("COPY_LOCATION").target = moving
    return obj


def _path() -> Any:
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions, curve.use_path, curve.path_duration = "3D", True, 4
    spline = curve.splines.new("POLY")
    spline.points.add(2)
    spline.points[1].co, spline.points[2].co = (0, 4, 0, 1), (3, 4, 0, 1)
    key(curve, "eval_time", {1: 0, 5: 4})
    obj = tetra("#Thing")
    follow = obj.constraints.new("FOLLOW_PATH")
    follow.target = add("Path", curve, bpy.context.scene.collection)
    return obj


def _bone_parent() -> Any:
    rig = armature(location=(0, 0, 2), rotation_euler=(0.5, 0, 0))
    key(rig.pose.bones["Bone"], "rotation_quaternion", {1: (1, 0, 0, 0), 5: (0.6, 0.8, 0, 0)})
    obj = tetra("#Thing", parent=rig, location=(1, 0, 0))
    obj.parent_type, obj.parent_bone = "BONE", "Bone"
    return obj


def _bone_constraint() -> Any:
    moving = add("Moving", None, bpy.context.scene.collection)
    key(moving, "rotation_euler", {1: (0, 0, 0), 5: (0, 1, 2)})
    rig = armature()
    rig.pose.bones["Bone"].constraints.new("COPY_ROTATION").target = moving
    obj = tetra("#Thing", parent=rig)
    obj.parent_type, obj.parent_bone = "BONE", "Bone"
    return obj


def _action_in_pieces() -> Any:
    """Key one axis alone; the others come from the object, a delta and a driver."""
    obj = tetra("#Thing", location=(1, 2, 3), delta_location=(0, 0, 1))
    key(obj, "location", {1: 0, 5: 4}, 0)
    drive(obj, "scale", "1 + frame / 10", 1)
    return obj


def _child_of_path() -> Any:
    """Move along a path as its child, without a constraint."""
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions, curve.use_path, curve.path_duration = "3D", True, 4
    spline = curve.splines.new("POLY")
    spline.points.add(1)
    spline.points[1].co = (0, 4, 0, 1)
    key(curve, "eval_time", {1: 0, 5: 4})
    return tetra("#Thing", parent=add("#Path", curve, location=(0, 0, 3)))


MOVING = [
    _location, _everything, _parent, _parent_outside, _nla, _driver, _driver_of_another, _constraint, _path,
    _child_of_path, _bone_parent, _bone_constraint, _action_in_pieces,
]  # fmt: skip


def _shape_key() -> Any:
    obj = tetra("#Thing")
    obj.shape_key_add(name="Basis")
    obj.shape_key_add(name="Tall").data[3].co = (1, 1, 9)
    obj.data.shape_keys.key_blocks["Tall"].value = 0
    key(obj.data.shape_keys.key_blocks["Tall"], "value", {1: 0.0, 5: 1.0})
    return obj


def _shape_key_nla() -> Any:
    obj = _shape_key()
    push_down(obj.data.shape_keys, "Strip")
    return obj


def _shape_key_driver() -> Any:
    obj = _shape_key()
    obj.data.shape_keys.animation_data_clear()
    drive(obj.data.shape_keys.key_blocks["Tall"], "value", "frame / 10")
    return obj


def _armature_modifier() -> Any:
    """Deform by an armature that is not the parent."""
    rig = armature(collection=bpy.context.scene.collection)
    key(rig.pose.bones["Bone"], "rotation_quaternion", {1: (1, 0, 0, 0), 5: (0.6, 0.8, 0, 0)})
    obj = tetra("#Thing", location=(0.2, 0, 0))
    obj.vertex_groups.new(name="Bone").add([2, 3], 1.0, "REPLACE")
    obj.modifiers.new("Armature", "ARMATURE").object = rig
    return obj


def _armature_parent() -> Any:
    obj = _armature_modifier()
    obj.parent = obj.modifiers[0].object
    return obj


def _armature_parent_alone() -> Any:
    """Deform by the parent itself, without a modifier."""
    rig = armature(collection=bpy.context.scene.collection)
    key(rig.pose.bones["Bone"], "rotation_quaternion", {1: (1, 0, 0, 0), 5: (0.6, 0.8, 0, 0)})
    obj = tetra("#Thing", location=(0.2, 0, 0))
    obj.vertex_groups.new(name="Bone").add([2, 3], 1.0, "REPLACE")
    obj.parent, obj.parent_type = rig, "ARMATURE"
    return obj


def _scene_time() -> Any:
    obj = tetra("#Thing")
    group, entry, leave = node_group()
    move, time, join = (
        group.nodes.new(kind)
        for kind in ("GeometryNodeSetPosition", "GeometryNodeInputSceneTime", "ShaderNodeCombineXYZ")
    )
    group.links.new(time.outputs["Frame"], join.inputs["Z"])
    group.links.new(join.outputs[0], move.inputs["Offset"])
    group.links.new(entry.outputs[0], move.inputs[0])
    group.links.new(move.outputs[0], leave.inputs[0])
    add_nodes(obj, group)
    return obj


def _nodes_see_an_object() -> Any:
    """Geometry nodes that move the mesh to an object given to the modifier."""
    moving = add("Moving", None, bpy.context.scene.collection)
    key(moving, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    obj = tetra("#Thing")
    group, entry, leave = node_group("Nodes", ("Target", "NodeSocketObject"))
    move, info = group.nodes.new("GeometryNodeSetPosition"), group.nodes.new("GeometryNodeObjectInfo")
    group.links.new(entry.outputs[0], move.inputs[0])
    group.links.new(entry.outputs["Target"], info.inputs["Object"])
    group.links.new(info.outputs["Location"], move.inputs["Offset"])
    group.links.new(move.outputs[0], leave.inputs[0])
    modifier = add_nodes(obj, group)
    identifier = next(socket.identifier for socket in group.interface.items_tree if socket.name == "Target")
    if bpy.app.version >= (5, 2, 0):
        getattr(modifier.properties.inputs, identifier).value = moving
    else:
        modifier[identifier] = moving
    obj.update_tag()
    return obj


def _nodes_driven() -> Any:
    """Key a value inside a node group."""
    obj = tetra("#Thing")
    group, entry, leave = node_group()
    move = group.nodes.new("GeometryNodeSetPosition")
    group.links.new(entry.outputs[0], move.inputs[0])
    group.links.new(move.outputs[0], leave.inputs[0])
    add_nodes(obj, group)
    key(move.inputs["Offset"], "default_value", {1: (0, 0, 0), 5: (0, 0, 4)})
    return obj


def _modifier_setting() -> Any:
    obj = grid("#Thing")
    twist = obj.modifiers.new("Twist", "SIMPLE_DEFORM")
    twist.deform_method, twist.deform_axis = "TWIST", "X"
    key(twist, "angle", {1: 0.0, 5: 2.0})
    return obj


def _shrunk_on_another() -> Any:
    floor = square("Floor", bpy.context.scene.collection)
    floor.scale = (9, 9, 9)
    key(floor, "location", {1: (-2, -2, -1), 5: (-2, -2, -5)})
    obj = grid("#Thing")
    wrap = obj.modifiers.new("Wrap", "SHRINKWRAP")
    wrap.target, wrap.wrap_method, wrap.use_negative_direction, wrap.use_project_z = floor, "PROJECT", True, True
    return obj


def _hooked() -> Any:
    hook = add("Hook", None, bpy.context.scene.collection)
    key(hook, "location", {1: (0, 0, 0), 5: (0, 0, 4)})
    obj = tetra("#Thing")
    modifier = obj.modifiers.new("Hook", "HOOK")
    modifier.object = hook
    modifier.vertex_indices_set([3])
    return obj


def _lattice() -> Any:
    cage = bpy.data.lattices.new("Cage")
    around = add("Cage", cage, bpy.context.scene.collection, scale=(9, 9, 9))
    around.shape_key_add(name="Basis")
    for point in around.shape_key_add(name="Bent").data:
        point.co.x += point.co.z
    cage.shape_keys.key_blocks["Bent"].value = 0
    key(cage.shape_keys.key_blocks["Bent"], "value", {1: 0.0, 5: 1.0})
    obj = tetra("#Thing")
    obj.modifiers.new("Lattice", "LATTICE").object = around
    return obj


def _curve_bevel() -> Any:
    data = bpy.data.curves.new("Tube", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("POLY")
    spline.points.add(1)
    spline.points[1].co = (0, 0, 2, 1)
    key(data, "bevel_depth", {1: 0.1, 5: 1.0})
    return add("#Thing", data)


def _mirror_around_moving() -> Any:
    middle = add("Middle", None, bpy.context.scene.collection)
    key(middle, "location", {1: (-1, 0, 0), 5: (-3, 0, 0)})
    obj = tetra("#Thing")
    obj.modifiers.new("Mirror", "MIRROR").mirror_object = middle
    return obj


def _wave() -> Any:
    obj = grid("#Thing", 8)
    wave = obj.modifiers.new("Wave", "WAVE")
    wave.height, wave.width, wave.narrowness, wave.speed, wave.time_offset = 2, 1, 2, 0.2, -20
    return obj


DEFORMING = [
    _shape_key, _shape_key_nla, _shape_key_driver, _armature_modifier, _armature_parent, _scene_time,
    _nodes_see_an_object, _nodes_driven, _modifier_setting, _shrunk_on_another, _hooked, _lattice, _curve_bevel,
    _mirror_around_moving, _wave, _armature_parent_alone,
]  # fmt: skip


@KINDS
@pytest.mark.parametrize("make", MOVING)
def test_objects_that_move_become_node_animation(make: Callable[[], Any], merging: str) -> None:
    obj = make()
    made = export(merging=merging)
    assert "VERTEX" not in "".join(made.clip_kinds(name) for name in made.names)
    assert_plays_as_shown(made, obj, frames=FRAMES)


def _driver_of_the_scene_frame() -> Any:
    """Follow the frame of the scene, which Time Stretching does not change."""
    obj = tetra("#Thing")
    driver = obj.driver_add("location", 0).driver
    variable = driver.variables.new()
    variable.name, variable.targets[0].id_type = "now", "SCENE"
    variable.targets[0].id, variable.targets[0].data_path = bpy.context.scene, "frame_current"
    driver.expression = "now"
    return obj


@pytest.mark.parametrize(("old", "new"), [(100, 200), (200, 100), (100, 300)])
@pytest.mark.parametrize(
    "make", [_location, _nla, _driver, _driver_of_the_scene_frame, _scene_time, _shape_key, _action_in_pieces]
)
def test_stretched_time_plays_as_shown(make: Callable[[], Any], old: int, new: int) -> None:
    obj = make()
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = old, new
    keyed = np.arange(4 * new // old + 1) + new / old
    assert_plays_as_shown(export(), obj, frames=keyed if len(bpy.data.actions) else FRAMES)
    assert_plays_as_shown(export(clips="SCENE"), obj, frames=FRAMES)
    if make is _nla:
        assert_plays_as_shown(export(clips="NLA"), obj, frames=keyed, clip="Strip")


@KINDS
@pytest.mark.parametrize("make", DEFORMING)
def test_meshes_that_deform_become_vertex_animation(make: Callable[[], Any], merging: str) -> None:
    obj = make()
    made = export(merging=merging)
    assert made.clip_kinds("#Thing").split() == ["VERTEX"]
    assert_plays_as_shown(made, obj, frames=FRAMES)


@pytest.mark.parametrize("make", [*MOVING, *DEFORMING])
def test_moving_objects_merged_into_the_root_become_its_vertex_animation(make: Callable[[], Any]) -> None:
    obj = make()
    obj.name = "Loose"
    for other in bpy.data.objects:
        other.name = other.name.lstrip("#")
    square("Still", location=(30, 0, 0))
    made = export(merging="MERGE")
    assert made.names == ["Model"]
    assert made.clip_kinds("Model").split() == ["VERTEX"]
    assert_plays_as_shown(made, obj, bpy.data.objects["Still"], frames=FRAMES, tolerance=5e-5)


def test_moving_and_deforming_at_once_is_both() -> None:
    obj = _shape_key()
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    made = export()
    assert made.clip_kinds("#Thing").split() == ["NODE", "VERTEX"]
    assert_plays_as_shown(made, obj, frames=FRAMES)


@pytest.mark.parametrize(("kind", "expected"), [("NODE", "NODE"), ("VERTEX", "VERTEX"), ("AUTO", "NODE VERTEX")])
def test_the_kind_of_animation_is_an_option(kind: str, expected: str) -> None:
    obj = _shape_key()
    key(obj, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    made = export(animation_kind=kind)
    assert made.clip_kinds("#Thing").strip() == expected
    if kind == "NODE":
        assert [frame.position.x for frame in made.clip("#Thing").frames] == pytest.approx([0, -1, -2, -3, -4])
    if kind == "VERTEX":
        offsets = values_of(made.clip("#Thing").frames[4], "offset", 3, made.node("#Thing").vertexCount)
        assert set(map(tuple, np.round(offsets, 5) + 0.0)) == {(0, 0, 0), (-1, 6, -1)}


@pytest.mark.parametrize(
    "make", [lambda: tetra("#Thing"), lambda: key(tetra("#Thing"), "location", {1: (1, 2, 3), 5: (1, 2, 3)})]
)
def test_what_stands_still_has_no_clip(make: Callable[[], Any]) -> None:
    make()
    made = export()
    assert made.clip_names == set()
    assert made.said == []


def test_the_rest_is_the_first_frame_of_the_clip() -> None:
    _location()
    bpy.context.scene.frame_set(4)
    made = export()
    assert made.matrix(1) == pytest.approx(made.matrix(1, "Default", 0))


def test_a_still_child_of_a_moving_node_needs_no_animation() -> None:
    obj = _location()
    child = tetra("#Child", parent=obj, location=(0, 0, 1))
    made = export()
    assert (made.clip_kinds("#Thing").strip(), made.clip_kinds("#Child")) == ("NODE", "")
    assert_plays_as_shown(made, obj, child, frames=FRAMES)


def test_still_objects_merged_into_a_moving_node_go_with_it() -> None:
    obj = _location()
    child = tetra("Child", parent=obj, location=(0, 0, 1))
    made = export()
    assert made.names == ["Model", "#Thing"]
    assert made.clip_kinds("#Thing").strip() == "NODE"
    assert_plays_as_shown(made, obj, child, frames=FRAMES)


# ---------------------------------------------------------------------------------- how vertex animation is stored


def test_moving_vertices_come_first_and_arrays_are_as_long_as_the_node() -> None:
    square("A still one", location=(9, 0, 0), uv=True)
    obj = _shape_key()
    obj.name = "Moving"
    square("Still", location=(30, 0, 0), uv=True)
    made = export(merging="MERGE")
    node, clip = made.node("Model"), made.clip("Model")
    assert (clip.animatedVertexCount, node.vertexCount) == (12, 20)
    assert len(clip.frames) == 5
    points = values(node, "position")
    assert points[:12, 0].min() >= -1  # file X = -x: the tetrahedron's
    assert points[12:, 0].max() <= -9
    for frame in clip.frames:
        assert {entry.name for entry in frame.vertexProperties} == {"offset", "rotation"}
        assert not values_of(frame, "offset", 3, 20)[12:].any()
        assert np.linalg.norm(values_of(frame, "rotation", 4, 20), axis=1) == pytest.approx(1, abs=1e-5)


def _rolling() -> Any:
    """A smooth grid with UVs that is twisted."""
    obj = _modifier_setting()
    for polygon in obj.data.polygons:
        polygon.use_smooth = True
    return obj


@pytest.mark.parametrize("make", [_rolling, _shape_key])
def test_rotation_turns_the_axes_of_the_page_into_normal_and_tangent(make: Callable[[], Any]) -> None:
    obj = make()
    made = export()
    node, clip = made.node("#Thing"), made.clip("#Thing")
    count = clip.animatedVertexCount
    for number, frame in enumerate(FRAMES):
        bpy.context.scene.frame_set(frame)
        offsets, turned = (
            values_of(clip.frames[number], *entry, node.vertexCount) for entry in (("offset", 3), ("rotation", 4))
        )
        axes = rotation_matrices(turned)
        places = (values(node, "position") + offsets)[:count] @ TO_BLENDER.T
        normals = (axes @ [-1, 0, 0])[:count] @ TO_BLENDER.T
        assert_rows_among(np.hstack([places, normals]), _shown_normals(obj), 2e-3)
        if node.vertexProperties[-1].name == "uv0":
            tangents = (axes @ [0, 0, -1])[:count] @ TO_BLENDER.T
            assert_rows_among(np.hstack([places, tangents]), _shown_tangents(obj), 2e-2)


def assert_rows_among(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.abs(found[:, None] - expected[None]).max(axis=2).min(axis=1).max() < tolerance


def _shown_normals(obj: Any) -> np.ndarray:
    return shown_corners(obj, lambda mesh, loop: tuple(mesh.corner_normals[loop].vector))


def _shown_tangents(obj: Any) -> np.ndarray:
    def read(mesh: Any, loop: int) -> Any:
        mesh.calc_tangents()
        return tuple(mesh.loops[loop].tangent)

    return shown_corners(obj, read)


def test_at_the_first_frame_rotation_gives_the_stored_normals_and_tangents() -> None:
    _rolling()
    made = export()
    node, clip = made.node("#Thing"), made.clip("#Thing")
    axes = rotation_matrices(values_of(clip.frames[0], "rotation", 4, node.vertexCount))
    assert axes @ [-1, 0, 0] == pytest.approx(values(node, "normal"), abs=1e-4)
    assert axes @ [0, 0, -1] == pytest.approx(values(node, "tangent")[:, :3], abs=1e-4)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("scales", [(1, -1), (-1, 1)])
def test_vertices_stay_themselves_through_zero_scale(smooth: bool, scales: tuple[float, float]) -> None:
    obj = tetra("Flip")
    for polygon in obj.data.polygons:
        polygon.use_smooth = smooth
    key(obj, "scale", {1: (1, 1, scales[0]), 5: (1, 1, scales[1])})
    made = export(merging="MERGE")
    node = made.node("Model")
    rest = values(node, "position")
    assert rest[:, 1].max() * scales[0] + rest[:, 1].min() * scales[0] == pytest.approx(3)
    for number, frame in enumerate(made.clip("Model").frames):
        factor = 1 - number / 2
        assert rest + values_of(frame, "offset", 3, node.vertexCount) == pytest.approx(rest * [1, factor, 1], abs=1e-5)
        assert np.isfinite(values_of(frame, "rotation", 4, node.vertexCount)).all()


@pytest.mark.parametrize("scale", [(0, 0, 0), (1, 0, 1)])
def test_a_node_that_shrinks_to_nothing(scale: tuple[float, float, float]) -> None:
    obj = tetra("#Thing", parent=armature(collection=bpy.context.scene.collection, location=(1, 2, 3)))
    key(obj, "scale", {1: (1, 1, 1), 5: scale})
    child = tetra("Child", parent=obj, location=(1, 0, 0))
    key(child, "location", {1: (1, 0, 0), 5: (4, 0, 0)})
    assert_plays_as_shown(export(), obj, child, frames=FRAMES)


def test_neighbouring_frames_keep_the_sign_of_rotations() -> None:
    obj = tetra("#Thing")
    key(obj, "rotation_euler", {1: (0, 0, 0), 5: (0, 0, 4 * math.pi)})
    frames = export().clip("#Thing").frames
    turned = np.array([(frame.rotation.x, frame.rotation.y, frame.rotation.z, frame.rotation.w) for frame in frames])
    assert (np.einsum("fi,fi->f", turned[1:], turned[:-1]) >= -1e-6).all()


def test_a_changing_number_of_vertices_is_said_and_leaves_the_rest_shape() -> None:
    obj = square("#Thing")
    array = obj.modifiers.new("Array", "ARRAY")
    key(array, "count", {1: 1, 5: 3})
    made = export()
    assert made.clip_kinds("#Thing") == ""
    assert made.has_notice("#Thing", "vertices")
    assert len(made.triangles()) == 2


def test_only_meshes_that_change_with_time_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.blender_data.exporting import exporter

    found: list[set[Any]] = []
    search = exporter.deforming_objects

    def noted(*given: Any) -> Any:
        found.append((yield from search(*given)))
        return found[-1]

    monkeypatch.setattr(exporter, "deforming_objects", noted)
    obj, still = _shape_key(), _location()
    still.modifiers.new("Smooth", "SUBSURF")
    still.modifiers.new("Mirror", "MIRROR")
    before = len(bpy.app.handlers.frame_change_post)
    export()
    assert found == [{obj}]
    assert len(bpy.app.handlers.frame_change_post) == before


def _instance(name: str) -> tuple[Any, Any]:
    library = bpy.data.collections.new("Library")
    inner = tetra("Inner", library)
    return add(name, instance_type="COLLECTION", instance_collection=library), inner


@pytest.mark.parametrize(
    ("name", "moves", "kind", "is_warned"),
    [
        ("#Shown", "own", "NODE", False),
        ("Shown", "own", "", True),
        ("#Shown", "inner", "", True),
        ("#Shown", "", "", False),
    ],
)
def test_instances_move_with_their_node_and_not_within_it(name: str, moves: str, kind: str, is_warned: bool) -> None:
    shown_here, inner = _instance(name)
    moving = {"own": shown_here, "inner": inner}.get(moves) or tetra("#Else")
    key(moving, "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    made = export()
    assert made.clip_kinds(name if name in made.names else "Model").strip() == kind
    assert made.has_notice(name, "instances") == is_warned
    if kind:
        assert made.triangles("Default", 4).reshape(-1, 3).min(axis=0) == pytest.approx((4, 2, 1))


@pytest.mark.parametrize("is_moving", [True, False])
@pytest.mark.parametrize("make", [_shape_key, _armature_modifier, _armature_parent_alone, _scene_time, _wave])
def test_instances_that_deform_are_named(make: Callable[[], Any], is_moving: bool) -> None:
    inner = make()
    library = bpy.data.collections.new("Library")
    library.objects.link(inner)
    bpy.data.collections["Model"].objects.unlink(inner)
    add("#Shown", instance_type="COLLECTION", instance_collection=library)
    key(tetra("#Else"), "location", {1: (0, 0, 0), 5: (4, 2, 1)})
    if not is_moving:
        bpy.context.scene.frame_set(1)
        for block in [inner, inner.data.shape_keys, *(modifier for modifier in inner.modifiers)]:
            if isinstance(block, bpy.types.Modifier):
                block.show_viewport = False
            elif block is not None:
                block.animation_data_clear()
        inner.parent = None
    assert export().has_notice("#Shown", "instances") == is_moving


# ------------------------------------------------------------------------------------ what came from a file


def test_an_own_rest_transform_is_kept_while_the_object_is_keyed() -> None:
    obj = _location()
    kept = obj.meshferry
    kept.has_rest, kept.rest_location, kept.rest_scale = True, (7, 8, 9), (2, 2, 2)
    made = export(merging="KEEP")
    assert (made.node("#Thing").position.x, made.node("#Thing").scale.y) == (-7, 2)
    assert_plays_as_shown(made, obj, frames=FRAMES)


def _from_file() -> tuple[Any, Any, Any]:
    """Import a moving node below a turned and scaled empty, at rest in the first frame; return the objects."""
    from test_import import moving_clip, node, quad_mesh, run, scene_of

    place = {"translation": (0, -2, 0), "rotation": (0.8, 0, 0, 0.6), "scale": (2, 2, 2)}
    thing = node("#Thing", quad_mesh(), parent=1, translation=(0, 3, 1), scale=(1, 2, 1))
    clip = moving_clip(target=2)
    (track,) = clip.transforms
    track.translation = track.translation + np.float32(thing.translation)
    track.scale = track.scale * np.float32(thing.scale)
    nodes = (node("Root", is_root=True), node("Empty", parent=0, **place), thing)
    return tuple(run(scene_of(*nodes, clips=[clip])).objects)


def _drop_parent(_root: Any, _empty: Any, _thing: Any) -> None:
    pass


def _scale_parent(_root: Any, empty: Any, _thing: Any) -> None:
    empty.scale, empty.location = (3, 3, 3), (1, 1, 1)


def _key_parent(_root: Any, empty: Any, _thing: Any) -> None:
    key(empty, "location", {1: (0, -2, 0), 5: (0, 4, 0)})


def _set_other_parent(_root: Any, _empty: Any, thing: Any) -> None:
    thing.parent = add("#Other", location=(5, 0, 0), rotation_euler=(0, 1, 0))


def _key_below_another_parent(root: Any, empty: Any, thing: Any) -> None:
    _set_other_parent(root, empty, thing)
    key(thing, "location", {1: (3, 5, 7), 2: (3, 5, 7), 3: (3, 5, 8), 4: (3, 6, 8), 5: (4, 6, 8)})


def _clear_parent(_root: Any, _empty: Any, thing: Any) -> None:
    thing.parent = None


def _keep_transform(_root: Any, empty: Any, thing: Any) -> None:
    thing.matrix_parent_inverse = empty.matrix_world.inverted()


def _side_by_side(_root: Any, _empty: Any, thing: Any) -> None:
    thing.delta_location.x = 7


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("merging", ["MERGE", "KEEP"])
@pytest.mark.parametrize(
    "change",
    [
        *(_drop_parent, _scale_parent, _key_parent, _set_other_parent, _key_below_another_parent),
        *(_clear_parent, _keep_transform, _side_by_side),
    ],
)
def test_a_stored_rest_counts_below_its_parent_alone(change: Callable[..., None], merging: str, origin: bool) -> None:
    from meshferry.blender_data.exporting.object_selection import Origin

    root, empty, thing = _from_file()
    change(root, empty, thing)
    for obj in {root, empty, thing, thing.parent} - {None}:
        if obj.name not in model_collection().objects:
            model_collection().objects.link(obj)
    start = add("Start", None, bpy.context.scene.collection, location=(1, 2, 3)) if origin else None
    bpy.context.scene.frame_set(3)
    made = export(merging=merging, origin=Origin(start) if start else None)
    for name, frame, number in (("", 1, 0), ("Default", 1, 0), ("Default", 4, 3)):
        bpy.context.scene.frame_set(frame)
        place = np.array(start.location) if start else 0.0
        assert_same_triangles(made.triangles(name, number), shown(thing) - place, 2e-5)
    assert thing.location.y != 0


def test_a_stored_rest_is_exact_below_its_parent() -> None:
    objects = _from_file()
    kept = objects[2].meshferry
    kept.rest_location, kept.rest_rotation = (0.1, 3, 1), (0.61, 0, 0, 0.8)
    for obj in objects:
        model_collection().objects.link(obj)
    made = export(merging="KEEP").node("#Thing")
    assert (made.position.x, made.scale.y) == (-np.float32(0.1), 1)
    assert {abs(made.rotation.w), abs(made.rotation.y)} == {np.float32(0.61), np.float32(0.8)}


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "AXIS_ANGLE"])
def test_a_stored_rest_below_dropped_parents(mode: str) -> None:
    """The parents are at rest, too."""
    root, empty, thing = _from_file()
    _key_parent(root, empty, thing)
    for obj, place in ((empty, (0, 9, 0)), (thing, (5, 6, 7))):
        obj.meshferry.has_rest, obj.meshferry.rest_location = True, place
        obj.meshferry.rest_rotation, obj.meshferry.rest_scale = (0.6, 0, 0.8, 0), (2, 2, 2)
        obj.rotation_mode = mode
    for obj in (root, empty, thing):
        model_collection().objects.link(obj)
    made = export(merging="MERGE")
    for obj, place in ((empty, (0, 9, 0)), (thing, (5, 6, 7))):
        obj.animation_data_clear()
        obj.rotation_mode = "QUATERNION"
        obj.location, obj.rotation_quaternion, obj.scale = place, (0.6, 0, 0.8, 0), (2, 2, 2)
    bpy.context.view_layer.update()
    assert_same_triangles(made.triangles(), shown(thing), 2e-5)


def test_a_rest_shape_that_is_the_basis() -> None:
    obj = _shape_key()
    blocks = obj.data.shape_keys.key_blocks
    key(blocks["Tall"], "value", {1: 0.5, 5: 1.0})
    obj.meshferry.rest_is_basis = True
    made = export()
    assert values(made.node("#Thing"), "position")[:, 1].max() == pytest.approx(3)
    assert_plays_as_shown(made, obj, frames=FRAMES)
