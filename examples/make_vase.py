"""Generate ``vase.data``: a small mesh with tangents for trying Meshferry out.

    .venv/bin/python examples/make_vase.py [folder]

A vase of 0.4 m with two handles, that holds all a MeshSerializer2 file can hold: hard and smooth edges, one UV map with
seams, and the tangents that a normal map needs, of which the one handle's are mirrored.

Everything is built in Blender's space; the handles are to the left and right. Coordinates are rounded, so that every
run on every machine makes the same model.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshferry.io_formats.passes.join_meshes import join

Floats = npt.NDArray[np.float64]

SIDES = 28
PROFILES = (
    ((0.0, 0.0), (0.05, 0.0)),
    ((0.05, 0.0), (0.062, 0.012), (0.05, 0.024)),
    (
        *((0.05, 0.024), (0.075, 0.05), (0.105, 0.09), (0.124, 0.14), (0.128, 0.19), (0.115, 0.24), (0.088, 0.28)),
        *((0.062, 0.315), (0.052, 0.345), (0.055, 0.372), (0.07, 0.392)),
    ),
    ((0.07, 0.392), (0.076, 0.4), (0.07, 0.402), (0.062, 0.396)),
    ((0.062, 0.396), (0.047, 0.37), (0.044, 0.345), (0.053, 0.315), (0.07, 0.29)),
    ((0.07, 0.29), (0.0, 0.29)),
)
"""Radius and height along the outline, from the bottom to the inside, in metres. Edges between profiles are hard."""
HANDLE = ((0.048, 0.352), (0.095, 0.365), (0.135, 0.345), (0.152, 0.3), (0.142, 0.25), (0.108, 0.215))
"""Distance from the axis and height along the centre line of a handle, in metres."""
THICKNESS, ROUND = 0.011, 10
STEPS = 3
"""Number of rings from one point of ``HANDLE`` to the next."""


def turned(profile: tuple[tuple[float, float], ...], first: float, last: float) -> Mesh:
    """Make a surface of revolution about Z; V goes from ``first`` to ``last`` along the profile, U once around."""
    outline = np.array(profile)
    along = np.gradient(outline, axis=0)
    across = np.column_stack((along[:, 1], -along[:, 0]))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    angle = np.linspace(0, 2 * math.pi, SIDES + 1)
    around = np.column_stack((np.cos(angle), np.sin(angle)))
    length = np.concatenate(([0], np.cumsum(np.linalg.norm(np.diff(outline, axis=0), axis=1))))
    v = first + (last - first) * length / length[-1]
    return _sheet(
        _spun(outline, around),
        _spun(across, around),
        np.stack(np.broadcast_arrays(angle / (2 * math.pi), v[:, None]), axis=2),
    )


def _spun(rows: Floats, around: Floats) -> Floats:
    """Rotate rows of (radius, height) to all angles, (n, SIDES + 1, 3)."""
    spun = np.empty((len(rows), len(around), 3))
    spun[..., :2] = rows[:, None, :1] * around
    spun[..., 2] = rows[:, 1:]
    return spun


def handle(side: float) -> Mesh:
    """Return the handle on side 1 or -1, a bent tube; the UV map of side -1 is mirrored."""
    middle = _smooth(np.array(HANDLE))
    along = np.gradient(middle, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    out = np.column_stack((along[:, 1], -along[:, 0]))
    turn = np.linspace(0, 1, ROUND + 1)
    cosine, sine = np.cos(2 * math.pi * turn), side * np.sin(2 * math.pi * turn)
    normals = np.stack(np.broadcast_arrays(cosine * out[:, :1], sine, cosine * out[:, 1:]), axis=2)
    centres = np.stack((middle[:, 0], np.zeros(len(middle)), middle[:, 1]), axis=1)[:, None]
    uv = np.stack(np.broadcast_arrays(side * turn, np.linspace(0, 1, len(middle))[:, None]), axis=2)
    points = centres + THICKNESS * normals
    return _sheet(points * (side, 1, 1), normals * (side, 1, 1), uv)


def _smooth(points: Floats) -> Floats:
    """Return a Catmull-Rom curve through points, with ``STEPS`` segments between two of them."""
    ends = np.concatenate((2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]))
    t = (np.arange(STEPS * (len(points) - 1) + 1) / STEPS)[:, None]
    piece = np.minimum(t.astype(int), len(points) - 2).ravel()
    t = t - piece[:, None]
    a, b, c, d = (ends[piece + k] for k in range(4))
    curve: Floats = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return curve


def _sheet(points: Floats, normals: Floats, uv: Floats) -> Mesh:
    """Return the mesh of a grid of points, (rows, columns, 3), without triangles of zero area."""
    rows, columns = points.shape[:2]
    a = (np.arange(columns - 1) + columns * np.arange(rows - 1)[:, None]).ravel()
    b, c, d = a + 1, a + columns + 1, a + columns
    triangles = np.concatenate((np.stack((a, b, c), axis=1), np.stack((a, c, d), axis=1)))
    flat = _rounded(points.reshape(-1, 3))
    corners = flat[triangles].astype(np.float64)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    triangles = triangles[area > 1e-9].astype(np.int32)
    used, index = np.unique(triangles, return_inverse=True)
    return Mesh(
        flat[used],
        index.reshape(-1).astype(np.int32),
        np.zeros(len(triangles), np.int32),
        [""],
        Layer("normal", _rounded(normals.reshape(-1, 3))[used]),
        uvs=[Layer("UVMap", _rounded(uv.reshape(-1, 2))[used])],
    )


def _rounded(values: Floats) -> npt.NDArray[np.float32]:
    return (np.rint(values * 65536) / 65536).astype(np.float32)


def vase() -> Scene:
    """Return the whole model."""
    ends = np.linspace(0, 1, len(PROFILES) + 1)
    parts = [turned(profile, *ends[number : number + 2]) for number, profile in enumerate(PROFILES)]
    return Scene("vase", [Node("vase", mesh=join([*parts, handle(1.0), handle(-1.0)]))])


def main(folder: Path) -> None:
    """Write the file."""
    for text in write_scene(vase(), folder / "vase.data", MESH_SERIALIZER, {"mesh_tangents": "ALWAYS"}):
        print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
