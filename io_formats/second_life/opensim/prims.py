"""The numbers of a prim, decoded and clamped to the viewer's limits (docs/formats/second_life_prims.md, Parameters)."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class PrimShape:
    """The numbers that describe a prim, as the archives store them (docs/formats/second_life_prims.md, Parameters)."""

    profile_curve: int = 1
    path_curve: int = 16
    profile_begin: int = 0
    profile_end: int = 0
    profile_hollow: int = 0
    path_begin: int = 0
    path_end: int = 0
    path_scale_x: int = 100
    path_scale_y: int = 100
    path_shear_x: int = 0
    path_shear_y: int = 0
    path_twist: int = 0
    path_twist_begin: int = 0
    path_radius_offset: int = 0
    path_taper_x: int = 0
    path_taper_y: int = 0
    path_revolutions: int = 0
    path_skew: int = 0


@dataclass(frozen=True, eq=False)
class ShapeFace:
    """One face of a prim or sculpt, in the unit cube. Its number is its place in the list of faces.

    Triangles without area are left out; a face may have no triangles at all, and keeps its number.
    """

    role: str
    """``top``, ``bottom``, ``outer``, ``inner``, ``cut`` or ``sculpt``."""
    points: npt.NDArray[Any]
    """(n, 3) float64 in the unit cube, before the size of the part."""
    uvs: npt.NDArray[Any]
    """(n, 2) float64, v upwards."""
    normals: npt.NDArray[Any]
    """(n, 3) float64 of unit length, in the space of ``points``."""
    triangles: npt.NDArray[Any]
    """(m, 3) int32 indices of points, counter-clockwise."""


CUT_STEPS = 50_000
"""Steps of 1 in the stored begin, end and hollow. They stay integers, so that cuts at a corner are exact."""
SMALLEST_CUT = 1_000
"""Smallest distance between begin and end, in steps."""

SQUARE, HALF_CIRCLE, CIRCLE = 1, 5, 0
"""Profiles; 2, 3 and 4 are triangles."""
CIRCLE_HOLE, SQUARE_HOLE, TRIANGLE_HOLE = 16, 32, 48
"""Shapes of holes; 0 is the shape of the profile."""
LINE, CIRCLE_PATH, SECOND_CIRCLE, TEST, FLEXIBLE = 16, 32, 48, 64, 128
"""Paths."""


@dataclass(frozen=True)
class PrimParameters:
    """The clamped parameters of a prim. Lengths are in units of the part's size, cuts in ``CUT_STEPS``."""

    profile_curve: int
    path_curve: int
    profile_begin: int
    profile_end: int
    hollow: int
    path_begin: int
    path_end: int
    scale_x: float
    scale_y: float
    shear_x: float
    shear_y: float
    twist: int
    """Hundredths of half a revolution, or of a whole one on a circle."""
    twist_begin: int
    radius_offset: float
    taper_x: float
    taper_y: float
    revolution_steps: int
    """0 to 200, each 0.015 of a revolution more than one."""
    skew: float

    @property
    def profile(self) -> int:
        """The shape of the profile, 0 to 5."""
        return self.profile_curve & 0x0F

    @property
    def hole(self) -> int:
        """The shape of the hole, which is used if ``hollow`` is not 0."""
        return self.profile_curve & 0xF0

    @property
    def path(self) -> int:
        """The shape of the path."""
        kind = self.path_curve & 0xF0
        return kind if kind in (CIRCLE_PATH, SECOND_CIRCLE, TEST, FLEXIBLE) else LINE

    @property
    def split(self) -> int:
        """Number of points that divide each segment of a polygonal profile."""
        is_scaled = self.scale_x != 1 or self.scale_y != 1
        return 0 if self.path_curve == LINE and 1 <= self.profile_curve <= 4 and is_scaled else 2

    @property
    def revolutions(self) -> float:
        return 1 + 0.015 * self.revolution_steps


def parameters_of(shape: PrimShape) -> PrimParameters:
    """Decode and clamp the numbers of a prim, in the viewer's order. Any integers are accepted.

    Curves are bytes; shears may be signed or unsigned bytes.
    """
    profile_curve = shape.profile_curve & 0xFF
    if profile_curve & 0x0F > HALF_CIRCLE:
        profile_curve = SQUARE
    elif profile_curve & 0xF0 > TRIANGLE_HOLE:
        profile_curve &= 0x0F
    profile = profile_curve & 0x0F
    path_curve = shape.path_curve & 0xFF
    if not LINE <= path_curve <= 143:
        path_curve = LINE

    profile_begin = 0 if shape.profile_begin >= CUT_STEPS else shape.profile_begin
    profile_end = CUT_STEPS if shape.profile_end >= CUT_STEPS else CUT_STEPS - shape.profile_end
    profile_begin, profile_end = _clamped_cut(profile_begin, profile_end)
    path_begin, path_end = _clamped_cut(shape.path_begin, CUT_STEPS - shape.path_end)
    has_narrow_hole = profile_curve & 0xF0 == SQUARE_HOLE and profile in (CIRCLE, 3, HALF_CIRCLE)
    hollow = 0 if shape.profile_hollow > CUT_STEPS else shape.profile_hollow
    hollow = _clamped(hollow, 0, 35_000 if has_narrow_hole else 47_500)

    scale_x = _clamped(200 - shape.path_scale_x, 0, 200)
    scale_y = _clamped(200 - shape.path_scale_y, 0, 200)
    if path_curve == CIRCLE_PATH and profile != HALF_CIRCLE:
        scale_x = _clamped(scale_x, 5, 100)
        scale_y = _clamped(scale_y, 5, 50)
    taper_y = _clamped(shape.path_taper_y, -100, 100)
    has_offset = path_curve == CIRCLE_PATH and profile != HALF_CIRCLE
    offset = _clamped(shape.path_radius_offset, -100, 100) if has_offset else 0
    revolution_steps = _clamped(shape.path_revolutions, 0, 200)
    return PrimParameters(
        profile_curve,
        path_curve,
        profile_begin,
        profile_end,
        hollow,
        path_begin,
        path_end,
        scale_x / 100,
        scale_y / 100,
        _shear(shape.path_shear_x),
        _shear(shape.path_shear_y),
        _clamped(shape.path_twist, -100, 100),
        _clamped(shape.path_twist_begin, -100, 100),
        _clamped_offset(offset / 100, scale_y / 100, taper_y / 100) if offset else 0.0,
        _clamped(shape.path_taper_x, -100, 100) / 100,
        taper_y / 100,
        revolution_steps,
        _clamped_skew(_clamped(shape.path_skew, -95, 95) / 100, scale_x / 100, revolution_steps),
    )


def _clamped(value: int, lowest: int, highest: int) -> int:
    return max(lowest, min(value, highest))


def _clamped_cut(begin: int, end: int) -> tuple[int, int]:
    """Clamp begin and end of a profile or path."""
    end = _clamped(end, SMALLEST_CUT, CUT_STEPS)
    return min(_clamped(begin, 0, CUT_STEPS - SMALLEST_CUT), end - SMALLEST_CUT), end


def _shear(byte: int) -> float:
    """Decode a shear, whose byte is stored with or without a sign."""
    return _clamped((byte + 128 & 0xFF) - 128, -50, 50) / 100


def _clamped_offset(offset: float, scale: float, taper: float) -> float:
    """Clamp the radius offset, so that the path does not reach the axis. ``scale`` is at most 0.5."""
    narrowing = 0.0 if offset * taper < 0 else abs(taper)
    largest = 1 - scale * (1 - narrowing) / (1 - scale)
    return max(-largest, min(offset, largest))


def _clamped_skew(skew: float, scale: float, revolution_steps: int) -> float:
    """Return the skew, large enough that several revolutions do not touch each other."""
    if not revolution_steps:
        return skew
    smallest = 1 - 1 / ((1 + 0.015 * revolution_steps) * scale + 1)
    if abs(skew) >= smallest:
        return skew
    return -smallest if skew < 0 else smallest
