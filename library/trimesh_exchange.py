"""Meshes from and to the library trimesh."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..io_formats.core import scene as core
from ..io_formats.core.capabilities import Capabilities, losses
from ..io_formats.core.errors import MissingLibraryError
from ..io_formats.core.messages import Message
from ..io_formats.encodings.quantization import color_bytes
from .mesh import Mesh


def to_trimesh(mesh: Mesh) -> tuple[Any, list[Message]]:
    """Return a ``trimesh.Trimesh`` and the losses; see :meth:`Mesh.to_trimesh`."""
    trimesh = _trimesh()
    found = mesh.vertices()
    visual = None
    if found.uvs:
        visual = trimesh.visual.TextureVisuals(uv=found.uvs[0])
    elif found.colors:
        visual = trimesh.visual.ColorVisuals(vertex_colors=color_bytes(found.colors[0]))
    made = trimesh.Trimesh(
        found.points, found.triangles, vertex_normals=found.normals, visual=visual, process=False, validate=False
    )
    can = Capabilities(uv_layers=1, color_layers=0 if found.uvs else 1, normals=True)
    return made, losses(core.Scene("", [core.Node(mesh.name or "mesh", mesh=mesh._core)]), can)


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
