"""Faces that share all their vertices with another face, as in two-sided leaves.

Some exporters and importers run ``Mesh.validate``, which deletes all but one of such faces.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator

import bmesh
import bpy
import numpy as np

from ...io_formats.core.scene import IntArray
from .. import arrays, compat

_FACE_INDEX = "meshferry face"
_SAME_NORMAL = 1e-3
"""Tolerance for equal normals, per component: the rounding of tangent-space normals."""


@contextlib.contextmanager
def separated_faces(objects: Iterable[bpy.types.Object]) -> Iterator[None]:
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
    """Return, for each face, the number of earlier faces with exactly the same vertices, (F,) int32."""
    count = len(mesh.polygons)
    ranks = np.zeros(count, np.int32)
    if count < 2:
        return ranks
    starts = arrays.read(mesh.polygons, "loop_start", dtype=np.int32)
    vertices = arrays.corner_vertices(mesh)
    # The sum of its vertices' random numbers identifies a face independent of the order of corners. If two faces had
    # equal sums by chance, one would only get separate vertices.
    numbers = np.random.default_rng(0).integers(0, 1 << 63, len(mesh.vertices), np.uint64)
    sums = np.add.reduceat(numbers[vertices], starts)
    order = np.argsort(sums, kind="stable")
    is_first = np.append(True, sums[order][1:] != sums[order][:-1])
    positions = np.arange(count)
    ranks[order] = positions - np.maximum.accumulate(np.where(is_first, positions, 0))
    return ranks


def _separate(mesh: bpy.types.Mesh, ranks: IntArray) -> None:
    """Give separate vertices to the faces of each rank above 0; normals are preserved."""
    before = arrays.read(mesh.corner_normals, "vector", 3)
    arrays.add_attribute(mesh, _FACE_INDEX, "INT", "FACE", np.arange(len(ranks)))
    with arrays.edited(mesh) as editable:
        editable.faces.ensure_lookup_table()
        index = editable.faces.layers.int[_FACE_INDEX]
        groups = [
            [editable.faces[face] for face in np.flatnonzero(ranks == rank).tolist()]
            for rank in range(1, int(ranks.max()) + 1)
        ]
        for faces in groups:
            bmesh.ops.split(editable, geom=faces)
        # Blender appends the split faces, so restore the original order
        editable.faces.sort(key=operator.itemgetter(index))
    mesh.attributes.remove(mesh.attributes[_FACE_INDEX])
    if np.abs(arrays.read(mesh.corner_normals, "vector", 3) - before).max() > _SAME_NORMAL:
        compat.set_corner_normals(mesh, before)
