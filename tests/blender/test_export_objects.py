"""Which objects an export takes, where they land, and which nodes they become."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers_export import (
    active,
    add,
    add_nodes,
    armature,
    assert_same_triangles,
    bpy,
    export,
    model_collection,
    node_group,
    shown,
    square,
    tetra,
    values,
    volume,
)
from mathutils import Matrix

pytestmark = pytest.mark.needs_bpy

KINDS = pytest.mark.parametrize("merging", ["MERGE", "KEEP"])
TURNED: dict[str, Any] = {"location": (3, -2, 1), "rotation_euler": (0.3, -0.5, 0.9), "scale": (2, 1.5, 0.5)}


def _error() -> type[Exception]:
    from meshferry.io_formats.core.errors import ExportError

    return ExportError


# ------------------------------------------------------------------------------------------------- transforms


@KINDS
def test_an_armature_without_animation_data_does_no_harm(merging: str) -> None:
    obj = tetra()
    armature(collection=bpy.context.scene.collection)
    assert_same_triangles(export(merging=merging).triangles(), shown(obj))


@KINDS
@pytest.mark.parametrize("scale", [(0, 0, 0), (1, 0, 1), (1, 1, 1e-20)])
def test_zero_scale_is_refused_by_name(merging: str, scale: tuple[float, float, float]) -> None:
    tetra("#Good")
    tetra("Flattened", scale=scale)
    with pytest.raises(_error(), match=r"'Flattened'.*scale"):
        export(merging=merging)


@KINDS
def test_zero_scale_of_a_parent_is_refused(merging: str) -> None:
    tetra("#Child", parent=add("#Empty", scale=(1, 0, 1)))
    with pytest.raises(_error(), match=r"#(Empty|Child)"):
        export(merging=merging)


@KINDS
@pytest.mark.parametrize("scale", [(-1, 1, 1), (2, -3, 1), (-1, -1, -1), (-1, -1, 1)])
def test_negative_scale_leaves_no_mesh_inside_out(merging: str, scale: tuple[float, float, float]) -> None:
    obj = tetra(scale=scale, location=(1, 2, 3), rotation_euler=(0.1, 0.2, 0.3))
    made = export(merging=merging)
    assert volume(made.triangles()) == pytest.approx(abs(math.prod(scale)), rel=1e-5)
    assert_same_triangles(made.triangles(), shown(obj))
    node = made.nodes[-1]
    faces = values(node, "position")[np.array(node.meshes[0].indices).reshape(-1, 3)]
    outside = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    normals = values(node, "normal")[np.array(node.meshes[0].indices).reshape(-1, 3)]
    assert (np.einsum("tcj,tj->tc", normals, outside) > 0).all()


@KINDS
def test_grandparents_outside_the_collection_count(merging: str) -> None:
    outside = bpy.context.scene.collection
    above = add("Grandparent", None, outside, **TURNED)
    between = add("Parent", None, outside, parent=above, location=(0, 0, 4))
    obj = tetra("#Child", parent=between, location=(1, 0, 0))
    made = export(merging=merging)
    assert_same_triangles(made.triangles(), shown(obj), 2e-5)
    assert made.names == ["Model", "#Child"]


@KINDS
def test_a_child_of_an_armature_lands_where_blender_shows_it(merging: str) -> None:
    rig = armature(location=(6, 0, 0))
    obj = tetra(location=(6, 0, 0))
    obj.parent, obj.matrix_parent_inverse = rig, rig.matrix_world.inverted()
    bpy.context.view_layer.update()
    made = export(merging=merging)
    assert_same_triangles(made.triangles(), shown(obj))
    assert made.triangles()[..., 0].min() == pytest.approx(6)
    assert "Rig" not in made.names


@KINDS
def test_a_child_of_a_moved_armature_without_parent_inverse(merging: str) -> None:
    obj = tetra("#Child", parent=armature(**TURNED), location=(6, 0, 0))
    assert_same_triangles(export(merging=merging).triangles(), shown(obj), 2e-5)


def _parent_inverse(obj: Any) -> None:
    obj.matrix_parent_inverse = Matrix.Rotation(1, 4, "X") @ Matrix.Translation((1, 2, 3))


def _deltas(obj: Any) -> None:
    obj.delta_location, obj.delta_scale = (1, 2, 3), (2, 2, 2)
    obj.delta_rotation_euler = (0, 0.5, 0)


def _axis_angle(obj: Any) -> None:
    obj.rotation_mode, obj.rotation_axis_angle = "AXIS_ANGLE", (1.0, 1, 2, 3)


def _raw_quaternion(obj: Any) -> None:
    obj.rotation_mode, obj.rotation_quaternion = "QUATERNION", (1, 2, 0, 1)


def _other_order(obj: Any) -> None:
    obj.rotation_mode, obj.rotation_euler = "ZXY", (1, 2, 3)


def _constraint(obj: Any) -> None:
    found = obj.constraints.new("LIMIT_LOCATION")
    found.use_max_x, found.max_x = True, -4


def _vertex_parent(obj: Any) -> None:
    obj.parent = square("Anchor", bpy.context.scene.collection, location=(4, 0, 0))
    obj.parent_type, obj.parent_vertices = "VERTEX", (2, 0, 0)


def _bone_parent(obj: Any) -> None:
    obj.parent = armature(location=(3, -2, 1), rotation_euler=(0.3, -0.5, 0.9), scale=(3, 3, 3))
    obj.parent_type, obj.parent_bone = "BONE", "Bone"


def _path_parent(obj: Any) -> None:
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions, curve.use_path = "3D", True
    spline = curve.splines.new("POLY")
    spline.points.add(1)
    spline.points[1].co = (0, 8, 0, 1)
    curve.eval_time = curve.path_duration / 2
    obj.parent = add("#Path", curve, location=(0, 0, 3))


@KINDS
@pytest.mark.parametrize(
    "change",
    [
        _parent_inverse, _deltas, _axis_angle, _raw_quaternion, _other_order, _constraint, _vertex_parent, _bone_parent,
        _path_parent,
    ],
)  # fmt: skip
def test_an_object_lands_where_blender_shows_it(merging: str, change: Callable[[Any], None]) -> None:
    obj = tetra("#Child", parent=add("#Parent", **TURNED), location=(1, 1, 1), rotation_euler=(0.2, 0.4, 0.6))
    obj.parent.scale = (2, 2, 2)
    change(obj)
    bpy.context.view_layer.update()
    made = export(merging=merging)
    assert_same_triangles(made.triangles(), shown(obj), 5e-5)


def test_shear_is_kept_in_merged_meshes_and_said_of_nodes() -> None:
    outside = add("Parent", None, bpy.context.scene.collection, scale=(3, 1, 1))
    obj = tetra("Child", parent=outside, rotation_euler=(0, 0, 0.7))
    merged = export(merging="MERGE")
    assert_same_triangles(merged.triangles(), shown(obj))
    assert merged.said == []
    assert export(merging="KEEP").has_notice("Child", "shear")
    model_collection().objects.link(outside)
    kept = export(merging="KEEP")
    assert kept.said == []
    assert_same_triangles(kept.triangles(), shown(obj))


def test_scale_and_rotation_are_written_by_the_formulas_of_the_page() -> None:
    tetra(
        "#Node",
        location=(1, 2, 3),
        rotation_mode="QUATERNION",
        rotation_quaternion=(0.5, 0.5, 0.5, -0.5),
        scale=(4, 5, 6),
    )
    node = export().node("#Node")
    assert (node.position.x, node.position.y, node.position.z) == (-1, 3, -2)
    assert (node.rotation.x, node.rotation.y, node.rotation.z, node.rotation.w) == pytest.approx((0.5, 0.5, 0.5, 0.5))
    assert (node.scale.x, node.scale.y, node.scale.z) == (4, 6, 5)


# -------------------------------------------------------------------------------------------------- selection


def _hide(obj: Any) -> None:
    obj.hide_set(True)


def _disable(obj: Any) -> None:
    obj.hide_viewport = True


def _in_child(obj: Any) -> Any:
    inner = bpy.data.collections.new("Inner")
    model_collection().children.link(inner)
    model_collection().objects.unlink(obj)
    inner.objects.link(obj)
    return bpy.context.view_layer.layer_collection.children["Model"].children["Inner"]


def _disable_used(obj: Any) -> None:
    """Disable an object that a modifier of another refers to, so that Blender evaluates it all the same."""
    bpy.data.objects["#Seen"].modifiers.new("Cut", "BOOLEAN").object = obj
    obj.location = (50, 0, 0)
    obj.hide_set(True)
    obj.hide_viewport = True


def _exclude(obj: Any) -> None:
    _in_child(obj).exclude = True


def _hide_collection(obj: Any) -> None:
    _in_child(obj).hide_viewport = True


def _disable_collection(obj: Any) -> None:
    _in_child(obj).collection.hide_viewport = True


@pytest.mark.parametrize(
    ("hide", "by_option"),
    [
        (_hide, True),
        (_hide_collection, True),
        (_disable, False),
        (_disable_used, False),
        (_exclude, False),
        (_disable_collection, False),
    ],
)
@pytest.mark.parametrize("use_hidden", [False, True])
def test_unseen_objects_are_left_out_and_named(hide: Callable[[Any], None], by_option: bool, use_hidden: bool) -> None:
    tetra("#Seen")
    hide(tetra("#Unseen"))
    made = export(use_hidden=use_hidden)
    taken = use_hidden and by_option
    assert ("#Unseen" in made.names) == taken
    assert "#Seen" in made.names
    assert made.has_notice("#Unseen") != taken


def test_a_hidden_object_comes_with_its_modifiers() -> None:
    obj = square("#Unseen")
    obj.modifiers.new("Array", "ARRAY").count = 3
    obj.hide_set(True)
    assert len(export(use_hidden=True).triangles()) == 6


def test_lights_and_cameras_are_said_once() -> None:
    tetra()
    for number in range(3):
        add(f"Lamp {number}", bpy.data.lights.new("Lamp", "POINT"))
    add("Eye", bpy.data.cameras.new("Eye"))
    made = export()
    assert len(made.said) == 2
    assert made.has_notice("Lamp 0", "Lamp 1", "Lamp 2", "light")
    assert made.has_notice("Eye", "camera")


def _only_light() -> None:
    add("Lamp", bpy.data.lights.new("Lamp", "POINT"))


def _only_hidden() -> None:
    tetra("Lamp").hide_set(True)


@pytest.mark.parametrize(
    ("fill", "named"), [(model_collection, "Model"), (_only_light, "Lamp"), (_only_hidden, "Lamp")]
)
def test_nothing_to_export_is_an_error_that_says_why(fill: Callable[[], Any], named: str) -> None:
    fill()
    with pytest.raises(_error(), match=f"(?s)othing to export.*{named}"):
        export()


def test_selection_and_scene_as_source() -> None:
    one, other = tetra("#One"), tetra("#Other", bpy.context.scene.collection)
    for obj in (one, other):
        obj.select_set(obj is other)
    assert export("SELECTION").names == ["Named", "#Other"]
    assert set(export("SCENE").names) == {"Named", "#One", "#Other"}
    assert export().names == ["Model", "#One"]


def test_an_object_in_two_collections_is_exported_once() -> None:
    obj = tetra("#One")
    inner = bpy.data.collections.new("Inner")
    model_collection().children.link(inner)
    inner.objects.link(obj)
    assert export().names == ["Model", "#One"]


# ------------------------------------------------------------------------------------------ nodes and merging


def _hierarchy() -> None:
    top = add("#Top", location=(1, 0, 0))
    between = add("Between", parent=top, location=(0, 1, 0))
    tetra("Loose", parent=between, location=(0, 0, 1))
    tetra("#Under", parent=between, location=(0, 0, 2))
    tetra("Base")
    add("Childless")
    add("#Slot#Entrance")


def test_merged_objects_join_their_nearest_marked_ancestor_or_the_root() -> None:
    _hierarchy()
    made = export(merging="MERGE")
    assert sorted(made.names) == ["#Slot#Entrance", "#Top", "#Under", "Model"]
    assert [made.parent_of(name) for name in ("#Top", "#Under", "#Slot#Entrance")] == ["Model", "#Top", "Model"]
    counts = {node.name: sum(len(mesh.indices) for mesh in node.meshes) // 3 for node in made.nodes}
    assert counts == {"Model": 4, "#Top": 4, "#Under": 4, "#Slot#Entrance": 0}


def test_every_object_a_node_keeps_childless_empties() -> None:
    _hierarchy()
    made = export(merging="KEEP")
    assert sorted(made.names) == sorted(["Model", *(obj.name for obj in model_collection().objects)])
    assert [made.parent_of(name) for name in ("Loose", "Between", "Childless")] == ["Between", "#Top", "Model"]


@KINDS
def test_a_hierarchy_lands_where_blender_shows_it(merging: str) -> None:
    _hierarchy()
    meshes = [obj for obj in model_collection().objects if obj.type == "MESH"]
    assert_same_triangles(export(merging=merging).triangles(), shown(*meshes))


def test_the_root_is_the_collection_at_rest() -> None:
    tetra(location=(1, 2, 3))
    root = export().nodes[0]
    assert (root.name, root.parent) == ("Model", -1)
    assert (root.position.x, root.position.y, root.position.z) == (0, 0, 0)
    assert (root.rotation.x, root.rotation.y, root.rotation.z, root.rotation.w) == (0, 0, 0, 1)
    assert (root.scale.x, root.scale.y, root.scale.z) == (1, 1, 1)


def test_parents_stand_before_their_children_whatever_the_order_of_linking() -> None:
    child = tetra("#A child")
    child.parent = add("#Z parent")
    made = export()
    assert all(node.parent < index for index, node in enumerate(made.nodes))
    assert made.parent_of("#A child") == "#Z parent"


@pytest.mark.parametrize(
    ("collection_says", "from_file", "option", "merged"),
    [
        ("AUTO", False, "AUTO", True),
        ("AUTO", True, "AUTO", False),
        ("MERGE", True, "AUTO", True),
        ("KEEP", False, "AUTO", False),
        ("KEEP", False, "MERGE", True),
        ("MERGE", False, "KEEP", False),
    ],
)
def test_the_collection_says_how_it_is_merged(collection_says: str, from_file: bool, option: str, merged: bool) -> None:
    kept = model_collection().meshferry
    kept.merging, kept.from_file = collection_says, from_file
    tetra("Loose")
    assert export(merging=option).names == (["Model"] if merged else ["Model", "Loose"])


@KINDS
def test_one_marked_root_is_node_0_again(merging: str) -> None:
    other = tetra("#Other", location=(0, 0, 5))
    root = tetra("House", location=(1, 2, 3))
    root.meshferry.is_root = True
    made = export(merging=merging)
    assert made.names == ["House", "#Other"]
    assert [node.parent for node in made.nodes] == [-1, 0]
    assert_same_triangles(made.triangles(), shown(other, root))


def test_several_marked_roots_stay_roots() -> None:
    for name in ("One", "Two"):
        tetra(name).meshferry.is_root = True
    tetra("Child", parent=bpy.data.objects["Two"])
    made = export(merging="KEEP")
    assert made.names == ["One", "Two", "Child"]
    assert [node.parent for node in made.nodes] == [-1, -1, 1]


def test_a_root_below_another_object_is_none() -> None:
    tetra("Root", parent=add("#Above")).meshferry.is_root = True
    made = export(merging="KEEP")
    assert [made.parent_of(name) for name in ("#Above", "Root")] == ["Model", "#Above"]


def test_linked_duplicates_are_exported_each() -> None:
    one = tetra("#One")
    other = add("#Other", one.data, location=(9, 0, 0))
    made = export()
    assert_same_triangles(made.triangles(), shown(one, other))


# ------------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize("renamed", ["", "#Door"])
def test_a_name_too_long_for_blender_is_kept_until_the_object_is_renamed(renamed: str) -> None:
    from meshferry.blender_data import names

    long = "#" + "Ä" * 150
    obj = tetra(names.fit(long))
    assert len(obj.name.encode()) <= 255
    names.remember(obj, long)
    obj.name = renamed or obj.name
    assert export().names == ["Model", renamed or long]


def test_numbers_that_blender_put_behind_a_name_are_not_exported() -> None:
    one, other = tetra("#Seat"), tetra("#Seat")
    assert other.name == "#Seat.001"
    other.meshferry.source_name, other.meshferry.given_name = "#Seat", "#Seat.001"
    assert export().names == ["Model", "#Seat", "#Seat"]
    one.name, other.name = "#Chair", "#Stool"
    assert export().names == ["Model", "#Chair", "#Stool"]


def test_names_are_written_as_they_are() -> None:
    tetra("#Mühle 水車 🙂")
    assert "#Mühle 水車 🙂" in export().names


# ------------------------------------------------------------------------------------------------------ bytes


def test_exporting_twice_gives_the_same_bytes() -> None:
    _hierarchy()
    square("Flat", uv=True).modifiers.new("Array", "ARRAY")
    first = export()
    assert export().data == first.data


def test_a_pose_mode_export_is_like_one_of_object_mode() -> None:
    rig = armature()
    tetra("#Child", parent=rig)
    expected = export().data
    with active(rig, mode="POSE"):
        assert export().data == expected


def test_an_object_of_a_mesh_without_faces_is_an_empty() -> None:
    tetra()
    made = add("#Points", bpy.data.meshes.new("Points"))
    made.data.from_pydata([(0, 0, 0)], [], [])
    assert export().node("#Points").vertexCount == 0


def test_geometry_nodes_that_leave_nothing_leave_no_vertices() -> None:
    tetra()
    group, _, _ = node_group()
    add_nodes(tetra("#Gone"), group)
    assert export().node("#Gone").vertexCount == 0
