"""What a batch has done so far, one line a file, appended to: a kill at any moment loses the line under way at most.

The last line of a target counts. Targets that no plan has any more stay: their files are there, too, and a later run
over more sources finds them done.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import copy_mode, refusal, remove_file, rename_over, temporary_file
from ... import environment
from ..tasks import JOURNAL_FILE, SHARDS_FOLDER, STATE_FOLDER, Result, Status, Task
from .journal_entry import Entry, entry_of, file_size, parse
from .journal_index import Index

LOCK_SUFFIX = ".lock"
_SYNC_SECONDS = 5.0
"""How long the system may keep lines to itself: what a power cut loses at most, and is done again then."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Known:
    """A work that was done before, with the same options, and whose outputs are still there."""

    hash: str
    """Of the source as it was then."""
    is_same: bool
    """The source has the size and the date that it had then."""
    entry: Entry


class HeldError(MeshferryError):
    """Another process holds the journal."""


class Journal:
    """The journal of an output folder, which one process at a time may hold.

    Parameters
    ----------
    output:
        The output folder; made where it is not there.
    file:
        Another journal than the folder's own: that of a part of the plan, in ``shards/``.

    Raises
    ------
    HeldError
        From ``with``: another process holds it.
    MeshferryError
        From ``with``: the folder cannot be written to.
    """

    def __init__(self, output: Path, file: Path | None = None) -> None:
        self.output = output
        self.path = file or output / STATE_FOLDER / JOURNAL_FILE
        self.options = ""
        """Digest of the options of this run, as :meth:`start` was told."""
        self._made: list[Path] = []
        """Folders that were not there, the innermost first."""
        self._lock: IO[bytes] | None = None
        self._lines: IO[bytes] | None = None
        """Unbuffered, so that a line is with the system once it is written."""
        self._old: IO[bytes] | None = None
        """For reading back; opened when first needed."""
        self._index = Index.of_nothing()
        self._appended = 0
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        try:
            self._made = [folder for folder in self.path.parents if not folder.exists()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = locks.hold(_lock_path(self.path))
            if self._lock is None:
                raise HeldError(
                    f"{self.output}: another batch is writing to this folder; wait for it, or name another with -o"
                )
            self._index = Index.read(self.path)
            self._open(cut=True)
        except OSError as problem:
            self._close()
            raise MeshferryError(f"{self.path}: the journal cannot be written: {refusal(problem)}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def start(self, options: str) -> None:
        """Begin a run with the options of this digest; works that were done with others are not known."""
        self.options = options
        header = {"journal": _VERSION, "meshferry": environment.version(), "options": options}
        line = json.dumps(header, separators=(",", ":")).encode("ascii") + b"\n"
        if line != self._index.header:
            self._write(line)

    def known(self, task: Task) -> Known | None:
        """Return what earlier runs know of a work, if that still holds; results of this run do not count.

        The outputs have to be there, with the sizes that they were written with.
        """
        entry = self._entry(task.target)
        return None if entry is None else still_holds(entry, task, self.options, self.output)

    def append(self, result: Result) -> Entry:
        """Write down how a work ended; return what was written.

        Of an unchanged one, what was written down when it was done stays, with the new date of the source.

        Raises
        ------
        MeshferryError
            The disk is full, say; the journal ends with the line before.
        """
        entry = entry_of(result, self.options, self.output)
        before = self._entry(entry.target) if result.status is Status.UNCHANGED else None
        if before is not None:
            entry.hash = entry.hash or before.hash
            entry.outputs, entry.warnings, entry.facts = before.outputs, before.warnings, before.facts
        self._write(entry.line())
        self._appended += 1
        return entry

    def results(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Return what is known of each work, in their order; works that were never done are left out."""
        self._renew()
        for task in tasks:
            entry = self._entry(task.target)
            if entry is not None:
                yield entry.told(task)

    def entries(self) -> Iterator[Entry]:
        """Return the line that counts of each target, in the order in which they were written."""
        self._renew()
        with self.path.open("rb") as stream:
            for offset in self._index.in_order():
                entry = parse(_line_at(stream, offset))
                if entry is not None:
                    yield entry

    def take_over(self, shard: Path) -> list[Entry]:
        """Append the journal of a part of the plan that was done elsewhere and remove it; return its entries.

        One that is still being written stays for later, and gives none.
        """
        if not shard.exists():
            return []
        lock_path = _lock_path(shard)
        held = locks.hold(lock_path)
        if held is None:
            return []
        try:
            index = Index.read(shard)
            with shard.open("rb") as stream:
                entries = [entry for offset in index.in_order() if (entry := parse(_line_at(stream, offset)))]
            for entry in entries:
                self._write(entry.line())
            self._appended += len(entries)
            self._sync()
            remove_file(shard)
        except OSError as problem:
            raise MeshferryError(f"{shard}: it cannot be taken into the journal: {refusal(problem)}") from None
        finally:
            locks.remove(lock_path, held)
        return entries

    def take_over_shards(self) -> int:
        """Take over all parts of the plan that were done elsewhere; they are known from then on. Return their lines."""
        shards = sorted((self.output / STATE_FOLDER / SHARDS_FOLDER).glob("*.jsonl"))
        taken = sum(len(self.take_over(shard)) for shard in shards)
        self._renew()
        return taken

    def compact(self) -> None:
        """Drop lines that later ones replace; where the disk refuses, the journal stays as it is, which is no worse."""
        self._renew()
        if not self._index.superseded:
            return
        try:
            handle, temporary = temporary_file(self.path)
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as stream, self.path.open("rb") as old:
                stream.write(self._index.header)
                stream.writelines(_line_at(old, offset) for offset in self._index.in_order())
                stream.flush()
                os.fsync(stream.fileno())
            copy_mode(self.path, temporary)
            self._close_files()  # no open file can be replaced on Windows
            rename_over(temporary, self.path)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                remove_file(temporary)
            self._close_files()
            self._index = Index.read(self.path)
            self._open()

    def _entry(self, target: str) -> Entry | None:
        offset = self._index.find(target)
        if offset < 0:
            return None
        if self._old is None:
            self._old = self.path.open("rb")
        entry = parse(_line_at(self._old, offset))
        return entry if entry is not None and entry.target == target else None

    def _renew(self) -> None:
        """Count in what was appended."""
        if self._appended:
            self._index = Index.read(self.path)
            self._appended = 0

    def _write(self, line: bytes) -> None:
        """Append a line, whole or not at all.

        Raises
        ------
        MeshferryError
            The system refuses.
        """
        if self._lines is None:
            raise ValueError("a journal is written to inside its with block")
        begun = self._lines.tell()
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._lines.write(rest) :]
        except OSError as problem:
            with contextlib.suppress(OSError):
                self._lines.truncate(begun)
            raise MeshferryError(f"{self.path}: the journal cannot be written: {refusal(problem)}") from None
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync()

    def _sync(self) -> None:
        self._synced = time.monotonic()
        if self._lines is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._lines.fileno())

    def _open(self, *, cut: bool = False) -> None:
        self._lines = self.path.open("ab", buffering=0)
        if cut:
            self._lines.truncate(self._index.end)
            self._lines.seek(0, os.SEEK_END)

    def _close_files(self) -> None:
        for stream in (self._old, self._lines):
            if stream is not None:
                stream.close()
        self._old = self._lines = None

    def _close(self) -> None:
        self._sync()
        is_empty = self._lines is not None and self._lines.tell() == 0
        self._close_files()
        if self._lock is None:
            return
        if is_empty:  # refused before anything was written: nothing stays
            self.path.unlink(missing_ok=True)
            locks.remove(_lock_path(self.path), self._lock)
            for folder in self._made:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        self._lock.close()
        self._lock = None


def still_holds(entry: Entry, task: Task, options: str, output: Path) -> Known | None:
    """Return what a line tells of a work if that still holds, see :meth:`Journal.known`."""
    if entry.options != options or not Status(entry.result).is_good:
        return None
    if (entry.source, entry.member) != (task.path, task.member) or not entry.hash or not entry.outputs:
        return None
    if any(size < 0 or file_size(output / name) != size for name, size in entry.outputs.items()):
        return None
    return Known(entry.hash, (entry.size, entry.modified) == (task.size, task.modified), entry)


def _lock_path(journal: Path) -> Path:
    return journal.with_name(journal.name + LOCK_SUFFIX)


def _line_at(stream: IO[bytes], offset: int) -> bytes:
    stream.seek(offset)
    return stream.readline()
