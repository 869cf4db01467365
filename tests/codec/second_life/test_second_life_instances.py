"""Objects with the same content are one mesh with several instances in every file of an upload."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from typing import Any

import collada_oracle
import numpy as np
import numpy.typing as npt
import pytest
import second_life_oracle as oracle
import upload_scenes
import viewer_matching
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.second_life.asset import land_impact, mapping, upload_model
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.second_life.models import models
from meshferry.io_formats.second_life.models.models import models_of
from meshferry.io_formats.second_life.options import ModelWriteOptions
from meshferry.io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD

PLACES = (
    {"translation": (1.0, 2.0, 3.0), "rotation": (0.5, 0.5, 0.5, 0.5), "scale": (2.0, 1.0, 0.5)},
    {"translation": (0.0, -5.0, 0.0)},
    {"translation": (0.0, -6.0, 0.25), "scale": (3.0, 3.0, 3.0)},
)


def post(**place: Any) -> list[sc.Node]:
    """Return a post with a medium level and a physics mesh of its own."""
    nodes = [
        sc.Node("post", mesh=upload_scenes.box((0.2, 0.2, 2.0)), **place),
        sc.Node("post_LOD2", mesh=upload_scenes.box((0.2, 0.2, 2.0), ["stone"]), lod=1, lod_of=0, **place),
        sc.Node("post_PHYS", mesh=upload_scenes.box((0.1, 0.1, 2.0)), role=sc.Role.PHYSICS, shape_of=0, **place),
    ]
    return copy.deepcopy(nodes)


def fence(*posts: list[sc.Node]) -> sc.Scene:
    """Return a scene of posts, each in arrays of its own, numbered like linked duplicates in Blender."""
    nodes: list[sc.Node] = []
    for number, parts in enumerate(posts):
        start = len(nodes)
        for node in parts:
            node.name = f"{node.name}.{number:03d}" if number else node.name
            node.lod_of = None if node.lod_of is None else start
            node.shape_of = None if node.shape_of is None else start
        nodes += parts
    return sc.Scene("fence", nodes, materials=[sc.Material("wood"), sc.Material("stone")])


def posts() -> sc.Scene:
    return fence(*(post(**place) for place in PLACES))


def collada(scene: sc.Scene) -> dict[str, collada_oracle.Document]:
    outputs = SECOND_LIFE_UPLOAD.write_files(SECOND_LIFE_UPLOAD.from_scene(scene), "fence")
    return {output.name: collada_oracle.parse(output.data) for output in outputs}


def geometry_count(document: collada_oracle.Document) -> int:
    return len({instance.geometry.id for instance in document.instances})


def world(node: sc.Node) -> npt.NDArray[np.float64]:
    return upload_scenes.matrix(node.translation, node.rotation, node.scale)


def box_of(points: npt.NDArray[Any], matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    moved = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    return np.stack((moved.min(axis=0), moved.max(axis=0)))


def test_collada_files_hold_the_mesh_once_and_every_object_in_its_place() -> None:
    scene = posts()
    documents = collada(scene)
    levels = [documents[f"fence{suffix}.dae"] for suffix in ("", "_LOD2", "_LOD1", "_LOD0")]
    viewer_matching.check_levels(levels)
    for document in documents.values():
        assert geometry_count(document) == 1
        assert [instance.node for instance in document.instances] == ["post", "post.001", "post.002"]
    finest = [node for node in scene.nodes if node.role is sc.Role.RENDER and node.lod_of is None]
    for instance, node in zip(levels[0].instances, finest, strict=True):
        assert node.mesh is not None
        assert np.allclose(box_of(instance.geometry.positions, instance.world), box_of(node.mesh.points, world(node)))
    assert scene.warnings == []


CHANGES = {
    "points": lambda nodes: nodes[0].mesh.points.__setitem__((0, 0), 0.3),
    "uvs": lambda nodes: nodes[0].mesh.uvs[0].values.__setitem__((0, 0), 0.3),
    "materials": lambda nodes: nodes[0].mesh.materials.__setitem__(0, "iron"),
    "level": lambda nodes: nodes[1].mesh.points.__setitem__((0, 0), 0.3),
    "physics": lambda nodes: nodes[2].mesh.points.__setitem__((0, 0), 0.3),
    "no level": lambda nodes: nodes.pop(1),
    "mirror": lambda nodes: [setattr(node, "scale", (-1.0, 1.0, 1.0)) for node in nodes],
}


@pytest.mark.parametrize("change", CHANGES)
def test_objects_with_a_difference_stay_separate(change: str) -> None:
    other = post()
    CHANGES[change](other)
    scene = fence(post(), other, post(translation=(1.0, 0.0, 0.0)))
    assert models.first_equal(models_of(scene)) == [0, 1, 0]
    for document in collada(scene).values():
        assert geometry_count(document) == 2
        assert all(np.linalg.det(instance.world) > 0 for instance in document.instances)


def test_all_mirrorings_are_one_mesh_and_rotations() -> None:
    scales = [tuple(np.array(signs) * (2.0, 1.0, 0.5)) for signs in itertools.product((1, -1), repeat=3)]
    scene = fence(*(post(translation=(1.0, 2.0, 3.0), rotation=(0.1, 0.7, 0.5, -0.5), scale=scale) for scale in scales))
    finest = [node for node in scene.nodes if node.role is sc.Role.RENDER and node.lod_of is None]
    for node in finest:
        assert node.mesh is not None
        node.mesh.points[0] += (0.03, 0.05, 0.07)
    assert models.first_equal(models_of(scene)) == [0, 1, 1, 0, 1, 0, 0, 1]
    document = collada(scene)["fence.dae"]
    assert geometry_count(document) == 2
    for instance, node in zip(document.instances, finest, strict=True):
        assert node.mesh is not None
        assert np.linalg.det(instance.world[:3, :3]) > 0
        found, expected = (
            points @ matrix[:3, :3].T + matrix[:3, 3]
            for points, matrix in ((instance.geometry.positions, instance.world), (node.mesh.points, world(node)))
        )
        apart = np.linalg.norm(found[:, None] - expected, axis=2)
        assert apart.min(axis=1).max() < 1e-5
        assert apart.min(axis=0).max() < 1e-5


def test_findings_of_equal_objects_are_reported_once() -> None:
    uneven = {"scale": (1.0, 1.0, 2.0)}
    scene = fence(post(**uneven), post(translation=(1.0, 0.0, 0.0), **uneven))
    for node in scene.nodes:
        assert node.mesh is not None
        node.mesh.uvs = []
    found = SECOND_LIFE_UPLOAD.check_scene(scene)

    def subjects(text: str) -> list[str]:
        return [finding.item for finding in found if text in finding.message]

    assert subjects("no UV map") == ["Object 'post'", "Object 'post_LOD2'"]
    assert subjects("small one of each") == ["Object 'post_LOD2'"]
    assert subjects("uneven") == ["Object 'post'", "Object 'post.001'"], "the fix of a scale concerns each object"


def test_rigged_objects_have_a_geometry_each() -> None:
    scene = upload_scenes.rigged_scene(levels=[5])
    scene.nodes.append(replace(copy.deepcopy(scene.nodes[0]), name="second"))
    assert geometry_count(collada(scene)["fence.dae"]) == 2


def test_requests_hold_the_mesh_once_and_every_object_in_its_place() -> None:
    llsd = pytest.importorskip("llsd")
    scene = posts()
    body = llsd.parse_xml(SECOND_LIFE_REQUEST.write(SECOND_LIFE_REQUEST.from_scene(scene)))
    assert len(body["mesh_list"]) == 1
    assert [instance["mesh"] for instance in body["instance_list"]] == [0, 0, 0]
    assert [instance["mesh_name"] for instance in body["instance_list"]] == ["post", "post.001", "post.002"]
    for instance, place in zip(body["instance_list"], PLACES, strict=True):
        assert np.allclose(instance["position"], place["translation"])
        assert np.allclose(instance["scale"], np.array(place.get("scale", (1, 1, 1))) * (0.2, 0.2, 2.0))


def test_bundles_hold_the_mesh_once_and_can_become_collada_without_blender() -> None:
    scene = posts()
    data = SECOND_LIFE_BUNDLE.write(SECOND_LIFE_BUNDLE.from_scene(scene))
    bundle = oracle.decode_bundle(data)
    assert len(bundle.assets) == 1
    assert bundle.assets[0].physics_mesh is not None
    assert [(instance.mesh, instance.label) for instance in bundle.instances] == [
        (0, "post"),
        (0, "post.001"),
        (0, "post.002"),
    ]
    points = np.concatenate([face.positions for face in bundle.assets[0].levels["high_lod"]])
    finest = [node for node in scene.nodes if node.role is sc.Role.RENDER and node.lod_of is None]
    for instance, node in zip(bundle.instances, finest, strict=True):
        assert node.mesh is not None
        assert np.allclose(box_of(points, instance.transform.T), box_of(node.mesh.points, world(node)), atol=1e-4)
    again = SECOND_LIFE_BUNDLE.to_scene(SECOND_LIFE_BUNDLE.read(data), "fence")
    assert geometry_count(collada(again)["fence.dae"]) == 1


def test_flat_objects_of_other_thickness_are_not_one_asset() -> None:
    """The unit cube of a flat object is 1 metre thick, whatever its scale is."""
    nodes = [
        sc.Node(name, mesh=upload_scenes.box((1.0, 1.0, 0.0)), scale=(1.0, 1.0, height))
        for name, height in (("a", 1.0), ("b", 2.0), ("c", 1.0))
    ]
    bundle = oracle.decode_bundle(SECOND_LIFE_BUNDLE.write(SECOND_LIFE_BUNDLE.from_scene(sc.Scene("x", nodes))))
    assert [instance.mesh for instance in bundle.instances] == [0, 1, 0]


def test_weights_are_computed_from_one_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = posts()
    alone = [land_impact.figures_of_scene(fence(post(**place)), ModelWriteOptions())[0] for place in PLACES]
    encoded: list[str] = []
    prepare = upload_model.prepare
    monkeypatch.setattr(mapping, "prepare", lambda model, *rest: encoded.append(model.name) or prepare(model, *rest))
    found = land_impact.figures_of_scene(scene, ModelWriteOptions())
    assert encoded == ["post"]
    assert [one.same_mesh_as for one in found] == ["", "post", "post"]
    assert [one.download for one in found] == pytest.approx([one.download for one in alone])
    assert models.mesh_count(models_of(scene)) == 1


def test_many_objects_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    hashed: list[object] = []
    from meshferry.io_formats.passes import join_meshes

    hash_of = join_meshes._hash_of
    monkeypatch.setattr(join_meshes, "_hash_of", lambda mesh: hashed.append(mesh) or hash_of(mesh))
    scene = sc.Scene("x", [sc.Node(f"n{number}", mesh=upload_scenes.box()) for number in range(count)])
    assert set(models.first_equal(models_of(scene))) == {0}
    assert len(hashed) == count
    lone = sc.Scene("x", [sc.Node("n", mesh=upload_scenes.box()), sc.Node("m", mesh=upload_scenes.tube())])
    hashed.clear()
    assert models.first_equal(models_of(lone)) == [0, 1]
    assert hashed == [], "a mesh of other counts is not hashed"
