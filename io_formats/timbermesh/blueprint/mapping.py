"""Blueprint -> Placement (docs/formats/timberborn_blueprints.md, section 8), with the models of its mod; facts."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Message, Unresolved, distinct
from ...core.placement import (
    Content,
    Marker,
    MarkerShape,
    ModelUse,
    PlacedCollection,
    PlacedNode,
    Placement,
    PlacementPart,
    Wire,
)
from ...core.scene import Scene
from ...geometry.hierarchy import placed_matrices
from ...projects import Projects
from . import components
from .codec import Blueprint, BlueprintSource, child_of
from .components import SPEC, Footprint, Numbers, colliders_of, footprint_of
from .format import ReadOptions
from .json_text import names_of
from .links import Links, ModFiles, placed_model
from .tree import BlueprintNode, Problem, State, TreeBuilder


def facts(document: Blueprint) -> dict[str, Any]:
    """Count the elements of the file itself. Nested blueprints are not read."""
    unresolved = Unresolved()
    numbers = Numbers(unresolved)
    nodes = TreeBuilder(None, unresolved).build(BlueprintSource("", document.root), "")
    models = [node for node in nodes if node.model]
    footprint = footprint_of(document.root, numbers)
    return {
        "nodes": len(nodes) - 1,
        "placed_models": len(models),
        "models": sorted({node.model for node in models}),
        "states": dict(Counter(node.state.value for node in models).most_common()),
        "blueprints": sorted({node.nested for node in nodes if node.nested}),
        "colliders": sum(1 for node in nodes for _ in colliders_of(node.value, numbers, node.pointer)),
        "size": list(footprint.size) if footprint is not None else None,
    }


NOT_HELD = frozenset({"name", "is_hidden", "materials"})
"""Fields of edits that are not written into a blueprint: other files refer to the names, and the format lacks the
others."""
_MISSING_SIZE = 0.5
_GROWN = "Mature"
_NAMES = {State.ALWAYS: "Model"}


class PlacementBuilder:
    """Builds the placement of a blueprint. Without ``files``, it has neither models nor nested blueprints."""

    def __init__(self, name: str, files: ModFiles | None) -> None:
        self.scene = Scene(name, placement=Placement([PlacementPart(name, not_held=NOT_HELD, model_property="Model")]))
        self.nodes: list[BlueprintNode] = []
        self.footprint: Footprint | None = None
        self._placement = self.scene.placement or Placement([])
        self._part = self._placement.parts[0]
        self._unresolved = Unresolved()
        self._numbers = Numbers(self._unresolved)
        self._links = Links(files, self._unresolved) if files is not None else None
        self._models: dict[Path, int] = {}
        self._wires = components.Wires()
        self._collections: dict[tuple[int, str], int] = {}
        self._scenes: dict[int, Scene | None] = {}

    def build(self, document: Blueprint, path: Path | None = None) -> Scene:
        """Return the scene of a blueprint, with warnings.

        Raises
        ------
        FormatError
            There are too many nodes.
        """
        self._part.digest = document.digest
        place = path.absolute() if path is not None else None
        file_name = path.name if path is not None else self.scene.name
        identity = str(place.resolve()) if place is not None else ""
        find = self._links.blueprint if self._links is not None else None
        tree = TreeBuilder(find, self._unresolved)
        self.nodes = tree.build(BlueprintSource(file_name, document.root, place, identity), self.scene.name)
        self._add_children()
        self._add_colliders()
        self._add_footprint(document)
        self._add_points(document)
        self._report()
        return self.scene

    @property
    def _root(self) -> PlacedNode:
        return self._part.nodes[0]

    def _report(self) -> None:
        report = self.scene.report
        self._unresolved.report(report)
        if self.footprint is not None and not self.footprint.fits:
            report.change(
                "cells-and-size", "The number of cells does not fit the size; all cells of the size are shown"
            )
        if not any(node.model or node.nested for node in self.nodes):
            report.note("places-nothing", "The blueprint places no models")

    # -- nodes of the tree ----------------------------------------------------------------------

    def _add_children(self) -> None:
        for node in self.nodes:
            channels = self._numbers.transform(child_of(node.value, "TransformSpec"), f"{node.pointer}/TransformSpec")
            placed = PlacedNode(node.name, node.parent, channels.matrix(), self._content(node), key=node.key)
            placed.channels, placed.owner = channels, node.owner
            placed.is_unplaced = node.parent < 0
            placed.collection = self._collection_of(node)
            if node.model:
                placed.properties["Model"] = node.model
            if node.nested:
                placed.properties["Blueprint"] = node.nested
            self._part.nodes.append(placed)

    def _content(self, node: BlueprintNode) -> Content | None:
        """Return what a node shows: its model, a marker if that is missing, or nothing."""
        if self._links is None:
            return None
        path = self._links.model(node.model, node.level) if node.model else None
        if path is None:
            return Marker(MarkerShape.CUBE, _MISSING_SIZE) if node.model or node.is_missing else None
        if path not in self._models:
            self._models[path] = len(self._placement.models)
            model = placed_model(path)
            self._placement.models.append(model)
        return ModelUse(self._models[path])

    def _collection_of(self, node: BlueprintNode) -> int:
        """Return the collection of a node by building state, stage and growth; -1 for the root."""
        if node.parent < 0:
            return -1
        name = _NAMES.get(node.state, node.state.value.capitalize())
        found = self._collection(name, is_hidden=node.state not in {State.ALWAYS, State.FINISHED})
        if node.stage is not None:
            found = self._collection(f"Stage {node.stage}", found, is_hidden=node.stage > 0)
        if node.variant:
            is_shown = node.variant == "alive" and (node.growth == _GROWN or not self._has_grown)
            found = self._collection(f"{node.growth} {node.variant.capitalize()}", found, is_hidden=not is_shown)
        return found

    @property
    def _has_grown(self) -> bool:
        return any(node.name == _GROWN for node in self.nodes)

    def _collection(self, name: str, parent: int = -1, *, is_hidden: bool = False, is_guide: bool = False) -> int:
        key = (parent, name)
        if key not in self._collections:
            self._collections[key] = len(self._part.collections)
            self._part.collections.append(PlacedCollection(name, parent, is_hidden, is_guide))
        return self._collections[key]

    # -- guides, which the game does not show ---------------------------------------------------

    def _add_colliders(self) -> None:
        for number, node in enumerate(self.nodes):
            for found in components.colliders_of(node.value, self._numbers, node.pointer):
                placed = PlacedNode(f"{found.kind.capitalize()}Collider", number, found.channels.matrix())
                placed.content, placed.channels = self._wires.of(found), found.channels
                placed.key, placed.owner = node.pointer + found.pointer, node.content_owner
                placed.collection = self._collection("Colliders", is_hidden=True, is_guide=True)
                self._part.nodes.append(placed)

    def _add_footprint(self, document: Blueprint) -> None:
        self.footprint = found = footprint_of(document.root, self._numbers)
        if found is None:
            return
        points, edges = components.box_wire(*found.boxes())
        wire = Wire("Footprint", _moved(self._to_root(), points), edges, is_selectable=False)
        placed = PlacedNode("Footprint", 0, content=wire, key=f"/{SPEC}")
        placed.collection = self._collection("Footprint", is_guide=True)
        self._part.nodes.append(placed)

    def _add_points(self, document: Blueprint) -> None:
        for point in components.points_of(document.root, self.footprint, self._numbers):
            placed = PlacedNode(point.name, 0, self._to_root() @ point.matrix, point.marker, key=point.key)
            self._add_point(placed)
        for attachment in components.attachments_of(document.root, self._numbers):
            placed = PlacedNode(attachment.name, self._parent_of(attachment), attachment.channels.matrix())
            placed.content, placed.channels = Marker(MarkerShape.CROSS), attachment.channels
            placed.key, placed.properties = attachment.key, attachment.properties
            self._add_point(placed)

    def _add_point(self, placed: PlacedNode) -> None:
        placed.collection = self._collection("Points", is_guide=True)
        self._part.nodes.append(placed)

    def _to_root(self) -> npt.NDArray[np.float64]:
        """Return the matrix from the grid, where the game puts the building, to the space of the root."""
        try:
            return np.linalg.inv(self._root.matrix).astype(np.float64)
        except np.linalg.LinAlgError:
            return np.identity(4)

    # -- attachments ----------------------------------------------------------------------------

    def _parent_of(self, attachment: components.Attachment) -> int:
        """Return the index of the parent node of an attachment. For a parent inside a model, add a node."""
        name = attachment.parent
        if not name:
            return 0
        for number, node in enumerate(self.nodes[1:], 1):
            if name == node.name or names_of(node.pointer)[-1] == name:
                return number
        for number, matrix in self._inside_models(name):
            placed = PlacedNode(name, number, matrix, is_unplaced=True)
            self._add_point(placed)
            return len(self._part.nodes) - 1
        if self._links is not None:
            self._unresolved.add(Problem.PARENT, f"{attachment.name} ({name})")
        return 0

    def _inside_models(self, name: str) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield the nodes whose models have a node of this name, and its matrix in the space of the model."""
        for number, placed in enumerate(self._part.nodes[: len(self.nodes)]):
            scene = self._scene(placed.content.model) if isinstance(placed.content, ModelUse) else None
            if scene is not None:
                found = next((index for index, node in enumerate(scene.nodes) if node.name == name), None)
                if found is not None:
                    yield number, matrices_in_model(scene)[found]

    def _scene(self, model: int) -> Scene | None:
        if model not in self._scenes:
            try:
                self._scenes[model] = self._placement.models[model].read()
            except FormatError:
                self._scenes[model] = None
        return self._scenes[model]


def matrices_in_model(scene: Scene) -> npt.NDArray[np.float64]:
    """Return the matrices (n, 4, 4) of the nodes in the space of their model."""
    return placed_matrices(scene.nodes)


def _moved(matrix: npt.NDArray[np.float64], points: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    moved = points.astype(np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    return moved.astype(np.float32)


_NOT_MISSING = {"places-nothing"}


def link(document: Blueprint, scene: Scene, path: Path, projects: Projects, options: ReadOptions) -> None:
    """Replace the placement of a scene by one with models and nested blueprints."""
    built = placement_builder(scene.name, projects, options).build(document, path)
    scene.placement, scene.warnings = built.placement, built.warnings


def missing(document: Blueprint, path: Path, projects: Projects, options: ReadOptions) -> list[Message]:
    """Return messages about missing and damaged models and blueprints, and about values that cannot be used."""
    found = placement_builder(path.stem, projects, options).build(document, path)
    return [message for message in distinct(found.warnings) if message.code not in _NOT_MISSING]


def placement_builder(name: str, projects: Projects, options: ReadOptions) -> PlacementBuilder:
    """Return the builder of a blueprint's placement, which reads the files around it."""
    return PlacementBuilder(name, ModFiles(projects, options.mod, options.game))


def to_scene(document: Blueprint, name: str, options: ReadOptions) -> Scene:
    """Map a blueprint to a placement of its own nodes.

    Models and nested blueprints are added by :func:`link`.
    """
    return PlacementBuilder(name, None).build(document)
