"""Worker processes that do tasks, watched from outside: a crash or a hang costs one file."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from types import TracebackType

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ... import interruption
from ..tasks import LoadedTask, Result, Status
from . import messages
from .calling import Switchboard
from .converting import Setup
from .messages import Greeting
from .modest_session import threads_for
from .pool_worker import START_LIMIT, Handed, PoolWorker
from .starting import WorkerProcess, remove_abandoned_folders, worker_command

TIME_LIMIT = 600.0
"""Seconds that a file may take."""
RECYCLE_AFTER = 500
"""Files after which a fresh process takes over, so that what Blender does not give back does not pile up.

A start takes as long as a hundred small files, so one that has kept its size goes on.
"""
_LEAVING_LIMIT = 20.0
"""Seconds that a process without work has to end; one that is stopped, to end the file it is at."""
_HANDSHAKE = 0.5
"""Seconds within which the call of a process is taken that has ended meanwhile."""
_ATTEMPTS = 2
"""Processes that a file may bring down."""
_STARTS = 3
"""Starts in a row that may fail: a system short of memory may end a process that did nothing wrong."""


class Pool:
    """Some worker processes, from the first task to the end of the ``with`` block.

    Parameters
    ----------
    setup:
        What all tasks have in common.
    jobs:
        How many processes work at once.
    time_limit:
        Seconds of wall time for one file, after which its process is killed; 0: no limit.
    recycle_after:
        Files after which a process is replaced, unless it takes no more memory than at first; 0: never.
    command:
        What starts a worker; default: the same Python or Blender that runs this.
    """

    def __init__(
        self,
        setup: Setup,
        jobs: int,
        time_limit: float = TIME_LIMIT,
        recycle_after: int = RECYCLE_AFTER,
        *,
        command: Sequence[str] | None = None,
    ) -> None:
        self._jobs = max(1, jobs)
        self._setup = replace(setup, threads=setup.threads or threads_for(self._jobs))
        self._time_limit = time_limit
        self._recycle_after = recycle_after
        self._command = list(command) if command is not None else worker_command(self._setup.threads)
        self._switchboard: Switchboard | None = None
        self._numbers = itertools.count(1)
        self._workers: dict[int, PoolWorker] = {}
        self._leaving: list[tuple[WorkerProcess, float]] = []
        """Processes that end by themselves, and when that should have happened."""
        self._again: deque[Handed] = deque()
        """Tasks that a worker took with it when it ended: those that may be its cause, and those behind them."""
        self._failed_starts = 0

    def __enter__(self) -> Pool:
        remove_abandoned_folders()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in list(self._workers.values()):
            self._dismiss(worker)
        for process, ends in self._leaving:
            if not process.close(max(0.0, ends - time.monotonic())):
                process.kill()
        self._leaving.clear()
        if self._switchboard is not None:
            self._switchboard.close()
            self._switchboard = None

    def run(self, tasks: Iterable[LoadedTask]) -> Iterator[Result]:
        """Do all tasks; yield what became of each, in the order in which they end.

        Tasks are taken when a worker is free for them, at most two a worker ahead. May be called again: the processes
        stay.

        Raises
        ------
        MeshferryError
            A worker cannot even start; its last words are in the text.
        MissingLibraryError
            It lacks a library, or Blender.
        """
        if self._switchboard is None:
            self._switchboard = Switchboard()
        waiting = iter(tasks)
        try:
            while True:
                self._hand_out(waiting)
                if not any(worker.handed for worker in self._workers.values()):
                    return
                yield from self._events(self._switchboard)
        finally:
            # Whoever leaves early, after Ctrl+C say, does not wait for the results of what is under way.
            for worker in [worker for worker in self._workers.values() if worker.handed]:
                self._dismiss(worker)
            self._again.clear()

    def _hand_out(self, waiting: Iterator[LoadedTask]) -> None:
        """Give tasks to whoever has room for them; start workers as long as there are fewer than wanted."""
        while (worker := self._free_worker()) is not None or self._lacks_workers:
            handed = self._next(waiting)
            if handed is None:
                return
            if handed.attempts:  # what has ended a process is alone in a fresh one
                if not self._lacks_workers:
                    idle = next((one for one in self._workers.values() if not one.handed and not one.is_spare), None)
                    if idle is None:
                        self._again.appendleft(handed)
                        return
                    self._dismiss(idle)
                worker = self._start()
                worker.is_alone = True
            (worker or self._start()).hand(handed)
            self._look_ahead()

    @property
    def _lacks_workers(self) -> bool:
        """Whether another process is to be started; those at their last files do not count."""
        return sum(not (worker.is_worn or worker.is_spare) for worker in self._workers.values()) < self._jobs

    def _free_worker(self) -> PoolWorker | None:
        """Return the worker that has the least to do, unless all have enough or another one is to be started."""
        free = [worker for worker in self._workers.values() if worker.has_room]
        worker = min(free, key=lambda worker: len(worker.handed), default=None)
        return None if worker is not None and worker.handed and self._lacks_workers else worker

    def _next(self, waiting: Iterator[LoadedTask]) -> Handed | None:
        if self._again:
            return self._again.popleft()
        loaded = next(waiting, None)
        return Handed(loaded) if loaded is not None else None

    def _look_ahead(self) -> None:
        """Start a process for each that will soon be replaced: nobody then waits for it."""
        worn = sum(worker.is_almost_worn and not worker.is_worn for worker in self._workers.values())
        spare = sum(worker.is_spare for worker in self._workers.values())
        while spare < worn:
            self._new().is_spare = True
            spare += 1

    def _start(self) -> PoolWorker:
        """Return a worker that has done nothing so far."""
        worker = next((worker for worker in self._workers.values() if worker.is_spare), None) or self._new()
        worker.is_spare = False
        return worker

    def _new(self) -> PoolWorker:
        switchboard = self._switchboard
        if switchboard is None:
            raise MeshferryError("The pool is closed")
        number = next(self._numbers)
        greeting = Greeting(
            number, switchboard.address, switchboard.family, switchboard.key.hex(), self._time_limit, self._setup
        )
        process = WorkerProcess(self._command, greeting, switchboard.ring)
        worker = PoolWorker(number, process, self._recycle_after)
        self._workers[number] = worker
        return worker

    def _events(self, switchboard: Switchboard) -> Iterator[Result]:
        """Wait until something happens; yield the results that came of it."""
        lines: dict[object, PoolWorker] = {
            worker.connection: worker for worker in self._workers.values() if worker.connection is not None
        }
        with interruption.raising():
            ready = wait([*lines, switchboard.bell], self._patience())  # type: ignore[list-item]
        if switchboard.bell in ready:
            self._take_calls(switchboard)
        for one in ready:
            if one in lines:
                yield from self._hear(lines[one])
        for worker in list(self._workers.values()):
            if worker.is_late(self._time_limit):
                yield from self._too_late(worker)
        self._see_off()

    def _take_calls(self, switchboard: Switchboard) -> None:
        """Learn which workers have called, and which have ended before they could."""
        for patience in (_HANDSHAKE, 0.0):
            for number, connection in switchboard.answer():
                if number in self._workers:
                    self._workers[number].connection = connection
                else:
                    connection.close()
            silent = [worker for worker in self._workers.values() if worker.connection is None]
            ended = [worker for worker in silent if not worker.process.is_running]
            if not ended:
                return
            time.sleep(patience)
        for worker in ended:
            self._not_started(worker)

    def _patience(self) -> float | None:
        """Return how many seconds nothing has to happen before something is amiss."""
        ends = [ends for worker in self._workers.values() if (ends := worker.deadline(self._time_limit)) is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _hear(self, worker: PoolWorker) -> Iterator[Result]:
        """Take what a worker says."""
        if worker.connection is None:
            return
        try:
            message = messages.receive(worker.connection)
        except (OSError, EOFError):
            yield from self._lost(worker)
            return
        if "refused" in message:
            raise (MissingLibraryError if message["is_missing"] else MeshferryError)(message["refused"])
        if "ready" in message:
            worker.make_ready(message["ready"], message["memory"])
            self._failed_starts = 0
            return
        handed = worker.finish(message["memory"])
        if worker.is_worn and not worker.handed:
            self._dismiss(worker)
        yield messages.result_of(message, handed.loaded, handed.attempts + 1)

    def _lost(self, worker: PoolWorker) -> Iterator[Result]:
        """Replace a process that has ended by itself; what it was at is tried once more, alone in a fresh one."""
        seconds = worker.seconds
        if not worker.is_ready:
            self._not_started(worker)
            return
        self._bury(worker)
        if not worker.handed:
            return
        first, *others = worker.handed
        self._again.extendleft(reversed(others))
        first.attempts += 1
        if first.attempts < _ATTEMPTS:
            self._again.appendleft(first)
            return
        reason = f"{worker.process.how_it_ended()} ({worker.described})"
        yield _ended(first, Status.CRASHED, reason, seconds)

    def _not_started(self, worker: PoolWorker) -> None:
        """Give to others what waited for a process that ended at its start.

        Raises
        ------
        MeshferryError
            That happens time and again.
        """
        self._bury(worker)
        self._again.extendleft(reversed(worker.handed))
        self._failed_starts += 1
        if self._failed_starts >= _STARTS:
            raise MeshferryError(f"A worker could not start. {worker.process.how_it_ended()}")

    def _bury(self, worker: PoolWorker) -> None:
        """Forget a process that has ended by itself."""
        if not worker.process.close(_LEAVING_LIMIT):
            worker.process.kill()
        self._remove(worker)

    def _too_late(self, worker: PoolWorker) -> Iterator[Result]:
        """End a process that takes too long."""
        seconds = worker.seconds
        worker.process.kill()
        self._remove(worker)
        if not worker.is_ready:
            raise MeshferryError(f"A worker did not start within {START_LIMIT:g} seconds")
        first, *others = worker.handed
        self._again.extendleft(reversed(others))
        first.attempts += 1
        words = worker.process.last_words()
        reason = f"It took longer than {self._time_limit:g} seconds" + (f"; last output: {words}" if words else "")
        yield _ended(first, Status.TIMED_OUT, reason, seconds)

    def _dismiss(self, worker: PoolWorker) -> None:
        """Let a process end by itself, after the file that it is at."""
        worker.process.stop()
        self._remove(worker)
        self._leaving.append((worker.process, time.monotonic() + _LEAVING_LIMIT))

    def _remove(self, worker: PoolWorker) -> None:
        self._workers.pop(worker.number, None)
        if worker.connection is not None:
            with contextlib.suppress(OSError):
                worker.connection.close()

    def _see_off(self) -> None:
        """Forget the processes that have left, and end those that cannot."""
        staying = []
        for process, ends in self._leaving:
            if process.is_running and time.monotonic() < ends:
                staying.append((process, ends))
            elif not process.close(0.0):
                process.kill()
        self._leaving = staying


def _ended(handed: Handed, ended: Status, reason: str, seconds: float) -> Result:
    loaded = handed.loaded
    return Result(loaded.task, ended, error=reason, seconds=seconds, attempts=handed.attempts, kind=loaded.kind)
