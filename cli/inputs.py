"""Paths on the command line -> files: folders are searched, patterns that the shell left alone are resolved."""

from __future__ import annotations

import functools
import glob
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..io_formats import registry
from ..io_formats.api import format_of
from ..io_formats.core.errors import FormatError
from ..io_formats.disk.special_files import special_kind
from ..io_formats.registry import Format
from . import interruption

BLEND = ".blend"

Warn = Callable[[object, str], None]
"""Called with a path and a sentence about it."""


@dataclass(frozen=True)
class InputFile:
    """A file to work on."""

    path: Path
    relative: Path
    """Path below the folder that was given, or the file name if the file itself was given."""


def known_extensions() -> tuple[str, ...]:
    """Return the extensions of all formats that are read, each once, with the dot."""
    named = (extension for known in registry.FORMATS if known.is_read for extension in known.extensions)
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True)
class Inputs:
    """The files that paths refer to, and errors for paths without files."""

    files: tuple[InputFile, ...]
    problems: tuple[FormatError, ...]
    """One for each empty folder and each pattern without matches, which is ``file``."""


def expand(
    paths: Iterable[str], extensions: Sequence[str], *, leave_out: Path | None = None, warn: Warn | None = None
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
        Called for each FIFO, device or socket that a search skips. One that is named itself is not skipped.
    """
    found: dict[str, InputFile] = {}
    problems: list[FormatError] = []
    for text in dict.fromkeys(paths):
        try:
            for file in _expand_one(text, extensions, leave_out, warn or ignore_warning):
                key = file_key(file.path)
                while key in found and not _is_same_file(found[key].path, file.path):
                    key += "\0"  # the key is coarser than some folders
                found.setdefault(key, file)
        except FormatError as problem:
            problems.append(problem.in_file(text))
    return Inputs(tuple(found.values()), tuple(problems))


def ignore_warning(_path: object, _text: str) -> None:
    """Do nothing with a warning."""


def _expand_one(text: str, extensions: Sequence[str], leave_out: Path | None, warn: Warn) -> list[InputFile]:
    path = Path(text)
    if path.is_dir():
        files = _files_below(path, extensions, leave_out, warn)
        if not files:
            raise FormatError(f"There are no {' or '.join(extensions)} files in this folder")
        return files
    if not path.exists() and glob.has_magic(text):
        matches = [Path(match) for match in sorted(glob.glob(text, recursive=True)) if not os.path.isdir(match)]
        if not matches:
            raise FormatError("No file matches this pattern")
        return [InputFile(match, Path(match.name)) for match in matches if not skips(match, warn)]
    return [InputFile(path, Path(path.name))]


def _is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths with the same key lead to one file."""
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:
        return True


def skips(path: str | Path, warn: Warn) -> bool:
    """Return whether a search skips a path because it is a FIFO, device or socket; warn of it."""
    kind = special_kind(path)
    if kind:
        warn(path, f"This is a {kind}, not a regular file; skipped")
    return bool(kind)


def _files_below(folder: Path, extensions: Sequence[str], leave_out: Path | None, warn: Warn) -> list[InputFile]:
    skipped = file_key(leave_out) if leave_out is not None and file_key(leave_out) != file_key(folder) else ""
    files = []
    for parent, folders, names in os.walk(folder):
        interruption.check()
        folders[:] = sorted(name for name in folders if not skipped or file_key(Path(parent, name)) != skipped)
        for name in sorted(names):
            path = Path(parent, name)
            if may_count(name, extensions) and not skips(path, warn) and counts(path, extensions):
                files.append(InputFile(path, path.relative_to(folder)))
    return files


def may_count(name: str, extensions: Sequence[str]) -> bool:
    """Return whether a file of this name is one to work on, or its content has to decide."""
    return not os.path.splitext(name)[1] or name.lower().endswith(tuple(extensions))


def counts(path: Path, extensions: Sequence[str]) -> bool:
    """Return whether a file found in a folder is one to work on."""
    extension = path.suffix.lower()
    if not extension or (extension in extensions and extension in ambiguous_extensions()):
        return _is_one_of(path, extensions)
    return path.name.lower().endswith(tuple(extensions))


@functools.cache
def ambiguous_extensions() -> frozenset[str]:
    """Return the extensions whose files are recognised only by content."""
    return frozenset(extension for known in registry.FORMATS for extension in known.ambiguous)


def _is_one_of(path: Path, extensions: Sequence[str]) -> bool:
    """Return whether the content of a file is of a format that has one of these extensions."""
    found = format_of(path)
    return found is not None and not set(extensions).isdisjoint(found.extensions)


def file_key(path: Path) -> str:
    """Return the same text for all spellings of one file's path."""
    key = os.path.realpath(path)
    return key.casefold() if sys.platform in {"win32", "darwin"} else key


def is_blend(path: Path) -> bool:
    """Return whether a path has the extension .blend."""
    return path.suffix.lower() == BLEND


def formats_of(path: Path) -> list[Format]:
    """Return the formats whose extension a path has; where none or several have it, the one of its content.

    Of a FIFO or device without such an extension, all formats that are read.
    """
    named = [known for known in registry.FORMATS if known.is_read and path.suffix.lower() in known.extensions]
    found = None if len(named) == 1 or is_blend(path) else format_of(path)
    if not named and special_kind(path):
        return [known for known in registry.FORMATS if known.is_read]
    return [found] if found else named


def is_animation(path: Path) -> bool:
    """Return whether a path's extension is that of a format with animations or bones but without meshes."""
    named = [known for known in registry.FORMATS if path.suffix.lower() in known.extensions]
    return bool(named) and not any(known.capabilities.meshes for known in named)


def may_hold_meshes(path: Path) -> bool:
    """Return whether a file's content is of a format with meshes, or of an unreadable one."""
    found = format_of(path)
    return found is None or found.capabilities.meshes
