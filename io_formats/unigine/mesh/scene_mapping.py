"""Document <-> Scene: the interface of ``scene_builder`` (import), ``file_parts`` and ``mesh_builder`` (export)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from . import file_parts
from .document import MeshFile
from .mesh_builder import MeshBuilder
from .scene_builder import SceneBuilder

files_of = file_parts.files_of


def to_scene(document: MeshFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a mesh file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    The scene has one node with all surfaces, or one for each level of detail (``use_lod_objects``). Layers of triangle
    vertices share one index. Repairs are reported in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).scene


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> MeshFile:
    """Map a scene with one mesh to a file with the options of ``options.EXPORT_OPTIONS``.

    ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Data that the version, or any file, cannot hold; the message says what to do.
    """
    return MeshBuilder(scene, options).document
