"""Lists of paths, one a line, read as they come: from a file, or from another program."""

from __future__ import annotations

import codecs
import io
import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, cast

from ....io_formats.core.errors import FormatError, MeshferryError
from ....io_formats.disk.atomic_write import refusal
from ....io_formats.disk.special_files import read_special, special_kind
from ... import interruption

STANDARD_INPUT = "-"
_LONGEST_LINE = 2**17
"""Letters; systems limit paths to 32,767."""


def lines(name: str) -> Iterator[str]:
    """Yield the paths in a list, or in the standard input (``-``). A FIFO is read within bounds of size and time.

    Empty lines and those that begin with ``#`` do not count, nor do quotation marks around a path, as "Copy as path"
    of Windows puts them. The text is UTF-8, with or without the mark at its start, or UTF-16 with it, as PowerShell
    writes it; names that are no UTF-8 come through.

    Raises
    ------
    MeshferryError
        It cannot be read, or is no list.
    """
    with ExitStack() as opened:
        try:
            stream = _opened(name, opened)
            for number in itertools.count(1):
                if name == STANDARD_INPUT:
                    with interruption.raising():  # another program may take its time
                        line = stream.readline(_LONGEST_LINE)
                else:
                    line = stream.readline(_LONGEST_LINE)
                if not line:
                    return
                if "\0" in line or len(line) >= _LONGEST_LINE:
                    raise MeshferryError(f"{_called(name)}: line {number:,} is not a path; a list has one path a line")
                path = line.rstrip("\r\n")
                if len(path) > 1 and path[0] == path[-1] == '"':
                    path = path[1:-1]
                if path.strip() and not path.startswith("#"):
                    yield path
        except UnicodeDecodeError:
            raise MeshferryError(f"{_called(name)}: this is not text") from None
        except OSError as problem:
            raise MeshferryError(f"{_called(name)}: the list cannot be read: {refusal(problem)}") from None


def _opened(name: str, opened: ExitStack) -> io.TextIOWrapper:
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
    opened.callback(text.detach)  # or the standard input would be closed with it
    return text


def _called(name: str) -> str:
    return "Standard input" if name == STANDARD_INPUT else name
