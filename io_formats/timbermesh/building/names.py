"""Names that a new building may use: of goods, needs, tool groups, construction bases, buildings and materials."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.errors import FormatError
from ...core.messages import Report, Text
from ..blueprint.codec import Members, child_of, read
from ..game_files import GameArchive, find_archive
from ..game_names import built_in_names, game_collections

SPECS = {"goods": "GoodSpec", "needs": "NeedSpec", "tool_groups": "BlockObjectToolGroupSpec"}
"""Members of the blueprints that define names, by the kind of name."""
_DEFINITIONS = ("good.", "need.", "blockobjecttoolgroup.")
ENDING = ".blueprint.json"


@dataclass(frozen=True)
class GameNames:
    """Known names."""

    goods: Collection[str]
    needs: Collection[str]
    tool_groups: Collection[str]
    bases: Collection[str]
    buildings: Collection[str]
    """Names of the game's buildings without faction, in lower case if the game's files were read."""
    materials: Mapping[str, Collection[str]]
    """Names by collection, such as a faction."""
    effects: Mapping[str, tuple[float, int]]
    """Points in an hour and radius of decorations, by need."""
    archive: GameArchive | None = None
    """Archive of the installed game, with which an unknown name is an error."""


def game_names(folder: str, report: Report) -> GameNames:
    """Return the names of the game in a folder; without one, or if it cannot be read, those of the built-in list."""
    known = GameNames(**built_in_names())
    if not folder:
        return known
    found: dict[str, Any] = {}
    try:
        archive = GameArchive(find_archive(folder))
        for key in archive.keys:
            if key.rpartition("/")[2].startswith(_DEFINITIONS):
                for kind, name in defined_names(read(archive.read(key) or b"{}").root):
                    found.setdefault(kind, set()).add(name)
        materials = game_collections(folder)
    except (FormatError, OSError) as problem:
        report.warning("built-in-names", "{}; only the built-in list of names was used", Text("{}", problem))
        return known
    stems = {key.rpartition("/")[2].removesuffix(ENDING): key for key in archive.keys}
    bases = [base for base in known.bases if base.lower() in stems]
    buildings = {stem.partition(".")[0] for stem, key in stems.items() if "buildings/" in key}
    return replace(known, **found, bases=bases, buildings=buildings, materials=materials, archive=archive)


def defined_names(root: Members) -> Iterator[tuple[str, str]]:
    """Yield the names that a blueprint defines, with their kinds."""
    for kind, spec in SPECS.items():
        name = (child_of(root, spec) or {}).get("Id")
        if isinstance(name, str):
            yield kind, name
