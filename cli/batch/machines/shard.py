"""Part of a plan, done by whoever a scheduler gives it to: ``meshferry batch --plan FOLDER --range 1-50``.

The machine needs the plan, the sources and the output folder, and nobody to talk to. What becomes of the files stands
in a journal of the shard's own (:mod:`.shard_files`), which the driver or ``--collect`` takes over. To do a shard again
goes on where it was; two machines at the same shard do the same things to the same files, which are put in place whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack
from pathlib import Path

from ....io_formats.core.errors import MeshferryError, MissingLibraryError
from ....io_formats.disk import locks
from ....io_formats.disk.atomic_write import refusal, replace_file
from ... import environment, interruption
from ...reporting import Reporter, counted
from .. import driver
from ..journal.journal import HeldError, Journal, Known, still_holds
from ..journal.journal_entry import AFTER_TARGET, Entry, parse, start_of
from ..plan.plan_file import Plan
from ..plan.target_index import TARGETS_FILE
from ..tasks import JOURNAL_FILE, STATE_FOLDER, Result, Task
from ..totals import Totals
from ..workers.messages import Setup
from ..workers.pool import RECYCLE_AFTER, TIME_LIMIT, Pool
from . import ranges, shard_files


@dataclasses.dataclass(frozen=True, slots=True)
class Shard:
    """What one machine is asked for."""

    plan: Path
    """The plan's folder, or the output folder around it."""
    lines: str
    """Range expression of lines, from 1."""
    group: int = 1
    """Lines that a number of the expression stands for."""
    output: Path | None = None
    """The output folder; None: that around the plan."""
    roots: tuple[str, ...] | None = None
    """Where the plan's folders of sources lie on this machine, in their order; None: where they were."""
    options: tuple[str, ...] = ()
    """Options of the conversion beyond the plan's, such as paths that are others on this machine."""
    time_limit: float = TIME_LIMIT
    recycle_after: int = RECYCLE_AFTER
    checksum: bool = False


def run(shard: Shard, reporter: Reporter, *, command: Sequence[str] | None = None) -> Totals:
    """Do a shard, with one worker process; files that fail are in its journal, and no failure of the shard.

    With ``--json``, the lines of the journal for all its works are printed, also for those that were done before.

    Parameters
    ----------
    command:
        What starts the worker, as for :class:`..workers.pool.Pool`.

    Raises
    ------
    MeshferryError
        The shard cannot be done: there is no plan, no place to write to, no Blender where it is needed.
    """
    _require_libraries()
    plan = open_plan(shard.plan, shard.roots)
    output = output_of(plan, shard.output)
    numbers = _lines(shard, plan.count)
    text = ranges.spelt(numbers)
    bring_index(plan, output)
    setup = Setup((*plan.batch.argv, *shard.options), plan.batch.to, str(output), plan.roots)
    listener = _Listener(reporter)
    with ExitStack() as stack:
        journal = _entered(output, text, stack)
        journal.start(plan.batch.digest)
        journal.remember({task.target for task in _read_tasks(plan, numbers)}, shard_files.shard_journals(output, text))
        pool = stack.enter_context(Pool(setup, 1, shard.time_limit, shard.recycle_after, command=command))
        totals = driver.run(
            plan,
            journal,
            pool,
            output=output,
            progress=listener,
            tasks=_read_tasks(plan, numbers),
            count=len(numbers),
            checksum=shard.checksum,
        )
        if reporter.as_json:
            for entry in journal.entries_of(_read_tasks(plan, numbers)):
                reporter.record(dataclasses.asdict(entry))
    reporter.say(f"Lines {text}: {told(totals)}")
    return totals


def _require_libraries() -> None:
    """Refuse a machine on which every file would fail, though others could do them."""
    if missing := environment.missing_libraries():
        raise MissingLibraryError(f"This machine lacks {' and '.join(missing)}")


def told(totals: Totals) -> str:
    """Return what became of some works, in a sentence."""
    parts = [f"{counted(totals.converted - totals.failed, 'file')} converted"]
    if totals.skipped:
        parts.append(f"{totals.skipped:,} done before")
    if totals.failed:
        parts.append(f"{totals.failed:,} failed")
    return ", ".join(parts)


def open_plan(folder: Path, roots: Sequence[str] | None = None) -> Plan:
    """Open a plan that this Meshferry can follow.

    Raises
    ------
    MeshferryError
        There is none, or another version made it, whose files would not fit those of this one.
    """
    plan = Plan.open(folder, roots)
    here = environment.version()
    if plan.batch.version != here:
        raise MeshferryError(
            f"{folder}: the plan was made by Meshferry {plan.batch.version}, and this is {here}; "
            "all machines need the same"
        )
    return plan


def output_of(plan: Plan, given: Path | None) -> Path:
    """Return the output folder of a plan, absolute.

    Raises
    ------
    MeshferryError
        It has to be named.
    """
    if given is not None:
        return given.absolute()
    if plan.folder.name != STATE_FOLDER:
        raise MeshferryError(f"{plan.folder} is not in an output folder; give one with -o")
    return plan.folder.absolute().parent


def bring_index(plan: Plan, output: Path) -> None:
    """Put the plan's index of targets where workers look for it, in the output folder.

    Raises
    ------
    MeshferryError
        It cannot be written there.
    """
    source, target = plan.folder / TARGETS_FILE, output / STATE_FOLDER / TARGETS_FILE
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() or not source.exists():
            return
        data = source.read_bytes()
    except OSError as problem:
        raise MeshferryError(f"{target.parent}: {refusal(problem)}") from None
    replace_file(target, data)


def _lines(shard: Shard, count: int) -> list[int]:
    """Return the numbers of the lines, from 1, ascending."""
    groups = -(-count // shard.group)
    found = ranges.numbers(ranges.parse(shard.lines, groups))
    if shard.group == 1:
        return list(found)
    spans = (range((number - 1) * shard.group + 1, min(number * shard.group, count) + 1) for number in found)
    return list(itertools.chain.from_iterable(spans))


def _read_tasks(plan: Plan, numbers: Sequence[int]) -> Iterator[Task]:
    """Yield the works of some lines, each run of neighbours in one go."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            yield from plan.tasks(numbers[start] - 1, numbers[end - 1])
            start = end


class _Listener:
    """Says which files failed; a shard is short, so nothing else while it runs."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def begin(self, what: str, count: int) -> None:
        """Take no notice."""

    def skipped(self, task: Task) -> None:  # noqa: ARG002 (of the protocol)
        """End the run if the process was asked to end."""
        interruption.check()

    def ended(self, result: Result) -> None:
        """Tell how a task ended, if badly."""
        if not result.status.is_good:
            self._reporter.fail(result.task.source, MeshferryError(result.error or result.status.value))
        interruption.check()


def _entered(output: Path, text: str, stack: ExitStack) -> _ShardJournal:
    """Return the first journal of a shard that nobody is writing to, entered."""
    *places, last = shard_files.shard_journals(output, text)
    for place in places:
        with contextlib.suppress(HeldError):
            return stack.enter_context(_ShardJournal(output, place))
    return stack.enter_context(_ShardJournal(output, last))


class _ShardJournal(Journal):
    """The journal of a shard, which also knows what others did of the same works."""

    def __init__(self, output: Path, file: Path) -> None:
        super().__init__(output, file)
        self._earlier: dict[str, Entry] = {}

    def remember(self, targets: set[str], others: Sequence[Path]) -> None:
        """Look up some targets in the journal of the output folder and in other journals; the last line counts."""
        for path in (self.output / STATE_FOLDER / JOURNAL_FILE, *others):
            if path != self.path:
                self._earlier |= _last_lines(path, targets)

    def _close(self) -> None:
        if self._lock is not None:
            self._sync()
            self._close_files()
            locks.remove(shard_files.lock_of(self.path), self._lock)
            self._lock = None
        super()._close()

    def known(self, task: Task) -> Known | None:
        """Return what is known of a work; where others did it, only if the source is as it was then."""
        found = super().known(task)
        if found is not None or task.target not in self._earlier:
            return found
        found = still_holds(self._earlier[task.target], task, self.options, self.output)
        return found if found is not None and found.is_same else None

    def entries_of(self, tasks: Iterator[Task]) -> Iterator[Entry]:
        """Return the line that counts of each work."""
        self._renew()
        for task in tasks:
            entry = self._entry(task.target) or self._earlier.get(task.target)
            if entry is not None:
                yield entry


def _last_lines(path: Path, targets: Set[str]) -> dict[str, Entry]:
    """Return the last line of each target in a journal, which somebody may be writing to."""
    wanted = {start_of(target) for target in targets}
    found: dict[bytes, bytes] = {}
    try:
        with path.open("rb") as stream:
            for line in stream:
                # Most lines of a large journal are none of this shard's, so they are not even decoded.
                start = line[: line.find(AFTER_TARGET)]
                if start in wanted and line.endswith(b"\n"):
                    found[start] = line
    except OSError:
        return {}
    return {entry.target: entry for line in found.values() if (entry := parse(line)) is not None}
