"""Objects without armature out of Blender as models: place, levels of detail, shapes, slots, materials, order."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_export import (
    SQUARE,
    TETRA,
    TETRA_FACES,
    active,
    add,
    add_uv,
    assert_same_rows,
    assert_same_triangles,
    bpy,
    grid,
    materials,
    mesh_of,
    model_collection,
    shown,
    square,
    tetra,
    volume,
)
from helpers_placed import parts_of, placed, placed_normals, placed_points, placed_triangles, shown_normals, world_of
from scene_snapshot import changes, snapshot

pytestmark = pytest.mark.needs_bpy

TURN = (0.9238795, 0.0, 0.3826834, 0.0)


def turned(obj: Any, rotation: Any = TURN) -> Any:
    obj.rotation_mode = "QUATERNION"
    obj.rotation_quaternion = rotation
    bpy.context.view_layer.update()
    return obj


def child_collection(name: str) -> Any:
    made = bpy.data.collections.new(name)
    model_collection().children.link(made)
    return made


def layer_of(collection: Any, layer: Any = None) -> Any:
    layer = layer or bpy.context.view_layer.layer_collection
    if layer.collection == collection:
        return layer
    return next((found for child in layer.children if (found := layer_of(collection, child))), None)


# -- places -------------------------------------------------------------------------------------


def test_an_object_is_a_node_in_its_place() -> None:
    obj = turned(tetra(location=(1, 2, 3), scale=(2, 0.5, 3)))
    (node, *_) = placed().nodes
    assert node.name == "Tetra" and node.parent == -1
    assert node.translation == (1, 2, 3) and node.scale == (2, 0.5, 3)
    assert node.rotation == pytest.approx(TURN, abs=1e-6)
    assert np.array_equal(node.mesh.points, np.array(TETRA, np.float32))
    assert_same_triangles(placed_triangles(node), shown(obj))
    assert_same_rows(placed_normals(node), shown_normals(obj))


@pytest.mark.parametrize("signs", [(-1, 1, 1), (-1, -1, 1), (1, -1, 1), (-1, -1, -1)])
def test_mirrored_scales_go_into_the_points(signs: Any) -> None:
    obj = turned(tetra(location=(1, 2, 3), scale=[2 * signs[0], 0.5 * signs[1], 3 * signs[2]]))
    (node, *_) = placed().nodes
    assert min(node.scale) > 0 and sorted(node.scale) == pytest.approx([0.5, 2, 3])
    assert_same_triangles(placed_triangles(node), shown(obj))
    assert volume(placed_triangles(node)) > 0
    assert_same_rows(placed_normals(node), shown_normals(obj), 1e-4)


def test_parents_count_and_a_shear_goes_into_the_points() -> None:
    above = add("Above", scale=(3, 1, 1))
    obj = turned(tetra(location=(1, 2, 3), parent=above), (0.8, 0.0, 0.0, 0.6))
    scene = placed()
    (node, *_) = scene.nodes
    assert_same_triangles(placed_triangles(node), shown(obj), 1e-4)
    assert_same_rows(placed_normals(node), shown_normals(obj), 1e-4)
    assert any("Tetra" in text and "shear" in text for text in scene.warnings)


def test_places_far_away_keep_their_points() -> None:
    tetra(location=(4096.3, -999.7, 21.1), scale=(0.01, 0.013, 0.017))
    (node, *_) = placed().nodes
    assert np.array_equal(node.mesh.points, np.array(TETRA, np.float32))


def test_zero_scale_is_refused_by_name() -> None:
    from meshferry.io_formats.core.errors import ExportError

    tetra("Flat", scale=(0, 1, 1))
    with pytest.raises(ExportError, match="'Flat' has zero scale on X"):
        placed()


def test_instances_are_part_of_their_instancer() -> None:
    part = tetra("Part", bpy.context.scene.collection)
    inner = bpy.data.collections.new("Inner")
    inner.objects.link(part)
    square("Part_LOD1", inner)  # which the instance shows as well
    holder = add("Holder", location=(5, 0, 0), scale=(2, 2, 2), instance_type="COLLECTION")
    holder.instance_collection = inner
    bpy.context.view_layer.update()
    scene = placed()
    (node, *_) = scene.nodes
    assert node.name == "Holder" and node.translation == (5, 0, 0) and node.scale == (2, 2, 2)
    assert_same_triangles(placed_triangles(node), shown(part) * 2 + np.array([5, 0, 0]))
    assert "Inner" not in {node.name for node in scene.nodes}


def test_modifiers_and_shape_keys_are_exported_as_they_look() -> None:
    obj = tetra()
    obj.shape_key_add(name="Basis")
    tall = obj.shape_key_add(name="Tall")
    tall.data[3].co = (0, 0, 9)
    tall.value = 0.5
    obj.modifiers.new("Array", "ARRAY").count = 3
    (node, *_) = placed().nodes
    assert_same_triangles(placed_triangles(node), shown(obj))
    assert not node.mesh.shape_keys and node.mesh.triangle_count == 12


def test_the_uv_map_marked_for_rendering_is_exported() -> None:
    obj = square(uv=True)
    add_uv(obj.data, "UV0")
    for loop in obj.data.loops:
        obj.data.uv_layers["UV0"].uv[loop.index].vector = (7, 7)
    scene = placed()
    assert [layer.name for layer in scene.nodes[0].mesh.uvs] == ["UVMap"]
    assert any("'UV0'" in text for text in scene.warnings)
    obj.data.uv_layers["UV0"].active_render = True
    assert [layer.name for layer in placed().nodes[0].mesh.uvs] == ["UV0"]


@pytest.mark.parametrize("as_imported", [False, True])
def test_equal_normals_that_blender_blurs_are_equal_again(as_imported: bool) -> None:
    obj = grid("hilly", 6)
    for number, vertex in enumerate(obj.data.vertices):
        vertex.co.z = 0.01 * np.sin(3.1 * number)
    for polygon in obj.data.polygons:
        polygon.use_smooth = True
    up = np.tile([0.0, 0.0, 1.0], (len(obj.data.loops), 1)).astype(np.float32)
    obj.data.normals_split_custom_set(up.tolist() if bpy.app.version >= (5, 1, 0) else up)
    found = placed(use_as_imported=as_imported).nodes[0].mesh.normal.values
    assert np.abs(found - up[0]).max() < 2e-3
    share = float(np.mean((found == up[0]).all(axis=1)))
    assert share < 0.5 if as_imported else share > 0.95  # the blur of a few is larger


# -- which object is what -----------------------------------------------------------------------


def test_names_tell_levels_and_shapes_wherever_they_are_hidden() -> None:
    hidden, excluded, disabled = (child_collection(name) for name in ("Eye", "Excluded", "Disabled"))
    tetra("box")
    grid("box_LOD2", 2).hide_set(True)
    low = square("box_lod1", excluded)
    low.modifiers.new("Array", "ARRAY").count = 4
    square("box_LOD0", disabled).hide_viewport = True
    square("box_PHYS", hidden)
    disabled.hide_viewport = True
    layer_of(hidden).hide_viewport = True
    layer_of(excluded).exclude = True
    bpy.context.view_layer.update()
    scene = placed()
    parts = parts_of(scene, "box")
    counts = {what: node.mesh.triangle_count for what, node in parts.items() if what not in ("base",)}
    assert counts == {"lod 1": 8, "lod 2": 8, "lod 3": 2, "physics": 2}
    assert [node.name for node in scene.nodes][:4] == ["box", "box_LOD2", "box_LOD1", "box_LOD0"]
    assert {node.translation for node in scene.nodes} == {(0, 0, 0)}


def test_a_disabled_level_has_its_modifiers_and_the_transform_of_today() -> None:
    tetra("box", location=(3, 0, 0))
    above = add("Above", scale=(2, 2, 2))
    level = grid("box_LOD1", 2, parent=above, location=(0, 0, 1), hide_viewport=True)
    above.scale = (5, 5, 5)
    level.modifiers.new("Subdivision", "SUBSURF").subdivision_type = "SIMPLE"
    level = parts_of(placed(), "box")["lod 2"]
    assert level.mesh.triangle_count == 32
    assert np.ptp(placed_points(level), axis=0) == pytest.approx([5, 5, 0])


def test_pointers_win_over_references_and_these_over_names() -> None:
    box = tetra("box")
    for name in ("box_LOD2", "box_LOD1", "box_LOD0", "box_PHYS"):
        square(name)
    mine = [grid(name, 2) for name in ("a", "b", "c", "d")]
    box.meshferry.medium_level = mine[0]
    box.meshferry.physics_object = mine[1]
    mine[2].meshferry.lod_of, mine[2].meshferry.lod = box, 2
    mine[3].meshferry.lod_of, mine[3].meshferry.lod = box, 1
    scene = placed()
    counts = {what: node.mesh.triangle_count for what, node in parts_of(scene, "box").items() if what != "base"}
    assert counts == {"lod 1": 8, "lod 2": 8, "lod 3": 2, "physics": 8}
    assert any("'d', 'box_LOD1', 'box_LOD2', 'box_PHYS'" in text and "taken" in text for text in scene.warnings)
    assert len(scene.nodes) == 6


def test_a_level_without_its_finest_is_said_to_go_alone() -> None:
    tetra("ghost_LOD1")
    scene = placed()
    assert [node.name for node in scene.nodes if node.lod == 0 and node.role.value == "render"] == ["ghost"]
    assert any("'ghost_LOD1'" in text and "an object of its own" in text for text in scene.warnings)
    assert not any("of its own" in text for text in placed(use_as_imported=True).warnings)


def test_one_object_may_be_several_levels_and_even_the_finest_itself() -> None:
    box, other = tetra("box"), square("other")
    box.meshferry.medium_level = box
    box.meshferry.low_level = box.meshferry.lowest_level = other
    parts = parts_of(placed(), "box")
    assert {what: node.mesh.triangle_count for what, node in parts.items() if what != "base"} == {
        "lod 1": 4,
        "lod 2": 2,
        "lod 3": 2,
    }


def test_pointers_in_a_circle_end_somewhere() -> None:
    one, other = tetra("one"), square("other")
    one.meshferry.medium_level, other.meshferry.medium_level = other, one
    scene = placed()
    assert [node.name for node in scene.nodes if node.role.value == "render"] == ["one", "one_LOD2"]


def test_deleted_objects_that_blender_keeps_are_nothing_of_a_model() -> None:
    box, level, shape = tetra("box"), square("level"), square("shape")
    box.meshferry.low_level, level.meshferry.lod_of = level, box
    box.meshferry.physics_object, shape.meshferry.role, shape.meshferry.shape_of = shape, "PHYSICS", box
    with bpy.context.temp_override(selected_objects=[level, shape]):
        bpy.ops.object.delete()
    assert box.meshferry.low_level == level
    assert set(parts_of(placed(), "box")) == {"base"}
    assert {node.mesh.triangle_count for node in placed().nodes if node.role.value == "render"} == {4}


def test_a_level_whose_finest_was_deleted_is_an_object_of_its_own() -> None:
    box, level = tetra("box"), square("level")
    box.meshferry.low_level, level.meshferry.lod_of, level.meshferry.lod = level, box, 2
    with bpy.context.temp_override(selected_objects=[box]):
        bpy.ops.object.delete()
    assert level.meshferry.lod_of == box
    assert [node.name for node in placed().nodes if node.lod == 0 and node.role.value == "render"] == ["level"]


def test_a_collection_of_levels_alone_shows_nothing_and_that_is_said() -> None:
    box = tetra("box")
    levels = child_collection("Levels")
    square("box_LOD1", levels)
    shown = bpy.data.objects.new("Stamp", None)
    shown.instance_type, shown.instance_collection = "COLLECTION", levels
    bpy.context.scene.collection.objects.link(shown)
    bpy.context.view_layer.update()
    scene = placed(bpy.context.scene.collection)
    assert {node.name for node in scene.nodes if node.lod == 0 and node.role.value == "render"} == {box.name}
    assert any(text.startswith("Stamp: ") for text in scene.warnings)


@pytest.mark.parametrize("scale", [0.0, float("nan")])
def test_hulls_without_a_size_are_refused_by_name(scale: float) -> None:
    from meshferry.io_formats.core.errors import ExportError

    box, hull = tetra("box"), tetra("Shell")
    hull.meshferry.role, hull.meshferry.shape_of = "HULL", box
    hull.scale.y = scale
    bpy.context.view_layer.update()
    with pytest.raises(ExportError, match="'Shell' has"):
        placed()


def test_a_level_of_a_level_is_one_of_the_finest() -> None:
    one, two, three = tetra("one"), square("two"), grid("three", 2)
    one.meshferry.lod_of, one.meshferry.lod = two, 2
    two.meshferry.lod_of, two.meshferry.lod = three, 1
    scene = placed()
    counts = [(node.name, node.mesh.triangle_count) for node in scene.nodes if node.role.value == "render"]
    assert counts == [("three", 8), ("three_LOD2", 2), ("three_LOD1", 4)]


@pytest.mark.parametrize("pointer", ["lod_of", "medium_level", "physics_object"])
def test_no_object_of_a_circle_of_three_is_lost(pointer: str) -> None:
    objects = [tetra("one"), square("two"), grid("three", 2)]
    for obj, other in zip(objects, (*objects[1:], objects[0]), strict=True):
        setattr(obj.meshferry, pointer, other)
    scene = placed()
    given = {not node.generated_from and node.mesh.triangle_count for node in scene.nodes} - {False}
    assert given == {4, 2, 8}
    assert any("cannot be a level or shape of" in text and "of its own" in text for text in scene.warnings)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("box", "box.001", "box_LOD1", "box_LOD1.001"), {"box": "box_LOD1", "box.001": "box_LOD1.001"}),
        (("box", "box.001", "box.001_LOD1"), {"box": None, "box.001": "box.001_LOD1"}),
        (("box.003", "box_LOD1"), {"box.003": "box_LOD1"}),
        (("box_LOD3", "box_LOD1.007"), {"box_LOD3": "box_LOD1.007"}),
        (("box_LOD1",), {"box_LOD1": None}),
    ],
)
def test_numbers_behind_names(names: Any, expected: Any) -> None:
    from meshferry.blender_data.exporting.models.model_objects import ModelIndex

    made = {name: square(name) for name in names}
    index = ModelIndex(bpy.context.scene.objects)
    for finest, level in expected.items():
        assert index.finest_of(made[finest]) == made[finest]
        assert index.model(made[finest]).levels == ({} if level is None else {2: made[level]})


def test_a_selected_level_stands_for_its_model() -> None:
    box, level = tetra("box"), square("box_LOD1")
    level.select_set(True)
    box.select_set(False)
    assert [node.name for node in placed("SELECTION").nodes][:2] == ["box", "box_LOD1"]


def test_a_collection_of_levels_alone_is_told_where_they_belong() -> None:
    from meshferry.io_formats.core.errors import ExportError

    tetra("box")
    levels = child_collection("Levels")
    square("box_LOD1", levels)
    with pytest.raises(ExportError, match="'box_LOD1': part of 'box', which is not exported"):
        placed(levels)


def test_the_active_object_is_the_root_and_the_others_follow_by_name() -> None:
    for name in ("c", "B", "a", "b_LOD1x"):
        tetra(name)
    bpy.context.view_layer.objects.active = bpy.data.objects["c"]
    assert [node.name for node in placed().nodes if node.role.value == "render"] == ["c", "a", "B", "b_LOD1x"]
    bpy.context.view_layer.objects.active = None
    assert [node.name for node in placed().nodes if node.role.value == "render"] == ["a", "B", "b_LOD1x", "c"]
    level = square("B_LOD0")
    bpy.context.view_layer.objects.active = level
    assert [node.name for node in placed().nodes if node.role.value == "render"][:2] == ["B", "B_LOD0"]
    kept = [node.name for node in placed(use_as_imported=True).nodes]
    assert kept == ["c", "B", "B_LOD0", "a", "b_LOD1x"]


def test_models_of_one_name_are_told_apart() -> None:
    tetra("box")
    other = tetra("box.001")
    other.meshferry.source_name, other.meshferry.given_name = "box", "box.001"
    other.meshferry.low_level = square("level")
    assert [node.name for node in placed().nodes if node.role.value == "render"] == ["box", "box.001", "box.001_LOD1"]


# -- levels beside the finest -------------------------------------------------------------------


def test_levels_laid_side_by_side_come_into_the_place_of_the_finest() -> None:
    box = turned(tetra("box", location=(1, 2, 3), scale=(2, 1, 1)))
    level = turned(tetra("box_LOD2", location=(9, 2, 3), scale=(2, 1, 1)))
    other = turned(tetra("box_LOD1", location=(1, -7, 3), scale=(1, 1, 4)), (1, 0, 0, 0))
    parts = parts_of(placed(), "box")
    assert_same_triangles(placed_triangles(parts["lod 1"]), shown(level) - np.array([8, 0, 0]), 1e-4)
    assert_same_triangles(placed_triangles(parts["lod 2"]), shown(other) + np.array([0, 9, 0]), 1e-4)
    assert np.array_equal(parts["lod 1"].mesh.points, np.array(TETRA, np.float32))
    assert world_of(parts["lod 2"]) == pytest.approx(np.array(box.matrix_world), abs=1e-6)


def test_a_level_whose_location_was_applied_stays_where_it_is() -> None:
    tetra("box", location=(10, 0, 0))
    applied = [(x + 10, y, z) for x, y, z in TETRA]
    level = add("box_LOD1", mesh_of("level", applied, TETRA_FACES))
    assert_same_triangles(placed_triangles(parts_of(placed(), "box")["lod 2"]), shown(level))


def test_hulls_keep_all_their_points_in_order() -> None:
    box = tetra("box", scale=(2, 2, 2))
    points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.1, 0.1, 0.1)]
    for name, role in (("hull", "HULL"), ("hull 2", "HULL"), ("base", "BASE_HULL")):
        obj = add(name, mesh_of(name, points, []), scale=(2, 2, 2))
        obj.meshferry.role, obj.meshferry.shape_of = role, box
    scene = placed()
    hulls = [node for node in scene.nodes if node.role.value == "hull"]
    assert [node.name for node in hulls] == ["hull", "hull 2", "base"]
    assert [bool(node.is_base_hull) for node in hulls] == [False, False, True]
    assert all(np.array_equal(node.mesh.points, np.array(points, np.float32)) for node in hulls)
    assert all(node.shape_of == 0 for node in hulls)


# -- slots --------------------------------------------------------------------------------------


def two_slots(obj: Any, *names: str | None) -> Any:
    """Give a square grid slots; its first half of faces has the first, its second the last."""
    materials(obj, *names)
    for polygon in obj.data.polygons:
        polygon.material_index = 0 if polygon.index < len(obj.data.polygons) / 2 else len(names) - 1
    return obj


def counts_of(node: Any) -> list[int]:
    return np.bincount(node.mesh.material_index, minlength=len(node.mesh.materials)).tolist()


def test_all_levels_have_the_slots_of_the_finest() -> None:
    two_slots(grid("box", 4), "Skin", "Unused", "Eyes")
    two_slots(grid("box_LOD2", 2), "Eyes", "Skin")
    materials(square("box_LOD1"), "Eyes")
    two_slots(grid("box_LOD0", 2), "Hair", "Skin")
    two_slots(grid("box_PHYS", 2), "Wire", "Cage")
    scene = placed()
    parts = parts_of(scene, "box")
    assert scene.nodes[0].mesh.materials == ["Skin", "Eyes"] and counts_of(scene.nodes[0]) == [16, 16]
    assert parts["lod 1"].mesh.materials == ["Skin", "Eyes"] and counts_of(parts["lod 1"]) == [4, 4]
    low = parts["lod 1"].mesh
    assert low.points[low.corner_point.reshape(-1, 3)[low.material_index == 1]][..., 1].max() <= 0.5  # Eyes came first
    assert parts["lod 2"].mesh.materials == ["Skin", "Eyes"] and counts_of(parts["lod 2"]) == [0, 2]
    assert parts["lod 3"].mesh.materials == ["Skin", "Eyes", "Hair"] and counts_of(parts["lod 3"]) == [4, 0, 4]
    assert parts["physics"].mesh.materials == ["Skin", "Eyes"] and counts_of(parts["physics"]) == [8, 0]
    assert all(len(node.mesh.surfaces) == len(node.mesh.materials) for node in [scene.nodes[0], *parts.values()][:5])


def test_a_level_without_material_takes_the_only_one() -> None:
    materials(grid("box", 2), "Skin")
    square("box_LOD1")
    level = parts_of(placed(), "box")["lod 2"]
    assert level.mesh.materials == ["Skin"] and counts_of(level) == [2]


def test_slots_of_one_material_become_one_unless_a_file_keeps_them() -> None:
    box = two_slots(grid("box", 2), "Skin", None, "Skin")
    assert placed().nodes[0].mesh.materials == ["Skin"]
    for number in range(3):
        entry = box.meshferry.surfaces.add()
        entry.material, entry.order = box.data.materials[number], number
        entry.has_domains = True
        entry.position_domain = (-0.5, -0.5, -0.25, 0.5, 0.5, 0.25)
        entry.uv_domain = (0, 0, 1, number + 1)
    mesh = placed().nodes[0].mesh
    assert mesh.materials == ["Skin", "", "Skin"]
    assert [surface.uv_domain[3] for surface in mesh.surfaces] == [1, 2, 3]
    assert mesh.surfaces[0].position_domain == (-0.5, -0.5, -0.25, 0.5, 0.5, 0.25)
    box.scale = (-1, 1, 1)  # the points are others then, and the ranges do not hold
    assert placed().nodes[0].mesh.surfaces[0].position_domain is None


# -- materials ----------------------------------------------------------------------------------


def material(name: str = "Paint", **inputs: Any) -> Any:
    made = bpy.data.materials.new(name)
    if bpy.app.version < (5, 0, 0):
        made.use_nodes = True
    shader = next(node for node in made.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    for label, value in inputs.items():
        shader.inputs[label.replace("_", " ")].default_value = value
    return made


def textured(made: Any, image: Any) -> Any:
    """Put an image on a material's base colour, through two nodes between."""
    nodes, links = made.node_tree.nodes, made.node_tree.links
    shader = next(node for node in nodes if node.type == "BSDF_PRINCIPLED")
    texture, bright, reroute = (
        nodes.new(f"{kind}") for kind in ("ShaderNodeTexImage", "ShaderNodeBrightContrast", "NodeReroute")
    )
    texture.image = image
    links.new(texture.outputs["Color"], bright.inputs["Color"])
    links.new(bright.outputs["Color"], reroute.inputs[0])
    links.new(reroute.outputs[0], shader.inputs["Base Color"])
    return made


def read(made: Any) -> tuple[Any, list[str]]:
    obj = tetra()
    obj.data.materials.append(made)
    scene = placed()
    (found,) = scene.materials
    return found, scene.warnings


def painted(name: str = "Painted", *, is_float: bool = False) -> Any:
    """Make an image of 2 by 2 pixels: red and half grey below, white above."""
    image = bpy.data.images.new(name, 2, 2, alpha=True, float_buffer=is_float)
    image.pixels.foreach_set(np.array([1, 0, 0, 1, 0.5, 0.5, 0.5, 0.25, *[1] * 8], np.float32))
    return image


def pixels_of(png: bytes) -> np.ndarray[Any, Any]:
    """Decode a PNG of 8 bits RGBA without filters."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size)[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + size
    width, height, depth, color = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, color) == (8, 6)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def test_colour_and_emission_of_a_shader() -> None:
    made = material(Base_Color=(0.1, 0.2, 0.3, 1), Alpha=0.5, Emission_Color=(1, 0.5, 0, 1), Emission_Strength=2.0)
    found, warnings = read(made)
    assert found.name == "Paint" and found.color == pytest.approx((0.1, 0.2, 0.3, 0.5))
    assert found.emission == pytest.approx(1.0) and found.texture is None and not warnings


@pytest.mark.parametrize(("operation", "is_transparent"), [(None, True), ("MULTIPLY", True), ("GREATER_THAN", False)])
def test_a_linked_alpha_is_transparent_unless_it_is_clipped(operation: str | None, is_transparent: bool) -> None:
    made = material()
    tree = made.node_tree
    alpha = next(node for node in tree.nodes if node.type == "BSDF_PRINCIPLED").inputs["Alpha"]
    assert not read(made)[0].is_transparent
    source = tree.nodes.new("ShaderNodeTexImage").outputs["Alpha"]
    if operation is not None:
        math = tree.nodes.new("ShaderNodeMath")
        math.operation = operation
        tree.links.new(source, math.inputs[0])
        source = math.outputs[0]
    tree.links.new(source, alpha)
    assert read(made)[0].is_transparent == is_transparent


def test_colour_of_a_material_without_nodes() -> None:
    made = bpy.data.materials.new("Paint")
    made.diffuse_color = (0.1, 0.2, 0.3, 0.4)
    if bpy.app.version >= (5, 0, 0):
        made.node_tree.nodes.clear()
    found, _ = read(made)
    assert found.color == pytest.approx((0.1, 0.2, 0.3, 0.4)) and found.emission == 0


def test_colour_of_nodes_that_no_file_knows_is_that_of_the_viewport() -> None:
    made = material()
    made.diffuse_color = (0.1, 0.2, 0.3, 1)
    noise = made.node_tree.nodes.new("ShaderNodeTexNoise")
    shader = next(node for node in made.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    made.node_tree.links.new(noise.outputs["Color"], shader.inputs["Base Color"])
    found, warnings = read(made)
    assert found.color == pytest.approx((0.1, 0.2, 0.3, 1)) and any("bake" in text for text in warnings)
    rgb = made.node_tree.nodes.new("ShaderNodeRGB")
    rgb.outputs[0].default_value = (0.9, 0.8, 0.7, 1)
    made.node_tree.links.new(rgb.outputs[0], shader.inputs["Base Color"])
    assert placed().materials[0].color == pytest.approx((0.9, 0.8, 0.7, 1))


def test_image_in_a_file(tmp_path: Path) -> None:
    image = painted()
    image.filepath_raw, image.file_format = str(tmp_path / "saved.png"), "PNG"
    image.save()
    bpy.data.images.remove(image)
    found, _ = read(textured(material(Base_Color=(0, 0, 0, 1)), bpy.data.images.load(str(tmp_path / "saved.png"))))
    texture = found.texture
    assert (texture.name, texture.path, texture.data) == ("saved.png", str(tmp_path / "saved.png"), None)
    assert (texture.width, texture.height) == (2, 2) and found.color == (1, 1, 1, 1)


def test_image_whose_file_is_gone_is_named_by_its_path(tmp_path: Path) -> None:
    image = bpy.data.images.new("gone", 2, 2)
    image.source, image.filepath = "FILE", str(tmp_path / "gone.tga")
    found, _ = read(textured(material(), image))
    assert (found.texture.name, found.texture.data) == ("gone.tga", None)
    assert found.texture.path == str(tmp_path / "gone.tga")


def test_packed_image_brings_its_bytes(tmp_path: Path) -> None:
    image = painted()
    image.filepath_raw, image.file_format = str(tmp_path / "saved.png"), "PNG"
    image.save()
    data = (tmp_path / "saved.png").read_bytes()
    bpy.data.images.remove(image)
    image = bpy.data.images.load(str(tmp_path / "saved.png"))
    image.pack()
    image.name = "Wood"
    image.filepath = ""
    (tmp_path / "saved.png").unlink()
    found, _ = read(textured(material(), image))
    assert found.texture.data == data and (found.texture.name, found.texture.path) == ("Wood.png", "")


@pytest.mark.parametrize("is_float", [False, True])
def test_image_that_was_never_saved_is_encoded_as_it_is(is_float: bool) -> None:
    found, _ = read(textured(material(), painted("Baked", is_float=is_float)))
    assert found.texture.name == "Baked.png" and found.texture.path == ""
    grey = 188 if is_float else 128  # float pixels are linear
    white = [255, 255, 255, 255]
    assert pixels_of(found.texture.data).tolist() == [[white, white], [[255, 0, 0, 255], [grey, grey, grey, 64]]]


def test_image_within_a_node_group() -> None:
    group = bpy.data.node_groups.new("Inside", "ShaderNodeTree")
    group.interface.new_socket("Other", in_out="OUTPUT", socket_type="NodeSocketColor")
    group.interface.new_socket("Color", in_out="OUTPUT", socket_type="NodeSocketColor")
    other, texture, out = (
        group.nodes.new(kind) for kind in ("ShaderNodeTexImage", "ShaderNodeTexImage", "NodeGroupOutput")
    )
    other.image, texture.image = painted("Wrong"), painted("Right")
    group.links.new(other.outputs["Color"], out.inputs["Other"])
    group.links.new(texture.outputs["Color"], out.inputs["Color"])
    made = material()
    node = made.node_tree.nodes.new("ShaderNodeGroup")
    node.node_tree = group
    shader = next(node for node in made.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    made.node_tree.links.new(node.outputs["Color"], shader.inputs["Base Color"])
    found, _ = read(made)
    assert found.texture.name == "Right.png"


# -- what is missing ----------------------------------------------------------------------------


def test_missing_levels_are_made_of_the_next_finer_one() -> None:
    materials(grid("box", 20), "Skin")
    materials(grid("box_LOD1", 5), "Skin")
    scene = placed(missing_levels="MAKE", medium_ratio=0.5, lowest_ratio=0.01)
    parts = parts_of(scene, "box")
    counts = [parts[f"lod {level}"].mesh.triangle_count for level in (1, 2, 3)]
    assert 380 <= counts[0] <= 420 and counts[1] == 50 and 1 <= counts[2] <= 50
    assert [parts[f"lod {level}"].generated_from for level in (1, 2, 3)] == ["box", "", "box"]
    assert all(node.mesh.materials == ["Skin"] for node in scene.nodes[:4])
    (said,) = [text for text in scene.warnings if text.startswith("Levels of detail made")]
    assert f"'box' (800 → {counts[0]}, {counts[2]} triangles)" in said
    assert [node.name for node in scene.nodes[:4]] == ["box", "box_LOD2", "box_LOD1", "box_LOD0"]


def test_a_ratio_is_a_share_of_the_highest_level() -> None:
    grid("box", 20)
    parts = parts_of(placed(missing_levels="MAKE", use_open_borders=False), "box")
    counts = [parts[f"lod {level}"].mesh.triangle_count for level in (1, 2, 3)]
    assert counts == pytest.approx([0.4 * 800, 0.15 * 800, 0.05 * 800], rel=0.1, abs=3)


def test_nothing_is_made_when_kept_as_imported() -> None:
    grid("box", 4)
    scene = placed(missing_levels="MAKE", physics_shape="HULL", use_as_imported=True)
    assert [node.name for node in scene.nodes] == ["box"] and scene.as_imported is True
    assert not placed().as_imported


def test_there_is_always_a_hull_around_everything() -> None:
    obj = tetra("box", scale=(2, 2, 2))
    scene = placed()
    assert [node.name for node in scene.nodes] == ["box", "box base hull"]
    base = parts_of(scene, "box")["base"]
    assert_same_triangles(placed_triangles(base), shown(obj))
    assert base.skeleton is None and base.mesh.triangle_count == 4 and not scene.warnings
    shape = square("box_PHYS")
    assert sorted(map(tuple, placed_points(parts_of(placed(), "box")["base"]).tolist())) == sorted(SQUARE)
    assert shape.meshferry.role == "RENDER"


@pytest.mark.parametrize(
    ("choice", "points", "hulls"), [("CUBE", 8, 1), ("PARTS", 4, 2), ("HULL", 0, 0), ("AUTO", 0, 0)]
)
@pytest.mark.parametrize("is_own", [False, True])
def test_physics_shapes_are_made_as_chosen(choice: str, points: int, hulls: int, is_own: bool) -> None:
    far = [(x + 10, y, z) for x, y, z in TETRA]
    faces = [*TETRA_FACES, *([a + 4 for a in face] for face in TETRA_FACES)]
    box = add("box", mesh_of("box", [*TETRA, *far], faces))
    if is_own:
        box.meshferry.physics_shape = choice
    scene = placed(physics_shape="AUTO" if is_own else choice)
    made = [node for node in scene.nodes if node.role.value == "hull" and not node.is_base_hull]
    assert len(made) == hulls and "physics" not in parts_of(scene, "box")
    assert [len(node.mesh.points) for node in made] == [points] * hulls
    assert bool(scene.warnings) == bool(hulls)
    base = parts_of(scene, "box")["base"].mesh.points
    assert base.min(axis=0).tolist() == [0, 0, 0] and base.max(axis=0).tolist() == [11, 2, 3]


def test_an_object_of_its_own_wins_over_the_option_for_all() -> None:
    tetra("box")
    square("box_PHYS")
    parts = parts_of(placed(physics_shape="CUBE"), "box")
    assert "physics" in parts and "hull" not in parts
    bpy.data.objects["box"].meshferry.physics_shape = "CUBE"
    parts = parts_of(placed(), "box")
    assert "physics" not in parts and "hull" in parts


@pytest.mark.parametrize("is_own", [False, True])
def test_the_convex_hull_replaces_physics_objects(is_own: bool) -> None:
    box = tetra("box")
    square("box_PHYS")
    if is_own:
        box.meshferry.physics_shape = "HULL"
    parts = parts_of(placed(physics_shape="AUTO" if is_own else "HULL"), "box")
    assert not {"physics", "hull"} & parts.keys()
    assert len(parts["base"].mesh.points) == 4, "around the model, not around the square"


@pytest.mark.parametrize(("objects", "triangles"), [(["_PHYS", "_LOD1", "_LOD2"], 2), (["_LOD2"], 8), ([], 18)])
def test_mesh_physics_are_the_triangles_of_the_first_object(objects: list[str], triangles: int) -> None:
    grid("box", 3)
    made = {"_PHYS": 1, "_LOD1": 3, "_LOD2": 2}
    for suffix in objects:
        grid(f"box{suffix}", made[suffix])
    parts = parts_of(placed(physics_shape="MESH", missing_levels="MAKE"), "box")
    assert parts["physics"].mesh.triangle_count == triangles and "hull" not in parts


def test_a_made_level_becomes_an_object_in_the_place_of_the_finest() -> None:
    from meshferry.blender_data.level_objects import add_level

    box = two_slots(grid("box", 10, location=(1, 2, 3), scale=(-2, 1, 1)), "Unused", "Skin")
    for polygon in box.data.polygons:
        polygon.material_index = 1
    scene = placed(missing_levels="MAKE")
    node = parts_of(scene, "box")["lod 1"]
    level = add_level(bpy.context, box, "box_LOD2", node, scene)
    level.hide_set(False)
    assert_same_triangles(shown(level), placed_triangles(node), 1e-4)
    assert shown_normals(level)[:, 5].min() > 0.99
    assert {level.data.materials[polygon.material_index].name for polygon in level.data.polygons} == {"Skin"}
    assert box.meshferry.medium_level is None and level.meshferry.lod_of == box


# -- the scene ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"missing_levels": "MAKE", "physics_shape": "PARTS"}])
def test_the_scene_is_as_it_was(options: dict[str, Any]) -> None:
    excluded = child_collection("Excluded")
    box = two_slots(grid("box", 8), "Skin", "Eyes")
    textured(material("Paint"), painted())
    box.data.materials[0] = bpy.data.materials["Paint"]
    box.modifiers.new("Array", "ARRAY")
    box.shape_key_add(name="Basis")
    box.shape_key_add(name="Tall").value = 0.5
    level = grid("box_LOD1", 2, collection=excluded, location=(3, 0, 0))
    level.modifiers.new("Array", "ARRAY")
    square("box_PHYS", hide_viewport=True)
    tetra("other", scale=(-1, 1, 1)).hide_set(True)
    layer_of(excluded).exclude = True
    with active(box):
        bpy.context.view_layer.update()
        before = snapshot()
        scene = placed(**options)
        assert changes(before, snapshot()) == {}
    assert len(scene.nodes) >= 4


def test_a_failed_export_leaves_the_scene_as_it_was() -> None:
    from meshferry.io_formats.core.errors import ExportError

    tetra("box")
    square("box_LOD1", hide_viewport=True)
    tetra("flat", scale=(0, 1, 1))
    before = snapshot()
    with pytest.raises(ExportError, match="flat"):
        placed()
    assert changes(before, snapshot()) == {}
