"""Trees given by the index of each element's parent: order, cycles, world matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .transforms import Floats, matrix_of_transform

if TYPE_CHECKING:
    from ..core.scene import Joint, Node


def parents_first(parents: Sequence[int]) -> list[int]:
    """Return the indices so that each comes after its parent (negative: a root); elements in a cycle count as roots."""
    order: list[int] = []
    is_passed = [False] * len(parents)
    for start in range(len(parents)):
        path = []
        index = start
        while index >= 0 and not is_passed[index]:
            is_passed[index] = True
            path.append(index)
            index = parents[index]
        order += reversed(path)
    return order


def own_ancestor(parents: Sequence[int]) -> int:
    """Return the first element that is its own ancestor, or -1."""
    is_passed = [False] * len(parents)
    for index in parents_first(parents):
        if parents[index] >= 0 and not is_passed[parents[index]]:
            return parents[index]
        is_passed[index] = True
    return -1


def world_matrices(local: Floats, parents: Sequence[int]) -> Floats:
    """Multiply local matrices (J, …, 4, 4) down the chains of parents (negative: a root); scales multiply, too.

    Products of extreme scales overflow to infinity without an error.
    """
    world = local.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for index in parents_first(parents):
            if parents[index] >= 0:
                world[index] = world[parents[index]] @ local[index]
    return world


def local_matrices(parts: Sequence[Joint | Node]) -> Floats:
    """Return the matrices of nodes or joints relative to their parents, (J, 4, 4)."""
    local = [matrix_of_transform(part.translation, part.rotation, part.scale) for part in parts]
    return np.array(local).reshape(-1, 4, 4)


def placed_matrices(parts: Sequence[Joint | Node]) -> Floats:
    """Return the matrices of nodes or joints in the space of the roots, (J, 4, 4)."""
    return world_matrices(local_matrices(parts), [part.parent for part in parts])
