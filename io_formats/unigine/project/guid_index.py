"""Find the file of a project that has a GUID (sections 2 and 3).

Runtimes are found by their file names. Most assets are found through ``guids.db``, and the asset's own ``.meta`` file
confirms the result. Only if that fails are all ``.meta`` files read, once, since reading 10,000 files takes longer than
listing them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import PurePosixPath
from typing import Any

from ...disk.rooted_files import RootedFiles, path_key
from ...projects import Projects
from .metas import (
    AssetMeta,
    RuntimeMeta,
    mentioned_guids,
    parse_asset_meta,
    parse_guid_table,
    parse_runtime_meta,
)

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
        mentioning = list(self._mentioning(guid))
        for path, meta in mentioning:
            if meta.guid == guid:
                return path
        return next((path for path, meta in mentioning if meta.stated_guid == guid), None)

    def listed(self, guid: str) -> str | None:
        """Return the path that ``guids.db`` states for a GUID if that file exists, otherwise None."""
        path = self._table.get(guid)
        found = self._files.find(path) if path else None
        return None if found is None or found.lower().endswith(META) else found

    def source_of(self, runtime: str) -> str | None:
        """Return the path of the asset from which a runtime was made, even if the runtime does not exist."""
        stated = self._runtime_meta(runtime)
        if stated is not None and stated.asset:
            path = self.asset(stated.asset)
            if path is not None:
                return path
        return next(
            (path for path, meta in self._mentioning(runtime) if any(made.guid == runtime for made in meta.runtimes)),
            None,
        )

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
        made: Iterable[str] = (
            [runtime.guid for runtime in meta.runtimes if path_key(runtime.name) == path_key(alias)]
            if alias
            else [meta.primary.guid]
            if meta.primary
            else []
        )
        return next((self.runtimes[guid] for guid in made if guid in self.runtimes), None)
