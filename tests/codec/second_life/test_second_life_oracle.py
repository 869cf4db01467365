"""The oracle proven on real files, from what others counted in them; then our reader against the oracle.

``second_life_oracle`` shares no line with the codec. It is held against the samples' ``expected.json`` and README,
which a decoder made apart from ours has filled, and against Linden Lab's own ``llsd``.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_life_comparison as comparison
import second_life_judge as judge
import second_life_made as made
import second_life_oracle as oracle
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE

ROW = re.compile(r"^\| `(\w+\.(?:ll)?mesh)` \|" + r" ([^|]*) \|" * 7, re.MULTILINE)
HASH = re.compile(r"^\| `(\w+\.(?:ll)?mesh)` \|.* (\d+) \| `([0-9a-f]{64})` \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def folder(samples: Path) -> Path:
    if not (samples / "secondlife").is_dir():
        pytest.skip(f"no real Second Life files in {samples}")
    return samples / "secondlife"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((folder / "expected.json").read_text("utf-8"))
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".mesh", ".llmesh", ".slm")}
    assert there == set(found)
    assert len(found) == 27
    return found


@pytest.fixture(scope="module")
def decoded(folder: Path, expected: dict[str, Any]) -> dict[str, oracle.Asset]:
    return {name: oracle.decode((folder / name).read_bytes()) for name in expected if not name.endswith(".slm")}


def face_facts(asset: oracle.Asset, face: oracle.Face) -> dict[str, Any]:
    """What ``expected.json`` says of a face."""
    if face.no_geometry:
        return {"no_geometry": True}
    positions = face.positions
    facts: dict[str, Any] = {
        "vertices": len(positions),
        "triangles": len(face.triangles),
        "aabb_min": positions.min(axis=0).tolist(),
        "aabb_max": positions.max(axis=0).tolist(),
        "centroid": positions.astype(float).mean(axis=0).tolist(),
        "first_triangle": face.triangles[0].tolist(),
        "last_triangle": face.triangles[-1].tolist(),
    }
    if face.stored_normals is not None:
        facts["normal0"] = face.normals[0].tolist()
    if face.stored_uvs is not None:
        facts["uv0"] = face.uvs[0].tolist()
        facts["uv_min"] = face.uvs.min(axis=0).tolist()
        facts["uv_max"] = face.uvs.max(axis=0).tolist()
    if face.scale is not None:
        facts["normalized_scale"] = list(face.scale)
    if face.weights is not None and asset.skin is not None:
        facts["influences"] = sum(map(len, face.weights))
        facts["first_vertex_weights"] = [list(pair) for pair in face.weights[0]]
        facts["max_joint"] = max(joint for pairs in face.weights for joint, _ in pairs)
    return facts


def agree(found: Any, said: Any, where: str, within: float = 2e-5) -> None:
    """Compare numbers with a tolerance relative to their size, everything else exactly."""
    if isinstance(said, dict):
        assert set(found) == set(said), where
        for key in said:
            fine = key in ("aabb_min", "aabb_max", "centroid", "inverse_bind_0", "bind_shape_matrix")
            agree(found[key], said[key], f"{where} {key}", 2e-6 if fine else within)
    elif isinstance(said, list):
        assert len(found) == len(said), where
        for number, (one, other) in enumerate(zip(found, said, strict=True)):
            agree(one, other, f"{where}[{number}]", within)
    elif isinstance(said, float):
        assert abs(found - said) <= within * (1 + abs(said)), f"{where}: {found} is not {said}"
    else:
        assert found == said, where


def check_asset(asset: oracle.Asset, said: dict[str, Any], name: str) -> None:
    assert asset.header_size == said["header_bytes"], name
    assert asset.prefix_size == said["prefix_bytes"], name
    assert len(asset.trailing) == said["trailing_bytes"], name
    assert list(asset.header) == said["header_keys"], name
    levels = dict(asset.levels)
    if asset.physics_mesh is not None:
        levels["physics_mesh"] = asset.physics_mesh
    found = {level: [face_facts(asset, face) for face in faces] for level, faces in levels.items()}
    agree(found, said["lods"], name)
    assert asset.header.get("material_list") == said.get("material_list")
    assert (asset.skin is None) == ("skin" not in said)
    if asset.skin is not None:
        skin = {
            "joint_names": asset.skin.joints,
            "bind_shape_matrix": asset.skin.bind_shape.ravel().tolist(),
            "alt": 0 if asset.skin.overrides is None else len(asset.skin.overrides),
            "pelvis_offset": asset.skin.pelvis_offset,
            "lock_scale": asset.skin.lock_scale or None,
            "finite": True,
            "inverse_bind_0": asset.skin.inverse_bind[0].ravel().tolist(),
        }
        agree({key: skin[key] for key in said["skin"]}, said["skin"], name)
    hulls = asset.hulls
    assert (hulls is None) == (said["physics_convex"] is None)
    if hulls is not None:
        assert hulls.base is not None
        facts = {
            "hulls": [len(hull) for hull in hulls.hulls],
            "base_hull_points": len(hulls.base),
            "min": hulls.domain[0].tolist(),
            "max": hulls.domain[1].tolist(),
        }
        agree(facts, said["physics_convex"], name)
    if "lod_block_sizes" not in said:  # of a bundle's mesh
        return
    assert {level: asset.sizes.get(level, 0) for level in said["lod_block_sizes"]} == said["lod_block_sizes"]
    sizes = {level: asset.sizes[level] for level in oracle.LEVELS if level in asset.sizes}
    for size, key in ((1.0, "streaming_cost_at_1m"), (10.0, "streaming_cost_at_10m")):
        assert round(oracle.streaming_cost(sizes, (size, size, size)), 4) == said[key], name
    assert round(oracle.animesh_cost(sizes), 4) == said["animesh_triangle_cost"], name


def test_the_oracle_finds_in_real_files_what_others_found(
    folder: Path, decoded: dict[str, oracle.Asset], expected: dict[str, dict[str, Any]]
) -> None:
    for name, asset in decoded.items():
        check_asset(asset, expected[name], name)
    said = expected["synthetic/synth_scene.slm"]
    bundle = oracle.decode_bundle((folder / "synthetic" / "synth_scene.slm").read_bytes())
    assert (bundle.name, bundle.value["version"]) == (said["name"], said["version"])
    for number, (asset, mesh) in enumerate(zip(bundle.assets, said["meshes"], strict=True)):
        check_asset(asset, mesh, f"mesh {number}")
        assert asset.header.get("submodel_id") == mesh.get("submodel_id")
    for instance, told in zip(bundle.instances, said["instances"], strict=True):
        assert (instance.mesh, instance.label) == (told["mesh_id"], told["label"])
        assert instance.transform.ravel().tolist() == told["transform"]
        assert [material["binding"] for material in instance.materials] == told["materials"]


def test_the_oracle_counts_what_the_readme_counts(folder: Path, decoded: dict[str, oracle.Asset]) -> None:
    rows = ROW.findall((folder / "README.md").read_text("utf-8"))
    assert {row[0] for row in rows} == {name for name in decoded if "/" not in name}
    for name, *columns in rows:
        asset = decoded[name]
        for level, column in zip((*oracle.LEVELS, "physics_mesh"), columns, strict=False):
            faces = asset.physics_mesh if level == "physics_mesh" else asset.levels[level]
            if column == "–":
                assert faces is None
                continue
            assert faces is not None
            vertices = sum(len(face.stored) for face in faces)
            triangles = sum(len(face.triangles) for face in faces)
            assert column == f"{len(faces)} f {vertices} v {triangles} t", name
        assert asset.hulls is not None
        assert asset.hulls.base is not None
        assert columns[5] == f"{len(asset.hulls.hulls)} hulls, {len(asset.hulls.base)} base pts"
        assert columns[6] == ("–" if asset.skin is None else str(len(asset.skin.joints)))


def test_the_oracle_finds_what_the_made_files_hold(folder: Path, decoded: dict[str, oracle.Asset]) -> None:
    box = decoded["synthetic/synth_box_1face.llmesh"]
    assert box.scale == (2.0, 1.0, 0.5)
    assert decoded["synthetic/synth_flat_z.llmesh"].scale == (3.0, 3.0, 1.0)
    server = decoded["synthetic/synth_server_header.llmesh"].header
    assert str(server["creator"]) == "00112233-4455-6677-8899-aabbccddeeff"
    assert server["date"] == 1700000000.25
    assert decoded["synthetic/synth_server_header.llmesh"].havok
    bundle = oracle.decode_bundle((folder / "synthetic" / "synth_scene.slm").read_bytes())
    assert len(bundle.assets) == len(bundle.instances) == 3
    assert [asset.header.get("submodel_id") for asset in bundle.assets].count(None) == 2
    assert [asset.hulls is None for asset in bundle.assets] == [
        bool(a.header.get("submodel_id")) for a in bundle.assets
    ]
    crate = next(instance for instance in bundle.instances if instance.label == "crate")
    positions = np.concatenate([face.positions for face in bundle.assets[crate.mesh].levels["high_lod"]])
    world = np.hstack((positions, np.ones((len(positions), 1)))) @ crate.transform
    np.testing.assert_allclose(world.max(axis=0) - world.min(axis=0), (2, 1, 0.5, 0), atol=1e-6)
    np.testing.assert_allclose((world.max(axis=0) + world.min(axis=0)) / 2, (0, 0, 1, 1), atol=1e-6)


def test_the_example_of_the_page(folder: Path, decoded: dict[str, oracle.Asset]) -> None:
    """Section 13, byte by byte."""
    asset = decoded["synthetic/synth_flat_z.llmesh"]
    assert (asset.header_size, asset.sizes) == (110, {"high_lod": 202, "physics_convex": 75})
    assert {key: len(value) for key, value in asset.inflated.items()} == {"physics_convex": 135, "high_lod": 413}
    (face,) = asset.levels["high_lod"]
    assert face.stored_normals is not None
    assert face.stored_normals.tolist() == [[0x7FFF, 0x7FFF, 0xFFFF]] * 4
    assert face.triangles.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert face.positions.tolist() == [[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0]]


def test_linden_labs_library_finds_the_same_values(decoded: dict[str, oracle.Asset]) -> None:
    llsd = pytest.importorskip("llsd")

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return bytes(value) if isinstance(value, bytes) else value

    for name, asset in decoded.items():
        for block, inflated in asset.inflated.items():
            assert plain(llsd.parse_binary(inflated)) == asset.values[block], f"{name} {block}"


@pytest.mark.parametrize("damage", range(5))
def test_the_oracle_refuses_what_is_damaged(damage: int, folder: Path) -> None:
    data = (folder / "synthetic" / "synth_rig_cv.llmesh").read_bytes()
    broken = (data[:-1], data[:40], data.replace(b"high_lod", b"high_lop"), data[:-300] + bytes(300), data[1:])[damage]
    if damage == 2:
        assert "high_lod" not in oracle.decode(broken).levels
        return
    with pytest.raises(oracle.WrongFile):
        oracle.decode(broken)


def test_the_judge_finds_nothing_in_a_file_and_itself(decoded: dict[str, oracle.Asset]) -> None:
    for name, asset in decoded.items():
        after = copy.deepcopy(asset)
        after.prefix_size = 0
        verdict = judge.same_asset(asset, after, weights=0, normals=0)
        assert (verdict.repeated, verdict.reordered, verdict.normal, verdict.weight, verdict.matrix) == (0, 0, 0, 0, 0)
        assert verdict.triangles == sum(
            len(face.triangles) for faces in (*asset.levels.values(), asset.physics_mesh or []) for face in faces
        ), name


def one_step(stored: oracle.Ints | None) -> None:
    assert stored is not None
    stored[0, 0] ^= 2


def other_order(face: oracle.Face) -> None:
    """Swap two vertices, and say so everywhere."""
    order = np.arange(len(face.stored))
    order[[0, 1]] = 1, 0
    face.stored = face.stored[order]
    face.stored_normals = face.stored_normals[order]
    face.stored_uvs = face.stored_uvs[order]
    face.weights = [face.weights[number] for number in order]
    face.triangles = order[face.triangles.astype(int)].astype(np.uint16)


DAMAGE: dict[str, Callable[[oracle.Asset], object]] = {
    "positions": lambda asset: one_step(asset.levels["low_lod"][0].stored),
    "domain of positions": lambda asset: asset.levels["low_lod"][0].domain.__setitem__((0, 0), -0.50001),
    "normals": lambda asset: one_step(asset.levels["high_lod"][0].stored_normals),
    "UV": lambda asset: one_step(asset.levels["high_lod"][0].stored_uvs),
    "domain of UV": lambda asset: asset.levels["high_lod"][0].uv_domain.__setitem__((1, 1), 1.01),
    "weights": lambda asset: asset.levels["high_lod"][0].weights[0].__setitem__(0, (0, 65500)),
    "another joint": lambda asset: asset.levels["high_lod"][0].weights[0].__setitem__(0, (1, 65535)),
    "joints": lambda asset: asset.skin.joints.reverse(),
    "bind shape": lambda asset: asset.skin.bind_shape.__setitem__((3, 2), 1.30003),
    "inverse bind": lambda asset: asset.skin.inverse_bind.__setitem__((1, 3, 2), 0.5),
    "joint positions": lambda asset: asset.skin.overrides.__setitem__((1, 3, 2), 0.5),
    "no joint positions": lambda asset: setattr(asset.skin, "overrides", None),
    "pelvis offset": lambda asset: setattr(asset.skin, "pelvis_offset", 0.06),
    "lock scale": lambda asset: setattr(asset.skin, "lock_scale", False),
    "no skin": lambda asset: setattr(asset, "skin", None),
    "base hull": lambda asset: one_step(asset.hulls.base),
    "domain of hulls": lambda asset: asset.hulls.domain.__setitem__((0, 0), -0.4),
    "a hull more": lambda asset: asset.hulls.hulls.append(asset.hulls.base),
    "no hulls": lambda asset: setattr(asset, "hulls", None),
    "a level less": lambda asset: asset.levels.pop("low_lod"),
    "a face more": lambda asset: asset.levels["low_lod"].append(oracle.Face(no_geometry=True)),
    "an empty face": lambda asset: setattr(asset.levels["low_lod"][0], "no_geometry", True),
    "a physics mesh": lambda asset: setattr(asset, "physics_mesh", asset.levels["low_lod"]),
    "a triangle turned": lambda asset: setattr(
        asset.levels["high_lod"][0], "triangles", np.roll(asset.levels["high_lod"][0].triangles, 1, axis=1)
    ),
    "another first triangle": lambda asset: setattr(
        asset.levels["high_lod"][0], "triangles", np.roll(asset.levels["high_lod"][0].triangles, 1, axis=0)
    ),
    "another order": lambda asset: other_order(asset.levels["high_lod"][0]),
    "a submodel": lambda asset: asset.header.__setitem__("submodel_id", 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_judge_finds_each_damage(damage: str, decoded: dict[str, oracle.Asset]) -> None:
    asset = decoded["synthetic/synth_rig_overrides.llmesh"]
    after = copy.deepcopy(asset)
    DAMAGE[damage](after)
    with pytest.raises(AssertionError):
        judge.same_asset(asset, after)
    if damage == "another order":
        assert judge.same_asset(asset, after, in_order=False).reordered == 1


def test_the_judge_leaves_out_triangles_that_blender_does_not_take(decoded: dict[str, oracle.Asset]) -> None:
    after = decoded["synthetic/synth_rig_overrides.llmesh"]
    before = copy.deepcopy(after)
    (face,) = before.levels["high_lod"]
    face.triangles = np.vstack((face.triangles[:3], [[4, 4, 5]], face.triangles[3:])).astype(np.uint16)
    assert judge.same_asset(before, after).repeated == 1
    with pytest.raises(AssertionError):
        judge.same_asset(after, before)


MADE = {"crate": made.crate, "torso": made.torso}


@pytest.mark.parametrize("name", MADE)
def test_our_reader_finds_in_bytes_by_hand_what_the_oracle_finds(name: str) -> None:
    data = MADE[name]()
    found = oracle.decode(data)
    document = SECOND_LIFE_MESH.read(data)
    comparison.same_asset(document, found)
    same_file(found, oracle.decode(SECOND_LIFE_MESH.write(document)))


def same_file(before: oracle.Asset, after: oracle.Asset) -> None:
    """Require the header's keys in their order, every inflated block and the trailing bytes; never the old prefix."""
    assert list(after.header) == list(before.header)
    assert {k: v for k, v in after.header.items() if k not in after.sizes} == {
        k: v for k, v in before.header.items() if k not in before.sizes
    }
    assert list(after.values) == list(before.values)
    for key, inflated in before.inflated.items():
        bare = inflated.removeprefix(oracle.PREFIX).lstrip(b"\n") if inflated.startswith(oracle.PREFIX) else inflated
        assert after.inflated[key] == bare, key
    assert after.havok == before.havok
    assert after.trailing == before.trailing
    assert after.prefix_size == 0


def test_our_codec_and_the_oracle_agree_on_real_files(folder: Path, decoded: dict[str, oracle.Asset]) -> None:
    """Every array of every file; and what our writer makes of it, the oracle reads as it read the file."""
    for name, found in decoded.items():
        document = SECOND_LIFE_MESH.read((folder / name).read_bytes())
        comparison.same_asset(document, found)
        same_file(found, oracle.decode(SECOND_LIFE_MESH.write(document)))


def test_the_download_weight_is_the_oracles(folder: Path, decoded: dict[str, oracle.Asset]) -> None:
    """At the size that the asset says: NormalizedScale, or what the bind shape stretches the unit cube to."""
    for name, found in decoded.items():
        facts = SECOND_LIFE_MESH.facts(SECOND_LIFE_MESH.read((folder / name).read_bytes()))
        size = found.scale
        if found.skin is not None:
            size = tuple(np.linalg.norm(found.skin.bind_shape[:3, :3], axis=1))
        sizes = {level: found.sizes[level] for level in oracle.LEVELS if level in found.sizes}
        assert facts["download_weight"] == pytest.approx(oracle.streaming_cost(sizes, size), abs=6e-5), name
        assert facts["hulls"] == len(found.hulls.hulls), name
        assert facts["triangles"] == sum(len(face.triangles) for face in found.levels["high_lod"])


def bundles(samples: Path) -> list[bytes]:
    real = samples / "secondlife" / "synthetic" / "synth_scene.slm"
    return [made.bundle(), *([real.read_bytes()] if real.is_file() else [])]


def test_our_codec_and_the_oracle_agree_on_bundles(samples: Path) -> None:
    for data in bundles(samples):
        found = oracle.decode_bundle(data)
        document = SECOND_LIFE_BUNDLE.read(data)
        assert document.name == found.name
        for mine, theirs in zip(document.meshes, found.assets, strict=True):
            comparison.same_asset(mine, theirs)
        written = SECOND_LIFE_BUNDLE.write(document)
        again = oracle.decode_bundle(written)
        assert {k: v for k, v in again.value.items() if k != "mesh"} == {
            k: v for k, v in found.value.items() if k != "mesh"
        }
        assert list(again.value) == list(found.value)
        for before, after in zip(found.assets, again.assets, strict=True):
            same_file(before, after)
