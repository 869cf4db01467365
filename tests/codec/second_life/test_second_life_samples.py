"""Every sample asset against facts that another decoder found, and back to bytes without a loss."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llsd import LLSDBinaryParser
from meshferry.io_formats import registry
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.encodings.quantization import dequantise, dequantise_normals, quantise
from meshferry.io_formats.second_life.asset import codec
from meshferry.io_formats.second_life.asset.codec import Asset
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.models import level_block, physics_block
from meshferry.io_formats.second_life.models.skin_block import block_of, skin_of
from meshfuzz import second_life_seeds as sl
from second_life_bytes import plain

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    return samples / "secondlife"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Facts]:
    found: dict[str, Facts] = json.loads((folder / "expected.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def assets(folder: Path, expected: dict[str, Facts]) -> dict[str, tuple[bytes, Asset, Facts]]:
    found = {}
    for name, facts in expected.items():
        data = (folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == facts["sha256"], name
        if "lods" in facts:
            found[name] = (data, codec.read(data), facts)
    assert len(found) == 26
    return found


Assets = dict[str, tuple[bytes, Asset, Facts]]


def by_the_library(data: bytes) -> tuple[list[str], dict[str, bytes], bytes]:
    """Return keys of the header, inflated blocks without the old prefix, and what trails, without our codec."""
    bare = data[len(sl.PREFIX) :].lstrip() if data.startswith(sl.PREFIX) else data
    header = plain(bare)
    start = len(data) - len(bare) + header_size(bare)
    last, blocks = start, {}
    for key, entry in header.items():
        if isinstance(entry, dict) and {"offset", "size"} <= entry.keys():
            place = start + entry["offset"]
            stored = data[place : place + entry["size"]]
            last = max(last, place + entry["size"])
            content = stored if key == "physics_havok" else zlib.decompress(stored)
            blocks[key] = content[len(sl.PREFIX) :].lstrip() if content.startswith(sl.PREFIX) else content
    return list(header), blocks, data[last:]


def header_size(data: bytes) -> int:
    stream = io.BytesIO(data)
    LLSDBinaryParser().parse(stream)
    return stream.tell()


def test_assets_survive_bytes_to_document_to_bytes(assets: Assets) -> None:
    for name, (data, asset, facts) in assets.items():
        written = codec.write(asset)
        keys, blocks, trailing = by_the_library(written)
        assert (keys, blocks, trailing) == by_the_library(data), name
        assert keys == facts["header_keys"], name
        assert len(trailing) == facts["trailing_bytes"], name
        assert codec.same_content(data, written), name
        assert (asset.header_size, asset.prefix_size) == (facts["header_bytes"], facts["prefix_bytes"]), name


def test_a_lost_byte_is_noticed(assets: Assets) -> None:
    """What ``--verify`` compares has to be able to fail."""
    data, asset, _ = assets["benthic_rigged22.mesh"]
    content = asset.blocks["high_lod"][0]["Position"]
    asset.blocks["high_lod"][0]["Position"] = bytes([content[0] ^ 1]) + content[1:]
    assert not codec.same_content(data, codec.write(asset))
    asset.blocks["high_lod"][0]["Position"] = content
    assert codec.same_content(data, codec.write(asset))
    assert not codec.same_content(data, data[:-1])


def test_recognised_by_content(folder: Path, expected: dict[str, Facts]) -> None:
    for name in expected:
        data = (folder / name).read_bytes()
        wanted = SECOND_LIFE_BUNDLE if name.endswith(".slm") else SECOND_LIFE_MESH
        assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is wanted, name


def levels_of(assets: Assets) -> Iterator[tuple[str, str, level_block.Face, Facts]]:
    for name, (_, asset, facts) in assets.items():
        for level, expected in facts["lods"].items():
            warnings: list[str] = []
            faces = level_block.faces_of(asset.blocks[level], Report(warnings, level))
            assert warnings == [], name
            assert len(faces) == len(expected), (name, level)
            for face, wanted in zip(faces, expected, strict=True):
                yield name, level, face, wanted


def test_faces_are_as_expected(assets: Assets) -> None:
    compared = 0
    for name, level, face, wanted in levels_of(assets):
        where = (name, level)
        if "vertices" not in wanted:
            assert face.no_geometry, where
            continue
        assert (len(face.positions), len(face.triangles)) == (wanted["vertices"], wanted["triangles"]), where
        positions = dequantise(face.positions, face.position_domain).astype(np.float64)
        near(positions.min(axis=0), wanted["aabb_min"], where)
        near(positions.max(axis=0), wanted["aabb_max"], where)
        near(positions.mean(axis=0), wanted["centroid"], where)
        assert face.triangles[0].tolist() == wanted["first_triangle"], where
        assert face.triangles[-1].tolist() == wanted["last_triangle"], where
        if "normal0" in wanted:
            assert face.normals is not None
            normal = dequantise_normals(face.normals)[0]
            assert np.allclose(normal, wanted["normal0"], rtol=0, atol=3e-5), where
        if "uv0" in wanted:
            assert face.uvs is not None and face.uv_domain is not None
            uvs = dequantise(face.uvs, face.uv_domain).astype(np.float64)
            for found, key in ((uvs[0], "uv0"), (uvs.min(axis=0), "uv_min"), (uvs.max(axis=0), "uv_max")):
                assert np.allclose(found, wanted[key], rtol=2e-5, atol=2e-5), (*where, key)
        if "first_vertex_weights" in wanted:
            check_weights(face, wanted, where)
        if "normalized_scale" in wanted:
            assert face.normalized_scale == pytest.approx(wanted["normalized_scale"]), where
        compared += 1
    assert compared > 200


def near(found: Any, wanted: list[float], where: tuple[str, str]) -> None:
    """Compare with the tolerance that comes with the facts."""
    assert (np.abs(found - wanted) <= 2e-6 * (1 + np.abs(wanted))).all(), where


def check_weights(face: level_block.Face, wanted: Facts, where: tuple[str, str]) -> None:
    assert face.joint_indices is not None and face.joint_weights is not None and face.influences is not None
    first = [pair for pair in wanted["first_vertex_weights"] if pair[1]]
    count = int(face.influences[0])
    found = np.stack((face.joint_indices[0, :count], face.joint_weights[0, :count]), axis=1).tolist()
    assert found == first, where
    skipped = wanted["influences"] - int(face.influences.sum())
    assert skipped == (1 if where == ("benthic_rigged22.mesh", "high_lod") else 0), where  # one weight is zero
    held = np.arange(4) < face.influences[:, None]
    assert int(face.joint_indices[held].max()) == wanted["max_joint"], where


def test_blocks_survive_arrays(assets: Assets) -> None:
    for name, (_, asset, _) in assets.items():
        for block, stored in asset.blocks.items():
            value = stored
            warnings: list[str] = []
            if block == "skin":
                skin = skin_of(value, Report(warnings))
                assert skin is not None
                again: Any = block_of(skin)
            elif block == "physics_convex":
                again = physics_block.block_of(physics_block.hulls_of(value, Report(warnings, "Physics hulls")))
            else:
                again = level_block.block_of(level_block.faces_of(value, Report(warnings, "")))
            if (name, block) == ("benthic_rigged22.mesh", "high_lod"):  # has a weight of zero, which is not written
                assert len(again[0].pop("Weights")) == len(value[0]["Weights"]) - 3
                value = [{key: inner for key, inner in value[0].items() if key != "Weights"}]
            assert again == value, (name, block)
            assert warnings == [], (name, block)


def test_quantised_values_survive_numbers(assets: Assets) -> None:
    for name, level, face, _ in levels_of(assets):
        if face.no_geometry:
            continue
        positions = dequantise(face.positions, face.position_domain)
        assert (quantise(positions, face.position_domain) == face.positions).all(), (name, level)
        if face.uvs is not None and face.uv_domain is not None:
            uvs = dequantise(face.uvs, face.uv_domain)
            assert (quantise(uvs, face.uv_domain) == face.uvs).all(), (name, level)


def test_rigs_are_as_expected(assets: Assets) -> None:
    rigged = 0
    for name, (_, asset, facts) in assets.items():
        if "skin" not in facts:
            assert "skin" not in asset.blocks
            continue
        wanted = facts["skin"]
        skin = skin_of(asset.blocks["skin"], Report())
        assert skin is not None and skin.usable is None, name
        assert skin.joint_names == wanted["joint_names"], name
        assert np.allclose(skin.bind_shape, wanted["bind_shape_matrix"], rtol=1e-5, atol=1e-6), name
        assert np.allclose(skin.inverse_bind[0], wanted["inverse_bind_0"], rtol=1e-5, atol=1e-6), name
        assert (skin.alt_inverse_bind is None) == (not wanted.get("alt")), name
        if wanted.get("alt"):
            assert skin.alt_inverse_bind is not None and len(skin.alt_inverse_bind) == wanted["alt"]
            assert skin.pelvis_offset == pytest.approx(wanted["pelvis_offset"])
            assert skin.lock_scale == wanted["lock_scale"]
        rigged += 1
    assert rigged == 4


def test_hulls_are_as_expected(assets: Assets) -> None:
    hulls = 0
    for name, (_, asset, facts) in assets.items():
        wanted = facts["physics_convex"]
        found = physics_block.hulls_of(asset.blocks["physics_convex"])
        assert [len(points) for points in found.hulls] == wanted["hulls"], name
        assert found.base is not None and len(found.base) == wanted["base_hull_points"], name
        assert np.allclose(found.domain, (wanted["min"], wanted["max"]), rtol=0, atol=1e-9), name
        hulls += len(found.hulls)
    assert hulls > 15


def test_facts_are_as_expected(assets: Assets) -> None:
    for name, (_, asset, expected) in assets.items():
        facts = SECOND_LIFE_MESH.facts(asset)
        for level, faces in expected["lods"].items():
            if level == "physics_mesh":
                continue
            assert facts["lods"][level] == {
                "triangles": sum(face.get("triangles", 0) for face in faces),
                "vertices": sum(face.get("vertices", 0) for face in faces),
                "bytes": expected["lod_block_sizes"][level],
            }, (name, level)
        assert facts["hulls"] == len(expected["physics_convex"]["hulls"]), name
        assert facts["surfaces"] == len(expected["lods"]["high_lod"]), name
        assert facts["bones"] == len(expected.get("skin", {}).get("joint_names", [])), name
        sized = "skin" in expected or "normalized_scale" in expected["lods"]["high_lod"][0]
        if not sized:
            assert facts["download_weight"] == expected["streaming_cost_at_1m"], name
        prefix = bool(expected["prefix_bytes"])
        assert len(facts["warnings"]) == prefix, name


def test_what_servers_add_is_kept(assets: Assets) -> None:
    _, asset, facts = assets["synthetic/synth_server_header.llmesh"]
    assert asset.header["version"] == facts["version"] == 1
    assert str(asset.header["creator"]) == facts["creator"]
    cost = asset.header["physics_cost_data"]
    assert {key: cost[key] for key in facts["physics_cost_data"]} == facts["physics_cost_data"]
    assert list(asset.opaque) == ["physics_havok"]


def test_the_bundle_survives_bytes_to_document_to_bytes(folder: Path, expected: dict[str, Facts]) -> None:
    data = (folder / "synthetic" / "synth_scene.slm").read_bytes()
    bundle = SECOND_LIFE_BUNDLE.read(data)
    written = SECOND_LIFE_BUNDLE.write(bundle)
    assert SECOND_LIFE_BUNDLE.same_content(data, written)
    facts = expected["synthetic/synth_scene.slm"]
    assert len(written) == len(data) == facts["size"]
    for asset, wanted in zip(bundle.meshes, facts["meshes"], strict=True):
        assert list(asset.header) == wanted["header_keys"]
        raw = codec.write(asset, longest_header=1 << 20)
        keys, _, _ = by_the_library(raw)
        assert keys == wanted["header_keys"]
        assert hashlib.sha256(raw).hexdigest() == wanted["sha256"]
