"""Records of the files of objects: last import or export, the import's options, permission to export on save.

The list is stored in the user's own folder, a JSON file for each path of a .blend file, and never in the .blend file:
one from another user must not bring permissions to replace files. It also holds the digests of the files as a save last
wrote them, since an export on save changes no data block.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import bpy

from ..io_formats.core.errors import ExportError
from ..io_formats.core.format import OutputFile
from ..io_formats.core.messages import Message
from ..io_formats.core.scene import ImportChoice
from ..io_formats.disk.atomic_write import remove_file, replace_file, why_not_written
from ..io_formats.disk.file_sets import companions_of, obsolete_files, would_change, write_outputs
from ..io_formats.disk.rooted_files import is_network_path

BACKUP = ".bak"
"""Suffix of a copy of content that no export of Meshferry wrote, made before an export replaces it."""
_FOLDER = "export_on_save"
_WRITTEN = "written"
"""File in the user's folder with a line for each content that an export wrote; see :func:`_written_key`."""
_MOST_WRITTEN = 1 << 20
"""Bytes of that file above which the older half is removed."""
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
    spellings: dict[str, str] = field(default_factory=dict)
    """Path of each allowed file as the user sees it, where that is not its key."""

    def allow(self, path: Path) -> None:
        """Allow a file."""
        key = file_key(path)
        self.digests.setdefault(key, "")
        if key != str(path):
            self.spellings[key] = str(path)

    def forbid(self, path: str | Path) -> None:
        """Remove a file from the list, under any spelling of its path."""
        self.digests.pop(file_key(path), None)
        self.spellings.pop(file_key(path), None)

    def paths(self) -> list[str]:
        """Return the paths of the allowed files as the user sees them."""
        return [self.spellings.get(key, key) for key in self.digests]

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
        try:
            if self.digests:
                place.parent.mkdir(parents=True, exist_ok=True)
                replace_file(place, json.dumps(asdict(self), indent=1).encode())
            elif place.exists():
                remove_file(place)
        except OSError as problem:
            raise ExportError("The list of files cannot be stored: {}", problem) from None


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


def file_key(path: str | Path) -> str:
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
        allowed = AllowedExports(
            **{part.name: values[part.name] for part in fields(AllowedExports) if part.name in values}
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_sound = isinstance(allowed.blend, str) and all(
        map(_has_texts, (allowed.digests, allowed.companions, allowed.spellings))
    )
    return allowed if is_sound else None


def _has_texts(found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(text, str) for text in found.values())


@dataclass(frozen=True)
class FileRecord:
    """A file, and the format and options of its last import or export."""

    path: Path
    format: str
    """Name of the format."""
    digest: str
    """Digest of the file's content; see :func:`digest_of`."""
    options: Mapping[str, Any] | None = None
    """Values of all options of the export; None if the file was imported."""
    given: tuple[str, ...] = ()
    """Names of the options that apply to all objects; for other options, the values with which objects were imported
    apply."""
    clip_files: tuple[str, ...] | None = None
    """Files from which the exported animations were imported; None if not known."""


@dataclass
class SessionFile:
    """A file that was read or written since the open .blend file was loaded."""

    digest: str = ""
    """Digest of the file's content at that time. It is kept here, since undo reverts the properties of objects, but not
    the file."""
    is_confirmed: bool = False
    """Whether the user agreed to replace the file."""
    left_out: frozenset[str] = frozenset()
    """Names of animations from other files about which the user was already asked."""
    own: str = ""
    """Digest of the file as an export last wrote it; empty if the export did not change the file."""


_SESSION, _EXPORTS, _SETS = "meshferry_files", "meshferry_exports", "meshferry_sets"


def session_files() -> dict[str, SessionFile]:
    """Return the files that were read or written since the open .blend file was loaded, by path.

    They are stored in Blender's driver namespace, which is cleared when a file is loaded and never saved. Properties,
    even of the window manager, are not used, since a .blend file from another user could contain confirmations.
    """
    files: dict[str, SessionFile] = bpy.app.driver_namespace.setdefault(_SESSION, {})
    return files


def session_exports() -> dict[tuple[int, str], FileRecord]:
    """Return the records of this session's exports in other formats, by ``session_uid`` of the owner and format."""
    exports: dict[tuple[int, str], FileRecord] = bpy.app.driver_namespace.setdefault(_EXPORTS, {})
    return exports


def session_file(path: Path) -> SessionFile | None:
    """Return the record of a file, or None if it was neither read nor written since the .blend file was loaded."""
    return session_files().get(str(path))


def unasked_paths(stored: Iterable[Any]) -> list[str]:
    """Return the paths to other machines among values that are stored in the .blend file.

    Windows logs in to a machine as soon as a path is tested, so the user is asked first. Paths that were read or
    written since the .blend file was loaded, or that the user agreed to, are left out.
    """
    texts = dict.fromkeys(value for value in stored if isinstance(value, str))
    return [text for text in texts if is_network_path(text) and session_file(Path(text)) is None]


def digest_of_content(content: bytes) -> str:
    """Return the SHA-256 of the content of a file, as :func:`digest_of` does for the file."""
    return hashlib.sha256(content).hexdigest()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's content, an empty string if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def write(owners: Iterable[Any], record: FileRecord, *, is_confirmed: bool = False, is_target: bool = True) -> None:
    """Store a record on objects or collections, and note in :func:`session_files` that the file was read or written.

    Parameters
    ----------
    is_confirmed:
        Whether the user agreed to replace the file.
    is_target:
        Whether the file becomes the target; otherwise it is the last export in a further format.
    """
    for owner in owners:
        if owner.is_editable:
            _store_record(owner, record, is_target=is_target)
            if not is_target:
                session_exports()[owner.session_uid, record.format] = record
    entry = session_files().setdefault(str(record.path), SessionFile())
    entry.digest = record.digest
    entry.is_confirmed |= is_confirmed


def _store_record(owner: Any, record: FileRecord, *, is_target: bool) -> None:
    stored = owner.meshferry.file if is_target else stored_file(owner, record.format)
    stored = stored or owner.meshferry.exports.add()
    stored.path, stored.format, stored.digest = str(record.path), record.format, record.digest
    stored.options = "" if record.options is None else json.dumps(dict(record.options))
    stored.given = json.dumps(record.given)
    stored.clip_files = "" if record.clip_files is None else json.dumps(record.clip_files)
    stored.owner = owner.name


def write_set(collection: bpy.types.Collection, text: str) -> None:
    """Store what a collection remembers of the files that were written from it."""
    collection.meshferry.written_set = text
    bpy.app.driver_namespace.setdefault(_SETS, {})[collection.session_uid] = text


def restore_exports() -> None:
    """Store the records of exports in other formats and of sets again, after *Undo* or *Redo*."""
    for collection in bpy.data.collections:
        if text := bpy.app.driver_namespace.get(_SETS, {}).get(collection.session_uid):
            collection.meshferry.written_set = text
    exports = session_exports() if _EXPORTS in bpy.app.driver_namespace else {}
    owners = {owner.session_uid: owner for owner in (*bpy.data.objects, *bpy.data.collections)} if exports else {}
    for (uid, name), record in exports.items():
        owner = owners.get(uid)
        if owner is not None and owner.is_editable:
            stored = stored_file(owner, name)
            if stored is None or (stored.path, stored.digest) != (str(record.path), record.digest):
                _store_record(owner, record, is_target=False)


def write_files(path: Path, outputs: Sequence[OutputFile]) -> list[Message]:
    """Write the files of an export, the last one as ``path``; return the messages. All exports write by this function.

    Content that no export wrote is copied before it is replaced or removed; see :func:`_keep`.

    Raises
    ------
    ExportError
        A file cannot be written; the old files are unchanged.
    """
    files = [*companions_of(path, outputs), (path, outputs[-1])]
    changed = {place for place, output in files if not os.path.exists(place) or would_change(place, output)}
    copies: list[Path] = []
    try:
        for place in (*changed, *obsolete_files(path, outputs)[0]):
            copies += _keep(place)
        digests = {
            place: digest_of_content(output.data) if output.copy_of is None else digest_of(output.copy_of)
            for place, output in files
        }
        # before writing: after a killed export, the next one must not take these files for another program's
        _note_written([_written_key(place, digests[place]) for place in changed])
        messages = write_outputs(path, outputs)
    except (OSError, ValueError) as problem:
        for copy in copies:
            with contextlib.suppress(OSError):
                remove_file(copy)
        if isinstance(problem, ExportError):
            raise
        raise ExportError(why_not_written(path, problem), file=path) from None
    for place, digest in digests.items():
        entry = session_files().setdefault(str(place), SessionFile())
        entry.digest, entry.own = digest, digest if place in changed else entry.own
    return messages


def is_own(path: Path) -> bool:
    """Return whether an export wrote the present content of a file, on this machine."""
    digest, entry = digest_of(path), session_file(path)
    if entry is not None and digest == entry.own != "":
        return True
    try:
        return _written_key(path, digest) in (user_folder() / _WRITTEN).read_text("ascii")
    except (OSError, ValueError):
        return False


def free_path(path: Path, may_replace: Callable[[Path], bool]) -> Path:
    """Return a path, with a number in its name if a file has it that may not be replaced."""
    start, dot, rest = path.name.partition(".")
    number, free = 1, path
    while os.path.exists(free) and not may_replace(free):
        number += 1
        free = path.with_name(f"{start}_{number}{dot}{rest}")
    return free


def _keep(path: Path) -> list[Path]:
    """Copy a file to ``.bak``, or to ``.bak2`` and so on if that has other content.

    Empty files, and content that an export wrote, need no copy.

    Return the copy if it is new.

    Raises
    ------
    ExportError
        The copy cannot be written.
    OSError
        The file cannot be read.
    """
    if not os.path.isfile(path) or not os.path.getsize(path) or is_own(path):
        return []
    content, number = path.read_bytes(), 1
    copy = path.with_name(path.name + BACKUP)
    while copy.exists() and digest_of(copy) != digest_of_content(content):
        number += 1
        copy = path.with_name(f"{path.name}{BACKUP}{number}")
    if copy.exists():
        return []
    replace_file(copy, content, within=path.parent)
    return [copy]


def _written_key(path: Path, digest: str) -> str:
    """Return a line that stands for a path and its content, without revealing either."""
    return sha256(os.fsencode(f"{file_key(path.absolute())}\0{digest}")).hexdigest()


def _note_written(keys: Sequence[str]) -> None:
    """Store that exports write these contents. If that fails, the next session makes a further backup."""
    place = user_folder() / _WRITTEN
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() and place.stat().st_size > _MOST_WRITTEN:
            lines = place.read_bytes().split()
            place.write_bytes(b"\n".join(lines[len(lines) // 2 :]) + b"\n")
        with place.open("a", encoding="ascii") as stream:
            stream.write("".join(f"{key}\n" for key in keys))


def stored_file(owner: Any, format_name: str = "") -> Any:
    """Return the properties with the target of an object or a collection, or with its last export in another format.

    Return None if there was no export in the other format.
    """
    if not format_name:
        return owner.meshferry.file
    return next((stored for stored in owner.meshferry.exports if stored.format == format_name), None)


def records(owner: Any) -> list[FileRecord]:
    """Return the record of the target of an object or a collection, and those of its exports in other formats."""
    found = (read(owner, name) for name in ("", *(stored.format for stored in owner.meshferry.exports)))
    return [record for record in found if record is not None]


def read(owner: Any, format_name: str = "") -> FileRecord | None:
    """Return the record of the target of an object or a collection, or of its last export in another format.

    Return None if it has none, or was copied from another one. A record that is damaged, as a .blend file of another
    program may have it, counts as none.
    """
    stored = stored_file(owner, format_name)
    if stored is None or not stored.path or _is_copy(owner, stored.owner):
        return None
    try:
        options = dict(json.loads(stored.options)) if stored.options else None
        given = tuple(json.loads(stored.given or "[]"))
        clip_files = tuple(json.loads(stored.clip_files)) if stored.clip_files else None
    except (ValueError, TypeError, RecursionError):
        return None
    path = absolute_path(stored.path, bpy.path.abspath("//", library=owner.library))
    return FileRecord(Path(path), stored.format, stored.digest, options, given, clip_files)


def absolute_path(path: str, folder: str) -> str:
    """Return the path of a file that may be stored relative to a folder, with ``//`` before it."""
    is_relative = bool(folder) and path.startswith("//")
    return os.path.normpath(os.path.join(folder, path[2:])) if is_relative else path


def path_of(owners: Iterable[Any]) -> Path | None:
    """Return the path of the first record of objects or collections, or else the path of the .blend file."""
    records = (read(owner) for owner in owners)
    path = next((record.path for record in records if record is not None), None)
    return path or (Path(bpy.data.filepath) if bpy.data.filepath else None)


def _is_copy(owner: Any, name: str) -> bool:
    """Return whether a data block is a copy of the one for which a record was made, and not that one renamed.

    ``name`` is the name of the original.
    """
    others = bpy.data.objects if isinstance(owner, bpy.types.Object) else bpy.data.collections
    if owner.name == name:
        return False
    return name in others or re.fullmatch(re.escape(name) + r"\.\d{3,}", owner.name) is not None


def clear(owners: Iterable[Any]) -> None:
    """Remove the targets of objects; used when their collection gets a newer one."""
    for owner in owners:
        if owner.is_editable:
            owner.meshferry.file.path = ""


def is_unchanged(record: FileRecord) -> bool:
    """Return whether a file is as Blender last read or wrote it; a deleted file counts as unchanged."""
    if not record.path.exists():
        return True
    return digest_of(record.path) in known_digests(record)


def known_digests(record: FileRecord) -> set[str]:
    """Return the digests of a file as Blender last read or wrote it; exports on save are not in the record."""
    entry = session_file(record.path)
    return {record.digest, entry.digest if entry is not None else "", written_digest(record.path)} - {""}


def write_choices(made: bpy.types.Object, choices: Iterable[ImportChoice]) -> None:
    """Store the options with which an object was imported."""
    for choice in choices:
        stored = made.meshferry.import_choices.add()
        stored.name, stored.value = choice.option, choice.value


def read_choices(*objects: bpy.types.Object) -> tuple[ImportChoice, ...]:
    """Return the options with which these objects were imported."""
    return tuple(
        ImportChoice(stored.name, stored.value, obj.name) for obj in objects for stored in obj.meshferry.import_choices
    )
