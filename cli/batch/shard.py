"""Conversion of parts of a plan on several machines, which a dask cluster may start.

A shard is a contiguous range of lines of the plan, which ``meshferry batch --plan FOLDER --range 1-50`` converts. Its
process has no connection to the driver. It writes its results as JSON lines to ``meshferry-batch/shards/``, which the
driver merges into the state. A repeated shard continues from its journal. Two machines with the same shard convert the
same files to the same outputs, which are replaced atomically; each writes a separate journal.

On a dask cluster, each shard is such a process on a dask worker, so that a crash of Blender loses one file and not the
worker. Dask executes :func:`subprocess.run`, so this package need not be importable on the workers. They need the
command, and the same paths for the output folder and the sources. If driver or scheduler end early, the next run merges
the journals of the shards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import logging
import os
import re
import shlex
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ...io_formats.core.errors import MeshferryError, MissingLibraryError, refusal
from ...io_formats.core.messages import counted
from ...io_formats.disk import locks
from ...io_formats.disk.atomic_write import make_folders
from ...io_formats.disk.reach import command_text
from .. import environment, interruption
from ..output import Reporter, one_line
from . import state
from .plan import Plan
from .progress import Progress
from .runner import Run, local_pool
from .state import LOCK_SUFFIX, Entry, JournalFile, Known, entry_of, require_own_state
from .tasks import JOURNAL_FILE, SHARDS_FOLDER, STATE_FOLDER, BatchSettings, LoadedTask, Result, Status, Task
from .workers.pool import death

WITH_PARENT = "--end-with-parent"
"""Flag of a shard that ends when the process that started it ends."""


def worker_command(settings: BatchSettings) -> tuple[str, ...]:
    """Return ``--worker-command``, which must not be empty, as a list of arguments."""
    is_windows = sys.platform == "win32"  # backslashes are part of paths there
    try:
        words = shlex.split(settings.worker_command, posix=not is_windows)
    except ValueError as problem:
        raise MeshferryError("--worker-command {}: {}", settings.worker_command, problem) from None
    if not words:
        raise MeshferryError("--worker-command is empty; give the command of this program")
    return tuple(word.strip('"') if is_windows else word for word in words)


def shard_options(settings: BatchSettings) -> tuple[str, ...]:
    """Return the arguments for every shard of a run."""
    options = [f"--time-limit={settings.time_limit:g}", f"--recycle={settings.recycle}"]
    return (*options, *(["--checksum"] if settings.checksum else []))


def journals_of(output: Path, lines: range) -> tuple[Path, str]:
    """Return the folder for the journals of a shard, and the start of their names, which a number follows."""
    return output / STATE_FOLDER / SHARDS_FOLDER, f"{lines[0]}-{lines[-1]}~"


_WATCH_SECONDS = 0.5
_RANGE = re.compile(r"(\d{1,18})-(\d{1,18})")


def run(settings: BatchSettings, folder: str, reporter: Reporter) -> int:
    """Convert lines of the plan of an output folder in one worker; return 0 even if files failed: the journal has them.

    With ``--json``, the journal lines of all its tasks are printed, including those of earlier runs.

    Raises
    ------
    MeshferryError
        The plan or the state cannot be used on this machine, which may lack a library.
    """
    output = Path(folder).absolute()
    require_own_state(output)
    plan = Plan(output / STATE_FOLDER)
    here = environment.version()
    if plan.head.version != here:
        raise MeshferryError(
            "{}: the plan was made by Meshferry {}, and this is {}; all machines need the same version",
            folder,
            plan.head.version,
            here,
        )
    lines = parse_range(settings.range or "", plan.last_line)
    if settings.end_with_parent:
        threading.Thread(target=_exit_with_parent, daemon=True).start()
    if missing := environment.missing_libraries():  # the shard may succeed on another machine
        raise MissingLibraryError("This machine lacks {}", " and ".join(missing))
    with ShardStore(plan, output, lines) as store:
        conversion = Run(store, plan, output=output, progress=Progress(reporter, output), checksum=settings.checksum)
        totals = conversion.convert(local_pool(dataclasses.replace(settings, jobs=1), plan, output), len(lines))
        if reporter.as_json:
            for entry in store.entries():
                reporter.record(dataclasses.asdict(entry))
    skipped = f", {totals.skipped:,} done before" if totals.skipped else ""
    failed = f", {totals.failed:,} failed" if totals.failed else ""
    converted = counted(totals.converted - totals.failed, "file")
    reporter.say(f"Lines {lines[0]}-{lines[-1]}: {converted} converted{skipped}{failed}")
    return 0


def parse_range(text: str, last: int) -> range:
    """Return the lines of ``--range``, counted from 1.

    Raises
    ------
    MeshferryError
        The text is not a range, or goes past the last line of the plan.
    """
    match = _RANGE.fullmatch(text)
    if match is None or int(match[2]) < int(match[1]):
        raise MeshferryError("'{}' is not a range: write numbers from 1, such as 1-50", text)
    if int(match[1]) < 1 or int(match[2]) > last:
        raise MeshferryError("'{}' goes past the plan, whose lines are 1-{}", text, last)
    return range(int(match[1]), int(match[2]) + 1)


class ShardStore:
    """The tasks of a shard and its journal: the first journal that no other process with this shard has locked."""

    def __init__(self, plan: Plan, output: Path, lines: range) -> None:
        self._output = output
        self._options = plan.head.digest
        self._tasks = list(plan.tasks(lines[0] - 1, lines[-1]))
        self._entries: dict[str, Entry] = {}
        """The last entry of each target in the journals of the output folder and of all processes with this shard."""
        self._folder, self._name = journals_of(output, lines)

    def __enter__(self) -> ShardStore:
        try:
            with ExitStack() as files:  # closes the files if an error is raised
                make_folders(self._folder)
                paths = (self._folder / f"{self._name}{number}.jsonl" for number in itertools.count(1))
                path, held = next((path, held) for path in paths if (held := locks.hold(_lock_of(path))) is not None)
                files.callback(locks.remove, _lock_of(path), held)
                others = sorted(set(self._folder.glob(f"{self._name}*.jsonl")) - {path})
                known = (self._output / STATE_FOLDER / JOURNAL_FILE, *others, path)
                self._entries = _last_entries(known, [task.target for task in self._tasks])
                self._journal = JournalFile(path)
                files.callback(self._journal.close)
                self._files = files.pop_all()
        except OSError as problem:
            path = problem.filename or self._folder
            raise MeshferryError("{}: the journal cannot be written: {}", path, refusal(problem)) from None
        return self

    def __exit__(self, *_problem: object) -> None:
        self._files.close()

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks with their last conversion."""
        for task in self._tasks:
            entry = self._entries.get(task.target)
            yield task, None if entry is None else entry.known(task, self._options, self._output)

    def append(self, result: Result) -> None:
        """Write a result."""
        entry = entry_of(result, self._options, self._output, self._entries.get(result.task.target))
        self._journal.write(entry.line())
        self._entries[entry.target] = entry

    def entries(self) -> Iterator[Entry]:
        """Yield the last entry of each task."""
        return (self._entries[task.target] for task in self._tasks if task.target in self._entries)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + LOCK_SUFFIX)


def _last_entries(paths: Iterable[Path], targets: Iterable[str]) -> dict[str, Entry]:
    """Return the last entry of each of these targets in journals that may still be written."""
    wanted = set(map(state.start_of, targets))
    found: dict[bytes, bytes] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            for line in state.read_lines(path):
                start = state.start_of_line(line)
                if start in wanted:  # other lines of a large journal are not parsed
                    found[start] = line
    return {entry.target: entry for entry in state.entries_of(found.values())}


def _exit_with_parent() -> None:
    """Terminate this process when nothing reads its standard error any more: the dask worker has ended.

    Its worker processes then end, too. Files are written atomically, so none is incomplete.
    """
    with contextlib.suppress(OSError):
        while True:
            os.write(2, b"\n")
            time.sleep(_WATCH_SECONDS)
    environment.end_process(1)


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
                command_text(self._command),
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
