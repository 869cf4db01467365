"""Size, cells, entrance, colliders and construction base of a new building, from the bounds of its models."""

import json
import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import error
from ...core.scene import Scene
from ..blueprint.checks import MOST_OUTSIDE, points_in
from ..blueprint.components import Cell
from .options import BLOCKS

Box = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Lowest and highest corner (3,) in Blender's space."""
Point = tuple[float, float, float]

_LEAST_OUTSIDE = 0.2
_FLAT = 0.1
"""Smallest side of a collider: one without volume cannot be clicked. Also the height that needs no cell above."""
_MOST_SIDE = 30
"""A blueprint of 30 x 30 x 30 cells has 5 MB."""
_MOST_GAP = 1.05
"""Distance in metres of a model from its origin at which a row of cells would be empty."""


def members(name: str) -> dict[str, Any]:
    """Return a group of members with their usual values."""
    return dict(json.loads(Path(__file__).with_name("members.json").read_text("utf-8"))[name])


@dataclass(frozen=True)
class Shape:
    """Everything of a building that its scene decides."""

    size: Cell
    colliders: Sequence[Box]
    stages: Sequence[Sequence[Box]] = ()
    """Colliders of each construction stage."""
    entrance: Cell | None = None
    access: Point | None = None
    """Point of the game's space where beavers enter, if it is not derived from the entrance."""
    nodes: frozenset[str] = frozenset()
    """Names of the nodes of the finished model."""
    materials: frozenset[str] = frozenset()
    """Names of the materials of all models."""
    triangles: int = 0
    """Number of triangles of the finished model."""

    def outside(self) -> float:
        """Return the distance in metres by which a collider or the point of access is outside of the cells."""
        x, y, z = self.access or (0.0, 0.0, 0.0)
        boxes = np.array([*self.colliders, *chain(*self.stages), ((-x, -z, y), (-x, -z, y))])
        low, high = (-self.size[0], -self.size[1], 0), (0, 0, self.size[2])
        return float(np.maximum(boxes[:, 1] - high, low - boxes[:, 0]).max())


def bounds_of(scene: Scene) -> Box | None:
    """Return the box around the meshes of a model, or None if it has no triangle."""
    points = [*points_in(scene, np.identity(4))]
    if not points or not scene.triangle_count:
        return None
    return np.concatenate(points).min(axis=0), np.concatenate(points).max(axis=0)


def size_of(box: Box, wanted: Cell = (0, 0, 0), name: str = "") -> Cell:
    """Return the number of cells along each axis; those that are not ``wanted`` are derived from the model.

    Parameters
    ----------
    name:
        Name of the collection, to which a fix can add an origin; empty for none.

    Raises
    ------
    ExportError
        The model reaches too far beyond its front or left side, or ends too far from it, or exceeds the wanted size.
    """
    low, high = box
    over = high[:2].max()
    if over > MOST_OUTSIDE + 1e-4 or (high[:2].min() < -_MOST_GAP and not any(wanted)):
        template = (
            "The front corner of the model, at the left of a viewer who faces the entrance, is not at its origin; "
            "put an empty #Origin at this corner of the model: x = {:.2f}, y = {:.2f}"
        )
        fix = error("model-outside", template, high[0], high[1], is_fixable=bool(name), names=(name,))
        raise ExportError.of(fix)
    outside = np.clip(high[:2] + 0.05, _LEAST_OUTSIDE, MOST_OUTSIDE)
    derived = np.ceil(np.round([*(-low[:2] - outside), high[2] - _FLAT], 4)).astype(int).tolist()
    x, y, z = (count or max(1, found) for count, found in zip(wanted, derived, strict=True))
    for axis, count, reach in zip("XYZ", (x, y, z), (*-low[:2], high[2]), strict=True):
        if reach > count + MOST_OUTSIDE + 1e-4 or count > _MOST_SIDE:
            template = (
                "Size {} is {}, but the model reaches to {:.2f} m; enter at least {} (at most {}) or 0, or scale it"
            )
            raise ExportError(template, axis, count, reach, math.ceil(reach - MOST_OUTSIDE), _MOST_SIDE)
    return x, y, z


def entrance_at(name: str, point: Point, size: Cell) -> Cell:
    """Return the cell before the door for an empty at the door, or in front of it.

    Raises
    ------
    ExportError
        The empty is not at the front.
    """
    x, z = math.floor(round(-point[0], 4)), math.floor(round(point[2] + 0.3, 4))
    if not (-0.5001 <= point[1] <= 1.0001 and 0 <= x < size[0] and 0 <= z < min(2, size[2])):
        template = (
            "'{}' is at {:.2f}, {:.2f}, {:.2f} of the building; put it at the front: x from {} to 0, y from -0.5 to 1, "
            "at the height of the floor (0 or 1)"
        )
        raise ExportError(template, name, *point, -size[0])
    return x, -1, z


def xyz(x: float, y: float, z: float) -> dict[str, float]:
    """Return a vector of the file; integers stay integers."""
    values = (value if isinstance(value, int) else round(value, 5) + 0.0 for value in (x, y, z))
    return dict(zip("XYZ", values, strict=True))


def _boxes(boxes: Sequence[Box]) -> list[dict[str, Any]]:
    """Return boxes of colliders as the file has them."""
    found = []
    for low, high in boxes:
        (x, y, z), (width, depth, height) = ((low + high) / 2).tolist(), np.maximum(high - low, _FLAT).tolist()
        found.append({"Center": xyz(-x, z, -y), "Size": xyz(width, height, depth)})
    return found


def geometry(shape: Shape, *, is_stackable: bool) -> dict[str, Any]:
    """Return all values of the blueprint that the scene decides, by their paths, whose names have slashes between."""
    x, _y, z = cell = shape.entrance or (0, 0, 0)
    blocks = [members("above" if layer else "ground") for layer in range(shape.size[2])]
    blocks[-1]["Stackable"] = "BlockObject" if is_stackable else "None"
    found: dict[str, Any] = {
        "BlockObjectSpec/Size": xyz(*shape.size),
        BLOCKS: [block for block in blocks for _ in range(shape.size[0] * shape.size[1])],
        "BlockObjectSpec/Entrance": {"HasEntrance": shape.entrance is not None, "Coordinates": xyz(*cell)},
        "Children/#Finished/CollidersSpec/BoxColliders": _boxes(shape.colliders),
    }
    if shape.entrance is not None:
        found["BuildingAccessibleSpec/LocalAccess"] = xyz(*(shape.access or (x + 0.5, float(z), 0.2)))
    for number, stage in enumerate(shape.stages):
        path = f"Children/#Unfinished/Children/ConstructionStage{number}/CollidersSpec/BoxColliders"
        found[path] = _boxes(stage)
    return found


def base_child(size: Cell, known: Container[str]) -> dict[str, Any]:
    """Return the construction base of a size as a child, turned if the game has only the other one; or no child."""
    for x, y in ((size[0], size[1]), (size[1], size[0])):
        name = f"ConstructionBase{x}x{y}"
        if name in known:
            child = members("turned_base") | {"BlueprintPath": f"ConstructionBases/{name}/{name}.blueprint"}
            child["Modification"]["TransformSpec"]["Position"]["Z"] = float(size[1])  # turned, z becomes -x
            return {f"{name}#nested": child if (x, y) != size[:2] else {"BlueprintPath": child["BlueprintPath"]}}
    return {}
