"""Give all levels of an object the same faces, and the same box (formats page, sections 6 and 10).

The viewer sorts the faces of each file by material and matches them by their order; it adds none for a material that a
level lacks. It scales each file to the box of the highest level.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.scene import FloatArray, IntArray, Scene
from ...geometry.normals import unit
from ...geometry.transforms import Matrix
from ...geometry.vertices import weld_map
from ..asset.rules import degenerate_triangles
from ..models.faces import MOST_FACES
from ..models.unit_cube import FLAT
from . import document
from .document import Geometry, Instance, Materials, Skin, Triangles

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


_SHARE = 0.02
"""Size of an added triangle as a share of its level's box: too small to be visible, and large enough not to be
degenerate."""
_INSET = 0.0053
"""Smallest distance of an added triangle from the sides of the box, as a share of the box. Many vertices are on the
sides and corners of boxes, and a corner of the triangle must not coincide with a vertex, since the viewer looks up
weights by position."""


def sort_key(symbol: str) -> bytes:
    """Return the key by which the viewer sorts faces: it ignores the case of ASCII letters."""
    return symbol.encode("utf-8").upper()


def face_numbers(symbols: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the part of a mesh, and the number of the face in it, for each material.

    The viewer sorts faces by the names of their materials, ignoring case, and splits them into parts of 8.
    """
    ordered = sorted(dict.fromkeys(symbols), key=sort_key)
    return {symbol: divmod(number, MOST_FACES) for number, symbol in enumerate(ordered)}


def faces_of_slots(slots: Sequence[str], model: str) -> list[tuple[str, int, int]]:
    """Return the material, the part and the number of each face, in the viewer's order.

    Parameters
    ----------
    slots:
        The materials of all slots with triangles; may be empty names.
    model:
        Name of the model, for slots without a material.
    """
    symbols = Materials(Scene(""), is_copied=False).slot_symbols(
        slots, range(len(slots)), document.model_name(model, set()), {}
    )
    name_of = dict(zip(reversed(symbols), reversed(slots), strict=True))
    return [(name_of[symbol], part, number) for symbol, (part, number) in face_numbers(symbols).items()]


@dataclass
class Levels:
    """The levels of one object, and the changes that extend them to the same box."""

    instances: list[Instance]
    """The levels, finest first; as many as were given."""
    box_triangles: list[int]
    """Number of triangles in each level that extend its box; one of them may also be the triangle of a missing
    material."""
    moved: float = 0.0
    """Largest distance by which vertices were moved to a side of the box, as a share of its axis."""


def with_all_faces(levels: Sequence[Instance], *, keeps_size: bool) -> Levels:
    """Return the levels of one object, the finest first, each with a face of every symbol.

    A level gets a small triangle for each symbol that it lacks: inside its box, near the largest triangle of that
    symbol in the finest level that has one, and with the weights and UVs of that triangle.

    Parameters
    ----------
    keeps_size:
        Whether each level is extended to the bounding box of the finest level: by added triangles, which may have the
        missing symbols, and by moving vertices near the sides of the box. A level gets no such triangles if it would
        then have more vertices than the next finer level.
    """
    sources: dict[str, Instance] = {}
    for level in levels:
        for face in level.geometry.faces:
            sources.setdefault(face.symbol, level)
    filled = Levels([], [])
    highest: HighestLevel | None = None
    done: dict[int, int] = {}
    for number, level in enumerate(levels):
        first = done.setdefault(id(level), number)
        if first < number:
            filled.instances.append(filled.instances[first])
            filled.box_triangles.append(filled.box_triangles[first])
            continue
        found, added = level, 0
        if number and keeps_size:
            highest = highest or HighestLevel(levels[0].geometry)
            finer = [levels[0], filled.instances[-1]]
            found, added, moved = _with_box(level, highest, finer, number, sources)
            filled.moved = max(filled.moved, moved)
        own = {face.symbol for face in found.geometry.faces}
        for symbol, source in sources.items():
            if symbol not in own:
                corners = _largest_triangle(source.geometry, symbol)
                centre = source.geometry.positions[corners[:, 0]].astype(np.float64).mean(axis=0)
                positions, normal = _small_triangle(found.geometry, centre)
                found = _with_triangle(found, Triangles(symbol, corners), source, positions, normal)
        if found is not level:
            found = replace(found, geometry=_in_order(found.geometry, sources))
        filled.instances.append(found)
        filled.box_triangles.append(added)
    return filled


def _with_box(
    level: Instance, highest: HighestLevel, finer: Sequence[Instance], number: int, symbols: Iterable[str]
) -> tuple[Instance, int, float]:
    """Return a level with the box of the highest, the number of triangles added, and the largest move of a vertex.

    Parameters
    ----------
    finer:
        The highest level and, as it will be written, the next finer level.
    number:
        Number of the level; 0 is the highest.
    symbols:
        The symbols that each level will have.
    """
    geometry, added = level.geometry, 0
    short = short_sides(box_of_triangles(geometry), highest.box)
    if (short > NEAR).any():
        missing = set(symbols) - {face.symbol for face in geometry.faces}
        count, most = vertex_count(geometry), vertex_count(finer[1].geometry)
        room = most - count - 3 * len(missing) if count <= most else None
        for triangle in highest.triangles(geometry, number, missing=missing, room=room):
            corners = np.repeat(triangle.corner[None], 3, axis=0)
            normal = finer[0].geometry.normals[triangle.corner[1:2]]
            level = _with_triangle(level, Triangles(triangle.symbol, corners), finer[0], triangle.positions, normal)
            added += 1
    if not (short > 0).any():
        return level, 0, 0.0
    geometry, moved = moved_to_box(level.geometry, highest.box)
    return replace(level, geometry=geometry), added, moved


def _with_triangle(
    level: Instance, like: Triangles, source: Instance, positions: FloatArray, normal: FloatArray
) -> Instance:
    """Add one triangle (3, 3) with a normal (1, 3) to a level.

    Its symbol is that of ``like``; UVs and weights are copied from a triangle of another level, ``source``.
    """
    geometry = level.geometry
    index = np.empty((3, geometry.faces[0].corners.shape[1]), np.int32)
    index[:, 0] = len(geometry.positions) + np.arange(3)
    index[:, 1] = len(geometry.normals) + np.arange(3)
    uvs = geometry.uvs
    if uvs is not None:
        index[:, 2] = len(uvs) + np.arange(3)
        of_source = source.geometry.uvs
        added = np.zeros((3, 2), np.float32) if of_source is None else of_source[like.corners[:, 2]]
        uvs = np.concatenate((uvs, added))
    faces = {face.symbol: face for face in geometry.faces}
    own = faces.get(like.symbol)
    faces[like.symbol] = Triangles(like.symbol, index if own is None else np.concatenate((own.corners, index)))
    geometry = replace(
        geometry,
        positions=np.concatenate((geometry.positions, positions)),
        normals=np.concatenate((geometry.normals, np.repeat(normal, 3, axis=0))),
        uvs=uvs,
        faces=list(faces.values()),
    )
    skin = level.skin and _with_weights(level.skin, source.skin, like.corners[:, 0])
    return replace(level, geometry=geometry, skin=skin)


def _in_order(geometry: Geometry, symbols: Iterable[str]) -> Geometry:
    """Reorder a geometry with added triangles so that exporting it again after an import gives the same file.

    Its faces are in the order of ``symbols``, and its normals and UVs in the order of the faces.
    """
    of_symbol = {face.symbol: face.corners for face in geometry.faces}
    faces: list[Triangles] = []
    rows: list[IntArray] = []
    start = 0
    for symbol in symbols:
        if symbol in of_symbol:
            used, index = np.unique(of_symbol[symbol][:, 1], return_inverse=True)
            corners = of_symbol[symbol].copy()
            corners[:, 1:] = index.reshape(-1, 1) + start
            start += len(used)
            rows.append(used)
            faces.append(Triangles(symbol, corners))
    chosen = np.concatenate(rows)
    uvs = None if geometry.uvs is None else geometry.uvs[chosen]
    return replace(geometry, normals=geometry.normals[chosen], uvs=uvs, faces=faces)


def _with_weights(skin: Skin, source: Skin | None, points: IntArray) -> Skin:
    """Append the weights of three points of another level, which has the same joints, to a binding."""
    chosen = source or skin
    return replace(
        skin,
        joint_indices=np.concatenate((skin.joint_indices, chosen.joint_indices[points])),
        joint_weights=np.concatenate((skin.joint_weights, chosen.joint_weights[points])),
    )


def _largest_triangle(geometry: Geometry, symbol: str) -> IntArray:
    """Return the corners of the largest triangle of a symbol, (3, k)."""
    face = next(face for face in geometry.faces if face.symbol == symbol)
    triangles = face.corners.reshape(-1, 3, face.corners.shape[1])
    a, b, c = geometry.positions[triangles[:, :, 0]].astype(np.float64).transpose(1, 0, 2)
    largest: IntArray = triangles[int(np.linalg.norm(np.cross(b - a, c - a), axis=1).argmax())]
    return largest


def _small_triangle(geometry: Geometry, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a triangle (3, 3) in the box of a geometry, as near to a centre as possible, and its normal (1, 3).

    It is parallel to the two longest axes of the box. So it stays inside a flat box, and is never degenerate in the
    unit cube to which the viewer scales the box.
    """
    least, most = geometry.positions.min(axis=0), geometry.positions.max(axis=0)
    extent = most.astype(np.float64) - least
    first, second = np.argsort(extent, kind="stable").tolist()[1:]
    legs = np.zeros((3, 3))
    legs[1, first] = _SHARE * extent[first]
    legs[2, second] = _SHARE * extent[second]
    inset = _INSET * extent
    corner = np.clip(centre - legs.max(axis=0) / 2, least + inset, most - legs.max(axis=0) - inset)
    positions = np.clip((corner + legs).astype(np.float32), least, most)
    axes = np.identity(3, np.float32)
    return positions, np.cross(axes[first], axes[second])[None]
