"""The example project: the same on every run, its meshes without problems, its textures as they were drawn."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import courtyard
import numpy as np
import pytest
import texture_oracle as oracle
from meshferry.io_formats import api
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return courtyard.make(tmp_path_factory.mktemp("courtyard"))


def test_it_is_the_same_on_every_run(tmp_path: Path) -> None:
    courtyard.script().main(tmp_path)
    data = tmp_path / "data"
    again = {path.relative_to(data).as_posix(): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    assert again == courtyard.content()
    assert sum(map(len, again.values())) < 1_000_000


def test_a_moved_node_changes_one_line(tmp_path: Path) -> None:
    world = courtyard.make(tmp_path) / "courtyard.world"
    before = ET.parse(world)
    removed, added = courtyard.script().move(world, "bench", (0.5, 0.0, 0.25))
    old, new = (
        np.array(line[1:].strip().removeprefix("<transform>").removesuffix("</transform>").split(), float)
        for line in (removed, added)
    )
    assert (removed[0], added[0]) == ("-", "+")
    assert np.allclose(new - old, [0] * 12 + [0.5, 0, 0.25, 0], atol=1e-6)
    after = ET.parse(world)
    changed = [
        (one.text, other.text) for one, other in zip(before.iter(), after.iter(), strict=True) if one.text != other.text
    ]
    assert len(changed) == 1


def test_every_reference_leads_somewhere(data: Path) -> None:
    """All GUIDs in nodes and materials are runtimes, assets, or runtimes whose source is there."""
    known = set(json.loads((data / "guids.db").read_text()))
    for path in data.rglob("*.meta"):
        text = path.read_text()
        known |= (
            {row.get("id", "") for row in ET.fromstring(text).iter("runtime")}
            if text.startswith("<")
            else {path.name[:40]}
        )
    wanted = set()
    for path in [*data.rglob("*.node"), *data.rglob("*.world"), *data.rglob("*.mat")]:
        for element in ET.parse(path).iter():
            text = (element.text or "").strip()
            wanted |= {text[7:]} if text.startswith("guid://") else set()
            wanted |= {element.get(key, "") for key in ("material", "parent")}
    assert len(wanted) > 25
    assert wanted - {""} <= known


@pytest.mark.parametrize("name", ["ground", "wall", "barrel", "bucket", "lamp_post", "bench", "planter"])
def test_its_meshes_have_no_problems(data: Path, name: str) -> None:
    loaded = api.load(data / courtyard.mesh(name))
    assert loaded.format is UNIGINE_MESH and UNIGINE_MESH.check(loaded.document) == []
    (node,) = api.read_scene(data / courtyard.mesh(name)).nodes
    assert node.mesh is not None and node.mesh.normal is not None
    corners = node.mesh.points[node.mesh.corner_point].reshape(-1, 3, 3)
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = node.mesh.normal.values[
        node.mesh.normal.index if node.mesh.normal.index is not None else node.mesh.corner_point
    ]
    assert (np.einsum("ij,ij->i", faces, normals.reshape(-1, 3, 3).sum(axis=1)) > 0).all()


@pytest.mark.parametrize(
    ("layout", "channels", "error"), [("BC1", "RGB", 6.0), ("BC3", "RGBA", 6.0), ("BC4", "R", 2.5), ("BC5", "RG", 2.5)]
)
def test_its_textures_show_what_was_drawn(layout: str, channels: str, error: float) -> None:
    decoder = pytest.importorskip("texture2ddecoder", reason="texture2ddecoder is absent")
    script = courtyard.script()
    shade = script.noise(64, 1)
    drawn = np.dstack((script.colored(shade, (0.2, 0.1, 0.4), (0.9, 0.7, 0.5)), (255 * shade).astype(np.uint8)))
    for version in ("tx10", "tx11"):
        code, width, height, blocks = oracle.pixels_of_texture(script.texture(drawn, layout, version))
        assert (code, width, height) == (script.CODES[layout], 64, 64)
        values: Any = np.frombuffer(getattr(decoder, f"decode_{layout.lower()}")(blocks, 64, 64), np.uint8)
        found = values.reshape(64, 64, 4)[..., [2, 1, 0, 3]].astype(float)
        for number in range(len(channels)):
            assert np.abs(found[..., number] - drawn[..., number]).mean() < error
