"""Materials of exported meshes: which triangles get which name."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers_export import add_nodes, add_uv, bpy, export, has, indices, materials, node_group, square, tetra, values

pytestmark = pytest.mark.needs_bpy


def _faces(obj: Any, *slots: int) -> None:
    for polygon, slot in zip(obj.data.polygons, slots, strict=True):
        polygon.material_index = slot


def test_an_empty_slot_gives_its_faces_no_material_and_is_named() -> None:
    obj = tetra("Box")
    materials(obj, "Wood", None, "Metal")
    _faces(obj, 0, 1, 1, 2)
    made = export()
    assert made.materials("Model") == {"Wood": 1, "": 2, "Metal": 1}
    assert made.has_notice("Box", "slot 2")


def test_an_empty_slot_that_no_face_uses_is_not_worth_a_word() -> None:
    obj = tetra()
    materials(obj, "Wood", None)
    made = export()
    assert made.materials("Model") == {"Wood": 4}
    assert made.said == []


def test_an_object_without_slots_has_the_default_material() -> None:
    tetra()
    made = export()
    assert made.materials("Model") == {"": 4}


def test_faces_beyond_the_slots_take_the_last_one_as_blender_shows_them() -> None:
    obj = tetra("Box")
    materials(obj, "Wood", "Metal")
    _faces(obj, 0, 0, 7, 1)
    made = export()
    assert made.materials("Model") == {"Wood": 2, "Metal": 2}
    assert made.has_notice("Box", "1 face")


def test_solidify_moves_its_shell_to_another_material() -> None:
    obj = square()
    materials(obj, "Front", "Back", "Rim")
    shell = obj.modifiers.new("Solidify", "SOLIDIFY")
    shell.material_offset, shell.material_offset_rim = 1, 2
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    expected = Counter(("Front", "Back", "Rim")[polygon.material_index] for polygon in seen.polygons)
    assert expected == {"Front": 1, "Back": 1, "Rim": 4}
    assert export().materials("Model") == {name: 2 * count for name, count in expected.items()}


def test_geometry_nodes_set_a_material_that_no_slot_has() -> None:
    obj = tetra()
    materials(obj, "Wood")
    group, entry, leave = node_group()
    setter = group.nodes.new("GeometryNodeSetMaterial")
    setter.inputs["Material"].default_value = bpy.data.materials.new("Paint")
    group.links.new(entry.outputs[0], setter.inputs["Geometry"])
    group.links.new(setter.outputs[0], leave.inputs[0])
    add_nodes(obj, group)
    assert export().materials("Model") == {"Paint": 4}


def test_a_slot_linked_to_the_object_wins_over_the_mesh() -> None:
    obj = tetra()
    materials(obj, "Wood")
    obj.material_slots[0].link = "OBJECT"
    obj.material_slots[0].material = bpy.data.materials.new("Paint")
    assert export().materials("Model") == {"Paint": 4}


def test_linked_duplicates_share_a_mesh_but_not_the_materials_of_their_slots() -> None:
    one = tetra("#One")
    materials(one, "Wood")
    other = tetra("#Other")
    other.data = one.data
    other.material_slots[0].link = "OBJECT"
    other.material_slots[0].material = bpy.data.materials.new("Paint")
    made = export()
    assert (made.materials("#One"), made.materials("#Other")) == ({"Wood": 4}, {"Paint": 4})


@pytest.mark.parametrize(("renamed", "expected"), [("", "Wood.Very.Long"), ("Oak", "Oak")])
def test_a_material_keeps_its_name_in_the_file_until_it_is_renamed(renamed: str, expected: str) -> None:
    obj = tetra()
    materials(obj, "Wood.001")
    wood = obj.data.materials[0]
    wood.meshferry.source_name, wood.meshferry.given_name = "Wood.Very.Long", "Wood.001"
    wood.name = renamed or wood.name
    assert export().materials("Model") == {expected: 4}


def test_merged_objects_of_two_materials_one_of_them_without_uv() -> None:
    plain, mapped = tetra("Plain"), square("Mapped", location=(5, 0, 0))
    materials(plain, "Wood")
    materials(mapped, "Metal")
    add_uv(mapped.data)
    made = export()
    assert made.names == ["Model"]
    assert made.materials("Model") == {"Wood": 4, "Metal": 2}
    node = made.node("Model")
    uv = values(node, "uv0")
    by_material = {mesh.material: np.unique(indices(mesh)) for mesh in node.meshes}
    assert not uv[by_material["Wood"]].any()
    assert {tuple(row) for row in uv[by_material["Metal"]]} == {(0, 0), (2, 0), (2, 1), (0, 1)}
    assert not has(node, "uv1")


def test_objects_of_one_material_merge_into_one_mesh() -> None:
    for name in ("One", "Other"):
        materials(tetra(name), "Wood")
    assert export().materials("Model") == {"Wood": 8}
