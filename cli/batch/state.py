"""The state of a batch in an output folder: the last result of each target, in ``journal.jsonl``.

Each result is appended before its worker gets another task, so a killed run loses no result. Targets that a later plan
lacks stay in the state, as their files still exist.

The offset of the last line of each target is in a private database without a name, which SQLite keeps in memory or in a
temporary file. Databases in the output folder are never opened: if a stranger made them or the files beside them,
SQLite may delete any file of the user, or run without end.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from ...io_formats.core.errors import ExportError, FormatError, MeshferryError, refusal
from ...io_formats.core.messages import Text, counted
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import remove_file, replace_file
from ...io_formats.disk.special_files import is_link, special_kind
from . import journal
from .journal import LOCK_SUFFIX, Entry, JournalFile, Known, entry_of
from .plan import Plan
from .tasks import JOURNAL_FILE, PLAN_FILE, SHARDS_FOLDER, STATE_FOLDER, Result, Status, Task

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
        path.parent.mkdir(parents=True, exist_ok=True)
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
        self._errors = _Errors(self.journal_path)
        self._lines = 0
        """Number of lines of the journal without its header."""
        self._damaged = 0
        self._first_damage: tuple[int, Text] | tuple[()] = ()
        """Offset of the first damaged line, and the reason."""
        self._files = contextlib.ExitStack()
        self._index = self._files.enter_context(contextlib.closing(sqlite3.connect("", isolation_level=None)))
        with self._errors:
            self._index.executescript(_INDEX)
            with contextlib.suppress(FileNotFoundError):  # the preview of a first run
                self._journal = JournalFile(self.journal_path, is_fixed=is_preview)
                self._files.callback(self._journal.close)
                self._read()
            if not is_preview:
                if not self._journal.end:
                    self._journal.write(journal.journal_header(self._options))
                self._merge_shards()

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
        with self._errors:
            is_new = self._index.execute("SELECT 1 FROM lines").fetchone() is None
            for task in self._plan.tasks():
                entry = None if is_new else self._entry(task.target)
                yield task, entry.known(task, self._options, self.output) if entry is not None else None

    def results(self) -> Iterator[Result]:
        """Yield the last result of each task of the plan, in their order; tasks without a result are left out."""
        with self._errors:
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
        with self._errors:
            before = self._entry(result.task.target) if result.status is Status.UNCHANGED else None
            self._store(entry_of(result, self._options, self.output, before))

    def compact(self) -> None:
        """Rewrite the journal if it has replaced or damaged lines, and close it. If that fails, the old one is kept."""
        with self._errors:
            if self._lines != self._index.execute("SELECT count(*) FROM lines").fetchone()[0]:
                with contextlib.suppress(ExportError):
                    replace_file(self.journal_path, self._last_lines())

    def _last_lines(self) -> Iterator[bytes]:
        """Yield the header and the last line of each target in the order of the journal, and close the journal."""
        yield journal.journal_header(self._options)
        for place in self._index.execute("SELECT start, size FROM lines ORDER BY start"):
            yield self._journal.read(*place)
        self._journal.close()  # Windows cannot replace open files

    def _read(self) -> None:
        """Index the journal. A line is parsed only if its target already has one, which a damaged line cannot replace.

        Parsing takes six times as long as the rest.
        """
        start = 0
        for line in self._journal.lines():
            target, size = journal.start_of_line(line), len(line)
            is_new = target and self._index.execute(f"INSERT OR IGNORE {_INTO}", (target, start, size)).rowcount
            is_header = not start and not target
            if not is_new and not is_header and (entry := self._parsed(line, start)) is not None:
                self._index.execute(f"REPLACE {_INTO}", (journal.start_of(entry.target), start, size))
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
                for entry in journal.entries_of(journal.read_lines(path)):
                    if (before := self._entry(entry.target)) is None or before.time <= entry.time:
                        self._store(entry)
                remove_file(path)
            finally:
                locks.remove(lock_path, held)

    def _entry(self, target: str) -> Entry | None:
        """Return the last result of a target. A damaged one is forgotten."""
        key = journal.start_of(target)
        found = self._index.execute("SELECT start, size FROM lines WHERE target = ?", (key,)).fetchone()
        entry = self._parsed(self._journal.read(*found), found[0]) if found is not None else None
        if found is not None and entry is None:
            self._index.execute("DELETE FROM lines WHERE target = ?", (key,))
        return entry

    def _parsed(self, line: bytes, start: int) -> Entry | None:
        """Parse a line; note the damage if it is not a result."""
        try:
            return journal.parse_entry(line)
        except FormatError as problem:
            self._first_damage = self._first_damage or (start, problem.message)
            self._damaged += 1
            return None

    def _store(self, entry: Entry) -> None:
        """Append an entry to the journal and index it."""
        line, start = entry.line(), self._journal.end
        self._journal.write(line)
        self._lines += 1
        self._index.execute(f"REPLACE {_INTO}", (journal.start_of(entry.target), start, len(line)))


class _Errors:
    """Context in which errors of files and SQLite are errors for users; reusable, as each result needs it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        if isinstance(problem, OSError):
            path = problem.filename or self._path
            raise MeshferryError("{}: the state cannot be read or written: {}", path, refusal(problem)) from None
        if isinstance(problem, sqlite3.Error):
            raise MeshferryError("{}: no index in the temporary folder: {}", self._path, problem) from None
