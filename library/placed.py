"""Nodes and meshes of files that place models of other files."""

from collections.abc import Callable, Iterator
from functools import cache, partial

from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import Report
from ..io_formats.core.placement import ModelUse, Placement
from ..io_formats.core.scene import Mesh, Node, Role
from ..io_formats.passes.placements import (
    expand_references,
    shown_placement,
    shown_slots,
    with_shown_slots,
    with_single_meshes,
)


def placed_nodes(placement: Placement, report: Report) -> Iterator[tuple[Node, Callable[[], Mesh | None] | None]]:
    """Yield nodes, one for each instance, and functions that return their meshes; report models that are unreadable."""
    single = with_single_meshes(expand_references(shown_placement(placement, report)), report)

    @cache
    def read(use: ModelUse) -> Mesh | None:
        model = single.models[use.model]
        try:
            if model.source is not None:
                raise MeshferryError("only Blender imports its source file {}", model.source.name)
            scene = model.read()
        except MeshferryError as problem:
            report.loss("unreadable-model", "{}", problem.sentence(), item=model.name)
            return None
        nodes = with_shown_slots(scene, shown_slots(scene, use)).nodes
        return next((node.mesh for node in nodes if node.mesh and node.lod == 0 and node.role is Role.RENDER), None)

    nodes = single.parts[0].nodes
    places = [(node, node.parent, node.matrix, node.content if node.instances is None else None) for node in nodes]
    for number, node in enumerate(nodes):
        if node.instances is not None:
            places += [(node, number, matrix, node.content) for matrix in node.instances]
    for node, parent, matrix, content in places:
        read_mesh = partial(read, content) if isinstance(content, ModelUse) else None
        yield Node(node.name, parent, file_matrix=matrix), read_mesh
