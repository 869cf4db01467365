"""Files that only Blender's own importers read, from which a format makes models.

A format states which file is used and how its content becomes a model. Blender imports the file once for all its
models, and its objects are stored here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from .scene import Matrix4, Mesh


@dataclass(frozen=True)
class SourceObject:
    """An object with a mesh, as Blender imported it."""

    name: str
    mesh_name: str
    mesh: Mesh
    """In the object's own space, with the name of the material of each slot; shared by objects with the same mesh."""
    world: Matrix4
    """(4, 4): from the object's own space to Blender's world space."""
    is_skinned: bool = False


class SourceFile(ABC):
    """A file that Blender imports."""

    importer: str
    """Blender's import operator, such as ``wm.fbx_import``."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        """Path that is shown to the user, such as that in the project."""
        self.objects: list[SourceObject] | None = None
        """The objects with meshes; None until the file is imported."""

    @abstractmethod
    def names(self) -> list[str]:
        """Read the file; return the names of its objects, meshes and materials, in its order.

        Raises
        ------
        FormatError
            It cannot be read, is too large or is another kind of file.
        """
