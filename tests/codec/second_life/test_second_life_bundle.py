"""Model bundles that the tests make: raw strings, odd instances, and what is refused."""

from __future__ import annotations

import zlib
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import FormatError, UnsupportedFormatError
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.second_life.asset import codec
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.bundle.mapping import BundleMaterial, Instance, bundle_of, instances_of
from meshfuzz import second_life_seeds as sl
from second_life_bytes import binary

LEVELS = {level: [sl.square()] for level in ("lowest_lod", "low_lod", "medium_lod", "high_lod")}
MESH = sl.asset({"physics_convex": sl.hulls(), **LEVELS}, header={"material_list": ["wood"]})
SUBMODEL = sl.asset({"physics_convex": None, **LEVELS}, header={"material_list": ["wood"], "submodel_id": 1})
OTHER_PLACE = {"label": "other", "mesh_id": 1}


def read(data: bytes) -> Any:
    return SECOND_LIFE_BUNDLE.read(data)


def test_a_bundle_is_written_as_it_was() -> None:
    data = sl.bundle([MESH, SUBMODEL], [sl.instance(), sl.instance(**OTHER_PLACE)])
    bundle = read(data)
    assert SECOND_LIFE_BUNDLE.write(bundle) == data
    assert bundle.name == "box"
    assert [list(mesh.blocks) for mesh in bundle.meshes] == [["physics_convex", *LEVELS]] * 2
    assert bundle.meshes[1].blocks["physics_convex"] is None
    assert bundle.warnings == []


def test_unknown_keys_and_any_order_are_kept() -> None:
    data = sl.bundle([MESH], [sl.instance(unknown=[1, 2.0])])
    pairs = data[5:-1]
    # Another key in front, and one behind.
    odd = b"{\0\0\0\x06k\0\0\0\x01z" + binary({"a": 1}) + pairs + b"k\0\0\0\x01a!}"
    bundle = read(odd)
    assert list(bundle.values) == ["z", "instance", "mesh", "name", "version", "a"]
    assert SECOND_LIFE_BUNDLE.write(bundle) == odd
    assert not SECOND_LIFE_BUNDLE.same_content(odd, data)


def test_content_is_compared_beneath_the_compression() -> None:
    data = sl.bundle([MESH], [sl.instance()])
    quick = {key: zlib.compress(binary(value), 1) for key, value in LEVELS.items()}
    quick["physics_convex"] = zlib.compress(binary(sl.hulls()), 1)
    other = sl.bundle([sl.asset({}, stored=quick, header={"material_list": ["wood"]})], [sl.instance()])
    assert other != data
    assert SECOND_LIFE_BUNDLE.same_content(data, other)
    moved = sl.bundle([MESH], [sl.instance(label="crates")])
    assert not SECOND_LIFE_BUNDLE.same_content(data, moved)
    changed = sl.asset({"physics_convex": sl.hulls(), **LEVELS}, header={"material_list": ["woods"]})
    assert not SECOND_LIFE_BUNDLE.same_content(data, sl.bundle([changed], [sl.instance()]))


@pytest.mark.parametrize(
    "data",
    [
        sl.bundle([MESH], [sl.instance()]),
        sl.bundle([MESH], [sl.instance(label="x" * 5000)]),
        sl.bundle([MESH], [sl.instance(label=f"{number}") for number in range(60)]),
        binary({"mesh": [], "version": 3}),
    ],
)
def test_recognised_by_content(data: bytes) -> None:
    """Headers of the assets inside, within the first bytes, must not make it one of them."""
    assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is SECOND_LIFE_BUNDLE
    assert not SECOND_LIFE_MESH.sniff(data[: registry.HEAD_SIZE], len(data))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (sl.bundle([MESH], [sl.instance()], version=2), "version 2"),
        (sl.bundle([MESH], [sl.instance()], version=4), "version 4"),
        (sl.bundle([MESH], [sl.instance()], version="3"), "no version"),
        (sl.bundle([], [sl.instance()]), "no mesh"),
        (binary({"mesh": 5, "instance": [], "version": 3}), "no mesh"),
        (binary({"mesh": [5], "instance": [], "version": 3}), "not a mesh asset"),
        (binary({"mesh": ["text"], "version": 3}), "no list of instances"),
        (sl.bundle([b"nothing"], [sl.instance()]), "mesh 1"),
        (sl.bundle([MESH, MESH[:-60]], [sl.instance()]), ""),
        (sl.bundle([MESH], [sl.instance()])[:-20], "cut off"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    if said:
        with pytest.raises(FormatError, match=said):
            read(data)
    else:  # a mesh that is cut off loses the blocks that stick out
        assert any("Mesh 2: The file is cut off" in text for text in read(data).warnings)


def test_another_version_is_no_damage() -> None:
    with pytest.raises(UnsupportedFormatError):
        read(sl.bundle([MESH], [sl.instance()], version=4))


def test_meshes_as_binary_data_are_read_and_mended() -> None:
    bundle = read(sl.bundle([MESH], [sl.instance()], marked=bytes))
    assert "binary data" in bundle.warnings[0]
    assert SECOND_LIFE_BUNDLE.write(bundle) == sl.bundle([MESH], [sl.instance()])


def test_all_meshes_share_one_bound() -> None:
    data = sl.bundle([MESH] * 5, [sl.instance()])
    size = sum(len(binary(block)) for block in (*LEVELS.values(), sl.hulls()))
    assert SECOND_LIFE_BUNDLE.read(data, inflated_limit=5 * size)
    with pytest.raises(FormatError, match=r"^mesh 5, .*inflates to far more"):
        SECOND_LIFE_BUNDLE.read(data, inflated_limit=5 * size - 1)


def test_instances() -> None:
    warnings: list[str] = []
    (found,) = instances_of(read(sl.bundle([MESH], [sl.instance()])), Report(warnings))
    assert warnings == []
    assert (found.mesh, found.label) == (0, "crate")
    assert (found.transform @ [0.5, 0.5, 0.5, 1]).tolist() == [4, 0.5, 1.25, 1]
    assert found.materials == [BundleMaterial("wood", (1, 0.5, 0, 1), "wood.png", "wood", fullbright=False)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mesh_id": 1}, "not in the file"),
        ({"mesh_id": -1}, "not in the file"),
        ({"mesh_id": "0"}, "not in the file"),
        ({"transform": sl.reals(*[float("nan")] * 16)}, "not a matrix"),
        ({"transform": sl.reals(*[1e39] * 16)}, "not a matrix"),
        ({"transform": sl.IDENTITY[:12]}, "not a matrix"),
        ({"transform": None}, "not a matrix"),
    ],
)
def test_instances_that_are_left_out(changes: dict[str, Any], said: str) -> None:
    warnings: list[str] = []
    found = instances_of(read(sl.bundle([MESH], [sl.instance(**changes), sl.instance()])), Report(warnings))
    assert len(found) == 1
    assert len(warnings) == 1 and "'crate'" in warnings[0] and said in warnings[0]


@pytest.mark.parametrize(
    ("material", "wanted"),
    [
        (None, []),
        (5, []),
        ([5, {}], [BundleMaterial("")]),
        ([{"binding": "a", "diffuse": {"color": [2.0, float("nan"), -1, 1]}}], [BundleMaterial("a", (1, 1, 0, 1))]),
        ([{"binding": "a", "diffuse": {"color": [1]}, "fullbright": True}], [BundleMaterial("a", fullbright=True)]),
    ],
)
def test_odd_materials(material: Any, wanted: list[BundleMaterial]) -> None:
    (found,) = instances_of(read(sl.bundle([MESH], [sl.instance(material=material)])), Report())
    assert found.materials == wanted


def test_a_new_bundle_is_as_the_viewer_saves_it() -> None:
    transform = np.diag((2.0, 1.0, 0.5, 1.0))
    transform[:3, 3] = (3, 0, 1)
    rusty = BundleMaterial("Rust", (0.5, 0.5, 0.5, 1), fullbright=True)
    wood = BundleMaterial("wood", (1, 0.5, 0, 1), "wood.png", "wood")
    bundle = bundle_of("box", [codec.read(MESH)], [Instance(0, "crate", transform, [wood, rusty])])
    diffuse = {"color": sl.reals(0.5, 0.5, 0.5, 1), "filename": "", "label": ""}
    material = [{"binding": "Rust", "diffuse": diffuse, "fullbright": True}, *sl.instance()["material"]]
    assert SECOND_LIFE_BUNDLE.write(bundle) == sl.bundle([MESH], [sl.instance(material=material)])


def test_facts() -> None:
    bundle = read(sl.bundle([MESH, SUBMODEL], [sl.instance(), sl.instance(**OTHER_PLACE), sl.instance(mesh_id=9)]))
    facts = SECOND_LIFE_BUNDLE.facts(bundle)
    size = len(zlib.compress(binary([sl.square()]), 9))
    assert facts["version"] == "3"
    assert facts["lods"] == {
        level: {"triangles": 4, "vertices": 8, "bytes": 2 * size}
        for level in ("high_lod", "medium_lod", "low_lod", "lowest_lod")
    }
    assert (facts["triangles"], facts["vertices"], facts["surfaces"], facts["materials"]) == (4, 8, 2, 1)
    assert facts["download_weight"] == 0.12
    assert ["'crate'" in text for text in facts["warnings"]] == [True]


def test_a_collada_file_lies_beside_it_and_is_older() -> None:
    data = sl.bundle([MESH, SUBMODEL], [sl.instance(), sl.instance(**OTHER_PLACE)])
    companion, chosen = SECOND_LIFE_BUNDLE.write_files(read(data), "Crate")
    assert (companion.name, companion.delay) == ("Crate.dae", 0)
    assert (chosen.name, chosen.delay, chosen.data) == ("Crate.slm", 2, data)
    root = ET.fromstring(companion.data)
    names = {"c": root.tag[1:].partition("}")[0]}
    assert root.tag.endswith("}COLLADA")
    geometries = root.findall(".//c:geometry", names)
    assert len(geometries) == 2
    assert [len(geometry.findall(".//c:triangles", names)) for geometry in geometries] == [1, 1]
    assert [int(found.get("count", "0")) for found in root.iterfind(".//c:triangles", names)] == [2, 2]
    assert len(root.findall(".//c:instance_geometry", names)) == 2
    assert root.find(".//c:image", names) is None
