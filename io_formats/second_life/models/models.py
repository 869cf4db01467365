"""A scene as models with levels of detail, physics and skeleton, the structure of all four file formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from ...core.scene import Mesh, Node, PassThrough, Role, Scene, Skeleton
from .levels import LEVELS


@dataclass(frozen=True)
class SubmodelId(PassThrough):
    """Number, from the header of an asset, of the part of a split model (more than 8 faces) that the asset holds."""

    number: int


@dataclass
class Model:
    """One object: nodes of a scene that belong together and share the transform of the finest one."""

    name: str
    levels: list[Node | None]
    """Four entries; the finest always exists."""
    physics: Node | None = None
    hulls: list[Node] = field(default_factory=list)
    base_hull: Node | None = None
    skeleton: Skeleton | None = None
    """The skeleton of a rigged model."""

    @property
    def finest(self) -> Node:
        return cast(Node, self.levels[0])

    @property
    def mesh(self) -> Mesh:
        return cast(Mesh, self.finest.mesh)


def models_of(scene: Scene) -> list[Model]:
    """Return the models of a scene in the order of their nodes; the first is the root of the linkset.

    Levels beyond the fourth, and levels and shapes of nodes without a mesh, are left to the checks.
    """
    found: dict[int, Model] = {}
    for number, node in enumerate(scene.nodes):
        if node.mesh is not None and node.role is Role.RENDER and node.lod_of is None:
            skeleton = scene.skeletons[node.skeleton] if node.skeleton is not None else None
            found[number] = Model(node.name, [node, None, None, None], skeleton=skeleton)
    for node in scene.nodes:
        if node.mesh is None:
            continue
        owner = None if node.model is None else found.get(node.model)
        if owner is None:
            continue
        if node.role is Role.PHYSICS:
            owner.physics = owner.physics or node
        elif node.role is Role.HULL:
            if node.is_base_hull:
                owner.base_hull = owner.base_hull or node
            else:
                owner.hulls.append(node)
        elif 0 < node.lod < len(LEVELS) and owner.levels[node.lod] is None:
            owner.levels[node.lod] = node
    return list(found.values())
