"""Values of many items of Blender data as arrays, and meshes from arrays."""

import contextlib
from collections.abc import Iterator
from typing import Any

import bmesh
import bpy
import numpy as np
import numpy.typing as npt

from ..io_formats.core.scene import FloatArray, IntArray, Layer

ATTRIBUTES: dict[str, tuple[str, int, type[np.generic]]] = {
    "FLOAT": ("value", 1, np.float32),
    "INT": ("value", 1, np.int32),
    "INT8": ("value", 1, np.int32),
    "BOOLEAN": ("value", 1, np.bool_),
    "FLOAT_VECTOR": ("vector", 3, np.float32),
    "FLOAT2": ("vector", 2, np.float32),
    "FLOAT_COLOR": ("color", 4, np.float32),
    "INT32_2D": ("value", 2, np.int32),
}
"""Property, number of components and type of the values of an attribute, by its data type."""


def read(items: Any, name: str, width: int = 1, dtype: type[np.generic] = np.float32) -> npt.NDArray[Any]:
    """Return a property of all items of a collection, (n, width), or (n,) if it has one component."""
    values = np.empty(len(items) * width, dtype)
    items.foreach_get(name, values)
    return values if width == 1 else values.reshape(-1, width)


def flat(values: npt.NDArray[Any], dtype: type[np.generic] = np.float32) -> npt.NDArray[Any]:
    """Convert values for fast use of ``foreach_set``: contiguous, one-dimensional, of the property's type."""
    return np.ascontiguousarray(values, dtype).reshape(-1)


def read_attribute(attribute: bpy.types.Attribute) -> npt.NDArray[Any]:
    """Return the values of an attribute, (n, number of components)."""
    name, width, dtype = ATTRIBUTES[attribute.data_type]
    return read(attribute.data, name, width, dtype).reshape(-1, width)


def add_attribute(mesh: bpy.types.Mesh, name: str, kind: str, domain: str, values: npt.NDArray[Any]) -> str:
    """Add an attribute with values to a mesh, and return its actual name.

    ``kind`` is the data type of the attribute.
    """
    field, _width, dtype = ATTRIBUTES[kind]
    attribute = mesh.attributes.new(name, kind, domain)
    attribute.data.foreach_set(field, flat(values, dtype))
    return str(attribute.name)


def add_layer(mesh: bpy.types.Mesh, name: str, kind: str, layer: Layer, values: npt.NDArray[Any]) -> str:
    """Like :func:`add_attribute`, for an attribute whose values are the rows of a layer."""
    rows = values if layer.index is None else values.take(layer.index, axis=0)
    return add_attribute(mesh, name, kind, domain_of(layer), rows)


def domain_of(layer: Layer) -> str:
    """Return the domain of the attribute for a layer."""
    return "CORNER" if layer.index is not None or layer.per_corner else "POINT"


@contextlib.contextmanager
def mesh_of(obj: bpy.types.Object) -> Iterator[bpy.types.Mesh | None]:
    """Yield a temporary mesh of an object; None if the object has no surface."""
    try:
        yield obj.to_mesh()
    finally:
        obj.to_mesh_clear()


def points_of(mesh: bpy.types.Mesh) -> FloatArray:
    """Return the points of a mesh, (P, 3).

    A mesh without points has no position attribute and gives an empty array.
    """
    if not len(mesh.vertices):
        return np.empty((0, 3), np.float32)
    return read(mesh.attributes["position"].data, "vector", 3)


def corner_vertices(mesh: bpy.types.Mesh) -> IntArray:
    """Return the vertex of each face corner, (C,).

    A mesh without corners has no such attribute and gives an empty array.
    """
    if not len(mesh.loops):
        return np.empty(0, np.int32)
    return read(mesh.attributes[".corner_vert"].data, "value", dtype=np.int32)


def fill_triangles(mesh: bpy.types.Mesh, points: npt.NDArray[Any], corner_point: npt.NDArray[Any]) -> None:
    """Fill an empty mesh with points (P, 3) and triangles, (C,) int32.

    Edges are not made: call ``update`` at the end.
    """
    mesh.vertices.add(len(points))
    add_polygons(mesh, corner_point)
    if len(points):
        mesh.attributes["position"].data.foreach_set("vector", flat(points))


def add_polygons(mesh: bpy.types.Mesh, corner_point: npt.NDArray[Any], sizes: IntArray | None = None) -> None:
    """Add polygons to a mesh, given the point of each corner, (C,), and the number of corners of each polygon, (G,).

    Without ``sizes``, the polygons are triangles.
    """
    corners = corner_point.size
    starts = np.arange(0, corners, 3, dtype=np.int32) if sizes is None else np.cumsum(sizes, dtype=np.int32) - sizes
    mesh.loops.add(corners)
    mesh.polygons.add(len(starts))
    if corners:
        # Set the attribute directly, sixty times as fast as loops.foreach_set("vertex_index"). A mesh without loops
        # lacks the attribute.
        mesh.attributes[".corner_vert"].data.foreach_set("value", flat(corner_point, np.int32))
    mesh.polygons.foreach_set("loop_start", starts)


@contextlib.contextmanager
def edited(mesh: bpy.types.Mesh) -> Iterator[bmesh.types.BMesh]:
    """Yield a mesh as ``bmesh`` for editing, and write it back unless an exception was raised."""
    made = bmesh.new()
    try:
        made.from_mesh(mesh)
        yield made
        made.to_mesh(mesh)
    finally:
        made.free()


FILE_VERTEX = "file_vertex"
"""Name of the attribute of corners with the index of their vertex in the file, which is only stored if tangents need
it."""

FILE_VERTEX_LAYER = f"\0{FILE_VERTEX}"
"""Name of the layer that becomes this attribute, which no layer of a file has."""
