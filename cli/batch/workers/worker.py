"""Main loop of a worker process: it reads tasks from its standard input and writes results to its standard output.

Blender and its add-ons print to standard output and may read standard input, so the worker first duplicates both
descriptors for itself, then redirects descriptor 1 to the standard error and 0 to the null device.

A thread reads the standard input continuously. The end of that stream means that the driver has ended, and the thread
then terminates this process immediately, even during a conversion. Blender must run in the main thread.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.disk.atomic_write import remove_folder
from ... import environment, interruption
from ...reporting import cause, make_streams_safe
from . import messages
from .converting import Converter, ThreadLimitedSession
from .messages import Setup
from .resources import peak_memory
from .worker_process import FOLDER_PREFIX, empty_log

_ORPHANED = 4
"""Exit status of a worker after the end of its driver."""
_BEYOND_LIMIT = 60.0
"""Seconds after the time limit of a task at which the process terminates itself. This is needed if it hangs in C code
that blocks the reading thread, and the driver has been killed."""
_NEW_OBJECTS = 50_000
"""Allocations between two runs of the garbage collector. The default of 700 takes 8% of the time of small files."""


def run() -> int:
    """Execute tasks until the driver sends no more; return the exit status."""
    gc.disable()  # until all modules are loaded
    requests, answers = _take_streams()
    make_streams_safe()
    faulthandler.enable(sys.__stderr__ or 2)
    interruption.ignore()  # the driver gets the same signal and waits for the present tasks
    hello = _read_hello(requests)
    answers.write(b"\n" + hello["token"].encode("ascii") + b"\n")
    answers.flush()
    inbox = _Inbox(requests)
    status = 0
    with contextlib.suppress(BrokenPipeError):  # the driver has ended
        status = _serve(hello, inbox, answers)
    # Skip the shutdown of Blender and Python, which is slow and may crash. The driver removes the temporary files.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private streams for requests and answers, which no other code in this process uses."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if sys.platform == "win32":
        import msvcrt

        for descriptor in (requests, answers):
            msvcrt.setmode(descriptor, os.O_BINARY)
    return os.fdopen(requests, "rb"), os.fdopen(answers, "wb")


def _read_hello(requests: BinaryIO) -> dict[str, Any]:
    try:
        return messages.read(requests)[0]
    except (EOFError, ValueError):
        raise MeshferryError("A worker is started by 'meshferry batch', not by hand") from None


class _Inbox:
    """Queue of the requests of the driver, filled by a thread."""

    def __init__(self, requests: BinaryIO) -> None:
        self._requests = requests
        self._queue: queue.SimpleQueue[tuple[dict[str, Any], bytes | None]] = queue.SimpleQueue()
        self._is_stopped = False
        threading.Thread(target=self._read, daemon=True).start()

    def get(self) -> tuple[dict[str, Any], bytes | None] | None:
        """Wait for a request; return None after a stop request, even if other requests are queued."""
        request = self._queue.get()
        return None if self._is_stopped else request

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError, ValueError):
            while True:
                header, content = messages.read(self._requests)
                self._is_stopped |= "stop" in header
                self._queue.put((header, content))
        folder = Path(tempfile.gettempdir())
        if folder.name.startswith(FOLDER_PREFIX):
            remove_folder(folder)
        os._exit(_ORPHANED)


def _serve(hello: dict[str, Any], inbox: _Inbox, answers: BinaryIO) -> int:
    """Execute the requested tasks; return the exit status."""

    def answer(message: bytes) -> None:
        answers.write(message)
        answers.flush()

    with ThreadLimitedSession(hello["threads"]) as session:
        if hello["loads_blender"]:  # while the driver plans
            with contextlib.suppress(MeshferryError):  # raised again by prepare()
                session.load()
        request = inbox.get()
        if request is None:
            return 0
        setup = Setup(**request[0])
        try:
            converter = Converter(setup, session)
            converter.prepare()
        except MeshferryError as problem:
            is_missing = isinstance(problem, MissingLibraryError)
            answer(messages.encode({"refused": cause(problem), "is_missing": is_missing}))
            return 1
        gc.collect()
        gc.freeze()  # exclude modules and tables of options, which are never released, from later collections
        gc.set_threshold(_NEW_OBJECTS, 10, 10)
        gc.enable()
        answer(messages.encode({"ready": environment.described(), "memory": peak_memory()}))
        while (request := inbox.get()) is not None:
            with contextlib.suppress(OSError):
                empty_log(2)
            with _time_limit(setup.time_limit):
                result = converter.convert(messages.parse_task(*request))
            answer(messages.encode_result(result, peak_memory()))
    return 0


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Terminate the process if it hangs in C code and the driver can no longer kill it."""
    if seconds:
        faulthandler.dump_traceback_later(seconds + _BEYOND_LIMIT, exit=True)
    try:
        yield
    finally:
        if seconds:
            faulthandler.cancel_dump_traceback_later()
