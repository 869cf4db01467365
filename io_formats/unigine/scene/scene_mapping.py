"""Document -> Scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from .document import SceneFile
from .placement_builder import PlacementBuilder


def to_scene(document: SceneFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a node or world file to a placement of its own nodes and meshes, with the options of ``IMPORT_OPTIONS``.

    References to other files are followed by :mod:`.linking`.
    """
    return PlacementBuilder(name, None, options).build(document)
