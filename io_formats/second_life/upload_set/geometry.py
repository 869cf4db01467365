"""Faces of a mesh -> Collada geometry, its binding, and the tree of joints (formats page, section 10.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...core.scene import FloatArray, IntArray, Layer, Mesh
from ...geometry.normals import face_normals, unit
from ...geometry.transforms import Matrix
from ...geometry.triangles import pool_rows
from ..asset.binding import Rig
from ..avatar import joints
from ..models.faces import FaceArrays
from . import names
from .document import Geometry, JointNode, JointTree, Skin, Triangles


def geometry_of(name: str, faces: Sequence[FaceArrays], symbols: Sequence[str]) -> tuple[Geometry, IntArray]:
    """Convert faces with triangles to a geometry; also return the index of each vertex's position in it, (V,)."""
    used = pool_rows(np.concatenate([face.points for face in faces]))
    positions = np.empty((used.count, 3), np.float32)
    positions[used.index] = np.concatenate([face.positions for face in faces])
    has_uvs = faces[0].uvs is not None
    corners: dict[str, list[IntArray]] = {}
    start = 0
    for face, symbol in zip(faces, symbols, strict=True):
        vertices = face.triangles.reshape(-1) + np.int32(start)
        columns = [used.index[vertices], vertices, *([vertices] if has_uvs else [])]
        corners.setdefault(symbol, []).append(np.stack(columns, axis=1))
        start += len(face.points)
    triangles = [Triangles(symbol, np.concatenate(parts)) for symbol, parts in corners.items()]
    uvs = np.concatenate([face.uvs for face in faces if face.uvs is not None]) if has_uvs else None
    return Geometry(name, positions, np.concatenate([face.normals for face in faces]), uvs, triangles), used.index


def skin_of(rig: Rig, faces: Sequence[FaceArrays], position: IntArray, tree: int) -> Skin:
    """Return the binding of a geometry; positions without weights follow the first joint, like in the viewer.

    Parameters
    ----------
    position:
        Second result of :func:`geometry_of` for the faces.
    tree:
        Index of the joint tree of the rig.
    """
    count = int(position.max()) + 1
    indices, weights = np.zeros((count, 4), np.int32), np.zeros((count, 4), np.float32)
    start = 0
    for face in faces:
        of_face = position[start : start + len(face.points)]
        if face.joint_indices is not None and face.joint_weights is not None:
            indices[of_face], weights[of_face] = face.joint_indices, face.joint_weights
        start += len(face.points)
    indices = np.where(weights > 0, rig.index[indices], 0).astype(np.int32)
    weights[~weights.any(axis=1), 0] = 1.0  # the checks warn about it
    return Skin([names.joint_word(name) for name in rig.joint_names], rig.inverse_bind, indices, weights, tree)


def tree_of(name: str, rigs: Iterable[Rig]) -> JointTree:
    """Return the joints of bindings to one armature and their ancestors up to the avatar's root, parents first.

    Bones are translations relative to their parents: those of the binding if it moves joints, otherwise those of the
    table. Collision volumes and attachment points have the table's rotation and scale.
    """
    table = joints.table()
    positions: dict[str, Matrix] = {}
    spelled: dict[str, str] = {}
    wanted: set[str] = set()
    unknown: dict[str, Matrix] = {}
    for rig in rigs:
        for number, joint in enumerate(rig.joint_names):
            known = joints.canonical(joint)
            position = None if rig.joint_positions is None else rig.joint_positions[number]
            if known is None:
                head = rig.rest[number, :3, 3] - joints.rest_matrices()[joints.ROOT][:3, 3]
                unknown[joint] = head if position is None else position
                wanted.add(joints.ROOT)
                continue
            wanted.update(joints.ancestors(known))
            spelled.setdefault(known, joint)
            if position is not None:
                positions[known] = position
    order = [joint for joint in table if joint in wanted]
    number_of = {joint: number for number, joint in enumerate(order)}
    nodes: list[JointNode] = []
    for joint in order:
        local = table[joint].local.copy()
        if joint in positions:
            local[:3, 3] = positions[joint]
        parent = number_of.get(table[joint].parent, -1)
        nodes.append(JointNode(spelled.get(joint, joint.replace(" ", "_")), parent, local))
    for joint, head in unknown.items():
        local = np.identity(4)
        local[:3, 3] = head
        nodes.append(JointNode(names.joint_word(joint), number_of[joints.ROOT], local))
    return JointTree(name, nodes)


def box_of(least: FloatArray, most: FloatArray) -> Mesh:
    """Return a box with outward triangles, or a two-sided sheet if the box is flat; arguments are float32 (3,)."""
    extent = most - least
    flat = extent <= 1e-5 * max(float(extent.max()), 1e-30)
    unit_cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    points = (least + unit_cube * extent).astype(np.float32)
    # Point indices of the six sides of the box, counter-clockwise from outside: -x, +x, -y, +y, -z, +z.
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    kept = [side for number, side in enumerate(sides) if not np.delete(flat, number // 2).any()]
    triangles = [corner for a, b, c, d in kept for corner in (a, b, c, a, c, d)]
    corner_point = np.array(triangles, np.int32)
    normal = Layer("", unit(np.repeat(face_normals(points, corner_point), 3, axis=0)), per_corner=True)
    return Mesh(points, corner_point, np.zeros(len(corner_point) // 3, np.int32), normal=normal)
