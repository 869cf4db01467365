"""Meshes from and to the library trimesh."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..io_formats.core.errors import MissingLibraryError
from ..io_formats.core.messages import Message, Report, counted
from ..io_formats.encodings.quantization import color_bytes
from .mesh import Mesh


def to_trimesh(mesh: Mesh) -> tuple[Any, list[Message]]:
    """Return a ``trimesh.Trimesh`` and the losses; see :meth:`Mesh.to_trimesh`."""
    trimesh = _trimesh()
    found, report = mesh.vertices(), Report()
    visual = None
    if found.uvs:
        visual = trimesh.visual.TextureVisuals(uv=found.uvs[0])
    elif found.colors:
        visual = trimesh.visual.ColorVisuals(vertex_colors=color_bytes(found.colors[0]))
    made = trimesh.Trimesh(
        found.points, found.triangles, vertex_normals=found.normals, visual=visual, process=False, validate=False
    )
    _report_losses(mesh, report, has_colors=bool(found.colors) and not found.uvs)
    return made, report.messages


def _report_losses(mesh: Mesh, report: Report, *, has_colors: bool) -> None:
    for code, lost, noun in (
        ("uv-maps-left-out", len(mesh.uvs) - 1, "UV layer"),
        ("colors-left-out", len(mesh.colors) - has_colors, "colour layer"),
        ("shape-keys-left-out", len(mesh.shape_keys), "shape key"),
        ("materials-left-out", len([name for name in mesh.materials if name]), "material"),
        ("weights-left-out", int(mesh.weights is not None), "set of weights"),
    ):
        if lost > 0:
            report.loss(code, "{} not carried over", counted(lost, noun), item=mesh.name)


def from_trimesh(mesh: Any, *, materials: str = "") -> Mesh:
    """Return a mesh with the points, triangles, normals, and UVs or vertex colours of a ``trimesh.Trimesh``."""
    _trimesh()
    visual = mesh.visual
    uvs = [visual.uv] if visual.kind == "texture" and visual.uv is not None else []
    colors = [np.asarray(visual.vertex_colors)] if visual.kind == "vertex" else []
    return Mesh(mesh.vertices, mesh.faces, normals=mesh.vertex_normals, uvs=uvs, colors=colors, materials=materials)


def _trimesh() -> Any:
    try:
        return importlib.import_module("trimesh")
    except ImportError:
        raise MissingLibraryError("This needs the library 'trimesh': pip install trimesh") from None
