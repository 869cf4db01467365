"""Journals: JSON lines for finished tasks, in ``journal.jsonl`` and from shards on other machines.

A journal may come from a stranger, so each value is checked before it is used.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...io_formats.core.errors import FormatError, MeshferryError, refusal
from ...io_formats.core.messages import Kind, Message
from ...io_formats.disk.special_files import open_regular
from .. import environment
from ..reporting import warnings_entry
from .tasks import SHARED_VALUES, Result, Status, Task

LOCK_SUFFIX = ".lock"
LONGEST_LINE = 64 << 20
"""Maximum number of bytes in a line, which is read as a whole."""
_LONGEST_ERROR = 10_000
_LARGEST_NUMBER = 2**63
_ENTRY_START = b'{"target":'
_AFTER_TARGET = b',"source":'
"""Text after the target in a line. A target never contains it, as its quotation marks are escaped."""
_VERSION = 1
_GOOD = frozenset(status.value for status in Status if status.is_good)
encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class Known(NamedTuple):
    """The last conversion of a task with the same options, if all its outputs still exist."""

    hash: str
    """Hash of the source at its last conversion."""
    is_same: bool
    """Whether size and date of the source are unchanged since then."""


@dataclass
class Entry:
    """One line of a journal; the fields are the keys of the line, in this order."""

    target: str
    source: str
    """Path below its root; for a member of an archive, the archive's path."""
    member: str
    size: int
    modified: int
    """Size and date of the source, as in :class:`Task`."""
    hash: str
    options: str
    """Digest of everything but the source that affects the output."""
    result: str
    """A value of :class:`Status`."""
    outputs: dict[str, int]
    """Files written, below the output folder, and their sizes in bytes; -1 if a file no longer existed."""
    warnings: list[str]
    facts: dict[str, Any]
    error: str
    seconds: float
    attempts: int
    time: str
    """End of the task, UTC, such as ``2026-01-31T12:00:00Z``."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    """The warnings as objects; empty in lines of version 0.2.0."""
    error_code: str = ""
    error_cause: str = ""
    """Cause of the error, as in :class:`Result`."""

    def line(self) -> bytes:
        """Return the line with its line break, in ASCII: lone surrogates in names are escaped.

        If it would be too long, or values are nested too deeply, it lacks outputs, warnings and facts. The next run
        then converts the source again.
        """
        with contextlib.suppress(RecursionError):
            line = _json_line(vars(self))
            if len(line) <= LONGEST_LINE:
                return line
        kept = replace(self, outputs={}, warnings=[], messages=[], facts={}, error=self.error[:_LONGEST_ERROR])
        return _json_line(vars(kept))

    def to_result(self, task: Task) -> Result:
        """Return the result that this entry was made from."""
        status, outputs = Status(self.result), list(self.outputs)
        values = {name: getattr(self, name) for name in SHARED_VALUES}
        warnings = [Message.from_json(found) for found in self.messages]
        warnings = warnings or [Message(Kind.LOSS, "", text) for text in self.warnings]
        return Result(task, status, outputs=outputs, warnings=warnings, attempts=self.attempts, **values)

    def known(self, task: Task, options: str, output: Path) -> Known | None:
        """Return this conversion if it is valid for a task: same source and options, all outputs with their sizes."""
        if not self.hash or self.options != options or self.result not in _GOOD:
            return None
        if (self.source, self.member) != (task.path, task.member) or not self.outputs:
            return None
        for name, size in self.outputs.items():
            if _file_size(f"{output}{os.sep}{name}") != size or size < 0:
                return None
        return Known(self.hash, (self.size, self.modified) == (task.size, task.modified))


def entry_of(result: Result, options: str, output: Path, before: Entry | None) -> Entry:
    """Return the entry of a result, with the current sizes of its outputs.

    If the source is unchanged, the outputs, warnings and facts of ``before``, the last entry of its target, are kept.
    """
    task = result.task
    entry = Entry(
        target=task.target,
        source=task.path,
        member=task.member,
        size=task.size,
        modified=task.modified,
        options=options,
        result=result.status.value,
        outputs={name: _file_size(f"{output}{os.sep}{name}") for name in result.outputs},
        **warnings_entry(result.warnings),
        **{name: getattr(result, name) for name in SHARED_VALUES},
        attempts=result.attempts,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )
    entry.seconds = round(entry.seconds, 4)
    if result.status is Status.UNCHANGED and before is not None:
        entry.outputs, entry.facts = before.outputs, before.facts
        entry.warnings, entry.messages = before.warnings, before.messages
    return entry


def _json_line(values: dict[str, Any]) -> bytes:
    return encode(values).encode("ascii") + b"\n"


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return -1


_TYPES: dict[str, Any] = {"str": str, "int": int, "float": (float, int), "dict": dict, "list": list}
_KINDS = [_TYPES[str(each.type).partition("[")[0]] for each in fields(Entry)]
"""Types of the fields of an entry."""
_NUMBERS = [each.name for each in fields(Entry) if each.type in {"int", "float"}]


def parse_entry(line: bytes) -> Entry:
    """Parse a line.

    Raises
    ------
    FormatError
        The line is not an entry.
    """
    try:
        entry = Entry(**json.loads(line))
        Status(entry.result)
        list(map(Message.from_json, entry.messages))
        texts = [*entry.warnings, *(clip["name"] for clip in entry.facts.get("clips", ()))]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise FormatError("it is not a result of a batch") from None
    values = vars(entry)
    if not all(map(isinstance, values.values(), _KINDS)) or not all(isinstance(text, str) for text in texts):
        raise FormatError("a value has a wrong type")
    for name in _NUMBERS:
        if not abs(values[name]) < _LARGEST_NUMBER:  # also NaN
            raise FormatError("the number '{}' is out of range", name)
    return entry


def entries_of(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yield the entries among lines."""
    for line in lines:
        with contextlib.suppress(FormatError):
            yield parse_entry(line)


def start_of(target: str) -> bytes:
    """Return the start of the lines of a target, up to the end of the target."""
    return _ENTRY_START + encode(target).encode("ascii")


def start_of_line(line: bytes) -> bytes:
    """Return the start of a line, up to the end of the target; empty if the line does not begin like an entry.

    A target does not contain ``_AFTER_TARGET``, as its quotation marks are escaped.
    """
    return line[: max(line.find(_AFTER_TARGET), 0)] if line.startswith(_ENTRY_START) else b""


def journal_header(options: str) -> bytes:
    """Return the first line of a journal."""
    return _json_line({"journal": _VERSION, "meshferry": environment.version(), "options": options})


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a journal, which may be missing.

    Raises
    ------
    FormatError
        A line is longer than :data:`LONGEST_LINE`.
    OSError
        The file cannot be read, or is not a regular file.
    """
    with contextlib.suppress(FileNotFoundError), os.fdopen(open_regular(path), "rb") as stream:
        yield from _complete_lines(stream, path)


def _complete_lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    while (line := stream.readline(LONGEST_LINE)).endswith(b"\n"):
        yield line
    if len(line) == LONGEST_LINE:
        text = "A line has more than {} MiB, so this is not the journal of a batch; remove the file"
        raise FormatError(text, LONGEST_LINE >> 20, file=path)


class JournalFile:
    """A journal, open for reading and for appending. An incomplete last line is removed.

    Parameters
    ----------
    is_fixed:
        Open an existing file for reading only.
    """

    def __init__(self, path: Path, *, is_fixed: bool = False) -> None:
        self._path = path
        flags = os.O_RDONLY if is_fixed else os.O_RDWR | os.O_CREAT | os.O_APPEND
        self._stream = io.FileIO(open_regular(path, flags), "rb" if is_fixed else "rb+")
        self.end = sum(map(len, self.lines()))
        """Size in bytes."""
        if not is_fixed:
            self._stream.truncate(self.end)

    def lines(self) -> Iterator[bytes]:
        """Yield all complete lines; do not use the file meanwhile."""
        self._stream.seek(0)
        buffered = io.BufferedReader(self._stream)
        yield from _complete_lines(buffered, self._path)
        buffered.detach()

    def read(self, start: int, size: int) -> bytes:
        """Return a line."""
        self._stream.seek(start)
        return self._stream.read(size)

    def write(self, line: bytes) -> None:
        """Append a line, completely or not at all.

        Raises
        ------
        MeshferryError
            The file cannot be written: the disk is full, for example.
        """
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._stream.write(rest) :]
        except OSError as problem:
            with contextlib.suppress(OSError):
                self._stream.truncate(self.end)
            raise MeshferryError("{}: the journal cannot be written: {}", self._path, refusal(problem)) from None
        self.end += len(line)

    def close(self) -> None:
        """Flush all lines to disk and close the file; a second call has no effect."""
        with contextlib.suppress(OSError, ValueError):
            os.fsync(self._stream.fileno())
        self._stream.close()
