"""The folders from which a file may bring in others: pictures, buffers, layers and libraries that it names by path.

A path in a file is a stranger's word: it may name any file of the user, whose content would be part of the output.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.messages import Report, Text, counted, joined, listed, of_kind
from .rooted_files import is_inside, is_network_path, leads_to_network
from .special_files import open_regular

OPTION = "--files-from"
"""Flag of the command line that adds a folder."""
_MOST_FOLDERS = 3
"""Largest number of folders that a message gives as options."""
_HEAD = 64
"""Bytes by which a picture is recognised."""


@dataclass(frozen=True)
class Reach:
    """The folders from which one file may bring in others. All paths are real paths, without links.

    Paths on other machines are never within reach, and are not touched.
    """

    folder: str
    """Folder of the file."""
    others: tuple[str, ...] = ()
    """Folders that a batch searches, and those that the user gave."""
    is_given: bool = False
    """Whether the user gave folders. A .blend file is mostly the work of its user, and links files across a project, so
    all local files are within its reach unless folders are given."""
    is_asked: bool = True
    """Whether files beyond are left out. In the window they are used and named, as Blender shows them."""

    @classmethod
    def of(
        cls, source: str | Path, given: Sequence[str] = (), searched: Sequence[str] = (), *, is_asked: bool = True
    ) -> Reach:
        """Return the reach of a file, with the folders that the user gave and those that a batch searches."""
        others = tuple(dict.fromkeys(map(os.path.realpath, (*given, *searched))))
        return cls(os.path.realpath(os.path.dirname(os.path.abspath(source))), others, bool(given), is_asked)

    def allows(self, path: str | Path, *, above: bool = False) -> bool:
        """Return whether a path is below one of the folders.

        ``above`` adds the folder above the file's own, unless that is the home folder, that of temporary files or the
        root of a drive: models come in packs with folders ``source`` and ``textures``.
        """
        try:
            real = os.path.realpath(path) if is_local(path) else ""
        except ValueError:
            real = ""
        folders = [self.folder, *self.others]
        if above:
            parent = os.path.dirname(self.folder)
            shared = map(os.path.realpath, (os.path.expanduser("~"), tempfile.gettempdir(), os.path.dirname(parent)))
            folders += [parent] if not any(is_inside(folder, parent) for folder in shared) else []
        return any(is_inside(real, folder) for folder in folders)

    def brings_in(self, path: str | Path, *, above: bool = False) -> bool:
        """Return whether a path is beyond reach and names an existing file or folder.

        Some readers resolve ``..`` after a link as the operating system does, others remove both from the text.
        """
        spellings = (str(path), os.path.normpath(path))
        return any(_may_exist(each) and not self.allows(each, above=above) for each in spellings)

    def report_outside(self, paths: Iterable[str | Path], report: Report) -> None:
        """Report files that were left out because they are beyond reach, with the option that brings them in."""
        left = list(dict.fromkeys(map(os.path.normpath, map(str, paths))))
        if left:
            number = counted(len(left), "file")
            text = "{} outside of its folder left out: {}; to read from there, add {}"
            report.loss("file-outside-left-out", text, number, listed(of_kind("file", left)), as_option(left))


def is_local(path: str | Path) -> bool:
    """Return whether a path and the links in it name files of this machine; other machines are not contacted."""
    try:
        return not is_network_path(str(path)) and not leads_to_network(str(path))
    except ValueError:  # a NUL character, so that there is no such file
        return True
    except OSError:  # a link that only its owner may read
        return False


def _may_exist(path: str) -> bool:
    return not is_local(path) or os.path.isfile(path) or os.path.isdir(path)


def as_option(paths: Iterable[str | Path]) -> str:
    """Return the options of the command line that allow the folders of some paths, ready to be copied."""
    real = (os.path.realpath(path) if is_local(path) else path for path in paths)
    folders = list(dict.fromkeys(map(os.path.dirname, real)))[:_MOST_FOLDERS]
    return " ".join(f"{OPTION} {command_text([folder])}" for folder in folders)


def command_text(arguments: Sequence[str]) -> str:
    """Return arguments as text that can be pasted into the shell of the system."""
    return subprocess.list2cmdline(arguments) if sys.platform == "win32" else shlex.join(arguments)


def is_picture(path: str | Path) -> bool:
    """Return whether the content of a file begins as a picture or a film does."""
    from ..encodings.image_files import begins_as_picture  # loads NumPy, which the command line needs later

    try:
        with os.fdopen(open_regular(path, follows_links=True), "rb") as stream:
            return begins_as_picture(stream.read(_HEAD))
    except (OSError, ValueError):
        return False


def report_no_pictures(names: Iterable[str], report: Report) -> None:
    """Report files that are used as pictures and hold something else, which were left out."""
    left = list(dict.fromkeys(names))
    text = Text("{} not carried over: not a picture: {}", counted(len(left), "image"), joined(left[:_MOST_FOLDERS]))
    if left:
        report.loss("not-a-picture", "{}", text)
