"""Nodes of a placement -> nodes of a new file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Report, counted, listed
from ...core.placement import Camera, Light, ModelUse, PartUse, PlacedNode, Placement, PlacementPart, SlotUse
from ...encodings.xml_files import DEPTH_LIMIT
from ..values import printable
from .document import MOST_NODES, Matrices, SceneNode, SurfaceSetting
from .node_ids import NodeIds

_MOST_LEVELS = DEPTH_LIMIT - 10
"""Maximum depth of nodes: the limit of XML readers, minus the elements around the nodes."""
_FARTHEST = 1e18
_LEAST_SCALE = 1e-6
_LEVEL_DISTANCE = 10.0
"""Distance in metres from which the first coarser level of detail is shown, if none is stated. It is three times as
large for each further level."""


@dataclass(frozen=True)
class WrittenSurface:
    """A surface of a mesh file that is written."""

    name: str
    material: str
    """Name of the material in the model, or empty."""
    level: int


@dataclass(frozen=True)
class WrittenModel:
    """A mesh file that nodes refer to."""

    reference: str
    """Name of a new asset, or ``guid://`` and the GUID of a file of the project."""
    surfaces: tuple[WrittenSurface, ...]
    is_skinned: bool
    material: Callable[[str], str]
    """Function that returns the reference of a material by its name; empty without a material."""


class NodeBuilder:
    """Builds the nodes of the parts of a placement, and counts data that they cannot store."""

    def __init__(
        self,
        placement: Placement,
        models: Sequence[WrittenModel],
        parts: Sequence[str],
        report: Report,
        *,
        has_collision: bool,
    ) -> None:
        self._placement = placement
        self._models = models
        self._parts = parts
        self._report = report
        self._flags = ("intersection", "collision") if has_collision else ("intersection",)
        self._lights: list[str] = []
        self._flattened: list[str] = []
        self._guessed: list[str] = []

    def nodes(self, part: PlacementPart, title: str) -> list[SceneNode]:
        """Return the nodes of a part.

        If several nodes have no parent, they are put below a new root named ``title``.

        Raises
        ------
        ExportError
            There are too many nodes, or they are nested too deeply, or a transform is invalid.
        """
        ids = NodeIds()
        places: list[int] = []
        made: list[SceneNode] = []
        depths: list[int] = []
        if sum(node.parent < 0 for node in part.nodes) != 1:
            made.append(SceneNode("NodeDummy", printable(title), ids.new(title)))
            depths.append(1)
        root = len(made) - 1
        for node in part.nodes:
            parent = places[node.parent] if node.parent >= 0 else root
            places.append(len(made))
            for found in self._made(node, parent, len(made)):
                found.identifier = ids.new(f"{found.parent} {found.name}")
                depths.append(depths[found.parent] + 1 if found.parent >= 0 else 1)
                made.append(found)
            if len(made) > MOST_NODES:
                raise ExportError("The scene has more than {:,} nodes", MOST_NODES)
            if depths[-1] > _MOST_LEVELS:
                raise ExportError("Node '{}' is nested more than {:,} levels deep", node.name, _MOST_LEVELS)
        return made

    def report_losses(self) -> None:
        """Report data that the nodes built so far cannot store."""
        self._report.loss_of("lights-left-out", "{} not written: {}", self._lights, "light is", "lights are")
        if self._flattened:
            number = counted(len(self._flattened), "node has", "nodes have")
            template = "{} a scale of zero, written as {:g}: {}"
            self._report.change("zero-scale", template, number, _LEAST_SCALE, listed(self._flattened))
        if self._guessed:
            names = list(dict.fromkeys(self._guessed))
            template = "levels of detail change at {:g} m, {:g} m and so on, since no file states their distances: {}"
            distances = _LEVEL_DISTANCE, _LEVEL_DISTANCE * 3
            self._report.note("default-lod-distances", template, *distances, listed(names))

    def _made(self, node: PlacedNode, parent: int, index: int) -> Iterable[SceneNode]:
        """Yield the new node for a placed node, followed by a node for each of its instances."""
        content = node.content
        if isinstance(content, ModelUse) and node.instances is not None:
            yield self._node(node, parent, None)
            for number, matrix in enumerate(node.instances, 1):
                place = PlacedNode(f"{node.name or 'instance'}_{number}", 0, matrix, content)
                yield self._node(place, index, content)
        else:
            yield self._node(node, parent, content)

    def _node(self, node: PlacedNode, parent: int, content: object) -> SceneNode:
        made = SceneNode("NodeDummy", "", "", parent, not node.is_hidden, self._matrix(node))
        if isinstance(content, ModelUse):
            model = self._models[content.model]
            made.kind = "ObjectMeshSkinned" if model.is_skinned else "ObjectMeshStatic"
            made.values["mesh_name"] = model.reference
            made.surfaces = self._surfaces(node, model, content)
        elif isinstance(content, PartUse):
            made.kind = "NodeReference"
            made.values["reference"] = self._parts[content.part]
        elif isinstance(content, Camera):
            made.kind = "PlayerDummy"
            made.values = _camera_values(content)
        elif isinstance(content, Light):
            self._lights.append(node.name)
        made.name = printable(node.name) or made.kind
        return made

    def _surfaces(self, node: PlacedNode, model: WrittenModel, use: ModelUse) -> tuple[SurfaceSetting, ...]:
        waiting: dict[str, list[SlotUse]] = {}
        for slot in use.slots:
            waiting.setdefault(printable(slot.name), []).append(slot)
        chosen = [waiting[one.name].pop(0) if waiting.get(one.name) else SlotUse(one.name) for one in model.surfaces]
        distances = [_distance(slot, surface) for slot, surface in zip(chosen, model.surfaces, strict=True)]
        levels = sorted({nearest for nearest, _ in distances})
        if any(is_guessed for _, is_guessed in distances):
            self._guessed.append(node.name)
        following = dict(zip(levels, [*levels, None][1:], strict=True))
        return tuple(
            SurfaceSetting(
                surface.name,
                model.material(slot.material if slot.material is not None else surface.material),
                not slot.is_hidden,
                nearest,
                following[nearest],
                self._flags,
            )
            for slot, surface, (nearest, _) in zip(chosen, model.surfaces, distances, strict=True)
        )

    def _matrix(self, node: PlacedNode) -> Matrices:
        """Return the matrix of a node; a scale of zero is replaced by the smallest allowed one.

        Raises
        ------
        ExportError
            A number is NaN, infinite or too large.
        """
        matrix = np.array(node.matrix, np.float64)
        if not (np.abs(matrix) < _FARTHEST).all():
            raise ExportError("Node '{}' has no valid transform", node.name)
        lengths = np.linalg.norm(matrix[:3, :3], axis=0)
        if lengths.min() < _LEAST_SCALE:
            self._flattened.append(node.name)
            for axis in np.flatnonzero(lengths < _LEAST_SCALE):
                matrix[:3, axis] = _direction(matrix[:3, :3], int(axis)) * _LEAST_SCALE
        return matrix


def _direction(linear: Matrices, axis: int) -> Matrices:
    """Return the direction for one axis of a matrix that is perpendicular to the other two axes."""
    across = np.cross(linear[:, (axis + 1) % 3], linear[:, (axis + 2) % 3])
    length = np.linalg.norm(across)
    return across / length if length > 0 else np.identity(3)[axis]


def _distance(slot: SlotUse, surface: WrittenSurface) -> tuple[float, bool]:
    """Return the distance from which on a surface is shown, and whether that is the default distance."""
    if slot.nearest is not None:
        return slot.nearest, False
    level = slot.level or surface.level
    return (_LEVEL_DISTANCE * 3 ** min(level - 1, 8), True) if level else (0.0, False)


def _camera_values(camera: Camera) -> dict[str, str]:
    """Return the fields of a camera's element, in the order of the file."""
    main = "1" if camera.is_main else "0"
    angle = {"fov": f"{math.degrees(camera.field_of_view):.9g}"} if camera.field_of_view else {}
    return {
        **angle,
        "znear": f"{camera.near:.9g}",
        "zfar": f"{camera.far:.9g}",
        "oblique_frustum_plane": "0 0 -1 0",
        "is_oblique_frustum": "0",
        "is_main": main,
        "is_listener": main,
        "controlled": main,
    }
