"""Group the nodes of a scene into models with levels of detail, physics and skeleton, for all four file formats."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ...core.messages import Message, Text
from ...core.scene import Mesh, Node, PassThrough, Role, Scene, Skeleton
from ...geometry.transforms import unmirrored
from ...passes.join_meshes import EqualMeshes
from ..options import LEVEL_TEXTS, LEVELS


@dataclass(frozen=True)
class SubmodelId(PassThrough):
    """Header value of an asset that holds a part of a split model (more than 8 faces): the number of the part."""

    number: int


@dataclass
class Model:
    """One object: nodes of a scene that belong together and share the transform of the finest one."""

    name: str
    levels: list[Node | None]
    """Nodes of the four levels, finest first; None for a missing level. The finest always exists."""
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

    @property
    def nodes(self) -> list[Node]:
        """All nodes: levels from the finest, physics, hulls, base hull."""
        parts = (*self.levels, self.physics, *self.hulls, self.base_hull)
        return [node for node in parts if node is not None]

    def part_name(self, node: Node) -> Text:
        """Return the name of the role of a node in the model, such as ``high level``, ``physics mesh`` or ``hull``."""
        found = (text for text, level in zip(LEVEL_TEXTS, self.levels, strict=True) if level is node)
        return Text(next(found, "physics mesh" if node is self.physics else "hull"))

    def with_meshes(self, change: Callable[[Mesh], Mesh], **transform: Any) -> Model:
        """Return the model with ``change`` applied to its meshes; keyword arguments replace attributes of its nodes."""
        changed = {
            id(node): replace(node, mesh=change(node.mesh), **transform) for node in self.nodes if node.mesh is not None
        }

        def found(node: Node | None) -> Node | None:
            return changed.get(id(node), node)

        return replace(
            self,
            levels=[found(node) for node in self.levels],
            physics=found(self.physics),
            hulls=[changed.get(id(node), node) for node in self.hulls],
            base_hull=found(self.base_hull),
        )


def models_of(scene: Scene) -> list[Model]:
    """Return the models of a scene in the order of their nodes; the first is the root of the linkset.

    Levels beyond the fourth, and levels and shapes that belong to a node without a mesh, are not part of any model; the
    checks report them.
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


def first_equal(models: Sequence[Model]) -> list[int]:
    """Return, for each model, the index of the first model with the same content, which may be the model itself.

    The content is the meshes of all levels and shapes, with their materials, and the mirroring, which is applied to
    points. Rigged models are never equal, since the uploader stores one binding for each mesh.
    """
    meshes = EqualMeshes()
    found: dict[Hashable, int] = {}
    return [
        number if model.skeleton is not None else found.setdefault(_content(model, meshes), number)
        for number, model in enumerate(models)
    ]


def mesh_count(models: Sequence[Model]) -> int:
    """Return the number of meshes that an upload stores for these models."""
    return len(set(first_equal(models)))


SCALE_CODES = {"negative-scale", "uneven-scale"}
"""Codes of findings about scales that are not applied."""


def findings_once(models: Sequence[Model], check: Callable[[Model], Iterable[Message]]) -> list[Message]:
    """Return the findings of all models; of models with the same content, findings with the same text only once.

    Findings about scale are kept for each object, since fixing the scale changes only that object.
    """
    found: list[Message] = []
    texts: list[set[tuple[str, str]]] = []
    for number, (model, first) in enumerate(zip(models, first_equal(models), strict=True)):
        own = list(check(model))
        texts.append({(finding.code, finding.message) for finding in own})
        known = texts[first] if first < number else ()
        found += [
            finding for finding in own if (finding.code, finding.message) not in known or finding.code in SCALE_CODES
        ]
    return list(dict.fromkeys(found))


def _content(model: Model, meshes: EqualMeshes) -> Hashable:
    """Return a key that is equal for models whose levels and shapes are equal."""

    def mesh_of(node: Node | None) -> int | None:
        return None if node is None or node.mesh is None else id(meshes.first(node.mesh))

    finest = model.finest
    return (
        *(mesh_of(node) for node in (*model.levels, model.physics, model.base_hull)),
        tuple(mesh_of(hull) for hull in model.hulls),
        unmirrored(finest.rotation, finest.scale)[2],
        finest.submodel,
        repr(finest.pass_through),
    )
