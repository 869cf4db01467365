"""Document -> Scene. Collada files of any program are read, but exports write Collada only as upload sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from . import partners
from .document import Collada
from .scene_builder import SceneBuilder

join = partners.join


def to_scene(document: Collada, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a document and its partners to Blender's space with the options of ``options.COLLADA_IMPORT_OPTIONS``."""
    return SceneBuilder(document, name, options).scene
