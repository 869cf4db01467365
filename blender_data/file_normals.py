"""The normals of a file, stored beside Blender's editable ones, which differ from them.

Blender stores editable normals relative to the faces around them, in 16 bits for each angle. At folds without thickness
they are off by 40 to 165°. Exports write the file's normals where nothing was edited:
where setting them again gives exactly the normals that the mesh has now. This needs no record of what was edited.
"""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import FloatArray, IntArray, Layer
from .importing.meshes import set_editable_normals

ATTRIBUTE = "imported_normal"
"""Attribute with the three components of a normal in 21 bits each, as two integers of 32 bits."""

_MOST = (1 << 21) - 1
_DIFFERENT = 1e-5
"""Largest difference between a file's normals and Blender's for which they are not stored: a third of a 16-bit step."""
_UNCHANGED = 1e-4
"""Largest difference of normals that Blender computes twice from the same values."""


def set_and_store(built: bpy.types.Mesh, layer: Layer, corner_point: IntArray) -> None:
    """Set the editable normals of a mesh, and store those of the file as an attribute if they differ."""
    layer = replace(layer, values=_unpacked(_packed(layer.values)))
    set_editable_normals(built, layer, corner_point)
    if np.abs(_corner_normals(built) - layer.at_corners(corner_point)).max(initial=0.0) <= _DIFFERENT:
        return
    on_points = layer.index is None and not layer.per_corner
    attribute = built.attributes.new(ATTRIBUTE, "INT32_2D", "POINT" if on_points else "CORNER")
    attribute.data.foreach_set("value", _packed(layer.values if on_points else layer.at_corners(corner_point)))


def restored(
    layer: Layer, data: bpy.types.Mesh, vertex_of_loop: IntArray, loops: IntArray | None, file_vertex: IntArray | None
) -> Layer:
    """Return a layer of normals with the file's where the mesh is unchanged; this destroys the normals of ``data``.

    Parameters
    ----------
    vertex_of_loop:
        (L,) the point of each loop.
    loops:
        (C,) the loop of each corner of the triangles; None if they are the same.
    file_vertex:
        (C,) the file's vertex of each corner, which keeps one normal; None if unknown.
    """
    found = _unchanged(data, vertex_of_loop)
    if found is None:
        return layer
    normals, same = found if loops is None else (found[0][loops], found[1][loops])
    if file_vertex is not None and len(file_vertex):
        same = np.bincount(file_vertex, ~same)[file_vertex] == 0
        if same.all():
            values = np.zeros((int(file_vertex.max()) + 1, 3), np.float32)
            values[file_vertex] = normals
            return Layer(layer.name, values, index=file_vertex)
    corner_point = vertex_of_loop if loops is None else vertex_of_loop[loops]
    values = np.where(same[:, None], normals, layer.at_corners(corner_point))
    return Layer(layer.name, values, per_corner=True)


def _unchanged(data: bpy.types.Mesh, vertex_of_loop: IntArray) -> tuple[FloatArray, npt.NDArray[np.bool_]] | None:
    """Return the file's normal of each loop, (L, 3), and which loops still have it, (L,); None without the attribute.

    ``data`` is changed.
    """
    attribute = data.attributes.get(ATTRIBUTE)
    if attribute is None or attribute.data_type != "INT32_2D" or not data.has_custom_normals:
        return None
    if attribute.domain not in {"POINT", "CORNER"}:
        return None
    numbers = np.empty(2 * len(attribute.data), np.int32)
    attribute.data.foreach_get("value", numbers)
    values = _unpacked(numbers)
    current = _corner_normals(data)
    on_points = attribute.domain == "POINT"
    index = None if on_points else np.arange(len(values), dtype=np.int32)
    set_editable_normals(data, Layer("normal", values, index=index), vertex_of_loop)
    same = np.abs(_corner_normals(data) - current).max(axis=1, initial=0.0) <= _UNCHANGED
    normals = values[vertex_of_loop] if on_points else values
    return normals, same & normals.any(axis=1)


def _corner_normals(data: bpy.types.Mesh) -> FloatArray:
    """Return the normals of all loops, (L, 3)."""
    values = np.empty(len(data.loops) * 3, np.float32)
    data.corner_normals.foreach_get("vector", values)
    return values.reshape(-1, 3)


def _packed(normals: npt.NDArray[np.floating]) -> IntArray:
    """Return normals (N, 3) as pairs of integers, (2 N,)."""
    steps = np.rint((np.asarray(normals, np.float64) + 1) / 2 * _MOST).clip(0, _MOST).astype(np.uint64)
    whole: npt.NDArray[np.uint64] = steps[:, 0] | steps[:, 1] << np.uint64(21) | steps[:, 2] << np.uint64(42)
    return whole.astype("<u8", copy=False).view("<i4").astype(np.int32, copy=False)


def _unpacked(numbers: IntArray) -> FloatArray:
    """Return packed normals, (N, 3); those that are not directions are zero."""
    whole = np.ascontiguousarray(numbers, "<i4").view("<u8").astype(np.uint64, copy=False)
    steps = np.stack([whole >> np.uint64(shift) & np.uint64(_MOST) for shift in (0, 21, 42)], axis=1)
    normals = (steps / _MOST * 2 - 1).astype(np.float32)
    normals[np.linalg.norm(normals, axis=1) < 0.5] = 0.0
    return normals
