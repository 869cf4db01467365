"""The folder that a new scene is written to: its project, version, GUIDs and files (see unigine_writing.md)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from functools import cached_property
from pathlib import Path

from ...core.errors import ExportError, FormatError
from ...disk.rooted_files import TooManyFilesError, path_key
from ...disk.special_files import read_bytes
from ...projects import Projects
from ..project.engine import BASES, engine_path
from ..project.folders import data_folder, open_project, project_folder
from ..project.guid_index import META
from ..project.metas import AssetMeta, parse_asset_meta
from ..project.project import Project

_OF_EDITOR = {".runtimes", ".cache_textures", ".editor2", ".thumbnails", "core", "editor2", "scripts"}
_SCENE_VERSION = re.compile(rb"<(?:world|nodes|material|asset)\s[^>]*?version=\"(\d+(?:\.\d+){1,3})\"")
_HEAD = 400
_MOST_HEADS = 300
"""Maximum number of files of a project that are read to find its version."""
_STATING = (".world", ".node", ".mat", META)
"""Extensions of files that contain the version of the project, the most reliable first."""


class TargetFolder:
    """Folder in which the files of a new scene are written.

    Parameters
    ----------
    path:
        Path of the scene, or None if it is not known.
    version:
        Version of the SDK outside of projects.
    projects:
        The projects that are open.

    Raises
    ------
    ExportError
        The folder is one into which only the editor may write.
    """

    def __init__(self, path: Path | None, version: str, projects: Projects) -> None:
        self.folder = Path(os.path.realpath(path.parent)) if path is not None else None
        self._version = version
        self._root = self.folder
        self.project: Project | None = None
        # A folder named ``data`` counts as a project even if it is empty, since the first file written to it makes it
        # one.
        root = (project_folder(self.folder) or data_folder(self.folder)) if self.folder is not None else None
        if self.folder is not None and path is not None and root is not None:
            self._root = root
            with contextlib.suppress(TooManyFilesError):
                self.project = open_project(self.folder / path.name, projects, is_scene=True)
        self._refuse_product()

    def _refuse_product(self) -> None:
        parts = [part.lower() for part in Path(self.relative("")).parts]
        if ".runtimes" in parts or not _OF_EDITOR.isdisjoint(parts[:1]):
            raise ExportError("{} is written by UNIGINE's editor alone; choose another folder", self.folder)

    def relative(self, name: str) -> str:
        """Return the path of a file beside the scene, relative to the project's folder, with slashes."""
        if self.folder is None or self._root is None:
            return name
        return Path(os.path.relpath(self.folder / name, self._root)).as_posix()

    @cached_property
    def version(self) -> str:
        """The version for new files: the highest of the project's worlds, or else of its other files."""
        if self.project is None:
            return self._version
        for extension in _STATING:
            paths = [path for key, path in sorted(self.project.files.paths.items()) if key.endswith(extension)]
            found = [version for path in paths[:_MOST_HEADS] if (version := self._stated(path))]
            if found:
                return max(found, key=sdk_of)
        return self._version

    def _stated(self, path: str) -> str:
        try:
            with (self.project.files.location(path)).open("rb") as stream:  # type: ignore[union-attr]
                found = _SCENE_VERSION.search(stream.read(_HEAD))
        except OSError:
            return ""
        return found[1].decode() if found else ""

    @property
    def sdk(self) -> tuple[int, int]:
        """The first two numbers of the version."""
        return sdk_of(self.version)

    def meta(self, name: str) -> AssetMeta | None:
        """Return the existing ``.meta`` of a file beside the scene.

        Raises
        ------
        ExportError
            The ``.meta`` file cannot be read.
        """
        path = self.folder / (name + META) if self.folder is not None else None
        if path is None or not os.path.lexists(path):
            return None
        try:
            return parse_asset_meta(read_bytes(path))
        except (FormatError, OSError) as problem:
            raise ExportError("{}: its GUID cannot be read: {}", path, problem) from None

    def guid(self, name: str, salt: str) -> str:
        """Return the GUID of a file beside the scene: from its ``.meta``, or else derived from its path.

        Outside of projects, ``salt`` gives files with equal paths different GUIDs, in case they are later copied into
        one project. A GUID that another file has is not used.
        """
        meta = self.meta(name)
        if meta is not None:
            return meta.primary.guid if meta.primary is not None else meta.guid
        seed = path_key(self.relative(name)) + ("" if self.project is not None else f" {salt}")
        number = 1
        while True:
            text = seed if number == 1 else f"{seed} {number}"
            found = hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
            if not self._is_taken(found, name):
                return found
            number += 1

    def _is_taken(self, guid: str, name: str) -> bool:
        if guid in BASES or engine_path(guid):
            return True
        path = self.project.find(guid).path if self.project is not None else None
        return path is not None and path_key(path) != path_key(self.relative(name))

    def reference(self, file: str) -> str:
        """Return the GUID of a file of the project; empty if it is not in the project, or has none."""
        if self.project is None or not file:
            return ""
        relative = self.project.relative(Path(file))
        return self.project.reference_to(relative) if relative else ""

    def has(self, guid: str, *, or_else: bool) -> bool:
        """Return whether a material exists, so that files can refer to it.

        Outside of projects this is not known, and the result is ``or_else``.
        """
        if guid in BASES or engine_path(guid):
            return True
        if self.project is None:
            return or_else
        return self.project.find(guid).path is not None or self.project.material(guid) is not None


def sdk_of(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    numbers = [int(part) for part in version.split(".")[:2]]
    return numbers[0], numbers[1]
