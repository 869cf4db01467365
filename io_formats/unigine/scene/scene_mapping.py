"""Document <-> Scene."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.scene import Scene
from ...projects import Projects
from .document import SceneFile
from .placement_builder import PlacementBuilder


def to_scene(document: SceneFile, name: str, options: Mapping[str, Any] | None = None) -> Scene:
    """Map a node or world file to a placement of its own nodes and meshes, with the options of ``IMPORT_OPTIONS``.

    References to other files are followed by :mod:`.linking`.
    """
    return PlacementBuilder(name, None, options).build(document)


def files_of(scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
    """Return the scene in a list; an empty list if it has neither meshes nor placed nodes."""
    placement = scene.placement
    has_nodes = bool(placement.parts[0].nodes) if placement is not None else any(node.mesh for node in scene.nodes)
    return [scene] if has_nodes else []


def from_scene(scene: Scene, options: Mapping[str, Any] | None = None) -> SceneFile:
    """Map a scene to a new file outside of any project."""
    return from_scene_at(scene, options or {}, None, None)


def from_scene_at(scene: Scene, options: Mapping[str, Any], path: Path | None, projects: Projects | None) -> SceneFile:
    """Map a scene to a new file at a path, with the options of ``EXPORT_OPTIONS``, and the files beside it.

    ``scene.warnings`` reports data that is left out.

    Raises
    ------
    ExportError
        Data that no file can hold, or a folder that only the editor writes into.
    """
    from .set_builder import SetBuilder  # imported here, since it imports the modules for meshes

    return SetBuilder(scene, options, path, projects or Projects()).build()
