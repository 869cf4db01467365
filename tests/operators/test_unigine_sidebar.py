"""What the sidebar offers for UNIGINE: surfaces, levels of detail, skeletons, animations."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def lamp(clean_blender):
    """Return an active mesh object ``Lamp`` with the material slots Glass, Brass and none."""
    bpy = clean_blender
    mesh = bpy.data.meshes.new("Lamp")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [], [(0, 2, 1), (0, 1, 3), (0, 3, 2)])
    lamp = bpy.data.objects.new("Lamp", mesh)
    for material in (bpy.data.materials.new("Glass"), bpy.data.materials.new("Brass"), None):
        mesh.materials.append(material)
    mesh.polygons.foreach_set("material_index", [0, 1, 2])
    bpy.context.scene.collection.objects.link(lamp)
    layer = bpy.context.view_layer
    layer.update()
    layer.objects.active = lamp
    lamp.select_set(True)
    return lamp


def _names(item):
    return [surface.name for surface in item.meshferry.surfaces]


def test_matching_gives_each_slot_a_surface_named_after_its_material(lamp, clean_blender):
    assert clean_blender.ops.object.meshferry_surfaces_match() == {"FINISHED"}
    assert _names(lamp) == ["Glass", "Brass", "surface"]
    assert [surface.material for surface in lamp.meshferry.surfaces] == list(lamp.data.materials)
    assert {surface.lightmap_channel for surface in lamp.meshferry.surfaces} == {1}


def test_matching_keeps_settings_follows_moved_slots_and_drops_the_rest(lamp, clean_blender):
    ops = clean_blender.ops.object
    ops.meshferry_surfaces_match()
    for surface in lamp.meshferry.surfaces:
        surface.lightmap_resolution = {"Glass": "1", "Brass": "6", "surface": "0"}[surface.name]
    glass, brass, _none = lamp.data.materials
    lamp.data.materials[0], lamp.data.materials[1] = brass, glass
    lamp.data.materials.pop(index=2)
    ops.meshferry_surfaces_match()
    assert [(entry.name, entry.lightmap_resolution) for entry in lamp.meshferry.surfaces] == [
        ("Brass", "6"),
        ("Glass", "1"),
    ]


def test_matching_sorts_long_lists(lamp, clean_blender):
    materials = [clean_blender.data.materials.new(f"M{number}") for number in range(7)]
    lamp.data.materials.clear()
    for material in materials:
        lamp.data.materials.append(material)
    for number in (3, 6, 0, 5):
        entry = lamp.meshferry.surfaces.add()
        entry.name = f"kept {number}"
        entry.material = materials[number]
    clean_blender.ops.object.meshferry_surfaces_match()
    assert _names(lamp) == ["kept 0", "M1", "M2", "kept 3", "M4", "kept 5", "kept 6"]


def test_slots_of_one_material_stay_apart(lamp, clean_blender):
    lamp.data.materials[1] = lamp.data.materials[0]
    clean_blender.ops.object.meshferry_surfaces_match()
    assert _names(lamp) == ["Glass", "Glass", "surface"]


def test_adding_fills_a_gap_first_and_then_makes_a_slot(lamp, clean_blender):
    ops = clean_blender.ops.object
    ops.meshferry_surfaces_match()
    lamp.meshferry.active_surface = 1
    ops.meshferry_surface_remove()
    assert _names(lamp) == ["Glass", "surface"]
    ops.meshferry_surface_add()
    assert _names(lamp) == ["Glass", "surface", "Brass"]
    assert len(lamp.material_slots) == 3
    assert lamp.active_material_index == 1
    ops.meshferry_surface_add()
    assert len(lamp.material_slots) == 4
    assert lamp.meshferry.active_surface == 3


def test_removing_leaves_the_slot_and_a_valid_choice(lamp, clean_blender):
    ops = clean_blender.ops.object
    ops.meshferry_surfaces_match()
    lamp.meshferry.active_surface = 2
    for left in (2, 1, 0):
        ops.meshferry_surface_remove()
        assert len(lamp.meshferry.surfaces) == left
        assert lamp.meshferry.active_surface == max(0, left - 1)
    assert not ops.meshferry_surface_remove.poll()
    assert len(lamp.material_slots) == 3


def test_surfaces_are_only_for_meshes(lamp, clean_blender):
    bpy = clean_blender
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    bpy.context.view_layer.objects.active = empty
    for operator in ("surfaces_match", "surface_add", "surface_remove"):
        assert not getattr(bpy.ops.object, f"meshferry_{operator}").poll()
    assert not bpy.ops.export_scene.unigine_mesh_check.poll()


def test_a_check_of_what_cannot_be_exported_says_so(lamp, clean_blender):
    bpy = clean_blender
    lamp.hide_viewport = True
    with bpy.context.temp_override(object=lamp):
        assert bpy.ops.export_scene.unigine_mesh_check() == {"FINISHED"}
    check = bpy.context.window_manager.meshferry_check
    assert (check.format, check.subject) == ("unigine_mesh", "Lamp")
    assert [found.is_error for found in check.findings] == [True]


def test_findings_stand_with_what_they_are_about(lamp, clean_blender):
    from meshferry.io_formats.findings import warning
    from meshferry.io_formats.formats import TIMBERMESH, UNIGINE_MESH
    from meshferry.operators.checks import draw_findings, keep_findings

    context = SimpleNamespace(
        window_manager=clean_blender.context.window_manager,
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        region=SimpleNamespace(width=240),
    )
    keep_findings(context, UNIGINE_MESH, "Lamp", [warning("", "Too bright")])

    def drawn(target, subject):
        layout = MagicMock()
        draw_findings(layout, context, target, subject)
        return layout.box.call_count

    assert drawn(UNIGINE_MESH, "Lamp") == 1
    assert drawn(UNIGINE_MESH, "Other") == 0
    assert drawn(TIMBERMESH, "Lamp") == 0


def test_a_finding_about_a_surface_leads_to_it(lamp, clean_blender):
    from meshferry.operators.checks import objects_about, show_material

    clean_blender.ops.object.meshferry_surfaces_match()
    lamp.meshferry.surfaces[2].name = "Wick"
    assert objects_about(clean_blender.context, "Surface 'Wick'") == [lamp]
    show_material(lamp, "Surface 'Wick'")
    assert lamp.meshferry.active_surface == 2


def test_panels_draw_without_trouble_and_only_where_they_apply(lamp, clean_blender):
    bpy = clean_blender
    from meshferry.operators import unigine_panel

    bpy.ops.object.meshferry_surfaces_match()
    lamp.meshferry.surfaces[0].shapes.add().name = "Bent"
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    rig.animation_data_create().action = bpy.data.actions.new("Sway")
    empty = bpy.data.objects.new("Empty", None)

    def drawn(item):
        context = SimpleNamespace(
            object=item,
            window_manager=bpy.context.window_manager,
            preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
            region=SimpleNamespace(width=240),
        )
        panels = [panel for panel in unigine_panel.CLASSES if issubclass(panel, bpy.types.Panel)]
        shown = [panel for panel in panels if panel.poll(context)]
        for panel in shown:
            panel.draw(SimpleNamespace(layout=MagicMock()), context)
        return [panel.bl_label for panel in shown]

    assert drawn(lamp) == ["UNIGINE", "Surfaces", "Level of Detail"]
    assert drawn(rig) == ["UNIGINE", "Animation"]
    lamp.modifiers.new("Armature", "ARMATURE").object = rig
    assert drawn(lamp) == ["UNIGINE", "Surfaces", "Level of Detail", "Animation"]
    assert drawn(empty) == []
    assert drawn(None) == []
