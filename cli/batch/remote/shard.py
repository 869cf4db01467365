"""Conversion of a part of a plan on one of several machines (``--plan FOLDER --range 1-50``), and ``--collect``.

The machine needs the plan, the sources and the output folder, but no connection to the driver. It writes its results as
JSON lines to ``meshferry-batch/shards/``, which the driver or ``--collect`` merges into the state. A repeated shard
continues from its journal. Two machines with the same shard convert the same files to the same outputs, which are
replaced atomically; each writes a separate journal.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import refusal, remove_file
from ... import environment
from ...conversions.conversion_arguments import given_conversion
from ...reporting import Reporter, counted
from .. import journal
from ..journal import LOCK_SUFFIX, Entry, JournalFile, Known, entry_of
from ..plan import Plan
from ..progress import Progress
from ..runner import Run, write_report
from ..state import State, locked
from ..summary import Summary, Totals
from ..tasks import JOURNAL_FILE, SHARDS_FOLDER, STATE_FOLDER, Result, Task
from ..workers.messages import Setup
from ..workers.pool import Pool
from . import parent_watch

MOST_AT_ONCE = 9
"""Maximum number of processes that convert the same shard at the same time."""
_RANGE = re.compile(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?")
"""A contiguous range in Open Job Description: ``7``, ``5-5``, ``1-50``."""


def run(arguments: argparse.Namespace, reporter: Reporter) -> int:
    """Convert the lines of ``--range``, or merge results with ``--collect``; return the exit status.

    Raises
    ------
    MeshferryError
        The plan or the state cannot be used on this machine.
    """
    plan = open_plan(Path(arguments.plan), arguments.root)
    output = _output_of(plan, arguments.output)
    return (
        collect(arguments, reporter, plan, output) if arguments.collect else convert(arguments, reporter, plan, output)
    )


def convert(arguments: argparse.Namespace, reporter: Reporter, plan: Plan, output: Path) -> int:
    """Convert the lines of ``--range`` in one worker; return 0 even if files failed: the journal has the errors.

    With ``--json``, the journal lines of all its tasks are printed, including those of earlier runs.

    Raises
    ------
    MeshferryError
        The machine lacks a library, or the journal cannot be written.
    """
    if arguments.end_with_parent:
        parent_watch.exit_with_parent()
    if missing := environment.missing_libraries():  # the shard may succeed on another machine
        raise MissingLibraryError(f"This machine lacks {' and '.join(missing)}")
    lines = parse_range(arguments.range, plan.last_line, arguments.lines)
    argv = (*plan.head.argv, *given_conversion(arguments))
    setup = Setup(argv, plan.head.to, str(output), plan.roots, str(plan.path), arguments.time_limit)
    with _ShardStore(plan, output, lines) as store:
        pool = Pool(setup, 1, arguments.recycle)
        conversion = Run(store, plan, output=output, progress=Progress(reporter), checksum=arguments.checksum)
        totals = conversion.convert(pool, len(lines))
        if reporter.as_json:
            for entry in store.entries():
                reporter.record(dataclasses.asdict(entry))
    reporter.say(f"Lines {lines[0]}-{lines[-1]}: {_describe(totals)}")
    return 0


def collect(arguments: argparse.Namespace, reporter: Reporter, plan: Plan, output: Path) -> int:
    """Merge the results of all machines and print the summary; return 1 if a line has no result.

    Raises
    ------
    MeshferryError
        The state cannot be written.
    """
    totals = Totals()
    seconds = 0.0
    report = None
    journal_path = output / STATE_FOLDER / JOURNAL_FILE
    with locked(output), Progress(reporter) as progress:
        _copy_journal(plan, journal_path)
        with State(output, plan) as state:
            state.compact()
            for result in state.results():
                totals.add(result)
                seconds += result.seconds
            if arguments.report is not None:
                conversion = Run(state, plan, output=output, progress=progress)
                report = write_report(conversion, arguments, plan, state, progress)
    summary = Summary(totals, plan.count, seconds, journal_path, report=report)
    reporter.say(summary.text())
    reporter.record(summary.record())
    return 1 if summary.left else 0


def open_plan(folder: Path, roots: Sequence[str] | None = None) -> Plan:
    """Open a plan of this version.

    Raises
    ------
    MeshferryError
        There is no plan, or it was made by another version, whose outputs may differ.
    """
    plan = Plan(folder, roots)
    here = environment.version()
    if plan.head.version != here:
        raise MeshferryError(
            f"{folder}: the plan was made by Meshferry {plan.head.version}, and this is {here}; "
            "all machines need the same version"
        )
    return plan


def parse_range(text: str, last: int, group: int = 1) -> range:
    """Return the lines of ``--range``, counted from 1.

    Parameters
    ----------
    last:
        The last line of the plan.
    group:
        Lines for each number of the range (``--lines``).

    Raises
    ------
    MeshferryError
        The text is not a range, or exceeds the plan.
    """
    match = _RANGE.fullmatch(text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise MeshferryError(f"'{text}' is not a range: write numbers from 1, such as 7 or 1-50")
    numbers = int(match[1]), int(match[2] or match[1])
    most = -(-last // group)
    if numbers[0] < 1 or numbers[1] > most:
        raise MeshferryError(f"'{text}' goes past the plan, whose lines are 1-{most}")
    return range((numbers[0] - 1) * group + 1, min(numbers[1] * group, last) + 1)


def journals(output: Path, lines: range) -> list[Path]:
    """Return the possible paths for the journal of a shard; processes use the first that is not locked."""
    folder, name = output / STATE_FOLDER / SHARDS_FOLDER, f"{lines[0]}-{lines[-1]}"
    return [folder / f"{name}.jsonl", *(folder / f"{name}~{copy}.jsonl" for copy in range(2, MOST_AT_ONCE + 1))]


def lock_of(path: Path) -> Path:
    """Return the lock file of a journal."""
    return path.with_name(path.name + LOCK_SUFFIX)


def remove_journals(output: Path, lines: range) -> None:
    """Remove the merged journals of a shard; skip those that are still being written."""
    for path in journals(output, lines):
        with contextlib.suppress(OSError):
            if path.exists() and (held := locks.hold(lock_of(path))) is not None:
                remove_file(path)
                locks.remove(lock_of(path), held)


class _ShardStore:
    """The tasks of a shard and its journal: a context manager."""

    def __init__(self, plan: Plan, output: Path, lines: range) -> None:
        self._plan = plan
        self._output = output
        self._lines = lines
        self._options = plan.head.digest
        self._own: dict[str, Entry] = {}
        """Entries of this shard's journal, by target."""
        self._others: dict[str, Entry] = {}
        """Entries of the journal of the output folder and of other processes with the same shard."""
        self._files = ExitStack()

    def __enter__(self) -> _ShardStore:
        paths = journals(self._output, self._lines)
        try:
            paths[0].parent.mkdir(parents=True, exist_ok=True)
            path, held = next(((path, held) for path in paths if (held := locks.hold(lock_of(path)))), (None, None))
            if path is None or held is None:
                raise MeshferryError(f"{paths[0]}: {MOST_AT_ONCE} processes convert this part of the plan already")
            self._files.callback(locks.remove, lock_of(path), held)
            end = sum(map(len, journal.read_lines(path)))
            self._own = _last_entries(path)
            wanted = {task.target for task in self._plan.tasks(self._lines[0] - 1, self._lines[-1])}
            for other in (self._output / STATE_FOLDER / JOURNAL_FILE, *paths):
                if other != path:
                    self._others |= _last_entries(other, wanted)
            self._journal = JournalFile(path, end)
        except OSError as problem:
            raise MeshferryError(f"{paths[0]}: the journal cannot be written: {refusal(problem)}") from None
        return self

    def __exit__(self, *_problem: object) -> None:
        self._journal.close()
        self._files.close()

    def tasks(self) -> Iterator[tuple[Task, Known | None]]:
        """Yield the tasks with their last conversion; by another process only if the source is unchanged."""
        for task in self._plan.tasks(self._lines[0] - 1, self._lines[-1]):
            known = self._known(task, self._own.get(task.target))
            if known is None:
                known = self._known(task, self._others.get(task.target))
                known = known if known is not None and known.is_same else None
            yield task, known

    def _known(self, task: Task, entry: Entry | None) -> Known | None:
        return None if entry is None else entry.known(task, self._options, self._output)

    def append(self, result: Result) -> None:
        """Write a result."""
        entry = entry_of(result, self._options, self._output, self._own.get(result.task.target))
        self._journal.write(entry.line())
        self._own[entry.target] = entry

    def entries(self) -> Iterator[Entry]:
        """Yield the last entry of each task."""
        for task in self._plan.tasks(self._lines[0] - 1, self._lines[-1]):
            entry = self._own.get(task.target) or self._others.get(task.target)
            if entry is not None:
                yield entry


def _last_entries(path: Path, targets: set[str] | None = None) -> dict[str, Entry]:
    """Return the last entry of each target, or of these targets, in a journal that may still be written."""
    wanted = None if targets is None else {journal.start_of(target) for target in targets}
    found: dict[bytes, bytes] = {}
    with contextlib.suppress(OSError):
        for line in journal.read_lines(path):
            start = line[: line.find(journal.AFTER_TARGET)]
            if wanted is None or start in wanted:  # other lines of a large journal are not parsed
                found[start] = line
    return {entry.target: entry for line in found.values() if (entry := journal.parse(line)) is not None}


def _output_of(plan: Plan, given: str | None) -> Path:
    """Return the output folder of a plan.

    Raises
    ------
    MeshferryError
        The plan is not in an output folder, and ``-o`` is missing.
    """
    if given is not None:
        return Path(given).absolute()
    if plan.folder.name != STATE_FOLDER:
        raise MeshferryError(f"{plan.folder} is not in an output folder; give one with -o")
    return plan.folder.absolute().parent


def _copy_journal(plan: Plan, target: Path) -> None:
    """Copy the journal of a job into an output folder without one. Farm machines may not see the original folder."""
    source = plan.folder / JOURNAL_FILE
    if not target.exists() and source.exists():
        try:
            shutil.copyfile(source, target)
        except OSError as problem:
            raise MeshferryError(f"{target}: {refusal(problem)}") from None


def _describe(totals: Totals) -> str:
    parts = [f"{counted(totals.converted - totals.failed, 'file')} converted"]
    if totals.skipped:
        parts.append(f"{totals.skipped:,} done before")
    if totals.failed:
        parts.append(f"{totals.failed:,} failed")
    return ", ".join(parts)
