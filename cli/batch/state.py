"""The state of a batch in an output folder: the last result of each target.

``state.sqlite`` has the journal line of each target, also of targets that a later plan does not contain, as their
files still exist. The same lines are written to ``journal.jsonl`` for other programs. Journal lines that are missing
in the state, written before a kill or a power cut, are imported at the next start.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from ...io_formats.core.errors import ExportError, MeshferryError, refusal
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import remove_file, replace_file
from ...io_formats.disk.special_files import is_link, open_regular, special_kind
from . import journal
from .journal import LOCK_SUFFIX, Entry, JournalFile, Known, entry_of
from .plan import Plan, connect, to_sql
from .tasks import JOURNAL_FILE, PLAN_FILE, SHARDS_FOLDER, STATE_FILE, STATE_FOLDER, Result, Status, Task

_COMMIT_SECONDS = 1.0
"""Interval of commits in seconds while there is a journal, from which results lost by a kill are imported."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS results (id INTEGER PRIMARY KEY, target TEXT NOT NULL UNIQUE, entry BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS journal (id INTEGER PRIMARY KEY, size INTEGER NOT NULL);
"""
"""``id`` grows with time. ``entry``: line of the journal. ``size``: imported bytes of the journal."""
_FILES = (STATE_FILE, JOURNAL_FILE, PLAN_FILE)
"""Start of the names of files in the state folder, with those that SQLite has beside its own."""
_COLUMNS = {("results", "id"), ("results", "target"), ("results", "entry"), ("journal", "id"), ("journal", "size")}
_IMPORTED = "SELECT max(size) FROM journal WHERE typeof(size) = 'integer' AND size <= ?"


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
        raise MeshferryError(f"{folder}: the folder cannot be read: {refusal(problem)}") from None
    for path in found:
        kind = "link" if is_link(path) else special_kind(path)
        if path.name.startswith(_FILES) and path.is_dir():
            kind = "folder"
        if kind:
            raise MeshferryError(
                f"{path} is a {kind}, but a batch needs a state of its own; remove it, or name another folder with -o"
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
        raise MeshferryError(f"{refused}: the journal cannot be written: {refusal(problem)}") from None
    if lock is None:
        raise MeshferryError(f"{output}: another batch is writing to this folder; wait for it, or name another with -o")
    try:
        yield
    finally:
        locks.remove(lock_path, lock)
        with contextlib.suppress(OSError):
            for folder in created:
                folder.rmdir()


class State:
    """The state of an output folder: a context manager. Missing journal lines and shards are imported at its start.

    Parameters
    ----------
    output:
        The output folder; the caller has :func:`locked` it.
    plan:
        The plan of the run.
    has_journal:
        Write ``journal.jsonl`` too.
    is_preview:
        Read the results without a lock and without writing anything to the folder.

    Raises
    ------
    MeshferryError
        The folder cannot be written to.
    """

    def __init__(self, output: Path, plan: Plan, *, has_journal: bool = True, is_preview: bool = False) -> None:
        self.output = output
        self.journal_path = output / STATE_FOLDER / JOURNAL_FILE
        self._plan = plan
        self._options = plan.head.digest
        self._commit_seconds = _COMMIT_SECONDS if has_journal else 0.0
        self._committed = time.monotonic()
        self._journal: JournalFile | None = None
        self._errors = _Errors(output / STATE_FOLDER)
        path = output / STATE_FOLDER / STATE_FILE
        with self._errors:
            self._db = _open(path, is_preview=is_preview)
            size = self.journal_path.stat().st_size if self.journal_path.exists() else 0
            self._end: int = max(0, self._db.execute(_IMPORTED, (size,)).fetchone()[0] or 0)
            """Imported bytes of the journal, if this run does not write it."""
            self._import_journal()
            if is_preview:
                return
            if has_journal:
                self._journal = JournalFile(self.journal_path, self._end)
                if not self._end:
                    self._journal.write(journal.header(self._options))
            self._merge_shards()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        if self._journal is not None:
            self._journal.close()
        with contextlib.suppress(sqlite3.Error):
            self._commit()
        self._db.close()

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks of the plan with their last conversion, if that is still valid."""
        with self._errors:
            is_new = self._db.execute("SELECT 1 FROM results").fetchone() is None
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
        before = self._entry(result.task.target) if result.status is Status.UNCHANGED else None
        with self._errors:
            self._store(entry_of(result, self._options, self.output, before))
            if time.monotonic() - self._committed >= self._commit_seconds:
                self._commit()

    def compact(self) -> None:
        """Rewrite the journal if it has replaced or damaged lines. If that fails, the old journal is kept."""
        with self._errors:
            self._commit()
            if self._journal is None:
                return
            with self.journal_path.open("rb") as stream:
                lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
            if lines != self._db.execute("SELECT count(*) FROM results").fetchone()[0] + 1:
                self._journal.close()  # Windows cannot replace open files
                with contextlib.suppress(ExportError):
                    self.export_journal(self.journal_path)
                self._journal = JournalFile(self.journal_path, self.journal_path.stat().st_size)
                self._commit()

    def export_journal(self, path: Path) -> None:
        """Replace a journal by one with all results.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        lines = (line for (line,) in self._db.execute("SELECT entry FROM results ORDER BY id"))
        replace_file(path, itertools.chain([journal.header(self._options)], lines))

    def _import_journal(self) -> None:
        """Import the journal lines that are not in the state; all of them if the journal is another file."""
        if self._end and not _ends_line(self.journal_path, self._end):
            self._end = 0
        start = self._end
        self._end += sum(map(len, journal.read_lines(self.journal_path, start)))
        if self._end > start:
            self._merge(journal.read_lines(self.journal_path, start))

    def _merge_shards(self) -> None:
        """Merge the journals of shards and remove them; skip those that are still being written."""
        for path in sorted((self.journal_path.parent / SHARDS_FOLDER).glob("*.jsonl")):
            lock_path = path.with_name(path.name + LOCK_SUFFIX)
            held = locks.hold(lock_path)
            if held is None:
                continue
            try:
                self._merge(journal.read_lines(path))
                remove_file(path)
            finally:
                locks.remove(lock_path, held)

    def _merge(self, lines: Iterable[bytes]) -> None:
        """Store the journal lines that are not older than the stored ones."""
        for line in lines:
            entry = journal.parse(line)
            if entry is not None and ((before := self._entry(entry.target)) is None or before.time <= entry.time):
                self._store(entry)
        if self._journal is not None:
            self._journal.sync()
        self._commit()

    def _entry(self, target: str) -> Entry | None:
        row = self._db.execute("SELECT entry FROM results WHERE target = CAST(? AS TEXT)", (to_sql(target),)).fetchone()
        return None if row is None else journal.parse(row[0])  # None, too, if damaged by the disk

    def _store(self, entry: Entry) -> None:
        """Write an entry to the journal, if that is open, and to the database."""
        line = entry.line()
        if self._journal is not None:
            self._journal.write(line)
        statement = "INSERT OR REPLACE INTO results VALUES (NULL, CAST(? AS TEXT), ?)"
        self._db.execute(statement, (to_sql(entry.target), line))

    def _commit(self) -> None:
        end = self._end if self._journal is None else self._journal.end
        self._db.execute("INSERT OR REPLACE INTO journal VALUES (1, ?)", (end,))
        self._db.commit()
        self._committed = time.monotonic()


class _Errors:
    """Context in which errors of files and SQLite are errors for users; reusable, as each result needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        if isinstance(problem, (OSError, sqlite3.Error)):
            if isinstance(problem, OSError):
                path, reason = problem.filename or self._folder, refusal(problem)
            else:
                path, reason = self._folder / STATE_FILE, str(problem)
            if type(problem) is sqlite3.DatabaseError:
                reason += f"; delete {STATE_FILE}, and {JOURNAL_FILE} is read instead"
            raise MeshferryError(f"{path}: the state cannot be read or written: {reason}") from None


def _ends_line(path: Path, offset: int) -> bool:
    """Return whether a line of a file ends at an offset."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        stream.seek(offset - 1)
        return stream.read(1) == b"\n"
    return False


def _open(path: Path, *, is_preview: bool) -> sqlite3.Connection:
    """Open the database; use a new one if the file is damaged or has other columns.

    Raises
    ------
    OSError
        The file cannot be read or written, for which SQLite states no reason.
    """
    if path.exists():
        os.close(open_regular(path, os.O_RDONLY if is_preview else os.O_RDWR))
    try:
        return _preview(path) if is_preview else _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        if is_preview:
            return _preview(None)
        for suffix in ("", "-wal", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database with a write-ahead log, or without one on network disks that do not support it.

    With exclusive locking, the index of the log is in memory instead of in a shared memory file.
    """
    with contextlib.ExitStack() as stack:  # Windows cannot remove a damaged file before it is closed
        db = stack.enter_context(contextlib.closing(connect(path)))
        try:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            has_log = db.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal"
        except sqlite3.OperationalError:
            db.close()
            # the folder has a separate lock file
            db, has_log = stack.enter_context(contextlib.closing(connect(path, nolock=1))), False
        if not has_log:
            db.execute("PRAGMA journal_mode=TRUNCATE")
        db.execute("PRAGMA synchronous=NORMAL")
        _require_columns(db)
        db.isolation_level = "DEFERRED"  # statements that write begin a transaction
        stack.pop_all()
        return db


def _preview(path: Path | None) -> sqlite3.Connection:
    """Return a temporary copy of the database, which lacks the results that a killed run left in its log.

    Without a path, or if the file is missing, the copy is empty.
    """
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(contextlib.closing(sqlite3.connect("")))
        if path is not None and path.is_file():
            with contextlib.closing(connect(path, immutable=1)) as stored:
                stored.backup(db)
                db.text_factory = stored.text_factory
        _require_columns(db)
        stack.pop_all()
        return db


def _require_columns(db: sqlite3.Connection) -> None:
    """Create missing tables; raise sqlite3.DatabaseError if existing ones have other columns."""
    db.executescript(_SCHEMA)
    columns = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    if {(table, column) for table, column in db.execute(columns) if table in {"results", "journal"}} != _COLUMNS:
        raise sqlite3.DatabaseError("the tables have other columns")
