"""Follow the references of a node or world file to the other files of its project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.messages import Message, distinct
from ...core.options import resolve
from ...core.scene import Scene
from ...projects import Projects
from ..options import PROJECT_FOLDER, PROJECT_MATERIALS
from ..project.project import Project, open_project
from .document import SceneFile
from .options import IMPORT_OPTIONS
from .placement_builder import PlacementBuilder
from .project_links import ProjectLinks


def link(
    document: SceneFile, scene: Scene, path: Path, projects: Projects, options: Mapping[str, Any] | None = None
) -> None:
    """Replace the placement of a scene by one that includes the files to which the document refers."""
    project = open_project(path, projects, PROJECT_FOLDER.text(resolve(IMPORT_OPTIONS, options)), is_scene=True)
    if project is None:
        return
    built, _ = _build(document, project, path, scene.name, options)
    scene.placement, scene.materials = built.placement, built.materials
    scene.warnings = built.warnings


def missing(document: SceneFile, path: Path, projects: Projects, options: Mapping[str, Any]) -> list[Message]:
    """Return messages about missing meshes, materials and node files, and about references that form cycles."""
    project = open_project(path, projects, str(options.get(PROJECT_FOLDER.name, "")), is_scene=True)
    if project is None:
        return []
    scene, links = _build(document, project, path, path.stem)
    known = {*document.warnings, *links.not_shown()}
    return [message for message in distinct(scene.warnings) if not message.is_note and message not in known]


def _build(
    document: SceneFile, project: Project, path: Path, name: str, options: Mapping[str, Any] | None = None
) -> tuple[Scene, ProjectLinks]:
    links = ProjectLinks(project, with_materials=PROJECT_MATERIALS.flag(resolve(IMPORT_OPTIONS, options)))
    return PlacementBuilder(name, links, options).build(document, project.relative(path) or path.name), links
