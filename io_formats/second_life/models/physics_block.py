"""The convex physics shape <-> arrays: hulls and the base hull (formats page, section 5.1).

All of them are corners of the exact hull, so the reduced hull is inside it and touches it in each direction used.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.messages import Report
from ...core.scene import FloatArray
from .llsd import as_bytes, sorted_map
from .llsd_arrays import Integers, NonFiniteRangeError, Reals, domain_map, domain_of, integer_bytes, integer_rows

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


_MOST_HULLS_READ = 1024
_UNIT = np.array(((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)))


@dataclass
class Hulls:
    """Points of convex hulls, still quantised, all over one range."""

    hulls: list[Integers] = field(default_factory=list)
    """(k, 3) each, k from 1 to 256."""
    base: Integers | None = None
    """(k, 3) points of the base hull, which encloses the whole model."""
    domain: Reals = field(default_factory=_UNIT.copy)
    """(2, 3): minimum and maximum, in single precision."""


def hulls_of(value: Any, report: Report | None = None) -> Hulls:
    """Decode a physics block; damaged parts are left out and reported in ``report``, whose item is the shape.

    None, which further parts of split models have as block, gives no hulls.
    """
    report = report or Report()
    found = Hulls()
    if value is None:
        return found
    if not isinstance(value, dict):
        report.loss("hulls-left-out", "the data is damaged, they are left out")
        return found
    try:
        domain = domain_of(value, 3)
    except NonFiniteRangeError:
        report.loss("hulls-left-out", "the range of their points is NaN or infinite, they are left out")
        return found
    found.domain = _UNIT.copy() if domain is None else domain
    base = integer_rows(value.get("BoundingVerts"), 3)
    found.base = base if base is not None and len(base) else None
    counts = np.frombuffer(as_bytes(value.get("HullList")) or b"", np.uint8).astype(np.intp)
    counts[counts == 0] = MOST_POINTS  # 256 is stored as 0, since a count is one byte
    points = integer_rows(value.get("Positions") or b"", 3)
    points = np.empty((0, 3), np.uint16) if points is None else points
    ends = np.cumsum(counts)
    whole = int(np.searchsorted(ends, len(points), side="right"))
    if whole < len(counts):
        template = "points are missing; {:,} of {:,} hulls are left out"
        report.loss("hulls-without-points", template, len(counts) - whole, len(counts))
    elif len(points) > (ends[-1] if len(ends) else 0):
        report.loss("surplus-values", "there are more points than the hulls need; the surplus is ignored")
    if whole > _MOST_HULLS_READ:
        report.loss("too-many-hulls", "{:,} of {:,} are left out", whole - _MOST_HULLS_READ, whole)
        whole = _MOST_HULLS_READ
    found.hulls = np.split(points[: ends[whole - 1]], ends[: whole - 1]) if whole else []
    return found


def block_of(hulls: Hulls) -> dict[str, Any]:
    """Encode hulls: keys sorted, the range in single precision.

    The caller ensures that there are at most 256 hulls of 1 to 256 points each.
    """
    values: dict[str, Any] = domain_map(hulls.domain)
    if hulls.base is not None:
        values["BoundingVerts"] = integer_bytes(hulls.base)
    if hulls.hulls:
        values["HullList"] = bytes(len(points) % MOST_POINTS for points in hulls.hulls)
        values["Positions"] = b"".join(integer_bytes(points) for points in hulls.hulls)
    return sorted_map(values)
