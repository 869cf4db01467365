"""The file that objects and collections were last imported from or exported to, for repeating the export."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bpy


@dataclass(frozen=True)
class FileRecord:
    """A file, and how it was written."""

    path: Path
    format: str
    """Name of the format."""
    digest: str
    """Digest of the file's content; see :func:`digest_of`."""
    options: Mapping[str, Any] | None = None
    """Values of all options of the export; None if the file was imported."""
    given: tuple[str, ...] = ()
    """Names of options that override what objects were imported with."""
    is_confirmed: bool = False
    """Whether the user agreed to replace the file."""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, an empty string if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def write(context: Any, owners: Iterable[Any], record: FileRecord) -> None:
    """Store a record on objects or collections.

    The digest is also stored in the window manager, since undo reverts the properties of objects, but not the file.
    """
    for owner in owners:
        if owner.is_editable:
            stored = owner.meshferry.file
            stored.path, stored.format, stored.digest = str(record.path), record.format, record.digest
            stored.options = "" if record.options is None else json.dumps(dict(record.options))
            stored.given = json.dumps(record.given)
            stored.owner = owner.name
            stored.is_confirmed = record.is_confirmed
    known = context.window_manager.meshferry_files
    entry = known.get(str(record.path)) or known.add()
    entry.name, entry.digest = str(record.path), record.digest


def read(owner: Any) -> FileRecord | None:
    """Return the record of an object or a collection; None if it has none, or was copied from another one."""
    stored = owner.meshferry.file
    if not stored.path or _is_copy(owner, stored.owner):
        return None
    options = json.loads(stored.options) if stored.options else None
    given = tuple(json.loads(stored.given or "[]"))
    return FileRecord(Path(stored.path), stored.format, stored.digest, options, given, stored.is_confirmed)


def path_of(owners: Iterable[Any]) -> Path | None:
    """Return the path of the first record of objects or collections, or else the path of the .blend file."""
    records = (read(owner) for owner in owners)
    path = next((record.path for record in records if record is not None), None)
    return path or (Path(bpy.data.filepath) if bpy.data.filepath else None)


def _is_copy(owner: Any, name: str) -> bool:
    """Return whether a data block is a copy of the record's owner, which had this name, and not just renamed."""
    others = bpy.data.objects if isinstance(owner, bpy.types.Object) else bpy.data.collections
    if owner.name == name:
        return False
    return name in others or re.fullmatch(re.escape(name) + r"\.\d{3,}", owner.name) is not None


def clear(owners: Iterable[Any]) -> None:
    """Remove the records of objects; used if their collection gets a newer record."""
    for owner in owners:
        if owner.is_editable:
            owner.meshferry.file.path = ""


def is_unchanged(context: Any, record: FileRecord) -> bool:
    """Return whether a file is as Blender last read or wrote it; a deleted file counts as unchanged."""
    if not record.path.exists():
        return True
    entry = context.window_manager.meshferry_files.get(str(record.path))
    return digest_of(record.path) in {record.digest, entry.digest if entry is not None else ""} - {""}
