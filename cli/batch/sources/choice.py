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
from contextlib import nullcontext
from typing import cast

from ....io_formats.core.errors import FormatError, MeshferryError, refusal
from ....io_formats.disk.special_files import read_special, special_kind
from ... import interruption

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
