"""Children of an imported blueprint: models written around them, models added below them, one state shown."""

import json
import math

import numpy as np
import pytest
from layout_parts import CORNERS, add_object, expected_points, make_mesh, points_of_file

pytestmark = pytest.mark.needs_bpy

PLACE = {
    "Position": {"X": 3.0, "Y": 1.0, "Z": 2.0},
    "Rotation": {"X": 0.0, "Y": 90.0, "Z": 0.0},
    "Scale": {"X": 2.0, "Y": 2.0, "Z": 2.0},
}


def _spec(model):
    return {"TimbermeshSpec": {"Model": model}}


@pytest.fixture
def mod(clean_blender, tmp_path):
    """A mod with one building, whose model is in a folder of its own below the root."""
    bpy = clean_blender
    folder = tmp_path / "Mod"
    home = folder / "Data" / "Buildings" / "Lodge"
    home.mkdir(parents=True)
    (folder / "manifest.json").write_text("{}")
    add_object(bpy, "Wall", make_mesh(bpy, "Wall"))
    bpy.ops.export_scene.timbermesh_batch(directory=str(home), parts="OBJECTS")
    blueprint = {
        "BuildingModelSpec": {"FinishedModelName": "#Finished", "UnfinishedModelName": "#Unfinished"},
        "Children": {
            "#Finished": {
                "Children": {
                    "Left": {"TransformSpec": PLACE, **_spec("Buildings/Lodge/Wall.Model")},
                    "Right": _spec("Buildings/Lodge/Wall.Model"),
                    "Gone": _spec("Buildings/Lodge/Gone.Model"),
                    "Inner#nested": {"BlueprintPath": "Buildings/Lodge/Inner.blueprint"},
                }
            },
            "#Unfinished": {"Children": {"Stage0": _spec("Buildings/Lodge/Wall.Model")}},
        },
    }
    (home / "Lodge.blueprint.json").write_text(json.dumps(blueprint, indent=2))
    inner = {"Children": {"Part": _spec("Buildings/Lodge/Wall.Model")}}
    (home / "Inner.blueprint.json").write_text(json.dumps(inner, indent=2))
    for obj in list(bpy.data.objects):
        bpy.data.objects.remove(obj)
    bpy.ops.import_scene.timbermesh(filepath=str(home / "Lodge.blueprint.json"))
    return bpy, home


def _child(bpy, key):
    return next(obj for obj in bpy.data.objects if obj.meshferry.node_key == key)


def _choose(bpy, obj):
    for other in bpy.context.view_layer.objects:
        other.select_set(False)
    obj.select_set(True)
    bpy.context.view_layer.objects.active = obj


LEFT = "/Children/#Finished/Children/Left"


def test_the_model_of_a_child_is_written_around_the_child(mod):
    bpy, home = mod
    left = _child(bpy, LEFT)
    extra = add_object(bpy, "Chimney", make_mesh(bpy, "Chimney"), (0, 0, 5), math.radians(90), parent=left)
    part = next(obj for obj in left.children_recursive if obj.type == "MESH" and obj is not extra)
    _choose(bpy, part)  # an object of the model stands for its child
    bpy.context.view_layer.update()
    (home / "New").mkdir()
    bpy.ops.export_scene.timbermesh_batch(directory=str(home / "New"), parts="OBJECTS")
    points = np.array([[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 5], [0, 0, 0, 1]], float)
    expected = sorted(set(expected_points(np.identity(4)) + expected_points(points)))
    assert points_of_file(home / "New" / "Wall.Model.timbermesh") == expected
    assert left["Model"] == "Buildings/Lodge/New/Wall.Model"
    assert _child(bpy, LEFT.replace("Left", "Right"))["Model"] == "Buildings/Lodge/Wall.Model"


def test_the_path_of_the_written_model_goes_into_the_blueprint_and_nothing_else(mod):
    bpy, home = mod
    path = home / "Lodge.blueprint.json"
    before = path.read_text()
    left = _child(bpy, LEFT)
    add_object(bpy, "Chimney", make_mesh(bpy, "Chimney"), (0, 0, 5), parent=left)
    next(obj for obj in left.children if obj.name != "Chimney").data.vertices[0].co.z = -1
    _choose(bpy, left)
    bpy.context.view_layer.update()
    (home / "New").mkdir()
    bpy.ops.export_scene.timbermesh_batch(directory=str(home / "New"), parts="OBJECTS")
    bpy.ops.export_scene.meshferry_again(is_confirmed=True)
    changed = before.replace("Lodge/Wall.Model", "Lodge/New/Wall.Model", 1)
    assert path.read_text() == changed


def test_children_with_the_same_model_become_one_file(mod):
    bpy, home = mod
    _choose(bpy, _child(bpy, LEFT))
    for key in (LEFT.replace("Left", "Right"), LEFT.replace("Left", "Gone"), "/Children/#Finished", "/"):
        _child(bpy, key).select_set(True)
    (home / "New").mkdir()
    bpy.ops.export_scene.timbermesh_batch(directory=str(home / "New"), parts="OBJECTS")
    assert [found.name for found in (home / "New").iterdir()] == ["Wall.Model.timbermesh"]
    for name in ("Left", "Right"):
        assert _child(bpy, LEFT.replace("Left", name))["Model"] == "Buildings/Lodge/New/Wall.Model"


def _world_points(child):
    return sorted(
        tuple(np.round(obj.matrix_world @ point.co, 4) + 0.0)
        for obj in child.children_recursive
        if obj.type == "MESH"
        for point in obj.data.vertices
    )


@pytest.mark.parametrize("angle", [0.0, 90.0])
def test_a_child_moves_to_the_origin_of_its_model_which_stays(mod, angle):
    bpy, home = mod
    path = home / "Lodge.blueprint.json"
    before = json.loads(path.read_text())
    left = _child(bpy, LEFT)
    mark = add_object(bpy, "#Origin", None, (1, 0, 2), math.radians(angle), parent=left)
    bpy.context.view_layer.update()
    points, place = _world_points(left), mark.matrix_world.copy()
    _choose(bpy, left)
    (home / "New").mkdir()
    bpy.ops.export_scene.timbermesh_batch(directory=str(home / "New"), parts="OBJECTS")
    bpy.context.view_layer.update()
    assert _world_points(left) == points
    assert np.allclose(left.matrix_world, place, atol=1e-5)
    around = np.array(place.inverted())
    wanted = sorted(tuple(np.round(around @ (*point, 1.0), 3)[:3] + 0.0) for point in points)
    assert np.allclose(points_of_file(home / "New" / "Wall.Model.timbermesh"), wanted, atol=1e-3)
    bpy.ops.export_scene.meshferry_again(is_confirmed=True)
    after = json.loads(path.read_text())
    child = before["Children"]["#Finished"]["Children"]["Left"]
    child["TimbermeshSpec"]["Model"] = "Buildings/Lodge/New/Wall.Model"
    # Two units along the turned X axis of the child, four up: (x, y, z) = (-X, -Z, Y).
    child["TransformSpec"]["Position"] = {"X": 3.0, "Y": 5.0, "Z": pytest.approx(4.0, abs=1e-5)}
    child["TransformSpec"]["Rotation"]["Y"] = pytest.approx(90.0 - angle, abs=1e-4)
    assert after == before
    bpy.ops.object.select_all(action="DESELECT")
    for obj in list(bpy.data.objects):
        bpy.data.objects.remove(obj)
    bpy.ops.import_scene.timbermesh(filepath=str(path))
    bpy.context.view_layer.update()
    assert np.allclose(_world_points(_child(bpy, LEFT)), points, atol=1e-3)


def test_a_child_with_more_than_a_model_keeps_its_place(mod):
    bpy, home = mod
    left = _child(bpy, LEFT)
    add_object(bpy, "#Origin", None, (1, 0, 0), parent=left)
    _child(bpy, LEFT.replace("Left", "Gone")).parent = left
    _choose(bpy, left)
    (home / "New").mkdir()
    with pytest.raises(RuntimeError, match="'Left' has colliders, points or children"):
        bpy.ops.export_scene.timbermesh_batch(directory=str(home / "New"), parts="OBJECTS")
    assert not list((home / "New").iterdir()) and left["Model"] == "Buildings/Lodge/Wall.Model"


def test_a_model_outside_of_the_mod_is_not_written(mod, tmp_path):
    bpy, _home = mod
    _choose(bpy, _child(bpy, LEFT))
    (tmp_path / "Elsewhere").mkdir()
    with pytest.raises(RuntimeError, match="is not in the folder of the mod"):
        bpy.ops.export_scene.timbermesh_batch(directory=str(tmp_path / "Elsewhere"), parts="OBJECTS")
    assert not list((tmp_path / "Elsewhere").iterdir())


def test_an_added_model_is_written_below_its_parent(mod):
    bpy, home = mod
    path = home / "Lodge.blueprint.json"
    _choose(bpy, _child(bpy, "/Children/#Finished"))
    assert bpy.ops.object.timbermesh_model_add(filepath=str(home / "Wall.Model.timbermesh")) == {"FINISHED"}
    made = bpy.context.object
    made.location = (-1, -2, 4)
    assert made["Model"] == "Buildings/Lodge/Wall.Model"
    meshes = [obj for obj in made.children_recursive if obj.type == "MESH"]
    assert [len(obj.data.vertices) for obj in meshes] == [len(CORNERS)]
    before = json.loads(path.read_text())
    bpy.ops.export_scene.meshferry_again(is_confirmed=True)
    after = json.loads(path.read_text())
    children = after["Children"]["#Finished"]["Children"]
    (name,) = set(children) - set(before["Children"]["#Finished"]["Children"])
    added = children.pop(name)
    assert after == before
    assert added["TimbermeshSpec"] == {"Model": "Buildings/Lodge/Wall.Model"}
    assert added["TransformSpec"]["Position"] == {"X": 1.0, "Y": 4.0, "Z": 2.0}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("/Children/#Unfinished/Children/Stage0", "stages of the building"),
        ("/Children/#Finished/Children/Inner#nested", "nested blueprint"),
        ("/", "Choose the object"),
    ],
)
def test_models_are_added_only_where_the_game_lets_them(mod, key, reason):
    bpy, home = mod
    chosen = _child(bpy, key)
    if key == "/Children/#Unfinished/Children/Stage0":
        bpy.ops.object.timbermesh_state_show(state="Unfinished")
    _choose(bpy, chosen)
    with pytest.raises(RuntimeError, match=reason):
        bpy.ops.object.timbermesh_model_add(filepath=str(home / "Wall.Model.timbermesh"))


def test_a_damaged_model_adds_nothing(mod):
    bpy, home = mod
    (home / "Bad.timbermesh").write_bytes(b"\x78\x9cbad")
    _choose(bpy, _child(bpy, "/Children/#Finished"))
    before = set(bpy.data.objects)
    with pytest.raises(RuntimeError, match=r"damaged|cut off"):
        bpy.ops.object.timbermesh_model_add(filepath=str(home / "Bad.timbermesh"))
    assert set(bpy.data.objects) == before


def test_exactly_one_state_is_shown(mod):
    bpy, _home = mod
    _choose(bpy, _child(bpy, "/Children/#Finished"))
    for state in ("Unfinished", "Finished"):
        bpy.ops.object.timbermesh_state_show(state=state)
        shown = {key for key in ("#Finished", "#Unfinished") if _child(bpy, f"/Children/{key}").visible_get()}
        assert shown == {f"#{state}"}
        bpy.context.view_layer.objects.active = _child(bpy, f"/Children/#{state}")


def test_the_panel_names_missing_models(mod):
    from meshferry.operators.families.timbermesh.blueprints import main_collection, missing_models, shown_states

    bpy, _home = mod
    _choose(bpy, _child(bpy, LEFT))
    main, record = main_collection(bpy.context)
    assert record.path.name == "Lodge.blueprint.json"
    assert list(shown_states(bpy.context)) == ["Finished", "Unfinished"]
    assert missing_models(main) == ["Buildings/Lodge/Gone.Model"]


def test_check_judges_the_blueprint_with_its_changes(mod, capfd):
    bpy, home = mod
    path = home / "Lodge.blueprint.json"
    before = path.read_bytes()
    left = _child(bpy, LEFT)
    _choose(bpy, left)
    for value, wanted in (("Buildings/Nowhere.Model", "'Buildings/Nowhere.Model'"), ("", "not to nothing")):
        left["Model"] = value
        assert bpy.ops.export_scene.timbermesh_check() == {"FINISHED"}
        assert wanted in (said := capfd.readouterr().out)
        assert "1 error" in said or value
    assert path.read_bytes() == before
