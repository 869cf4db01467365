"""A worker process: greeted on its standard input, it calls the driver and does one task after the other.

It ends when the driver does, however that ends: the driver holds the other end of the standard input open, and a small
thread waits for that to close. Blender itself works in the main thread, as it has to.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.disk.atomic_write import remove_folder
from ... import environment, interruption
from ...reporting import cause, make_streams_safe
from . import messages
from .converting import Converter
from .memory import peak_memory
from .messages import Greeting
from .starting import FOLDER_PREFIX, TASK_MARK

_STANDARD_INPUT = 0
_ORPHANED = 4
"""Exit status of a worker whose driver is gone; nobody reads it."""
_BEYOND_LIMIT = 60.0
"""Seconds after the time limit of a file at which the process ends itself: it hangs where not even the thread that
watches for the end of the driver gets a turn, and the driver, which ends what takes too long, is gone."""


def main() -> int:
    """Work until there is nothing more to do; return the exit status."""
    make_streams_safe()
    faulthandler.enable(sys.__stderr__ or 2)
    interruption.ignore()  # the driver is asked to end as well, and lets files be finished
    greeting = Greeting.parse(_first_line())
    stopping = threading.Event()
    threading.Thread(target=_watch_driver, args=(stopping,), daemon=True).start()
    with Client(greeting.address, greeting.family, bytes.fromhex(greeting.key)) as connection:
        messages.send(connection, {"hello": greeting.number})
        return _serve(connection, greeting, stopping)


def run() -> int:
    """Work as a process of its own; return its exit status, or end it where Blender had better not shut down."""
    status = main()
    if environment.is_blender_module():
        environment.leave(status)
    return status


def _first_line() -> bytes:
    """Read byte by byte, so that nothing of what follows gets stuck in a buffer."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(_STANDARD_INPUT, 1)
        if not piece:
            raise MeshferryError("A worker is started by 'meshferry batch', not by hand")
        line += piece
    return bytes(line)


def _watch_driver(stopping: threading.Event) -> None:
    """Wait for a word to stop after the present file, and for the end of the driver to end at once."""
    with contextlib.suppress(OSError):
        while os.read(_STANDARD_INPUT, 64):
            stopping.set()
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(FOLDER_PREFIX):
        remove_folder(folder)
    os._exit(_ORPHANED)


def _serve(connection: Connection, greeting: Greeting, stopping: threading.Event) -> int:
    """Do the tasks that come; return the exit status."""
    with contextlib.ExitStack() as stack:
        try:
            converter = stack.enter_context(Converter(greeting.setup))
            converter.prepare()
        except MeshferryError as problem:
            is_missing = isinstance(problem, MissingLibraryError)
            messages.send(connection, {"refused": cause(problem), "is_missing": is_missing})
            return 1
        gc.collect()
        gc.freeze()  # modules, tables of options: what stays for good need not be walked again and again
        messages.send(connection, {"ready": environment.described(), "memory": peak_memory()})
        with contextlib.suppress(OSError, EOFError):  # the driver has closed the line: there is nothing more to do
            while not stopping.is_set():
                loaded = messages.receive_task(connection)
                os.write(2, TASK_MARK)
                with _time_limit(greeting.time_limit):
                    result = converter.convert(loaded)
                messages.send(connection, messages.result_message(result) | {"memory": peak_memory()})
    return 0


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End the process where it hangs in C code and the driver is not there any more to end it."""
    if seconds:
        faulthandler.dump_traceback_later(seconds + _BEYOND_LIMIT, exit=True)
    try:
        yield
    finally:
        if seconds:
            faulthandler.cancel_dump_traceback_later()
