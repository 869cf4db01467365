"""The sides of a prim: outer, inner and cut faces; all are grids (docs/formats/second_life_prims.md, from Faces on)."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

import numpy as np
import numpy.typing as npt

from .grid import Array, add_seam, grid_faces, unit_normals
from .limits import CIRCLE_PATH, HALF_CIRCLE, PrimParameters
from .path import Path
from .profile import Profile
from .shape import ShapeFace

_COINCIDENT = 0.001
"""Distance below which a column of points counts as a pole."""

Columns = tuple[npt.NDArray[np.intp], Array]
"""The columns of a face's grid: indices of profile points (w,), and u (w,)."""


def outer_columns(profile: Profile) -> Iterator[Columns]:
    """Yield the columns of each outer face.

    Where a cut near a corner leaves fewer points than sides, the indices run on to the centre or the hole, and from the
    last point to the first, as in the viewer.
    """
    count = len(profile.points)
    for side in range(profile.side_count):
        index = np.arange(side * profile.segments, (side + 1) * profile.segments + 1)
        u = np.where(index < count, profile.points[index % count, 2], 1.0)
        yield index % count, u - floor(u[0])


def inner_columns(profile: Profile) -> Columns:
    """Return the columns of the inner face of a hollow profile; each twice if it has facets."""
    index = np.arange(profile.outline_count, len(profile.points))
    if profile.has_facets:
        index = np.append(np.repeat(index, 2)[1:], index[-1 if profile.is_open else 0])
    return index, profile.points[index, 2]


def cut_columns(profile: Profile) -> Iterator[Columns]:
    """Yield the columns of the two cut faces of an open profile."""
    u = np.array((0.0, 1.0))
    yield np.array((len(profile.points) - 1, 0)), u
    yield np.array((profile.outline_count - 1, profile.outline_count)), u


def side_of(
    role: str, columns: Columns, parameters: PrimParameters, profile: Profile, path: Path, placed: Array
) -> ShapeFace:
    """Return a face from its columns. ``placed`` (h, n, 3) are the points of the profile in all rows of the path."""
    index, u = columns
    points = placed[:, index]
    triangles, sums = grid_faces(points)
    if not path.is_open:
        add_seam(sums[0], sums[-1])
    is_pole = [_coincide(points[0, column], points[-2, column]) for column in (0, -1)]
    if not profile.is_open and not is_pole[0]:
        add_seam(sums[:, 0], sums[:, -1])
    if parameters.path_curve == CIRCLE_PATH and parameters.profile == HALF_CIRCLE:
        for column, x in ((0, 1.0), (-1, -1.0)):
            if is_pole[column]:
                sums[:, column] = (x, 0.0, 0.0)
    uvs = np.empty((*points.shape[:2], 2))
    uvs[..., 0] = u
    uvs[..., 1] = path.position[:, None]
    return ShapeFace(role, points.reshape(-1, 3), uvs.reshape(-1, 2), unit_normals(sums.reshape(-1, 3)), triangles)


def _coincide(first: Array, second: Array) -> bool:
    difference = first - second
    return bool(difference @ difference < _COINCIDENT**2)
