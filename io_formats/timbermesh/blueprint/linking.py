"""Complete the placement of a blueprint by the models and blueprints of its mod."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.messages import Message, distinct
from ...core.options import resolve
from ...core.scene import Scene
from ...projects import Projects
from ..model.format import GAME
from .document import Blueprint
from .mod_files import ModFiles
from .options import IMPORT_OPTIONS, MOD
from .placement_builder import PlacementBuilder

_NOT_MISSING = {"places-nothing"}


def link(
    document: Blueprint, scene: Scene, path: Path, projects: Projects, options: Mapping[str, Any] | None = None
) -> None:
    """Replace the placement of a scene by one with models and nested blueprints."""
    built = placement_builder(scene.name, projects, options).build(document, path)
    scene.placement, scene.warnings = built.placement, built.warnings


def missing(document: Blueprint, path: Path, projects: Projects, options: Mapping[str, Any]) -> list[Message]:
    """Return messages about missing and damaged models and blueprints, and about values that cannot be used."""
    found = placement_builder(path.stem, projects, options).build(document, path)
    return [message for message in distinct(found.warnings) if message.code not in _NOT_MISSING]


def placement_builder(name: str, projects: Projects, options: Mapping[str, Any] | None) -> PlacementBuilder:
    """Return the builder of a blueprint's placement, which reads the files around it."""
    chosen = resolve(IMPORT_OPTIONS, options)
    return PlacementBuilder(name, ModFiles(projects, MOD.text(chosen), GAME.text(chosen)))
