"""The worker processes of a batch and of ``convert``, as seen by the driver. A crash or a hang loses one file.

Each worker of a :class:`Pool` has a thread, which starts its process, sends the tasks and waits for the results. The
thread that calls :meth:`Pool.run` distributes the tasks and kills processes that exceed their time limit.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....io_formats.core.errors import ExportError, MeshferryError, refusal
from ....io_formats.disk.atomic_write import remove_folder
from ... import convert, interruption
from ...conversions.convert_plan import ANOTHER_FAILED, ConversionJob, Outcome
from ...environment import blender_program, threads_for
from ...output import one_line, printable
from ..tasks import RECYCLE_AFTER, LoadedTask, Result, Status
from . import protocol
from .protocol import Setup

if TYPE_CHECKING:
    from ...conversions.conversion import Conversion

_SCRIPT = Path(convert.__file__).resolve()
"""Script that finds the package and its libraries if they are not in the path of this Python or Blender."""
FOLDER_PREFIX = "meshferry-worker-"
"""Start of the names of folders for the temporary files of workers."""
_ABANDONED_AGE = 30 * 86400.0
"""Age in seconds above which no run still uses the temporary folder of a worker."""
_LOG_SIZE = 16 * 1024
"""Bytes of the last output of a worker that are read."""
_LARGEST_LOG = 64 * 2**20
"""Size in bytes above which a log is emptied: some importers print without end."""
_OWN_GROUP = 0x08000200
"""Windows: CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW."""
_LAST_LINES = 3
_LAST_LENGTH = 400
_KILL_SECONDS = 2.0
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

_STATUSES = {0xC0000005: "an access violation", 0xC00000FD: "a stack overflow", 0xC0000409: "a stack overrun"}
"""Exit statuses of crashes on Windows."""


def worker_command(threads: int) -> list[str]:
    """Return the command of a worker: the current Blender with this number of threads, or the current Python.

    Raises
    ------
    MeshferryError
        The path of the current Python is unknown.
    """
    if blender := blender_program():
        # The exit status applies only to scripts after this option.
        options = ["-b", "--factory-startup", "--threads", str(threads), "--python-exit-code", "3"]
        return [blender, *options, "--python", str(_SCRIPT), "--", convert.WORKER]
    if not sys.executable:
        raise MeshferryError("The Python that runs this cannot be found, so no worker can be started")
    return [sys.executable, str(_SCRIPT), convert.WORKER]


class WorkerProcess:
    """A worker process with its streams and its log.

    The process loads its modules immediately, but executes tasks only after :meth:`prepare`.

    Parameters
    ----------
    threads:
        Number of threads of Blender; 0 for its default.
    number:
        Number of the process among those of a run; it chooses the cores on which Blender is loaded.

    Each process has a folder for temporary files. The driver removes it after the end of the process, or the process
    itself if the driver was killed. If both were killed, :func:`remove_abandoned_folders` removes it later.
    """

    def __init__(self, command: Sequence[str], threads: int = 0, number: int = 0) -> None:
        self.last_output = ""
        """The last output of the last task as one line, after :meth:`end`."""
        self.versions = ""
        """Versions of Meshferry, Python and Blender, after :meth:`prepare`."""
        self.memory = 0
        """Peak memory in bytes."""
        is_windows = sys.platform == "win32"
        try:
            self._folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
            self._log: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (end() closes it)
        except OSError as problem:
            folder = tempfile.gettempdir()
            raise MeshferryError("{}: temporary files cannot be made there: {}", folder, refusal(problem)) from None
        own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder)
        try:
            self._process = subprocess.Popen(  # noqa: S603 (this program)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                # Linear algebra gets one thread, as there may be a worker for each core.
                env=dict.fromkeys(_THREADS, "1") | {"PYTHONUNBUFFERED": "1"} | os.environ | own,
                # In a separate process group, Ctrl+C reaches the driver only, and kill() reaches all child processes.
                start_new_session=not is_windows,
                creationflags=_OWN_GROUP if is_windows else 0,
            )
        except OSError as problem:
            self._release()
            raise MeshferryError("A worker cannot be started: {}: {}", command[0], refusal(problem)) from None
        self._input: Any = self._process.stdin
        self._output: Any = self._process.stdout
        self._token = secrets.token_hex(16)
        hello = {"token": self._token, "threads": threads, "number": number}
        self.send(protocol.encode(hello))

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def prepare(self, setup: Setup) -> bool:
        """Send the settings and wait until the process is ready; return False if it has ended.

        Raises
        ------
        MeshferryError
            The process cannot execute tasks with these settings.
        """
        self.send(protocol.encode(asdict(setup)))
        token = self._token.encode("ascii") + b"\n"
        while (line := self._output.readline()) and line != token:
            self._log.write(line)
        if (message := self.receive()) is None:
            return False
        if "refused" in message:
            raise protocol.parse_problem(message["refused"])
        self.versions, self.memory = message["ready"], message["memory"]
        return True

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message; return its header, or None if the process has ended."""
        with contextlib.suppress(OSError, ValueError, EOFError):
            return protocol.read(self._output)[0]
        return None

    def send(self, message: bytes) -> None:
        """Write a message. Errors are ignored: if the process has ended, :meth:`receive` reports that."""
        with contextlib.suppress(OSError, ValueError):
            self._input.write(message)
            self._input.flush()

    def stop(self) -> None:
        """Request the process to end after its present task."""
        self.send(protocol.encode({"stop": True}))

    def interrupt(self) -> None:
        """Forward a termination request to a worker of ``convert``."""
        self.send(protocol.encode({"interrupt": True}))

    def kill(self) -> None:
        """Kill the process and all its child processes."""
        with contextlib.suppress(OSError):
            if not self.is_running:
                return
            if sys.platform == "win32":
                tool = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
                command = [str(tool), "/F", "/T", "/PID", str(self.pid)]
                subprocess.run(command, check=False, capture_output=True)  # noqa: S603 (tool of the system)
            else:
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()

    def end(self, seconds: float = 0.0) -> None:
        """Wait for the end of the process, kill it after these seconds, and release its streams and its folder."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_SECONDS)
        self.last_output = _last_lines(self.read_log())
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._release()

    def describe_end(self) -> str:
        """Describe the end of the process, with its last output and its versions."""
        last = f"; its last output: {self.last_output}" if self.last_output else ""
        return death(self._process.returncode) + last + (f" ({self.versions})" if self.versions else "")

    def read_log(self) -> str:
        """Return the end of the output since the present task began."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_SIZE))
        return str(self._log.read().decode("utf-8", "replace"))

    def limit_log(self) -> None:
        """Empty the log if it is too large."""
        with contextlib.suppress(OSError, ValueError):  # the process has ended
            if os.fstat(self._log.fileno()).st_size > _LARGEST_LOG:
                self._log.seek(0)  # the worker shares this position
                self._log.truncate()

    def _release(self) -> None:
        self._log.close()
        remove_folder(self._folder)


def remove_abandoned_folders() -> None:
    """Remove old temporary folders of workers that were killed together with their driver."""
    for folder in Path(tempfile.gettempdir()).glob(FOLDER_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.lstat().st_mtime > _ABANDONED_AGE:
                remove_folder(folder)


def death(status: int | None) -> str:
    """Describe the end of a process by its exit status."""
    if status is None:
        return "The process does not answer"
    if status < 0:
        hint = ", perhaps for lack of memory" if status == -9 else ""
        return f"The process died of a signal: {signal.strsignal(-status) or -status}{hint}"
    if status & 0xFFFFFFFF in _STATUSES:
        return f"The process died of {_STATUSES[status & 0xFFFFFFFF]}"
    return f"The process ended with status {status}"


def _last_lines(text: str) -> str:
    """Return the last lines of a log. For a crash in C, return its kind and the innermost Python line instead."""
    fatal = re.search(r"^Fatal Python error: (.*)", text, re.MULTILINE)
    if fatal is None:
        chosen = [line for line in map(one_line, text.splitlines()) if line][-_LAST_LINES:]
    else:
        trace = text[max(fatal.end(), text.find("\nCurrent thread", fatal.end())) :]
        # Without the folder, which may contain the name of the user.
        frame = re.search(r'^ *File ".*?([^/\\"]+)", line (\d+) in (.*)', trace, re.MULTILINE)
        chosen = [one_line(fatal[1]), *([f"{frame[1]}, line {frame[2]}, in {frame[3]}"] if frame else [])]
    joined = " | ".join(chosen)
    return joined if len(joined) <= _LAST_LENGTH else "…" + joined[-_LAST_LENGTH:]


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
        self, setup: Setup, jobs: int, recycle_after: int = RECYCLE_AFTER, *, command: Sequence[str] | None = None
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
        self._first_memory = 0
        """Peak memory of the process in bytes after its start."""
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
            if is_last and self._process is process and process.memory > self._first_memory + _GROWTH:
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
                process.memory = message["memory"]
                return protocol.parse_result(message, loaded, attempt)
            seconds = time.monotonic() - began
            self._process = None
            process.end(_EXIT_LIMIT)
            if self._late is loaded:
                last = f"; last output: {process.last_output}" if process.last_output else ""
                status, error = Status.TIMED_OUT, f"It took longer than {limit:g} seconds{last}"
                break
            status, error = Status.CRASHED, process.describe_end()
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
            is_ready = process.prepare(self._pool.setup)
            self._watched = (None, math.inf)
            if self._late is process:
                raise MeshferryError("A worker did not start within {:g} seconds", _START_LIMIT)
            if is_ready or self._is_stopped:
                break
            self._process = None
            process.end(_EXIT_LIMIT)
        else:
            raise MeshferryError("A worker could not start. {}", process.describe_end())
        if self._is_stopped:  # stop() may have missed this process
            process.stop()
        self._first_memory = process.memory
        return process


_FORWARD_SECONDS = 0.1
"""Interval of checks for a termination request, which is then forwarded."""
_GRACE = 3.0
"""Grace period in seconds after a second termination request, in which the worker removes its temporary files."""
_Answer = dict[str, Any] | None
"""A message of a worker; None after its end."""


class IsolatedConversion:
    """Runs jobs of ``convert`` in one process, which is replaced if it dies: some files crash Blender's own importers.

    If no process can start, the jobs run in this one.

    Parameters
    ----------
    conversion:
        Runs the other jobs, in this process.
    shows_log:
        Print the output of the worker after each job.
    """

    def __init__(self, conversion: Conversion, *, shows_log: bool = False) -> None:
        self._setup = Setup(conversion.settings, libraries=sys.path)
        self._conversion = conversion
        self._shows_log = shows_log
        self._can_start = True
        self._process: WorkerProcess | None = None
        self._inbox: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self._source: Path | None = None
        """The source that is being imported into a file with others."""
        remove_abandoned_folders()

    def run(self, job: ConversionJob) -> Iterator[Outcome]:
        """Run one job; yield an outcome for each file read or written, as :meth:`Conversion.run` does.

        If the process dies while it imports one of several sources, the others are converted without that one.
        """
        while job.sources:
            process = self._start()
            if process is None:
                yield from self._conversion.run(job)
                return
            if (yield from self._outcomes(job, process)):
                return
            death = MeshferryError(process.describe_end())
            lost = job.sources if self._source is None else (self._source,)
            yield from (Outcome(source, job.target, problem=death) for source in lost)
            job = replace(job, sources=tuple(source for source in job.sources if source not in lost))
            if self._conversion.settings.strict:
                yield from (Outcome(source, job.target, problem=ExportError(ANOTHER_FAILED)) for source in job.sources)
                return

    def _start(self) -> WorkerProcess | None:
        """Return the process, which is started if there is none, or None if it cannot start."""
        if self._process is None and self._can_start:
            self._can_start = False
            with contextlib.suppress(MeshferryError):
                self._process = process = WorkerProcess(worker_command(0))
                self._inbox = queue.SimpleQueue()
                threading.Thread(target=self._read, args=(process, self._inbox), daemon=True).start()
                self._can_start = self._receive(process) is not None
                interruption.check()
                if not self._can_start:
                    self.end()
        return self._process

    def _read(self, process: WorkerProcess, inbox: queue.SimpleQueue[_Answer]) -> None:
        """Queue all messages of a process, after an empty one when it is ready."""
        message: _Answer = {} if process.prepare(self._setup) else None
        inbox.put(message)
        while message is not None:
            inbox.put(message := process.receive())

    def _outcomes(self, job: ConversionJob, process: WorkerProcess) -> Generator[Outcome, None, bool]:
        """Send a job to the process; yield its outcomes. Return whether the process has finished it, not died."""
        clips, self._source = self._conversion.clips, None
        process.send(protocol.encode_job(job, clips.state()))
        while (message := self._receive(process)) is not None:
            value = None
            if "end" in message:
                clips.add_state(message["end"])
                if self._shows_log and (log := process.read_log()):
                    print(*map(printable, log.splitlines()), sep="\n", file=sys.stderr, flush=True)
                return True
            if "outcome" in message:
                yield protocol.parse_outcome(message["outcome"])
            elif "begin" in message:
                self._begin(message["begin"] and Path(message["begin"]))
            else:
                value = self._conversion.context.names.answer(*message["names"])
            process.send(protocol.encode({"value": value}))
        self.end()
        interruption.check()
        return False

    def _begin(self, source: Path | None) -> None:
        """Note the source that the process imports next; None before it writes the target."""
        self._source = source
        if source is not None:
            interruption.check()

    def _receive(self, process: WorkerProcess) -> _Answer:
        """Wait for a message. Forward termination requests: the worker stops as this process would."""
        is_forwarded = False
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    return self._inbox.get(timeout=_FORWARD_SECONDS)
                process.limit_log()
                if not is_forwarded and interruption.is_requested():
                    is_forwarded = True
                    process.interrupt()
        except KeyboardInterrupt:  # the second request
            process.interrupt()
            self.end(_GRACE)
            raise

    def end(self, seconds: float = 0.0) -> None:
        """End the process, which has these seconds to do so itself."""
        process, self._process = self._process, None
        if process is not None:
            process.end(seconds)
