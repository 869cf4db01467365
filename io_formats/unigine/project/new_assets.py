"""Files that an export adds to a project, with ``.meta`` files, and their folder (docs/formats/unigine_writing.md).

A hidden file beside the scene, the manifest, lists the digests of the files that were written with the scene.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path, PurePosixPath

from ...core.errors import ExportError, FormatError
from ...core.format import OutputFile
from ...core.messages import listed
from ...disk.file_names import cautious_key, numbered
from ...disk.rooted_files import TooManyFilesError, path_key
from ...disk.special_files import read_regular
from ...projects import Projects
from ..values import escaped
from .guids import META, AssetMeta, parse_asset_meta
from .project import Project, data_folder, open_project, project_folder
from .project_materials import BASES, engine_path


class AssetKind(Enum):
    """Kind of an asset: the element ``type`` of its ``.meta`` file. Files are written in this order."""

    TEXTURE = "texture"
    MATERIAL = "material"
    SKELETON = "skeleton"
    MESH = "mesh"
    MESH_SKINNED = "mesh_skinned"
    ANIMATION = "animation"
    NODE = "node"


@dataclass(frozen=True)
class Parameter:
    """An import setting in a ``.meta`` file."""

    type: str
    """Type of the value, such as ``bool``, ``int`` or ``string``."""
    name: str
    value: str


@dataclass(frozen=True)
class NewAsset:
    """A file beside the scene, which gets a ``.meta`` file with its GUID."""

    name: str
    """Path with extension, relative to the folder of the scene, with ``/``."""
    kind: AssetKind
    encode: Callable[[Mapping[str, str]], bytes]
    """Function that returns the content, given the GUIDs of all new assets by their names; called once for each
    file."""
    parameters: tuple[Parameter, ...] = ()
    """Import settings, in the order of the file."""
    guid: str = ""
    """The GUID, if other files were built with it before; otherwise it is chosen when the files are written."""


AS_IT_IS = (Parameter("bool", "unchanged", "1"),)
"""Import setting of files that the engine loads as they are."""


def meta_text(asset: NewAsset, guid: str, version: str) -> bytes:
    """Encode the ``.meta`` file of an asset that is its own runtime.

    It contains no hash, which the editor adds.
    """
    path = PurePosixPath(asset.name)
    name = path.stem if asset.kind is AssetKind.MATERIAL else path.name
    lines = [
        b'<?xml version="1.0" encoding="utf-8"?>',
        b'<asset version="%s">' % escaped(version),
        b"\t<guid>%s</guid>" % guid.encode(),
        b"\t<type>%s</type>" % asset.kind.value.encode(),
        b"\t<runtimes>",
        b'\t\t<runtime id="%s" name="%s" link="0"/>' % (guid.encode(), escaped(name)),
        b"\t</runtimes>",
    ]
    if asset.parameters:
        template = b'\t\t<parameter type="%s" name="%s">%s</parameter>'
        values = [template % (escaped(one.type), escaped(one.name), escaped(one.value)) for one in asset.parameters]
        lines += [b"\t<parameters>", *values, b"\t</parameters>"]
    return b"\n".join([*lines, b"</asset>", b""])


_ENDING = ".written.json"
_MOST_NAMED = 3


def with_manifest(folder: Path | None, outputs: list[OutputFile]) -> list[OutputFile]:
    """Return the files of a set with its manifest as the first one; the scene file is the last one.

    Raises
    ------
    ExportError
        A file exists that no earlier export wrote, or that was changed since, or one whose name differs only in case.
    """
    name = f".{outputs[-1].name}{_ENDING}"
    known = _read(folder / name) if folder is not None else {}
    digests = {output.name: hashlib.sha256(output.data).hexdigest() for output in outputs}
    allowed = {output: {digest, *known.get(output, ())} for output, digest in digests.items()}
    refused = _others(folder, allowed) if folder is not None else []
    if refused:
        template = "{} exists and was not written by this export, or changed since; rename or remove it first"
        if len(refused) > 1:
            template = "{} exist and were not written by this export, or changed since; rename or remove them first"
        raise ExportError(template, listed(refused, _MOST_NAMED))
    content = {**known, **{name: _digests(digest, known.get(name, [])) for name, digest in digests.items()}}
    data = json.dumps({"files": dict(sorted(content.items()))}, indent=1, ensure_ascii=True).encode() + b"\n"
    return [OutputFile(name, data), *outputs]


def _others(folder: Path, allowed: Mapping[str, set[str]]) -> list[str]:
    """Return the existing files with names as in a set, ignoring case, whose digests are not among the allowed ones."""
    found: list[str] = []
    listings: dict[str, dict[str, str]] = {}
    for name, digests in allowed.items():
        path = PurePosixPath(name)
        parent = str(path.parent)
        if parent not in listings:
            listings[parent] = _names(folder / parent)
        there = listings[parent].get(cautious_key(path.name))
        if there is not None and not (there == path.name and _is_known(folder / name, digests)):
            found.append(str(path.with_name(there)))
    return found


def _digests(digest: str, known: list[str]) -> list[str]:
    """Return the new digest and the last one before it.

    Both are valid, since an export may be terminated before it replaces the file. The next export of the same content
    lists both again, so that the manifest stays the same, too.
    """
    return known[:2] if known[:1] == [digest] else [digest, *known[:1]]


def _read(path: Path) -> dict[str, list[str]]:
    """Return the digests by file name, empty if there is no valid manifest."""
    try:
        found = json.loads(read_regular(path))["files"]
        return {str(name): [str(digest) for digest in digests] for name, digests in found.items()}
    except (OSError, FormatError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _names(folder: Path) -> dict[str, str]:
    """Return the names in a folder by their keys, which are equal for names that differ only in case."""
    try:
        return {cautious_key(name): name for name in os.listdir(folder)}
    except OSError:
        return {}


def _is_known(path: Path, digests: set[str]) -> bool:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest() in digests
    except (OSError, FormatError):
        return False


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
    latest:
        Limit for the version, if files are for an older SDK than the project's; empty for no limit.

    Raises
    ------
    ExportError
        The folder is one into which only the editor may write.
    """

    def __init__(self, path: Path | None, version: str, projects: Projects, latest: str = "") -> None:
        self._latest = latest
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
        """The version for new files: the project's, or the given one outside of projects, within the limit."""
        own = self._project_version()
        return self._latest if self._latest and sdk_of(self._latest) < sdk_of(own) else own

    def _project_version(self) -> str:
        """Return the highest version of the project's worlds, or else of its other files."""
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
        return self._meta_at(self.folder / (name + META)) if self.folder is not None else None

    @staticmethod
    def _meta_at(path: Path) -> AssetMeta | None:
        if not os.path.lexists(path):
            return None
        try:
            return parse_asset_meta(read_regular(path))
        except (FormatError, OSError) as problem:
            raise ExportError("{}: its GUID cannot be read: {}", path, problem) from None

    def spelling(self, folder: str, name: str) -> str:
        """Return the name of a file as a folder beside the scene has it, since some systems ignore case."""
        if self.folder is None or os.path.lexists(self.folder / folder / name):
            return name
        return _names(self.folder / folder).get(cautious_key(name), name)

    def guid(self, name: str, salt: str) -> str:
        """Return the GUID of a file beside the scene: from its ``.meta``, or else derived from its path.

        Outside of projects, ``salt`` gives files with equal paths different GUIDs, in case they are later copied into
        one project. A GUID that another file has is not used.
        """
        if self.folder is not None and (stated := self.guid_of(self.folder / name)):
            return stated
        seed = path_key(self.relative(name)) + ("" if self.project is not None else f" {salt}")
        seeds = (one.encode("utf-8", "surrogatepass") for one in numbered(seed, between=" "))
        guids = (hashlib.sha1(one, usedforsecurity=False).hexdigest() for one in seeds)
        return next(found for found in guids if not self._is_taken(found, name))

    def guid_of(self, path: Path) -> str:
        """Return the GUID by which files refer to a file, from its ``.meta``; empty without one."""
        meta = self._meta_at(path.with_name(path.name + META))
        if meta is None:
            return ""
        return meta.primary.guid if meta.primary is not None else meta.guid

    def files(self, asset: NewAsset, guids: Mapping[str, str]) -> list[OutputFile]:
        """Return the files of an asset: its ``.meta`` unless that exists, and its content."""
        meta = OutputFile(asset.name + META, meta_text(asset, guids[asset.name], self.version))
        return [*([meta] if self.meta(asset.name) is None else []), OutputFile(asset.name, asset.encode(guids))]

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
