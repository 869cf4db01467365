"""What the sidebar offers: marks, slots, checks and normals."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def lodge(clean_blender):
    """Return a collection with a mesh object ``Roof``, both active."""
    bpy = clean_blender
    collection = bpy.data.collections.new("Lodge")
    bpy.context.scene.collection.children.link(collection)
    mesh = bpy.data.meshes.new("Roof")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)])
    roof = bpy.data.objects.new("Roof", mesh)
    collection.objects.link(roof)
    layer = bpy.context.view_layer
    layer.update()
    layer.active_layer_collection = layer.layer_collection.children["Lodge"]
    layer.objects.active = roof
    roof.select_set(True)
    return collection


def test_an_attachment_point_at_the_cursor(lodge, clean_blender):
    bpy = clean_blender
    bpy.context.scene.cursor.location = (1, 2, 3)
    assert bpy.ops.object.timbermesh_attachment_add(point_name="Flag") == {"FINISHED"}
    made = bpy.context.object
    assert made.name == "#Flag"
    assert made.type == "EMPTY"
    assert tuple(made.matrix_world.translation) == (1, 2, 3)
    assert made.show_name
    assert made.name in lodge.objects
    assert bpy.context.selected_objects == [made]


def test_the_mark_is_put_once(lodge, clean_blender):
    clean_blender.ops.object.timbermesh_attachment_add(point_name="#Flag")
    assert clean_blender.context.object.name == "#Flag"


def test_an_attachment_point_needs_a_name(lodge, clean_blender):
    with pytest.raises(RuntimeError, match="needs a name"):
        clean_blender.ops.object.timbermesh_attachment_add(point_name=" #")


def test_an_attachment_point_on_a_moved_parent_stays_where_it_was_put(lodge, clean_blender):
    bpy = clean_blender
    roof = bpy.data.objects["Roof"]
    roof.location = (5, 0, 0)
    roof.scale = (2, 2, 2)
    bpy.context.view_layer.update()
    bpy.ops.object.timbermesh_attachment_add(point_name="Flag", place="OBJECT", use_parent=True)
    bpy.context.view_layer.update()
    made = bpy.data.objects["#Flag"]
    assert made.parent == roof
    assert tuple(made.matrix_world.translation) == pytest.approx((5, 0, 0))
    assert tuple(made.matrix_world.to_scale()) == pytest.approx((1, 1, 1))


def test_slots_are_numbered_after_the_first(lodge, clean_blender):
    for _ in range(3):
        clean_blender.ops.object.timbermesh_slot_add(keyword="Seat")
    assert {"#Slot#Seat", "#Slot#Seat1", "#Slot#Seat2"} <= set(lodge.objects.keys())


def test_every_known_slot_can_be_added_and_passes_the_check(lodge, clean_blender):
    from meshferry.io_formats.timbermesh.game_names import SLOT_KEYWORDS

    choices = clean_blender.ops.object.timbermesh_slot_add.get_rna_type().properties["keyword"].enum_items
    assert [choice.identifier for choice in choices] == list(SLOT_KEYWORDS)
    assert all(choice.description for choice in choices)


def test_without_an_active_collection_the_active_object_shows_where_to_add(lodge, clean_blender):
    bpy = clean_blender
    bpy.context.view_layer.active_layer_collection = bpy.context.view_layer.layer_collection
    bpy.ops.object.timbermesh_slot_add(keyword="Bot")
    assert "#Slot#Bot" in lodge.objects


def test_own_node_and_back(lodge, clean_blender):
    bpy = clean_blender
    roof = bpy.data.objects["Roof"]
    bpy.ops.object.timbermesh_own_node()
    assert roof.name == "#Roof"
    bpy.ops.object.timbermesh_own_node()
    assert roof.name == "Roof"


def test_own_node_keeps_the_name_in_the_file_in_step(lodge, clean_blender):
    roof = clean_blender.data.objects["Roof"]
    roof.meshferry.source_name = "Roof of another object"
    roof.meshferry.given_name = "Roof"
    clean_blender.ops.object.timbermesh_own_node()
    assert (roof.meshferry.source_name, roof.meshferry.given_name) == ("#Roof of another object", "#Roof")


def test_own_node_makes_all_selected_like_the_active_one(lodge, clean_blender):
    bpy = clean_blender
    other = bpy.data.objects.new("#Wall", None)
    lodge.objects.link(other)
    bpy.context.view_layer.update()
    other.select_set(True)
    bpy.ops.object.timbermesh_own_node()
    assert {"#Roof", "#Wall"} == set(lodge.objects.keys())
    bpy.ops.object.timbermesh_own_node()
    assert {"Roof", "Wall"} == set(lodge.objects.keys())


# -- checks -------------------------------------------------------------------------------------------------------


def test_a_check_lists_findings_and_leads_to_them(lodge, clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.object.timbermesh_attachment_add(point_name="Slot#Sofa")
    assert bpy.ops.export_scene.timbermesh_check() == {"FINISHED"}
    check = bpy.context.window_manager.meshferry_check
    assert (check.format, check.subject) == ("timbermesh", "Lodge")
    index = next(number for number, found in enumerate(check.findings) if "#Slot#Sofa" in found.item)
    assert not check.findings[index].is_error
    bpy.data.objects["#Slot#Sofa"].select_set(False)
    assert bpy.ops.object.meshferry_finding_select(index=index) == {"FINISHED"}
    assert bpy.context.object.name == "#Slot#Sofa"
    assert bpy.context.selected_objects == [bpy.context.object]


def test_a_check_of_what_cannot_be_exported_says_so(clean_blender):
    bpy = clean_blender
    bpy.context.scene.collection.children.link(bpy.data.collections.new("Empty"))
    assert bpy.ops.export_scene.timbermesh_check(collection="Empty") == {"FINISHED"}
    findings = bpy.context.window_manager.meshferry_check.findings
    assert len(findings) == 1
    assert findings[0].is_error


def test_a_check_is_marked_as_old_after_edits(lodge, clean_blender):
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
    from meshferry.operators.findings.finding_list import after_update, draw_findings

    bpy = clean_blender
    roof, view = bpy.data.objects["Roof"], bpy.context.view_layer
    roof.data.materials.append(bpy.data.materials.new("BaseWood_Brown.Folktails"))
    handlers = bpy.app.handlers.depsgraph_update_post

    def shown():
        view.update()
        layout = MagicMock()
        draw_findings(layout, bpy.context, TIMBERMESH, "Lodge")
        return [call.kwargs["text"] for call in layout.label.call_args_list]

    def move():
        roof.location.x += 1

    def rename():
        roof.name = "Gable"

    def edit():
        bpy.ops.object.mode_set(mode="EDIT")

    def select():
        bpy.ops.object.select_all(action="TOGGLE")
        view.objects.active = None if view.objects.active else roof

    for change in (move, rename, edit):
        bpy.ops.export_scene.timbermesh_check(collection="Lodge")
        assert shown() == ["No problems found"] and after_update in handlers
        select()
        select()
        assert shown() == ["No problems found"]
        change()
        assert shown() == ["Changed since; check again"] and after_update not in handlers
    bpy.ops.export_scene.timbermesh_check(collection="Lodge")
    bpy.ops.mesh.select_all(action="DESELECT")
    assert shown() == ["No problems found"]
    bpy.ops.mesh.subdivide()
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.transform.translate(value=(0, 0, 1))
    assert shown() == ["Changed since; check again"]


def test_a_finding_about_a_material_leads_to_its_users(lodge, clean_blender):
    from meshferry.operators.findings.finding_selection import objects_about, show_material

    bpy = clean_blender
    roof = bpy.data.objects["Roof"]
    roof.data.materials.append(bpy.data.materials.new("Wood's.001"))
    assert objects_about(bpy.context, ["Wood's.001"]) == [roof]
    roof.data.materials.append(bpy.data.materials.new("Stone"))
    show_material(roof, ["Stone"])
    assert roof.active_material_index == 1
    assert objects_about(bpy.context, ["Roof", "x"]) == [roof]
    assert objects_about(bpy.context, ["Lodge"]) == [roof]
    assert objects_about(bpy.context, ["nothing at all"]) == []


def test_selecting_a_finding_that_is_gone(lodge, clean_blender):
    assert clean_blender.ops.object.meshferry_finding_select(index=99) == {"CANCELLED"}


# -- normals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", ["CORNER", "POINT"])
def test_free_normals_become_editable_with_the_same_directions(lodge, clean_blender, domain):
    bpy = clean_blender
    mesh = bpy.data.objects["Roof"].data
    mesh.shade_smooth()
    count = len(mesh.loops) if domain == "CORNER" else len(mesh.vertices)
    random = np.random.default_rng(1)
    normals = np.tile(np.array([[0.3, 0.2, 0.9]], np.float32), (count, 1))
    normals += random.random((count, 3), np.float32) * 0.1
    if domain == "CORNER":
        normals = normals[np.array([loop.vertex_index for loop in mesh.loops])]
    mesh.attributes.new("custom_normal", "FLOAT_VECTOR", domain).data.foreach_set("vector", normals.ravel())
    expected = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    if domain == "POINT":
        expected = expected[[loop.vertex_index for loop in mesh.loops]]
    assert bpy.ops.mesh.meshferry_editable_normals() == {"FINISHED"}
    attribute = mesh.attributes.get("custom_normal")
    assert attribute is None or attribute.data_type != "FLOAT_VECTOR"
    assert mesh.has_custom_normals
    got = np.array([tuple(found.vector) for found in mesh.corner_normals])
    assert np.abs(got - expected).max() < 0.02


def test_editable_normals_are_offered_only_where_there_are_exact_ones(lodge, clean_blender):
    assert not clean_blender.ops.mesh.meshferry_editable_normals.poll()


# -- drawing ------------------------------------------------------------------------------------------------------


def test_panels_draw_without_trouble(lodge, clean_blender):
    bpy = clean_blender
    from meshferry.operators import sidebar
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    roof = bpy.data.objects["Roof"]
    roof.animation_data_create().action = bpy.data.actions.new("Turn")
    roof.meshferry.has_rest = True
    roof.meshferry.source_name, roof.meshferry.given_name = "Roof in the file", "Roof"
    layer = roof.data.meshferry.custom_layers.add()
    layer.name = layer.attribute = "wind"
    bpy.ops.object.timbermesh_attachment_add(point_name="Slot#Sofa")
    bpy.context.view_layer.objects.active = roof
    bpy.ops.export_scene.timbermesh_check()
    context = SimpleNamespace(
        object=roof,
        collection=lodge,
        scene=bpy.context.scene,
        window_manager=bpy.context.window_manager,
        preferences=bpy.context.preferences,
        region=SimpleNamespace(width=240, type="UI"),
    )
    shown = [panel for panel in FAMILY_OPERATORS["timbermesh"].panels if panel.poll(context)]
    assert [panel.bl_label for panel in shown] == [
        "Timbermesh",
        "Object",
        "File Data",
        "Materials",
        "Clip",
        "Collection",
    ]
    for panel in shown:
        panel.draw(SimpleNamespace(layout=MagicMock()), context)
    assert sidebar.actions_of(roof)[0].name == "Turn"


def test_the_outliner_offers_batches_for_several_collections(lodge, clean_blender):
    from meshferry.operators.families.timbermesh.exporters import draw_collection_entries

    def drawn(selected):
        layout = MagicMock()
        context = SimpleNamespace(selected_ids=selected, id=lodge, collection=lodge)
        draw_collection_entries(SimpleNamespace(layout=layout), context)
        assert layout.operator_context == "INVOKE_DEFAULT"
        return [call.args[0] for call in layout.operator.call_args_list]

    other = clean_blender.data.collections.new("Other")
    assert drawn([lodge]) == ["export_scene.timbermesh"]
    assert drawn([lodge, other]) == ["export_scene.timbermesh", "export_scene.timbermesh_batch"]


PANELS = [
    f"{family}_PT_sidebar{suffix}" for suffix in ("", "_own") for family in ("TIMBERMESH", "UNIGINE", "MESH_SERIALIZER")
]
"""Panels of the tab that is for all formats."""


def test_what_came_from_a_file_shows_the_panels_of_its_format_alone(clean_blender):
    bpy = clean_blender
    examples = Path(__file__).resolve().parents[2] / "examples"
    shown = {}
    for importer, path in (
        (bpy.ops.import_scene.timbermesh, examples / "windmill.timbermesh"),
        (bpy.ops.import_scene.unigine, examples / "lamp.mesh"),
        (bpy.ops.import_scene.mesh_serializer, examples / "vase.data"),
    ):
        importer(filepath=str(path))
        shown[path.stem] = (
            bpy.types.TIMBERMESH_PT_sidebar.poll(bpy.context),
            bpy.types.UNIGINE_PT_sidebar.poll(bpy.context),
            bpy.types.MESH_SERIALIZER_PT_sidebar.poll(bpy.context),
        )
    assert shown == {"windmill": (True, False, False), "lamp": (False, True, False), "vase": (False, False, True)}
    own = bpy.data.objects.new("own", bpy.data.meshes.new("own"))
    bpy.context.scene.collection.objects.link(own)
    bpy.context.view_layer.objects.active = own
    shown = [panel for panel in PANELS if getattr(bpy.types, panel).poll(bpy.context)]
    assert shown == ["TIMBERMESH_PT_sidebar_own", "UNIGINE_PT_sidebar_own", "MESH_SERIALIZER_PT_sidebar_own"]
    assert all("DEFAULT_CLOSED" in getattr(bpy.types, panel).bl_options for panel in shown)


def _shown_panels(bpy):
    """Return the panels of the tab that are shown, and draw them."""
    names = [*PANELS, "MESHFERRY_PT_file"]
    shown = [name for name in names if getattr(bpy.types, name).poll(bpy.context)]
    obj, space = bpy.context.object, SimpleNamespace(type="VIEW_3D")
    context = SimpleNamespace(
        object=obj,
        collection=bpy.context.collection,
        scene=bpy.context.scene,
        space_data=space,
        window_manager=bpy.context.window_manager,
        preferences=bpy.context.preferences,
        region=SimpleNamespace(width=240, type="UI"),
    )
    for name in shown:
        layout = MagicMock()
        layout.panel.return_value = (layout, layout)
        layout.column.return_value = layout
        getattr(bpy.types, name).draw(SimpleNamespace(layout=layout), context)
    return shown


@pytest.mark.parametrize("kind", ["MESH", "ARMATURE", "EMPTY", "LIGHT"])
@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize(
    ("family", "example"),
    [("timbermesh", "windmill.timbermesh"), ("unigine", "lamp.mesh"), ("mesh_serializer", "vase.data")],
)
def test_every_imported_object_has_the_panels(clean_blender, family, example, kind, is_moved):
    bpy = clean_blender
    getattr(bpy.ops.import_scene, family)(filepath=str(Path(__file__).resolve().parents[2] / "examples" / example))
    made = bpy.context.object
    collection = made.users_collection[0]
    if made.type != kind:
        data = {"MESH": bpy.data.meshes, "ARMATURE": bpy.data.armatures, "LIGHT": bpy.data.lights}.get(kind)
        own = data.new("Own", *(["POINT"] if kind == "LIGHT" else [])) if data is not None else None
        made = bpy.data.objects.new("Own", own)
        made.meshferry.import_id = collection.meshferry.import_id
        collection.objects.link(made)
        bpy.context.view_layer.objects.active = made
    if is_moved:
        bpy.context.scene.collection.objects.link(made)
        collection.objects.unlink(made)
        bpy.context.view_layer.objects.active = made
    expected = [f"{family.upper()}_PT_sidebar", "MESHFERRY_PT_file"]
    assert bpy.context.object == made
    assert _shown_panels(bpy) == expected
    bpy.context.view_layer.objects.active = None  # the import made its collection the active one
    assert _shown_panels(bpy) == expected


def test_a_placed_scene_has_the_panels(clean_blender, tmp_path):
    import courtyard

    bpy = clean_blender
    world = next(path for path in courtyard.make(tmp_path).rglob("*.world"))
    bpy.ops.import_scene.unigine(filepath=str(world))
    empties = [obj for obj in bpy.context.view_layer.objects if obj.type == "EMPTY"]
    assert empties
    for obj in (*empties, None):
        bpy.context.view_layer.objects.active = obj
        assert _shown_panels(bpy) == ["UNIGINE_PT_sidebar", "MESHFERRY_PT_file"], obj


def test_without_an_active_object_every_format_exports_the_collection(lodge, clean_blender):
    bpy = clean_blender
    bpy.context.view_layer.objects.active = None
    assert _shown_panels(bpy) == [name for name in PANELS if name.endswith("_own")]
    for family in ("UNIGINE", "MESH_SERIALIZER"):
        layout = MagicMock()
        context = SimpleNamespace(object=None, collection=lodge)
        getattr(bpy.types, f"{family}_PT_sidebar_own").draw(SimpleNamespace(layout=layout), context)
        assert layout.operator.return_value.collection == "Lodge"


def test_the_last_report_has_all_lines(clean_blender):
    from meshferry.operators.reports import Messages, conclude

    bpy = clean_blender
    kept = bpy.context.window_manager.meshferry_report
    operator = SimpleNamespace(report=lambda *_: None)
    messages = Messages(done=["a", "b"], notes={"a note": []}, warnings={"first": ["a"], "second": ["a", "b"]})
    conclude(operator, messages, ["2 objects"], "Imported")
    assert kept.summary == "Imported 2 files: 2 objects, 2 warnings" and kept.is_problem
    assert kept.lines.split("\n") == ["a: first", "a, b: second", "a note"]
    conclude(operator, Messages(failures=[("c", "no mesh")]), [], "Imported")
    assert (kept.summary, kept.lines, kept.is_problem) == ("c: no mesh", "", True)
    conclude(operator, Messages(done=["d"]), ["1 object"], "Imported")
    assert (kept.summary, kept.lines, kept.is_problem) == ("d: 1 object", "", False)


def test_both_tabs_end_with_the_last_report(clean_blender):
    """The tab of Second Life has it for objects that have its main panel."""
    from meshferry.operators.reports import keep_report

    bpy = clean_blender
    tabs = {"Meshferry": bpy.types.MESHFERRY_PT_report, "Second Life": bpy.types.SECOND_LIFE_PT_report}
    names = [name for name in dir(bpy.types) if "_PT_" in name]
    for tab, panel in tabs.items():
        others = [cls for name in names if (cls := getattr(bpy.types, name)) not in tabs.values()]
        assert panel.bl_category == tab and not hasattr(panel, "bl_parent_id")
        assert all(panel.bl_order > getattr(cls, "bl_order", 0) for cls in others if cls.__module__[:9] == "meshferry")
    keep_report("", [], is_problem=False)
    assert not any(panel.poll(bpy.context) for panel in tabs.values())
    keep_report("lamp.mesh: 1 object", [], is_problem=False)
    assert tabs["Meshferry"].poll(bpy.context) and not tabs["Second Life"].poll(bpy.context)
    bpy.ops.mesh.primitive_cube_add()
    assert all(panel.poll(bpy.context) for panel in tabs.values())


def test_a_report_redraws_the_sidebars_at_once(clean_blender, monkeypatch):
    from meshferry.operators import reports, sidebar

    areas = [MagicMock(type=kind) for kind in ("VIEW_3D", "OUTLINER", "VIEW_3D")]
    windows = [SimpleNamespace(screen=SimpleNamespace(areas=areas))]
    manager = SimpleNamespace(windows=windows, meshferry_report=SimpleNamespace())
    for module in (reports, sidebar):
        monkeypatch.setattr(module, "bpy", SimpleNamespace(context=SimpleNamespace(window_manager=manager)))
    reports.keep_report("done", [], is_problem=False)
    assert [area.tag_redraw.called for area in areas] == [True, False, True]


def test_a_long_report_names_the_text_with_the_rest(clean_blender, monkeypatch):
    from meshferry.operators import reports
    from meshferry.operators.reports import Messages, conclude

    bpy = clean_blender
    warnings = {f"warning {number}": ["a"] for number in range(25)}
    conclude(SimpleNamespace(report=lambda *_: None), Messages(done=["a"], warnings=warnings), [], "Imported")
    drawn = []
    monkeypatch.setattr(reports, "draw_wrapped", lambda _layout, _context, text, _icon: drawn.append(text))
    bpy.types.MESHFERRY_PT_report.draw(MagicMock(), bpy.context)
    assert len(drawn) == 22 and drawn[-1] == "and 5 more in the Info editor or the text 'Meshferry Report'"
    assert "warning 24" in bpy.data.texts["Meshferry Report"].as_string()


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("no UV map", 20, ["no UV map"]),
        ("one  two three", 7, ["one two", "three"]),
        ("see 名前名前名前 now", 4, ["see", "名前名前", "名前", "now"]),
        ("ab c", 0, ["a", "b", "c"]),
        ("in /home/me/models/lamp.mesh", 12, ["in", "/home/me/", "models/", "lamp.mesh"]),
        (r"C:\models\lamp.mesh: gone", 10, ["C:\\models\\", "lamp.mesh:", "gone"]),
        ("/overlong/name", 5, ["/over", "long/", "name"]),
        ("", 9, []),
    ],
)
def test_texts_are_split_where_they_no_longer_fit(text, width, lines):
    from meshferry.operators.sidebar import wrapped

    assert wrapped(text, lambda line: len(line) <= width) == lines
