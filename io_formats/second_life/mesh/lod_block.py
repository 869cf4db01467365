"""Blocks of triangles <-> arrays: levels of detail and the physics mesh (formats page, sections 3 and 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.uint16]
Reals = npt.NDArray[np.float64]


@dataclass
class Face:
    """One face of a level, still quantised: V vertices, T triangles."""

    positions: Integers
    """(V, 3)."""
    position_domain: Reals
    """(2, 3): least, most; numbers of single precision."""
    triangles: Integers
    """(T, 3), counter-clockwise, all below V."""
    normals: Integers | None = None
    """(V, 3) over -1 to 1."""
    uvs: Integers | None = None
    """(V, 2), v upwards."""
    uv_domain: Reals | None = None
    """(2, 2)."""
    joint_indices: npt.NDArray[np.uint8] | None = None
    """(V, 4) into the skin's joint names; the first ``influences`` count."""
    joint_weights: Integers | None = None
    """(V, 4); slots that do not count are 0."""
    influences: npt.NDArray[np.uint8] | None = None
    """(V,) 0 to 4."""
    normalized_scale: tuple[float, float, float] | None = None
    no_geometry: bool = False
    """The face has nothing in this level; all arrays are empty."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Keys that nobody knows."""
