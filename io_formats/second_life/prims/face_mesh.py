"""The faces of a prim or sculpt as one mesh of the neutral scene."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.scene import Layer, Mesh
from .shape import ShapeFace

UV_NAME = "UVMap"
_STEPS = 2**24
"""Points are moved to multiples of 1 / this, which float32 holds exactly up to 1, so that points of several faces are
equal if they only differ by rounding."""


def mesh_of(faces: Sequence[ShapeFace], name: str) -> Mesh:
    """Return a mesh with the faces of a shape, in the unit cube.

    Its material slots are the numbers of all faces, "0", "1" and so on, also of those without triangles. Faces do not
    share points; points without triangles are left out. Normals and UVs are those of the points.
    """
    offsets = np.cumsum([0, *(len(face.points) for face in faces)])
    triangles = np.concatenate([face.triangles + offset for face, offset in zip(faces, offsets, strict=False)])
    is_used = np.zeros(offsets[-1], bool)
    is_used[triangles] = True
    new_index = np.cumsum(is_used, dtype=np.int32) - 1
    points = np.concatenate([face.points for face in faces])[is_used]
    normals = np.concatenate([face.normals for face in faces])[is_used]
    uvs = np.concatenate([face.uvs for face in faces])[is_used]
    counts = [len(face.triangles) for face in faces]
    return Mesh(
        # Adding 0 makes -0 equal to 0 in every comparison.
        points=(np.round(points * _STEPS) / _STEPS + 0.0).astype(np.float32),
        corner_point=new_index[triangles.reshape(-1)].astype(np.int32),
        material_index=np.repeat(np.arange(len(faces), dtype=np.int32), counts),
        materials=[str(number) for number in range(len(faces))],
        normal=Layer("normal", normals.astype(np.float32)),
        uvs=[Layer(UV_NAME, uvs.astype(np.float32))],
        name=name,
    )
