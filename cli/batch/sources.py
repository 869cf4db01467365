"""The source files of a batch: which are chosen, the search for them, and meshes and animations in archives.

Such an archive is a gzipped tar file. Its assets are called ``assets/<uuid>_<type>.<extension>``, a mesh
``assets/<uuid>_mesh.llmesh``, an animation ``assets/<uuid>_animation.bvh``, although its content is not BVH
(``OpenSim/Framework/Serialization/ArchiveConstants.cs``). Other members are ignored.
"""

import argparse
import codecs
import datetime as dt
import functools
import glob
import io
import itertools
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ...io_formats.core.errors import FormatError, MeshferryError, refusal
from ...io_formats.disk.file_names import file_name
from ...io_formats.disk.special_files import read_special, special_kind
from ...io_formats.second_life.opensim import container as opensim_container
from .. import inputs, interruption
from ..output import cause, shortened
from .tasks import STATE_FOLDER, SourceChoice, SourceFile

EXTENSIONS = (".oar", ".iar")
"""Extensions of archives in a searched folder."""
_BY_NAME = (*EXTENSIONS, ".tar.gz", ".tgz", ".tar")
"""Extensions of archives that are named one by one: users also repack them."""
ENDINGS = {".llmesh": ".llmesh", ".anim": "_animation.bvh"}
"""Extensions of files -> endings of the names that such files have as members of archives."""


def is_archive(path: str | Path) -> bool:
    """Return whether a path has the extension of an archive."""
    return str(path).lower().endswith(_BY_NAME)


def place_of(archive: str, member: str) -> str:
    """Return the output path of a member: ``land/assets/x.llmesh`` for ``assets/x.llmesh`` in ``land.oar``.

    Every part of the member's name is made a valid file name, so the path stays below the archive's folder.
    """
    stem = next((archive[: -len(end)] for end in _BY_NAME if archive.lower().endswith(end)), archive)
    parts = [part for part in member.replace("\\", "/").split("/") if part not in {"", ".", ".."}]
    *folders, name = parts or ["_"]
    ending = next((ending for ending in ENDINGS.values() if name.lower().endswith(ending)), "")
    plain = file_name(name[: len(name) - len(ending)]) + ending
    return "/".join([stem, *map(file_name, folders), plain])


def endings_of(extensions: Iterable[str]) -> tuple[str, ...]:
    """Return the ends of the names of members that are files of these extensions."""
    return tuple(ENDINGS[extension] for extension in extensions if extension in ENDINGS)


def archive_members(
    path: str | Path, on_skip: Callable[[str], None] | None = None, endings: Iterable[str] = tuple(ENDINGS.values())
) -> Generator[tuple[str, bytes], None, None]:
    """Yield the names and contents of the meshes and animations in an archive in their order, each name once.

    Parameters
    ----------
    on_skip:
        Called with a message for each skipped asset: too large, a link, or a repeated name.
    endings:
        Ends of the names of members to read.

    Raises
    ------
    FormatError
        The archive is unreadable from some offset on; members yielded before are valid.
    """
    wanted = tuple(endings)

    def limit_of(name: str) -> int:
        return opensim_container.LARGEST_ASSET if name.lower().endswith(wanted) else 0

    def skip(name: str, reason: str) -> None:
        if on_skip is not None and limit_of(name):
            on_skip(f"{shortened(name)} is left out: {reason}")

    try:
        for name, content in opensim_container.archive_members(opensim_container.file_opener(path), limit_of, skip):
            if content is not None:
                yield name, content
    except FormatError as problem:
        raise problem.in_file(str(path)) from None


class ArchiveReader:
    """Reads members of an archive by name.

    Any order works, but another one than that of the archive is slow: each time, it is read again from its start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._members = archive_members(path)
        self._passed: set[str] = set()
        self._end = FormatError("It is not in the archive any more")
        """The error for all members that were not found before the end of the archive."""

    def content(self, name: str) -> bytes:
        """Return the content of a member.

        Raises
        ------
        FormatError
            The member is missing, or the archive cannot be read up to it.
        """
        if name in self._passed:
            self._members, self._passed = archive_members(self._path), set()
        try:
            for found, content in self._members:
                self._passed.add(found)
                if found == name:
                    return content
        except FormatError as problem:
            self._end = problem
        raise FormatError(self._end.message, offset=self._end.offset, file=f"{self._path}: {shortened(name)}")


STANDARD_INPUT = "-"
_LONGEST_LINE = 2**17
"""Characters; systems limit paths to 32,767."""
_WILDCARD = re.compile(r"(?<![^/])\*\*/|\*+|\?|\[(?P<not>!?)(?P<letters>\]?[^\]/]*)\]|.", re.DOTALL)
"""A part of a pattern: ``**/`` as a whole folder, ``*``, ``?``, ``[abc]``, or another character."""
_SPAN = re.compile(r"(\d+(?:\.\d+)?) ?([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--list``, ``--base``, ``--match``, ``--skip`` and ``--newer``, the parameters of :func:`.search.find`."""
    group = parser.add_argument_group("which files")
    group.add_argument(
        "--list",
        action="append",
        default=[],
        dest="lists",
        metavar="FILE",
        help="text file with one path per line; - for the standard input; lines that start with # are ignored "
        "(repeatable)",
    )
    group.add_argument(
        "--base",
        metavar="FOLDER",
        help="folder that the paths of a list are relative to, and below which single files keep their subfolders "
        "(default: the working folder for lists; files on the command line go directly into the output folder)",
    )
    group.add_argument(
        "--match",
        action="append",
        default=[],
        metavar="PATTERN",
        help="only files whose name matches the pattern, or, if it contains a /, whose path below the searched folder "
        "matches: 'lamp*', 'props/**/*.mesh' (repeatable)",
    )
    group.add_argument(
        "--skip", action="append", default=[], metavar="PATTERN", help="ignore files that match: 'old/**' (repeatable)"
    )
    group.add_argument(
        "--newer",
        type=newer_than,
        metavar="DATE|SPAN|FILE",
        help="only files changed since a date (2026-01-31), within a span of time (7d, 12h), or after another file",
    )


def newer_than(text: str) -> int:
    """Return the time of ``--newer`` in nanoseconds since 1970: a date, a span such as ``7d``, or the time of a file.

    Raises
    ------
    argparse.ArgumentTypeError
        The text is not a date, a span or the path of a file.
    """
    try:
        if span := _SPAN.fullmatch(text.strip().lower()):
            return time.time_ns() - int(float(span[1]) * _SECONDS[span[2]] * 1_000_000_000)
        try:
            return int(dt.datetime.fromisoformat(text.strip()).timestamp()) * 1_000_000_000
        except ValueError:
            return os.stat(text).st_mtime_ns
    except (OSError, ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"'{text}' is neither a date (2026-01-31, 2026-01-31T18:30) nor a span of time (7d, 12h, 30m) nor a file"
        ) from None


@functools.cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern for paths with ``/`` between folders, the same on every system.

    ``*`` and ``?`` match characters of one name, ``[abc]`` and ``[!abc]`` one character, ``**`` any number of folders.
    Case is ignored. A pattern without ``/`` matches the name of the file; one that ends with ``/`` matches all files
    below a folder.
    """
    text = pattern.replace("\\", "/").removeprefix("./").lstrip("/")
    if "/" not in text:
        text = "**/" + text
    if text.endswith("/"):
        text += "**"
    return re.compile(_WILDCARD.sub(_expression, text), re.IGNORECASE | re.DOTALL)


def _expression(found: re.Match[str]) -> str:
    """Return the regular expression for a wildcard or a single character."""
    text = found[0]
    if text == "**/":
        return "(?:[^/]+/)*"
    if text == "**" and found.end() == len(found.string) and found.string[: found.start()].endswith("/"):
        return ".+"
    if text[0] in "*?":
        return "[^/]*" if text[0] == "*" else "[^/]"
    if letters := re.sub(r"([\\\[\]^&~|])", r"\\\1", found["letters"] or ""):
        return f"(?!/)[{'^' if found['not'] else ''}{letters}]"
    return re.escape(text)


def read_list(name: str) -> Iterator[str]:
    """Yield the paths of a list, one from each line, as they are read from a file or the standard input (``-``).

    Empty lines and lines that begin with ``#`` are ignored, and so are quotation marks around a path, which "Copy as
    path" of Windows adds. The text is UTF-8, with or without a byte order mark, or UTF-16 with it, as PowerShell writes
    it. Names that are not valid UTF-8 are preserved. A FIFO is read within bounds of size and time.

    Raises
    ------
    MeshferryError
        The list cannot be read, or is not a list.
    """
    is_input = name == STANDARD_INPUT
    shown = "Standard input" if is_input else name
    try:
        with _open_list(name) as stream:
            for number in itertools.count(1):
                # The program that writes the standard input may be slow, and Ctrl+C must still work.
                with interruption.raising() if is_input else nullcontext():
                    line = stream.readline(_LONGEST_LINE)
                if not line:
                    return
                if "\0" in line or len(line) >= _LONGEST_LINE:
                    raise MeshferryError("{}: line {:,} is not a path; a list has one path a line", shown, number)
                path = line.rstrip("\r\n")
                if len(path) > 1 and path[0] == path[-1] == '"':
                    path = path[1:-1]
                if path.strip() and not path.startswith("#"):
                    yield path
    except UnicodeDecodeError:
        raise MeshferryError("{}: this is not text", shown) from None
    except FormatError as problem:
        raise MeshferryError("{}: {}", shown, problem.message) from None
    except OSError as problem:
        raise MeshferryError("{}: the list cannot be read: {}", shown, refusal(problem)) from None


def _open_list(name: str) -> io.TextIOWrapper:
    with interruption.raising():  # no byte may ever come
        if name == STANDARD_INPUT:
            if sys.stdin is None:
                raise MeshferryError("There is no standard input here")
            binary = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115
        elif special_kind(name):
            binary = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(read_special(name))))
        else:
            binary = open(name, "rb")  # noqa: SIM115
        is_wide = binary.peek(2)[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    if is_wide:
        return io.TextIOWrapper(binary, encoding="utf-16")
    return io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape")


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
    output = inputs.file_key(leave_out) if leave_out is not None else ""
    warn = warn or inputs.ignore_warning
    search = _Search(choice, tuple(extensions), output, written.lower(), on_problem or _raise, warn)
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

    choice: SourceChoice
    extensions: tuple[str, ...]
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
        extensions = (*self.extensions, *EXTENSIONS)
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
        if path.lower().endswith(EXTENSIONS):
            return bool(endings_of(self.extensions))
        return every or inputs.counts(Path(path), self.extensions)

    def _is_wanted(self, path: str) -> bool:
        def matches(patterns: Iterable[str]) -> bool:
            return any(compile_pattern(pattern).fullmatch(path) for pattern in patterns)

        return not matches(self.choice.skip) and (not self.choice.match or matches(self.choice.match))

    def _file(self, found: SourceFile, *, is_named: bool = False) -> Iterator[SourceFile]:
        """Yield a file that passes the filters, or the members of an archive."""
        newer = self.choice.newer
        if found.size >= 0 and newer is not None and found.modified <= newer:
            return
        if is_archive(found.path):
            yield from self._archive(found, is_named=is_named)
        elif self._is_wanted(found.place):
            yield found

    def _archive(self, archive: SourceFile, *, is_named: bool) -> Iterator[SourceFile]:
        full = os.path.join(archive.root, archive.path)
        endings = endings_of(self.extensions)
        if not endings:
            self.report(full, f"Archives hold meshes and animations, none of {' or '.join(self.extensions)}")
            return
        count = 0
        try:
            for name, content in archive_members(full, lambda text: self.report(full, text), endings):
                count += 1
                if self._is_wanted(f"{archive.place}/{name}"):
                    place = place_of(archive.place, name)
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
