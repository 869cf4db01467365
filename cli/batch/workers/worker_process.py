"""Worker processes: their start, their messages and log, their end."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import refusal, remove_folder
from ...reporting import one_line
from . import messages

_SCRIPT = Path(__file__).resolve().parents[2] / "convert.py"
"""Finds the package and its libraries in a Python or a Blender that does not have them in its path."""
WORKER_COMMAND = "batch-worker"
"""Argument that makes that script a worker."""
FOLDER_PREFIX = "meshferry-worker-"
_LOCK_NAME = "driver.lock"
"""Lock file in the folder of a worker's temporary files; the driver holds the lock until the worker has ended."""
_ABANDONED_AGE = 86400.0
"""Seconds after which such a folder without a lock is removed: on disks without locks, it may be in use."""
TASK_MARK = b"\x1e\n"
"""Written by a worker to stderr before each task: the driver may read a result only after the next task has printed."""
_LOG_SIZE = 16 * 1024
"""Bytes of a worker's last output that are stored."""
_OWN_GROUP = 0x08000200
"""Windows: CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW."""
_LAST_LINES = 3
_LAST_LENGTH = 400
_REST_SECONDS = 2.0
"""Seconds to wait for the rest of the output of a process that has ended."""
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

_SIGNALS = {
    "SIGSEGV": "a segmentation fault",
    "SIGABRT": "an abort",
    "SIGBUS": "a bus error",
    "SIGILL": "an illegal instruction",
    "SIGFPE": "an arithmetic error",
    "SIGKILL": "a kill, as by a system that is short of memory",
    "SIGTERM": "a termination from outside",
}
_STATUSES = {0xC0000005: "an access violation", 0xC00000FD: "a stack overflow", 0xC0000409: "a stack overrun"}
"""Exit statuses of crashes on Windows."""


def worker_command(threads: int) -> list[str]:
    """Return the command of a worker: the Blender that runs this, with this number of threads, or its Python.

    Raises
    ------
    MeshferryError
        The path of the Python that runs this is unknown.
    """
    bpy = sys.modules.get("bpy")
    blender = str(bpy.app.binary_path) if bpy is not None and hasattr(bpy, "app") else ""
    if blender:
        # The option of the exit status counts for scripts that follow it.
        options = ["-b", "--factory-startup", "--threads", str(threads), "--python-exit-code", "3"]
        return [blender, *options, "--python", str(_SCRIPT), "--", WORKER_COMMAND]
    if not sys.executable:
        raise MeshferryError("The Python that runs this cannot be found, so no worker can be started")
    return [sys.executable, str(_SCRIPT), WORKER_COMMAND]


class WorkerProcess:
    """A worker process, its input and output, and the end of its log.

    It starts to load what it will need at once, but does nothing before :meth:`listen` and the setup.

    Parameters
    ----------
    threads:
        How many threads Blender may have in it; 0: as many as it likes.
    loads_blender:
        Whether it will need Blender for every task.

    Its temporary files lie in a folder of its own, which is removed after its end. If the driver is killed, too,
    :func:`remove_abandoned_folders` removes it.
    """

    def __init__(self, command: Sequence[str], threads: int = 0, *, loads_blender: bool = False) -> None:
        self.threads = threads
        windows = sys.platform == "win32"
        try:
            self._folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
            self._lock_file = locks.hold(Path(self._folder, _LOCK_NAME))
        except OSError as problem:
            folder = tempfile.gettempdir()
            raise MeshferryError(f"{folder}: temporary files cannot be made there: {refusal(problem)}") from None
        try:
            self._process = subprocess.Popen(  # noqa: S603 (this very program)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(self._folder),
                # A group of its own: Ctrl+C goes to the driver alone, and all of the group can be killed at once.
                start_new_session=not windows,
                creationflags=_OWN_GROUP if windows else 0,
            )
        except OSError as problem:
            self._remove_folder()
            raise MeshferryError(f"A worker cannot be started: {command[0]}: {problem.strerror or problem}") from None
        self._log = bytearray()
        self._readers: list[threading.Thread] = []
        self._token = secrets.token_hex(16)
        hello = {"token": self._token, "threads": threads, "loads_blender": loads_blender}
        self.send(messages.encode(hello))

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def listen(self, on_message: Callable[[dict[str, Any] | None], None]) -> None:
        """Start the threads that read the output.

        Parameters
        ----------
        on_message:
            Is called by a thread with the header of each message, and with None after the last one.
        """
        targets = (lambda: self._read_messages(on_message), self._read_log)
        self._readers = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in self._readers:
            thread.start()

    def send(self, message: bytes) -> None:
        """Write a message; if the process has ended, the reader of its output will notice."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(message)
                self._process.stdin.flush()

    def stop(self) -> None:
        """Ask the process to end after its present task."""
        self.send(messages.encode({"stop": True}))

    def kill(self) -> None:
        """End the process and all that it has started, at once."""
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                tool = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
                command = [str(tool), "/F", "/T", "/PID", str(self.pid)]
                subprocess.run(command, check=False, capture_output=True)  # noqa: S603 (the system's own)
            else:
                os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()
        self.close(_REST_SECONDS)

    def close(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it came."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        for thread in self._readers:
            thread.join(_REST_SECONDS)
        self._remove_folder()
        # A child of the process may hold the other end of a pipe, and its reader still wait.
        is_read = not any(thread.is_alive() for thread in self._readers)
        outputs = (self._process.stdout, self._process.stderr) if is_read else ()
        for stream in (self._process.stdin, *outputs):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return True

    def describe_end(self) -> str:
        """Return the cause of the process's end and its last output."""
        last = self.last_output()
        return death(self._process.returncode) + (f"; its last output: {last}" if last else "")

    def last_output(self) -> str:
        """Return the end of the output since the process began with its task, in one line."""
        return _last_lines(bytes(self._log).rpartition(TASK_MARK)[2].decode("utf-8", "replace"))

    def _remove_folder(self) -> None:
        if self._lock_file is not None:
            self._lock_file.close()  # Windows cannot remove an open file
        remove_folder(self._folder)

    def _read_messages(self, on_message: Callable[[dict[str, Any] | None], None]) -> None:
        """Skip what is printed before the token, and pass on the messages after it."""
        stream: Any = self._process.stdout
        token = self._token.encode("ascii") + b"\n"
        with contextlib.suppress(OSError, ValueError, EOFError):
            while (line := stream.readline()) and line != token:
                self._add_to_log(line)
            while True:
                on_message(messages.read(stream)[0])
        on_message(None)

    def _read_log(self) -> None:
        """Read the standard error, so that the process never waits for a reader."""
        stream: Any = self._process.stderr
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(stream.fileno(), 4096):
                self._add_to_log(piece)

    def _add_to_log(self, piece: bytes) -> None:
        self._log += piece
        del self._log[:-_LOG_SIZE]


@contextlib.contextmanager
def started_early(count: int, threads: int, *, loads_blender: bool) -> Iterator[list[WorkerProcess]]:
    """Start workers for a pool that comes later; those that it does not take are killed at the end of the block."""
    processes: list[WorkerProcess] = []
    try:
        for _ in range(count):
            processes.append(WorkerProcess(worker_command(threads), threads, loads_blender=loads_blender))
        yield processes
    finally:
        for process in processes:
            process.kill()


def remove_abandoned_folders() -> None:
    """Remove temporary files of workers that were killed together with their driver, a day ago or earlier."""
    for folder in Path(tempfile.gettempdir()).glob(FOLDER_PREFIX + "*"):
        with contextlib.suppress(OSError):
            path = folder / _LOCK_NAME
            if time.time() - max(folder.stat().st_mtime, path.stat().st_mtime) < _ABANDONED_AGE:
                continue
            lock_file = locks.hold(path)
            if lock_file is not None:
                lock_file.close()
                remove_folder(folder)


def _environment(folder: str) -> dict[str, str]:
    """Return the environment of a worker: one thread for linear algebra, as there may be a worker for each core."""
    own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    return dict.fromkeys(_THREADS, "1") | {"PYTHONUNBUFFERED": "1"} | os.environ | own


def death(status: int | None) -> str:
    """Describe the end of a process by its exit status."""
    if status is None:
        return "The process does not answer"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            return f"The process ended by signal {-status}"
        return f"The process died of {_SIGNALS[name]} ({name})" if name in _SIGNALS else f"The process ended by {name}"
    if status & 0xFFFFFFFF in _STATUSES:
        return f"The process died of {_STATUSES[status & 0xFFFFFFFF]}"
    return f"The process ended with status {status}"


def _last_lines(text: str) -> str:
    """Return the important lines at the end of a log: of a crash in C its kind and the innermost line of Python."""
    lines = [line for line in map(one_line, text.splitlines()) if line]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is None:
        chosen = lines[-_LAST_LINES:]
    else:
        thread = next((number for number, line in enumerate(lines) if line.startswith("Current thread")), fatal)
        frame = next((line for line in lines[thread:] if re.match(r'File ".*", line \d+', line)), "")
        # Paths may contain the name of the user.
        frame = re.sub(r'^File ".*?([^/\\"]+)", line (\d+) in (.*)$', r"\1, line \2, in \3", frame)
        chosen = [lines[fatal].removeprefix("Fatal Python error: "), *([frame] if frame else [])]
    joined = " | ".join(chosen)
    return joined if len(joined) <= _LAST_LENGTH else "…" + joined[-_LAST_LENGTH:]
