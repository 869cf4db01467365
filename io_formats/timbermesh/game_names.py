"""Names of materials and nodes that Timberborn knows, from its files or a built-in list."""

import difflib
import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from ..core.errors import FormatError, refusal
from ..core.messages import Message, Report, Text
from ..encodings.zip_files import open_archive, read_entry
from .game_files import LARGEST_ENTRY, find_archive, mod_folder

SLOT_KEYWORDS = ("Entrance", "Bot", "Seat")
"""Keywords after ``#Slot#``, matched by prefix."""

FACTIONS = ("Folktails", "IronTeeth")

WITHOUT_FACTION = ("Dirt", "Water", "BeaverCarryingModels", "BeaverAdult")


OTHERS = "Others"
"""Name of the group of materials without a faction."""

_SUFFIX = re.compile(r"\.\d{3,}$")


def without_suffix(name: str) -> str:
    """Return a name without the number suffix that Blender adds to make a name unique."""
    return _SUFFIX.sub("", name)


@cache
def built_in_names() -> dict[str, Any]:
    """Return the built-in lists of names of the game, by their kind."""
    return dict(json.loads(Path(__file__).with_name("names.json").read_text("utf-8")))


def misspelt_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt name probably means, or None.

    A name counts as misspelt if it differs from a known one by one edit or only in case, dots, underscores and
    spaces. Other names may belong to a mod.
    """
    plain = plain_name(name)
    for candidate in known:
        if plain_name(candidate) == plain or (abs(len(candidate) - len(name)) <= 1 and _one_edit(name, candidate)):
            return candidate
    return None


def plain_name(name: str) -> str:
    """Return a name in lower case, with underscores for dots and spaces."""
    return name.replace(".", "_").replace(" ", "_").lower()


def _one_edit(one: str, other: str) -> bool:
    """Return whether one insertion, deletion, replacement or swap of adjacent letters turns one name into the other."""
    if len(one) > len(other):
        one, other = other, one
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    return swapped or one[start + 1 :] == other[start + 1 :]


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
        entries = (info for info in archive.infolist() if _FILE.fullmatch(_name_of(info.filename)))
        for info in islice(entries, _MOST_FILES):
            _add(found, _parse(read_entry(archive, info, LARGEST_ENTRY), _name_of(info.filename)))
    if not any(found.values()):
        raise FormatError("The zip file has no material collections")
    return found


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


_LEAST_BASE_RATIO = 0.75
"""Smallest similarity of a suggestion without its faction, from 0 to 1."""
_LEAST_RATIO = 0.9
"""Smallest similarity of a suggestion with its faction, which is often half of the name: 'Sand.Folktails'
and 'Paper.Folktails' have 0.76."""
_LONGEST_COMPARED = 100
"""Largest length of a name to compare; the time grows with the square."""


@dataclass(frozen=True)
class MaterialNames:
    """Known names of materials."""

    collections: Mapping[str, tuple[str, ...]]
    """Names by collection, such as the materials of a faction. A name may be in several."""
    is_complete: bool
    """Whether the game's own files were read. Otherwise most names of the game are missing."""
    from_mod: frozenset[str] = frozenset()
    """Names of the mod in lower case: the case of its paths may differ from that of the names."""
    warnings: tuple[Message, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all collections, each once."""
        return tuple(dict.fromkeys(name for names in self.collections.values() for name in names))

    @cached_property
    def _all(self) -> frozenset[str]:
        return frozenset(self.names)

    @cached_property
    def _by_plain_name(self) -> dict[str, str]:
        return {plain_name(name): name for name in reversed(self.names)}

    @cached_property
    def _by_base(self) -> dict[str, list[str]]:
        """Names in plain form, grouped by the part of the name before the faction."""
        found: dict[str, list[str]] = {}
        for name in self.names:
            found.setdefault(plain_name(_base(name)), []).append(plain_name(name))
        return found

    def is_known(self, name: str) -> bool:
        """Return whether a material has this name, or the name is empty, which means the default material."""
        return not name.strip() or name in self._all or name.lower() in self.from_mod

    def nearest(self, name: str) -> str | None:
        """Return the most similar name, or None if none is close; if names are incomplete, only for a misspelling."""
        if len(name) > _LONGEST_COMPARED:
            return None
        if not self.is_complete:
            return misspelt_name(name, self.names)
        plain = plain_name(name)
        if plain in self._by_plain_name:
            return self._by_plain_name[plain]
        bases = difflib.get_close_matches(plain_name(_base(name)), self._by_base, n=1, cutoff=_LEAST_BASE_RATIO)
        among = self._by_base[bases[0]] if bases else self._by_plain_name
        found = difflib.get_close_matches(plain, among, n=1, cutoff=0.0 if bases else _LEAST_RATIO)
        return self._by_plain_name[found[0]] if found else None


def _base(name: str) -> str:
    """Return a name without its faction."""
    return name.rpartition(".")[0] or name


def material_names(game: str = "", file: Path | None = None) -> MaterialNames:
    """Return the names of the game and of the mod that a file belongs to.

    Parameters
    ----------
    game:
        Folder of the game; empty for the built-in list, which is also used if the folder cannot be read.
    file:
        Path of the model.
    """
    collections: dict[str, tuple[str, ...]] = {}
    own: dict[str, tuple[str, ...]] = {}
    report = Report()
    if game:
        try:
            collections = game_collections(game)
        except FormatError as problem:
            template = "{}; only the built-in list of material names was used"
            report.warning("built-in-material-names", template, Text("{}", problem))
    is_complete = bool(collections)
    if not is_complete:
        materials = built_in_names()["materials"]
        collections = {faction: tuple(name for name in materials[faction] if "." in name) for faction in FACTIONS}
        collections[OTHERS] = WITHOUT_FACTION
    folder = mod_folder(file) if file is not None else None
    if folder is not None:
        own = mod_collections(folder, report)
    for collection, names in own.items():
        collections[collection] = tuple(dict.fromkeys((*collections.get(collection, ()), *names)))
    from_mod = frozenset(name.lower() for names in own.values() for name in names)
    return MaterialNames(collections, is_complete, from_mod, tuple(report.messages))
