"""The shapes of parts that are not mesh assets, and the faces of which they consist."""

from __future__ import annotations

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
