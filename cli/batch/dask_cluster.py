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
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import MeshferryError, MissingLibraryError
from .. import environment, interruption
from ..output import one_line
from . import state
from .shard import WITH_PARENT, journals_of, shard_options, worker_command
from .tasks import BatchSettings, LoadedTask, Result, Status, Task
from .workers.worker_process import death

LONGEST_SHARD = 200
"""Maximum number of files in a shard: the loss if a machine fails. Converting them takes much longer than a start."""
SHORTEST_SHARD = 10
"""Minimum number of files in a shard, as each shard starts a process. Smaller shards are used if threads would idle."""
SHARDS_A_THREAD = 8
"""Number of shards for each thread. There are several, so that all threads finish at about the same time."""
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


class DaskPool:
    """The machines of a dask cluster, with the interface of :class:`..workers.pool.Pool`.

    Parameters
    ----------
    settings:
        Settings of the batch, with the address of the scheduler.
    output:
        Absolute path of the output folder, which contains the plan.

    Raises
    ------
    MissingLibraryError
        dask.distributed is not installed.
    """

    def __init__(self, settings: BatchSettings, output: Path) -> None:
        self._address = settings.scheduler
        self._output = output
        self._command = worker_command(settings)
        self._options = shard_options(settings)
        try:
            self._distributed = importlib.import_module("distributed")
        except ImportError:
            hint = environment.how_to_install(["distributed"])
            raise MissingLibraryError("--scheduler needs dask.distributed. {}", hint) from None
        self._version = f"dask.distributed {self._distributed.__version__}"
        self._client: Any = None

    def run(self, tasks: Iterable[LoadedTask]) -> Generator[Result, None, None]:
        """Execute tasks; yield their results shard by shard, as the shards finish.

        Raises
        ------
        MeshferryError
            The scheduler cannot be reached, the connection to it or to all workers is lost, or the workers cannot run
            shards. All results are in the state or in the journals of the shards.
        """
        running: dict[Any, list[Task]] = {}
        logging.disable(logging.CRITICAL)  # dask logs lost connections, which this class reports once
        try:
            self._connect()
            shards = self._shards(iter(tasks))
            while True:
                for shard in itertools.islice(shards, max(0, max(1, self._threads()) * _AHEAD - len(running))):
                    running[self._submit(shard)] = shard
                if not running:
                    return
                for future in self._wait(running):
                    shard = running.pop(future)
                    yield from self._results(future, shard)
                    for path in self._journals(shard):
                        with contextlib.suppress(OSError):
                            path.unlink()
        finally:
            with contextlib.suppress(Exception):  # the scheduler may already be down
                self._client.cancel(list(running))
            with contextlib.suppress(Exception):
                self._client.close(timeout=_CONNECT_SECONDS)
            logging.disable(logging.NOTSET)

    def _connect(self) -> None:
        try:
            with interruption.raising():
                self._client = self._distributed.Client(self._address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError, ImportError, RuntimeError, TypeError) as problem:  # TypeError: no TLS certificates
            raise MeshferryError(
                "No dask scheduler answers at {}: {} ({})", self._address, one_line(str(problem)), self._version
            ) from None
        self._require_workers(_CONNECT_SECONDS)

    def _require_workers(self, seconds: float) -> None:
        """Wait until a worker is connected."""
        try:
            with interruption.raising():
                self._client.wait_for_workers(1, timeout=seconds)
        except OSError:  # including TimeoutError
            raise MeshferryError(
                "The dask scheduler at {} has no workers; start some with: dask worker {}", self._address, self._address
            ) from None

    def _wait(self, running: Iterable[Any]) -> Any:
        """Wait until shards have finished; return their futures."""
        while True:
            try:
                with interruption.raising():
                    return self._distributed.wait(list(running), _POLL_SECONDS, "FIRST_COMPLETED").done
            except TimeoutError:
                self._require_workers(_NO_WORKER_SECONDS)
            except CancelledError:
                raise MeshferryError(
                    "The dask scheduler at {} has gone away ({}). Finished files are kept; run the same command "
                    "again to continue",
                    self._address,
                    self._version,
                ) from None

    def _shards(self, loading: Iterator[LoadedTask]) -> Iterator[list[Task]]:
        """Group tasks into shards, which are smaller if there are few tasks for all threads."""
        while True:
            threads = max(1, self._threads())
            tasks = [loaded.task for loaded in itertools.islice(loading, threads * SHARDS_A_THREAD * LONGEST_SHARD)]
            if not tasks:
                return
            yield from make_shards(tasks, shard_size(len(tasks), threads))

    def _threads(self) -> int:
        """Return the number of threads of all workers; 0 if none is connected."""
        try:
            return sum(self._client.nthreads().values())
        except Exception:  # noqa: BLE001 (the next future raises the same error)
            return 0

    def _journals(self, shard: Sequence[Task]) -> list[Path]:
        """Return the journals of a shard with their lock files."""
        folder, name = journals_of(self._output, lines_of(shard))
        return sorted(folder.glob(f"{name}*"))

    def _submit(self, shard: Sequence[Task]) -> Any:
        lines = lines_of(shard)
        part = ["batch", "--plan", str(self._output), "--range", f"{lines[0]}-{lines[-1]}", "--json", WITH_PARENT]
        return self._client.submit(
            subprocess.run,
            [*self._command, *part, *self._options],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            pure=False,
            retries=_RETRIES,
            key=f"meshferry-{uuid.uuid4().hex}",
        )

    def _results(self, future: Any, shard: Sequence[Task]) -> Iterator[Result]:
        """Yield the results of a finished shard."""
        problem = future.exception()
        if problem is None:
            lines = future.result().stdout.splitlines()
            reason = "Its shard ended without a result for it"
        else:
            reason = self._reason(problem)
            lines = []
            with contextlib.suppress(OSError):
                lines = [line for path in self._journals(shard) for line in state.read_lines(path)]
        entries = {entry.target: entry for entry in state.entries_of(lines)}
        for task in shard:
            entry = entries.get(task.target)
            yield entry.to_result(task) if entry is not None else Result(task, Status.CRASHED, error=reason)

    def _reason(self, problem: BaseException) -> str:
        """Return the reason for the failure of a shard; raise an error if it concerns all shards."""
        if isinstance(problem, FileNotFoundError):
            raise MeshferryError(
                "A dask worker has no command '{}': install Meshferry there, or set its command with --worker-command",
                shlex.join(self._command),
            )
        if isinstance(problem, subprocess.CalledProcessError) and 0 < problem.returncode < 256:
            raise MeshferryError(
                "A dask worker could not begin: {}. The workers need to see the output folder and the sources "
                "under the same paths, and the same Meshferry ({})",
                _last_line(problem),
                environment.described(),
            )
        if isinstance(problem, subprocess.CalledProcessError):
            return f"{death(problem.returncode)}, and its shard with it: {_last_line(problem)}"
        if isinstance(problem, self._distributed.KilledWorker):
            return "The machines that had its shard went away, one after the other"
        raise MeshferryError(
            "A dask worker could not start a shard: {}: {} ({})",
            type(problem).__name__,
            one_line(str(problem)),
            self._version,
        )


def make_shards(tasks: Sequence[Task], size: int) -> Iterator[list[Task]]:
    """Split tasks into shards of up to ``size`` tasks, each with a limited range of plan lines."""
    shard: list[Task] = []
    for task in tasks:
        if shard and (len(shard) == size or task.number - shard[0].number >= _LONGEST_RANGE):
            yield shard
            shard = []
        shard.append(task)
    if shard:
        yield shard


def lines_of(shard: Sequence[Task]) -> range:
    """Return the range of plan lines from the first to the last task of a shard.

    Lines between them may be finished tasks, which the shard skips.
    """
    return range(shard[0].number + 1, shard[-1].number + 2)


def shard_size(count: int, threads: int) -> int:
    """Return the number of tasks in each shard, for ``count`` tasks in total."""
    share = -(-count // threads)
    return min(max(-(-share // SHARDS_A_THREAD), min(share, SHORTEST_SHARD)), LONGEST_SHARD)


def _last_line(problem: subprocess.CalledProcessError) -> str:
    lines = (problem.stderr or b"").decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1])[-300:].rstrip(".") if lines else "it printed nothing"
