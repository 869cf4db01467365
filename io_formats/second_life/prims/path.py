"""The path of a prim: the rows in which its profile is placed (docs/formats/second_life_prims.md, section Path)."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

from .limits import CIRCLE_PATH, CUT_STEPS, FLEXIBLE, SECOND_CIRCLE, TEST, PrimParameters

Array = npt.NDArray[np.float64]

_MOST_FLEXIBLE_SEGMENTS = 8


@dataclass(frozen=True)
class Path:
    """The rows of a path; all arrays but ``origin`` are (h,)."""

    position: Array
    """0 to 1 along the path, without regard to cuts."""
    origin: Array
    """(h, 3)."""
    tilt: Array
    """Rotation around the X axis in radians."""
    spin: Array
    """Rotation of the profile in its plane in radians, before ``tilt``."""
    width: Array
    """Scale of the profile's x."""
    height: Array
    """Scale of the profile's y."""
    is_open: bool

    def place(self, x: Array, y: Array) -> Array:
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

    def normal(self, row: int) -> Array:
        """Return the normal (3,) of a row's plane, which points along the path."""
        return np.array((0.0, -np.sin(self.tilt[row]), np.cos(self.tilt[row])))


def path_of(parameters: PrimParameters) -> Path:
    """Build the path of a prim."""
    if parameters.path in (CIRCLE_PATH, SECOND_CIRCLE):
        return _circle(parameters)
    if parameters.path == TEST:
        return _test(parameters)
    return _line(parameters)


def _line(parameters: PrimParameters) -> Path:
    is_flexible = parameters.path == FLEXIBLE
    rows = max(_twist_rows(parameters, 0) + 2, parameters.split + 2)
    if is_flexible:
        rows = min(rows, _MOST_FLEXIBLE_SEGMENTS + 1)
        position = np.linspace(0, 1, rows)
    else:
        position = np.linspace(parameters.path_begin, parameters.path_end, rows) / CUT_STEPS
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


def _circle(parameters: PrimParameters) -> Path:
    begin, end = parameters.path_begin, parameters.path_end
    steps = _circle_steps(parameters)
    between = np.arange(begin * steps // CUT_STEPS + 1, (end * steps - 1) // CUT_STEPS + 1)
    position = np.concatenate([[begin / CUT_STEPS], between / steps, [end / CUT_STEPS]])
    inner = outer = 0.5 * (1 - parameters.scale_y)
    if parameters.radius_offset < 0:
        inner *= 1 + parameters.radius_offset
    else:
        outer *= 1 - parameters.radius_offset
    radius = _between(inner, outer, position)
    tilt = 2 * pi * parameters.revolutions * position
    y, z = radius * np.cos(tilt), radius * np.sin(tilt)
    if parameters.path == SECOND_CIRCLE:
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
        is_open=end - begin < CUT_STEPS or is_changing or parameters.twist != parameters.twist_begin,
    )


def _circle_steps(parameters: PrimParameters) -> int:
    """Return the number of rows of a whole circle."""
    if parameters.path == SECOND_CIRCLE:
        return 24
    # In single precision as in the viewer, which gives one row fewer for some twists and revolutions.
    revolutions = np.float32(1) + np.float32(0.015) * np.float32(parameters.revolution_steps)
    return int(np.float32(_twist_rows(parameters, 24)) * revolutions)


def _test(parameters: PrimParameters) -> Path:
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


def _twist_rows(parameters: PrimParameters, least: int) -> int:
    """Return ``least`` rows and 12.25 more for each unit of difference between the twists, rounded down."""
    return least + 49 * abs(parameters.twist_begin - parameters.twist) // 400


def _twist(parameters: PrimParameters, position: Array) -> Array:
    return _between(parameters.twist_begin / 100, parameters.twist / 100, position)


def _between(begin: float, end: float, position: Array) -> Array:
    return begin + (end - begin) * position


def _tapered(taper: float, position: Array) -> Array:
    """Return the factor by which a taper narrows each row: the end, or the begin if it is negative."""
    return _between(1, 1 - taper, position) if taper > 0 else _between(1 + taper, 1, position)
