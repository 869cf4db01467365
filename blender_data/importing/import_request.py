"""The request for an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import bpy

from ...io_formats.core.scene import Scene
from ...io_formats.disk.reach import Reach
from .import_options import ImportOptions


@dataclass(frozen=True)
class ImportRequest:
    """One scene to import into Blender."""

    context: bpy.types.Context
    scene: Scene
    options: ImportOptions
    source_path: str = ""
    """Path of the file, which is stored on the collection; mesh caches are written beside it."""
    armature: bpy.types.Object | None = None
    """Existing armature that is used for the scene's skeleton; joints are matched to bones by name. If None, each
    skeleton becomes a new armature. See :func:`.armature_matching.choose_for_scene`.
    """
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values of the format's options with which the scene was read, stored for a reload."""
    reach: Reach | None = None
    """The folders from which the file may bring in images. If None, all are brought in, and those from elsewhere named.
    """
