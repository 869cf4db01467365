"""Kinds of files that Blender itself reads and writes: .blend, and those of its own importers and exporters."""

from __future__ import annotations

from dataclasses import dataclass

from ..io_formats.capabilities import Capabilities


@dataclass(frozen=True)
class BlenderFormat:
    """A kind of file that goes through Blender's own operators."""

    name: str
    label: str
    extensions: tuple[str, ...]
    """With the dot, in lower case; the first is the one to write."""
    capabilities: Capabilities
    importer: str = ""
    """Operator that reads it, such as ``import_scene.gltf``; empty: Blender opens the file itself."""
    exporter: str = ""
    """Operator that writes it."""
