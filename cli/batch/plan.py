"""The plan of a batch: an SQLite file with one row for each file to write.

Each run writes a new one. A complete plan is never changed, so workers and other machines open it as immutable: without
locks, and without the files of transactions that a stranger may have put beside it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from ...io_formats.core.errors import FormatError
from ...io_formats.disk.atomic_write import copy_mode, rename_over, temporary_file
from ...io_formats.disk.file_names import cautious_key
from ..conversions.convert_plan import known_kind
from ..conversions.settings import Settings
from .tasks import PLAN_FILE, Task

TASK_COLUMNS = "line - 1, root, path, member, target, size, modified"
_SCHEMA = """\
CREATE TABLE head (json TEXT NOT NULL);
CREATE TABLE tasks (
  line INTEGER PRIMARY KEY, root INTEGER NOT NULL, path TEXT NOT NULL, member TEXT NOT NULL, target TEXT NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL
);
CREATE TABLE names (name INTEGER PRIMARY KEY)"""
"""``names``: :func:`name_hash` of all targets and of all sources in the output folder, which nothing may overwrite."""
_INSERT = "INSERT INTO tasks VALUES (?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?, ?)"


@dataclass(frozen=True, slots=True)
class PlanHead:
    """Options and roots of a plan."""

    settings: Settings
    """Settings of the conversion."""
    version: str
    """Version of Meshferry."""
    roots: tuple[str, ...] = ()
    """Absolute folders of the sources."""
    count: int = 0
    """Number of tasks."""

    @property
    def extension(self) -> str:
        """Extension of the files to write, with its dot."""
        return known_kind(self.settings.to)[0]

    @property
    def digest(self) -> str:
        """Hash of everything but the source that affects the output. A task with another digest is done again."""
        text = json.dumps([self.version, self.settings.to, self.extension, list(self.settings.spelled())])
        return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()


def name_hash(name: str) -> int:
    """Return a 64-bit hash of a path, equal for names that any operating system treats as the same file.

    A million names have a collision in one of thirty million batches; it only adds an unneeded number to one name.
    """
    return text_hash(cautious_key(name))


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a text as a signed integer, the integer type of SQLite."""
    return int.from_bytes(hashlib.blake2b(to_sql(text), digest_size=8).digest(), "little", signed=True)


def to_sql(text: str) -> bytes:
    """Return a name as a parameter for ``CAST(? AS TEXT)``: SQLite accepts lone surrogates only as bytes."""
    return text.encode("utf-8", "surrogatepass")


def connect(path: Path, **options: object) -> sqlite3.Connection:
    """Open a database in autocommit mode with these options of SQLite; names in it may have lone surrogates."""
    name = str(path.absolute()).replace(os.sep, "/")
    start = "" if name.startswith("/") else "/"
    query = "&".join(f"{option}={value}" for option, value in options.items())
    uri = f"file://{start}{quote(name.encode('utf-8', 'surrogateescape'))}?{query}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
    connection.text_factory = functools.partial(str, encoding="utf-8", errors="surrogatepass")
    return connection


class Plan:
    """A complete plan.

    Parameters
    ----------
    folder:
        The state folder with the plan.

    Raises
    ------
    FormatError
        The plan is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / PLAN_FILE
        if not self.path.is_file():
            raise FormatError("There is no plan of a batch here", file=folder)
        with _errors_of(self.path), contextlib.closing(connect(self.path, immutable=1)) as connection:
            if ";\n".join(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")) != _SCHEMA:
                raise ValueError("there is a view, for example, which may never end")
            values = json.loads(connection.execute("SELECT json FROM head").fetchone()[0])
            settings = Settings(**values.pop("settings"))
            self.head = PlanHead(settings, **values | {"roots": tuple(values["roots"])})
            self.last_line: int = connection.execute("SELECT coalesce(max(line), 0) FROM tasks").fetchone()[0]
            """Highest line, counted from 1."""
        self.count = self.head.count
        """Number of tasks."""
        self.roots = self.head.roots

    def path_of(self, task: Task) -> Path:
        """Return the path of a task's source, or of the archive around it."""
        return Path(self.roots[task.root], task.path)

    def describe(self, task: Task) -> str:
        """Return the complete path of a task's source for messages, with the member of an archive."""
        path = str(self.path_of(task))
        return f"{path}: {task.member}" if task.member else path

    def tasks(self, start: int = 0, stop: int | None = None) -> Iterator[Task]:
        """Yield the tasks from number ``start`` to before ``stop``.

        Raises
        ------
        FormatError
            The plan is damaged, or a target is not below the output folder.
        """
        statement = f"SELECT {TASK_COLUMNS} FROM tasks WHERE line > ? AND line <= ? ORDER BY line"
        stop = self.last_line if stop is None else stop
        with _errors_of(self.path), contextlib.closing(connect(self.path, immutable=1)) as connection:
            for task in map(Task._make, connection.execute(statement, (start, stop))):
                if not 0 <= task.root < len(self.roots) or not _is_below(task.target):
                    raise FormatError("Line {:,} of the plan is not valid", task.number + 1, file=str(self.path))
                yield task


class PlannedNames:
    """Reserved names below the output folder: targets, and sources in that folder.

    A source may become several files, whose names are known only once it is read. Workers choose these names.
    """

    def __init__(self, plan: Path) -> None:
        """Read the names of a plan file; without a plan no name is reserved."""
        self._path = plan if plan.is_file() else None
        self._connection: sqlite3.Connection | None = None

    def __contains__(self, name: object) -> bool:
        if self._path is None or not isinstance(name, str):
            return False
        if self._connection is None:
            self._connection = connect(self._path, immutable=1)
        row = self._connection.execute("SELECT 1 FROM names WHERE name = ?", (name_hash(name),)).fetchone()
        return row is not None

    def close(self) -> None:
        """Close the file until the next query.

        Windows cannot replace open files, and a worker may outlive its driver when the next one makes a new plan.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextlib.contextmanager
def new_plan(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for a plan, which replaces the plan of a folder if the block ends without an exception.

    Its name is random until then: SQLite would use a file ``…-journal`` that a stranger has put beside it.
    """
    place = folder / PLAN_FILE
    handle, temporary = temporary_file(place)
    try:
        with os.fdopen(handle, "rb+"):  # locked, so that no batch removes it
            with contextlib.closing(connect(Path(temporary), nolock=1)) as connection:
                connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN; {_SCHEMA}")
                yield connection
                connection.execute("COMMIT")
            os.fsync(handle)
            copy_mode(place, temporary)
        rename_over(temporary, place)
    finally:
        Path(temporary).unlink(missing_ok=True)


def insert_tasks(connection: sqlite3.Connection, rows: Iterable[Sequence[object]]) -> None:
    """Insert rows of line, root, path, member, target, size and time of change, with names from :func:`to_sql`."""
    connection.executemany(_INSERT, rows)


def set_head(connection: sqlite3.Connection, head: PlanHead) -> None:
    """Store the head of a new plan."""
    connection.execute("INSERT INTO head VALUES (?)", (json.dumps(dataclasses.asdict(head)),))


@contextlib.contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except FormatError:
        raise
    except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise FormatError("This is not a plan of a batch; start the batch again to make it", file=str(path)) from None


def _is_below(target: str) -> bool:
    """Return whether a target stays inside the output folder."""
    parts = target.replace(os.sep, "/").split("/")
    return ".." not in parts and bool(parts[0]) and not os.path.splitdrive(target)[0]
