"""A box, of which the files are made that the tests of the command line convert."""

from __future__ import annotations

from typing import Any

import numpy as np


def make_box(materials: list[str]) -> Any:
    """Return a box of 8 points and 12 triangles without UVs, its triangles dealt out to the materials."""
    from meshferry.io_formats.core.scene import Layer, Mesh

    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float32)
    triangles = [
        [0, 1, 3, 0, 3, 2],
        [4, 6, 7, 4, 7, 5],
        [0, 4, 5, 0, 5, 1],
        [2, 3, 7, 2, 7, 6],
        [0, 2, 6, 0, 6, 4],
        [1, 5, 7, 1, 7, 3],
    ]
    return Mesh(
        points=corners,
        corner_point=np.array(triangles, np.int32).ravel(),
        material_index=(np.arange(12) % len(materials)).astype(np.int32),
        materials=materials,
        normal=Layer("normal", (corners / np.sqrt(3)).astype(np.float32)),
    )
