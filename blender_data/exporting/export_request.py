"""The request for an export."""

from __future__ import annotations

from dataclasses import dataclass

import bpy

from ...io_formats.core.capabilities import Capabilities
from ..animation.file_clips import FileClips
from .export_options import ExportOptions
from .object_selection import Source


@dataclass(frozen=True)
class ExportRequest:
    """A part of the open .blend file that is to be read as one scene."""

    context: bpy.types.Context
    source: Source
    """A collection, the selection, some objects or the whole scene."""
    options: ExportOptions
    name: str
    """Name of the scene, and of its root if the source is not a collection."""
    capabilities: Capabilities
    """Capabilities of the target format. Data that the format cannot store is reported, and not read."""
    file_clips: FileClips | None = None
    """If set, animations of other files are left out; animations made in Blender are kept."""
