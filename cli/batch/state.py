"""The state of a batch in an output folder: the result of each task.

``state.sqlite`` has one row for each target. Rows are kept if a later plan does not contain the target, as its file
still exists. The same results are written to ``journal.jsonl`` for other programs. Journal lines that are missing in
the state, written by version 0.1.0 or before a power cut, are imported at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

from ...io_formats.core.errors import MeshferryError
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import copy_mode, refusal, remove_file, rename_over, temporary_file
from . import journal
from .journal import Entry, JournalFile, entry_of, outputs_exist
from .plan import ROWS, TASK_COLUMNS, Plan, connect, fetch, to_sql, uri
from .tasks import JOURNAL_FILE, SHARDS_FOLDER, STATE_FILE, STATE_FOLDER, Result, Status, Task

LOCK_SUFFIX = ".lock"
_COMMIT_SECONDS = 0.2
"""Interval of commits in seconds; a commit takes 40 µs. Results lost by a kill are imported from the journal."""
_SLOW_COMMIT_SECONDS = 1.0
"""Interval of commits in seconds without a write-ahead log, where each commit waits for the disk."""
_SCHEMA = """
CREATE TABLE results (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL UNIQUE, source TEXT, member TEXT, size INTEGER, modified INTEGER,
  hash TEXT, options TEXT, result TEXT, entry TEXT NOT NULL, journal_end INTEGER
);
CREATE TABLE header (line BLOB);
"""
"""``id`` grows with time. ``entry``: line of the journal. ``journal_end``: size of the journal after this line.
``user_version`` is 1 while the journal may have lines that later ones replace."""
_STORE = """
INSERT OR REPLACE INTO results VALUES
(NULL, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?, ?, ?, ?, ?, ?)
"""
_ENTRY = "SELECT entry FROM results WHERE target = CAST(? AS TEXT)"
_PENDING = f"""
SELECT {TASK_COLUMNS}, r.hash, json_extract(r.entry, '$.outputs'), r.size = t.size AND r.modified = t.modified
FROM plan.tasks t LEFT JOIN results r ON r.target = t.target AND r.options = ? AND r.hash != ''
  AND r.result IN ('done', 'unchanged') AND r.source = t.path AND r.member = t.member
WHERE t.line > ? ORDER BY t.line LIMIT {ROWS}
"""
_RESULTS = f"""
SELECT {TASK_COLUMNS}, r.entry FROM plan.tasks t JOIN results r ON r.target = t.target
WHERE t.line > ? ORDER BY t.line LIMIT {ROWS}
"""


class Known(NamedTuple):
    """The last conversion of a task that had the same options and whose outputs still exist."""

    hash: str
    """Hash of the source at its last conversion."""
    is_same: bool
    """Whether size and date of the source are unchanged since then."""


class HeldError(MeshferryError):
    """Another process holds the lock of a journal."""


class State:
    """The state of an output folder. Only one process at a time can open it.

    A context manager: entering it creates the folder and locks it, :meth:`start` opens the files.

    Parameters
    ----------
    output:
        The output folder.
    has_journal:
        Write ``journal.jsonl`` too.

    Raises
    ------
    HeldError
        From ``with``: another process holds the lock.
    MeshferryError
        From ``with`` or :meth:`start`: the folder cannot be written to.
    """

    def __init__(self, output: Path, *, has_journal: bool = True) -> None:
        self.output = output
        self._folder = output / STATE_FOLDER
        self.journal_path = self._folder / JOURNAL_FILE
        self._has_journal = has_journal
        self._journal: JournalFile | None = None
        self._end = 0
        """Size of the journal, also if it is not written."""
        self._options = ""
        self._plan: Plan | None = None
        self._db: sqlite3.Connection | None = None
        self._commit_seconds = _COMMIT_SECONDS if has_journal else 0.0
        self._committed = time.monotonic()
        self._is_changed = False
        self._lock: IO[bytes] | None = None
        self._created: list[Path] = []
        """Folders that did not exist, the innermost first."""

    def __enter__(self) -> Self:
        try:
            self._created = [folder for folder in self.journal_path.parents if not folder.exists()]
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = locks.hold(self._lock_path)
        except OSError as problem:
            raise MeshferryError(f"{self.journal_path}: the journal cannot be written: {refusal(problem)}") from None
        if self._lock is None:
            raise HeldError(
                f"{self.output}: another batch is writing to this folder; wait for it, or name another with -o"
            )
        return self

    def close(self) -> None:
        """Close a state opened with :meth:`read`."""
        self._close_files()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_unused = self._db is None
        self._close_files()
        if self._lock is None:
            return
        if is_unused and self._created:  # the run ended before it wrote anything
            locks.remove(self._lock_path, self._lock)
            for folder in self._created:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        elif is_unused and not self.journal_path.exists():
            locks.remove(self._lock_path, self._lock)
            with contextlib.suppress(OSError):
                self._folder.rmdir()
        self._lock.close()
        self._lock = None

    @property
    def _lock_path(self) -> Path:
        return self.journal_path.with_name(JOURNAL_FILE + LOCK_SUFFIX)

    def start(self, plan: Plan) -> None:
        """Start a run of a plan: import missing journal lines and merge the journals of shards."""
        with self._errors():
            self._db = self._open()
            self._import_journal()
            if self._has_journal:
                self._journal = JournalFile(self.journal_path, self._end)
            self._attach(plan)
            line = journal.header(self._options)
            rows = fetch(self._db, "SELECT line FROM header")
            if self._journal is not None and (not rows or rows[0][0] != line or not self._end):
                self._write(line)
                self._set_header(line)
            self._merge_shards()

    def read(self, plan: Plan) -> None:
        """Open the state of the last finished run for reading, instead of :meth:`start`."""
        path = self._folder / STATE_FILE
        with self._errors():
            if path.is_file():
                self._db = connect(path, immutable=1)
            else:
                self._db = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
                self._db.executescript(_SCHEMA)
            self._attach(plan)

    def _attach(self, plan: Plan) -> None:
        self._require().execute("ATTACH ? AS plan", (uri(plan.path, immutable=1),))
        self._plan = plan
        self._options = plan.head.digest

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks of the plan with their last conversion, if that is still valid."""
        start, plan = 0, self._require_plan()
        while rows := self._fetch(_PENDING, (self._options, start)):
            for row in rows:
                task = plan.task(row[:7])
                hashed, outputs, is_same = row[7:]
                is_valid = hashed is not None and outputs_exist(json.loads(outputs), self.output)
                yield task, Known(hashed, bool(is_same)) if is_valid else None
            start = rows[-1][0] + 1

    def results(self) -> Iterator[Result]:
        """Yield the last result of each task of the plan, in their order; tasks without a result are left out."""
        start, plan = 0, self._require_plan()
        while rows := self._fetch(_RESULTS, (start,)):
            for row in rows:
                if (entry := journal.parse(row[7].encode("ascii"))) is not None:
                    yield entry.to_result(plan.task(row[:7]))
            start = rows[-1][0] + 1

    def append(self, result: Result) -> None:
        """Store a result. If the source is unchanged, outputs, warnings and facts of its last conversion are kept.

        Raises
        ------
        MeshferryError
            The state cannot be written: the disk is full, for example.
        """
        entry = entry_of(result, self._options, self.output)
        if result.status is Status.UNCHANGED and (before := self._entry(entry.target)) is not None:
            entry.hash = entry.hash or before.hash
            entry.outputs, entry.warnings, entry.facts = before.outputs, before.warnings, before.facts
        with self._errors():
            self._begin()
            line = entry.line()
            self._write(line)
            self._store(entry, line)
            self._commit()

    def compact(self) -> None:
        """Rewrite the journal if later lines replace earlier ones. If that fails, the old journal is kept."""
        with self._errors():
            self._commit(now=True)
            if self._journal is None or not self._value("PRAGMA user_version"):
                return
            expected = self._value("SELECT count(*) FROM results") + 1
            if self._count_lines() != expected:
                self._rewrite_journal()
            self._execute("PRAGMA user_version = 0")
            self._is_changed = False

    def export_journal(self, path: Path) -> None:
        """Write all results to another journal.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with path.open("wb") as stream:
            stream.writelines(self._lines())
            stream.flush()
            os.fsync(stream.fileno())

    def _open(self) -> sqlite3.Connection:
        """Open the database; replace it by a new one if the file is damaged."""
        path = self._folder / STATE_FILE
        try:
            return self._connect(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            pass
        for suffix in ("", "-wal", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        return self._connect(path)

    def _connect(self, path: Path) -> sqlite3.Connection:
        """Open the database with a write-ahead log, or without one on network disks that do not support it.

        With exclusive locking, the index of the log is in memory instead of in a shared memory file.
        """
        db = connect(path)
        try:
            modes = [
                db.execute(f"PRAGMA {mode}").fetchone()[0] for mode in ("locking_mode=EXCLUSIVE", "journal_mode=WAL")
            ]
        except sqlite3.OperationalError:
            db.close()
            db, modes = connect(path, nolock=1), []  # disks without locks: the folder has a separate lock file
        if modes != ["exclusive", "wal"]:
            db.execute("PRAGMA journal_mode=TRUNCATE")
            self._commit_seconds = _SLOW_COMMIT_SECONDS
        db.execute("PRAGMA synchronous=NORMAL")
        if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        return db

    def _import_journal(self) -> None:
        """Import the journal lines that are not in the state."""
        size = self.journal_path.stat().st_size if self.journal_path.exists() else 0
        self._end = self._value("SELECT journal_end FROM results ORDER BY id DESC LIMIT 1") or 0
        if self._end > size:
            self._end = size  # the journal was removed or truncated; it is rewritten at the end
            self._mark_changed()
        if self._end and not self._ends_line(self._end):
            self._end = 0  # another journal
        if self._end == size:
            return
        self._begin()
        for line in journal.read_lines(self.journal_path, self._end):
            self._end += len(line)
            if line.startswith(journal.HEADER_START):
                self._set_header(line)
            elif (entry := journal.parse(line)) is not None and self._is_newer(entry):
                self._store(entry, entry.line())
        self._commit(now=True)

    def _ends_line(self, offset: int) -> bool:
        with self.journal_path.open("rb") as stream:
            stream.seek(offset - 1)
            return stream.read(1) == b"\n"

    def _merge_shards(self) -> None:
        """Merge the journals of shards and remove them; skip those that are still being written."""
        for path in sorted((self._folder / SHARDS_FOLDER).glob("*.jsonl")):
            lock_path = path.with_name(path.name + LOCK_SUFFIX)
            held = locks.hold(lock_path)
            if held is None:
                continue
            try:
                self.merge(journal.read_lines(path))
                remove_file(path)
            finally:
                locks.remove(lock_path, held)

    def merge(self, lines: Iterable[bytes]) -> None:
        """Merge the journal lines of a shard."""
        self._begin()
        for read in lines:
            if (entry := journal.parse(read)) is not None and self._is_newer(entry):
                line = entry.line()
                self._write(line)
                self._store(entry, line)
        if self._journal is not None:
            self._journal.sync()
        self._commit(now=True)

    def _begin(self) -> None:
        if not self._require().in_transaction:
            self._execute("BEGIN")

    def _commit(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if self._require().in_transaction and (now or moment - self._committed >= self._commit_seconds):
            self._committed = moment
            self._execute("COMMIT")

    def _write(self, line: bytes) -> None:
        if self._journal is not None:
            self._journal.write(line)
            self._end = self._journal.end

    def _mark_changed(self) -> None:
        if not self._is_changed:
            self._is_changed = True
            self._execute("PRAGMA user_version = 1")

    def _entry(self, target: str) -> Entry | None:
        rows = self._fetch(_ENTRY, (to_sql(target),))
        return journal.parse(rows[0][0].encode("ascii")) if rows else None

    def _is_newer(self, entry: Entry) -> bool:
        before = self._entry(entry.target)
        return before is None or before.time <= entry.time

    def _store(self, entry: Entry, line: bytes) -> None:
        self._mark_changed()
        names = [to_sql(name) for name in (entry.target, entry.source, entry.member)]
        values = (entry.size, entry.modified, entry.hash, entry.options, entry.result, line.decode("ascii"), self._end)
        self._execute(_STORE, (*names, *values))

    def _set_header(self, line: bytes) -> None:
        self._execute("DELETE FROM header")
        self._execute("INSERT INTO header VALUES (?)", (line,))

    def _lines(self) -> Iterator[bytes]:
        yield from (line for (line,) in self._fetch("SELECT line FROM header"))
        start = 0
        while rows := self._fetch(f"SELECT id, entry FROM results WHERE id > ? ORDER BY id LIMIT {ROWS}", (start,)):
            yield from (entry.encode("ascii") for _, entry in rows)
            start = rows[-1][0]

    def _count_lines(self) -> int:
        with self.journal_path.open("rb") as stream:
            return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))

    def _rewrite_journal(self) -> None:
        if self._journal is None:
            return
        with contextlib.suppress(OSError):
            handle, temporary = temporary_file(self.journal_path)
            os.close(handle)
            try:
                self.export_journal(Path(temporary))
                copy_mode(self.journal_path, temporary)
                self._journal.close()  # Windows cannot replace open files
                rename_over(temporary, self.journal_path)
                self._end = self.journal_path.stat().st_size
                self._execute(
                    "UPDATE results SET journal_end = ? WHERE id = (SELECT max(id) FROM results)", (self._end,)
                )
            finally:
                with contextlib.suppress(OSError):
                    remove_file(temporary)
        self._journal = JournalFile(self.journal_path, self.journal_path.stat().st_size)

    def _require(self) -> sqlite3.Connection:
        if self._db is None:
            raise ValueError("the state is not started")
        return self._db

    def _require_plan(self) -> Plan:
        if self._plan is None:
            raise ValueError("the state is not started")
        return self._plan

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> None:
        self._require().execute(statement, values)

    def _fetch(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._errors():
            return fetch(self._require(), statement, values)

    def _value(self, statement: str) -> Any:
        rows = self._fetch(statement)
        return rows[0][0] if rows else None

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as problem:
            reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
            raise MeshferryError(f"{self._folder}: the state cannot be written: {reason}") from None

    def _close_files(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._commit(now=True)
            self._db.close()
            self._db = None
