"""The files below one folder: listed once, found under any spelling, and never read outside of the folder.

Names are compared ignoring case and in Unicode's form NFC, because projects are made on systems that ignore both
differences. Symbolic links are followed only if they lead to something inside the folder. Only listed regular files are
opened.
"""

import contextlib
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..core.errors import FormatError, MeshferryError, refusal
from .special_files import JUNCTION, open_regular

_T = TypeVar("_T")

MOST_FILES = 2_000_000
"""Limit of the number of files in the folder."""
MOST_FOLDERS_DEEP = 200
READ_LIMIT = 512 * 2**20
"""Limit of the size of a file that is read whole."""
LFS_POINTER = b"version https://git-lfs"
_MOST_LINKS = 40
"""Maximum number of links that are followed to resolve a path, as on Linux."""
_NETWORK = re.compile(r"[/\\]{2}(?!\?\\[a-z]:)", re.IGNORECASE)
_CHECK_EVERY = 64
"""Number of folders that are listed between two calls of ``check``."""


class LfsPointerError(FormatError):
    """A file whose content Git LFS has not downloaded."""

    def __init__(self, file: str) -> None:
        super().__init__("The file is only a Git LFS pointer: run git lfs pull", file=file)


class TooManyFilesError(MeshferryError):
    """A folder with more files than the limit."""


def path_key(path: str) -> str:
    """Return a key that is equal for all spellings of a path, with slashes or backslashes between its parts."""
    key = path.replace("\\", "/")
    return key.lower() if key.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", key).casefold())


def plain_path(path: str) -> str:
    """Return a relative path without ``.``, ``..`` and empty parts; leading ``..`` remain."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def has_lfs_pointer(data: bytes) -> bool:
    """Return whether a file's content is only a pointer of Git LFS."""
    return data.startswith(LFS_POINTER)


@dataclass
class _Listing:
    """Intermediate results of listing the folder."""

    paths: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, int] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    """Path and full path of each symbolic link."""


class RootedFiles:
    """The files below one folder; paths are relative to it, with ``/`` between their parts.

    Parameters
    ----------
    root:
        The folder.
    most:
        Limit of the number of files.
    is_partial:
        Whether a folder with more files is listed down to the level where the limit is reached. Otherwise it is
        refused.
    check:
        Called now and then while the folder is listed; it raises an exception to cancel.
    known:
        Paths of the files if the folder was listed already.

    Raises
    ------
    TooManyFilesError
        The folder has more files than the limit.
    """

    def __init__(
        self,
        root: Path,
        *,
        most: int = MOST_FILES,
        is_partial: bool = False,
        check: Callable[[], object] | None = None,
        known: Sequence[str] | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._most = most
        self._is_partial = is_partial
        self._check = check or (lambda: None)
        self._mounts: list[tuple[str, str]] = []
        self.paths: dict[str, str] = {}
        """Path of each file by its key."""
        self._stamps: dict[str, int] = {}
        """Modification time of each listed folder by its full path."""
        self._read: dict[str, int] = {}
        """Modification time of each file that was read, by its full path."""
        self.unreadable: dict[str, str] = {}
        """Reasons why files could not be read or parsed, by path."""
        if known is None:
            self._add(str(self.root), "")
        else:
            self.paths = {path_key(path): path for path in known if plain_path(path) == path}

    def _add(self, folder: str, prefix: str) -> None:
        """List a folder whose files get paths that start with ``prefix``."""
        found = _Listing()
        waiting = [(folder, prefix, 0)]
        while waiting:
            below: list[tuple[str, str, int]] = []
            for number, (full, relative, depth) in enumerate(waiting):
                if number % _CHECK_EVERY == 0:
                    self._check()
                below += _list_folder(full, relative, depth, found)
                if len(self.paths) + len(found.paths) > self._most:
                    if not self._is_partial:
                        raise TooManyFilesError("The project {} has more than {:,} files", self.root, self._most)
                    below = []
                    break
            waiting = below
        for path, full in found.links:
            self._add_link(path, full, os.path.realpath(folder), prefix, found)
        self.paths = {**found.paths, **self.paths} if self.paths else found.paths
        self._stamps |= found.stamps

    def _add_link(self, path: str, full: str, folder: str, prefix: str, found: _Listing) -> None:
        """Add a symbolic link to a file of the folder, or the files of a folder that it leads to."""
        try:
            target = "" if leads_to_network(full) else os.path.realpath(full)
        except OSError:  # links that only their owner may read, as in /proc
            return
        if not is_inside(target, folder) or is_inside(full, target):
            return
        if os.path.isfile(target):
            found.paths.setdefault(path_key(path), path)
        elif os.path.isdir(target):
            start = prefix + os.path.relpath(target, folder).replace(os.sep, "/") + "/"
            for known in [known for known in found.paths.values() if known.startswith(start)]:
                alias = f"{path}/{known[len(start) :]}"
                found.paths.setdefault(path_key(alias), alias)
            if len(found.paths) > self._most:
                raise TooManyFilesError("The project {} has more than {:,} files", self.root, self._most)

    def mount(self, name: str, folder: Path) -> None:
        """Add the files of another folder under a path of this one."""
        real = os.path.realpath(folder)
        self._mounts.append((name + "/", real))
        self._add(real, name + "/")

    def find(self, path: str) -> str | None:
        """Return the path of a file under any of its spellings, or None if there is no such file."""
        return self.paths.get(path_key(path)) or self.paths.get(path_key(plain_path(path)))

    def find_above(self, path: str) -> str | None:
        """Return a path that starts with ``../`` if it is a file in the folder above, or None."""
        parts = plain_path(path).split("/")
        if parts.count("..") != 1 or parts[0] != "..":
            return None
        folder = str(self.root.parent)
        names = []
        for part in parts[1:]:
            name = _name_in(folder, part)
            if name is None:
                return None
            names.append(name)
            folder = os.path.join(folder, name)
            if leads_to_network(folder):
                return None
        is_file = os.path.isfile(folder) and is_inside(os.path.realpath(folder), str(self.root.parent))
        return "/".join(["..", *names]) if is_file else None

    def location(self, path: str) -> Path:
        """Return the full path of a file, given the result of :meth:`find` or :meth:`find_above`."""
        return Path(self._full(path))

    def _full(self, path: str) -> str:
        for prefix, folder in self._mounts:
            if path.startswith(prefix):
                return os.path.join(folder, path[len(prefix) :])
        return os.path.join(self.root, path)

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        """Return the content of a file that :meth:`find` or :meth:`find_above` returned.

        Raises
        ------
        LfsPointerError
            The content was not downloaded by Git LFS.
        FormatError
            There is no such file, it is larger than the limit, or it cannot be read.
        """
        known = self.find(path) or self.find_above(path)
        if known is None:
            raise FormatError("The project has no such file", file=path)
        full = self._full(known)
        try:
            with os.fdopen(open_regular(full, follows_links=True), "rb") as stream:
                info = os.fstat(stream.fileno())
                data = b"" if info.st_size > limit else stream.read(info.st_size)
        except (OSError, ValueError) as problem:
            raise FormatError("The file cannot be read: {}", refusal(problem), file=full) from None
        self._read[full] = info.st_mtime_ns
        if info.st_size > limit:
            raise FormatError("The file has more than {:,} bytes", limit, file=full)
        if has_lfs_pointer(data):
            raise LfsPointerError(full)
        return data

    def parsed(self, path: str, parse: Callable[[bytes], _T], limit: int = READ_LIMIT) -> _T | None:
        """Return a parsed file.

        If it cannot be read or parsed, record the reason in ``unreadable`` and return None.
        """
        try:
            return parse(self.read(path, limit))
        except FormatError as problem:
            self.unreadable[path] = str(problem.in_file(path))
            return None

    def is_current(self) -> bool:
        """Return whether no listed folder and no file that was read has changed."""
        return all(
            _stamp(path) == stamp for stamps in (self._stamps, self._read) for path, stamp in list(stamps.items())
        )


def _list_folder(full: str, relative: str, depth: int, found: _Listing) -> list[tuple[str, str, int]]:
    """List one folder; return its subfolders. Folders that cannot be read are left out."""
    below = []
    paths = found.paths
    found.stamps[full] = _stamp(full)
    try:
        with os.scandir(full) as entries:
            for entry in entries:
                name = entry.name
                path = relative + name
                if entry.is_file(follow_symlinks=False):
                    paths[path.lower() if path.isascii() else path_key(path)] = path
                elif entry.is_symlink():
                    found.links.append((path, entry.path))
                elif entry.is_dir() and depth < MOST_FOLDERS_DEEP and not _is_junction(entry):
                    below.append((entry.path, path + "/", depth + 1))
    except OSError:
        pass
    return below


def _is_junction(entry: os.DirEntry[str]) -> bool:
    if sys.platform != "win32":
        return False
    return getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == JUNCTION


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _name_in(folder: str, name: str) -> str | None:
    """Return the spelling of a name in a folder, or None if the folder has no such entry.

    Many systems find a file by other spellings, so the listing of the folder is searched first.
    """
    names: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        names = os.listdir(folder)
    if name in names:
        return name
    key = path_key(name)
    is_there = os.path.lexists(os.path.join(folder, name))  # the folder cannot be listed, or the name is a short one
    return next((known for known in names if path_key(known) == key), name if is_there else None)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a real path is in a real folder or is the folder itself."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def is_network_path(text: str) -> bool:
    r"""Return whether a path is of another machine in the notation of Windows, or of a device.

    Links of Windows to local files begin with ``\\?\`` and a drive.
    """
    return _NETWORK.match(text) is not None


def leads_to_network(path: str) -> bool:
    """Return whether a link in a path names a network path, without following it: Windows would log in to the server.

    Chains with too many links are treated like those.

    Raises
    ------
    OSError
        A link cannot be read.
    """
    folder, rest = os.path.splitdrive(os.path.abspath(path))
    folder += os.sep
    waiting = rest.split(os.sep)[::-1]
    links = 0
    while waiting and links <= _MOST_LINKS:
        name = waiting.pop()
        here = os.path.normpath(os.path.join(folder, name))
        if not name or not os.path.islink(here):
            folder = here
            continue
        text = os.readlink(here)
        if is_network_path(text):
            return True
        links += 1
        drive, rest = os.path.splitdrive(text.replace("/", os.sep))
        if rest.startswith(os.sep):
            folder = (drive or os.path.splitdrive(folder)[0]) + os.sep
        waiting += rest.split(os.sep)[::-1]
    return bool(waiting)
