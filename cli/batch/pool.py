"""Worker processes that do tasks, watched from outside: a crash or a hang costs one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType

from .converting import Setup
from .work import Result, Task

TIME_LIMIT = 600.0
"""Seconds that a file may take."""
RECYCLE_AFTER = 500
"""Files after which a fresh process takes over, so that what Blender does not give back does not pile up."""


class Pool:
    """Some worker processes, from the first task to the end of the ``with`` block.

    Parameters
    ----------
    setup:
        What all tasks have in common.
    jobs:
        How many processes work at once.
    time_limit:
        Seconds of wall time for one file, after which its process is killed; 0: no limit.
    recycle_after:
        Files after which a process is replaced; 0: never.
    command:
        What starts a worker; default: the same Python or Blender that runs this.
    """

    def __init__(
        self,
        setup: Setup,
        jobs: int,
        time_limit: float = TIME_LIMIT,
        recycle_after: int = RECYCLE_AFTER,
        *,
        command: Sequence[str] | None = None,
    ) -> None:
        raise NotImplementedError

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Do all tasks; yield what became of each, in the order in which they end.

        Tasks are taken when a worker is free for them, at most two a worker ahead. May be called again: the processes
        stay.

        Raises
        ------
        MeshferryError
            A worker cannot even start; its last words are in the text.
        MissingLibraryError
            It lacks a library, or Blender.
        """
        raise NotImplementedError
