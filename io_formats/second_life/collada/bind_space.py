"""From the space in which a file binds its joints to avatar space: one transform for all skins (section 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...geometry.transforms import Matrix, matrix_of_linear
from ..avatar import joints
from .document import Collada

_LEAST_UNIT = 3.0
"""Limit for scales due to the shape of an avatar, between 1/3 and this value. Other scales mean another unit."""
_NEAR = 0.02
"""Median distance of the joints from the avatar's, in metres, up to which no other transform is tried."""

_UP = {
    "X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)),
    "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
}
_QUARTER = np.array(((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)))
"""Rotation by 90° about Z, from a figure that faces -Y to the avatar, which faces +X."""


@dataclass
class BindSpace:
    """The transform from the bind space of a file to avatar space."""

    to_avatar: Matrix
    """(4, 4) from bind space to avatar space."""
    of_axes: Matrix
    """(4, 4): the factor of ``to_avatar`` that remains if the rotation and scale that align the joints' axes with the
    avatar's are left out; the identity for "bind"."""
    found_by: str = "bind"
    """"bind" if the transform follows from the bind matrices alone, as in the viewer. Otherwise the viewer shows the
    mesh turned or scaled: "asset" if unit and up axis are needed; either with ", facing -Y" if the figure faces -Y."""


def asset_matrix(document: Collada) -> Matrix:
    """Return the transform by unit and up axis of a file, (4, 4), to Blender's metres and axes."""
    return matrix_of_linear(np.array(_UP.get(document.up_axis, np.identity(3)), np.float64) * document.meter)


def bind_space(binds: Mapping[str, Matrix], asset: Matrix) -> BindSpace:
    """Return the transform from bind space to avatar space.

    Parameters
    ----------
    binds:
        (4, 4) bind matrices of joints by their name in the table.
    asset:
        Result of :func:`asset_matrix`. It is returned if the file has no known joints.
    """
    if not binds:
        return BindSpace(asset, np.identity(4), "asset")
    names = list(binds)
    bound = np.stack([binds[name] for name in names])
    expected = np.stack([joints.rest_matrices()[name] for name in names])
    turn, factor = _turn_and_factor(bound[:, :3, :3], expected[:, :3, :3])
    of_binds = matrix_of_linear(turn * factor)
    quarter = matrix_of_linear(_QUARTER)
    candidates = [
        BindSpace(of_binds, np.identity(4)),
        BindSpace(asset, asset @ matrix_of_linear(turn.T / factor), "asset"),
        BindSpace(quarter @ of_binds, quarter, "bind, facing -Y"),
        BindSpace(quarter @ asset, quarter @ asset @ matrix_of_linear(turn.T / factor), "asset, facing -Y"),
    ]
    heads = bound[:, :3, 3]
    apart = [
        float(np.median(np.linalg.norm(heads @ found.to_avatar[:3, :3].T - expected[:, :3, 3], axis=1)))
        for found in candidates
    ]
    nearest = int(np.argmin(apart))
    return candidates[nearest if apart[0] > _NEAR and apart[nearest] < apart[0] / 2 else 0]


def _turn_and_factor(bound: Matrix, expected: Matrix) -> tuple[Matrix, float]:
    """Return the rotation by multiples of 90°, (3, 3), and the scale that map the joints' axes to the expected ones."""
    lengths, usual = (np.linalg.norm(axes, axis=1) for axes in (bound, expected))
    axes, wanted = bound / lengths[:, None], expected / usual[:, None]
    turn = np.rint(np.median(axes @ np.swapaxes(wanted, 1, 2), axis=0)).T + 0.0
    if not np.array_equal(turn @ turn.T, np.identity(3)) or np.linalg.det(turn) < 0:
        turn = np.identity(3)
    scale = float(np.median(lengths / usual))
    return turn, 1.0 if 1 / _LEAST_UNIT <= scale <= _LEAST_UNIT else 1 / scale
