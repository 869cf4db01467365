"""Conversion of a part of a plan on one of several machines (``--plan FOLDER --range 1-50``).

A shard is a contiguous range of lines of the plan. Its process has no connection to the driver. It writes its results
as JSON lines to ``meshferry-batch/shards/``, which the driver merges into the state. A repeated shard continues from
its journal. Two machines with the same shard convert the same files to the same outputs, which are replaced atomically;
each writes a separate journal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from ...io_formats.core.errors import MeshferryError, MissingLibraryError, refusal
from ...io_formats.core.messages import counted
from ...io_formats.disk import locks
from .. import environment
from ..output import Reporter
from . import state
from .plan import Plan
from .progress import Progress
from .runner import Run, local_pool
from .state import LOCK_SUFFIX, Entry, JournalFile, Known, entry_of, require_own_state
from .tasks import JOURNAL_FILE, SHARDS_FOLDER, STATE_FOLDER, BatchSettings, Result, Task

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
        self._files = ExitStack()

    def __enter__(self) -> ShardStore:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            paths = (self._folder / f"{self._name}{number}.jsonl" for number in itertools.count(1))
            path, held = next((path, held) for path in paths if (held := locks.hold(_lock_of(path))) is not None)
            self._files.callback(locks.remove, _lock_of(path), held)
            others = sorted(set(self._folder.glob(f"{self._name}*.jsonl")) - {path})
            known = (self._output / STATE_FOLDER / JOURNAL_FILE, *others, path)
            self._entries = _last_entries(known, [task.target for task in self._tasks])
            self._journal = JournalFile(path)
            self._files.callback(self._journal.close)
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
    os._exit(1)
