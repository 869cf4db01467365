"""Profile and path of a prim: an outline, and the rows in which it is placed (docs/formats/second_life_prims.md)."""

from dataclasses import dataclass
from functools import lru_cache
from math import pi

import numpy as np

from ...geometry.transforms import Floats
from . import prims

_MOST_FLEXIBLE_SEGMENTS = 8
_cached = lru_cache(1024)
"""Each prim needs its profile and path twice: when a region is listed, and when its faces are built."""


@dataclass(frozen=True)
class Path:
    """The rows of a path; all arrays but ``origin`` are (h,)."""

    position: Floats
    """0 to 1 along the path, without regard to cuts."""
    origin: Floats
    """(h, 3)."""
    tilt: Floats
    """Rotation around the X axis in radians."""
    spin: Floats
    """Rotation of the profile in its plane in radians, before ``tilt``."""
    width: Floats
    """Scale of the profile's x."""
    height: Floats
    """Scale of the profile's y."""
    is_open: bool

    def place(self, x: Floats, y: Floats) -> Floats:
        """Place the points of a profile (n,) in all rows: (h, n, 3)."""
        cos_spin, sin_spin = np.cos(self.spin), np.sin(self.spin)
        across = np.outer(self.width * cos_spin, x) - np.outer(self.height * sin_spin, y)
        along = np.outer(self.width * sin_spin, x) + np.outer(self.height * cos_spin, y)
        points = np.empty((*across.shape, 3))
        points[..., 0] = across
        np.multiply(along, np.cos(self.tilt)[:, None], out=points[..., 1])
        np.multiply(along, np.sin(self.tilt)[:, None], out=points[..., 2])
        points += self.origin[:, None]
        return points

    def normal(self, row: int) -> Floats:
        """Return the normal (3,) of a row's plane, which points along the path."""
        return np.array((0.0, -np.sin(self.tilt[row]), np.cos(self.tilt[row])))


@_cached
def path_of(parameters: prims.PrimParameters) -> Path:
    """Build the path of a prim."""
    if parameters.path in (prims.CIRCLE_PATH, prims.SECOND_CIRCLE):
        return _circle(parameters)
    if parameters.path == prims.TEST:
        return _test(parameters)
    return _line(parameters)


def _line(parameters: prims.PrimParameters) -> Path:
    """Return the straight path of a prim, such as that of a box, along z from -0.5 to 0.5."""
    is_flexible = parameters.path == prims.FLEXIBLE
    rows = max(_twist_rows(parameters, 0) + 2, parameters.split + 2)
    if is_flexible:
        rows = min(rows, _MOST_FLEXIBLE_SEGMENTS + 1)
        position = np.linspace(0, 1, rows)
    else:
        position = np.linspace(parameters.path_begin, parameters.path_end, rows) / prims.CUT_STEPS
    origin = np.zeros((rows, 3))
    if not is_flexible:
        origin[:, 0] = parameters.shear_x * position
        origin[:, 1] = parameters.shear_y * position
    origin[:, 2] = position - 0.5
    scale_x, scale_y = parameters.scale_x, parameters.scale_y
    return Path(
        position,
        origin,
        tilt=np.zeros(rows),
        spin=pi * _twist(parameters, position),
        width=_between(min(1, 2 - scale_x), min(1, scale_x), position),
        height=_between(min(1, 2 - scale_y), min(1, scale_y), position),
        is_open=True,
    )


def _circle(parameters: prims.PrimParameters) -> Path:
    """Return the circular path of a prim, such as that of a torus, around x."""
    begin, end = parameters.path_begin, parameters.path_end
    steps = _circle_steps(parameters)
    between = np.arange(begin * steps // prims.CUT_STEPS + 1, (end * steps - 1) // prims.CUT_STEPS + 1)
    position = np.concatenate([[begin / prims.CUT_STEPS], between / steps, [end / prims.CUT_STEPS]])
    inner = outer = 0.5 * (1 - parameters.scale_y)
    if parameters.radius_offset < 0:
        inner *= 1 + parameters.radius_offset
    else:
        outer *= 1 - parameters.radius_offset
    radius = _between(inner, outer, position)
    tilt = 2 * pi * parameters.revolutions * position
    y, z = radius * np.cos(tilt), radius * np.sin(tilt)
    if parameters.path == prims.SECOND_CIRCLE:
        x = np.full(len(position), 0.5)
        x[1::2] = -0.5
    else:
        x = parameters.shear_x * z + parameters.skew * (position - 0.5)
    is_changing = (
        max(abs(parameters.skew), abs(parameters.taper_x), abs(parameters.taper_y), abs(outer - inner)) > 0.001
    )
    return Path(
        position,
        np.stack((x, y + parameters.shear_y * z, z), axis=1),
        tilt,
        spin=2 * pi * _twist(parameters, position) - pi,
        width=parameters.scale_x * (1 - abs(parameters.skew)) * _tapered(parameters.taper_x, position),
        height=parameters.scale_y * _tapered(parameters.taper_y, position),
        is_open=end - begin < prims.CUT_STEPS or is_changing or parameters.twist != parameters.twist_begin,
    )


def _circle_steps(parameters: prims.PrimParameters) -> int:
    """Return the number of rows of a whole circle."""
    if parameters.path == prims.SECOND_CIRCLE:
        return 24
    # In single precision as in the viewer, which gives one row fewer for some twists and revolutions.
    revolutions = np.float32(1) + np.float32(0.015) * np.float32(parameters.revolution_steps)
    return int(np.float32(_twist_rows(parameters, 24)) * revolutions)


def _test(parameters: prims.PrimParameters) -> Path:
    """Return the path that the viewer calls *test*, with five rows."""
    position = np.linspace(0, 1, 5)
    tilt = pi * parameters.twist / 100 * position
    y = -0.5 * position * np.sin(tilt)
    z = position * (0.5 * np.cos(tilt) + 0.5) - 0.5
    return Path(
        position,
        np.stack((np.zeros(5), y, z), axis=1),
        tilt,
        spin=np.zeros(5),
        width=_between(1, parameters.scale_x, position),
        height=_between(1, parameters.scale_y, position),
        is_open=True,
    )


def _twist_rows(parameters: prims.PrimParameters, least: int) -> int:
    """Return ``least`` rows and 12.25 more for each unit of difference between the twists, rounded down."""
    return least + 49 * abs(parameters.twist_begin - parameters.twist) // 400


def _twist(parameters: prims.PrimParameters, position: Floats) -> Floats:
    return _between(parameters.twist_begin / 100, parameters.twist / 100, position)


def _between(begin: float, end: float, position: Floats) -> Floats:
    return begin + (end - begin) * position


def _tapered(taper: float, position: Floats) -> Floats:
    """Return the factor by which a taper narrows each row: the end, or the begin if it is negative."""
    return _between(1, 1 - taper, position) if taper > 0 else _between(1 + taper, 1, position)


_RADII = {3: 0.5, 4: 0.707107, 6: 0.525}
"""Radii of polygons by their number of corners; all others have 0.5."""
_CORNER_TOLERANCE = prims.CUT_STEPS // 10_000
"""Distance between a cut and a corner, in ``CUT_STEPS`` of a side, up to which the cut has no point of its own."""


@dataclass(frozen=True)
class Profile:
    """The points of a profile: the outline, then the hole or the centre if there is one."""

    points: Floats
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


@_cached
def profile_of(parameters: prims.PrimParameters) -> Profile:
    """Build the profile of a prim."""
    profile, split = parameters.profile, parameters.split
    begin, end = parameters.profile_begin, parameters.profile_end
    is_round = profile in (prims.CIRCLE, prims.HALF_CIRCLE)
    is_half = profile == prims.HALF_CIRCLE
    start = 0.5 if is_half else -0.375 if profile == prims.SQUARE else 0.0
    sides = {prims.CIRCLE: 24, prims.SQUARE: 4, prims.HALF_CIRCLE: 12}.get(profile, 3)

    def outline_of(sides: int, split: int) -> Floats:
        return _outline(sides, 2 * sides if is_half else sides, start, begin, end, split)

    outline = outline_of(sides, 0 if is_round else split)
    if not is_round:
        outline[:, 2] *= sides
    parts = [outline]
    is_open = is_half or 100 * (end - begin) < 99 * prims.CUT_STEPS
    is_hollow = parameters.hollow > 0
    has_facets = False
    if is_hollow:
        hole_sides, is_polygon = _hole_shape(parameters.hole, sides, is_round, is_half)
        size = parameters.hollow / prims.CUT_STEPS * (0.5 if sides == 3 else 1)
        parts.append(outline_of(hole_sides, split if is_polygon else 0)[::-1] * size)
        has_facets = is_polygon or profile == prims.CIRCLE
    elif is_open:
        parts.append(np.zeros((1, 3)))
        if is_half and end - begin == prims.CUT_STEPS:
            parts.append(outline[:1])
            is_open = False
    # An end point that is less than 0.001 of a side past a corner has no face of its own.
    side_count = (end * sides + prims.CUT_STEPS * 999 // 1000) // prims.CUT_STEPS - begin * sides // prims.CUT_STEPS
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
    if hole == prims.SQUARE_HOLE:
        return (2 if is_half else 4), True
    if hole == prims.TRIANGLE_HOLE:
        return 3, True
    if hole == prims.CIRCLE_HOLE or is_round:
        return (12 if is_half else 24), False
    return sides, True


def _outline(sides: int, corners: int, start: float, begin: int, end: int, split: int) -> Floats:
    """Return the points (n, 3) x, y, u of a cut polygon, from begin to end.

    ``sides`` is their number over the whole range of u, ``corners`` that of the full polygon around the centre, and
    ``start`` the angle of the first corner in revolutions.
    """
    first, last = begin * sides // prims.CUT_STEPS, (end * sides - 1) // prims.CUT_STEPS
    steps = list(range((first + 1) * prims.CUT_STEPS, last * prims.CUT_STEPS + 1, prims.CUT_STEPS))
    if begin * sides < (first + 1) * prims.CUT_STEPS - _CORNER_TOLERANCE:
        steps.insert(0, begin * sides)
    if end * sides > last * prims.CUT_STEPS + _CORNER_TOLERANCE:
        steps.append(end * sides)
    positions = np.array(steps)
    side, past = np.divmod(positions, prims.CUT_STEPS)
    # Modulo, so that an outline around the centre closes exactly.
    angle = 2 * pi * (np.stack((side, side + 1)) % corners / corners + start)
    x, y = np.cos(angle), np.sin(angle)
    past = past / prims.CUT_STEPS
    radius = _RADII.get(corners, 0.5)
    points = np.empty((len(positions), 3))
    points[:, 0] = radius * (x[0] + past * (x[1] - x[0]))
    points[:, 1] = radius * (y[0] + past * (y[1] - y[0]))
    points[:, 2] = positions / (prims.CUT_STEPS * sides)
    return _divided(points, split + 1) if split else points


def _divided(points: Floats, parts: int) -> Floats:
    """Divide each segment between points (n, 3) into equal parts."""
    before = points[:-1, None]
    between = before + np.arange(parts)[:, None] / parts * (points[1:, None] - before)
    return np.concatenate([between.reshape(-1, 3), points[-1:]])
