"""Split a scene with several objects into one scene for each file, with one mesh each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.import_choices import all_choices
from ..core.messages import counted
from ..core.options import MESH_FILES, resolve
from ..core.scene import Mesh, Node, Role, Scene, Surface
from ..geometry.triangles import part_of_slots, triangle_runs
from ..passes.flatten import meshes_in_one_space
from ..passes.join_meshes import join
from .document import MOST_SAFE
from .options import EXPORT_OPTIONS, LARGE_MESHES
from .vertex_arrays import is_too_large, split_by_vertices


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return a scene for each file, with the file's name: one for each object, or one with all joined (``mesh_files``).

    Coarser levels of detail and physics shapes are skipped. The option ``large_meshes`` can split large meshes into
    several files. The returned scenes share ``scene.warnings``.

    Raises
    ------
    ExportError
        An object to be split has no faces, or NaN or infinite coordinates.
    """
    chosen = resolve(EXPORT_OPTIONS, options)
    nodes = [node for node in scene.nodes if node.mesh is not None and node.lod == 0 and node.role is Role.RENDER]
    if MESH_FILES.text(chosen) == "JOINED" and len(nodes) > 1:
        bare = [replace(node, mesh=node.mesh and _at_rest(node.mesh)) for node in nodes]
        nodes = [Node(scene.name, mesh=join(meshes_in_one_space(bare)), choices=all_choices(nodes))]
    parts = [part for node in nodes for part in _parts(scene, node, chosen)]
    return [replace(scene, name=node.name, nodes=[node], skeletons=[], clips=[]) for node in parts]


def _at_rest(mesh: Mesh) -> Mesh:
    """Return a mesh without the data that the file cannot hold, so that joining does not have to match it."""
    return replace(mesh, shape_keys=[], joint_indices=None, joint_weights=None, colors=[], custom=[], uvs=mesh.uvs[:1])


def _parts(scene: Scene, node: Node, options: Mapping[str, Any]) -> Iterator[Node]:
    """Yield a node for each file of an object."""
    whole = Node(node.name, mesh=node.mesh, choices=node.choices)
    if node.mesh is None or LARGE_MESHES.text(options) != "SPLIT" or 3 * node.mesh.triangle_count <= MOST_SAFE:
        yield whole
        return
    report = scene.report.about(node.name)
    mesh = split_by_vertices(node.mesh, options, scene.tolerance, report)
    if not is_too_large(mesh):
        yield whole
        return
    cuts = list(triangle_runs(mesh.corner_point.reshape(-1, 3), MOST_SAFE, MOST_SAFE))
    numbers = np.repeat(np.arange(len(cuts), dtype=np.int32), [cut.stop - cut.start for cut in cuts])
    surface = mesh.surfaces[0] if len(mesh.surfaces) == 1 else Surface("")
    numbered = replace(mesh, material_index=numbers, materials=[""] * len(cuts), surfaces=[surface] * len(cuts))
    template = "{} and {:,} triangles are more than {:,}; split into {} files"
    vertices = counted(len(mesh.points), "vertex", "vertices")
    report.note("split-into-files", template, vertices, mesh.triangle_count, MOST_SAFE, len(cuts))
    for number in range(len(cuts)):
        yield replace(whole, name=f"{node.name}_{number + 1}", mesh=part_of_slots(numbered, [number]))
