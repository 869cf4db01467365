"""From the works of a plan to the lines of the journal: what is to do goes to the workers, what they say is kept.

Everything passes through: neither the plan nor the results are ever held as a whole.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

from ...io_formats.core.errors import MeshferryError
from ..reporting import cause
from .finding.archives import ArchiveReader
from .journal.journal import Journal
from .plan.plan_file import Plan
from .report.picture_files import PictureRun
from .tasks import LoadedTask, Result, Status, Task, TaskKind
from .totals import Totals

_FULL = 1 << 20
"""Bytes left on a disk that counts as full once a file failed there."""


class Workers(Protocol):
    """Whoever does tasks: :class:`.workers.pool.Pool`."""

    def run(self, tasks: Iterable[LoadedTask]) -> Iterator[Result]:
        """Do all tasks, taken in this thread a few ahead; yield what became of each as it ends."""


class Listener(Protocol):
    """Whoever shows how far things are: :class:`.progress.Progress`."""

    def begin(self, what: str, count: int) -> None:
        """Tell what is done from now on, in a word, and to how many works."""

    def skipped(self, task: Task) -> None:
        """Tell of a work that there is nothing to do for."""

    def ended(self, result: Result) -> None:
        """Tell how a task ended."""


class DiskFullError(MeshferryError):
    """There is no room for what is still to be written; the run ends."""


def run(
    plan: Plan,
    journal: Journal,
    pool: Workers,
    *,
    output: Path,
    progress: Listener,
    tasks: Iterable[Task] | None = None,
    count: int | None = None,
    checksum: bool = False,
) -> Totals:
    """Convert what is new, changed or failed; skip what was done and is as it was.

    Parameters
    ----------
    journal:
        Held and started.
    output:
        The output folder.
    works, count:
        A part of the plan, and how many works that is; default: all of it.
    checksum:
        Look at the content of sources with the same size and date, too.

    Raises
    ------
    MeshferryError
        The run cannot go on: the disk is full, or no worker starts. What was done stands in the journal, and in the
        :attr:`Run.totals` of who made a :class:`Run` to look at them nevertheless.
    """
    return Run(plan, journal, output=output, progress=progress, checksum=checksum).convert(pool, tasks, count)


class Run:
    """One way through a plan, or through a part of it; the parameters are those of :func:`run`."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        *,
        output: Path,
        progress: Listener,
        checksum: bool = False,
    ) -> None:
        self.totals = Totals()
        self._plan = plan
        self._journal = journal
        self._output = output
        self._progress = progress
        self._checksum = checksum
        self._archives = _Archives(plan)

    def convert(self, pool: Workers, tasks: Iterable[Task] | None = None, count: int | None = None) -> Totals:
        """Do what is to do of some works, or of all; return :attr:`totals`."""
        self._progress.begin("converting", self._plan.count if count is None else count)
        loading = self._load_tasks(self._plan.tasks() if tasks is None else tasks)
        started = time.monotonic()
        try:
            with self._archives, closing(_results(pool, loading)) as results:
                for result in results:
                    self._settle(result)
        finally:
            self.totals.seconds += time.monotonic() - started
        return self.totals

    def draw(self, pool: Workers) -> str:
        """Have the pictures drawn that the report lacks; return why there are none, where this machine cannot.

        Parameters
        ----------
        pool:
            Of this machine.
        """
        pictures = PictureRun(self._output)
        self._progress.begin("drawing", self._plan.count)
        with self._archives, closing(_results(pool, self._pictures_to_draw(pictures))) as results:
            for result in results:
                pictures.note(result)
                self._progress.ended(result)
        return pictures.problem

    def _load_tasks(self, tasks: Iterable[Task]) -> Generator[LoadedTask, None, None]:
        for task in tasks:
            known = self._journal.known(task)
            if known is not None and known.is_same and not self._checksum:
                self.totals.skipped += 1
                self._progress.skipped(task)
                continue
            try:
                content = self._archives.content(task)
            except MeshferryError as problem:
                self._settle(Result(task, Status.FAILED, error=cause(problem)))
                continue
            yield LoadedTask(task, known_hash=known.hash if known is not None else "", content=content)

    def _pictures_to_draw(self, pictures: PictureRun) -> Generator[LoadedTask, None, None]:
        for result in self._journal.results(self._plan.tasks()):
            if not pictures.wants(result):
                self._progress.skipped(result.task)
                continue
            try:
                content = self._archives.content(result.task)
            except MeshferryError:
                self._progress.skipped(result.task)
                continue
            yield LoadedTask(result.task, TaskKind.PICTURE, known_hash=result.hash, content=content)

    def _settle(self, result: Result) -> None:
        """Keep what became of a work."""
        self._journal.append(result)
        self.totals.add(result)
        self._progress.ended(result)
        if result.status is Status.FAILED and _is_full(self._output, result.error):
            raise DiskFullError(f"{self._output}: the disk is full; make room and run the same command again")


class _Archives:
    """The archive that the works are in at the moment, read in its order."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._path: Path | None = None
        self._reader: ArchiveReader | None = None

    def __enter__(self) -> _Archives:
        return self

    def __exit__(self, *_problem: object) -> None:
        self._close()

    def content(self, task: Task) -> bytes | None:
        """Return what is in the source of a work where it is inside an archive.

        Raises
        ------
        FormatError
            The archive, or this place in it, cannot be read.
        """
        if not task.member:
            return None
        path = self._plan.path_of(task)
        if path != self._path or self._reader is None:
            self._close()
            self._path, self._reader = path, ArchiveReader(path)
            self._reader.__enter__()
        return self._reader.content(task.member)

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.__exit__(None, None, None)
        self._path = self._reader = None


def _results(pool: Workers, loading: Generator[LoadedTask, None, None]) -> Generator[Result, None, None]:
    """Pass on what a pool says, with both ends closed at once when the run is over or broken off."""
    with closing(loading):
        yield from pool.run(loading)


def _is_full(output: Path, error: str) -> bool:
    """Tell whether a file failed for want of room, in which case all that follow would."""
    if any(os.strerror(number) in error for number in (errno.ENOSPC, errno.EDQUOT)):
        return True
    try:
        return shutil.disk_usage(output).free < _FULL
    except OSError:
        return False
