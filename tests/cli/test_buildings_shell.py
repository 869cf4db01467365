"""New buildings of Timberborn on the command line."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from meshferry.io_formats import api
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from timber_buildings import BUILDINGS, PICTURE, add_building, box_scene, files_of, is_judge_there, judged

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def blend(clean_blender: Any, tmp_path: Path) -> Path:
    """Return a .blend file with a box of one cell in a collection for each faction, and other objects beside it."""
    bpy = clean_blender
    group = bpy.data.collections.new("Buildings")
    bpy.context.scene.collection.children.link(group)
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Cube", bpy.data.meshes.new("Cube")))
    for faction in ("Folktails", "IronTeeth"):
        collection = bpy.data.collections.new(f"Crate.{faction}")
        group.children.link(collection)
        mesh = bpy.data.meshes.new("Crate")
        corners = [(x, y, z) for x in (-1, 0) for y in (-1, 0) for z in (0, 1)]
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        mesh.from_pydata(corners, [], faces)
        mesh.materials.append(bpy.data.materials.new(f"BaseMetal.{faction}"))
        collection.objects.link(bpy.data.objects.new("Crate", mesh))
    path = tmp_path / "crates.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def test_buildings_of_a_file(meshferry: Callable, blend: Path, tmp_path: Path) -> None:
    mod, picture = tmp_path / "mod", tmp_path / "icon.png"
    picture.write_bytes(PICTURE)
    options = ("--cost", "Plank 2", "--wellbeing", "", "--icon", picture)
    done = meshferry("building", blend, "--mod", mod, "--json", *options)
    assert done.status == 0, done.err
    (entry,) = done.entries
    assert [fact["building"] for fact in entry["buildings"]] == ["Crate.Folktails", "Crate.IronTeeth"]
    assert entry["buildings"][0]["size"] == [1, 1, 1]
    assert {Path(name).relative_to(mod).as_posix() for name in entry["files"]} == {*files_of(mod)}
    assert judged(mod) == []
    before = files_of(mod)
    done = meshferry("building", blend, "--mod", mod, "--json", "--collection", "Crate.Folktails")
    assert (done.status, done.entries[0]["error"].count("Replace"), files_of(mod)) == (1, 1, before)
    done = meshferry("building", blend, "--mod", mod, "--replace", *options)
    assert (done.status, done.out.count("0 files changed"), files_of(mod)) == (0, 1, before)
    assert meshferry("building", blend, "--mod", mod, "--collection", "Nowhere").status == 1
    (mod / "manifest.json").write_text("{")
    done = meshferry("building", blend, "--mod", mod, "--replace", *options)
    assert (done.status, f"{mod / 'manifest.json'}: The file is damaged" in done.err) == (1, True)


HUT = "Buildings/Decoration/Hut/Hut.Folktails.blueprint.json"
LIST = "TemplateCollections/TemplateCollection.Buildings.Folktails.blueprint.json"
TEXTS = "Localizations/enUS.csv"
DAMAGES = [
    ("manifest.json", '"Version": "1.0.0.0"', '"Version": "new"', "manifest-value"),
    ("manifest.json", '"Name"', '"Names"', "damaged-file"),
    ("manifest.json", '"Id": "mod"', '"Id": ""', "manifest-value"),
    ("manifest.json", "{", "", "damaged-file"),
    (TEXTS, "ID,Text", "ID,Texts", "unreadable-texts"),
    (TEXTS, "Hut.DisplayName", "Hut.Name", "unknown-name"),
    (TEXTS, ",Hut,", ",Hut,small,hut,", "columns-of-texts"),
    (LIST, '"TemplateCollectionSpec": {', '"TemplateCollectionSpec": ', "damaged-file"),
    (LIST, "#append", "", "list-replaced"),
    (LIST, "Buildings.Folktails", "Bilding.Folktails", "unknown-collection"),
    (LIST, "Hut.Folktails.blueprint", "Hut.Folktails", "list-entry"),
    (LIST, "Hut.Folktails.blueprint", "Hat.Folktails.blueprint", "not-in-mod"),
    (LIST, "Decoration/Hut/", "Decoration/hut/", "case-of-path"),
    (LIST, "TemplateCollectionSpec", "TemplateCollection", "not-listed"),
    (HUT, '"TemplateSpec"', '"TemplatesSpec"', "member-missing"),
    (HUT, '"ToolShape"', '"ToolsShape"', "member-missing"),
    (HUT, '"TemplateName": "Hut', '"TemplateName": "Old', "template-name-twice"),
    (HUT, '"Id": "Log"', '"Id": "Logg"', "unknown-name"),
    (HUT, '"ToolGroupId": "Decoration"', '"ToolGroupId": "Decor"', "unknown-name"),
    (HUT, '"NeedId": "BeaverStatue"', '"NeedId": "Statue"', "unknown-name"),
    (HUT, "Building.Hut.Description", "Building.Hut.Text", "unknown-name"),
    (HUT, "HutIcon", "HatIcon", "not-in-mod"),
    (HUT, "/HutIcon", "/HutIcon.png", "not-in-mod"),
    (HUT, '"FinishedModelName": "#Finished"', '"FinishedModelName": "#Done"', "unknown-name"),
    (HUT, '"FinishedModelName": "#Finished"', '"FinishedModelName": ""', "unknown-name"),
    (HUT, '"DisplayNameLocKey": "Building.Hut.DisplayName"', '"DisplayNameLocKey": ""', "unknown-name"),
    (HUT, '"Icon": "Buildings/Decoration/Hut/HutIcon"', '"Icon": ""', "not-in-mod"),
    ("Buildings/Decoration/Hut/HutIcon.png", None, "GIF", "not-a-picture"),
    (HUT, "Hut.Folktails.Model", "Hat.Folktails.Model", "not-in-mod"),
    (HUT, '"ProgressThresholds": [', '"ProgressThresholds": [0, ', "stage-count"),
    (f"{HUT[:-15]}.Model.timbermesh", None, "BaseMetal.IronTeeth", "unknown-material"),
]
"""File of a mod, text in it, what replaces it, and the code of the finding."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mod with three buildings, of which one has neither a construction base nor stages."""
    mod = tmp_path_factory.mktemp("whole") / "mod"
    add_building(mod, "Old.Folktails")
    add_building(mod, "Deck.Folktails", low=(-4, -4, 0), kind="PLATFORM")
    add_building(mod, stages=2)
    return mod


@pytest.mark.parametrize(("path", "old", "new", "code"), DAMAGES)
def test_check_of_a_mod_finds_damage(
    meshferry: Callable, whole: Path, tmp_path: Path, path: str, old: str | None, new: str, code: str
) -> None:
    mod = shutil.copytree(whole, tmp_path / "mod")
    data = (mod / path).read_bytes()
    if path.endswith(".timbermesh"):
        scene = box_scene((-1, -1, 0), (0, 0, 1), new)
        data = api.encode_part(scene, TIMBERMESH, None, path=mod / path).outputs[-1].data
    elif old is None:
        data = new.encode()
    else:
        assert old.encode() in data
        data = data.replace(old.encode(), new.encode(), 1)
    (mod / path).write_bytes(data)
    entries = meshferry("check", mod, "--json").entries
    assert code in [finding["code"] for entry in entries for finding in entry.get("messages", ())]
    assert judged(mod) or not is_judge_there()


def test_check_of_a_whole_mod(meshferry: Callable, whole: Path, tmp_path: Path) -> None:
    done = meshferry("check", whole)
    assert (done.status, done.out.count(f"{whole}: No problems found")) == (0, 1)
    assert "mod" not in [
        Path(entry["file"]).name for entry in meshferry("check", whole / "Buildings", "--json").entries
    ]
    (whole / "Faction.Other.blueprint.json").write_text('{"FactionSpec": {"TemplateCollectionIds": 5}}')
    assert meshferry("check", whole).status == 0
    (whole / "Faction.Other.blueprint.json").unlink()
    with zipfile.ZipFile(tmp_path / "Blueprints.zip", "w") as archive:
        archive.writestr("Goods/Good.Gear.blueprint.json", '{"GoodSpec": {"Id": "Gear"}}')
        names = '{"MaterialCollectionSpec": {"Materials": ["M/BaseMetal.Folktails"]}}'
        archive.writestr("MaterialCollections/MaterialCollection.Folktails.blueprint.json", names)
    done = meshferry("check", whole, "--game", tmp_path)
    assert (done.status, done.out.count("error: ") > 0, "the good 'Log'" in done.out) == (1, True, True)
    shutil.copytree(whole, tmp_path / "mod" / "Version-1.10")
    (tmp_path / "mod" / "Version-1.10" / LIST).unlink()
    done = meshferry("check", tmp_path / "mod")
    assert (done.status, done.out.count("does not appear in the game")) == (1, 3)


@pytest.mark.skipif(not BUILDINGS.is_dir(), reason="the samples of mods are not on this machine")
@pytest.mark.parametrize("name", ["dual_district_storage", "shanty_speaker/Data", "airlock_chamber"])
def test_check_of_real_mods_finds_no_error(meshferry: Callable, tmp_path: Path, name: str) -> None:
    mod = shutil.copytree(BUILDINGS / name, tmp_path / "mod")
    if not (mod / "manifest.json").exists():
        shutil.copy(BUILDINGS / name.partition("/")[0] / "manifest.json", mod)
    *_files, entry = meshferry("check", mod, "--json").entries
    assert (entry["errors"], {finding["code"] for finding in entry["warnings"]} - {"case-of-path"}) == ([], set())
