"""The state of a batch in an output folder: the last result of each target, in ``state.sqlite``.

Each result is committed before its worker gets another task, so a killed run loses no result. Targets that a later plan
lacks stay in the state, as their files still exist.

The results are also appended to ``journal.jsonl``, for other programs. It is read only if the state lacks its last
line: if the state is missing or damaged, lacks commits after a power cut, or is of version 0.2.0, which committed
results up to a second after it wrote them to the journal.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
from collections import deque
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

_TABLE = "results (id INTEGER PRIMARY KEY, target TEXT NOT NULL UNIQUE, entry BLOB NOT NULL)"
"""``id`` grows with time. ``entry``: line of the journal."""
_FILES = (STATE_FILE, JOURNAL_FILE, PLAN_FILE)
"""First parts of the names of all files in the state folder. SQLite's temporary files begin with the same names."""


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
    has_journal:
        Write ``journal.jsonl`` too.
    preview:
        Empty folder for a copy of the state, which is used instead. The output folder is neither locked nor changed.

    Raises
    ------
    MeshferryError
        The folder cannot be written to.
    """

    def __init__(self, output: Path, plan: Plan, *, has_journal: bool = True, preview: Path | None = None) -> None:
        self.output = output
        folder = output / STATE_FOLDER
        self.journal_path = folder / JOURNAL_FILE
        self._plan = plan
        self._options = plan.head.digest
        self._journal: JournalFile | None = None
        self._errors = _Errors(folder)
        with self._errors:
            if preview is not None:
                for path in folder.glob(f"{STATE_FILE}*"):
                    shutil.copyfile(path, preview / path.name)
            self._db = _open((preview or folder) / STATE_FILE)
            last_line = next(iter(deque(journal.read_lines(self.journal_path), maxlen=1)), b"")
            last = journal.parse(last_line)
            if last is None or (stored := self._entry(last.target)) is None or stored.time < last.time:
                self._merge(journal.read_lines(self.journal_path))
            if preview is not None:
                return
            if has_journal:
                newest = self._db.execute("SELECT entry FROM results ORDER BY id DESC LIMIT 1").fetchone()
                if not last_line or newest not in {None, (last_line,)}:  # new, or it lacks results of other runs
                    self.export_journal(self.journal_path)
                self._journal = JournalFile(self.journal_path)
            self._merge_shards()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        if self._journal is not None:
            self._journal.close()
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
            self._db.commit()

    def compact(self) -> None:
        """Rewrite the journal if it has replaced or damaged lines. If that fails, the old journal is kept."""
        if self._journal is None:
            return
        with self._errors:
            with self.journal_path.open("rb") as stream:
                lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
            if lines != self._db.execute("SELECT count(*) FROM results").fetchone()[0] + 1:
                self._journal.close()  # Windows cannot replace open files
                with contextlib.suppress(ExportError):
                    self.export_journal(self.journal_path)
                self._journal = JournalFile(self.journal_path)

    def export_journal(self, path: Path) -> None:
        """Replace a journal by one with all results.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        # A damaged entry may be of another type.
        lines = (line for (line,) in self._db.execute("SELECT CAST(entry AS BLOB) FROM results ORDER BY id"))
        replace_file(path, itertools.chain([journal.header(self._options)], lines))

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
        self._db.commit()

    def _entry(self, target: str) -> Entry | None:
        row = self._db.execute("SELECT entry FROM results WHERE target = CAST(? AS TEXT)", (to_sql(target),)).fetchone()
        return None if row is None else journal.parse(row[0])  # None, too, if damaged by the disk

    def _store(self, entry: Entry) -> None:
        """Write an entry to the journal, if that is open, and to the database, without a commit.

        The journal is first: after a kill in between, its additional line makes :meth:`compact` rewrite it.
        """
        line = entry.line()
        if self._journal is not None:
            self._journal.write(line)
        statement = "INSERT OR REPLACE INTO results VALUES (NULL, CAST(? AS TEXT), ?)"
        self._db.execute(statement, (to_sql(entry.target), line))


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
            raise MeshferryError("{}: the state cannot be read or written: {}", path, reason) from None


def _open(path: Path) -> sqlite3.Connection:
    """Open the database; use a new one if the file is damaged or has other columns.

    Raises
    ------
    OSError
        The file cannot be read or written, for which SQLite states no reason.
    """
    if path.exists():
        os.close(open_regular(path, os.O_RDWR))
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        for suffix in ("", "-wal", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    """Open the database with a write-ahead log, or without one on network disks that do not support it.

    With exclusive locking, the index of the log is in memory instead of in a shared memory file. A commit is one write
    to the log without a flush to disk, so it takes microseconds, and a kill of the process cannot undo it.
    """
    with contextlib.ExitStack() as stack:  # Windows cannot remove a damaged file before it is closed
        db = stack.enter_context(contextlib.closing(connect(path)))
        try:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            has_log = db.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal"
            db.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.OperationalError:
            db.close()
            # the folder has a separate lock file
            db, has_log = stack.enter_context(contextlib.closing(connect(path, nolock=1))), False
        if not has_log:
            # Two flushes to a network disk for each result would take longer than many conversions.
            db.executescript("PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF")
        db.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
        if db.execute("SELECT sql FROM sqlite_master WHERE name = 'results'").fetchone() != (f"CREATE TABLE {_TABLE}",):
            raise sqlite3.DatabaseError("the table has other columns")
        db.isolation_level = "DEFERRED"  # statements that write begin a transaction
        stack.pop_all()
        return db
