"""Model bundles <-> scenes: the sample against its facts and an oracle, made ones against the rules of a bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_life_judge as judge
import second_life_oracle as oracle
from meshferry.io_formats import api
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core import shading
from meshferry.io_formats.core.errors import ExportError, FormatError
from meshferry.io_formats.second_life.avatar import skeletons
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.bundle.mapping import Instance, bundle_of
from meshferry.io_formats.second_life.models.models import SubmodelId, models_of
from meshferry.io_formats.second_life.options import LEVELS

SAMPLE = "synthetic/synth_scene.slm"
Array = np.ndarray[Any, Any]


def data_of(samples: Path) -> bytes:
    return (samples / "secondlife" / SAMPLE).read_bytes()


def scene_of(data: bytes) -> sc.Scene:
    return SECOND_LIFE_BUNDLE.to_scene(SECOND_LIFE_BUNDLE.read(data), "file")


def written(scene: sc.Scene, **options: Any) -> oracle.Bundle:
    return oracle.decode_bundle(SECOND_LIFE_BUNDLE.write(SECOND_LIFE_BUNDLE.from_scene(scene, options)))


def mesh_of(node: sc.Node) -> sc.Mesh:
    assert node.mesh is not None
    return node.mesh


# -- in -----------------------------------------------------------------------------------------


def test_every_instance_is_a_model_in_its_place(samples: Path) -> None:
    facts = json.loads((samples / "secondlife" / "expected.json").read_text(encoding="utf-8"))[SAMPLE]
    scene = scene_of(data_of(samples))
    assert scene.name == facts["name"]
    models = models_of(scene)
    assert [model.name for model in models] == [instance["label"] for instance in facts["instances"]]
    for model, instance in zip(models, facts["instances"], strict=True):
        mesh = facts["meshes"][instance["mesh_id"]]
        row_vectors = np.array(instance["transform"]).reshape(4, 4)
        assert model.finest.rotation == (1.0, 0.0, 0.0, 0.0)
        np.testing.assert_allclose(model.finest.translation, row_vectors[3, :3])
        np.testing.assert_allclose(model.finest.scale, np.diag(row_vectors)[:3])
        assert mesh_of(model.finest).materials == instance["materials"]
        for level, node in zip(LEVELS, model.levels, strict=True):
            assert node is not None
            assert mesh_of(node).triangle_count == sum(face.get("triangles", 0) for face in mesh["lods"][level])
    assert models[0].finest.scale == (2.0, 1.0, 0.5)
    assert models[0].finest.translation == (0.0, 0.0, 1.0)
    assert models[0].physics is not None
    assert models[2].finest.pass_through == SubmodelId(1)
    assert scene.warnings == []


def test_materials_have_their_looks(samples: Path) -> None:
    found = {material.name: material for material in scene_of(data_of(samples)).materials}
    assert list(found) == ["wood", *(f"mat{number}" for number in range(10))]
    assert found["wood"].texture is not None
    assert (found["wood"].texture.path, found["wood"].texture.name) == ("wood.png", "wood")
    # 0.5 and 0.25 of sRGB are 21.404 % and 5.088 % of the light.
    np.testing.assert_allclose(found["mat0"].color, (1.0, 0.21404, 0.05088, 1.0), atol=1e-5)
    assert (found["mat0"].emission > 0.25, found["mat8"].emission > 0.25) == (False, True)


def test_a_bundle_without_places_is_refused(samples: Path) -> None:
    document = SECOND_LIFE_BUNDLE.read(data_of(samples))
    document.values["instance"] = []
    with pytest.raises(FormatError, match="no geometry"):
        SECOND_LIFE_BUNDLE.to_scene(document, "file")


def test_crowds_of_one_mesh_are_refused(samples: Path) -> None:
    document = SECOND_LIFE_BUNDLE.read(data_of(samples))
    face = document.meshes[0].blocks["high_lod"][0]
    face["TriangleList"] = face["TriangleList"] * 20_000
    document.values["instance"] = [document.values["instance"][0]] * 100
    with pytest.raises(FormatError, match="Its 100 objects would take"):
        SECOND_LIFE_BUNDLE.to_scene(document, "file")


# -- and out again ------------------------------------------------------------------------------


def test_a_bundle_kept_as_imported_is_the_same_again(samples: Path) -> None:
    data = data_of(samples)
    scene = scene_of(data)
    scene.as_imported = True
    (part,) = SECOND_LIFE_BUNDLE.files_of(scene, {})
    before, after = oracle.decode_bundle(data), written(part)
    assert before.name == after.name
    assert len(after.assets) == 3
    for old, new in zip(before.assets, after.assets, strict=True):
        judge.same_asset(old, new)
        assert list(new.values) == list(old.values)
    assert part.warnings == []
    for mine, theirs in zip(after.instances, before.instances, strict=True):
        assert (mine.mesh, mine.label, mine.materials) == (theirs.mesh, theirs.label, theirs.materials)
        np.testing.assert_allclose(mine.transform, theirs.transform, atol=1e-6)


def plate(materials: int = 1, size: float = 1.0) -> sc.Mesh:
    """Return a strip of one triangle a material."""
    points = [(x, y, 0.1 * x * y) for x in range(materials) for y in (0, 1, 2)]
    return sc.Mesh(
        np.array(points, np.float32) * np.float32(size),
        np.arange(3 * materials, dtype=np.int32),
        np.arange(materials, dtype=np.int32),
        [f"m{number:02}" for number in range(materials)],
    )


def node(name: str, mesh: sc.Mesh, **values: Any) -> sc.Node:
    return sc.Node(name, mesh=mesh, **values)


def places_of(bundle: oracle.Bundle, number: int) -> Array:
    """Return where all corners of the high level of an instance come to lie in the world."""
    instance = bundle.instances[number]
    faces = bundle.assets[instance.mesh].levels["high_lod"]
    corners = [face.positions[face.triangles.reshape(-1)] for face in faces if not face.no_geometry]
    points = np.concatenate(corners).astype(np.float64)
    moved: Array = np.hstack((points, np.ones((len(points), 1)))) @ instance.transform
    return moved[:, :3]


def test_models_stand_where_they_stood_the_first_as_root() -> None:
    half = 0.5**0.5
    scene = sc.Scene(
        "two",
        [
            node("Root", plate(), translation=(1.0, 2.0, 3.0)),
            node(
                "Other", plate(2), translation=(0.0, 5.0, 0.0), rotation=(half, 0.0, 0.0, half), scale=(2.0, 1.0, 3.0)
            ),
        ],
    )
    bundle = written(scene)
    assert bundle.name == "Root"
    assert [instance.label for instance in bundle.instances] == ["Root", "Other"]
    first, second = (mesh_of(part).points for part in scene.nodes)
    np.testing.assert_allclose(places_of(bundle, 0), first + np.array((1, 2, 3)), atol=1e-4)
    scaled = second * (2, 1, 3)
    turned = np.stack((-scaled[:, 1], scaled[:, 0], scaled[:, 2]), axis=1)
    np.testing.assert_allclose(places_of(bundle, 1), turned + np.array((0, 5, 0)), atol=1e-4)
    for asset in bundle.assets:
        assert list(asset.levels) == [level for level in asset.levels if level in LEVELS]
        assert set(asset.levels) == set(LEVELS), "a gap shifts what follows"


def test_materials_are_written_by_name_with_their_looks() -> None:
    mesh = plate(3)
    mesh.materials = ["z", "", "a"]
    scene = sc.Scene("one", [node("Thing", mesh)])
    scene.materials = [
        sc.Material(
            "a", (0.21404114, 0.05087609, 1.0, 0.5), emission=0.3, texture=shading.Texture("oak", "/tmp/oak.png")
        ),
        sc.Material("z", emission=0.2, texture=shading.Texture("inside", data=b"png")),
    ]
    bundle = written(scene)
    assert bundle.assets[0].header["material_list"] == ["z", "Thing_face_2", "a"]
    first, second, third = bundle.instances[0].materials
    assert [material["binding"] for material in (first, second, third)] == ["Thing_face_2", "a", "z"]
    assert second["diffuse"]["filename"] == "/tmp/oak.png"
    np.testing.assert_allclose(second["diffuse"]["color"], (0.5, 0.25, 1.0, 0.5), atol=1e-5)
    assert (first["fullbright"], second["fullbright"], third["fullbright"]) == (False, True, False)
    assert third["diffuse"]["filename"] == ""
    assert [text for text in scene.warnings if "'inside'" in text and "packed" in text] == scene.warnings[:1]


def test_further_parts_are_labelled_and_have_no_hulls() -> None:
    scene = sc.Scene("many", [node("Many", plate(20))])
    bundle = written(scene)
    assert [instance.label for instance in bundle.instances] == ["Many", "Manyb", "Manyc"]
    assert [asset.header.get("submodel_id") for asset in bundle.assets] == [None, 1, 2]
    assert [len(asset.levels["high_lod"]) for asset in bundle.assets] == [8, 8, 4]
    assert [asset.values["physics_convex"] is None for asset in bundle.assets] == [False, True, True]
    for instance in bundle.instances[1:]:
        np.testing.assert_array_equal(instance.transform, bundle.instances[0].transform)
    everything = np.concatenate([places_of(bundle, number) for number in range(3)])
    np.testing.assert_allclose(everything, mesh_of(scene.nodes[0]).points, atol=1e-3)
    with pytest.raises(ExportError, match="Many: it has 20 faces"):
        written(sc.Scene("many", [node("Many", plate(20))]), many_materials="REFUSE")


def test_all_or_no_mesh_has_physics() -> None:
    scene = sc.Scene("two", [node("First", plate()), node("Second", plate(2))])
    assert all(asset.physics_mesh is None for asset in written(scene).assets)
    shape = node("Shape", plate(), role=sc.Role.PHYSICS, shape_of=0)
    low = replace(scene.nodes[1], lod=3, mesh=plate(1), lod_of=1)
    scene.nodes += [shape, low]
    first, second = written(scene).assets
    assert first.physics_mesh is not None and second.physics_mesh is not None
    stored, missing = second.physics_mesh
    assert missing.no_geometry
    np.testing.assert_array_equal(stored.stored, second.levels["lowest_lod"][0].stored)
    assert "Normal" not in stored.keys
    assert any("'Second'" in text and "no physics mesh" in text for text in scene.warnings)


def test_physics_stays_beside_hulls() -> None:
    scene = sc.Scene("one", [node("First", plate(2))])
    for role in (sc.Role.PHYSICS, sc.Role.HULL):
        scene.nodes.append(node("Shape", plate(2), role=role, shape_of=0))
    (asset,) = written(scene).assets
    assert asset.physics_mesh is not None
    assert asset.hulls is not None and len(asset.hulls.hulls) == 1


def test_lost_joints_of_a_split_rig_are_reported() -> None:
    skeleton = skeletons.avatar_skeleton()
    mesh = plate(9, 0.1)
    mesh.joint_indices = np.zeros((27, 1), np.int32)
    mesh.joint_weights = np.ones((27, 1), np.float32)
    scene = sc.Scene("rig", [node("Body", mesh, skeleton=0)], [skeleton])
    bundle = written(scene)
    assert [asset.skin is not None for asset in bundle.assets] == [True, True]
    assert any(text.startswith("Body: ") and "keeps its joints" in text for text in scene.warnings)


def test_without_a_mesh_there_is_no_bundle() -> None:
    assert SECOND_LIFE_BUNDLE.files_of(sc.Scene("empty"), {}) == []
    with pytest.raises(ExportError, match="no mesh to write"):
        written(sc.Scene("empty"))


def test_objects_that_are_bound_alike_share_a_skeleton() -> None:
    asset = api.load(Path(__file__).resolve().parents[3] / "examples" / "tunic.llmesh").document
    places = [Instance(0, f"tunic {number}", np.identity(4), []) for number in range(3)]
    scene = SECOND_LIFE_BUNDLE.to_scene(bundle_of("wardrobe", [asset], places), "wardrobe")
    assert len(scene.skeletons) == 1
    models = models_of(scene)
    assert [model.name for model in models] == ["tunic 0", "tunic 1", "tunic 2"]
    assert all(model.skeleton is scene.skeletons[0] and model.finest.skin is not None for model in models)
