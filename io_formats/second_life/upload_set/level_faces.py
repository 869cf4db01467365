"""Give all levels of an object the same faces, since the viewer matches them by their order (formats page, section 10).

The viewer sorts the faces of each file by material and numbers them; it adds none for a material that a level lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...core.scene import FloatArray, IntArray, Scene
from ..models.faces import MOST_FACES
from . import names
from .document import Geometry, Instance, Skin, Triangles
from .textures import Materials

_SHARE = 0.02
"""Size of an added triangle as a share of its level's box: too small to be noticed, and far from degenerate."""
_INSET = 0.0053
"""Least distance of an added triangle from the sides of the box, as a share of it. The viewer looks up weights by
position, so a corner of the triangle must not lie on a vertex, and vertices lie on the sides and corners of boxes."""


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
        slots, range(len(slots)), names.model_name(model, set())
    )
    name_of = dict(zip(reversed(symbols), reversed(slots), strict=True))
    return [(name_of[symbol], part, number) for symbol, (part, number) in face_numbers(symbols).items()]


def with_all_faces(levels: Sequence[Instance]) -> list[Instance]:
    """Return the levels of one object, the finest first, each with a face of every symbol.

    A level gets a small triangle for each symbol that it lacks: inside its box, near the largest triangle of that
    symbol in the finest level that has one, and with the weights and UVs of that triangle.
    """
    sources: dict[str, Instance] = {}
    for level in levels:
        for face in level.geometry.faces:
            sources.setdefault(face.symbol, level)
    found: dict[int, Instance] = {}
    for level in levels:
        if id(level) not in found:
            own = {face.symbol for face in level.geometry.faces}
            missing = {symbol: source for symbol, source in sources.items() if symbol not in own}
            filled = level
            for symbol, source in missing.items():
                filled = _with_triangle(filled, level.geometry, symbol, source)
            found[id(level)] = filled
    return [found[id(level)] for level in levels]


def _with_triangle(level: Instance, own: Geometry, symbol: str, source: Instance) -> Instance:
    """Return a level with a small triangle of a symbol; ``own`` is its geometry without added triangles."""
    corners = _largest_triangle(source.geometry, symbol)
    points = corners[:, 0]
    positions, normal = _small_triangle(own, source.geometry.positions[points].astype(np.float64).mean(axis=0))
    geometry = level.geometry
    index = np.empty((3, geometry.faces[0].corners.shape[1]), np.int32)
    index[:, 0] = len(geometry.positions) + np.arange(3)
    index[:, 1] = len(geometry.normals)
    uvs = geometry.uvs
    if uvs is not None:
        index[:, 2] = len(uvs) + np.arange(3)
        of_source = source.geometry.uvs
        uvs = np.concatenate((uvs, np.zeros((3, 2), np.float32) if of_source is None else of_source[corners[:, 2]]))
    geometry = replace(
        geometry,
        positions=np.concatenate((geometry.positions, positions)),
        normals=np.concatenate((geometry.normals, normal)),
        uvs=uvs,
        faces=[*geometry.faces, Triangles(symbol, index)],
    )
    return replace(level, geometry=geometry, skin=level.skin and _with_weights(level.skin, source.skin, points))


def _with_weights(skin: Skin, source: Skin | None, points: IntArray) -> Skin:
    """Return a binding with the weights of three points of another level, which has the same joints."""
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

    It is parallel to the two longest axes of the box: inside a flat box, and never degenerate in the unit cube, to
    which the viewer scales the box.
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
