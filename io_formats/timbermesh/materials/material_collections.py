"""Names of materials in the blueprints of the game and of mods (docs/formats/timbermesh.md, material names)."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ...core.errors import FormatError, refusal
from ...core.messages import Report
from .game_archive import LARGEST_ENTRY, open_archive, read_entry
from .game_folder import find_archive

Collections = dict[str, tuple[str, ...]]
"""Names of materials by identifier of their collection."""

_FILE = re.compile(r"MaterialCollection\.(.+?)(\.optional)?\.blueprint\.json", re.IGNORECASE | re.DOTALL)
_SPEC = "MaterialCollectionSpec"
_LISTS = ("Materials", "Materials#append")

_MOST_FILES = 200
_MOST_NAMES = 5_000
_LONGEST_NAME = 200

_MOST_ENTRIES = 5_000
"""Largest number of files and folders of a mod that are searched, folders near its manifest first."""


def game_collections(folder: str | Path) -> Collections:
    """Return the collections of the game in a folder; see :func:`.find_archive`.

    Raises
    ------
    FormatError
        There is no archive, or it is damaged, encrypted, or larger than any of the game.
    """
    path = find_archive(folder)
    try:
        status = os.stat(path)
    except OSError as problem:
        raise FormatError("The file cannot be read: {}", refusal(problem), file=str(path)) from None
    found = _cached_collections(path, status.st_size, status.st_mtime_ns)
    if isinstance(found, FormatError):
        raise found.in_file(str(path)) from None
    return dict(found)


@lru_cache(2)
def _cached_collections(path: Path, _size: int, _modified: int) -> Collections | FormatError:
    """Return the collections in an archive, or why there are none, until its size or time changes."""
    try:
        return _archive_collections(path)
    except FormatError as problem:
        return problem


def _archive_collections(path: Path) -> Collections:
    """Return the collections in an archive."""
    found: Collections = {}
    with open_archive(path) as archive:
        for info in islice(_collection_entries(archive), _MOST_FILES):
            _add(found, _parse(read_entry(archive, info), _name_of(info.filename)))
    if not any(found.values()):
        raise FormatError("The zip file has no material collections")
    return found


def _collection_entries(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    return (info for info in archive.infolist() if _FILE.fullmatch(_name_of(info.filename)))


def _name_of(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _parse(content: bytes, name: str) -> Collections:
    """Return the collections of one blueprint, usually one. Other data in it is ignored.

    Raises
    ------
    FormatError
        The content is not JSON.
    """
    try:
        blueprint = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise FormatError("The file is not valid JSON ({})", reason, item=name[-_LONGEST_NAME:]) from None
    spec = blueprint.get(_SPEC) if isinstance(blueprint, dict) else None
    if not isinstance(spec, dict):
        return {}
    match = _FILE.fullmatch(name)
    collection = spec.get("CollectionId")
    if not isinstance(collection, str) or not _is_usable(collection):  # a mod may change a collection by its path
        collection = match[1] if match else name
    paths: list[Any] = [path for key in _LISTS if isinstance(spec.get(key), list) for path in spec[key]]
    names = (_name_of(path).removesuffix(".mat") for path in paths if isinstance(path, str))
    return {collection: tuple(dict.fromkeys(filter(_is_usable, names)))}


def _is_usable(name: str) -> bool:
    """Return whether Blender can show a name."""
    return bool(name.strip()) and len(name) <= _LONGEST_NAME and name.isprintable()


def _add(found: Collections, more: Collections) -> None:
    """Add the names of further collections, up to a limit for all."""
    for collection, names in more.items():
        free = _MOST_NAMES - sum(map(len, found.values()))
        merged = dict.fromkeys((*found.get(collection, ()), *names[:free]))
        found[collection] = tuple(merged)


def mod_collections(folder: Path, report: Report) -> Collections:
    """Return the collections that a mod adds or extends; files that cannot be read are reported.

    Names that a mod removes from a collection of the game (``Materials#remove``) are not returned, but also not removed
    from the game's: another collection may have them.
    """
    found: Collections = {}
    for path in islice(_mod_files(folder, report), _MOST_FILES):
        try:
            with open(path, "rb") as stream:
                content = stream.read(LARGEST_ENTRY + 1)
            if len(content) > LARGEST_ENTRY:
                raise FormatError("The file has more than {:,} bytes", LARGEST_ENTRY)
            _add(found, _parse(content, os.path.basename(path)))
        except FormatError as problem:
            report.warning("unreadable-file", "'{}': {}", path, problem.message)
        except OSError as problem:
            report.warning("unreadable-file", "'{}': {}", path, refusal(problem))
    return found


def _mod_files(folder: Path, report: Report) -> Iterator[str]:
    """Yield the paths of the blueprints with collections, breadth first."""
    waiting = deque([str(folder)])
    entries = 0
    while waiting:
        try:
            with os.scandir(waiting.popleft()) as listing:
                for entry in listing:
                    entries += 1
                    if entries > _MOST_ENTRIES:
                        template = "only the first {:,} files of the mod '{}' were searched for materials"
                        report.warning("large-mod", template, _MOST_ENTRIES, str(folder))
                        return
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif _FILE.fullmatch(entry.name) and entry.is_file():
                        yield entry.path
        except OSError:
            continue
