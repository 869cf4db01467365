"""Weights of vertices for which none are known, filled in along the mesh."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import numpy.typing as npt
from mathutils.bvhtree import BVHTree

from ..joint_poses import Array
from ..joint_weights import Weights
from ..weighted_surfaces import Points, Triangles, barycentric

_SMOOTHINGS = 20
"""Number of times that filled weights are averaged with those of their neighbours."""
_THICKEST = 0.02
"""Largest thickness of cloth in metres."""
_SURFACE = 1e-5
"""Distance in metres below a vertex from which on triangles belong to the other side."""


def from_other_side(
    weights: Weights, known: npt.NDArray[np.bool_], points: Points, normals: Points, triangles: Triangles
) -> tuple[Weights, npt.NDArray[np.bool_]]:
    """Return weights of which the unknown ones on the inner side of thick cloth are those of its outer side.

    The inner side faces the surface from which the weights come, and its border may be far away along the mesh.

    Parameters
    ----------
    weights, known:
        (V, J), and (V,) whether they are known.
    points, normals:
        (V, 3) in world space.
    """
    unknown = np.flatnonzero(~known)
    if not len(unknown) or not len(triangles):
        return weights, known
    tree = BVHTree.FromPolygons(points.tolist(), triangles.tolist())
    starts = points[unknown] - _SURFACE * normals[unknown]
    hits = map(tree.ray_cast, starts.tolist(), (-normals[unknown]).tolist(), repeat(_THICKEST))
    places, _normals, indices, _distances = zip(*hits, strict=True)
    is_hit = np.array([index is not None for index in indices])
    vertices = unknown[is_hit]
    corners = triangles[[index for index in indices if index is not None]]
    share = barycentric(np.array([place for place in places if place is not None]).reshape(-1, 3), points[corners])
    facing = np.einsum("vc,vcj,vj->v", share, normals[corners], normals[vertices])
    is_other = known[corners].all(axis=1) & (facing < -0.5)
    made, is_known = weights.copy(), known.copy()
    made[vertices[is_other]] = np.einsum("vc,vcj->vj", share, weights[corners])[is_other]
    is_known[vertices[is_other]] = True
    return made, is_known


def fill_weights(weights: Weights, known: npt.NDArray[np.bool_], edges: npt.NDArray[np.int32]) -> Weights:
    """Return weights of which the unknown ones are filled in along the mesh from the known ones.

    Vertices that are connected to no known one keep theirs.

    Parameters
    ----------
    weights, known:
        (V, J), and (V,) whether they are known.
    edges:
        (E, 2) vertices.
    """
    values, is_known = np.where(known[:, None], weights, 0.0).astype(np.float64), known.copy()
    ends, others = np.concatenate((edges, edges[:, ::-1])).T
    while True:
        of_known = is_known[others] & ~is_known[ends]
        if not of_known.any():
            break
        total, count = _sums(values, ends[of_known], others[of_known])
        found = count > 0
        values[found] = total[found] / count[found, None]
        is_known |= found
    filled_in = is_known & ~known
    from_unknown = filled_in[ends]
    for _ in range(_SMOOTHINGS if filled_in.any() else 0):
        total, count = _sums(values, ends[from_unknown], others[from_unknown])
        values[filled_in] = total[filled_in] / np.maximum(count[filled_in, None], 1)
    made: Weights = np.where(is_known[:, None], values, weights).astype(np.float32)
    return made


def _sums(
    values: Array, ends: npt.NDArray[np.int32], others: npt.NDArray[np.int32]
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return for each vertex the sum of the values of its neighbours, and their number."""
    total = np.zeros_like(values)
    np.add.at(total, ends, values[others])
    return total, np.bincount(ends, minlength=len(values))
