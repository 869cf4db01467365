"""Progress at the mouse pointer while an operator works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress(context: Any, total: int) -> Iterator[Callable[[int], None]]:
    """Show progress from 0 to ``total`` steps; yield a function that takes the number of steps done.

    Works without a window too, where it shows nothing. The pointer is restored whatever happens.
    """
    manager = context.window_manager
    manager.progress_begin(0, max(total, 1))
    try:
        yield lambda done: manager.progress_update(min(done, total))
    finally:
        manager.progress_end()
