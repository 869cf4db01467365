"""Conversions between Second Life's files and those of other programs; no Blender."""

from __future__ import annotations

import numpy as np
import pytest
import second_life_judge as judge
import second_life_made as made
import second_life_oracle as oracle
from meshfuzz import second_life_seeds as seeds
from outputs import names_in


def bounds(points):
    return np.round(np.array([points.min(axis=0), points.max(axis=0)], float), 5).tolist()


def test_a_static_mesh_has_its_size_in_a_format_with_node_trees(meshferry, write, tmp_path):
    pytest.importorskip("google.protobuf")
    from meshferry.io_formats import api as files

    source = write("crate.llmesh", made.crate())
    done = meshferry("convert", "--json", source, tmp_path / "crate.timbermesh")
    assert (done.status, done.err) == (0, "")
    (entry,) = done.entries
    assert (entry["facts"]["nodes"], entry["facts"]["triangles"], entry["facts"]["materials"]) == (1, 12, 2)
    assert "files" not in entry
    assert any("3 lower levels of detail not carried over" in text for text in entry["warnings"])
    assert any("physics shape not carried over" in text for text in entry["warnings"])
    (node,) = files.read_scene(tmp_path / "crate.timbermesh").nodes
    assert node.mesh is not None
    assert bounds(node.mesh.points * np.array(node.scale)) == [[-1, -0.5, -0.25], [1, 0.5, 0.25]]


def test_a_static_mesh_has_its_size_and_levels_in_a_format_of_single_meshes(meshferry, write, tmp_path):
    import unigine_oracle

    source = write("crate.llmesh", made.crate())
    done = meshferry("convert", "--json", source, tmp_path / "crate.mesh")
    assert (done.status, done.err) == (0, "")
    found = unigine_oracle.decode((tmp_path / "crate.mesh").read_bytes())
    high = [surface for surface in found.surfaces if surface.name.endswith("_lod_0")]
    assert bounds(np.concatenate([surface.targets[0].positions for surface in high])) == [
        [-1, -0.5, -0.25],
        [1, 0.5, 0.25],
    ]
    triangles = dict.fromkeys(range(4), 0)
    for surface in found.surfaces:
        triangles[int(surface.name.rpartition("_lod_")[2])] += len(surface.c_indices) // 3
    assert triangles == {0: 12, 1: 12, 2: 4, 3: 4}
    assert done.entries[0]["facts"]["triangles"] == 12 + 12 + 4 + 4 or done.entries[0]["facts"]["triangles"] == 12


def test_a_rigged_mesh_lies_in_the_space_of_its_bones(meshferry, write, tmp_path):
    import unigine_meaning
    import unigine_oracle

    source = write("torso.llmesh", made.torso())
    done = meshferry("convert", "--json", source, tmp_path / "torso.mesh", "--skeleton-joints", "used")
    assert (done.status, done.err) == (0, "")
    found = unigine_oracle.decode((tmp_path / "torso.mesh").read_bytes())
    points = np.concatenate([surface.targets[0].positions for surface in found.surfaces])
    # The avatar faces -Y in Blender: what was its X (0.3 m) is its Y.
    assert bounds(points) == [[-0.2, -0.15, 1.0], [0.2, 0.15, 1.6]]
    heads = {
        name: matrix[:3, 3].round(4).tolist()
        for (name, _), matrix in zip(found.bones, unigine_meaning.rest_matrices(found), strict=True)
    }
    assert heads["mPelvis"] == [0, 0, 1.067]
    assert heads["mTorso"] == [0, 0, 1.151]
    assert heads["mChest"] == [0, 0.015, 1.356]


def test_a_tree_becomes_a_set_in_which_everything_stands_in_its_place(meshferry, windmill, tmp_path):
    from xml.etree import ElementTree as ET

    out = tmp_path / "windmill.dae"
    done = meshferry("convert", "--json", windmill, out)
    assert done.status == 0, done.err
    (entry,) = done.entries
    beside = ["windmill_LOD2.dae", "windmill_LOD1.dae", "windmill_LOD0.dae"]
    assert sorted(entry["files"]) == sorted(str(tmp_path / name) for name in [*beside, "windmill.dae"])
    assert entry["files"][-1] == str(out)
    assert all((tmp_path / name).is_file() for name in beside)
    tree = ET.parse(out).getroot()
    space = {"c": tree.tag[1:].partition("}")[0]}
    assert len(tree.findall(".//c:geometry", space)) == 2
    matrices = [
        np.array(matrix.text.split(), float).reshape(4, 4)
        for node in tree.findall(".//c:visual_scene//c:node", space)
        if node.find("c:instance_geometry", space) is not None
        for matrix in node.findall("c:matrix", space)
    ]
    assert [matrix[:3, 3].round(5).tolist() for matrix in matrices] == [[0, 0, 0], [0, -1, 3]]
    assert any("parent relation not carried over" in text for text in entry["warnings"])
    assert any("animat" in text for text in entry["warnings"])
    assert "windmill.dae and 3 files beside it: 2 objects" in meshferry("convert", windmill, out).out


@pytest.mark.parametrize("name", ["crate", "torso"])
def test_as_imported_an_asset_comes_back_as_it_was(name, meshferry, write, tmp_path):
    before = {"crate": made.crate, "torso": made.torso}[name]()
    source = write(f"{name}.llmesh", before)
    done = meshferry("convert", "--json", "--as-imported", source, tmp_path / "again.llmesh")
    assert done.status == 0, done.err
    assert not any("no effect" in text for text in done.err.splitlines())
    after = oracle.decode((tmp_path / "again.llmesh").read_bytes())
    verdict = judge.same_asset(oracle.decode(before), after, weights=1)
    assert verdict.normal <= 1


def test_without_the_flag_an_asset_gets_what_an_upload_needs(meshferry, write, tmp_path):
    bare = write("bare.llmesh", seeds.asset({"high_lod": [made.box()]}))
    done = meshferry("convert", "--json", bare, tmp_path / "whole.llmesh")
    assert done.status == 0, done.err
    after = oracle.decode((tmp_path / "whole.llmesh").read_bytes())
    assert list(after.levels) == list(oracle.LEVELS)
    assert after.hulls is not None
    assert after.hulls.base is not None
    assert after.scale == (1, 1, 1)
    done = meshferry("convert", "--json", bare, tmp_path / "bare2.llmesh", "--as-imported", "--assumed-size", 4)
    assert done.status == 0, done.err
    after = oracle.decode((tmp_path / "bare2.llmesh").read_bytes())
    assert list(after.levels) == ["high_lod"]


def test_the_size_of_an_asset_that_says_none_is_an_option(meshferry, write, tmp_path):
    bare = write("bare", seeds.asset({"high_lod": [made.box()]}))
    done = meshferry("convert", bare, tmp_path / "whole.llmesh", "--assumed-size", 4)
    assert (done.status, "no effect" in done.err) == (0, False)
    assert oracle.decode((tmp_path / "whole.llmesh").read_bytes()).scale == (4, 4, 4)


def test_a_bundle_becomes_an_asset_and_back(meshferry, write, tmp_path):
    source = write("crates.slm", made.bundle())
    done = meshferry("convert", "--json", source, "--to", "llmesh", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert names_in(tmp_path / "out") == ["crates.llmesh"]
    asset = oracle.decode((tmp_path / "out" / "crates.llmesh").read_bytes())
    assert asset.scale == pytest.approx((2, 1, 0.5))
    done = meshferry("convert", "--json", tmp_path / "out" / "crates.llmesh", tmp_path / "again.slm")
    assert done.status == 0, done.err
    again = oracle.decode_bundle((tmp_path / "again.slm").read_bytes())
    (instance,) = again.instances
    np.testing.assert_allclose(np.diag(instance.transform), (2, 1, 0.5, 1), atol=1e-6)
    (asset,) = again.assets
    assert list(asset.levels) == list(oracle.LEVELS)
    assert [material["binding"] for material in instance.materials] == sorted(asset.header["material_list"])
    files = done.entries[0]["files"]
    assert files[-1] == str(tmp_path / "again.slm")
    # The viewer takes a bundle that is newer than the file beside it.
    newest = (tmp_path / "again.slm").stat().st_mtime
    assert all(newest - (tmp_path / name).stat().st_mtime >= 1 for name in ["again.dae"])


def test_an_upload_request_is_two_bodies(meshferry, write, tmp_path):
    llsd = pytest.importorskip("llsd")
    source = write("crate.llmesh", made.crate())
    done = meshferry("convert", "--json", source, tmp_path / "crate.llsd")
    assert done.status == 0, done.err
    assert done.entries[0]["files"] == [str(tmp_path / "crate.fee.llsd"), str(tmp_path / "crate.llsd")]
    body = llsd.parse_xml((tmp_path / "crate.llsd").read_bytes())
    (mesh,) = body["mesh_list"]
    assert list(oracle.decode(bytes(mesh)).levels) == list(oracle.LEVELS)
    fee = llsd.parse_xml((tmp_path / "crate.fee.llsd").read_bytes())
    assert fee["asset_resources"]["instance_list"][0]["scale"] == pytest.approx([2, 1, 0.5])


def test_sets_of_one_run_do_not_write_over_each_other(meshferry, write, tmp_path):
    sources = [write(f"in/{name}.llmesh", made.crate()) for name in ("crate", "crate_LOD2", "lamp")]
    done = meshferry("convert", "--json", *sources, "--to", "dae", "-o", tmp_path / "out")
    assert done.status == 1
    one, _other, lamp = done.entries
    assert "crate_LOD2.dae" in one["error"]
    assert "other files of this run" in one["error"]
    assert "error" not in lamp
    there = names_in(tmp_path / "out")
    assert "crate.dae" not in there
    assert "lamp.dae" in there


def test_levels_in_the_names_of_surfaces_become_levels(meshferry, write, tmp_path):
    source = write("crate.llmesh", made.crate())
    assert meshferry("convert", source, tmp_path / "crate.mesh").status == 0
    done = meshferry("convert", "--json", tmp_path / "crate.mesh", tmp_path / "again.llmesh")
    assert done.status == 0, done.err
    again = oracle.decode((tmp_path / "again.llmesh").read_bytes())
    assert {level: sum(len(face.triangles) for face in faces) for level, faces in again.levels.items()} == {
        "high_lod": 12,
        "medium_lod": 12,
        "low_lod": 4,
        "lowest_lod": 4,
    }
    assert again.scale == pytest.approx((2, 1, 0.5))
