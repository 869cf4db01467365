"""Termination requests: Ctrl+C, SIGTERM of the system or a scheduler, SIGHUP of a closed terminal.

The signal handler sets a flag, and commands call :func:`check` between files. It does not raise at once: Blender
swallows exceptions in its Python exporters and crashes if one is raised while it is imported. Code that blocks without
side effects runs in :func:`raising`.

A process has one set of signal handlers, so the flag is module state. Imports the standard library alone, because it is
loaded before everything else.
"""

import contextlib
import signal
import time
from collections.abc import Iterator

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Signals that request termination; each operating system has some of them."""
_STATUS_BASE = 128
"""Shells report termination by a signal as 128 plus its number."""
_REPEAT_SECONDS = 0.5
"""Time in which a repeated signal is ignored: programs such as ``timeout`` signal the process and then its group."""


class _Flag:
    """The last termination request, and how it is handled at the moment."""

    def __init__(self) -> None:
        self.number = 0
        self.time = 0.0
        self.raising = 0
        """Number of active :func:`raising` blocks."""
        self.deferring = 0
        """Number of active :func:`deferring` blocks."""

    def clear(self) -> None:
        """Discard an earlier request."""
        self.number = 0

    def receive(self, number: int, _frame: object) -> None:
        """Set the flag. The second signal raises at once, to end long work on one file."""
        now = time.monotonic()
        is_first = not self.number
        if is_first:
            self.number, self.time = number, now
        elif now - self.time < _REPEAT_SECONDS:
            return
        if not self.deferring and (self.raising or not is_first):
            raise KeyboardInterrupt


_flag = _Flag()


@contextlib.contextmanager
def handled(*, is_process: bool = False) -> Iterator[None]:
    """Handle termination signals. Ignored ones, such as SIGHUP under ``nohup``, stay ignored.

    Parameters
    ----------
    is_process:
        Ignore the signals afterwards instead of restoring the handlers, so that the process exits with its own status.
    """
    before = {number: signal.getsignal(number) for number in _numbers()}
    if _flag.receive in before.values():
        yield  # an outer ``handled`` block handles the signals
        return
    _flag.clear()
    taken = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in taken:
            signal.signal(number, _flag.receive)
    except ValueError:  # only the main thread can set handlers
        taken = {}
    try:
        yield
    finally:
        for number, handler in taken.items():
            # None represents a C handler, such as Blender's for SIGINT, which Python cannot restore.
            restored = signal.default_int_handler if handler is None else handler
            signal.signal(number, signal.SIG_IGN if is_process else restored)


def _numbers() -> list[int]:
    return [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


def ignore() -> None:
    """Ignore all termination requests from now on: another process handles them."""
    for number in _numbers():
        signal.signal(number, signal.SIG_IGN)


def accept_forwarded() -> None:
    """Set the flag on SIGINT again, after :func:`ignore`: the other process forwards requests."""
    signal.signal(signal.SIGINT, _flag.receive)


def is_requested() -> bool:
    """Return whether termination was requested."""
    return bool(_flag.number)


def check() -> None:
    """Raise KeyboardInterrupt if termination was requested; called between two files."""
    if _flag.number:
        raise KeyboardInterrupt


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """Raise KeyboardInterrupt immediately on a request, or for an earlier one; for code that writes no files."""
    _flag.raising += 1
    try:
        check()
        yield
    finally:
        _flag.raising -= 1


@contextlib.contextmanager
def deferring() -> Iterator[None]:
    """Defer even the exception of a second signal, which would crash Blender in this code."""
    _flag.deferring += 1
    try:
        yield
    finally:
        _flag.deferring -= 1


def status() -> int:
    """Return the exit status of an interrupted process: 130 after Ctrl+C, 143 after SIGTERM, 129 after SIGHUP."""
    is_key = _flag.number == getattr(signal, "SIGBREAK", None)  # Ctrl+Break
    return _STATUS_BASE + (signal.SIGINT if is_key or not _flag.number else _flag.number)
