"""Scene -> upload set: the door to ``set_builder``. Upload sets are only written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from ..models import models_of
from .document import UploadSet
from .set_builder import SetBuilder


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scene whole: all its models are one upload, the first of its nodes the root of the linkset."""
    return [scene] if models_of(scene) else []


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> UploadSet:
    """Map a scene to an upload set with the options of ``options.EXPORT_OPTIONS``.

    Every file holds every model, for an object without a partner is an error in the viewer: a missing level is the
    next finer one again, missing physics is a box. What is left out or mended is added to ``scene.warnings``.

    Raises
    ------
    ExportError
        What the files cannot hold, with the object's name and the way out.
    """
    return SetBuilder(scene, options).document
