"""A pool of worker processes. A crash or a hang loses one file.

The thread that calls :meth:`Pool.run` controls the pool. One thread for each process reads its messages into a shared
queue.
"""

from __future__ import annotations

import queue
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ... import interruption
from ..tasks import LoadedTask, Result, Status
from . import messages
from .messages import Setup
from .resources import threads_for
from .worker_process import WorkerProcess, remove_abandoned_folders, worker_command

TIME_LIMIT = 600.0
"""Default time limit of a file in seconds."""
RECYCLE_AFTER = 500
"""Tasks after which a process is replaced, because Blender does not release all memory.

A start takes as long as a hundred small files, so a process whose memory has not grown continues.
"""
_START_LIMIT = 300.0
"""Time limit of a start in seconds; starts are slow on a busy machine."""
_EXIT_LIMIT = 20.0
"""Grace period of the shutdown in seconds. A stopped process finishes its present task first."""
_GRACE = 0.25
"""Seconds after the time limit in which a result still counts: this thread or the readers may run late."""
_ATTEMPTS = 2
"""Attempts after which a file that crashes its process is quarantined."""
_STARTS = 3
"""Consecutive failed starts after which the run ends. A single one may be caused by a lack of memory."""
_AHEAD = 2
"""Tasks queued for each worker: the present one and the next one, so that the worker never idles."""
_GROWTH = 128 * 2**20
"""Growth in bytes up to which a process is not replaced."""
_LIVES = 10
"""Multiple of the planned number of tasks after which a process is replaced even if it has not grown."""
_SMALL = 2048
"""Largest message that fits the pipe buffer of every system, so that sending never blocks."""
_INTERRUPTIBLE = 0.5 if sys.platform == "win32" else None
"""Maximum wait in seconds: on Windows, Ctrl+C does not interrupt a wait."""


@dataclass(slots=True)
class _QueuedTask:
    """A task in the queue of a worker."""

    loaded: LoadedTask
    attempts: int = 0
    """Number of processes that ended during this task."""
    is_sent: bool = False

    def result(self, status: Status, error: str, seconds: float) -> Result:
        loaded = self.loaded
        return Result(loaded.task, status, error=error, seconds=seconds, attempts=self.attempts, kind=loaded.kind)


@dataclass(slots=True, eq=False)
class _Worker:
    """A process and its tasks."""

    process: WorkerProcess
    span: int
    """Tasks after which the process is replaced if its memory has grown; 0 for never."""
    tasks: deque[_QueuedTask] = field(default_factory=deque)
    """Queued tasks; the first is the present one."""
    is_ready: bool = False
    is_alone: bool = False
    """Whether the present task has crashed a process before, so that no other task is queued behind it."""
    versions: str = ""
    """Versions of Meshferry, Python and Blender."""
    done: int = 0
    lifetime: int = 0
    """Tasks after which the process is replaced, prolonged while its memory does not grow; 0 for never."""
    memory: int = 0
    """Peak memory in bytes after the start; 0 if unknown."""
    since: float = field(default_factory=time.monotonic)
    """Start time of the process or of its present task."""

    def __post_init__(self) -> None:
        self.lifetime = self.span

    @property
    def has_room(self) -> bool:
        return len(self.tasks) < (1 if self.is_alone else _AHEAD) and not self.is_worn

    @property
    def is_worn(self) -> bool:
        """Whether the worker gets no further tasks."""
        return 0 < self.lifetime <= self.done + len(self.tasks)

    @property
    def seconds(self) -> float:
        """Elapsed time of the start or of the present task."""
        return time.monotonic() - self.since

    def deadline(self, time_limit: float) -> float | None:
        """Return the time by which the worker must send a message; None if there is no limit."""
        if not self.is_ready:
            return self.since + _START_LIMIT
        return self.since + time_limit + _GRACE if self.tasks and time_limit else None

    def give(self, queued: _QueuedTask) -> None:
        """Queue a task and send it, or keep it until the worker is ready."""
        queued.is_sent = False
        self.tasks.append(queued)
        if self.is_ready and len(self.tasks) == 1:
            self.since = time.monotonic()
        self._send()

    def get_ready(self, versions: str, memory: int) -> None:
        """Mark the worker as ready and send the queued tasks."""
        self.is_ready = True
        self.versions = versions
        self.memory = memory
        self.since = time.monotonic()
        self._send()

    def finish(self, memory: int) -> _QueuedTask:
        """Remove and return the present task; prolong the lifetime if the process has not grown."""
        queued = self.tasks.popleft()
        self.done += 1
        self.is_alone = False
        has_grown = not self.memory or memory > self.memory + _GROWTH
        if not has_grown and self.lifetime <= self.done + _AHEAD and self.lifetime < _LIVES * self.span:
            self.lifetime += self.span
        self.since = time.monotonic()
        self._send()
        return queued

    def _send(self) -> None:
        """Send the present task, and the next one if its message fits the pipe buffer."""
        if not self.is_ready:
            return
        for index, queued in enumerate(self.tasks):
            if not queued.is_sent:
                message = messages.encode_task(queued.loaded)
                if index == 0 or len(message) <= _SMALL:
                    queued.is_sent = True
                    self.process.send(message)


class Pool:
    """A pool of worker processes. They run until the end of the ``with`` block.

    Parameters
    ----------
    setup:
        Settings that all tasks share.
    jobs:
        Number of processes.
    time_limit:
        Seconds of wall time for one file, after which its process is killed; 0 for no limit.
    recycle_after:
        Tasks after which a process is replaced if its memory has grown; 0 for never.
    command:
        Command that starts a worker; default: the same Python or Blender that runs this.
    started:
        Processes that were started before the setup was known. The pool removes the processes that it uses from the
        list, and kills those that it cannot use.
    """

    def __init__(
        self,
        setup: Setup,
        jobs: int,
        time_limit: float = TIME_LIMIT,
        recycle_after: int = RECYCLE_AFTER,
        *,
        command: Sequence[str] | None = None,
        started: list[WorkerProcess] | None = None,
    ) -> None:
        self._jobs = max(1, jobs)
        self._setup = setup
        self._time_limit = time_limit
        self._recycle_after = recycle_after
        self._threads = threads_for(self._jobs)
        self._command = list(command) if command is not None else worker_command(self._threads)
        self._started_early = started if started is not None else []
        for index, process in reversed(list(enumerate(self._started_early))):
            if index >= self._jobs or process.threads != self._threads:
                self._started_early.pop(index).kill()
        self._events: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
        self.started = 0
        """Number of processes that the pool has used so far."""
        self._workers: list[_Worker] = []
        self._leaving: list[tuple[WorkerProcess, float]] = []
        """Stopped processes, each with the time at which it is killed if it is still running."""
        self._again: deque[_QueuedTask] = deque()
        """Tasks to retry, from processes that have ended: the present task of each and the one queued behind it."""
        self._failed_starts = 0

    def __enter__(self) -> Pool:
        remove_abandoned_folders()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)
        for process, end in self._leaving:
            if not process.close(max(0.0, end - time.monotonic())):
                process.kill()
        self._leaving.clear()

    def run(self, tasks: Iterable[LoadedTask]) -> Iterator[Result]:
        """Execute tasks; yield their results as they finish.

        Tasks are taken from the iterable as workers become free, at most two for each worker. The processes are reused
        by the next call.

        Raises
        ------
        MeshferryError
            A worker cannot start; the message contains its last output.
        MissingLibraryError
            A worker cannot load Blender or a library.
        """
        waiting = iter(tasks)
        try:
            while True:
                self._hand_out(waiting)
                if not any(worker.tasks for worker in self._workers):
                    return
                yield from self._handle_events()
        finally:
            # After Ctrl+C, the results of started tasks are not waited for.
            for worker in [worker for worker in self._workers if worker.tasks]:
                self._dismiss(worker)
            self._again.clear()

    def _hand_out(self, waiting: Iterator[LoadedTask]) -> None:
        """Queue tasks for workers with free slots; start workers up to the number of jobs."""
        while (worker := self._free_worker()) is not None or self._lacks_workers:
            queued = self._next(waiting)
            if queued is None:
                return
            if queued.attempts:  # a task that ended a process is retried alone in a fresh one
                if not self._lacks_workers:
                    idle = next((other for other in self._workers if not other.tasks), None)
                    if idle is None:
                        self._again.appendleft(queued)
                        return
                    self._dismiss(idle)
                worker = self._start()
                worker.is_alone = True
            (worker or self._start()).give(queued)

    @property
    def _lacks_workers(self) -> bool:
        """Whether to start another process. Workers that get no further tasks do not count."""
        return sum(not worker.is_worn for worker in self._workers) < self._jobs

    def _free_worker(self) -> _Worker | None:
        """Return the worker with the fewest tasks; None if all queues are full or another worker should be started."""
        free = [worker for worker in self._workers if worker.has_room]
        worker = min(free, key=lambda worker: len(worker.tasks), default=None)
        return None if worker is not None and worker.tasks and self._lacks_workers else worker

    def _next(self, waiting: Iterator[LoadedTask]) -> _QueuedTask | None:
        if self._again:
            return self._again.popleft()
        loaded = next(waiting, None)
        return _QueuedTask(loaded) if loaded is not None else None

    def _start(self) -> _Worker:
        early = self._started_early
        process = early.pop() if early else WorkerProcess(self._command, self._threads)
        worker = _Worker(process, self._recycle_after)
        self._workers.append(worker)
        self.started += 1
        process.send(messages.encode_setup(self._setup, self._time_limit))
        process.listen(lambda message: self._events.put((worker, message)))
        return worker

    def _handle_events(self) -> Iterator[Result]:
        """Wait until a worker sends a message, ends or exceeds its time limit; yield the results."""
        for worker, message in self._wait():
            if worker not in self._workers:
                continue  # dismissed meanwhile
            if message is None:
                yield from self._on_exit(worker)
            else:
                yield from self._on_message(worker, message)
        if self._events.empty():
            now = time.monotonic()
            for worker in list(self._workers):
                deadline = worker.deadline(self._time_limit)
                if deadline is not None and deadline <= now:
                    yield from self._on_timeout(worker)
        self._reap()

    def _wait(self) -> Iterator[tuple[_Worker, dict[str, Any] | None]]:
        """Wait for events until the first deadline; yield all pending ones."""
        deadlines = [end for worker in self._workers if (end := worker.deadline(self._time_limit)) is not None]
        limits = [max(0.0, min(deadlines) - time.monotonic())] if deadlines else []
        limits += [] if _INTERRUPTIBLE is None else [_INTERRUPTIBLE]
        timeout = min(limits, default=None)
        try:
            with interruption.raising():
                event = self._events.get(timeout=timeout)
            while True:
                yield event
                event = self._events.get_nowait()
        except queue.Empty:
            return

    def _on_message(self, worker: _Worker, message: dict[str, Any]) -> Iterator[Result]:
        if "refused" in message:
            raise (MissingLibraryError if message["is_missing"] else MeshferryError)(message["refused"])
        if "ready" in message:
            worker.get_ready(message["ready"], message["memory"])
            self._failed_starts = 0
            return
        queued = worker.finish(message["memory"])
        if worker.is_worn and not worker.tasks:
            self._dismiss(worker)
        yield messages.parse_result(message, queued.loaded, queued.attempts + 1)

    def _on_exit(self, worker: _Worker) -> Iterator[Result]:
        """Discard a process that has ended, and retry its task once, alone in a fresh process.

        Raises
        ------
        MeshferryError
            Several consecutive processes have ended during their start.
        """
        seconds = worker.seconds
        if not worker.process.close(_EXIT_LIMIT):
            worker.process.kill()
        self._workers.remove(worker)
        if not worker.is_ready:
            self._again.extendleft(reversed(worker.tasks))
            self._failed_starts += 1
            if self._failed_starts >= _STARTS:
                raise MeshferryError(f"A worker could not start. {worker.process.describe_end()}")
        elif worker.tasks:
            first = self._take_back(worker)
            if first.attempts < _ATTEMPTS:
                self._again.appendleft(first)
            else:
                error = f"{worker.process.describe_end()} ({worker.versions})"
                yield first.result(Status.CRASHED, error, seconds)

    def _on_timeout(self, worker: _Worker) -> Iterator[Result]:
        """Kill a process that has exceeded its time limit; yield the result of its task."""
        seconds = worker.seconds
        worker.process.kill()
        self._workers.remove(worker)
        if not worker.is_ready:
            raise MeshferryError(f"A worker did not start within {_START_LIMIT:g} seconds")
        last = worker.process.last_output()
        error = f"It took longer than {self._time_limit:g} seconds" + (f"; last output: {last}" if last else "")
        yield self._take_back(worker).result(Status.TIMED_OUT, error, seconds)

    def _take_back(self, worker: _Worker) -> _QueuedTask:
        """Requeue the later tasks of an ended process; return its present task with this attempt counted."""
        first, *others = worker.tasks
        self._again.extendleft(reversed(others))
        first.attempts += 1
        return first

    def _dismiss(self, worker: _Worker) -> None:
        """Stop a process after its present task."""
        worker.process.stop()
        self._workers.remove(worker)
        self._leaving.append((worker.process, time.monotonic() + _EXIT_LIMIT))

    def _reap(self) -> None:
        """Discard stopped processes that have ended; kill the others after their grace period."""
        running = []
        for process, end in self._leaving:
            if process.is_running and time.monotonic() < end:
                running.append((process, end))
            elif not process.close(0.0):
                process.kill()
        self._leaving = running
