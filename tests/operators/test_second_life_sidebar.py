"""The tab of Second Life: which objects are which, weights, levels to look at, what is drawn."""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock
from xml.etree import ElementTree as ET

import pytest
from meshferry.io_formats.second_life.asset.land_impact import total_of
from second_life_models import Drawn, panel_context, write_crate

pytestmark = pytest.mark.needs_bpy

LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")


@pytest.fixture
def crate(clean_blender, tmp_path):
    """Return an imported box of 12 triangles with all its levels."""
    clean_blender.ops.import_scene.second_life(filepath=str(write_crate(tmp_path / "crate.llmesh")))
    return clean_blender.data.objects["crate"]


@pytest.fixture
def ball(clean_blender):
    """Return a new sphere of 1,280 triangles without levels."""
    clean_blender.ops.mesh.primitive_ico_sphere_add(subdivisions=4)
    clean_blender.context.object.name = "ball"
    clean_blender.context.object.data.materials.append(clean_blender.data.materials.new("Leather"))
    return clean_blender.context.object


def _weights(bpy):
    return bpy.context.window_manager.meshferry_weights


def _resize(bpy, size):
    """Give a model, with its levels and physics, a size in metres."""
    for obj in bpy.data.objects:
        obj.scale = (size, size, size)
    bpy.context.view_layer.update()


def _shown(bpy):
    return {obj.name for obj in bpy.data.objects if obj.visible_get()}


def _draw(bpy):
    from meshferry.operators.families.second_life.panel import main_panel

    context = panel_context(bpy)
    if not main_panel.poll(context):
        return None
    layout = Drawn()
    main_panel.draw(type("Panel", (), {"layout": layout})(), context)
    return layout.lines


def test_linked_duplicates_are_counted_as_objects_of_one_mesh(clean_blender, ball, tmp_path):
    bpy = clean_blender
    for number in (1, 1, 2, 3):
        made = ball.copy()
        made.location.x = 3 * number
        made.scale = (number,) * 3
        bpy.context.collection.objects.link(made)
        made.select_set(True)
    assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
    lines = _draw(bpy)
    assert "5 objects, 1 mesh" in lines
    assert [line for line in lines if str(line).startswith("ball") and line != "ball"][:3] == [
        "ball × 3",
        "ball.003",
        "ball.004",
    ]
    weights = [entry.download for entry in _weights(bpy).models]
    assert weights[0] == pytest.approx(weights[2], rel=1e-5)
    assert weights[2] < weights[3] < weights[4]
    assert [entry.same_mesh_as for entry in _weights(bpy).models] == ["", *["ball"] * 4]
    bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "balls.dae"))
    root = ET.parse(tmp_path / "balls.dae").getroot()
    assert [len(root.findall(f".//{{*}}{tag}")) for tag in ("geometry", "instance_geometry")] == [1, 5]


def test_the_panel_shows_the_number_of_the_face_of_each_material(clean_blender, ball):
    bpy = clean_blender
    for name in ("unused", "apron", "Zipper"):
        ball.data.materials.append(bpy.data.materials.new(name))
    ball.data.polygons[0].material_index = 2
    ball.data.polygons[1].material_index = 3
    lines = _draw(bpy)
    start = lines.index("Faces") + 1
    assert lines[start : start + 6] == ["Face 0", "apron", "Face 1", "Leather", "Face 2", "Zipper"]


# -- weights ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["elfears_98a6e63e.llmesh", "franz_6764a3d8.llmesh", "franz_d0471994.llmesh"])
def test_what_was_imported_weighs_what_its_file_says(clean_blender, samples, name):
    bpy = clean_blender
    expected = json.loads((samples / "secondlife" / "expected.json").read_text())[name]
    bpy.ops.import_scene.second_life(filepath=str(samples / "secondlife" / name))
    kept = _weights(bpy)
    for size, key in ((1, "streaming_cost_at_1m"), (10, "streaming_cost_at_10m")):
        _resize(bpy, size)
        assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
        assert all(entry.is_exact for entry in kept.models)
        assert total_of(kept.models).download == pytest.approx(expected[key], abs=6e-5)


@pytest.mark.slow
@pytest.mark.any_version
def test_every_sample_is_known_to_be_as_it_came(clean_blender, samples):
    bpy = clean_blender
    every = json.loads((samples / "secondlife" / "expected.json").read_text())
    names = [name for name, facts in every.items() if "streaming_cost_at_1m" in facts]
    assert len(names) >= 26
    for name in names:
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        bpy.ops.import_scene.second_life(filepath=str(samples / "secondlife" / name))
        bpy.ops.object.second_life_weigh()
        kept = _weights(bpy)
        assert [entry.is_exact for entry in kept.models] == [True], name
        levels = [every[name]["lods"].get(level, ()) for level in LEVELS]
        triangles = [sum(face.get("triangles", 0) for face in faces) for faces in levels]
        assert [level.triangles for level in kept.models[0].levels] == triangles, name


def test_joints_and_animesh_are_counted(clean_blender, samples):
    bpy = clean_blender
    path = samples / "secondlife" / "benthic_rigged22.mesh"
    expected = json.loads((samples / "secondlife" / "expected.json").read_text())[path.name]
    bpy.ops.import_scene.second_life(filepath=str(path))
    bpy.ops.object.second_life_weigh()
    kept = _weights(bpy)
    assert kept.models[0].joints == 22
    assert total_of(kept.models).animesh == pytest.approx(15 + expected["animesh_triangle_cost"], abs=6e-5)


def test_a_change_makes_the_figures_about_and_is_noticed(crate, clean_blender):
    from meshferry.operators.families.second_life.exporters import chosen_models
    from meshferry.operators.families.second_life.land_impact import stamp_of

    bpy = clean_blender
    bpy.ops.object.second_life_weigh()
    kept = _weights(bpy)
    assert all(entry.is_exact for entry in kept.models)
    assert kept.stamp == stamp_of(bpy.context, chosen_models(bpy.context))
    assert "Changed since; compute again" not in _draw(bpy)
    crate.data.vertices[0].co.x -= 0.1
    bpy.ops.object.second_life_weigh()
    assert not any(entry.is_exact for entry in kept.models)
    assert any(str(line).startswith("about ") for line in _draw(bpy))
    crate.modifiers.new("Subdivision", "SUBSURF")
    assert "Changed since; compute again" in _draw(bpy)


def test_several_objects_are_added_up(crate, ball, clean_blender):
    bpy = clean_blender
    crate.select_set(True)
    ball.select_set(True)
    assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
    kept = _weights(bpy)
    assert [(entry.name, entry.is_exact) for entry in kept.models] == [("ball", False), ("crate", True)]
    total = total_of(kept.models)
    assert total.download == pytest.approx(sum(entry.download for entry in kept.models), rel=1e-6)
    assert total.server == 1.0
    assert kept.subject == "ball and 1 more"
    assert [level.triangles for level in kept.models[0].levels] == [1280, 512, 192, 64]


def _after(lines, label):
    """Return the text that is drawn after each line with a label."""
    return [str(after) for line, after in itertools.pairwise(lines) if line == label]


def _tunic(bpy):
    """Import the bundled tunic; make its material transparent."""
    bpy.ops.import_scene.second_life(filepath=str(Path(__file__).parents[2] / "examples" / "tunic.llmesh"))
    tunic = bpy.data.objects["tunic"]
    shader = next(node for node in tunic.active_material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    shader.inputs["Alpha"].default_value = 0.5
    return tunic


def test_what_is_worn_costs_complexity(clean_blender):
    """The download weight is 0.06 for each of the triangles that complexity counts."""
    bpy = clean_blender
    tunic = _tunic(bpy)
    assert bpy.ops.object.second_life_weigh() == {"FINISHED"}
    triangles = int(_weights(bpy).models[0].download / 0.06 + 1e-6)
    lines = _draw(bpy)
    assert _after(lines, "Complexity (Worn)") == [f"{int(triangles * 5 * 4 * 1.2):,}"]
    assert _after(lines, "Weighted Triangles") == [f"{triangles:,} × 5"]
    assert (_after(lines, "Alpha"), _after(lines, "Rigged")) == (["× 4"], ["× 1.2"])
    assert "Server" not in lines
    tunic.meshferry.usage = "REZZED"
    assert "Server" in _draw(bpy)
    assert "Complexity (Worn)" not in _draw(bpy)
    tunic.meshferry.usage = "ANIMESH"
    lines = _draw(bpy)
    (impact,) = _after(lines, "Land Impact (Animesh)")
    assert int(impact) == round(total_of(_weights(bpy).models).animesh)
    # Each level has less than half of the bytes of the level before it, so the coarser ones are free.
    first = lines.index("Cost") + 1
    assert [lines[first + 4 * level + 3] for level in range(4)] == ["100%", "0%", "0%", "0%"]


def test_worn_and_rezzed_objects_are_counted_apart(ball, clean_blender):
    bpy = clean_blender
    tunic = _tunic(bpy)
    for obj in bpy.context.view_layer.objects:
        obj.select_set(obj in {ball, tunic})
    bpy.context.view_layer.objects.active = tunic
    bpy.ops.object.second_life_weigh()
    lines = _draw(bpy)
    of_ball = next(entry for entry in _weights(bpy).models if entry.name == "ball")
    assert _after(lines, "Land Impact (Rezzed)") == [f"about {max(of_ball.download, of_ball.physics):.0f}"]
    assert _after(lines, "Server") == ["0.50"]
    assert len(_after(lines, "Complexity (Worn)")) == 1


def test_a_changed_choice_is_shown_in_bytes(ball, clean_blender):
    bpy = clean_blender
    bpy.ops.object.second_life_weigh()
    before = [level.size for level in _weights(bpy).models[0].levels]
    assert "Cost" in _draw(bpy)
    assert sum(level.share for level in _weights(bpy).models[0].levels) == pytest.approx(1, abs=1e-5)
    options = bpy.context.window_manager.operator_properties_last("export_scene.second_life_upload")
    options.medium_ratio = 0.2
    try:
        bpy.ops.object.second_life_weigh()
    finally:
        options.property_unset("medium_ratio")
    levels = _weights(bpy).models[0].levels
    assert [level.change for level in levels] == [level.size - old for level, old in zip(levels, before, strict=True)]
    assert levels[0].change == 0
    assert levels[1].change < -500
    lines = _draw(bpy)
    assert "Change" in lines
    assert f"{levels[1].change:+,}".replace("-", "−") in lines


@pytest.mark.parametrize(
    ("shape", "placeholder", "label", "weight"),
    [
        ("DEFAULT", "Convex Hull", "Physics (Convex Hull)", "10.20"),
        ("HULL", "Convex Hull", "Physics (Convex Hull)", "10.20"),
        ("CUBE", "Hulls: Cube", "Physics (Hulls)", "0.36"),
        ("MESH", "Mesh", "Physics (Triangles)", "unknown"),
    ],
)
def test_the_panel_names_the_physics_shape(ball, clean_blender, shape, placeholder, label, weight):
    bpy = clean_blender
    ball.meshferry.physics_shape = shape
    bpy.ops.object.second_life_weigh()
    lines = [str(line) for line in _draw(bpy)]
    assert f"('physics_object', '{placeholder}')" in lines
    assert weight in lines[lines.index(label) + 1]
    assert any(line.startswith("at least ") for line in lines) == (shape == "MESH")


def test_what_cannot_be_weighed_is_said_and_leaves_no_old_figures(crate, clean_blender):
    bpy = clean_blender
    bpy.ops.object.second_life_weigh()
    crate.scale.x = 0
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match="crate"):
        bpy.ops.object.second_life_weigh()
    assert not len(_weights(bpy).models)


# -- levels -------------------------------------------------------------------------------------------------------


def test_one_level_is_shown_at_a_time(crate, clean_blender):
    bpy = clean_blender
    show = bpy.ops.object.second_life_level_show
    assert _shown(bpy) == {"crate"}
    for part, name in (("LOW", "crate_LOD1"), ("LOWEST", "crate_LOD0"), ("MEDIUM", "crate_LOD2"), ("HIGH", "crate")):
        assert show(part=part) == {"FINISHED"}
        assert _shown(bpy) == {name}
        assert bpy.context.object.name == name


def test_levels_of_others_stay_in_the_dark(clean_blender, tmp_path):
    bpy = clean_blender
    files = [{"name": write_crate(tmp_path / name).name} for name in ("one.llmesh", "two.llmesh")]
    bpy.ops.import_scene.second_life(directory=str(tmp_path), files=files)
    levels = {name: bpy.data.objects[f"{name}_LOD1"] for name in ("one", "two")}
    home = levels["two"].users_collection[0]
    home.objects.link(levels["one"])  # both in one collection, whose eye is closed
    for obj in bpy.data.objects:
        obj.select_set(obj.name == "two")
    bpy.context.view_layer.objects.active = bpy.data.objects["two"]
    bpy.ops.object.second_life_level_show(part="LOW")
    assert _shown(bpy) == {"one", "two_LOD1"}


def test_levels_of_another_scene_stay_as_they_are_though_linked_objects_are_called_like_them(
    crate, clean_blender, tmp_path
):
    bpy = clean_blender
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"), copy=True)
    level = crate.meshferry.low_level
    other = bpy.data.scenes.new("Other")
    other.collection.objects.link(level)
    for collection in level.users_collection:
        if collection != other.collection:
            collection.objects.unlink(level)
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
        wanted.objects = [level.name]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    show = bpy.ops.object.second_life_level_show
    assert show(part="MEDIUM") == {"FINISHED"}
    assert bpy.context.object == crate.meshferry.medium_level
    bpy.context.view_layer.objects.active = crate
    assert show(part="LOW") == {"FINISHED"}, "nothing to show, which is said"
    assert not wanted.objects[0].hide_get()


def test_a_deleted_level_is_made_anew(crate, clean_blender, tmp_path):
    bpy = clean_blender
    for _ in range(2):
        bpy.ops.object.second_life_level_show(part="LOW")
        bpy.context.object.data.clear_geometry()
        assert bpy.ops.object.delete() == {"FINISHED"}
        crate.hide_set(False)
        crate.select_set(True)
        bpy.context.view_layer.objects.active = crate
        bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "any.dae"), use_replace=True)
        assert "<triangles" in (tmp_path / "any_LOD1.dae").read_text()
        bpy.ops.object.second_life_weigh()
        assert _weights(bpy).models[0].levels[2].triangles > 0
        assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
        assert bpy.context.object.name == "crate_LOD1"
        assert crate.meshferry.low_level == bpy.context.object


def test_a_made_level_has_the_materials_that_are_seen_and_no_empty_slots(ball, clean_blender, capfd):
    bpy = clean_blender
    ball.data.materials.clear()
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
    assert not bpy.data.objects["ball_LOD1"].material_slots
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"CANCELLED"}
    assert "already an object for this level" in capfd.readouterr().out
    nodes = bpy.data.node_groups.new("Clad", "GeometryNodeTree")
    for direction in ("INPUT", "OUTPUT"):
        nodes.interface.new_socket("Geometry", in_out=direction, socket_type="NodeSocketGeometry")
    clad = nodes.nodes.new("GeometryNodeSetMaterial")
    clad.inputs["Material"].default_value = bpy.data.materials.new("Cladding")
    nodes.links.new(nodes.nodes.new("NodeGroupInput").outputs[0], clad.inputs[0])
    nodes.links.new(clad.outputs[0], nodes.nodes.new("NodeGroupOutput").inputs[0])
    ball.modifiers.new("Clad", "NODES").node_group = nodes
    assert bpy.ops.object.second_life_level_make(part="LOWEST") == {"FINISHED"}
    (slot,) = bpy.data.objects["ball_LOD0"].material_slots
    assert slot.material.name == "Cladding"


@pytest.mark.parametrize("overridden", [False, True])
def test_a_level_of_a_linked_model_is_made_in_this_file(ball, clean_blender, tmp_path, overridden):
    bpy = clean_blender
    home = bpy.data.collections.new("Home")
    home.objects.link(ball)
    bpy.data.libraries.write(str(tmp_path / "library.blend"), {home})
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
        wanted.collections = ["Home"]
    layer = bpy.context.view_layer
    bpy.context.scene.collection.children.link(wanted.collections[0])
    if overridden:
        wanted.collections[0].override_hierarchy_create(bpy.context.scene, layer)
    layer.update()
    (finest,) = [obj for obj in layer.objects if overridden == (obj.override_library is not None)]
    layer.objects.active = finest
    finest.select_set(True)
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
    level = bpy.context.object
    assert (level.name, level.library, level.meshferry.lod_of) == ("ball_LOD1", None, finest)
    bpy.ops.object.select_all(action="DESELECT")
    layer.objects.active = finest
    finest.hide_set(False)
    finest.select_set(True)
    bpy.ops.object.second_life_weigh()
    (weighed,) = _weights(bpy).models
    assert weighed.levels[2].triangles == len(level.data.polygons)


def test_physics_are_shown_with_the_model(crate, clean_blender):
    bpy = clean_blender
    before = _shown(bpy)
    bpy.ops.object.second_life_level_show(part="PHYSICS")
    assert len(_shown(bpy)) == 2
    assert before < _shown(bpy)
    bpy.ops.object.second_life_level_show(part="PHYSICS")
    assert _shown(bpy) == before


def test_a_missing_level_is_made_as_the_export_makes_it(ball, clean_blender):
    bpy = clean_blender
    ball.location = (1, 2, 3)
    ball.scale = (1, 1, 2)
    bpy.ops.object.second_life_avatar_add()
    avatar = bpy.context.object
    ball.modifiers.new("Armature", "ARMATURE").object = avatar
    ball.parent = avatar
    ball.vertex_groups.new(name="mChest").add(range(len(ball.data.vertices)), 1.0, "REPLACE")
    bpy.context.view_layer.objects.active = ball
    avatar.select_set(False)
    ball.select_set(True)
    bpy.context.view_layer.update()
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"FINISHED"}
    level = bpy.data.objects["ball_LOD1"]
    assert ball.meshferry.low_level == level
    assert len(level.data.polygons) == 192
    assert level.matrix_world == ball.matrix_world
    assert list(level.data.materials) == list(ball.data.materials)
    assert [modifier.object for modifier in level.modifiers] == [avatar]
    weights = {level.vertex_groups[group.group].name for vertex in level.data.vertices for group in vertex.groups}
    assert weights == {"mChest"}
    assert _shown(bpy) == {"Avatar", "ball_LOD1"}
    points = [vertex.co.length for vertex in level.data.vertices]
    assert 0.8 < min(points) <= max(points) < 1.1
    assert bpy.ops.object.second_life_level_make(part="LOW") == {"CANCELLED"}  # it has one now


def test_a_level_that_was_made_is_exported_as_it_stands(ball, clean_blender, tmp_path):
    bpy = clean_blender
    bpy.ops.object.second_life_level_make(part="LOWEST")
    bpy.ops.object.second_life_weigh()
    assert [level.triangles for level in _weights(bpy).models[0].levels][3] == 64
    bpy.data.objects["ball_LOD0"].data.clear_geometry()
    bpy.data.objects["ball_LOD0"].data.from_pydata([(0, 0, 1), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    bpy.ops.object.second_life_weigh()
    assert [level.triangles for level in _weights(bpy).models[0].levels][3] == 1


# -- what is drawn ------------------------------------------------------------------------------------------------


def test_missing_levels_are_offered_and_found_ones_named(ball, clean_blender):
    bpy = clean_blender
    lines = _draw(bpy)
    assert ("medium_level", "Generated") in lines
    assert ("medium_ratio", "") in lines
    assert lines.count("object.second_life_level_make") == 3
    level = bpy.data.objects.new("ball_LOD2", ball.data.copy())
    bpy.context.scene.collection.objects.link(level)
    lines = _draw(bpy)
    assert ("medium_level", "ball_LOD2") in lines
    assert lines.count("object.second_life_level_make") == 2


@pytest.mark.usefixtures("crate")
def test_the_tab_is_for_what_may_go_to_second_life(clean_blender):
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    panels = [panel for panel in FAMILY_OPERATORS["unigine"].panels if panel.bl_label == "UNIGINE"]

    bpy = clean_blender
    assert _draw(bpy) is not None
    assert not any(panel.poll(panel_context(bpy)) for panel in panels)
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    bpy.context.view_layer.objects.active = empty
    assert _draw(bpy) is None
    bpy.ops.object.second_life_avatar_add()
    assert _draw(bpy)[:2] == ["No mesh is bound; select one", "Rigging"]
    layer = bpy.context.view_layer
    layer.active_layer_collection = layer.layer_collection
    bpy.ops.mesh.primitive_cube_add()
    assert any(panel.poll(panel_context(bpy)) for panel in panels)
    # The cube is not bound yet; the only avatar is the one to bind it to.
    lines = _draw(bpy)
    start = lines.index("Rigging")
    tools = ("bind", "transfer_weights", "fitted_mesh", "clean_weights", "match_seam", "snap_joints", "ik_add")
    assert lines[start + 1] == "Bones for Automatic Weights"
    assert lines[start + 3 : start + 10] == [f"object.second_life_{tool}" for tool in tools]


def test_all_tools_are_in_the_object_menu(clean_blender):
    """The menu search finds what is in a menu; each entry is an operator that exists."""
    from meshferry.operators.families.second_life.panel import SECOND_LIFE_MT_object

    layout = MagicMock()
    SECOND_LIFE_MT_object.draw(SimpleNamespace(layout=layout), clean_blender.context)
    calls = (*layout.operator.call_args_list, *layout.operator_menu_enum.call_args_list)
    names = {call.args[0] for call in calls}
    for name in names:
        family, operator = name.split(".")
        assert getattr(getattr(clean_blender.ops, family), operator).get_rna_type().name
    tools = (
        "bind",
        "transfer_weights",
        "fitted_mesh",
        "clean_weights",
        "snap_joints",
        "ik_remove",
        "retarget",
        "shape_set",
        "load_shape",
        "weigh",
    )
    assert {f"object.second_life_{tool}" for tool in tools} < names
    assert {"export_scene.second_life_check", "export_scene.second_life_upload"} < names


@pytest.mark.parametrize(("more", "label"), [(0, "Body"), (1, "Body and 1 more bone"), (2, "Body and 2 more bones")])
def test_the_choice_of_automatic_weights_counts_bones(clean_blender, more, label):
    from meshferry.operators.families.second_life.avatar import choice_label

    clean_blender.ops.object.second_life_avatar_add()
    avatar = clean_blender.context.object
    for name in ("mTail1", "mTail2")[:more]:
        avatar.data.bones[name].use_deform = True
    assert choice_label(avatar) == label


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (0.002, "<1%"), (0.4, "40%"), (0.994, "99%"), (0.996, ">99%"), (1.0, "100%")]
)
def test_small_shares_of_the_cost_are_not_nothing(clean_blender, share, text):
    from meshferry.operators.families.second_life.land_impact import share_text

    assert share_text(share) == text


def test_what_came_from_another_family_has_no_tab_here(clean_blender, make_unigine):
    bpy = clean_blender
    bpy.ops.import_scene.unigine(filepath=str(make_unigine("flag.mesh")))
    assert bpy.context.object.type == "MESH"
    assert _draw(bpy) is None


def test_findings_are_of_what_is_chosen(crate, ball, clean_blender):
    bpy = clean_blender
    ball.select_set(False)
    crate.select_set(True)
    bpy.context.view_layer.objects.active = crate
    crate.scale.x = 100
    bpy.context.view_layer.update()
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    check = bpy.context.window_manager.meshferry_check
    assert (check.format, check.subject) == ("second_life_upload", "crate")
    assert any("64" in found.message for found in check.findings)
    assert "object.meshferry_finding_select" in _draw(bpy)
    crate.select_set(False)
    ball.select_set(True)
    bpy.context.view_layer.objects.active = ball
    assert "object.meshferry_finding_select" not in _draw(bpy)


def test_what_an_export_makes_is_nothing_to_mend(ball, clean_blender):
    bpy = clean_blender
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    assert [found.message for found in bpy.context.window_manager.meshferry_check.findings] == []
    assert "No problems found" in _draw(bpy)


def test_parts_too_many_for_a_hull_each_are_something_to_mend(ball, clean_blender):
    bpy = clean_blender
    triangles = [(x, y, z) for number in range(300) for x, y, z in ((number, 0, 0), (number, 1, 0), (number, 0, 1))]
    ball.data.clear_geometry()
    ball.data.from_pydata(triangles, [], [(first, first + 1, first + 2) for first in range(0, 900, 3)])
    ball.meshferry.physics_shape = "PARTS"
    assert bpy.ops.export_scene.second_life_check() == {"FINISHED"}
    messages = [found.message for found in bpy.context.window_manager.meshferry_check.findings]
    assert any("more than 256 loose parts" in message for message in messages)
    assert not any("made of the next finer" in message for message in messages)


def test_figures_are_of_what_is_chosen_and_a_level_stands_for_its_model(crate, ball, clean_blender):
    bpy = clean_blender

    def choose(obj):
        for one in bpy.context.view_layer.objects:
            one.select_set(one == obj)
        bpy.context.view_layer.objects.active = obj

    choose(crate)
    bpy.ops.object.second_life_weigh()
    assert "Land Impact (Rezzed)" in _draw(bpy) and "Download" in _draw(bpy)
    choose(ball)
    assert "Land Impact (Rezzed)" not in _draw(bpy) and "Download" not in _draw(bpy)
    choose(crate)
    bpy.ops.object.second_life_level_show(part="LOWEST")
    assert bpy.context.object == crate.meshferry.lowest_level
    assert "Land Impact (Rezzed)" in _draw(bpy)
    assert _draw(bpy)[:4] == ["Object", "High", "crate", "object.second_life_level_show"]
