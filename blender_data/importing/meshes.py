"""Meshes of a scene -> Blender meshes and shape keys; all data is written by ``foreach_set``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import bmesh
import bpy
import numpy as np
import numpy.typing as npt

from ...io_formats.core.scene import FloatArray, IntArray, Layer, Mesh, ShapeKey, VertexTrack
from ...io_formats.encodings.quantization import from_unorm
from .. import arrays, names
from ..arrays import FILE_VERTEX, FILE_VERTEX_LAYER
from ..mesh_data import attribute_names, checksums, vertex_weights
from .actions import ClipActions, add_keys

COLOR_NAME = "Color"

MOST_UV_LAYERS = 8
"""Largest number of UV maps that a Blender mesh can have."""

_BLOCK = 1 << 18


@dataclass
class GroupWeights:
    """The weights of a mesh as indices of vertex groups of its object."""

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


def triangle_count(mesh: bpy.types.Mesh) -> int:
    """Return the number of triangles of a mesh; a polygon of n corners has n - 2."""
    return len(mesh.loops) - 2 * len(mesh.polygons)


def build_mesh(
    name: str,
    mesh: Mesh,
    materials: Sequence[bpy.types.Material | None],
    keep: Callable[[bpy.types.ID], Any],
    weights: GroupWeights | None = None,
    sizes: IntArray | None = None,
) -> bpy.types.Mesh:
    """Create a Blender mesh without its normals (see :func:`set_editable_normals`).

    ``keep`` is called with the new mesh, so that it is removed if the import fails. The object of the mesh also gets
    the vertex groups of ``weights`` in that order. The corners of ``mesh`` are those of polygons of ``sizes`` (G,), or
    of triangles. They must be valid: corners within the points, no repeated points. Then ``Mesh.validate``, which takes
    as long as building and deletes two-sided triangles, is not needed.
    """
    if len(mesh.corner_point) and not 0 <= int(mesh.corner_point.min()) <= int(mesh.corner_point.max()) < len(
        mesh.points
    ):
        raise ValueError("corners outside the points: the codec let a broken mesh through")
    built: bpy.types.Mesh = keep(bpy.data.meshes.new(names.fit(name)))
    corners = len(mesh.corner_point)
    built.vertices.add(len(mesh.points))
    points = arrays.flat(mesh.points)
    if len(points):  # a mesh without loops has no such attribute
        built.attributes["position"].data.foreach_set("vector", points)
    if weights is not None:
        written = vertex_weights.write(built, weights.groups, weights.weights)
        checksums.store_weights(built, weights.names, weights.groups, written)
    arrays.add_polygons(built, mesh.corner_point, sizes)
    if corners:
        checksums.store_values(built, "position", points)
        checksums.store_values(built, ".corner_vert", arrays.flat(mesh.corner_point, np.int32))
    for material in materials:
        built.materials.append(material)
    if len(materials) > 1:
        index = built.attributes.get("material_index") or built.attributes.new("material_index", "INT", "FACE")
        index.data.foreach_set("value", arrays.flat(mesh.material_index, np.int32))
    for layer in mesh.uvs[:MOST_UV_LAYERS]:
        _set_uv(built, layer, mesh.corner_point)
    if 0 < mesh.render_uv < len(built.uv_layers):
        built.uv_layers.active_index = mesh.render_uv
        built.uv_layers[mesh.render_uv].active_render = True
    for number, layer in enumerate(mesh.colors):
        _set_color(built, layer, COLOR_NAME if number == 0 else f"{COLOR_NAME} {number + 1}")
    for layer in mesh.custom:
        _set_custom(built, layer)
    built.update(calc_edges=True)  # called last, since it doubles the memory use
    built.meshferry.file_vertices = len(mesh.points)
    built.meshferry.file_corners = corners
    built.meshferry.is_welded = any(layer.index is not None for layer in mesh.layers())
    return built


def _set_uv(built: bpy.types.Mesh, layer: Layer, corner_point: npt.NDArray[np.int32]) -> None:
    """Add a UV map with the values of a layer, unless the mesh has the most that Blender allows."""
    uv = built.uv_layers.new(name=layer.name, do_init=False)
    if uv is None:
        return
    if layer.values.dtype == np.float32 and arrays.domain_of(layer) == "POINT":
        # Copy each pair of floats as one 8-byte number, which takes half the time. Work in blocks, since ``take`` makes
        # an 8-byte copy of 4-byte indices at the peak of the import's memory use.
        pairs = np.ascontiguousarray(layer.values).view(np.uint64).reshape(-1)
        taken = np.empty(len(corner_point), np.uint64)
        for start in range(0, len(taken), _BLOCK):
            block = slice(start, start + _BLOCK)
            np.take(pairs, corner_point[block], out=taken[block], mode="clip")  # the mode "raise" would copy the output
        values = taken.view(np.float32)
    else:
        values = arrays.flat(layer.at_corners(corner_point), np.float32)
    uv.uv.foreach_set("vector", values)
    checksums.store_values(built, uv.name, values, is_uv=True)


def _set_color(built: bpy.types.Mesh, layer: Layer, name: str) -> None:
    """Add a colour attribute: on corners if the layer is indexed or has a value per corner, otherwise on points."""
    is_byte = layer.values.dtype == np.uint8
    values = layer.values[layer.index] if layer.index is not None else layer.values
    kind = "BYTE_COLOR" if is_byte else "FLOAT_COLOR"
    attribute = built.color_attributes.new(name, kind, arrays.domain_of(layer))
    if is_byte:
        # Only color_srgb preserves the 8-bit values.
        attribute.data.foreach_set("color_srgb", arrays.flat(from_unorm(values), np.float32))
        checksums.store_values(built, attribute.name, values)
    else:
        attribute.data.foreach_set("color", arrays.flat(values, np.float32))


_FLOATS = {1: "FLOAT", 2: "FLOAT2", 3: "FLOAT_VECTOR", 4: "FLOAT_COLOR"}
"""Data types of float attributes, by their number of components."""


def _set_custom(built: bpy.types.Mesh, layer: Layer) -> None:
    """Store a layer without an equivalent in Blender as attributes, and record its data type.

    A Blender attribute has 1 to 4 floats or one integer; other layers need an attribute for each component.
    """
    if layer.name == FILE_VERTEX_LAYER:
        if layer.index is not None:  # not all corners have the vertex of their point in the file
            arrays.add_layer(built, FILE_VERTEX, "INT", layer, layer.values)
        return
    values = layer.values if layer.index is None else layer.values[layer.index]
    domain = arrays.domain_of(layer)
    kept = built.meshferry.custom_layers.add()
    kept.name, kept.dtype, kept.dimension = layer.name, values.dtype.str, values.shape[1]
    kind = _FLOATS.get(values.shape[1]) if values.dtype.kind not in "iu" and values.dtype.itemsize <= 4 else None
    # Blender would treat a corner attribute of two floats as a UV map.
    if kind is None or (kind == "FLOAT2" and domain == "CORNER"):
        _set_components(built, kept, values, domain)
    else:
        kept.attribute = attribute_names.free_name(built, layer.name, 0)
        arrays.add_attribute(built, kept.attribute, kind, domain, values)


def _set_components(
    built: bpy.types.Mesh, kept: bpy.types.PropertyGroup, values: npt.NDArray[np.generic], domain: str
) -> None:
    """Store each component as an attribute ``name.0``, ``name.1`` …; 64-bit values are split into two integers."""
    if values.dtype.itemsize == 8:
        words = np.ascontiguousarray(values).view(np.int32)
    elif values.dtype.kind in "iu":
        words = values.astype(np.int32) if values.dtype.itemsize < 4 else np.ascontiguousarray(values).view(np.int32)
    else:
        words = np.ascontiguousarray(values, np.float32)
    kind = "FLOAT" if words.dtype == np.float32 else "INT"
    kept.attribute = attribute_names.free_name(built, kept.name, words.shape[1])
    for column in range(words.shape[1]):
        arrays.add_attribute(built, f"{kept.attribute}.{column}", kind, domain, words[:, column])


def add_hull_faces(built: bpy.types.Mesh) -> None:
    """Add the faces of the convex hull, which files do not store, to a mesh of points; all points are kept in order.

    Coplanar points get a flat polygon. Points on a line or at one position get no faces.
    """
    with arrays.edited(built) as made:
        bmesh.ops.convex_hull(made, input=made.verts[:], use_existing_faces=False)
    built.meshferry.file_corners = len(built.loops)


BASIS = "Basis"


def add_file_shapes(owner: bpy.types.Object, shapes: Sequence[ShapeKey]) -> dict[str, str]:
    """Create a shape key with value 0 for each shape of a mesh.

    Return their names in Blender by the names in the file.
    """
    given: dict[str, str] = {}
    if not shapes:
        return given
    owner.shape_key_add(name=BASIS, from_mix=False).value = 0.0
    fitting = names.fit_all([BASIS, *(shape.name for shape in shapes)], "Key")[1:]
    for shape, name in zip(shapes, fitting, strict=True):
        key = owner.shape_key_add(name=name, from_mix=False)
        key.points.foreach_set("co", arrays.flat(shape.points))
        key.value = 0.0  # Blender 5.0 gives new keys the value 1
        given[shape.name] = key.name
    return given


def add_shape_keys(owner: bpy.types.Object, clip_actions: ClipActions, track: VertexTrack) -> None:
    """Create a shape key for each frame, and key their values so that they play one after the other.

    Values are interpolated linearly between two frames, like the frames of the file. Frames that equal the rest shape
    need no shape key.
    """
    mesh = owner.data
    rest = arrays.points_of(mesh).reshape(-1)
    if mesh.shape_keys is None:
        owner.shape_key_add(name=BASIS, from_mix=False)
    keys = mesh.shape_keys
    curves = clip_actions.curves_for(keys)
    frames = clip_actions.timing.frames
    last = len(frames) - 1
    for number, points in enumerate(track.points):
        flat = arrays.flat(points)
        if np.array_equal(flat, rest):
            continue
        key = owner.shape_key_add(name=names.fit(f"{clip_actions.clip.name} {number + 1:03d}"), from_mix=False)
        key.points.foreach_set("co", flat)
        key.value = 0.0  # Blender 5.0 gives new keys the value 1
        around = [frame for frame in (number - 1, number, number + 1) if 0 <= frame <= last]
        path = f'key_blocks["{bpy.utils.escape_identifier(key.name)}"].value'
        values = np.asarray([float(frame == number) for frame in around])
        add_keys(curves.new(path, index=0), frames[around], values, clip_actions.checksums)


def add_mesh_cache(owner: bpy.types.Object, path: str, frame_start: float, step: float) -> None:
    """Add a point cache modifier whose samples are ``step`` key frames apart, starting at ``frame_start``."""
    modifier = owner.modifiers.new("Vertex Animation", "MESH_CACHE")
    modifier.cache_format = "PC2"
    modifier.filepath = path
    modifier.interpolation = "LINEAR"
    modifier.play_mode = "SCENE"
    modifier.time_mode = "FRAME"
    modifier.forward_axis = "POS_Y"
    modifier.up_axis = "POS_Z"
    # Blender evaluates sample  frame_scale * frame - frame_start.
    modifier.frame_scale = 1.0 / step
    modifier.frame_start = frame_start / step
