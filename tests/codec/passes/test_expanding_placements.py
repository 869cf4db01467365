"""Expansion of a placement: nodes of other files below each node that refers to them."""

import models
import numpy as np
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.core.placement import (
    Marker,
    MarkerShape,
    ModelUse,
    PartUse,
    PlacedCollection,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
)
from meshferry.io_formats.core.scene import Clip, Node, Scene
from meshferry.io_formats.passes.placements import expand_references, shown_placement, with_single_meshes


def test_each_reference_gets_the_nodes_of_its_file() -> None:
    tree = PlacementPart("tree", [PlacedNode("trunk"), PlacedNode("crown", 0, content=ModelUse(0)), PlacedNode("", 1)])
    grove = PlacementPart("grove", [PlacedNode("a", content=PartUse(2)), PlacedNode("b", 0, content=PartUse(2))])
    main = PlacementPart("level", [PlacedNode("top"), PlacedNode("grove", 0, content=PartUse(1)), PlacedNode("end", 1)])
    (part,) = expand_references(Placement([main, grove, tree])).parts
    paths = []
    for node in part.nodes:
        above = paths[node.parent] if node.parent >= 0 else ""
        paths.append(f"{above}/{node.name}")
    assert paths == [
        "/top",
        "/top/grove",
        "/top/grove/a",
        "/top/grove/a/trunk",
        "/top/grove/a/trunk/crown",
        "/top/grove/a/trunk/crown/",
        "/top/grove/a/b",
        "/top/grove/a/b/trunk",
        "/top/grove/a/b/trunk/crown",
        "/top/grove/a/b/trunk/crown/",
        "/top/grove/end",
    ]
    assert [node.content for node in part.nodes if node.content] == [ModelUse(0)] * 2
    assert main.nodes[1].content == PartUse(1)


def test_hidden_groups_and_guides_are_left_out_and_named_once() -> None:
    groups = [
        PlacedCollection("Finished"),
        PlacedCollection("Unfinished", is_hidden=True),
        PlacedCollection("Stage 0", 1),
        PlacedCollection("Points", is_guide=True),
    ]
    mark = Marker(MarkerShape.CROSS)
    nodes = [
        PlacedNode("root"),
        PlacedNode("base", 0, collection=2),
        PlacedNode("slot", 0, content=mark, collection=3),
        PlacedNode("roof", 2, collection=0),
        PlacedNode("door", 0, content=mark, collection=3),
        PlacedNode("wall", 3, collection=0),
    ]
    report = Report()
    (part,) = shown_placement(Placement([PlacementPart("house", nodes, collections=groups)]), report).parts
    assert [(node.name, node.parent, node.content) for node in part.nodes] == [
        ("root", -1, None),
        ("slot", 0, None),  # holds the roof
        ("roof", 1, None),
        ("wall", 2, None),
    ]
    (message,) = report.messages
    assert (message.code, message.is_note, message.about()) == ("groups-left-out", True, ["Unfinished", "Points"])
    assert nodes[3].parent == 2


def test_models_of_several_nodes_become_nodes() -> None:
    mesh = models.grid_mesh()
    inner = [Node("post", mesh=mesh, translation=(1.0, 0.0, 0.0)), Node("lamp", 0, (0.0, 0.0, 2.0), mesh=mesh)]
    tree = PlacedModel("lamps", lambda: Scene("lamps", inner, clips=[Clip("Sway", 24.0, 2)]), is_tree=True)
    single = PlacedModel("box", lambda: Scene("box", [Node("box", mesh=mesh)]))
    nodes = [
        PlacedNode("a", content=ModelUse(0)),
        PlacedNode("b", 0, content=ModelUse(0)),
        PlacedNode("c", 1, content=ModelUse(1)),
    ]
    report = Report()
    placement = with_single_meshes(Placement([PlacementPart("street", nodes)], [tree, single]), report)
    (part,) = placement.parts
    found = [(node.name, node.parent, node.content.model if node.content else None) for node in part.nodes]
    assert found == [
        ("a", -1, None),
        ("post", 0, 1),
        ("lamp", 1, 1),
        ("b", 0, None),
        ("post", 3, 1),
        ("lamp", 4, 1),
        ("c", 3, 0),
    ]
    assert np.allclose(part.nodes[2].matrix[:3, 3], [0, 0, 2])
    assert placement.models[0].name == "box"
    assert not any(model.is_tree for model in placement.models)
    assert [message.code for message in report.messages] == ["animations-left-out"]
