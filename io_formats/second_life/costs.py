"""What an object costs in world (formats page, section 11), from the compressed sizes of its levels of detail.

Names of levels are those of :data:`~.models.LEVELS`; sizes are in bytes, lengths in metres.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from .models import LEVELS

_HEAD = 384
"""Bytes of a block that are not counted as triangles."""
_TRIANGLE = 16
_LEAST = 16
_REGION_AREA = 102_944.0
_FARTHEST = 512.0
_DISTANCES = (0.24, 0.06, 0.03)
"""An object's radius divided by these is how far each level but the lowest is seen."""
_BUDGET_TRIANGLES, _BUDGET_WEIGHT = 250_000, 15_000

ANIMESH_BASE = 15.0
"""Download weight of an animated object as such, once, beside that of its parts."""
_ANIMESH_THOUSAND = 1.5
_ANIMESH_ALLOWED = 64
_PRIM, _SCRIPT = 0.5, 0.25
_HULL_POINT = 0.04


def level_triangles(sizes: Mapping[str, int]) -> tuple[float, float, float, float]:
    """Return how many triangles each level counts for, the finest first; a missing one counts as the next finer.

    Where the finest is missing, the next coarser one stands for it. No level at all counts for the least.
    """
    present = [sizes[level] for level in LEVELS if sizes.get(level, 0) > 0]
    size = present[0] if present else 0
    found = []
    for level in LEVELS:
        size = sizes.get(level, 0) if sizes.get(level, 0) > 0 else size
        found.append(max(size - _HEAD, _LEAST) / _TRIANGLE)
    high, medium, low, lowest = found
    return high, medium, low, lowest


def download_weight(sizes: Mapping[str, int], size_m: Sequence[float]) -> float:
    """Return the download ("streaming") weight of one object (section 11.1); at least 0.06.

    Parameters
    ----------
    sizes:
        Compressed bytes of the block of each level.
    size_m:
        The object's length along its three axes.
    """
    radius = math.sqrt(sum(float(length) ** 2 for length in size_m)) / 2
    high, medium, low = (min(math.pi * min(radius / share, _FARTHEST) ** 2, _REGION_AREA) for share in _DISTANCES)
    # Each level is seen in a ring, from where the next finer one ends.
    rings = (high, medium - high, low - medium, _REGION_AREA - low)
    areas = [min(max(ring, 1.0), _REGION_AREA) for ring in rings]
    counted = level_triangles(sizes)
    mean = sum(area * count for area, count in zip(areas, counted, strict=True)) / sum(areas)
    return mean / _BUDGET_TRIANGLES * _BUDGET_WEIGHT


def animesh_triangles(sizes: Mapping[str, int]) -> float:
    """Return the triangles that a rigged part of an animated object is charged for (section 11.2).

    Coarser levels are free as long as each has at most half of the triangles of the level before it.
    """
    high, *coarser = level_triangles(sizes)
    charged = allowed = high
    for count in coarser:
        allowed = min(max(allowed / 2, _ANIMESH_ALLOWED), count)
        charged += count - allowed
    return charged


def animesh_triangle_weight(triangles: float) -> float:
    """Return what a rigged part of an animated object weighs in place of its download weight."""
    return _ANIMESH_THOUSAND * triangles / 1000


def animesh_weight(triangles: Iterable[float], others: Iterable[float] = ()) -> float:
    """Return the download weight of a whole animated object.

    ``triangles`` are those that each rigged part is charged for, ``others`` the download weights of parts that are
    not rigged.
    """
    return ANIMESH_BASE + sum(map(animesh_triangle_weight, triangles)) + sum(others)


def server_weight(prims: int, scripts: int = 0) -> float:
    """Return the server weight of a linkset (section 11.3): of so many objects, with so many scripts in them."""
    return min(_PRIM * prims + _SCRIPT * max(scripts - 1, 0), float(prims))


def estimated_physics_weight(base_hull_points: int) -> float:
    """Return about what an object's physics weighs as a convex hull (section 11.4): the simulator's rule is secret."""
    return _HULL_POINT * (base_hull_points + 1)


def land_impact(download: float, physics: float, server: float) -> int:
    """Return the land impact of a linkset: the greatest of its weights, to the nearest integer, at least 1."""
    return max(math.floor(max(download, physics, server) + 0.5), 1)
