"""Give all levels of an object the same faces, and the same box (formats page, sections 6 and 10).

The viewer sorts the faces of each file by material and matches them by their order; it adds none for a material that a
level lacks. It scales each file to the box of the highest level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.scene import FloatArray, IntArray, Scene
from ..models.faces import MOST_FACES
from . import names
from .document import Geometry, Instance, Skin, Triangles
from .level_boxes import NEAR, HighestLevel, box_of_triangles, moved_to_box, short_sides, vertex_count
from .textures import Materials

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
        slots, range(len(slots)), names.model_name(model, set()), {}
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
