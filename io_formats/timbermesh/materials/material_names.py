"""Names of materials that the game loads, from its files if its folder is given, otherwise from a built-in list."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...core.errors import FormatError
from ...core.messages import Message, Report, Text
from ..known_names import known_collections, misspelt_name, plain_name
from .game_folder import mod_folder

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
        from .material_collections import game_collections  # slow to import

        try:
            collections = game_collections(game)
        except FormatError as problem:
            template = "{}; only the built-in list of material names was used"
            report.warning("built-in-material-names", template, Text("{}", problem))
    is_complete = bool(collections)
    if not is_complete:
        collections = known_collections()
    folder = mod_folder(file) if file is not None else None
    if folder is not None:
        from .material_collections import mod_collections

        own = mod_collections(folder, report)
    for collection, names in own.items():
        collections[collection] = tuple(dict.fromkeys((*collections.get(collection, ()), *names)))
    from_mod = frozenset(name.lower() for names in own.values() for name in names)
    return MaterialNames(collections, is_complete, from_mod, tuple(report.messages))
