"""Check of a mod: whether its manifest, lists, files, texts, icons and names agree."""

import csv
import io
import os
import re
from pathlib import Path

from ...core.errors import MeshferryError
from ...core.messages import Message, Named, Report, error, listed
from ...disk.special_files import read_bytes
from ..blueprint.codec import NESTED, Members, child_of
from ..blueprint.json_text import parse
from ..blueprint.links import placed_model
from ..blueprint.tree import PLACES_OF_GAME
from ..game_files import MANIFEST
from ..game_names import FACTIONS
from .cells import members
from .document import leaves
from .mod_folder import APPEND, LIST, PLAIN, ModFolder
from .names import ENDING, game_names
from .planning import PICTURES, name_problems

_NUMBERS = r"\d+(\.\d+){0,3}\w*"
_MANIFEST = {"Name": ".+", "Version": _NUMBERS, "Id": r"\S+", "MinimumGameVersion": _NUMBERS, "Description": ".*"}
_GAME_LIST = re.compile(
    r"templatecollections/templatecollection\.(buildings|characters|naturalresources)\.(folktails|ironteeth)\..*"
)
_COLLECTION = re.compile(
    r"Common|(Buildings|Characters|Landscaping|ModularShaftParts|NaturalResources|Planes|P\w+Variants|P\w+Segments)\..+"
)
_MODEL = re.compile("/TimbermeshSpec/Model$")
_KINDS = {"/BuildingCost/.*/Id$": "goods", "/ToolGroupId$": "tool_groups", "/NeedId$": "needs"}
"""Kinds of the names at paths."""


def is_mod(folder: Path) -> bool:
    """Return whether a path is the folder of a mod with blueprints."""
    if not os.path.isdir(folder):  # also for paths that are too long
        return False
    manifests = [*folder.glob(MANIFEST), *folder.glob(f"[vV]ersion-*/{MANIFEST}")]
    return bool(manifests) and any(folder.rglob(f"*{ENDING}"))


def check_mod(folder: Path, game: str = "") -> list[Message]:
    """Return findings about files of a mod that do not agree; ``game`` is the folder of the game, or empty."""
    try:
        return _ModCheck(ModFolder(folder), game).report.messages
    except MeshferryError as problem:
        return [error("damaged-file", "{}", problem.sentence())]


class _ModCheck:
    """The findings about a mod."""

    def __init__(self, mod: ModFolder, game: str) -> None:
        self.mod, self.report = mod, Report()
        self.names = game_names(game, self.report)
        self.of_game = {name.partition(".")[0].lower() for name in self.names.buildings} | PLACES_OF_GAME | {"sprites"}
        for key, pattern in _MANIFEST.items():
            value = (mod.manifest or {}).get(key)
            if not isinstance(value, str) or not re.fullmatch(pattern, value.strip(), re.DOTALL):
                self.about(MANIFEST).error("manifest-value", "{} is missing or has an unusable value", key)
        self.texts = {key for place in mod.texts() for key in self.keys_of(place)}
        self.listed: dict[Path, set[str]] = {}
        """Identifiers of the collections that have a blueprint."""
        for place, collection in mod.lists.items():
            self.check_list(place, collection)
        self.owners: dict[tuple[str, str], str] = {}
        """Paths of blueprints by collection and name of the template."""
        for place, root in mod.blueprints.items():
            if {"BuildingSpec", "PlaceableBlockObjectSpec"} <= root.keys():
                self.check_building(mod.path_of(place), self.listed.get(place, set()), root)

    def about(self, path: str) -> Report:
        """Return a report about a file."""
        return self.report.about(Named("file", path))

    def is_of_game(self, path: str) -> bool:
        """Return whether a path, or an identifier of a text, has the name of a building or folder of the game."""
        return not self.of_game.isdisjoint(re.split(r"[/\\.]", path.lower()))

    def find(self, report: Report, path: str, *endings: str) -> Path | None:
        """Return the file that a path leads to; report a missing file, and another spelling."""
        for wanted in (path.replace("\\", "/") + ending for ending in endings):
            if (found := self.mod.files.get(wanted.lower())) is not None:
                if (spelled := self.mod.path_of(found)) != wanted:
                    report.warning("case-of-path", "'{}' is written '{}' on the disk; write it alike", path, spelled)
                return found
        if not self.is_of_game(path):
            report.error("not-in-mod", "'{}' leads to no file of the mod", path)
        return None

    def keys_of(self, place: Path) -> list[str]:
        """Return the identifiers in a file of texts."""
        report, text = self.about(self.mod.path_of(place)), read_bytes(place).decode("utf-8-sig", "replace")
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row and not row[0].startswith("//")]
        if not text.startswith("ID,Text,Comment") or "\ufffd" in text:
            report.error("unreadable-texts", "The first line is not ID,Text,Comment, or the texts are not UTF-8")
        if wrong := [row[0] for row in rows if len(row) not in {2, 3}]:
            report.warning("columns-of-texts", "a comma in a text needs quotes: {}", listed(wrong))
        return [row[0] for row in rows]

    def check_list(self, place: Path, collection: str) -> None:
        """Check the entries of a list."""
        # The text itself, since the codec has no difference between a list and what is appended to one.
        report, spec = self.about(self.mod.path_of(place)), parse(read_bytes(place)).find(LIST)
        plain, added = (getattr(spec and spec.find(name), "items", []) for name in (PLAIN, APPEND))
        if plain and _GAME_LIST.fullmatch(self.mod.path_of(place).lower()):
            report.error("list-replaced", "'{}' replaces the game's list; write '{}'", PLAIN, APPEND)
        if not (_COLLECTION.fullmatch(collection) or collection in set().union(*self.mod.loaded.values())):
            report.warning("unknown-collection", "the game has no collection '{}'", collection)
        for path in (str(item.value) for item in (*plain, *added)):
            if not path.lower().endswith(".blueprint"):
                report.error("list-entry", "'{}' does not end in .blueprint", path)
            elif (found := self.find(report, path, ".json")) is not None:
                self.listed.setdefault(found, set()).add(collection)

    def check_building(self, path: str, homes: set[str], root: Members) -> None:
        """Check the names in the blueprint of a building; ``homes`` are the collections that have it."""
        report, found = self.about(path), [pair for pair in leaves(root) if isinstance(pair[1], str)]
        for name, usual in members("building").items():
            if lacking := usual.keys() - (child_of(root, name) or {}).keys():
                report.warning("member-missing", "{} lacks {}", name, listed(sorted(lacking)))
        if not (homes or ".optional." in path or self.is_of_game(path)):
            report.error("not-listed", "no list of buildings has it, so that it does not appear in the game")
        template = str((child_of(root, "TemplateSpec") or {}).get("TemplateName"))
        if others := {self.owners.setdefault((home, template), path) for home in homes} - {path}:
            report.error("template-name-twice", "TemplateName '{}' is also that of '{}'", template, min(others))
        models = [self.find(report, name, ".timbermesh") for key, name in found if _MODEL.search(key) and name]
        scenes = [placed_model(model).read() for model in models if model is not None]
        nodes = {part.partition(NESTED)[0] for key, _value in leaves(root) for part in key.split("/")}
        slots = {node.name.removeprefix("#Slot#").rstrip("0123456789") for scene in scenes for node in scene.nodes}
        known = {"/DisplayNameLocKey$": self.texts, "LocKey$": self.texts | {""}, "/FinishedModelName$": nodes - {""}}
        known |= {"ModelName$": nodes} | ({} if None in models else {"/SlotKeyword$": slots})
        for key, name in found:
            if key == "/LabeledEntitySpec/Icon":
                icon = self.find(report, name, *PICTURES.values())
                if icon is not None and not read_bytes(icon).startswith((*PICTURES,)):
                    report.error("not-a-picture", "'{}' is neither a PNG nor a JPG picture", icon.name)
            elif any(re.search(end, key) and name not in known[end] for end in known) and not self.is_of_game(name):
                report.error("unknown-name", "{}: there is no '{}'", key[1:], name)
        wanted = [(kind, name) for key, name in found for end, kind in _KINDS.items() if re.search(end, key) and name]
        materials = {name for scene in scenes for node in scene.nodes if node.mesh for name in node.mesh.materials}
        for faction in FACTIONS:
            if "Common" in homes or f"Buildings.{faction}" in homes:
                report.add(*name_problems(wanted, materials, faction, self.mod, self.names))
