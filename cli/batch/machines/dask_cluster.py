"""A batch on the machines of a dask cluster: the workers of its pool are shards, which the scheduler hands out.

A task of dask starts ``meshferry batch --plan … --range …`` on the worker it comes to, as a process of its own: what
brings Blender down costs the shard's file, never the worker. The task is :func:`subprocess.run` itself, so that nothing
of this package has to be sent, or to be importable under the same name elsewhere; the workers need the command, and to
see the output folder and the sources under the same paths.

What a shard did stands in its own journal in ``meshferry-batch/shards/`` until the driver has it. If the driver or the
scheduler goes away, the next run takes those over.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ... import environment, interruption
from ...reporting import one_line
from ..journal import journal_entry
from ..tasks import LoadedTask, Result, Status, Task
from ..workers.worker_process import death
from . import ranges, shard_files
from .machine_arguments import WITH_PARENT

LONGEST_SHARD = 200
"""Files: what a lost machine has done in vain at most, and a few seconds of work, against the second of a start."""
SHORTEST_SHARD = 10
"""Fewer are not worth a start, unless threads would have nothing to do."""
SHARDS_A_THREAD = 8
"""So that all threads end at about the same time."""
_AHEAD = 2
"""Shards a thread that the scheduler has: a thread never waits for the driver."""
_RETRIES = 2
_CONNECT_SECONDS = 20
_LOOK_SECONDS = 30
_LONELY_SECONDS = 300
"""How long all workers may be away: machines that start anew come back."""
_LAST_WORDS = 300
_GO_ON = "What was done is kept: run the same command again to go on"


@dataclass(frozen=True, slots=True)
class _Shard:
    tasks: tuple[Task, ...]
    text: str
    """Their lines of the plan, as ``--range`` takes them."""


class DaskPool:
    """The machines of a dask cluster, used as :class:`..workers.pool.Pool` uses the processes of this one.

    Parameters
    ----------
    address:
        Of the scheduler, such as ``tcp://farm:8786``.
    output:
        The output folder, absolute; the plan lies in it.
    command:
        What starts Meshferry on the workers.
    options:
        Arguments for every shard, such as ``--time-limit 60``.

    Raises
    ------
    MissingLibraryError
        dask.distributed is not installed.
    MeshferryError
        From ``with``: the scheduler cannot be reached.
    """

    def __init__(
        self, address: str, output: Path, *, command: Sequence[str] = ("meshferry",), options: Sequence[str] = ()
    ) -> None:
        self._address = address
        self._output = output
        self._command = tuple(command)
        self._options = tuple(options)
        self._distributed = _library()
        self._client: Any = None
        self._held = contextlib.ExitStack()

    def __enter__(self) -> DaskPool:
        self._held.enter_context(_quiet())
        try:
            with interruption.raising():
                self._client = self._distributed.Client(self._address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError, ImportError, RuntimeError) as problem:
            self._held.close()
            raise MeshferryError(
                f"No dask scheduler answers at {self._address}: {one_line(str(problem))} ({self._version()})"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError:
            self.__exit__(None, None, None)
            raise MeshferryError(
                f"The dask scheduler at {self._address} has no workers; start some with: dask worker {self._address}"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A scheduler that is gone cannot be taken leave of.
        with contextlib.suppress(Exception):
            self._client.close(timeout=_CONNECT_SECONDS)
        self._client = None
        self._held.close()

    def run(self, tasks: Iterable[LoadedTask]) -> Iterator[Result]:
        """Do all tasks; yield what became of each, a shard at a time, in the order in which they end.

        Raises
        ------
        MeshferryError
            The scheduler or all workers have gone away, or shards cannot run where they came to. What was done is in
            the journal, or in those of the shards.
        """
        shards = self._shards(tasks)
        running: dict[Any, _Shard] = {}
        try:
            while True:
                for shard in itertools.islice(shards, max(0, self._threads() * _AHEAD - len(running))):
                    running[self._submit(shard)] = shard
                if not running:
                    return
                for future in self._ended(running):
                    shard = running.pop(future)
                    yield from self._results(future, shard)
                    shard_files.remove(self._output, shard.text)
        finally:
            if running:
                with contextlib.suppress(Exception):
                    self._client.cancel(list(running))

    def _ended(self, running: Iterable[Any]) -> list[Any]:
        """Wait until shards have ended; return them.

        Raises
        ------
        MeshferryError
            Nobody is left who could do them.
        """
        lonely_since = None
        while True:
            try:
                with interruption.raising():
                    waited = self._distributed.wait(list(running), timeout=_LOOK_SECONDS, return_when="FIRST_COMPLETED")
                return list(waited.done)
            except TimeoutError:
                lonely_since = None if self._workers() else lonely_since or time.monotonic()
            except CancelledError:
                raise MeshferryError(
                    f"The dask scheduler at {self._address} has gone away ({self._version()}). {_GO_ON}"
                ) from None
            if lonely_since is not None and time.monotonic() - lonely_since > _LONELY_SECONDS:
                raise MeshferryError(f"All workers of the dask scheduler at {self._address} have gone away. {_GO_ON}")

    def _shards(self, loading: Iterable[LoadedTask]) -> Iterator[_Shard]:
        """Put conversions together, fewer at a time where there are too few for all threads."""
        loading = iter(loading)
        while True:
            threads = self._threads()
            tasks = [loaded.task for loaded in itertools.islice(loading, threads * SHARDS_A_THREAD * LONGEST_SHARD)]
            if not tasks:
                return
            size = shard_size(len(tasks), threads)
            for start in range(0, len(tasks), size):
                part = tuple(tasks[start : start + size])
                yield _Shard(part, ranges.spelt(sorted(task.number + 1 for task in part)))

    def _threads(self) -> int:
        """Return how many shards can run at once, now; where no worker has come yet, one."""
        return sum(self._workers().values()) or 1

    def _workers(self) -> dict[str, int]:
        """Return the threads of each worker by its address."""
        try:
            return dict(self._client.nthreads())
        except Exception:  # noqa: BLE001 (whatever it is, the next future tells of it)
            return {}

    def _submit(self, shard: _Shard) -> Any:
        arguments = ["batch", "--plan", str(self._output), "--range", shard.text, "--json", WITH_PARENT]
        command = [*self._command, *arguments, *self._options]
        return self._client.submit(
            subprocess.run,
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            pure=False,
            retries=_RETRIES,
            key=f"meshferry-{uuid.uuid4().hex}",
        )

    def _results(self, future: Any, shard: _Shard) -> Iterator[Result]:
        """Yield what became of the works of a shard that ended, well or not."""
        problem = future.exception()
        if problem is None:
            lines = future.result().stdout.splitlines()
            reason = "Its shard ended without a word of it"  # no shard of the same Meshferry does
        else:
            reason = self._reason(problem)
            lines = shard_files.lines(self._output, shard.text)
        told = {entry.target: entry for line in lines if (entry := journal_entry.parse(line)) is not None}
        for task in shard.tasks:
            entry = told.get(task.target)
            yield entry.told(task) if entry is not None else Result(task, Status.CRASHED, error=reason)

    def _reason(self, problem: BaseException) -> str:
        """Say why a shard died.

        Raises
        ------
        MeshferryError
            It could not run at all, and neither can the others.
        """
        if isinstance(problem, FileNotFoundError):
            raise MeshferryError(
                f"A dask worker has no command '{shlex.join(self._command)}': install Meshferry there, or say with "
                "--worker-command what starts it"
            )
        if isinstance(problem, subprocess.CalledProcessError) and 0 < problem.returncode < 256:
            raise MeshferryError(
                f"A dask worker could not begin: {_last_words(problem)}. The workers need to see the output folder and "
                f"the sources under the same paths, and the same Meshferry ({environment.described()})"
            )
        if isinstance(problem, subprocess.CalledProcessError):
            return f"{death(problem.returncode)}, and its shard with it: {_last_words(problem)}"
        if isinstance(problem, self._distributed.KilledWorker):
            return "The machines that had its shard went away, one after the other"
        raise MeshferryError(
            f"A dask worker could not start a shard: {type(problem).__name__}: {one_line(str(problem))} "
            f"({self._version()})"
        )

    def _version(self) -> str:
        return f"dask.distributed {self._distributed.__version__}"


def shard_size(count: int, threads: int) -> int:
    """Return how many of ``count`` files go into a shard."""
    share = -(-count // threads)
    return min(max(-(-share // SHARDS_A_THREAD), min(share, SHORTEST_SHARD)), LONGEST_SHARD)


def _last_words(problem: subprocess.CalledProcessError) -> str:
    said = (problem.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    return one_line(said[-1])[-_LAST_WORDS:].rstrip(".") if said else "it printed nothing"


def _library() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise MissingLibraryError(
            "--scheduler needs dask.distributed. " + environment.how_to_install(["distributed"])
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's own reports of lost connections out of the output: they are said once, in words."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
