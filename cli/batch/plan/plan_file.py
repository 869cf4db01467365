"""The plan of a batch as it lies on disk: ``batch.json`` with what was asked for, ``plan.jsonl`` with a line a file.

A line is a list: number of the root, path, member, target, size, time of change in nanoseconds::

    [0,"lamps/lamp.mesh","","lamps/lamp.blend",1284,1763751000000000000]

Names that no text encoding explains survive as escaped surrogates, so both files are plain ASCII. Nothing here holds
all lines at once: a million of them are read in passing, and any one is found by an index with every thousandth.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ....io_formats.core.errors import FormatError
from ....io_formats.disk.atomic_write import refusal
from ..tasks import BATCH_FILE, PLAN_FILE, STATE_FOLDER, Task

_STEP = 1024
"""Lines from one entry of the index to the next."""
_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 20
"""Bytes; a line has three paths, which systems limit to 32,767 characters, escaped by six letters each."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class BatchFile:
    """What was asked for."""

    argv: tuple[str, ...]
    """The options of conversion, as ``convert`` takes them."""
    to: str
    """Kind of file to write as it was named, an extension or a format, for
    :func:`...conversions.convert_plan.known_kind`."""
    extension: str
    """Of the files to write, with its dot."""
    version: str
    """Meshferry's."""
    roots: tuple[str, ...] = ()
    """Absolute folders that the sources lie below."""
    count: int = 0
    """Lines of the plan."""
    plan_size: int = 0
    """Bytes of the plan, which tell whether it is the one that belongs here."""

    @property
    def digest(self) -> str:
        """Hash of all that what becomes of a source depends on: a work done with another one is done again."""
        told = json.dumps([self.version, self.to, self.extension, list(self.argv)])
        return hashlib.blake2b(told.encode("ascii"), digest_size=16).hexdigest()

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self) | {"digest": self.digest}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BatchFile:
        """Return what :meth:`to_json` gave.

        Raises
        ------
        ValueError
            The text is something else.
        """
        found: Any = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is not an object")
        values: dict[str, Any] = {}
        for known in dataclasses.fields(cls):
            value = found.get(known.name)
            if known.name in {"argv", "roots"}:
                if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                    raise ValueError(f"'{known.name}' is not a list of texts")
                value = tuple(value)
            elif type(value) is not (int if known.name in {"count", "plan_size"} else str):
                raise ValueError(f"'{known.name}' is missing or of another kind")
            values[known.name] = value
        if min(values["count"], values["plan_size"]) < 0:
            raise ValueError("a count is below zero")
        return cls(**values)


def line_of(task: Task) -> bytes:
    """Return the line of a work, with its end."""
    values: list[Any] = [task.root, task.path, task.member, task.target, task.size, task.modified]
    return _encode(values).encode("ascii") + b"\n"


def task_of(number: int, line: bytes) -> Task:
    """Return the work of a line.

    Raises
    ------
    ValueError
        It is not one of a plan.
    """
    try:
        values = json.loads(line)
    except RecursionError:
        raise ValueError from None
    if not isinstance(values, list) or [type(value) for value in values] != [int, str, str, str, int, int]:
        raise ValueError
    return Task(number, *values)


class Plan:
    """A plan on disk, whose works are read as they are needed."""

    def __init__(self, folder: Path, batch: BatchFile, roots: Sequence[str]) -> None:
        self.folder = folder
        """Where its files lie: ``meshferry-batch``."""
        self.batch = batch
        self.roots = tuple(roots)
        """The folders that sources lie below, here."""
        self._index: list[int] = []

    @classmethod
    def open(cls, folder: str | Path, roots: Sequence[str] | None = None) -> Plan:
        """Open the plan in a folder, or in the folder ``meshferry-batch`` of it.

        Parameters
        ----------
        roots:
            Where the plan's roots are on this machine, in their order.

        Raises
        ------
        FormatError
            There is no plan, or it was changed by hand.
        """
        folder = Path(folder)
        if not (folder / BATCH_FILE).exists() and (folder / STATE_FOLDER / BATCH_FILE).exists():
            folder = folder / STATE_FOLDER
        place = str(folder / BATCH_FILE)
        try:
            batch = BatchFile.from_json((folder / BATCH_FILE).read_text(encoding="ascii"))
            size = (folder / PLAN_FILE).stat().st_size
        except OSError as problem:
            raise FormatError(f"There is no plan of a batch here: {refusal(problem)}", file=str(folder)) from None
        except ValueError as problem:
            raise FormatError(f"This is not the head of a plan: {problem}", file=place) from None
        except RecursionError:
            raise FormatError("This is not the head of a plan", file=place) from None
        if size != batch.plan_size:
            raise FormatError(
                f"The plan has {size:,} bytes instead of {batch.plan_size:,}; start the batch again to make it anew",
                file=str(folder / PLAN_FILE),
            )
        if roots is not None and len(roots) != len(batch.roots):
            raise FormatError(f"The plan has {len(batch.roots)} folders of sources, not {len(roots)}", file=place)
        return cls(folder, batch, batch.roots if roots is None else roots)

    @property
    def count(self) -> int:
        """How many works there are."""
        return self.batch.count

    def path_of(self, task: Task) -> Path:
        """Return where a work's source, or the archive around it, is on this machine."""
        return Path(self.roots[task.root], task.path)

    def tasks(self, start: int = 0, stop: int | None = None) -> Iterator[Task]:
        """Yield the works from number ``start`` to before ``stop``; numbers begin at 0.

        Raises
        ------
        FormatError
            The plan was changed by hand.
        """
        stop = self.count if stop is None else min(stop, self.count)
        if start >= stop:
            return
        try:
            with (self.folder / PLAN_FILE).open("rb") as stream:
                number = self._seek(stream, start)
                while number < stop:
                    line = stream.readline(_LONGEST_LINE)
                    if number >= start:
                        yield self._work(number, line)
                    number += 1
        except OSError as problem:
            raise self._error(f"The plan cannot be read: {refusal(problem)}") from None

    def _seek(self, stream: BinaryIO, number: int) -> int:
        """Go to the nearest line before a work that the index knows; return its number."""
        if number < _STEP:
            return 0
        if not self._index:
            self._index = list(_offsets(stream))
        entry = min(number // _STEP, len(self._index) - 1)
        stream.seek(self._index[entry])
        return entry * _STEP

    def _work(self, number: int, line: bytes) -> Task:
        try:
            task = task_of(number, line)
            if 0 <= task.root < len(self.roots) and _is_below(task.target):
                return task
        except ValueError:
            pass
        raise self._error(f"Line {number + 1:,} is not one of a plan; start the batch again to make it anew")

    def _error(self, message: str) -> FormatError:
        return FormatError(message, file=str(self.folder / PLAN_FILE))


def _is_below(target: str) -> bool:
    """Tell whether a target stays inside the output folder."""
    parts = target.replace(os.sep, "/").split("/")
    return ".." not in parts and bool(parts[0]) and not os.path.splitdrive(target)[0]


def _offsets(stream: BinaryIO) -> Iterator[int]:
    """Yield where every 1,024th line begins."""
    stream.seek(0)
    yield 0
    place = lines = 0
    while block := stream.read(_BLOCK):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        wanted = ends[(-lines - 1) % _STEP :: _STEP]
        yield from (place + wanted + 1).tolist()
        lines += len(ends)
        place += len(block)
