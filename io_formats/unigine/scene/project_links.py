"""References of a scene, resolved in the project that contains its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...core.messages import Message
from ...core.scene import Material
from ..project.fbx_assets import SourceMesh
from ..project.guids import Rule
from ..project.project import Project
from ..project.scene_materials import ProjectMaterials

_OF_EDITOR = {".runtimes", ".cache_textures", ".editor2", ".thumbnails", "core", "editor2"}
_SOURCES = (".fbx", ".gltf", ".glb", ".obj", ".dae")


@dataclass(frozen=True)
class LinkedFile:
    """A file found for a reference."""

    path: str
    """Path in the project, which also identifies the file."""
    read: Callable[[], bytes]
    """Function that returns the content, or raises ``FormatError``."""
    is_source: bool = False
    """Whether this is the source from which the referenced file was made, because that file is missing."""
    file: str = ""
    """Path on disk; empty if only the editor may change the file."""
    full: str = ""
    """Path on disk, even if only the editor may change the file."""


def is_of_editor(path: str) -> bool:
    """Return whether the editor makes the file at a path in a project, or the file belongs to the engine."""
    return path.lower().split("/")[0] in _OF_EDITOR


class ProjectLinks:
    """Finds the files and materials that a scene refers to in a project.

    Parameters
    ----------
    project:
        The project.
    with_materials:
        Whether surfaces get the materials of the project instead of those in the mesh files.
    """

    def __init__(self, project: Project, *, with_materials: bool) -> None:
        self._project = project
        self._materials = ProjectMaterials(project) if with_materials else None
        self._problems: dict[Message, None] = {}

    def find(self, reference: str) -> LinkedFile | None:
        """Return the file that a reference leads to, or None if it is missing."""
        found = self._project.find(reference)
        if found.path is None:
            return None
        is_source = found.rule is Rule.SOURCE_OF_MISSING_RUNTIME or found.path.lower().endswith(_SOURCES)
        full = str(self._project.root / found.path)
        file = "" if is_of_editor(found.path) else full
        return LinkedFile(found.path, partial(self._project.files.read, found.path), is_source, file, full)

    def source_mesh(self, reference: str) -> SourceMesh | None:
        """Return the FBX file from which a missing mesh was made; None if that is missing, too."""
        return self._project.source_mesh(reference)

    def material(self, reference: str, surface: str) -> str | None:
        """Return the name of a reference's material in the scene, or None to use the material of the mesh file."""
        return self._materials.name_of(reference, surface) if self._materials is not None else None

    def use_libraries(self, references: list[str]) -> None:
        """Include material libraries of SDK 2.0 in the search for materials."""
        for reference in references:
            problem = self._project.add_library(reference)
            if problem is not None:
                self._problems[problem] = None

    @property
    def materials(self) -> list[Material]:
        """Materials whose names :meth:`material` has returned so far; empty if ``with_materials`` is false."""
        return self._materials.materials if self._materials is not None else []

    def warnings(self) -> list[Message]:
        """Return messages about missing materials and libraries."""
        return [*self._problems, *(self._materials.warnings() if self._materials is not None else [])]

    def not_shown(self) -> list[Message]:
        """Return the messages about material settings without a counterpart in Blender."""
        return self._materials.not_shown() if self._materials is not None else []
