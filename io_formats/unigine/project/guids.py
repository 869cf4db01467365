"""Find the file of a project that has a GUID: references, ``.meta``, ``guids.db``, mounts (sections 2 and 3).

Runtimes are found by their file names. Most assets are found through ``guids.db``, and the asset's own ``.meta`` file
confirms the result. Only if that fails are all ``.meta`` files read, once, since reading 10,000 files takes longer than
listing them.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.errors import FormatError, refusal
from ...disk.rooted_files import RootedFiles, is_inside, is_network_path, leads_to_network, path_key
from ...encodings.xml_files import parse_xml
from ...projects import Projects

GUID = re.compile(r"[0-9a-f]{40}\Z")
GUID_PREFIX = "guid://"
_ANY_GUID = re.compile(rb"[0-9a-f]{40}")
_OWN_GUIDS = (re.compile(rb'<runtime id="([0-9a-f]{40})"'), re.compile(rb"<guid>([0-9a-f]{40})<"))
"""Patterns of the elements in which the editor writes the GUIDs of an asset and its runtimes. Patterns that begin with
literal text are ten times as fast as a general pattern for GUIDs."""
_MATERIAL = re.compile(r",\s*([0-9a-f]{40})\s*(?:,|\Z)")
"""Matches the GUID after the name of a material, and the comma before the next name. Names may contain commas."""
_PRIMARY = "1"
_ITSELF = "0"


@dataclass(frozen=True)
class Runtime:
    """A file that the editor made from an asset."""

    guid: str
    name: str
    is_primary: bool


@dataclass(frozen=True)
class AssetMeta:
    """The ``.meta`` file of an asset."""

    guid: str
    """GUID of the asset: that of the runtime that is the asset itself, or else that in the element ``guid``."""
    stated_guid: str
    """GUID in the element ``guid``, which in some files of SDK 2.12 to 2.21 is the GUID of the runtime."""
    kind: str = ""
    runtimes: tuple[Runtime, ...] = ()
    is_green_inverted: bool = False
    """Whether the import inverted the green channel, which means that green points up in the source image."""
    materials: dict[str, str] = field(default_factory=dict)
    """GUIDs of the materials of a container's surfaces by surface name; the editor converts A to Z in these names to a
    to z."""
    version: str = ""
    """Version of the SDK that wrote the file."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Import settings by name."""

    @cached_property
    def surfaces(self) -> dict[str, tuple[str, ...]]:
        """Names of the surfaces of each runtime mesh of a container, in order, by the GUID of the mesh.

        Empty before SDK 2.15.
        """
        try:
            found = parse_json(self.parameters.get("lightmaps", "").encode())
        except FormatError:
            return {}
        stated = {mesh: surfaces for mesh, surfaces in found.items() if isinstance(surfaces, dict)}
        return {mesh.removeprefix(GUID_PREFIX): tuple(surfaces) for mesh, surfaces in stated.items()}

    @property
    def primary(self) -> Runtime | None:
        """The runtime that the path of the asset refers to, if there is one."""
        return next((runtime for runtime in self.runtimes if runtime.is_primary), None)


@dataclass(frozen=True)
class RuntimeMeta:
    """The ``.meta`` file of a runtime."""

    asset: str
    """GUID of the asset from which the runtime was made."""
    alias: str
    """Name of the runtime inside the asset."""


def mentioned_guids(data: bytes) -> list[str]:
    """Return the GUIDs of an asset and its runtimes from the bytes of its ``.meta`` file, without parsing it.

    Further GUIDs may be included.
    """
    runtimes, stated = (pattern.findall(data) for pattern in _OWN_GUIDS)
    found = runtimes + stated if runtimes and stated else _ANY_GUID.findall(data)
    return [guid.decode() for guid in found]


def parse_asset_meta(data: bytes) -> AssetMeta:
    """Parse the ``.meta`` file of an asset.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    root = parse_xml(data)
    if root.tag != "asset":
        raise FormatError("The root element is '{}', not 'asset'", root.tag)
    stated = (root.findtext("guid") or "").strip()
    listed = [runtime.attrib for runtime in root.iterfind("runtimes/runtime")]
    own = next((runtime.get("id", "") for runtime in listed if runtime.get("link") == _ITSELF), "")
    values = {found.get("name", ""): found.text or "" for found in root.iterfind("parameters/parameter")}
    return AssetMeta(
        guid=own or stated,
        stated_guid=stated,
        kind=(root.findtext("type") or "").strip(),
        runtimes=tuple(
            Runtime(runtime.get("id", ""), runtime.get("name", ""), runtime.get("link") == _PRIMARY)
            for runtime in listed
            if runtime.get("link") != _ITSELF
        ),
        is_green_inverted=values.get("invert_g", "").strip() == "1",
        materials=_materials(values.get("material_guids", "")),
        version=root.get("version", ""),
        parameters=values,
    )


def _materials(text: str) -> dict[str, str]:
    """Parse a list ``name,GUID,name,GUID`` to GUIDs by name."""
    found: dict[str, str] = {}
    start = 0
    for match in _MATERIAL.finditer(text):
        found[text[start : match.start()]] = match[1]
        start = match.end()
    return found


def parse_runtime_meta(data: bytes) -> RuntimeMeta:
    """Parse the ``.meta`` file of a runtime.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    found = parse_json(data)
    asset, alias = found.get("asset"), found.get("alias")
    return RuntimeMeta(asset if isinstance(asset, str) else "", alias if isinstance(alias, str) else "")


def parse_guid_table(data: bytes) -> dict[str, str]:
    """Parse ``guids.db``: paths of assets by GUID.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    return {guid: path for guid, path in parse_json(data).items() if isinstance(path, str)}


def parse_json(data: bytes) -> dict[str, object]:
    """Parse a JSON file that holds one object.

    Raises
    ------
    FormatError
        The content is not such a file.
    """
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        raise FormatError("The JSON is not well-formed: {}", problem) from None
    if not isinstance(found, dict):
        raise FormatError("The JSON does not hold an object")
    return found


META_LIMIT = 16 * 2**20
"""Largest size of a ``.meta`` file that is read."""
TABLE_LIMIT = 512 * 2**20
RUNTIMES = ".runtimes/"
META = ".meta"
_META_ENDING = META[1:]
GUID_TABLE = "guids.db"
_GUID_LENGTH = 40


class GuidIndex:
    """The runtimes and assets of a project by GUID."""

    def __init__(self, files: RootedFiles, projects: Projects) -> None:
        self._files = files
        self._projects = projects
        self.runtimes: dict[str, str] = {}
        """Path of each runtime by its GUID."""
        self._runtime_metas: dict[str, str] = {}
        self._read_runtime_meta = cache(lambda path: files.parsed(path, parse_runtime_meta, META_LIMIT))
        self._read_meta = cache(lambda path: files.parsed(path, parse_asset_meta, META_LIMIT))
        for key, path in files.paths.items():
            if RUNTIMES in key:
                guid, _, ending = key.rpartition("/")[2].partition(".")
                if len(guid) == _GUID_LENGTH:
                    table = self._runtime_metas if ending.endswith(_META_ENDING) else self.runtimes
                    table.setdefault(guid, path)

    @cached_property
    def _table(self) -> dict[str, str]:
        """The content of ``guids.db``; empty if the project has none."""
        path = self._files.find(GUID_TABLE)
        return (self._files.parsed(path, parse_guid_table, TABLE_LIMIT) if path else None) or {}

    @cached_property
    def _mentions(self) -> dict[str, list[str]]:
        """Paths of the ``.meta`` files that mention each GUID, sorted."""
        found, unreadable = self._projects.shared(self._files.root, "metas", self._read_all_metas)
        self._files.unreadable |= unreadable
        return dict(found)

    def _read_all_metas(self) -> list[Any]:
        found: dict[str, list[str]] = defaultdict(list)
        metas = sorted(key for key in self._files.paths if key.endswith(META) and RUNTIMES not in key)
        paths = [self._files.paths[key] for key in metas]
        for number, path in enumerate(paths):
            if number % 100 == 0:
                self._projects.check(number / len(paths))
            for guid in set(self._files.parsed(path, mentioned_guids, META_LIMIT) or ()):
                found[guid].append(path)
        return [found, {path: cause for path, cause in self._files.unreadable.items() if path.lower().endswith(META)}]

    def meta_of(self, path: str) -> AssetMeta | None:
        """Return the content of an asset's ``.meta`` file; None if it is absent, unreadable, or describes a runtime."""
        meta = self._files.find(path + META) if RUNTIMES not in path.lower() else None
        return self._read_meta(meta) if meta else None

    def guids_of(self, path: str) -> list[str]:
        """Return the GUIDs of an asset: those in its meta and in ``guids.db``."""
        meta = self.meta_of(path)
        stated = [meta.guid, meta.stated_guid] if meta else []
        return list(dict.fromkeys(guid for guid in [*stated, *self._guids_of_paths.get(path_key(path), ())] if guid))

    @cached_property
    def _guids_of_paths(self) -> dict[str, list[str]]:
        """The GUIDs of each path in ``guids.db``."""
        found: dict[str, list[str]] = defaultdict(list)
        for guid, path in self._table.items():
            found[path_key(path)].append(guid)
        return found

    def _mentioning(self, guid: str) -> Iterator[tuple[str, AssetMeta]]:
        """Yield path and ``.meta`` content of each existing asset whose ``.meta`` file mentions a GUID."""
        for meta_path in self._mentions.get(guid, ()):
            meta = self._read_meta(meta_path)
            asset = self._files.find(meta_path[: -len(META)])
            if meta is not None and asset is not None:
                yield asset, meta

    def asset(self, guid: str) -> str | None:
        """Return the path of the asset that has a GUID, or None."""
        listed = self.listed(guid)
        if listed is not None:
            meta = self.meta_of(listed)
            if meta is None or meta.guid == guid:
                return listed
        mentioning = sorted(self._mentioning(guid), key=lambda found: found[1].guid != guid)
        return next((path for path, meta in mentioning if guid in (meta.guid, meta.stated_guid)), None)

    def listed(self, guid: str) -> str | None:
        """Return the path that ``guids.db`` states for a GUID if that file exists, otherwise None."""
        path = self._table.get(guid)
        found = self._files.find(path) if path else None
        return None if found is None or found.lower().endswith(META) else found

    def source_of(self, runtime: str) -> str | None:
        """Return the path of the asset from which a runtime was made, even if the runtime does not exist."""
        stated = self._runtime_meta(runtime)
        path = self.asset(stated.asset) if stated is not None and stated.asset else None
        metas = self._mentioning(runtime)
        return path or next((asset for asset, meta in metas if any(one.guid == runtime for one in meta.runtimes)), None)

    def alias_of(self, runtime: str) -> str:
        """Return the name that an asset gives to one of its runtimes, or an empty string."""
        stated = self._runtime_meta(runtime)
        if stated is not None and stated.alias:
            return stated.alias
        metas = [meta for _, meta in self._mentioning(runtime)]
        return next((made.name for meta in metas for made in meta.runtimes if made.guid == runtime), "")

    def _runtime_meta(self, guid: str) -> RuntimeMeta | None:
        path = self._runtime_metas.get(guid)
        return self._read_runtime_meta(path) if path is not None else None

    def container(self, runtime: str) -> tuple[str, AssetMeta] | None:
        """Return path and content of the ``.meta`` file of the asset that a runtime was made from.

        The file of the asset itself may be missing.
        """
        stated = self._runtime_meta(runtime)
        wanted = {runtime, stated.asset if stated else ""} - {""}
        for guid in sorted(wanted, key=lambda guid: guid == runtime):
            for path in self._mentions.get(guid, ()):
                meta = self._read_meta(path)
                if meta is not None and (meta.guid == guid or any(made.guid == guid for made in meta.runtimes)):
                    return path, meta
        return None

    def stated(self, guid: str) -> tuple[str, bool]:
        """Return the name that ``.meta`` files state for a missing file, and whether its green channel is inverted.

        The name is empty if none is stated.
        """
        found = self.container(guid)
        if found is None:
            return self.alias_of(guid) or PurePosixPath(self._table.get(guid, "")).name, False
        path, meta = found
        return PurePosixPath(path).name[: -len(META)], meta.is_green_inverted

    def runtime_of(self, path: str, alias: str = "") -> str | None:
        """Return the path of a runtime made from an asset: the one named ``alias``, by default the primary one."""
        meta = self.meta_of(path)
        if meta is None:
            return None
        primary = [meta.primary] if meta.primary else []
        made = [one for one in meta.runtimes if path_key(one.name) == path_key(alias)] if alias else primary
        return next((self.runtimes[one.guid] for one in made if one.guid in self.runtimes), None)


EXTENSION = ".umount"
MOST_MOUNTS = 100
_SYSTEM_FOLDERS = ("/proc", "/sys")
"""Folders that contain no files of projects, but would take minutes to list."""
UMOUNT_LIMIT = 2**20
"""Largest size of a ``.umount`` file that is read."""


def add_mounts(files: RootedFiles) -> None:
    """Add the files of mounted folders.

    Network paths are not opened: otherwise a downloaded project could make Windows log in to any server. Mounted
    folders that contain the project, or are inside it, are left out, because their files would be listed twice.
    """
    paths = sorted(path for key, path in files.paths.items() if key.endswith(EXTENSION))
    for path in paths[:MOST_MOUNTS]:
        try:
            folder = _mounted_folder(files, path)
        except FormatError as problem:
            files.unreadable[path] = str(problem)
            continue
        if folder is not None:
            files.mount(path[: -len(EXTENSION)], folder)


def _mounted_folder(files: RootedFiles, path: str) -> Path | None:
    """Return the folder that a ``.umount`` file mounts, or None if it does not mount a folder.

    Raises
    ------
    FormatError
        The file cannot be read, or the folder must not or cannot be mounted.
    """
    stated = parse_json(files.read(path, UMOUNT_LIMIT)).get("data_path")
    if not isinstance(stated, str) or not stated.strip():
        return None
    text = stated.strip()
    if "\0" in text:  # for Windows, such a path is one of a file that does not exist
        raise FormatError("The mounted folder cannot be used: {}: {}", "embedded null character", text, file=path)
    named = os.path.join(files.location(path).parent, text.replace("\\", "/"))
    try:
        folder = "" if is_network_path(text) or leads_to_network(named) else os.path.realpath(named)
    except (OSError, ValueError) as problem:
        raise FormatError("The mounted folder cannot be used: {}: {}", refusal(problem), text, file=path) from None
    if not folder:
        raise FormatError("The mounted folder is a network path, which is not opened: {}", text, file=path)
    if any(is_inside(folder, system) for system in _SYSTEM_FOLDERS):
        raise FormatError("The mounted folder belongs to the operating system: {}", text, file=path)
    root = str(files.root)
    if is_inside(folder, root) or is_inside(root, folder):
        raise FormatError("The mounted folder and the project contain each other: {}", text, file=path)
    if not os.path.isdir(folder):
        raise FormatError("The mounted folder does not exist: {}", text, file=path)
    return Path(folder)


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
