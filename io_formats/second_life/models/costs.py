"""The cost of an object in world (formats page, section 11), from the compressed sizes of its levels of detail.

Names of levels are those of ``options.LEVELS``; sizes are in bytes, lengths in metres.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from ..options import LEVELS

_HEAD = 384
"""Bytes subtracted from the size of a level before the rest is converted to a number of triangles."""
_TRIANGLE = 16
_LEAST = 16
_REGION_AREA = 102_944.0
_FARTHEST = 512.0
_DISTANCES = (0.24, 0.06, 0.03)
"""The radius of an object divided by these is the distance up to which each level except the lowest is shown."""
_BUDGET_TRIANGLES, _BUDGET_WEIGHT = 250_000, 15_000

_TRIANGLE_WEIGHT = _BUDGET_WEIGHT / _BUDGET_TRIANGLES

_SEPARATE_TRIANGLE, _ITS_WEIGHTS = 32, 10
"""Compressed bytes of an added triangle with three vertices that share normal and UV, and of the weights that they
share: means of triangles added to real assets."""

COMPLEXITY_FACTORS = {"alpha": 4.0, "rigged": 1.2}
"""Factors of the complexity for properties of a mesh; each is applied once if any face has the property."""
_COMPLEXITY_TRIANGLE, _COMPLEXITY_LEAST = 5.0, 4

ANIMESH_BASE = 15.0
"""Base download weight of an animated object, added once to that of its parts."""
_ANIMESH_THOUSAND = 1.5
_ANIMESH_ALLOWED = 64
_PRIM = 0.5
_HULL_POINT = 0.04


def level_triangles(sizes: Mapping[str, int]) -> tuple[float, ...]:
    """Return the triangle count charged for each level, the finest first; a missing level counts as the next finer one.

    If the finest level is missing, the next coarser one is used. If no level exists, the minimum is charged.
    """
    present = [sizes[level] for level in LEVELS if sizes.get(level, 0) > 0]
    size = present[0] if present else 0
    found = []
    for level in LEVELS:
        size = sizes.get(level, 0) if sizes.get(level, 0) > 0 else size
        found.append(max(size - _HEAD, _LEAST) / _TRIANGLE)
    return tuple(found)


def weighted_triangles(sizes: Mapping[str, int], size_m: Sequence[float]) -> tuple[float, ...]:
    """Return what each level contributes to the charged triangles, by the area from which it is seen (section 11.1).

    Download weight and complexity are proportional to the sum.

    Parameters
    ----------
    sizes:
        Compressed size of the block of each level, in bytes.
    size_m:
        Length of the object along its three axes.
    """
    shares = level_shares(size_m)
    return tuple(share * count for share, count in zip(shares, level_triangles(sizes), strict=True))


def level_shares(size_m: Sequence[float]) -> tuple[float, ...]:
    """Return the share of the region from which each level of an object of this size in metres is seen."""
    radius = math.sqrt(sum(float(length) ** 2 for length in size_m)) / 2
    high, medium, low = (min(math.pi * min(radius / share, _FARTHEST) ** 2, _REGION_AREA) for share in _DISTANCES)
    # Each level is shown in a ring that starts where the next finer level ends.
    rings = (high, medium - high, low - medium, _REGION_AREA - low)
    areas = [min(max(ring, 1.0), _REGION_AREA) for ring in rings]
    return tuple(area / sum(areas) for area in areas)


def added_weight(triangles: Sequence[int], size_m: Sequence[float], *, is_rigged: bool) -> float:
    """Estimate the download weight of separate triangles that are added to each level.

    A level whose size stays below 384 bytes adds none.
    """
    size = _SEPARATE_TRIANGLE + (_ITS_WEIGHTS if is_rigged else 0)
    added = sum(share * count for share, count in zip(level_shares(size_m), triangles, strict=True))
    return added * size / _TRIANGLE * _TRIANGLE_WEIGHT


def download_weight(sizes: Mapping[str, int], size_m: Sequence[float]) -> float:
    """Return the download ("streaming") weight of one object, at least 0.06; see :func:`weighted_triangles`."""
    return sum(weighted_triangles(sizes, size_m)) * _TRIANGLE_WEIGHT


def complexity(triangles: float, traits: Iterable[str] = ()) -> int:
    """Return the complexity ("ARC") of one worn object without its textures (section 11.4b).

    Parameters
    ----------
    triangles:
        The sum of :func:`weighted_triangles`; the viewer truncates it.
    traits:
        Keys of :data:`COMPLEXITY_FACTORS` that apply to the object.
    """
    points = _COMPLEXITY_TRIANGLE * (int(triangles) or _COMPLEXITY_LEAST)
    for trait in traits:
        points *= COMPLEXITY_FACTORS[trait]
    return int(points)


def animesh_level_triangles(sizes: Mapping[str, int]) -> tuple[float, ...]:
    """Return the triangles charged for each level of a rigged part of an animated object (section 11.2).

    Coarser levels are free if each has at most half of the triangles of the level before it.
    """
    high, *coarser = level_triangles(sizes)
    charged, allowed = [high], high
    for count in coarser:
        allowed = min(max(allowed / 2, _ANIMESH_ALLOWED), count)
        charged.append(count - allowed)
    return tuple(charged)


def animesh_triangle_weight(triangles: float) -> float:
    """Return the weight that a rigged part adds to an animated object, in place of its download weight."""
    return _ANIMESH_THOUSAND * triangles / 1000


def server_weight(prims: int) -> float:
    """Return the server weight of a linkset of this number of objects without scripts (section 11.3)."""
    return _PRIM * prims


def estimated_physics_weight(hull_points: int) -> float:
    """Estimate the physics weight of a convex hull (section 11.4). The exact rule is not published."""
    return _HULL_POINT * (hull_points + 1)


def land_impact(download: float, physics: float, server: float) -> int:
    """Return the land impact of a linkset: the largest of its weights, to the nearest integer, at least 1."""
    return max(math.floor(max(download, physics, server) + 0.5), 1)
