"""Blueprints of Timberborn on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import models
import pytest
from glb_oracle import read_glb
from meshferry.io_formats.timbermesh.model import codec
from meshfuzz import timberborn_blueprint_seeds as seeds


@pytest.fixture
def mod(tmp_path: Path) -> Path:
    """Return the folder of a mod with a house of two models, one of them animated, and with other JSON files."""
    folder = tmp_path / "mod"
    (folder / "Shed").mkdir(parents=True)
    moving = models.mesh_node(node_animations=[models.node_animation()])
    for name in ("Shed.Model", "Stage.Model"):
        (folder / "Shed" / f"{name}.timbermesh").write_bytes(codec.write(models.model(moving)))
    (folder / "House.blueprint.json").write_text(json.dumps(seeds.building()), "utf-8")
    (folder / "Log.blueprint.json").write_text('{"GoodSpec": {}}', "utf-8")
    (folder / "manifest.json").write_text('{"Id": "Test"}', "utf-8")
    return folder


def test_folders_are_searched_for_blueprints_and_not_for_other_json(meshferry: Callable, mod: Path) -> None:
    done = meshferry("inspect", "--json", mod)
    files = {Path(entry["file"]).name: entry for entry in done.entries}
    assert set(files) == {
        "House.blueprint.json",
        "Log.blueprint.json",
        "Shed.Model.timbermesh",
        "Stage.Model.timbermesh",
    }
    house = files["House.blueprint.json"]
    assert house["format"] == "timberborn_blueprint"
    assert house["states"] == {"finished": 1, "unfinished": 1}
    assert (house["nodes"], house["models"], house["blueprints"]) == (
        6,
        ["Shed/Shed.Model", "Shed/Stage.Model"],
        ["Base.blueprint"],
    )
    assert (house["colliders"], house["size"]) == (3, [2, 1, 1])


def test_models_around_a_blueprint_without_a_mod_are_within_its_reach(meshferry: Callable, mod: Path) -> None:
    (mod / "manifest.json").unlink()
    inner = mod / "Shed" / "Deep" / "House.blueprint.json"
    inner.parent.mkdir()
    (mod / "House.blueprint.json").rename(inner)
    done = meshferry("convert", inner, mod.parent / "a.obj")
    assert done.status == 1 and "There is no mesh to write" in done.err
    done = meshferry("convert", inner, mod.parent / "b.obj", "--files-from", mod)
    assert done.status == 0 and "2 triangles" in done.out


def test_check_names_what_the_game_refuses(meshferry: Callable, mod: Path) -> None:
    building = seeds.building()
    building["ConstructionSiteProgressVisualizerSpec"]["ProgressThresholds"] = []
    (mod / "House.blueprint.json").write_text(json.dumps(building), "utf-8")
    (mod / "Shed" / "Stage.Model.timbermesh").unlink()
    done = meshferry("check", mod / "House.blueprint.json")
    assert done.status == 1
    assert "error: The unfinished model has 2 children and 0 thresholds; the game needs 1" in done.out
    assert "warning: 1 model not found; an empty stands for each: 'Shed/Stage.Model'" in done.out + done.err


def test_other_json_is_one_line(meshferry: Callable, mod: Path) -> None:
    done = meshferry("inspect", mod / "manifest.json")
    assert done.status == 1
    assert "This is JSON, but not a blueprint of Timberborn" in done.out + done.err


@pytest.mark.needs_bpy
def test_a_finished_building_becomes_a_glb_with_its_animation(meshferry: Callable, mod: Path, tmp_path: Path) -> None:
    done = meshferry("convert", mod / "House.blueprint.json", tmp_path / "house.glb")
    assert done.status == 0, done.err
    assert (
        "since the program does not show them: 'Unfinished', 'Colliders', 'Footprint', 'Points'" in done.out + done.err
    )
    content, _ = read_glb((tmp_path / "house.glb").read_bytes())
    names = {node["name"]: node for node in content["nodes"]}
    assert {"House", "#Finished", "Roof", "Knob"} < set(names)
    assert not {"#Unfinished", "Stage", "Footprint", "Entrance", "BoxCollider"} & set(names)
    assert names["Roof"]["translation"] == pytest.approx([-1, 2, 3])
    assert sum("mesh" in node for node in content["nodes"]) == 1
    assert [clip["name"] for clip in content["animations"]] == ["Default"]


@pytest.mark.slow
@pytest.mark.needs_bpy
def test_a_batch_converts_blueprints_of_a_folder(meshferry: Callable, mod: Path, tmp_path: Path) -> None:
    done = meshferry("batch", mod, "--to", "obj", "-o", tmp_path / "out", "--jobs", 1)
    assert done.status == 0, done.err
    assert "1 file left out, since nothing in it can be converted" in done.out + done.err
    assert (tmp_path / "out" / "House.obj").read_text("utf-8").count("\no ") >= 1


@pytest.mark.needs_bpy
def test_blueprints_that_place_nothing_are_counted(meshferry: Callable, mod: Path, tmp_path: Path) -> None:
    (mod / "Plank.blueprint.json").write_text('{"GoodSpec": {}}', "utf-8")
    done = meshferry("convert", mod, "--to", "obj", "-o", tmp_path / "out", "--dry-run")
    assert done.status == 0, done.err
    assert "2 files left out, since nothing in them can be converted" in done.out + done.err
    assert "House.obj" in done.out
    assert "Log" not in done.out
