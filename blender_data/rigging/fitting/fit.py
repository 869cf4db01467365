"""Whether clothes lie inside of the body that they are fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import bpy
import numpy as np
import numpy.typing as npt

from ..weighted_surfaces import surface_of
from .as_shown import shown_points

DEEPEST = 0.1
"""Distance in metres from the surface up to which a point may be inside: farther ones are of openings of the body."""
_ON = 1e-4
"""Distance in metres below the surface up to which a point counts as on it."""


def vertices_inside(
    clothes: Sequence[bpy.types.Object], body: Sequence[bpy.types.Object]
) -> dict[bpy.types.Object, npt.NDArray[np.bool_]]:
    """Return which vertices of clothes, (V,), are inside of a body, all of them as armatures show them now."""
    surface = surface_of(body, shown_points)
    found = {}
    for obj in clothes:
        depth = surface.depth_of(shown_points(obj))
        found[obj] = (depth > _ON) & (depth < DEEPEST)
    return found
