"""Levels and physics shapes that linked duplicates share."""

from __future__ import annotations

import bpy
import numpy as np
import numpy.typing as npt

from .model_objects import linked_duplicates
from .object_spaces import ObjectSpaces

Matrix4 = npt.NDArray[np.float64]

_SAME = 1e-5
"""Largest difference of equal axes, relative to their largest entry."""


class SharedParts:
    """Finds for which of several linked duplicates a level or a physics shape was modelled."""

    def __init__(self, spaces: ObjectSpaces) -> None:
        self.spaces = spaces
        self._duplicates: dict[tuple[bpy.types.ID | None, bpy.types.Object], list[bpy.types.Object]] = {}
        """By data of finest objects and part: the objects that share both."""

    def is_of_another(self, part: bpy.types.Object, owner: bpy.types.Object, place: Matrix4, finest: Matrix4) -> bool:
        """Return whether a part was modelled for a linked duplicate of its owner, which has its rotation and scale.

        Duplicating an object also duplicates its pointers to levels and physics, but not these.

        Parameters
        ----------
        place, finest:
            (4, 4) transforms of the part and of its owner.
        """
        if _same_axes(place, finest):
            return False
        if (owner.data, part) not in self._duplicates:
            self._duplicates[owner.data, part] = linked_duplicates(owner, part)
        return any(_same_axes(self.spaces.world(other), place) for other in self._duplicates[owner.data, part])


def _same_axes(a: Matrix4, b: Matrix4) -> bool:
    """Return whether two transforms have the same rotation and scale."""
    return bool(np.allclose(a[:3, :3], b[:3, :3], rtol=0, atol=_SAME * max(np.abs(b[:3, :3]).max(), 1e-12)))
