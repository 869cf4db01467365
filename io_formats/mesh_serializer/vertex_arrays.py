"""Convert a mesh to the vertices of a file: merge corners that agree in all written layers (section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import ExportError
from ..core.messages import Report, Text, counted
from ..core.scene import Layer, Mesh
from ..geometry.normals import uv_sides
from ..geometry.vertices import count_loose, drop_repeated_corners, split_mesh
from .document import MOST, MOST_SAFE
from .options import NORMALS, TANGENTS, UVS


def split_by_vertices(mesh: Mesh, options: Mapping[str, Any], tolerance: float, report: Report) -> Mesh:
    """Return a mesh with one point for each vertex of the file, and the written layers with one value for each point.

    Vertices keep the order of the points; vertices added by seams come last. Triangles keep their order.

    Parameters
    ----------
    options:
        Values of ``options.EXPORT_OPTIONS``.
    tolerance:
        Largest difference of the normals of one vertex's corners.
    report:
        Receives warnings; its item is the name of the object.

    Raises
    ------
    ExportError
        The mesh has no faces, or NaN or infinite coordinates.
    """
    mesh = _written_part(mesh, options)
    mesh, dropped = drop_repeated_corners(mesh)
    if dropped:
        number = counted(dropped, "triangle uses", "triangles use")
        report.change("repeated-corners", "{} a vertex twice; left out", number)
    if not mesh.triangle_count:
        raise ExportError("'{}' has no faces; points alone cannot be exported. Exclude it from the export", report.item)
    if not np.isfinite(mesh.points[mesh.corner_point]).all():
        raise ExportError("'{}' has vertices with NaN or infinite coordinates; delete them", report.item)
    loose = count_loose(mesh.corner_point, len(mesh.points))
    if loose:
        number = counted(loose, "vertex belongs", "vertices belong")
        report.loss("loose-vertices", "{} to no triangle; left out", number)
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
        counts = Text(
            "{:,} vertices, counted where seams split them, and {:,} triangles", len(mesh.points), mesh.triangle_count
        )
        raise ExportError(refusal_of_size(name, counts))


def refusal_of_size(name: str, counts: str) -> str:
    """Return the error message for a mesh that a file cannot hold."""
    return Text(
        "'{}' has {}; a file holds {:,} vertices and {:,} triangles. Choose to split it into numbered files, or "
        "reduce the number of faces",
        name,
        counts,
        MOST,
        MOST,
    )
