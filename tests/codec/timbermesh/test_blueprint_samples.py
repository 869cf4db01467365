"""Real blueprints of mods: every node as an independent reader of the samples found it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.core.placement import Marker, ModelUse, PlacedNode, PlacementPart, Wire
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.timbermesh.blueprint import codec
from meshferry.io_formats.timbermesh.blueprint.format import TIMBERBORN_BLUEPRINT, ReadOptions
from meshferry.io_formats.timbermesh.blueprint.mapping import PlacementBuilder, matrices_in_model, placement_builder

SAMPLES = (
    "Crane.Folktails",
    "HangingOverhang.Folktails",
    "DualDistrictPile.Narrow.Folktails",
    "DualDistrictWarehouse.Folktails",
    "ElectricLumberMill.FulgurFangs",
    "KeystoneDryMini3",
    "KeystoneGrasslandMini16",
    "FrogStatue.Folktails",
    "TE_Bridge_1x3.Folktails",
    "MiddleOverhang3x1.Emberpelts",
    "Pillar_2.Folktails",
    "Quadradecamite.Whitepaws",
    "ShantySpeaker.IronTeeth",
)
TOLERANCE = 1e-4
COLLIDERS = {"BoxCollider": "box", "SphereCollider": "sphere", "CapsuleCollider": "capsule"}


class Read:
    """A sample as it was read, and what is expected of it."""

    def __init__(self, folder: Path, name: str, projects: Projects) -> None:
        found = json.loads((folder / "expected.json").read_text("utf-8"))
        ((path, self.expected),) = [item for item in found.items() if item[0].endswith(f"/{name}.blueprint.json")]
        self.path = folder / path
        self.folder = folder / path.partition("/")[0]
        self.builder: PlacementBuilder = placement_builder(name, projects, ReadOptions())
        self.scene: Scene = self.builder.build(codec.read(self.path.read_bytes()), self.path)
        assert self.scene.placement is not None
        self.part: PlacementPart = self.scene.placement.parts[0]
        self.worlds: list[Any] = []
        for node in self.part.nodes:
            above = self.worlds[node.parent] if node.parent >= 0 else np.identity(4)
            self.worlds.append(above @ node.matrix)

    def placed(self, kind: type) -> list[tuple[int, PlacedNode]]:
        return [(number, node) for number, node in enumerate(self.part.nodes) if isinstance(node.content, kind)]

    def path_of(self, number: int) -> str:
        parts: list[str] = []
        while number > 0:
            parts.insert(0, self.part.nodes[number].name)
            number = self.part.nodes[number].parent
        return "/".join(parts)


@pytest.fixture(scope="module")
def projects() -> Projects:
    return Projects(is_fixed=True)


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request: pytest.FixtureRequest, samples: Path, projects: Projects) -> Read:
    return Read(samples / "timberborn_blueprints", request.param, projects)


def same_matrix(found: Any, expected: list[float]) -> bool:
    return bool(np.abs(found.T.reshape(-1) - expected).max() < TOLERANCE)


def test_nodes(sample: Read) -> None:
    assert same_matrix(sample.worlds[0], sample.expected["root"])
    nodes = sample.builder.nodes[1:]
    assert len(nodes) == len(sample.expected["nodes"]) == sample.expected["counts"]["nodes"]
    for number, (node, wanted) in enumerate(zip(nodes, sample.expected["nodes"], strict=True), 1):
        assert sample.path_of(number) == wanted["path"]
        assert node.parent - 1 == wanted["parent"]
        assert same_matrix(sample.worlds[number], wanted["matrix"]), wanted["path"]
        found = (node.state.value, node.variant or None, node.stage, node.nested or None)
        assert found == (wanted["state"], wanted["variant"], wanted["stage"], wanted["nested"]), wanted["path"]


def test_collections_tell_state_stage_and_variant(sample: Read) -> None:
    names = {"always": "Model"}
    for placed, wanted in zip(sample.part.nodes[1:], sample.expected["nodes"], strict=False):
        chain = []
        number = placed.collection
        while number >= 0:
            chain.insert(0, sample.part.collections[number].name)
            number = sample.part.collections[number].parent
        inner = [f"Stage {wanted['stage']}"] if wanted["stage"] is not None else []
        inner += [f"Mature {wanted['variant'].capitalize()}"] if wanted["variant"] else []
        assert chain == [names.get(wanted["state"], wanted["state"].capitalize()), *inner]
    shown = {found.name for found in sample.part.collections if not found.is_hidden}
    assert shown <= {"Finished", "Model", "Footprint", "Points", "Stage 0", "Mature Alive"}


def test_models(sample: Read) -> None:
    assert sample.scene.placement is not None
    named = [(number, node) for number, node in enumerate(sample.part.nodes) if "Model" in node.properties]
    counts = sample.expected["counts"]
    assert len(named) == counts["models"]
    triangles = found = 0
    for (number, node), wanted in zip(named, sample.expected["placed"], strict=True):
        assert node.properties["Model"] == wanted["model"]
        assert same_matrix(sample.worlds[number], wanted["matrix"])
        assert sample.path_of(number) == wanted["path"]
        if wanted["file"] is None:
            assert isinstance(node.content, Marker)
            continue
        assert isinstance(node.content, ModelUse)
        model = sample.scene.placement.models[node.content.model]
        assert Path(model.file) == sample.folder.resolve() / wanted["file"]
        read = model.read()
        boxes = [
            (sample.worlds[number] @ matrix @ np.c_[inner.mesh.points, np.ones(len(inner.mesh.points))].T)[:3]
            for inner, matrix in zip(read.nodes, matrices_in_model(read), strict=True)
            if inner.mesh is not None
        ]
        points = np.concatenate(boxes, axis=1)
        assert np.abs(points.min(axis=1) - wanted["box"][0]).max() < TOLERANCE
        assert np.abs(points.max(axis=1) - wanted["box"][1]).max() < TOLERANCE
        assert (len(read.nodes), read.triangle_count) == (wanted["nodes"], wanted["triangles"])
        assert sorted({clip.name for clip in read.clips}) == sorted(wanted["animations"])
        triangles += read.triangle_count
        found += 1
    assert (found, triangles) == (counts["models found"], counts["triangles"])
    worlds = np.array([sample.worlds[number] for number, _ in named])
    assert np.abs(worlds[:, :3, 3].sum(axis=0) - counts["sum of translations"]).max() < TOLERANCE
    assert np.abs(worlds[:, :3, 0].sum(axis=0) - counts["sum of x axes"]).max() < TOLERANCE


def test_colliders(sample: Read) -> None:
    found = [(number, node) for number, node in sample.placed(Wire) if node.name in COLLIDERS]
    assert len(found) == len(sample.expected["colliders"])
    for (number, node), wanted in zip(found, sample.expected["colliders"], strict=True):
        assert (COLLIDERS[node.name], sample.path_of(node.parent)) == (wanted["kind"], wanted["node"])
        assert np.abs(sample.worlds[number][:3, 3] - wanted["center"]).max() < TOLERANCE
        assert isinstance(node.content, Wire)
        assert node.channels is not None
        points = node.content.points * node.channels.scale
        radius = wanted.get("radius")
        size = wanted.get("size") or [2 * radius] * 3
        if wanted["kind"] == "capsule":
            size["XYZ".index(wanted["axis"])] = max(wanted["height"], 2 * radius)
        assert np.abs(np.ptp(points, axis=0) - size).max() < TOLERANCE
        assert sample.part.collections[node.collection].name == "Colliders"


def test_footprint_and_entrance(sample: Read) -> None:
    wanted, found = sample.expected["footprint"], sample.builder.footprint
    assert found is not None
    assert (list(found.size), found.base_z, found.fits) == (wanted["size"], wanted["base_z"], wanted["cells_right"])
    assert len(found.cells) == wanted["occupied"]
    free = ("None", "", "0")
    assert found.cells.tolist() == [cell[:3] for cell in wanted["cells"] if cell[3] not in free]
    assert np.array_equal(found.bounds(), wanted["box"])
    assert (None if found.entrance is None else list(found.entrance)) == wanted["entrance"]
    ((number, node),) = [(number, node) for number, node in sample.placed(Wire) if node.name == "Footprint"]
    assert isinstance(node.content, Wire)
    world = sample.worlds[number] @ np.c_[node.content.points, np.ones(len(node.content.points))].T
    low = found.boxes()[0].min(axis=0)
    assert np.abs(world[:3].min(axis=1) - low).max() < TOLERANCE
    doors = [(number, node) for number, node in sample.placed(Marker) if node.name == "Entrance"]
    assert len(doors) == (wanted["entrance"] is not None)
    for number, _ in doors:
        x, y, z = wanted["entrance"]
        assert np.allclose(sample.worlds[number][:3, 3], [-x - 0.5, -y - 0.5, z - wanted["base_z"]])
        assert np.allclose(sample.worlds[number][:3, 2], [0, -1, 0])  # into the building


def test_attachments(sample: Read) -> None:
    found = [(number, node) for number, node in enumerate(sample.part.nodes) if "Prefab" in node.properties]
    assert len(found) == len(sample.expected["attachments"])
    for (number, node), wanted in zip(found, sample.expected["attachments"], strict=True):
        assert (node.name, node.properties["Prefab"]) == (wanted["id"], wanted["prefab"])
        assert sample.part.nodes[node.parent].name == wanted["parent"]
        assert same_matrix(sample.worlds[number], wanted["matrix"])


def test_problems(sample: Read) -> None:
    found = set()
    for message in sample.scene.warnings:
        assert message.code.endswith("-not-found")
        kind = "blueprint" if "blueprint" in message.code else "model"
        found.update(f"no {kind} {path}" for path in message.about())
    assert len(found) == min(len(sample.expected["problems"]), 5)
    assert found <= set(sample.expected["problems"])


def test_read_by_content(sample: Read, tmp_path: Path) -> None:
    scene = api.read_scene(sample.path, projects=Projects())
    assert scene.format == TIMBERBORN_BLUEPRINT.name
    assert scene.name == sample.path.name.removesuffix(".blueprint.json")
    copy = tmp_path / "renamed.txt"
    copy.write_bytes(sample.path.read_bytes())
    assert api.format_of(copy) is TIMBERBORN_BLUEPRINT
