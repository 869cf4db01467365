"""FBX files of a project, from which the editor made meshes that are missing (section 7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import numpy as np
import numpy.typing as npt

from ...core.source_files import SourceFile, SourceObject
from ...fbx_files import FbxHead, read_head
from .metas import AssetMeta

SOURCE_EXTENSION = ".fbx"
LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""What the editor does to the names of materials and meshes in containers."""
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Characters that the editor replaces in names of runtimes."""
_NUMBER = re.compile(r"\.\d{3,}\Z")
"""What Blender appends to a name that another data block has."""
_SAFE_BYTES = 59
"""Bytes at the start of a name that Blender never cuts off."""
_UNIT_SINCE = (2, 11)
"""First SDK that applies the unit of the file."""
_KEPT_FRONT = "4"
"""Value of ``front_axis`` for a front that stays where Blender puts it; otherwise it is turned round."""
_HALF_TURN = np.diag([-1.0, -1.0, 1.0])


def name_key(name: str) -> str:
    """Return a name as the editor writes it in names of runtimes."""
    return _FORBIDDEN.sub("_", name.translate(LOWER))


_NAME_FORMS: tuple[Callable[[str], str], ...] = (
    name_key,
    lambda name: _NUMBER.sub("", name_key(name)),
    lambda name: name_key(name).encode()[:_SAFE_BYTES].decode(errors="ignore"),
)
"""Forms in which names are compared, from exact to approximate."""


class FbxSource(SourceFile):
    """An FBX file."""

    importer = "wm.fbx_import"
    first_version = (4, 5)

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
        """The objects by the names of their meshes and by their own names, in each form of names."""
        found: list[dict[str, list[SourceObject]]] = []
        for form in _NAME_FORMS:
            for attribute in ("mesh_name", "name"):
                found.append({})
                for obj in self.objects or ():
                    found[-1].setdefault(form(getattr(obj, attribute)), []).append(obj)
        return found

    def find(self, name: str, surfaces: Collection[str] = ()) -> SourceObject | None:
        """Return the imported object of a mesh: of several, one with these surfaces."""
        wanted = {surface.casefold() for surface in surfaces}
        for number, objects in enumerate(self._by_name):
            found = objects.get(_NAME_FORMS[number // 2](name), [])
            matching = (obj for obj in found if {slot.casefold() for slot in obj.mesh.materials} == wanted)
            if found:
                return next(matching, found[0])
        return None


@dataclass(frozen=True)
class ImportSettings:
    """The settings with which the editor imported an FBX file."""

    scale: float = 1.0
    applies_unit: bool = True
    keeps_front: bool = False
    is_merged: bool = False
    """Whether all meshes become one, in the space of the scene."""
    merges_materials: bool = False
    """Whether the merged mesh has one surface for each material."""
    levels: tuple[str, ...] = ()
    """Postfixes of the objects that are levels of detail of one mesh, the finest first."""

    @classmethod
    def of(cls, meta: AssetMeta) -> ImportSettings:
        """Return the settings in the ``.meta`` file of an FBX file."""
        values = meta.parameters
        by_postfix = values.get("lods_mode") == "by_postfix" or values.get("combine_by_lods") == "1"
        return cls(
            scale=_number(values.get("scale", "")),
            applies_unit=_version(meta.version) >= _UNIT_SINCE,
            keeps_front=values.get("front_axis") == _KEPT_FRONT,
            is_merged=values.get("merge_static_meshes") == "1",
            merges_materials=values.get("merge_surfaces_by_materials") == "1",
            levels=_postfixes(values.get("lods", "")) if by_postfix else (),
        )

    def from_object(self, head: FbxHead) -> npt.NDArray[np.float64]:
        """Return the matrix (4, 4) from an object's space in Blender to that of its mesh in the engine."""
        factor = self.scale * (head.unit / 100 if self.applies_unit else 1.0)
        return _affine(factor * self._turn @ head.to_blender)

    def from_world(self, head: FbxHead) -> npt.NDArray[np.float64]:
        """Return the matrix (4, 4) from Blender's world space to that of the merged mesh in the engine."""
        return _affine(self.scale * (1.0 if self.applies_unit else 100 / head.unit) * self._turn)

    @property
    def _turn(self) -> npt.NDArray[np.float64]:
        return np.identity(3) if self.keeps_front else _HALF_TURN


@dataclass(frozen=True)
class SourceMesh:
    """A missing runtime mesh, and the FBX file that it was made from."""

    file: FbxSource
    guid: str
    name: str
    """Name of the runtime in the file, without extension."""
    settings: ImportSettings
    surfaces: tuple[str, ...] = ()
    """Names of its surfaces in order; empty if the ``.meta`` file does not state them."""


def _affine(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    found = np.identity(4)
    found[:3, :3] = matrix
    return found


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 1.0
    return number if np.isfinite(number) and number > 0 else 1.0


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _postfixes(text: str) -> tuple[str, ...]:
    """Return the postfixes in the setting ``lods``, among numbers."""
    parts = text.replace(";", ",").split(",")
    return tuple(part.lower() for part in parts if part and part[0] not in "+-.0123456789" and part.lower() != "inf")
