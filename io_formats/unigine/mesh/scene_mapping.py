"""Document <-> Scene: the door to ``scene_builder`` (in), ``file_parts`` and ``mesh_builder`` (out)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from . import file_parts
from .document import MeshFile
from .mesh_builder import MeshBuilder
from .scene_builder import SceneBuilder


def to_scene(document: MeshFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a mesh file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    One node, or one for each level of detail (``use_lod_objects``), over all surfaces in a row; layers of triangle
    vertices share one index. What was mended is told in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).scene


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scenes that each become a file: one for each object, levels of detail with their finest.

    With ``mesh_files`` JOINED all objects become one.

    Raises
    ------
    ExportError
        What goes into one file hangs on different armatures.
    """
    return file_parts.files_of(scene, options)


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> MeshFile:
    """Map a scene with one mesh to a file with the options of ``options.EXPORT_OPTIONS``.

    What is left out or mended is added to ``scene.warnings``.

    Raises
    ------
    ExportError
        What no file or not the chosen version can hold, with the way out.
    """
    return MeshBuilder(scene, options).document
