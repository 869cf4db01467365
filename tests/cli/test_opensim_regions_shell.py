"""Archives of OpenSim on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from glb_oracle import read_glb

Y_UP = np.array([(1, 0, 0, 0), (0, 0, -1, 0), (0, 1, 0, 0), (0, 0, 0, 1)], np.float64)
"""From the axes of glTF to those of Blender."""


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "opensim_archives"


def local_matrix(node: dict[str, Any]) -> Any:
    x, y, z, w = node.get("rotation", (0, 0, 0, 1))
    turn = np.array(
        [
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        ]
    )
    matrix = np.identity(4)
    matrix[:3, :3] = turn * node.get("scale", (1, 1, 1))
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix


def test_inspect_counts_what_an_archive_places(meshferry: Callable, folder: Path) -> None:
    done = meshferry("inspect", "--json", folder / "region.oar", folder / "inventory.iar")
    region, inventory = done.entries
    assert (region["nodes"], region["objects"], region["regions"]) == (47, 9, 1)
    assert (inventory["nodes"], inventory["items"]) == (6, 3)
    assert "1 region, 9 objects, 47 parts" in meshferry("inspect", folder / "region.oar").out


def test_check_names_parts_without_their_assets(meshferry: Callable, folder: Path) -> None:
    done = meshferry("check", folder / "region.oar")
    assert done.status == 0
    assert "'missing mesh'" in done.out and "'missing texture'" in done.out


@pytest.mark.needs_bpy
def test_a_region_as_glb_has_every_part_at_its_place(meshferry: Callable, folder: Path, tmp_path: Path) -> None:
    """The axes of a part turn into those of glTF, so that its matrix is that of the unit cube between both."""
    target = tmp_path / "region.glb"
    done = meshferry("convert", folder / "region.oar", target, "--no-ground", "--no-water")
    assert done.status == 0
    content, _ = read_glb(target.read_bytes())
    nodes = content["nodes"]
    parents = {child: number for number, node in enumerate(nodes) for child in node.get("children", ())}
    worlds = []
    for number, node in enumerate(nodes):
        matrix, above = local_matrix(node), parents.get(number)
        while above is not None:
            assert nodes[above].get("scale", [1, 1, 1]) == [1, 1, 1]  # no part hangs below a scaled one
            matrix, above = local_matrix(nodes[above]) @ matrix, parents.get(above)
        worlds.append((node["name"], Y_UP @ matrix @ np.linalg.inv(Y_UP)))
    parts = json.loads((folder / "expected.json").read_bytes())["region.oar"]["parts"]
    checked = 0
    for part in parts:
        position, size = np.array(part["position"]), np.array(part["size"])
        same = [world for name, world in worlds if name.split(".")[0] == part["name"].split(".")[0]]
        near = [world for world in same if np.abs(world[:3, 3] - position).max() < 1e-4]
        if part["kind"] != "tree" and part["name"] != "transparent texture" and len(part["name"]) < 60:
            assert any(np.allclose(np.linalg.norm(world[:3, :3], axis=0), size, rtol=1e-5) for world in near), part[
                "name"
            ]
            checked += 1
    assert checked == len(parts) - 3
    assert "1 object left out, since the program does not show them: 'Invisible'" in done.err


@pytest.mark.needs_bpy
def test_materials_that_gltf_cannot_hold_are_named(meshferry: Callable, folder: Path, tmp_path: Path) -> None:
    done = meshferry("convert", folder / "region.oar", tmp_path / "region.glb", "--only-names", "face parameters")
    assert "'3bd5a2dc_2'" in done.err
    mixed = "1 material with a mixture of images, which the file does not hold: 'Sample Region Ground Material'"
    assert mixed in done.err


@pytest.mark.needs_bpy
def test_options_choose_regions_and_objects(meshferry: Callable, folder: Path, tmp_path: Path) -> None:
    plain = ("--json", "--no-ground", "--no-water")
    one = meshferry("convert", folder / "two_regions.oar", tmp_path / "1.blend", *plain, "--region", "North East")
    assert one.entries[0]["facts"]["nodes"] == 1
    refused = meshferry("convert", folder / "two_regions.oar", tmp_path / "2.blend", "--region", "Nowhere")
    assert refused.status == 1 and "no region 'Nowhere'; it has 'South West', 'North East'" in refused.err
    some = meshferry("convert", folder / "region.oar", tmp_path / "3.blend", *plain, "--only-names", "shared *")
    assert some.entries[0]["facts"]["nodes"] == 4


@pytest.mark.parametrize(
    ("file", "cause"),
    [
        ("gzip_cut.oar", "cut off"),
        ("tar_10gb_claim.oar", "cut off"),
        ("not_gzip.oar", "not a"),
        ("major_2.oar", "newer"),
    ],
)
def test_archives_that_are_refused_leave_no_file(
    meshferry: Callable, folder: Path, tmp_path: Path, file: str, cause: str
) -> None:
    done = meshferry("convert", folder / "hostile" / file, tmp_path / "x.blend")
    assert done.status == 1 and done.err.count("\n") == 1 and cause in done.err
    assert not list(tmp_path.iterdir())
