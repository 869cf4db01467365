"""Faces that share all their vertices with another face, as in two-sided leaves.

``Mesh.validate``, which some exporters and importers run, deletes all but one of them.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator

import bmesh
import bpy
import numpy as np

from ...io_formats.core.scene import IntArray
from .. import compat

_FACE_INDEX = "meshferry face"
_SAME_NORMAL = 1e-3
"""Tolerance for equal normals, per component: the rounding of tangent-space normals."""


@contextlib.contextmanager
def separated(objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Give objects with duplicate faces a copy of their mesh in which each face has its own vertices.

    Objects that share a mesh share its copy, which has the name of the original. Afterwards the objects have their
    own meshes again.
    """
    owners: dict[bpy.types.Mesh, list[bpy.types.Object]] = {}
    for obj in objects:
        if obj.type == "MESH" and obj.library is None:
            owners.setdefault(obj.data, []).append(obj)
    replaced: list[tuple[bpy.types.Mesh, bpy.types.Mesh, str, list[bpy.types.Object]]] = []
    try:
        for mesh, users in owners.items():
            ranks = duplicate_ranks(mesh)
            if not ranks.any():
                continue
            copy, name = mesh.copy(), mesh.name
            replaced.append((mesh, copy, name, users))
            _separate(copy, ranks)
            if mesh.library is None:
                mesh.name = f"{name} original"
                copy.name = name
            for obj in users:
                obj.data = copy
        yield
    finally:
        for mesh, copy, name, users in replaced:
            for obj in users:
                obj.data = mesh
            bpy.data.meshes.remove(copy)
            if mesh.library is None:
                mesh.name = name


def duplicate_ranks(mesh: bpy.types.Mesh) -> IntArray:
    """Return for each face how many earlier faces have exactly its vertices, (F,) int32."""
    count = len(mesh.polygons)
    ranks = np.zeros(count, np.int32)
    if count < 2:
        return ranks
    starts = np.empty(count, np.int32)
    mesh.polygons.foreach_get("loop_start", starts)
    vertices = np.empty(len(mesh.loops), np.int32)
    mesh.attributes[".corner_vert"].data.foreach_get("value", vertices)
    # Sums of random numbers do not depend on the order of the corners. Two faces with equal sums by chance would
    # merely get separate vertices.
    numbers = np.random.default_rng(0).integers(0, 1 << 63, len(mesh.vertices), np.uint64)
    sums = np.add.reduceat(numbers[vertices], starts)
    order = np.argsort(sums, kind="stable")
    is_first = np.append(True, sums[order][1:] != sums[order][:-1])
    positions = np.arange(count)
    ranks[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return ranks


def _separate(mesh: bpy.types.Mesh, ranks: IntArray) -> None:
    """Give the faces of each rank above 0 separate vertices; normals are not changed."""
    before = _corner_normals(mesh)
    mesh.attributes.new(_FACE_INDEX, "INT", "FACE").data.foreach_set("value", np.arange(len(ranks), dtype=np.int32))
    editable = bmesh.new()
    try:
        editable.from_mesh(mesh)
        editable.faces.ensure_lookup_table()
        index = editable.faces.layers.int[_FACE_INDEX]
        groups = [
            [editable.faces[face] for face in np.flatnonzero(ranks == rank).tolist()]
            for rank in range(1, int(ranks.max()) + 1)
        ]
        for faces in groups:
            bmesh.ops.split(editable, geom=faces)
        editable.faces.sort(key=operator.itemgetter(index))  # Blender appends the split faces
        editable.to_mesh(mesh)
    finally:
        editable.free()
    mesh.attributes.remove(mesh.attributes[_FACE_INDEX])
    if np.abs(_corner_normals(mesh) - before).max() > _SAME_NORMAL:
        compat.set_corner_normals(mesh, before)


def _corner_normals(mesh: bpy.types.Mesh) -> np.ndarray:
    normals = np.empty(3 * len(mesh.loops), np.float32)
    mesh.corner_normals.foreach_get("vector", normals)
    return normals.reshape(-1, 3)
