"""Transforms that *Object > Apply* moved from objects into the vertices of their meshes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ....io_formats.core.errors import MeshferryError
from ....io_formats.core.placement import Matrix, ModelUse, PlacedNode, Placement
from ....io_formats.geometry.triangles import part_of_slots
from ... import arrays

_FLAT = 1e-6
"""Thickness relative to the size of a mesh below which the mesh counts as flat."""
_EXACT = 1e-5
"""Tolerance for transformed vertices, relative to the size of the mesh."""

_Points = npt.NDArray[np.float64]


def applied_transforms(
    objects: Iterable[bpy.types.Object],
    edits: Mapping[Any, Sequence[str]],
    nodes: Mapping[str, PlacedNode],
    placement: Placement,
) -> dict[Any, Matrix]:
    """Return the matrix (4, 4) by which the user transformed the vertices of each mesh since the import.

    Meshes with other edits, and meshes whose file cannot be read, are left out.
    """
    found: dict[Any, Matrix] = {}
    for obj in objects:
        node = nodes.get(obj.meshferry.node_key)
        if obj.type != "MESH" or node is None or obj.data in found or list(edits[obj.data]) != ["vertices"]:
            continue
        if isinstance(node.content, ModelUse) and not placement.models[node.content.model].is_tree:
            now = arrays.read(obj.data.vertices, "co", 3).astype(np.float64)
            for points in _file_points(obj, node.content, placement):
                matrix = _transform(points.astype(np.float64), now) if points.shape == now.shape else None
                if matrix is not None:
                    found[obj.data] = matrix
    return found


def _file_points(obj: bpy.types.Object, use: ModelUse, placement: Placement) -> list[npt.NDArray[np.float32]]:
    """Return the vertices (P, 3) of the whole mesh in the file, and of the surfaces that an object shows."""
    try:
        (node,) = placement.models[use.model].read().nodes
    except (MeshferryError, ValueError):
        return []
    if node.mesh is None:
        return []
    shown = {use.slots[slot].name for slot in json.loads(obj.meshferry.node_slots or "[]") if slot >= 0}
    kept = [number for number, surface in enumerate(node.mesh.surfaces) if surface.name in shown]
    part = part_of_slots(node.mesh, kept) if kept else node.mesh
    return [node.mesh.points, part.points]


def _transform(points: _Points, now: _Points) -> Matrix | None:
    """Return the affine matrix (4, 4) that maps points ``points`` to ``now``, both (P, 3).

    Return None if no matrix does, or if the points are unchanged.
    """
    if len(points) < 3:
        return None
    centre, centre_now = points.mean(axis=0), now.mean(axis=0)
    old, new = points - centre, now - centre_now
    axes, sizes, _ = np.linalg.svd(old.T @ old)
    if sizes[1] <= _FLAT**2 * sizes[0]:
        return None  # all points are on a line
    if sizes[2] <= _FLAT**2 * sizes[0]:  # all points are in a plane; its normal is scaled like its area
        plane = new.T @ np.linalg.pinv(old.T) @ axes[:, :2]
        normal = np.cross(plane[:, 0], plane[:, 1])
        length = float(np.linalg.norm(normal)) ** 0.5 or 1.0
        old = np.vstack((old, np.cross(axes[:, 0], axes[:, 1]) * np.sqrt(sizes[0])))
        new = np.vstack((new, normal / length * np.sqrt(sizes[0])))
    matrix = np.identity(4)
    matrix[:3, :3] = np.linalg.lstsq(old, new, rcond=None)[0].T
    matrix[:3, 3] = centre_now - matrix[:3, :3] @ centre
    size = max(np.ptp(now, axis=0).max(), np.abs(now).max())
    error = np.abs(points @ matrix[:3, :3].T + matrix[:3, 3] - now).max()
    is_change = np.abs(points - now).max() > _EXACT * size
    return matrix if is_change and error <= _EXACT * size and np.linalg.det(matrix) != 0.0 else None
