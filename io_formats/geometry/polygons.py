"""Polygons as fans of triangles, and back (``Mesh.polygon_sizes``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.scene import FloatArray, IntArray, Mesh
from .normals import face_normals
from .submeshes import with_corners

Mask = npt.NDArray[np.bool_]
_FOLDED = 1e-3
"""Cosine of the angle between a triangle and its polygon, from 90° on, up to which it counts as rounding."""
_MOST_TRIED = 4_000_000
"""Number of corners for which starts of concave polygons are tried, about 2 seconds: damaged files have many."""


def fan_corners(sizes: IntArray) -> npt.NDArray[np.intp] | None:
    """Return the corner of polygons with these sizes for each corner of their triangles, (3 T,); None for triangles.

    The triangles of a polygon share its first corner.
    """
    if (sizes == 3).all():
        return None
    counts = sizes - 2
    starts = np.cumsum(sizes) - sizes
    first = np.repeat(starts, counts)
    step = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    corners = np.empty((len(first), 3), np.intp)
    corners[:, 0] = first
    corners[:, 1] = first + step + 1
    corners[:, 2] = first + step + 2
    return corners.reshape(-1)


def folded_polygons(positions: FloatArray, points: IntArray, sizes: IntArray) -> Mask:
    """Return which polygons overlap themselves as fans, (G,).

    Parameters
    ----------
    positions:
        (P, 3).
    points:
        (C,) the position of each corner.
    sizes:
        (G,) number of corners of each polygon.
    """
    corners = fan_corners(sizes)
    if corners is None:
        return np.zeros(len(sizes), bool)
    normals = face_normals(positions, points[corners]).astype(np.float64)
    counts = sizes - 2
    starts = np.cumsum(counts) - counts
    whole = np.repeat(np.add.reduceat(normals, starts), counts, axis=0)
    along = (normals * whole).sum(axis=1)
    limit = _FOLDED * np.linalg.norm(normals, axis=1) * np.linalg.norm(whole, axis=1)
    return np.asarray(np.logical_or.reduceat(along < -limit, starts))


def unfolded_corners(positions: FloatArray, points: IntArray, sizes: IntArray) -> npt.NDArray[np.intp] | None:
    """Return corners of polygons, (C,), so that concave ones start where their fan does not overlap, if it is possible.

    Return None if no polygon is folded. Parameters are those of :func:`folded_polygons`.
    """
    is_folded = folded_polygons(positions, points, sizes)
    if not is_folded.any():
        return None
    order = np.arange(len(points))
    starts = np.cumsum(sizes) - sizes
    concave = sizes[is_folded]
    for turn in range(1, min(int(concave.max()), 1 + _MOST_TRIED // int(concave.sum(dtype=np.int64)))):
        left = np.flatnonzero(is_folded & (sizes > turn))
        counts = sizes[left]
        step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        turned = np.repeat(starts[left], counts) + (step + turn) % np.repeat(counts, counts)
        found = ~folded_polygons(positions, points[turned], counts)
        chosen = np.repeat(found, counts)
        order[(np.repeat(starts[left], counts) + step)[chosen]] = turned[chosen]
        is_folded[left[found]] = False
        if not is_folded.any():
            break
    return order


def sizes_of_kept(sizes: IntArray | None, kept: Mask) -> IntArray | None:
    """Return the sizes of polygons after the removal of triangles, (T,); polygons that lose one fall into triangles."""
    starts = _starts(sizes, len(kept))
    if starts is None:
        return None
    polygon = np.cumsum(starts) - 1
    is_broken = np.zeros(int(polygon[-1]) + 1 if len(polygon) else 0, bool)
    is_broken[polygon[~kept]] = True
    return _sizes((starts | is_broken[polygon])[kept])


def with_polygons(mesh: Mesh) -> tuple[Mesh, IntArray | None]:
    """Return a mesh whose corners and ``material_index`` are those of polygons, and their sizes, (G,).

    The triangles must have three different points. Those that are not the fan of a polygon without repeated points
    stay triangles. Return the mesh itself and None if all do.
    """
    starts = _starts(mesh.polygon_sizes, mesh.triangle_count)
    if starts is None:
        return mesh, None
    triangles = mesh.corner_point.reshape(-1, 3)
    before, after = triangles[:-1], triangles[1:]
    continues = (before[:, 0] == after[:, 0]) & (before[:, 2] == after[:, 1])
    continues &= mesh.material_index[:-1] == mesh.material_index[1:]
    starts[1:] |= ~continues
    starts |= _touching(mesh.corner_point, starts)
    if starts.all():
        return mesh, None
    return replace(with_corners(mesh, _corners(starts)), material_index=mesh.material_index[starts]), _sizes(starts)


def _starts(sizes: IntArray | None, triangles: int) -> Mask | None:
    """Return which triangles are the first of a polygon, (T,), or None if the sizes are not those of the triangles."""
    if sizes is None or not len(sizes) or int(sizes.min()) < 3:
        return None
    if int(sizes.sum(dtype=np.int64)) - 2 * len(sizes) != triangles:
        return None
    starts = np.zeros(triangles, bool)
    counts = sizes - 2
    starts[np.cumsum(counts) - counts] = True
    return starts


def _sizes(starts: Mask) -> IntArray:
    return np.diff(np.append(np.flatnonzero(starts), len(starts))).astype(np.int32) + np.int32(2)


def _corners(starts: Mask) -> npt.NDArray[np.intp]:
    """Return the corners of triangles that are those of polygons: three of the first, the last of all others."""
    chosen = np.ones((len(starts), 3), bool)
    chosen[:, :2] = starts[:, None]
    return np.flatnonzero(chosen)


def _touching(corner_point: IntArray, starts: Mask) -> Mask:
    """Return the triangles of polygons that use a point twice, which Blender cannot hold, (T,)."""
    sizes = _sizes(starts)
    polygon = np.cumsum(starts) - 1
    is_bad = np.zeros(len(sizes), bool)
    triangles = corner_point.reshape(-1, 3)
    quads = np.flatnonzero(starts)[sizes == 4]
    is_bad[sizes == 4] = triangles[quads, 1] == triangles[quads + 1, 2]
    if (sizes > 4).any():
        owner = np.repeat(np.arange(len(sizes)), sizes)
        large = sizes[owner] > 4
        pairs = owner[large] * (int(corner_point.max()) + 1) + corner_point[_corners(starts)][large]
        order = np.argsort(pairs, kind="stable")
        again = np.flatnonzero(pairs[order][1:] == pairs[order][:-1])
        is_bad[owner[large][order[again]]] = True
    found: Mask = is_bad[polygon]
    return found
