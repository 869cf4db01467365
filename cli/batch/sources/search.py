"""Search for the source files of a batch. They are yielded one by one, so that memory is bounded."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.disk.special_files import special_kind
from ... import inputs
from ...reporting import cause
from ..settings import SourceChoice
from ..tasks import STATE_FOLDER, SourceFile
from . import archives
from .choice import compile_pattern, read_list

OnProblem = Callable[[str, str], None]
"""Callback for problems of the search, with a path and a message: unreadable folder, pattern without matches, broken
archive. The search continues, and the exit status becomes 1."""

_PACKED = (".zip", ".7z", ".rar")


def find_files(
    choice: SourceChoice,
    extensions: Sequence[str],
    *,
    leave_out: Path | None = None,
    written: str = "",
    on_problem: OnProblem | None = None,
    warn: inputs.Warn | None = None,
) -> Iterator[SourceFile]:
    """Yield the chosen files, in a reproducible order; a file that is named twice, twice.

    A missing file is yielded with size -1; reading it will fail.

    Parameters
    ----------
    extensions:
        Extensions of files in folders, as for :func:`...inputs.expand`; archives if they hold some of them.
    leave_out, written:
        The output folder, and the extension of the files to write. A search skips the folder; a search inside of it
        skips the files.
    on_problem, warn:
        Called for each problem (default: it is raised as an exception), and for each FIFO, device or socket.

    Raises
    ------
    MeshferryError
        A list cannot be read.
    """
    search = _Search(
        tuple(extensions),
        [compile_pattern(text) for text in choice.match],
        [compile_pattern(text) for text in choice.skip],
        choice.newer,
        inputs.file_key(leave_out) if leave_out is not None else "",
        written.lower(),
        on_problem or _raise,
        warn or inputs.ignore_warning,
    )
    folder = None if choice.base is None else os.path.abspath(choice.base)
    for path in choice.paths:
        yield from search.named(path, folder, is_pattern=True)
    folder = folder or os.getcwd()
    for name in choice.lists:
        for path in read_list(name):
            yield from search.named(os.path.join(folder, path), folder, is_pattern=False)


def _raise(path: str, problem: str) -> None:
    raise MeshferryError("{}: {}", path, problem)


@dataclass(frozen=True)
class _Search:
    """The filters of a search, and its reports."""

    extensions: tuple[str, ...]
    match: Sequence[re.Pattern[str]]
    skip: Sequence[re.Pattern[str]]
    newer: int | None
    output: str
    """:func:`...inputs.file_key` of the output folder, or an empty string."""
    written: str
    report: OnProblem
    warn: inputs.Warn

    def named(self, text: str, base: str | None, *, is_pattern: bool) -> Iterator[SourceFile]:
        """Yield the files of a path from the command line or a list."""
        found, mode = _status(text, *_split(os.path.abspath(text), base))
        if stat.S_ISDIR(mode):
            if not (yield from self._below(text)):
                self.report(text, f"There are no {' or '.join(self.extensions)} files in this folder")
        elif not mode and is_pattern and glob.has_magic(text):
            if not (yield from self._pattern(text)):
                self.report(text, "No file matches this pattern")
        elif mode and not stat.S_ISREG(mode):
            self.report(text, f"This is a {special_kind(text)}; batches read regular files only")
        elif mode and text.lower().endswith(_PACKED):
            self.report(
                text, "This has to be unpacked first; only archives of OpenSim (.oar, .iar) are read as they are"
            )
        else:
            yield from self._file(found, is_named=True)

    def _pattern(self, text: str) -> Generator[SourceFile, None, int]:
        """Yield the files that match a pattern. The folder before its first wildcard is searched."""
        parts = text.replace(os.sep, "/").split("/")
        fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
        start = "/".join([*parts[:fixed], ""]) or "."
        rest = parts[fixed:]
        extension = os.path.splitext(rest[-1])[1]
        depth = None if "**" in rest else len(rest)
        every = bool(extension) and not glob.has_magic(extension)
        return (yield from self._below(start, compile_pattern("/".join(rest)), depth=depth, every=every))

    def _below(
        self, folder: str, pattern: re.Pattern[str] | None = None, *, depth: int | None = None, every: bool = False
    ) -> Generator[SourceFile, None, int]:
        """Yield the files below a folder, with any extension if ``every``; return how many are there before filters."""
        root = os.path.abspath(folder)
        key = os.path.join(inputs.file_key(Path(root)), "")
        written = self.written if self.output and key.startswith(os.path.join(self.output, "")) else ""
        extensions = (*self.extensions, *archives.EXTENSIONS)
        count = empty = 0
        for below, names in inputs.folders_below(folder, self.report, self.output, ignored=STATE_FOLDER, depth=depth):
            for name in names:
                path = below + name
                if written and name.lower().endswith(written):
                    continue
                if (every or inputs.may_count(name, extensions)) and (pattern is None or pattern.fullmatch(path)):
                    full = os.path.join(root, path)
                    found, mode = _status(full, root, path, path)
                    if self._counts(full, mode, every=every):
                        count += 1
                        if not every and mode and inputs.is_empty(Path(full)):
                            empty += 1
                        else:
                            yield from self._file(found)
        if empty:
            self.warn(folder, inputs.empty_text(empty))
        return count

    def _counts(self, path: str, mode: int, *, every: bool) -> bool:
        """Return whether a file that was found in a folder is a source; warn of FIFOs, devices and sockets."""
        if not mode:  # a broken link; reading it will fail
            return every or path.lower().endswith(self.extensions)
        if not stat.S_ISREG(mode):
            inputs.skips(path, self.warn)
            return False
        if path.lower().endswith(archives.EXTENSIONS):
            return bool(archives.endings_of(self.extensions))
        return every or inputs.counts(Path(path), self.extensions)

    def _is_wanted(self, path: str) -> bool:
        if any(pattern.fullmatch(path) for pattern in self.skip):
            return False
        return not self.match or any(pattern.fullmatch(path) for pattern in self.match)

    def _file(self, found: SourceFile, *, is_named: bool = False) -> Iterator[SourceFile]:
        """Yield a file that passes the filters, or the members of an archive."""
        if found.size >= 0 and self.newer is not None and found.modified <= self.newer:
            return
        if archives.is_archive(found.path):
            yield from self._archive(found, is_named=is_named)
        elif self._is_wanted(found.place):
            yield found

    def _archive(self, archive: SourceFile, *, is_named: bool) -> Iterator[SourceFile]:
        full = os.path.join(archive.root, archive.path)
        endings = archives.endings_of(self.extensions)
        if not endings:
            self.report(full, f"Archives hold meshes and animations, none of {' or '.join(self.extensions)}")
            return
        count = 0
        try:
            for name, content in archives.archive_members(full, lambda text: self.report(full, text), endings):
                count += 1
                if self._is_wanted(f"{archive.place}/{name}"):
                    place = archives.place_of(archive.place, name)
                    yield archive._replace(member=name, place=place, size=len(content), is_link=False)
        except FormatError as problem:
            self.report(full, cause(problem))
            return
        if is_named and not count:
            self.report(full, f"There are no {' or '.join(f'*{ending}' for ending in endings)} files in this archive")


def _status(full: str, root: str, path: str, place: str) -> tuple[SourceFile, int]:
    """Return a file and its mode, which is 0 if the file does not exist."""
    try:
        info = os.lstat(full)
        is_link = stat.S_ISLNK(info.st_mode)
        info = os.stat(full) if is_link else info
        return SourceFile(root, path, "", place, info.st_size, info.st_mtime_ns, is_link), info.st_mode
    except (OSError, ValueError):
        return SourceFile(root, path, "", place, -1, 0), 0


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
