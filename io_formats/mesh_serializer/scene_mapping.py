"""Document <-> Scene: the door to ``scene_builder`` (in), ``file_parts`` and ``document_builder`` (out)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.scene import Scene
from . import file_parts
from .document import Document
from .document_builder import DocumentBuilder
from .scene_builder import SceneBuilder


def to_scene(document: Document, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a file to Blender's space with the options of ``options.IMPORT_OPTIONS``.

    One node with one mesh, all of whose layers have a value a point, in the order of the file. Its only material has
    no name; submeshes of a relative get one each. ``Surface.properties`` have ``position_domain`` and ``uv_domain``,
    layers of normals and tangents ``stored``, so that what nobody touched is written as it was. What was mended is told
    in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).scene


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scenes that each become a file: one for each object with a mesh, or one with all joined.

    With ``large_meshes`` SPLIT, objects of more than 64,000 vertices or triangles become several, named ``name_1``
    and so on.

    Raises
    ------
    ExportError
        An object that is to be split has points that are no numbers.
    """
    return file_parts.files_of(scene, options)


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Document:
    """Map a scene with one mesh to a file with the options of ``options.EXPORT_OPTIONS``, ``Variant.CURRENT``.

    What is left out or mended is added to ``scene.warnings``.

    Raises
    ------
    ExportError
        No faces, more vertices or triangles than a file holds, coordinates that are no numbers.
    """
    return DocumentBuilder(scene, options).document
