"""Places for the items of an inventory, which have none: a row along X for each folder, the rows along Y."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...geometry.transforms import rotation_matrices
from .document import Group, Linkset, Part

_GAP = 0.5
"""Metres between two items and between two rows."""

Box = npt.NDArray[np.float64]


def row_origins(items: Sequence[tuple[Group, Sequence[Linkset]]]) -> list[tuple[float, float, float]]:
    """Return the origin of each item, so that its bounding box is beside those of the others."""
    rows: dict[int, list[int]] = {}
    for index, (group, _) in enumerate(items):
        rows.setdefault(group.parent, []).append(index)
    found = [(0.0, 0.0, 0.0)] * len(items)
    y = 0.0
    for row in rows.values():
        boxes = {index: _box(items[index][1]) for index in row}
        x, back = 0.0, min(box[0, 1] for box in boxes.values())
        for index, box in boxes.items():
            found[index] = (x - float(box[0, 0]), y - float(back), 0.0)
            x += float(box[1, 0] - box[0, 0]) + _GAP
        y += float(max(box[1, 1] for box in boxes.values()) - back) + _GAP
    return found


def _box(linksets: Sequence[Linkset]) -> Box:
    """Return the lower and the upper corner of the box around linksets, (2, 3)."""
    boxes = []
    for linkset in linksets:
        root = linkset.parts[0]
        turn = _matrix(root)
        for number, part in enumerate(linkset.parts):
            centre = np.array(root.position) + (turn @ part.position if number else 0.0)
            half = np.abs((turn @ _matrix(part) if number else turn) * part.size).sum(axis=1) / 2
            boxes.append((centre - half, centre + half))
    lower, upper = np.array(boxes).swapaxes(0, 1)
    return np.stack((lower.min(axis=0), upper.max(axis=0)))


def _matrix(part: Part) -> Box:
    matrix: Box = rotation_matrices(np.array([part.rotation]))[0]
    return matrix
