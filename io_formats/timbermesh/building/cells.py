"""Size, cells, entrance, colliders and construction base of a new building, from the bounds of its models."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.scene import Scene
from ..blueprint.components import Cell
from ..blueprint.mapping import matrices_in_model

Box = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Lowest and highest corner (3,) in Blender's space."""
Point = tuple[float, float, float]

MOST_OUTSIDE = 0.55
"""Distance in metres by which models of the game and of mods reach beyond their cells."""
_LEAST_OUTSIDE = 0.2
_FLAT = 0.1
"""Smallest side of a collider: one without volume cannot be clicked. Also the height that needs no cell above."""
_MOST_SIDE = 100
_LOWEST = "Bottom, Top, Corners, Path, Middle"
"""Occupations of cells on the ground. Without ``Floor``, the floor of a path below stays."""


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


def bounds_of(scene: Scene) -> Box | None:
    """Return the box around the meshes of a model, or None if it has no triangle."""
    corners = [
        node.mesh.points @ matrix[:3, :3].T + matrix[:3, 3]
        for node, matrix in zip(scene.nodes, matrices_in_model(scene), strict=True)
        if node.mesh is not None and len(node.mesh.points)
    ]
    if not corners or not scene.triangle_count:
        return None
    points = np.concatenate(corners).astype(np.float64)
    return points.min(axis=0), points.max(axis=0)


def size_of(box: Box, wanted: Cell = (0, 0, 0)) -> Cell:
    """Return the number of cells along each axis; those that are not ``wanted`` are derived from the model.

    Raises
    ------
    ExportError
        The model reaches too far beyond its front or left side, or beyond the wanted size.
    """
    low, high = box
    over = high[:2].max()
    if over > MOST_OUTSIDE + 1e-4:
        template = (
            "The model reaches {:.2f} m beyond its origin, which is the front corner at the left of a viewer who faces "
            "the entrance (x = 0, y = 0); put an empty #Origin at this corner of the model: x = {:.2f}, y = {:.2f}"
        )
        raise ExportError(template, over, high[0], high[1])
    outside = np.clip(high[:2] + 0.05, _LEAST_OUTSIDE, MOST_OUTSIDE)
    derived = [math.ceil(value) for value in np.round([*(-low[:2] - outside), high[2] - _FLAT], 4)]
    size = [count or max(1, found) for count, found in zip(wanted, derived, strict=True)]
    reached = (*(-low[:2]), high[2])
    for axis, count, reach in zip("XYZ", size, reached, strict=True):
        if reach > count + MOST_OUTSIDE + 1e-4:
            template = "Size {} is {}, but the model reaches to {:.2f} m; enter at least {}, or 0"
            raise ExportError(template, axis, count, reach, math.ceil(reach - MOST_OUTSIDE))
    if max(size) > _MOST_SIDE:
        raise ExportError("The building has {} x {} x {} cells; each side can have {}", *size, _MOST_SIDE)
    return size[0], size[1], size[2]


def empty_rows(box: Box, size: Cell) -> list[str]:
    """Return the axes along which a row of cells at a side has no model."""
    low, high = box
    gaps = [max(size[0] + low[0], -high[0]), max(size[1] + low[1], -high[1]), size[2] - high[2]]
    return [axis for axis, gap in zip("XYZ", gaps, strict=True) if gap > 1.05]


def entrance_at(name: str, point: Point, size: Cell) -> Cell:
    """Return the cell before the door for an empty at the door, or in front of it.

    Raises
    ------
    ExportError
        The empty is not at the front.
    """
    x, z = math.floor(round(-point[0], 4)), math.floor(round(point[2] + 0.3, 4))
    if not (-0.5 - 1e-4 <= point[1] <= 1 + 1e-4 and 0 <= x < size[0] and 0 <= z < min(2, size[2])):
        template = (
            "'{}' is at {:.2f}, {:.2f}, {:.2f} of the building; put it at the front: x from {} to 0, y from -0.5 to 1, "
            "at the height of the floor (0 or 1)"
        )
        raise ExportError(template, name, *point, -size[0])
    return x, -1, z


def cell_blocks(size: Cell, *, is_stackable: bool) -> list[dict[str, Any]]:
    """Return the cells of a full building, by layers, rows and columns."""
    layers = [
        {
            "MatterBelow": "Any" if layer else "GroundOrStackable",
            "Occupations": "All" if layer else _LOWEST,
            "Stackable": "BlockObject" if is_stackable and layer == size[2] - 1 else "None",
            "OccupyAllBelow": False,
            "Underground": False,
        }
        for layer in range(size[2])
    ]
    return [dict(layer) for layer in layers for _ in range(size[0] * size[1])]


def xyz(x: float, y: float, z: float) -> dict[str, float]:
    """Return a vector of the file; integers stay integers."""
    values = (value if isinstance(value, int) else round(value, 5) + 0.0 for value in (x, y, z))
    return dict(zip("XYZ", values, strict=True))


def box_collider(box: Box) -> dict[str, Any]:
    """Return a box of the file."""
    low, high = box
    center, side = (low + high) / 2, np.maximum(high - low, _FLAT)
    return {
        "Center": xyz(-center[0].item(), center[2].item(), -center[1].item()),
        "Size": xyz(side[0].item(), side[2].item(), side[1].item()),
    }


def geometry(shape: Shape, *, is_stackable: bool) -> dict[tuple[str, ...], Any]:
    """Return all values of the blueprint that the scene decides, by their paths."""
    x, _y, z = cell = shape.entrance or (0, 0, 0)
    found: dict[tuple[str, ...], Any] = {
        ("BlockObjectSpec", "Size"): xyz(*shape.size),
        ("BlockObjectSpec", "Blocks"): cell_blocks(shape.size, is_stackable=is_stackable),
        ("BlockObjectSpec", "Entrance"): {"HasEntrance": shape.entrance is not None, "Coordinates": xyz(*cell)},
    }
    if shape.entrance is not None:
        found["BuildingAccessibleSpec", "LocalAccess"] = xyz(*(shape.access or (x + 0.5, float(z), 0.2)))
    boxes = ("CollidersSpec", "BoxColliders")
    found["Children", "#Finished", *boxes] = [box_collider(box) for box in shape.colliders]
    for number, stage in enumerate(shape.stages):
        path = ("Children", "#Unfinished", "Children", f"ConstructionStage{number}", *boxes)
        found[path] = [box_collider(box) for box in stage]
    return found


def base_child(size: Cell, known: Container[str]) -> dict[str, Any]:
    """Return the construction base of a size as a child, turned if the game has only the other one; or no child."""
    for x, y in ((size[0], size[1]), (size[1], size[0])):
        name = f"ConstructionBase{x}x{y}"
        if name in known:
            child: dict[str, Any] = {"BlueprintPath": f"ConstructionBases/{name}/{name}.blueprint"}
            if (x, y) != size[:2]:  # a quarter turn about Y leads from x, z to z, -x
                transform = {
                    "Position": xyz(0.0, 0.0, float(size[1])),
                    "Rotation": xyz(0.0, 90.0, 0.0),
                    "Scale": xyz(1.0, 1.0, 1.0),
                }
                child["Modification"] = {"TransformSpec": transform}
            return {f"{name}#nested": child}
    return {}
