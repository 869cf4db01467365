"""Placements in the forms that files without references and hidden groups need."""

from __future__ import annotations

from dataclasses import replace

from ..core.errors import FormatError
from ..core.messages import Report, Text, counted, listed
from ..core.placement import ModelUse, PartUse, PlacedModel, PlacedNode, Placement, PlacementPart
from .place_nodes import placement_of_nodes


def expand_references(placement: Placement) -> Placement:
    """Return the placement with copies of the nodes of other files below the nodes that refer to them.

    The reader has bounded the number of nodes and the depth of the references.
    """
    main = placement.parts[0]
    nodes: list[PlacedNode] = []
    _add(placement, main, -1, nodes)
    return replace(placement, parts=[replace(main, nodes=nodes)])


def shown_placement(placement: Placement, report: Report) -> Placement:
    """Return the placement as its program shows it.

    Hidden groups and groups of guides are removed and reported.
    """
    return replace(placement, parts=[_shown(part, report) for part in placement.parts])


def _shown(part: PlacementPart, report: Report) -> PlacementPart:
    left_out: list[bool] = []
    for group in part.collections:
        above = group.parent >= 0 and left_out[group.parent]
        left_out.append(group.is_hidden or group.is_guide or above)
    wanted = [not _is_in(node, left_out) for node in part.nodes]
    if all(wanted):
        return part
    for number in range(len(part.nodes) - 1, -1, -1):
        if wanted[number] and part.nodes[number].parent >= 0:
            wanted[part.nodes[number].parent] = True
    nodes: list[PlacedNode] = []
    places = {-1: -1}
    for number, node in enumerate(part.nodes):
        if wanted[number]:
            places[number] = len(nodes)
            content = None if _is_in(node, left_out) else node.content
            nodes.append(replace(node, parent=places[node.parent], content=content, collection=-1))
    names = [
        group.name
        for number, group in enumerate(part.collections)
        if left_out[number] and not (group.parent >= 0 and left_out[group.parent])
    ]
    objects, some = counted(len(part.nodes) - len(nodes), "object"), listed(names)
    report.note("groups-left-out", "{} left out, since the program does not show them: {}", objects, some)
    return replace(part, nodes=nodes, collections=[])


def _is_in(node: PlacedNode, groups: list[bool]) -> bool:
    """Return whether a node is in one of the groups that are left out."""
    return node.collection >= 0 and groups[node.collection]


def with_single_meshes(placement: Placement, report: Report) -> Placement:
    """Return the placement with nodes for those of models that are trees, whose animations are left out."""
    models = [model for model in placement.models if not model.is_tree]
    trees: dict[int, list[PlacedNode]] = {}
    parts = []
    for part in placement.parts:
        nodes: list[PlacedNode] = []
        places: list[int] = []
        for node in part.nodes:
            places.append(len(nodes))
            nodes.append(replace(node, parent=places[node.parent] if node.parent >= 0 else -1))
            content = node.content
            model = placement.models[content.model] if isinstance(content, ModelUse) else None
            if isinstance(content, ModelUse) and model is not None and not model.is_tree:
                nodes[-1].content = replace(content, model=models.index(model))
            elif isinstance(content, ModelUse) and model is not None:
                if content.model not in trees:
                    trees[content.model] = _tree(model, models, report)
                nodes[-1].content = None
                here = len(nodes)
                for inner in trees[content.model]:
                    nodes.append(replace(inner, parent=here + inner.parent if inner.parent >= 0 else here - 1))
        parts.append(replace(part, nodes=nodes))
    return replace(placement, parts=parts, models=models)


def _tree(model: PlacedModel, models: list[PlacedModel], report: Report) -> list[PlacedNode]:
    """Return the nodes of a model; the models of their meshes are added to the list."""
    try:
        scene = model.read()
    except FormatError as problem:
        report.loss("unreadable-model", "{}", problem.sentence())
        return []
    if scene.clips:
        number, names = counted(len(scene.clips), "animation"), listed([clip.name for clip in scene.clips])
        report.loss(
            "animations-left-out", "{} not carried over: {}", number, names, item=Text("model '{}'", model.name)
        )
    tree = placement_of_nodes(scene)
    first = len(models)
    models += tree.models
    for node in tree.parts[0].nodes:
        if isinstance(node.content, ModelUse):
            node.content = replace(node.content, model=first + node.content.model)
    return tree.parts[0].nodes


def _add(placement: Placement, part: PlacementPart, parent: int, nodes: list[PlacedNode]) -> None:
    places: list[int] = []
    for node in part.nodes:
        places.append(len(nodes))
        content = node.content
        above = places[node.parent] if node.parent >= 0 else parent
        nodes.append(replace(node, parent=above, content=None if isinstance(content, PartUse) else content))
        if isinstance(content, PartUse):
            _add(placement, placement.parts[content.part], places[-1], nodes)
