"""Main loop of a worker process: it reads tasks from its standard input and writes results to its standard output.

Blender and its add-ons print to standard output and may read standard input, so the worker first duplicates both
descriptors for itself, then redirects descriptor 1 to the standard error and 0 to the null device.

A thread reads the standard input. Its end means that the driver has ended: the thread then terminates this process,
even during a conversion. Blender must run in the main thread.
"""

from __future__ import annotations

import _thread
import contextlib
import faulthandler
import gc
import math
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.disk.atomic_write import remove_folder
from ... import environment, interruption
from ...conversions.blend_files import BlendSession
from ...conversions.settings import Settings
from ...reporting import cause, make_streams_safe
from . import messages
from .converting import Converter, ThreadLimitedSession
from .messages import Setup
from .resources import peak_memory
from .worker_process import FOLDER_PREFIX

_BEYOND_LIMIT = 60.0
"""Seconds after the time limit of a task at which the process terminates itself. This is needed if it hangs in C code
that blocks the reading thread, and the driver has been killed."""
_REMOVAL_LIMIT = 60.0
"""Time limit in seconds for removing the temporary files after the driver was killed."""
_WATCHDOG_AGE = 10.0
"""Seconds after which the watchdog is restarted. A restart for each task would take 0.1 ms, as it makes a thread."""
_Answer = Callable[[bytes], None]
_Inbox = queue.SimpleQueue[tuple[dict[str, Any], bytes | None] | None]
_NEW_OBJECTS = 50_000
"""Allocations between two runs of the garbage collector. The default of 700 takes 8% of the time of small files."""


def run() -> int:
    """Execute tasks until the driver sends no more, then exit."""
    gc.disable()  # until all modules are loaded
    requests, answers = _take_streams()
    make_streams_safe()
    faulthandler.enable(sys.__stderr__ or 2)
    interruption.ignore()  # the driver gets the same signal and waits for the present tasks
    try:
        hello, _ = messages.read(requests)
    except (EOFError, ValueError):
        _remove_temporary_files()  # the driver may have been killed
        raise MeshferryError("A worker is started by 'meshferry batch', not by hand") from None
    inbox: _Inbox = queue.SimpleQueue()
    reader = threading.Thread(target=_read_requests, args=(requests, inbox), daemon=True)
    reader.start()
    try:
        answers.write(b"\n" + hello["token"].encode("ascii") + b"\n")
        answers.flush()
        _serve(hello, inbox, answers)
    except BrokenPipeError:  # the driver has ended, and the reader removes the temporary files before it exits
        reader.join(_REMOVAL_LIMIT)
    # Skip the shutdown of Blender and Python, which is slow and may crash. The driver removes the temporary files.
    os._exit(0)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private streams for requests and answers, which no other code in this process uses."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (requests, answers):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return os.fdopen(requests, "rb"), os.fdopen(answers, "wb")


def _read_requests(requests: BinaryIO, inbox: _Inbox) -> None:
    """Queue the requests of the driver, None for a stop; terminate this process when the driver ends."""
    with contextlib.suppress(EOFError, OSError, ValueError):
        while True:
            header, content = messages.read(requests)
            if "interrupt" in header:
                _thread.interrupt_main()
                continue
            if "stop" not in header:
                inbox.put((header, content))
                continue
            with contextlib.suppress(queue.Empty):
                inbox.get_nowait()  # the task that was sent ahead
            inbox.put(None)
    _remove_temporary_files()
    os._exit(1)


def _remove_temporary_files() -> None:
    """Remove the folder that the driver made for the temporary files of this process."""
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(FOLDER_PREFIX):
        remove_folder(folder)


def _serve(hello: dict[str, Any], inbox: _Inbox, answers: BinaryIO) -> None:
    """Execute the requested tasks."""

    def answer(message: bytes) -> None:
        answers.write(message)
        answers.flush()

    with ThreadLimitedSession(hello["threads"], hello["number"]) as session:
        if (request := inbox.get()) is None:
            return
        serve = _serve_run if "run" in request[0] else _serve_batch
        serve(request[0], session, inbox, answer)


def _serve_run(header: dict[str, Any], session: BlendSession, inbox: _Inbox, answer: _Answer) -> None:
    """Execute the jobs of one run of ``convert``."""
    from . import conversion_messages, conversion_server

    run = header["run"]
    setup = conversion_messages.RunSetup(Settings(**run["settings"]), run["several"], run["libraries"])
    server = conversion_server.ConversionServer(setup, session, inbox, answer)
    with contextlib.suppress(MeshferryError):  # the first job raises it again
        session.load()
    answer(_ready())
    goes_on = True
    while goes_on and (request := inbox.get()) is not None:
        _empty_log()
        goes_on = server.run(conversion_messages.parse_job(request[0]["job"]), request[0]["clips"])


def _serve_batch(header: dict[str, Any], session: BlendSession, inbox: _Inbox, answer: _Answer) -> None:
    """Execute the tasks of a batch."""
    setup = Setup(**header | {"settings": Settings(**header["settings"])})
    try:
        converter = Converter(setup, session)
        converter.prepare()
    except MeshferryError as problem:
        is_missing = isinstance(problem, MissingLibraryError)
        answer(messages.encode({"refused": cause(problem), "is_missing": is_missing}))
        return
    answer(_ready())
    watchdog = _Watchdog(setup.time_limit)
    while True:
        if inbox.empty():
            watchdog.stop()
        if (request := inbox.get()) is None:
            return
        _empty_log()
        watchdog.start()
        result = converter.convert(messages.parse_task(*request))
        answer(messages.encode_result(result, peak_memory()))


class _Watchdog:
    """Terminates this process if a task exceeds its time limit by more than a minute."""

    def __init__(self, time_limit: float) -> None:
        self._time_limit = time_limit
        self._started = -math.inf

    def start(self) -> None:
        """Start the watchdog, unless it was started shortly before."""
        if self._time_limit and time.monotonic() - self._started > _WATCHDOG_AGE:
            self._started = time.monotonic()
            faulthandler.dump_traceback_later(self._time_limit + _WATCHDOG_AGE + _BEYOND_LIMIT, exit=True)

    def stop(self) -> None:
        """Stop the watchdog while this process waits for a task."""
        self._started = -math.inf
        faulthandler.cancel_dump_traceback_later()


def _ready() -> bytes:
    """Enable the garbage collector, as all modules are loaded; return the message about that."""
    gc.collect()
    gc.freeze()  # exclude modules and tables of options, which are never released, from later collections
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
    gc.enable()
    return messages.encode({"ready": environment.described(), "memory": peak_memory()})


def _empty_log() -> None:
    """Empty the log, which has the output of one task."""
    with contextlib.suppress(OSError):
        if os.lseek(2, 0, os.SEEK_END):
            os.lseek(2, 0, os.SEEK_SET)
            os.ftruncate(2, 0)
