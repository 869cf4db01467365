"""Objects as MeshSerializer2 files, and what the tests compare."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mesh_serializer_made as made
import numpy as np
import round_trips


def exported(*objects: Any, **options: Any) -> SimpleNamespace:
    """Export objects to one file; return what it holds, and the warnings."""
    from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER

    data, said = round_trips.exported(MESH_SERIALIZER, *objects, **options)
    return SimpleNamespace(stored=made.unpack(data), said=said, data=data)


def to_file(points: Any) -> Any:
    """Return points or directions of Blender in the file's axes (section 3)."""
    x, y, z = np.asarray(points, np.float64).T
    return np.stack((-x, z, -y), axis=-1)


def corners_of(stored: made.Stored) -> Any:
    return stored.points[stored.triangles]
