"""Scene meshes -> Blender meshes, with ``foreach_set`` throughout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.binary.quantization import from_unorm
from ...io_formats.core.scene import FloatArray, IntArray, Layer, Mesh
from .. import compat, names
from ..mesh_data import mesh_edits, vertex_weights

COLOR_NAME = "Color"

FILE_VERTEX = "file_vertex"
"""Attribute of corners with the index of their vertex in the file, only stored if tangents need it."""

MOST_UV_LAYERS = 8
"""Largest number of UV maps that a Blender mesh can have."""

_BLOCK = 1 << 18

_SAME_NORMAL = 2.5e-4
"""Tolerance for equal normals. Two 16-bit tangent frames of one normal differ by up to 2e-4 in a component; Blender
itself merges normals of a smooth fan that differ by less than 0.014."""


@dataclass
class GroupWeights:
    """The weights of a mesh in the vertex groups that its object gets."""

    names: list[str]
    groups: IntArray
    """(P, k) int32: indices of the vertex groups."""
    weights: FloatArray
    """(P, k) float32; 0 for unused entries."""

    @classmethod
    def of(cls, mesh: Mesh, joint_names: Sequence[str]) -> GroupWeights | None:
        """Assign a vertex group to each joint with weights, in the order of the joints; return None without weights."""
        if mesh.joint_indices is None or mesh.joint_weights is None:
            return None
        counts = np.bincount(mesh.joint_indices[mesh.joint_weights > 0], minlength=len(joint_names))
        used = np.flatnonzero(counts)
        if not len(used):
            return None
        group_of_joint = np.zeros(len(counts), np.int32)
        group_of_joint[used] = np.arange(len(used), dtype=np.int32)
        groups = group_of_joint[np.clip(mesh.joint_indices, 0, len(counts) - 1)]
        return cls([joint_names[joint] for joint in used.tolist()], groups, mesh.joint_weights)


def build_mesh(
    name: str,
    mesh: Mesh,
    materials: Sequence[bpy.types.Material | None],
    keep: Callable[[bpy.types.ID], Any],
    weights: GroupWeights | None = None,
) -> bpy.types.Mesh:
    """Create a Blender mesh without its normals (see :func:`set_normals`).

    ``keep`` is called with the new mesh, so that it is removed if the import fails. The object of the mesh also gets
    the vertex groups of ``weights`` in that order. The triangles must be valid: corners within the points, no repeated
    points. Then ``Mesh.validate``, which takes as long as building and deletes two-sided triangles, is not needed.
    """
    if len(mesh.corner_point) and not 0 <= int(mesh.corner_point.min()) <= int(mesh.corner_point.max()) < len(
        mesh.points
    ):
        raise ValueError("corners outside the points: the codec let a broken mesh through")
    built: bpy.types.Mesh = keep(bpy.data.meshes.new(names.fit(name)))
    corners, triangles = len(mesh.corner_point), mesh.triangle_count
    built.vertices.add(len(mesh.points))
    points, corner_point = _flat(mesh.points, np.float32), _flat(mesh.corner_point, np.int32)
    if len(points):  # a mesh without loops lacks this attribute
        built.attributes["position"].data.foreach_set("vector", points)
    if weights is not None:
        written = vertex_weights.write(built, weights.groups, weights.weights)
        mesh_edits.store_weights(built, weights.names, weights.groups, written)
    built.loops.add(corners)
    built.polygons.add(triangles)
    # Set the attribute, sixty times as fast as loops.foreach_set("vertex_index"). A mesh without loops lacks it.
    if corners:
        built.attributes[".corner_vert"].data.foreach_set("value", corner_point)
        mesh_edits.store_values(built, "position", points)
        mesh_edits.store_values(built, ".corner_vert", corner_point)
    built.polygons.foreach_set("loop_start", np.arange(0, corners, 3, dtype=np.int32))
    for material in materials:
        built.materials.append(material)
    if len(materials) > 1:
        index = built.attributes.get("material_index") or built.attributes.new("material_index", "INT", "FACE")
        index.data.foreach_set("value", _flat(mesh.material_index, np.int32))
    for layer in mesh.uvs[:MOST_UV_LAYERS]:
        _set_uv(built, layer, mesh.corner_point)
    for number, layer in enumerate(mesh.colors):
        _set_color(built, layer, COLOR_NAME if number == 0 else f"{COLOR_NAME} {number + 1}")
    for layer in mesh.custom:
        if layer.name == FILE_VERTEX:
            _set_file_vertices(built, layer)
        else:
            _set_custom(built, layer)
    built.update(calc_edges=True)  # last, since it doubles the memory in use
    built.meshferry.file_vertices = len(mesh.points)
    built.meshferry.file_corners = corners
    built.meshferry.is_welded = any(layer.index is not None for layer in mesh.layers())
    return built


def _flat(values: npt.NDArray[np.generic], dtype: type[np.generic]) -> npt.NDArray[np.generic]:
    """Return values as ``foreach_set`` needs them to be fast: contiguous, flat and of the property's type."""
    return np.ascontiguousarray(values, dtype).reshape(-1)


def _set_uv(built: bpy.types.Mesh, layer: Layer, corner_point: npt.NDArray[np.int32]) -> None:
    uv = built.uv_layers.new(name=layer.name, do_init=False)
    if uv is None:
        return
    if layer.values.dtype == np.float32 and layer.index is None and not layer.per_corner:
        # Copy each pair of floats as one 8-byte number, which takes half the time. Work in blocks, since ``take`` makes
        # an 8-byte copy of 4-byte indices at the peak of the import's memory use.
        pairs = np.ascontiguousarray(layer.values).view(np.uint64).reshape(-1)
        taken = np.empty(len(corner_point), np.uint64)
        for start in range(0, len(taken), _BLOCK):
            block = slice(start, start + _BLOCK)
            np.take(pairs, corner_point[block], out=taken[block], mode="clip")  # the mode "raise" would copy
        values = taken.view(np.float32)
    else:
        values = _flat(layer.at_corners(corner_point), np.float32)
    uv.uv.foreach_set("vector", values)
    mesh_edits.store_values(built, uv.name, values, is_uv=True)


def _set_color(built: bpy.types.Mesh, layer: Layer, name: str) -> None:
    """Add a colour attribute: per corner if the layer is indexed or per corner, otherwise per point."""
    is_byte = layer.values.dtype == np.uint8
    on_corners = layer.index is not None or layer.per_corner
    values = layer.values[layer.index] if layer.index is not None else layer.values
    attribute = built.color_attributes.new(
        name, "BYTE_COLOR" if is_byte else "FLOAT_COLOR", "CORNER" if on_corners else "POINT"
    )
    if is_byte:
        # Only color_srgb preserves the 8-bit values.
        attribute.data.foreach_set("color_srgb", _flat(from_unorm(values), np.float32))
        mesh_edits.store_colors(built, attribute.name, values)
    else:
        attribute.data.foreach_set("color", _flat(values, np.float32))


def _set_custom(built: bpy.types.Mesh, layer: Layer) -> None:
    """Store a layer without an equivalent in Blender as attributes, and record its data type.

    A Blender attribute has 1 to 4 floats or one integer; other layers need an attribute for each component.
    """
    values = layer.values
    on_corners = layer.index is not None or layer.per_corner
    if layer.index is not None:
        values = values[layer.index]
    domain = "CORNER" if on_corners else "POINT"
    kept = built.meshferry.custom_layers.add()
    kept.name = layer.name
    kept.dtype = values.dtype.str
    kept.dimension = values.shape[1]
    whole = values.dtype.kind in "iu"
    if whole or values.shape[1] not in (1, 2, 3, 4) or values.dtype.itemsize > 4:
        _set_components(built, kept, layer.name, values, domain)
        return
    kind, field = {
        1: ("FLOAT", "value"),
        2: ("FLOAT2", "vector"),
        3: ("FLOAT_VECTOR", "vector"),
        4: ("FLOAT_COLOR", "color"),
    }[values.shape[1]]
    if kind == "FLOAT2" and domain == "CORNER":
        # Blender would take a corner attribute of two floats for a UV map.
        _set_components(built, kept, layer.name, values, domain)
        return
    attribute = built.attributes.new(names.fit(layer.name), kind, domain)
    kept.attribute = attribute.name
    attribute.data.foreach_set(field, _flat(values, np.float32))


def _set_file_vertices(built: bpy.types.Mesh, layer: Layer) -> None:
    """Store the index of the file's vertex on each corner, unless it equals the index of the corner's point."""
    if layer.index is not None:
        attribute = built.attributes.new(FILE_VERTEX, "INT", "CORNER")
        attribute.data.foreach_set("value", _flat(layer.values[layer.index], np.int32))


def _set_components(
    built: bpy.types.Mesh, kept: bpy.types.PropertyGroup, name: str, values: npt.NDArray[np.generic], domain: str
) -> None:
    """Store each component as an attribute ``name.0``, ``name.1`` …; 64-bit values are split into two integers."""
    if values.dtype.itemsize == 8:
        words = np.ascontiguousarray(values).view(np.int32)
    elif values.dtype.kind in "iu":
        words = values.astype(np.int32) if values.dtype.itemsize < 4 else np.ascontiguousarray(values).view(np.int32)
    else:
        words = np.ascontiguousarray(values, np.float32)
    kind = "FLOAT" if words.dtype == np.float32 else "INT"
    base = names.fit(name)[: compat.MAX_NAME_BYTES // 2]
    for column in range(words.shape[1]):
        attribute = built.attributes.new(f"{base}.{column}", kind, domain)
        if column == 0:
            kept.attribute = attribute.name[:-2]
        attribute.data.foreach_set("value", np.ascontiguousarray(words[:, column]))


def set_normals(built: bpy.types.Mesh, mesh: Mesh, *, exact: bool) -> None:
    """Set the custom normals of a mesh from its scene mesh.

    ``exact`` normals are free normals (from 4.5): exactly as stored, but they do not follow edits. Others are stored in
    tangent space and follow edits and deformation.
    """
    layer = mesh.normal
    if layer is None or not len(mesh.corner_point):
        return
    on_points = layer.index is None and not layer.per_corner
    if exact and compat.HAS_FREE_NORMALS:
        values = layer.values if on_points else layer.at_corners(mesh.corner_point)
        attribute = built.attributes.new("custom_normal", "FLOAT_VECTOR", "POINT" if on_points else "CORNER")
        attribute.data.foreach_set("vector", _flat(values, np.float32))
        return
    set_editable_normals(built, layer, mesh.corner_point)


def set_editable_normals(built: bpy.types.Mesh, layer: Layer, corner_point: npt.NDArray[np.int32]) -> None:
    """Set tangent-space normals of a mesh whose corners are at the given points, (C,)."""
    on_points = layer.index is None and not layer.per_corner
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
