"""A pool of worker processes. A crash or a hang loses one file.

Each worker has a thread, which starts its process, sends the tasks and waits for the results. The thread that calls
:meth:`Pool.run` distributes the tasks and kills processes that exceed their time limit.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import asdict

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ... import interruption
from ...environment import threads_for
from ..tasks import RECYCLE_AFTER, LoadedTask, Result, Status
from . import protocol
from .protocol import Setup
from .worker_process import WorkerProcess, remove_abandoned_folders, worker_command

_START_LIMIT = 300.0
"""Time limit of a start in seconds; starts are slow on a busy machine."""
_EXIT_LIMIT = 20.0
"""Grace period of the shutdown in seconds. A stopped process finishes its present task first."""
_CHECK_SECONDS = 0.5
"""Interval of checks for time limits. On Windows, Ctrl+C does not interrupt a wait, so this is also its delay there."""
_ATTEMPTS = 2
"""Attempts after which a file that crashes its process is quarantined."""
_STARTS = 3
"""Consecutive failed starts of a worker after which the run ends. A single one may be caused by a lack of memory."""
_AHEAD = 3
"""Tasks for each worker: the present one, the next one, which is sent ahead so that the process never idles, and one in
the queue."""
_GROWTH = 128 * 2**20
"""Growth in bytes up to which a process is not replaced."""


class Pool:
    """A pool of worker processes for one run.

    Parameters
    ----------
    setup:
        Settings that all tasks share.
    jobs:
        Number of processes.
    recycle_after:
        Tasks after which a process is replaced if its memory has grown; 0 for never.
    command:
        Command that starts a worker; default: the same Python or Blender that runs this.
    """

    def __init__(
        self,
        setup: Setup,
        jobs: int,
        recycle_after: int = RECYCLE_AFTER,
        *,
        command: Sequence[str] | None = None,
    ) -> None:
        self.setup = setup
        self.recycle_after = recycle_after
        self.tasks: queue.SimpleQueue[LoadedTask | None] = queue.SimpleQueue()
        """Tasks that no process has; None ends one worker."""
        self.results: queue.SimpleQueue[Result | Exception] = queue.SimpleQueue()
        """Filled by the threads of the workers. An exception ends the run."""
        self.started = 0
        """Number of processes that the pool has used so far."""
        self._jobs = max(1, jobs)
        self._threads = threads_for(self._jobs)
        self._command = list(command) if command is not None else worker_command(self._threads)
        self.workers: list[_Worker] = []
        self._next_check = 0.0

    def run(self, tasks: Iterable[LoadedTask]) -> Generator[Result, None, None]:
        """Execute tasks; yield their results as they finish. All processes have ended when the generator is closed.

        Tasks are taken from the iterable as workers become free, at most three for each worker.

        Raises
        ------
        MeshferryError
            A worker cannot start; the message contains its last output.
        MissingLibraryError
            A worker cannot load Blender or a library.
        """
        remove_abandoned_folders()
        waiting = iter(tasks)
        count = 0
        self.workers = [_Worker(self) for _ in range(self._jobs)]
        try:
            while True:
                while count < _AHEAD * self._jobs and (loaded := next(waiting, None)) is not None:
                    self.tasks.put(loaded)
                    count += 1
                if not count:
                    return
                result = self._wait()
                count -= 1
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            for worker in self.workers:
                worker.stop()
            end = time.monotonic() + _EXIT_LIMIT
            for worker in self.workers:
                worker.join(max(0.0, end - time.monotonic()))

    def new_process(self) -> WorkerProcess:
        """Start a process."""
        self.started += 1
        return WorkerProcess(self._command, self._threads, self.started - 1)

    def _wait(self) -> Result | Exception:
        """Wait for a result; check the workers meanwhile."""
        while True:
            now = time.monotonic()
            if now >= self._next_check:
                self._next_check = now + _CHECK_SECONDS
                for worker in self.workers:
                    worker.check(now)
            try:
                with interruption.raising():
                    return self.results.get(timeout=_CHECK_SECONDS)
            except queue.Empty:
                pass


class _Worker:
    """A worker process, its successors, and the thread that sends them their tasks."""

    def __init__(self, pool: Pool) -> None:
        self.is_idle = True
        """Whether the worker waits for a task."""
        self._pool = pool
        self._process: WorkerProcess | None = None
        self._versions = ""
        """Versions of Meshferry, Python and Blender."""
        self._first_memory = self._memory = 0
        """Peak memory of the process in bytes after its start, and now."""
        self._watched: tuple[object, float] = (None, math.inf)
        """The present task, or the process that is starting, and its deadline."""
        self._late: object = None
        """The task or process whose deadline has passed."""
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def check(self, now: float) -> None:
        """Kill the process if its deadline has passed; limit its log."""
        process = self._process
        watched, deadline = self._watched
        if process is not None:
            process.limit_log()
            if now > deadline:
                self._late = watched
                process.kill()

    def stop(self) -> None:
        """End the process after its present task."""
        self._is_stopped = True
        self._pool.tasks.put(None)
        if (process := self._process) is not None:
            process.stop()

    def join(self, seconds: float) -> None:
        """Wait for the end of the process and its thread; kill the process after these seconds."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            if (process := self._process) is not None:
                process.kill()
            self._thread.join(_EXIT_LIMIT)

    def _run(self) -> None:
        try:
            self._execute_tasks()
        except Exception as problem:  # noqa: BLE001 (raised by the thread of the pool)
            self._pool.results.put(problem)
        finally:
            if self._process is not None:
                self._process.end(_EXIT_LIMIT)

    def _execute_tasks(self) -> None:
        """Execute the queued tasks until the worker is stopped."""
        span = self._pool.recycle_after
        done = 0
        following: LoadedTask | None = None
        is_sent = False  # whether the process has the following task
        while (present := following or self._next()) is not None and not self._is_stopped:
            process = self._process
            if process is None:
                process, done = self._start(), 0
            if not is_sent:
                process.send(protocol.encode_task(present))
            following = self._next_ahead()
            done += 1
            is_last = bool(span) and done % span == 0
            # A task with content is not sent in advance: a hanging process does not read it, so sending would block.
            is_sent = following is not None and following.content is None and not is_last
            if following is not None and is_sent:
                process.send(protocol.encode_task(following))
            self._pool.results.put(self._result_of(present, process))
            is_sent = is_sent and self._process is process
            if is_last and self._process is process and self._memory > self._first_memory + _GROWTH:
                self._process = None
                process.stop()
                process.end(_EXIT_LIMIT)

    def _next(self) -> LoadedTask | None:
        """Wait for a task; return None after the last one."""
        self.is_idle = True
        loaded = self._pool.tasks.get()
        self.is_idle = False
        return loaded

    def _next_ahead(self) -> LoadedTask | None:
        """Return another task if there is one and no other worker waits for it."""
        if not any(worker.is_idle for worker in self._pool.workers):
            with contextlib.suppress(queue.Empty):
                return self._pool.tasks.get_nowait()
        return None

    def _result_of(self, loaded: LoadedTask, process: WorkerProcess) -> Result:
        """Wait for the result of the present task. If its process ends, retry it once, alone in a fresh one."""
        limit = self._pool.setup.time_limit
        for attempt in range(1, _ATTEMPTS + 1):
            began = time.monotonic()
            self._watched = (loaded, began + (limit or math.inf))
            message = process.receive()
            self._watched = (None, math.inf)
            if message is not None:
                self._memory = message.pop("memory")
                return protocol.parse_result(message, loaded, attempt)
            seconds = time.monotonic() - began
            self._process = None
            process.end(_EXIT_LIMIT)
            if self._late is loaded:
                last = f"; last output: {process.last_output}" if process.last_output else ""
                status, error = Status.TIMED_OUT, f"It took longer than {limit:g} seconds{last}"
                break
            status, error = Status.CRASHED, f"{process.describe_end()} ({self._versions})"
            if attempt == _ATTEMPTS or self._is_stopped:
                break
            process = self._start()
            process.send(protocol.encode_task(loaded))
        return Result(loaded.task, status, error=error, seconds=seconds, attempts=attempt, kind=loaded.kind)

    def _start(self) -> WorkerProcess:
        """Start a process and wait until it is ready."""
        for _ in range(_STARTS):
            process = self._process = self._pool.new_process()
            self._watched = (process, time.monotonic() + _START_LIMIT)
            message = process.prepare(protocol.encode(asdict(self._pool.setup)))
            self._watched = (None, math.inf)
            if self._late is process:
                raise MeshferryError("A worker did not start within {:g} seconds", _START_LIMIT)
            if message is not None or self._is_stopped:
                break
            self._process = None
            process.end(_EXIT_LIMIT)
        else:
            raise MeshferryError("A worker could not start. {}", process.describe_end())
        if self._is_stopped or message is None:  # stop() may have missed this process
            process.stop()
        elif "refused" in message:
            raise (MissingLibraryError if message["is_missing"] else MeshferryError)(message["refused"])
        else:
            self._versions = message["ready"]
            self._memory = self._first_memory = message["memory"]
        return process
