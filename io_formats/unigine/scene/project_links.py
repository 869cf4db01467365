"""References of a scene in the project that its file is in."""

from __future__ import annotations

from functools import partial

from ...core.scene import Material
from ..project.project import Project
from ..project.references import Rule
from ..project_materials import ProjectMaterials
from .links import LinkedFile

_SOURCES = (".fbx", ".gltf", ".glb", ".obj", ".dae")


class ProjectLinks:
    """Resolves references by a project.

    Parameters
    ----------
    project:
        The project.
    with_materials:
        Whether surfaces get the materials of the project. Otherwise they have those of the mesh files.
    """

    def __init__(self, project: Project, *, with_materials: bool = True) -> None:
        self._project = project
        self._materials = ProjectMaterials(project) if with_materials else None
        self._problems: list[str] = []

    def find(self, reference: str) -> LinkedFile | None:
        """Return the file of a reference, or None if it is missing."""
        found = self._project.find(reference)
        if found.path is None:
            return None
        is_source = found.rule is Rule.SOURCE_OF_MISSING_RUNTIME or found.path.lower().endswith(_SOURCES)
        return LinkedFile(found.path, partial(self._project.read, found.path), is_source)

    def material(self, reference: str, surface: str) -> str | None:
        """Return the name of the material of a reference; None for that of the mesh file."""
        return self._materials.name_of(reference, surface) if self._materials is not None else None

    def use_libraries(self, references: list[str]) -> None:
        """Search material libraries of SDK 2.0, too."""
        for reference in references:
            problem = self._project.add_library(reference)
            if problem and problem not in self._problems:
                self._problems.append(problem)

    @property
    def materials(self) -> list[Material]:
        """The materials that were named so far."""
        return self._materials.materials if self._materials is not None else []

    def warnings(self) -> list[str]:
        """Return texts about missing materials and libraries."""
        return self._problems + (self._materials.warnings() if self._materials is not None else [])

    def not_shown(self) -> list[str]:
        """Return those of the texts that are about settings of materials without a counterpart in Blender."""
        return self._materials.not_shown() if self._materials is not None else []
