"""Options that select the sources of a batch: lists of paths, patterns and the date of the last change."""

from __future__ import annotations

import argparse
import codecs
import datetime as dt
import io
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, cast

from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.disk.atomic_write import refusal
from ....io_formats.disk.special_files import read_special, special_kind
from ... import interruption

STANDARD_INPUT = "-"
_LONGEST_LINE = 2**17
"""Characters; systems limit paths to 32,767."""
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
        type=_parse_newer,
        metavar="DATE|SPAN|FILE",
        help="only files changed since a date (2026-01-31), within a span of time (7d, 12h), or after another file",
    )


def _parse_newer(text: str) -> int:
    try:
        return newer_than(text)
    except MeshferryError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def newer_than(text: str) -> int:
    """Return the time of ``--newer`` in nanoseconds since 1970: a date, a span such as ``7d``, or the time of a file.

    Raises
    ------
    MeshferryError
        The text is none of these.
    """
    refused = MeshferryError(
        f"'{text}' is neither a date (2026-01-31, 2026-01-31T18:30) nor a span of time (7d, 12h, 30m) nor a file"
    )
    try:
        if span := _SPAN.fullmatch(text.strip().lower()):
            return time.time_ns() - int(float(span[1]) * _SECONDS[span[2]] * 1_000_000_000)
        try:
            return int(dt.datetime.fromisoformat(text.strip()).timestamp()) * 1_000_000_000
        except ValueError:
            return os.stat(text).st_mtime_ns
    except (OSError, ValueError, OverflowError):
        raise refused from None


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
    *folders, last = text.split("/")
    steps = ["(?:[^/]+/)*" if folder == "**" else _name_expression(folder) + "/" for folder in folders]
    return re.compile("".join(steps) + (".+" if last == "**" else _name_expression(last)), re.IGNORECASE | re.DOTALL)


def _name_expression(pattern: str) -> str:
    """Return the regular expression for one part of a path."""
    parts: list[str] = []
    rest = pattern
    while rest:
        if rest[0] == "*":
            parts.append("[^/]*")
            rest = rest.lstrip("*")
        elif rest[0] == "?":
            parts.append("[^/]")
            rest = rest[1:]
        elif found := re.match(r"\[(!?)(\]?[^\]]*)\]", rest):
            letters = re.sub(r"([\\\[\]^&~|])", r"\\\1", found[2])
            parts.append(f"(?!/)[{'^' if found[1] else ''}{letters}]" if letters else re.escape(found[0]))
            rest = rest[found.end() :]
        else:
            parts.append(re.escape(rest[0]))
            rest = rest[1:]
    return "".join(parts)


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
    with ExitStack() as opened:
        try:
            stream = _open_list(name, opened)
            for number in itertools.count(1):
                if name == STANDARD_INPUT:
                    with interruption.raising():  # the other program may write slowly, and Ctrl+C must still work
                        line = stream.readline(_LONGEST_LINE)
                else:
                    line = stream.readline(_LONGEST_LINE)
                if not line:
                    return
                if "\0" in line or len(line) >= _LONGEST_LINE:
                    raise MeshferryError(
                        f"{_list_name(name)}: line {number:,} is not a path; a list has one path a line"
                    )
                path = line.rstrip("\r\n")
                if len(path) > 1 and path[0] == path[-1] == '"':
                    path = path[1:-1]
                if path.strip() and not path.startswith("#"):
                    yield path
        except UnicodeDecodeError:
            raise MeshferryError(f"{_list_name(name)}: this is not text") from None
        except OSError as problem:
            raise MeshferryError(f"{_list_name(name)}: the list cannot be read: {refusal(problem)}") from None


def _open_list(name: str, opened: ExitStack) -> io.TextIOWrapper:
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise MeshferryError("There is no standard input here")
        binary = cast("io.BufferedReader", sys.stdin.buffer)
    elif special_kind(name):
        try:
            with interruption.raising():
                content = read_special(name)
        except FormatError as problem:
            raise MeshferryError(f"{name}: {problem.message}") from None
        binary = io.BufferedReader(cast("io.RawIOBase", io.BytesIO(content)))
    else:
        binary = opened.enter_context(open(name, "rb"))  # noqa: SIM115
    is_wide = binary.peek(2)[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    text = io.TextIOWrapper(
        cast("BinaryIO", binary),
        encoding="utf-16" if is_wide else "utf-8-sig",
        errors="strict" if is_wide else "surrogateescape",
    )
    opened.callback(text.detach)  # otherwise the standard input would be closed with it
    return text


def _list_name(name: str) -> str:
    return "Standard input" if name == STANDARD_INPUT else name
