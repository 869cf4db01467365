"""Materials of a mesh from the project that its file is in (docs/formats/unigine_projects.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import MeshferryError
from ...core.messages import Kind, Message
from ...core.options import resolve
from ...core.scene import Scene
from ...projects import Projects
from ..options import PROJECT_FOLDER, PROJECT_MATERIALS
from ..project.project import open_project
from .document import MeshFile
from .options import IMPORT_OPTIONS

if TYPE_CHECKING:
    from ..project.scene_materials import ProjectMaterials


def link(_document: MeshFile, scene: Scene, path: Path, projects: Projects, options: Mapping[str, Any]) -> None:
    """Give a mesh the materials of its project, and the name of its asset if its file is named by a GUID.

    Surfaces keep their names, so that an export writes the same names.
    """
    chosen = resolve(IMPORT_OPTIONS, options)
    if not PROJECT_MATERIALS.flag(chosen):
        return
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None and node.mesh.surfaces]
    names = [surface.name for mesh in meshes for surface in mesh.surfaces]
    try:
        found = _materials_of(names, path, projects, chosen)
    except MeshferryError as problem:
        scene.report.loss("project-not-used", "{}", problem.sentence())
        return
    if found is None:
        return
    materials, name_of = found
    if name := materials.project.name_of_runtime(path):
        _rename(scene, path.stem, name)
    for mesh in meshes:
        mesh.materials = [
            name_of.get(surface.name, name) for surface, name in zip(mesh.surfaces, mesh.materials, strict=True)
        ]
    scene.materials += materials.materials
    scene.warnings += materials.warnings()


def _rename(scene: Scene, old: str, new: str) -> None:
    """Replace the name of the file by another one wherever the scene was named after it."""
    parts: list[Any] = [scene, *scene.nodes, *scene.skeletons, *scene.clips]
    for part in parts:
        if part.name.startswith(old):
            part.name = new + part.name[len(old) :]


def missing(document: MeshFile, path: Path, projects: Projects, options: Mapping[str, Any]) -> list[Message]:
    """Return a message for each kind of file that the materials of a mesh need and that the project lacks."""
    try:
        found = _materials_of([surface.name for surface in document.surfaces], path, projects, options)
    except MeshferryError as problem:
        return [Message(Kind.LOSS, "", problem.sentence(), code="project-not-read")]
    return [*found[0].missing()] if found is not None else []


def _materials_of(
    names: list[str], path: Path, projects: Projects, options: Mapping[str, Any]
) -> tuple[ProjectMaterials, dict[str, str]] | None:
    """Return the materials of a mesh, and the name of the material of each surface that has one.

    The result is None outside of any project.
    """
    project = open_project(path, projects, str(options.get(PROJECT_FOLDER.name, "")))
    if project is None:
        return None
    from ..project.scene_materials import ProjectMaterials

    references = project.materials_of_mesh(path, list(dict.fromkeys(names)))
    materials = ProjectMaterials(project, set(names) - set(references))
    return materials, {surface: materials.name_of(reference, surface) for surface, reference in references.items()}
