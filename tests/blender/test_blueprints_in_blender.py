"""Blueprints of real mods in Blender, compared with what an independent reader found in them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from load_package import SAMPLES
from meshferry.blender_data import names

pytestmark = pytest.mark.needs_bpy

FOLDER = SAMPLES / "timberborn_blueprints"
COUNT = 13
EXPECTED: dict[str, Any] = (
    json.loads((FOLDER / "expected.json").read_text("utf-8")) if (FOLDER / "expected.json").exists() else {}
)
MISSING = ("CUBE", 0.5)
WITHOUT_AREA = {
    "HangingOverhang.Folktails.Model.timbermesh": 16,
    "HangingOverhang.ConstructionBase.Folktails.Model.timbermesh": 16,
}
"""Number of triangles of a model with a corner that repeats, which imports leave out and report."""


def test_there_are_samples(samples: Path) -> None:
    assert len(EXPECTED) == COUNT


def world_of(obj: Any) -> np.ndarray:
    """Return the world matrix from the channels: Blender does not evaluate hidden objects."""
    own = np.array(obj.matrix_basis, np.float64)
    return own if obj.parent is None else world_of(obj.parent) @ own


def given(columns: list[float]) -> np.ndarray:
    return np.array(columns).reshape(4, 4).T


def assert_close(now: Any, wanted: Any, what: Any, tolerance: float = 1e-4) -> None:
    now, wanted = np.asarray(now), np.asarray(wanted)
    assert np.abs(now - wanted).max() <= tolerance * max(1.0, np.abs(wanted).max()), what


class Imported:
    """The objects of an imported blueprint by what they stand for."""

    def __init__(self, name: str) -> None:
        assert bpy.ops.import_scene.timbermesh(filepath=str(FOLDER / name)) == {"FINISHED"}
        (self.collection,) = (one for one in bpy.data.collections if one.meshferry.from_file)
        self.objects = list(self.collection.all_objects)
        self.nodes: dict[str, Any] = {}
        self.colliders: dict[str, list[Any]] = {}
        self.points: dict[str, Any] = {}
        self.parts: dict[Any, list[Any]] = {}
        for obj in self.objects:
            key = obj.meshferry.node_key
            if obj.meshferry.is_model_part:
                self.parts.setdefault(self.node_of(obj), []).append(obj)
            elif "/CollidersSpec/" in key:
                self.colliders.setdefault(self.path(obj.parent), []).append(obj)
            elif key.startswith(("/Children/", "/Modification")) or key == "/":
                self.nodes[self.path(obj)] = obj
            elif key:
                self.points[key] = obj
        for found in self.colliders.values():
            found.sort(key=lambda obj: obj.meshferry.node_key)

    def node_of(self, part: Any) -> Any:
        while part.meshferry.is_model_part:
            part = part.parent
        return part

    def path(self, obj: Any) -> str:
        found = []
        while obj.meshferry.node_key != "/":
            found.append(names.name_in_file(obj))
            obj = obj.parent
        return "/".join(reversed(found))


def box_of(parts: list[Any]) -> list[Any]:
    """Return the corners of the box around every vertex of some objects."""
    points = [
        np.array([(*vertex.co, 1.0) for vertex in part.data.vertices]) @ world_of(part).T
        for part in parts
        if part.type == "MESH" and len(part.data.vertices)
    ]
    everything = np.concatenate(points)[:, :3]
    return [everything.min(axis=0), everything.max(axis=0)]


@pytest.mark.parametrize("name", EXPECTED, ids=lambda name: Path(name).name)
def test_every_node_is_as_an_independent_reader_found_it(clean_blender: Any, name: str) -> None:
    expected = EXPECTED[name]
    found = Imported(name)
    assert found.nodes.keys() == {"", *(node["path"] for node in expected["nodes"])}
    assert_close(world_of(found.nodes[""]), given(expected["root"]), "root")
    bpy.context.view_layer.update()
    for node in expected["nodes"]:
        obj, wanted = found.nodes[node["path"]], given(node["matrix"])
        assert_close(world_of(obj), wanted, node["path"])
        (home,) = obj.users_collection
        state = "Model" if node["state"] == "always" else node["state"].capitalize()
        is_shown = state in ("Model", "Finished")
        if node["stage"] is not None:
            assert home.meshferry.source_name == f"Stage {node['stage']}"
        elif node["variant"]:
            assert home.meshferry.source_name == f"Mature {node['variant'].capitalize()}"
            is_shown = node["variant"] == "alive"
        else:
            assert home.meshferry.source_name == state
        assert obj.visible_get() == is_shown, node["path"]
        if is_shown:
            assert_close(obj.matrix_world, wanted, node["path"])
    assert_models(found, expected["placed"])
    assert_colliders(found, expected)
    assert_points(found, expected)


def assert_models(found: Imported, placed: list[dict[str, Any]]) -> None:
    data: dict[str, set[Any]] = {}
    for place in placed:
        obj = found.nodes[place["path"]]
        assert obj["Model"] == place["model"]
        if place["file"] is None:
            assert obj not in found.parts and (obj.empty_display_type, obj.empty_display_size) == MISSING
            continue
        parts = found.parts.pop(obj)
        meshes = [part.data for part in parts if part.type == "MESH"]
        for mesh in meshes:
            mesh.calc_loop_triangles()
        dropped = WITHOUT_AREA.get(Path(place["file"]).name, 0)
        assert sum(len(mesh.loop_triangles) for mesh in meshes) == place["triangles"] - dropped
        assert len(parts) == place["nodes"]
        assert {slot.name for mesh in meshes for slot in mesh.materials if slot} == {*place["materials"]} - {""}
        for corner, wanted in zip(box_of(parts), place["box"], strict=True):
            assert_close(corner, wanted, place["path"])
        assert data.setdefault(place["file"], set(meshes)) == set(meshes)
        assert {part.users_collection for part in parts} == {obj.users_collection}
    assert not found.parts


def assert_colliders(found: Imported, expected: dict[str, Any]) -> None:
    wanted: dict[str, list[Any]] = {}
    for collider in expected["colliders"]:
        wanted.setdefault(collider["node"], []).append(collider)
    assert found.colliders.keys() == wanted.keys()
    for path, colliders in wanted.items():
        for obj, collider in zip(found.colliders[path], colliders, strict=True):
            assert_close(world_of(obj)[:3, 3], collider["center"], path)
            points = np.array([vertex.co for vertex in obj.data.vertices]) * obj.scale
            sides = np.ptp(points, axis=0)
            if collider["kind"] == "box":
                assert_close(sides, collider["size"], path)
            else:
                round_sides = np.full(3, 2 * collider["radius"])
                if collider["kind"] == "capsule":
                    round_sides["XYZ".index(collider["axis"])] = collider["height"]
                assert_close(sides, round_sides, path)
            assert obj.display_type == "WIRE" and obj.hide_render and not obj.visible_get()
            assert obj.users_collection[0].meshferry.source_name == "Colliders"


def assert_points(found: Imported, expected: dict[str, Any]) -> None:
    footprint = expected["footprint"]
    if footprint is None:
        assert "/BlockObjectSpec" not in found.points
    else:
        obj = found.points["/BlockObjectSpec"]
        points = np.array([(*vertex.co, 1.0) for vertex in obj.data.vertices]) @ world_of(obj).T
        assert len(points) == 8 * footprint["occupied"]
        assert obj.hide_select and obj.visible_get()
        box = cells_box(footprint)
        assert_close([points[:, :3].min(axis=0), points[:, :3].max(axis=0)], box, "footprint")
        entrance = footprint["entrance"]
        assert ("/BlockObjectSpec/Entrance" in found.points) == (entrance is not None)
        if entrance is not None:
            world = world_of(found.points["/BlockObjectSpec/Entrance"])
            x, y, z = entrance
            assert_close(world[:3, 3], (-x - 0.5, -y - 0.5, z - footprint["base_z"]), "entrance")
            assert_close(world[:3, 2], (0.0, -1.0, 0.0), "the arrow points into the building")
    attachments = [obj for key, obj in found.points.items() if "Attachment" in key]
    for obj, wanted in zip(attachments, expected["attachments"], strict=True):
        assert names.name_in_file(obj) == wanted["id"] and obj["Prefab"] == wanted["prefab"]
        assert_close(world_of(obj), given(wanted["matrix"]), wanted["id"])


def cells_box(footprint: dict[str, Any]) -> list[Any]:
    """Return the corners of the occupied cells in Blender's space."""
    corners = []
    for x, y, z, occupations, *_ in footprint["cells"]:
        if occupations not in ("None", ""):
            low = np.array([-x - 1.0, -y - 1.0, z - footprint["base_z"]])
            corners += [low, low + 1.0]
    return [np.min(corners, axis=0), np.max(corners, axis=0)]


@pytest.mark.parametrize(
    "name",
    [name for name in EXPECTED if any(place.get("animations") for place in EXPECTED[name]["placed"])],
    ids=lambda name: Path(name).name,
)
def test_animated_models_play(clean_blender: Any, name: str) -> None:
    found = Imported(name)
    scene = bpy.context.scene
    poses = []
    for frame in (scene.frame_start, (scene.frame_start + scene.frame_end) // 3):
        scene.frame_set(frame)
        poses.append([tuple(itertools.chain(*obj.matrix_world)) for obj in found.objects])
    assert poses[0] != poses[1]
