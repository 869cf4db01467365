"""Bounds: a box and a sphere in ten floats (section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.scene import FloatArray
from ..geometry import transforms

_EMPTY = 1e9


def empty_bounds() -> FloatArray:
    """Return empty bounds, (10,) float32."""
    return np.array([_EMPTY] * 3 + [-_EMPTY] * 3 + [0, 0, 0, -1], np.float32)


def of_points(points: FloatArray) -> FloatArray:
    """Return the bounds of points, (10,) float32: box minimum, box maximum, box centre, radius of a sphere around it.

    ``points`` (P, 3) float32.
    """
    if not len(points):
        return empty_bounds()
    bounds = np.empty(10, np.float32)
    bounds[:6] = transforms.bounds(points).reshape(-1)
    bounds[6:9] = (bounds[:3] + bounds[3:6]) * np.float32(0.5)
    squares = np.zeros(len(points), np.float32)
    for axis in range(3):
        offset = points[:, axis] - bounds[6 + axis]
        offset *= offset
        squares += offset
    bounds[9] = np.sqrt(squares.max())
    return bounds


def union_of_bounds(parts: Sequence[FloatArray]) -> FloatArray:
    """Return bounds that enclose all ``parts``: the common box and a sphere around its centre."""
    filled = [part for part in parts if part[9] >= 0]
    if not filled:
        return empty_bounds()
    if len(filled) == 1:
        return filled[0].copy()
    table = np.stack(filled)
    bounds = np.empty(10, np.float32)
    bounds[:3], bounds[3:6] = table[:, :3].min(0), table[:, 3:6].max(0)
    bounds[6:9] = (bounds[:3] + bounds[3:6]) * np.float32(0.5)
    offsets = table[:, 6:9].astype(np.float64) - bounds[6:9]
    reach = float((np.sqrt((offsets**2).sum(1)) + table[:, 9]).max())
    corner = float(np.linalg.norm((bounds[3:6] - bounds[:3]).astype(np.float64))) / 2
    bounds[9] = min(reach, corner)
    return bounds
