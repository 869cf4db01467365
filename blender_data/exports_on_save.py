"""The files that the user allowed to be exported again on each save of a .blend file.

The list is stored in the user's own folder, a JSON file for each path of a .blend file, and never in the .blend file:
one from another user must not bring permissions to replace files. It also holds the digests of the files as a save last
wrote them, since an export on save changes no data block.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import bpy

from ..io_formats.disk.atomic_write import remove_file, replace_file
from ..io_formats.disk.rooted_files import is_network_path

_FOLDER = "export_on_save"
_PACKAGE = __package__.rpartition(".")[0]


@dataclass
class AllowedExports:
    """The files that are exported again on each save of a .blend file."""

    blend: str
    """Path of the .blend file."""
    stamp: list[int] = field(default_factory=list)
    """Size in bytes and modification time in nanoseconds of the .blend file after the last save."""
    digests: dict[str, str] = field(default_factory=dict)
    """Digest of each allowed file as a save last wrote it, by path; empty before that."""
    companions: dict[str, str] = field(default_factory=dict)
    """Digest of each file that was written beside an allowed one, by path."""
    is_pending: bool = False
    """Whether the files wait for their export since the last save."""

    def allow(self, path: Path) -> None:
        """Allow a file."""
        self.digests.setdefault(file_key(path), "")

    def allows(self, path: Path) -> bool:
        """Return whether the user allowed this file."""
        return file_key(path) in self.digests

    def has_folder_of(self, path: Path) -> bool:
        """Return whether the user allowed another file of the same folder, and that folder is on this machine."""
        key = file_key(path)
        folder = os.path.dirname(key)
        return not is_network_path(key) and any(os.path.dirname(allowed) == folder for allowed in self.digests)

    def store(self) -> None:
        """Write the list to the user's folder; remove it there if it allows no file.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        place = _place(self.blend)
        if self.digests:
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, json.dumps(asdict(self), indent=1).encode())
        elif place.exists():
            remove_file(place)


def exports_of_blend(path: str) -> AllowedExports:
    """Return the list of a .blend file; it allows no file if there is none."""
    return _read(_place(path)) or AllowedExports(path)


def exports_of_all_files() -> Iterator[AllowedExports]:
    """Yield the list of each .blend file that has one, by path."""
    found = (_read(place) for place in user_folder().glob("*.json"))
    yield from sorted((allowed for allowed in found if allowed is not None), key=lambda allowed: allowed.blend)


def written_digest(path: Path) -> str:
    """Return the digest of a file as a save of the open .blend file last wrote it, or an empty text."""
    if not bpy.data.filepath:
        return ""
    return exports_of_blend(bpy.data.filepath).digests.get(file_key(path), "")


def file_key(path: Path) -> str:
    """Return the path of a file for comparing, without access to it: it may be on another machine.

    Other spellings of an allowed path count as other files, since ``..`` after a link leads elsewhere.
    """
    return os.path.normcase(path)


def stamp_of(path: str) -> list[int]:
    """Return size and modification time of a file, an empty list if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def user_folder() -> Path:
    """Return the folder with the lists: that of the extension, or in the ``bpy`` module, that of Blender's settings."""
    if _PACKAGE.startswith("bl_ext."):
        return Path(bpy.utils.extension_path_user(_PACKAGE, path=_FOLDER))
    return Path(bpy.utils.user_resource("CONFIG"), "meshferry", _FOLDER)


def _place(blend: str) -> Path:
    key = os.path.normcase(os.path.realpath(blend))
    return user_folder() / f"{sha256(os.fsencode(key)).hexdigest()[:32]}.json"


def _read(place: Path) -> AllowedExports | None:
    """Return the list in a file; None if there is none, or it is damaged."""
    try:
        values = json.loads(place.read_bytes())
        allowed = AllowedExports(**{part.name: values[part.name] for part in fields(AllowedExports)})
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_sound = isinstance(allowed.blend, str) and _has_texts(allowed.digests) and _has_texts(allowed.companions)
    return allowed if is_sound else None


def _has_texts(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(text, str) for text in found.values())
