"""MeshSerializer2 files taken apart, a box as a file, and their comparison, for tests that must not trust our own code.

``struct`` and NumPy alone; what is here follows the layout of the format page's section 1 and nothing else.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from meshfuzz.mesh_serializer_seeds import NORMALS, TANGENTS, UVS, Stored


def unpack(data: bytes) -> Stored:
    """Return what the bytes of a file with vertices hold."""
    vertices, triangles, bits = struct.unpack_from("<HHB", data)
    place = 5

    def take(count: int, width: int, kind: str) -> Any:
        nonlocal place
        values = np.frombuffer(data, kind, count * width, place).reshape(count, width)
        place += values.nbytes
        return values

    bounds = take(3, 2, "<f4")
    positions = take(vertices, 3, "<u2")
    normals = take(vertices, 3, "u1") if bits & NORMALS else None
    tangents = take(vertices, 4, "u1") if bits & TANGENTS else None
    uv_bounds = take(2, 2, "<f4") if bits & UVS else None
    uvs = take(vertices, 2, "<u2") if bits & UVS else None
    indices = take(triangles, 3, "<u2")
    assert place == len(data), f"{len(data) - place} bytes are left"
    return Stored(bounds, positions, indices, normals, tangents, uv_bounds, uvs)


def crate(size: tuple[float, float, float] = (2.0, 1.0, 4.0), *, tangents: bool = False) -> Stored:
    """Return a box of this size in Unity's axes, its bottom on the ground: 24 vertices, 12 triangles, each side's UVs.

    It is made as the wiki's writer does: in Unity, front faces are wound so that the cross product of their edges
    points outwards in left-handed axes.
    """
    corners, normals, sides, uvs = [], [], [], []
    for axis in range(3):
        for sign in (0, 1):
            first = len(corners)
            for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
                place = [0, 0, 0]
                place[axis], place[(axis + 1) % 3], place[(axis + 2) % 3] = sign, u, v
                corners.append(place)
                uvs.append((u, v))
                normal = [128, 128, 128]
                normal[axis] = 255 if sign else 1
                normals.append(normal)
            turn = (0, 1, 2, 0, 2, 3) if sign else (2, 1, 0, 3, 2, 0)
            sides.append([first + corner for corner in turn])
    half = np.array(size) / 2
    bounds = np.stack(([-half[0], 0, -half[2]], [half[0], size[1], half[2]]), axis=1).astype(np.float32)
    made = Stored(
        bounds,
        np.array(corners, np.uint16) * 65535,
        np.array(sides, np.uint16).reshape(-1, 3),
        np.array(normals, np.uint8),
        None,
        np.array([[0, 1], [0, 1]], np.float32),
        np.array(uvs, np.uint16) * 65535,
    )
    if tangents:
        along = np.full((24, 4), 128, np.uint8)
        along[np.arange(24), np.repeat((1, 2, 0), 8)] = 255
        along[:, 3] = np.where(np.arange(24) % 8 < 4, 1, 255)
        made.tangents = along
    return made


def assert_same(before: Stored, after: Stored) -> int:
    """See that two files hold the same triangles, stored alike; return how many vertices have other directions.

    Where Blender has no exact normals (before 4.5), its tangent space may change them: few at all, by 3 steps at most;
    those of triangles without area, or back to back on the same vertices, by more.
    """
    np.testing.assert_array_equal(before.bounds, after.bounds)
    np.testing.assert_array_equal(before.proper, after.triangles)
    np.testing.assert_array_equal(before.positions, after.positions)
    assert (before.uvs is None) == (after.uvs is None)
    if before.uvs is not None:
        np.testing.assert_array_equal(before.uv_bounds, after.uv_bounds)
        np.testing.assert_array_equal(before.uvs, after.uvs)
    assert (before.normals is None, before.tangents is None) == (after.normals is None, after.tangents is None)
    steps = np.abs(before.normals.astype(int) - after.normals.astype(int)).max(axis=1)
    differ = steps > 0
    corners = before.points[before.triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    _, same, often = np.unique(np.sort(before.triangles, axis=1), axis=0, return_inverse=True, return_counts=True)
    is_plain = np.ones(len(steps), bool)
    is_plain[before.triangles[(areas < 1e-9) | (often[same.reshape(-1)] > 1)]] = False
    assert steps[is_plain].max(initial=0) <= 3
    if before.tangents is not None:
        np.testing.assert_array_equal(before.tangents[~differ], after.tangents[~differ])
    return int(np.count_nonzero(differ))
