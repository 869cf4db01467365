"""Meshes from and to the library trimesh."""

import importlib
from dataclasses import replace
from typing import Any

import numpy as np

from ..io_formats.core import scene as core
from ..io_formats.core.capabilities import Capabilities, losses
from ..io_formats.core.errors import MeshferryError, MissingLibraryError
from ..io_formats.core.messages import Message, Report
from ..io_formats.encodings.quantization import color_bytes
from ..io_formats.geometry.vertices import report_loose, split_mesh
from .mesh import Mesh


def to_trimesh(mesh: Mesh) -> tuple[Any, list[Message]]:
    """Return a ``trimesh.Trimesh`` and the losses; see :meth:`Mesh.to_trimesh`."""
    try:
        trimesh = importlib.import_module("trimesh")
    except ImportError:
        raise MissingLibraryError("This needs the library 'trimesh': pip install trimesh") from None
    found, _ = split_mesh(replace(mesh._core, tangent=None, custom=[]), core.NORMAL_TOLERANCE)
    visual = None
    if found.uvs:
        visual = trimesh.visual.TextureVisuals(uv=found.uvs[0].values)
    elif found.colors:
        visual = trimesh.visual.ColorVisuals(vertex_colors=color_bytes(found.colors[0].values))
    normals = found.normal.values if found.normal is not None and len(found.points) else None
    triangles = found.corner_point.reshape(-1, 3)
    made = trimesh.Trimesh(found.points, triangles, vertex_normals=normals, visual=visual, process=False)
    can = Capabilities(uv_layers=1, color_layers=0 if found.uvs else 1, normals=True)
    report = Report(losses(core.Scene("", [core.Node(mesh.name or "mesh", mesh=mesh._core)]), can), mesh.name)
    report_loose(mesh._core, report)
    return made, report.messages


def from_trimesh(mesh: Any, *, materials: str = "") -> Mesh:
    """Return a mesh with the points, triangles, normals, and UVs or vertex colours of a ``trimesh.Trimesh``."""
    if not hasattr(mesh, "faces"):
        raise MeshferryError("A value of type '{}' is not a trimesh.Trimesh", type(mesh).__name__)
    visual = mesh.visual
    uvs = [visual.uv] if visual.kind == "texture" and visual.uv is not None else []
    colors = [np.asarray(visual.vertex_colors)] if visual.kind == "vertex" else []
    colors += [np.repeat(np.asarray(visual.face_colors)[:, None], 3, axis=1)] if visual.kind == "face" else []
    normals = mesh.vertex_normals if "vertex_normals" in mesh._cache else None  # otherwise trimesh makes smooth ones
    return Mesh(mesh.vertices, mesh.faces, normals=normals, uvs=uvs, colors=colors, materials=materials)
