"""Search for the source files of a batch. They are yielded one by one, so that memory is bounded."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.disk.atomic_write import refusal
from ....io_formats.disk.special_files import special_kind
from ... import inputs, interruption
from ...reporting import cause
from ..tasks import STATE_FOLDER, Source
from . import archives
from .choice import compile_pattern, read_list

OnProblem = Callable[[str, str], None]
"""Callback for problems of the search, with a path and a message: unreadable folder, pattern without matches, broken
archive. The search continues, and the exit status becomes 1."""

_PACKED = (".zip", ".7z", ".rar")
_JUNCTION = 0xA0000003
"""Reparse tag of junctions, which are links to folders on Windows."""


def find(
    paths: Iterable[str],
    extensions: Sequence[str],
    *,
    lists: Iterable[str] = (),
    base: str | None = None,
    match: Sequence[str] = (),
    skip: Sequence[str] = (),
    newer: int | None = None,
    leave_out: Path | None = None,
    written: str = "",
    on_problem: OnProblem | None = None,
    warn: inputs.Warn | None = None,
) -> Iterator[Source]:
    """Yield the files of all paths and lists, in a reproducible order.

    A file that is named twice is yielded twice; :func:`..planning.make_plan` uses it once.

    Parameters
    ----------
    paths:
        Files, folders (searched recursively; links to folders are not followed), patterns that the shell did not
        expand, and archives. A missing file is yielded with size -1; reading it will fail.
    extensions:
        Extensions of files in folders, as for :func:`...inputs.expand`; archives if meshes are among them.
    lists:
        Files with one path a line; ``-`` is the standard input. They may name folders and archives, but no patterns.
    base:
        Folder that the paths of lists are relative to, and below which files that are named one by one keep their
        subfolders. Default: the working folder for lists; files of the command line go directly into the output
        folder. Files outside of it keep their whole path.
    match, skip:
        Patterns (:func:`.choice.compile_pattern`) for the path below the searched folder.
    newer:
        Only files changed after this time, in nanoseconds since 1970, and missing ones.
    leave_out:
        The output folder. It is skipped unless the searched folder is this one or below it.
    written:
        Extension of the files to write. Files with it are ignored if the search is inside the output folder.
    on_problem:
        Called for each problem; default: the problem is raised as an exception.
    warn:
        Called for each FIFO, device or socket that a search skips.

    Raises
    ------
    MeshferryError
        A list cannot be read.
    """
    search = _Search(extensions, match, skip, newer, leave_out, written, on_problem or _raise, warn)
    folder = None if base is None else os.path.abspath(base)
    for path in paths:
        yield from search.named(path, folder, is_pattern=True)
    folder = folder or os.getcwd()
    for name in lists:
        for path in read_list(name):
            yield from search.named(os.path.join(folder, path), folder, is_pattern=False)


def _raise(path: str, problem: str) -> None:
    raise MeshferryError(f"{path}: {problem}")


class _Search:
    """The filters of a search, and its reports."""

    def __init__(
        self,
        extensions: Sequence[str],
        match: Sequence[str],
        skip: Sequence[str],
        newer: int | None,
        leave_out: Path | None,
        written: str,
        on_problem: OnProblem,
        warn: inputs.Warn | None,
    ) -> None:
        self._extensions = tuple(extensions)
        self._match = [compile_pattern(text) for text in match]
        self._skip = [compile_pattern(text) for text in skip]
        self._newer = newer
        self._output = inputs.file_key(leave_out) if leave_out is not None else ""
        self._written = written.lower()
        self._report = on_problem
        self._warn: inputs.Warn = warn or inputs.ignore_warning
        self._takes_archives = archives.MESH in self._extensions

    def named(self, text: str, base: str | None, *, is_pattern: bool) -> Iterator[Source]:
        """Yield the files of a path from the command line or a list."""
        info, is_link = _status(text)
        mode = 0 if info is None else info.st_mode
        if stat.S_ISDIR(mode):
            yield from self._folder(text)
        elif not mode and is_pattern and glob.has_magic(text):
            yield from self._pattern(text)
        elif mode and not stat.S_ISREG(mode):
            self._report(text, f"This is a {special_kind(text)}; batches read regular files only")
        elif mode and text.lower().endswith(_PACKED):
            self._report(
                text, "This has to be unpacked first; only archives of OpenSim (.oar, .iar) are read as they are"
            )
        else:
            root, path, place = _split(os.path.abspath(text), base)
            if archives.is_archive(text):
                yield from self._archive(root, path, place, is_named=True)
            elif self._is_wanted(place):
                yield from self._file(root, path, place, info, is_link=is_link)

    def _folder(self, text: str) -> Iterator[Source]:
        root = os.path.abspath(text)
        count = 0
        for path in self._below(root, text):
            count += 1
            yield from self._found(root, path)
        if not count:
            self._report(text, f"There are no {' or '.join(self._extensions)} files in this folder")

    def _pattern(self, text: str) -> Iterator[Source]:
        """Yield the files that match a pattern. The folder before its first wildcard is searched."""
        parts = text.replace(os.sep, "/").split("/")
        fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
        start = "/".join([*parts[:fixed], ""])
        root = os.path.abspath(start or ".")
        rest = parts[fixed:]
        wanted = compile_pattern("/".join(rest))
        depth = None if "**" in rest else len(rest)
        extension = os.path.splitext(rest[-1])[1]
        every = bool(extension) and not glob.has_magic(extension)
        count = 0
        if os.path.isdir(root):
            for path in self._below(root, start or ".", depth=depth, every=every):
                if wanted.fullmatch(path):
                    count += 1
                    yield from self._found(root, path)
        if not count:
            self._report(text, "No file matches this pattern")

    def _found(self, root: str, path: str) -> Iterator[Source]:
        """Yield a found file, or the members of a found archive."""
        if archives.is_archive(path):
            yield from self._archive(root, path, path, is_named=False)
        elif self._is_wanted(path):
            info, is_link = _status(os.path.join(root, path))
            yield from self._file(root, path, path, info, is_link=is_link)

    def _below(self, root: str, shown: str, *, depth: int | None = None, every: bool = False) -> Iterator[str]:
        """Yield the paths of files below a folder: its own files by name, then those of its subfolders.

        Only the matching names of one folder are in memory at a time.
        """
        own = inputs.file_key(Path(root))
        inside = bool(self._output) and (own == self._output or own.startswith(self._output.rstrip(os.sep) + os.sep))
        waiting = [""]
        while waiting:
            interruption.check()
            below = waiting.pop()
            folder = os.path.join(root, below)
            names: list[str] = []
            folders: list[str] = []
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if not self._is_left_out(entry):
                                folders.append(entry.name)
                        elif self._counts(entry, inside=inside, every=every):
                            names.append(entry.name)
            except OSError as problem:
                self._report(os.path.join(shown, below), f"The folder cannot be read: {refusal(problem)}")
            names.sort()
            yield from (below + name for name in names)
            if depth is None or below.count("/") + 1 < depth:
                waiting += (f"{below}{name}/" for name in sorted(folders, reverse=True))

    def _is_left_out(self, entry: os.DirEntry[str]) -> bool:
        """Return whether to skip a folder."""
        if entry.name == STATE_FOLDER or (sys.platform == "win32" and _is_junction(entry)):
            return True
        name = os.path.basename(self._output)
        return entry.name.casefold() == name.casefold() and inputs.file_key(Path(entry.path)) == self._output

    def _counts(self, entry: os.DirEntry[str], *, inside: bool, every: bool) -> bool:
        """Return whether an entry of a folder is a source file."""
        name = entry.name.lower()
        if inside and self._written and name.endswith(self._written):
            return False
        if entry.is_symlink() and not os.path.exists(entry.path):
            return every or name.endswith(self._extensions)  # a broken link; reading it will fail
        if not entry.is_file():
            if every or inputs.may_count(name, self._extensions):
                inputs.skips(entry.path, self._warn)
            return False
        if name.endswith(archives.EXTENSIONS):
            return self._takes_archives
        return every or inputs.counts(Path(entry.path), self._extensions)

    def _is_wanted(self, path: str) -> bool:
        if self._skip and any(pattern.fullmatch(path) for pattern in self._skip):
            return False
        return not self._match or any(pattern.fullmatch(path) for pattern in self._match)

    def _file(
        self, root: str, path: str, place: str, info: os.stat_result | None, *, is_link: bool
    ) -> Iterator[Source]:
        if info is None:
            yield Source(root, path, "", place, -1, 0)
        elif self._newer is None or info.st_mtime_ns > self._newer:
            yield Source(root, path, "", place, info.st_size, info.st_mtime_ns, is_link)

    def _archive(self, root: str, path: str, place: str, *, is_named: bool) -> Iterator[Source]:
        full = os.path.join(root, path)
        if not self._takes_archives:
            self._report(full, f"Archives hold meshes, none of {' or '.join(self._extensions)}")
            return
        try:
            if self._newer is not None and os.stat(full).st_mtime_ns <= self._newer:
                return
        except OSError:  # reported by reading it
            pass
        count = 0
        try:
            for member in archives.members(full, lambda text: self._report(full, text)):
                count += 1
                if self._is_wanted(f"{place}/{member.name}"):
                    below = archives.place_of(place, member.name)
                    yield Source(root, path, member.name, below, member.size, member.modified)
        except FormatError as problem:
            self._report(full, cause(problem))
            return
        if is_named and not count:
            self._report(full, "There are no meshes in this archive")


def _status(path: str) -> tuple[os.stat_result | None, bool]:
    """Return the status of a file, None if it does not exist, and whether the path is a link to it."""
    try:
        info = os.lstat(path)
        is_link = stat.S_ISLNK(info.st_mode)
        return os.stat(path) if is_link else info, is_link
    except (OSError, ValueError):
        return None, False


def _is_junction(entry: os.DirEntry[str]) -> bool:
    return getattr(entry.stat(follow_symlinks=False), "st_reparse_tag", 0) == _JUNCTION


def _split(full: str, base: str | None) -> tuple[str, str, str]:
    """Return the root of a named file, its path below that, and its path in the output folder."""
    if base is None:
        root, path = os.path.split(full)
        return root, path, path
    start = base if base.endswith(os.sep) else base + os.sep
    if os.path.normcase(full).startswith(os.path.normcase(start)):
        path = full[len(start) :].replace(os.sep, "/")
        return base, path, path
    drive, rest = os.path.splitdrive(full)
    path = rest.lstrip(os.sep).replace(os.sep, "/")
    folder = drive.replace(os.sep, "/").strip("/").replace(":", "")
    return drive + os.sep, path, f"{folder}/{path}" if folder else path
