"""Document <-> Scene: the interface of ``scene_builder`` (import) and ``model_builder`` (export)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.scene import Scene
from .document import Model
from .model_builder import ModelBuilder
from .scene_builder import build_scene


def to_scene(model: Model, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a model to Blender's space; there are no options.

    ``scene.warnings`` reports what the read rules of docs/formats/timbermesh.md reject or repair. Nodes keep their
    order; roots have the property ``is_root``.
    """
    return build_scene(model, name)


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> Model:
    """Map a scene to a model with the options of ``options.EXPORT_OPTIONS``.

    Nodes without parent become roots. ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Coordinates are NaN or infinite, or an animation has no name or no frames.
    """
    return ModelBuilder(scene, options).model


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scenes that each become a file: one, since a Timbermesh file holds a whole scene."""
    return [scene]
