"""Expand a placement: nodes of other files at each place that refers to them, in one part."""

from __future__ import annotations

from dataclasses import replace

from ..core.placement import PartUse, PlacedNode, Placement, PlacementPart


def expanded(placement: Placement) -> Placement:
    """Return the placement with copies of the nodes of other files below the nodes that refer to them.

    The reader has bounded the number of nodes and the depth of the references.
    """
    main = placement.parts[0]
    nodes: list[PlacedNode] = []
    _add(placement, main, -1, nodes)
    return replace(placement, parts=[replace(main, nodes=nodes)])


def _add(placement: Placement, part: PlacementPart, parent: int, nodes: list[PlacedNode]) -> None:
    places: list[int] = []
    for node in part.nodes:
        places.append(len(nodes))
        content = node.content
        above = places[node.parent] if node.parent >= 0 else parent
        nodes.append(replace(node, parent=above, content=None if isinstance(content, PartUse) else content))
        if isinstance(content, PartUse):
            _add(placement, placement.parts[content.part], places[-1], nodes)
