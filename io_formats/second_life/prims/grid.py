"""Grids of points: their triangles and smooth normals, as the viewer makes them for prims and sculpts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...geometry.transforms import cross

Array = npt.NDArray[np.float64]

_LEAST_AREA = 1e-12
"""Triangles of twice this area or less, in the unit cube, count as having none. Rounding gives about 1e-16."""


def grid_faces(points: Array) -> tuple[npt.NDArray[np.int32], Array]:
    """Return the triangles of a grid of points, and the sums of normals at its points.

    Parameters
    ----------
    points:
        (h, w, 3): rows along t, columns along s.

    Returns
    -------
    triangles:
        (m, 3) int32 into the points row by row, two for each cell, without those that have no area. Their front is
        where s is to the right and t upwards.
    sums:
        (h, w, 3) area-weighted, not normalised. As in the viewer, each triangle counts twice at the corner (s + 1,
        t + 1) of its cell.
    """
    corner = points[:-1, :-1]
    diagonal = points[1:, 1:] - corner
    one = np.stack((diagonal, points[:-1, 1:] - corner), axis=2)
    other = np.stack((points[1:, :-1] - corner, diagonal), axis=2)
    normals = cross(one, other)
    triangles = cell_triangles(*points.shape[:2])[has_area(normals)]
    left, right = normals[:, :, 0], normals[:, :, 1]
    both = left + right
    sums = np.zeros(points.shape)
    sums[:-1, :-1] = both
    sums[1:, 1:] += 2 * both
    sums[1:, :-1] += left
    sums[:-1, 1:] += right
    return triangles, sums


def cell_triangles(height: int, width: int) -> npt.NDArray[np.int32]:
    """Return the triangles of the cells of a grid of points, (height - 1, width - 1, 2, 3) int32."""
    index = np.arange(height * width, dtype=np.int32).reshape(height, width)[:-1, :-1, None, None]
    triangles: npt.NDArray[np.int32] = index + np.array(((0, width + 1, width), (0, 1, width + 1)), np.int32)
    return triangles


def has_area(normals: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.bool_]:
    """Return which triangles with these cross products (…, 3) have an area, (…)."""
    found: npt.NDArray[np.bool_] = np.einsum("...i,...i->...", normals, normals) > _LEAST_AREA**2
    return found


def unit_normals(sums: Array) -> Array:
    """Normalise sums (…, 3); those without a direction, at points without triangles, become (0, 0, 1)."""
    length = np.sqrt(np.einsum("...i,...i->...", sums, sums))[..., None]
    is_flat = length == 0
    return np.where(is_flat, (0.0, 0.0, 1.0), sums / np.where(is_flat, 1.0, length))


def add_seam(sums: Array, other: Array) -> None:
    """Replace the sums of two rows or columns that meet by their total."""
    sums += other
    other[...] = sums
