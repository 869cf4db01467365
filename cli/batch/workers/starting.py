"""Worker processes: how they are started, what they said last, how they end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import refusal, remove_folder
from ...reporting import one_line
from .messages import Greeting

_SCRIPT = Path(__file__).resolve().parents[2] / "convert.py"
"""Finds the package and its libraries in a Python or a Blender that knows of neither."""
WORKER_COMMAND = "batch-worker"
"""What that script is told to become a worker."""
FOLDER_PREFIX = "meshferry-worker-"
_HELD_FILE = "driver.lock"
"""In the folder of a worker's temporary files; held as long as the driver lives."""
_ABANDONED_AGE = 86400.0
"""Seconds after which such a folder that nobody holds is removed: where files cannot be held, it may be in use."""
TASK_MARK = b"\x1e\n"
"""Written by a worker to stderr before each task: the driver may read a result only after the next task has printed."""
_KEPT = 16 * 1024
"""Bytes of a worker's last output that are kept."""
_OWN_GROUP = 0x08000200
"""Of Windows: CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW."""
_WORDS_LINES = 3
_WORDS_LENGTH = 400
_DRAINED = 2.0
"""Seconds to wait for the rest of what a dead process has said."""
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
"""What Windows says of a crash."""


def worker_command(threads: int) -> list[str]:
    """Return what starts a worker: the Blender that runs this, with so many threads, or Python where that runs this.

    Raises
    ------
    MeshferryError
        Nobody knows which Python runs this.
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
    """A process, the line that it holds on to, and the last of what it said.

    Parameters
    ----------
    wake:
        Is called, by a thread of this class, once the process has ended.

    Its temporary files lie in a folder of its own, so that none is left of one that was killed. Where its driver was
    killed with it, :func:`remove_abandoned_folders` takes them away.
    """

    def __init__(self, command: Sequence[str], greeting: Greeting, wake: Callable[[], None]) -> None:
        windows = sys.platform == "win32"
        try:
            self._folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
            self._held = locks.hold(Path(self._folder, _HELD_FILE))
        except OSError as problem:
            place = tempfile.gettempdir()
            raise MeshferryError(f"{place}: temporary files cannot be made there: {refusal(problem)}") from None
        try:
            self._process = subprocess.Popen(  # noqa: S603 (this very program)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=_environment(self._folder),
                # A group of its own: Ctrl+C goes to the driver alone, and all of the group can be ended at once.
                start_new_session=not windows,
                creationflags=_OWN_GROUP if windows else 0,
            )
        except OSError as problem:
            self._remove_folder()
            raise MeshferryError(f"A worker cannot be started: {command[0]}: {problem.strerror or problem}") from None
        self._said = bytearray()
        self._wake = wake
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._tell(greeting.line())

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Ask the process to end after the file it is at."""
        self._tell(b"stop\n")

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
        self.close(_DRAINED)

    def close(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it came."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._listener.join(_DRAINED)
        self._remove_folder()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not (stream is self._process.stdout and self._listener.is_alive()):
                with contextlib.suppress(OSError):
                    stream.close()
        return True

    def how_it_ended(self) -> str:
        """Say in a few words what the process died of, and what it said last."""
        return f"{death(self._process.returncode)}{_after(self.last_words())}"

    def last_words(self) -> str:
        """Return the end of the output since the process began with its task, in one line."""
        return _last_words(bytes(self._said).rpartition(TASK_MARK)[2].decode("utf-8", "replace"))

    def _remove_folder(self) -> None:
        if self._held is not None:
            self._held.close()  # no open file can be removed on Windows
        remove_folder(self._folder)

    def _tell(self, line: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended, which shows elsewhere
            if self._process.stdin is not None:
                self._process.stdin.write(line)

    def _listen(self) -> None:
        """Read all that the process says, so that it never waits for a reader, and keep the end of it."""
        stream = self._process.stdout
        with contextlib.suppress(OSError, ValueError):
            while stream is not None and (piece := os.read(stream.fileno(), 4096)):
                self._said += piece
                del self._said[:-_KEPT]
        self._process.wait()
        self._wake()


def remove_abandoned_folders() -> None:
    """Remove temporary files of workers that were killed together with their driver, a day ago or earlier."""
    for folder in Path(tempfile.gettempdir()).glob(FOLDER_PREFIX + "*"):
        with contextlib.suppress(OSError):
            place = folder / _HELD_FILE
            if time.time() - max(folder.stat().st_mtime, place.stat().st_mtime) < _ABANDONED_AGE:
                continue
            held = locks.hold(place)
            if held is not None:
                held.close()
                remove_folder(folder)


def _environment(folder: str) -> dict[str, str]:
    """Return the environment of a worker: as many workers as cores, so one thread each for small matrices."""
    own = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    return dict.fromkeys(_THREADS, "1") | {"PYTHONUNBUFFERED": "1"} | os.environ | own


def death(status: int | None) -> str:
    """Say what a process died of by its exit status."""
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


def _after(words: str) -> str:
    return f"; its last output: {words}" if words else ""


def _last_words(text: str) -> str:
    """Return what matters of the end of a log: of a crash in C its kind and the innermost line of Python."""
    lines = [one_line(line) for line in text.splitlines()]
    lines = [line for line in lines if line]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    if fatal is not None:
        thread = next((number for number, line in enumerate(lines) if line.startswith("Current thread")), fatal)
        place = next((line for line in lines[thread:] if re.match(r'File ".*", line \d+', line)), "")
        # Paths may hold the name of the user.
        place = re.sub(r'^File ".*?([^/\\"]+)", line (\d+) in (.*)$', r"\1, line \2, in \3", place)
        kept = [lines[fatal].removeprefix("Fatal Python error: "), *([place] if place else [])]
    else:
        kept = lines[-_WORDS_LINES:]
    words = " | ".join(kept)
    return words if len(words) <= _WORDS_LENGTH else "…" + words[-_WORDS_LENGTH:]
