"""Progress of a batch: a bar, or lines if there is no terminal; failures; records of ``--json``; the summary."""

from __future__ import annotations

import contextlib
import heapq
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import counted
from .. import interruption
from ..output import Reporter, printable, warnings_entry
from .plan import Plan
from .tasks import Result, Status, Task, TaskKind

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_Item = TypeVar("_Item")

LINE_SECONDS = 30.0
"""Interval of progress lines without a terminal, in seconds."""
_BAR_SECONDS = 0.2
"""Interval of updates of the bar in seconds: an update takes longer than the conversion of a small file."""


class Progress:
    """Progress of a run into an output folder: a context manager."""

    def __init__(self, reporter: Reporter, output: Path) -> None:
        self.reporter = reporter
        self.plan: Plan | None = None
        """If it is set, messages have complete paths, and ``--json`` prints a record of each task."""
        self.unreadable = 0
        """Number of paths that could not be searched."""
        self._output = output
        self._phase = ""
        self._count: int | None = None
        self._done = self._failed = 0
        self._begun = self._shown = time.monotonic()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        if not self.reporter.quiet and _is_terminal(sys.stderr):
            with contextlib.suppress(ImportError):  # without rich there are lines instead
                self._bar = _bar()
                self._bar.start()
        return self

    def __exit__(self, *_problem: object) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()
            self._bar = None

    def fail(self, path: str, text: str) -> None:
        """Report a path that cannot be searched."""
        self.unreadable += 1
        self.reporter.fail(path, MeshferryError(text))

    def begin(self, phase: str, count: int | None) -> None:
        """Start a phase with this label and number of items; None if the number is unknown."""
        self._phase, self._count = phase, count
        self._done = 0
        self._begun = self._shown = time.monotonic()
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(phase, total=count, rate="", failed="")

    def shown(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield items and count them."""
        for item in items:
            yield item
            self._step()

    def skipped(self, task: Task) -> None:
        """Count a task that is up to date."""
        if self._phase == "converting":
            self._record(task)
        self._step()

    def ended(self, result: Result) -> None:
        """Report a result."""
        if result.kind is TaskKind.CONVERT:
            if not result.status.is_good:
                self._failed += 1
                self.reporter.fail(self._source(result.task), MeshferryError(result.error or result.status.value))
            self._record(result.task, result)
        self._step()

    def _source(self, task: Task) -> str:
        return task.source if self.plan is None else self.plan.describe(task)

    def _record(self, task: Task, result: Result | None = None) -> None:
        """Print the record of a task; no result if it was skipped."""
        if not self.reporter.as_json or self.plan is None:
            return
        record: dict[str, Any] = {"input": self._source(task), "output": str(self._output / task.target)}
        record["result"] = "skipped" if result is None else result.status.value
        if result is not None:
            if result.outputs:
                record["files"] = [str(self._output / name) for name in result.outputs]
            if result.facts:
                record["facts"] = result.facts
            record |= warnings_entry(result.warnings)
            if result.error:
                record["error"] = result.error
            record["seconds"] = round(result.seconds, 4)
        self.reporter.record(record)

    def _step(self) -> None:
        interruption.check()
        self._done += 1
        now = time.monotonic()
        if now - self._shown >= (LINE_SECONDS if self._bar is None else _BAR_SECONDS):
            self._shown = now
            self._show()

    def _show(self) -> None:
        failed = f"{self._failed:,} failed" if self._failed else ""
        seconds = max(time.monotonic() - self._begun, 1e-3)
        rate = rate_text(self._done, seconds)
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.update(task, completed=self._done, rate=rate, failed=failed)
        elif self._count is None:
            self.reporter.note(f"{self._phase}: {counted(self._done, 'file')} so far")
        else:
            left = seconds / self._done * (self._count - self._done) if self._done else 0
            parts = [f"{self._phase}: {self._done:,} of {counted(self._count, 'file')}", failed, rate]
            parts += [f"about {time_text(left)} left"] if left else []
            self.reporter.note(", ".join(filter(None, parts)))


def time_text(seconds: float) -> str:
    """Format a duration: ``1 h 5 min``, ``2 min 3 s``, ``12.3 s`` or ``15 ms``."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def rate_text(count: int, seconds: float) -> str:
    """Format a rate in files per second, or per minute if it is below one per second."""
    rate = count / max(seconds, 1e-3)
    return f"{rate:,.1f} files a second" if rate >= 1 or not count else f"{60 * rate:,.1f} files a minute"


def _is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    try:
        return bool(stream is not None and stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"})
    except ValueError:  # the stream is closed
        return False


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[failed]}", style="red", markup=False),
        console=Console(stderr=True, highlight=False),
        # Printed lines go above the bar. Records for another program are not redirected.
        redirect_stdout=_is_terminal(sys.stdout),
        refresh_per_second=4,
        transient=True,
    )


_CAUSES_SHOWN = 10
_QUARANTINED_SHOWN = 20
_MOMENT = 1.0
"""Seconds before and after the conversion that the summary does not mention."""
_WIDEST = 60
"""Characters of the widest column of a table."""
_WORDS = {
    Status.DONE: ("done", ""),
    Status.UNCHANGED: ("unchanged", "other date, same content"),
    Status.FAILED: ("failed", ""),
    Status.CRASHED: ("crashed", "in quarantine"),
    Status.TIMED_OUT: ("timed out", "in quarantine"),
}
SLOWEST_KEPT = 10
QUARANTINED_KEPT = 100
_CAUSES_KEPT = 1000


@dataclass
class Cause:
    """An error message and its number of files."""

    text: str
    """Error of the first file."""
    example: str
    """The first source."""
    count: int = 0


@dataclass
class Summary:
    """Statistics of a run, of bounded size, with their text and their JSON object."""

    planned: int = 0
    """Number of tasks in the plan."""
    seconds: float = 0.0
    """Duration of the command."""
    journal: Path | None = None
    report: Path | None = None
    unreadable: int = 0
    """Folders, archives and patterns that could not be searched."""
    skipped: int = 0
    """Tasks done by an earlier run whose sources are unchanged."""
    converting: float = 0.0
    """Duration of the conversion in seconds, without planning and report; 0 if not measured."""
    by_status: Counter[Status] = field(default_factory=Counter)
    warned: int = 0
    """Files with warnings."""
    retried: int = 0
    """Files that ended a worker and were then converted in a fresh one."""
    slowest: list[tuple[float, str]] = field(default_factory=list)
    """Seconds and source, as a heap."""
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    """Source and reason of the first ones."""
    causes: dict[str, Cause] = field(default_factory=dict)
    """Errors without names and numbers, with an example each."""

    @property
    def converted(self) -> int:
        """Number of tasks with a result."""
        return self.by_status.total()

    @property
    def failed(self) -> int:
        """Number of tasks that failed, crashed or timed out."""
        return sum(count for status, count in self.by_status.items() if not status.is_good)

    @property
    def in_quarantine(self) -> int:
        return sum(count for status, count in self.by_status.items() if status.is_quarantined)

    def add(self, result: Result) -> None:
        """Count a result."""
        self.by_status[result.status] += 1
        self.warned += bool(result.warnings)
        push = heapq.heappush if len(self.slowest) < SLOWEST_KEPT else heapq.heappushpop
        push(self.slowest, (result.seconds, result.task.source))
        if result.status.is_good:
            self.retried += result.attempts > 1
        elif not result.status.is_quarantined:
            self._add_cause(result)
        elif len(self.quarantined) < QUARANTINED_KEPT:
            self.quarantined.append((result.task.source, result.error))

    def slowest_first(self) -> list[tuple[float, str]]:
        return sorted(self.slowest, reverse=True)

    def commonest_causes(self) -> list[Cause]:
        return sorted(self.causes.values(), key=lambda cause: -cause.count)

    def _add_cause(self, result: Result) -> None:
        key = result.error_cause or result.error
        if key not in self.causes and len(self.causes) >= _CAUSES_KEPT:
            key = ""
        self.causes.setdefault(key, Cause(result.error if key else "other causes", result.task.source)).count += 1

    @property
    def is_good(self) -> bool:
        """Whether nothing failed."""
        return not self.failed and not self.unreadable

    @property
    def left(self) -> int:
        """Number of tasks that the run did not reach."""
        return self.planned - self.skipped - self.converted

    def record(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "summary": {
                "files": self.planned,
                **{status.value: self.by_status[status] for status in Status},
                "skipped": self.skipped,
                "left": self.left,
                "with warnings": self.warned,
                "unreadable": self.unreadable,
                "seconds": round(self.seconds, 3),
                "converting seconds": round(self.converting, 3),
                "slowest": [
                    {"input": source, "seconds": round(seconds, 4)} for seconds, source in self.slowest_first()
                ],
                "quarantined": [{"input": source, "error": error} for source, error in self.quarantined],
                "causes": [
                    {"error": cause.text, "count": cause.count, "first": cause.example}
                    for cause in self.commonest_causes()[:_CAUSES_SHOWN]
                ],
                "journal": str(self.journal) if self.journal is not None else None,
                "report": str(self.report) if self.report is not None else None,
            }
        }

    def text(self) -> str:
        """Return tables without borders and colours, which any console can show."""
        lines = [self._first_line()]
        for title, rows in self._tables():
            lines += ["", title] if title else []
            cells = [[printable(cell) for cell in row] for row in rows]
            first, second = (max(len(row[column]) for row in cells) for column in (0, 1))
            indent = "  " if first else ""
            # A long text does not move the third column of the other rows: the terminal would wrap all of them.
            second = min(second, _WIDEST)
            lines += [f"{a:>{first}}{indent}{b:<{second}}  {c}".rstrip() for a, b, c in cells]
        files = (("Journal", self.journal), ("Report", self.report))
        shown = [f"{name}: {printable(path)}" for name, path in files if path is not None]
        return "\n".join([*lines, *([""] if shown else []), *shown])

    def _first_line(self) -> str:
        if not self.converted:
            if not self.planned:
                return "There is nothing to convert"
            return f"Nothing was to do for {counted(self.skipped, 'file')}" if self.skipped else "Nothing was done"
        good = self.converted - self.failed
        seconds = self.converting or self.seconds
        rate = rate_text(self.converted, seconds)
        whole = f"; {time_text(self.seconds)} in all" if self.seconds > max(seconds + _MOMENT, 1.1 * seconds) else ""
        return f"Converted {good:,} of {counted(self.converted, 'file')} in {time_text(seconds)}, {rate}{whole}"

    def _tables(self) -> Iterator[tuple[str, list[Sequence[str]]]]:
        """Yield titles and rows of three cells."""
        counts = [(self.by_status[status], *words) for status, words in _WORDS.items()]
        counts.insert(2, (self.skipped, "skipped", "done before, unchanged since"))
        counts += [
            (self.retried, "retried", "successfully, in a fresh process"),
            (self.warned, "with warnings", "listed in the journal"),
            (self.unreadable, "could not be searched", "see above"),
            (self.left, "left", "run the same command again to convert them"),
        ]
        if rows := [(f"{count:,}", *words) for count, *words in counts if count]:
            yield "", list(rows)
        if causes := self.commonest_causes():
            rows = [(f"{cause.count:,}", cause.text, cause.example) for cause in causes[:_CAUSES_SHOWN]]
            yield "Failures by cause, each with its first file", [*rows, *_more(len(causes) - len(rows), "other cause")]
        if self.in_quarantine:
            quarantined = [("", source, reason) for source, reason in self.quarantined[:_QUARANTINED_SHOWN]]
            yield "In quarantine", [*quarantined, *_more(self.in_quarantine - len(quarantined), "more file")]
        if slowest := self.slowest_first():
            yield "Slowest files", [(time_text(seconds), source, "") for seconds, source in slowest]


def _more(count: int, noun: str) -> list[Sequence[str]]:
    return [("", f"and {counted(count, noun)}", "")] if count > 0 else []
