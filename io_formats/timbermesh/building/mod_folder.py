"""The folder of a mod: its manifest, lists of buildings and texts, and changes of them that keep all other bytes."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ...core.errors import ExportError, FormatError, refusal
from ...core.messages import Report, Text
from ...disk.special_files import read_bytes
from ..blueprint.codec import Members, child_of, read
from ..blueprint.json_text import BOM, JsonValue, TextEdits, parse
from ..game_files import MANIFEST
from ..game_names import mod_collections
from .document import json_text, members
from .names import defined_names

_LIST = "TemplateCollectionSpec"
_PLAIN, _APPEND = "Blueprints", "Blueprints#append"
_VERSION = re.compile(r"version-(\d+(?:\.\d+)*)", re.IGNORECASE)
_TEXTS = re.compile(r"localizations/enus[^/]*\.(csv|txt)")
_HEADER = "ID,Text,Comment"
_RECORD = re.compile(r"(?://[^\r\n]*|(?:\"(?:[^\"]|\"\")*+\"|[^\"\r\n])*+)[^\r\n]*(?:\r\n|\n|\r|\Z)")
"""A line of a CSV file, of which quoted fields may have several lines. Comments may have single quotes."""
_MOST_FILES = 20_000
_FREE_NAME = re.compile(r"[^A-Za-z0-9]")


class ModFolder:
    """A mod with the planned content of its files.

    Raises
    ------
    ExportError
        The folder, its manifest or one of its lists of buildings cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            names = os.listdir(folder) if folder.exists() else []
        except OSError as problem:
            raise ExportError("The folder of the mod cannot be read: {}", refusal(problem), file=folder) from None
        versions = [(match, name) for name in names if (match := _VERSION.fullmatch(name)) and (folder / name).is_dir()]
        numbered = [([*map(int, match[1].split("."))], name) for match, name in versions]
        self.root = folder / max(numbered)[1] if numbered else folder
        self.planned: dict[Path, bytes] = {}
        """New content of files, in the order in which they are written."""
        self.names: dict[str, set[str]] = {}
        """Names of goods, needs and tool groups that the mod defines, by kind."""
        self.templates: dict[str, Path] = {}
        """Blueprints by the name of their template."""
        self.loaded: dict[str, set[str]] = {}
        """Collections of materials that the mod loads in addition, by faction."""
        self._files = {path.relative_to(self.root).as_posix().lower(): path for path in self._walk()}
        self._lists: dict[Path, str] = {}
        self._read_blueprints()
        self.materials = mod_collections(self.root, Report()) if self.root.is_dir() else {}
        self.manifest = self._manifest()

    def _walk(self) -> Iterator[Path]:
        def walk() -> Iterator[Path]:
            for folder, folders, files in os.walk(self.root):
                folders.sort()
                yield from (Path(folder, name) for name in sorted(files))

        return islice(walk(), _MOST_FILES)

    def _manifest(self) -> Members | None:
        """Return the manifest, or None if there is none yet."""
        for path in (self.root / MANIFEST, self.folder / MANIFEST):
            if path.is_file():
                return _document(path)
        return None

    @property
    def requires_mods(self) -> bool:
        """Whether the mod needs others, whose names are not known."""
        return bool((self.manifest or {}).get("RequiredMods"))

    def _read_blueprints(self) -> None:
        for key, path in self._files.items():
            if not key.endswith(".blueprint.json"):
                continue
            try:
                root = _document(path)
            except ExportError:
                if "templatecollection" in key:
                    raise
                continue  # the check of the file reports it
            for kind, name in defined_names(root):
                self.names.setdefault(kind, set()).add(name)
            added = (child_of(root, "FactionSpec") or {}).get("MaterialCollectionIds")
            self.loaded.setdefault(path.name.split(".")[1], set()).update(map(str, added or ()))
            template = (child_of(root, "TemplateSpec") or {}).get("TemplateName")
            if isinstance(template, str):
                self.templates[template] = path
            listing = child_of(root, _LIST)
            if listing is not None:
                self._lists[path] = str(listing.get("CollectionId") or ".".join(path.name.split(".")[1:-2]))

    def place(self, path: str) -> Path:
        """Return the location of a path below the root, in the spelling that its existing folders and file have."""
        if path.lower() in self._files:
            return self._files[path.lower()]
        parts = path.split("/")
        for count in range(len(parts) - 1, 0, -1):
            start = "/".join(parts[:count]).lower() + "/"
            known = next((key for key in self._files if key.startswith(start)), None)
            if known is not None:
                above = self._files[known].relative_to(self.root).parts[:count]
                return self.root.joinpath(*above, *parts[count:])
        return self.root.joinpath(*parts)

    def path_of(self, place: Path) -> str:
        """Return the path below the root by which files of the mod name another one."""
        return place.relative_to(self.root).as_posix()

    def content(self, place: Path) -> bytes | None:
        """Return the planned or the present content of a file; None if there is none."""
        if place in self.planned:
            return self.planned[place]
        return _bytes(place) if place.exists() else None

    def add_manifest(self, author: str) -> None:
        """Plan a manifest, unless there is one."""
        if self.manifest is None:
            name = self.folder.resolve().name
            parts = [_FREE_NAME.sub("", part) for part in (author, name)]
            found = members("manifest") | {"Name": name, "Id": ".".join(filter(None, parts)) or "Mod"}
            self.planned[self.root / MANIFEST] = _file(found)

    def add_to_list(self, faction: str, blueprint: str) -> None:
        """Plan the entry of a blueprint in the list of a faction: in the mod's file, or else in a new one.

        Raises
        ------
        ExportError
            The list is damaged.
        """
        collection = f"Buildings.{faction}"
        lists = [path for path, name in self._lists.items() if name == collection]
        if not lists:
            place = self.place(f"TemplateCollections/TemplateCollection.{collection}.blueprint.json")
            if place.exists():
                raise ExportError("The file is not a list of buildings; rename it", file=place)
            self._lists[place] = collection
            self.planned[place] = _file({_LIST: {"CollectionId": collection, _APPEND: [blueprint]}})
            return
        wanted = blueprint.lower()
        for path in lists:
            spec = child_of(read(self.content(path) or b"").root, _LIST) or {}
            entries = [entry for entry in spec.values() if isinstance(entry, list)]
            if any(str(entry).replace("\\", "/").lower() == wanted for found in entries for entry in found):
                return
        place = lists[0]
        self.planned.pop(place, None)  # so that lists are written last
        self.planned[place] = _with_entry(place, self.content(place) or b"", blueprint)

    def add_texts(self, texts: Mapping[str, str], *, is_replaced: bool) -> None:
        """Plan lines of the English texts; those that are there stay, unless ``is_replaced``."""
        place = next((path for key, path in self._files.items() if _TEXTS.fullmatch(key)), None)
        place = place or self.place("Localizations/enUS.csv")
        data = self.content(place)
        try:
            self.planned[place] = with_texts(data or f"{_HEADER}\n".encode(), texts, is_replaced=is_replaced)
        except UnicodeDecodeError:
            raise ExportError("The texts are not UTF-8", file=place) from None

    def changed(self) -> dict[Path, bytes]:
        """Return the planned files whose content differs from the disk, lists of buildings last."""
        found = {path: data for path, data in self.planned.items() if not path.exists() or _bytes(path) != data}
        return dict(sorted(found.items(), key=lambda pair: pair[0] in self._lists))


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except (FormatError, OSError) as problem:
        raise ExportError("The file cannot be read: {}", Text("{}", problem), file=path) from None


def _document(path: Path) -> Members:
    """Return the content of a JSON file.

    Raises
    ------
    ExportError
        It is damaged.
    """
    try:
        return read(_bytes(path)).root
    except FormatError as problem:
        raise ExportError("The file is damaged: {}; mend it first", problem.message, file=path) from None


def _file(content: Mapping[str, Any]) -> bytes:
    return (json_text(content) + "\n").encode()


def _with_entry(place: Path, data: bytes, entry: str) -> bytes:
    """Return a list of buildings with one more entry; all other bytes stay."""
    edits = TextEdits(data)
    spec = parse(data).find(_LIST) or JsonValue({}, 0, 0)
    found = next((array for key in (_PLAIN, _APPEND) if (array := spec.find(key)) is not None), None)
    if found is None:
        text = json_text([entry], edits.indent_of(spec.start).decode() + "  ")
        edits.insert(spec, {_APPEND: text.encode()}, next(reversed(spec.members), None))
    elif isinstance(found.value, list):
        edits.append(found, entry)
    else:
        raise ExportError("The file is damaged: its list of blueprints is not a list; mend it first", file=place)
    return edits.result()


def with_texts(data: bytes, texts: Mapping[str, str], *, is_replaced: bool) -> bytes:
    """Return a file of texts with these lines; all other bytes stay."""
    bom = BOM if data.startswith(BOM) else b""
    text = data.removeprefix(BOM).decode("utf-8")
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    records = [match[0] for match in _RECORD.finditer(text) if match[0]]
    there = {}
    for number, record in enumerate(records):
        row = next(csv.reader(io.StringIO(record)), [])
        if row and not record.startswith("//"):
            there[row[0]] = number, row
    for key, value in texts.items():
        line = _line([key, value, ""])
        if key not in there:
            if records and not records[-1].endswith(("\n", "\r")):
                records[-1] += newline
            records.append(line + newline)
        elif is_replaced and there[key][1][1:2] != [value]:
            number, row = there[key]
            old = records[number]
            records[number] = _line([key, value, *row[2:]]) + old[len(old.rstrip("\r\n")) :]
    return bom + "".join(records).encode("utf-8")


def _line(row: list[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(row)
    return stream.getvalue()
