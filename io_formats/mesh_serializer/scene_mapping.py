"""Document <-> Scene: the interface of ``scene_builder`` (import), ``file_parts`` and ``document_builder`` (export)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.scene import Scene
from . import file_parts
from .document import Document
from .document_builder import DocumentBuilder
from .scene_builder import SceneBuilder

files_of = file_parts.files_of


def to_scene(document: Document, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    The scene has one node with one mesh, whose layers have one value for each point, in the order of the file. Its
    single material has no name; submeshes of a variant get one material each. Surfaces hold ``position_domain``
    and ``uv_domain``, and the layers of normals and tangents hold ``stored``, so that unchanged
    values are written with their imported bytes. Repairs are reported in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).scene


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Document:
    """Map a scene with one mesh to a file of ``Variant.CURRENT`` with the options of ``options.EXPORT_OPTIONS``.

    ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        No faces, more vertices or triangles than a file holds, or NaN or infinite coordinates.
    """
    return DocumentBuilder(scene, options).document
