"""The caps at the ends of a prim's path (docs/formats/second_life_prims.md, section Caps)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...geometry.transforms import bounds, cross
from .grid import Array, cell_triangles, has_area
from .limits import CUT_STEPS, LINE, SQUARE, PrimParameters
from .path import Path
from .profile import Profile
from .shape import ShapeFace

Triangles = npt.NDArray[np.int32]

_IN_LINE = 1e-12
"""Twice the area up to which the corners of a triangle count as being in line, which the viewer leaves to rounding.

Such triangles are avoided, so that caps have all points of the sides that they meet.
"""


def caps_of(parameters: PrimParameters, profile: Profile, path: Path, placed: Array) -> tuple[ShapeFace, ShapeFace]:
    """Return the top and the bottom of a prim with an open path.

    ``placed`` (h, n, 3) are the points of the profile in all rows of the path.
    """
    top, bottom = placed[-1], placed[0]
    bottom_uvs = profile.points[:, :2] * (1, -1) + 0.5
    if _is_parallelogram(parameters, profile):
        # The viewer exchanges the corners of the top, which mirrors the UVs of the bottom.
        corners = np.arange(4) * profile.segments
        triangles = cell_triangles(profile.segments + 1, profile.segments + 1).reshape(-1, 3)
        top_uvs = _parallelogram(bottom_uvs[corners[[3, 2, 0]]], profile.segments)
        bottom_uvs = _parallelogram(bottom_uvs[corners[[0, 1, 3]]], profile.segments)
        top = _parallelogram(top[corners[[0, 1, 3]]], profile.segments)
        bottom = _parallelogram(bottom[corners[[0, 1, 3]]], profile.segments)
    else:
        top_uvs = profile.points[:, :2] + 0.5
        if profile.is_hollow:
            triangles = _zip_triangles(profile.points)
        else:
            triangles = _fan_triangles(len(profile.points), is_open=profile.is_open)
            if not profile.is_open:
                top, top_uvs, bottom, bottom_uvs = map(_with_middle, (top, top_uvs, bottom, bottom_uvs))
    return (
        _cap("top", top, top_uvs, path.normal(-1), triangles),
        _cap("bottom", bottom, bottom_uvs, -path.normal(0), triangles[:, [0, 2, 1]]),
    )


def _cap(role: str, points: Array, uvs: Array, normal: Array, triangles: Triangles) -> ShapeFace:
    a, b, c = points[triangles.T]
    normals = np.broadcast_to(normal, points.shape).copy()
    return ShapeFace(role, points, uvs, normals, triangles[has_area(cross(b - a, c - a))])


def _is_parallelogram(parameters: PrimParameters, profile: Profile) -> bool:
    """Return whether the viewer makes the caps from three corners of a square."""
    is_whole = parameters.path_begin == 0 and parameters.path_end == CUT_STEPS
    is_box = parameters.profile_curve == SQUARE and parameters.path_curve == LINE
    return is_box and is_whole and not profile.is_open and not profile.is_hollow


def _parallelogram(corners: Array, parts: int) -> Array:
    """Return a grid of points ((parts + 1)², k) from corners (3, k): the first, the next along s, the one along t."""
    share = np.arange(parts + 1)[:, None] / parts
    origin, along_s, along_t = corners
    grid: Array = origin + share * (along_s - origin) + share[:, None] * (along_t - origin)
    return np.concatenate(grid)


def _with_middle(values: Array) -> Array:
    """Append the middle of the bounding box to points or UVs (n, k)."""
    return np.concatenate([values, bounds(values).mean(axis=0, keepdims=True)])


def _fan_triangles(count: int, *, is_open: bool) -> Triangles:
    """Return a fan that is not closed, around the last point if the profile is open, else around one more point."""
    hub = count - 1 if is_open else count
    first = np.arange(hub - 1, dtype=np.int32)
    return np.stack((np.full_like(first, hub), first, first + 1), axis=1)


def _zip_triangles(profile_points: Array) -> Triangles:
    """Return the triangles between outline and hole, from both ends of the points (n, 3) until they meet.

    Each triangle depends on the one before, and there are less than 80.
    """
    points = profile_points.tolist()

    def is_reversed(a: int, b: int, c: int) -> bool:
        (ax, ay, _), (bx, by, _), (cx, cy, _) = points[a], points[b], points[c]
        return bool((bx - ax) * (cy - ay) - (by - ay) * (cx - ax) < _IN_LINE)

    steps = profile_points[1:] - profile_points[:-1]
    lengths = np.einsum("ij,ij->i", steps, steps).tolist()
    triangles = []
    first, last = 0, len(points) - 1
    while last - first > 1:
        after, before = first + 1, last - 1
        takes_first = not is_reversed(first, after, last) and not is_reversed(last, after, before)
        if takes_first and not is_reversed(last, first, before) and not is_reversed(first, before, after):
            takes_first = lengths[first] < lengths[before]
        if takes_first:
            triangles.append((first, after, last))
            first = after
        else:
            triangles.append((first, before, last))
            last = before
    return np.array(triangles, np.int32)
