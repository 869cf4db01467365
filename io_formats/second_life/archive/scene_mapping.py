"""Archive -> Scene."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.scene import Scene
from .document import Archive
from .placement_builder import PlacementBuilder


def to_scene(document: Archive, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map an archive to a scene that places the meshes of its parts, with the options of ``options.IMPORT_OPTIONS``.

    Raises
    ------
    FormatError
        The archive cannot be read again.
    """
    return PlacementBuilder(document, name, options).build()
