"""Document <-> Scene: the door to ``scene_builder`` (in) and ``model_builder`` (out)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.scene import Scene
from .document import Model
from .model_builder import ModelBuilder
from .scene_builder import SceneBuilder


def to_scene(model: Model, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a model to Blender's space; there are no options.

    What the read rules of docs/formats/timbermesh.md reject or mend is told in ``scene.warnings``.
    Nodes keep their order; roots have the property ``is_root``.
    """
    return SceneBuilder(model, name).scene


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Model:
    """Map a scene to a model with the options of ``options.EXPORT_OPTIONS``.

    Nodes without parent become roots. What is left out or mended is added to ``scene.warnings``.

    Raises
    ------
    ExportError
        Coordinates that are no numbers, an animation without name or frames.
    """
    return ModelBuilder(scene, options).model


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scenes that each become a file: a Timbermesh holds a whole scene."""
    return [scene]
