"""What the sidebar offers for UNIGINE: surfaces, levels of detail, skeletons, animations."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import unigine_oracle as oracle

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


def _names(obj):
    return [surface.name for surface in obj.meshferry.surfaces]


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
        entry.material, entry.given_name = materials[number], materials[number].name
    clean_blender.ops.object.meshferry_surfaces_match()
    assert _names(lamp) == ["kept 0", "M1", "M2", "kept 3", "M4", "kept 5", "kept 6"]


def test_slots_of_one_material_stay_apart(lamp, clean_blender):
    lamp.data.materials[1] = lamp.data.materials[0]
    clean_blender.ops.object.meshferry_surfaces_match()
    assert _names(lamp) == ["Glass", "Glass", "surface"]


def test_adding_takes_the_active_slot_then_a_gap_and_then_makes_a_slot(lamp, clean_blender):
    ops = clean_blender.ops.object
    lamp.active_material_index = 1
    ops.meshferry_surface_add()
    assert (_names(lamp), lamp.active_material_index) == (["Brass"], 1)
    ops.meshferry_surface_add()
    assert (_names(lamp), lamp.active_material_index) == (["Brass", "Glass"], 0)
    ops.meshferry_surface_add()
    assert len(lamp.material_slots) == 3
    ops.meshferry_surface_add()
    assert (len(lamp.material_slots), lamp.active_material_index) == (4, 3)


def test_removing_takes_the_settings_of_the_active_slot_and_leaves_the_slot(lamp, clean_blender):
    ops = clean_blender.ops.object
    ops.meshferry_surfaces_match()
    lamp.meshferry.surfaces.move(0, 2)
    lamp.active_material_index = 1
    ops.meshferry_surface_remove()
    assert sorted(_names(lamp)) == ["Glass", "surface"]
    assert not ops.meshferry_surface_remove.poll()
    assert len(lamp.material_slots) == 3


def _as_imported(lamp):
    """Give the slots the surfaces Pane, Ring and Wick of a file."""
    for order, (name, material) in enumerate(zip(("Pane", "Ring", "Wick"), lamp.data.materials, strict=True)):
        entry = lamp.meshferry.surfaces.add()
        entry.name, entry.material, entry.order = name, material, order
        entry.given_name = material.name if material is not None else ""


def _rename_material_after_surface(lamp):
    lamp.meshferry.surfaces[0].name = "Shade"
    lamp.data.materials[0].name = "Crystal"


def _replace_material(lamp):
    lamp.data.materials[0] = lamp.data.materials[1]


def _replace_by_a_new_one(lamp):
    lamp.data.materials[1] = lamp.data.materials[0].copy()


def _swap(lamp):
    lamp.data.materials[0], lamp.data.materials[1] = lamp.data.materials[1], lamp.data.materials[0]


def _empty_a_slot(lamp):
    lamp.data.materials[0] = None


def _remove_a_slot(lamp):
    lamp.data.materials.pop(index=1)


def _remove_settings(lamp):
    lamp.meshferry.surfaces.remove(0)
    lamp.meshferry.surfaces.remove(1)


def _name_of_the_file(lamp):
    lamp.meshferry.surfaces.clear()
    lamp.data.materials[1].meshferry.source_name = "Brass/Old"
    lamp.data.materials[1].meshferry.given_name = "Brass"


def _no_slots(lamp):
    lamp.data.materials.clear()


def _no_slots_one_surface(lamp):
    lamp.data.materials.clear()
    lamp.meshferry.surfaces.remove(0)
    lamp.meshferry.surfaces.remove(0)


def _drawn_list(lamp, context):
    """Return the names that the panel shows, and the settings that it says are not exported."""
    from meshferry.operators.families.unigine import panel as unigine_panel

    names = []

    class Row(MagicMock):
        def prop(self, owner, name, **_):
            if name in {"name", "source_name"}:
                names.append(getattr(owner, name))

        def label(self, text="", icon="", **_):
            if icon == "OBJECT_DATA":
                names.append(text)

        def split(self, **_):
            return self

        box = row = split

        def template_list(self, kind, _identifier, owner, name, *_place, **_):
            cls = getattr(unigine_panel, kind)
            for index, row in enumerate(getattr(owner, name)):
                cls.draw_item(cls, context, self, owner, row, 0, owner, "", index)

    shown = SimpleNamespace(object=lamp, preferences=context.preferences, region=SimpleNamespace(width=400, type="UI"))
    unigine_panel.surfaces_panel.draw(SimpleNamespace(layout=Row()), shown)
    return names


@pytest.mark.parametrize(
    ("change", "names", "stale"),
    [
        (None, ["Pane", "Ring", "Wick"], []),
        (_rename_material_after_surface, ["Crystal", "Ring", "Wick"], []),
        (_replace_material, ["Ring", "Brass", "Wick"], ["Pane"]),
        (_replace_by_a_new_one, ["Pane", "Glass.001", "Wick"], []),
        (_swap, ["Ring", "Pane", "Wick"], []),
        (_empty_a_slot, ["Wick", "Ring", "Lamp"], ["Pane"]),
        (_remove_a_slot, ["Pane", "Wick"], ["Ring"]),
        (_remove_settings, ["Glass", "Ring", "Lamp"], []),
        (_name_of_the_file, ["Glass", "Brass/Old", "Lamp"], []),
        (_no_slots, ["Lamp"], ["Pane", "Ring", "Wick"]),
        (_no_slots_one_surface, ["Wick"], []),
    ],
)
def test_the_list_shows_what_is_written_and_matching_keeps_it(lamp, clean_blender, tmp_path, change, names, stale):
    bpy = clean_blender
    _as_imported(lamp)
    if change is not None:
        change(lamp)

    def exported():
        path = tmp_path / "lamp.mesh"
        bpy.ops.export_scene.unigine_mesh(filepath=str(path))
        return [surface.name for surface in oracle.decode(path.read_bytes()).surfaces]

    def reported():
        bpy.ops.export_scene.unigine_mesh_check()
        found = bpy.context.window_manager.meshferry_check.findings
        texts = [text.message for text in found if "without a material slot" in text.message]
        return [name for name in ("Pane", "Ring", "Wick") if any(f"'{name}'" in text for text in texts)]

    assert exported() == names
    assert [name or "Lamp" for name in _drawn_list(lamp, bpy.context)] == names
    assert reported() == stale
    bpy.ops.object.meshferry_surfaces_match()
    named = ["surface" if name == "Lamp" and len(lamp.material_slots) else name for name in names]
    assert exported() == _drawn_list(lamp, bpy.context) == named
    assert not len(lamp.material_slots) or _names(lamp) == named
    assert reported() == []


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
    from meshferry.io_formats.core.messages import warning
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
    from meshferry.operators.findings.finding_list import draw_findings, keep_findings

    context = SimpleNamespace(
        window_manager=clean_blender.context.window_manager,
        preferences=clean_blender.context.preferences,
        region=SimpleNamespace(width=240, type="UI"),
    )
    keep_findings(context, UNIGINE_MESH, "Lamp", [warning("is-bright", "Too bright")])

    def drawn(target, subject):
        layout = MagicMock()
        draw_findings(layout, context, target, subject)
        return layout.box.call_count

    assert drawn(UNIGINE_MESH, "Lamp") == 1
    assert drawn(UNIGINE_MESH, "Other") == 0
    assert drawn(TIMBERMESH, "Lamp") == 0


def test_a_finding_about_a_surface_leads_to_it(lamp, clean_blender):
    from meshferry.operators.findings.finding_selection import objects_about, show_material

    clean_blender.ops.object.meshferry_surfaces_match()
    lamp.meshferry.surfaces[2].name = "Wick"
    assert objects_about(clean_blender.context, ["Wick"]) == [lamp]
    show_material(lamp, ["Wick"])
    assert lamp.active_material_index == 2


def test_panels_draw_without_trouble_and_only_where_they_apply(lamp, clean_blender):
    bpy = clean_blender
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    bpy.ops.object.meshferry_surfaces_match()
    lamp.meshferry.surfaces[0].shapes.add().name = "Bent"
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    rig.animation_data_create().action = bpy.data.actions.new("Sway")
    empty = bpy.data.objects.new("Empty", None)

    def drawn(obj):
        context = SimpleNamespace(
            object=obj,
            collection=bpy.context.collection,
            window_manager=bpy.context.window_manager,
            preferences=bpy.context.preferences,
            region=SimpleNamespace(width=240, type="UI"),
        )
        shown = [panel for panel in FAMILY_OPERATORS["unigine"].panels if panel.poll(context)]
        for panel in shown:
            panel.draw(SimpleNamespace(layout=MagicMock()), context)
        return [panel.bl_label for panel in shown]

    assert drawn(lamp) == ["UNIGINE", "Surfaces", "Level of Detail"]
    assert drawn(rig) == ["UNIGINE", "Animation"]
    lamp.modifiers.new("Armature", "ARMATURE").object = rig
    assert drawn(lamp) == ["UNIGINE", "Surfaces", "Level of Detail", "Animation"]
    assert drawn(empty) == drawn(None) == ["UNIGINE"]  # an export of what hangs below it, or of the collection
