"""The folder of a mod: its manifest, lists of buildings and texts, and changes of them that keep all other bytes."""

import csv
import io
import json
import os
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ...core.errors import ExportError, FormatError
from ...core.messages import Report
from ...disk.special_files import read_bytes
from ..blueprint.codec import Members, child_of, read
from ..blueprint.json_text import BOM, JsonValue, TextEdits, parse
from ..game_files import MANIFEST
from ..game_names import mod_collections
from .cells import members
from .names import ENDING, defined_names

LIST = "TemplateCollectionSpec"
PLAIN, APPEND = "Blueprints", "Blueprints#append"
_VERSION = re.compile(r"version-(\d+(?:\.\d+)*)", re.IGNORECASE)
_TEXTS = re.compile(r"localizations/enus[^/]*\.(csv|txt)")
_RECORD = re.compile(r"(?://[^\r\n]*|(?:\"(?:[^\"]|\"\")*+\"|[^\",\r\n][^,\r\n]*+|,)*+)[^\r\n]*(?:\r\n|\n|\r|\Z)")
"""A line of a CSV file, of which quoted fields may have several lines. Comments may have single quotes."""
_MOST_FILES = 20_000


class ModFolder:
    """A mod with the planned content of its files.

    Raises
    ------
    FormatError
        The manifest or a list of buildings is damaged or cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        versions = [place for place in (folder.iterdir() if folder.is_dir() else ()) if _number(place)]
        self.root, self._name = max(versions, key=_number, default=folder), folder.resolve().name
        self.planned: dict[Path, bytes] = {}
        """New content of files, in the order in which they are written."""
        self.names: dict[str, set[str]] = {}
        """Names of goods, needs and tool groups that the mod defines, by kind."""
        self.templates: dict[str, Path] = {}
        """Blueprints by the name of their template."""
        self.loaded: dict[str, set[str]] = {}
        """Collections of materials and templates that the mod loads in addition, by faction."""
        places = (Path(above, name) for above, _folders, files in os.walk(self.root) for name in sorted(files))
        found = {place.relative_to(self.root).as_posix().lower(): place for place in islice(places, _MOST_FILES)}
        self.files = dict(sorted(found.items()))
        """Files by their paths in lower case."""
        self.lists: dict[Path, str] = {}
        """Identifiers of the collections in lists of buildings."""
        self.blueprints: dict[Path, Members] = {}
        for key, place in self.files.items():
            if key.endswith(ENDING):
                self._read_blueprint(place)
        self.materials = mod_collections(self.root, Report())
        manifests = [place for place in (self.files.get(MANIFEST), folder / MANIFEST) if place and place.is_file()]
        self.manifest = _document(manifests[0]) if manifests else None
        for name, usual in members("manifest").items():
            if self.manifest is not None and type(self.manifest.get(name, [])) is not type(usual):
                raise FormatError("The file is damaged: {} is missing or wrong; mend it first", name, file=manifests[0])

    def _read_blueprint(self, place: Path) -> None:
        try:
            self.blueprints[place] = root = _document(place)
        except FormatError:
            if "templatecollection" in f"{place}{read_bytes(place)!r}".lower():
                raise
            return  # the check of the file reports it
        for kind, name in defined_names(root):
            self.names.setdefault(kind, set()).add(name)
        faction, loaded = child_of(root, "FactionSpec") or {}, self.loaded.setdefault(place.name.split(".")[1], set())
        for name in ("MaterialCollectionIds", "TemplateCollectionIds"):
            added = faction.get(name)
            loaded.update(map(str, added if isinstance(added, list) else ()))
        if template := (child_of(root, "TemplateSpec") or {}).get("TemplateName"):
            self.templates[str(template)] = place
        if (listing := child_of(root, LIST)) is not None:
            self.lists[place] = str(listing.get("CollectionId") or ".".join(place.name.split(".")[1:-2]))

    def place(self, path: str) -> Path:
        """Return the location of a path below the root; an existing file may differ in case."""
        return self.files.setdefault(path.lower(), self.root / path)

    def path_of(self, place: Path) -> str:
        """Return the path below the root by which files of the mod name another one."""
        return place.relative_to(self.root).as_posix()

    def content(self, place: Path) -> bytes | None:
        """Return the planned or the present content of a file; None if there is none."""
        return self.planned.get(place) or (read_bytes(place) if place.exists() else None)

    def add_manifest(self) -> None:
        """Plan a manifest, unless there is one."""
        if self.manifest is None:
            identifier = re.sub(r"[^A-Za-z0-9]", "", self._name) or f"Mod{os.fsencode(self._name).hex()}"
            found = members("manifest") | {"Name": self._name, "Id": identifier}
            self.planned[self.root / MANIFEST] = file_of(found)

    def add_to_list(self, faction: str, blueprint: str) -> None:
        """Plan the entry of a blueprint in the list of a faction: in the mod's file, or else in a new one.

        Raises
        ------
        ExportError
            The list is damaged.
        """
        collection = f"Buildings.{faction}"
        lists = [place for place, name in self.lists.items() if name == collection]
        new = self.place(f"TemplateCollections/TemplateCollection.{collection}{ENDING}")
        if not lists and new.exists():
            raise ExportError("The file is not a list of buildings; rename it", file=new)
        for place in lists:
            spec = child_of(read(self.content(place) or b"").root, LIST) or {}
            entries = [str(entry) for entries in spec.values() if isinstance(entries, list) for entry in entries]
            if blueprint.lower() in (entry.replace("\\", "/").lower() for entry in entries):
                return
        place = lists[0] if lists else new
        data = self.content(place) or file_of({LIST: {"CollectionId": collection, APPEND: []}})
        self.lists[place], self.planned[place] = collection, _with_entry(place, data, blueprint)

    def texts(self) -> list[Path]:
        """Return the files of English texts."""
        return [place for key, place in self.files.items() if _TEXTS.fullmatch(key)]

    def add_texts(self, texts: Mapping[str, str], *, is_replaced: bool) -> None:
        """Plan lines of the English texts; those that are there stay, unless ``is_replaced``."""
        there = self.texts()
        there.sort(key=lambda place: not any(key.encode() in (self.content(place) or b"") for key in texts))
        place = there[0] if there else self.place("Localizations/enUS.csv")
        try:
            self.planned[place] = with_texts(self.content(place) or b"", texts, is_replaced=is_replaced)
        except (UnicodeError, csv.Error) as problem:
            raise ExportError("The texts are not CSV in UTF-8: {}; mend them first", problem, file=place) from None

    def changed(self) -> dict[Path, bytes]:
        """Return the planned files whose content differs from the disk, lists of buildings last.

        Raises
        ------
        ExportError
            A file cannot be written.
        """
        found = {place: data for place, data in self.planned.items() if not place.exists() or read_bytes(place) != data}
        for folder in {next((above for above in place.parents if above.exists()), place) for place in found}:
            if not (folder.is_dir() and os.access(folder, os.W_OK)):
                raise ExportError("No file can be written into it; mend this, or choose another mod", file=folder)
        return dict(sorted(found.items(), key=lambda pair: pair[0] in self.lists))


def _number(place: Path) -> list[int]:
    """Return the numbers of a folder for a version of the game, an empty list for others."""
    match = _VERSION.fullmatch(place.name)
    return [*map(int, match[1].split("."))] if match is not None and place.is_dir() else []


def _document(path: Path) -> Members:
    """Return the content of a JSON file, or raise FormatError."""
    try:
        return read(read_bytes(path)).root
    except FormatError as problem:
        raise FormatError("The file is damaged: {}; mend it first", problem.message, file=str(path)) from None


def json_text(value: Any, indent: bytes = b"", newline: bytes = b"\n") -> bytes:
    """Return a value as JSON with an indent of two spaces."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace").replace(b"\n", newline + indent)


def file_of(content: Mapping[str, Any]) -> bytes:
    """Return a JSON file."""
    return json_text(content) + b"\n"


def _with_entry(place: Path, data: bytes, entry: str) -> bytes:
    """Return a list of buildings with one more entry; all other bytes stay."""
    edits, spec = TextEdits(data), parse(data).find(LIST) or JsonValue({}, 0, 0)
    found = spec.find(PLAIN) or spec.find(APPEND)
    if found is None:
        edits.insert(spec, {APPEND: json_text([entry])}, next(reversed(spec.members), None))
    elif not isinstance(found.value, list):
        raise ExportError("The file is damaged: its list of blueprints is not a list; mend it first", file=place)
    else:
        edits.append(found, entry)
    return edits.result()


def with_texts(data: bytes, texts: Mapping[str, str], *, is_replaced: bool) -> bytes:
    """Return a file of texts with these lines; all other bytes stay."""
    bom = BOM if data.startswith(BOM) else b""
    text = data.removeprefix(BOM).decode("utf-8") or "ID,Text,Comment\n"
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    records = [match[0] for match in _RECORD.finditer(text) if match[0]]
    rows = {(row := next(csv.reader([record]), []) or [""])[0]: (row, n) for n, record in enumerate(records)}
    for key, value in texts.items():
        row, number = rows.get(key, ([], -1))
        if not row:
            records[-1:] = [records[-1] if records[-1].endswith(("\n", "\r")) else records[-1] + newline]
            records.append(_line([key, value, ""]) + newline)
        elif is_replaced and row[1:2] != [value]:
            old = records[number]
            records[number] = _line([key, value, *row[2:]]) + old[len(old.rstrip("\r\n")) :]
    return bom + "".join(records).encode("utf-8", "replace")


def _line(row: list[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(row)
    return stream.getvalue()
