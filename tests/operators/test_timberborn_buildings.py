"""New buildings from collections: files, names of objects, icon, what the collection remembers, re-export."""

import json
import math
import shutil
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import timbermesh_oracle as oracle
from timber_buildings import BUILDINGS, PICTURE, files_of, judged

pytestmark = pytest.mark.needs_bpy
FOLDER = "Buildings/Decoration/Hut"


def box(bpy, collection, name="Walls", low=(-1, -1, 0), high=(0, 0, 1), material="BaseMetal.Folktails", at=(0, 0, 0)):
    mesh = bpy.data.meshes.new(name)
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    low, high, at = map(np.array, (low, high, at))
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    mesh.from_pydata([(low + corner * (high - low)).tolist() for corner in corners], [], faces)
    if material:
        mesh.materials.append(bpy.data.materials.get(material) or bpy.data.materials.new(material))
    obj = bpy.data.objects.new(name, mesh)
    obj.location = at
    collection.objects.link(obj)
    return obj


def empty(bpy, collection, name, at):
    obj = bpy.data.objects.new(name, None)
    obj.location = at
    collection.objects.link(obj)
    return obj


def collection_of(bpy, name, parent=None):
    made = bpy.data.collections.new(name)
    (parent or bpy.context.scene.collection).children.link(made)
    return made


def make_hut(bpy, name="Hut.Folktails", at=(7, 5, 0), material="BaseMetal.Folktails"):
    """Make a hut of 2 x 2 cells with eaves, a door, a stage and two colliders, away from the origin of the scene."""
    at = np.array(at)
    hut = collection_of(bpy, name)
    box(bpy, hut, "Walls", (-2.3, -2.3, 0), (0.3, 0.3, 1.6), material, at)
    box(bpy, hut, "ColliderLow", (-2, -2, 0), (0, 0, 1), "", at)
    box(bpy, hut, "ColliderRoof", (-2.3, -2.3, 1), (0.3, 0.3, 1.6), "", at)
    empty(bpy, hut, "#Origin", at)
    empty(bpy, hut, "#Slot#Entrance", at - np.array((1.5, 0, 0)))
    stage = collection_of(bpy, "ConstructionStage0", hut)
    box(bpy, stage, "Frame", (-2, -2, 0), (0, 0, 0.5), material, at)
    bpy.context.view_layer.update()
    return hut


@pytest.fixture
def write(clean_blender, tmp_path_factory):
    """Return a function that writes the collections with these names, with a picture as icon unless it is None."""
    picture = tmp_path_factory.mktemp("icon") / "icon.png"
    picture.write_bytes(PICTURE)

    def run(folder, *names, icon=str(picture), **options):
        options |= {"icon": icon} if icon is not None else {}
        return clean_blender.ops.export_scene.timbermesh_building(
            mod=str(folder), collections="\n".join(names or ["Hut.Folktails"]), **options
        )

    return run


def blueprint(folder, stem="Hut.Folktails"):
    return json.loads((folder / FOLDER / f"{stem}.blueprint.json").read_text())


@pytest.mark.slow
def test_a_hut_with_all_that_names_say(clean_blender, write, tmp_path):
    bpy = clean_blender
    make_hut(bpy)
    counts = {name: len(getattr(bpy.data, name)) for name in ("scenes", "objects", "cameras", "lights")}
    write(tmp_path, kind="WITH_ENTRANCE", icon=None)
    assert counts == {name: len(getattr(bpy.data, name)) for name in counts}
    assert judged(tmp_path) == []
    root = blueprint(tmp_path)
    assert root["BlockObjectSpec"]["Size"] == {"X": 2, "Y": 2, "Z": 2}
    assert root["BlockObjectSpec"]["Entrance"]["Coordinates"] == {"X": 1, "Y": -1, "Z": 0}
    assert root["BuildingAccessibleSpec"]["LocalAccess"] == {"X": 1.5, "Y": 0.0, "Z": 0.2}
    low, roof = root["Children"]["#Finished"]["CollidersSpec"]["BoxColliders"]
    assert [*low["Size"].values()] == pytest.approx([2, 1, 2], abs=1e-4)
    assert [*roof["Center"].values()] == pytest.approx([1, 1.3, 1], abs=1e-4)
    stage = root["Children"]["#Unfinished"]["Children"]["ConstructionStage0"]["CollidersSpec"]["BoxColliders"]
    assert [*stage[0]["Center"].values()] == pytest.approx([1, 0.25, 1], abs=1e-4)
    document = oracle.parse((tmp_path / FOLDER / "Hut.Folktails.Model.timbermesh").read_bytes())
    assert {node.name for node in document.nodes} >= {"#Slot#Entrance"}
    assert not any("Collider" in node.name or "Origin" in node.name for node in document.nodes)
    picture = bpy.data.images.load(str(tmp_path / FOLDER / "HutIcon.png"))
    alpha = np.array(picture.pixels[:]).reshape(112, 112, 4)[..., 3]
    assert 0.2 < (alpha > 0.5).mean() < 0.9
    assert alpha[0].max() == alpha[-1].max() == 0


@pytest.mark.slow
def test_unchanged_writes_change_no_byte_and_changes_stay_small(clean_blender, write, tmp_path):
    bpy = clean_blender
    hut = make_hut(bpy)
    write(tmp_path, kind="WITH_ENTRANCE", icon=None)
    before = files_of(tmp_path)
    again = partial(bpy.ops.export_scene.timbermesh_building, use_written=True)
    write(tmp_path, kind="WITH_ENTRANCE", icon=None, use_replace=True)
    again(collections=hut.name)
    assert files_of(tmp_path) == before
    path = tmp_path / FOLDER / "Hut.Folktails.blueprint.json"
    path.write_text(path.read_text().replace('"ScienceCost": 0', '"ScienceCost": 7'))
    bpy.data.objects["Walls"].scale.z = 2
    again(collections=hut.name)
    root = blueprint(tmp_path)
    assert (root["BuildingSpec"]["ScienceCost"], root["BlockObjectSpec"]["Size"]["Z"]) == (7, 4)
    after = files_of(tmp_path)
    assert {name for name in before if after[name] != before[name]} == {
        f"{FOLDER}/Hut.Folktails.blueprint.json",
        f"{FOLDER}/Hut.Folktails.Model.timbermesh",
    }
    assert {*after} - {*before} == {f"{FOLDER}/Hut.Folktails.blueprint.json.bak"}
    assert judged(tmp_path) == []
    for change, words in (
        (lambda: path.write_text(path.read_text().replace('"Z": 4', '"Z": 9', 1)), "in the file and in the scene"),
        (lambda: bpy.data.objects.remove(bpy.data.objects["ColliderRoof"]), "number of stages or colliders"),
    ):
        change()
        bpy.data.objects["Walls"].scale.z = 3
        before = files_of(tmp_path)
        with pytest.raises(RuntimeError, match=words):
            again(collections=hut.name)
        assert files_of(tmp_path) == before
    write(tmp_path, kind="WITH_ENTRANCE", icon=None, use_replace=True)
    assert blueprint(tmp_path)["BlockObjectSpec"]["Size"]["Z"] == 5
    copied = hut.copy()
    with pytest.raises(RuntimeError, match="not written as a building"):
        again(collections=copied.name)


def test_stored_paths_are_not_written_without_consent(clean_blender, write, tmp_path):
    bpy = clean_blender
    make_hut(bpy)
    write(tmp_path, kind="WITH_ENTRANCE")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "hut.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "hut.blend"))
    again = partial(bpy.ops.export_scene.timbermesh_building, use_written=True)
    with pytest.raises(RuntimeError, match=r"stored in the \.blend file"):
        again(collections="Hut.Folktails")
    assert again(collections="Hut.Folktails", is_confirmed=True) == {"FINISHED"}
    other = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}_other"))
    stored = bpy.data.collections["Hut.Folktails"].meshferry
    stored.written_set = stored.written_set.replace(str(tmp_path), str(other), 1)
    before = files_of(tmp_path)
    with pytest.raises(RuntimeError, match="not at its stored path"):
        again(collections="Hut.Folktails", is_confirmed=True)
    assert files_of(tmp_path) == before


def test_several_collections_share_icon_and_texts(clean_blender, write, tmp_path, monkeypatch):
    from meshferry.blender_data import file_records

    written, real = [], file_records.write_files
    monkeypatch.setattr(
        file_records, "write_files", lambda path, files: [written.append(path.name), *real(path, files)][1:]
    )
    make_hut(clean_blender)
    make_hut(clean_blender, "Hut.IronTeeth", (20, 0, 0), "BaseMetal.IronTeeth")
    write(tmp_path, "Hut.Folktails", "Hut.IronTeeth", kind="WITH_ENTRANCE")
    assert judged(tmp_path) == []
    names = {name.rpartition("/")[2] for name in files_of(tmp_path)}
    assert len([name for name in names if name.endswith(".png")]) == 1
    assert (tmp_path / "Localizations" / "enUS.csv").read_text().count("Hut.DisplayName") == 1
    assert [name.startswith("TemplateCollection") for name in written] == [False] * (len(written) - 2) + [True, True]


def layer_of(layer, name):
    return next(one for one in layer.children if one.collection.name == name)


def test_hidden_and_shared_objects_belong_to_the_model(clean_blender, write, tmp_path):
    """The eye hides stages only from the artist; what Blender does not evaluate is reported."""
    bpy = clean_blender
    hut = make_hut(bpy)
    roof, lost = (collection_of(bpy, name, hut) for name in ("Roof", "Lost"))
    box(bpy, roof, "Roof", (-2, -2, 1.6), (0, 0, 2.9), at=(7, 5, 0))
    box(bpy, lost, "Chimney", (-2, -2, 2), (0, 0, 9), at=(7, 5, 0))
    for name in ("Walls", "ColliderLow"):
        bpy.data.collections["ConstructionStage0"].objects.link(bpy.data.objects[name])
    empty(bpy, bpy.data.collections["ConstructionStage0"], "#Slot#Entrance", (0, 0, 0))
    layer = layer_of(bpy.context.view_layer.layer_collection, hut.name)
    layer_of(layer, "ConstructionStage0").hide_viewport = layer_of(layer, "Lost").exclude = True
    bpy.data.objects["Roof"].hide_set(True)
    bpy.data.objects["Roof"].data.materials.append(bpy.data.materials.new("BaseMetal.IronTeeth"))  # of no face
    write(tmp_path, kind="WITH_ENTRANCE")
    assert "'Chimney': disabled in viewports" in bpy.context.window_manager.meshferry_report.summary
    root = blueprint(tmp_path)
    stage = root["Children"]["#Unfinished"]["Children"]["ConstructionStage0"]
    assert root["BlockObjectSpec"]["Size"]["Z"] == 3
    assert len(root["Children"]["#Finished"]["CollidersSpec"]["BoxColliders"]) == 2
    assert len(stage["CollidersSpec"]["BoxColliders"]) == 1
    names = ("Hut.Folktails.Model", "Hut.Folktails.ConstructionStage0.Model")
    models = [oracle.parse((tmp_path / FOLDER / f"{name}.timbermesh").read_bytes()) for name in names]
    assert [sum(node.vertexCount for node in model.nodes) for model in models] == [48, 48]
    assert judged(tmp_path) == []


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["Hut.Folktails", "Hut.Folktails"], {}, "taken by another collection"),
        (["Hut.Folktails", "hut.Folktails"], {}, "taken by another collection"),
        (["Hut.Folktails", "Nope.Folktails"], {}, "There is no collection 'Nope.Folktails'"),
        (["Nope.Folktails"], {"use_written": True}, "There is no collection 'Nope.Folktails'"),
    ],
)
def test_one_refused_collection_prevents_all(clean_blender, write, tmp_path, names, options, words):
    for name, x in (("Hut.Folktails", 7), ("hut.Folktails", 27)):
        make_hut(clean_blender, name, (x, 5, 0))
    with pytest.raises(RuntimeError, match=words) as caught:
        write(tmp_path, *names, **options)
    assert str(caught.value).strip().count("\n") == 0
    assert files_of(tmp_path) == {}


def test_undo_does_not_take_back_what_is_remembered_of_the_files(clean_blender, write, tmp_path):
    from meshferry.blender_data.property_groups import stored_paths

    bpy = clean_blender
    hut, walls = make_hut(bpy), bpy.data.objects["Walls"]
    write(tmp_path, kind="WITH_ENTRANCE")
    before = hut.meshferry.written_set
    again = partial(bpy.ops.export_scene.timbermesh_building, use_written=True, collections=hut.name)
    for height in (2, 1):
        walls.scale.z = height
        bpy.context.view_layer.update()
        hut.meshferry.written_set = before  # as undo does
        stored_paths.after_undo()
        again()
        assert blueprint(tmp_path)["BlockObjectSpec"]["Size"]["Z"] == 2 * height
    path = tmp_path / FOLDER / "Hut.Folktails.blueprint.json"
    path.write_text("{")
    with pytest.raises(RuntimeError, match=rf"is damaged: {path}; choose"):
        again()


@pytest.mark.slow
def test_an_empty_icon_is_refused(clean_blender, write, tmp_path):
    make_hut(clean_blender)
    clean_blender.data.objects["Walls"].hide_render = True
    with pytest.raises(RuntimeError, match="icon would be empty"):
        write(tmp_path, icon=None)
    assert files_of(tmp_path) == {}


def _outside(bpy):
    bpy.data.objects["#Origin"].location.x -= 2


def _two_origins(bpy):
    empty(bpy, bpy.data.collections["Hut.Folktails"], "#Origin", (0, 0, 0))


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (_outside, {}, "put an empty #Origin at this corner"),
        (_two_origins, {}, "Several empties"),
        (lambda bpy: bpy.data.objects.remove(bpy.data.objects["Walls"]), {}, "has no mesh|no mesh|nothing"),
        (lambda bpy: setattr(bpy.data.materials[0], "name", "BaseMetal.Folktails.001"), {}, r"\.001"),
        (lambda bpy: setattr(bpy.data.materials[0], "name", "BaseMetal.IronTeeth"), {}, "use 'BaseMetal.Folktails'"),
        (lambda bpy: setattr(bpy.data.objects["#Slot#Entrance"], "location", (0, 0, 0)), {}, "put it at the front"),
        (
            lambda bpy: setattr(bpy.data.collections["ConstructionStage0"], "name", "ConstructionStage2"),
            {},
            "stages from 0",
        ),
        (None, {"mod": ""}, "Choose the folder of the mod"),
        (None, {"size_x": 1}, "enter at least 2"),
        (None, {"icon": "/missing.png"}, "missing.png"),
        (None, {"cost": "Log"}, "such as Log 10"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(clean_blender, write, tmp_path, change, options, words):
    make_hut(clean_blender)
    if change is not None:
        change(clean_blender)
    folder = options.pop("mod", tmp_path / "mod")
    with pytest.raises(RuntimeError, match=words) as caught:
        write(folder, **options)
    assert str(caught.value).strip().count("\n") == 0
    assert files_of(tmp_path) == {}


def test_a_failed_write_is_taken_back(clean_blender, write, tmp_path, monkeypatch):
    from meshferry.blender_data import file_records
    from meshferry.io_formats.core.errors import ExportError

    make_hut(clean_blender)
    mod = tmp_path / "mod"
    write(mod, kind="WITH_ENTRANCE")
    before, real = files_of(mod), file_records.write_files

    def failing(path, outputs):
        if path.name.startswith("TemplateCollection"):
            raise ExportError("The disk is full")
        return real(path, outputs)

    monkeypatch.setattr(file_records, "write_files", failing)
    shutil.rmtree(mod / "TemplateCollections")
    clean_blender.data.objects["Walls"].scale.z = 1.2
    with pytest.raises(RuntimeError, match="The disk is full"):
        write(mod, kind="WITH_ENTRANCE", use_replace=True)
    assert files_of(mod) == {name: data for name, data in before.items() if "TemplateCollection" not in name}


def test_materials_of_another_faction_can_be_fixed(clean_blender, write, tmp_path):
    bpy = clean_blender
    make_hut(bpy, material="BaseMetal.IronTeeth")
    with pytest.raises(RuntimeError, match=r"use 'BaseMetal\.Folktails'"):
        write(tmp_path, kind="WITH_ENTRANCE")
    (finding,) = bpy.context.window_manager.meshferry_check.findings
    assert (finding.fix, finding.new_name) == ("unknown-material", "BaseMetal.Folktails")
    bpy.ops.object.meshferry_finding_fix(index=0)
    write(tmp_path, kind="WITH_ENTRANCE")
    assert judged(tmp_path) == []


def bounds_in_world(obj):
    matrix = np.array(obj.matrix_world)
    corners = np.array([point.co[:] for point in obj.data.points]) @ matrix[:3, :3].T + matrix[:3, 3]
    return [*corners.min(axis=0), *corners.max(axis=0)]


def test_cells_are_shown_and_hidden_and_in_no_export(clean_blender, tmp_path):
    bpy = clean_blender
    hut = make_hut(bpy)
    before, path = {*bpy.data.objects.keys()}, tmp_path / "hut.timbermesh"
    bpy.ops.export_scene.timbermesh(filepath=str(path))
    exported = path.read_bytes()
    show = partial(bpy.ops.object.timbermesh_cells, collection=hut.name)
    bpy.ops.ed.undo_push(message="start")
    show()
    bpy.context.view_layer.update()
    added = {name: bpy.data.objects[name] for name in {*bpy.data.objects.keys()} - before}
    assert {*added} == {"Cells", "Entrance Cell"}
    assert not any(obj in hut.all_objects.values() for obj in added.values())
    assert bounds_in_world(added["Cells"]) == pytest.approx([5, 3, 0, 7, 5, 2], abs=1e-5)
    assert bounds_in_world(added["Entrance Cell"]) == pytest.approx([5, 5, 0, 6, 6, 1], abs=1e-5)
    assert [added["Cells"].data.points_u, added["Cells"].data.points_w] == [3, 3]
    bpy.ops.export_scene.timbermesh(filepath=str(path))
    assert path.read_bytes() == exported
    bpy.ops.ed.undo_push(message="shown")
    bpy.ops.ed.undo()
    assert {*bpy.data.objects.keys()} == before
    bpy.ops.ed.redo()
    assert len(bpy.data.lattices) == 2
    bpy.ops.object.timbermesh_cells(collection="Hut.Folktails")
    assert ({*bpy.data.objects.keys()}, len(bpy.data.lattices)) == (before, 0)
    bpy.data.objects["#Origin"].location.x -= 2
    with pytest.raises(RuntimeError, match="put an empty #Origin"):
        bpy.ops.object.timbermesh_cells(collection="Hut.Folktails")
    assert len(bpy.data.lattices) == 0


@pytest.mark.parametrize("is_there", [True, False])
def test_a_model_outside_gets_an_origin_at_its_corner(clean_blender, write, tmp_path, is_there):
    bpy = clean_blender
    hut = make_hut(bpy)
    bpy.data.objects["#Origin"].location.x -= 2
    if not is_there:
        bpy.data.objects.remove(bpy.data.objects["#Origin"])
    with pytest.raises(RuntimeError, match="put an empty #Origin"):
        write(tmp_path, kind="WITH_ENTRANCE")
    (finding,) = bpy.context.window_manager.meshferry_check.findings
    assert finding.fix == "model-outside"
    bpy.ops.object.meshferry_finding_fix(index=0)
    (mark,) = [obj for obj in hut.objects if obj.name.startswith("#Origin")]
    assert [*mark.location] == pytest.approx([7.3, 5.3, 0], abs=1e-5)
    write(tmp_path, kind="WITH_ENTRANCE")
    assert judged(tmp_path) == []


def test_a_model_that_another_program_changed_is_not_replaced(clean_blender, write, tmp_path):
    hut = make_hut(clean_blender)
    write(tmp_path, kind="WITH_ENTRANCE")
    model = tmp_path / FOLDER / "Hut.Folktails.Model.timbermesh"
    model.write_bytes(b"of another program")
    before = files_of(tmp_path)
    with pytest.raises(RuntimeError, match=r"Model\.timbermesh' was changed by another.*with Replace"):
        clean_blender.ops.export_scene.timbermesh_building(use_written=True, collections=hut.name)
    assert files_of(tmp_path) == before
    write(tmp_path, kind="WITH_ENTRANCE", use_replace=True)
    assert files_of(tmp_path)[f"{FOLDER}/{model.name}.bak"] == b"of another program"


def test_an_import_shows_what_was_written(clean_blender, write, tmp_path):
    bpy = clean_blender
    make_hut(bpy)
    write(tmp_path, kind="WITH_ENTRANCE")
    wanted = [obj for obj in bpy.data.objects if obj.name.startswith(("Walls", "Collider"))]
    boxes = {
        obj.name: np.array([(obj.matrix_world @ v.co)[:] for v in obj.data.vertices]) - (7, 5, 0) for obj in wanted
    }
    bpy.ops.import_scene.timbermesh(filepath=str(tmp_path / FOLDER / "Hut.Folktails.blueprint.json"))
    bpy.context.view_layer.update()
    made = {obj.name: obj for obj in bpy.context.scene.objects if obj.meshferry.import_id}
    points = np.array(made["Entrance"].matrix_world.translation)
    assert points == pytest.approx((-1.5, 0.5, 0), abs=1e-4)

    def bounds(corners):
        return np.array([corners.min(axis=0), corners.max(axis=0)])

    found = [
        bounds(np.array([(obj.matrix_world @ v.co)[:] for v in obj.data.vertices]))
        for obj in made.values()
        if obj.type == "MESH"
    ]
    for corners in boxes.values():
        assert any(np.allclose(bounds(corners), other, atol=1e-4) for other in found)


@pytest.mark.skipif(not BUILDINGS.is_dir(), reason="the samples of mods are not on this machine")
@pytest.mark.parametrize(
    ("folder", "stem", "size", "door", "triangles", "like"),
    [
        ("dual_district_storage/Buildings/Storage/DualDistrictTank", "DualDistrictTank", (2, 1, 3), -0.5, 623, False),
        (
            "dual_district_storage/Buildings/Storage/DualDistrictWarehouse",
            "DualDistrictWarehouse",
            (3, 1, 1),
            -1.5,
            348,
            False,
        ),
        ("crane/Root/Buildings/DistrictManagement/Crane", "Crane", (1, 1, 1), -0.5, 329, True),
    ],
)
def test_real_models_become_the_same_building(
    clean_blender, write, tmp_path, folder, stem, size, door, triangles, like
):
    from meshferry.io_formats.api import read_scene

    bpy = clean_blender
    source = BUILDINGS / folder
    hut = collection_of(bpy, f"My{stem}.Folktails")
    for part, home in (("", hut), ("ConstructionStage0.", collection_of(bpy, "ConstructionStage0", hut))):
        path = source / f"{stem}.Folktails.{part}Model.timbermesh"
        bpy.ops.import_scene.timbermesh(filepath=str(path))
        made = next(one for one in bpy.data.collections if one.meshferry.source_path == str(path))
        for obj in [*made.all_objects]:
            home.objects.link(obj)
        bpy.context.scene.collection.children.unlink(made)
    if not any(obj.name.startswith("#Slot#Entrance") for obj in hut.all_objects):
        empty(bpy, hut, "Entrance", (door, 0, 0))
    bpy.context.view_layer.update()
    original = json.loads((source / f"{stem}.Folktails.blueprint.json").read_bytes())
    cost = ", ".join(f"{good['Id']} {good['Amount']}" for good in original["BuildingSpec"]["BuildingCost"])
    options = (
        {"kind": "LIKE", "like": str(source / f"{stem}.Folktails.blueprint.json")}
        if like
        else {"kind": "WITH_ENTRANCE"}
    )
    write(tmp_path, hut.name, cost=cost, tool_group=original["PlaceableBlockObjectSpec"]["ToolGroupId"], **options)
    (written,) = tmp_path.glob("Buildings/*/*/*.blueprint.json")
    root = json.loads(written.read_text())
    assert tuple(root["BlockObjectSpec"]["Size"].values()) == size
    assert root["BlockObjectSpec"]["Entrance"] == original["BlockObjectSpec"]["Entrance"]
    assert root["BuildingSpec"]["BuildingCost"] == original["BuildingSpec"]["BuildingCost"]
    models = (source / f"{stem}.Folktails.Model.timbermesh", written.with_name(f"My{stem}.Folktails.Model.timbermesh"))
    old, new = map(read_scene, models)
    assert new.triangle_count == old.triangle_count == triangles
    materials = [{name for node in scene.nodes if node.mesh for name in node.mesh.materials} for scene in (old, new)]
    assert materials[0] == materials[1]
    unknown = {text.partition(" ")[0] for _level, code, _file, text in judged(tmp_path) if code == "spec-unknown"}
    assert len(judged(tmp_path)) == len(unknown)
    assert unknown <= {"CraneSpec", "WorkplaceIlluminatorSpec"}  # of the mod's code, and newer than the check


def test_check_of_the_collection_reports_what_an_export_would_refuse(clean_blender, write, tmp_path):
    bpy = clean_blender
    hut = make_hut(bpy)
    write(tmp_path, kind="WITH_ENTRANCE")
    before = files_of(tmp_path)
    findings = bpy.context.window_manager.meshferry_check.findings
    for change, words in (
        (lambda: None, ""),
        (lambda: setattr(bpy.data.materials["BaseMetal.Folktails"], "name", "BaseMetal.IronTeeth"), "does not load it"),
        (lambda: bpy.data.objects.remove(bpy.data.objects["#Slot#Entrance"]), "needs an entrance"),
    ):
        change()
        bpy.ops.export_scene.timbermesh_check(collection=hut.name)
        assert any(words in finding.message for finding in findings) or not (words or len(findings)), words
        if words:
            bpy.data.materials[0].name = "BaseMetal.Folktails"
    assert files_of(tmp_path) == before


@pytest.mark.slow
def test_a_turned_building_and_a_collider_in_the_air_change_nothing_else(clean_blender, write, tmp_path):
    """An origin counts with its rotation, also for colliders; those are not part of model and icon."""
    bpy = clean_blender
    hut = make_hut(bpy)
    write(tmp_path / "mod", kind="WITH_ENTRANCE", icon=None)
    before = files_of(tmp_path / "mod")
    stand = empty(bpy, bpy.context.scene.collection, "Stand", (3, 0, 2))
    stand.rotation_euler.z = math.radians(90)
    for obj in hut.all_objects:
        obj.parent = stand
    bpy.context.view_layer.update()
    write(tmp_path / "turned", kind="WITH_ENTRANCE", icon=None)
    name = f"{FOLDER}/Hut.Folktails.blueprint.json"
    assert json.loads(files_of(tmp_path / "turned")[name]) == json.loads(before[name])
    bpy.data.objects["ColliderRoof"].location.z += 5
    bpy.data.objects.remove(stand)
    bpy.context.view_layer.update()
    write(tmp_path / "mod", kind="WITH_ENTRANCE", icon=None, use_replace=True)
    after = files_of(tmp_path / "mod")
    assert [path for path in before if after[path] != before[path]] == [name]


class Layout:
    """Remembers what is drawn."""

    def __init__(self):
        self.drawn = []

    def __getattr__(self, _name):
        return lambda *_args, **_options: self

    def panel(self, _name, **_options):
        return self, self

    def prop(self, _owner, name, **_options):
        self.drawn.append(name)

    def operator(self, name, **options):
        self.drawn.append(options["text"])
        return SimpleNamespace()


def test_dialog_and_buttons_offer_what_the_collection_remembers(clean_blender, write, tmp_path):
    from meshferry.operators.families.timbermesh import buildings

    bpy = clean_blender
    hut = make_hut(bpy)
    layer = bpy.context.view_layer.layer_collection.children[hut.name]
    bpy.context.view_layer.active_layer_collection = layer
    layouts = [Layout(), Layout(), Layout()]
    buildings.draw_buttons(layouts[0], bpy.context)
    write(tmp_path, kind="WITH_ENTRANCE", cost="Plank 3", use_replace=True)
    buildings.draw_buttons(layouts[1], bpy.context)
    drawn = ["New Timberborn Building…", "Show Cells", "Re-export Building"]
    assert [layout.drawn for layout in layouts[:2]] == [drawn[:2], drawn]
    operator = buildings.EXPORT_SCENE_OT_timbermesh_building
    owner = SimpleNamespace(
        **{option.name: option.default for option in buildings.OPTIONS},
        layout=layouts[2],
        asked="",
        use_written=False,
        bl_label="",
        chosen=lambda _context: [hut],
    )
    manager = SimpleNamespace(invoke_props_dialog=lambda *_args, **_options: {"RUNNING_MODAL"})
    context = SimpleNamespace(window_manager=manager)
    assert operator.invoke(owner, context, None) == {"RUNNING_MODAL"}
    assert (owner.kind, owner.cost, owner.mod, owner.use_replace) == ("WITH_ENTRANCE", "Plank 3", str(tmp_path), False)
    operator.draw(owner, bpy.context)
    assert {*layouts[2].drawn} == {option.name for option in buildings.OPTIONS} - {"like", "wellbeing"}
