"""Resolution of references in the files of a project (section 3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from .metas import GUID, GUID_PREFIX

ASSET_PREFIX = "asset://"
_ABSOLUTE = re.compile(r"(?:[A-Za-z]:)?/(?:.*?/)?data/", re.IGNORECASE)


class Rule(Enum):
    """How a reference was resolved."""

    RUNTIME = "runtime"
    """A file in the folder ``.runtimes``, whose name is its GUID."""
    ASSET = "asset"
    """An asset, found by its GUID."""
    SOURCE_OF_MISSING_RUNTIME = "source of missing runtime"
    """The asset from which a missing runtime was made."""
    PATH = "path"
    OUTSIDE = "path outside data"
    """A path relative to the folder above the project's folder."""
    FILE_NAME = "file name"
    """The only file with this name."""
    ENGINE = "engine"
    """A file of the engine, which is not in the project."""
    EMPTY = "empty"
    MISSING = "missing"


@dataclass(frozen=True)
class Found:
    """The file to which a reference leads."""

    path: str | None
    """Path relative to the project's folder; None if no file was found."""
    rule: Rule
    engine_name: str = ""
    """Name of the file without folders and extension, if it belongs to the engine."""


@dataclass(frozen=True)
class FoundTexture:
    """The files of a texture."""

    reference: str
    file: str | None
    """The source image, or else the runtime; None if both are missing."""
    runtime: str | None
    """The file that the engine loads, if there is one."""
    rule: Rule
    is_green_up: bool = False
    """Whether green points up in ``file``, if it is a normal map. Otherwise green points down, as in DirectX.

    If the file is missing, whether green points up in its source image.
    """
    name: str = ""
    """Name of the image for the user: the name of the source file, or the name that the asset gives to the runtime.

    If the file is missing, the name that ``.meta`` files state, or empty."""
    engine_name: str = ""
    """Name of the texture if it belongs to the engine, such as ``white``."""


def plain_reference(reference: str | None) -> str:
    """Return a reference without blanks and without the prefix of GUIDs."""
    return (reference or "").strip().removeprefix(GUID_PREFIX)


def is_guid(reference: str) -> bool:
    """Return whether a plain reference is a GUID."""
    return GUID.match(reference) is not None


def path_in_project(reference: str) -> str:
    """Return the path that a plain reference states, relative to the project's folder if it is absolute."""
    path = reference.removeprefix(ASSET_PREFIX).replace("\\", "/")
    return _ABSOLUTE.sub("", path, count=1) if _ABSOLUTE.match(path) else path
