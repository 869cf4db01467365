"""A click on a finding selects the very triangles, vertices or bones that it is about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from meshferry.io_formats.core.messages import Elements, Text, error

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def strip(clean_blender: Any) -> Any:
    """Return an object ``Strip`` of three quads in a row, the second of which is hidden, and a fourth of five corners.

    It is not active, and everything in it is selected.
    """
    bpy = clean_blender
    points = [(x, y, 0) for x in range(4) for y in range(2)] + [(4.5, 0.5, 0)]
    faces = [(0, 2, 3, 1), (2, 4, 5, 3), (4, 6, 8, 7, 5)]
    data = bpy.data.meshes.new("Strip")
    data.from_pydata(points, [], faces)
    data.polygons[1].hide = True
    obj = bpy.data.objects.new("Strip", data)
    other = bpy.data.objects.new("Other", None)
    for added in (obj, other):
        bpy.context.scene.collection.objects.link(added)
    bpy.context.view_layer.objects.active = other
    bpy.context.view_layer.update()
    return obj


def click(elements: Elements, name: str = "Strip") -> set[str]:
    import bpy
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
    from meshferry.operators.findings.finding_list import keep_findings

    keep_findings(
        bpy.context,
        SECOND_LIFE_UPLOAD,
        "Strip",
        [error("is-broken", "broken", item=Text("Object '{}'", name), elements=elements)],
    )
    found: set[str] = bpy.ops.object.meshferry_finding_select(index=0)
    return found


def selected(obj: Any, kind: str) -> list[int]:
    """Return what is selected of an object in edit mode."""
    import bmesh

    parts = getattr(bmesh.from_edit_mesh(obj.data), kind)
    return [part.index for part in parts if part.select]


@pytest.mark.parametrize(
    ("triangles", "faces"), [((0,), [0]), ((1,), [0]), ((3,), [1]), ((4, 5, 6), [2]), ((0, 6), [0, 2])]
)
def test_triangles_are_selected_as_the_faces_they_are_cut_from(
    strip: Any, triangles: tuple[int, ...], faces: list[int]
) -> None:
    import bpy

    assert click(Elements("triangles", "Strip", triangles)) == {"FINISHED"}
    assert (bpy.context.mode, bpy.context.object) == ("EDIT_MESH", strip)
    assert tuple(bpy.context.tool_settings.mesh_select_mode) == (False, False, True)
    assert selected(strip, "faces") == faces


def test_vertices_are_selected_with_the_faces_between_them_alone(strip: Any) -> None:
    import bpy

    click(Elements("vertices", "Strip", (0, 1, 2, 3, 8)))
    assert tuple(bpy.context.tool_settings.mesh_select_mode) == (True, False, False)
    assert selected(strip, "verts") == [0, 1, 2, 3, 8]
    assert selected(strip, "faces") == [0]


def test_a_second_click_leaves_edit_mode_and_forgets_the_first(strip: Any) -> None:
    click(Elements("vertices", "Strip", (0, 1)))
    click(Elements("vertices", "Strip", (7,)))
    assert selected(strip, "verts") == [7]


def test_what_modifiers_make_is_selected_as_a_whole_and_said(strip: Any, capfd: pytest.CaptureFixture[str]) -> None:
    import bpy

    strip.modifiers.new("Array", "ARRAY")
    click(Elements("triangles", "Strip", (0,)))
    assert (bpy.context.mode, bpy.context.object, strip.select_get()) == ("OBJECT", strip, True)
    assert "'Strip' is selected as a whole" in capfd.readouterr().out


def test_modifiers_that_only_move_do_no_harm(strip: Any) -> None:
    strip.modifiers.new("Wave", "WAVE")
    click(Elements("triangles", "Strip", (4,)))
    assert selected(strip, "faces") == [2]


def test_numbers_beyond_the_mesh_are_no_traceback(strip: Any) -> None:
    import bpy

    click(Elements("triangles", "Strip", (7,)))
    assert bpy.context.mode == "OBJECT"
    click(Elements("vertices", "Strip", (9,)))
    assert bpy.context.mode == "OBJECT"


def test_a_hidden_level_comes_to_light(strip: Any) -> None:
    strip.hide_set(True)
    click(Elements("triangles", "Strip", (0,)))
    assert strip.visible_get()
    assert selected(strip, "faces") == [0]


def test_a_finding_without_elements_brings_its_hidden_object_to_light(strip: Any) -> None:
    import bpy
    from meshferry.io_formats.core.messages import warning
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
    from meshferry.operators.findings.finding_list import keep_findings

    keep_findings(
        bpy.context, SECOND_LIFE_UPLOAD, "Strip", [warning("is-heavy", "too heavy", item=Text("Object '{}'", "Strip"))]
    )
    strip.hide_set(True)
    assert bpy.ops.object.meshferry_finding_select(index=0) == {"FINISHED"}
    assert strip.visible_get()
    assert (bpy.context.mode, bpy.context.object, strip.select_get()) == ("OBJECT", strip, True)
    strip.hide_viewport = True
    assert bpy.ops.object.meshferry_finding_select(index=0) == {"CANCELLED"}


def test_objects_of_the_item_are_selected_without_those_that_the_message_mentions(strip: Any) -> None:
    import bpy
    from meshferry.io_formats.core.messages import warning
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
    from meshferry.operators.findings.finding_list import keep_findings

    found = [
        warning("part-of", "cannot be a level of '{}'", "Other", item="Strip"),
        warning("part-of", "'{}' has no levels", "Other"),
    ]
    keep_findings(bpy.context, SECOND_LIFE_UPLOAD, "Strip", found)
    for number, name in enumerate(["Strip", "Other"]):
        assert bpy.ops.object.meshferry_finding_select(index=number) == {"FINISHED"}
        assert [obj.name for obj in bpy.context.selected_objects] == [name]


def test_an_object_that_is_gone_is_said(strip: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert click(Elements("triangles", "Gone", (0,))) == {"CANCELLED"}
    assert "'Gone' was not found in the scene" in capfd.readouterr().out


def test_a_level_of_another_name_is_found_by_the_name_that_files_have_for_it(strip: Any) -> None:
    import bpy

    level = strip.copy()
    level.data = strip.data.copy()
    level.name = "Far away"
    bpy.context.scene.collection.objects.link(level)
    bpy.context.view_layer.update()
    strip.meshferry.low_level = level
    level.hide_set(True)
    assert click(Elements("triangles", "Strip_LOD1", (0,)), "Strip_LOD1") == {"FINISHED"}
    assert (bpy.context.mode, bpy.context.object) == ("EDIT_MESH", level)
    assert selected(level, "faces") == [0]


@pytest.mark.parametrize("elements", [None, Elements("triangles", "Strip_LOD2", (0,))])
def test_a_level_that_the_export_makes_leads_to_what_it_is_made_of(strip: Any, elements: Elements | None) -> None:
    import bpy
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
    from meshferry.operators.findings.finding_list import keep_findings

    keep_findings(
        bpy.context,
        SECOND_LIFE_UPLOAD,
        "Strip",
        [error("is-broken", "broken", item=Text("Object '{}'", "Strip_LOD2"), elements=elements)],
    )
    assert bpy.ops.object.meshferry_finding_select(index=0) == {"FINISHED"}
    assert (bpy.context.mode, bpy.context.object, strip.select_get()) == ("OBJECT", strip, True)


def test_bones_are_selected_in_pose_mode_even_hidden_ones(strip: Any) -> None:
    import bpy
    from meshferry.blender_data import compat

    data = bpy.data.armatures.new("Rig")
    rig = bpy.data.objects.new("Rig Object", data)
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for number, name in enumerate(("mPelvis", "Tail", "Ear", "Nose")):
        bone = data.edit_bones.new(name)
        bone.head, bone.tail = (number, 0, 0), (number, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    outer = data.collections.new("Face")
    inner = data.collections.new("Hidden", parent=outer)
    inner.assign(data.bones["Ear"])
    outer.is_visible = False
    for bone in rig.pose.bones:
        compat.select_bone(bone, chosen=True)
    for name in ("Rig", "Rig Object"):
        assert click(Elements("bones", name, ("Tail", "Ear", "Gone"))) == {"FINISHED"}
        assert (bpy.context.mode, bpy.context.object) == ("POSE", rig)
        assert sorted(bone.name for bone in bpy.context.selected_pose_bones) == ["Ear", "Tail"]


def test_bones_of_an_armature_by_another_name_are_found_through_the_mesh(strip: Any) -> None:
    import bpy

    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Data"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new("Tail")
    bone.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    strip.modifiers.new("Armature", "ARMATURE").object = rig
    click(Elements("bones", "Unknown", ("Tail",)))
    assert bpy.context.object == rig
    assert [bone.name for bone in bpy.context.selected_pose_bones] == ["Tail"]


def ball(name: str, *, hidden: bool = False) -> Any:
    """Return a new sphere of quads and triangles."""
    import bpy

    bpy.ops.mesh.primitive_uv_sphere_add(segments=12, ring_count=6)
    obj = bpy.context.object
    obj.name = obj.data.name = name
    obj.hide_set(hidden)
    return obj


def check_of(obj: Any) -> Any:
    """Check an object for an upload; return the findings."""
    import bpy

    bpy.ops.object.select_all(action="DESELECT")
    bpy.context.view_layer.objects.active = obj
    obj.select_set(True)
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    return bpy.context.window_manager.meshferry_check.findings


def test_from_the_check_to_the_very_faces(clean_blender: Any) -> None:
    bpy = clean_blender
    finest, shape = ball("ball"), ball("ball_PHYS", hidden=True)
    data = shape.data
    quad = next(face for face in data.polygons if len(face.vertices) == 4)
    a, b = quad.vertices[0], quad.vertices[1]
    data.vertices[b].co = data.vertices[a].co
    thin = {face.index for face in data.polygons if {a, b} <= set(face.vertices)}
    assert len(thin) == 2
    findings = check_of(finest)
    number = next(number for number, finding in enumerate(findings) if finding.kind)
    assert (findings[number].is_error, findings[number].node) == (True, "ball_PHYS")
    assert bpy.ops.object.meshferry_finding_select(index=number) == {"FINISHED"}
    assert bpy.context.object == shape
    assert set(selected(shape, "faces")) == thin


def test_what_cannot_be_exported_is_found_and_pointed_at_all_the_same(clean_blender: Any) -> None:
    bpy = clean_blender
    obj = ball("ball")
    obj.data.vertices[9].co.x = float("nan")
    findings = check_of(obj)
    number = next(number for number, finding in enumerate(findings) if finding.kind == "vertices")
    assert findings[number].is_error
    bpy.ops.object.meshferry_finding_select(index=number)
    assert selected(obj, "verts") == [9]


def test_ten_thousand_elements_are_kept(strip: Any) -> None:
    import bpy
    from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
    from meshferry.operators.findings.finding_list import keep_findings

    names = ("a, b", 'q"uote', "1-2", "\u00e9")
    elements = [Elements("triangles", "Strip", tuple(range(30_000))), Elements("bones", "Rig", names)]
    keep_findings(
        bpy.context,
        SECOND_LIFE_UPLOAD,
        "Strip",
        [error("is-broken", "broken", item="Strip", elements=found) for found in elements],
    )
    first, second = bpy.context.window_manager.meshferry_check.findings
    assert (len(json.loads(first.members)), first.member_count) == (10_000, 30_000)
    assert json.loads(second.members) == list(names)
