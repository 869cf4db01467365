"""What models weigh: the figures of files and of scenes."""

import json
from dataclasses import replace

import pytest
from meshferry.io_formats.api import load
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.second_life.asset import land_impact
from meshferry.io_formats.second_life.asset.mapping import decode_blocks
from meshferry.io_formats.second_life.options import ModelWriteOptions

LEVELS = ("high_lod", "medium_lod", "low_lod", "lowest_lod")


@pytest.fixture(scope="module")
def expected(samples):
    return json.loads((samples / "secondlife" / "expected.json").read_text())


def _of_file(path, size=1.0):
    asset = load(path).document
    return land_impact.figures_of_asset(path.stem, decode_blocks(asset), (size, size, size))


def test_figures_of_every_sample_are_those_expected(samples, expected):
    assert len(expected) >= 26
    for name, facts in expected.items():
        if "streaming_cost_at_1m" not in facts:
            continue
        for size, key in ((1.0, "streaming_cost_at_1m"), (10.0, "streaming_cost_at_10m")):
            found = _of_file(samples / "secondlife" / name, size)
            assert found.download == pytest.approx(facts[key], abs=6e-5), name
        triangles = tuple(sum(face.get("triangles", 0) for face in facts["lods"].get(level, ())) for level in LEVELS)
        assert found.triangles == triangles, name
        rigged = bool(found.joints)
        assert found.animesh == pytest.approx(facts["animesh_triangle_cost"] if rigged else found.download, abs=6e-5)


def _one(**changes):
    given = land_impact.Figures("a", (12, 8, 4, 2), (400, 300, 200, 100), 0, 2.0, 0.5, 2.0)
    return replace(given, **changes)


def test_weights_are_added_up():
    total = land_impact.total_of([_one(), _one(download=1.6)])
    assert (total.download, total.server, total.physics) == (3.6, 1.0, 1.0)
    assert total.animesh == 0


def test_an_animated_object_is_fifteen_and_its_parts():
    total = land_impact.total_of([_one(joints=3, animesh=0.9), _one(download=1.5, animesh=1.5)])
    assert total.animesh == pytest.approx(15 + 0.9 + 1.5)


def test_a_scene_is_weighed_by_its_own_encoding(samples):
    loaded = load(samples / "secondlife" / "elfears_98a6e63e.llmesh")
    scene = loaded.format.to_scene(loaded.document, "ears")
    (found,) = land_impact.figures_of_scene(scene, ModelWriteOptions())
    assert not found.is_exact
    stored = [loaded.document.stored_sizes[level] for level in LEVELS]
    assert sum(found.sizes) == pytest.approx(sum(stored), rel=0.05)
    scene.as_imported = True
    exact = land_impact.figures_of_file(loaded.document, scene, ModelWriteOptions())
    assert exact is not None
    assert exact.is_exact
    assert list(exact.sizes) == stored


@pytest.mark.parametrize("change", ["point", "uv", "level", "triangle"])
def test_a_model_that_was_changed_is_no_more_its_file(samples, change):
    loaded = load(samples / "secondlife" / "elfears_98a6e63e.llmesh")
    scene = loaded.format.to_scene(loaded.document, "ears")
    scene.as_imported = True
    mesh = scene.nodes[0].mesh
    if change == "point":
        mesh.points = mesh.points.copy()
        mesh.points[mesh.corner_point[0], 1] *= 0.9
    elif change == "uv":
        mesh.uvs[0].values = mesh.uvs[0].values * 0.99
    elif change == "triangle":
        mesh.corner_point, mesh.material_index = mesh.corner_point[3:], mesh.material_index[1:]
    else:
        scene.nodes = [node for node in scene.nodes if node.lod != 2]
    assert land_impact.figures_of_file(loaded.document, scene, ModelWriteOptions()) is None


def test_what_cannot_be_encoded_has_no_figures(samples):
    loaded = load(samples / "secondlife" / "elfears_98a6e63e.llmesh")
    scene = loaded.format.to_scene(loaded.document, "ears")
    scene.nodes[0].scale = (0.0, 1.0, 1.0)
    with pytest.raises(ExportError, match="ears"):
        land_impact.figures_of_scene(scene, ModelWriteOptions())
