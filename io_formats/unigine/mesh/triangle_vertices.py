"""The triangle vertices of a mesh: corners with the same point and layer values are one vertex (section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...core.messages import Report, counted
from ...core.scene import AnyArray, FloatArray, IntArray, Layer, Mesh, ShapeKey
from ...geometry import normals as normal_repair
from ...geometry.normals import vertex_tangents
from ...geometry.triangles import shared_index
from ...geometry.vertices import layer_keys, split

_LONGEST = np.float32(1e9)
"""Limit for components of tangents. A tangent with a larger one is ignored, since its square may overflow in single
precision."""


class TriangleVertices:
    """The V triangle vertices of a whole mesh.

    If all layers share one index, the rows of the layers are the triangle vertices, as in the imported file. Otherwise
    corners with the same point and layer values are one vertex.
    """

    def __init__(self, mesh: Mesh, tolerance: float, report: Report) -> None:
        self.mesh = mesh
        self.report = report
        index = shared_index(_stored_layers(mesh))
        if not mesh.triangle_count:
            index = None  # without corners, no value of a layer is used
        self.is_shared = index is not None
        self.index: IntArray
        """(C,) index of the triangle vertex of each corner."""
        if index is not None:
            self.index = index
            self.count = len(next(_stored_layers(mesh)).values)
        else:
            # Custom layers are not written, so they do not separate vertices.
            keys = layer_keys(replace(mesh, custom=[]), tolerance)
            found = split(mesh.corner_point, len(mesh.points), keys)
            self.index = found.corner_vertex
            self.count = len(found.vertex_corner)
            self.corner = found.vertex_corner

    @cached_property
    def corner(self) -> npt.NDArray[np.intp]:
        """(V,) a corner of each vertex; 0 for vertices that no corner uses."""
        corner = np.zeros(self.count, np.intp)
        corner[self.index] = np.arange(len(self.index))
        return corner

    @cached_property
    def point(self) -> IntArray:
        """(V,) the point of each vertex."""
        return self.mesh.corner_point[self.corner]

    def values(self, layer: Layer) -> AnyArray:
        """Return a layer's values at the vertices, (V, k)."""
        return layer.values if self.is_shared else layer.at_vertices(self.corner, self.point)

    def uv(self, layer: Layer) -> FloatArray:
        """Return UVs, (V, 2) float32, v from the top; NaN and infinite values become 0."""
        values = self.values(layer)
        flipped = np.empty((len(values), 2), np.float32)
        flipped[:, 0] = values[:, 0]
        np.subtract(np.float32(1), values[:, 1], out=flipped[:, 1])
        finite = np.isfinite(flipped)
        if not finite.all():
            flipped[~finite] = 0
            number = counted(int((~finite).sum()), "coordinate", "coordinates")
            self.report.change("nan-uv-coordinates", "{} of '{}' NaN or infinite; written as 0", number, layer.name)
        return flipped

    @cached_property
    def normals(self) -> FloatArray:
        """(V, 3) float32 unit normals. Zero and invalid normals are replaced by the normal of a triangle."""
        if self.mesh.normal is None:
            return normal_repair.vertex_normals(self.mesh.points, self.mesh.corner_point)[self.point]
        return self._repaired(self.values(self.mesh.normal).astype(np.float32, copy=False), self.mesh.points)

    def _repaired(self, normals: FloatArray, points: FloatArray) -> FloatArray:
        return normal_repair.repair_vertices(normals, self.corner, points, self.mesh.corner_point)[0]

    def tangents(self, normals: FloatArray, tangent: Layer | None, uv: Layer | None, points: FloatArray) -> FloatArray:
        """Return tangents, (V, 4) float32: the given ones, or else along u, or zero without UVs."""
        if tangent is None:
            if uv is None:
                return np.zeros((self.count, 4), np.float32)
            values = self.values(uv).astype(np.float32, copy=False)
            return vertex_tangents(points[self.point], normals, values, self.index)
        values = self.values(tangent).astype(np.float32, copy=False)
        if values.size and not (values.max() < _LONGEST and values.min() > -_LONGEST):
            sound = np.all(np.abs(values) < _LONGEST, axis=1, keepdims=True)
            values = np.where(sound, values, np.float32(0))
        return values

    def key_normals(self, key: ShapeKey) -> FloatArray:
        """Return the normals of a shape key, (V, 3).

        They are its own, or the rest normals rotated as the triangles are.
        """
        if key.normal is not None:
            return self._repaired(self.values(key.normal).astype(np.float32, copy=False), key.points)
        at_rest = normal_repair.vertex_normals(self.mesh.points, self.mesh.corner_point)
        moved = normal_repair.vertex_normals(key.points, self.mesh.corner_point)
        return self._repaired(self.normals + (moved - at_rest)[self.point], key.points)


def _stored_layers(mesh: Mesh) -> Iterator[Layer]:
    """Yield the layers that a file can store."""
    yield from replace(mesh, custom=[]).layers()
    for key in mesh.shape_keys:
        yield from (layer for layer in (key.normal, key.tangent) if layer is not None)
