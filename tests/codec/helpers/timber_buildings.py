"""New buildings of plain boxes in a mod, and the independent check of mods if it is on this machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from meshferry.io_formats import api
from meshferry.io_formats.core import scene
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.timbermesh.building import names as game
from meshferry.io_formats.timbermesh.building.cells import Shape, bounds_of, size_of
from meshferry.io_formats.timbermesh.building.document import Building
from meshferry.io_formats.timbermesh.building.mod_folder import ModFolder
from meshferry.io_formats.timbermesh.building.options import BuildingOptions
from meshferry.io_formats.timbermesh.building.planning import existing_folder, has_icon, plan_building
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

SAMPLES = Path(os.environ.get("MESHFERRY_SAMPLES") or Path(__file__).parents[4] / "shared" / "samples")
BUILDINGS = SAMPLES / "timberborn_buildings"
PICTURE = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000070000000700806000000")
"""Start of a PNG of 112 x 112 with transparency."""


def box_scene(low: Any, high: Any, material: str, *nodes: str) -> scene.Scene:
    """Return a model of one box, whose sides are double triangles; and further empty nodes."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    points = np.array(low, np.float32) + corners * (np.array(high, np.float32) - np.array(low, np.float32))
    faces = np.array([[0, 1, 3], [0, 3, 2], [4, 7, 5], [4, 6, 7], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6]], np.int32)
    mesh = scene.Mesh(points, faces.ravel(), np.zeros(len(faces), np.int32), [material])
    mesh.normal = scene.Layer("normal", np.tile(np.array([[0, 0, 1]], np.float32), (faces.size, 1)))
    made = scene.Scene("Model", [scene.Node("Model"), scene.Node("Box", parent=0, mesh=mesh)])
    made.nodes += [scene.Node(name, parent=0) for name in nodes]
    return made


def add_building(
    folder: Path,
    collection: str = "Hut.Folktails",
    high: tuple[float, float, float] = (0, 0, 1),
    low: tuple[float, float, float] = (-1, -1, 0),
    *,
    material: str = "BaseMetal.Folktails",
    entrance: Any = None,
    stages: int = 0,
    nodes: tuple[str, ...] = (),
    collider: Any = None,
    known: Any = None,
    icon: bytes = PICTURE,
    **options: Any,
) -> tuple[dict[Path, bytes], list[str]]:
    """Write a building; return the changed files and the messages."""
    report, mod = Report(), ModFolder(folder)
    chosen = BuildingOptions(mod=str(folder), **options)
    model = box_scene(low, high, material, *nodes)
    box = bounds_of(model)
    assert box is not None
    size = size_of(box, (chosen.size_x, chosen.size_y, chosen.size_z))
    shape = Shape(
        size, [collider or box], [[box]] * stages, entrance, nodes=frozenset(nodes), materials=frozenset({material})
    )
    name, faction = collection.split(".")
    building = Building(name, faction, shape, chosen, existing_folder(collection, mod, chosen.tool_group))
    data = api.encode_part(model, TIMBERMESH, None, path=folder / "x.timbermesh").outputs[-1].data
    is_new = not has_icon(building, mod)
    names = known or game.game_names("", report)
    mod.planned |= {mod.place(f"{path}.timbermesh"): data for path in building.models}
    plan_building(building, icon if is_new else None, mod, names, report)
    changed = mod.changed()
    for place, content in changed.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return changed, [str(message) for message in report.messages]


@cache
def _checker() -> Any:
    path = SAMPLES.parent / "tools" / "timberborn_mod_check.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("timberborn_mod_check", path)
    assert spec is not None and spec.loader is not None
    is_writing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = is_writing
    return module


def is_judge_there() -> bool:
    """Return whether the independent check is on this machine."""
    return _checker() is not None


def judged(folder: Path) -> list[tuple[str, ...]]:
    """Return the errors and warnings of the independent check, if it is on this machine."""
    module = _checker()
    found = module.Mod(str(folder), source=False).run() if module is not None else []
    return [finding for finding in found if finding[0] != "note"]


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the content of all files by their paths."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
