"""Let levels of an object have the box of the highest: the viewer scales each file to it (formats page, section 6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray
from ...geometry.normals import unit
from ...geometry.transforms import Matrix
from ...geometry.vertices import weld_map
from ..models.unit_cube import FLAT
from ..rules.degenerates import degenerate_triangles
from .document import Geometry

NEAR = 0.01
"""Share of an axis of the box by which a side of a level may be moved: the viewer would move its vertices as far."""
_LEGS = (0.005, 0.01, 0.02)
"""Legs of triangles of the medium, low and lowest level as shares of the box: about 2, 1 and 1 pixels at the least
distance from which the level is shown (section 11.1)."""
_LEAST_AREA = 2e-5
"""Least product of two legs and the sine between them, so that the uploader's test does not find it degenerate."""
_LEAST_SINE = 0.12
_APART = 1e-4
"""Least distance of corners from other vertices, since the viewer looks up weights by position."""
_TRIES = 16
"""Number of vertices of the highest level that are tried for a triangle."""
_CORNERS = 3


@dataclass(frozen=True)
class BoxTriangle:
    """A triangle that holds sides of the box of a level."""

    symbol: str
    corner: IntArray
    """(k,): the corner of the highest level whose normal, UV and weights it has."""
    positions: FloatArray
    """(3, 3) float32; the first is that of the corner."""


def box_of_triangles(geometry: Geometry) -> Matrix:
    """Return the bounds (2, 3) of the positions that triangles use, over all faces."""
    points = geometry.positions[_used(geometry)]
    return np.stack((points.min(axis=0), points.max(axis=0))).astype(np.float64)


def vertex_count(geometry: Geometry) -> int:
    """Return the number of vertices in the viewer, which merges those of a face with equal values."""
    columns = (geometry.positions, geometry.normals, *([] if geometry.uvs is None else [geometry.uvs]))
    return sum(
        len(weld_map([values[face.corners[:, number]] for number, values in enumerate(columns)])[1])
        for face in geometry.faces
    )


def short_sides(box: Matrix, wanted: Matrix) -> Matrix:
    """Return by which share of its axis each side of a box is inside of another: (6,), the lower sides first.

    Axes without extent, which the viewer does not scale, count as 1 metre.
    """
    short: Matrix = np.concatenate((box[0] - wanted[0], wanted[1] - box[1])) / np.tile(_size(wanted), 2)
    return short


def box_triangles(
    level: Geometry, finest: Geometry, number: int, *, missing: Collection[str], room: int | None
) -> list[BoxTriangle]:
    """Return triangles for the sides at which a level ends inside the box of the highest by more than ``NEAR``.

    Each has a corner at an outermost vertex of the highest level, and the others along a triangle there. Vertices at
    several sides, and triangles of missing materials, come first.

    Parameters
    ----------
    number:
        1 to 3: the finest level for which the geometry is used.
    missing:
        Symbols of which the level gets a triangle in any case.
    room:
        Number of vertices that the level may get besides, or None for any number; sides without room are left out.
    """
    wanted = box_of_triangles(finest)
    needed = short_sides(box_of_triangles(level), wanted) > NEAR
    if not needed.any():
        return []
    search = _Search(level, finest, wanted, _LEGS[number - 1])
    missing = set(missing)
    found: list[BoxTriangle] = []
    while needed.any():
        triangle = search.triangle(needed, missing, is_full=room is not None and room < _CORNERS)
        if triangle is None:
            break
        if room is not None and triangle.symbol not in missing:
            room -= _CORNERS
        missing.discard(triangle.symbol)
        found.append(triangle)
        needed &= ~search.sides(triangle.positions[:1])[0]
    return found


def moved_to_box(geometry: Geometry, wanted: Matrix) -> tuple[Geometry, float]:
    """Move the outermost vertices to the sides of a box from which they are at most ``NEAR``.

    Returns
    -------
    The geometry, and the largest move as a share of an axis.
    """
    own = box_of_triangles(geometry)
    short = short_sides(own, wanted)
    near = (short > 0) & (short <= NEAR) & np.tile(np.ptp(wanted, axis=0) >= FLAT, 2)
    positions, used = geometry.positions.copy(), _used(geometry)
    for side in np.flatnonzero(near).tolist():
        end, axis = divmod(side, 3)
        positions[used & (geometry.positions[:, axis] == own[end, axis]), axis] = wanted[end, axis]
    return replace(geometry, positions=positions), float(short[near].max(initial=0.0))


class _Search:
    """The corners of the highest level, (C,), as places for triangles of a level."""

    def __init__(self, level: Geometry, finest: Geometry, wanted: Matrix, leg: float) -> None:
        self.wanted, self.leg = wanted, leg
        own = box_of_triangles(level)
        self.size = _size(np.stack((np.minimum(own[0], wanted[0]), np.maximum(own[1], wanted[1]))))
        """Lengths of the box that the level will have, also where it sticks out."""
        self.corners = np.concatenate([face.corners for face in finest.faces])
        self.symbols = np.repeat([face.symbol for face in finest.faces], [len(face.corners) for face in finest.faces])
        self.points = finest.positions[self.corners[:, 0]]
        self.at_sides = self.sides(self.points)
        self.vertices = level.positions / self.size
        """Positions of the level and of the triangles found, as shares of the box."""

    def sides(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return at which sides of the box points are, (n, 6)."""
        return np.concatenate((points == self.wanted[0], points == self.wanted[1]), axis=1)

    def triangle(self, needed: npt.NDArray[np.bool_], missing: Collection[str], *, is_full: bool) -> BoxTriangle | None:
        """Return the triangle for most of the needed sides, or None; ``is_full``: only one of a missing symbol."""
        served = (self.at_sides & needed).sum(axis=1)
        is_missing = np.isin(self.symbols, list(missing))
        chosen = np.flatnonzero((served > 0) & (is_missing | (not is_full)))
        ways, sine = self._ways(chosen)
        order = np.lexsort((-sine, ~is_missing[chosen], -served[chosen]))[:_TRIES]
        for corner, way, width in zip(chosen[order].tolist(), ways[order], sine[order].tolist(), strict=True):
            positions = self._positions(corner, way, width)
            if positions is not None:
                self.vertices = np.concatenate((self.vertices, positions / self.size))
                return BoxTriangle(str(self.symbols[corner]), self.corners[corner], positions)
        return None

    def _ways(self, chosen: npt.NDArray[np.intp]) -> tuple[Matrix, Matrix]:
        """Return directions in the unit cube to the other corners of triangles, (n, 2, 3), and the sines between them.

        In thin triangles, they are directions along the two longest axes of the box instead.
        """
        triangle, corner = np.divmod(chosen, 3)
        start = self.points[chosen].astype(np.float64)
        others = self.points[np.stack((triangle * 3 + (corner + 1) % 3, triangle * 3 + (corner + 2) % 3), axis=1)]
        ways: Matrix = unit(((others - start[:, None]) / self.size).reshape(-1, 3)).reshape(-1, 2, 3).astype(np.float64)
        sine = np.linalg.norm(np.cross(ways[:, 0], ways[:, 1]), axis=1)
        thin = np.flatnonzero(~(sine >= _LEAST_SINE))
        inwards = np.where(start[thin] < self.wanted.mean(axis=0), 1.0, -1.0)
        for number, axis in enumerate(np.argsort(np.ptp(self.wanted, axis=0), kind="stable").tolist()[:0:-1]):
            ways[thin, number] = np.identity(3)[axis] * inwards[:, axis, None]
        return ways, sine

    def _positions(self, corner: int, ways: Matrix, sine: float) -> FloatArray | None:
        """Return the positions of a triangle (3, 3), or None if it is degenerate or touches another vertex."""
        leg = max(self.leg, float(np.sqrt(_LEAST_AREA / sine)) if sine >= _LEAST_SINE else 0.0)
        start = self.points[corner]
        ends = np.clip(start + leg * ways * self.size, *self.wanted).astype(np.float32)
        positions = np.concatenate((start[None], ends))
        shares = positions / self.size
        if degenerate_triangles(shares - shares[0], np.arange(3, dtype=np.int32))[0]:
            return None
        apart = min(float(np.abs(self.vertices - share).max(axis=1).min()) for share in shares)
        return positions if apart > _APART else None


def _size(box: Matrix) -> Matrix:
    """Return the lengths of a box by which the viewer divides positions, (3,)."""
    extent = np.ptp(box, axis=0)
    return np.where(extent < FLAT, 1.0, extent)


def _used(geometry: Geometry) -> npt.NDArray[np.bool_]:
    """Return which positions triangles use, (P,)."""
    used = np.zeros(len(geometry.positions), bool)
    for face in geometry.faces:
        used[face.corners[:, 0]] = True
    return used
