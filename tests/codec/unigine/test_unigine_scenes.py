"""Nodes and worlds of UNIGINE: recognition, content, references, and bounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import unigine_bytes
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.placement import Camera, Light, LightKind, ModelUse, PartUse, PlacedNode, Placement
from meshferry.io_formats.core.recognition import Match
from meshferry.io_formats.core.scene import Scene
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.scene import codec, mapping, references
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE
from meshferry.io_formats.unigine.scene.references import LinkedFile
from meshfuzz import tokens, unigine_seeds
from unigine_scene_bytes import ALL, IDENTITY, TRIANGLE, mesh, moved, node, nodes, reference, world

MESH = unigine_bytes.ALL["ms13"] if "ms13" in unigine_bytes.ALL else next(iter(unigine_bytes.ALL.values()))


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Scene]:
    """Return a function that writes files into a project and links the first of them."""

    def make(files: dict[str, bytes], **options: object) -> Scene:
        data = tmp_path / "data"
        (data / ".runtimes").mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        path = data / next(iter(files))
        document = UNIGINE_SCENE.read(path.read_bytes())
        scene = UNIGINE_SCENE.to_scene(document, path.stem, options)
        UNIGINE_SCENE.link(document, scene, path, Projects(), options)
        return scene

    return make


def placement(scene: Scene) -> Placement:
    assert scene.placement is not None
    return scene.placement


def named(scene: Scene, name: str) -> PlacedNode:
    (found,) = [node for part in placement(scene).parts for node in part.nodes if node.name == name]
    return found


@pytest.mark.parametrize(
    ("head", "match"),
    [
        (b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- by hand -->\n<nodes version="2.20">', Match.SIGNATURE),
        (b'<world version="1.21">', Match.SIGNATURE),
        (b'<world binary_nodes_data="1" version="2.20.0.0">', Match.SIGNATURE),
        (b'<node type="NodeDummy" id="1">', Match.SIGNATURE),
        (b'<!DOCTYPE world [<!ENTITY a "b">]><world version="1">', Match.SIGNATURE),
        (b'<?xml version="1.0"?><world name="default">', Match.NONE),
        (b'<node id="3"/>', Match.NONE),
        (b"<nodes/>", Match.NONE),
    ],
)
def test_recognition_by_the_root_element(head: bytes, match: Match) -> None:
    assert UNIGINE_SCENE.sniff(head, len(head)) is match
    if match is Match.SIGNATURE:
        assert registry.by_content(head, len(head)) is UNIGINE_SCENE


def test_nodes_are_nested_with_local_transforms_by_columns() -> None:
    turned = "0 1 0 0 -1 0 0 0 0 0 1 0 5 6 7 1"
    document = UNIGINE_SCENE.read(world(node("NodeDummy", "a", node("NodeDummy", "b", transform=turned, enabled=0))))
    a, b = document.nodes
    assert (a.parent, b.parent, a.is_enabled, b.is_enabled) == (-1, 0, True, False)
    assert np.array_equal(b.matrix @ (1, 0, 0, 1), (5, 7, 7, 1))


@pytest.mark.parametrize(
    "text", ["1 2 3", "nan " * 16, "x " * 16, "", "inf" + " 0" * 15, "1 " * 16, "1e20" + " 0" * 14 + " 1"]
)
def test_invalid_transforms_are_reported_and_ignored(text: str) -> None:
    content = f"<transform>{text}</transform>"
    document = UNIGINE_SCENE.read(nodes(node("NodeDummy", "odd", content, transform="")))
    assert np.array_equal(document.nodes[0].matrix, np.identity(4))
    assert document.warnings == ["1 node without a valid transform, kept at the parent's place: 'odd'"]


def test_a_mesh_inside_the_file_is_a_model_shared_by_its_identifier() -> None:
    again = node("ObjectMeshDynamic", "again", "<reference>7</reference>", moved(4))
    scene = UNIGINE_SCENE.to_scene(
        UNIGINE_SCENE.read(ALL["world"].replace(b"<editor>", b"<editor>" + again.encode())), "w"
    )
    first, second = named(scene, "inside").content, named(scene, "again").content
    assert isinstance(first, ModelUse) and isinstance(second, ModelUse) and first.model == second.model
    (found,) = placement(scene).models[first.model].read().nodes
    built = found.mesh
    assert built is not None
    assert built.points.tolist() == [[0, 0, 0], [2, 0, 0], [0, 2, 0]]
    assert built.normal is not None
    assert np.allclose(built.normal.at_corners(built.corner_point), (0, 0, 1))
    assert built.uvs[0].at_corners(built.corner_point).tolist() == [[0, 1], [1, 1], [0, 0]]
    assert built.colors[0].at_corners(built.corner_point).tolist()[0] == [255, 0, 0, 255]
    assert built.materials == ["face"]


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("0 1 2<", "0 1 3<", "outside its 3 vertices"),
        ("0 1 2<", "0 -1 2<", "outside"),
        ('num_indices="3"', 'num_indices="6"', "another number"),
        ('end="3"', 'end="9"', "invalid triangles"),
        ('end="3"', 'end="2"', "invalid triangles"),
        ('num_vertex="3" offset="0"', 'num_vertex="999999999" offset="0"', "9 numbers for 999,999,999"),
        ('num_vertex="3" offset="0"', 'num_vertex="-1" offset="0"', "num_vertex"),
        ("0 0 0 2 0 0", "0 0 nan 2 0 0", "finite"),
        ('offset="0" size="3"', 'offset="4" size="3"', "offset 4"),
    ],
)
def test_damaged_meshes_inside_the_file_are_left_out_and_reported(old: str, new: str, cause: str) -> None:
    assert old in TRIANGLE
    document = UNIGINE_SCENE.read(nodes(node("ObjectMeshDynamic", "bad", TRIANGLE.replace(old, new, 1))))
    assert document.nodes[0].geometry is None
    (warning,) = document.warnings
    assert warning.startswith("The mesh inside node 'bad' is left out: ") and cause in warning


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b'<?xml version="1.0"?><!DOCTYPE nodes [<!ENTITY a "b">]><nodes version="2">&a;</nodes>', "document type"),
        (nodes(node("NodeDummy", "a"))[:-12], "well-formed"),
        (nodes("<node>" * 2000 + "</node>" * 2000), "1,000"),
        (b'<nodes version="2">' + b"<node/>" * 1_000_001 + b"</nodes>", "1,000,000 nodes"),
        (b"<mesh/>", "root element"),
    ],
)
def test_refused_files(data: bytes, cause: str) -> None:
    with pytest.raises(FormatError, match=cause):
        UNIGINE_SCENE.read(data)


def test_referenced_files_are_parts_that_are_read_once(project: Callable[..., Scene], monkeypatch) -> None:
    read: list[int] = []
    original = codec.read
    monkeypatch.setattr(codec, "read", lambda data, **more: read.append(len(data)) or original(data, **more))
    scene = project(
        {
            "a.world": world(reference("props/b.node", "one"), reference("props/b.node", "two", moved(1))),
            "props/b.node": nodes(mesh("props/box.mesh", "box", [f'name="{SURFACE}"'])),
            "props/box.mesh": MESH,
        }
    )
    main, other = placement(scene).parts
    assert [node.content for node in main.nodes] == [PartUse(1), PartUse(1)]
    assert (other.name, other.path, len(read)) == ("b", "props/b.node", 2)
    model = placement(scene).models[0]
    assert model.path == "props/box.mesh" and model.read().triangle_count
    assert scene.warnings == []


SURFACE = "surface"


def test_missing_files_are_named_once_for_each_kind(project: Callable[..., Scene]) -> None:
    parts = [mesh("guid://" + "a" * 40, f"box {number}") for number in range(7)]
    scene = project({"a.world": world(*parts, reference("gone.node"), reference("../../../etc/passwd"))})
    assert scene.warnings == [
        "7 meshes not found; an empty stands for each: 'box 0', 'box 1', 'box 2', 'box 3', 'box 4' and 2 more",
        "2 node files not found; an empty stands for each: 'gone.node', '../../../etc/passwd'",
    ]
    assert [node.content for node in placement(scene).parts[0].nodes] == [None] * 9
    assert named(scene, "box 3").properties == {"mesh_name": "guid://" + "a" * 40}


def test_a_missing_mesh_inside_the_file_is_named(project: Callable[..., Scene]) -> None:
    scene = project({"a.node": nodes(node("ObjectMeshDynamic", "box", "<reference>99</reference>"))})
    assert scene.warnings == ["1 mesh not found; an empty stands for each: 'box'"]


def test_a_source_of_a_missing_mesh_is_named(project: Callable[..., Scene]) -> None:
    scene = project({"a.node": nodes(mesh("model.fbx", "box")), "model.fbx": b"Kaydara FBX"})
    assert scene.warnings == ["1 mesh not found, only the source; import that separately: 'box (model.fbx)'"]


def test_a_source_of_a_missing_node_file_is_named(project: Callable[..., Scene]) -> None:
    scene = project({"a.node": nodes(reference("model.fbx", "box")), "model.fbx": b"Kaydara FBX"})
    assert scene.warnings == ["1 node file not found, only the source; import that separately: 'box (model.fbx)'"]
    assert named(scene, "box").properties == {"reference": "model.fbx"}


def test_loops_are_left_out(project: Callable[..., Scene]) -> None:
    scene = project(
        {"a.node": nodes(reference("b.node")), "b.node": nodes(reference("a.node"), reference("b.node"), node("", "x"))}
    )
    assert [part.name for part in placement(scene).parts] == ["a", "b"]
    assert scene.warnings == ["2 node files refer to themselves; left out there: 'a.node', 'b.node'"]


def test_broken_node_files_do_not_stop_the_others(project: Callable[..., Scene]) -> None:
    scene = project({"a.world": world(reference("b.node"), reference("b.node"), node("", "x")), "b.node": b"<nodes"})
    (warning,) = scene.warnings
    assert warning.startswith(
        "1 node file cannot be read; an empty stands for each: 'b.node: The XML is not well-formed"
    )
    assert len(placement(scene).parts[0].nodes) == 3


def test_doubling_references_are_refused_before_anything_is_built(project: Callable[..., Scene]) -> None:
    files = {f"n{number}.node": nodes(*[reference(f"n{number + 1}.node")] * 2) for number in range(25)}
    with pytest.raises(FormatError, match=r"nodes; at most 1,000,000"):
        project(files | {"n25.node": nodes(node("NodeDummy", "leaf"))})


def test_deep_chains_of_references_are_refused(project: Callable[..., Scene]) -> None:
    files = {f"n{number}.node": nodes(reference(f"n{number + 1}.node")) for number in range(40)}
    with pytest.raises(FormatError, match="32 levels"):
        project(files)


def test_deep_chains_by_files_that_are_known_are_refused(project: Callable[..., Scene]) -> None:
    """The depth of a file that was read already counts where it is used again."""
    chain = {f"n{number}.node": nodes(reference(f"n{number + 1}.node")) for number in range(30)}
    files = {"a.world": world(reference("n5.node"), reference("b.node")), "b.node": nodes(reference("c.node"))}
    with pytest.raises(FormatError, match="32 levels"):
        project(files | {"c.node": nodes(reference("d.node")), "d.node": nodes(reference("n0.node"))} | chain)


def test_nodes_of_all_files_are_bounded(project: Callable[..., Scene], monkeypatch) -> None:
    monkeypatch.setattr(mapping, "MOST_NODES", 10)
    with pytest.raises(FormatError, match="more than 10 nodes"):
        project({"a.node": nodes(reference("b.node")), "b.node": nodes(*[node("NodeDummy", "n")] * 10)})


def test_places_of_a_cluster_count_and_are_one_array(project: Callable[..., Scene], monkeypatch) -> None:
    places = f"<position>{moved(1)}</position><position>{moved(2)}</position><position>bad</position>"
    cluster = node("ObjectMeshCluster", "many", f"<mesh_name>box.mesh</mesh_name>{places}")
    scene = project({"a.node": nodes(cluster), "box.mesh": MESH})
    found = named(scene, "many").instances
    assert found is not None and found[:, 0, 3].tolist() == [1, 2]
    assert scene.warnings == ["Cluster 'many': 1 place without 16 finite numbers left out"]
    monkeypatch.setattr(mapping, "MOST_NODES", 2)
    with pytest.raises(FormatError, match="3 nodes"):
        project({"a.node": nodes(cluster), "box.mesh": MESH})


def test_clusters_with_binary_places_are_reported(project: Callable[..., Scene]) -> None:
    content = "<mesh_name>box.mesh</mesh_name><cluster_file_id>3</cluster_file_id>"
    scene = project({"a.node": nodes(node("ObjectMeshCluster", "many", content)), "box.mesh": MESH})
    assert scene.warnings == ["1 cluster left out, since a binary file has the places: 'many'"]


def test_levels_of_detail_follow_the_distances(project: Callable[..., Scene]) -> None:
    surfaces = [
        'name="a" max_visible_distance="10"',
        'name="b" min_visible_distance="10"',
        'name="c" min_visible_distance="1e+09"',
        'name="d" min_visible_distance="-inf" enabled="0"',
    ]
    files = {"a.node": nodes(mesh("box.mesh", "box", surfaces)), "box.mesh": MESH}
    scene = project(files)
    use = named(scene, "box").content
    assert isinstance(use, ModelUse)
    assert [(slot.name, slot.level, slot.is_hidden) for slot in use.slots] == [
        ("a", 0, False),
        ("b", 1, False),
        ("c", 2, False),
        ("d", 0, True),
    ]
    coarser = [node.content for node in placement(project(files, use_coarser_levels=True)).parts[0].nodes]
    assert [content.level for content in coarser if isinstance(content, ModelUse)] == [0, 1, 2]


def test_lights_and_cameras_by_option() -> None:
    lamp = "<color>1 0.5 0 1</color><intensity>3</intensity><fov>90</fov><penumbra>0.5</penumbra>"
    data = world(
        node("LightProj", "spot", lamp),
        node("PlayerDummy", "eye", "<fov>45</fov><znear>0.5</znear><is_main>1</is_main>"),
    )
    document = UNIGINE_SCENE.read(data)
    plain = UNIGINE_SCENE.to_scene(document, "w")
    assert named(plain, "spot").content is None
    assert [text for text in plain.report.messages if text.is_note] == [
        (
            "2 nodes imported as empties: 1 LightProj, 1 PlayerDummy; the options Lights and Cameras make lights and "
            "cameras"
        )
    ]
    for option, hint in (
        ("use_cameras", "1 node imported as empties: 1 LightProj; the option Lights makes lights"),
        ("use_lights", "1 node imported as empties: 1 PlayerDummy; the option Cameras makes cameras"),
    ):
        found = UNIGINE_SCENE.to_scene(document, "w", {option: True})
        assert [text for text in found.report.messages if text.is_note] == [hint]
    shown = UNIGINE_SCENE.to_scene(document, "w", {"use_lights": True, "use_cameras": True})
    light, camera = named(shown, "spot").content, named(shown, "eye").content
    assert light == Light(LightKind.SPOT, (1, 0.5, 0), 3, 0, pytest.approx(np.pi / 2), 0.5)
    assert camera == Camera(pytest.approx(np.pi / 4), near=0.5, far=1000, is_main=True)
    assert shown.warnings == []


def test_a_check_finds_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "data" / ".runtimes").mkdir(parents=True)
    path = tmp_path / "data" / "a.node"
    path.write_bytes(nodes(mesh("gone.mesh", "box"), reference("a.node"), node("LightOmni", "lamp")))
    document = UNIGINE_SCENE.read(path.read_bytes())
    assert UNIGINE_SCENE.check(document) == []
    assert UNIGINE_SCENE.missing(document, path, Projects()) == [
        "1 mesh not found; an empty stands for each: 'box'",
        "1 node file refers to itself; left out there: 'a.node'",
    ]


def test_facts_count_what_is_in_the_file() -> None:
    facts = UNIGINE_SCENE.facts(UNIGINE_SCENE.read(ALL["world"]))
    assert facts["types"] == {"ObjectMeshDynamic": 1, "LightOmni": 1, "NodeReference": 1}
    assert (facts["nodes"], facts["triangles"], facts["vertices"], facts["references"]) == (3, 1, 3, 1)
    assert IDENTITY  # every node of the helper has a transform


def skinned(name: str, animation: str) -> str:
    return node("ObjectMeshSkinned", name, f"<mesh_name>arm.mesh</mesh_name><anim_name>{animation}</anim_name>")


def test_skinned_meshes_come_with_their_animation(project: Callable[..., Scene]) -> None:
    """Nodes with the same mesh and animation share a model; another animation is another model."""
    files = {
        "a.node": nodes(skinned("one", "wave.anim"), skinned("two", "wave.anim"), skinned("three", "gone.anim")),
        "arm.mesh": tokens.encode(unigine_seeds.meshes()["ms13 skinned"]),
        "wave.anim": tokens.encode(unigine_seeds.animations()["an11"]),
    }
    scene = project(files)
    one, two, three = (named(scene, name).content for name in ("one", "two", "three"))
    assert isinstance(one, ModelUse) and one == two and one != three
    model = placement(scene).models[one.model].read()
    assert [clip.name for clip in model.clips] == ["wave"] and model.skeletons
    assert scene.warnings == ["1 animation not found or not readable: 'three (gone.anim)'"]


def test_a_mesh_that_is_another_file_is_named() -> None:
    read = references.from_file(
        LinkedFile("a/box.mesh", lambda: b"version https://git-lfs.github.com/spec/v1"), None, "box"
    )
    with pytest.raises(FormatError, match=r"a/box\.mesh: .*Git LFS pointer"):
        read()


@pytest.mark.parametrize("count", [1, 2])
def test_files_with_one_root_are_marked(project: Callable[..., Scene], count: int) -> None:
    files = {"level.node": nodes(reference("tree.node")), "tree.node": nodes(*[node("NodeDummy", "top")] * count)}
    parts = {part.name: part for part in placement(project(files)).parts}
    assert parts["tree"].has_one_root is (count == 1)
