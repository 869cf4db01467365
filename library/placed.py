"""Nodes and meshes of files that place models of other files."""

from __future__ import annotations

from dataclasses import replace

from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Report
from ..io_formats.core.placement import ModelUse, PlacedModel, PlacedNode, Placement
from ..io_formats.core.scene import Mesh, Role
from ..io_formats.passes.placements import (
    expand_references,
    shown_placement,
    shown_slots,
    with_shown_slots,
    with_single_meshes,
)


def placed_nodes(placement: Placement, report: Report) -> tuple[list[PlacedNode], list[PlacedModel]]:
    """Return the nodes of a placement in one list, a node for each instance, and the models of their ``ModelUse``."""
    single = with_single_meshes(expand_references(shown_placement(placement, report)), report)
    nodes = single.parts[0].nodes
    copies: list[PlacedNode] = []
    for number, node in enumerate(nodes):
        if node.instances is not None:
            copies += [PlacedNode(node.name, number, matrix, node.content) for matrix in node.instances]
            nodes[number] = replace(node, content=None, instances=None)
    return [*nodes, *copies], single.models


def mesh_of(model: PlacedModel, use: ModelUse, report: Report) -> Mesh | None:
    """Return the mesh of a model with the surfaces that a node shows; report one that cannot be read."""
    if model.source is not None:
        report.loss("unreadable-model", "only Blender imports its source file {}", model.source.name, item=model.name)
        return None
    try:
        scene = model.read()
    except MeshferryError as problem:
        report.loss("unreadable-model", "{}", problem.sentence(), item=model.name)
        return None
    shown = with_shown_slots(scene, shown_slots(scene, use))
    return next((node.mesh for node in shown.nodes if node.mesh and node.lod == 0 and node.role is Role.RENDER), None)
