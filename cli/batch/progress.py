"""Progress of a batch: a bar, or lines if there is no terminal; failures; records of ``--json``."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import counted
from .. import interruption
from ..output import Reporter, warnings_entry
from .plan import Plan
from .tasks import Result, Task, TaskKind

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
