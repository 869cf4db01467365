"""Surfaces with joint weights, from which other meshes get the weights of the nearest point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import bpy
import numpy as np
import numpy.typing as npt
from mathutils.bvhtree import BVHTree

from ...io_formats.core.errors import MeshferryError
from .. import arrays
from .joint_weights import Weights

_FACING = np.cos(np.radians(60.0))
_LEAST_SCALE = 1e-9
"""Scale below which an object counts as flat."""

Points = npt.NDArray[np.float64]
Triangles = npt.NDArray[np.int32]


@dataclass(frozen=True)
class _Nearest:
    """The nearest points of a surface for n points."""

    points: Points
    """(n, 3)."""
    normals: Points
    """(n, 3) normals of their triangles."""
    corners: Triangles
    """(n, 3) indices of the points of their triangles."""
    share: Points
    """(n, 3) barycentric coordinates in their triangles."""
    distances: Points
    """(n,) distances in metres from the given points."""


@dataclass(frozen=True)
class WeightedSurface:
    """Triangles with weights at their points, in world space."""

    points: Points
    """(P, 3) positions in world space."""
    triangles: Triangles
    """(T, 3) indices of points."""
    joints: tuple[str, ...] = ()
    weights: Weights = field(default_factory=lambda: np.empty((0, 0), np.float32))
    """(P, J) weights of J joints, or an empty array."""

    def without(self, points: npt.NDArray[np.bool_]) -> WeightedSurface:
        """Return the surface without the triangles that use any of the points marked in ``points`` (P,)."""
        return replace(self, triangles=self.triangles[~points[self.triangles].any(axis=1)])

    def facing_weights_at(self, points: Points, normals: Points) -> tuple[Weights, npt.NDArray[np.bool_]]:
        """Return the weights of the nearest point of the surface for each point, (n, J), and where it faces alike.

        Parameters
        ----------
        normals:
            (n, 3) normals of the points. The surface faces alike where its normal differs by at most 60 degrees.
        """
        if not len(points):
            return np.empty((0, len(self.joints)), np.float32), np.empty(0, np.bool_)
        near = self._nearest(points)
        found: Weights = np.einsum("vc,vcj->vj", near.share, self.weights[near.corners]).astype(np.float32)
        return found, (near.normals * normals).sum(axis=1) >= _FACING

    def depth_of(self, points: Points) -> Points:
        """Return the distance of each point from the surface, (n,), positive on the side opposite to its normals.

        The normals are those of the points of the surface, interpolated, so that edges count rightly.
        """
        if not len(points) or not len(self.triangles):
            return np.full(len(points), -np.inf)
        near = self._nearest(points)
        a, b, c = (self.points[self.triangles[:, corner]] for corner in range(3))
        normals = np.zeros_like(self.points)
        np.add.at(normals, self.triangles, np.cross(b - a, c - a)[:, None])
        facing = np.einsum("vc,vcj->vj", near.share, normals[near.corners])
        below = ((near.points - points) * facing).sum(axis=1)
        depth: Points = np.sign(below) * near.distances
        return depth

    def _nearest(self, points: Points) -> _Nearest:
        """Return the nearest point of the surface for each of at least one point, (n, 3)."""
        tree = BVHTree.FromPolygons(self.points.tolist(), self.triangles.tolist())
        nearest, normals, triangle, distances = zip(*map(tree.find_nearest, points.tolist()), strict=True)
        # np.array takes ten times as long for lists of vectors.
        found, facing = (np.fromiter(chain.from_iterable(of), np.float64).reshape(-1, 3) for of in (nearest, normals))
        corners = self.triangles[np.array(triangle, np.intp)]
        share = barycentric(found, self.points[corners])
        return _Nearest(found, facing, corners, share, np.array(distances, np.float64))


def require_scale(obj: bpy.types.Object) -> None:
    """Raise an error if an object has a scale of zero."""
    if np.linalg.matrix_rank(np.array(obj.matrix_world.to_3x3()), tol=_LEAST_SCALE) < 3:
        raise MeshferryError("{}: it has a scale of zero; correct the scale first", obj.name)


def world_points(obj: bpy.types.Object) -> Points:
    """Return the points of a mesh object, undeformed by modifiers, in world space."""
    points = arrays.read(obj.data.vertices, "co", 3).astype(np.float64)
    matrix = np.array(obj.matrix_world, np.float64)
    found: Points = points @ matrix[:3, :3].T + matrix[:3, 3]
    return found


def world_normals(obj: bpy.types.Object) -> Points:
    """Return the normals of the points of a mesh object in world space, (P, 3)."""
    matrix = np.array(obj.matrix_world, np.float64)[:3, :3]
    normals = (
        arrays.read(obj.data.vertex_normals, "vector", 3) @ np.linalg.pinv(matrix) * np.sign(np.linalg.det(matrix))
    )
    found: Points = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return found


def triangles_of(obj: bpy.types.Object) -> Triangles:
    """Return the triangles of a mesh object as indices of points, (T, 3)."""
    obj.data.calc_loop_triangles()
    return arrays.read(obj.data.loop_triangles, "vertices", 3, np.int32)


def surface_of(
    items: Iterable[bpy.types.Object], points_of: Callable[[bpy.types.Object], Points] = world_points
) -> WeightedSurface:
    """Return the joined surface of mesh objects, without weights; ``points_of`` gives their points in world space."""
    points: list[Points] = [np.empty((0, 3))]
    triangles: list[Triangles] = [np.empty((0, 3), np.int32)]
    first = 0
    for obj in items:
        points.append(points_of(obj))
        triangles.append(triangles_of(obj) + np.int32(first))
        first += len(points[-1])
    return WeightedSurface(np.concatenate(points), np.concatenate(triangles))


def mirror_surface(
    surface: WeightedSurface, origin: Points, across: Points, other_sides: Sequence[int]
) -> WeightedSurface:
    """Return a surface reflected in a plane, with the weights of left and right joints exchanged.

    Parameters
    ----------
    origin, across:
        (3,): a point of the plane, and its normal of length 1.
    other_sides:
        For each joint, the index of the joint on the other side, or its own.
    """
    points = surface.points - 2.0 * ((surface.points - origin) @ across)[:, None] * across
    return replace(surface, points=points, weights=surface.weights[:, list(other_sides)])


def barycentric(points: Points, corners: Points) -> Points:
    """Return barycentric coordinates (n, 3) of points (n, 3) in triangles with corners (n, 3, 3)."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    to = points - corners[:, 0]
    aa, ab, bb = ((x * y).sum(axis=1) for x, y in ((a, a), (a, b), (b, b)))
    ta, tb = (to * a).sum(axis=1), (to * b).sum(axis=1)
    area = aa * bb - ab * ab
    # In triangles without area, any combination of the corners is acceptable.
    safe = np.where(area > 1e-12 * np.maximum(aa * bb, 1e-300), area, np.inf)
    of_b, of_c = (bb * ta - ab * tb) / safe, (aa * tb - ab * ta) / safe
    share = np.clip(np.column_stack((1.0 - of_b - of_c, of_b, of_c)), 0.0, 1.0)
    found: Points = share / share.sum(axis=1, keepdims=True)
    return found
