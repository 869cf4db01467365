"""Generate ``tunic.llmesh``: a small rigged garment for trying Meshferry out.

    .venv/bin/python examples/make_tunic.py [folder]

A tunic for Second Life's avatar: a body open at neck and hem, two sleeves open at the wrists, two materials (cloth and
trim), four levels of detail, three hulls for physics, and weights to eight bones and one collision volume, so that it
follows both the skeleton and the belly slider.

Everything is built in the avatar's space (metres, X forward, Y to the left, origin on the ground between the feet) and
then turned so that it faces Blender's front view. Coordinates are rounded, so that every run on every machine makes the
same model.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from meshferry.io_formats.api import write_scene
from meshferry.io_formats.core.scene import Layer, Mesh, Node, Role, Scene, Skeleton
from meshferry.io_formats.passes.join_meshes import join
from meshferry.io_formats.second_life.asset.format import SECOND_LIFE_MESH
from meshferry.io_formats.second_life.avatar import skeletons

Floats = npt.NDArray[np.float64]

MATERIALS = ["cloth", "trim"]
SIDES = (28, 14, 8, 4)
"""Number of sides of the tubes in each level of detail, the finest first."""
STEPS = (3, 1, 1, 1)
"""Number of bands between two rings of the profile in each level; the first and the last band are not divided."""
STRIDES = (1, 1, 2, 4)
"""Each level uses every n-th ring of the profile, and always the two rings at each end, which bound the trim."""

BODY = (
    # height, half width (Y), half depth (X), centre forward
    (0.900, 0.205, 0.165, 0.000),
    (0.930, 0.203, 0.163, 0.000),
    (1.060, 0.190, 0.150, 0.004),
    (1.180, 0.165, 0.130, 0.008),
    (1.320, 0.180, 0.140, 0.006),
    (1.440, 0.192, 0.142, -0.005),
    (1.550, 0.188, 0.122, -0.020),
    (1.612, 0.098, 0.088, -0.025),
    (1.622, 0.090, 0.082, -0.025),
)
SLEEVE = (
    # distance from the middle (Y), radius
    (0.135, 0.066),  # inside of the body's shoulder
    (0.200, 0.084),
    (0.320, 0.068),
    (0.412, 0.060),
    (0.520, 0.055),
    (0.575, 0.053),
    (0.590, 0.053),
)
SHOULDER_HEIGHT = 1.515
ARM_FORWARD = -0.036
SPINE = (("mPelvis", 1.000), ("mTorso", 1.200), ("mChest", 1.420), ("mNeck", 1.600))
ARM = (("mCollar", 0.110), ("mShoulder", 0.230), ("mElbow", 0.480))
BELLY = "BELLY"


def rings(profile: tuple[tuple[float, ...], ...], level: int) -> Floats:
    """Return the rings of a level: those of the profile according to ``STRIDES``, with ``STEPS`` bands between them."""
    rows, steps = np.array(profile), STEPS[level]
    rows = np.concatenate((rows[:1], rows[1 : -2 : STRIDES[level]], rows[-2:]))
    parts = [
        rows[i] + (rows[i + 1] - rows[i]) * np.arange(count)[:, None] / count
        for i in range(len(rows) - 1)
        for count in [1 if i in (0, len(rows) - 2) else steps]
    ]
    return np.concatenate([*parts, rows[-1:]])


def tube(places: Floats, sides: int, *, is_inside_out: bool = False) -> Mesh:
    """Make an open tube from rings of points, (R, sides, 3), each counter-clockwise as seen from the next ring.

    The first and the last band are trim, the rest cloth.
    """
    count = len(places)
    ring, side = (grid.ravel() for grid in np.meshgrid(np.arange(count - 1), np.arange(sides), indexing="ij"))
    after = (side + 1) % sides
    quads = np.stack([ring * sides + side, ring * sides + after, (ring + 1) * sides + after, (ring + 1) * sides + side])
    uv_quads = np.stack([ring * (sides + 1) + side, ring * (sides + 1) + side + 1])
    uv_quads = np.concatenate([uv_quads, uv_quads[::-1] + sides + 1])
    if is_inside_out:
        quads, uv_quads = quads[::-1], uv_quads[::-1]
    corners = quads[[0, 1, 2, 0, 2, 3]].T.ravel().astype(np.int32)
    uv_corners = uv_quads[[0, 1, 2, 0, 2, 3]].T.ravel().astype(np.int32)
    along, around = np.meshgrid(np.linspace(0, 1, count), np.linspace(0, 1, sides + 1), indexing="ij")
    points = places.reshape(-1, 3)
    slots = np.repeat(np.isin(ring, (0, count - 2)).astype(np.int32), 2)
    return Mesh(
        _turned(points),
        corners,
        slots,
        list(MATERIALS),
        normal=Layer("Normal", _normals(points, corners)),
        uvs=[Layer("UVMap", _rounded(np.column_stack((around.ravel(), along.ravel()))), uv_corners)],
    )


def _normals(points: Floats, corners: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    """Return smooth normals of points, in Blender's space."""
    triangles = points[corners.reshape(-1, 3)]
    faces = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    summed = np.zeros_like(points)
    np.add.at(summed, corners, np.repeat(faces, 3, axis=0))
    return _turned(summed / np.linalg.norm(summed, axis=1, keepdims=True))


def _turned(values: Floats) -> npt.NDArray[np.float32]:
    """Rotate from the avatar's space (X forward) to Blender's (-Y forward)."""
    return _rounded(np.column_stack((values[:, 1], -values[:, 0], values[:, 2])))


def _rounded(values: Floats) -> npt.NDArray[np.float32]:
    return (np.rint(values * 65536) / 65536).astype(np.float32)


def body(level: int) -> tuple[Mesh, Floats]:
    """Return the body of one level and its points in the avatar's space."""
    profile = rings(BODY, level)
    angle = np.arange(SIDES[level]) * (2 * math.pi / SIDES[level])
    height, half_width, half_depth, forward = (column[:, None] for column in profile.T)
    points = np.stack(
        np.broadcast_arrays(forward + half_depth * np.cos(angle), half_width * np.sin(angle), height), axis=2
    )
    return tube(points, SIDES[level]), points.reshape(-1, 3)


def sleeve(level: int, side: int) -> tuple[Mesh, Floats]:
    """Return a sleeve of one level, the left one for ``side`` 1, and its points in the avatar's space."""
    profile = rings(SLEEVE, level)
    angle = np.arange(SIDES[level]) * (2 * math.pi / SIDES[level])
    away, radius = (column[:, None] for column in profile.T)
    points = np.stack(
        np.broadcast_arrays(
            ARM_FORWARD + radius * np.sin(angle), side * away, SHOULDER_HEIGHT + radius * np.cos(angle)
        ),
        axis=2,
    )
    return tube(points, SIDES[level], is_inside_out=side < 0), points.reshape(-1, 3)


def shares(place: Floats, chain: tuple[tuple[str, float], ...]) -> list[tuple[str, Floats]]:
    """Return the weights of each joint of a chain for points at ``place`` along it, interpolated linearly."""
    knots = [knot for _name, knot in chain]
    return [(name, np.interp(place, knots, np.identity(len(chain))[number])) for number, (name, _) in enumerate(chain)]


def weighted(mesh: Mesh, moved_by: list[tuple[str, Floats]], names: list[str]) -> Mesh:
    """Set the joint weights of a mesh: for each point the four largest of ``moved_by``, with a sum of 1."""
    table = np.zeros((len(mesh.points), len(names)))
    for name, share in moved_by:
        table[:, names.index(name)] += share
    strongest = np.argsort(-table, axis=1, kind="stable")[:, :4]
    weights = np.take_along_axis(table, strongest, axis=1)
    mesh.joint_indices = strongest.astype(np.int32)
    mesh.joint_weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return mesh


def garment(level: int, names: list[str]) -> Mesh:
    """Return one level of detail."""
    mesh, points = body(level)
    moved_by = shares(points[:, 2], SPINE)
    # The front of the body follows the belly slider.
    front = np.clip(points[:, 0] / 0.12, 0, 1) * np.exp(-(((points[:, 2] - 1.19) / 0.09) ** 2))
    parts = [weighted(mesh, [(name, share * (1 - 0.6 * front)) for name, share in moved_by] + [(BELLY, 0.6 * front)],
                      names)]  # fmt: skip
    for side, label in ((1, "Left"), (-1, "Right")):
        mesh, points = sleeve(level, side)
        chain = tuple((f"{name}{label}", place) for name, place in ARM)
        parts.append(weighted(mesh, shares(side * points[:, 1], chain), names))
    return join(parts)


def hull(least: tuple[float, float, float], most: tuple[float, float, float]) -> Mesh:
    """Return a box in the avatar's space."""
    corner = np.array([[(most if number >> axis & 1 else least)[axis] for axis in range(3)] for number in range(8)])
    sides = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))
    corners = np.array([(a, b, c, a, c, d) for a, b, c, d in sides], np.int32).ravel()
    return Mesh(_turned(corner), corners, np.zeros(len(corners) // 3, np.int32))


def tunic() -> Scene:
    """Return the model with all its levels and hulls."""
    skeleton: Skeleton = skeletons.avatar_skeleton()
    names = [joint.name for joint in skeleton.joints]
    scene = Scene("tunic", skeletons=[skeleton])
    for level in range(4):
        node = Node("tunic", mesh=garment(level, names), skeleton=0, lod=level)
        if level:
            node.lod_of = 0
        scene.nodes.append(node)
    boxes = [((-0.14, -0.18, 0.90), (0.15, 0.18, 1.62))]
    boxes += [((-0.12, min(0.13 * s, 0.59 * s), 1.44), (0.05, max(0.13 * s, 0.59 * s), 1.59)) for s in (1, -1)]
    for box in boxes:
        scene.nodes.append(Node("tunic", mesh=hull(*box), role=Role.HULL, shape_of=0))
    return scene


def main(folder: Path) -> None:
    """Write the file."""
    for text in write_scene(tunic(), folder / "tunic.llmesh", SECOND_LIFE_MESH):
        print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
