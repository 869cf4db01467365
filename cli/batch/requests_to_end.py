"""What asks a batch to end: schedulers of farms, a system that shuts down, a terminal that is closed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import NoReturn

_NAMES = ("SIGTERM", "SIGHUP", "SIGBREAK")
"""Of which each system knows some."""


@contextlib.contextmanager
def ending_tidily() -> Iterator[None]:
    """Take a request to end as Ctrl+C is taken: files under way are finished, nothing half written stays.

    What somebody chose to ignore, as ``nohup`` does, is still ignored.
    """
    taken = []
    if threading.current_thread() is threading.main_thread():  # no other may
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _interrupt)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
