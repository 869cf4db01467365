"""Quantised values of a file <-> attributes of the mesh, so that unchanged values are written exactly.

Directions with a few bits for each axis are not of unit length, but Blender's normals are, so the stored integers
cannot be computed from them. The same is true for UVs with more steps than floats have. The writer of the format checks
whether an attribute still matches the mesh.
"""

from dataclasses import replace

import bpy
import numpy as np

from ...io_formats.core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh
from .. import arrays

ATTRIBUTES = {"normal": "file_normal", "tangent": "file_tangent", "uv": "file_uv"}
"""Names of the attributes for the quantised values of each layer. All components are packed into one integer, the first
in its lowest bits."""

_TYPES = {"normal": "u1", "tangent": "u1", "uv": "<u2"}

COLOR_ATTRIBUTE = "file_color"
"""Name of the attribute with the sRGB-encoded red, green and blue of a file whose colours are not multiples of 1/255.

Blender's colours are linear, and in single precision the conversion is not exactly reversible.

Blender's colours are linear; decoding is not exactly reversible in single precision.
"""

_BYTES = 4


def write(built: bpy.types.Mesh, mesh: Mesh) -> None:
    """Store the quantised values of normals, tangents, first UVs and first colours as attributes, if there are any."""
    layers = {"normal": mesh.normal, "tangent": mesh.tangent, "uv": mesh.uvs[0] if mesh.uvs else None}
    for kind, layer in layers.items():
        if layer is None or layer.stored is None or len(layer.stored) != len(layer.values) or not len(layer.stored):
            continue
        packed = np.zeros((len(layer.stored), _BYTES), np.uint8)
        stored = np.ascontiguousarray(layer.stored, _TYPES[kind]).view(np.uint8)
        packed[:, : stored.shape[1]] = stored
        arrays.add_layer(built, ATTRIBUTES[kind], "INT", layer, packed.view("<i4"))
    layer = mesh.colors[0] if mesh.colors else None
    if layer is None or layer.stored is None or layer.stored.dtype != np.float32:
        return
    if len(layer.stored) != len(layer.values) or not len(layer.stored):
        return
    arrays.add_layer(built, COLOR_ATTRIBUTE, "FLOAT_VECTOR", layer, layer.stored)


def colors_of(data: bpy.types.Mesh, color: bpy.types.Attribute) -> FloatArray | None:
    """Return the sRGB-encoded values that a mesh stores for a float colour attribute, (N, 3) in its domain, or None."""
    attribute = data.attributes.get(COLOR_ATTRIBUTE)
    if attribute is None or attribute.data_type != "FLOAT_VECTOR" or attribute.domain != color.domain:
        return None
    return arrays.read(attribute.data, "vector", 3)


def with_stored(
    layer: Layer | None, kind: str, data: bpy.types.Mesh, corner_point: IntArray, loops: IntArray | None
) -> Layer | None:
    """Return a layer with its stored quantised values, if the mesh has them.

    Parameters
    ----------
    kind:
        One of ``ATTRIBUTES``.
    corner_point, loops:
        (C,) the point and the loop of each corner of the triangles; None for loops if they equal the corners.
    """
    attribute = data.attributes.get(ATTRIBUTES[kind])
    if layer is None or attribute is None or attribute.data_type != "INT" or not len(layer.values):
        return layer
    if attribute.domain not in {"POINT", "CORNER"}:
        return layer
    numbers = arrays.read(attribute.data, "value", dtype=np.int32)
    rows = numbers.astype("<i4", copy=False).view(_TYPES[kind]).reshape(len(numbers), -1)
    stored = rows[:, : layer.values.shape[1]].astype(rows.dtype.newbyteorder("="), copy=False)
    on_points = attribute.domain == "POINT"
    if arrays.domain_of(layer) == "POINT":
        return replace(layer, stored=np.ascontiguousarray(stored)) if on_points else layer
    at_corners = stored[corner_point] if on_points else stored if loops is None else stored[loops]
    return replace(layer, stored=_in_order(layer, at_corners))


def _in_order(layer: Layer, at_corners: AnyArray) -> AnyArray:
    """Rearrange the quantised values of the corners, (C, k), to the order of a layer's rows."""
    if layer.index is None:
        return np.ascontiguousarray(at_corners)
    stored = np.zeros((len(layer.values), at_corners.shape[1]), at_corners.dtype)
    stored[layer.index] = at_corners
    return stored
