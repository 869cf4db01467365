"""Worker processes as seen by the driver: start, messages, log and end."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....io_formats.core.errors import MeshferryError, refusal
from ....io_formats.disk.atomic_write import remove_folder
from ... import convert
from ...output import one_line
from . import protocol

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
    bpy = sys.modules.get("bpy")
    blender = str(bpy.app.binary_path) if bpy is not None and hasattr(bpy, "app") else ""
    if blender:
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
            raise MeshferryError(
                "A worker cannot be started: {}: {}", command[0], problem.strerror or problem
            ) from None
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

    def prepare(self, setup: bytes) -> dict[str, Any] | None:
        """Send the setup; return the first message of the worker, or None if it has ended."""
        self.send(setup)
        token = self._token.encode("ascii") + b"\n"
        while (line := self._output.readline()) and line != token:
            self._log.write(line)
        return self.receive()

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
        """Describe the end of the process, with its last output."""
        last = f"; its last output: {self.last_output}" if self.last_output else ""
        return death(self._process.returncode) + last

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
