"""Scenes of models as they come out of Blender or a file: static and rigged, with levels and physics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import collada_oracle
import numpy as np
import numpy.typing as npt
from meshferry.io_formats.core import scene as sc

Matrix = npt.NDArray[np.float64]

FACING: dict[str, Matrix] = {
    # How the axes of the avatar (forward, left, up) lie in Blender where it faces each way.
    "-Y": np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.float64),
    "+X": np.identity(3),
    "+Y": np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.float64),
    "-X": np.array([[-1, 0, 0], [0, -1, 0], [0, 0, 1]], np.float64),
}


def box(size: Sequence[float] = (1.0, 1.0, 1.0), materials: Sequence[str] = ("wood", "stone")) -> sc.Mesh:
    """Return a box around the origin, flat normals a corner, shared UVs; sides take the materials in turns."""
    points = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * size
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    corners = np.array([corner for a, b, c, d in sides for corner in (a, b, c, a, c, d)], np.int32)
    normals = np.repeat(np.array([(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]), 6, axis=0)
    square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], np.float32)
    return sc.Mesh(
        points.astype(np.float32),
        corners,
        np.repeat(np.arange(6) % max(len(materials), 1), 2).astype(np.int32),
        list(materials),
        normal=sc.Layer("", normals.astype(np.float32), per_corner=True),
        uvs=[sc.Layer("UVMap", square, np.tile(np.array([0, 1, 2, 0, 2, 3], np.int32), 6))],
    )


def tube(rings: int = 9, around: int = 12, radius: float = 0.2, low: float = 0.9, high: float = 1.6) -> sc.Mesh:
    """Return an open tube about the avatar's trunk, smooth, in avatar space; points are welded but for the UVs."""
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)
    height = np.linspace(low, high, rings)
    ring = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    points = np.array([[*(radius * xy), z] for z in height for xy in ring])
    normals = np.array([[*xy, 0] for _z in height for xy in ring])
    a, b = np.meshgrid(np.arange(around), np.arange(rings - 1))
    a, b = a.reshape(-1), b.reshape(-1)
    after = (a + 1) % around
    quads = np.stack((b * around + a, b * around + after, (b + 1) * around + after, (b + 1) * around + a), axis=1)
    corners = quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1).astype(np.int32)
    uv_quads = np.stack(((a, b), (a + 1, b), (a + 1, b + 1), (a, b + 1)), axis=0).transpose(2, 0, 1)
    uvs = uv_quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 2) / (around, rings - 1)
    return sc.Mesh(
        points.astype(np.float32),
        corners,
        np.repeat((b >= (rings - 1) // 2).astype(np.int32), 2),
        ["skin", "trousers"],
        normal=sc.Layer("", normals.astype(np.float32)),
        uvs=[sc.Layer("UVMap", uvs.astype(np.float32), per_corner=True)],
    )


def turned(mesh: sc.Mesh, turn: Matrix) -> sc.Mesh:
    """Return a mesh rotated about the origin, (3, 3)."""
    mesh.points = (mesh.points @ turn.T).astype(np.float32)
    if mesh.normal is not None:
        mesh.normal.values = (mesh.normal.values @ turn.T).astype(np.float32)
    return mesh


def weigh(mesh: sc.Mesh, joints: Mapping[str, int], heights: Mapping[str, float]) -> None:
    """Bind points to the joints nearest in height, up to five of them, falling off."""
    names = list(heights)
    distance = np.abs(mesh.points[:, 2:] - np.array([heights[name] for name in names]))
    order = np.argsort(distance, axis=1, kind="stable")[:, :5]
    weights = 1.0 / (0.02 + np.take_along_axis(distance, order, axis=1))
    weights[:, -1] *= 1e-3
    mesh.joint_indices = np.array([joints[name] for name in names], np.int32)[order]
    mesh.joint_weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def armature(
    facing: str = "-Y", *, moved: Mapping[str, Sequence[float]] | None = None, rolled: bool = False
) -> sc.Skeleton:
    """Return the whole avatar as an armature that faces some way, some joints moved (relative to their parents).

    ``rolled``: bones lie along some direction with some roll, as in Blender; none of it may get into a file.
    """
    table = collada_oracle.avatar()
    axes = np.identity(4)
    axes[:3, :3] = FACING[facing]
    rng = np.random.default_rng(7)
    skeleton = sc.Skeleton("Armature")
    worlds: dict[str, Matrix] = {}
    plain: dict[str, Matrix] = {}
    numbers: dict[str, int] = {}
    for joint in table.values():
        if joint.kind not in ("bone", "collision_volume"):
            continue
        position = np.array((moved or {}).get(joint.name, joint.position), np.float64)
        plain[joint.name] = plain.get(joint.parent, np.zeros(3)) + position
        world = np.identity(4)
        if rolled and joint.kind == "bone":
            world[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            world[:3, 0] *= np.linalg.det(world[:3, :3])
        world[:3, 3] = FACING[facing] @ plain[joint.name]
        local = np.linalg.inv(worlds.get(joint.parent, np.identity(4))) @ world
        worlds[joint.name] = world
        numbers[joint.name] = len(skeleton.joints)
        x, y, z = local[:3, 3].tolist()
        skeleton.joints.append(
            sc.Joint(joint.name, numbers.get(joint.parent, -1), (x, y, z), quaternion(local[:3, :3]))
        )
    return skeleton


def quaternion(matrix: Matrix) -> tuple[float, float, float, float]:
    """Return (w, x, y, z) of a rotation: the eigenvector of the largest eigenvalue of Bar-Itzhack's matrix."""
    m = matrix
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], 0, 0, 0],
            [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], 0, 0],
            [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], 0],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    x, y, z, w = np.linalg.eigh(k, UPLO="L")[1][:, -1].tolist()
    return (w, x, y, z)


TRUNK = {"mPelvis": 1.067, "mTorso": 1.151, "mChest": 1.356, "mNeck": 1.607}
VOLUMES = {"PELVIS": 1.05, "BELLY": 1.19, "CHEST": 1.42, "mNeck": 1.607}


def static_scene(**transform: Any) -> sc.Scene:
    """Return a box with all levels and a physics mesh, in a place of its own, and a second one without."""
    given = {
        "translation": (1.0, -2.0, 0.5),
        "rotation": (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)),
        "scale": (2.0, 1.0, 3.0),
    }
    given.update(transform)
    nodes = [
        sc.Node("garden hut", mesh=box(), **given),
        sc.Node("garden hut_LOD2", mesh=box(), lod=1, lod_of=0, **given),
        sc.Node("garden hut_LOD1", mesh=box(materials=["stone"]), lod=2, lod_of=0, **given),
        sc.Node("garden hut_LOD0", mesh=box(materials=["wood"]), lod=3, lod_of=0, **given),
        sc.Node("garden hut_PHYS", mesh=box(materials=["stone"]), role=sc.Role.PHYSICS, shape_of=0, **given),
        sc.Node("door", mesh=box((0.9, 0.1, 2.0), ["wood"]), translation=(0.0, 0.0, 1.0)),
    ]
    materials = [
        sc.Material("wood", (0.5, 0.25, 0.125, 1.0)),
        sc.Material("stone", (0.2, 0.2, 0.2, 0.5), emission=0.75),
    ]
    return sc.Scene("hut", nodes, materials=materials)


def rigged_scene(
    facing: str = "-Y",
    *,
    heights: Mapping[str, float] = TRUNK,
    moved: Mapping[str, Sequence[float]] | None = None,
    rolled: bool = False,
    levels: Sequence[int] = (9, 7, 5, 3),
    **transform: Any,
) -> sc.Scene:
    """Return a tube around the avatar's trunk in up to four levels, bound to an armature that faces some way.

    With a transform, points are in the object's space, so that it brings them back to the same place.
    """
    skeleton = armature(facing, moved=moved, rolled=rolled)
    joints = {joint.name: number for number, joint in enumerate(skeleton.joints)}
    back = np.linalg.inv(matrix(**transform))
    nodes = []
    for lod, rings in enumerate(levels):
        mesh = tube(rings)
        weigh(mesh, joints, heights)
        turned(mesh, FACING[facing])
        mesh.points = (mesh.points @ back[:3, :3].T + back[:3, 3]).astype(np.float32)
        if mesh.normal is not None and transform:
            values = mesh.normal.values @ np.linalg.inv(back[:3, :3])
            mesh.normal.values = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
        nodes.append(sc.Node(f"body {lod}", mesh=mesh, skeleton=0, lod=lod, lod_of=0 if lod else None, **transform))
    nodes[0].name = "body"
    return sc.Scene("body", nodes, [skeleton], materials=[sc.Material("skin", (0.8, 0.5, 0.4, 1.0))])


def matrix(
    translation: Sequence[float] = (0, 0, 0),
    rotation: Sequence[float] = (1, 0, 0, 0),
    scale: Sequence[float] = (1, 1, 1),
) -> Matrix:
    """Return (4, 4) of a translation, a rotation (w, x, y, z) and a scale, the scale first."""
    w, *axis = rotation
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turn = np.identity(3) + 2 * w * cross + 2 * cross @ cross
    found = np.identity(4)
    found[:3, :3] = turn @ np.diag(scale)
    found[:3, 3] = translation
    return found
