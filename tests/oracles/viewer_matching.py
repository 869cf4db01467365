"""How the viewer makes faces of Collada files and matches those of the levels (format page, sections 5.2, 10 and 10.1).

Written from the format page alone, on what ``collada_oracle`` parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import collada_oracle
import numpy as np
import numpy.typing as npt

MOST_FACES = 8
FULL = 65_532
"""The viewer closes a face after the triangle with which it has as many vertices."""


@dataclass
class Face:
    material: str
    corners: npt.NDArray[np.float64]
    """(C, 8) position, normal and UV."""


def faces(geometry: collada_oracle.Geometry) -> list[Face]:
    """Return the faces of a geometry by their numbers: split where they are full, then sorted ignoring case."""
    found = [
        Face(symbol, part) for symbol, corners in geometry.faces.items() for part in _split(np.nan_to_num(corners))
    ]
    order = sorted(range(len(found)), key=lambda number: found[number].material.upper())
    return [found[number] for number in order]


def _split(corners: npt.NDArray[np.float64]) -> list[npt.NDArray[np.float64]]:
    if len(corners) < FULL:
        return [corners]
    parts, start = [], 0
    vertices = np.unique(corners.astype(np.float32), axis=0, return_inverse=True)[1].reshape(-1).tolist()
    seen: set[int] = set()
    for end in range(3, len(corners) + 1, 3):
        seen.update(vertices[end - 3 : end])
        if len(seen) >= FULL:
            parts.append(corners[start:end])
            seen, start = set(), end
    return [*parts, corners[start:]] if start < len(corners) else parts


def parts(geometry: collada_oracle.Geometry) -> list[list[Face]]:
    """Return the faces of each mesh that the viewer makes of a geometry."""
    found = faces(geometry)
    return [found[start : start + MOST_FACES] for start in range(0, len(found), MOST_FACES)]


def check_levels(levels: Sequence[collada_oracle.Document]) -> None:
    """Assert that each face of each level is shown with its own material; the levels begin with the finest."""
    finest = _models(levels[0])
    for level in levels[1:]:
        coarser = _models(level)
        for name, model in finest.items():
            assert name in coarser, f"the level has no '{name}'"
            wanted = [[face.material for face in part] for part in parts(model)]
            assert [[face.material for face in part] for part in parts(coarser[name])] == wanted, name
            assert not any(degenerate(face.corners, coarser[name].positions).all() for face in faces(coarser[name]))


def _models(document: collada_oracle.Document) -> Mapping[str, collada_oracle.Geometry]:
    """Return the models of a file by their labels; instances of one geometry are one model."""
    found: dict[str, collada_oracle.Geometry] = {}
    for instance in document.instances:
        known = found.setdefault(instance.geometry.name, instance.geometry)
        assert known is instance.geometry, f"two geometries are called '{known.name}'"
    return found


def degenerate(corners: npt.NDArray[np.float64], positions: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which triangles are degenerate in the unit cube to which the viewer scales positions, (T,)."""
    extent = np.ptp(positions, axis=0)
    scaled = (corners[:, :3] - positions.min(axis=0)) / np.where(extent < 1e-5, 1.0, extent) * 0.5
    a, b, c = scaled.reshape(-1, 3, 3).transpose(1, 0, 2)
    e1, e2, e3 = (np.sum((p - q) ** 2, axis=1) for p, q in ((a, b), (a, c), (c, b)))
    even = (e1 <= 100 * e2) & (e1 <= 100 * e3) & (e2 <= 100 * e1) & (e3 <= 100 * e1)
    tolerance = np.where(even, 1e-11, 1e-7)
    thin: npt.NDArray[np.bool_] = np.sum(np.cross(a - b, a - c) ** 2, axis=1) < tolerance
    return thin
