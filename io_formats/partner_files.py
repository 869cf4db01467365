"""Files that come in sets: levels of detail and physics of one model in files beside its main file.

Names alone decide which files belong together: ``lamp.dae``, ``lamp_LOD1.dae``, ``lamp_PHYS.dae``. Case is ignored.
"""

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from . import registry
from .core.errors import FormatError
from .core.options import FILES_AS_LEVELS, PARTNER_FILES, Option
from .passes.lod_names import LEVEL_SUFFIXES

_FOLDERS_KEPT = 64
"""Number of folders whose names are kept."""


class FileSet(NamedTuple):
    """A file, and others that are read with it."""

    path: Path
    """The main file."""
    partners: Mapping[str, Path] = MappingProxyType({})
    """The other files, by the part of the model in them; see ``FileFormat.partner_suffixes``."""
    levels: tuple[Path, ...] = ()
    """Files of one model, including ``path``, whose levels follow from their numbers of triangles."""


def suffixes_of(path: str | os.PathLike[str]) -> Mapping[str, str]:
    """Return the suffixes of the names of files that come in sets and have the extension of a path."""
    return _suffixes(os.path.splitext(path)[1].lower())


@functools.cache
def _suffixes(extension: str) -> Mapping[str, str]:
    kinds = (kind for kind in registry.of_file(extension) if kind.is_read)
    return next((kind.partner_suffixes for kind in kinds if kind.partner_suffixes), {})


def part_of(name: str) -> tuple[str, str, int]:
    """Split a file name; return the case-folded name of the main file, the part of the model, and the suffix's rank.

    If several files have the same part, the one with the lowest rank is used. Names without a suffix have rank 0.
    """
    stem, extension = os.path.splitext(name)
    pattern = _pattern(extension.lower())
    found = pattern.fullmatch(stem) if pattern is not None else None
    if found is None:
        return name.casefold(), "", 0
    suffixes = _suffixes(extension.lower())
    suffix = found[2].lower()
    return (found[1] + extension).casefold(), suffixes[suffix], list(suffixes).index(suffix) + 1


@functools.cache
def _pattern(extension: str) -> re.Pattern[str] | None:
    """Return the pattern of names, without extension, that have a suffix; None for other files."""
    suffixes = _suffixes(extension)
    return re.compile(f"(.+)({'|'.join(suffixes)})", re.IGNORECASE | re.DOTALL) if suffixes else None


class PartnerFiles:
    """Finds the files of sets; each folder is listed once."""

    def __init__(self) -> None:
        self._sets_in = functools.lru_cache(_FOLDERS_KEPT)(_sets_in)

    def partners(self, path: str | Path) -> dict[str, Path]:
        """Return the files beside a main file that belong to it, by their part, in the order of the suffixes."""
        folder, name = os.path.split(path)
        return {part: Path(folder, other) for part, other in self.names(folder, name).items()}

    def names(self, folder: str, name: str) -> dict[str, str]:
        """Return what :meth:`partners` does as names in the folder.

        A file is not the main one if its name names another part, or if another file of its part counts.
        """
        if not suffixes_of(name):
            return {}
        key, part, _rank = part_of(name)
        found = {} if part else self._sets_in(folder or os.curdir).get(key, {})
        if found.get("", name).casefold() != name.casefold():
            return {}
        return {part: other for part, other in found.items() if part}


def _sets_in(folder: str) -> dict[str, dict[str, str]]:
    """Return the names of files in a folder by part, by the name of the main file in one case; sets only."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if suffixes_of(entry.name) and not entry.is_dir())
    except (OSError, ValueError):
        return {}
    ranked = sorted((rank, name, key, part) for name in names for key, part, rank in [part_of(name)])
    sets: dict[str, dict[str, str]] = {}
    for _rank, name, key, part in ranked:
        sets.setdefault(key, {}).setdefault(part, name)
    return {key: found for key, found in sets.items() if len(found) > 1}


def file_sets(
    paths: Iterable[str | Path], options: Mapping[str, Any] | None = None, finder: PartnerFiles | None = None
) -> list[FileSet]:
    """Group files by name, without opening them; each set has the place of its main file.

    Parameters
    ----------
    options:
        Options of the import. ``PARTNER_FILES`` adds files beside the main files; files of a set among ``paths`` are
        read with their main file if that is there, too. With ``FILES_AS_LEVELS``, all files that can be levels of a
        model are one set.
    finder:
        Default: a new one.
    """
    given = options or {}
    files = [Path(path) for path in paths]
    if _is_on(FILES_AS_LEVELS, given):
        levels = tuple(path for path in files if suffixes_of(path))
        if len(levels) > 1:
            return [
                FileSet(path, levels=levels if path == levels[0] else ()) for path in files if path not in levels[1:]
            ]
    if not reads_partners(given):
        return [FileSet(path) for path in files]
    finder = finder or PartnerFiles()
    found = [FileSet(path, finder.partners(path)) for path in files]
    used = {os.path.realpath(path) for one in found for path in one.partners.values()}
    return [one for one in found if not used or one.partners or os.path.realpath(one.path) not in used]


def file_set(path: str | Path, options: Mapping[str, Any] | None = None, finder: PartnerFiles | None = None) -> FileSet:
    """Return the set of one file that was chosen alone."""
    return file_sets([path], options, finder)[0]


def reads_partners(options: Mapping[str, Any]) -> bool:
    """Return whether an import with these options reads the files beside a main file that belong to it."""
    return _is_on(PARTNER_FILES, options)


def _is_on(option: Option, values: Mapping[str, Any]) -> bool:
    return bool(values.get(option.name, option.default))


def levels_by_triangles(paths: Sequence[Path], triangles: Sequence[int]) -> dict[str, Path]:
    """Return files by the part of the model that each is, the main one first: the more triangles, the higher.

    A file whose name names physics stays that; among equal numbers, the order of the files counts.

    Raises
    ------
    FormatError
        The files are too many.
    """
    parts = [part_of(path.name)[1] for path in paths]
    others = [number for number, part in enumerate(parts) if part and part not in LEVEL_SUFFIXES]
    levels = sorted((number for number in range(len(paths)) if number not in others), key=lambda at: -triangles[at])
    if len(levels) > len(LEVEL_SUFFIXES) or len(others) > len({parts[number] for number in others}) or not levels:
        raise FormatError(
            "These files cannot be the levels of one model, which has at most {} and one physics shape; choose fewer, "
            "or turn off '{}'",
            len(LEVEL_SUFFIXES),
            FILES_AS_LEVELS.label,
            file=str(paths[0]),
        )
    found = dict(zip(LEVEL_SUFFIXES, (paths[number] for number in levels), strict=False))
    return {**found, **{parts[number]: paths[number] for number in others}}
