"""A Blender that takes no more cores than one of several workers should."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ...conversions.blend_files import BlendSession


class ModestSession(BlendSession):
    """A Blender for many small files, of which several run at once.

    Blender starts a thread for each core that it finds. For small files these only wait for each other, busily: twice
    the processor time for the same work, which the other workers lack.

    Parameters
    ----------
    threads:
        How many Blender may have; 0: as many as it likes.
    """

    def __init__(self, threads: int) -> None:
        # What Blender says goes into the log of the worker: the last words of a crash.
        super().__init__(show_chatter=True)
        self._threads = threads

    def load(self) -> Any:
        """Load Blender as :class:`BlendSession` does."""
        if self._bpy is not None:
            return self._bpy
        with _few_cores(self._threads):
            return super().load()


def threads_for(jobs: int) -> int:
    """Return how many threads each of so many workers should have; one core is the driver's."""
    return max(1, (cores() - 1) // jobs)


def cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _few_cores(wanted: int) -> Iterator[None]:
    """Let this process see so many cores for a while: a library that is loaded meanwhile starts no more threads."""
    if sys.platform != "linux" or not wanted or "bpy" in sys.modules:
        yield
        return
    usual = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, sorted(usual)[:wanted])
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, usual)
