"""The state of a batch in an output folder: the last result of each target in ``state.sqlite``, and journals.

A journal may come from a stranger, so each value is checked before it is used.

Each result is appended before its worker gets another task, so a killed run loses no result. Targets that a later plan
lacks stay in the state, as their files still exist.

The offset of the last line of each target is in a private database without a name, which SQLite keeps in memory or in a
temporary file. Databases in the output folder are never opened: if a stranger made them or the files beside them,
SQLite may delete any file of the user, or run without end.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from ...io_formats.core.errors import ExportError, FormatError, MeshferryError, refusal
from ...io_formats.core.messages import Message, Text, counted
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import make_folders, remove_file, replace_file
from ...io_formats.disk.special_files import is_link, open_regular, special_kind
from .. import environment
from ..output import warnings_entry
from .plan import Plan
from .tasks import JOURNAL_FILE, PLAN_FILE, SHARDS_FOLDER, SHARED_VALUES, STATE_FOLDER, Result, Status, Task

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
    """The warnings as objects."""
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
        return Result(task, status, outputs=outputs, warnings=warnings, attempts=self.attempts, **values)

    def known(self, task: Task, options: str, output: Path) -> Known | None:
        """Return this conversion if it is valid for a task: same source and options, all outputs with their sizes."""
        if not self.hash or self.options != options or self.result not in _GOOD:
            return None
        if (self.source, self.member) != (task.path, task.member) or not self.outputs:
            return None
        if any(_file_size(f"{output}{os.sep}{name}") != size or size < 0 for name, size in self.outputs.items()):
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
        try:
            self.end = sum(map(len, self.lines()))
            """Size in bytes."""
            if not is_fixed:
                self._stream.truncate(self.end)
        except BaseException:  # Windows cannot remove open files
            self._stream.close()
            raise

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


_INDEX = """
PRAGMA journal_mode=OFF;
CREATE TABLE lines (target BLOB PRIMARY KEY, start INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
BEGIN;
"""
"""``target``: the start of the line, see :func:`journal.start_of`."""
_INTO = "INTO lines VALUES (?, ?, ?)"
_FILES = (JOURNAL_FILE, PLAN_FILE)
"""First parts of the names of all files in the state folder."""


def require_own_state(output: Path) -> None:
    """Refuse a state folder that is a link or contains links, FIFOs, devices, sockets, or folders in place of files.

    A run removes, locks and appends to files in this folder. Through a link, it would change files elsewhere.

    Raises
    ------
    MeshferryError
        The message names the link or file.
    """
    folder = output / STATE_FOLDER
    try:
        found = [folder, *folder.iterdir()] if folder.is_dir() else [folder]
    except OSError as problem:
        raise MeshferryError("{}: the folder cannot be read: {}", folder, refusal(problem)) from None
    for path in found:
        kind = "link" if is_link(path) else special_kind(path)
        if path.name.startswith(_FILES) and path.is_dir():
            kind = "folder"
        if kind:
            raise MeshferryError(
                "{} is a {}, but a batch needs a state of its own; remove it, or name another folder with -o",
                path,
                kind,
            )


@contextlib.contextmanager
def locked(output: Path) -> Iterator[None]:
    """Create an output folder and lock it for one run. Afterwards, remove the new folders that are still empty.

    Raises
    ------
    MeshferryError
        Another process holds the lock, or the state folder cannot be written to or is not a real folder.
    """
    require_own_state(output)
    path = output / STATE_FOLDER / JOURNAL_FILE
    lock_path = path.with_name(JOURNAL_FILE + LOCK_SUFFIX)
    created = [folder for folder in path.parents if folder == path.parent or not folder.exists()]
    try:
        make_folders(path.parent)
        lock = locks.hold(lock_path)
    except OSError as problem:
        refused = problem.filename or path
        raise MeshferryError("{}: the journal cannot be written: {}", refused, refusal(problem)) from None
    if lock is None:
        raise MeshferryError(
            "{}: another batch is writing to this folder; wait for it, or name another with -o", output
        )
    try:
        yield
    finally:
        locks.remove(lock_path, lock)
        with contextlib.suppress(OSError):
            for folder in created:
                folder.rmdir()


class State:
    """The state of an output folder: a context manager. The journals of shards are merged at its start.

    Parameters
    ----------
    output:
        The output folder; the caller has :func:`locked` it.
    plan:
        The plan of the run.
    is_preview:
        Only read the journal. The output folder is neither locked nor changed.

    Raises
    ------
    MeshferryError
        A file in the folder cannot be read or written.
    """

    def __init__(self, output: Path, plan: Plan, *, is_preview: bool = False) -> None:
        self.output = output
        self.journal_path = output / STATE_FOLDER / JOURNAL_FILE
        self._plan = plan
        self._options = plan.head.digest
        self._lines = 0
        """Number of lines of the journal without its header."""
        self._damaged = 0
        self._first_damage: tuple[int, Text] | tuple[()] = ()
        """Offset of the first damaged line, and the reason."""
        with contextlib.ExitStack() as files, self._errors():  # closes the files if an error is raised
            self._index = files.enter_context(contextlib.closing(sqlite3.connect("", isolation_level=None)))
            self._index.executescript(_INDEX)
            with contextlib.suppress(FileNotFoundError):  # the preview of a first run
                self._journal = JournalFile(self.journal_path, is_fixed=is_preview)
                files.callback(self._journal.close)
                self._read()
            if not is_preview:
                if not self._journal.end:
                    self._journal.write(journal_header(self._options))
                self._merge_shards()
            self._files = files.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._files.close()

    @property
    def damage(self) -> MeshferryError | None:
        """The number of damaged lines that were found, with the offset of the first one and the reason."""
        if not self._damaged:
            return None
        lines = counted(self._damaged, "damaged line was", "damaged lines were")
        return MeshferryError("{} ignored; the first is at byte {:,}: {}", lines, *self._first_damage)

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks of the plan with their last conversion, if that is still valid."""
        with self._errors():
            is_new = self._index.execute("SELECT 1 FROM lines").fetchone() is None
            for task in self._plan.tasks():
                entry = None if is_new else self._entry(task.target)
                yield task, entry.known(task, self._options, self.output) if entry is not None else None

    def results(self) -> Iterator[Result]:
        """Yield the last result of each task of the plan, in their order; tasks without a result are left out."""
        with self._errors():
            for task in self._plan.tasks():
                if (entry := self._entry(task.target)) is not None:
                    yield entry.to_result(task)

    def append(self, result: Result) -> None:
        """Store a result. If the source is unchanged, outputs, warnings and facts of its last conversion are kept.

        Raises
        ------
        MeshferryError
            The state cannot be written: the disk is full, for example.
        """
        with self._errors():
            before = self._entry(result.task.target) if result.status is Status.UNCHANGED else None
            self._store(entry_of(result, self._options, self.output, before))

    def compact(self) -> None:
        """Rewrite the journal if it has replaced or damaged lines, and close it. If that fails, the old one is kept."""
        with self._errors():
            if self._lines != self._index.execute("SELECT count(*) FROM lines").fetchone()[0]:
                with contextlib.suppress(ExportError):
                    replace_file(self.journal_path, self._last_lines())

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise errors of files and SQLite as errors for users."""
        try:
            yield
        except OSError as problem:
            path = problem.filename or self.journal_path
            raise MeshferryError("{}: the state cannot be read or written: {}", path, refusal(problem)) from None
        except sqlite3.Error as problem:
            raise MeshferryError("{}: no index in the temporary folder: {}", self.journal_path, problem) from None

    def _last_lines(self) -> Iterator[bytes]:
        """Yield the header and the last line of each target in the order of the journal, and close the journal."""
        yield journal_header(self._options)
        for place in self._index.execute("SELECT start, size FROM lines ORDER BY start"):
            yield self._journal.read(*place)
        self._journal.close()  # Windows cannot replace open files

    def _read(self) -> None:
        """Index the journal. A line is parsed only if its target already has one, which a damaged line cannot replace.

        Parsing takes six times as long as the rest.
        """
        start = 0
        for line in self._journal.lines():
            target, size = start_of_line(line), len(line)
            is_new = target and self._index.execute(f"INSERT OR IGNORE {_INTO}", (target, start, size)).rowcount
            is_header = not start and not target
            if not is_new and not is_header and (entry := self._parsed(line, start)) is not None:
                self._index.execute(f"REPLACE {_INTO}", (start_of(entry.target), start, size))
            self._lines += not is_header
            start += size

    def _merge_shards(self) -> None:
        """Merge the journals of shards and remove them; skip those that are still being written."""
        for path in sorted((self.journal_path.parent / SHARDS_FOLDER).glob("*.jsonl")):
            lock_path = path.with_name(path.name + LOCK_SUFFIX)
            held = locks.hold(lock_path)
            if held is None:
                continue
            try:
                for entry in entries_of(read_lines(path)):
                    if (before := self._entry(entry.target)) is None or before.time <= entry.time:
                        self._store(entry)
                remove_file(path)
            finally:
                locks.remove(lock_path, held)

    def _entry(self, target: str) -> Entry | None:
        """Return the last result of a target. A damaged one is forgotten."""
        key = start_of(target)
        found = self._index.execute("SELECT start, size FROM lines WHERE target = ?", (key,)).fetchone()
        entry = self._parsed(self._journal.read(*found), found[0]) if found is not None else None
        if found is not None and entry is None:
            self._index.execute("DELETE FROM lines WHERE target = ?", (key,))
        return entry

    def _parsed(self, line: bytes, start: int) -> Entry | None:
        """Parse a line; note the damage if it is not a result."""
        try:
            return parse_entry(line)
        except FormatError as problem:
            self._first_damage = self._first_damage or (start, problem.message)
            self._damaged += 1
            return None

    def _store(self, entry: Entry) -> None:
        """Append an entry to the journal and index it."""
        line, start = entry.line(), self._journal.end
        self._journal.write(line)
        self._lines += 1
        self._index.execute(f"REPLACE {_INTO}", (start_of(entry.target), start, len(line)))
