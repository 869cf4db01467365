"""Placements in the forms that files without references need, and the placement of a scene's own nodes."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ..core.errors import FormatError
from ..core.messages import Report, Text, counted, listed
from ..core.placement import ModelUse, PartUse, PlacedModel, PlacedNode, Placement, PlacementPart, SlotUse
from ..core.scene import Clip, Mesh, Node, Scene
from ..geometry import hierarchy
from ..geometry.triangles import part_of_slots
from .clips import with_frames
from .flatten import Matrix, moved
from .join_meshes import EqualMeshes
from .lods import coarser_nodes, join_levels, level_of


def placement_of_nodes(scene: Scene) -> Placement:
    """Return a placement of the nodes of a scene, with one model for all nodes whose meshes are equal.

    Coarser levels of detail are parts of the model of their finest node. A mesh that a skeleton deforms is in the space
    of the scene; it stands beside its node, without a parent.
    """
    return _Placer(scene).build()


class _Placer:
    """Makes a placement of a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.part = PlacementPart(scene.name)
        self.placement = Placement([self.part])
        self._equal = EqualMeshes()
        self._models: dict[tuple[int, int | None], int] = {}
        self._clips: dict[int | None, list[Clip]] = defaultdict(list)
        for clip in with_frames(scene).clips:
            for number in dict.fromkeys(track.skeleton for track in clip.transforms if track.skeleton is not None):
                tracks = [replace(track, skeleton=0) for track in clip.transforms if track.skeleton == number]
                self._clips[number].append(replace(clip, transforms=tracks, vertices=[]))

    def build(self) -> Placement:
        """Add the nodes of the scene, parents first."""
        scene = self.scene
        parents = [node.parent for node in scene.nodes]
        local = hierarchy.local_matrices(scene.nodes)
        self._worlds = hierarchy.world_matrices(local, parents)
        self._above = set(parents)
        self._finest = {node.lod_of for node in scene.nodes}
        needed = {n for n, node in enumerate(scene.nodes) if n in self._above or not self._is_level(node, n)}
        places: dict[int, int] = {}
        for number in hierarchy.parents_first(parents):
            if number in needed:
                places[number] = len(self.part.nodes)
                self._add(scene.nodes[number], number, places.get(parents[number], -1), local[number])
        return self.placement

    def _is_level(self, node: Node, number: int) -> bool:
        """Return whether the mesh of a node is in the model of another one."""
        finest = node.lod_of
        is_known = finest is not None and 0 <= finest < len(self.scene.nodes) and finest != number
        return is_known and finest is not None and self.scene.nodes[finest].mesh is not None

    def _add(self, node: Node, number: int, parent: int, local: Matrix) -> None:
        """Add the node of a scene's node with its model; a deformed mesh that has children gets a node of its own."""
        here = PlacedNode(node.name, parent, local)
        self.part.nodes.append(here)
        if node.mesh is None or self._is_level(node, number):
            return
        whole = join_levels(node, coarser_nodes(self.scene, number) if number in self._finest else [])
        if whole.mesh is None or node.skeleton is None:
            here.content = ModelUse(self._model(whole)) if whole.mesh is not None else None
            return
        mesh = moved(whole.mesh, self._worlds[number]) if node.skin is not None else whole.mesh
        clips = self._clips[node.skeleton]
        use = ModelUse(self._model(replace(whole, mesh=mesh)), animation=clips[0].name if clips else "")
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
            model = self.scene.part(name, [lone], skeletons, self._clips.get(node.skeleton, ()))
            model.placement = None
            self.placement.models.append(PlacedModel(name, lambda: model))
        return self._models[key]


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
    """Return a part without the nodes of hidden and guide collections, except parents of visible nodes."""
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


@dataclass(frozen=True)
class ShownSlots:
    """The material slots of a model that a node shows."""

    kept: tuple[int, ...]
    materials: tuple[str, ...]
    """Names of their materials."""
    places: dict[int, int]
    """Index in ``ModelUse.slots`` of the slots that the node names."""
    count: int
    """Number of slots of the model."""
    is_hidden: bool
    """Whether the node hides all slots of its level; all of the level are kept then."""
    unknown: tuple[str, ...]
    """Surfaces that the node names and the model lacks."""


def shown_slots(scene: Scene, use: ModelUse) -> ShownSlots:
    """Return the slots of a model that a node shows; those that it does not name keep the settings of the model."""
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None]
    mesh = meshes[0] if len(meshes) == 1 else None
    names = [] if mesh is None else [surface.name for surface in mesh.surfaces] or mesh.materials
    settings = [
        SlotUse(name, material or None, level=level_of(name) or 0)
        for name, material in zip(names, mesh.materials if mesh is not None else (), strict=True)
    ]
    free: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        free.setdefault(name, []).append(index)
    places: dict[int, int] = {}
    unknown: list[str] = []
    for place, slot in enumerate(use.slots if mesh is not None else ()):
        if free.get(slot.name):
            index = free[slot.name].pop(0)
            places[index] = place
            settings[index] = replace(slot, material=slot.material or settings[index].material)
        else:
            unknown.append(slot.name)
    level = tuple(slot for slot, setting in enumerate(settings) if setting.level == use.level)
    shown = tuple(slot for slot in level if not settings[slot].is_hidden)
    kept = shown or level or tuple(range(len(settings)))
    materials = tuple(settings[slot].material or settings[slot].name for slot in kept)
    return ShownSlots(kept, materials, places, len(settings), bool(settings) and not shown, tuple(unknown))


def with_shown_slots(scene: Scene, shown: ShownSlots) -> Scene:
    """Return a model with only the slots of its mesh that a node shows, and with the node's materials."""
    nodes = list(scene.nodes)
    for index, node in enumerate(nodes):
        if node.mesh is not None:
            mesh = node.mesh if len(shown.kept) == shown.count else part_of_slots(node.mesh, list(shown.kept))
            nodes[index] = replace(node, mesh=replace(mesh, materials=list(shown.materials)))
    return replace(scene, nodes=nodes)
