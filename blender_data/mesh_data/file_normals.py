"""The normals of a file, stored in addition to Blender's editable normals, which differ from them.

Blender stores editable normals relative to the surrounding faces, in 16 bits for each angle. At folds without thickness
they are off by 40 to 165°. An export writes the stored normals where the mesh is unedited. To find out, it sets them on
a copy again: where this gives exactly the current normals, nothing was edited.
"""

from dataclasses import replace

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.scene import FloatArray, IntArray, Layer
from .. import arrays, compat

_SAME_NORMAL = 2.5e-4
"""Tolerance for equal normals. Two 16-bit tangent frames of one normal differ by up to 2e-4 in a component; Blender
itself merges normals of a smooth fan that differ by less than 0.014."""


def set_editable_normals(built: bpy.types.Mesh, layer: Layer, corner_point: npt.NDArray[np.int32]) -> None:
    """Set tangent-space normals of a mesh whose corners are at the given points, (C,)."""
    on_points = arrays.domain_of(layer) == "POINT"
    of_points = layer.values if on_points else _normals_of_points(layer, corner_point, len(built.vertices))
    if of_points is not None:
        compat.set_point_normals(built, np.ascontiguousarray(of_points, np.float32))
    else:
        compat.set_corner_normals(built, np.ascontiguousarray(layer.values, np.float32), layer.index)


def _normals_of_points(layer: Layer, corner_point: npt.NDArray[np.int32], points: int) -> FloatArray | None:
    """Return one normal for each point, (P, 3), which is three times as fast to set; None if corners of a point differ.

    In many files vertices are split at UV seams, although their normals are equal.
    """
    if layer.index is None:
        return None
    chosen = np.zeros(points, layer.index.dtype)
    chosen[corner_point] = layer.index
    others = np.flatnonzero(chosen[corner_point] != layer.index)
    apart = layer.values[chosen[corner_point[others]]] - layer.values[layer.index[others]]
    if np.abs(apart).max(initial=0.0) > _SAME_NORMAL:
        return None
    return layer.values[chosen]


ATTRIBUTE = "imported_normal"
"""Name of the attribute with the file's normals. It has three floats, or for files with quantised normals two 32-bit
integers that hold 21 bits for each component."""

_MOST = (1 << 21) - 1
_UNCHANGED = 1e-4
"""Tolerance for normals that Blender computes twice from the same values."""


def set_and_store(built: bpy.types.Mesh, layer: Layer, corner_point: IntArray, *, is_quantised: bool) -> None:
    """Set the editable normals of a mesh, and store those of the file as an attribute.

    They are stored without comparing them with Blender's normals: 16-bit normals differ in every mesh, and computing
    Blender's takes a twentieth of an import. ``is_quantised`` means that the file's normals have at most 21 bits for
    each component.
    """
    if not is_quantised:
        set_editable_normals(built, layer, corner_point)
        arrays.add_layer(built, ATTRIBUTE, "FLOAT_VECTOR", layer, layer.values)
        return
    packed = _packed(layer.values)
    set_editable_normals(built, replace(layer, values=_unpacked(packed)), corner_point)
    arrays.add_layer(built, ATTRIBUTE, "INT32_2D", layer, packed)


def make_editable(data: bpy.types.Mesh) -> None:
    """Turn normals that are stored as vectors into tangent-space normals, which follow the deformation of the mesh."""
    free = data.attributes.get("custom_normal")
    if free is None or free.data_type != "FLOAT_VECTOR":
        return
    normals = arrays.read(data.corner_normals, "vector", 3)
    data.attributes.remove(free)
    compat.set_corner_normals(data, normals, None)


def restored(
    layer: Layer, data: bpy.types.Mesh, vertex_of_loop: IntArray, loops: IntArray | None, file_vertex: IntArray | None
) -> Layer:
    """Return a layer of normals that has those of the file where the mesh is unchanged.

    This overwrites the normals of ``data``.

    Parameters
    ----------
    vertex_of_loop:
        (L,) the point of each loop.
    loops:
        (C,) the loop of each corner of the triangles; None if they are the same.
    file_vertex:
        (C,) the vertex in the file of each corner, so that all corners of it get one normal; None if unknown.
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
    """Return the file's normal of each loop, (L, 3), and whether the loop still has it, (L,); None if none are stored.

    ``data`` is changed.
    """
    attribute = data.attributes.get(ATTRIBUTE)
    if attribute is None or attribute.domain not in {"POINT", "CORNER"} or not data.has_custom_normals:
        return None
    if attribute.data_type == "FLOAT_VECTOR":
        values = arrays.read(attribute.data, "vector", 3)
    elif attribute.data_type == "INT32_2D":
        values = _unpacked(arrays.read_attribute(attribute))
    else:
        return None
    current = arrays.read(data.corner_normals, "vector", 3)
    on_points = attribute.domain == "POINT"
    index = None if on_points else np.arange(len(values), dtype=np.int32)
    set_editable_normals(data, Layer("normal", values, index=index), vertex_of_loop)
    same = np.abs(arrays.read(data.corner_normals, "vector", 3) - current).max(axis=1, initial=0.0) <= _UNCHANGED
    normals = values[vertex_of_loop] if on_points else values
    return normals, same & normals.any(axis=1)


def _packed(normals: npt.NDArray[np.floating]) -> IntArray:
    """Return normals (N, 3) as pairs of integers, (N, 2)."""
    steps = np.array(normals, np.float32)
    steps += np.float32(1)
    steps *= np.float32(_MOST / 2)
    x, y, z = np.rint(steps).clip(0, _MOST).astype(np.uint32).T
    return np.stack((x | y << np.uint32(21), y >> np.uint32(11) | z << np.uint32(10)), axis=1).view(np.int32)


def _unpacked(numbers: IntArray) -> FloatArray:
    """Unpack normals, (N, 3). Values that are not directions become zero."""
    low, high = numbers.view(np.uint32).T
    normals = np.empty((len(numbers), 3), np.float32)
    normals[:, 0] = low & np.uint32(_MOST)
    normals[:, 1] = low >> np.uint32(21) | high << np.uint32(11) & np.uint32(_MOST)
    normals[:, 2] = high >> np.uint32(10)
    normals *= np.float32(2 / _MOST)
    normals -= np.float32(1)
    normals[np.einsum("ij,ij->i", normals, normals) < 0.25] = 0.0
    return normals
