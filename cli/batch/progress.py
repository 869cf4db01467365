"""What a batch says while it runs: a bar on a terminal, elsewhere a line now and then; failures; records."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ...io_formats.core.errors import MeshferryError
from .. import interruption
from ..reporting import Reporter, counted
from .plan import Plan
from .tasks import Result, Source, Task, TaskKind

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

_Thing = TypeVar("_Thing")

LINE_SECONDS = 30.0
"""Between two lines where there is no terminal."""
_BAR_SECONDS = 0.2
"""Between two looks at the bar: to turn it for each of a million small files would cost more than some of the files."""


class Progress:
    """Shows how far a run is; from ``with`` on.

    Parameters
    ----------
    reporter:
        Prints failures and records.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._plan: Plan | None = None
        self._output = Path()
        self._what = ""
        self._count: int | None = None
        self._done = self._failed = 0
        self._begun = self._shown = time.monotonic()
        self._bar: Bar | None = None
        self._bar_task: TaskID | None = None
        self._pause = LINE_SECONDS

    def __enter__(self) -> Progress:
        if not self._reporter.quiet and _is_terminal(sys.stderr):
            self._bar = _bar()
            self._pause = _BAR_SECONDS
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()
            self._bar = None

    def set_plan(self, plan: Plan, output: Path) -> None:
        """Show whole paths of sources and outputs from now on."""
        self._plan, self._output = plan, output

    def note(self, text: str) -> None:
        """Tell people something about the whole run."""
        self._reporter.note(text)

    def begin(self, what: str, count: int | None) -> None:
        """Tell what is done from now on, in a word, and to how many works; None: nobody knows yet."""
        self._what, self._count = what, count
        self._done = 0
        self._begun = self._shown = time.monotonic()
        if self._bar is not None:
            if self._bar_task is not None:
                self._bar.remove_task(self._bar_task)
            self._bar_task = self._bar.add_task(what, total=count, failed="")

    def found(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Count sources while they pass by."""
        self.begin("finding", None)
        return self.shown(sources)

    def shown(self, things: Iterable[_Thing]) -> Iterator[_Thing]:
        """Show how far things are that pass by."""
        for thing in things:
            yield thing
            self._step()

    def skipped(self, task: Task) -> None:
        """Tell of a work that there is nothing to do for."""
        if self._reporter.as_json and self._what == "converting":
            self._reporter.record(self._record(task) | {"result": "skipped"})
        self._step()

    def ended(self, result: Result) -> None:
        """Tell how a task ended."""
        if result.kind is TaskKind.CONVERT:
            if not result.status.is_good:
                self._failed += 1
                self._reporter.fail(self._source(result.task), MeshferryError(result.error or result.status.value))
            if self._reporter.as_json:
                self._reporter.record(self._record(result.task) | self._told(result))
        self._step()

    def _source(self, task: Task) -> str:
        if self._plan is None:
            return task.source
        path = str(self._plan.path_of(task))
        return f"{path}: {task.member}" if task.member else path

    def _record(self, task: Task) -> dict[str, Any]:
        """Return what programs are told of a work, whatever became of it."""
        return {"input": self._source(task), "output": str(self._output / task.target)}

    def _told(self, result: Result) -> dict[str, Any]:
        """Return what programs are told of a work that was handed out."""
        told: dict[str, Any] = {"result": result.status.value}
        if result.outputs:
            told["files"] = [str(self._output / name) for name in result.outputs]
        if result.facts:
            told["facts"] = result.facts
        told["warnings"] = result.warnings
        if result.error:
            told["error"] = result.error
        return told | {"seconds": round(result.seconds, 4)}

    def _step(self) -> None:
        interruption.check()
        self._done += 1
        now = time.monotonic()
        if now - self._shown >= self._pause:
            self._shown = now
            self._show()

    def _show(self) -> None:
        if self._bar is not None and self._bar_task is not None:
            failed = f"{self._failed:,} failed" if self._failed else ""
            self._bar.update(self._bar_task, completed=self._done, failed=failed)
        elif self._bar is None:
            self._reporter.note(self.line())

    def line(self) -> str:
        """Return how far things are, in a sentence."""
        seconds = max(time.monotonic() - self._begun, 1e-3)
        if self._count is None:
            return f"{self._what}: {counted(self._done, 'file')} so far"
        parts = [f"{self._what}: {self._done:,} of {counted(self._count, 'file')}"]
        if self._failed:
            parts.append(f"{self._failed:,} failed")
        parts.append(rate_text(self._done, seconds))
        if 0 < self._done < self._count:
            parts.append(f"about {time_text(seconds / self._done * (self._count - self._done))} left")
        return ", ".join(parts)


def time_text(seconds: float) -> str:
    """Return ``1 h 5 min``, ``2 min 3 s``, ``12.3 s``, ``15 ms``."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def rate_text(count: int, seconds: float) -> str:
    """Return how many files a second, or a minute where that says more."""
    rate = count / max(seconds, 1e-3)
    return f"{rate:,.1f} files a second" if rate >= 1 or not count else f"{60 * rate:,.1f} files a minute"


def _is_terminal(stream: Any) -> bool:
    """Tell whether a bar can be turned there: a terminal that moves its cursor."""
    try:
        return bool(stream is not None and stream.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"})
    except ValueError:  # it is closed
        return False


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.progress import Task as BarTask
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many files a second."""

        def render(self, task: BarTask) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "")

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[failed]}", style="red", markup=False),
        console=Console(stderr=True, highlight=False),
        # Lines that are printed meanwhile go above the bar, but records for a program never out of their way.
        redirect_stdout=_is_terminal(sys.stdout),
        refresh_per_second=4,
        transient=True,
    )
