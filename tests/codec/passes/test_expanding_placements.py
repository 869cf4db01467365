"""Expansion of a placement: nodes of other files below each node that refers to them."""

from meshferry.io_formats.core.placement import ModelUse, PartUse, PlacedNode, Placement, PlacementPart
from meshferry.io_formats.passes.expand_placement import expanded


def test_each_reference_gets_the_nodes_of_its_file() -> None:
    tree = PlacementPart("tree", [PlacedNode("trunk"), PlacedNode("crown", 0, content=ModelUse(0)), PlacedNode("", 1)])
    grove = PlacementPart("grove", [PlacedNode("a", content=PartUse(2)), PlacedNode("b", 0, content=PartUse(2))])
    main = PlacementPart("level", [PlacedNode("top"), PlacedNode("grove", 0, content=PartUse(1)), PlacedNode("end", 1)])
    (part,) = expanded(Placement([main, grove, tree])).parts
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
