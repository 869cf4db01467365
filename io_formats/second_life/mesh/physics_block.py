"""The convex physics shape <-> arrays: hulls and the base hull (formats page, section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..domains import NonFiniteRangeError, domain_map, domain_of
from ..llsd_binary import as_bytes, sorted_map

Integers = npt.NDArray[np.uint16]
Reals = npt.NDArray[np.float64]

MOST_HULLS = 256
MOST_POINTS = 256
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


def hulls_of(value: Any, warnings: list[str] | None = None) -> Hulls:
    """Decode a physics block, leaving out damaged parts, which ``warnings`` reports.

    Returns no hulls for None, which further parts of split models have here.
    """
    said = [] if warnings is None else warnings
    found = Hulls()
    if value is None:
        return found
    if not isinstance(value, dict):
        said.append("Physics hulls: the data is damaged, they are left out")
        return found
    try:
        domain = domain_of(value, 3)
    except NonFiniteRangeError:
        said.append("Physics hulls: the range of their points is NaN or infinite, they are left out")
        return found
    found.domain = _UNIT.copy() if domain is None else domain
    base = _points(value.get("BoundingVerts"))
    found.base = base if len(base) else None
    counts = np.frombuffer(as_bytes(value.get("HullList")) or b"", np.uint8).astype(np.intp)
    counts[counts == 0] = MOST_POINTS  # 256 is stored as 0, since a count is one byte
    points = _points(value.get("Positions"))
    ends = np.cumsum(counts)
    whole = int(np.searchsorted(ends, len(points), side="right"))
    if whole < len(counts):
        said.append(f"Physics hulls: points are missing; {len(counts) - whole:,} of {len(counts):,} hulls are left out")
    elif len(points) > (ends[-1] if len(ends) else 0):
        said.append("Physics hulls: there are more points than the hulls need; the surplus is ignored")
    if whole > _MOST_HULLS_READ:
        said.append(f"Physics hulls: {whole - _MOST_HULLS_READ:,} of {whole:,} are left out")
        whole = _MOST_HULLS_READ
    found.hulls = np.split(points[: ends[whole - 1]], ends[: whole - 1]) if whole else []
    return found


def _points(value: Any) -> Integers:
    data = as_bytes(value) or b""
    return np.frombuffer(data, "<u2", len(data) // 6 * 3).reshape(-1, 3)


def block_of(hulls: Hulls) -> dict[str, Any]:
    """Encode hulls: keys sorted, the range in single precision.

    The caller ensures that there are at most 256 hulls of 1 to 256 points each.
    """
    values: dict[str, Any] = domain_map(hulls.domain)
    if hulls.base is not None:
        values["BoundingVerts"] = _little(hulls.base)
    if hulls.hulls:
        values["HullList"] = bytes(len(points) % MOST_POINTS for points in hulls.hulls)
        values["Positions"] = b"".join(_little(points) for points in hulls.hulls)
    return sorted_map(values)


def _little(points: Integers) -> bytes:
    return np.ascontiguousarray(points, "<u2").tobytes()
