"""Seams between parts of clothes and bodies: border vertices at one place get one weight and one normal."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import bpy
import numpy as np
import numpy.typing as npt
from mathutils.kdtree import KDTree

from .. import arrays, compat
from . import joint_weights
from .joint_weights import Points, Weights, world_points

WIDEST = 1e-3
"""Distance in metres up to which border vertices belong to one seam."""

Indices = npt.NDArray[np.intp]


def border_of(data: bpy.types.Mesh) -> Indices:
    """Return the vertices on edges with one face, (n,)."""
    edge_of_corner = arrays.read(data.loops, "edge_index", 1, np.int32)
    count = np.bincount(edge_of_corner, minlength=len(data.edges))
    return np.unique(arrays.read(data.edges, "vertices", 2, np.int32)[count == 1]).astype(np.intp)


@dataclass
class Seams:
    """Border vertices that others can take over, n of them, in world space."""

    joints: Sequence[str]
    points: Points = field(default_factory=lambda: np.empty((0, 3)))
    normals: Points = field(default_factory=lambda: np.empty((0, 3)))
    weights: Weights = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """(n, J)"""

    def add(self, obj: bpy.types.Object) -> None:
        """Add the border of a mesh object."""
        border = border_of(obj.data)
        weights = joint_weights.read(obj, set(self.joints)).for_joints(self.joints)[border]
        self.weights = np.concatenate((self.weights.reshape(-1, len(self.joints)), weights))
        self.points = np.concatenate((self.points, world_points(obj)[border]))
        self.normals = np.concatenate((self.normals, _vertex_normals(obj)[border]))

    def taken_over(self, obj: bpy.types.Object, joints: Collection[str]) -> int:
        """Give border vertices of a mesh object near this border its places, weights and normals; return how many."""
        border = border_of(obj.data)
        if not len(border) or not len(self.points):
            return 0
        tree = KDTree(len(self.points))
        deque(map(tree.insert, self.points.tolist(), range(len(self.points))), maxlen=0)
        tree.balance()
        _places, nearest, distance = zip(*map(tree.find, world_points(obj)[border].tolist()), strict=True)
        is_near = np.array(distance) <= WIDEST
        mine, other = border[is_near], np.array(nearest, np.intp)[is_near]
        if len(mine):
            self._write(obj, mine, other, joints)
        return len(mine)

    def _write(self, obj: bpy.types.Object, mine: Indices, other: Indices, joints: Collection[str]) -> None:
        """Give vertices ``mine`` of an object the positions, normals and weights of the body's ``other``."""
        data, world = obj.data, np.array(obj.matrix_world, np.float64)
        back = np.linalg.inv(world)
        normals = self._normals_for(obj, mine, other)
        before = arrays.read(data.vertices, "co", 3).astype(np.float64)
        moved = before.copy()
        moved[mine] = self.points[other] @ back[:3, :3].T + back[:3, 3]
        for points in [data.vertices] + ([key.data for key in data.shape_keys.key_blocks] if data.shape_keys else []):
            points.foreach_set("co", arrays.flat(arrays.read(points, "co", 3) + moved - before))
        weights = joint_weights.read(obj, joints)
        names = list(dict.fromkeys([*weights.joints, *self.joints]))
        values = weights.for_joints(names)
        values[mine] = joint_weights.JointWeights(list(self.joints), self.weights[other]).for_joints(names)
        joint_weights.write(obj, joint_weights.JointWeights(names, values), joints)
        compat.set_corner_normals(data, normals)
        data.update()

    def _normals_for(self, obj: bpy.types.Object, mine: Indices, other: Indices) -> npt.NDArray[np.float32]:
        """Return normals for all corners of an object, (C, 3): zeros where Blender's own ones stay."""
        data, linear = obj.data, np.array(obj.matrix_world, np.float64)[:3, :3]
        corners = arrays.corner_vertices(data)
        kept = arrays.read(data.corner_normals, "vector", 3) if data.has_custom_normals else np.zeros((len(corners), 3))
        of_vertex = np.zeros((len(data.vertices), 3))
        of_vertex[mine] = self.normals[other] @ linear
        of_vertex /= np.maximum(np.linalg.norm(of_vertex, axis=1, keepdims=True), 1e-12)
        is_mine = np.zeros(len(data.vertices), np.bool_)
        is_mine[mine] = True
        found = np.where(is_mine[corners, None], of_vertex[corners], kept)
        return np.ascontiguousarray(found, np.float32)


def _vertex_normals(obj: bpy.types.Object) -> Points:
    """Return the mean of the normals of each vertex's corners, as they are shown, (V, 3) in world space."""
    data, linear = obj.data, np.array(obj.matrix_world, np.float64)[:3, :3]
    sums = np.zeros((len(data.vertices), 3))
    np.add.at(sums, arrays.corner_vertices(data), arrays.read(data.corner_normals, "vector", 3))
    turned = sums @ np.linalg.pinv(linear)
    return turned / np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
