"""Physics shapes that nobody made: boxes and convex hulls around points."""

from __future__ import annotations

from ...io_formats.scene import FloatArray, Mesh

MOST_POINTS = 256
"""Points that a hull may have."""


def convex_hull(points: FloatArray) -> Mesh:
    """Return the convex hull of points (P, 3), triangles outward, of at most 256 points, without material or layers.

    Points in a plane give a flat polygon with both its sides, points on a line or at one place a box around them
    without volume on the other axes.
    """
    raise NotImplementedError


def hulls_of_parts(mesh: Mesh) -> list[Mesh]:
    """Return the convex hull of each loose part of a mesh; triangles that share a place belong to one part."""
    raise NotImplementedError


def box(points: FloatArray) -> Mesh:
    """Return the box around points (P, 3) along the axes: 8 points, 12 triangles outward."""
    raise NotImplementedError
