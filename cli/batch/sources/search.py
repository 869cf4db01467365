"""Search for the source files of a batch. They are yielded one by one, so that memory is bounded."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.disk.special_files import special_kind
from ... import inputs
from ...reporting import cause
from ..tasks import STATE_FOLDER, SourceFile
from . import archives
from .choice import compile_pattern, read_list

OnProblem = Callable[[str, str], None]
"""Callback for problems of the search, with a path and a message: unreadable folder, pattern without matches, broken
archive. The search continues, and the exit status becomes 1."""

_PACKED = (".zip", ".7z", ".rar")


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
) -> Iterator[SourceFile]:
    """Yield the files of all paths and lists, in a reproducible order; a file that is named twice, twice.

    Parameters
    ----------
    paths:
        Files, folders (searched recursively; links to folders are not followed), patterns that the shell did not
        expand, and archives. A missing file is yielded with size -1; reading it will fail.
    extensions:
        Extensions of files in folders, as for :func:`...inputs.expand`; archives if they hold some of them.
    lists:
        Files with one path a line; ``-`` is the standard input. They may name folders and archives, but no patterns.
    base:
        Folder of relative paths in lists; single files below it keep their subfolders, others their whole path.
        Default: the working folder for lists; files of the command line go directly into the output folder.
    match, skip:
        Patterns (:func:`.choice.compile_pattern`) for the path below the searched folder.
    newer:
        Only files changed after this time, in nanoseconds since 1970, and missing ones.
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
        [compile_pattern(text) for text in match],
        [compile_pattern(text) for text in skip],
        newer,
        inputs.file_key(leave_out) if leave_out is not None else "",
        written.lower(),
        on_problem or _raise,
        warn or inputs.ignore_warning,
    )
    folder = None if base is None else os.path.abspath(base)
    for path in paths:
        yield from search.named(path, folder, is_pattern=True)
    folder = folder or os.getcwd()
    for name in lists:
        for path in read_list(name):
            yield from search.named(os.path.join(folder, path), folder, is_pattern=False)


def _raise(path: str, problem: str) -> None:
    raise MeshferryError(f"{path}: {problem}")


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
        info, is_link = _status(text)
        mode = 0 if info is None else info.st_mode
        if stat.S_ISDIR(mode):
            problem = f"There are no {' or '.join(self.extensions)} files in this folder"
            yield from self._below(text, text, problem)
        elif not mode and is_pattern and glob.has_magic(text):
            yield from self._pattern(text)
        elif mode and not stat.S_ISREG(mode):
            self.report(text, f"This is a {special_kind(text)}; batches read regular files only")
        elif mode and text.lower().endswith(_PACKED):
            self.report(
                text, "This has to be unpacked first; only archives of OpenSim (.oar, .iar) are read as they are"
            )
        else:
            yield from self._file(*_split(os.path.abspath(text), base), info, is_link=is_link, is_named=True)

    def _pattern(self, text: str) -> Iterator[SourceFile]:
        """Yield the files that match a pattern. The folder before its first wildcard is searched."""
        parts = text.replace(os.sep, "/").split("/")
        fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
        start = "/".join([*parts[:fixed], ""]) or "."
        rest = parts[fixed:]
        extension = os.path.splitext(rest[-1])[1]
        yield from self._below(
            start,
            text,
            "No file matches this pattern",
            compile_pattern("/".join(rest)),
            depth=None if "**" in rest else len(rest),
            every=bool(extension) and not glob.has_magic(extension),
        )

    def _below(
        self,
        folder: str,
        text: str,
        problem: str,
        pattern: re.Pattern[str] | None = None,
        *,
        depth: int | None = None,
        every: bool = False,
    ) -> Iterator[SourceFile]:
        """Yield the files below a folder, with any extension if ``every``; report a problem if there are none."""
        root = os.path.abspath(folder)
        key = os.path.join(inputs.file_key(Path(root)), "")
        written = self.written if self.output and key.startswith(os.path.join(self.output, "")) else ""
        extensions = (*self.extensions, *archives.EXTENSIONS)
        is_empty = True
        for below, names in inputs.folders_below(folder, self.report, self.output, ignored=STATE_FOLDER, depth=depth):
            for name in names:
                path = below + name
                if written and name.lower().endswith(written):
                    continue
                if (every or inputs.may_count(name, extensions)) and (pattern is None or pattern.fullmatch(path)):
                    full = os.path.join(root, path)
                    info, is_link = _status(full)
                    if self._counts(full, info, every=every):
                        is_empty = False
                        yield from self._file(root, path, path, info, is_link=is_link)
        if is_empty:
            self.report(text, problem)

    def _counts(self, path: str, info: os.stat_result | None, *, every: bool) -> bool:
        """Return whether a file that was found in a folder is a source; warn of FIFOs, devices and sockets."""
        if info is None:  # a broken link; reading it will fail
            return every or path.lower().endswith(self.extensions)
        if not stat.S_ISREG(info.st_mode):
            inputs.skips(path, self.warn)
            return False
        if path.lower().endswith(archives.EXTENSIONS):
            return bool(archives.endings_of(self.extensions))
        return every or inputs.counts(Path(path), self.extensions)

    def _is_wanted(self, path: str) -> bool:
        if any(pattern.fullmatch(path) for pattern in self.skip):
            return False
        return not self.match or any(pattern.fullmatch(path) for pattern in self.match)

    def _file(
        self, root: str, path: str, place: str, info: os.stat_result | None, *, is_link: bool, is_named: bool = False
    ) -> Iterator[SourceFile]:
        """Yield a file that passes the filters, or the members of an archive."""
        if info is not None and self.newer is not None and info.st_mtime_ns <= self.newer:
            return
        if archives.is_archive(path):
            yield from self._archive(root, path, place, info, is_named=is_named)
        elif self._is_wanted(place):
            size, modified = (-1, 0) if info is None else (info.st_size, info.st_mtime_ns)
            yield SourceFile(root, path, "", place, size, modified, is_link)

    def _archive(
        self, root: str, path: str, place: str, info: os.stat_result | None, *, is_named: bool
    ) -> Iterator[SourceFile]:
        full = os.path.join(root, path)
        endings = archives.endings_of(self.extensions)
        if not endings:
            self.report(full, f"Archives hold meshes and animations, none of {' or '.join(self.extensions)}")
            return
        modified = 0 if info is None else info.st_mtime_ns  # a missing archive is reported by reading it
        count = 0
        try:
            for name, content in archives.members(full, lambda text: self.report(full, text), endings):
                count += 1
                if self._is_wanted(f"{place}/{name}"):
                    yield SourceFile(root, path, name, archives.place_of(place, name), len(content), modified)
        except FormatError as problem:
            self.report(full, cause(problem))
            return
        if is_named and not count:
            self.report(full, f"There are no {' or '.join(f'*{ending}' for ending in endings)} files in this archive")


def _status(path: str) -> tuple[os.stat_result | None, bool]:
    """Return the status of a file, None if it does not exist, and whether the path is a link to it."""
    try:
        info = os.lstat(path)
        is_link = stat.S_ISLNK(info.st_mode)
        return os.stat(path) if is_link else info, is_link
    except (OSError, ValueError):
        return None, False


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
