"""Surfaces of exported objects: normals, tangents, UVs, colours, n-gons, and objects of types other than mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers_export import (
    SQUARE,
    Exported,
    active,
    add,
    add_nodes,
    add_uv,
    assert_same_rows,
    assert_same_triangles,
    bpy,
    center,
    export,
    grid,
    has,
    indices,
    mesh_of,
    model_collection,
    node_group,
    shown,
    shown_corners,
    square,
    tetra,
    values,
    volume,
)

pytestmark = pytest.mark.needs_bpy

KINDS = pytest.mark.parametrize("merging", ["MERGE", "KEEP"])
TURNED: dict[str, Any] = {"location": (3, -2, 1), "rotation_euler": (0.3, -0.5, 0.9), "scale": (2, 2, 2)}


# ---------------------------------------------------------------------------------------- normals and tangents


def _normal(mesh: Any, loop: int) -> Sequence[float]:
    return tuple(mesh.corner_normals[loop].vector)


def _sphere(name: str, *, smooth: bool) -> Any:
    obj = tetra(name)
    obj.modifiers.new("Subdivision", "SUBSURF").levels = 1
    for polygon in obj.data.polygons:
        polygon.use_smooth = smooth
    return obj


def _custom(name: str) -> Any:
    obj = _sphere(name, smooth=True)
    obj.modifiers.clear()
    bent = np.random.default_rng(1).normal(size=(len(obj.data.loops), 3)) * 0.3
    flat = np.array([tuple(obj.data.corner_normals[loop].vector) for loop in range(len(bent))])
    bent = (bent + flat) / np.linalg.norm(bent + flat, axis=1, keepdims=True)
    obj.data.normals_split_custom_set(bent.tolist())
    return obj


def _half_sharp(name: str) -> Any:
    obj = _sphere(name, smooth=True)
    obj.modifiers.clear()
    obj.data.edges[0].use_edge_sharp = True
    return obj


@pytest.mark.parametrize(
    "make",
    [
        lambda name: _sphere(name, smooth=False), lambda name: _sphere(name, smooth=True), _custom, _half_sharp,
    ],
    ids=["flat", "smooth", "custom", "half sharp"],
)  # fmt: skip
def test_normals_of_all_corners_are_blenders(make: Callable[[str], Any]) -> None:
    obj = make("#Thing")
    made = export(tolerance=0.0)
    assert_same_rows(made.corners("#Thing", "normal"), shown_corners(obj, _normal), 1e-5)


def test_flat_faces_have_normals_at_right_angles_and_turned_outwards() -> None:
    tetra(**{**TURNED, "scale": (2, 1, 0.5)})
    rows = export().corners("Model", "normal").reshape(-1, 3, 6)
    for side in (1, 2):
        edges = rows[:, side, :3] - rows[:, 0, :3]
        assert np.abs(np.einsum("tcj,tj->tc", rows[..., 3:], edges)).max() < 1e-5
    assert np.linalg.norm(rows[..., 3:], axis=2) == pytest.approx(1, abs=1e-5)
    out = np.cross(rows[:, 1, :3] - rows[:, 0, :3], rows[:, 2, :3] - rows[:, 0, :3])
    assert (np.einsum("tcj,tj->tc", rows[..., 3:], out) > 0).all()


def test_vertices_are_split_no_more_than_needed() -> None:
    for name, smooth in (("#Smooth", True), ("#Flat", False)):
        obj = tetra(name)
        for polygon in obj.data.polygons:
            polygon.use_smooth = smooth
    made = export()
    assert (made.node("#Smooth").vertexCount, made.node("#Flat").vertexCount) == (4, 12)


@pytest.mark.parametrize("mirrored", [True, False])
def test_free_normals_under_a_mirror_are_named(mirrored: bool) -> None:
    obj = grid("Leaf")
    attribute = obj.data.attributes.new("custom_normal", "FLOAT_VECTOR", "CORNER")
    for element in attribute.data:
        element.vector = (0, 0.6, 0.8)
    if mirrored:
        obj.modifiers.new("Mirror", "MIRROR")
    made = export()
    assert made.has_notice("Leaf", "Mirror") == mirrored
    assert made.corners("Model", "normal")[0, 3:] == pytest.approx((0, 0.6, 0.8), abs=1e-4)


def _bitangents(rows: np.ndarray, normals: np.ndarray) -> np.ndarray:
    return np.asarray(-rows[:, 6:7] * np.cross(normals[:, 3:], rows[:, 3:6]))


def _assert_tangents(made: Exported, node: str, u: Sequence[float], v: Sequence[float]) -> None:
    """Require tangents along the direction of U and bitangents (file sign negated in Blender) along that of V."""
    rows, normals = made.corners(node, "tangent"), made.corners(node, "normal")
    assert np.abs(np.einsum("ci,ci->c", rows[:, 3:6], normals[:, 3:])).max() < 1e-4
    assert np.linalg.norm(rows[:, 3:6], axis=1) == pytest.approx(1, abs=1e-4)
    assert rows[:, 3:6] == pytest.approx(np.tile(u, (len(rows), 1)), abs=1e-4)
    assert _bitangents(rows, normals) == pytest.approx(np.tile(v, (len(rows), 1)), abs=1e-4)
    assert set(np.abs(rows[:, 6])) == {1}


NGON = [(0, 0, 0), (3, 0, 0), (3, 2, 0), (2, 2, 0), (1, 1, 0), (0, 2, 0)]


@pytest.mark.parametrize("points", [SQUARE, NGON, SQUARE[:3]], ids=["quad", "concave n-gon", "triangle"])
@pytest.mark.parametrize("flipped", [False, True])
@KINDS
def test_tangents_follow_the_uvs(points: Sequence[Any], flipped: bool, merging: str) -> None:
    obj = add("Face", mesh_of("Face", points, [range(len(points))]), rotation_euler=(0, 0, np.pi / 2))
    add_uv(obj.data)
    for uv in obj.data.uv_layers[0].uv if flipped else ():
        uv.vector = (-uv.vector[0], uv.vector[1])
    made = export(merging=merging)
    node = "Face" if merging == "KEEP" else "Model"
    along = -1 if flipped else 1
    if merging == "KEEP":
        _assert_tangents(made, node, (along, 0, 0), (0, 1, 0))
    else:
        _assert_tangents(made, node, (0, along, 0), (-1, 0, 0))


@pytest.mark.parametrize("scale", [(-1, 1, 1), (1, 1, -1)])
def test_a_mirrored_object_merged_keeps_its_tangent_frame(scale: tuple[float, float, float]) -> None:
    square("Face", uv=True, scale=scale)
    made = export(merging="MERGE")
    _assert_tangents(made, "Model", (scale[0], 0, 0), (0, 1, 0))
    assert made.corners("Model", "normal")[:, 5] == pytest.approx(scale[2])


def test_an_n_gon_covers_its_area_with_its_uvs() -> None:
    obj = add("Face", mesh_of("Face", NGON, [range(6)]))
    add_uv(obj.data)
    made = export()
    triangles = made.triangles()
    areas = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])[:, 2] / 2
    assert (areas > 0).all()
    assert areas.sum() == pytest.approx(5)
    assert made.node("Model").vertexCount == 6
    rows = made.corners("Model", "uv0")
    assert rows[:, 3:] == pytest.approx(rows[:, :2])


def test_a_mesh_without_uvs_has_no_uvs_and_zero_tangents() -> None:
    tetra()
    node = export().node("Model")
    assert [entry.name for entry in node.vertexProperties] == ["position", "normal", "tangent"]
    assert not values(node, "tangent").any()


def test_the_first_three_uv_maps_come_along_and_the_others_are_named() -> None:
    obj = square()
    for number, name in enumerate(("Base", "Light", "Dirt", "Fourth", "Fifth")):
        add_uv(obj.data, name)
        for uv in obj.data.uv_layers[name].uv:
            uv.vector = (number, uv.vector[1] * 100)
    made = export()
    node = made.node("Model")
    assert [set(values(node, f"uv{n}")[:, 0]) for n in range(3)] == [{0}, {1}, {2}]
    assert not has(node, "uv3")
    assert made.has_notice("Square", "Fourth", "Fifth")
    assert not made.has_notice("Dirt")


# ------------------------------------------------------------------------------------------------------ colours


@pytest.mark.parametrize("domain", ["POINT", "CORNER"])
def test_linear_colours_are_written_as_srgb(domain: str) -> None:
    obj = square()
    attribute = obj.data.color_attributes.new("Color", "FLOAT_COLOR", domain)
    for element in attribute.data:
        element.color = (0.5, 0.0, 1.0, 0.5)
    colour = values(export().node("Model"), "color")
    assert colour == pytest.approx(np.tile((188 / 255, 0, 1, 128 / 255), (4, 1)), abs=1e-7)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("FLOAT", "value", (0.5,)),
        ("INT", "value", (7,)),
        ("FLOAT2", "vector", (1.0, 2.0)),
        ("FLOAT_VECTOR", "vector", (1.0, 2.0, 3.0)),
        ("FLOAT_COLOR", "color", (0.25, 0.5, 0.75, 1.0)),
    ],
)
def test_attributes_are_read_in_their_type(kind: str, field: str, value: tuple[float, ...]) -> None:
    from meshferry.blender_data.arrays import read_attribute

    attribute = square().data.attributes.new("Extra", kind, "POINT")
    setattr(attribute.data[2], field, value if len(value) > 1 else value[0])
    values = read_attribute(attribute)
    assert values.dtype == (np.int32 if kind == "INT" else np.float32)
    assert values.shape == (4, len(value)) and tuple(values[2]) == value


def test_colours_beyond_the_range_are_cut() -> None:
    obj = square()
    for element in obj.data.color_attributes.new("Color", "FLOAT_COLOR", "POINT").data:
        element.color = (7.0, -1.0, 1.0, 2.0)
    assert set(map(tuple, values(export().node("Model"), "color"))) == {(1, 0, 1, 1)}


@pytest.mark.parametrize("domain", ["POINT", "CORNER"])
def test_byte_colours_are_exact(domain: str) -> None:
    points = [(n, y, 0) for y in range(2) for n in range(129)]
    obj = add("Strip", mesh_of("Strip", points, [(n, n + 1, n + 130, n + 129) for n in range(128)]))
    attribute = obj.data.color_attributes.new("Color", "BYTE_COLOR", domain)
    for n, element in enumerate(attribute.data):
        element.color_srgb = np.array([n % 256, 255 - n % 256, n * 7 % 256, n % 256]) / 255
    found = export(tolerance=0.0).corners("Model", "color")

    def read(mesh: Any, loop: int) -> Sequence[float]:
        n = mesh.loops[loop].vertex_index if domain == "POINT" else loop
        return (n % 256 / 255, (255 - n % 256) / 255, n * 7 % 256 / 255, n % 256 / 255)

    assert_same_rows(found, shown_corners(obj, read), 1e-7)


def test_colours_differ_at_the_corners_of_one_vertex() -> None:
    obj = add("Two", mesh_of("Two", [*SQUARE, (4, 0, 0), (4, 1, 0)], [(0, 1, 2, 3), (1, 4, 5, 2)]))
    attribute = obj.data.color_attributes.new("Color", "BYTE_COLOR", "CORNER")
    for loop in range(8):
        attribute.data[loop].color_srgb = (1, 0, 0, 1) if loop < 4 else (0, 1, 0, 1)
    made = export()
    assert made.node("Model").vertexCount == 8
    rows = made.corners("Model", "color").reshape(-1, 3, 7)
    left = rows[..., 0].mean(axis=1) < 2
    assert rows[left][..., 3:5] == pytest.approx(np.tile((1, 0), (2, 3, 1)))
    assert rows[~left][..., 3:5] == pytest.approx(np.tile((0, 1), (2, 3, 1)))


def test_the_colour_marked_for_rendering_is_written_and_the_others_are_named() -> None:
    obj = square()
    for name, value in (("Mask", 0.0), ("Paint", 1.0)):
        for element in obj.data.color_attributes.new(name, "BYTE_COLOR", "CORNER").data:
            element.color_srgb = (value,) * 4
    obj.data.color_attributes.render_color_index = 1
    made = export()
    assert set(values(made.node("Model"), "color").ravel()) == {1}
    assert made.has_notice("Square", "Mask")


def test_merged_objects_without_colours_are_white() -> None:
    for element in square("Painted").data.color_attributes.new("Color", "BYTE_COLOR", "CORNER").data:
        element.color_srgb = (0, 0, 0, 0)
    tetra("Plain")
    rows = set(map(tuple, values(export().node("Model"), "color")))
    assert rows == {(0, 0, 0, 0), (1, 1, 1, 1)}


# ---------------------------------------------------------------------------------- objects other than meshes


def _curve() -> Any:
    data = bpy.data.curves.new("Curve", "CURVE")
    data.dimensions, data.bevel_depth = "3D", 0.2
    spline = data.splines.new("POLY")
    spline.points.add(2)
    for point, co in zip(spline.points, [(0, 0, 0, 1), (0, 0, 2, 1), (1, 0, 2, 1)], strict=True):
        point.co = co
    return data


def _text() -> Any:
    data = bpy.data.curves.new("Text", "FONT")
    data.body, data.extrude = "Hi", 0.1
    return data


def _ball() -> Any:
    data = bpy.data.metaballs.new("Ball")
    data.elements.new().radius = 1.5
    return data


def _surface() -> Any:
    data = bpy.data.curves.new("Surface", "SURFACE")
    for row in range(4):
        spline = data.splines.new("NURBS")
        spline.points.add(3)
        for number, point in enumerate(spline.points):
            point.co = (row, number, row * number, 1)
            point.select = True
    return data


@KINDS
@pytest.mark.parametrize("make", [_curve, _text, _ball])
def test_curves_text_and_metaballs_become_meshes(make: Callable[[], Any], merging: str) -> None:
    obj = add("Thing", make(), **TURNED)
    made = export(merging=merging)
    assert len(made.triangles()) > 10
    assert_same_triangles(made.triangles(), shown(obj), 2e-5)
    assert made.said == []


def test_metaballs_of_one_family_make_one_surface() -> None:
    first = add("Ball", _ball())
    add("Ball.001", _ball(), location=(1.5, 0, 0))
    made = export()
    assert_same_triangles(made.triangles(), shown(first), 2e-5)
    assert made.triangles()[..., 0].max() > 2


def test_a_curve_without_surface_is_an_empty() -> None:
    tetra()
    obj = add("#Line", _curve())
    obj.data.bevel_depth = 0
    assert export().node("#Line").vertexCount == 0


def test_a_modifier_on_text_is_applied() -> None:
    obj = add("Thing", _text())
    obj.modifiers.new("Array", "ARRAY").count = 2
    assert_same_triangles(export().triangles(), shown(obj), 2e-5)


def _library() -> Any:
    """Make a collection outside the scene with two objects, its instances' offset at (1, 1, 1)."""
    library = bpy.data.collections.new("Library")
    library.instance_offset = (1, 1, 1)
    tetra("Inner", library, location=(0, 0, 2))
    square("Plate", library, rotation_euler=(1, 0, 0))
    return library


def _expected_instances(matrices: Sequence[Any], library: Any) -> np.ndarray:
    from mathutils import Matrix

    runs = []
    for matrix in matrices:
        for obj in library.objects:
            world = matrix @ Matrix.Translation(-library.instance_offset) @ obj.matrix_basis
            obj.data.calc_loop_triangles()
            corners = [[world @ obj.data.vertices[v].co for v in t.vertices] for t in obj.data.loop_triangles]
            runs.append(np.array(corners, float))
    return np.concatenate(runs)


@KINDS
@pytest.mark.parametrize("name", ["#Instance", "Instance"])
def test_collection_instances_are_real_and_in_place(merging: str, name: str) -> None:
    library = _library()
    one = add(name, instance_type="COLLECTION", instance_collection=library, **TURNED)
    other = add("Other", parent=one, location=(4, 0, 0), instance_type="COLLECTION", instance_collection=library)
    made = export(merging=merging)
    expected = _expected_instances([one.matrix_world, other.matrix_world], library)
    assert_same_triangles(made.triangles(), expected, 2e-5)


def test_instances_inside_instances() -> None:
    library = _library()
    outer = bpy.data.collections.new("Outer")
    add("Nested", None, outer, instance_type="COLLECTION", instance_collection=library, location=(0, 5, 0))
    add("Top", instance_type="COLLECTION", instance_collection=outer, location=(7, 0, 0))
    made = export()
    assert center(made.triangles()) == pytest.approx(center(_expected_instances([_moved(7, 5, 0)], library)), abs=1e-5)
    assert len(made.triangles()) == 6


def _moved(x: float, y: float, z: float) -> Any:
    from mathutils import Matrix

    return Matrix.Translation((x, y, z))


@pytest.mark.parametrize("make", [_curve, _text])
def test_instances_of_curves_and_text_are_exported_once(make: Callable[[], Any]) -> None:
    library = bpy.data.collections.new("Library")
    inner = add("Inner", make(), library)
    add("Instance", instance_type="COLLECTION", instance_collection=library, location=(5, 0, 0))
    made = export()
    beside = add("Beside", inner.data, bpy.context.scene.collection, location=(5, 0, 0))
    assert_same_triangles(made.triangles(), shown(beside))


def test_text_that_shows_instances() -> None:
    text = add("Text", _text())
    own = len(shown(text))
    group, entry, leave = node_group()
    join, on_points = (group.nodes.new(f"GeometryNode{kind}") for kind in ("JoinGeometry", "InstanceOnPoints"))
    info = group.nodes.new("GeometryNodeObjectInfo")
    info.inputs["Object"].default_value = tetra("Shape", bpy.data.collections.new("Library"))
    points = group.nodes.new("GeometryNodePoints")
    points.inputs["Count"].default_value = 2
    group.links.new(points.outputs[0], on_points.inputs["Points"])
    group.links.new(info.outputs["Geometry"], on_points.inputs["Instance"])
    for source in (entry, on_points):
        group.links.new(source.outputs[0], join.inputs[0])
    group.links.new(join.outputs[0], leave.inputs[0])
    add_nodes(text, group)
    assert len(export().triangles()) == own + 8


def test_instances_left_out_are_said() -> None:
    tetra()
    add("#Instance", instance_type="COLLECTION", instance_collection=_library())
    made = export(use_instances=False)
    assert len(made.triangles()) == 4
    assert made.has_notice("#Instance", "nstances")


def _scatter(obj: Any, shape: Any) -> None:
    """Show an instance of ``shape`` at each point of ``obj``, instead of it."""
    group, entry, leave = node_group()
    on_points = group.nodes.new("GeometryNodeInstanceOnPoints")
    info = group.nodes.new("GeometryNodeObjectInfo")
    info.inputs["Object"].default_value = shape
    group.links.new(entry.outputs[0], on_points.inputs["Points"])
    group.links.new(info.outputs["Geometry"], on_points.inputs["Instance"])
    group.links.new(on_points.outputs[0], leave.inputs[0])
    add_nodes(obj, group)


@KINDS
def test_instances_of_geometry_nodes_are_real_and_in_place(merging: str) -> None:
    shape = tetra("Shape", bpy.data.collections.new("Library"))
    field = square("Field", **TURNED)
    _scatter(field, shape)
    bpy.context.view_layer.update()
    made = export(merging=merging)
    corners = [field.matrix_world @ vertex.co for vertex in field.data.vertices]
    assert len(made.triangles()) == 16
    assert volume(made.triangles()) == pytest.approx(4 * 8, rel=1e-5)
    for corner in corners:
        assert np.abs(made.triangles() - np.array(corner)).max(axis=-1).min() < 2e-5


def test_geometry_nodes_that_keep_mesh_and_instances() -> None:
    shape = tetra("Shape", bpy.data.collections.new("Library"))
    field = square("#Field")
    _scatter(field, shape)
    group = field.modifiers[0].node_group
    join = group.nodes.new("GeometryNodeJoinGeometry")
    for node in list(group.nodes):
        if node.bl_idname == "GeometryNodeInstanceOnPoints":
            group.links.new(node.outputs[0], join.inputs[0])
    entry = next(node for node in group.nodes if node.bl_idname == "NodeGroupInput")
    leave = next(node for node in group.nodes if node.bl_idname == "NodeGroupOutput")
    group.links.new(entry.outputs[0], join.inputs[0])
    group.links.new(join.outputs[0], leave.inputs[0])
    assert len(export().triangles()) == 2 + 16


# ---------------------------------------------------------------------------------------------------- edit mode


def test_changes_in_edit_mode_are_exported() -> None:
    import bmesh

    obj = tetra()
    with active(obj, mode="EDIT"):
        bmesh.from_edit_mesh(obj.data).verts[:][3].co = (0, 0, 9)
        bmesh.update_edit_mesh(obj.data)
        assert volume(export().triangles()) == pytest.approx(3)


def test_changes_to_all_objects_in_edit_mode_are_exported() -> None:
    import bmesh

    objects = [tetra("One"), tetra("Other")]
    for obj in objects:
        obj.select_set(True)
    with active(objects[0], mode="EDIT"):
        assert len(bpy.context.objects_in_mode) == 2
        for obj in objects:
            bmesh.from_edit_mesh(obj.data).verts[:][3].co = (0, 0, 9)
            bmesh.update_edit_mesh(obj.data)
        assert volume(export().triangles()) == pytest.approx(6)
        assert volume(export(use_modifiers=False).triangles()) == pytest.approx(6)


# ---------------------------------------------------------------------------------------------------- modifiers


@pytest.mark.parametrize("use_modifiers", [True, False])
def test_modifiers_are_an_option(use_modifiers: bool) -> None:
    obj = square()
    obj.modifiers.new("Array", "ARRAY").count = 3
    assert len(export(use_modifiers=use_modifiers).triangles()) == (6 if use_modifiers else 2)


def test_modifiers_disabled_in_viewports_are_not_applied() -> None:
    obj = square()
    obj.modifiers.new("Array", "ARRAY").show_viewport = False
    assert len(export().triangles()) == 2


def test_shape_keys_are_exported_as_they_stand() -> None:
    obj = tetra()
    obj.shape_key_add(name="Basis")
    tall = obj.shape_key_add(name="Tall")
    tall.data[3].co = (0, 0, 5)
    tall.value = 0.5
    assert volume(export().triangles()) == pytest.approx(4 / 3)


def test_indices_lie_within_and_no_vertex_is_unused() -> None:
    grid("Grid", 5)
    tetra("Tetra", model_collection())
    node = export().node("Model")
    used = np.unique(np.concatenate([indices(mesh) for mesh in node.meshes]))
    assert used.tolist() == list(range(node.vertexCount))
