"""New buildings: the files of the mod, insertion of entries and texts, refusals, changes of a written blueprint."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats.core.errors import ExportError, MeshferryError
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.timbermesh.blueprint.json_text import TextEdits, parse
from meshferry.io_formats.timbermesh.building import cells
from meshferry.io_formats.timbermesh.building.mod_folder import with_texts
from meshferry.io_formats.timbermesh.building.names import game_names
from meshferry.io_formats.timbermesh.building.planning import edited_blueprint, name_and_faction
from timber_buildings import BUILDINGS, add_building, files_of, judged

LIST = "TemplateCollections/TemplateCollection.Buildings.Folktails.blueprint.json"
HUT = "Buildings/Decoration/Hut/Hut.Folktails"
CRANE = {
    "BuildingSpec": {"SelectionSoundName": "Crane", "BuildingCost": [{"Id": "Gear", "Amount": 4}], "ScienceCost": 300},
    "BlockObjectSpec": {"Size": {"X": 2, "Y": 2, "Z": 1}, "Blocks": [], "Entrance": {"HasEntrance": True}},
    "WorkplaceSpec": {"MaxWorkers": 1},
    "WaterInputSpec": {"WaterInputCoordinates": {"X": 1, "Y": 0, "Z": 0}, "OtherCoordinates": {"X": "?"}},
    "TransformSlotInitializerSpec": {"Slots": [{"SlotKeyword": "Seat"}]},
    "TemplateAttachmentsSpec": {"Attachments": [{"AttachmentId": "Smoke", "Parent": "#Chimney"}]},
    "PlaceableBlockObjectSpec": {"ToolShape": "Square", "Layout": "Single", "DevModeTool": False},
    "LabeledEntitySpec": {"FlavorDescriptionLocKey": "Building.Crane.FlavorDescription"},
    "TemplateSpec": {"BackwardCompatibleTemplateNames": ["OldCrane"], "RequiredFeatureToggle": ""},
    "Children": {"#Finished": {"Children": {"Arm": {}}}},
}


def blueprint(folder: Path, path: str = HUT) -> Any:
    return json.loads((folder / f"{path}.blueprint.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("given", "size", "base"),
    [
        ({}, (1, 1, 1), "ConstructionBase1x1#nested"),
        ({"wellbeing": ""}, (1, 1, 1), "ConstructionBase1x1#nested"),
        ({"kind": "PLATFORM", "low": (-4, -4, 0)}, (4, 4, 1), None),
        ({"low": (-3.3, -3.3, 0), "high": (0.3, 0.3, 2.05), "entrance": (1, -1, 0), "stages": 2}, (3, 3, 2), "3x3"),
        ({"kind": "WITH_ENTRANCE", "entrance": (0, -1, 0), "stages": 1}, (1, 1, 1), "1x1"),
        ({"low": (-2, -1, 0)}, (2, 1, 1), "ConstructionBase1x2#nested"),
        ({"low": (-4, -4, 0), "stages": 2}, (4, 4, 1), None),
        ({"size_z": 2, "high": (0, 0, 1.05)}, (1, 1, 2), "1x1"),
    ],
)
def test_files_of_a_building(tmp_path: Path, given: dict[str, Any], size: tuple[int, ...], base: str | None) -> None:
    changed, messages = add_building(tmp_path / "My Mod", **given)
    assert judged(tmp_path / "My Mod") == []
    names = [path.relative_to(tmp_path / "My Mod").as_posix() for path in changed]
    assert names[-1] == LIST
    assert {"manifest.json", "Localizations/enUS.csv", "Buildings/Decoration/Hut/HutIcon.png.meta.json"} <= {*names}
    root = blueprint(tmp_path / "My Mod")
    spec = root["BlockObjectSpec"]
    assert tuple(spec["Size"].values()) == size
    assert all(type(count) is int for count in spec["Size"].values())
    assert len(spec["Blocks"]) == np.prod(size)
    assert (spec["Blocks"][-1]["Stackable"] == "BlockObject") == (given.get("kind") == "PLATFORM")
    children = root["Children"]["#Unfinished"]["Children"]
    assert any(base in name for name in children) if base else len(children) == given.get("stages", 0)
    thresholds = root.get("ConstructionSiteProgressVisualizerSpec", {}).get("ProgressThresholds", [])
    assert len(thresholds) == max(len(children) - 1, 0)
    box = root["Children"]["#Finished"]["CollidersSpec"]["BoxColliders"][0]
    low, high = np.array(given.get("low", (-1, -1, 0))), np.array(given.get("high", (0, 0, 1)))
    x, z, y = (high - low).tolist()  # the game's Y is up
    assert list(box["Size"].values()) == pytest.approx([x, y, z])
    assert bool(messages) == (base is None)


def test_a_turned_base_covers_the_cells() -> None:
    child = cells.base_child((2, 1, 1), {"ConstructionBase1x2"})["ConstructionBase1x2#nested"]
    place = child["Modification"]["TransformSpec"]["Position"]
    corners = [(z + place["X"], -x + place["Z"]) for x, z in ((0, 0), (1, 2))]  # by Unity: x, z -> z, -x
    assert sorted(corners) == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"TemplateCollectionSpec": {"B": ["a"]}}', b'{"TemplateCollectionSpec": {"B": ["a", "x"]}}'),
        (b'{\r\n  "B": [\r\n    "a", // c\r\n  ]\r\n}', b'{\r\n  "B": [\r\n    "a", // c\r\n    "x",\r\n  ]\r\n}'),
        (b'{\n\t"B": [\n\t\t"a" // c\n\t]\n}', b'{\n\t"B": [\n\t\t"a", // c\n\t\t"x"\n\t]\n}'),
        (b'{\n  "B": []\n}', b'{\n  "B": [\n    "x"\n  ]\n}'),
        (b'{\n  "B": [\n  ]\n}', b'{\n  "B": [\n    "x"\n  ]\n}'),
        (b'{"B": []}', b'{"B": [\n  "x"\n]}'),
        (b'\xef\xbb\xbf{"B": ["a" ,]}', b'\xef\xbb\xbf{"B": ["a" , "x",]}'),
    ],
)
def test_an_element_is_appended_and_all_other_bytes_stay(data: bytes, expected: bytes) -> None:
    edits, root = TextEdits(data), parse(data)
    array = root.find("B") or root.find("TemplateCollectionSpec", "B")
    assert array is not None
    edits.append(array, "x")
    assert edits.result() == expected
    parse(expected)


@pytest.mark.parametrize(
    ("data", "is_replaced", "expected"),
    [
        (b"ID,Text,Comment\nA,1,c", False, b'ID,Text,Comment\nA,1,c\nB,"x, y",\n'),
        (b"\xef\xbb\xbfID,Text,Comment\r\n", False, b'\xef\xbb\xbfID,Text,Comment\r\nB,"x, y",\r\n'),
        (b'ID,Text,Comment\n// "don\'t\nA,"1\nB",c\n', False, b'ID,Text,Comment\n// "don\'t\nA,"1\nB",c\nB,"x, y",\n'),
        (b"ID,Text,Comment\nB,old,c\nA,1,\n", False, b"ID,Text,Comment\nB,old,c\nA,1,\n"),
        (b"ID,Text,Comment\nB,old,c\nA,1,\n", True, b'ID,Text,Comment\nB,"x, y",c\nA,1,\n'),
        (b'ID,Text,Comment\nB,"x, y","c"\n', True, b'ID,Text,Comment\nB,"x, y","c"\n'),
        (b'ID,Text,Comment\nA,5" x,\nB,6" y,c\nC,,\n', True, b'ID,Text,Comment\nA,5" x,\nB,"x, y",c\nC,,\n'),
        (b"ID,Text,Comment\nA,1,\n\n\n", False, b'ID,Text,Comment\nA,1,\n\n\nB,"x, y",\n'),
        (b"\xef\xbb\xbf", False, b'\xef\xbb\xbfID,Text,Comment\nB,"x, y",\n'),
    ],
)
def test_texts_are_added_and_all_other_bytes_stay(data: bytes, is_replaced: bool, expected: bytes) -> None:
    assert with_texts(data, {"B": "x, y"}, is_replaced=is_replaced) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cost": "Log"}, "such as Log 10"),
        ({"cost": "Log 0"}, "amount above 0"),
        ({"cost": "Log 10 Plank 5"}, "such as Log 10"),
        ({"cost": "Log 1, Log 2"}, "'Log 2'"),
        ({"cost": f"Log {'9' * 5000}"}, "such as Log 10"),
        ({"material": "BaseMetal.IronTeeth"}, "use 'BaseMetal.Folktails'"),
        ({"material": "BaseWood_Grey.IronTeeth"}, "use one of Folktails"),
        ({"kind": "WITH_ENTRANCE"}, "#Slot#Entrance"),
        ({"high": (0.6, 0, 1)}, "#Origin"),
        ({"low": (-4, -4, 0), "high": (-3, -3, 1)}, "#Origin"),
        ({"high": (0, 0, 40)}, "scale it"),
        ({"low": (-3, -1, 0), "size_x": 2}, "enter at least 3"),
        ({"collection": "Bench.Folktails"}, "taken by the game"),
        ({"collection": "bench.Folktails"}, "taken by the game"),
        ({"collection": "Old.Folktails"}, "choose Replace"),
        ({"kind": "LIKE", "like": "Crane"}, "need the game's folder"),
        ({"kind": "LIKE", "like": ""}, "neither a file nor a building"),
        ({"kind": "LIKE", "like": "x" * 300}, "neither a file nor a building"),
        ({"icon": b"GIF"}, "neither a PNG nor a JPG"),
        ({"collection": "Old.Folktails", "icon": b"\xff\xd8\xff", "use_replace": True}, "OldIcon.png; remove it"),
    ],
)
def test_refusals_write_nothing(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    add_building(tmp_path, "Old.Folktails")
    before = files_of(tmp_path)
    with pytest.raises(ExportError) as caught:
        add_building(tmp_path, **given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("manifest.json", b"{"),
        ("manifest.json", b"{}"),
        ("manifest.json", b'{"Name": 5}'),
        (LIST, b'{"TemplateCollectionSpec": {'),
        (LIST, b'{"TemplateCollectionSpec": {"CollectionId": "Buildings.Folktails", "Blueprints": 5}}'),
        ("TemplateCollections/Other.blueprint.json", b"\xff"),
        ("Lists/Mine.blueprint.json", b'{"TemplateCollectionSpec": {'),
        ("Localizations/enUS.csv", b"ID,Text,Comment\n\xff,,\n"),
        ("Localizations/enUS.csv", b"ID,Text,Comment\nA," + b"x" * 200_000),
        ("Localizations", b"not a folder"),
    ],
)
def test_damaged_files_of_the_mod_are_named(tmp_path: Path, path: str, data: bytes) -> None:
    place = tmp_path / path
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(data)
    with pytest.raises(MeshferryError) as caught:
        add_building(tmp_path)
    assert place.name in str(caught.value)
    assert files_of(tmp_path) == {path: data}


@pytest.mark.parametrize(
    ("name", "choice", "materials", "expected"),
    [
        ("Hut.IronTeeth", "AUTO", [], ("Hut", "IronTeeth")),
        ("Hut", "AUTO", ["Dirt", "BaseMetal.Folktails"], ("Hut", "Folktails")),
        ("Hut", "IRONTEETH", [], ("Hut", "IronTeeth")),
        ("Hut", "AUTO", ["Dirt"], "The faction is not known"),
        ("Hut.Folktails.001", "AUTO", [], "without a number"),
        ("Hut.Beavers", "AUTO", [], "then .Folktails or .IronTeeth"),
        ("Garden Hut", "AUTO", [], "letters, digits"),
        ("H" * 100, "FOLKTAILS", [], "up to 99"),
    ],
)
def test_name_and_faction(name: str, choice: str, materials: list[str], expected: Any) -> None:
    if isinstance(expected, tuple):
        assert name_and_faction(name, choice, materials, game_names("", Report())) == expected
    else:
        with pytest.raises(ExportError, match=expected):
            name_and_faction(name, choice, materials, game_names("", Report()))


@pytest.mark.parametrize(
    ("point", "expected"),
    [((-1.5, 0, 0), (1, -1, 0)), ((-0.5, 0.5, 0.8), (0, -1, 1)), ((-0.5, -2, 0), None), ((0.5, 0, 0), None)],
)
def test_entrance(point: tuple[float, float, float], expected: Any) -> None:
    if expected is not None:
        assert cells.entrance_at("Door", point, (3, 2, 2)) == expected
    else:
        with pytest.raises(ExportError, match="put it at the front"):
            cells.entrance_at("Door", point, (3, 2, 2))


def test_a_second_building_and_the_same_again(tmp_path: Path) -> None:
    """What is there stays: manifest, entries, texts, icon; Replace of the same changes nothing."""
    (tmp_path / "version-1.2").mkdir()
    (tmp_path / "version-1.10").mkdir()
    add_building(tmp_path, "Old.Folktails")
    assert {path.split("/")[0] for path in files_of(tmp_path)} == {"version-1.10"}
    before = files_of(tmp_path)
    add_building(tmp_path, "Hut.IronTeeth", material="BaseMetal.IronTeeth")
    changed, _messages = add_building(tmp_path)
    wanted = ["Hut.Folktails.Model.timbermesh", "Hut.Folktails.blueprint.json", Path(LIST).name]
    assert [path.name for path in changed] == wanted
    after = files_of(tmp_path)
    assert {path.rpartition("/")[2] for path in before if after[path] != before[path]} == {Path(LIST).name, "enUS.csv"}
    assert judged(tmp_path) == []
    assert add_building(tmp_path, use_replace=True)[0] == {}
    changed, _messages = add_building(tmp_path, use_replace=True, high=(0, 0, 1.5), description="Small, warm")
    assert len(changed) == 3
    assert files_of(tmp_path)["version-1.10/Localizations/enUS.csv"].count(b"Hut.Description") == 1


@pytest.mark.parametrize("folder", ["My Mod", "My Mod/version-1.0", "Мод"])
def test_a_new_mod_is_named_after_its_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    name = folder.partition("/")[0]
    add_building(tmp_path / name, tool_group="../../../out", description="\udcff")
    manifest = json.loads((tmp_path / folder / "manifest.json").read_text("utf-8"))
    assert (manifest["Name"], manifest["Id"]) == (name, {"My Mod": "MyMod"}.get(name, "Modd09cd0bed0b4"))
    assert (tmp_path / folder / "Buildings/_out/Hut/Hut.Folktails.blueprint.json").is_file()


def test_unusual_files_of_a_mod_are_kept_and_used(tmp_path: Path) -> None:
    header = b"ID,Text,Comment\n"
    files = {
        "Manifest.json": b'{"Name": "A", "Version": "1", "Id": "A", "MinimumGameVersion": "1.0", "Description": ""}',
        "Factions/Faction.Folktails.blueprint.json": b'{"FactionSpec": {"MaterialCollectionIds": 5}}',
        "Localizations/enUS.csv": header,
        "Localizations/enUS_more.csv": header + b"Building.Hut.DisplayName,Mine,\nBuilding.Hut.Description,Mine,\n",
        "Buildings/Decoration/Hut/HutIcon.png": b"",
    }
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    add_building(tmp_path)
    after = files_of(tmp_path)
    assert [path for path in files if after[path] != files[path]] == ["Buildings/Decoration/Hut/HutIcon.png"]
    assert "manifest.json" not in after


@pytest.mark.parametrize(("scale", "is_noticed"), [(1, False), (100, True)])
def test_colliders_far_outside_are_noticed(tmp_path: Path, scale: int, is_noticed: bool) -> None:
    low, high = np.array((-1.0, -1.0, 0.0)), np.array((0.0, 0.0, 1.0))
    _changed, messages = add_building(tmp_path, collider=(low * scale, high * scale))
    assert messages == ["a collider or Access is 99.00 m outside of the cells; check it"] * is_noticed


@pytest.mark.parametrize(
    "members",
    [{}, {"BuildingSpec": None}, {"BlockObjectSpec": []}, {"LabeledEntitySpec": 5}, {"BuildingAccessibleSpec": None}],
)
def test_damaged_templates_are_refused(tmp_path: Path, members: dict[str, Any]) -> None:
    like = tmp_path / "like.json"
    like.write_text(json.dumps({**CRANE, **members} if members else []))
    with pytest.raises(ExportError, match="not the blueprint of a building"):
        add_building(tmp_path / "mod", kind="LIKE", like=str(like), entrance=(0, -1, 0))


def test_another_blueprint_as_template(tmp_path: Path) -> None:
    """Its game logic stays, whole numbers whole; nodes and cells that the model lacks are listed."""
    like = tmp_path / "Crane.blueprint.json"
    like.write_text(json.dumps(CRANE))
    given = {"kind": "LIKE", "like": str(like), "entrance": (0, -1, 0), "nodes": ("#Slot#Seat1",)}
    _changed, messages = add_building(tmp_path / "mod", **given)
    (message,) = [text for text in messages if "nodes" in text]
    assert "'#Chimney" in message and "Seat" not in message
    assert "'[1, 0, 0] (WaterInputSpec" in message
    text = (tmp_path / "mod" / f"{HUT}.blueprint.json").read_text()
    assert '"MaxWorkers": 1\n' in text
    root = json.loads(text)
    assert root["BuildingSpec"] == {
        "SelectionSoundName": "Crane",
        "BuildingCost": [{"Id": "Log", "Amount": 10}],
        "ScienceCost": 0,
    }
    assert root["TemplateSpec"]["BackwardCompatibleTemplateNames"] == []
    assert root["LabeledEntitySpec"]["FlavorDescriptionLocKey"] == ""
    assert [*root["Children"]] == ["#Finished", "#Unfinished"]
    with pytest.raises(ExportError, match="needs an entrance"):
        add_building(tmp_path / "other", kind="LIKE", like=str(like))


def test_names_of_the_installed_game_are_certain(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "Blueprints.zip", "w") as archive:
        for path, content in {
            "Goods/Good.Log": {"GoodSpec": {"Id": "Log"}},
            "MaterialCollections/MaterialCollection.Folktails": {
                "MaterialCollectionSpec": {"CollectionId": "Folktails", "Materials": ["M/BaseMetal.Folktails"]}
            },
            "Buildings/Metal/Crane/Crane.Folktails": CRANE,
            "ConstructionBases/ConstructionBase1x1/ConstructionBase1x1": {},
        }.items():
            archive.writestr(f"Blueprints/{path}.blueprint.json", json.dumps(content))
    report = Report()
    known = game_names(str(tmp_path), report)
    assert (known.archive is not None, report.messages, known.bases) == (True, [], ["ConstructionBase1x1"])
    add_building(tmp_path / "mod", known=known)
    like = {"kind": "LIKE", "like": "Crane.Folktails", "entrance": (0, -1, 0), "nodes": ("#Slot#Seat",)}
    add_building(tmp_path / "mod", "Lift.Folktails", known=known, **like)
    for given, words in (
        ({"cost": "Gear 1"}, "'Gear'"),
        ({"material": "Dirt"}, "'Dirt'"),
        ({"collection": "Crane.Folktails"}, "taken by the game"),
        ({"collection": "Crane.IronTeeth"}, "taken by the game"),  # their texts have the same names
    ):
        with pytest.raises(ExportError, match=words):
            add_building(tmp_path / "mod", **{"collection": "New.Folktails", "known": known, **given})
    assert game_names("/missing", report).archive is None
    assert len(report.messages) == 1


def test_only_what_the_scene_changed_goes_into_the_blueprint() -> None:
    box = (np.array([-1.0, -1.0, 0.0]), np.array([0.0, 0.0, 1.0]))
    tall = (box[0], np.array([0.0, 0.0, 2.0]))
    old = cells.geometry(cells.Shape((1, 1, 1), [box]), is_stackable=False)
    new = cells.geometry(cells.Shape((1, 1, 2), [tall]), is_stackable=False)
    stored = {path: json.loads(json.dumps(value)) for path, value in old.items()}
    root: dict[str, Any] = {"Mine": {"X": 1}}
    for path, value in old.items():
        *above, last = path.split("/")
        target = root
        for name in above:
            target = target.setdefault(name, {})
        target[last] = value
    data = b"// by hand\r\n" + json.dumps(root, indent=4).replace("\n", "\r\n").encode()
    assert edited_blueprint(data, stored, old) == data
    edited = edited_blueprint(data, stored, new)
    content = json.loads(edited.partition(b"\r\n")[2])
    assert (content["Mine"], content["BlockObjectSpec"]["Size"]["Z"]) == ({"X": 1}, 2)
    assert len(content["BlockObjectSpec"]["Blocks"]) == 2
    assert edited.count(b"\n") == edited.count(b"\r\n")
    with pytest.raises(ExportError, match=r"BlockObjectSpec/Size was changed in the file and in the scene.*Replace"):
        edited_blueprint(data.replace(b'"Z": 1', b'"Z": 3', 1), stored, new)
    more = cells.geometry(cells.Shape((1, 1, 2), [tall, box]), is_stackable=False)
    with pytest.raises(ExportError, match="number of stages or colliders"):
        edited_blueprint(data, stored, more)


@pytest.mark.skipif(not BUILDINGS.is_dir(), reason="the samples of mods are not on this machine")
@pytest.mark.parametrize("mod", ["dual_district_storage", "shanty_speaker/Data"])
def test_buildings_join_real_mods(tmp_path: Path, mod: str) -> None:
    folder = tmp_path / "mod"
    shutil.copytree(BUILDINGS / mod, folder)
    shutil.copy(BUILDINGS / mod.partition("/")[0] / "manifest.json", folder)
    before, findings = files_of(folder), judged(folder)
    add_building(folder, "Hut.IronTeeth", material="BaseMetal.IronTeeth", description="x")
    after = files_of(folder)
    changed = {path for path in before if after[path] != before[path]}
    assert len(changed) == 2
    for path in changed:  # the entry, and the one before it, which got a comma; or two texts
        assert len({*after[path].splitlines()} - {*before[path].splitlines()}) == 2
    assert judged(folder) == findings
