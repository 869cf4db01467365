"""Planning of a batch: choose a unique target for each source.

The sources are iterated once. SQLite sorts hashes of the names, so that memory is bounded for a million sources; names
are compared as text only if their hashes are equal.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import MeshferryError, refusal
from ...io_formats.disk.file_names import rules_of
from ...io_formats.partner_files import PartnerFiles, reads_partners
from .. import inputs
from ..conversions.convert_plan import refuse_levels, renamed
from .plan import TASK_COLUMNS, Plan, PlanHead, insert_tasks, name_hash, new_plan, set_head, text_hash, to_sql
from .tasks import STATE_FOLDER, SourceFile, Task

_NAMED = 3
"""Clashes that an error message lists; further ones are counted."""
_TEMPORARY = {
    "keys": "(line INTEGER PRIMARY KEY, source INTEGER, name INTEGER)",
    "inside": "(name INTEGER, line INTEGER)",
    "links": "(line INTEGER PRIMARY KEY, source INTEGER)",
    "partners": "(source INTEGER)",
}
"""``keys``: hashes of source and target. ``inside``: sources in the output folder, by the hash of their path there.
``links``: targets that exist as links, with the hash of the linked file. ``partners``: sources that are read with the
main file of their set."""
_REMOVE_DUPLICATES = """
DELETE FROM keys WHERE line IN (
  SELECT line FROM (
    SELECT line, row_number() OVER (PARTITION BY source ORDER BY line) AS copy FROM keys
    WHERE source IN (SELECT source FROM keys GROUP BY source HAVING count(*) > 1)
  ) WHERE copy > 1
)
"""
_REMOVE_PARTNERS = "DELETE FROM keys WHERE source IN (SELECT source FROM partners)"
_OVERWRITTEN = """
SELECT k.line, min(i.line), 0 FROM keys k JOIN inside i ON i.name = k.name GROUP BY k.line
UNION ALL SELECT l.line, min(k.line), 1 FROM links l CROSS JOIN keys k ON k.source = l.source GROUP BY l.line
"""
"""Selects rows whose target may be a source file, with the row of the source and 1 if it is the same file for sure."""
_FIND_LATER = """
CREATE TEMP TABLE later AS SELECT line, first, name FROM (
  SELECT line, name, min(line) OVER (PARTITION BY key) AS first FROM (
    SELECT line, name, CASE min(target) OVER equal WHEN max(target) OVER equal THEN name
    ELSE name_key(CAST(target AS BLOB)) END AS key
    FROM keys JOIN tasks USING (line) WHERE name IN (SELECT name FROM keys GROUP BY name HAVING count(*) > 1)
    WINDOW equal AS (PARTITION BY name)
  )
) WHERE line > first
"""
"""Selects rows whose target an earlier row has, each with the first row of that target. ``name_key``, which writes a
file to probe the output folder, is called only for names that differ."""


def make_plan(
    sources: Iterable[SourceFile],
    output: Path,
    head: PlanHead,
    *,
    numbers: bool = False,
    folder: Path | None = None,
) -> Plan:
    """Choose the target of every source and write the plan of an output folder.

    The caller holds the lock of the output folder. An earlier plan stays until the new one is complete.

    Parameters
    ----------
    sources:
        Iterated once. A source that is found twice is used once.
    head:
        Options of the batch; its roots and count are filled in.
    numbers:
        If several sources would become one file, number the later ones (``x.blend``, ``x_2.blend``) in the order of the
        sources. A number never results in the name of another target.
    folder:
        The folder to write the plan into; default: ``meshferry-batch`` of the output folder.

    Raises
    ------
    MeshferryError
        Files would clash or overwrite a source, or the plan cannot be written.
    """
    if os.path.isfile(output):
        raise MeshferryError("{} is a file, not a folder", output)
    folder = folder or output / STATE_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new_plan(folder) as connection:
            refuse_levels(head.settings.read_options)
            draft = _Draft(connection, output, head)
            draft.load(sources)
            draft.refuse_overwriting()
            draft.resolve_clashes(numbers=numbers)
            count = draft.value("SELECT count(*) FROM tasks")
            set_head(connection, dataclasses.replace(head, roots=tuple(draft.roots), count=count))
    except (OSError, sqlite3.Error) as problem:
        reason = refusal(problem) if isinstance(problem, OSError) else str(problem)
        raise MeshferryError("{}: the plan cannot be written: {}", folder, reason) from None
    return Plan(folder)


class _Draft:
    """The rows of a plan before clashes are resolved."""

    def __init__(self, connection: sqlite3.Connection, output: Path, head: PlanHead) -> None:
        self._connection = connection
        self._output = os.path.abspath(output)
        self._output_key = inputs.file_key(output).rstrip(os.sep) + os.sep
        self._extension = head.extension
        self._finder = PartnerFiles() if reads_partners(head.settings.read_options) else None
        self._real_folder = functools.lru_cache(256)(_real_folder)
        self._linked_names = functools.lru_cache(64)(lambda folder: _links_in(os.path.join(self._output, folder)))
        self.roots: dict[str, int] = {}
        """The folders of the sources, with their indices."""
        for table, columns in _TEMPORARY.items():
            connection.execute(f"CREATE TEMP TABLE {table} {columns}")

    def value(self, statement: str) -> Any:
        """Return the single value of a query."""
        return self._connection.execute(statement).fetchone()[0]

    def load(self, sources: Iterable[SourceFile]) -> None:
        """Insert a row for each source; remove the later rows of sources that were found repeatedly, and partners."""
        insert_tasks(self._connection, self._rows(sources))
        if sum(self._connection.execute(statement).rowcount for statement in (_REMOVE_DUPLICATES, _REMOVE_PARTNERS)):
            for table in ("tasks", "inside", "links"):
                self._connection.execute(f"DELETE FROM {table} WHERE line NOT IN (SELECT line FROM keys)")

    def _rows(self, sources: Iterable[SourceFile]) -> Iterator[Sequence[object]]:
        """Yield the rows of sources; fill the temporary tables."""
        execute = self._connection.execute
        for line, (root, path, member, place, own_size, changed, is_link) in enumerate(sources, 1):
            target = _renamed(place, self._extension)
            key = self._key(root, path)
            size, modified = own_size, changed
            parent, _, own = path.rpartition("/")
            folder = os.path.join(root, parent)
            partners = {} if self._finder is None or member else self._finder.names(folder, own)
            for partner in partners.values():
                execute("INSERT INTO partners VALUES (?)", (hash((self._key(root, f"{parent}/{partner}"), "")),))
                size, modified = _with_partner(os.path.join(folder, partner), size, modified)
            execute("INSERT INTO keys VALUES (?, ?, ?)", (line, hash((key, member)), name_hash(target)))
            for file in (key, inputs.file_key(Path(root, path))) if is_link else (key,):
                if (below := self._below(file)) is not None:
                    execute("INSERT INTO inside VALUES (?, ?)", (name_hash(below), line))
            if link := self._link(target):
                execute("INSERT INTO links VALUES (?, ?)", (line, hash((link, ""))))
            number = self.roots.setdefault(root, len(self.roots))
            yield line, number, to_sql(path), to_sql(member), to_sql(target), size, modified

    def refuse_overwriting(self) -> None:
        """Refuse targets that are sources.

        Raises
        ------
        MeshferryError
            A source would be overwritten.
        """
        self._connection.execute("CREATE INDEX inside_names ON inside (name)")
        messages: list[str] = []
        count = 0
        for line, source, is_certain in self._connection.execute(_OVERWRITTEN):
            if is_certain or self._is_overwritten(line, source):
                count += 1
                if count <= _NAMED:
                    victim = "itself" if line == source else f"the input {self._shown(source)}"
                    messages.append(f"{self._shown(line)} would overwrite {victim}")
        if count:
            raise MeshferryError("{}; nothing was written", _and_more(messages, count))

    def resolve_clashes(self, *, numbers: bool) -> None:
        """Find rows with the same target, number the later ones, and reserve all names.

        Raises
        ------
        MeshferryError
            Targets clash, and ``numbers`` is false.
        """
        execute = self._connection.execute
        names = execute("INSERT OR IGNORE INTO names SELECT name FROM keys ORDER BY name").rowcount
        has_clashes = names < self.value("SELECT count(*) FROM keys")
        execute("INSERT OR IGNORE INTO names SELECT name FROM inside")
        if not has_clashes:
            return
        self._connection.create_function(
            "name_key", 1, lambda target: text_hash(self._name_key(target.decode("utf-8", "surrogatepass")))
        )
        execute(_FIND_LATER)
        count = self.value("SELECT count(*) FROM later")
        if count and not numbers:
            messages = [
                f"{self._shown(first)} and {self._shown(line)} would both become {self._task(first).target}"
                for line, first in execute(f"SELECT line, first FROM later ORDER BY line LIMIT {_NAMED}")
            ]
            text = f"{_and_more(messages, count)}; use --clashes number to number them; nothing was written"
            raise MeshferryError(text)
        self._number()

    def _number(self) -> None:
        """Append numbers to the targets of the later rows."""
        execute = self._connection.execute
        last: tuple[int, int] = (0, 1)
        """Hash of the last target and the last number used for it."""
        for line, name in execute("SELECT line, name FROM later ORDER BY name, line"):
            number = last[1] if last[0] == name else 1
            stem = self._task(line).target[: -len(self._extension)]
            while True:
                number += 1
                target = f"{stem}_{number}{self._extension}"
                is_free = execute("INSERT OR IGNORE INTO names VALUES (?)", (name_hash(target),)).rowcount
                if is_free and not self._link(target):
                    break
            execute("UPDATE tasks SET target = CAST(? AS TEXT) WHERE line = ?", (to_sql(target), line))
            last = (name, number)

    def _is_overwritten(self, line: int, source: int) -> bool:
        """Return whether a target is a source on this system, not only on systems that compare names differently."""
        target, task = self._task(line).target, self._task(source)
        root = list(self.roots)[task.root]
        try:
            return os.path.samefile(os.path.join(self._output, target), os.path.join(root, task.path))
        except (OSError, ValueError):  # one of them does not exist
            below = self._below(self._key(root, task.path))
            return below is None or self._name_key(below) == self._name_key(target)

    def _task(self, line: int) -> Task:
        statement = f"SELECT {TASK_COLUMNS} FROM tasks WHERE line = ?"
        return Task._make(self._connection.execute(statement, (line,)).fetchone())

    def _shown(self, line: int) -> str:
        task = self._task(line)
        return os.path.join(list(self.roots)[task.root], task.source)

    def _name_key(self, name: str) -> str:
        """Return a key that is equal for names that the output folder treats as equal."""
        return rules_of(self._output).key(name)

    def _key(self, root: str, path: str) -> str:
        """Return one key for all spellings of a path. Links among its folders are resolved, the last part is not."""
        folder, _, name = path.rpartition("/")
        key = self._real_folder(root, folder) + name
        return key.casefold() if sys.platform in {"win32", "darwin"} else key

    def _below(self, key: str) -> str | None:
        """Return the path below the output folder; None if the file is elsewhere."""
        inside = key.startswith(self._output_key)
        return key[len(self._output_key) :].replace(os.sep, "/") if inside else None

    def _link(self, target: str) -> str:
        """Return the key of the file that a target is a link to; empty if it is not a link."""
        folder, _, name = target.rpartition("/")
        return inputs.file_key(Path(self._output, target)) if name in self._linked_names(folder) else ""


def _with_partner(path: str, size: int, modified: int) -> tuple[int, int]:
    """Return the total size of a set of files after one file is added, and the latest modification time (ns)."""
    try:
        info = os.stat(path)
    except OSError:
        return size, modified
    return size + info.st_size, max(modified, info.st_mtime_ns)


def _links_in(folder: str) -> frozenset[str]:
    """Return the names of the links in a folder; an empty set if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_symlink())
    except OSError:
        return frozenset()


def _real_folder(root: str, folder: str) -> str:
    return os.path.realpath(os.path.join(root, folder)).rstrip(os.sep) + os.sep


def _renamed(path: str, extension: str) -> str:
    """Return the target path with the new extension. Same result as :func:`renamed`, which is slower (20 µs a path)."""
    stem, dot, rest = path[path.rfind("/") + 1 :].partition(".")
    if not stem:  # a name such as ".mesh", which is not an extension
        return renamed(Path(path), extension).as_posix()
    return path[: len(path) - _suffix_length(dot + rest)] + extension


@functools.lru_cache(256)
def _suffix_length(dotted: str) -> int:
    """Return the number of characters at the end of a name that another extension replaces."""
    return len("x" + dotted) - len(renamed(Path("x" + dotted), "").name)


def _and_more(messages: Sequence[str], count: int) -> str:
    return "; ".join(messages) + (f"; and {count - len(messages):,} more" if count > len(messages) else "")
