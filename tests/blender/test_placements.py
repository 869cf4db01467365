"""Placements in Blender: collections, instances, exact transforms, shared meshes, materials of a place, undo."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from meshferry.blender_data import names, pictures
from meshferry.blender_data.importing import importer
from meshferry.blender_data.importing.import_context import ImportResult
from meshferry.blender_data.importing.import_options import ImportOptions, ImportRequest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.placement import (
    Camera,
    Channels,
    Light,
    LightKind,
    ModelUse,
    PartUse,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
    SlotUse,
)
from meshferry.io_formats.core.scene import Mesh, Node, Scene, Surface
from meshferry.io_formats.passes.clips import adopt_clips
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE
from meshfuzz import tokens, unigine_seeds

pytestmark = pytest.mark.needs_bpy

KINDS = ("ObjectMeshStatic", "ObjectMeshSkinned", "ObjectMeshDynamic", "ObjectMeshCluster")
SCENES = {
    "library_2_0": 1,
    "mit_action_2_20": 3,
    "mit_lone_mesh_tx11": 1,
    "mit_template_tx10": 3,
    "vr_props_dds_2_8": 4,
}


def build(placement: Placement, name: str = "level") -> ImportResult:
    scene = Scene(name, placement=placement)
    return importer.import_scene(ImportRequest(bpy.context, scene, ImportOptions.of()))


def quad(*surfaces: str) -> Scene:
    """Return a model with one triangle for each surface."""
    count = len(surfaces)
    mesh = Mesh(
        np.arange(9 * count, dtype=np.float32).reshape(-1, 3) ** 2,
        np.arange(3 * count, dtype=np.int32),
        np.arange(count, dtype=np.int32),
        list(surfaces),
        surfaces=[Surface(name) for name in surfaces],
    )
    return Scene("quad", [Node("quad", mesh=mesh)])


def at(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    matrix = np.identity(4)
    matrix[:3, 3] = x, y, z
    return matrix


def placed(*nodes: PlacedNode, surfaces: tuple[str, ...] = ("a", "b")) -> Placement:
    return Placement([PlacementPart("level", list(nodes))], [PlacedModel("quad", lambda: quad(*surfaces))])


def walk(collection: Any, world: np.ndarray, shown: bool = True) -> Iterator[tuple[Any, np.ndarray, bool]]:
    """Yield the objects of a collection and of those that it instances, with their world matrices, in their order."""
    for obj in collection.objects:
        matrix = walk_up(obj)
        is_hidden = obj.hide_viewport or obj.hide_get()
        visible = shown and not is_hidden
        assert is_hidden == obj.hide_render
        yield obj, world @ matrix, visible
        if obj.instance_collection is not None:
            yield from walk(obj.instance_collection, world @ matrix, visible)


def walk_up(obj: Any) -> np.ndarray:
    """Return the matrix of an object in its collection."""
    own = np.array(obj.matrix_basis, np.float64)
    return own if obj.parent is None else walk_up(obj.parent) @ own


def plain(name: str) -> str:
    return re.sub(r"\.\d{3,}$", "", name)


def test_a_transform_of_channels_arrives_exactly() -> None:
    """From a matrix, Blender would compute rounded channels."""
    rng = np.random.default_rng(4)
    nodes = []
    for number, content in enumerate((ModelUse(0), None, ModelUse(0, level=1), Light(LightKind.POINT))):
        location, scale, angles = (tuple(rng.normal(scale=5.0, size=3).astype(np.float32).tolist()) for _ in range(3))
        quaternion = rng.normal(size=4)
        quaternion = tuple((quaternion / np.linalg.norm(quaternion)).astype(np.float32).tolist())
        for channels in (Channels(location, scale=scale, quaternion=quaternion), Channels(location, angles, scale)):
            nodes.append(PlacedNode(f"{len(nodes)}", number - 1, channels.matrix(), content, channels=channels))
    build(placed(*nodes))
    bpy.context.view_layer.update()
    for node in nodes:
        obj, channels = bpy.data.objects[node.name], node.channels
        assert channels is not None
        assert (tuple(obj.location), tuple(obj.scale)) == (channels.location, channels.scale)
        if channels.quaternion is not None:
            assert (obj.rotation_mode, tuple(obj.rotation_quaternion)) == ("QUATERNION", channels.quaternion)
        else:
            assert (obj.rotation_mode, tuple(obj.rotation_euler)) == ("XYZ", channels.rotation)
        np.testing.assert_allclose(np.array(obj.matrix_basis), channels.matrix(), atol=1e-5)


def test_equal_names_get_the_numbers_that_blender_gives_them_in_turn() -> None:
    rng = np.random.default_rng(8)
    usual = ["Wall", "wall", "Wall.001", "Wall.002", "Wall.7", "Wall.", "Dach \u00e4.003", "x" * 59, "x" * 55 + ".001"]
    wanted = [usual[number] for number in rng.integers(len(usual), size=1500)]
    taken = [bpy.data.objects.new(name, None).name for name in usual[:4]]
    expected = [bpy.data.objects.new(name, None).name for name in wanted]
    assert names.distinct(wanted, taken) == expected
    assert [obj.name for obj in bpy.data.objects] == sorted([*taken, *expected], key=names.in_order)


def test_objects_are_in_the_order_of_the_file_whatever_their_names() -> None:
    given = ["b", "a", "B.001", "b", "a.001", "c", "a", "B"]
    nodes = [PlacedNode(name, number // 2 - 1, at(number), ModelUse(0)) for number, name in enumerate(given)]
    nodes[3].instances = np.stack((at(7), at(8)))
    nodes[4].content = nodes[5].content = Camera(1.0, is_main=True)
    result = build(placed(*nodes))
    expected = ["b", "a", "B.001", "b.001", "b.002", "b.003", "a.001", "c", "a.002", "B"]
    assert [obj.name for obj in result.objects] == [obj.name for obj in result.collection.objects] == expected
    owners = [obj for obj in result.objects if obj.name not in ("b.002", "b.003")]
    assert [owners.index(obj.parent) if obj.parent else -1 for obj in owners] == [node.parent for node in nodes]
    assert [names.name_in_file(obj) for obj in owners] == given
    assert bpy.context.scene.camera.name == "a.001", "the first camera of the file"


def test_objects_are_made_in_the_order_of_their_names() -> None:
    """Blender keeps objects sorted, so that 40,000 names in random order would take a minute."""
    given = [f"{number:x}" for number in np.random.default_rng(9).integers(1 << 40, size=300).tolist()]
    result = build(placed(*(PlacedNode(name, content=ModelUse(0)) for name in given)))
    made = [block.name for block in result.made if isinstance(block, bpy.types.Object)]
    assert [obj.name for obj in result.objects] == given and made == sorted(given)


@pytest.mark.parametrize("folder", SCENES)
def test_samples_are_as_an_independent_resolver_found_them(clean_blender: Any, samples: Path, folder: str) -> None:
    """Each placed mesh of the sample has its place, is shown or hidden, and has the surfaces of the finest level."""
    root = samples / "unigine_scenes" / folder
    scenes = {
        name: found
        for name, found in json.loads((root / "expected.json").read_text("utf-8"))["scenes"].items()
        if not name.endswith(".mesh")
    }
    assert len(scenes) == SCENES[folder]
    for name, expected in scenes.items():
        path = root / "data" / name
        document = UNIGINE_SCENE.read(path.read_bytes())
        scene = UNIGINE_SCENE.to_scene(document, path.stem)
        UNIGINE_SCENE.link(document, scene, path, Projects())
        result = importer.import_scene(ImportRequest(bpy.context, scene, ImportOptions.of(), str(path)))
        found = [
            (obj, world, shown)
            for obj, world, shown in walk(result.collection, np.identity(4))
            if obj.type == "MESH" or obj.get("type") in KINDS
        ]
        assert len(found) == len(expected["objects"]), name
        for (obj, world, shown), wanted in zip(found, expected["objects"], strict=True):
            assert plain(obj.name) == plain(wanted["name"])
            given = np.array(wanted["matrix"]).reshape(4, 4).T
            assert np.abs(world - given).max() <= 1e-4 * max(1.0, np.abs(given).max()), (name, wanted["path"])
            has_mesh = (wanted["mesh"] or "").lower().endswith(".mesh") or wanted["how"] == "inline"
            has_mesh |= wanted["how"] == "source of missing runtime" and (root / "data" / wanted["mesh"]).exists()
            assert (obj.type == "MESH") == has_mesh
            finest = [surface for surface in wanted["surfaces"] if surface["finest"] and surface["enabled"]]
            assert shown == (wanted["enabled"] and bool(finest or not has_mesh))
            if has_mesh and finest:
                assert_materials(obj, finest, expected["materials"])
        visible = [world for obj, world, shown in found if shown and obj.type == "MESH"]
        assert_evaluated(visible)
        result.undo()
        assert not bpy.data.objects and not bpy.data.meshes and not bpy.data.collections


def assert_materials(obj: Any, surfaces: list[dict[str, Any]], materials: dict[str, Any]) -> None:
    """Compare the slots of an object with the surfaces that are shown, whose order may be that of the mesh."""
    wanted = []
    for surface in surfaces:
        found = materials[surface["material"]]
        name = surface["name"] if found is None else found["name"]
        is_guid = (
            found is not None and found["rule"] != "built in" and re.fullmatch("[0-9a-f]{40}", surface["material"])
        )
        wanted.append((name, surface["material"] if is_guid else ""))
    slots = [slot.material for slot in obj.material_slots]
    assert sorted((plain(slot.name), slot.meshferry.identity) for slot in slots) == sorted(wanted)


def assert_evaluated(worlds: list[np.ndarray]) -> None:
    """Compare with what Blender shows, with instances."""
    graph = bpy.context.evaluated_depsgraph_get()
    shown = [np.array(found.matrix_world) for found in graph.object_instances if found.object.type == "MESH"]
    assert len(shown) == len(worlds)
    if worlds:
        one, other = (np.array(sorted(np.round(matrix[:3, 3], 2).tolist() for matrix in ms)) for ms in (shown, worlds))
        assert np.abs(one - other).max() < 0.05


def test_places_share_mesh_data_and_have_materials_of_their_own(clean_blender: Any) -> None:
    own = ModelUse(0, (SlotUse("a", "red"), SlotUse("b", "blue")))
    other = ModelUse(0, (SlotUse("a", "red"), SlotUse("b", "green")))
    result = build(placed(*(PlacedNode(name, content=use) for name, use in zip("xyz", (own, other, own), strict=True))))
    x, y, z = result.objects
    assert x.data == y.data == z.data and len(bpy.data.meshes) == 1
    assert [[slot.material.name for slot in obj.material_slots] for obj in (x, y, z)] == [
        ["red", "blue"],
        ["red", "green"],
        ["red", "blue"],
    ]
    assert [slot.link for slot in y.material_slots] == ["DATA", "OBJECT"]


def test_hidden_surfaces_are_left_out_and_such_meshes_shared(clean_blender: Any) -> None:
    part = ModelUse(0, (SlotUse("b", is_hidden=True),))
    nothing = ModelUse(0, (SlotUse("a", is_hidden=True), SlotUse("b", is_hidden=True)))
    result = build(
        placed(
            PlacedNode("whole", content=ModelUse(0)),
            PlacedNode("part", content=part),
            PlacedNode("again", content=part),
            PlacedNode("nothing", content=nothing),
        )
    )
    whole, first, again, hidden = result.objects
    assert (len(whole.data.polygons), len(first.data.polygons), len(first.data.vertices)) == (2, 1, 3)
    assert first.data == again.data and [slot.material.name for slot in first.material_slots] == ["a"]
    assert hidden.data == whole.data and hidden.hide_viewport and hidden.hide_render


def test_places_after_a_hidden_one_are_shown(clean_blender: Any) -> None:
    """The objects of the first place are copied for the others."""
    nothing = ModelUse(0, (SlotUse("a", is_hidden=True), SlotUse("b", is_hidden=True)))
    result = build(
        placed(
            PlacedNode("off", content=nothing),
            PlacedNode("on", content=ModelUse(0)),
            PlacedNode("off again", content=ModelUse(0), is_hidden=True),
        )
    )
    assert [obj.hide_viewport for obj in result.objects] == [True, False, True]
    assert [obj.hide_render for obj in result.objects] == [True, False, True]


def test_hidden_nodes_are_hidden_where_it_has_an_effect(clean_blender: Any) -> None:
    """By the monitor icon: the eye has no effect in instanced collections."""
    slots = (SlotUse("a"), SlotUse("b", level=1))
    placement = placed(
        PlacedNode("shown", content=ModelUse(0)),
        PlacedNode("off", content=ModelUse(0), is_hidden=True),
        PlacedNode("below", 1, content=ModelUse(0)),
        PlacedNode("empty", is_hidden=True),
        PlacedNode("coarse", content=ModelUse(0, slots, 1), is_hidden=True),
        PlacedNode("part", content=PartUse(1)),
        PlacedNode("part off", content=PartUse(1), is_hidden=True),
    )
    nodes = [PlacedNode("in part", content=ModelUse(0), is_hidden=True), PlacedNode("leaf", content=ModelUse(0))]
    placement.parts.append(PlacementPart("tree", nodes))
    result = build(placement)
    assert [obj.hide_render for obj in result.objects] == [0, 1, 1, 1, 1, 0, 1, 1, 0]
    assert [obj.hide_viewport for obj in result.objects] == [0, 1, 1, 1, 1, 0, 1, 1, 0]
    assert_evaluated([np.identity(4)] * 2)  # "shown", and "leaf" in "part"
    assert sorted(one.name for one in bpy.data.collections) == ["level", "level LOD 1", "level Parts", "tree"]


def test_hidden_nodes_stay_hidden_in_instances_of_an_asset(clean_blender: Any) -> None:
    off = [PlacedNode("off", content=ModelUse(0), is_hidden=True) for _ in range(500)]
    result = build(placed(PlacedNode("shown", content=ModelUse(0)), *off))
    pictures.mark_asset(result.collection, tags=(), description="")
    assert [obj.hide_viewport for obj in result.objects] == [False, *[True] * 500]
    shown = bpy.data.objects.new("instance", None)
    shown.instance_type, shown.instance_collection = "COLLECTION", result.collection
    bpy.context.scene.collection.objects.link(shown)
    bpy.context.view_layer.update()
    assert_evaluated([np.identity(4)] * 2)


def test_levels_of_detail_are_in_hidden_collections(clean_blender: Any) -> None:
    slots = (SlotUse("a"), SlotUse("b", level=1))
    result = build(
        placed(PlacedNode("box", content=ModelUse(0, slots)), PlacedNode("box_lod_1", content=ModelUse(0, slots, 1)))
    )
    (coarser,) = result.collection.children
    assert coarser.name == "level LOD 1" and coarser.hide_viewport and coarser.hide_render
    assert [obj.name for obj in coarser.objects] == ["box_lod_1"] and coarser.objects[0].meshferry.lod == 1
    assert [obj.name for obj in result.collection.objects] == ["box"]
    assert [len(obj.data.polygons) for obj in result.objects] == [1, 1]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 1, 0), (3, 2, 0, 1)], ids=str)
@pytest.mark.parametrize("is_skinned", [False, True])
def test_places_take_nothing_from_one_another(clean_blender: Any, order: tuple[int, ...], is_skinned: bool) -> None:
    """A model at the top level, below a parent, in a reference and in a cluster has the matrix of its nodes."""
    slots = (SlotUse("a"), SlotUse("b", level=1))
    nodes = [
        PlacedNode("parent", matrix=at(100) @ np.diag((2, -1, 1, 1))),
        PlacedNode("cluster", matrix=at(0, 50), content=ModelUse(0, slots), instances=np.stack([at(1), at(2)])),
        PlacedNode("use", 0, at(7), PartUse(1)),
    ]
    kinds = [
        PlacedNode("top", matrix=at(3), content=ModelUse(0, slots)),
        PlacedNode("below", 0, at(5), ModelUse(0, slots)),
        PlacedNode("coarser", 0, at(5), ModelUse(0, slots, 1)),
        PlacedNode("none", matrix=at(9), content=ModelUse(0, (SlotUse("a", is_hidden=True), SlotUse("b", level=1)))),
    ]
    nodes += [kinds[number] for number in order]
    inner = [PlacedNode("group", matrix=at(0, 0, 1)), PlacedNode("leaf", 0, at(0, 0, 2), ModelUse(0, slots))]
    data = tokens.encode(unigine_seeds.meshes()["ms13 skinned"])
    skinned = UNIGINE_MESH.to_scene(UNIGINE_MESH.read(data), "quad")
    model = PlacedModel("quad", lambda: skinned if is_skinned else quad("a", "b"))
    result = build(Placement([PlacementPart("level", nodes), PlacementPart("tree", inner)], [model]))
    bpy.context.view_layer.update()
    expected = {
        "top": at(3),
        "below": nodes[0].matrix @ at(5),
        "coarser": nodes[0].matrix @ at(5),
        "none": at(9),
        "leaf": nodes[0].matrix @ at(7) @ at(0, 0, 3),
    }
    found: dict[str, list[Any]] = {}
    for obj, world, _ in walk(result.collection, np.identity(4)):
        found.setdefault(plain(obj.name), []).append((obj, world))
    found.update((obj.name, [(obj, walk_up(obj))]) for obj in result.objects if obj.name == "coarser")
    for name, matrix in expected.items():
        ((obj, world),) = found[name]
        assert obj.type == "MESH" and np.allclose(world, matrix), name
        assert obj.meshferry.lod == (name == "coarser")
    assert [world[:2, 3].tolist() for _, world in found["cluster"][1:]] == [[1, 50], [2, 50]]
    assert not [obj for obj in bpy.data.objects if obj not in result.objects]
    assert len(result.armatures) == is_skinned * len(bpy.data.armatures)


def test_models_that_are_placed_nowhere_leave_nothing(clean_blender: Any) -> None:
    result = build(placed(PlacedNode("cluster", content=ModelUse(0), instances=np.zeros((0, 4, 4)))))
    assert [obj.type for obj in bpy.data.objects] == ["EMPTY"] and not bpy.data.meshes
    result.undo()
    assert not bpy.data.objects


def test_files_are_collections_that_are_instanced(clean_blender: Any) -> None:
    bpy.context.scene.view_layers.new("Second")
    turned = at(0, 0, 2) @ np.diag((-1, 2, 1, 1))
    placement = placed(
        PlacedNode("top", matrix=at(10)),
        PlacedNode("one", 0, at(1), PartUse(1)),
        PlacedNode("two", 0, turned, PartUse(1), is_hidden=True),
    )
    placement.parts.append(PlacementPart("tree", [PlacedNode("leaf", matrix=at(0, 5), content=ModelUse(0))]))
    result = build(placement)
    (tree,) = bpy.data.collections["level Parts"].children
    assert [obj.instance_collection for obj in result.collection.objects] == [None, tree, tree]
    worlds = [world for obj, world, _ in walk(result.collection, np.identity(4)) if obj.type == "MESH"]
    assert np.allclose(worlds[0], at(11, 5)) and np.allclose(worlds[1], at(10) @ turned @ at(0, 5))
    assert_evaluated(worlds[:1])
    for view_layer in bpy.context.scene.view_layers:
        names = [layer.name for layer in view_layer.layer_collection.children if layer.exclude]
        assert names == ["level Parts"]


def test_nodes_of_the_file_itself_keep_their_names(clean_blender: Any) -> None:
    """A reference often has the name of the node in the file that it refers to."""
    placement = placed(PlacedNode("tree", content=PartUse(1)), PlacedNode("bush", content=ModelUse(0)))
    placement.parts.append(PlacementPart("tree", [PlacedNode("tree", content=ModelUse(0))]))
    result = build(placement)
    assert [obj.name for obj in result.objects] == ["tree", "bush", "tree.001"]


def test_places_of_a_cluster_share_the_mesh(clean_blender: Any) -> None:
    node = PlacedNode("many", matrix=at(1), content=ModelUse(0), instances=np.stack([at(1), at(2), at(3)]))
    result = build(placed(node))
    cluster, *instances = result.objects
    assert cluster.type == "EMPTY" and [obj.parent for obj in instances] == [cluster] * 3
    assert len({obj.data.name for obj in instances}) == 1
    worlds = [world[0, 3] for obj, world, _ in walk(result.collection, np.identity(4)) if obj.type == "MESH"]
    assert worlds == [2, 3, 4]


def test_skinned_models_have_an_armature_at_each_place(clean_blender: Any) -> None:
    """The mesh data and the action are shared, the poses are not."""
    data = tokens.encode(unigine_seeds.meshes()["ms13 skinned"])

    def read() -> Scene:
        scene = UNIGINE_MESH.to_scene(UNIGINE_MESH.read(data), "arm")
        animation = UNIGINE_ANIMATION.read(tokens.encode(unigine_seeds.animations()["an11"]))
        adopt_clips(scene, UNIGINE_ANIMATION.to_scene(animation, "wave"))
        return scene

    nodes = [PlacedNode("arm", matrix=at(number), content=ModelUse(0)) for number in (1, 2)]
    nodes.append(PlacedNode("hat", parent=1, matrix=at(0, 1)))
    result = build(Placement([PlacementPart("level", nodes)], [PlacedModel("arm", read)]))
    meshes = [obj for obj in result.objects if obj.type == "MESH"]
    rigs = [obj for obj in result.objects if obj.type == "ARMATURE"]
    assert [obj.parent for obj in meshes] == rigs
    assert [obj.modifiers[0].object for obj in meshes] == rigs
    assert len({obj.data.name for obj in meshes}) == len({rig.data.name for rig in rigs}) == 1
    assert len({rig.animation_data.action.name for rig in rigs}) == 1
    assert [rig.matrix_basis.translation.x for rig in rigs] == [1, 2]
    assert bpy.data.objects["hat"].parent == rigs[1]
    assert (result.bones, result.actions) == (5, 1)


def test_other_nodes_are_empties_with_their_type(clean_blender: Any) -> None:
    result = build(
        placed(
            PlacedNode("fog", kind="VolumeBox", properties={"size": "1 2 3"}),
            PlacedNode("sun", content=Light(LightKind.SUN, intensity=2)),
            PlacedNode("eye", content=Camera(1.0, near=0.5, is_main=True)),
        )
    )
    fog, sun, eye = result.objects
    assert fog.type == "EMPTY" and (fog["type"], fog["size"]) == ("VolumeBox", "1 2 3")
    assert (sun.data.type, sun.data.energy, bpy.context.scene.camera) == ("SUN", 2, eye)
    assert eye.data.angle_y == pytest.approx(1.0, abs=1e-5) and eye.data.clip_start == pytest.approx(0.5)


def test_sheared_and_broken_content_is_reported_once(clean_blender: Any) -> None:
    def broken() -> Scene:
        raise FormatError("it ends too early", file="box.mesh")

    sheared = np.identity(4)
    sheared[0, 1] = 0.5
    placement = placed(
        PlacedNode("flat", matrix=sheared, content=ModelUse(0, (SlotUse("gone"),))),
        PlacedNode("x", content=ModelUse(1)),
    )
    placement.models.append(PlacedModel("box", broken))
    result = build(placement)
    assert result.warnings == [
        "1 mesh cannot be read; an empty stands for each: 'box.mesh: it ends too early'",
        "1 surface named by nodes but not in their meshes: 'quad: gone'",
        "1 node is sheared, which Blender's objects cannot be; nearest transform: 'flat'",
    ]
    assert [obj.type for obj in result.objects] == ["MESH", "EMPTY"]


def test_warnings_about_many_models_are_bounded(clean_blender: Any) -> None:
    placement = placed(*(PlacedNode("x", content=ModelUse(number)) for number in range(9)))
    for number in range(9):
        scene = quad("a")
        scene.report.loss("odd-model", "odd")
        placement.models.insert(number, PlacedModel(f"box {number}", lambda scene=scene: scene))
    assert build(placement).warnings == [
        *(f"box {number}: odd" for number in range(5)),
        "4 further warnings about meshes not shown",
    ]


def test_a_cancelled_import_leaves_nothing(clean_blender: Any) -> None:
    placement = placed(PlacedNode("a", content=ModelUse(0)), PlacedNode("b", content=ModelUse(0)), PlacedNode("c"))
    scene = Scene("level", placement=placement)
    count = sum(1 for _ in importer.import_steps(ImportRequest(bpy.context, scene, ImportOptions.of())))
    bpy.data.batch_remove([*bpy.data.objects, *bpy.data.collections, *bpy.data.meshes, *bpy.data.materials])
    assert count > 3
    for stop in range(1, count + 1):
        steps = importer.import_steps(ImportRequest(bpy.context, scene, ImportOptions.of()))
        for _ in range(stop):
            next(steps)
        steps.close()
        assert not any((*bpy.data.objects, *bpy.data.collections, *bpy.data.meshes, *bpy.data.materials)), stop


def test_thousands_of_objects_have_the_same_name(clean_blender: Any) -> None:
    """Equal names are the rule, since a level holds hundreds of equal props."""
    nodes = [PlacedNode("crate", content=ModelUse(0), matrix=at(number)) for number in range(1500)]
    result = build(placed(*nodes))
    assert [plain(obj.name) for obj in result.objects] == ["crate"] * 1500 and len(bpy.data.meshes) == 1
