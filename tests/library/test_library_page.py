"""The examples of the page about the library do what it says, each alone, in a folder with the bundled examples."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import meshferry
import numpy as np
import pytest
from load_package import ROOT

PAGE = (ROOT / "docs" / "users" / "library.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
NAMES = ("first", "tent", "bounds", "colors", "swap", "scale", "merge")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str) -> None:
    exec(compile(BLOCKS[NAMES.index(name)], name, "exec"), {})


def test_each_example_is_short() -> None:
    assert len(BLOCKS) == len(NAMES)
    assert max(len(block.splitlines()) for block in BLOCKS) <= 15


def test_first_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("first")
    assert capsys.readouterr().out.startswith("Windmill.Folktails [0. 0. 0.] (2868, 3)\n")
    assert meshferry.inspect("windmill.mesh")["version"] == "ms13"
    assert len(meshferry.read("vase.mesh").meshes[0].triangles) == 1720


def test_a_tent(folder: Path) -> None:
    run("tent")
    (mesh,) = meshferry.read("tent.timbermesh").meshes
    assert len(mesh.triangles) == 4 and mesh.materials == ("canvas",) and mesh.points[:, 2].max() == 2


def test_bounds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("bounds")
    found = dict(re.findall(r"^(\S+) (.*?\].*?\])$", capsys.readouterr().out, re.MULTILINE))
    assert list(found) == ["lamp.mesh", "tunic.llmesh", "vase.data", "windmill.timbermesh"]
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", found["lamp.mesh"])]
    assert np.allclose(numbers, (-0.1, -0.1, 0, 0.1, 0.351, 0.321), atol=1e-3)


def test_colors(folder: Path) -> None:
    run("colors")
    rows = list(csv.reader(Path("colors.csv").read_text("utf-8").splitlines()))
    (mesh,) = meshferry.read("examples/lamp.mesh").meshes
    colors = {tuple(np.float32(row[1:4])): set[tuple[int, ...]]() for row in rows}
    for row in rows:
        colors[tuple(np.float32(row[1:4]))].add(tuple(map(int, row[4:])))
    assert len(colors) == len(np.unique(mesh.points, axis=0))
    corners = mesh.points[mesh.triangles[::50]].reshape(-1, 3)
    for point, color in zip(corners, mesh.colors[0][::50].reshape(-1, 4), strict=True):
        assert tuple(color.tolist()) in colors[tuple(point)]


def test_swap(folder: Path) -> None:
    run("swap")
    (before,), (after,) = (meshferry.read(path).meshes for path in ("examples/lamp.mesh", "swapped.mesh"))
    counts = [
        {name: np.count_nonzero(mesh.material_index == slot) for slot, name in enumerate(mesh.materials)}
        for mesh in (before, after)
    ]
    assert counts[1] == counts[0] | {"base": counts[0]["shade"], "shade": counts[0]["base"]}
    assert counts[0]["base"] != counts[0]["shade"]


def test_scale(folder: Path) -> None:
    run("scale")
    scene, after = meshferry.read("examples/lamp.mesh"), meshferry.read("large.mesh")
    scene.add_clips(meshferry.read("examples/lamp_nod.anim"))
    for time in (0.0, 0.6, 1.3):
        (small,), (large,) = (one.posed(one.clips[0], time).values() for one in (scene, after))
        assert np.abs(large - small * 2.5).max() < 2e-3


def test_merge(folder: Path) -> None:
    run("merge")
    windmill, vase, both = map(
        meshferry.read, ("examples/windmill.timbermesh", "examples/vase.data", "both.timbermesh")
    )
    assert [node.name for node in both.nodes] == [node.name for node in (*windmill.nodes, *vase.nodes)]
    place = both.nodes[-1].world_matrix[:3, 3] + both.nodes[-1].mesh.points.mean(axis=0)
    assert np.allclose(place, vase.meshes[0].points.mean(axis=0) + np.array((3, 0, 0)), atol=1e-3)
    assert [clip.name for clip in both.clips] == ["Default"]
