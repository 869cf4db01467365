"""Materials of a mesh from the project that its file is in (docs/formats/unigine_projects.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import MeshferryError
from ...core.options import resolve
from ...core.projects import Projects
from ...core.scene import Scene
from ..project.folders import open_project
from ..project.options import PROJECT_FOLDER, PROJECT_MATERIALS
from .document import MeshFile
from .options import IMPORT_OPTIONS


def link(_document: MeshFile, scene: Scene, path: Path, projects: Projects, options: Mapping[str, Any]) -> None:
    """Give the surfaces of a mesh the materials of its project. Surfaces keep their names, so an export is the same."""
    chosen = resolve(IMPORT_OPTIONS, options)
    if not PROJECT_MATERIALS.flag(chosen):
        return
    try:
        project = open_project(path, projects, PROJECT_FOLDER.text(chosen))
    except MeshferryError as problem:
        scene.warnings.append(str(problem))
        return
    if project is None:
        return
    from ..project_materials import ProjectMaterials

    meshes = [node.mesh for node in scene.nodes if node.mesh is not None and node.mesh.surfaces]
    names = list(dict.fromkeys(surface.name for mesh in meshes for surface in mesh.surfaces))
    references = project.materials_of_mesh(path, names)
    materials = ProjectMaterials(project, set(names) - set(references))
    for mesh in meshes:
        mesh.materials = [
            materials.name_of(references[surface.name], surface.name) if surface.name in references else name
            for surface, name in zip(mesh.surfaces, mesh.materials, strict=True)
        ]
    scene.materials += materials.materials
    scene.warnings += materials.warnings()
