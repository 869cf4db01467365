"""FBX files of a project from which the editor made meshes that are now missing (section 7)."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import numpy.typing as npt

from ...core.addon_files import SourceFile, SourceObject
from ...encodings.fbx_files import FbxHead, read_head
from .guids import AssetMeta

SOURCE_EXTENSION = ".fbx"
LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""Translation table for the names of materials and meshes in containers, which the editor converts to lower case."""
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Characters that the editor replaces in names of runtimes."""
_NUMBER = re.compile(r"\.\d{3,}\Z")
"""Matches the number that Blender appends to a name that another data block already has."""
_SAFE_BYTES = 59
"""Number of bytes at the start of a name that Blender never truncates."""
_UNIT_SINCE = (2, 11)
"""First SDK that applies the unit of the FBX file."""
_MOST_SCALE = 1e9
_KEPT_FRONT = "4"
"""Value of ``front_axis`` that keeps the orientation of Blender's FBX import; with any other, the mesh is rotated by
180° about Z."""
_POSTFIX = re.compile(r"(?:^|[,;])((?!inf)[^\W\d][^,;]*)")
"""Matches a postfix of object names in the parameter ``lods``, whose other entries are numbers."""
_INTEGER = re.compile(r"\d+")


def name_key(name: str) -> str:
    """Return a name as the editor writes it in names of runtimes."""
    return _FORBIDDEN.sub("_", name.translate(LOWER))


_NAME_FORMS: tuple[Callable[[str], str], ...] = (
    name_key,
    lambda name: _NUMBER.sub("", name_key(name)),
    lambda name: name_key(name).encode()[:_SAFE_BYTES].decode(errors="ignore"),
)
"""Functions that convert names for a comparison, from exact to approximate."""


class FbxSource(SourceFile):
    """An FBX file."""

    importer = "wm.fbx_import"

    def __init__(self, path: Path, name: str, read: Callable[[], bytes]) -> None:
        super().__init__(path, name)
        self._read = read
        self.head: FbxHead | None = None

    def names(self) -> list[str]:
        """Read axes, unit and names; see :meth:`.SourceFile.names`."""
        self.head = read_head(self._read())
        return self.head.names

    @cached_property
    def _by_name(self) -> list[dict[str, list[SourceObject]]]:
        """The objects by the names of their meshes and by their own names, for each function of ``_NAME_FORMS``."""
        found: list[dict[str, list[SourceObject]]] = []
        for form in _NAME_FORMS:
            for attribute in ("mesh_name", "name"):
                found.append({})
                for obj in self.objects or ():
                    found[-1].setdefault(form(getattr(obj, attribute)), []).append(obj)
        return found

    def find(self, name: str, surfaces: Collection[str] = ()) -> SourceObject | None:
        """Return the imported object for a mesh.

        If several objects match its name, one with the given surfaces is preferred.
        """
        wanted = {surface.casefold() for surface in surfaces}
        for number, objects in enumerate(self._by_name):
            found = objects.get(_NAME_FORMS[number // 2](name), [])
            matching = (obj for obj in found if {slot.casefold() for slot in obj.mesh.materials} == wanted)
            if found:
                return next(matching, found[0])
        return None


@dataclass(frozen=True)
class SourceMesh:
    """A missing runtime mesh, and the FBX file that it was made from."""

    file: FbxSource
    guid: str
    name: str
    """Name of the runtime inside the FBX file, without extension."""
    meta: AssetMeta
    """``.meta`` content of the FBX file, with the settings of the editor's import."""

    @property
    def surfaces(self) -> tuple[str, ...]:
        """Names of the mesh's surfaces in order; empty if the ``.meta`` file does not state them."""
        return self.meta.surfaces.get(self.guid, ())

    @property
    def is_merged(self) -> bool:
        """Whether all meshes of the file were merged into this one, in the space of the scene."""
        is_named = name_key(self.name) == name_key(PurePosixPath(self.file.name).stem)
        return is_named and self._is_set("merge_static_meshes")

    @property
    def merges_materials(self) -> bool:
        """Whether the merged mesh has one surface for each material."""
        return self.is_merged and self._is_set("merge_surfaces_by_materials")

    @property
    def levels(self) -> list[str]:
        """Postfixes of object names that mark levels of detail of one mesh, the finest first."""
        by_postfix = self._is_set("combine_by_lods") or self.meta.parameters.get("lods_mode") == "by_postfix"
        return _POSTFIX.findall(self.meta.parameters.get("lods", "").lower()) if by_postfix else []

    def to_engine(self, head: FbxHead) -> npt.NDArray[np.float64]:
        """Return the matrix (4, 4) from an object's space in Blender, or the world if merged, to that of the mesh."""
        applies_unit = tuple(map(int, _INTEGER.findall(self.meta.version)[:2])) >= _UNIT_SINCE
        matrix = np.identity(4)
        if self.meta.parameters.get("front_axis") != _KEPT_FRONT:
            matrix[:2, :2] *= -1  # rotate by 180° about Z
        matrix[:3, :3] *= _number(self.meta.parameters.get("scale", ""))
        if self.is_merged:
            matrix[:3, :3] *= 1.0 if applies_unit else 100 / head.unit
        else:
            matrix[:3, :3] = matrix[:3, :3] @ head.to_blender * (head.unit / 100 if applies_unit else 1.0)
        return matrix

    def _is_set(self, name: str) -> bool:
        return self.meta.parameters.get(name) == "1"


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 1.0
    return number if 0 < number < _MOST_SCALE else 1.0
