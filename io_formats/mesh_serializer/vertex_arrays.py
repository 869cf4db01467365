"""Convert a mesh to the vertices of a file: merge corners that agree in all written layers (section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import ExportError
from ..core.messages import Warn, counted, unheard
from ..core.scene import Layer, Mesh
from ..geometry.tangents import uv_sides
from ..geometry.vertices import drop_repeated_corners, split_mesh
from .document import MOST, MOST_SAFE
from .options import NORMALS, TANGENTS, UVS


def split_by_vertices(
    mesh: Mesh, options: Mapping[str, Any], tolerance: float, *, name: str, warn: Warn = unheard
) -> Mesh:
    """Return a mesh with one point for each vertex of the file, and the written layers with one value for each point.

    Vertices keep the order of the points; vertices added by seams come last. Triangles keep their order.

    Parameters
    ----------
    options:
        Values of ``options.EXPORT_OPTIONS``.
    tolerance:
        Largest difference of the normals of one vertex's corners.
    name:
        Name of the object, for errors.
    warn:
        Called with each warning.

    Raises
    ------
    ExportError
        The mesh has no faces, or NaN or infinite coordinates.
    """
    mesh = _written_part(mesh, options)
    mesh, dropped = drop_repeated_corners(mesh)
    if dropped:
        warn(f"{counted(dropped, 'triangle uses', 'triangles use')} a vertex twice; left out")
    if not mesh.triangle_count:
        raise ExportError(f"'{name}' has no faces; points alone cannot be exported. Exclude it from the export")
    if not np.isfinite(mesh.points[mesh.corner_point]).all():
        raise ExportError(f"'{name}' has vertices with NaN or infinite coordinates; delete them")
    used = np.zeros(len(mesh.points), bool)
    used[mesh.corner_point] = True
    loose = int(np.count_nonzero(~used))
    if loose:
        warn(f"{counted(loose, 'vertex belongs', 'vertices belong')} to no triangle; left out")
    if mesh.tangent is None and mesh.uvs and writes_tangents(mesh, options):
        return replace(split_mesh(_with_sides(mesh), tolerance)[0], tangent=None)
    return split_mesh(mesh, tolerance)[0]


def _with_sides(mesh: Mesh) -> Mesh:
    """Return a mesh with a tangent layer that separates corners at seams of mirrored UVs."""
    sides = np.zeros((len(mesh.corner_point), 4), np.float32)
    sides[:, 3] = uv_sides(mesh.uvs[0].at_corners(mesh.corner_point))
    return replace(mesh, tangent=Layer("tangent", sides, per_corner=True))


def _written_part(mesh: Mesh, options: Mapping[str, Any]) -> Mesh:
    """Return a mesh with only the layers that the file will hold."""
    uvs = mesh.uvs[:1] if UVS.flag(options) else []
    tangents = writes_tangents(mesh, options)
    return replace(
        mesh,
        normal=mesh.normal if NORMALS.flag(options) or tangents else None,
        tangent=mesh.tangent if tangents else None,
        uvs=uvs if not tangents else mesh.uvs[:1],
        colors=[],
        custom=[],
        shape_keys=[],
        joint_indices=None,
        joint_weights=None,
    )


def writes_tangents(mesh: Mesh, options: Mapping[str, Any]) -> bool:
    """Return whether tangents are written: always, or if the imported file had them."""
    choice = TANGENTS.text(options)
    return bool(
        choice == "ALWAYS" or (choice == "AUTO" and mesh.tangent is not None and mesh.tangent.stored is not None)
    )


def is_too_large(mesh: Mesh) -> bool:
    """Return whether a mesh with one point for each vertex exceeds the limits of the original reader."""
    return max(len(mesh.points), mesh.triangle_count) > MOST_SAFE


def refuse_too_large(mesh: Mesh, name: str) -> None:
    """Raise ExportError for a mesh with one point for each vertex that a file cannot hold (section 4).

    Raises
    ------
    ExportError
        The message names the counts and what to do.
    """
    if max(len(mesh.points), mesh.triangle_count) > MOST:
        counts = f"{len(mesh.points):,} vertices, counted where seams split them, and {mesh.triangle_count:,} triangles"
        raise ExportError(refusal_of_size(name, counts))


def refusal_of_size(name: str, counts: str) -> str:
    """Return the error message for a mesh that a file cannot hold."""
    return (
        f"'{name}' has {counts}; a file holds {MOST:,} vertices and {MOST:,} triangles. "
        "Choose to split it into numbered files, or reduce the number of faces"
    )
