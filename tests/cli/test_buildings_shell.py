"""New buildings of Timberborn on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from timber_buildings import PICTURE, files_of, judged

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
