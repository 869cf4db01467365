"""Extend lower levels to the box of the highest, to which the viewer scales each file (formats page, section 6)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray
from ...geometry.normals import unit
from ...geometry.transforms import Matrix
from ...geometry.vertices import weld_map
from ..asset.rules import degenerate_triangles
from ..models.unit_cube import FLAT
from .document import Geometry

NEAR = 0.01
"""Largest share of the box's axis by which vertices are moved to a side of the box; the viewer's scaling would move
them as far."""
_LEGS = (0.005, 0.01, 0.02)
"""Leg lengths of the triangles that are added to the medium, low and lowest level, as shares of the box. They are about
2, 1 and 1 pixels long at the smallest distance from which the level is shown (section 11.1)."""
_LEAST_AREA = 2e-5
"""Smallest product of two legs and the sine of their angle at which the uploader does not consider a triangle
degenerate."""
_LEAST_SINE = 0.12
_APART = 1e-4
"""Smallest distance of added corners from other vertices, since the viewer looks up weights by position."""
_TRIES = 16
"""Number of vertices of the highest level that are tried as a corner for one added triangle."""
_CORNERS = 3


@dataclass(frozen=True)
class BoxTriangle:
    """A triangle that extends the box of a level to sides of the highest level's box."""

    symbol: str
    corner: IntArray
    """(k,): indices of position, normal and UV of the corner of the highest level whose normal, UV and weights the
    triangle gets."""
    positions: FloatArray
    """(3, 3) float32; the first row is the position of the corner."""


def box_of_triangles(geometry: Geometry) -> Matrix:
    """Return the bounds (2, 3) of the positions that triangles use, over all faces."""
    points = geometry.positions[_used(geometry)]
    return np.stack((points.min(axis=0), points.max(axis=0))).astype(np.float64)


def vertex_count(geometry: Geometry) -> int:
    """Return the number of vertices that the viewer stores, since it merges vertices of a face with equal values."""
    columns = (geometry.positions, geometry.normals, *([] if geometry.uvs is None else [geometry.uvs]))
    count = 0
    for face in geometry.faces:
        corner = np.full(len(geometry.normals), -1, np.intp)
        corner[face.corners[:, 1]] = np.arange(len(face.corners))
        vertices = face.corners[corner[corner >= 0]]
        count += len(weld_map([values[vertices[:, number]] for number, values in enumerate(columns)])[1])
    return count


def short_sides(box: Matrix, wanted: Matrix) -> Matrix:
    """Return by how much each side of a box is inside another box, as a share of the axis, (6,); lower sides first.

    It is 0 for both sides of an axis that is flat in the other box, since the viewer centres levels on it.
    """
    short: Matrix = np.concatenate((box[0] - wanted[0], wanted[1] - box[1])) / np.tile(_size(wanted), 2)
    short[np.tile(flat_axes(wanted), 2)] = 0.0
    return short


def flat_axes(box: Matrix) -> npt.NDArray[np.bool_]:
    """Return the axes without extent, (3,): the viewer gives them a size of 1 metre."""
    flat: npt.NDArray[np.bool_] = np.ptp(box, axis=0) < FLAT
    return flat


class HighestLevel:
    """The box of the highest level, and the C corners of its triangles that are at the sides of that box."""

    def __init__(self, geometry: Geometry) -> None:
        self.box = box_of_triangles(geometry)
        at_sides = np.concatenate((geometry.positions == self.box[0], geometry.positions == self.box[1]), axis=1)
        at_sides &= ~np.tile(flat_axes(self.box), 2)
        is_outermost: npt.NDArray[np.bool_] = np.logical_or.reduce(at_sides, axis=1)
        self.symbols = [face.symbol for face in geometry.faces]
        found = [np.flatnonzero(is_outermost[face.corners[:, 0]]) for face in geometry.faces]
        self.face = np.repeat(np.arange(len(found)), [len(corners) for corners in found])
        """(C,): index of the symbol of each corner."""
        self.corners = np.concatenate([face.corners[own] for face, own in zip(geometry.faces, found, strict=True)])
        self.at_sides = at_sides[self.corners[:, 0]]
        """(C, 6): whether each corner is at each side of the box, first the three lower sides, then the upper ones."""
        others = [
            face.corners[np.stack([own - own % 3 + (own + step) % 3 for step in (1, 2)], axis=1), 0]
            for face, own in zip(geometry.faces, found, strict=True)
        ]
        self.points = geometry.positions[self.corners[:, 0]]
        self.others = geometry.positions[np.concatenate(others)]
        """(C, 2, 3): positions of the other corners of the triangle of each corner."""

    def triangles(
        self, level: Geometry, number: int, *, missing: Collection[str], room: int | None
    ) -> list[BoxTriangle]:
        """Return triangles for the sides at which a level ends inside the box by more than ``NEAR``.

        Each triangle has one corner at an outermost vertex of the highest level; its other corners follow the edges of
        a triangle there. Vertices at several sides of the box, and triangles of missing materials, are preferred.

        Parameters
        ----------
        number:
            Number of the level, 1 to 3; of several levels with this geometry, that of the finest.
        missing:
            Symbols for which the level will get a triangle anyway.
        room:
            Number of further vertices that the level may get, or None for any number. Sides that would exceed it are
            left out.
        """
        search = _Search(self, level, _LEGS[number - 1])
        missing = set(missing)
        found: list[BoxTriangle] = []
        while search.needed.any():
            triangle = search.triangle(missing, is_full=room is not None and room < _CORNERS)
            if triangle is None:
                break
            if room is not None and triangle.symbol not in missing:
                room -= _CORNERS
            missing.discard(triangle.symbol)
            found.append(triangle)
        return found


def moved_to_box(geometry: Geometry, wanted: Matrix) -> tuple[Geometry, float]:
    """Move the outermost vertices to the sides of a box from which they are at most ``NEAR``.

    Returns
    -------
    The geometry, and the largest move as a share of an axis.
    """
    own = box_of_triangles(geometry)
    short = short_sides(own, wanted)
    near = (short > 0) & (short <= NEAR)
    positions, used = geometry.positions.copy(), _used(geometry)
    for side in np.flatnonzero(near).tolist():
        end, axis = divmod(side, 3)
        positions[used & (geometry.positions[:, axis] == own[end, axis]), axis] = wanted[end, axis]
    return replace(geometry, positions=positions), float(short[near].max(initial=0.0))


class _Search:
    """Search for positions of added triangles at corners of the highest level."""

    def __init__(self, highest: HighestLevel, level: Geometry, leg: float) -> None:
        self.highest, self.leg = highest, leg
        own, wanted = box_of_triangles(level), highest.box
        self.needed = short_sides(own, wanted) > NEAR
        """(6,): which sides of the box still need a triangle."""
        self.limits = np.where(flat_axes(wanted), own, wanted)
        """Box within which triangles are added: that of the highest level. Along axes where that is flat, it is the
        level's own, so that the level stays flat."""
        self.size = _size(np.stack((np.minimum(own[0], self.limits[0]), np.maximum(own[1], self.limits[1]))))
        """Lengths of the final box of the level, which includes parts outside the highest level's box."""
        self.at_sides = highest.at_sides.copy()
        self.vertices = level.positions / self.size
        """Positions of the level's vertices and of the triangles found so far, as shares of the box."""

    def triangle(self, missing: Collection[str], *, is_full: bool) -> BoxTriangle | None:
        """Return the triangle that serves the most needed sides, or None.

        With ``is_full``, only triangles of a missing symbol are considered, since the level may get no further
        vertices.
        """
        highest = self.highest
        is_missing = np.array([symbol in missing for symbol in highest.symbols])[highest.face]
        while True:
            served = (self.at_sides & self.needed).sum(axis=1) * (is_missing | (not is_full))
            most = int(served.max(initial=0))
            if not most:
                return None
            chosen = np.flatnonzero(served == most)
            ways, sine = self._ways(chosen)
            order = np.lexsort((-sine, ~is_missing[chosen]))[:_TRIES]
            for corner, way, width in zip(chosen[order].tolist(), ways[order], sine[order].tolist(), strict=True):
                positions = self._positions(corner, way, width)
                if positions is not None:
                    self.vertices = np.concatenate((self.vertices, positions / self.size))
                    self.needed &= ~highest.at_sides[corner]
                    return BoxTriangle(highest.symbols[highest.face[corner]], highest.corners[corner], positions)
            self.at_sides[chosen] = False

    def _ways(self, chosen: npt.NDArray[np.intp]) -> tuple[Matrix, Matrix]:
        """Return the directions of the legs of triangles in the unit cube, (n, 2, 3), and the sines of their angles.

        For thin triangles, the directions are the two longest axes of the box instead.
        """
        start, wanted = self.highest.points[chosen].astype(np.float64), self.highest.box
        others = self.highest.others[chosen]
        ways: Matrix = unit(((others - start[:, None]) / self.size).reshape(-1, 3)).reshape(-1, 2, 3).astype(np.float64)
        sine = np.linalg.norm(np.cross(ways[:, 0], ways[:, 1]), axis=1)
        thin = np.flatnonzero(~(sine >= _LEAST_SINE))
        inwards = np.where(start[thin] < wanted.mean(axis=0), 1.0, -1.0)
        for number, axis in enumerate(np.argsort(np.ptp(wanted, axis=0), kind="stable").tolist()[:0:-1]):
            ways[thin, number] = np.identity(3)[axis] * inwards[:, axis, None]
        return ways, sine

    def _positions(self, corner: int, ways: Matrix, sine: float) -> FloatArray | None:
        """Return the positions of a triangle (3, 3), or None if it is degenerate or touches another vertex."""
        leg = max(self.leg, float(np.sqrt(_LEAST_AREA / sine)) if sine >= _LEAST_SINE else 0.0)
        start = self.highest.points[corner]
        ends = start + leg * ways * self.size
        positions = np.clip(np.concatenate((start[None], ends)), *self.limits).astype(np.float32)
        shares = positions / self.size
        if degenerate_triangles(shares - shares[0], np.arange(3, dtype=np.int32))[0]:
            return None
        near = self.vertices[(np.abs(self.vertices - shares[0]) < 2 * leg).all(axis=1)]
        apart = np.abs(near - shares[:, None]).max(axis=2).min(initial=np.inf)
        return positions if apart > _APART else None


def _size(box: Matrix) -> Matrix:
    """Return the lengths of a box by which the viewer divides positions, (3,)."""
    return np.where(flat_axes(box), 1.0, np.ptp(box, axis=0))


def _used(geometry: Geometry) -> npt.NDArray[np.bool_]:
    """Return which positions triangles use, (P,)."""
    used = np.zeros(len(geometry.positions), bool)
    for face in geometry.faces:
        used[face.corners[:, 0]] = True
    return used
