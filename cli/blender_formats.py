"""Kinds of files that Blender itself reads and writes: .blend, and those of its own importers and exporters.

What each can hold is measured, not promised: tests write a scene with everything in it, read it back and compare.
Nothing here loads Blender.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..io_formats.capabilities import Capabilities

MOST_UV_LAYERS = 8
"""What a mesh of Blender holds."""
ANY_NUMBER = 1_000_000
"""Of layers or weights, where neither the file nor Blender sets a limit that a mesh could reach."""


@dataclass(frozen=True)
class BlenderFormat:
    """A kind of file that goes through Blender's own operators."""

    name: str
    label: str
    extensions: tuple[str, ...]
    """With the dot, in lower case; the first is the one to write."""
    capabilities: Capabilities
    importers: tuple[str, ...] = ()
    """Operators that read it, such as ``import_scene.gltf``: the first that this Blender has; none: Blender opens the
    file itself."""
    exporters: tuple[str, ...] = ()
    """Operators that write it."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the importers; each takes those that it has."""
    writing: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the exporters."""
    is_set: bool = False
    """Whether several files may be written beside each other."""

    @property
    def is_blend(self) -> bool:
        """Whether Blender opens and saves the file itself."""
        return not self.importers


_EVERYTHING = Capabilities(
    uv_layers=MOST_UV_LAYERS,
    color_layers=ANY_NUMBER,
    custom_layers=True,
    normals=True,
    materials=True,
    node_hierarchy=True,
    shape_keys=True,
    skeletons=True,
    influences=ANY_NUMBER,
    node_clips=True,
    joint_clips=True,
    vertex_clips=True,
    levels_of_detail=True,
    surfaces=True,
    physics=True,
)

BLEND_FILE = BlenderFormat(name="blend", label="Blender", extensions=(".blend",), capabilities=_EVERYTHING)

BLENDER_FORMATS: tuple[BlenderFormat, ...] = (BLEND_FILE,)


def by_extension(extension: str) -> BlenderFormat | None:
    """Return the kind of file with an extension (with its dot, in any case), or None."""
    for known in BLENDER_FORMATS:
        if extension.lower() in known.extensions:
            return known
    return None


def by_path(path: Path) -> BlenderFormat | None:
    """Return the kind of file that a path is by its extension, or None."""
    return by_extension(path.suffix)


def extensions() -> tuple[str, ...]:
    """Return the extensions of all, each with its dot."""
    return tuple(extension for known in BLENDER_FORMATS for extension in known.extensions)
