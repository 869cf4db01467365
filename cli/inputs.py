"""Paths on the command line -> files: search folders, and expand patterns that the shell did not expand."""

import functools
import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..io_formats import registry
from ..io_formats.api import format_of
from ..io_formats.core.errors import FormatError, refusal
from ..io_formats.core.format import Format
from ..io_formats.core.messages import counted
from ..io_formats.disk.special_files import is_link, special_kind
from . import interruption

BLEND = ".blend"

Warn = Callable[[object, str], None]
"""Function that is called with a path and a warning about it."""


@dataclass(frozen=True)
class InputFile:
    """An input file."""

    path: Path
    relative: Path
    """Path relative to the folder that was searched, or the file name if the user gave the file itself."""


def known_extensions() -> tuple[str, ...]:
    """Return the extensions of all readable formats, with the dot, without duplicates."""
    named = (extension for known in registry.FORMATS if known.is_read for extension in known.extensions)
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True)
class Inputs:
    """The files that paths refer to, and errors for paths without files."""

    files: tuple[InputFile, ...]
    problems: tuple[FormatError, ...]
    """An error for each path without matches, which is its ``file``: an empty folder or a pattern."""


def expand(
    paths: Iterable[str],
    extensions: Sequence[str],
    *,
    leave_out: Path | None = None,
    warn: Warn | None = None,
    skips_empty: bool = False,
) -> Inputs:
    """Return all files that match the paths, without duplicates and in a stable order.

    Each path without a match adds an error to :attr:`Inputs.problems`.

    Parameters
    ----------
    paths:
        Files, folders (searched recursively) and patterns such as ``models/*.timbermesh``. A missing file
        stays in the list, and is reported when it is read.
    extensions:
        Extensions to find in folders. Files without extension are recognised by their content.
    leave_out:
        Folder to exclude from the search, unless it is searched itself.
    warn:
        Called for each FIFO, device or socket that a search skips, and for each folder that cannot be read. Special
        files given as paths themselves are not skipped.
    skips_empty:
        Whether files in folders that have nothing to convert are left out, which is warned of.
    """
    found: dict[str, InputFile] = {}
    problems: list[FormatError] = []
    for text in dict.fromkeys(paths):
        try:
            for file in _expand_one(text, extensions, leave_out, warn or ignore_warning, skips_empty=skips_empty):
                key = file_key(file.path)
                while key in found and not _is_same_file(found[key].path, file.path):
                    key += "\0"  # different files with equal keys, on a case-sensitive volume
                found.setdefault(key, file)
        except FormatError as problem:
            problems.append(problem.in_file(text))
    return Inputs(tuple(found.values()), tuple(problems))


def ignore_warning(_path: object, _text: str) -> None:
    """Ignore a warning: the default for ``warn``."""


def _expand_one(
    text: str, extensions: Sequence[str], leave_out: Path | None, warn: Warn, *, skips_empty: bool
) -> list[InputFile]:
    path = Path(text)
    if os.path.isdir(path):  # Path.is_dir() raises an exception for paths that are too long
        files = _files_below(path, extensions, leave_out, warn)
        empty = {file.path for file in files if is_empty(file.path)} if skips_empty else set()
        if empty:
            warn(path, empty_text(len(empty)))
            files = [file for file in files if file.path not in empty]
        if not files:
            raise FormatError("There are no {} files in this folder", " or ".join(extensions))
        return files
    if not os.path.exists(path) and glob.has_magic(text):
        matches = [Path(match) for match in sorted(glob.glob(text, recursive=True)) if not os.path.isdir(match)]
        if not matches:
            raise FormatError("No file matches this pattern")
        return [InputFile(match, Path(match.name)) for match in matches if not skips(match, warn)]
    return [InputFile(path, Path(path.name))]


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths with the same key refer to the same file."""
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:
        return True


def skips(path: str | Path, warn: Warn) -> bool:
    """Return whether a search skips a path because it is a FIFO, device or socket; warn if so."""
    kind = special_kind(path)
    if kind:
        warn(path, f"This is a {kind}, not a regular file; skipped")
    return bool(kind)


def _files_below(folder: Path, extensions: Sequence[str], leave_out: Path | None, warn: Warn) -> list[InputFile]:
    files = []
    for below, names in folders_below(str(folder), warn, file_key(leave_out) if leave_out else ""):
        for relative in (Path(below, name) for name in names):
            path = folder / relative
            if may_count(path.name, extensions) and not skips(path, warn) and counts(path, extensions):
                files.append(InputFile(path, relative))
    return files


def folders_below(
    folder: str, warn: Callable[[str, str], None], leave_out: str = "", *, ignored: str = "", depth: int | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and the folders below it, each before its own subfolders and with the sorted names of its files.

    A folder is given as its path below the searched one, with ``/`` after each name: ``""``, then ``"props/"``. Links
    to folders and junctions of Windows are not followed.

    Parameters
    ----------
    warn:
        Called for each folder that cannot be read.
    leave_out:
        :func:`file_key` of a folder to skip.
    ignored:
        Name of further folders to skip.
    depth:
        Largest number of folders from the searched one to a file's own, both included; None for no limit.
    """

    def fail(problem: OSError) -> None:
        if not isinstance(problem, (FileNotFoundError, NotADirectoryError)):
            warn(problem.filename or folder, f"The folder cannot be read: {refusal(problem)}")

    def is_entered(path: str, name: str) -> bool:
        if name == ignored:
            return False
        # Names are compared first, because resolving the links of every folder takes time.
        return name.casefold() != os.path.basename(leave_out).casefold() or file_key(Path(path)) != leave_out

    for parent, folders, names in walk(folder, fail):
        interruption.check()
        below = os.path.relpath(parent, folder).replace(os.sep, "/") + "/"
        below = "" if below == "./" else below
        if depth is not None and below.count("/") + 1 >= depth:
            folders.clear()
        folders[:] = sorted(name for name in folders if is_entered(os.path.join(parent, name), name))
        yield below, sorted(names)


def walk(folder: str, fail: Callable[[OSError], object]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the same as ``os.walk``, but without following junctions of Windows and without a limit of depth.

    Before Python 3.12, ``os.walk`` follows junctions and recurses.
    """
    waiting = [folder]
    while waiting:
        parent = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    is_folder = os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()
                    (folders if is_folder else names).append(entry.name)
        except OSError as problem:
            fail(problem)
            continue
        yield parent, folders, names
        below = [os.path.join(parent, name) for name in folders]
        waiting += (path for path in reversed(below) if not is_link(path))


def is_empty(path: Path) -> bool:
    """Return whether a file has nothing to convert; False if it cannot be read."""
    extension = registry.extension_of(path)
    for known in registry.FORMATS:
        if known.is_empty is not None and extension in known.extensions:
            try:
                return known.is_empty(path.read_bytes())
            except OSError:
                return False
    return False


def empty_text(number: int) -> str:
    """Return the warning about files that were left out because they are empty."""
    return f"{counted(number, 'file')} left out, since nothing in {'it' if number == 1 else 'them'} can be converted"


def may_count(name: str, extensions: Sequence[str]) -> bool:
    """Return whether a file with this name may be an input file, which its content may have to confirm."""
    return not os.path.splitext(name)[1] or name.lower().endswith(tuple(extensions))


def counts(path: Path, extensions: Sequence[str]) -> bool:
    """Return whether a file found in a folder is an input file."""
    extension = path.suffix.lower()
    if not extension or (extension in extensions and extension in ambiguous_extensions()):
        found = format_of(path)
        if found is None and extension and not os.access(path, os.R_OK):
            return True  # reading it reports the error
        return found is not None and not set(extensions).isdisjoint(found.extensions)
    return path.name.lower().endswith(tuple(extensions))


@functools.cache
def ambiguous_extensions() -> frozenset[str]:
    """Return the extensions whose files are recognised only by content."""
    return frozenset(extension for known in registry.FORMATS for extension in known.ambiguous)


def file_key(path: Path) -> str:
    """Return one key for all spellings of a path."""
    key = os.path.realpath(path)
    return key.casefold() if sys.platform in {"win32", "darwin"} else key


def is_blend(path: Path) -> bool:
    """Return whether a path has the extension .blend."""
    return path.suffix.lower() == BLEND


def formats_of(path: Path) -> list[Format]:
    """Return the formats with a path's extension, or the format of the file's content.

    The content decides if no format or several have the extension, or if it is ambiguous.

    For a FIFO or device without a known extension, return all readable formats.
    """
    extension = registry.extension_of(path)
    named = [known for known in registry.FORMATS if known.is_read and extension in known.extensions]
    is_certain = len(named) == 1 and extension not in ambiguous_extensions()
    found = None if is_certain or is_blend(path) else format_of(path)
    if not named and special_kind(path):
        return [known for known in registry.FORMATS if known.is_read]
    return [found] if found else named


def is_animation(path: Path) -> bool:
    """Return whether a path's extension is that of a format with animations or bones but without meshes."""
    named = [known for known in registry.FORMATS if path.suffix.lower() in known.extensions]
    return bool(named) and not any(known.capabilities.meshes for known in named)


def may_hold_meshes(path: Path) -> bool:
    """Return whether the format of a file's content has meshes, or is unknown."""
    found = format_of(path)
    return found is None or found.capabilities.meshes
