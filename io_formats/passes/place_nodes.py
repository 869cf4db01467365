"""Placement of a scene's own nodes, for formats whose meshes are files of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core.placement import ModelUse, PlacedModel, PlacedNode, Placement, PlacementPart
from ..core.scene import Mesh, Node, Scene
from ..geometry import hierarchy
from ..geometry.transforms import matrix_of_transform
from .equal_meshes import EqualMeshes
from .flatten import Matrix, moved
from .lod import coarser_nodes, join_levels


def placement_of_nodes(scene: Scene) -> Placement:
    """Return a placement of the nodes of a scene, with one model for all nodes whose meshes are equal.

    Coarser levels of detail are parts of the model of their finest node. A mesh that a skeleton deforms is in the space
    of the scene; it stands beside its node, without a parent.
    """
    return _Placer(scene).placement


class _Placer:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.part = PlacementPart(scene.name)
        self.placement = Placement([self.part])
        self._equal = EqualMeshes()
        self._models: dict[tuple[int, int | None], int] = {}
        parents = [node.parent for node in scene.nodes]
        local = [matrix_of_transform(node.translation, node.rotation, node.scale) for node in scene.nodes]
        self._worlds = hierarchy.world_matrices(np.array(local).reshape(-1, 4, 4), parents)
        self._above = set(parents)
        self._finest = {node.lod_of for node in scene.nodes}
        needed = {n for n, node in enumerate(scene.nodes) if n in self._above or not self._is_level(node, n)}
        places: dict[int, int] = {}
        for number in hierarchy.parents_first(parents):
            if number in needed:
                places[number] = len(self.part.nodes)
                self._add(scene.nodes[number], number, places.get(parents[number], -1), local[number])

    def _is_level(self, node: Node, number: int) -> bool:
        """Return whether the mesh of a node is in the model of another one."""
        finest = node.lod_of
        is_known = finest is not None and 0 <= finest < len(self.scene.nodes) and finest != number
        return is_known and finest is not None and self.scene.nodes[finest].mesh is not None

    def _add(self, node: Node, number: int, parent: int, local: Matrix) -> None:
        here = PlacedNode(node.name, parent, local)
        self.part.nodes.append(here)
        if node.mesh is None or self._is_level(node, number):
            return
        whole = join_levels(node, coarser_nodes(self.scene, number) if number in self._finest else [])
        if whole.mesh is None or node.skeleton is None:
            here.content = ModelUse(self._model(whole)) if whole.mesh is not None else None
            return
        mesh = moved(whole.mesh, self._worlds[number]) if node.skin is not None else whole.mesh
        use = ModelUse(self._model(replace(whole, mesh=mesh)))
        if number not in self._above:
            here.parent, here.matrix, here.content = -1, np.identity(4), use
        else:
            self.part.nodes.append(PlacedNode(node.name, -1, np.identity(4), use))

    def _model(self, node: Node) -> int:
        """Return the index of the model of a node."""
        mesh: Mesh = self._equal.first(node.mesh)  # type: ignore[arg-type]
        key = (id(mesh), node.skeleton)
        if key not in self._models:
            self._models[key] = len(self.placement.models)
            name = mesh.name or node.name
            skeletons = [] if node.skeleton is None else [self.scene.skeletons[node.skeleton]]
            lone = replace(node, name=name, parent=-1, mesh=mesh, skeleton=0 if skeletons else None, skin=None)
            lone.translation, lone.rotation, lone.scale = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
            lone.lod_of = lone.shape_of = lone.world = None
            model = self.scene.part(name, [lone], skeletons)
            model.placement = None
            self.placement.models.append(PlacedModel(name, lambda: model))
        return self._models[key]
