"""Scene -> upload set: the interface of ``set_builder``. Upload sets are only written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from ..models.models import models_of
from .document import UploadSet
from .set_builder import SetBuilder


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the whole scene: all its models are one upload, and the first node is the root of the linkset."""
    return [scene] if models_of(scene) else []


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> UploadSet:
    """Map a scene to an upload set with the options of ``options.EXPORT_OPTIONS``.

    Every level holds every model, since the viewer requires that: a missing level repeats the next finer one. The
    physics file holds only models with a physics mesh or hulls, because the viewer gives the others their convex hull;
    without any such model there is no physics file. ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Data that the files cannot hold; the message names the object and says what to do.
    """
    return SetBuilder(scene, options).document
