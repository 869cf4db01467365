"""Batches on a dask cluster. The plan is split into shards, contiguous ranges of its lines.

A shard is a process ``meshferry batch --plan … --range …`` on a dask worker, so that a crash of Blender loses one file
and not the worker. Dask executes :func:`subprocess.run`, so this package need not be importable on the workers. They
need the command, and the same paths for the output folder and the sources.

If driver or scheduler end early, the next run merges the journals of the shards.
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
from typing import Any

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ... import environment, interruption
from ...reporting import one_line
from .. import journal
from ..tasks import LoadedTask, Result, Status, Task
from ..workers.worker_process import death
from . import shard as shard_journals
from .arguments import WITH_PARENT

LONGEST_SHARD = 200
"""Maximum number of files in a shard: the loss if a machine fails. Converting them takes much longer than a start."""
SHORTEST_SHARD = 10
"""Minimum number of files in a shard, as each shard starts a process. Smaller shards are used if threads would idle."""
SHARDS_A_THREAD = 8
"""Shards for each thread, so that all threads finish at about the same time."""
_LONGEST_RANGE = 10 * LONGEST_SHARD
"""Maximum number of plan lines from the first to the last task of a shard."""
_AHEAD = 2
"""Shards submitted for each thread, so that threads do not wait for the driver."""
_RETRIES = 2
_CONNECT_SECONDS = 20
_POLL_SECONDS = 30
"""Interval of checks for connected workers."""
_NO_WORKER_SECONDS = 300
"""Time without any worker after which the run ends; machines may restart."""
_OUTPUT_LENGTH = 300
"""Characters of the last output of a shard in messages."""
_CONTINUE = "Finished files are kept; run the same command again to continue"


@dataclass(frozen=True, slots=True)
class _Shard:
    tasks: tuple[Task, ...]
    lines: range
    """Lines of the plan from the first to the last task; the shard skips lines that are already done."""


class DaskPool:
    """The machines of a dask cluster, with the interface of :class:`..workers.pool.Pool`.

    Parameters
    ----------
    address:
        Address of the scheduler, such as ``tcp://farm:8786``.
    output:
        Absolute path of the output folder, which contains the plan.
    command:
        Command of Meshferry on the workers.
    options:
        Arguments for every shard, such as ``--time-limit 60``.

    Raises
    ------
    MissingLibraryError
        dask.distributed is not installed.
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

    def run(self, tasks: Iterable[LoadedTask]) -> Iterator[Result]:
        """Execute tasks; yield their results shard by shard, as the shards finish.

        Raises
        ------
        MeshferryError
            The scheduler cannot be reached, the connection to it or to all workers is lost, or the workers cannot run
            shards. All results are in the state or in the journals of the shards.
        """
        running: dict[Any, _Shard] = {}
        with _quiet(), self._connected():
            shards = self._shards(tasks)
            try:
                while True:
                    for shard in itertools.islice(shards, max(0, self._threads() * _AHEAD - len(running))):
                        running[self._submit(shard)] = shard
                    if not running:
                        return
                    for future in self._wait(running):
                        shard = running.pop(future)
                        yield from self._results(future, shard)
                        shard_journals.remove_journals(self._output, shard.lines)
            finally:
                with contextlib.suppress(Exception):  # the scheduler may already be down
                    self._client.cancel(list(running))

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            with interruption.raising():
                self._client = self._distributed.Client(self._address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError, ImportError, RuntimeError) as problem:
            raise MeshferryError(
                f"No dask scheduler answers at {self._address}: {one_line(str(problem))} ({self._version()})"
            ) from None
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
            yield
        except TimeoutError:
            raise MeshferryError(
                f"The dask scheduler at {self._address} has no workers; start some with: dask worker {self._address}"
            ) from None
        finally:
            with contextlib.suppress(Exception):  # the scheduler may already be down
                self._client.close(timeout=_CONNECT_SECONDS)

    def _wait(self, running: Iterable[Any]) -> list[Any]:
        """Wait until shards have finished; return their futures.

        Raises
        ------
        MeshferryError
            The connection to the scheduler or to all workers is lost.
        """
        no_worker_since = None
        while True:
            try:
                with interruption.raising():
                    waited = self._distributed.wait(list(running), timeout=_POLL_SECONDS, return_when="FIRST_COMPLETED")
                return list(waited.done)
            except TimeoutError:
                no_worker_since = None if self._workers() else no_worker_since or time.monotonic()
            except CancelledError:
                raise MeshferryError(
                    f"The dask scheduler at {self._address} has gone away ({self._version()}). {_CONTINUE}"
                ) from None
            if no_worker_since is not None and time.monotonic() - no_worker_since > _NO_WORKER_SECONDS:
                raise MeshferryError(
                    f"All workers of the dask scheduler at {self._address} have gone away. {_CONTINUE}"
                )

    def _shards(self, loading: Iterable[LoadedTask]) -> Iterator[_Shard]:
        """Group tasks into shards, which are smaller if there are few tasks for all threads."""
        loading = iter(loading)
        while True:
            threads = self._threads()
            tasks = [loaded.task for loaded in itertools.islice(loading, threads * SHARDS_A_THREAD * LONGEST_SHARD)]
            if not tasks:
                return
            yield from make_shards(tasks, shard_size(len(tasks), threads))

    def _threads(self) -> int:
        """Return the number of shards that can run at the same time; 1 if no worker has connected yet."""
        return sum(self._workers().values()) or 1

    def _workers(self) -> dict[str, int]:
        """Return the number of threads of each worker, by address."""
        try:
            return dict(self._client.nthreads())
        except Exception:  # noqa: BLE001 (the next future raises the same error)
            return {}

    def _submit(self, shard: _Shard) -> Any:
        arguments = [
            "batch",
            "--plan",
            str(self._output),
            "--range",
            f"{shard.lines[0]}-{shard.lines[-1]}",
            "--json",
            WITH_PARENT,
        ]
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
        """Yield the results of a finished shard."""
        problem = future.exception()
        if problem is None:
            lines = future.result().stdout.splitlines()
            reason = "Its shard ended without a result for it"
        else:
            reason = self._reason(problem)
            paths = shard_journals.journals(self._output, shard.lines)
            lines = [line for path in paths for line in journal.read_lines(path)]
        entries = {entry.target: entry for line in lines if (entry := journal.parse(line)) is not None}
        for task in shard.tasks:
            entry = entries.get(task.target)
            yield entry.to_result(task) if entry is not None else Result(task, Status.CRASHED, error=reason)

    def _reason(self, problem: BaseException) -> str:
        """Return the reason for the failure of a shard.

        Raises
        ------
        MeshferryError
            The shard could not start, which also affects all others.
        """
        if isinstance(problem, FileNotFoundError):
            raise MeshferryError(
                f"A dask worker has no command '{shlex.join(self._command)}': install Meshferry there, or set its "
                "command with --worker-command"
            )
        if isinstance(problem, subprocess.CalledProcessError) and 0 < problem.returncode < 256:
            raise MeshferryError(
                f"A dask worker could not begin: {_last_line(problem)}. The workers need to see the output folder and "
                f"the sources under the same paths, and the same Meshferry ({environment.described()})"
            )
        if isinstance(problem, subprocess.CalledProcessError):
            return f"{death(problem.returncode)}, and its shard with it: {_last_line(problem)}"
        if isinstance(problem, self._distributed.KilledWorker):
            return "The machines that had its shard went away, one after the other"
        raise MeshferryError(
            f"A dask worker could not start a shard: {type(problem).__name__}: {one_line(str(problem))} "
            f"({self._version()})"
        )

    def _version(self) -> str:
        return f"dask.distributed {self._distributed.__version__}"


def make_shards(tasks: Sequence[Task], size: int) -> Iterator[_Shard]:
    """Split tasks into shards of up to ``size`` tasks, each with a limited range of plan lines."""
    start = 0
    for end in range(1, len(tasks) + 1):
        if end == len(tasks) or end - start == size or tasks[end].number - tasks[start].number >= _LONGEST_RANGE:
            lines = range(tasks[start].number + 1, tasks[end - 1].number + 2)
            yield _Shard(tuple(tasks[start:end]), lines)
            start = end


def shard_size(count: int, threads: int) -> int:
    """Return the number of tasks in each shard, for ``count`` tasks in total."""
    share = -(-count // threads)
    return min(max(-(-share // SHARDS_A_THREAD), min(share, SHORTEST_SHARD)), LONGEST_SHARD)


def _last_line(problem: subprocess.CalledProcessError) -> str:
    lines = (problem.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1])[-_OUTPUT_LENGTH:].rstrip(".") if lines else "it printed nothing"


def _library() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise MissingLibraryError(
            "--scheduler needs dask.distributed. " + environment.how_to_install(["distributed"])
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log messages of dask on lost connections, which this module reports once."""
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
