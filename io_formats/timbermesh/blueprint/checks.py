"""Rules of the game for blueprints (docs/formats/timberborn_blueprints.md, sections 5, 6 and 9)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from ...core.messages import Message, Report, Text, Unresolved
from ...core.placement import ModelUse
from ...core.scene import Scene
from ...geometry.hierarchy import world_matrices
from ...projects import Projects
from .codec import Blueprint, Members, child_of
from .components import Footprint, Numbers, colliders_of
from .format import ReadOptions
from .mapping import PlacementBuilder, matrices_in_model, placement_builder
from .tree import BlueprintNode, State

MOST_OUTSIDE = 0.55
"""Distance in metres by which finished models of the game and of mods extend beyond their cells."""


def check_links(document: Blueprint, path: Path, projects: Projects, options: ReadOptions) -> list[Message]:
    """Return findings about a blueprint with all that it nests and with its models."""
    built = placement_builder(path.stem, projects, options)
    built.build(document, path)
    report = Report()
    _check_stages(built.nodes, document.root, report)
    if built.footprint is not None:
        _check_entrance(built.footprint, report)
        _check_models(built, built.footprint, report)
    _check_colliders(built.nodes, report)
    return report.messages


def _check_stages(nodes: list[BlueprintNode], root: Members, report: Report) -> None:
    spec = child_of(root, "ConstructionSiteProgressVisualizerSpec") or {}
    thresholds = spec.get("ProgressThresholds")
    stages = sum(1 for node in nodes if node.stage is not None and nodes[node.parent].stage is None)
    if isinstance(thresholds, list) and stages and len(thresholds) != stages - 1:
        template = "The unfinished model has {:,} children and {:,} thresholds; the game needs {:,}"
        report.error("stage-count", template, stages, len(thresholds), stages - 1)


def _check_entrance(footprint: Footprint, report: Report) -> None:
    cell = footprint.entrance
    if cell is not None and (cell[1] not in {-1, 0} or cell[2] != footprint.base_z):
        template = "The entrance is the cell {}, {}, {}; doors are at Y = -1 or 0 and Z = {}"
        report.warning("unusual-entrance", template, *cell, footprint.base_z)


def _check_colliders(nodes: list[BlueprintNode], report: Report) -> None:
    numbers = Numbers(Unresolved())
    for node in nodes:
        if any(collider.is_empty for collider in colliders_of(node.value, numbers, node.pointer)):
            report.warning("collider-without-volume", "a collider has no volume", item=Text("node '{}'", node.name))


def _check_models(built: PlacementBuilder, footprint: Footprint, report: Report) -> None:
    """Report finished models that reach too far beyond the cells in X or Y."""
    placement = built.scene.placement
    if placement is None:
        return
    low, high = footprint.bounds()
    scenes: dict[int, Scene | None] = {}
    nodes = placement.parts[0].nodes[: len(built.nodes)]
    worlds = world_matrices(np.array([placed.matrix for placed in nodes]), [placed.parent for placed in nodes])
    for node, placed, world in zip(built.nodes, nodes, worlds, strict=True):
        if node.state is not State.FINISHED or not isinstance(placed.content, ModelUse):
            continue
        number = placed.content.model
        if number not in scenes:
            try:
                scenes[number] = placement.models[number].read()
            except FormatError as problem:
                scenes[number] = None
                report.warning("unreadable-model", "{}", problem.sentence())
        found = scenes[number]
        points = [] if found is None else list(points_in(found, world))
        if points:
            joined = np.concatenate(points)[:, :2]
            outside = float(np.maximum(low[:2] - joined.min(axis=0), joined.max(axis=0) - high[:2]).max())
            if outside > MOST_OUTSIDE:
                template = "its model reaches {:.2f} m beyond the cells of the building"
                report.warning("model-outside-cells", template, outside, item=Text("node '{}'", node.name))


def points_in(scene: Scene, world: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
    """Yield the points (n, 3) of the meshes of a model at a matrix."""
    for node, matrix in zip(scene.nodes, matrices_in_model(scene), strict=True):
        if node.mesh is not None and len(node.mesh.points):
            whole = world @ matrix
            yield node.mesh.points @ whole[:3, :3].T + whole[:3, 3]
