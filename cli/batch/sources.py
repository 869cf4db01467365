"""What people name on the command line -> the files of a batch, found one after the other and never held all at once."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from .work import Source

Told = Callable[[str, str], None]
"""Gets a path and what is wrong there: a folder that cannot be read, a pattern that nothing matches, a broken archive.
The search goes on; the run has failed in part."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--list``, ``--base``, ``--match``, ``--skip`` and ``--newer``, whose values :func:`find` takes."""
    raise NotImplementedError


def newer_than(text: str) -> int:
    """Return the time that ``--newer`` means, in nanoseconds since 1970: a date, ``7d`` ago, or a file's.

    Raises
    ------
    MeshferryError
        It is none of those.
    """
    raise NotImplementedError


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
    told: Told | None = None,
) -> Iterator[Source]:
    """Yield the files that paths and lists mean, in a steady order.

    Parameters
    ----------
    paths:
        Files, folders (searched to the bottom; links to folders are not followed), patterns that the shell left
        alone and archives. A file that is not there counts, with size -1: its reading says so.
    extensions:
        What counts in a folder, as for :func:`..inputs.expand`; archives count where their meshes do.
    lists:
        Files with one path a line; ``-`` is the standard input.
    base:
        Folder that files named one by one lie below: where they belong is told from there. Default: a file of the
        command line belongs directly into the output folder, one of a list where it lies below the working folder.
    match, skip:
        Patterns for the path below the folder that was searched; without a ``/`` for the name.
    newer:
        Only files changed after this time, in nanoseconds since 1970.
    leave_out:
        The output folder, in which nothing counts unless it, or a folder in it, is the one searched.
    written:
        Extension of the files to write: such files inside the output folder never count.
    told:
        What could not be looked at; default: it is raised.

    Raises
    ------
    MeshferryError
        A list that cannot be read.
    """
    raise NotImplementedError
