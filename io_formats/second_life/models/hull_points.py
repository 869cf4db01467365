"""Reduce a convex hull to few points: the outermost ones in many directions (formats page, section 5.1).

All of them are corners of the exact hull, so the reduced hull is inside it and touches it in each direction used.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray

MOST_HULLS = 256
"""Most hulls of a mesh."""
MOST_POINTS = 256
"""Most points of one hull: their number is stored in a byte."""
BASE_POINTS = 64
"""Most points of generated base hulls; real files have at most 48."""


def outermost_points(points: FloatArray, most: int = MOST_POINTS) -> FloatArray:
    """Return at most ``most`` unique points of (n, 3), in their original order.

    All unique points are returned if there are at most ``most`` and ``most`` is the limit of a hull. Otherwise the
    result is the outermost points along the axes and in evenly distributed directions.
    """
    different, first = np.unique(points + np.float32(0), axis=0, return_index=True)
    if len(different) <= 4 or (len(different) <= most == MOST_POINTS):
        all_of_them: FloatArray = points[np.sort(first)]
        return all_of_them
    least, most_of = different.min(axis=0), different.max(axis=0)
    extent = most_of - least
    # Directions are distributed as if the box were a cube, so that a thin plate gets as many points around its edge as
    # a ball.
    unit = (different - (least + most_of) / 2) / np.where(extent > 0, extent, 1)
    reached = (unit @ _directions(most).T).argmax(axis=0)
    chosen: FloatArray = points[np.sort(first[np.unique(reached)])]
    return chosen


@functools.cache
def _directions(count: int) -> npt.NDArray[np.float32]:
    """Return unit vectors (count, 3): both directions of each axis, the corners of a cube, then points of a spiral."""
    axes = np.concatenate((np.identity(3), -np.identity(3)))
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / np.sqrt(3)
    rest = np.arange(max(count - 14, 0)) + 0.5
    height = 1 - 2 * rest / max(len(rest), 1)
    turn = np.pi * (1 + 5**0.5) * rest
    around = np.sqrt(1 - height**2)
    spiral = np.stack((around * np.cos(turn), around * np.sin(turn), height), axis=1)
    return np.concatenate((axes, corners, spiral))[:count].astype(np.float32)
