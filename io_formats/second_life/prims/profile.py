"""The profile of a prim: a plane outline, which may have a hole (docs/formats/second_life_prims.md, Profile)."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

from .limits import CIRCLE, CIRCLE_HOLE, CUT_STEPS, HALF_CIRCLE, SQUARE, SQUARE_HOLE, TRIANGLE_HOLE, PrimParameters

Array = npt.NDArray[np.float64]

_RADII = {3: 0.5, 4: 0.707107, 6: 0.525}
"""Radii of polygons by their number of corners; all others have 0.5."""
_CORNER_TOLERANCE = CUT_STEPS // 10_000
"""Distance between a cut and a corner, in ``CUT_STEPS`` of a side, up to which the cut has no point of its own."""


@dataclass(frozen=True)
class Profile:
    """The points of a profile: the outline, then the hole or the centre if there is one."""

    points: Array
    """(n, 3) x, y, u. u runs from 0 to 1 along a round outline, from 0 to the number of sides along a polygon, and
    backwards along a hole."""
    outline_count: int
    """Number of points of the outline alone."""
    is_open: bool
    is_hollow: bool
    has_facets: bool
    """Whether the sides of the hole are shaded flat."""
    side_count: int
    """Number of outer faces."""
    segments: int
    """Number of segments in each outer face."""


def profile_of(parameters: PrimParameters) -> Profile:
    """Build the profile of a prim."""
    profile, split = parameters.profile, parameters.split
    begin, end = parameters.profile_begin, parameters.profile_end
    is_round = profile in (CIRCLE, HALF_CIRCLE)
    is_half = profile == HALF_CIRCLE
    start = 0.5 if is_half else -0.375 if profile == SQUARE else 0.0
    sides = {CIRCLE: 24, SQUARE: 4, HALF_CIRCLE: 12}.get(profile, 3)

    def outline_of(sides: int, split: int) -> Array:
        return _outline(sides, 2 * sides if is_half else sides, start, begin, end, split)

    outline = outline_of(sides, 0 if is_round else split)
    if not is_round:
        outline[:, 2] *= sides
    parts = [outline]
    is_open = is_half or 100 * (end - begin) < 99 * CUT_STEPS
    is_hollow = parameters.hollow > 0
    has_facets = False
    if is_hollow:
        hole_sides, is_polygon = _hole_shape(parameters.hole, sides, is_round, is_half)
        size = parameters.hollow / CUT_STEPS * (0.5 if sides == 3 else 1)
        parts.append(outline_of(hole_sides, split if is_polygon else 0)[::-1] * size)
        has_facets = is_polygon or profile == CIRCLE
    elif is_open:
        parts.append(np.zeros((1, 3)))
        if is_half and end - begin == CUT_STEPS:
            parts.append(outline[:1])
            is_open = False
    # An end point that is less than 0.001 of a side past a corner has no face of its own.
    side_count = (end * sides + CUT_STEPS * 999 // 1000) // CUT_STEPS - begin * sides // CUT_STEPS
    return Profile(
        points=np.concatenate(parts),
        outline_count=len(outline),
        is_open=is_open,
        is_hollow=is_hollow,
        has_facets=has_facets,
        side_count=1 if is_round else side_count,
        segments=len(outline) - 1 if is_round else split + 1,
    )


def _hole_shape(hole: int, sides: int, is_round: bool, is_half: bool) -> tuple[int, bool]:
    """Return the number of sides of a hole without cuts, and whether it is a polygon."""
    if hole == SQUARE_HOLE:
        return (2 if is_half else 4), True
    if hole == TRIANGLE_HOLE:
        return 3, True
    if hole == CIRCLE_HOLE or is_round:
        return (12 if is_half else 24), False
    return sides, True


def _outline(sides: int, corners: int, start: float, begin: int, end: int, split: int) -> Array:
    """Return the points (n, 3) x, y, u of a cut polygon, from begin to end.

    ``sides`` is their number over the whole range of u, ``corners`` that of the full polygon around the centre, and
    ``start`` the angle of the first corner in revolutions.
    """
    first, last = begin * sides // CUT_STEPS, (end * sides - 1) // CUT_STEPS
    steps = list(range((first + 1) * CUT_STEPS, last * CUT_STEPS + 1, CUT_STEPS))
    if begin * sides < (first + 1) * CUT_STEPS - _CORNER_TOLERANCE:
        steps.insert(0, begin * sides)
    if end * sides > last * CUT_STEPS + _CORNER_TOLERANCE:
        steps.append(end * sides)
    positions = np.array(steps)
    side, past = np.divmod(positions, CUT_STEPS)
    # Modulo, so that an outline around the centre closes exactly.
    angle = 2 * pi * (np.stack((side, side + 1)) % corners / corners + start)
    x, y = np.cos(angle), np.sin(angle)
    past = past / CUT_STEPS
    radius = _RADII.get(corners, 0.5)
    points = np.empty((len(positions), 3))
    points[:, 0] = radius * (x[0] + past * (x[1] - x[0]))
    points[:, 1] = radius * (y[0] + past * (y[1] - y[0]))
    points[:, 2] = positions / (CUT_STEPS * sides)
    return _divided(points, split + 1) if split else points


def _divided(points: Array, parts: int) -> Array:
    """Divide each segment between points (n, 3) into equal parts."""
    before = points[:-1, None]
    between = before + np.arange(parts)[:, None] / parts * (points[1:, None] - before)
    return np.concatenate([between.reshape(-1, 3), points[-1:]])
