"""Cells of a building and its entrance (docs/formats/timberborn_blueprints.md, section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .document import Members, child_of
from .numbers import Numbers, whole_number

SPEC = "BlockObjectSpec"
_MOST_CELLS = 100_000
_FREE = {"", "none", "0"}
"""Occupations of cells that are free."""

Cell = tuple[int, int, int]
"""Grid coordinates: X to Blender's -X, Y to -Y, Z up."""


@dataclass(frozen=True, eq=False)
class Footprint:
    """The cells of a building."""

    size: Cell
    base_z: int
    """Number of layers below the ground."""
    cells: npt.NDArray[np.int64]
    """(n, 3) coordinates of the occupied cells. All cells are occupied if the number of cells in the file is wrong."""
    fits: bool
    """Whether the file has as many cells as the size needs."""
    entrance: Cell | None
    """The cell outside of the door."""

    def boxes(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lowest and highest corners (n, 3) of the occupied cells in Blender's space."""
        return _corners(self.cells, self.base_z)

    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the lowest and the highest corner (3,) of all cells in Blender's space."""
        low, high = _corners(np.array([[0, 0, 0], [side - 1 for side in self.size]]), self.base_z)
        return low.min(axis=0), high.max(axis=0)

    def location(self, cell: Cell, height: float = 0.5) -> tuple[float, float, float]:
        """Return a point above the middle of a cell's floor in Blender's space."""
        return -cell[0] - 0.5, -cell[1] - 0.5, cell[2] - self.base_z + height


def _corners(cells: npt.NDArray[np.int64], base_z: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    low = np.stack([-cells[:, 0] - 1, -cells[:, 1] - 1, cells[:, 2] - base_z], axis=1).astype(np.float64)
    return low, low + 1


def footprint_of(root: Members, numbers: Numbers) -> Footprint | None:
    """Return the footprint of a blueprint in either form, or None if it has none."""
    spec = child_of(root, SPEC)
    if spec is None:
        return None
    form = child_of(spec, "BlocksSpec") or spec
    blocks = form.get("Blocks", form.get("BlockSpecs"))
    if not isinstance(blocks, list) or child_of(form, "Size") is None:
        return None
    size = numbers.cell(form, "Size", f"/{SPEC}")
    count = size[0] * size[1] * size[2]
    if min(size) < 1 or count > _MOST_CELLS:
        return None
    fits = len(blocks) == count
    occupied = np.flatnonzero([is_occupied(block) for block in blocks] if fits else np.ones(count))
    if not len(occupied):
        occupied = np.arange(count)
    layer, rest = np.divmod(occupied, size[0] * size[1])
    row, column = np.divmod(rest, size[0])
    base_z = whole_number(numbers.number(spec.get("BaseZ"), 0.0, f"/{SPEC}/BaseZ"))
    return Footprint(size, base_z, np.stack([column, row, layer], axis=1), fits, _entrance(spec, numbers))


def is_occupied(block: Any) -> bool:
    """Return whether a cell of the file is occupied."""
    if not isinstance(block, dict):
        return False
    value = block.get("Occupations", block.get("LegacyOccupation", ""))
    return str(int(value) if isinstance(value, float) and value == value // 1 else value).strip().lower() not in _FREE


def _entrance(spec: Members, numbers: Numbers) -> Cell | None:
    entrance = child_of(spec, "Entrance") or {}
    if entrance.get("HasEntrance") is not True:
        return None
    return numbers.cell(entrance, "Coordinates", f"/{SPEC}/Entrance")
