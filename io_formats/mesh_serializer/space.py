"""The file's coordinate system, and value ranges in it (docs/formats/mesh_serializer.md, section 3)."""

from __future__ import annotations

import numpy as np

from ..core.scene import AnyArray, FloatArray
from ..geometry.transforms import Basis

_TO_BLENDER = {
    "UNITY": Basis(order=(0, 2, 1), signs=(-1, -1, 1)),
    "SWAP_YZ": Basis(order=(0, 2, 1), signs=(1, 1, 1)),
}
"""By the value of the option ``axes``. Both mirror, so winding and bitangent signs are flipped."""


def to_blender(choice: str) -> Basis:
    """Return the conversion from the file's axes to Blender's."""
    return _TO_BLENDER[choice]


def interleave_range(domain: FloatArray) -> FloatArray:
    """Return a range (2, k), minimum and maximum, in the order of the file: (2 k,) minimum and maximum of each axis."""
    return np.ascontiguousarray(domain.T, np.float32).reshape(-1)


def domain_of(bounds: AnyArray) -> FloatArray:
    """Return a file's bounds (2 k,) as a range (2, k), minimum and maximum."""
    return np.ascontiguousarray(np.asarray(bounds, np.float32).reshape(-1, 2).T)


def turned_domain(domain: FloatArray, basis: Basis) -> FloatArray:
    """Return a range (2, 3) of points in other axes, exactly; negated axes exchange minimum and maximum."""
    least, most = basis.vectors(domain)
    back = np.array(basis.signs) < 0
    return np.stack((np.where(back, most, least), np.where(back, least, most)))
