"""The face of a sculpt, a grid of points: the colours of a picture (docs/formats/opensim_archives.md, Sculpts)."""

from math import isqrt

import numpy as np
import numpy.typing as npt

from ...core.errors import FormatError
from .prim_faces import add_seam, grid_faces, unit_normals
from .prims import ShapeFace

SPHERE, TORUS, PLANE, CYLINDER = 1, 2, 3, 4
"""Ways to stitch the edges of a sculpt."""
KIND_MASK, INVERTED, MIRRORED = 0x07, 0x40, 0x80
"""Bits of the type of a sculpt."""

MOST_PIXELS = 2048
"""Largest side of a map."""
_MOST_CELLS = 1024


def sculpt_face(pixels: npt.NDArray[np.uint8], sculpt_type: int) -> ShapeFace:
    """Build the only face of a sculpt.

    Parameters
    ----------
    pixels:
        (height, width, components) with at least red, green and blue; rows from the bottom, not colour managed.
    sculpt_type:
        The whole byte: kind and flags. Every kind but sphere, torus and cylinder is stitched like a plane, as that of
        sculpts with type 0; other bits are ignored.

    Returns
    -------
    ShapeFace
        Its points are those of the whole grid, row by row, also those at poles of which most have no triangles.

    Raises
    ------
    FormatError
        The map has less than three components, no pixels or more than 2,048 on a side.
    """
    height, width, components = pixels.shape
    if components < 3:
        raise FormatError("The map of the sculpt has {} of the three components red, green and blue", components)
    if min(height, width) < 1 or max(height, width) > MOST_PIXELS:
        raise FormatError(
            "The map of the sculpt has {:,} × {:,} pixels; 1 to {:,} are allowed on a side", width, height, MOST_PIXELS
        )
    kind = sculpt_type & KIND_MASK
    is_mirrored = bool(sculpt_type & MIRRORED)
    is_reversed = bool(sculpt_type & INVERTED) != is_mirrored

    in_column, in_row = _cells(width, height)
    row_positions, columns = _row_positions(in_column), _column_count(in_row)
    x, y = _pixel_indices(len(row_positions), columns, width, height, kind)
    u = np.arange(columns) / (columns - 1)
    if is_reversed:
        x, u = x[:, ::-1], 1 - u
    points = pixels[y, x, :3] / 255 - 0.5
    if is_mirrored:
        points[..., 0] *= -1
    uvs = np.empty((*x.shape, 2))
    uvs[..., 0] = u
    uvs[..., 1] = row_positions[:, None]

    triangles, sums = grid_faces(points)
    if kind == SPHERE:
        for row in (sums[0], sums[-1]):
            row[:] = row.sum(axis=0)
    if kind in (SPHERE, TORUS, CYLINDER):
        add_seam(sums[:, 0], sums[:, -1])
    if kind == TORUS:
        add_seam(sums[0], sums[-1])
    return ShapeFace("sculpt", points.reshape(-1, 3), uvs.reshape(-1, 2), unit_normals(sums.reshape(-1, 3)), triangles)


def _cells(width: int, height: int) -> tuple[int, int]:
    """Return the numbers of cells in a column and in a row of the grid for a map."""
    cells = min(_MOST_CELLS, width * height // 4) or _MOST_CELLS
    in_column = max(4, isqrt(cells * height // width))
    in_row = max(4, cells // in_column)
    return max(1, cells // in_row), in_row


def _steps_below_one(cells: int) -> npt.NDArray[np.float32]:
    """Return the multiples of 1 / cells below 1, added up in single precision, which may give one more than exact."""
    step = np.float32(1) / np.float32(cells)
    steps = np.full(cells + 2, step)
    steps[0] = 0
    positions = np.add.accumulate(steps)
    return positions[positions < 1]


def _row_positions(cells: int) -> npt.NDArray[np.float32]:
    return np.append(_steps_below_one(cells), np.float32(1))


def _column_count(cells: int) -> int:
    """Return the number of columns. A last one that is at most 0.0001 of a cell past the one before is left out."""
    positions = _steps_below_one(cells)
    return len(positions) + int((1 - positions[-1]) * np.float32(cells) > 1e-4)


def _pixel_indices(
    rows: int, columns: int, width: int, height: int, kind: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the pixel of each point of the grid as x and y, each (rows, columns)."""
    x = _scaled(columns, width)
    y = _scaled(rows, height)
    x[x == width] = width - 1 if kind not in (SPHERE, TORUS, CYLINDER) else 0
    is_pole = (y == 0) | (y == height) if kind == SPHERE else np.zeros(rows, bool)
    y[y == height] = 0 if kind == TORUS else height - 1
    return np.where(is_pole[:, None], width // 2, x), np.broadcast_to(y[:, None], (rows, columns))


def _scaled(count: int, pixels: int) -> npt.NDArray[np.intp]:
    """Return the pixels of ``count`` evenly spaced points, which end past the last one, in single precision."""
    return (np.arange(count, dtype=np.float32) / np.float32(count - 1) * np.float32(pixels)).astype(np.intp)
